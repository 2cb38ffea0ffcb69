//! What is to be said of a file of frames?

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use wireproof::atproto::event::Event;
use wireproof::verify::Flagged;
use wireproof::verify::sync::{Chain, Judged, Outcome};

use crate::flagged::FlaggedRecords;

/// The verdicts of a file, counted, and those that somebody should look at.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    frames: u64,
    seconds: f64,
    /// How many had each verdict, by its name.
    verdicts: BTreeMap<&'static str, u64>,
    /// Operations of the accepted commits.
    ops: u64,
    /// Records of theirs that the data model does not allow, which refuses nothing.
    flagged: FlaggedRecords,
    findings: Vec<KeyLookup>,
}

/// A frame that was refused, or that breaks a chain.
#[derive(Debug, Serialize)]
struct KeyLookup {
    /// Its place in the file, from 0.
    frame: u64,
    seq: Option<i64>,
    did: Option<String>,
    verdict: &'static str,
    /// The rule, by its stable name.
    code: &'static str,
    /// The row in the table of checks.
    row: u8,
    reason: String,
}

impl Report {
    pub(super) fn add(&mut self, judged: &Judged<'_>) {
        let verdict = verdict(&judged.outcome);
        *self.verdicts.entry(verdict).or_default() += 1;
        if let Outcome::Commit(commit, _) = &judged.outcome {
            self.ops += commit.ops.len() as u64;
            self.flagged.extend(Flagged::of_commit(commit));
        }
        if let Some((code, row, reason)) = complaint(&judged.outcome) {
            let seq = judged.event.and_then(Event::seq);
            let did = judged.event.and_then(did).map(str::to_owned);
            let frame = self.frames;
            self.findings.push(KeyLookup { frame, seq, did, verdict, code, row, reason });
        }
        self.frames += 1;
    }

    pub(super) fn took(&mut self, time: Duration) {
        self.seconds = time.as_secs_f64();
    }

    pub(super) fn refused(&self) -> u64 {
        self.verdicts.get(REFUSED).copied().unwrap_or(0)
    }

    pub(super) fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        writeln!(out)
    }

    pub(super) fn write_text(&self, all: bool, mut out: impl Write) -> io::Result<()> {
        let shown = if all { self.findings.len() } else { SHOWN.min(self.findings.len()) };
        for finding in &self.findings[..shown] {
            writeln!(out, "{}", finding.to_line())?;
        }
        if shown < self.findings.len() {
            let more = self.findings.len() - shown;
            writeln!(out, "… and {more} more: --all or --json shows them")?;
        }
        let per_s = self.frames as f64 / self.seconds.max(1e-9);
        let Self { frames, seconds, ops, .. } = self;
        writeln!(out, "frames      {frames} in {seconds:.3} s, {per_s:.0} a second")?;
        for (verdict, count) in &self.verdicts {
            writeln!(out, "  {verdict:<26} {count}")?;
        }
        writeln!(out, "operations  {ops} proved")?;
        writeln!(out, "flagged     {}", self.flagged)
    }
}

impl KeyLookup {
    fn to_line(&self) -> String {
        let Self { frame, verdict, code, reason, .. } = self;
        let seq = self.seq.map_or(String::new(), |seq| format!(" seq {seq}"));
        let did = self.did.as_deref().unwrap_or("unknown account");
        format!("frame {frame}{seq} {did}: {verdict} ({code}): {reason}")
    }
}

fn verdict(outcome: &Outcome<'_>) -> &'static str {
    match outcome {
        Outcome::Commit(_, Chain::Intact) => "commit, chain holds",
        Outcome::Commit(_, Chain::FirstSeen) => "commit, first sighting",
        Outcome::Commit(_, Chain::Broken(_)) => "commit, chain broken",
        Outcome::Commit(_, Chain::StillDesynchronized) => "commit, after a broken chain",
        Outcome::Commit(_, Chain::Unproved(_)) => "commit, unproved",
        Outcome::Sync(..) => "sync",
        Outcome::Ignored(_) => "ignored",
        Outcome::Rejected(_) => REFUSED,
        Outcome::Unjudged(_) => "carries no proof",
    }
}

/// Which rule was broken, if any: its name, its row, and what to tell a person.
fn complaint(outcome: &Outcome<'_>) -> Option<(&'static str, u8, String)> {
    match outcome {
        Outcome::Rejected(rejection) => {
            Some((rejection.code(), rejection.row(), rejection.to_string()))
        }
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

const REFUSED: &str = "refused";
/// Findings that are shown unless all are asked for.
const SHOWN: usize = 10;
