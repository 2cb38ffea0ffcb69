//! Frames with shrike, which connects again by itself and passes on no `#sync`.

use futures::StreamExt;
use serde_json::json;
use shrike::streaming::{Client, Config, Event, Operation, StreamError};

use crate::{Options, write, write_error};

pub(crate) async fn read(service: &str, options: &Options) {
    let url = format!("{service}/xrpc/com.atproto.sync.subscribeRepos");
    let client = Client::new(Config { url, cursor: Some(options.cursor), ..Config::default() });
    let mut batches = std::pin::pin!(client.subscribe());
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(events) => events.into_iter().for_each(write_event),
            // A lost connection is reported, and made again.
            Err(StreamError::WebSocket(why)) => eprintln!("{why}"),
            Err(error) => write_error(&error),
        }
    }
}

fn write_event(event: Event) {
    match event {
        Event::Commit { did, rev, seq, operations } => {
            for operation in operations {
                let (collection, rkey, cid) = match operation {
                    Operation::Create { collection, rkey, cid, .. }
                    | Operation::Update { collection, rkey, cid, .. } => {
                        (collection, rkey, Some(cid.to_string()))
                    }
                    Operation::Delete { collection, rkey } => (collection, rkey, None),
                    Operation::Resync { .. } => unreachable!("nothing is verified"),
                };
                let path = format!("{}/{}", collection.as_str(), rkey.as_str());
                let (did, rev) = (did.as_str(), rev.to_string());
                write(
                    json!({ "kind": "commit", "seq": seq, "did": did, "rev": rev, "path": path, "cid": cid }),
                );
            }
        }
        Event::Identity { did, seq, .. } => {
            write(json!({ "kind": "identity", "seq": seq, "did": did.as_str() }));
        }
        Event::Account { did, seq, active } => {
            write(json!({ "kind": "account", "seq": seq, "did": did.as_str(), "active": active }));
        }
        Event::Labels { .. } => write_error(&event),
    }
}
