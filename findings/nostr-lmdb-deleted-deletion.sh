#!/bin/sh
# nostr-lmdb deletes a deletion request (kind 5) that another one names, although NIP-09 gives that no effect: which events remain
# depends on the order in which they arrive, and a deleted note can come back.
. "$(dirname "$0")/common.sh"
needs cargo cc
cargo_program "nostr-lmdb@=0.45.3" "nostr@=0.45.6 --features os-rng" "tokio@1 --features macros,rt-multi-thread" <<'RUST'
use nostr_lmdb::NostrLmdb;
use nostr_lmdb::prelude::*;

/// Saves the named events in this order, and prints which remain.
#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let keys = Keys::parse(&"7".repeat(64)).unwrap();
    let event = |kind: u16, deleted: Option<&Event>, seconds: u64| {
        let tag = deleted.map(|event| Tag::parse(["e", event.id.to_hex().as_str()]).unwrap());
        let builder = EventBuilder::new(Kind::from(kind), "").tag_maybe(tag);
        builder.custom_created_at(Timestamp::from(seconds)).finalize(&keys).unwrap()
    };
    let note = event(1, None, 1_000);
    let first = event(5, Some(&note), 2_000);
    let second = event(5, Some(&first), 3_000);
    let events = [("note", note), ("first", first), ("second", second)];
    let database = NostrLmdb::open(&arguments[0]).await.unwrap();
    for name in &arguments[1..] {
        let (_, event) = events.iter().find(|(named, _)| named == name).unwrap();
        database.save_event(event).await.unwrap();
    }
    let mut remaining = Vec::new();
    for (name, event) in &events {
        if database.event_by_id(&event.id).await.unwrap().is_some() {
            remaining.push(*name);
        }
    }
    println!("{}", remaining.join(" "));
}
RUST
remaining() { mkdir "$1$2$3" && ./program "$1$2$3" "$1" "$2" "$3"; }
expect "nostr-lmdb 0.45.3, note, first deletion, second" "$(remaining note first second)" "second"
expect "nostr-lmdb 0.45.3, note, second, first" "$(remaining note second first)" "first second"
expect "nostr-lmdb 0.45.3, first, second, note" "$(remaining first second note)" "note second"
