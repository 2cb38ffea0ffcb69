//! `wireproof frames verify`: verifies the firehose frames in a file, in their order; `verify-lines`: lines with proofs.

mod line;
mod line_keys;
mod line_proof;
mod lines;
mod report;
mod sequence;
mod strict_json;

use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use atproto::corpus;
use atproto::event::{self, Account, Event};
use atproto::syntax::Did;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use verify::identity::AccountKeys;
use verify::sync::{AccountState, Judge, Judged, MemoryState, Outcome, Policy};

use crate::failure::Failure;
use crate::files;
use crate::findings::Findings;
use crate::key_files::account_keys;
use crate::output::Output;
use lines::VerifyLinesArgs;
use report::FramesReport;

/// Verify firehose frames in files.
#[derive(Debug, Subcommand)]
pub(crate) enum FramesCommand {
    /// Verify the frames of a file in their order.
    ///
    /// Every #commit and #sync is checked against its account's key, the account's earlier events and its own tree:
    /// inverting its operations must lead to the previous tree. The first event of an account starts its chain. After
    /// an #account event that is not active, the account's commits are ignored (event/inactive) until an active one.
    /// Sequence numbers must rise.
    ///
    /// Exit code 0 if no frame is refused and no sequence number is out of order.
    #[command(after_help = EXAMPLES)]
    Verify(FramesVerifyArgs),
    /// Prove the lines of `follow --proof` again.
    ///
    /// Every verified line is compared with its proof, under the key of its account: the signed commit, and every
    /// record at its path or its absence. A frame is judged as a whole. With --ops, lines without a proof follow the
    /// line that has it. Lines that claim no verified records are counted. A line is refused if a key occurs twice or
    /// is unknown, or if its operations are missing; keys that no proof covers are named.
    ///
    /// Exit code 0 if no line is refused.
    #[command(after_help = LINES_EXAMPLES)]
    VerifyLines(VerifyLinesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FramesVerifyArgs {
    /// The frames: a 32-bit big-endian count, then every frame after its 32-bit length.
    #[arg(value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The accounts' keys: JSON, an object of DID to did:key, or an array of objects with did and didDoc.
    #[arg(long, value_name = "accounts.json|-", value_hint = ValueHint::FilePath)]
    keys: PathBuf,
    /// Exit with code 1 for these too [default: none].
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// Refuse commits with invalid records: not canonical DAG-CBOR, or not a map [default: verify them, and report the
    /// records].
    #[arg(long)]
    strict_records: bool,
    /// Verify a capture from before sync 1.1: accept commits without prevData, operations without prev, deletes
    /// whose path the nodes do not show, and commits marked tooBig or rebase. Commits count as unproved: they
    /// may leave changes out.
    #[arg(long)]
    legacy: bool,
    /// Show every finding and gap of the sequence [default: the first 10 findings, without gaps].
    #[arg(long)]
    all: bool,
    /// Print one JSON document with all findings and gaps.
    #[arg(long)]
    json: bool,
}

/// Findings that are no refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A valid commit that does not continue the previous one of its account.
    BrokenChain,
    /// Skipped sequence numbers.
    Gap,
}

impl FramesVerifyArgs {
    fn policy(&self) -> Policy {
        let mut policy = if self.legacy { Policy::before_sync_1_1() } else { Policy::default() };
        policy.strict_records = self.strict_records;
        policy
    }
}

pub(crate) fn run(command: &FramesCommand, output: Output) -> Result<(), Failure> {
    let args = match command {
        FramesCommand::Verify(args) => args,
        FramesCommand::VerifyLines(args) => return lines::run(args, output),
    };
    let keys = output.or_failure_document(args.json, account_keys(&args.keys))?;
    let file = output.or_failure_document(args.json, files::map(&args.file))?;
    let frames = corpus::frames(&file).map_err(|error| Failure::refused(&args.file, error));
    let frames = output.or_failure_document(args.json, frames)?;
    let mut report = FramesReport::new(args.all || args.json);
    let mut findings = Findings::new(output, args.json, args.all);
    verify(frames, args.policy(), &keys, &mut report, &mut findings)?;
    findings.finish(&report, FramesReport::to_text)?;
    let is_failure = |on: &FailOn| match on {
        FailOn::BrokenChain => report.has_broken_chain(),
        FailOn::Gap => report.has_gap(),
    };
    if report.is_refused() || args.fail_on.iter().any(is_failure) {
        Err(Failure::refused(&args.file, report.summary()))
    } else {
        Ok(())
    }
}

fn verify(
    mut frames: corpus::Frames<'_>,
    policy: Policy,
    keys: &AccountKeys,
    report: &mut FramesReport,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let started = Instant::now();
    let mut judge = Judge::builder().policy(policy).build();
    let mut state = MemoryState::default();
    loop {
        let batch = next_batch(&mut frames);
        if batch.is_empty() {
            break;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(verdicts) = judge.judge_batch(&batch, keys, &mut state, now.as_micros() as u64);
        for (frame, judged) in batch.iter().zip(&verdicts) {
            report.add(frame, judged, findings)?;
        }
        if let Some(Judged { outcome: Outcome::Unjudged(Event::Account(event)), .. }) =
            verdicts.last()
        {
            set_status(event, keys, &mut state);
        }
    }
    report.seconds = started.elapsed().as_secs_f64();
    Ok(())
}

/// Takes the next frames. An `#account` is the last of its batch: it decides about the commits after it.
fn next_batch<'f>(frames: &mut corpus::Frames<'f>) -> Vec<&'f [u8]> {
    let mut batch = Vec::with_capacity(BATCH_LEN.min(frames.len()));
    for frame in frames.take(BATCH_LEN) {
        batch.push(frame);
        if event::peek(frame).is_ok_and(|(header, _)| header.kind == Some("#account")) {
            break;
        }
    }
    batch
}

/// Stores the status of an account. Without a key it has no commit to accept, so that nothing is stored for it:
/// the accounts in memory have a key.
fn set_status(event: &Account<'_>, keys: &AccountKeys, state: &mut MemoryState) {
    if Did::parse(event.did).is_ok_and(|did| keys.get(did).is_some()) {
        let account = AccountState { is_active: event.active, ..state.get(event.did) };
        state.put(event.did, account);
    }
}

/// Frames verified together: enough to fill the signature lanes, few enough to stay in the cache.
const BATCH_LEN: usize = 512;

const EXAMPLES: &str = "\
Examples:
  wireproof frames verify firehose-frames.bin --keys accounts.json
  wireproof frames verify frames.bin --keys accounts.json --fail-on broken-chain,gap
  wireproof frames verify frames.bin --keys accounts.json --json | jq '.findings[] | {seq, code}'";

const LINES_EXAMPLES: &str = "\
Examples:
  wireproof follow --proof blocks > lines.ndjson
  wireproof frames verify-lines lines.ndjson --keys accounts.json
  wireproof frames verify-lines lines.ndjson --resolve
  wireproof frames verify-lines lines.ndjson --plc-log log.json
  wireproof frames verify-lines - --keys accounts.json --json < lines.ndjson";
