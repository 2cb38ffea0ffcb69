//! Frames and Jetstream version 1 with jacquard. A reader ends with its connection.

use futures::StreamExt;
use jacquard_api::com_atproto::sync::subscribe_repos::{SubscribeRepos, SubscribeReposMessage};
use jacquard_common::deps::fluent_uri::Uri;
use jacquard_common::jetstream::{JetstreamMessage, JetstreamParams};
use jacquard_common::xrpc::subscription::{SubscriptionClient, TungsteniteSubscriptionClient};
use serde_json::json;

use crate::{Options, write, write_error};

pub(crate) async fn read_frames(service: &str, options: &Options) {
    let params = SubscribeRepos { cursor: Some(options.cursor) };
    let stream = client(service).subscribe(&params).await.expect("a connection");
    let (_sender, mut messages) = stream.into_stream();
    while let Some(message) = messages.next().await {
        match message {
            Ok(message) => write_frame(message),
            Err(error) => return eprintln!("{error:?}"),
        }
    }
}

fn write_frame(message: SubscribeReposMessage) {
    match message {
        SubscribeReposMessage::Commit(commit) => {
            for op in &commit.ops {
                let cid = op.cid.as_ref().map(ToString::to_string);
                let (seq, did, rev) = (commit.seq, commit.repo.as_str(), commit.rev.as_str());
                write(
                    json!({ "kind": "commit", "seq": seq, "did": did, "rev": rev, "path": op.path, "cid": cid }),
                );
            }
        }
        SubscribeReposMessage::Sync(sync) => {
            let (did, rev) = (sync.did.as_str(), sync.rev.as_str());
            write(json!({ "kind": "sync", "seq": sync.seq, "did": did, "rev": rev }));
        }
        SubscribeReposMessage::Identity(identity) => {
            write(json!({ "kind": "identity", "seq": identity.seq, "did": identity.did.as_str() }));
        }
        SubscribeReposMessage::Account(account) => {
            write(
                json!({ "kind": "account", "seq": account.seq, "did": account.did.as_str(), "active": account.active }),
            );
        }
        other => write_error(&other),
    }
}

pub(crate) async fn read_jetstream(service: &str, options: &Options) {
    let some = |names: &[String]| (!names.is_empty()).then(|| names.to_vec());
    let params = json!({
        "wantedCollections": some(&options.collections),
        "wantedDids": some(&options.dids),
        "cursor": options.cursor,
    });
    let params: JetstreamParams = serde_json::from_value(params).expect("parameters");
    let stream = client(service).subscribe(&params).await.expect("a connection");
    let (_sender, mut messages) = stream.into_stream();
    while let Some(message) = messages.next().await {
        match message {
            Ok(message) => write_jetstream(message),
            Err(error) => return eprintln!("{error:?}"),
        }
    }
}

fn write_jetstream(message: JetstreamMessage) {
    match message {
        JetstreamMessage::Commit { did, time_us, commit } => {
            let path = format!("{}/{}", commit.collection.as_str(), commit.rkey.as_ref());
            let cid = commit.cid.as_ref().map(ToString::to_string);
            let record = serde_json::to_value(&commit.record).expect("a record");
            let (did, rev) = (did.as_str(), &commit.rev);
            write(
                json!({ "kind": "commit", "seq": time_us, "did": did, "rev": rev, "path": path, "cid": cid, "record": record }),
            );
        }
        JetstreamMessage::Identity { did, time_us, .. } => {
            write(json!({ "kind": "identity", "seq": time_us, "did": did.as_str() }));
        }
        JetstreamMessage::Account { did, time_us, account } => {
            write(
                json!({ "kind": "account", "seq": time_us, "did": did.as_str(), "active": account.active }),
            );
        }
    }
}

fn client(service: &str) -> TungsteniteSubscriptionClient {
    let base = Uri::parse(service).expect("a URL").to_owned();
    TungsteniteSubscriptionClient::from_base_uri(base)
}
