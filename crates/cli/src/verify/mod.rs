//! `wireproof verify`: is this what an account signed?
//!
//! | file | question |
//! |---|---|
//! | `target` | what is to be proved: a file, an account or a record? |
//! | `file` | a repository in a file, under a key that is given |
//! | `account` | the repository of an account, from the handle on |
//! | `record` | what is at a path of an account's repository |
//! | `chain` | the stages of a repository's proof |
//! | `signer` | who must have signed, according to the arguments? |
//! | `report` | what is told of a proof, or of a refusal? |

mod account;
mod chain;
mod file;
mod record;
mod report;
mod signer;
mod target;

use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;
use crate::output::Output;
use report::Report;
use target::Target;

pub(crate) use signer::account_keys;

pub(crate) fn run(args: &VerifyRepositoryArgs, output: Output) -> Result<(), Failure> {
    match Target::of(args)? {
        Target::File(path) => file::run(path, args, output),
        Target::Account(who) => account::run(who, args, output),
        Target::Record(record) => record::run(&record, args, output),
    }
}

/// Prints what there is to tell, and passes on what came of it.
fn tell(
    report: Report,
    args: &VerifyRepositoryArgs,
    output: Output,
    outcome: Result<(), Failure>,
) -> Result<(), Failure> {
    let report = report.summed();
    if args.json {
        report.write_json(output.stdout())?;
    } else {
        report.write_text(output.stdout())?;
    }
    outcome
}
