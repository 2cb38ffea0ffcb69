//! `wireproof bench compare`: what moved between two runs?

use std::io::Write;

use ::report::compare::{CompareOptions, compare};

use crate::args::bench::CompareArgs;
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn run(args: &CompareArgs, output: Output) -> Result<(), Failure> {
    let (old, new) = (::report::read(&args.old)?, ::report::read(&args.new)?);
    let usual = CompareOptions::default();
    let options = CompareOptions {
        baseline: args.baseline.clone(),
        tolerance: args.tolerance,
        peers: args.peers.clone().or(usual.peers),
    };
    let comparison = compare(&old, &new, &options);
    write!(output.stdout(), "{comparison}")?;
    if comparison.has_regressed() {
        let new = args.new.display();
        return Err(Failure::Refused(format!("{new}: regressed; the lines above say where")));
    }
    Ok(())
}
