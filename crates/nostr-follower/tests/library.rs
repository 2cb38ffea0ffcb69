//! The follower of relays as a library call, with a simulated relay.

use std::sync::{Arc, Mutex};

use nostr::Filter;
use simnet::nostr_events::{Corpus, Spec};
use simnet::nostr_relay::{NostrRelay, Options};
use wireproof_nostr_follower::NostrFollower;

/// Events of the relay.
const EVENTS: usize = 300;

fn relay() -> (Corpus, NostrRelay) {
    let corpus = Corpus::generate(&Spec { events: EVENTS, authors: 100, ..Spec::default() });
    let options = Options { page_events: 100, ..Options::default() };
    let relay = NostrRelay::start(corpus.events(), options).unwrap();
    (corpus, relay)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_gets_each_stored_event_once() {
    let (_, relay) = relay();
    let builder = NostrFollower::builder().relay(&relay.url()).unwrap().development();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let handler = move |event: &str| seen.lock().unwrap().push(event.to_owned());
    let follower = builder.stored_only().build().unwrap();
    let counts = follower.run_into(handler).await.unwrap();
    assert_eq!((counts.valid, counts.refused, counts.unreadable), (EVENTS as u64, 0, 0));
    let mut events = std::mem::take(&mut *events.lock().unwrap());
    events.sort_unstable();
    events.dedup();
    assert_eq!(events.len(), EVENTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_delivered_and_the_next_run_goes_on_after_them() {
    let (corpus, relay) = relay();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.db");
    let run = async |filter: Filter| {
        let builder = NostrFollower::builder().relay(&relay.url()).unwrap().development();
        let builder = builder.filter(filter).stored_only().state(folder.path().join("state"));
        let builder = builder.to(&format!("sqlite:{}", file.display())).unwrap();
        builder.build().unwrap().run().await.unwrap()
    };
    let author = corpus.events()[0].pubkey;
    let of_author = corpus.events().iter().filter(|event| event.pubkey == author).count() as u64;
    let filter = Filter { authors: vec![author], ..Filter::default() };
    assert_eq!(run(filter).await.valid, of_author);
    assert_eq!(run(Filter::default()).await.valid, EVENTS as u64);
    let rows = {
        let database = rusqlite::Connection::open(&file).unwrap();
        database.query_row("SELECT count(*) FROM event", (), |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(rows, EVENTS as i64, "each event once, whatever run delivered it");
}

#[tokio::test]
async fn options_that_do_not_fit_are_refused_before_anything_is_opened() {
    let relay = || NostrFollower::builder().relay("wss://relay.example.com").unwrap();
    assert!(NostrFollower::builder().build().is_err(), "no relay");
    assert!(relay().relay("relay.example.com").unwrap().build().is_err(), "twice");
    assert!(relay().to("sqlite:events.db").unwrap().build().is_err(), "no state");
    assert!(relay().to("ws://127.0.0.1:2480").unwrap().state("state").build().is_err());
    assert!(relay().build().unwrap().run().await.is_err(), "no destination");
}
