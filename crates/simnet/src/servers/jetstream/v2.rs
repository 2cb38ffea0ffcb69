//! Version 2: `network.bsky.jetstream.subscribeEvents`. The reader says nothing but in its request.

use std::sync::Arc;

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::super::answer::{Query, Refusal, error};
use super::super::network::Network;
use super::super::outbox::Entry;
use super::super::posting::Posting;
use super::super::spec::Server;
use super::super::teller::{Telling, Tongue};
use super::options::{MAX_COLLECTIONS, MAX_DIDS, Packing, Wanted};
use super::unknown_dictionary;
use super::v1::{Numbered, Since, numbered, raw};
use crate::tid::datetime;

pub(super) fn telling(
    network: &Arc<Network>,
    server: Server,
    query: &Query,
) -> Result<Telling, Refusal> {
    let unknown = query.names().find(|name| !PARAMETERS.contains(name));
    if let Some(name) = unknown {
        return Err(invalid(&format!("unknown parameter: {name}")));
    }
    let wanted = wanted(query)?;
    let packing = Packing::new(network, dictionary(network, query)?);
    let cursor = query.get("cursor").map(str::parse::<i64>).transpose();
    let since = Since::new(cursor.map_err(|_| invalid("invalid cursor"))?);
    let outbox = network.outbox(server).expect("a Jetstream tells");
    let tongue = Version2 { wanted, packing, since };
    let floor = outbox.first_seq();
    let (mut prelude, mut place) = (Vec::new(), Some(since.place(outbox)));
    match since {
        Since::Seq(seq) if seq > 0 && seq < floor => {
            return Err(error(400, "CursorTooOld", &format!("the oldest seq is {floor}")));
        }
        Since::Seq(seq) if seq > outbox.last_seq() + 1 => {
            prelude.push(tongue.error("FutureCursor", "Cursor in the future."));
            place = None;
        }
        Since::Micros(micros) if outbox.has_lost_since(micros) => prelude.push(tongue.outdated()),
        _ => {}
    }
    Ok(Telling { network: network.clone(), server, prelude, place, tongue: Box::new(tongue) })
}

fn wanted(query: &Query) -> Result<Wanted, Refusal> {
    let kind = |name: &str| KINDS.into_iter().find(|kind| *kind == name);
    let kinds: Option<Vec<&'static str>> = query.all("kinds").map(kind).collect();
    let kinds = kinds.filter(|kinds| kinds.len() <= KINDS.len());
    let kinds = kinds.ok_or_else(|| invalid("kinds are commit, identity, account and sync"))?;
    let collections: Vec<String> = query.all("collections").map(str::to_owned).collect();
    if collections.len() > MAX_COLLECTIONS {
        return Err(invalid("too many collections"));
    }
    if !collections.is_empty() && !kinds.is_empty() && !kinds.contains(&"commit") {
        return Err(invalid("collections without commits"));
    }
    let dids: std::collections::HashSet<String> = query.all("dids").map(str::to_owned).collect();
    if dids.len() > MAX_DIDS {
        return Err(invalid("too many dids"));
    }
    let max_bytes = query.get("maxMessageSizeBytes").map(str::parse::<u32>).transpose();
    let max_bytes = max_bytes.map_err(|_| invalid("invalid maxMessageSizeBytes"))?;
    let max_bytes = max_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as usize);
    Ok(Wanted { kinds, collections, dids, max_bytes })
}

type GetDictionary = for<'n> fn(&'n Network) -> &'n super::super::zstandard::Dictionary;

fn dictionary(network: &Network, query: &Query) -> Result<Option<GetDictionary>, Refusal> {
    let Some(asked) = query.get("zstdDictionary") else { return Ok(None) };
    let current = network.dictionaries().v2.id.to_string();
    match asked == current {
        true => Ok(Some(|network| &network.dictionaries().v2)),
        false => Err(unknown_dictionary(network)),
    }
}

fn invalid(message: &str) -> Refusal {
    error(400, "InvalidRequest", message)
}

/// The texts of these events, for a reader who wants all of them.
pub(super) fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().flat_map(numbered).map(|posting| text(&posting)).collect()
}

struct Version2 {
    wanted: Wanted,
    packing: Packing,
    since: Since,
}

impl Version2 {
    fn outdated(&self) -> Message {
        let payload = json!({
            "$type": format!("{NSID}#info"),
            "name": "OutdatedCursor",
            "message": "the cursor is older than what is kept",
        });
        self.packing.pack(json!({ "$type": "message", "payload": payload }).to_string())
    }
}

impl Tongue for Version2 {
    fn spell(&mut self, entry: &Entry, out: &mut Vec<Message>) {
        for numbered in numbered(entry) {
            let is_wanted =
                self.since.includes(&numbered) && self.wanted.wants(numbered.did, numbered.posting);
            let text = is_wanted.then(|| text(&numbered));
            let text = text.filter(|text| self.wanted.bears(text.len()));
            out.extend(text.map(|text| self.packing.pack(text)));
        }
    }

    fn error(&self, name: &str, message: &str) -> Message {
        let text = json!({ "$type": "error", "error": name, "message": message });
        self.packing.pack(text.to_string())
    }

    fn unknown(&self, is_operation: bool) -> Message {
        let kind = if is_operation { "weather" } else { "message" };
        let payload = json!({ "$type": format!("{NSID}#weather"), "sky": "clear" });
        self.packing.pack(json!({ "$type": kind, "payload": payload }).to_string())
    }

    fn raw(&self, bytes: Vec<u8>) -> Message {
        raw(bytes)
    }
}

fn text(numbered: &Numbered<'_>) -> String {
    let Numbered { did, seq, micros, posting: Posting { kind, body, .. } } = numbered;
    let time = fine_datetime(*micros);
    let fields = match *kind {
        "commit" => body.clone(),
        kind => format!("\"{kind}\":{{{body},\"seq\":{seq}}}"),
    };
    format!(
        "{{\"$type\":\"message\",\"payload\":{{\"$type\":\"{NSID}#{kind}\",\"seq\":{seq},\
         \"did\":\"{did}\",\"time\":\"{time}\",{fields}}}}}"
    )
}

/// The date of an instant with six digits behind the seconds.
fn fine_datetime(micros: u64) -> String {
    let coarse = datetime(micros);
    let seconds = &coarse[..coarse.len() - "000Z".len()];
    format!("{seconds}{:06}Z", micros % 1_000_000)
}

const NSID: &str = "network.bsky.jetstream.subscribeEvents";
const KINDS: [&str; 4] = ["commit", "identity", "account", "sync"];
const PARAMETERS: [&str; 6] =
    ["cursor", "kinds", "dids", "collections", "maxMessageSizeBytes", "zstdDictionary"];
