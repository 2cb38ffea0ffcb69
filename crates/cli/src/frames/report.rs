//! The verdicts of a file, counted, and the findings among them.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use atproto::event::Event;
use serde::Serialize;
use verify::sync::{Chain, Judged, Outcome};
use verify::{Flagged, InvalidRecords};

use super::sequence::{SeqFinding, Sequence};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::json::{FlaggedRecords, InvalidSummary};

/// The verdicts of a file, counted.
#[derive(Debug, Default, Serialize)]
pub(super) struct FramesReport {
    #[serde(rename = "frame_count")]
    frames: u64,
    pub(super) seconds: f64,
    #[serde(serialize_with = "verdict_counts")]
    verdicts: BTreeMap<VerdictKind, u64>,
    #[serde(skip)]
    refused: u64,
    #[serde(skip)]
    broken_chains: u64,
    /// Operations of the verified commits.
    #[serde(rename = "op_count")]
    ops: u64,
    /// Invalid records of verified commits.
    invalid: InvalidSummary,
    /// Records of verified commits that break the data model. They are not refused.
    flagged: FlaggedRecords,
    sequence: Sequence,
    /// Whether every gap of the sequence is a finding.
    #[serde(skip)]
    lists_gaps: bool,
}

/// The groups in which verdicts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct VerdictKind {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    verdict: &'static str,
    /// How a commit relates to its predecessor.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<&'static str>,
    /// The rule by which an event is refused or ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

/// A frame that is refused or ignored, breaks its account's chain, or whose sequence number is odd.
#[derive(Debug, Serialize)]
struct FrameFinding<'a> {
    /// Index of the frame in the file.
    index: u64,
    seq: Option<i64>,
    did: Option<&'a str>,
    verdict: &'static str,
    /// The stable name of the rule.
    code: &'static str,
    /// The row of the rule in the table of checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<u8>,
    /// Number of skipped sequence numbers, of a gap.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    message: String,
}

impl FramesReport {
    /// A report in which every gap of the sequence is a finding if `lists_gaps` is set.
    pub(super) fn new(lists_gaps: bool) -> Self {
        Self { lists_gaps, ..Self::default() }
    }

    /// Counts a frame and its verdict.
    pub(super) fn add(
        &mut self,
        frame: &[u8],
        judged: &Judged<'_>,
        findings: &mut Findings,
    ) -> Result<(), Failure> {
        let (index, outcome) = (self.frames, &judged.outcome);
        self.frames += 1;
        *self.verdicts.entry(VerdictKind::of(judged)).or_default() += 1;
        match outcome {
            Outcome::Rejected(_) => self.refused += 1,
            Outcome::Commit(commit, chain) => {
                self.broken_chains += u64::from(matches!(chain, Chain::Broken(_)));
                self.ops += commit.ops.len() as u64;
                self.invalid.extend(&InvalidRecords::of_commit(commit));
                self.flagged.extend(Flagged::of_commit(commit));
            }
            _ => {}
        }
        if let Some((code, row, rule)) = broken_rule(outcome) {
            findings.add(|| FrameFinding {
                row: Some(row),
                ..FrameFinding::new(index, judged, code, rule.to_string())
            })?;
        }
        match self.sequence.observe(frame, judged) {
            Some(SeqFinding { code, message, skipped }) if skipped.is_none() || self.lists_gaps => {
                let finding = FrameFinding::new(index, judged, code, message);
                findings.add(|| FrameFinding { skipped, ..finding })
            }
            _ => Ok(()),
        }
    }

    /// Whether a rule of events or of the stream is broken.
    pub(super) fn is_refused(&self) -> bool {
        self.refused + self.sequence.out_of_order() > 0
    }

    pub(super) fn has_broken_chain(&self) -> bool {
        self.broken_chains > 0
    }

    pub(super) fn has_gap(&self) -> bool {
        self.sequence.gaps() > 0
    }

    /// The counts that decide the exit code.
    pub(super) fn summary(&self) -> String {
        let counts = [
            (self.refused, "refused"),
            (self.sequence.out_of_order(), "with a sequence number out of order"),
            (self.broken_chains, "with a broken chain"),
            (self.sequence.gaps(), "after a gap of the sequence"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn to_text(&self) -> String {
        let Self { frames, seconds, ops, invalid, flagged, sequence, .. } = self;
        let per_s = *frames as f64 / seconds.max(1e-9);
        let mut text = format!("frames      {frames} in {seconds:.3} s, {per_s:.0} per second\n");
        for (kind, count) in &self.verdicts {
            text += &format!("  {:<34} {count}\n", kind.to_string());
        }
        text + &format!(
            "operations  {ops} verified\ninvalid     {invalid}\nflagged     {flagged}\n\
             sequence    {sequence}\n"
        )
    }
}

/// The rule by which an event is refused or ignored, or that broke its account's chain: its code, its row
/// and the finding.
fn broken_rule<'o>(outcome: &'o Outcome<'_>) -> Option<(&'static str, u8, &'o dyn Display)> {
    match outcome {
        Outcome::Rejected(why) => Some((why.code(), why.row(), why)),
        Outcome::Ignored(why) => Some((why.code(), why.row(), why)),
        Outcome::Commit(_, Chain::Broken(gap)) => Some((gap.code(), gap.row(), gap)),
        _ => None,
    }
}

impl<'a> FrameFinding<'a> {
    /// A finding about a frame, without a row or skipped numbers.
    fn new(index: u64, judged: &Judged<'a>, code: &'static str, message: String) -> Self {
        Self {
            index,
            seq: judged.event.and_then(Event::seq),
            did: judged.event.and_then(did),
            verdict: judged.outcome.verdict(),
            code,
            row: None,
            skipped: None,
            message,
        }
    }
}

impl Display for FrameFinding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, verdict, code, message, .. } = self;
        let seq = self.seq.map_or(String::new(), |seq| format!(" seq {seq}"));
        let did = self.did.unwrap_or("unknown account");
        write!(f, "frame {index}{seq} {did}: {verdict} ({code}): {message}")
    }
}

impl VerdictKind {
    fn of(judged: &Judged<'_>) -> Self {
        let (kind, verdict) = (judged.event.map(Event::kind_name), judged.outcome.verdict());
        let (chain, code) = match &judged.outcome {
            Outcome::Commit(_, chain) => (Some(chain_name(chain)), None),
            Outcome::Rejected(why) => (None, Some(why.code())),
            Outcome::Ignored(why) => (None, Some(why.code())),
            _ => (None, None),
        };
        Self { kind, verdict, chain, code }
    }
}

impl Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, verdict, chain, code } = self;
        let kind = kind.map_or(String::new(), |kind| format!("{kind} "));
        let detail = chain.or(*code).map_or(String::new(), |detail| format!(", {detail}"));
        write!(f, "{kind}{verdict}{detail}")
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

fn did<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event {
        Event::Commit(commit) => Some(commit.repo),
        Event::Sync(sync) => Some(sync.did),
        Event::Identity(identity) => Some(identity.did),
        Event::Account(account) => Some(account.did),
        _ => None,
    }
}
