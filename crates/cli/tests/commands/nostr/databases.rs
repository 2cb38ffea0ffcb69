//! LMDB databases of Nostr events: read by the `nostr` commands, and written by `nostr convert`.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use assert_cmd::assert::Assert;
use nostr_lmdb::{IsolatedReader, Reader};
use serde_json::Value;
use tempfile::TempDir;

use super::nostr;
use crate::{json, run, stderr, stdout, text};

/// Events as lines, and a database of them.
struct Database {
    dir: TempDir,
}

impl Database {
    /// A database of a small simulated corpus, without the events that newer ones replace or others delete.
    fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        run(&["corpus", "nostr", "--events", "300", "--out", text(dir.path())]).success();
        let database = Self { dir };
        fs::rename(database.path("nostr-events.jsonl"), database.lines()).unwrap();
        database.convert(&database.lines(), "all").success();
        // In the order of their numbers.
        let stored = nostr(&["convert", text(&database.path("all")), "--to", "jsonl"]).success();
        fs::write(database.lines(), stdout(&stored)).unwrap();
        database.convert(&database.lines(), "db").success();
        database
    }

    fn convert(&self, lines: &Path, to: &str) -> Assert {
        let out = self.path(to);
        nostr(&["convert", text(lines), "--to", "strfry-lmdb", "-o", text(&out)])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn lines(&self) -> PathBuf {
        self.path("lines.jsonl")
    }

    fn folder(&self) -> PathBuf {
        self.path("db")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.lines()).unwrap()
    }
}

#[test]
fn a_database_is_read_by_its_folder_and_by_its_file_as_its_lines_are() {
    let database = Database::make();
    let expected = json(&nostr(&["verify", text(&database.lines()), "--json"]).success());
    assert!(expected["valid"].as_u64().unwrap() > 100, "{expected}");
    for path in [database.folder(), database.path("db/data.mdb")] {
        let report = json(&nostr(&["verify", text(&path), "--json"]).success());
        for count in ["events", "valid", "invalid", "unreadable"] {
            assert_eq!(report[count], expected[count], "{count}");
        }
        let emitted = nostr(&["verify", text(&path), "--emit", "valid"]).success();
        assert_eq!(stdout(&emitted), database.text());
    }
}

#[test]
fn filters_limits_samples_and_numbers_are_those_of_lines() {
    let database = Database::make();
    let (lines, folder) = (database.lines(), database.folder());
    for args in [
        &["verify", "FILE", "--kind", "1,7", "--emit", "valid"][..],
        &["verify", "FILE", "--limit", "7", "--emit", "all"],
        &["verify", "FILE", "FILE", "--dedupe", "--emit", "valid"],
        &["sample", "FILE", "--count", "10"],
        &["get", "FILE", "3", "100"],
    ] {
        let printed = [&lines, &folder].map(|path| {
            let args: Vec<_> =
                args.iter().map(|arg| if *arg == "FILE" { text(path) } else { *arg }).collect();
            stdout(&nostr(&args).success())
        });
        assert!(!printed[0].is_empty());
        assert_eq!(printed[0], printed[1], "{args:?}");
    }
}

#[test]
fn a_stored_event_that_does_not_verify_is_named_with_its_key() {
    let database = Database::make();
    let mut lines: Vec<_> = database.text().lines().map(str::to_owned).collect();
    let mut forged: Value = serde_json::from_str(&lines[4]).unwrap();
    forged["content"] = "forged".into();
    lines[4] = forged.to_string();
    fs::write(database.lines(), lines.join("\n")).unwrap();
    database.convert(&database.lines(), "forged").success();
    let folder = database.path("forged");
    let report = json(&nostr(&["verify", text(&folder), "--json"]).code(1));
    let finding = &report["findings"][0];
    assert_eq!(report["findings"].as_array().unwrap().len(), 1);
    assert_eq!((&finding["code"], &finding["index"]), (&"event/id".into(), &4.into()));
    assert_eq!((&finding["key"], &finding["line"]), (&5.into(), &Value::Null));
    let printed = stdout(&nostr(&["verify", text(&folder)]).code(1));
    let id = forged["id"].as_str().unwrap();
    assert!(printed.contains(&format!(": event 4 at key 5 {id}: ")), "{printed}");
    nostr(&["verify", text(&folder), "--skip-invalid"]).success();
}

/// Replaces all places of bytes in the file of a database.
fn replace(folder: &Path, old: &[u8], new: &[u8]) {
    let file = folder.join("data.mdb");
    let mut bytes = fs::read(&file).unwrap();
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    assert!(!places.is_empty() && old.len() == new.len());
    places.iter().for_each(|at| bytes[*at..][..new.len()].copy_from_slice(new));
    fs::write(&file, bytes).unwrap();
}

#[test]
fn tables_of_strfry_that_do_not_agree_are_named_with_their_codes_by_every_command() {
    let database = Database::make();
    let lines: Vec<Value> =
        database.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let digits = |field: &Value| -> Vec<u8> {
        let text = field.as_str().unwrap().as_bytes();
        text.chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    let (id, pubkey) = (digits(&lines[6]["id"]), digits(&lines[6]["pubkey"]));
    let time = lines[6]["created_at"].as_u64().unwrap();
    let row = |time: u64| [&id, &pubkey, &time.to_le_bytes()[..]].concat();
    let entry = |time: u64| [&id[..], &time.to_ne_bytes()].concat();
    // The last event, whose key may be any greater one: in a page after its key.
    let last = lines.len() as u64;
    let start = format!("{{\"id\":{}", lines[lines.len() - 1]["id"]);
    let payload = |key: u64| [&key.to_ne_bytes()[..], &[0], start.as_bytes()].concat();
    let cases = [
        ("row", row(time), row(time + 1), vec!["database/other-event", "database/index"]),
        ("index", entry(time), entry(time + 1), vec!["database/index"]),
        ("key", payload(last), payload(last + 9), vec!["database/no-payload", "database/no-row"]),
    ];
    for (name, old, new, codes) in cases {
        database.convert(&database.lines(), name).success();
        let folder = database.path(name);
        replace(&folder, &old, &new);
        let report = json(&nostr(&["verify", text(&folder), "--json"]).code(1));
        let findings = report["findings"].as_array().unwrap();
        let found: Vec<&str> = findings.iter().map(|it| it["code"].as_str().unwrap()).collect();
        assert_eq!(found, codes, "{report}");
        assert_eq!(report["damaged"], codes.len(), "{report}");
        assert!(stdout(&nostr(&["verify", text(&folder)]).code(1)).contains("damaged"));
        let out = database.path("out");
        for args in [
            &["convert", text(&folder), "--to", "jsonl"][..],
            &["convert", text(&folder), "--to", "strfry-lmdb", "-o", text(&out)],
            &["sample", text(&folder)],
            &["analyze", text(&folder)],
            &["sizes", text(&folder)],
        ] {
            let printed = stderr(&nostr(args).code(1));
            assert!(printed.contains(codes[0]), "{args:?}: {printed}");
        }
        // Consistent records are taken.
        let emitted = stdout(&nostr(&["verify", text(&folder), "--emit", "valid"]).code(1));
        let refused = usize::from(name != "index");
        assert_eq!(emitted.lines().count(), lines.len() - refused, "{name}");
    }
}

#[test]
fn what_was_stored_and_what_was_not_is_counted() {
    let database = Database::make();
    let count = database.text().lines().count();
    let held = database.text();
    let mut unheld: Value = serde_json::from_str(held.lines().next().unwrap()).unwrap();
    unheld["tags"] = serde_json::json!([["p", "nobody"]]);
    unheld["id"] = "ab".repeat(32).into();
    fs::write(database.lines(), format!("{held}{held}{unheld}\n")).unwrap();
    let printed = stderr(&database.convert(&database.lines(), "twice").code(1));
    assert!(
        printed.contains(&format!(
            "stored {count}, duplicates {count}, replaced 0, deleted 0, ephemeral 0, left out 1"
        )),
        "{printed}"
    );
    assert!(printed.contains("1 events left out") && printed.contains("event/unencodable"));
    nostr(&["verify", text(&database.path("twice"))]).success();
    assert!(printed.contains("a tag `e` or `p` whose value is not an id"), "{printed}");
    assert!(printed.contains(&"ab".repeat(32)), "{printed}");
}

#[test]
fn a_database_is_not_written_where_something_is_or_to_standard_output() {
    let database = Database::make();
    let before = fs::read(database.path("db/data.mdb")).unwrap();
    for path in ["db", "lines.jsonl"] {
        let printed = stderr(&database.convert(&database.lines(), path).code(4));
        assert!(printed.contains("the folder of a new database is not empty"), "{printed}");
    }
    assert_eq!(fs::read(database.path("db/data.mdb")).unwrap(), before);
    let to = ["--to", "strfry-lmdb"];
    let printed =
        stderr(&nostr(&[&["convert", text(&database.lines())], &to[..]].concat()).code(2));
    assert!(printed.contains("name it with -o"), "{printed}");
    fs::create_dir(database.path("empty")).unwrap();
    database.convert(&database.lines(), "empty").success();
    // A failure leaves nothing behind.
    fs::write(database.lines(), "{").unwrap();
    database.convert(&database.lines(), "failed").code(1);
    let mut names: Vec<_> = fs::read_dir(database.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name.starts_with('.') || name == "failed");
    assert_eq!(names, [""; 0]);
}

#[test]
fn a_folder_that_is_no_database_of_events_is_refused_with_the_reason() {
    let database = Database::make();
    let empty = database.path("empty");
    fs::create_dir(&empty).unwrap();
    let printed = stderr(&nostr(&["verify", text(&empty)]).code(1));
    assert!(printed.contains("or is data.mdb"), "{printed}");
    let file = empty.join("data.mdb");
    let whole = fs::read(database.path("db/data.mdb")).unwrap();
    for (bytes, reason) in
        [(&b"{}"[..], "MDB_INVALID"), (&whole[..whole.len() - 4096], "data.mdb ends at byte ")]
    {
        fs::write(&file, bytes).unwrap();
        let _ = fs::remove_file(empty.join("lock.mdb"));
        let printed = stderr(&nostr(&["verify", text(&empty)]).code(1));
        assert!(printed.contains(reason), "{printed}");
    }
    // A named layout is one of files.
    let printed = stderr(&nostr(&["verify", text(&database.folder()), "--from", "jsonl"]).code(1));
    assert!(printed.contains("no file in this folder ends in"), "{printed}");
}

#[test]
fn real_events_are_stored_and_read_back_with_their_verdicts() {
    let events = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("db");
    let to = ["--to", "strfry-lmdb", "-o", text(&folder)];
    // Two events have a tag `p` that is not an id.
    let printed = stderr(&nostr(&[&["convert", text(&events)], &to[..]].concat()).code(1));
    assert!(printed.contains(", left out 2"), "{printed}");
    let report = json(&nostr(&["verify", text(&folder), "--json"]).success());
    let stored = report["events"].as_u64().unwrap();
    assert!(stored > 1_000 && report["valid"] == stored, "{report}");
    // A stored event is stored again unchanged.
    let again = dir.path().join("again");
    let to = ["--to", "strfry-lmdb", "-o", text(&again)];
    let printed = stderr(&nostr(&[&["convert", text(&folder)], &to[..]].concat()).success());
    assert!(
        printed.contains(&format!(
            "stored {stored}, duplicates 0, replaced 0, deleted 0, ephemeral 0, left out 0"
        )),
        "{printed}"
    );
    let lines = [&folder, &again]
        .map(|folder| stdout(&nostr(&["convert", text(folder), "--to", "jsonl"]).success()));
    assert_eq!(lines[0], lines[1]);
}

/// An event with its fields in alphabetical order, as `strfry export` prints them.
fn in_strfry_order(line: &str) -> String {
    serde_json::from_str::<Value>(line).unwrap().to_string()
}

#[cfg(unix)]
#[test]
fn a_pipe_between_stand_ins_of_strfry_export_and_import_passes_each_valid_event_once() {
    let database = Database::make();
    let mut events: Vec<String> = database.text().lines().map(in_strfry_order).collect();
    let forged = events.remove(4).replacen("\"content\":\"", "\"content\":\"forged ", 1);
    let exported = [&events[..4], &[forged], &events[4..], &events[7..9]].concat();
    let (export, imported) = (database.path("export.jsonl"), database.path("imported"));
    fs::write(&export, exported.join("\n") + "\n").unwrap();
    let pipe = "\"$0\" nostr verify - --emit valid --dedupe <\"$1\" | \"$0\" nostr convert - --to strfry-lmdb -o \"$2\"";
    let args = ["-c", pipe, env!("CARGO_BIN_EXE_wireproof"), text(&export), text(&imported)];
    let output = Command::new("sh").args(args).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("duplicates  2") && printed.contains("invalid     1"), "{printed}");
    let read = stdout(&nostr(&["verify", text(&imported), "--emit", "valid"]).success());
    let mut read: Vec<String> = read.lines().map(in_strfry_order).collect();
    read.sort_unstable();
    events.sort_unstable();
    assert_eq!(read, events);
}

#[test]
fn a_database_that_is_open_elsewhere_is_read() {
    let database = Database::make();
    assert!(database.text().len() > 100_000, "more than a pipe holds");
    let mut first = Command::new(env!("CARGO_BIN_EXE_wireproof"))
        .args(["nostr", "verify", text(&database.folder()), "--emit", "valid"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It has the database open until all of its output is read.
    let mut output = first.stdout.take().unwrap();
    let mut start = [0];
    output.read_exact(&mut start).unwrap();
    nostr(&["verify", text(&database.folder())]).success();
    assert!(first.try_wait().unwrap().is_none());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(format!("{}{rest}", char::from(start[0])), database.text());
    assert!(first.wait().unwrap().success());
}

/// A generator of numbers, the same for a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn events_with_other_bytes_are_findings_and_the_others_are_verified() {
    let database = Database::make();
    let whole = fs::read(database.path("db/data.mdb")).unwrap();
    let events = within_texts(&whole);
    let folder = database.path("damaged");
    fs::create_dir(&folder).unwrap();
    let mut found = 0;
    for seed in 0..60 {
        let (mut bytes, mut numbers) = (whole.clone(), Numbers(seed));
        for _ in 0..1 << numbers.below(7) {
            bytes[events[numbers.below(events.len())]] ^= 1 + numbers.below(255) as u8;
        }
        let report = verified(&folder, &bytes);
        // Pages that are no longer used have texts too.
        found += usize::from(!report["findings"].as_array().unwrap().is_empty());
        assert!(report["valid"].as_u64().unwrap() >= 300 - 64, "seed {seed}: {report}");
    }
    assert!(found > 40, "{found}");
    // Without the heads, the file is not a database.
    let mut bytes = whole;
    bytes[..2 * 4096].fill(0);
    let report = verified(&folder, &bytes);
    assert_eq!(report["findings"][0]["code"], "database/file", "{report}");
}

/// The places within long texts, which belong to events.
fn within_texts(bytes: &[u8]) -> Vec<usize> {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~');
    let is_within = |at: &usize| bytes[at - 48..at + 48].iter().all(is_text);
    (48..bytes.len() - 48).filter(is_within).collect()
}

/// The document of `nostr verify` of a database of these bytes.
fn verified(folder: &Path, bytes: &[u8]) -> Value {
    fs::write(folder.join("data.mdb"), bytes).unwrap();
    let _ = fs::remove_file(folder.join("lock.mdb"));
    let output = nostr_output(&["verify", text(folder), "--json"]);
    let printed = String::from_utf8(output.stderr).unwrap();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"));
    let has_findings = !report["findings"].as_array().unwrap().is_empty();
    assert_eq!(output.status.code(), Some(i32::from(has_findings)), "{printed}");
    report
}

fn nostr_output(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wireproof")).arg("nostr").args(args).output().unwrap()
}

#[cfg(unix)]
#[test]
fn a_signal_that_ends_the_reading_process_is_named_with_the_file_and_the_page_of_the_guide() {
    use std::os::unix::fs::PermissionsExt;
    let database = Database::make();
    // A program in the place of the reader that a signal ends.
    for (script, expected) in [
        ("kill -SEGV $$", "signal: 11 (SIGSEGV)"),
        ("exit 7", "exit status: 7"),
        ("echo text", "a malformed message"),
    ] {
        let program = database.path("program");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = database.folder();
        let args = ["wireproof", "nostr", "verify", text(&folder)];
        let code = wireproof_cli::run(vec![program.clone().into()], args.map(OsString::from));
        assert_eq!(code, 1);
        let mut command = Command::new(&program);
        let error = IsolatedReader::start(&mut command).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.code(), Some("database/crash"));
    }
}

#[test]
fn a_database_that_states_any_size_is_read_within_the_limits_of_its_file() {
    let database = Database::make();
    let file = database.path("db/data.mdb");
    let mut bytes = fs::read(&file).unwrap();
    // The size of the map, 1 TiB, in both heads of the file.
    let size = (1_u64 << 40).to_ne_bytes();
    for head in bytes.chunks_mut(4096).take(2) {
        let at = head.windows(8).position(|window| window == size).unwrap();
        head[at..at + 8].copy_from_slice(&(1_u64 << 46).to_ne_bytes());
    }
    fs::write(&file, bytes).unwrap();
    nostr(&["verify", text(&database.folder())]).success();
}

#[test]
fn a_process_of_its_own_reads_the_records_that_this_one_reads() {
    let database = Database::make();
    let folder = database.folder();
    let mut own = Reader::open(&folder).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let mut isolated = IsolatedReader::start(command.arg("read-database").arg(&folder)).unwrap();
    assert_eq!(isolated.program(), own.program());
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    loop {
        let record = own.next_record(&mut expected).unwrap();
        assert_eq!(isolated.next_record(&mut found).unwrap(), record);
        if record.is_none() {
            break;
        }
    }
    assert!(found.len() > 100_000 && found == expected);
    assert_eq!(isolated.next_record(&mut found).unwrap(), None, "after the end");
}
