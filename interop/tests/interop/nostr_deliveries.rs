//! `nostr follow --to`: events of the relay of rust-nostr in PostgreSQL and NATS, through kills.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use delivery::{
    EventId, NewEvent, Options, Outbox, PostgresAddress, PostgresOptions, PostgresSink, Sink,
    StartAt, TableContent,
};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_postgres::Client;
use wireproof_interop::kit;
use wireproof_interop::nats::Nats;
use wireproof_interop::nostr::{NostrRelay, RelayKind};
use wireproof_interop::postgres::Postgres;

use crate::nostr_relays::{follow, output, stderr};
use crate::queue::Queue;

/// The events of a table in the order of their numbers, by the columns of their JSON.
async fn rows(client: &Client) -> Vec<Value> {
    let select =
        "SELECT id, pubkey, created_at, kind, tags::text, content, sig FROM event ORDER BY number";
    let rows = client.query(select, &[]).await.expect("rows");
    let event = |row: &tokio_postgres::Row| {
        let text = |at: usize| row.get::<_, String>(at);
        let tags: Value = serde_json::from_str(&text(4)).unwrap();
        json!({
            "id": text(0), "pubkey": text(1), "created_at": row.get::<_, i64>(2), "kind": row.get::<_, i32>(3),
            "tags": tags, "content": text(5), "sig": text(6),
        })
    };
    rows.iter().map(event).collect()
}

fn sorted(mut events: Vec<Value>) -> Vec<Value> {
    events.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
    events
}

/// The events of a file of JSON lines, without other members, that have one of these ids.
fn events(file: &Path, ids: &BTreeSet<String>) -> Vec<Value> {
    let file = fs::read_to_string(file).unwrap();
    let parse = |line| -> Value { serde_json::from_str(line).unwrap() };
    file.lines().map(parse).filter(|event| ids.contains(event["id"].as_str().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kills_at_any_moment_postgresql_and_nats_have_each_event_of_the_relay_once() {
    let kit = kit!(NostrRelay, Postgres, Nats);
    let file = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let relay = NostrRelay::start(&kit, &file, RelayKind::Open).await;
    let postgres = Postgres::start(&kit, &[]).await;
    postgres.create_database("events").await;
    let nats = Nats::start(&kit, "").await;
    let (table, stream) = (postgres.uri("events"), nats.uri());
    let to = ["--to", &*table, "--to", &*stream];
    let state = dir.path().join("state");
    for round in 0..crate::scaled(6, 100) {
        let mut running = follow(&relay, &state, &to).spawn().expect("the command starts");
        sleep(crate::round_time(round)).await;
        running.kill().unwrap();
        running.wait().unwrap();
    }
    let last = output(follow(&relay, &state, &[&to[..], &["--stored"]].concat()));
    assert!(last.status.success() && last.stdout.is_empty(), "{}", stderr(&last));
    let ids = relay.ids(&json!({})).await;
    let expected = sorted(events(&file, &ids));
    assert!(expected.len() > 3_000, "{}", expected.len());
    let client = postgres.connect("events").await;
    assert!(sorted(rows(&client).await) == expected, "the rows are the events");
    let messages = nats.messages().await.expect("messages");
    assert!(messages.iter().all(|of| of.line["id"] == *of.id && of.line["pubkey"] == *of.account));
    // All of it is within the duplicate window.
    let lines = messages.into_iter().map(|message| message.line).collect();
    assert!(sorted(lines) == expected, "the messages are the events");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_character_is_replaced_in_the_content_and_kept_in_tags() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &[]).await;
    for name in ["events", "records"] {
        postgres.create_database(name).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    outbox.register("events", StartAt::Oldest).unwrap();
    let event = |id: u8, text: &str| {
        let id = [id; 32];
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let json = format!(
            r#"{{"id":"{hex}","pubkey":"aa","created_at":-5,"kind":65535,"tags":[["t","{text}"]],"content":"{text}","sig":"bb"}}"#
        );
        NewEvent::new(EventId::of_nostr_event(&id), "aa", json).unwrap()
    };
    outbox.append_all([event(1, r"a\u0000b"), event(2, "c"), event(1, "again")]).unwrap();
    let mut consumer = outbox.consumer("events").unwrap();
    let mut events = consumer.next_events().await.unwrap();
    while events.last().unwrap().position() < 3 {
        events.extend(consumer.next_events().await.unwrap());
    }
    let address = |name: &str| PostgresAddress::parse(&postgres.uri(name)).unwrap();
    let mut options = PostgresOptions::default();
    options.content = TableContent::NostrEvents;
    let sink = PostgresSink::open(address("events"), outbox.identity(), options).await.unwrap();
    sink.send(&events).await.unwrap();
    sink.send(&events).await.unwrap();
    assert_eq!(sink.position().await.unwrap(), Some(3));
    let client = postgres.connect("events").await;
    let rows = rows(&client).await;
    let found = rows.iter().map(|event| (&event["content"], &event["tags"][0][1]));
    let found: Vec<(&Value, &Value)> = found.collect();
    let (first, second) = ([json!("a\u{fffd}b"), json!("a\0b")], json!("c"));
    assert_eq!(found, [(&first[0], &first[1]), (&second, &second)]);
    drop(sink);
    // Tables of the other kind are refused.
    let records = PostgresOptions::default();
    drop(PostgresSink::open(address("records"), outbox.identity(), records).await.unwrap());
    for (name, options) in [("records", options), ("events", records)] {
        let refused = PostgresSink::open(address(name), outbox.identity(), options).await;
        let reason = refused.unwrap_err().reason;
        assert!(reason.contains("has other tables or views with the names"), "{reason}");
    }
}
