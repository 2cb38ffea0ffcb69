//! The line of JSON for an event of a firehose or a Jetstream, written straight into a buffer.
//!
//! `docs/formats/follow-lines.md` lists the keys, and `docs/formats/schemas/follow` has a JSON Schema of each kind.

mod event;
mod jetstream;
mod object;
mod resync;

use atproto::event::Action;
use atproto::syntax::DatetimeBuf;
use clap::ValueEnum;
use delivery::EventId;

pub use event::{EventLine, claims, write_op};
pub(super) use jetstream::{write_jetstream, write_unrecognized};
pub use object::Object;
pub use resync::ResyncLines;

use super::verify_level::VerifyLevel;
use crate::json::RecordPath;

/// The form of the proof of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProofForm {
    /// The frame as received.
    Frame,
    /// A slice of the repository: the commit, the nodes on the paths of the operations, and the records.
    Blocks,
}

/// What the lines of a run have beside their events.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineContent {
    pub(super) proof: Option<ProofForm>,
    /// What is proved of events; lines name what is less than all.
    pub(super) level: VerifyLevel,
}

/// What a line has beside its event or repository.
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

impl LineHeader<'_> {
    fn write(self, object: &mut Object<'_>) {
        match self {
            Self::Printed { .. } => {}
            Self::Live { id } => {
                object.text("id", id.as_str());
                object.json("live", &true);
            }
            Self::History { id, fetched_micros } => {
                object.text("id", id.as_str());
                object.json("live", &false);
                let time =
                    i64::try_from(fetched_micros).ok().and_then(DatetimeBuf::from_unix_micros);
                object.optional("time", time.as_ref().map(|time| time.as_str()));
            }
        }
    }
}

/// Writes the line of an account that its own server calls inactive.
pub(super) fn write_status(line: &mut Vec<u8>, id: &EventId, did: &str, status: Option<&str>) {
    let mut object = Object::begin_line(line);
    object.text("id", id.as_str());
    object.json("live", &false);
    object.text("kind", "status");
    object.text("did", did);
    object.json("active", &false);
    object.optional("status", status);
    object.text("verdict", "unchecked");
    object.text("code", CONFIRMED_CODE);
    object.end();
}

/// Writes the line of an account of which consumers may miss something until its next repository.
pub(super) fn write_outdated(line: &mut Vec<u8>, id: &EventId, did: &str) {
    let mut object = Object::begin_line(line);
    object.text("id", id.as_str());
    object.json("live", &false);
    object.text("kind", "history");
    object.text("did", did);
    object.text("verdict", "unchecked");
    object.text("code", OUTDATED_CODE);
    object.end();
}

/// Writes a deletion; `filtered` if the record is there and does not match any more.
fn write_deletion(line: &mut Vec<u8>, path: &str, filtered: bool) {
    let RecordPath { collection, rkey } = RecordPath::split(path);
    let mut object = Object::begin(line);
    object.text("action", Action::Delete.as_str());
    object.text("collection", collection);
    object.text("rkey", rkey);
    if filtered {
        object.json("filtered", &true);
    }
    object.close();
}

/// Verdict of events that are not verified, and its code.
const NOT_ASKED: &str = "not-asked";
pub(super) const NOT_ASKED_CODE: &str = "not-asked";
const VERIFIED_CODE: &str = "verified";
/// Code of a status that the account's own server confirms.
const CONFIRMED_CODE: &str = "status/confirmed";
const OUTDATED_CODE: &str = "history/outdated";
/// Kind of a message that cannot be decoded.
pub(super) const UNDECODABLE: &str = "undecodable";
/// Code of a Jetstream message that cannot be decoded.
pub(super) const UNREADABLE_CODE: &str = "message";
