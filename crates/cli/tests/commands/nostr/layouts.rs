//! `nostr convert`, `get` and `inspect`: events in every layout, and containers.

use std::fs;
use std::path::PathBuf;

use nostr_formats::Format;
use serde_json::Value;

use super::{Corpus, forged, nostr};
use crate::{command, json, run, stderr, stdout, text};

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
    // The first bytes are not a container's.
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

/// A signed note with one tag.
const EXAMPLE: &str = nostr::example::JSON;
