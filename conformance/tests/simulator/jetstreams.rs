//! Both versions of Jetstream.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use simnet::servers::{
    AccountStatus, Fault, FaultSchedule, Server, Simulation, V1_DICTIONARY_ID, V2_DICTIONARY_ID,
};
use tokio_tungstenite::tungstenite::Error;

use crate::client::{Reader, get, sim, try_get};

const JETSTREAM: Server = Server::Jetstream(0);
const V2: &str = "/xrpc/network.bsky.jetstream.subscribeEvents";

async fn v1(sim: &Simulation, query: &str) -> Reader {
    Reader::connect(sim, JETSTREAM, &format!("/subscribe{query}")).await.expect("an upgrade")
}

async fn v2(sim: &Simulation, query: &str) -> Reader {
    Reader::connect(sim, JETSTREAM, &format!("{V2}{query}")).await.expect("an upgrade")
}

/// The status and the error of a refused upgrade.
async fn refusal(sim: &Simulation, path: &str) -> (u16, String) {
    match Reader::connect(sim, JETSTREAM, path).await {
        Err(Error::Http(response)) => {
            let body: Value = serde_json::from_slice(response.body().as_ref().unwrap()).unwrap();
            (response.status().as_u16(), body["error"].as_str().unwrap().to_owned())
        }
        other => panic!("{:?}", other.err()),
    }
}

/// How many operations there have been.
fn operations(sim: &Simulation) -> usize {
    sim.sent_events(JETSTREAM).iter().map(|line| line.subject.jetstream_events as usize).sum()
}

/// The records of all accounts after these events, if they had none before.
fn apply<'e>(commits: impl Iterator<Item = (&'e Value, &'e Value)>) -> BTreeMap<String, String> {
    let mut records = BTreeMap::new();
    for (did, commit) in commits {
        let text = |name: &str| commit[name].as_str().unwrap().to_owned();
        let path = format!("{}/{}/{}", did.as_str().unwrap(), text("collection"), text("rkey"));
        match &*text("operation") {
            "delete" => {
                assert!(commit.get("record").is_none() && commit.get("cid").is_none());
                records.remove(&path);
            }
            _ => {
                assert_eq!(commit["record"]["$type"], commit["collection"]);
                records.insert(path, text("cid"));
            }
        }
    }
    records
}

/// Asserts that the records in `found` are the accounts' records.
fn assert_matches(sim: &Simulation, found: &BTreeMap<String, String>) {
    let mut expected = BTreeMap::new();
    for account in sim.expected_accounts() {
        let did = account.account.did;
        let paths = account.records.into_iter();
        expected.extend(paths.map(|(path, cid)| (format!("{did}/{path}"), cid.to_string())));
    }
    assert!(!found.is_empty());
    for (path, cid) in found {
        assert_eq!(expected.get(path), Some(cid), "{path}");
    }
}

#[tokio::test]
async fn both_versions_send_every_operation() {
    let sim = sim(|spec| spec.initial_commits = 80);
    let count = operations(&sim);
    let events = v1(&sim, "?cursor=1").await.documents(count).await;
    assert_matches(&sim, &apply(events.iter().map(|event| (&event["did"], &event["commit"]))));
    let times: Vec<u64> = events.iter().map(|event| event["time_us"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a < b));
    let events = v2(&sim, "?cursor=1").await.documents(count).await;
    let payloads = || events.iter().map(|event| &event["payload"]);
    assert_matches(&sim, &apply(payloads().map(|payload| (&payload["did"], payload))));
    let seqs: Vec<u64> = payloads().map(|payload| payload["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=count as u64).collect::<Vec<_>>());
    for payload in payloads() {
        assert_eq!(payload["$type"], "network.bsky.jetstream.subscribeEvents#commit");
        assert_eq!(payload["time"].as_str().unwrap().len(), "2026-07-01T00:00:00.000000Z".len());
    }
}

#[tokio::test]
async fn cursors_are_numbers_or_times_and_inclusive() {
    let sim = sim(|spec| spec.initial_commits = 40);
    let count = operations(&sim);
    let all = v1(&sim, "?cursor=1").await.documents(count).await;
    for at in [0, 5, count - 1] {
        for cursor in [&all[at]["cursor"], &all[at]["time_us"]] {
            let rest = v1(&sim, &format!("?cursor={cursor}")).await.documents(count - at).await;
            assert_eq!(rest, all[at..], "{cursor}");
        }
    }
    let live = ["", "?cursor=5000000000000000"];
    for query in live {
        assert!(v1(&sim, query).await.hears_nothing().await);
    }
}

#[tokio::test]
async fn filters_choose_accounts_and_collections() {
    let sim = sim(|_| ());
    let did = sim.account(0).did;
    let likes = "app.bsky.feed.like";
    let mut of_account = v1(&sim, &format!("?wantedDids={did}")).await;
    let mut of_likes = v1(&sim, &format!("?wantedCollections={likes}")).await;
    let mut of_feed = v2(&sim, "?collections=app.bsky.feed.*").await;
    sim.write_commits(60);
    sim.set_account_status(0, AccountStatus::TakenDown);
    let last_of = |sim: &Simulation| sim.sent_events(JETSTREAM).last().unwrap().seq;
    let until_account = async |reader: &mut Reader| {
        let mut events = Vec::new();
        loop {
            let event = reader.documents(1).await.remove(0);
            let kind = event["kind"].as_str().or_else(|| event["payload"]["$type"].as_str());
            if kind.unwrap().ends_with("account") {
                return (events, event);
            }
            events.push(event);
        }
    };
    let (events, account) = until_account(&mut of_account).await;
    assert!(events.iter().all(|event| event["did"] == did.as_str()));
    let body = &account["account"];
    assert_eq!((&body["active"], &body["status"]), (&json!(false), &json!("takendown")));
    assert_eq!(account["cursor"], last_of(&sim));
    let (events, _) = until_account(&mut of_likes).await;
    assert!(events.iter().all(|event| event["commit"]["collection"] == likes));
    let (events, account) = until_account(&mut of_feed).await;
    let collection = |event: &Value| event["payload"]["collection"].as_str().unwrap().to_owned();
    assert!(events.iter().all(|event| collection(event).starts_with("app.bsky.feed.")));
    assert_eq!(account["payload"]["account"]["status"], "takendown");
}

#[tokio::test]
async fn syncs_are_sent_by_version_2_only_and_kinds_filter_them() {
    let sim = sim(|_| ());
    let mut old = v1(&sim, "").await;
    let mut new = v2(&sim, "?kinds=sync&kinds=identity").await;
    sim.send_sync(0);
    sim.write_commits(1);
    sim.change_handle(0, "zoe.test");
    let events = new.documents(2).await;
    let sync = &events[0]["payload"]["sync"];
    assert_eq!(sync["did"], sim.account(0).did);
    assert!(sync["blocks"]["$bytes"].is_string() && sync["rev"].is_string());
    assert_eq!(events[1]["payload"]["identity"]["handle"], "zoe.test");
    let first = &old.documents(1).await[0];
    assert_eq!(first["kind"], "commit");
}

#[tokio::test]
async fn options_may_be_awaited_and_replaced() {
    let sim = sim(|spec| spec.initial_commits = 20);
    let count = operations(&sim);
    let mut reader = v1(&sim, "?cursor=1&requireHello=true").await;
    assert!(reader.hears_nothing().await);
    reader.say(r#"{"type":"weather","payload":{}}"#).await;
    assert!(reader.hears_nothing().await);
    reader.say(r#"{"type":"options_update","payload":{}}"#).await;
    reader.documents(count).await;
    let did = sim.account(3).did;
    let options = json!({ "type": "options_update", "payload": { "wantedDids": [did] } });
    reader.say(&options.to_string()).await;
    // So that the options are there before the events.
    assert!(reader.hears_nothing().await);
    sim.write_commit_as(2);
    sim.write_commit_as(3);
    assert_eq!(reader.documents(1).await[0]["did"], did);
    let many: Vec<String> = (0..10_001).map(|number| format!("did:plc:{number}")).collect();
    let options = json!({ "type": "options_update", "payload": { "wantedDids": many } });
    reader.say(&options.to_string()).await;
    assert!(!matches!(reader.next().await, Some(Ok(_))));
}

#[tokio::test]
async fn messages_are_compressed_with_the_dictionary_that_is_served() {
    let sim = sim(|spec| spec.initial_commits = 30);
    let count = operations(&sim);
    let fetch = async |query: &str| {
        let path = format!("/xrpc/network.bsky.jetstream.getZstdDictionary{query}");
        get(&sim, JETSTREAM, &path).await
    };
    let streams = [
        ("/subscribe?cursor=1".to_owned(), "&compress=true".to_owned(), V1_DICTIONARY_ID),
        (format!("{V2}?cursor=1"), format!("&zstdDictionary={V2_DICTIONARY_ID}"), V2_DICTIONARY_ID),
    ];
    for (path, compressed, id) in streams {
        let dictionary = fetch(&format!("?id={id}")).await.bytes;
        assert_eq!(dictionary[4..8], id.to_le_bytes());
        let mut decoder = zstd::bulk::Decompressor::with_dictionary(&dictionary).unwrap();
        let plain = Reader::connect(&sim, JETSTREAM, &path).await.unwrap().documents(count).await;
        let mut reader =
            Reader::connect(&sim, JETSTREAM, &format!("{path}{compressed}")).await.unwrap();
        let mut bytes = 0;
        for (frame, document) in reader.frames(count).await.iter().zip(&plain) {
            bytes += frame.len();
            let text = decoder.decompress(frame, 1 << 20).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), *document);
        }
        let whole: usize = plain.iter().map(|document| document.to_string().len()).sum();
        assert!(bytes * 3 < whole * 2, "{bytes} of {whole}");
    }
    assert_eq!(fetch("").await.bytes, fetch(&format!("?id={V2_DICTIONARY_ID}")).await.bytes);
    let unknown = fetch("?id=7").await;
    assert_eq!(
        (unknown.status, unknown.json()["error"].as_str()),
        (400, Some("UnknownZstdDictionary"))
    );
}

#[tokio::test]
async fn what_version_2_does_not_have_is_refused_by_name() {
    let sim = sim(|spec| spec.retained_events = 5);
    sim.write_commits(40);
    let invalid = [
        "wantedDids=did:plc:abc",
        "compress=true",
        "kinds=weather",
        "kinds=identity&collections=app.bsky.feed.like",
        "cursor=tomorrow",
        "maxMessageSizeBytes=-1",
    ];
    for query in invalid {
        let refused = refusal(&sim, &format!("{V2}?{query}")).await;
        assert_eq!(refused, (400, "InvalidRequest".to_owned()), "{query}");
    }
    let unknown = refusal(&sim, &format!("{V2}?zstdDictionary=7")).await;
    assert_eq!(unknown, (400, "UnknownZstdDictionary".to_owned()));
    let old = refusal(&sim, &format!("{V2}?cursor=1")).await;
    assert_eq!(old, (400, "CursorTooOld".to_owned()));
}

#[tokio::test]
async fn a_time_before_the_window_is_said_to_be_and_a_number_ahead_ends_the_stream() {
    let sim = sim(|spec| spec.retained_events = 5);
    sim.write_commits(40);
    let events = v2(&sim, "?cursor=1000000000000000").await.documents(2).await;
    let info = &events[0]["payload"];
    assert_eq!(info["$type"], "network.bsky.jetstream.subscribeEvents#info");
    assert_eq!(info["name"], "OutdatedCursor");
    assert!(events[1]["payload"]["seq"].is_u64());
    let mut reader = v2(&sim, "?cursor=1000000").await;
    assert_eq!(reader.documents(1).await[0]["error"], "FutureCursor");
    assert!(reader.next().await.is_none());
    // Version 1 clamps without an error.
    assert!(v1(&sim, "?cursor=1").await.documents(1).await[0]["cursor"].as_i64().unwrap() > 30);
}

#[tokio::test]
async fn long_messages_are_left_out_when_that_is_asked_for() {
    let sim = sim(|spec| spec.initial_commits = 60);
    let all = v1(&sim, "?cursor=1").await.documents(operations(&sim)).await;
    let short = all.iter().filter(|event| event.to_string().len() <= 400).count();
    assert!((1..all.len()).contains(&short));
    let mut reader = v1(&sim, "?cursor=1&maxMessageSizeBytes=400").await;
    reader.documents(short).await;
    assert!(reader.hears_nothing().await);
}

#[tokio::test]
async fn jetstreams_inject_their_faults() {
    let sim = sim(|spec| spec.initial_commits = 30);
    let count = operations(&sim);
    let faults = sim.faults();
    faults.enable(JETSTREAM, Fault::UnknownKind, FaultSchedule::ONCE);
    faults.enable(JETSTREAM, Fault::UnknownOperation, FaultSchedule::ONCE);
    let events = v2(&sim, "?cursor=1").await.documents(count + 2).await;
    assert_eq!(events[0]["$type"], "weather");
    assert_eq!(events[1]["payload"]["$type"], "network.bsky.jetstream.subscribeEvents#weather");
    faults.enable(JETSTREAM, Fault::GarbageFrame, FaultSchedule::ONCE);
    faults.enable(JETSTREAM, Fault::ErrorFrame, FaultSchedule::ONCE.after(3));
    let mut reader = v1(&sim, "?cursor=1").await;
    let garbage = reader.next().await.unwrap().unwrap();
    assert!(serde_json::from_slice::<Value>(&garbage.into_data()).is_err());
    let mut last = Value::Null;
    while let Some(Ok(message)) = reader.next().await {
        last = serde_json::from_slice(&message.into_data()).unwrap();
    }
    assert_eq!(last["error"], "ConsumerTooSlow");
    assert_eq!(faults.unfired(), []);
}

const ARCHIVE: &str = "/xrpc/network.bsky.jetstream";

#[tokio::test]
async fn a_hosted_archive_lists_its_segments_page_by_page_and_serves_them_whole_and_in_parts() {
    let sim =
        sim(|spec| (spec.archive.events_per_block, spec.archive.blocks_per_segment) = (16, 2));
    let mut listed = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{ARCHIVE}.listSegments?limit=2{cursor}");
        let page = get(&sim, JETSTREAM, &path).await.json();
        listed.extend(page["segments"].as_array().unwrap().clone());
        let Some(next) = page["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let mut last_seq = 0;
    for (number, segment) in listed.iter().enumerate() {
        let name = segment["name"].as_str().unwrap();
        assert_eq!(
            (segment["index"].as_u64(), segment["minSeq"].as_u64()),
            (Some(number as u64), Some(last_seq + 1))
        );
        last_seq = segment["maxSeq"].as_u64().unwrap();
        let path = format!("{ARCHIVE}.getSegment?name={name}");
        let whole = get(&sim, JETSTREAM, &path).await;
        assert_eq!(whole.bytes, sim.archive_segment(JETSTREAM, number).unwrap());
        assert_eq!(whole.bytes.len() as u64, segment["sizeBytes"].as_u64().unwrap());
        assert_eq!(whole.header("etag"), format!("\"{}\"", segment["checksum"].as_str().unwrap()));
        let part = try_get(&sim, JETSTREAM, &path, &[("range", "bytes=4-11")]).await.unwrap();
        assert_eq!((part.status, &part.bytes[..]), (206, &whole.bytes[4..12]));
        let block = format!("{ARCHIVE}.getBlock?segment={name}&blockIndex=0");
        let block = get(&sim, JETSTREAM, &block).await;
        assert_eq!(block.bytes, whole.bytes[264..264 + block.bytes.len()]);
    }
    assert!(listed.len() > 2 && sim.archive_segment(JETSTREAM, listed.len()).is_none());
    for (path, name) in [
        ("getSegment?name=seg_000000zzzz.jss", "SegmentNotFound"),
        ("getBlock?segment=seg_0000000000.jss&blockIndex=2", "BlockNotFound"),
        ("getBlock?segment=seg_0000000000.jss", "InvalidRequest"),
    ] {
        let refused = get(&sim, JETSTREAM, &format!("{ARCHIVE}.{path}")).await;
        assert_eq!(refused.json()["error"], name, "{path}");
    }
}

#[tokio::test]
async fn a_plan_selects_blocks_and_its_pages_follow_each_other() {
    let sim = sim(|spec| {
        (spec.archive.events_per_block, spec.archive.blocks_per_segment) = (8, 4);
        (spec.archive.plan_entries, spec.records) = (1, 100);
    });
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let plan = async |body: Value| -> Value {
        let url = format!("{}{ARCHIVE}.planSnapshot", sim.url(JETSTREAM));
        let response = client.post(url).body(body.to_string()).send().await.unwrap();
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    };
    let did = sim.account(2).did;
    let (mut after, mut pages, mut blocks) = (0, 0, 0);
    loop {
        let page = plan(json!({ "dids": [did], "afterSeq": after })).await;
        pages += 1;
        blocks += page["stats"]["blocksMatched"].as_u64().unwrap();
        let through = page["plannedThroughSeq"].as_u64().unwrap();
        assert!(through > after);
        after = through;
        if page["plannedThroughSeq"] == page["sealedTipSeq"] {
            break;
        }
    }
    assert!(pages > 1 && blocks > 1);
    let none = plan(json!({ "afterSeq": after })).await;
    assert_eq!((&none["segments"], &none["plannedThroughSeq"]), (&json!([]), &after.into()));
}
