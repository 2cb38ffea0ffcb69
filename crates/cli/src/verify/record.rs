//! What is at a path of an account's repository?

use std::io::Write;

use wireproof::net::xrpc::{ErrorName, FetchedRepo, XrpcError};
use wireproof::verify::record::{self, Options};

use super::report::Report;
use super::target::Place;
use super::tell;
use crate::account;
use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;
use crate::fetched;
use crate::network::{self, Network};
use crate::output::Output;
use crate::stage::{Stage, Stages, Watch};

pub(super) fn run(
    place: &Place<'_>,
    args: &VerifyRepositoryArgs,
    output: Output,
) -> Result<(), Failure> {
    let (network, runtime) = (Network::open(&args.network)?, network::runtime()?);
    let mut stages = Stages::default();
    let found = runtime.block_on(account::find(&network.resolver, place.who, &mut stages))?;
    found.must_claim(place.who)?;
    let (did, key) = (found.did(), found.key()?);
    let host = args.from.as_ref().map_or_else(|| found.host(), Ok)?;
    let mut watch = Watch::start(&mut stages);
    let fetched = network.xrpc.get_record(host, did, place.collection, place.rkey);
    let fetched = runtime.block_on(fetched).map_err(not_given)?;
    watch.ended(Stage::Fetch);
    save(args, &fetched)?;

    let path = format!("{}/{}", place.collection, place.rkey);
    let from = FetchedRepo { host: host.authority().into(), bytes: fetched.len() as u64 };
    let mut watch = Watch::start(&mut stages);
    let proof = record::verify(&fetched, &path, Some(did.as_str()), &key, &Options::default());
    watch.ended(Stage::Record);
    let mut report = Report::of_account(place.who, &found, &from, stages);
    let outcome = match proof {
        Ok(proof) => report.prove_record(&path, &proof),
        Err(rejection) => {
            let code = rejection.code();
            let reason = format!("{path}: refused ({code}): {rejection} (from {})", from.host);
            report.refuse(&[rejection]);
            Err(Failure::Refused(reason))
        }
    };
    tell(report, args, output, outcome)
}

/// That there is no record is worth something only with a proof.
fn not_given(error: XrpcError) -> Failure {
    match error.name() {
        Some(ErrorName::RecordNotFound) => {
            Failure::Network(format!("{error}, which it gives no proof of"))
        }
        _ => error.into(),
    }
}

fn save(args: &VerifyRepositoryArgs, fetched: &[u8]) -> Result<(), Failure> {
    let Some(to) = &args.save else { return Ok(()) };
    let mut place = fetched::Place::new(Some(to))?;
    place.write_all(fetched).map_err(Failure::file(to))?;
    place.keep().map(drop)
}
