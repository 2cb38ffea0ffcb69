//! `wireproof bench verify`: downloads the repository of an account once, and measures peers on it.

use std::path::{Path, PathBuf};

use ::bench::{Plan, RunnerCommand, Task};
use atproto::syntax::Did;
use serde_json::json;
use verify::repository::{self, Options, RepositoryRejection};

use super::args::BenchVerifyArgs;
use crate::account::ResolvedAccount;
use crate::download::{self, Target};
use crate::failure::Failure;
use crate::files;
use crate::names;
use crate::network::{self, Network};
use crate::output::Output;
use crate::progress::ProgressLine;
use crate::stage::{Stage, StageTimer, Stages};

pub(super) fn run(
    args: &BenchVerifyArgs,
    own: RunnerCommand,
    output: Output,
) -> Result<(), Failure> {
    let who = names::account(&args.who)?;
    let plan = super::plan(&args.run, own);
    let network = Network::open(&args.network, args.from.as_slice())?;
    let runtime = network::runtime()?;
    let mut stages = Stages::default();
    let account = ResolvedAccount::look_up(&network, &runtime, who, &mut stages)?;
    let corpus = corpus_path(&plan.work_dir, account.did())?;
    let mut timer = StageTimer::start(&mut stages);
    runtime.block_on(save(args, &network, &account, &corpus))?;
    timer.finish(Stage::Fetch);
    check(&corpus, &account)?;

    if !args.run.json.as_deref().is_some_and(files::is_standard_stream) {
        output.styled(&format!("{}\n", stages.to_table()))?;
    }
    let plan = Plan { tasks: vec![Task::Repo], corpus: Some(corpus), ..plan };
    super::measure(&plan, &args.run, output)
}

fn corpus_path(work_dir: &Path, did: Did<'_>) -> Result<PathBuf, Failure> {
    let folder = work_dir.join("fetched");
    files::create_folder(&folder)?;
    Ok(folder.join(format!("{}.car", did.as_str().replace([':', '%'], "-"))))
}

/// Downloads the repository, and writes its owner's DID and key next to it.
async fn save(
    args: &BenchVerifyArgs,
    network: &Network,
    account: &ResolvedAccount,
    corpus: &Path,
) -> Result<(), Failure> {
    let host = args.from.as_ref().map_or_else(|| account.host(), Ok)?;
    let (did, limits) = (account.did(), args.download.limits());
    let mut target = Target::new(Some(corpus))?;
    let line = ProgressLine::new();
    download::repository(&network.xrpc, host, did, &mut target, &limits, line).await?;
    target.save()?;
    let owner = json!({ "did": did, "signing_key": account.key()?.to_did_key() });
    files::write_json(&corpus.with_extension("json"), &owner)
}

/// Verifies the repository before it is measured.
fn check(corpus: &Path, account: &ResolvedAccount) -> Result<(), Failure> {
    let archive = files::map(corpus)?;
    let did = account.did();
    let key = account.key()?;
    let verified = repository::verify(&archive, Some(did.as_str()), &key, &Options::default());
    let refused = |error: RepositoryRejection| {
        Failure::Refused(format!("{did}: refused ({}): {error}", error.code()))
    };
    verified.map(drop).map_err(refused)
}
