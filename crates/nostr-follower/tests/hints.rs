//! Relays that say with EOSE whether there are further stored events (NIP-67), rightly or wrongly.

use std::path::Path;
use std::sync::{Arc, Mutex};

use nostr::OwnedEvent;
use simnet::nostr_events::{Corpus, Spec};
use simnet::nostr_relay::{Hints, NostrRelay, Options};
use wireproof_nostr_follower::NostrFollower;

fn corpus(events: usize) -> Corpus {
    Corpus::generate(&Spec { events, authors: 100, ..Spec::default() })
}

fn relay(events: &[OwnedEvent], page_events: usize, hints: Hints) -> NostrRelay {
    NostrRelay::start(events, Options { page_events, hints, ..Options::default() }).unwrap()
}

/// The number of events that a run brings, which resumes after the last one with this state.
async fn run(relay: &NostrRelay, state: &Path) -> usize {
    let builder = NostrFollower::builder().relay(&relay.url()).unwrap().development();
    let follower = builder.stored_only().state(state).build().unwrap();
    let received = Arc::new(Mutex::new(0));
    let counted = received.clone();
    let counts = follower.run_into(move |_: &str| *counted.lock().unwrap() += 1).await.unwrap();
    assert_eq!((counts.refused, counts.unreadable), (0, 0));
    *received.lock().unwrap()
}

fn requests(relay: &NostrRelay) -> Vec<String> {
    relay.requests().into_iter().filter(|request| request.contains("REQ")).collect()
}

/// The time from which on a second run requests events: the checkpoint of the first one, less the overlap.
async fn resumed(relay: &NostrRelay, state: &Path) -> String {
    let before = requests(relay).len();
    run(relay, state).await;
    let request = requests(relay).swap_remove(before);
    let (_, since) = request.split_once("\"since\":").expect("a checkpoint");
    since.split(',').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn finish_saves_requests_and_more_or_nothing_continues_them() {
    let corpus = corpus(300);
    let count = async |page_events, hints| {
        let relay = relay(corpus.events(), page_events, hints);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(run(&relay, folder.path()).await, 300, "{hints:?}");
        requests(&relay).len()
    };
    assert_eq!(count(400, Hints::Right).await, 1);
    assert!(count(400, Hints::None).await > 1);
    let (right, none) = (count(70, Hints::Right).await, count(70, Hints::None).await);
    assert!(right >= 5 && right < none, "{right} {none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_finish_drops_no_event_that_is_sent_and_moves_no_checkpoint_further() {
    let corpus = corpus(300);
    let folder = tempfile::tempdir().unwrap();
    let silent = relay(corpus.events(), 100, Hints::None);
    assert_eq!(run(&silent, &folder.path().join("silent")).await, 300);
    let checkpoint = resumed(&silent, &folder.path().join("silent")).await;
    let wrong = relay(corpus.events(), 100, Hints::AlwaysFinish);
    assert_eq!(run(&wrong, &folder.path().join("wrong")).await, 100, "all that it sent");
    assert_eq!(resumed(&wrong, &folder.path().join("wrong")).await, checkpoint);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_finish_after_a_page_that_a_limit_cut_off_is_not_believed() {
    let corpus = corpus(1_200);
    let folder = tempfile::tempdir().unwrap();
    // The limit of the first request.
    let relay = relay(corpus.events(), 500, Hints::AlwaysFinish);
    assert_eq!(run(&relay, folder.path()).await, 1_200);
}
