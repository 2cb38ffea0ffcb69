//! `wireproof frames verify`: verifies the firehose frames in a file, in their order.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use wireproof::atproto::corpus;
use wireproof::atproto::event::Event;
use wireproof::verify::Flagged;
use wireproof::verify::identity::AccountKeys;
use wireproof::verify::sync::{Chain, Judge, Judged, MemoryState, Outcome};

use crate::failure::Failure;
use crate::files;
use crate::json::{self, FlaggedRecords};
use crate::output::{Output, and_more};
use crate::verify::account_keys;

/// Verify firehose frames in files.
#[derive(Debug, Subcommand)]
pub(crate) enum FramesCommand {
    /// Verify the frames of a file in their order.
    ///
    /// Each #commit and #sync is checked against its account's key, the account's earlier events and its
    /// own tree: inverting its operations must lead to the previous tree. The first event of an account
    /// starts its chain. Exit code 0 if no frame is refused.
    #[command(after_help = EXAMPLES)]
    Verify(FramesVerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FramesVerifyArgs {
    /// The frames: a 32-bit big-endian count, then each frame after its 32-bit length.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The accounts' keys: JSON, an object of DID to did:key, or an array of objects with did and didDoc.
    #[arg(long, value_name = "accounts.json", value_hint = ValueHint::FilePath)]
    keys: PathBuf,
    /// Show every refused frame and broken chain [default: the first 10].
    #[arg(long)]
    all: bool,
    /// Print one JSON document with all findings.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &FramesCommand, output: Output) -> Result<(), Failure> {
    let FramesCommand::Verify(args) = command;
    let keys = account_keys(&args.keys)?;
    let file = files::map(&args.file)?;
    let frames = corpus::read(&file).map_err(|error| Failure::refused(&args.file, error))?;
    let report = verify(&frames, &keys);
    output.document(&report, args.json, |report| report.to_text(args.all))?;
    match report.refused {
        0 => Ok(()),
        refused => Err(Failure::refused(&args.file, format_args!("{refused} refused"))),
    }
}

fn verify(frames: &[&[u8]], keys: &AccountKeys) -> FramesReport {
    let started = Instant::now();
    let (mut judge, mut state) = (Judge::default(), MemoryState::default());
    let mut report = FramesReport::default();
    for batch in frames.chunks(BATCH_LEN) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(verdicts) = judge.judge_batch(batch, keys, &mut state, now.as_micros() as u64);
        verdicts.iter().for_each(|judged| report.add(judged));
    }
    report.seconds = started.elapsed().as_secs_f64();
    report
}

/// The verdicts of a file, counted, and its findings.
#[derive(Debug, Default, Serialize)]
struct FramesReport {
    frames: u64,
    seconds: f64,
    #[serde(serialize_with = "verdict_counts")]
    verdicts: BTreeMap<VerdictKind, u64>,
    #[serde(skip)]
    refused: u64,
    /// Operations of the verified commits.
    ops: u64,
    /// Records of verified commits that break the data model. They are not refused.
    flagged: FlaggedRecords,
    findings: Vec<FrameFinding>,
}

/// What verdicts are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct VerdictKind {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    verdict: &'static str,
    /// How a commit relates to its predecessor.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<&'static str>,
}

/// A refused frame, or one that breaks its account's chain.
#[derive(Debug, Serialize)]
struct FrameFinding {
    /// Index of the frame in the file.
    index: u64,
    seq: Option<i64>,
    did: Option<String>,
    verdict: &'static str,
    /// The stable name of the rule.
    code: &'static str,
    /// The row of the rule in the table of checks.
    row: u8,
    message: String,
}

impl FramesReport {
    fn add(&mut self, judged: &Judged<'_>) {
        let outcome = &judged.outcome;
        *self.verdicts.entry(VerdictKind::of(judged)).or_default() += 1;
        self.refused += u64::from(matches!(outcome, Outcome::Rejected(_)));
        if let Outcome::Commit(commit, _) = outcome {
            self.ops += commit.ops.len() as u64;
            self.flagged.extend(Flagged::of_commit(commit));
        }
        if let Some((code, row, message)) = broken_rule(outcome) {
            self.findings.push(FrameFinding {
                index: self.frames,
                seq: judged.event.and_then(Event::seq),
                did: judged.event.and_then(did).map(str::to_owned),
                verdict: json::verdict(outcome),
                code,
                row,
                message,
            });
        }
        self.frames += 1;
    }

    fn to_text(&self, all: bool) -> String {
        let shown = if all { self.findings.len() } else { SHOWN };
        let mut text: String =
            self.findings.iter().take(shown).map(FrameFinding::to_line).collect();
        text += &and_more(self.findings.len(), shown);
        let Self { frames, seconds, ops, flagged, .. } = self;
        let per_s = *frames as f64 / seconds.max(1e-9);
        text += &format!("frames      {frames} in {seconds:.3} s, {per_s:.0} per second\n");
        for (VerdictKind { kind, verdict, chain }, count) in &self.verdicts {
            let kind = kind.map_or(String::new(), |kind| format!("{kind} "));
            let chain = chain.map_or(String::new(), |chain| format!(", {chain}"));
            text += &format!("  {:<34} {count}\n", format!("{kind}{verdict}{chain}"));
        }
        text + &format!("operations  {ops} verified\nflagged     {flagged}\n")
    }
}

impl FrameFinding {
    fn to_line(&self) -> String {
        let Self { index, verdict, code, message, .. } = self;
        let seq = self.seq.map_or(String::new(), |seq| format!(" seq {seq}"));
        let did = self.did.as_deref().unwrap_or("unknown account");
        format!("frame {index}{seq} {did}: {verdict} ({code}): {message}\n")
    }
}

impl VerdictKind {
    fn of(judged: &Judged<'_>) -> Self {
        let chain = match &judged.outcome {
            Outcome::Commit(_, chain) => Some(chain_name(chain)),
            _ => None,
        };
        let (kind, verdict) = (judged.event.map(json::event_kind), json::verdict(&judged.outcome));
        Self { kind, verdict, chain }
    }
}

fn chain_name(chain: &Chain) -> &'static str {
    match chain {
        Chain::Intact => "intact",
        Chain::FirstSeen => "first-seen",
        Chain::Broken(_) => "broken",
        Chain::StillDesynchronized => "still-desynchronized",
        Chain::Unproved(_) => "unproved",
    }
}

/// Serializes counts as an array of objects with `count`.
fn verdict_counts<S: serde::Serializer>(
    counts: &BTreeMap<VerdictKind, u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct VerdictCount {
        #[serde(flatten)]
        kind: VerdictKind,
        count: u64,
    }
    serializer
        .collect_seq(counts.iter().map(|(kind, count)| VerdictCount { kind: *kind, count: *count }))
}

/// The code, row and message of the broken rule, if any.
fn broken_rule(outcome: &Outcome<'_>) -> Option<(&'static str, u8, String)> {
    match outcome {
        Outcome::Rejected(why) => Some((why.code(), why.row(), why.to_string())),
        Outcome::Commit(_, Chain::Broken(gap)) => Some((gap.code(), gap.row(), gap.to_string())),
        _ => None,
    }
}

fn did<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event {
        Event::Commit(commit) => Some(commit.repo),
        Event::Sync(sync) => Some(sync.did),
        _ => None,
    }
}

/// Frames verified together: enough to fill the signature lanes, few enough to stay in the cache.
const BATCH_LEN: usize = 512;
/// Findings shown without `--all`.
const SHOWN: usize = 10;

const EXAMPLES: &str = "\
Examples:
  wireproof frames verify firehose-frames.bin --keys accounts.json
  wireproof frames verify frames.bin --keys accounts.json --json | jq '.findings[] | {seq, code}'";
