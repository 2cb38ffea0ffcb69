//! `wireproof bench verify`: the repository of an account, fetched once and verified by everyone.

use std::fs;
use std::path::{Path, PathBuf};

use ::bench::{Plan, Task};
use mapping::MappedFile;
use serde_json::json;
use wireproof::atproto::syntax::Did;
use wireproof::crypto::PublicKey;
use wireproof::verify::repository::{self, Options};

use crate::account::{self, Found};
use crate::args::bench::BenchVerifyArgs;
use crate::failure::Failure;
use crate::fetched::{Place, fetch};
use crate::network::{self, Network};
use crate::output::Output;
use crate::stage::{Stage, Stages, Watch};

pub(super) fn run(args: &BenchVerifyArgs, output: Output) -> Result<(), Failure> {
    let who = account::identifier(&args.who)?;
    let plan = super::plan(&args.run)?;
    let (network, runtime) = (Network::open(&args.network)?, network::runtime()?);
    let mut stages = Stages::default();
    let found = runtime.block_on(account::find(&network.resolver, who, &mut stages))?;
    found.must_claim(who)?;
    let corpus = corpus(&plan.work_dir, found.did())?;
    let mut watch = Watch::start(&mut stages);
    runtime.block_on(keep(args, &network, &found, &corpus))?;
    watch.ended(Stage::Fetch);
    prove(&corpus, &found, &found.key()?)?;

    let before = format!("{}\n", stages.to_table());
    let plan = Plan { tasks: vec![Task::Repo], corpus: Some(corpus), ..plan };
    super::measure(&plan, &args.run, &before, output)
}

/// Where the repository is kept.
fn corpus(work_dir: &Path, did: Did<'_>) -> Result<PathBuf, Failure> {
    let folder = work_dir.join("fetched");
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    Ok(folder.join(format!("{}.car", did.as_str().replace([':', '%'], "-"))))
}

/// Fetches the repository, and writes beside it whose it is.
async fn keep(
    args: &BenchVerifyArgs,
    network: &Network,
    found: &Found,
    corpus: &Path,
) -> Result<(), Failure> {
    let host = args.from.as_ref().map_or_else(|| found.host(), Ok)?;
    let mut place = Place::new(Some(corpus))?;
    fetch(&network.xrpc, host, found.did(), &mut place, &args.fetch.limits()).await?;
    place.keep()?;
    let beside = corpus.with_extension("json");
    let owner = json!({ "did": found.did(), "signing_key": found.key()?.to_did_key() });
    fs::write(&beside, format!("{owner:#}\n")).map_err(Failure::file(&beside))
}

/// Only what holds is worth measuring.
fn prove(corpus: &Path, found: &Found, key: &PublicKey) -> Result<(), Failure> {
    let archive = MappedFile::open(corpus).map_err(Failure::file(corpus))?;
    let did = found.did();
    let whole = repository::verify(&archive, Some(did.as_str()), key, &Options::default());
    let told = |error: repository::RepositoryRejection| {
        Failure::Refused(format!("{did}: refused ({}): {error}", error.code()))
    };
    whole.map(drop).map_err(told)
}
