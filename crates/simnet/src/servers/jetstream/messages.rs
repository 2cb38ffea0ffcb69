//! The shared parts of both Jetstream versions: filters, cursors, the JSON of events, and compression.

use std::collections::HashSet;
use std::sync::Arc;

use tokio_tungstenite::tungstenite::Message;

use super::super::event::JetstreamEvent;
use super::super::event_log::{EventLog, LogEntry};
use super::super::http::{XrpcError, error};
use super::super::network::NetworkState;
use super::zstandard::{Dictionaries, Dictionary};
use crate::time::datetime;

/// The events that a reader subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EventFilter {
    /// Event kinds; empty for all.
    pub(super) kinds: Vec<&'static str>,
    /// NSIDs, or prefixes of NSIDs followed by `.*`; empty for all. They apply to commits only.
    pub(super) collections: Vec<String>,
    /// DIDs; empty for all.
    pub(super) dids: HashSet<String>,
    /// Maximum length of messages in bytes; longer ones are skipped.
    pub(super) max_bytes: Option<usize>,
}

impl EventFilter {
    /// Whether an event passes the filter.
    pub(super) fn accepts(&self, did: &str, event: &JetstreamEvent) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&event.kind);
        let is_did = self.dids.is_empty() || self.dids.contains(did);
        let collection = event.collection.as_deref();
        is_kind && is_did && collection.is_none_or(|name| self.accepts_collection(name))
    }

    fn accepts_collection(&self, collection: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix(".*") {
            Some(prefix) => {
                collection.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
            }
            None => pattern == collection,
        };
        self.collections.is_empty() || self.collections.iter().any(matches)
    }

    /// Whether a message of this length passes the filter.
    pub(super) fn accepts_len(&self, bytes: usize) -> bool {
        self.max_bytes.is_none_or(|max| bytes <= max)
    }
}

/// One Jetstream event with its sequence number and time.
pub(super) struct NumberedEvent<'e> {
    pub(super) did: &'e str,
    pub(super) seq: i64,
    pub(super) micros: u64,
    pub(super) event: &'e JetstreamEvent,
}

/// The Jetstream events of a log entry, with their own sequence numbers and microseconds.
pub(super) fn numbered(entry: &LogEntry) -> impl Iterator<Item = NumberedEvent<'_>> {
    entry.event.jetstream_events().iter().enumerate().map(|(at, event)| NumberedEvent {
        did: &entry.event.subject.did,
        seq: entry.seq + at as i64,
        micros: entry.micros + at as u64,
        event,
    })
}

impl NumberedEvent<'_> {
    /// The message of version 1.
    pub(super) fn to_v1(&self) -> String {
        let Self { did, seq, micros, event: JetstreamEvent { kind, body, .. } } = self;
        let upstream = if *kind == "commit" { String::new() } else { format!(",\"seq\":{seq}") };
        format!(
            "{{\"did\":\"{did}\",\"time_us\":{micros},\"kind\":\"{kind}\",\"{kind}\":{{{body}{upstream}}},\
             \"cursor\":{seq}}}"
        )
    }

    /// The message of version 2.
    pub(super) fn to_v2(&self) -> String {
        let Self { did, seq, micros, event: JetstreamEvent { kind, body, .. } } = self;
        let time = datetime_micros(*micros);
        let fields = match *kind {
            "commit" => body.clone(),
            kind => format!("\"{kind}\":{{{body},\"seq\":{seq}}}"),
        };
        format!(
            "{{\"$type\":\"message\",\"payload\":{{\"$type\":\"{V2_NSID}#{kind}\",\"seq\":{seq},\
             \"did\":\"{did}\",\"time\":\"{time}\",{fields}}}}}"
        )
    }
}

/// The datetime of an instant with microseconds.
fn datetime_micros(micros: u64) -> String {
    let millis = datetime(micros);
    let seconds = &millis[..millis.len() - "000Z".len()];
    format!("{seconds}{:06}Z", micros % 1_000_000)
}

/// The start of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamStart {
    Now,
    Seq(i64),
    Micros(u64),
}

impl StreamStart {
    pub(super) fn new(cursor: Option<i64>) -> Self {
        match cursor {
            None => Self::Now,
            Some(micros @ MIN_CURSOR_MICROS..) => Self::Micros(micros as u64),
            Some(seq) => Self::Seq(seq),
        }
    }

    /// The position of the first log entry that may have an included event.
    pub(super) fn position(self, log: &EventLog) -> u64 {
        match self {
            Self::Now => log.count(),
            Self::Seq(seq) => log.position_of_seq(seq),
            // The previous entry may extend to that microsecond.
            Self::Micros(micros) => log.position_of_micros(micros.saturating_sub(MAX_SPAN)),
        }
    }

    /// Whether an event is at or after the start.
    pub(super) fn includes(self, numbered: &NumberedEvent<'_>) -> bool {
        match self {
            Self::Now => true,
            Self::Seq(seq) => numbered.seq >= seq,
            Self::Micros(micros) => numbered.micros >= micros,
        }
    }
}

/// Selects the dictionary of a version.
pub(super) type SelectDictionary = fn(&Dictionaries) -> &Dictionary;

/// The compression of messages.
pub(super) struct MessageCompression {
    network: Arc<NetworkState>,
    dictionary: Option<SelectDictionary>,
}

impl MessageCompression {
    /// Compression with a dictionary, or none.
    pub(super) fn new(network: &Arc<NetworkState>, dictionary: Option<SelectDictionary>) -> Self {
        Self { network: network.clone(), dictionary }
    }

    /// A message of `text`, compressed if the reader asked for it.
    pub(super) fn message(&self, text: String) -> Message {
        match self.dictionary {
            None => Message::text(text),
            Some(dictionary) => {
                let mut compressor = dictionary(dictionaries(&self.network)).compressor();
                Message::binary(compressor.compress(text.as_bytes()).expect("enough memory"))
            }
        }
    }
}

/// The dictionaries of the network, trained at the first call.
pub(super) fn dictionaries(network: &NetworkState) -> &Dictionaries {
    network.jetstream_state.dictionaries.get_or_init(|| {
        let entries = network.sample_events(TRAINING_EVENTS);
        let v1: Vec<String> = entries.iter().flat_map(numbered).map(|it| it.to_v1()).collect();
        let v2: Vec<String> = entries.iter().flat_map(numbered).map(|it| it.to_v2()).collect();
        Dictionaries::train(&v1, &v2)
    })
}

pub(super) fn unknown_dictionary(network: &NetworkState) -> XrpcError {
    let current = dictionaries(network).v2.id;
    let message = format!("unknown zstd dictionary; the current one is {current}");
    error(400, "UnknownZstdDictionary", &message)
}

/// A text message of UTF-8 bytes, a binary message of others.
pub(super) fn raw_message(bytes: Vec<u8>) -> Message {
    match String::from_utf8(bytes) {
        Ok(text) => Message::text(text),
        Err(error) => Message::binary(error.into_bytes()),
    }
}

/// The NSID of version 2.
pub(super) const V2_NSID: &str = "network.bsky.jetstream.subscribeEvents";

/// The maximum number of collections in a filter.
pub(super) const MAX_COLLECTIONS: usize = 100;

/// The maximum number of DIDs in a filter.
pub(super) const MAX_DIDS: usize = 10_000;

/// The least cursor that is a time in microseconds; smaller ones are sequence numbers.
pub(super) const MIN_CURSOR_MICROS: i64 = 1_000_000_000_000_000;

/// The maximum number of Jetstream events of one log entry.
const MAX_SPAN: u64 = 200;

/// The number of events that dictionaries are trained on.
const TRAINING_EVENTS: usize = 1000;
