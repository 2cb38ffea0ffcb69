//! Version 1: `/subscribe`. Options come with the request or later, from the reader.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::super::answer::{Query, Question, Refusal, error};
use super::super::network::Network;
use super::super::outbox::{Entry, Outbox};
use super::super::posting::Posting;
use super::super::spec::Server;
use super::super::teller::{Telling, Tongue};
use super::options::{LEAST_MICROS, MAX_COLLECTIONS, MAX_DIDS, Packing, Wanted};

pub(super) fn telling(
    network: &Arc<Network>,
    server: Server,
    question: &Question,
) -> Result<Telling, Refusal> {
    let query = Query::of(question);
    let options = Options {
        wanted_collections: query.all("wantedCollections").map(str::to_owned).collect(),
        wanted_dids: query.all("wantedDids").map(str::to_owned).collect(),
        max_message_size_bytes: query.get("maxMessageSizeBytes").and_then(|text| text.parse().ok()),
    };
    let wanted = options.into_wanted().map_err(|message| error(400, "InvalidRequest", message))?;
    let is_compressed = query.get("compress") == Some("true")
        || question.headers().get("socket-encoding").is_some_and(|value| value == "zstd");
    let packing =
        Packing::new(network, is_compressed.then_some(|network| &network.dictionaries().v1));
    let cursor = query.get("cursor").map(str::parse::<i64>).transpose();
    let cursor = cursor.map_err(|_| error(400, "InvalidRequest", "invalid cursor"))?;
    let outbox = network.outbox(server).expect("a Jetstream tells");
    let tongue = Version1 {
        wanted,
        packing,
        since: Since::new(cursor),
        is_ready: query.get("requireHello") != Some("true"),
    };
    let place = Some(tongue.since.place(outbox));
    let (network, tongue) = (network.clone(), Box::new(tongue));
    Ok(Telling { network, server, prelude: Vec::new(), place, tongue })
}

/// The texts of these events, for a reader who wants all of them.
pub(super) fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().flat_map(numbered).map(|posting| text(&posting)).collect()
}

struct Version1 {
    wanted: Wanted,
    packing: Packing,
    since: Since,
    is_ready: bool,
}

impl Tongue for Version1 {
    fn spell(&mut self, entry: &Entry, out: &mut Vec<Message>) {
        for numbered in numbered(entry) {
            let is_wanted = numbered.posting.kind != "sync"
                && self.since.includes(&numbered)
                && self.wanted.wants(numbered.did, numbered.posting);
            let text = is_wanted.then(|| text(&numbered));
            let text = text.filter(|text| self.wanted.bears(text.len()));
            out.extend(text.map(|text| self.packing.pack(text)));
        }
    }

    fn hear(&mut self, message: &Message) -> ControlFlow<()> {
        let Message::Text(text) = message else { return ControlFlow::Continue(()) };
        match serde_json::from_str::<Heard>(text) {
            Ok(Heard { kind, payload }) if kind == "options_update" => {
                let options = serde_json::from_value::<Options>(payload).ok();
                let Some(Ok(wanted)) = options.map(Options::into_wanted) else {
                    return ControlFlow::Break(());
                };
                (self.wanted, self.is_ready) = (wanted, true);
                ControlFlow::Continue(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn error(&self, name: &str, message: &str) -> Message {
        self.packing.pack(json!({ "error": name, "message": message }).to_string())
    }

    fn unknown(&self, is_operation: bool) -> Message {
        let kind = if is_operation { "tide" } else { "weather" };
        let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let text = json!({ "did": did, "time_us": LEAST_MICROS, "kind": kind, kind: {} });
        self.packing.pack(text.to_string())
    }

    fn raw(&self, bytes: Vec<u8>) -> Message {
        raw(bytes)
    }
}

/// What a reader says.
#[derive(Deserialize)]
struct Heard {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    payload: serde_json::Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    wanted_collections: Vec<String>,
    wanted_dids: Vec<String>,
    max_message_size_bytes: Option<i64>,
}

impl Options {
    fn into_wanted(self) -> Result<Wanted, &'static str> {
        if self.wanted_collections.len() > MAX_COLLECTIONS {
            return Err("too many wanted collections");
        }
        if self.wanted_dids.len() > MAX_DIDS {
            return Err("too many wanted DIDs");
        }
        let max_bytes = self.max_message_size_bytes.filter(|bytes| *bytes > 0);
        Ok(Wanted {
            kinds: Vec::new(),
            collections: self.wanted_collections,
            dids: self.wanted_dids.into_iter().collect(),
            max_bytes: max_bytes.map(|bytes| bytes as usize),
        })
    }
}

/// One of the postings of an event, in its place.
pub(super) struct Numbered<'e> {
    pub(super) did: &'e str,
    pub(super) seq: i64,
    pub(super) micros: u64,
    pub(super) posting: &'e Posting,
}

/// The postings of an event: each has a number and a microsecond of its own.
pub(super) fn numbered(entry: &Entry) -> impl Iterator<Item = Numbered<'_>> {
    entry.told.postings().iter().enumerate().map(|(at, posting)| Numbered {
        did: &entry.told.subject.did,
        seq: entry.seq + at as i64,
        micros: entry.micros + at as u64,
        posting,
    })
}

/// Where a reader wants to begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum Since {
    Now,
    Seq(i64),
    Micros(u64),
}

impl Since {
    pub(super) fn new(cursor: Option<i64>) -> Self {
        match cursor {
            None => Self::Now,
            Some(micros @ LEAST_MICROS..) => Self::Micros(micros as u64),
            Some(seq) => Self::Seq(seq),
        }
    }

    /// The place of the first event of which it may want something.
    pub(super) fn place(self, outbox: &Outbox) -> u64 {
        match self {
            Self::Now => outbox.count(),
            Self::Seq(seq) => outbox.place_of_seq(seq),
            // The event before may reach into that microsecond.
            Self::Micros(micros) => outbox.place_of_micros(micros.saturating_sub(MAX_SPAN)),
        }
    }

    /// Whether this one is not too old.
    pub(super) fn includes(self, numbered: &Numbered<'_>) -> bool {
        match self {
            Self::Now => true,
            Self::Seq(seq) => numbered.seq >= seq,
            Self::Micros(micros) => numbered.micros >= micros,
        }
    }
}

fn text(numbered: &Numbered<'_>) -> String {
    let Numbered { did, seq, micros, posting: Posting { kind, body, .. } } = numbered;
    let upstream = if *kind == "commit" { String::new() } else { format!(",\"seq\":{seq}") };
    format!(
        "{{\"did\":\"{did}\",\"time_us\":{micros},\"kind\":\"{kind}\",\"{kind}\":{{{body}{upstream}}},\
         \"cursor\":{seq}}}"
    )
}

/// Bytes as text if they are, and else as bytes.
pub(super) fn raw(bytes: Vec<u8>) -> Message {
    match String::from_utf8(bytes) {
        Ok(text) => Message::text(text),
        Err(error) => Message::binary(error.into_bytes()),
    }
}

/// The most postings of one event.
const MAX_SPAN: u64 = 200;
