//! Clients of Jetstreams follow `wireproof serve`: each receives every event of the network, although it and the server are
//! killed, and of filtered streams the events that it asked for. The record of every event has its CID.

use serde_json::Value;
use wireproof_interop::kit;
use wireproof_interop::reader::{Reader, StreamOptions};

use crate::served::Served;
use crate::served_client::{Client, Form, follows_through_kills};

#[test]
fn skyware_jetstream_receives_every_event_of_version_1_although_it_and_the_server_are_killed() {
    let kit = kit!(Readers);
    follows_and_filters(Form::JetstreamV1, false, |served, options| {
        Reader::skyware_jetstream(&kit, &served.url(), options)
    });
}

#[test]
fn atcute_jetstream_receives_every_event_of_version_1_although_it_and_the_server_are_killed() {
    let kit = kit!(Readers);
    follows_and_filters(Form::JetstreamV1, false, |served, options| {
        Reader::atcute_jetstream(&kit, &served.url(), options)
    });
}

#[test]
fn jacquard_receives_every_event_of_version_1_although_it_and_the_server_are_killed() {
    let kit = kit!(SdkRust);
    let start = |served: &Served, options: &StreamOptions| {
        Reader::sdk_of_rust(&kit, "jacquard-jetstream", &served.url(), options)
    };
    let (served, client) = follows_through_kills(Form::JetstreamV1, |served, cursor| {
        start(served, &StreamOptions::from(cursor))
    });
    // It encodes DIDs twice, so that no server takes them, and has no prefixes.
    let collections = ["app.bsky.feed.like", "app.bsky.graph.follow"].map(str::to_owned).to_vec();
    let options = StreamOptions { collections, ..StreamOptions::from(1) };
    reads_its_part(&served, &client, &options, start);
}

#[test]
fn the_go_client_receives_every_event_of_version_1_although_it_and_the_server_are_killed() {
    let kit = kit!(JetstreamClient);
    follows_and_filters(Form::JetstreamV1, false, |served, options| {
        Reader::jetstream_client(&kit, &served.url(), options)
    });
}

#[test]
fn the_go_client_receives_every_event_of_version_1_compressed() {
    let kit = kit!(JetstreamClient);
    follows_and_filters(Form::JetstreamV1, true, |served, options| {
        Reader::jetstream_client(&kit, &served.url(), options)
    });
}

#[test]
fn atproto_of_python_receives_every_event_of_version_2_although_it_and_the_server_are_killed() {
    let kit = kit!(SdkPython);
    follows_and_filters(Form::JetstreamV2WithoutSync, false, |served, options| {
        Reader::atproto_jetstream_of_python(&kit, &served.url(), &without_sync(options))
    });
}

#[test]
fn atproto_of_python_receives_every_event_of_version_2_compressed() {
    let kit = kit!(SdkPython);
    follows_and_filters(Form::JetstreamV2WithoutSync, true, |served, options| {
        Reader::atproto_jetstream_of_python(&kit, &served.url(), &without_sync(options))
    });
}

#[test]
fn shrike_receives_every_event_of_version_2_although_it_and_the_server_are_killed() {
    let kit = kit!(SdkRust);
    follows_and_filters(Form::JetstreamV2, false, |served, options| {
        Reader::sdk_of_rust(&kit, "shrike-jetstream", &served.url(), options)
    });
}

#[test]
fn shrike_receives_every_event_of_version_2_compressed() {
    let kit = kit!(SdkRust);
    follows_and_filters(Form::JetstreamV2, true, |served, options| {
        Reader::sdk_of_rust(&kit, "shrike-jetstream", &served.url(), options)
    });
}

/// The client ends at a `#sync`, whose bytes its models take for a text.
fn without_sync(options: &StreamOptions) -> StreamOptions {
    let mut options = options.clone();
    if options.kinds.is_empty() {
        options.kinds = ["commit", "identity", "account"].map(str::to_owned).to_vec();
    }
    options
}

/// Follows through kills, and then reads parts of the same stream.
fn follows_and_filters(
    form: Form,
    compress: bool,
    start: impl Fn(&Served, &StreamOptions) -> Reader,
) {
    let (served, client) = follows_through_kills(form, |served, cursor| {
        start(served, &StreamOptions { compress, ..StreamOptions::from(cursor) })
    });
    let dids = [served.sim.account(0).did, served.sim.account(2).did].to_vec();
    let from = StreamOptions { compress, ..StreamOptions::from(1) };
    let mut filters = [
        StreamOptions { dids: dids.clone(), ..from.clone() },
        StreamOptions { collections: collections(), ..from.clone() },
        StreamOptions { dids, collections: collections(), ..from.clone() },
    ]
    .to_vec();
    let kinds: &[&str] = match form {
        Form::JetstreamV2 => &["identity", "sync"],
        Form::JetstreamV2WithoutSync => &["identity"],
        _ => &[],
    };
    if !kinds.is_empty() {
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        filters.push(StreamOptions { kinds, ..from });
    }
    for options in filters {
        reads_its_part(&served, &client, &options, &start);
    }
}

fn collections() -> Vec<String> {
    ["app.bsky.feed.like", "app.bsky.graph.*"].map(str::to_owned).to_vec()
}

fn reads_its_part<S>(
    served: &Served,
    client: &Client<S>,
    options: &StreamOptions,
    start: impl Fn(&Served, &StreamOptions) -> Reader,
) where
    S: Fn(&Served, i64) -> Reader,
{
    let wanted: Vec<&Value> = client.events().iter().filter(|of| is_wanted(of, options)).collect();
    assert!(!wanted.is_empty() && wanted.len() < client.events().len(), "{options:?}");
    let reader = start(served, options);
    let received: Vec<Value> = wanted.iter().map(|_| reader.next()).collect();
    assert_eq!(received.iter().collect::<Vec<_>>(), wanted, "{options:?}");
    assert_eq!(reader.rest(), [Value::Null; 0], "{options:?}");
}

/// Collections restrict commits alone.
fn is_wanted(event: &Value, options: &StreamOptions) -> bool {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let (kind, did, path) = (text("kind"), text("did"), text("path"));
    let collection = path.split('/').next().unwrap_or_default();
    let StreamOptions { kinds, dids, collections, .. } = options;
    let is_in = |name: &String| match name.strip_suffix('*') {
        Some(prefix) => collection.starts_with(prefix),
        None => collection == name,
    };
    (kinds.is_empty() || kinds.contains(&kind))
        && (dids.is_empty() || dids.contains(&did))
        && (collections.is_empty() || kind != "commit" || collections.iter().any(is_in))
}
