//! Jetstream, in both versions: `/subscribe` and `network.bsky.jetstream.subscribeEvents`.

mod options;
mod v1;
mod v2;

use std::sync::Arc;

use hyper::header::SEC_WEBSOCKET_PROTOCOL;
use serde_json::json;

use super::answer::{self, Answer, Query, Question, Refusal, either, error};
use super::network::Network;
use super::spec::Server;
use super::teller::Telling;

/// What a reader is told at this path; `None` if it is no stream.
pub(super) fn telling(
    network: &Arc<Network>,
    server: Server,
    question: &Question,
) -> Option<Result<Telling, Refusal>> {
    match question.uri().path() {
        "/subscribe" => Some(v1::telling(network, server, question)),
        V2_PATH => Some(v2::telling(network, server, &Query::of(question))),
        _ => None,
    }
}

/// The subprotocol that is agreed upon, if the reader asks for one that there is.
pub(super) fn protocol(question: &Question) -> Option<&'static str> {
    let asked = question.headers().get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let mut asked = asked.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let is_v2 = question.uri().path() == V2_PATH;
    (is_v2 && asked.any(|name| name.trim() == V2_PROTOCOL)).then_some(V2_PROTOCOL)
}

pub(super) fn answer(network: &Network, question: &Question) -> Answer {
    match question.uri().path().strip_prefix("/xrpc/") {
        Some("_health") => answer::json(200, &json!({ "version": "simnet" })),
        Some("network.bsky.jetstream.getZstdDictionary") => {
            either(dictionary(network, &Query::of(question)))
        }
        _ => answer::text(404, "Not Found"),
    }
}

/// The dictionary of this number, or the current one of version 2.
fn dictionary(network: &Network, query: &Query) -> Result<Answer, Refusal> {
    let dictionaries = network.dictionaries();
    let found = match query.get("id") {
        None => Some(&dictionaries.v2),
        Some(text) => text.parse().ok().and_then(|id| dictionaries.get(id)),
    };
    let found = found.ok_or_else(|| unknown_dictionary(network))?;
    Ok(answer::bytes(200, "application/octet-stream", found.bytes.clone()))
}

fn unknown_dictionary(network: &Network) -> Refusal {
    let current = network.dictionaries().v2.id;
    let message = format!("unknown zstd dictionary; the current one is {current}");
    error(400, "UnknownZstdDictionary", &message)
}

/// Messages of both versions, to train dictionaries on.
pub(super) fn samples(network: &Network) -> [Vec<String>; 2] {
    let entries = network.invent(SAMPLES);
    [v1::texts(&entries), v2::texts(&entries)]
}

const V2_PATH: &str = "/xrpc/network.bsky.jetstream.subscribeEvents";
const V2_PROTOCOL: &str = "xrpc.v1.json";

/// How many events are trained on.
const SAMPLES: usize = 1000;
