//! `nostr` and `corpus nostr`: output and exit codes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use assert_cmd::assert::Assert;
use serde_json::Value;
use tempfile::TempDir;
use wireproof::nostr::formats::Format;

use crate::{command, json, run, stderr, stdout, text};

fn nostr(args: &[&str]) -> Assert {
    run(&[&["nostr"][..], args].concat())
}

/// A small simulated corpus, made by the command.
struct Corpus {
    dir: TempDir,
}

impl Corpus {
    fn make() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let out = text(dir.path());
        run(&["corpus", "nostr", "--events", "60", "--out", out]).success();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn events(&self) -> PathBuf {
        self.path("nostr-events.jsonl")
    }

    /// The corpus in another layout.
    fn converted(&self, layout: &str) -> PathBuf {
        let out = self.path(&format!("events.{layout}"));
        nostr(&["convert", text(&self.events()), "--to", layout, "-o", text(&out)]).success();
        out
    }

    /// The corpus with its line `at` changed.
    fn changed(&self, at: usize, change: impl Fn(&str) -> String) -> PathBuf {
        let file = fs::read_to_string(self.events()).unwrap();
        let line = |(index, line)| if index == at { change(line) } else { String::from(line) };
        let lines: Vec<_> = file.split_terminator('\n').enumerate().map(line).collect();
        let path = self.path("changed.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        path
    }
}

/// The line with a digit of a field changed.
fn forged(line: &str, field: &str) -> String {
    let at = line.find(&format!("\"{field}\":\"")).unwrap() + field.len() + 10;
    let digit = if &line[at..=at] == "0" { "1" } else { "0" };
    format!("{}{digit}{}", &line[..at], &line[at + 1..])
}

#[test]
fn a_corpus_is_three_files_with_descriptions() {
    let corpus = Corpus::make();
    for name in ["nostr-events", "nostr-by-kind", "nostr-by-category"] {
        let file = fs::read(corpus.path(&format!("{name}.jsonl"))).unwrap();
        let manifest = fs::read(corpus.path(&format!("{name}.json"))).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["file_bytes"], file.len() as u64);
    }
    let manifest = fs::read(corpus.path("nostr-events.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["counts"]["events"], 60);
}

#[test]
fn valid_events_are_exit_code_0_one_by_one_and_together() {
    let corpus = Corpus::make();
    for args in [&["--json"][..], &["--json", "--one-by-one"]] {
        let file = corpus.events();
        let args = [&["verify", text(&file)][..], args].concat();
        let report = json(&nostr(&args).success());
        let counts = ["events", "valid", "invalid", "unreadable"].map(|it| report[it].as_u64());
        assert_eq!(counts, [60, 60, 0, 0].map(Some));
    }
    let printed = stdout(&nostr(&["verify", text(&corpus.events())]).success());
    assert!(
        printed.starts_with("events      60 in ") && printed.contains("valid       60"),
        "{printed}"
    );
}

#[test]
fn an_id_of_escaped_control_characters_is_valid_unless_another_form_is_required() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("control.jsonl");
    fs::write(&file, ESCAPED_ID).unwrap();
    for args in [&[][..], &["--one-by-one"], &["--ids", "escaped"]] {
        let args = [&["verify", text(&file)][..], args].concat();
        let printed = stdout(&nostr(&args).success());
        assert!(printed.contains("\n    id: escaped  1\n"), "{printed}");
        let report = json(&nostr(&[&args[..], &["--json"]].concat()).success());
        assert_eq!((&report["valid"], &report["id_escaped"]), (&1.into(), &1.into()));
    }
    let args = ["verify", text(&file), "--ids", "verbatim"];
    let printed = stdout(&nostr(&args).code(1));
    let expected = "the id is the hash of the event with escaped control characters";
    assert!(printed.contains(expected), "{printed}");
    let report = json(&nostr(&[&args[..], &["--json"]].concat()).code(1));
    assert_eq!(report["findings"][0]["code"], "event/id-form");
    let out = dir.path().join("events.wireproof");
    nostr(&["convert", text(&file), "--to", "wireproof", "-o", text(&out)]).success();
    let back = nostr(&["convert", text(&out), "--from", "wireproof", "--to", "jsonl"]).success();
    assert_eq!(stdout(&back), ESCAPED_ID);
}

#[test]
fn findings_are_streamed_with_all_and_capped_without_and_the_cap_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.jsonl");
    fs::write(&file, "x\n\n".repeat(30_000)).unwrap();
    let printed = stdout(&nostr(&["verify", text(&file)]).code(1));
    assert_eq!(printed.matches(": event ").count(), 10);
    assert!(printed.contains(": event 9 in line 19: "), "{printed}");
    assert!(printed.contains("… and 29990 more: --all or --json shows them\n"), "{printed}");
    // Blank lines are nothing.
    assert!(printed.contains("unreadable  30000\n"), "{printed}");
    let printed = stdout(&nostr(&["verify", text(&file), "--all"]).code(1));
    assert_eq!(printed.matches(": event ").count(), 30_000);
    let report = json(&nostr(&["verify", text(&file), "--json"]).code(1));
    assert_eq!(report["findings"].as_array().unwrap().len(), 30_000);
    assert_eq!(report["findings"][29_999]["line"], 59_999);
    assert_eq!(report["findings"][29_999]["index"], 29_999);
}

/// The peaks of `nostr verify` with a few and with many events that are refused.
#[cfg(target_os = "linux")]
fn assert_memory_is_bounded(name: &str, content: impl Fn(usize) -> Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    let peaks = [20_000, 2_000_000].map(|count| {
        fs::write(&path, content(count)).unwrap();
        let report = json(&nostr(&["verify", text(&path), "--json"]).code(1));
        assert_eq!(report["findings"].as_array().unwrap().len(), count);
        crate::peak_bytes(&["nostr", "verify", text(&path)])
    });
    assert!(peaks[1] < peaks[0] + 16_000_000, "{peaks:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_number_of_refused_lines() {
    assert_memory_is_bounded("lines.jsonl", |count| b"x\n".repeat(count));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_number_of_refused_records_of_a_small_archive() {
    assert!(gzip_of_zeros(2_000_000).len() < 20_000);
    // A record of no bytes is its length alone: a zero.
    assert_memory_is_bounded("archive.pb.gz", gzip_of_zeros);
}

/// A gzip file (RFC 1952) of zeros: a block with fixed codes (RFC 1951 §3.2.6), in which 258 zeros take 13 bits.
#[cfg(target_os = "linux")]
fn gzip_of_zeros(len: usize) -> Vec<u8> {
    let (mut bits, mut literals) = (vec![true, true, false], len % 258);
    literals += if len >= 258 && literals == 0 { 258 } else { 0 };
    let literal = [false, false, true, true, false, false, false, false];
    (0..literals).for_each(|_| bits.extend(literal));
    // Length 258, distance 1.
    let copy =
        [true, true, false, false, false, true, false, true, false, false, false, false, false];
    (0..(len - literals) / 258).for_each(|_| bits.extend(copy));
    bits.extend([false; 7]);
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    let deflated = bits.chunks(8).map(byte);
    let crc = !(0..len * 8).fold(u32::MAX, |crc, _| crc >> 1 ^ (0xedb8_8320 * (crc & 1)));
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    file.extend(deflated);
    file.extend(crc.to_le_bytes());
    file.extend(u32::try_from(len).unwrap().to_le_bytes());
    file
}

#[test]
fn wrapped_files_and_broken_rules_of_json_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let message = |bytes: &[u8]| {
        let file = dir.path().join("events.jsonl");
        fs::write(&file, bytes).unwrap();
        let assert = nostr(&["verify", text(&file)]).code(1);
        stdout(&assert) + &stderr(&assert)
    };
    let event = |field: &str, value: &str| ESCAPED_ID.replacen(field, value, 1).into_bytes();
    for (bytes, expected) in [
        (b"\xef\xbb\xbf{}".to_vec(), "the file begins with a byte order mark: remove its 3 bytes"),
        (b"\x1f\x8b\x08\0".to_vec(), "after event 0: not a complete gzip stream"),
        (event("1700000123", "1700000000.0"), "`created_at` is an integer: no fraction"),
        (event("1700000123", "1e9"), "`created_at` is an integer: no fraction"),
        (event("\"kind\":1", "\"kind\":-1"), "`kind` is out of range: 0 to 65,535"),
        (event("\"id\":\"6f", "\"id\":\""), "`id` has the wrong length: 32 bytes, or 64"),
        (event("\"id\":\"6f", "\"id\":\"6F"), "`id` is not lower-case hexadecimal"),
    ] {
        let found = message(&bytes);
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn a_forged_event_is_exit_code_1_and_reported_with_its_index() {
    let corpus = Corpus::make();
    for (field, code, message) in [
        ("id", "event/id", "the id is not the hash of the event"),
        ("sig", "signature/wrong", "signature"),
    ] {
        let file = corpus.changed(7, |line| forged(line, field));
        for args in [&["--json"][..], &["--json", "--one-by-one"]] {
            let assert = nostr(&[&["verify", text(&file)][..], args].concat()).code(1);
            let report = json(&assert);
            assert_eq!((&report["invalid"], &report["valid"]), (&1.into(), &59.into()));
            assert_eq!(report["findings"][0]["index"], 7);
            assert_eq!(report["findings"][0]["code"], code);
            let found = report["findings"][0]["message"].as_str().unwrap();
            assert!(found.contains(message), "{found}");
        }
        let assert = nostr(&["verify", text(&file)]).code(1);
        assert!(stdout(&assert).contains(": event 7 in line 8 "), "{}", stdout(&assert));
        assert!(stderr(&assert).ends_with(": 1 refused\n"), "{}", stderr(&assert));
    }
}

#[test]
fn every_number_of_threads_gives_the_same_verdicts_in_order() {
    let corpus = Corpus::make();
    let line = |number: usize| match number % 7 {
        0 => "x\n".to_owned(),
        _ => format!("{{\"number\":{number}}}\n"),
    };
    let lines: String = (0..5_000).map(line).collect();
    let file = corpus.path("long.jsonl");
    fs::write(&file, fs::read_to_string(corpus.events()).unwrap().repeat(50) + &lines).unwrap();
    let report = |threads: &str| {
        let args = ["verify", text(&file), "--json", "--jobs", threads];
        let mut report = json(&nostr(&args).code(1));
        report["seconds"] = 0.into();
        report
    };
    let one = report("1");
    assert_eq!((&one["valid"], &one["unreadable"]), (&3_000.into(), &5_000.into()));
    let index = |finding: &Value| finding["index"].as_u64().unwrap();
    assert!(one["findings"].as_array().unwrap().iter().map(index).eq(3_000..8_000));
    for threads in ["2", "7"] {
        assert_eq!(report(threads), one);
    }
}

#[test]
fn valid_events_go_on_as_they_were_read_and_what_is_refused_to_standard_error() {
    let corpus = Corpus::make();
    let original = fs::read_to_string(corpus.events()).unwrap();
    let forged = |line: &str| forged(line, "sig");
    let messages = |line: &str| format!("[\"EVENT\",\"feed\",{line}]\n");
    let mut lines: Vec<String> = original.lines().map(messages).collect();
    lines.insert(4, "\n[\"EOSE\",\"feed\"]\n".to_owned());
    lines.push(messages(&forged(original.lines().next().unwrap())));
    let piped = |args: &[&str]| {
        let mut command = command(&[&["nostr", "verify", "-"], args].concat());
        command.write_stdin(lines.concat()).assert()
    };
    let assert = piped(&["--emit", "valid"]).code(1);
    assert_eq!(stdout(&assert), original);
    let printed = stderr(&assert);
    assert!(printed.contains("-: event 4 in line 6: "), "{printed}");
    assert!(printed.contains("  valid       60\n  invalid     1\n  unreadable  1\n"), "{printed}");
    assert!(printed.ends_with("-: 2 refused\n"), "{printed}");
    let skipped = piped(&["--emit", "valid", "--skip-invalid"]).success();
    assert_eq!(stdout(&skipped), original);
    let refused = stdout(&piped(&["--emit", "invalid"]).code(1));
    let first = forged(original.lines().next().unwrap());
    assert_eq!(refused, format!("[\"EOSE\",\"feed\"]\n{first}\n"));
    let all = stdout(&piped(&["--emit", "all"]).code(1));
    assert_eq!(all.lines().count(), 62);
    piped(&["--emit", "valid", "--json"]).code(2);
    let converted = corpus.converted("pb.gz");
    let emitted = nostr(&["verify", text(&converted), "--emit", "valid"]).success();
    assert_eq!(stdout(&emitted), original);
}

#[test]
fn files_of_several_kinds_are_one_input_and_repetitions_are_left_out() {
    let corpus = Corpus::make();
    let original = fs::read_to_string(corpus.events()).unwrap();
    let compressed = corpus.path("events.jsonl.zst");
    fs::write(&compressed, zstd::encode_all(original.as_bytes(), 3).unwrap()).unwrap();
    let records = corpus.converted("pb.gz");
    let forged = corpus.changed(0, |line| forged(line, "id"));
    // A forged event does not hide the one whose id it claims.
    let events = corpus.events();
    let files = [&forged, &events, &compressed, &records].map(|path| text(path));
    let args = [&["verify"][..], &files, &["--dedupe", "--emit", "valid"]].concat();
    let assert = nostr(&args).code(1);
    let mut sorted: Vec<_> = original.lines().collect();
    let emitted = stdout(&assert);
    let mut found: Vec<_> = emitted.lines().collect();
    sorted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, sorted);
    let printed = stderr(&assert);
    assert!(
        printed.contains("  valid       239\n    duplicates  179\n  invalid     1\n"),
        "{printed}"
    );
    assert!(printed.ends_with("4 inputs: 1 refused\n"), "{printed}");
    nostr(&["verify", "-", "-"]).code(2);
}

#[test]
fn filters_are_those_of_nip_01() {
    let corpus = Corpus::make();
    let lines = fs::read_to_string(corpus.events()).unwrap();
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tagged = events.iter().find(|event| event["tags"][0][1].is_string()).unwrap();
    let [name, value] = [0, 1].map(|at| tagged["tags"][0][at].as_str().unwrap());
    let (tag, author) = (format!("{name}={value}"), tagged["pubkey"].as_str().unwrap());
    let time = tagged["created_at"].as_i64().unwrap();
    let has_tag = |event: &Value| {
        let tags = event["tags"].as_array().unwrap();
        tags.iter().any(|tag| tag[0] == name && tag[1] == value)
    };
    let (kind, at) = (tagged["kind"].to_string(), time.to_string());
    let count = |is: &dyn Fn(&Value) -> bool| events.iter().filter(|event| is(event)).count();
    let of_kind = |event: &Value| event["kind"] == tagged["kind"];
    let of_author = |event: &Value| event["pubkey"] == *author;
    let when = |event: &Value| event["created_at"].as_i64().unwrap();
    for (args, expected) in [
        (vec!["--kind", &kind], count(&of_kind)),
        (vec!["--kind", &kind, "--author", author], count(&|it| of_kind(it) && of_author(it))),
        (vec!["--since", &at], count(&|it| when(it) >= time)),
        (vec!["--until", &at], count(&|it| when(it) <= time)),
        (vec!["--since", &at, "--until", &at], count(&|it| when(it) == time)),
        (vec!["--tag", &tag], count(&has_tag)),
        (vec!["--tag", &tag, "--tag", "no-such=x"], 0),
    ] {
        let file = corpus.events();
        let args = [&["verify", text(&file), "--json"][..], &args].concat();
        let report = json(&nostr(&args).success());
        assert_eq!(report["valid"], expected, "{args:?}");
        assert_eq!(report["filtered"], 60 - expected, "{args:?}");
        assert!(expected > 0 || args.contains(&"no-such=x"), "{args:?}");
    }
    for wrong in [["--author", "npub1"], ["--tag", "t"], ["--kind", "70000"]] {
        nostr(&[&["verify", "no-such-file"], &wrong[..]].concat()).code(2);
    }
}

#[test]
fn a_line_that_is_no_event_is_reported_and_later_lines_are_verified() {
    let corpus = Corpus::make();
    let file = corpus.changed(3, |line| line.replace("\"kind\"", "\"king\""));
    let report = json(&nostr(&["verify", text(&file), "--json"]).code(1));
    assert_eq!((&report["unreadable"], &report["valid"]), (&1.into(), &59.into()));
    assert_eq!(report["findings"][0]["code"], "event/unreadable");
    let message = report["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("`kind` is missing"), "{message}");
    let assert = nostr(&["convert", text(&file), "--to", "pb.gz"]).code(1);
    assert!(stderr(&assert).contains("event 3, at byte "), "{}", stderr(&assert));
}

#[test]
fn events_come_back_from_every_layout_byte_for_byte() {
    let corpus = Corpus::make();
    let original = fs::read(corpus.events()).unwrap();
    for layout in [
        "pb.gz",
        "pb",
        "proto-binary.pb",
        "proto-binary-hex.pb",
        "notepack-segment",
        "notepack-segment.gz",
        "notepack-string",
        "container",
        "json",
        "cbor-packed",
        "proto-binary",
        "wireproof",
    ] {
        let file = corpus.converted(layout);
        let back = nostr(&["convert", text(&file), "--from", layout, "--to", "jsonl"]).success();
        assert!(back.get_output().stdout == original, "{layout}");
    }
    let mut piped = command(&["nostr", "convert", "-", "--to", "pb.gz"]);
    let piped = piped.write_stdin(original).assert().success();
    assert_eq!(piped.get_output().stdout, fs::read(corpus.path("events.pb.gz")).unwrap());
}

/// A container with the events of a corpus 30 times, and the number of its events: several blocks.
fn long_container(corpus: &Corpus) -> (PathBuf, usize) {
    let lines = fs::read_to_string(corpus.events()).unwrap().repeat(30);
    let (long, out) = (corpus.path("long.jsonl"), corpus.path("long.nostr"));
    fs::write(&long, &lines).unwrap();
    nostr(&["convert", text(&long), "--to", "container", "-o", text(&out)]).success();
    (out, lines.lines().count())
}

#[test]
fn a_container_of_every_format_is_known_by_its_bytes_from_files_and_pipes() {
    let corpus = Corpus::make();
    let original = fs::read(corpus.events()).unwrap();
    let out = corpus.path("events");
    for format in Format::ALL {
        let args = ["--to", "container", "--format", format.name(), "-o", text(&out)];
        nostr(&[&["convert", text(&corpus.events())][..], &args].concat()).success();
        let report = json(&nostr(&["verify", text(&out), "--json"]).success());
        assert_eq!((&report["valid"], &report["damaged"]), (&60.into(), &0.into()));
        let mut piped = command(&["nostr", "convert", "-", "--to", "jsonl"]);
        let piped = piped.write_stdin(fs::read(&out).unwrap()).assert().success();
        assert!(piped.get_output().stdout == original, "{}", format.name());
    }
}

#[test]
fn damage_of_a_container_is_a_finding_and_the_other_blocks_are_verified() {
    let corpus = Corpus::make();
    let (path, events) = long_container(&corpus);
    let mut bytes = fs::read(&path).unwrap();
    let blocks = |bytes: &[u8]| -> Vec<usize> {
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\xc1\xffNBLK\xff\xc1")).collect()
    };
    let second = blocks(&bytes)[1];
    bytes[second + 1_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = json(&nostr(&["verify", text(&path), "--json"]).code(1));
    assert_eq!((&report["valid"], &report["damaged"]), (&(events - 512).into(), &1.into()));
    let finding = &report["findings"][0];
    assert_eq!((&finding["code"], &finding["index"]), (&"container/checksum".into(), &512.into()));
    assert_eq!(finding["offset"], second);
    let printed = stdout(&nostr(&["verify", text(&path), "--skip-invalid"]).success());
    assert!(printed.contains("; 512 events are missing, from event 512 on\n"), "{printed}");
    assert!(printed.contains("\n  damaged     1\n"), "{printed}");

    let out = corpus.path("out.jsonl");
    let convert = ["convert", text(&path), "--to", "jsonl", "-o", text(&out)];
    let refused = nostr(&convert).code(1);
    assert!(stderr(&refused).contains("--skip-damaged"), "{}", stderr(&refused));
    assert!(!out.exists());
    let skipped = nostr(&[&convert[..], &["--skip-damaged"]].concat()).success();
    assert!(stderr(&skipped).contains("another checksum; 512 events"), "{}", stderr(&skipped));
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), events - 512);
    let list = ["convert", text(&path), "--to", "json", "--skip-damaged"];
    let list: Value = serde_json::from_str(&stdout(&nostr(&list).success())).unwrap();
    assert_eq!(list.as_array().unwrap().len(), events - 512);

    fs::write(&path, &bytes[..second]).unwrap();
    let report = json(&nostr(&["verify", text(&path), "--json"]).code(1));
    assert_eq!(report["findings"][0]["code"], "container/truncated");
    assert_eq!(report["valid"], 512);
    // The first bytes are not those of a container.
    bytes[0] = 0;
    fs::write(&path, &bytes).unwrap();
    let args = ["verify", text(&path), "--from", "container", "--json"];
    let report = json(&nostr(&args).code(1));
    assert_eq!(report["findings"][0]["code"], "container/header");
}

#[test]
fn events_are_got_by_number_and_by_id_from_every_layout() {
    let corpus = Corpus::make();
    let original = fs::read_to_string(corpus.events()).unwrap();
    let lines: Vec<&str> = original.lines().collect();
    let id = |line: &str| line[7..71].to_owned();
    let (container, _) = long_container(&corpus);
    let records = corpus.converted("pb.gz");
    for file in [&container, &records, &corpus.events()] {
        let found = nostr(&["get", text(file), "7", "3", "7"]).success();
        assert_eq!(stdout(&found), format!("{}\n{}\n", lines[3], lines[7]));
        let found = nostr(&["get", text(file), "--id", &id(lines[9])]).success();
        assert_eq!(stdout(&found), format!("{}\n", lines[9]));
        let missing = nostr(&["get", text(file), "2", "99999"]).code(1);
        assert_eq!(stdout(&missing), format!("{}\n", lines[2]));
        assert!(stderr(&missing).contains(": no event 99999\n"), "{}", stderr(&missing));
        nostr(&["get", text(file), "--id", &"0".repeat(64)]).code(1);
    }
    let mut piped = command(&["nostr", "get", "-", "1799"]);
    let piped = piped.write_stdin(fs::read(&container).unwrap()).assert().success();
    assert_eq!(stdout(&piped), format!("{}\n", lines[59]));
    let packed = nostr(&["get", text(&container), "5", "--to", "cbor-packed"]).success();
    assert!(packed.get_output().stdout.starts_with(b"\x87\x58\x20"));
    nostr(&["get", text(&container), "5", "6", "--to", "cbor-packed"]).code(1);
    nostr(&["get", text(&container)]).code(2);
    nostr(&["get", text(&container), "--id", "0"]).code(2);
    nostr(&["get", "no-such-file", "0"]).code(4);
    // Without the index the blocks before the end are read.
    let whole = fs::read(&container).unwrap();
    fs::write(&container, &whole[..whole.len() - 1]).unwrap();
    let found = nostr(&["get", text(&container), "1000"]).success();
    assert_eq!(stdout(&found), format!("{}\n", lines[40]));
    let missing = nostr(&["get", text(&container), "5000"]).code(1);
    assert!(stderr(&missing).contains("ends before its index"), "{}", stderr(&missing));
}

#[test]
fn one_event_is_converted_and_verified_in_every_format_and_as_a_string() {
    let corpus = Corpus::make();
    let line =
        fs::read_to_string(corpus.events()).unwrap().lines().next().unwrap().to_owned() + "\n";
    let (event, out) = (corpus.path("event.jsonl"), corpus.path("event"));
    fs::write(&event, &line).unwrap();
    for format in Format::ALL {
        let args = ["convert", text(&event), "--single", "--to", format.name(), "-o", text(&out)];
        nostr(&args).success();
        let single = ["--single", "--from", format.name()];
        let report =
            json(&nostr(&[&["verify", text(&out), "--json"][..], &single].concat()).success());
        assert_eq!(report["valid"], 1, "{}", format.name());
        let back =
            nostr(&[&["convert", text(&out), "--to", "jsonl"][..], &single].concat()).success();
        assert_eq!(stdout(&back), line, "{}", format.name());
    }
    let string = stdout(&nostr(&["convert", text(&event), "--to", "notepack-string"]).success());
    assert!(string.starts_with("notepack_A") && string.ends_with('\n'), "{string}");
    let mut piped = command(&["nostr", "verify", "-", "--emit", "valid"]);
    assert_eq!(stdout(&piped.write_stdin(string).assert().success()), line);
    let events = corpus.events();
    let several = ["convert", text(&events), "--single", "--to", "notepack", "-o", text(&out)];
    let refused = nostr(&several).code(1);
    assert!(stderr(&refused).contains("a second event"), "{}", stderr(&refused));
}

#[test]
fn inspect_shows_what_each_byte_of_an_event_stands_for_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let (event, out) = (dir.path().join("event.jsonl"), dir.path().join("event"));
    fs::write(&event, EXAMPLE).unwrap();
    for format in Format::ALL {
        let args = ["convert", text(&event), "--single", "--to", format.name(), "-o", text(&out)];
        nostr(&args).success();
        let printed = stdout(&run(&["inspect", text(&out)]).success());
        assert!(printed.contains("\nid and signature are valid\n"), "{printed}");
        let name = format!("nostr-{}", format.name());
        let document = json(&run(&["inspect", text(&out), "--as", &name, "--json"]).success());
        assert_eq!(
            (&document["format"], &document["fault"]),
            (&name.as_str().into(), &Value::Null)
        );
        assert_eq!(document["event"], serde_json::from_str::<Value>(EXAMPLE).unwrap());
        let parts = document["parts"].as_array().unwrap();
        let content =
            parts.iter().find(|part| part["field"] == "content" && part["kind"] != "layout");
        assert!(content.unwrap()["value"].as_str().unwrap().contains("good"), "{document}");
    }
    let printed =
        stdout(&run(&["inspect", text(&out), "--as", "nostr-wireproof", "--limit", "2"]).success());
    assert!(printed.contains("       0  01 ") && printed.contains("more parts"), "{printed}");
    let string = nostr(&["convert", text(&event), "--to", "notepack-string"]).success();
    let mut piped = command(&["inspect", "-"]);
    let printed = stdout(&piped.write_stdin(stdout(&string)).assert().success());
    assert!(printed.starts_with("Nostr event in notepack, 155 bytes\n"), "{printed}");
    let mut piped = command(&["inspect", "-"]);
    let refused = piped.write_stdin("notepack_*").assert().code(1);
    assert!(stderr(&refused).contains("base64"), "{}", stderr(&refused));
    fs::write(&event, forged(EXAMPLE, "sig")).unwrap();
    let printed = stdout(&run(&["inspect", text(&event)]).success());
    assert!(!printed.contains("are valid"), "{printed}");
    let refused = run(&["inspect", text(&event), "--as", "nostr-msgpack"]).code(1);
    assert!(stderr(&refused).contains("at byte 0: "), "{}", stderr(&refused));
}

#[test]
fn inspect_shows_the_blocks_of_a_container_and_refuses_damage() {
    let corpus = Corpus::make();
    let (path, events) = long_container(&corpus);
    let printed = stdout(&run(&["inspect", text(&path)]).success());
    assert!(printed.contains("  block at byte 28: 512 events from 0 on, "), "{printed}");
    let document = json(&run(&["inspect", text(&path), "--json"]).success());
    assert_eq!((&document["event_count"], &document["block_count"]), (&events.into(), &4.into()));
    assert_eq!(document["blocks"][1]["first"], 512);
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let refused = run(&["inspect", text(&path)]).code(1);
    assert!(stdout(&refused).contains("  damage at byte 28, "), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("at byte 28: the body of a block"), "{}", stderr(&refused));
    run(&["inspect", text(&path), "--json"]).code(1);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_number_of_events_of_a_container() {
    let corpus = Corpus::make();
    let lines = fs::read_to_string(corpus.events()).unwrap();
    let [container, back] = ["many.nostr", "back.jsonl"].map(|name| corpus.path(name));
    let peaks = [20, 2_000].map(|times| {
        let file = corpus.path("many.jsonl");
        fs::write(&file, lines.repeat(times)).unwrap();
        let written =
            ["nostr", "convert", text(&file), "--to", "container", "-o", text(&container)];
        let read = ["nostr", "convert", text(&container), "--to", "jsonl", "-o", text(&back)];
        let peaks = [crate::peak_bytes(&written), crate::peak_bytes(&read)];
        assert!(fs::read(&back).unwrap() == fs::read(&file).unwrap());
        peaks
    });
    for (few, many) in peaks[0].into_iter().zip(peaks[1]) {
        assert!(many < few + 16_000_000, "{peaks:?}");
    }
}

#[test]
fn a_compressed_file_that_was_cut_is_exit_code_1_and_leaves_no_output() {
    let corpus = Corpus::make();
    let file = corpus.converted("pb.gz");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let assert = nostr(&["verify", text(&file)]).code(1);
    assert!(stderr(&assert).contains("not a complete gzip stream"), "{}", stderr(&assert));
    let out = corpus.path("out.jsonl");
    nostr(&["convert", text(&file), "--to", "jsonl", "-o", text(&out)]).code(1);
    assert!(!out.exists());
}

#[test]
fn a_file_that_is_not_what_its_name_says_is_refused_with_advice() {
    let corpus = Corpus::make();
    let wrong = corpus.path("events.gz");
    fs::copy(corpus.events(), &wrong).unwrap();
    for args in [&["verify"][..], &["analyze"], &["sizes"], &["convert", "--to", "json"]] {
        let assert = nostr(&[args, &[text(&wrong)][..]].concat()).code(1);
        assert!(stderr(&assert).contains("--from"), "{}", stderr(&assert));
    }
    let assert = nostr(&["verify", text(&corpus.events()), "--from", "cbor-packed"]).code(1);
    assert!(stderr(&assert).contains("at byte 0"), "{}", stderr(&assert));
}

#[test]
fn a_folder_without_files_is_exit_code_1_and_one_with_files_is_read() {
    let corpus = Corpus::make();
    let empty = tempfile::tempdir().unwrap();
    let assert = nostr(&["verify", text(empty.path())]).code(1);
    assert!(
        stderr(&assert)
            .contains("no file in this folder ends in .gz, .zst, .jsonl, .nostr or .notepack"),
        "{}",
        stderr(&assert)
    );
    for name in ["a.pb.gz", "b.pb.gz"] {
        fs::copy(corpus.converted("pb.gz"), empty.path().join(name)).unwrap();
    }
    let report = json(&nostr(&["verify", text(empty.path()), "--limit", "10", "--json"]).success());
    assert_eq!(report["valid"], 10);
}

#[test]
fn missing_files_are_exit_code_4_and_unknown_layouts_exit_code_2() {
    for args in [&["verify"][..], &["analyze"], &["sizes"], &["recommend"]] {
        let assert = nostr(&[args, &["no-such-file"][..]].concat()).code(4);
        assert!(stderr(&assert).starts_with("wireproof: no-such-file: "), "{}", stderr(&assert));
    }
    nostr(&["convert", "no-such-file", "--to", "papyrus"]).code(2);
    nostr(&["convert", "no-such-file"]).code(2);
    nostr(&["sizes", "no-such-file", "--kind", "70000"]).code(2);
}

#[test]
fn sizes_are_those_of_the_same_events_in_every_format() {
    let corpus = Corpus::make();
    let printed = json(&nostr(&["sizes", text(&corpus.events()), "--json"]).success());
    let bytes = fs::read(corpus.events()).unwrap().len() as u64;
    assert_eq!(printed["events"], 60);
    assert_eq!(printed["formats"][0]["format"], "json");
    assert_eq!(printed["formats"][0]["raw"], bytes - 60);
    for found in printed["formats"].as_array().unwrap() {
        assert!(found["framed_zstd3"].as_u64() < found["zstd3"].as_u64(), "{found}");
        assert_eq!((&found["events"], &found["unheld"]["events"]), (&60.into(), &0.into()));
    }
    let args = ["--kind", "3", "--formats", "json,cbor-packed", "--json"];
    let printed =
        json(&nostr(&[&["sizes", text(&corpus.events())][..], &args[..]].concat()).success());
    assert_eq!(printed["formats"].as_array().unwrap().len(), 2);
    assert!(printed["events"].as_u64() < Some(60));
    let table = stdout(&nostr(&["sizes", text(&corpus.events())]).success());
    assert!(table.contains("framed zstd-3") && table.contains("proto-binary"), "{table}");
}

#[test]
fn sizes_name_an_event_that_a_format_cannot_hold_and_keep_it_in_the_sums_of_the_others() {
    let corpus = Corpus::make();
    let long = format!(r#""tags":[["summary","{}"]],"#, "x".repeat(40_000));
    let with_long = |line: &str| {
        let (tags, content) =
            (line.find(r#""tags":"#).unwrap(), line.find(r#""content":"#).unwrap());
        format!("{}{long}{}", &line[..tags], &line[content..])
    };
    let file = corpus.changed(3, with_long);
    let line = fs::read_to_string(&file).unwrap().lines().nth(3).unwrap().to_owned();
    let id = serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned();
    let args = ["sizes", text(&file), "--formats", "json,capnp,notepack"];
    let printed = json(&nostr(&[&args[..], &["--json"]].concat()).success());
    let [json, capnp, notepack] = [0, 1, 2].map(|at| &printed["formats"][at]);
    assert_eq!([json, capnp, notepack].map(|it| it["events"].as_u64()), [60, 59, 60].map(Some));
    assert_eq!(capnp["unheld"]["named"][0]["id"], id);
    assert_eq!(notepack["json"]["raw"], json["raw"]);
    let without = json["raw"].as_u64().unwrap() - line.len() as u64;
    assert_eq!(capnp["json"]["raw"], without);
    let out = corpus.path("events.capnp");
    let refused = nostr(&["convert", text(&file), "--to", "capnp", "-o", text(&out)]).code(1);
    assert!(stderr(&refused).contains(&format!("event 3, {id}: ")), "{}", stderr(&refused));
    let table = stdout(&nostr(&args).success());
    assert!(table.contains("capnp cannot hold 1 of the events:"), "{table}");
    assert!(table.contains(&format!("\n  {id} of kind ")), "{table}");
}

#[test]
fn an_analysis_has_kinds_sizes_and_tags() {
    let corpus = Corpus::make();
    let printed = json(&nostr(&["analyze", text(&corpus.events()), "--json"]).success());
    assert_eq!(printed["events"], 60);
    assert_eq!(printed["kinds"][0]["kind"], 1);
    let table = stdout(&nostr(&["analyze", text(&corpus.events())]).success());
    assert!(table.starts_with("60 events, ") && table.contains("by tags"), "{table}");
}

/// Results with rows of two formats, the second of which is faster and shorter.
fn results() -> String {
    let row = |task: &str, variant: &str, per_s: f64, raw: u64| {
        let sizes =
            serde_json::json!({"raw": raw, "gzip6": raw, "zstd3": raw, "framed_zstd3": raw});
        serde_json::json!({
            "task": task, "variant": variant, "peer": "wireproof", "language": "Rust", "version": "1",
            "checks": [], "unit": "event", "units": 1, "bytes": 1, "passes_ns": [1],
            "per_s": {"min": per_s, "median": per_s, "max": per_s}, "mb_per_s": null,
            "sizes": sizes, "counts": {}, "parity": "ok", "note": null,
        })
    };
    let rows: Vec<Value> = [("json", 1e6, 200), ("proto-binary", 2e6, 100)]
        .into_iter()
        .flat_map(|(format, per_s, bytes)| {
            let tasks = ["nostr-serialize", "nostr-deserialize", "nostr-validated", "nostr-size"];
            tasks.map(|task| row(task, format, per_s, bytes))
        })
        .collect();
    serde_json::json!({
        "schema": "wireproof-bench/1", "started": "2026-11-01T00:00:00Z",
        "machine": {"cpu": "a processor", "cores": 1, "features": [], "os": "", "toolchains": {}},
        "corpora": [], "rows": rows, "unavailable": [],
    })
    .to_string()
}

/// The lines of a sample.
fn sample(args: &[&str]) -> Vec<String> {
    let printed = stdout(&nostr(&[&["sample"][..], args].concat()).success());
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn a_sample_is_some_of_the_events_in_their_order_and_the_same_for_a_seed() {
    let corpus = Corpus::make();
    let path = corpus.events();
    let file = fs::read_to_string(&path).unwrap();
    let all: Vec<&str> = file.lines().collect();
    let first = sample(&[text(&path), "--count", "20"]);
    let places = first.iter().map(|line| all.iter().position(|other| other == line).unwrap());
    let places: Vec<usize> = places.collect();
    assert!(places.len() == 20 && places.is_sorted(), "{places:?}");
    assert_eq!(sample(&[text(&path), "--count", "20", "--seed", "0"]), first);
    assert_ne!(sample(&[text(&path), "--count", "20", "--seed", "1"]), first);
    assert_eq!(sample(&[text(&path)]), all);
    let assert = nostr(&["sample", text(&path), "--count", "20"]).success();
    assert!(stderr(&assert).contains("20 of 60 events"), "{}", stderr(&assert));
    for args in
        [["--count", "0"], ["--size", "giant"], ["--tag-count", "6"], ["--stratify", "author"]]
    {
        nostr(&[&["sample", text(&path)][..], &args].concat()).code(2);
    }
}

#[test]
fn a_sample_is_the_same_from_compressed_files_and_from_parts_in_another_order() {
    let corpus = Corpus::make();
    let file = fs::read(corpus.events()).unwrap();
    let (folder, half) = (corpus.path("parts"), file.len() / 2);
    fs::create_dir(&folder).unwrap();
    let middle = half + file[half..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(folder.join("a.jsonl.zst"), zstd::encode_all(&file[middle..], 3).unwrap()).unwrap();
    fs::write(folder.join("b.jsonl"), &file[..middle]).unwrap();
    let archive = corpus.converted("pb.gz");
    let sorted = |args: &[&str]| {
        let mut lines = sample(args);
        lines.sort_unstable();
        lines
    };
    let options = ["--count", "7", "--stratify", "kind"];
    let whole = sorted(&[&[text(&corpus.events())][..], &options].concat());
    assert_eq!(whole.len(), 7);
    for input in [&folder, &archive] {
        assert_eq!(sorted(&[&[text(input)][..], &options].concat()), whole, "{}", input.display());
    }
}

#[test]
fn an_event_that_cannot_be_read_ends_a_sample_with_its_place() {
    let corpus = Corpus::make();
    let path = corpus.changed(7, |_| "{}".to_owned());
    let assert = nostr(&["sample", text(&path)]).code(1);
    assert!(stderr(&assert).contains("event 7, at byte 0: `id` is missing"), "{}", stderr(&assert));
    assert_eq!(stdout(&assert), "");
}

#[test]
fn samples_of_real_events_have_the_kinds_sizes_and_tags_that_are_asked_for() {
    let events = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sample.jsonl");
    let analyzed = |args: &[&str]| {
        fs::write(&file, sample(&[&[text(&events)][..], args].concat()).join("\n")).unwrap();
        let verified = json(&nostr(&["verify", text(&file), "--json"]).success());
        let analysis = json(&nostr(&["analyze", text(&file), "--json"]).success());
        assert_eq!(verified["valid"], analysis["events"]);
        analysis
    };
    let counts = |analysis: &Value, of: &str| {
        let classes = analysis[of].as_array().unwrap();
        classes.iter().map(|class| class["events"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let plain = analyzed(&["--count", "3000"]);
    assert_eq!(plain["events"], 3_000);
    // Half of the events have about half of the notes.
    let all = json(&nostr(&["analyze", text(&events), "--json"]).success());
    let (notes, half) = (&counts(&all, "kinds")[0], &counts(&plain, "kinds")[0]);
    assert!((notes * 4 / 10..notes * 6 / 10).contains(half), "{half} of {notes}");
    let kinds = analyzed(&["--count", "500", "--stratify", "kind", "--kind", "0,1,3,7,10002"]);
    assert_eq!(counts(&kinds, "kinds"), [100; 5]);
    let large = analyzed(&["--size", "large,huge"]);
    let sizes = counts(&all, "size_classes");
    assert_eq!(counts(&large, "size_classes"), [0, 0, 0, sizes[3], sizes[4]]);
    let many = analyzed(&["--tag-count", "many", "--count", "50"]);
    assert_eq!(counts(&many, "tag_classes"), [0, 0, 0, 50, 0]);
    let classes = analyzed(&["--stratify", "tags", "--count", "100"]);
    let massive = counts(&all, "tag_classes")[4].min(20);
    assert_eq!(counts(&classes, "tag_classes").iter().sum::<u64>(), 100);
    assert!(counts(&classes, "tag_classes")[4] >= massive);
}

#[test]
fn a_recommendation_ranks_formats_and_shows_the_weights() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(results().as_bytes()).unwrap();
    let path = text(file.path());
    let printed = json(&nostr(&["recommend", path, "--json"]).success());
    assert_eq!(printed["candidates"][0]["format"], "proto-binary");
    let printed = stdout(&nostr(&["recommend", path]).success());
    assert!(printed.contains("validated   40  share of the fastest"), "{printed}");
    assert!(printed.contains("measured 2026-11-01T00:00:00Z on a processor"), "{printed}");
    let tooling = ["--speed", "0", "--size", "0", "--validated", "0"];
    let printed = stdout(&nostr(&[&["recommend", path][..], &tooling[..]].concat()).success());
    let best: Vec<_> = printed.lines().nth(1).unwrap().split_whitespace().take(2).collect();
    assert_eq!(best, ["1", "json"], "{printed}");
    nostr(&[&["recommend", path, "--tooling", "0"][..], &tooling[..]].concat()).code(2);
}

#[test]
fn a_file_without_results_or_without_nostr_rows_is_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.json");
    fs::write(&path, "{}").unwrap();
    let assert = nostr(&["recommend", text(&path)]).code(1);
    assert!(stderr(&assert).contains("not the results of a run"), "{}", stderr(&assert));
    let mut none: Value = serde_json::from_str(&results()).unwrap();
    none["rows"] = Value::Array(Vec::new());
    fs::write(&path, none.to_string()).unwrap();
    let assert = nostr(&["recommend", text(&path)]).code(1);
    assert!(stderr(&assert).contains("no rows of our own codecs"), "{}", stderr(&assert));
}

#[test]
fn real_events_are_all_valid_and_come_back_from_an_archive() {
    let events = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let report = json(&nostr(&["verify", text(&events), "--json"]).success());
    assert_eq!((&report["events"], &report["valid"]), (&6_232.into(), &6_232.into()));
    let dir = tempfile::tempdir().unwrap();
    let archive = dir.path().join("events.pb.gz");
    nostr(&["convert", text(&events), "--to", "pb.gz", "-o", text(&archive)]).success();
    let report = json(&nostr(&["verify", text(dir.path()), "--json"]).success());
    assert_eq!(report["valid"], 6_232);
    let printed = json(&nostr(&["analyze", text(&archive), "--json"]).success());
    assert_eq!(printed["json_bytes"]["max"], 450_386);
    let printed = json(&nostr(&["sizes", text(&archive), "--kind", "7", "--json"]).success());
    assert_eq!(printed["events"], 728);
    let args = ["sizes", text(&archive), "--kind", "30023", "--formats", "capnp", "--json"];
    let printed = json(&nostr(&args).success());
    let unheld = &printed["formats"][0]["unheld"];
    assert_eq!((&printed["formats"][0]["events"], &unheld["events"]), (&100.into(), &1.into()));
    assert!(unheld["named"][0]["id"].as_str().unwrap().starts_with("43b392c5423120a4"), "{unheld}");
}

/// A signed event with U+0001 in its content, whose id is the hash of the JSON with `\u0001`.
const ESCAPED_ID: &str = concat!(
    r#"{"id":"6f91552294802bedb75a5dec37da702788443992e6a65eb21acf729e808e64e3","pubkey":"989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f","created_at":1700000123,"kind":1,"tags":[],"content":"a\u0001b","sig":"a7f425e891816d0c0f569201c8334a378fca584faf1a74fb4eef1928dc253394220ee66d86998bdb80984dae6fc6e707d0e077711b6df2b6fa9190fcf02012b8"}"#,
    "\n"
);

/// A signed note with one tag.
const EXAMPLE: &str = wireproof::nostr::example::JSON;
