//! `labels follow` and the labeler of Skyware, and the hostile labels that other readers accept.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use atproto::label::UnsignedLabel;
use crypto::{Curve, SecretKey};
use data_encoding::{BASE64, HEXLOWER};
use rusqlite::Connection;
use serde_json::{Value, json};
use simnet::hostile_labels::{LabelCase, cases};
use simnet::labeler::Labeler as SimulatedLabeler;
use tokio::task::block_in_place;
use tokio::time::sleep;
use wireproof_interop::kit;
use wireproof_interop::labeler::Labeler;
use wireproof_interop::postgres::Postgres;
use wireproof_interop::program::Kit;
use wireproof_interop::reader::Reader;

use crate::activity::wireproof;
use crate::round_time;

fn labels(args: &[&str], state: &Path) -> Command {
    let mut command = Command::new(wireproof());
    command.arg("labels").args(args).arg("--development");
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", state);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// `labels follow` into tables.
fn follow(labeler: &Labeler, dir: &Path) -> Child {
    let to = format!("sqlite:{}", dir.join("labels.db").display());
    let args = ["follow", &labeler.did(), "--to", &to];
    let backoff = ["--backoff-first-ms", "10", "--backoff-max-ms", "50"];
    labels(&[&args[..], &backoff].concat(), dir).spawn().unwrap()
}

/// The rows of a query on the tables.
fn rows(dir: &Path, query: &str) -> Option<BTreeSet<String>> {
    let database = Connection::open(dir.join("labels.db")).ok()?;
    let mut select = database.prepare(query).ok()?;
    let rows = select.query_map((), |row| row.get::<_, String>(0)).ok()?;
    rows.collect::<Result<_, _>>().ok()
}

fn uri(number: u32) -> String {
    format!("at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/{number}")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_label_of_skyware_is_verified_through_kills_of_both_sides() {
    let kit = kit!(Labeler);
    let dir = tempfile::tempdir().unwrap();
    let secret = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
    let (hex, did_key) = (HEXLOWER.encode(&[7; 32]), secret.public_key().to_did_key());
    let database = dir.path().join("labeler.db");
    let mut labeler = Labeler::start(&kit, &database, &hex, &did_key).await;
    let (port, mut expected) = (labeler.port(), BTreeSet::new());
    for round in 0..4_u32 {
        let mut run = follow(&labeler, dir.path());
        let numbers = round * 50..round * 50 + 50;
        let mut made: Vec<Value> = { numbers.clone() }
            .map(|number| match number % 5 {
                0 => json!({ "uri": uri(number), "val": "spam", "exp": "2001-01-01T00:00:00Z" }),
                1 => json!({ "uri": uri(number), "val": "spam", "neg": false, "exp": "2900-01-01T00:00:00Z" }),
                _ => json!({ "uri": uri(number), "val": "spam" }),
            })
            .collect();
        expected.extend(numbers.clone().filter(|number| number % 5 != 0).map(uri));
        for number in numbers.step_by(7) {
            made.push(json!({ "uri": uri(number), "val": "spam", "neg": true }));
            expected.remove(&uri(number));
        }
        labeler.create(&Value::Array(made)).await;
        sleep(round_time(round as usize)).await;
        if round % 2 == 0 {
            labeler.kill();
            labeler = Labeler::start_at(&kit, port, &database, &hex, &did_key).await;
        }
        run.kill().unwrap();
        block_in_place(|| run.wait().unwrap());
    }
    // A label that it stores although its key did not sign it.
    let did = labeler.did();
    let forged = UnsignedLabel {
        src: &did,
        uri: &uri(9_999),
        val: "spam",
        cts: "2026-01-01T00:00:00.000Z",
        neg: Some(false),
        ..Default::default()
    };
    let stranger = SecretKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let sig = BASE64.encode(&stranger.sign(&forged.to_bytes()));
    labeler
        .create(&json!([{ "ver": 1, "src": did, "uri": forged.uri, "val": "spam", "cts": forged.cts, "neg": false, "sig": sig }]))
        .await;
    labeler.create(&json!([{ "uri": uri(10_000), "val": "last" }])).await;
    expected.insert(uri(10_000));
    let mut run = follow(&labeler, dir.path());
    let mut found = None;
    for _ in 0..200 {
        sleep(Duration::from_millis(100)).await;
        found = rows(dir.path(), "SELECT uri FROM label");
        if found.as_ref() == Some(&expected) {
            break;
        }
    }
    run.kill().unwrap();
    block_in_place(|| run.wait().unwrap());
    assert_eq!(found.unwrap(), expected);
    // By queries the same labels are proved, and the forged one is refused.
    let query = |pattern: &str| {
        let args = ["query", &labeler.did(), pattern];
        block_in_place(|| labels(&args, dir.path()).stdout(Stdio::piped()).output().unwrap())
    };
    let good = query(&uri(7));
    let lines = str::from_utf8(&good.stdout).unwrap().to_owned();
    assert!(good.status.success() && lines.contains("\"verified/negation\""), "{lines}");
    let forged = query(&uri(9_999));
    assert_eq!(forged.status.code(), Some(1));
    assert!(str::from_utf8(&forged.stdout).unwrap().contains("signature/wrong"));
}

/// The rows of `label_state` that both databases have, as text.
const ROWS: &str = "SELECT concat_ws(' ', uri, val, coalesce(cid, '-'), CASE WHEN neg THEN 'yes' ELSE 'no' END, cts, created, \
    coalesce(expires, 0), service, seq, sig, key) FROM label_state";

#[tokio::test(flavor = "multi_thread")]
async fn the_same_labels_give_the_same_tables_in_postgresql_and_sqlite() {
    let kit = kit!(Postgres);
    let postgres = Postgres::start(&kit, &[]).await;
    postgres.create_database("labels").await;
    let (labeler, dir) = (SimulatedLabeler::start(8).unwrap(), tempfile::tempdir().unwrap());
    let long = format!("at://did:web:a.test/a.b.c/{}", "k".repeat(8_000));
    for number in 0..400_u32 {
        let (subject, at) = (uri(number % 90), u64::from(number * 37 % 400));
        let label = match number % 6 {
            0 => labeler.negation(&subject, "spam", at),
            1 => labeler.label(&long, "spam", at),
            _ => labeler.label(&subject, "spam", at),
        };
        labeler.publish(&[label]);
    }
    let last = labeler.publish(&[labeler.label("did:web:last.test", "last", 1)]);
    let sqlite = format!("sqlite:{}", dir.path().join("labels.db").display());
    let to = ["--to", &sqlite, "--to", &postgres.uri("labels")];
    for round in 0..4 {
        let args = [&["follow", labeler.did()], &to[..]].concat();
        let mut run = labels(&args, dir.path()).spawn().unwrap();
        sleep(round_time(round)).await;
        run.kill().unwrap();
        block_in_place(|| run.wait().unwrap());
    }
    let args = [&["follow", labeler.did()], &to[..]].concat();
    let mut run = labels(&args, dir.path()).spawn().unwrap();
    let client = postgres.connect("labels").await;
    let read = async |query: &str| -> Option<BTreeSet<String>> {
        let rows = client.query(query, &[]).await.ok()?;
        Some(rows.iter().map(|row| row.get::<_, String>(0)).collect())
    };
    let is_whole = |rows: &Option<BTreeSet<String>>| {
        rows.as_ref().is_some_and(|rows| rows.iter().any(|row| row.contains("did:web:last.test")))
    };
    let (mut in_sqlite, mut in_postgres) = (None, None);
    for _ in 0..200 {
        sleep(Duration::from_millis(100)).await;
        (in_sqlite, in_postgres) = (rows(dir.path(), ROWS), read(ROWS).await);
        if is_whole(&in_sqlite) && is_whole(&in_postgres) {
            break;
        }
    }
    run.kill().unwrap();
    block_in_place(|| run.wait().unwrap());
    let (in_sqlite, in_postgres) = (in_sqlite.unwrap(), in_postgres.unwrap());
    assert!(
        in_sqlite.len() == 77 && in_sqlite == in_postgres,
        "{last}: {} and {}",
        in_sqlite.len(),
        in_postgres.len()
    );
    let in_force = "SELECT uri FROM label";
    assert_eq!(rows(dir.path(), in_force), read(in_force).await);
}

/// The numbers of the messages that a reader yields, up to the last one or its end.
fn accepted_by(reader: &Reader, last: u64) -> BTreeSet<u64> {
    let mut accepted = BTreeSet::new();
    while !accepted.contains(&last) {
        let Some(message) = block_in_place(|| reader.next_or_end()) else { break };
        accepted.extend(message["seq"].as_u64());
    }
    accepted
}

/// The numbers of the labels that indigo accepts under the keys of their sources.
fn accepted_by_indigo(kit: &Kit, cases: &[LabelCase], key: &str, other: &str) -> BTreeSet<u64> {
    let mut command = Command::new(kit.verifier());
    command.arg("labels").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut verifier = command.spawn().unwrap();
    let mut lines = String::new();
    for case in cases {
        let key = if case.name.contains("another source") { other } else { key };
        lines += &format!("{key} {}\n", HEXLOWER.encode(&case.label));
    }
    verifier.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = verifier.wait_with_output().unwrap();
    let verdicts = str::from_utf8(&output.stdout).unwrap().lines();
    (1..).zip(verdicts).filter(|(_, verdict)| *verdict == "ok").map(|(seq, _)| seq).collect()
}

/// The numbers of the labels that we accept.
fn accepted_by_us(labeler: &SimulatedLabeler, count: usize) -> BTreeSet<u64> {
    let dir = tempfile::tempdir().unwrap();
    let count = count.to_string();
    let args = ["follow", labeler.did(), "--events", &count];
    let output =
        block_in_place(|| labels(&args, dir.path()).stdout(Stdio::piped()).output().unwrap());
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["verdict"] == "verified")
        .filter_map(|line| line["seq"].as_u64())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_table_shows_which_hostile_labels_each_reader_accepts() {
    let kit = kit!(Readers, SdkPython, Relay);
    let (labeler, other) =
        (SimulatedLabeler::start(3).unwrap(), SimulatedLabeler::start(33).unwrap());
    let cases = cases(&labeler, &other);
    let service = labeler.url().replace("http://", "ws://");
    let (atcute, python) =
        (Reader::atcute_labels(&kit, &service), Reader::labels_of_python(&kit, &service));
    sleep(Duration::from_secs(8)).await;
    for case in &cases {
        labeler.publish(std::slice::from_ref(&case.label));
        // A reader that ends at a message loses what it has not passed on.
        sleep(Duration::from_millis(300)).await;
    }
    let last = labeler.publish(&[labeler.label("did:web:a.test", "last", 1)]);
    let us = accepted_by_us(&labeler, cases.len() + 1);
    let indigo = accepted_by_indigo(&kit, &cases, &labeler.did_key(), &other.did_key());
    let (atcute, python) = (accepted_by(&atcute, last), accepted_by(&python, last));
    for (seq, case) in (1..).zip(&cases) {
        assert_eq!(us.contains(&seq), case.is_valid(), "{}", case.name);
    }
    let word = |accepted: &BTreeSet<u64>, seq| {
        if accepted.contains(&seq) { "accepted" } else { "refused" }
    };
    let mut table = String::from(
        "| label | must be | wireproof | indigo | `@atcute/firehose` | `atproto` of Python |\n|---|---|---|---|---|---|\n",
    );
    for (seq, case) in (1..).zip(&cases) {
        let must = if case.is_valid() { "accepted" } else { "refused" };
        let row = [word(&us, seq), word(&indigo, seq), word(&atcute, seq), word(&python, seq)];
        table += &format!("| {} | {must} | {} |\n", case.name, row.join(" | "));
    }
    let forged = |accepted: &BTreeSet<u64>| {
        let is_forged =
            |(seq, case): &(u64, &LabelCase)| !case.is_valid() && accepted.contains(seq);
        (1..).zip(&cases).filter(is_forged).count()
    };
    let all = cases.iter().filter(|case| !case.is_valid()).count();
    let counts = [&us, &indigo, &atcute, &python].map(|of| format!("{} of {all}", forged(of)));
    table += &format!("| **invalid labels accepted** | 0 | {} |\n", counts.join(" | "));
    let ended = [("`@atcute/firehose`", &atcute), ("`atproto` of Python", &python)];
    for (name, _) in ended.iter().filter(|(_, accepted)| !accepted.contains(&last)) {
        table += &format!(
            "\nThe process of {name} ended by an exception at a message that is not canonical.\n"
        );
    }
    publish(&table);
}

/// Compares the table with the published one, or writes it with `WIREPROOF_UPDATE_MEASURED=1`.
fn publish(table: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/measured.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark of the table");
    let (published, after) = rest.split_once(END).expect("its end");
    if published.trim() == table.trim() {
        return;
    }
    let updates = std::env::var_os("WIREPROOF_UPDATE_MEASURED").is_some();
    assert!(updates, "out of date: run this test with WIREPROOF_UPDATE_MEASURED=1\n{table}");
    fs::write(&page, format!("{before}{BEGIN}\n\n{table}\n{END}{after}")).unwrap();
}

const BEGIN: &str = "<!-- begin hostile labels -->";
const END: &str = "<!-- end hostile labels -->";
