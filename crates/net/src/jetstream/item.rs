//! Items of a Jetstream client, and its errors.

use std::time::SystemTime;

use bytes::Bytes;

use super::event::Event;
use crate::firehose::Notice;
use crate::hosts::HostId;
use crate::websocket::DialError;

/// The next thing that happened.
#[derive(Clone, Debug)]
pub enum JetstreamItem {
    /// An event.
    Event(Event),
    /// A message that is no event.
    Unrecognized(Unrecognized),
    /// Something else.
    Notice(Notice),
}

/// A message that is no event.
#[derive(Clone, Debug)]
pub struct Unrecognized {
    /// Who sent it.
    pub host: HostId,
    /// What it says, unpacked if that was possible.
    pub bytes: Bytes,
    /// Why it is no event: a kind that nobody knows here, or a rule that it breaks.
    pub reason: String,
    /// When it came.
    pub received: SystemTime,
}

/// Why nothing more can come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JetstreamError {
    /// No host is left that would have us.
    #[error("no host is left: {0}")]
    NoHostLeft(DialError),
    /// Messages are compressed with another dictionary.
    #[error("{host} compresses with the dictionary {needed}, which is not the one given")]
    Dictionary {
        /// The host.
        host: String,
        /// The number of the dictionary.
        needed: u32,
    },
}
