//! The sequence numbers of a file: rising, and how many are skipped.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use net::firehose::{ReceivedFrame, SeqStep, SequenceTracker};
use net::hosts::HostId;
use serde::Serialize;
use verify::sync::{Judged, Outcome, SyncRejection};

/// Tracks the sequence numbers of a file, and counts gaps and numbers out of order.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sequence {
    #[serde(skip)]
    tracker: SequenceTracker,
    first: Option<u64>,
    last: Option<u64>,
    /// Number of gaps.
    gaps: u64,
    /// Sequence numbers in all gaps together.
    skipped: u64,
    largest_gap: Option<Gap>,
    /// Events whose number is not above the number of the event before.
    out_of_order: u64,
}

/// Sequence numbers that no event of the file has.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gap {
    after: u64,
    seq: u64,
    skipped: u64,
}

/// A sequence number that is not the successor of the last one.
#[derive(Debug)]
pub(super) struct SeqFinding {
    pub(super) code: &'static str,
    pub(super) message: String,
    /// Number of skipped sequence numbers, of a gap.
    pub(super) skipped: Option<u64>,
}

impl Sequence {
    /// Tracks the number of a frame. Returns a finding if it is not the successor of the last one.
    pub(super) fn observe(&mut self, frame: &[u8], judged: &Judged<'_>) -> Option<SeqFinding> {
        let seq = seq(frame, judged)?;
        self.first.get_or_insert(seq);
        self.last = Some(seq);
        let (code, message) = match self.tracker.observe(seq, frame) {
            SeqStep::Next => return None,
            SeqStep::Gap(after) => return Some(self.add_gap(after, seq)),
            SeqStep::Repeated => {
                (REPEATED_CODE, format!("sequence number {seq} again, with the same bytes"))
            }
            SeqStep::Reused => {
                (REUSED_CODE, format!("sequence number {seq} again, with other bytes"))
            }
            SeqStep::Regressed(after) | SeqStep::Reset(after) => (
                REGRESSED_CODE,
                format!("sequence number {seq} after {after}: sequence numbers must rise"),
            ),
        };
        self.out_of_order += 1;
        Some(SeqFinding { code, message, skipped: None })
    }

    fn add_gap(&mut self, after: u64, seq: u64) -> SeqFinding {
        let skipped = seq - after - 1;
        self.gaps += 1;
        self.skipped = self.skipped.saturating_add(skipped);
        if self.largest_gap.is_none_or(|largest| largest.skipped < skipped) {
            self.largest_gap = Some(Gap { after, seq, skipped });
        }
        let message = format!("sequence numbers skipped after {after}: {skipped}");
        SeqFinding { code: GAP_CODE, message, skipped: Some(skipped) }
    }

    pub(super) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    pub(super) fn gaps(&self) -> u64 {
        self.gaps
    }
}

/// The sequence number of a frame, even if it cannot be decoded; `None` if it has none in the range.
fn seq(frame: &[u8], judged: &Judged<'_>) -> Option<u64> {
    if matches!(judged.outcome, Outcome::Rejected(SyncRejection::Seq(_))) {
        return None;
    }
    match judged.event {
        Some(event) => event.seq().and_then(|seq| u64::try_from(seq).ok()),
        None => {
            let frame = Bytes::copy_from_slice(frame);
            ReceivedFrame::new(HostId(0), frame, SystemTime::UNIX_EPOCH).seq
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return f.write_str("no sequence numbers");
        };
        write!(
            f,
            "{first} to {last}, {} out of order, {} skipped",
            self.out_of_order, self.skipped
        )?;
        match self.largest_gap {
            Some(Gap { after, skipped, .. }) => {
                write!(f, " in {} gaps, the largest of {skipped} after {after}", self.gaps)
            }
            None => Ok(()),
        }
    }
}

/// Stable names of the findings.
const GAP_CODE: &str = "seq/gap";
const REPEATED_CODE: &str = "seq/repeated";
const REUSED_CODE: &str = "seq/reused";
const REGRESSED_CODE: &str = "seq/regressed";
