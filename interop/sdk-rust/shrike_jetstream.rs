//! Jetstream version 2 with shrike, which connects again by itself.

use serde_json::json;
use shrike::jetstream::{
    CancelToken, ClientArchive, Cursor, Delivery, Engine, EngineConfig, EngineSink, Error, Event,
    EventPayload, Filter, HttpDictionarySource, Kind, LiveConfig, LiveCursor, NativeHttpTransport,
    NativeWsTransport,
};

use crate::{Options, write, write_error};

struct Sink;

impl EngineSink for Sink {
    async fn deliver(&mut self, delivery: Delivery) -> bool {
        match delivery {
            Delivery::Batch(batch) => batch.events().iter().for_each(write_event),
            Delivery::Info(info) => write(json!({ "kind": "info", "name": info.name })),
        }
        true
    }

    /// A lost connection is reported too, and made again.
    async fn recoverable(&mut self, error: Error) -> bool {
        match error {
            Error::InvalidFrame(_) | Error::MalformedEvent(_) | Error::Compression(_) => {
                write_error(&error);
            }
            _ => eprintln!("{error}"),
        }
        true
    }
}

pub(crate) async fn read(service: &str, options: &Options) {
    let host = service.trim_start_matches("ws://");
    let mut live = LiveConfig::new(host, false);
    live.cursor = LiveCursor::Resume(Cursor::Seq(options.cursor as u64));
    live.compression = options.compress;
    live.filter = filter(options).expect("a filter");
    let cancel = CancelToken::new();
    let http = NativeHttpTransport::new().expect("a client");
    let dictionary = HttpDictionarySource::new(http, host, false, cancel.clone());
    let socket = NativeWsTransport::new(live.read_limit);
    let archive: Option<ClientArchive<NativeHttpTransport>> = None;
    let engine = Engine::new(archive, socket, dictionary, EngineConfig::new(live), cancel);
    match engine.run(&mut Sink).await {
        Ok(()) => {}
        Err(Error::Protocol { name, .. }) => write(json!({ "kind": "refusal", "name": name })),
        Err(error) => write_error(&error),
    }
}

fn filter(options: &Options) -> Result<Filter, Error> {
    let kinds = options.kinds.iter().map(|kind| Kind::from_wire(kind).expect("a kind"));
    Filter::new().kinds(kinds).collections(&options.collections)?.dids(&options.dids)
}

fn write_event(event: &Event) {
    let mut line =
        json!({ "kind": event.kind().as_wire(), "seq": event.seq, "did": event.did.as_str() });
    match &event.payload {
        EventPayload::Commit(commit) => {
            line["rev"] = json!(commit.rev.to_string());
            line["path"] =
                json!(format!("{}/{}", commit.collection.as_str(), commit.rkey.as_str()));
            if let Some(record) = &commit.record {
                line["cid"] = json!(record.cid().to_string());
                line["record"] = record.to_json().expect("a record");
            }
        }
        EventPayload::Sync(sync) => line["rev"] = json!(sync.rev.to_string()),
        EventPayload::Account(account) => line["active"] = json!(account.active),
        EventPayload::Identity(_) => {}
    }
    write(line);
}
