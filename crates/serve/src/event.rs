//! An event as it is served. Its message in a form is made when the first client needs it, and shared by all.

use std::sync::OnceLock;

use archive::{ArchivedEvent, StoredGroup};
use atproto::event::renumbered;
use bytes::Bytes;
use net::jetstream::EventKind;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::content::Content;
use crate::jetstream::dictionary::compress;
use crate::jetstream::text;
use crate::seq::seq_of;

/// An event of the log that clients get.
#[derive(Debug)]
pub(crate) struct ServedEvent {
    /// When it arrived, in microseconds since 1970: the number of its frame.
    pub(crate) arrival: i64,
    pub(crate) kind: EventKind,
    pub(crate) did: Box<str>,
    frame: Bytes,
    renumbered: OnceLock<Option<Bytes>>,
    content: OnceLock<Content>,
    texts: [OnceLock<Texts>; 2],
    compressed: [OnceLock<Box<[Bytes]>>; 2],
}

/// The texts of an event on a Jetstream: one per operation of a commit.
pub(crate) type Texts = Box<[Utf8Bytes]>;

/// A version of the Jetstream protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    V1,
    V2,
}

impl ServedEvent {
    pub(crate) fn new(arrival: i64, kind: EventKind, did: &str, frame: Bytes) -> Self {
        Self {
            arrival,
            kind,
            did: did.into(),
            frame,
            renumbered: OnceLock::new(),
            content: OnceLock::new(),
            texts: Default::default(),
            compressed: Default::default(),
        }
    }

    /// An event of the log; `None` for one that is not served.
    pub(crate) fn of_log(group: &StoredGroup, event: &ArchivedEvent<'_>) -> Option<Self> {
        let (kind, did) = (kind_of(event.kind)?, event.did?);
        Some(Self::new(event.arrival, kind, did, group.frame(event)))
    }

    /// The bytes that it holds, without its messages.
    pub(crate) fn len(&self) -> usize {
        self.frame.len()
    }

    /// The frame with the number of this server.
    pub(crate) fn frame(&self) -> Option<&Bytes> {
        let frame = || renumbered(&self.frame, seq_of(self.arrival)).map(Bytes::from);
        self.renumbered.get_or_init(frame).as_ref()
    }

    /// The content, for Jetstreams and the directory.
    pub(crate) fn content(&self) -> &Content {
        self.content.get_or_init(|| Content::of_frame(&self.frame))
    }

    /// The texts on a Jetstream: of operation `n` of a commit the text `n`. Empty for an event that has none.
    pub(crate) fn texts(&self, wire: Wire) -> &[Utf8Bytes] {
        self.texts[wire as usize].get_or_init(|| text::of_event(self, wire))
    }

    /// The texts compressed, every one by itself.
    pub(crate) fn compressed(&self, wire: Wire) -> &[Bytes] {
        let compressed = || self.texts(wire).iter().map(|text| compress(text.as_bytes())).collect();
        self.compressed[wire as usize].get_or_init(compressed)
    }
}

/// The kind of a message that is served, by its name in the frame.
pub(crate) fn kind_of(name: &str) -> Option<EventKind> {
    match name {
        "#commit" => Some(EventKind::Commit),
        "#sync" => Some(EventKind::Sync),
        "#identity" => Some(EventKind::Identity),
        "#account" => Some(EventKind::Account),
        _ => None,
    }
}
