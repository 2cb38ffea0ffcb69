//! The follower of labelers as a library call, with simulated labelers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atproto::label::UnsignedLabel;
use serde_json::Value;
use simnet::labeler::{Labeler, LabelerFault};
use wireproof_label_follower::{LabelFollower, LabelFollowerBuilder, Start};

const SUBJECT: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

/// A labeler with this number of messages of two labels.
fn labeler(messages: u64) -> Labeler {
    let labeler = Labeler::start(1).unwrap();
    (0..messages).for_each(|number| publish(&labeler, number));
    labeler
}

fn publish(labeler: &Labeler, number: u64) {
    let label = |uri: String| labeler.label(&uri, "spam", number);
    labeler.publish(&[
        label(format!("did:web:a{number}.test")),
        label(format!("did:web:b{number}.test")),
    ]);
}

fn builder(labeler: &Labeler) -> LabelFollowerBuilder {
    LabelFollower::builder().labeler(labeler.did()).unwrap().development()
}

/// The lines of a run.
async fn lines(builder: LabelFollowerBuilder, count: u64) -> Vec<Value> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let handler = move |line: &str| seen.lock().unwrap().push(serde_json::from_str(line).unwrap());
    let run = builder.events(count).build().unwrap().run_into(handler);
    tokio::time::timeout(Duration::from_secs(30), run).await.expect("in time").unwrap();
    std::mem::take(&mut *lines.lock().unwrap())
}

fn codes(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["code"].as_str().unwrap_or("none")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_label_is_verified_in_order_and_a_run_resumes_after_the_last_one() {
    let labeler = labeler(50);
    let folder = tempfile::tempdir().unwrap();
    let state = || builder(&labeler).state(folder.path());
    let first = lines(state(), 60).await;
    assert!(first.iter().all(|line| line["code"] == "verified"), "{first:?}");
    let seqs: Vec<u64> = first.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..60).map(|at| at / 2 + 1).collect::<Vec<_>>());
    assert!(first.iter().all(|line| line["key"] == labeler.did_key()));
    let second = lines(state(), 40).await;
    assert_eq!((second[0]["seq"].as_u64(), second[39]["seq"].as_u64()), (Some(31), Some(50)));
    // Half a message is received again.
    publish(&labeler, 50);
    assert_eq!(lines(state(), 1).await[0]["seq"], 51);
    let again = lines(state(), 2).await;
    assert_eq!((&again[0]["index"], &again[1]["index"]), (&0.into(), &1.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_new_labels_are_received_by_request() {
    let labeler = Arc::new(labeler(5));
    let publishing = labeler.clone();
    let task = tokio::task::spawn_blocking(move || {
        while publishing.connection_count() == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        publish(&publishing, 5);
    });
    let lines = lines(builder(&labeler).start(Start::Now), 2).await;
    task.await.unwrap();
    assert!(lines.iter().all(|line| line["seq"] == 6), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_is_looked_up_before_a_label_is_refused() {
    let labeler = labeler(1);
    let folder = tempfile::tempdir().unwrap();
    let old = labeler.label(SUBJECT, "old", 2);
    let before = labeler.document_requests();
    labeler.rotate_key();
    publish(&labeler, 1);
    labeler.publish(&[old]);
    publish(&labeler, 2);
    let state = || builder(&labeler).state(folder.path());
    // The labels before the rotation are of another key than the present one.
    let refused = ["signature/wrong"; 2];
    let expected =
        [&refused[..], &["verified"; 2], &["signature/wrong"], &["verified"; 2]].concat();
    assert_eq!(codes(&lines(state(), 7).await), expected);
    // A rotation while it is followed: no label is falsely refused, and the key before is known then.
    let again = labeler.label(SUBJECT, "again", 3);
    labeler.rotate_key();
    publish(&labeler, 3);
    labeler.publish(std::slice::from_ref(&again));
    assert_eq!(codes(&lines(state(), 3).await), ["verified", "verified", "label/earlier-key"]);
    labeler.publish(&[again]);
    assert_eq!(codes(&lines(state().accept_earlier_keys(), 1).await), ["verified"]);
    let requests = labeler.document_requests() - before;
    assert!(requests < 12, "{requests} requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_change_again_and_again_during_a_run_refuse_no_label() {
    let labeler = Arc::new(labeler(2));
    let rotating = labeler.clone();
    let task = tokio::task::spawn_blocking(move || {
        while rotating.connection_count() == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        for number in 2..4 {
            std::thread::sleep(Duration::from_millis(1200));
            rotating.rotate_key();
            publish(&rotating, number);
        }
    });
    let lines = lines(builder(&labeler), 8).await;
    task.await.unwrap();
    assert_eq!(codes(&lines), ["verified"; 8]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_of_another_labeler_counts_if_it_proves() {
    let (labeler, other) = (labeler(0), Labeler::start(2).unwrap());
    let genuine = other.label(SUBJECT, "spam", 1);
    let forged = labeler.sign(&UnsignedLabel {
        src: other.did(),
        uri: SUBJECT,
        val: "spam",
        cts: "2026-01-01T00:00:00Z",
        ..Default::default()
    });
    let unknown = labeler.sign(&UnsignedLabel {
        src: "did:web:localhost%3A1",
        uri: SUBJECT,
        val: "spam",
        cts: "2026-01-01T00:00:00Z",
        ..Default::default()
    });
    labeler.publish(&[genuine, forged, unknown]);
    let lines = lines(builder(&labeler), 3).await;
    assert_eq!(codes(&lines), ["verified", "label/source", "label/source"]);
    assert_eq!(lines[0]["src"], other.did());
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_many_sources_that_cannot_be_looked_up_hold_up_no_other_label() {
    let labeler = labeler(0);
    let foreign = |number: usize| {
        let src = format!("did:web:labels{number}.test");
        let (cts, val) = ("2026-01-01T00:00:00Z", "spam");
        let label = UnsignedLabel { src: &src, uri: SUBJECT, val, cts, ..Default::default() };
        labeler.sign(&label)
    };
    labeler.publish(&(1..=200).map(foreign).collect::<Vec<_>>());
    publish(&labeler, 1);
    let lines = lines(builder(&labeler), 202).await;
    let expected = [&["label/source"; 200][..], &["verified"; 2]].concat();
    assert_eq!(codes(&lines), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_connection_and_of_messages_lose_no_label() {
    let labeler = labeler(200);
    let garbage = LabelerFault::Say(b"\xa1garbage".to_vec());
    labeler.inject([(3, garbage), (20, LabelerFault::Cut)]);
    labeler.inject([(7, LabelerFault::Cut)]);
    let lines = lines(builder(&labeler), 401).await;
    assert_eq!(labeler.pending_faults(), 0);
    let verified: Vec<u64> = { lines.iter() }
        .filter(|line| line["code"] == "verified")
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(verified, (0..400).map(|at| at / 2 + 1).collect::<Vec<_>>());
    assert_eq!(lines.iter().filter(|line| line["kind"] == "undecodable").count(), 1);
    assert_eq!(labeler.connection_count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequence_that_begins_again_and_an_outdated_cursor_are_noticed() {
    let labeler = labeler(5);
    let folder = tempfile::tempdir().unwrap();
    let state = || builder(&labeler).state(folder.path());
    assert_eq!(lines(state(), 10).await.len(), 10);
    labeler.reset();
    publish(&labeler, 7);
    let again = lines(state(), 2).await;
    assert!(again.iter().all(|line| line["seq"] == 1), "{again:?}");
    labeler.skip_to(100);
    publish(&labeler, 8);
    labeler.forget_before(100);
    let outdated = lines(state(), 3).await;
    assert_eq!(outdated[0]["kind"], "info");
    assert!(outdated[0]["message"].as_str().unwrap().starts_with("OutdatedCursor"), "{outdated:?}");
    assert_eq!(outdated[1]["seq"], 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_wait_for_a_directory_that_is_away() {
    let labeler = Arc::new(labeler(3));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(lines(builder(&labeler).state(folder.path()), 6).await.len(), 6);
    labeler.rotate_key();
    publish(&labeler, 4);
    let waiting = labeler.clone();
    let task = tokio::task::spawn_blocking(move || {
        let before = waiting.connection_count();
        while waiting.connection_count() == before {
            std::thread::sleep(Duration::from_millis(2));
        }
        waiting.set_document_away(true);
        std::thread::sleep(Duration::from_millis(1500));
        waiting.set_document_away(false);
    });
    let lines = lines(builder(&labeler).state(folder.path()), 2).await;
    task.await.unwrap();
    assert_eq!(codes(&lines), ["verified", "verified"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_has_the_labels_in_force_after_runs_that_are_stopped() {
    let labeler = labeler(20);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labels.db");
    labeler.publish(&[labeler.negation("did:web:a3.test", "spam", 50)]);
    // Created before the negation, received after it.
    labeler.publish(&[labeler.label("did:web:a3.test", "spam", 40)]);
    labeler.publish(&[labeler.label("did:web:a4.test", "other", 60)]);
    for events in [8, 12, 23] {
        let builder = builder(&labeler).state(folder.path().join("state"));
        let builder = builder.to(&format!("sqlite:{}", file.display())).unwrap();
        let run = builder.events(events).build().unwrap().run();
        tokio::time::timeout(Duration::from_secs(30), run).await.expect("in time").unwrap();
    }
    let database = rusqlite::Connection::open(&file).unwrap();
    let count = |query: &str| database.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM label_state"), 41);
    assert_eq!(count("SELECT count(*) FROM label"), 40);
    assert_eq!(count("SELECT count(*) FROM label WHERE uri = 'did:web:a3.test'"), 0);
}

#[tokio::test]
async fn options_that_do_not_fit_are_refused_before_anything_is_opened() {
    let labeler = || LabelFollower::builder().labeler("labels.example.com").unwrap();
    assert!(LabelFollower::builder().build().is_err(), "no labeler");
    assert!(LabelFollower::builder().labeler("no name").is_err());
    assert!(labeler().to("sqlite:labels.db").unwrap().build().is_err(), "no state");
    assert!(labeler().to("ws://127.0.0.1:2480").unwrap().state("state").build().is_err());
    assert!(labeler().build().unwrap().run().await.is_err(), "no destination");
}
