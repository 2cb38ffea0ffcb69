//! The JSON, the filters and the compression of Jetstreams.

use zstd::bulk::Decompressor;

use super::*;
use crate::jetstream::dictionary::{DICTIONARY, DICTIONARY_ID};

const DID: &str = "did:plc:eygmaihciaxprqvxpfvl6flk";
const CID: &str = "bafyreidwaivazkwu67xztlmuobx35hs2lnfh3kolmgfmucldvhd3sgzcqi";

/// A CAR with this root and block.
fn car(root: Cid, cid: Cid, block: &[u8]) -> Vec<u8> {
    let mut car = codec::car::Writer::new(Vec::new(), &[root]).unwrap();
    car.block(&cid, block).unwrap();
    car.into_inner()
}

/// A commit with an operation of every kind, whose records are made of these entries.
fn commit_frame() -> Vec<u8> {
    let mut tail = [("c", Value::Text("<a>")), ("b", Value::Bytes(b"hi!?"))];
    let tail = Value::Map(codec::cbor::Map::from_entries(&mut tail).unwrap());
    let cid = Cid::of(Codec::Raw, b"blob");
    let mut entries = [
        ("text", Value::Text("é \"q\" & \u{2028}")),
        ("$type", Value::Text("app.bsky.feed.post")),
        ("createdAt", Value::Text("2026-07-01T00:00:00Z")),
        ("tail", tail),
        ("link", Value::Link(cid.as_cid_ref())),
    ];
    let record =
        codec::cbor::encode(&Value::Map(codec::cbor::Map::from_entries(&mut entries).unwrap()))
            .unwrap();
    let record_cid = Cid::of(Codec::DagCbor, &record);
    let car = car(record_cid, record_cid, &record);
    let op = |action, path, cid| RepoOp { action, path, cid, prev: None, record: None };
    let ops = [
        op(Action::Create, "app.bsky.feed.post/3l3qo2vutsw2b", Some(record_cid.as_cid_ref())),
        op(Action::Update, "app.bsky.feed.postgate/3l3qo2vutsw2b", Some(record_cid.as_cid_ref())),
        op(Action::Delete, "app.bsky.feed.like/3l3qo2vutsw2b", None),
    ];
    let commit = Commit {
        seq: 12,
        repo: DID,
        commit: CID.parse().unwrap(),
        rev: "3l3qo2vuowo2b",
        since: Some("3l3qo2vuowo2a"),
        car: &car,
        root: None,
        blocks: &[],
        ops: &ops,
        prev_data: None,
        time: "2026-07-01T00:00:00.000Z",
        blobs: None,
        rebase: None,
        too_big: None,
    };
    Event::Commit(commit).to_frame()
}

/// An event of every kind in order.
async fn store_all_kinds(serving: &Serving) -> i64 {
    let arrival = serving.store_frame(NOW + 123_456, commit_frame()).await;
    let time = "2026-07-01T00:00:00.000Z";
    let identity = Identity { seq: 13, did: DID, time, handle: Some("a.test") };
    serving.store_at(NOW + 200_000, &Event::Identity(identity)).await;
    let account = Account { seq: 14, did: DID, time, active: false, status: Some("suspended") };
    serving.store_at(NOW + 300_000, &Event::Account(account)).await;
    let car = car(CID.parse().unwrap(), Cid::of(Codec::DagCbor, b"\xa0"), b"\xa0");
    let sync =
        Sync { seq: 15, did: DID, car: &car, root: None, blocks: &[], rev: "3l3qo2vuowo2b", time };
    serving.store_at(NOW + 400_000, &Event::Sync(sync)).await;
    arrival
}

async fn texts(serving: &Serving, path: &str, count: usize) -> Vec<String> {
    let mut client = serving.connect(&with(path, &[("cursor", "0".to_owned())])).await;
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(client.text().await);
    }
    texts
}

/// Keys, order, escapes and times are as the reference server writes them.
#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_version_1_is_that_of_the_reference_server() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    store_all_kinds(&serving).await;
    let texts = texts(&serving, V1, 5).await;
    let record = record();
    let cid = record_cid();
    let head = |us: i64, cursor: i64, kind: &str| {
        format!(r#"{{"did":"{DID}","time_us":{us},"cursor":{cursor},"kind":"{kind}","{kind}":"#)
    };
    let us = NOW + 123_456;
    let seq = crate::seq::seq_of(us);
    let rev = r#""rev":"3l3qo2vuowo2b","operation""#;
    let rkey = r#""rkey":"3l3qo2vutsw2b""#;
    assert_eq!(
        texts[0],
        head(us, seq, "commit")
            + &format!(
                r#"{{{rev}:"create","collection":"app.bsky.feed.post",{rkey},"record":{record},"cid":"{cid}"}}}}"#
            )
    );
    assert_eq!(
        texts[1],
        head(us, seq + 1, "commit")
            + &format!(
                r#"{{{rev}:"update","collection":"app.bsky.feed.postgate",{rkey},"record":{record},"cid":"{cid}"}}}}"#
            )
    );
    assert_eq!(
        texts[2],
        head(us, seq + 2, "commit")
            + &format!(r#"{{{rev}:"delete","collection":"app.bsky.feed.like",{rkey}}}}}"#)
    );
    let us = NOW + 200_000;
    assert_eq!(
        texts[3],
        head(us, crate::seq::seq_of(us), "identity")
            + &format!(
                r#"{{"did":"{DID}","handle":"a.test","seq":13,"time":"2026-07-01T00:00:00.000Z"}}}}"#
            )
    );
    let us = NOW + 300_000;
    assert_eq!(
        texts[4],
        head(us, crate::seq::seq_of(us), "account")
            + &format!(
                r#"{{"active":false,"did":"{DID}","seq":14,"status":"suspended","time":"2026-07-01T00:00:00.000Z"}}}}"#
            )
    );
    serving.stop().await;
}

fn record() -> String {
    let link = Cid::of(Codec::Raw, b"blob");
    format!(
        r#"{{"$type":"app.bsky.feed.post","createdAt":"2026-07-01T00:00:00Z","link":{{"$link":"{link}"}},"tail":{{"b":{{"$bytes":"aGkhPw"}},"c":"\u003ca\u003e"}},"text":"é \"q\" \u0026 \u2028"}}"#
    )
}

fn record_cid() -> String {
    let frame = commit_frame();
    match Decoder::new(Default::default()).decode(&frame).unwrap() {
        Event::Commit(commit) => commit.ops[0].cid.unwrap().to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_version_2_has_its_keys_in_alphabetical_order() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    store_all_kinds(&serving).await;
    let texts = texts(&serving, V2, 6).await;
    let (record, cid) = (record(), record_cid());
    let message = |kind: &str, rest: &str| {
        format!(
            r#"{{"$type":"message","payload":{{"$type":"network.bsky.jetstream.subscribeEvents#{kind}",{rest}}}}}"#
        )
    };
    let seq = |micros: i64| crate::seq::seq_of(NOW + micros);
    let create = format!(
        r#""cid":"{cid}","collection":"app.bsky.feed.post","did":"{DID}","operation":"create","record":{record},"rev":"3l3qo2vuowo2b","rkey":"3l3qo2vutsw2b","seq":{},"time":"2026-07-01T00:00:00.123456Z""#,
        seq(123_456)
    );
    assert_eq!(texts[0], message("commit", &create));
    let delete = format!(
        r#""collection":"app.bsky.feed.like","did":"{DID}","operation":"delete","rev":"3l3qo2vuowo2b","rkey":"3l3qo2vutsw2b","seq":{},"time":"2026-07-01T00:00:00.123456Z""#,
        seq(123_458)
    );
    assert_eq!(texts[2], message("commit", &delete));
    let identity = format!(
        r#""did":"{DID}","identity":{{"did":"{DID}","handle":"a.test","seq":13,"time":"2026-07-01T00:00:00.000Z"}},"seq":{},"time":"2026-07-01T00:00:00.200000Z""#,
        seq(200_000)
    );
    assert_eq!(texts[3], message("identity", &identity));
    let account = format!(
        r#""account":{{"active":false,"did":"{DID}","seq":14,"status":"suspended","time":"2026-07-01T00:00:00.000Z"}},"did":"{DID}","seq":{},"time":"2026-07-01T00:00:00.300000Z""#,
        seq(300_000)
    );
    assert_eq!(texts[4], message("account", &account));
    let sync: serde_json::Value = serde_json::from_str(&texts[5]).unwrap();
    let keys: Vec<&String> = sync["payload"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["$type", "did", "seq", "sync", "time"]);
    assert_eq!(sync["payload"]["sync"]["rev"], "3l3qo2vuowo2b");
    assert!(sync["payload"]["sync"]["blocks"]["$bytes"].is_string());
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_of_both_versions_choose_events_and_operations() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    store_all_kinds(&serving).await;
    let kinds = async |path: &str, parameters: &[(&str, &str)]| {
        let mut all = vec![("cursor", "0".to_owned())];
        all.extend(parameters.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let mut client = serving.connect(&with(path, &all)).await;
        // The last event passes every filter of this test, except for kinds.
        let end = serving.store_at(NOW, &identity(DID)).await;
        let mut kinds = Vec::new();
        loop {
            let message = client.json().await;
            let (payload, seq) = match path {
                V1 => (&message["commit"], &message["cursor"]),
                _ => (&message["payload"], &message["payload"]["seq"]),
            };
            if seq.as_i64() == Some(crate::seq::seq_of(end)) {
                return kinds;
            }
            let collection = payload["collection"].as_str().map(str::to_owned);
            kinds.push(collection.unwrap_or_else(|| "other".to_owned()));
        }
    };
    let post = "app.bsky.feed.post";
    let (gate, like) = ("app.bsky.feed.postgate", "app.bsky.feed.like");
    assert_eq!(kinds(V1, &[]).await[..3], [post, gate, like]);
    assert_eq!(kinds(V1, &[("wantedCollections", post)]).await[..2], [post, "other"]);
    let all = kinds(V2, &[("collections", "app.bsky.feed.*")]).await;
    assert_eq!(all[..3], [post, gate, like]);
    let none = kinds(V2, &[("collections", "app.bsky.graph.*")]).await;
    assert!(none.iter().all(|kind| kind == "other"));
    let mine = kinds(V1, &[("wantedDids", "did:web:b.test"), ("wantedDids", DID)]).await;
    assert_eq!(mine[..3], [post, gate, like]);
    // An event over the limit is left out, and so its operation.
    let small = kinds(V1, &[("maxMessageSizeBytes", "300")]).await;
    assert_eq!(small[0], like);
    let mut client = serving
        .connect(&with(V2, &[("cursor", "0".to_owned()), ("kinds", "sync".to_owned())]))
        .await;
    assert!(client.json().await["payload"]["sync"].is_object());
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_messages_are_the_same_messages() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    store_all_kinds(&serving).await;
    let mut decompressor = Decompressor::with_dictionary(DICTIONARY).unwrap();
    let (v1, v2) = (("compress", "true".to_owned()), ("zstdDictionary", DICTIONARY_ID.to_string()));
    for (path, parameter, count) in [(V1, v1, 5), (V2, v2, 6)] {
        let plain = texts(&serving, path, count).await;
        let parameters = [("cursor", "0".to_owned()), parameter];
        let mut client = serving.connect(&with(path, &parameters)).await;
        for text in plain {
            let message = client.frame().await;
            let opened = decompressor.decompress(&message, 1 << 20).unwrap();
            assert_eq!(opened, text.as_bytes());
        }
    }
    let refused = serving.request(&with(V2, &[("zstdDictionary", "9".to_owned())]), &[]).await;
    assert_eq!(refused.map(drop).unwrap_err(), (400, "UnknownZstdDictionary".to_owned()));
    let headers = [("socket-encoding", "zstd")];
    let mut client =
        serving.request(&with(V1, &[("cursor", "0".to_owned())]), &headers).await.unwrap();
    assert!(decompressor.decompress(&client.frame().await, 1 << 20).is_ok());
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_version_1_changes_its_options_and_one_of_version_2_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    let mut client = serving.connect(&with(V1, &[("requireHello", "true".to_owned())])).await;
    let first = serving.store_frame(NOW, commit_frame()).await;
    client
        .send(r#"{"type":"options_update","payload":{"wantedCollections":["app.bsky.feed.like"]}}"#)
        .await;
    let message = client.json().await;
    assert_eq!(
        message["cursor"],
        crate::seq::seq_of(first) + 2,
        "nothing was sent before the options"
    );
    client.send(r#"{"type":"something else"}"#).await;
    client.send(r#"{"type":"options_update","payload":{"wantedDids":["nobody"]}}"#).await;
    assert_eq!(client.close_code().await, Some(1008));
    let mut client = serving.connect(V2).await;
    client.send("{}").await;
    assert_eq!(client.close_code().await, Some(1008));
    serving.stop().await;
}
