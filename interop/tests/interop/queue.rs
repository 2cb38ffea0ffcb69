//! The required content of every queue after `follow --to`: the messages by account, in order, and in all the records of the network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};
use tokio::time::sleep;

use crate::delivery::{Delivered, Records};
use crate::follower::PrintedState;

/// A message, as a consumer receives it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The account, from the subject or the key.
    pub(crate) account: String,
    /// The id, from a header.
    pub(crate) id: String,
    pub(crate) line: Value,
}

/// A queue on a server that is killed and started again.
pub(crate) trait Queue {
    /// The value of `--to`.
    fn uri(&self) -> String;

    /// Kills the server without notice.
    fn kill(&mut self);

    /// Starts the server, after a kill if it runs.
    async fn run(&mut self);

    /// Every message, in the order of the queue; `None` if they cannot be read.
    async fn messages(&self) -> Option<Vec<Message>>;
}

/// Checks messages and returns the records that follow from them: every message has the id and the account of its line, and an account's
/// messages come in order, apart from repetitions with the same id.
pub(crate) fn records(messages: &[Message]) -> Records {
    let (mut state, mut seen) = (PrintedState::default(), BTreeSet::new());
    let mut last = BTreeMap::<&str, &str>::new();
    for Message { account, id, line } in messages {
        assert_eq!((line["id"].as_str(), line["did"].as_str()), (Some(&**id), Some(&**account)));
        if !seen.insert(id) {
            continue;
        }
        let is_commit = line["kind"] == "commit" && line["verdict"] == "verified";
        if let Some(rev) = line["rev"].as_str().filter(|_| is_commit) {
            let before = last.insert(account, rev);
            assert!(
                before.is_none_or(|before| before < rev),
                "{before:?} before {rev} of {account}"
            );
        }
        state.apply(line);
    }
    state.into_records().into_iter().filter(|(_, records)| !records.is_empty()).collect()
}

/// Kills the process at crash points and at random moments, and the server and the source too; in the end the records that follow from the
/// queue are the network's. Returns the messages.
pub(crate) async fn survives_kills(queue: &mut impl Queue, points: &[&str]) -> Vec<Message> {
    let mut delivered = Delivered::new(&queue.uri());
    for (round, point) in points.iter().filter(|_| cfg!(debug_assertions)).enumerate() {
        delivered.start(Some(point));
        delivered.write(round);
        delivered.wait_for_end().await;
        let marker = fs::read_to_string(delivered.folder.path().join("marker"));
        assert_eq!(marker.ok().as_deref(), point.split('@').next(), "{}", delivered.errors());
    }
    for round in 0..crate::scaled(6, 200) {
        delivered.start(None);
        delivered.write(round);
        sleep(crate::round_time(round)).await;
        match round % 4 {
            0 => delivered.kill(),
            1 => queue.run().await,
            2 => delivered.restart_source().await,
            _ => {
                queue.kill();
                delivered.kill();
                queue.run().await;
            }
        }
        delivered.kill();
    }
    delivered.start(None);
    // Everything before may be there already: this is delivered by the process that has just been started.
    delivered.write(0);
    wait_for_records(queue, &mut delivered).await;
    delivered.write(1);
    // A server, and the source, that are restarted in mid-stream.
    queue.run().await;
    delivered.restart_source().await;
    delivered.write(2);
    wait_for_records(queue, &mut delivered).await;
    // No account has a gap now, so this comes as events.
    delivered.write(3);
    wait_for_records(queue, &mut delivered).await;
    delivered.interrupt();
    let messages = queue.messages().await.expect("a server that runs");
    assert!(records(&messages) == delivered.expected(), "the records after the end");
    messages
}

/// While the server is away, the stream waits at the bound of the outbox, in bounded memory; then everything arrives.
pub(crate) async fn holds_the_stream_back(queue: &mut impl Queue) {
    let mut delivered = Delivered::new(&queue.uri());
    delivered.add_args(&["--outbox-events", "100"]);
    delivered.start(None);
    wait_for_records(queue, &mut delivered).await;
    queue.kill();
    (0..20).for_each(|round| delivered.write(round));
    let errors = delivered.folder.path().join("errors");
    let reports = async || {
        let text = fs::read_to_string(&errors).unwrap_or_default();
        ["it is retried", "maximum number of events"].iter().all(|report| text.contains(report))
    };
    delivered.wait_until("reports of the failure and of the bound", reports).await;
    let peak_bytes = delivered.peak_bytes();
    assert!(peak_bytes < 256 << 20, "{peak_bytes} bytes of memory");
    queue.run().await;
    wait_for_records(queue, &mut delivered).await;
    // Without the server it ends in an orderly way too.
    queue.kill();
    delivered.write(20);
    delivered.interrupt();
}

pub(crate) async fn wait_for_records(queue: &impl Queue, delivered: &mut Delivered) {
    let expected = delivered.expected();
    let has_all = async || {
        let messages = queue.messages().await;
        messages.is_some_and(|messages| records(&messages) == expected)
    };
    delivered.wait_until("every record", has_all).await;
}

/// Every line of the queue proves again.
pub(crate) async fn lines_prove_again(queue: &impl Queue) {
    let mut delivered = small(&queue.uri());
    delivered.add_args(&["--proof", "blocks"]);
    let sent = delivered.sim.sent_events(Server::Relay(0)).len();
    let output = delivered.output(&["--events", &sent.to_string()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = queue.messages().await.expect("messages");
    assert_eq!(messages.len(), sent);
    let lines: Vec<String> = messages.iter().map(|message| message.line.to_string()).collect();
    delivered.assert_proved(&lines);
}

/// A follower of a small network, to `uri`.
pub(crate) fn small(uri: &str) -> Delivered {
    let spec =
        Spec { accounts: 3, records: 5, jetstreams: 0, initial_commits: 10, ..Spec::default() };
    let sim = Simulation::start(spec).expect("a network");
    Delivered::with_args(sim, &["--to".to_owned(), uri.to_owned()])
}

/// Checks the exit code of runs to these URIs, and that their messages contain a text, and no secret.
pub(crate) fn check_ends(cases: &[(String, i32, &str)], secrets: &[&str]) {
    for (uri, code, expected) in cases {
        let output = small(uri).output(&["--events", "10"]);
        let message = String::from_utf8_lossy(&output.stderr);
        let found = output.status.code();
        assert!(
            found == Some(*code) && message.contains(expected),
            "{uri}: {expected}: {found:?} {message}"
        );
        assert!(!secrets.iter().any(|secret| message.contains(secret)), "{message}");
    }
}

/// The lines in the file of dead letters.
pub(crate) fn dead_letters(delivered: &Delivered) -> Vec<String> {
    let outbox = fs::read_dir(delivered.folder.path().join("state/outbox")).expect("a folder");
    let letters = outbox.map(|file| file.expect("a file").path());
    let letters = letters.filter(|path| path.extension().is_some_and(|name| name == "ndjson"));
    let texts: String = letters.map(|path| fs::read_to_string(path).expect("a file")).collect();
    texts.lines().map(str::to_owned).collect()
}
