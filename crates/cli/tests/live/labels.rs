//! `labels follow`, `labels query` and `labels verify` against simulated labelers.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use atproto::label::Label;
use rusqlite::Connection;
use serde_json::Value;
use simnet::hostile_labels::cases;
use simnet::labeler::{Labeler, LabelerFault};

use crate::{schemas, stderr};

const SUBJECT: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

fn command(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("labels").args(args).arg("--development");
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", dir);
    command
}

fn follow(labeler: &Labeler, dir: &Path, args: &[&str]) -> Command {
    let backoff = ["--backoff-first-ms", "10", "--backoff-max-ms", "50"];
    command(&[&["follow", labeler.did()], args, &backoff].concat(), dir)
}

/// The lines of an output, which the schema describes.
fn lines(output: &Output) -> Vec<Value> {
    let text = str::from_utf8(&output.stdout).unwrap();
    let line = |line: &str| {
        let line = serde_json::from_str(line).unwrap();
        schemas::check("labels", &line);
        line
    };
    text.lines().map(line).collect()
}

fn codes(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["code"].as_str().unwrap_or("none")).collect()
}

fn uri(number: u64) -> String {
    format!("at://did:web:a{number}.test/app.bsky.feed.post/3k")
}

fn publish(labeler: &Labeler, numbers: std::ops::Range<u64>) {
    for number in numbers {
        labeler.publish(&[labeler.label(&uri(number), "spam", number)]);
    }
}

#[test]
fn each_hostile_label_is_refused_with_its_code_and_hides_no_valid_one() {
    let (labeler, other) = (Labeler::start(3).unwrap(), Labeler::start(33).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let cases = cases(&labeler, &other);
    for case in &cases {
        labeler.publish(std::slice::from_ref(&case.label));
    }
    let count = cases.len().to_string();
    let output = follow(&labeler, dir.path(), &["--events", &count]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found = lines(&output);
    let found: Vec<(&str, &str)> = cases.iter().map(|case| case.name).zip(codes(&found)).collect();
    let expected: Vec<(&str, &str)> = cases.iter().map(|case| (case.name, case.code)).collect();
    assert_eq!(found, expected);
    let printed = stderr(&output);
    assert!(
        printed.contains("29 labels: 7 verified, 1 negations, 22 refused, 2 unreadable"),
        "{printed}"
    );
    assert!(printed.contains("a label is refused"), "{printed}");
    // The lines of verified labels prove again with the keys that they name, and by a lookup.
    let file = dir.path().join("lines.jsonl");
    fs::write(&file, &output.stdout).unwrap();
    let file = file.to_str().unwrap();
    for args in [&["verify", file, "--line-keys"][..], &["verify", file]] {
        let output = command(args, dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(lines(&output).len(), 7);
    }
    labeler.rotate_key();
    let output = command(&["verify", file], dir.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let output = command(&["verify", file, "--line-keys"], dir.path()).output().unwrap();
    assert!(output.status.success(), "the keys of the time");
    let text = fs::read_to_string(file).unwrap().replace("\"spam\"", "\"spax\"");
    fs::write(file, text).unwrap();
    let output = command(&["verify", file, "--line-keys"], dir.path()).output().unwrap();
    let found = lines(&output);
    let wrong = codes(&found).iter().filter(|code| **code == "signature/wrong").count();
    // A line that names its service and another source is refused for the source.
    assert_eq!((output.status.code(), wrong, found.len()), (Some(1), 6, 7));
}

#[test]
fn after_kills_at_any_moment_the_table_has_the_labels_in_force() {
    let (labeler, dir) = (Labeler::start(4).unwrap(), tempfile::tempdir().unwrap());
    let file = dir.path().join("labels.db");
    let to = format!("sqlite:{}", file.display());
    let (mut number, mut expected) = (0, BTreeSet::new());
    for round in 0..12_u64 {
        publish(&labeler, number..number + 200);
        expected.extend((number..number + 200).map(uri));
        number += 200;
        for old in (round * 7..number).step_by(31) {
            labeler.publish(&[labeler.negation(&uri(old), "spam", 1_000_000 + round)]);
            expected.remove(&uri(old));
        }
        if round % 3 == 0 {
            labeler.inject([(50, LabelerFault::Cut)]);
        }
        let mut run = follow(&labeler, dir.path(), &["--to", &to]);
        let mut run = run.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(100 + round * 61 % 500));
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let mut last = follow(&labeler, dir.path(), &["--to", &to]);
    let mut last = last.stderr(Stdio::null()).spawn().unwrap();
    let found = || -> Option<BTreeSet<String>> {
        let database = Connection::open(&file).ok()?;
        let mut select = database.prepare("SELECT uri FROM label").ok()?;
        let rows = select.query_map((), |row| row.get::<_, String>(0)).ok()?;
        rows.collect::<Result<_, _>>().ok()
    };
    let in_time = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        found().is_some_and(|found| found == expected)
    });
    last.kill().unwrap();
    last.wait().unwrap();
    let found = found().unwrap();
    assert!(in_time, "{} of {}", found.intersection(&expected).count(), expected.len());
}

#[test]
fn after_kills_standard_output_has_each_label_at_least_once_and_the_cursor_passes_none() {
    let (labeler, dir) = (Labeler::start(5).unwrap(), tempfile::tempdir().unwrap());
    let mut seen = BTreeSet::new();
    let out = dir.path().join("out.jsonl");
    for round in 0..6_u64 {
        publish(&labeler, round * 300..round * 300 + 300);
        let file = fs::File::create(&out).unwrap();
        let mut run = follow(&labeler, dir.path(), &[]);
        let mut run = run.stdout(file).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(150 + round * 97 % 400));
        run.kill().unwrap();
        run.wait().unwrap();
        let text = fs::read_to_string(&out).unwrap();
        // The last line may be cut; it is not acknowledged then.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let seqs = whole.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        seen.extend(seqs.filter_map(|line| line["seq"].as_u64()));
    }
    let newest = labeler.publish(&[labeler.label(SUBJECT, "last", 9)]);
    let file = fs::File::create(&out).unwrap();
    let mut run = follow(&labeler, dir.path(), &[]);
    let mut run = run.stdout(file).stderr(Stdio::null()).spawn().unwrap();
    let has_last = || fs::read_to_string(&out).unwrap().contains("\"last\"");
    assert!((0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        has_last()
    }));
    run.kill().unwrap();
    run.wait().unwrap();
    let text = fs::read_to_string(&out).unwrap();
    let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    seen.extend(values.filter_map(|line| line["seq"].as_u64()));
    assert!((1..=newest).all(|seq| seen.contains(&seq)), "{} of {newest}", seen.len());
}

#[test]
fn files_of_labels_prove_again_with_the_keys_of_their_time() {
    let (labeler, dir) = (Labeler::start(8).unwrap(), tempfile::tempdir().unwrap());
    let folder = dir.path().join("labels");
    let to = format!("file:{}", folder.display());
    for round in 0..3_u64 {
        publish(&labeler, round * 100..round * 100 + 100);
        let output =
            follow(&labeler, dir.path(), &["--to", &to, "--events", "100"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        labeler.rotate_key();
    }
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|of| of == "ndjson" || of == "part"))
        .map(|path| path.to_str().unwrap().to_owned())
        .collect();
    let args: Vec<&str> = files.iter().map(String::as_str).collect();
    let verify = |more: &[&str]| {
        command(&[&["verify"], &args[..], more].concat(), dir.path()).output().unwrap()
    };
    let proved = verify(&["--line-keys"]);
    assert!(proved.status.success(), "{}", stderr(&proved));
    let proved = lines(&proved);
    assert_eq!(codes(&proved), ["verified"; 300]);
    let keys: BTreeSet<&str> = proved.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(verify(&[]).status.code(), Some(1), "the present key signed none of them");
}

#[test]
fn a_query_proves_each_label_of_its_subjects_page_by_page() {
    let (labeler, dir) = (Labeler::start(6).unwrap(), tempfile::tempdir().unwrap());
    publish(&labeler, 0..600);
    let query = |args: &[&str]| {
        command(&[&["query", labeler.did()], args].concat(), dir.path()).output().unwrap()
    };
    let output = query(&["at://did:web:a*"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(lines(&output).len(), 600);
    let output = query(&[&uri(7), &uri(8)]);
    assert_eq!(codes(&lines(&output)), ["verified", "verified"]);
    let output = query(&["at://*", "--limit", "10"]);
    assert!(stderr(&output).contains("more labels"), "{}", stderr(&output));
    assert_eq!(lines(&output).len(), 10);
    let forged = labeler.label(SUBJECT, "spam", 1);
    let fields = Label::parse(&forged).unwrap().fields;
    labeler.publish(&[fields.with_signature(&[1; 64])]);
    let output = query(&[SUBJECT]);
    assert_eq!((output.status.code(), codes(&lines(&output))), (Some(1), vec!["signature/wrong"]));
}

#[test]
fn an_answer_in_a_file_is_verified_by_a_given_key() {
    let (labeler, dir) = (Labeler::start(7).unwrap(), tempfile::tempdir().unwrap());
    let label = labeler.label(SUBJECT, "spam", 1);
    let mut json = b"{\"labels\":[".to_vec();
    codec::json::append_item(&mut json, &label).unwrap();
    json.extend_from_slice(b"]}");
    let file = dir.path().join("answer.json");
    fs::write(&file, json).unwrap();
    let key = format!("{}={}", labeler.did(), labeler.did_key());
    let args = ["verify", file.to_str().unwrap(), "--key", &key];
    let output = command(&args, dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(codes(&lines(&output)), ["verified"]);
    labeler.rotate_key();
    let key = format!("{}={}", labeler.did(), labeler.did_key());
    let args = ["verify", file.to_str().unwrap(), "--key", &key];
    assert_eq!(command(&args, dir.path()).output().unwrap().status.code(), Some(1));
    fs::write(&file, "no labels").unwrap();
    let output = command(&args, dir.path()).output().unwrap();
    assert!(stderr(&output).contains("neither an answer of queryLabels"), "{}", stderr(&output));
}

#[test]
fn an_account_that_is_no_labeler_is_refused_before_anything_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    for (who, code) in [("did:web:localhost%3A1", 3), ("no labeler", 2)] {
        let args = ["follow", who, "--first-contact-seconds", "1"];
        let output = command(&args, dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{who}: {}", stderr(&output));
    }
}
