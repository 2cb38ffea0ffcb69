//! The repository of an account, from the handle on.

use mapping::MappedFile;
use wireproof::atproto::syntax::AtIdentifier;

use super::chain::{self, Stop};
use super::report::Report;
use super::signer::Signer;
use super::tell;
use crate::account;
use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;
use crate::fetched::{Place, fetch};
use crate::network::{self, Network};
use crate::output::Output;
use crate::stage::{Stage, Stages, Watch};

pub(super) fn run(
    who: AtIdentifier<'_>,
    args: &VerifyRepositoryArgs,
    output: Output,
) -> Result<(), Failure> {
    let (network, runtime) = (Network::open(&args.network)?, network::runtime()?);
    let mut stages = Stages::default();
    let found = runtime.block_on(account::find(&network.resolver, who, &mut stages))?;
    found.must_claim(who)?;
    let signer = Signer::of_account(found.did().to_buf(), found.key()?);
    let host = args.from.as_ref().map_or_else(|| found.host(), Ok)?;
    let mut place = Place::new(args.save.as_deref())?;
    let limits = args.fetch.limits();
    let mut watch = Watch::start(&mut stages);
    let fetching = fetch(&network.xrpc, host, found.did(), &mut place, &limits);
    let fetched = runtime.block_on(fetching)?;
    watch.ended(Stage::Fetch);
    let kept = place.keep()?;
    let archive = MappedFile::open(kept.path()).map_err(Failure::file(kept.path()))?;

    let mut report = Report::of_account(who, &found, &fetched, stages);
    let outcome = match chain::prove(&archive, &signer, args.rebuild, &mut report.stages) {
        Ok(whole) => {
            report.prove(&whole);
            Ok(())
        }
        Err(Stop::NoKey(_)) => unreachable!("the account's key was given"),
        Err(Stop::Refused(first)) => {
            let from = &fetched.host;
            let reason = format!("{who}: refused ({}): {first} (from {from})", first.code());
            report.refuse(&chain::faults(&archive, &signer, first, args.all));
            Err(Failure::Refused(reason))
        }
    };
    tell(report, args, output, outcome)
}
