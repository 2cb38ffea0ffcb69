//! The line of JSON for an event of a firehose or a Jetstream, written straight into a buffer.
//!
//! `docs/formats/follow-lines.md` lists the keys, and `docs/formats/schemas/follow` has a JSON Schema of every kind.

mod event;
mod jetstream;
mod resync;

use atproto::event::Action;
use atproto::syntax::CollectionPatternBuf;
use clap::ValueEnum;
use delivery::EventId;
use events::{Body, Code, Line, NewOp, Status, Text, Verdict};

pub use event::{EventLine, write_op};
pub(super) use jetstream::{write_jetstream, write_unrecognized};
pub use resync::ResyncLines;

use super::verify_level::VerifyLevel;

/// The form of the proof of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProofForm {
    /// The frame as received.
    Frame,
    /// A slice of the repository: the commit, the nodes on the paths of the operations, and the records.
    Blocks,
}

/// Content of a run's lines in addition to their events.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineContent {
    pub(super) proof: Option<ProofForm>,
    /// The level of proof for events; lines name a level below `full`.
    pub(super) level: VerifyLevel,
}

/// Content of a line in addition to its event or repository.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineHeader<'h> {
    /// Straight to standard output: marked if an earlier run may have printed it.
    Printed { is_repeated: bool },
    /// An event for the outbox.
    Live { id: &'h EventId },
    /// A part of a repository for the outbox, and when it was fetched, in microseconds since 1970: it is another line
    /// when the same repository is fetched again for a new destination.
    History { id: &'h EventId, fetched_micros: u64 },
}

impl<'h> LineHeader<'h> {
    /// The id of the line, and whether it is an event of the stream.
    fn id_and_live(self) -> (Option<Text<'h>>, Option<bool>) {
        match self {
            Self::Printed { .. } => (None, None),
            Self::Live { id } => (Some(id.as_str().into()), Some(true)),
            Self::History { id, .. } => (Some(id.as_str().into()), Some(false)),
        }
    }
}

/// Writes the line of an account that its own server calls inactive.
pub(super) fn write_status(lines: &mut Vec<u8>, id: &EventId, did: &str, status: Option<&str>) {
    let status = Status { did: did.into(), active: false, status: status.map(Into::into) };
    unchecked(id, Code::StatusConfirmed, Body::Status(status)).append(lines);
}

/// Writes the line of an account whose records are complete in these collections alone: if it is outdated, until its next repository.
pub(super) fn write_history(
    lines: &mut Vec<u8>,
    id: &EventId,
    code: Code<'static>,
    did: &str,
    complete: &[CollectionPatternBuf],
) {
    let complete = complete.iter().map(|name| name.as_str().into()).collect();
    let body = Body::History { did: did.into(), complete: Some(complete) };
    unchecked(id, code, body).append(lines);
}

/// A line of the outbox that is no event of the stream.
fn unchecked<'l>(id: &'l EventId, code: Code<'l>, body: Body<'l>) -> Line<'l> {
    let id = Some(id.as_str().into());
    Line { id, live: Some(false), verdict: Verdict::Unchecked, code, body }
}

/// A deletion; `filtered` if the record is there and does not match any more.
fn deletion(path: &str, filtered: bool) -> NewOp<'_> {
    NewOp { action: Action::Delete, path, cid: None, content: None, filtered }
}

/// Code of events that are not verified.
pub(super) const NOT_ASKED_CODE: &str = "not-asked";
/// Kind of a message that cannot be decoded.
pub(super) const UNDECODABLE: &str = "undecodable";
/// Code of a Jetstream message that cannot be decoded.
pub(super) const UNREADABLE_CODE: &str = "message";
