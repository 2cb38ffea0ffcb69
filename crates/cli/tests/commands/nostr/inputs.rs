//! Files that the `nostr` commands refuse, and the memory that any file takes.

use std::fs;

use super::{Corpus, ESCAPED_ID, nostr};
use crate::{json, stderr, stdout, text};

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
fn other_containers_of_lines_are_read_or_named_with_what_reads_them() {
    let corpus = Corpus::make();
    let lines = fs::read(corpus.events()).unwrap();
    let verify = |name: &str, content: &[u8]| {
        let path = corpus.path(name);
        fs::write(&path, content).unwrap();
        nostr(&["verify", text(&path)])
    };
    // A skippable frame first, as pzstd writes it (RFC 8878, 3.1.2).
    let frame = zstd::encode_all(&lines[..], 3).unwrap();
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..], &frame].concat();
    verify("a.jsonl.zst", &skippable).success();
    // Padding after the last member, as tapes have it.
    let gzip = fs::read(corpus.converted("pb.gz")).unwrap();
    verify("b.pb.gz", &[&gzip[..], &[0; 1_000]].concat()).success();
    verify("c.pb.gz", &[&gzip[..], &[0; 7], &gzip].concat()).success();
    verify("d.pb.gz", &[&gzip[..], b"garbage"].concat()).code(1);
    // Events without line breaks, and a line with `}{` in its texts.
    let joint: Vec<u8> = lines.iter().copied().filter(|byte| *byte != b'\n').collect();
    verify("e.jsonl", &joint).success();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(lines.iter().flat_map(|b| [*b, 0])).collect();
    let array = [b"[", lines.split(|b| *b == b'\n').next().unwrap(), b"]"].concat();
    for (name, content, message) in [
        ("f.jsonl", utf16, "iconv -f UTF-16"),
        ("g.jsonl", array, "--from json reads it"),
        ("h.jsonl", [&lines[..], &[0; 5_000]].concat(), "after event 60: the rest is NUL bytes"),
    ] {
        let output = verify(name, &content).code(1).get_output().stderr.clone();
        assert!(String::from_utf8_lossy(&output).contains(message), "{name}");
    }
}

#[test]
fn control_characters_of_an_event_are_written_as_escapes() {
    let corpus = Corpus::make();
    let content = "\"content\":\"\u{9b}2J\u{7f}\u{202e}\u{2764}\u{fe0f}";
    let path = corpus.changed(0, |line| line.replacen("\"content\":\"", content, 1));
    let output = nostr(&["get", text(&path), "0"]).success().get_output().stdout.clone();
    let line = String::from_utf8(output).unwrap();
    assert!(line.contains("\\u009b2J\\u007f\\u202e\u{2764}\u{fe0f}"), "{line}");
}
