//! A repository in a file, under a key that is given.

use std::path::Path;

use mapping::MappedFile;

use super::chain::{self, Stop};
use super::report::Report;
use super::signer::Signer;
use super::tell;
use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn run(path: &Path, args: &VerifyRepositoryArgs, output: Output) -> Result<(), Failure> {
    let signer = Signer::of(args)?;
    let file = MappedFile::open(path).map_err(Failure::file(path))?;
    let mut report = Report::of_file(path, file.len());
    let outcome = match chain::prove(&file, &signer, args.rebuild, &mut report.stages) {
        Ok(whole) => {
            report.prove(&whole);
            Ok(())
        }
        Err(Stop::NoKey(did)) => return Err(no_key(&did)),
        Err(Stop::Refused(first)) => {
            let reason = format!("{}: refused ({}): {first}", path.display(), first.code());
            report.refuse(&chain::faults(&file, &signer, first, args.all));
            Err(Failure::Refused(reason))
        }
    };
    tell(report, args, output, outcome)
}

fn no_key(did: &str) -> Failure {
    Failure::Refused(format!("the commit is of {did}, and no key of that account was given"))
}
