//! `inspect`, `corpus`, `completions` and `bench`: output, exit codes, and usage errors.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use assert_cmd::assert::Assert;
use atproto::corpus;
use atproto::event::{Account, Event, Header, Info, Unknown};
use codec::car;
use codec::cid::{Cid, Codec};
use serde_json::Value;
use tempfile::TempDir;

use crate::{command, json, run, schemas, stderr, stdout, text};

const BLOCK: &[u8] = b"\xa2\x61e\x80\x61l\xf6";

fn inspect(bytes: &[u8], args: &[&str]) -> Assert {
    command(&["inspect", "-"]).args(args).write_stdin(bytes).assert()
}

fn info_frame() -> Vec<u8> {
    Event::Info(Info { name: "OutdatedCursor", message: Some("hold on") }).to_frame()
}

fn account_frame() -> Vec<u8> {
    let account = Account {
        seq: 7,
        did: "did:plc:abc",
        time: "2026-01-01T00:00:00Z",
        active: false,
        status: Some("takendown"),
    };
    Event::Account(account).to_frame()
}

fn archive(blocks: &[(Cid, &[u8])]) -> Vec<u8> {
    let roots: Vec<Cid> = blocks.iter().take(1).map(|(cid, _)| *cid).collect();
    let mut writer = car::Writer::new(Vec::new(), &roots).unwrap();
    for (cid, data) in blocks {
        writer.block(cid, data).unwrap();
    }
    writer.into_inner()
}

/// A small simulated stream, made by the command.
fn stream(dir: &TempDir) -> PathBuf {
    let out = text(dir.path());
    run(&["corpus", "generate", "--seed", "5", "--frames", "6", "--out", out]).success();
    dir.path().join("firehose-frames.bin")
}

#[test]
fn the_version_and_the_help_go_to_standard_output() {
    let version = run(&["--version"]).success();
    assert_eq!(stdout(&version), format!("wireproof {}\n", env!("CARGO_PKG_VERSION")));
    for help in [
        &["--help"][..],
        &["bench", "--help"],
        &["inspect", "--help"],
        &["key", "--help"],
        &["sig", "verify", "--help"],
    ] {
        assert!(stdout(&run(help).success()).contains("Usage: wireproof"));
    }
}

#[test]
fn arguments_that_make_no_sense_are_exit_code_2() {
    for args in [&["juggle"][..], &["inspect"], &["bench", "paint"], &["bench", "--passes", "0"]] {
        let assert = run(args).code(2);
        assert!(stdout(&assert).is_empty(), "{args:?}");
    }
    let unknown = run(&["bench", "--peers", "nobody"]).code(2);
    assert!(stderr(&unknown).starts_with("wireproof: unknown peer \"nobody\"; known peers: "));
}

#[test]
fn a_file_that_is_not_there_is_exit_code_4_and_named() {
    let assert = run(&["inspect", "no-such-file"]).code(4);
    assert!(stderr(&assert).starts_with("wireproof: no-such-file: "));
}

#[test]
fn a_frame_is_shown_as_its_fields() {
    let assert = inspect(&account_frame(), &[]).success();
    let text = stdout(&assert);
    assert!(text.starts_with("frame, "), "{text}");
    assert!(text.contains("#account") && text.contains("did      \"did:plc:abc\""), "{text}");
    assert!(text.contains("status   \"takendown\""), "{text}");
}

#[test]
fn a_frame_as_json_has_the_fields_of_its_event() {
    let frame = json(&inspect(&account_frame(), &["--json"]).success());
    assert_eq!(frame["kind"], "account");
    assert_eq!(frame["seq"], 7);
    assert_eq!(frame["active"], false);
}

#[test]
fn a_block_is_shown_as_a_tree_and_as_the_json_of_its_value() {
    let assert = inspect(BLOCK, &[]).success();
    assert_eq!(stdout(&assert), "CBOR block, 7 bytes\n  e: []\n  l: null\n");
    let value = json(&inspect(BLOCK, &["--json"]).success());
    assert_eq!(value, serde_json::json!({ "e": [], "l": null }));
}

#[test]
fn an_archive_is_shown_with_its_roots_and_blocks() {
    let cid = Cid::of(Codec::DagCbor, BLOCK);
    let archive = archive(&[(cid, BLOCK)]);
    let text = stdout(&inspect(&archive, &[]).success());
    assert!(text.starts_with("CAR version 1, "), "{text}");
    assert!(text.contains(&format!("{cid} 7 bytes")), "{text}");
    assert!(text.ends_with("1 block, every hash checked\n"), "{text}");
    let document = json(&inspect(&archive, &["--json"]).success());
    assert_eq!(document["roots"][0], cid.to_string());
    assert_eq!(document["blocks"][0]["value"]["l"], Value::Null);
    assert_eq!(document["blocks"][0]["hash"], "checked");
}

#[test]
fn a_simulated_stream_is_shown_with_the_records_of_its_operations() {
    let dir = tempfile::tempdir().unwrap();
    let file = stream(&dir);
    let file = text(&file);
    let text = stdout(&run(&["inspect", file, "--limit", "2"]).success());
    assert!(text.contains("$type: \"app.bsky."), "{text}");
    assert!(text.contains("… 4 more frames"), "{text}");
    let document = json(&run(&["inspect", file, "--json"]).success());
    assert_eq!(document["frames"].as_array().unwrap().len(), 6);
    assert_eq!(document["frames"][0]["kind"], "commit");
    assert!(document["frames"][0]["ops"][0]["collection"].is_string());
    assert_eq!(document["frames"][0]["blocks"][0]["hash"], "checked");
}

#[test]
fn types_of_messages_beyond_a_hundred_are_counted_together() {
    let frame = |number: u32| {
        let kind = format!("#type-{number}");
        let header = Header { op: Header::MESSAGE, kind: Some(&kind) };
        Event::Unknown(Unknown { header, payload: b"\xa0" }).to_frame()
    };
    let frames: Vec<Vec<u8>> = (0..500).chain(0..3).map(frame).collect();
    let printed = stdout(&inspect(&corpus::write(frames.iter().map(Vec::as_slice)), &[]).success());
    let summary = printed.lines().last().unwrap();
    assert!(
        summary.contains("2 \"#type-0\"") && summary.contains("400 of other types"),
        "{summary}"
    );
}

#[test]
fn bad_bytes_are_refused_with_the_rule_the_offset_and_the_bytes_around_it() {
    let assert = inspect(b"\xa2\x61b\x01\x61a\x02", &[]).code(1);
    let message = stderr(&assert);
    assert!(
        message.starts_with("wireproof: standard input: at byte 4: map keys out of order"),
        "{message}"
    );
    assert!(message.contains("00000000  a2 61 62 01 [61] 61 02"), "{message}");
    assert!(message.contains("--as"), "{message}");
    assert!(stdout(&assert).is_empty());
}

#[test]
fn a_bad_frame_in_a_file_is_named_and_its_offset_is_that_of_the_file() {
    let good = info_frame();
    let mut bad = account_frame();
    bad.push(0);
    let file = corpus::write([&good[..], &bad]);
    for args in [&[][..], &["--json"]] {
        let message = stderr(&inspect(&file, args).code(1));
        let at = file.len() - 1;
        let expected = format!("standard input: frame 1, at byte {at}: bytes follow the end");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn an_archive_with_a_changed_block_is_refused() {
    let cid = Cid::of(Codec::DagCbor, BLOCK);
    let message = stderr(&inspect(&archive(&[(cid, b"\xa2\x61e\x80\x61l\xf5")]), &[]).code(1));
    assert!(message.contains("a block whose SHA-256 is not the one in its CID"), "{message}");
}

#[test]
fn every_cut_of_a_frame_is_refused_and_none_is_a_crash() {
    let frame = account_frame();
    for cut in 0..frame.len() {
        inspect(&frame[..cut], &["--as", "frame"]).code(1);
    }
}

#[test]
fn a_kind_can_be_forced() {
    let message = stderr(&inspect(BLOCK, &["--as", "car"]).code(1));
    assert!(!message.contains("--as"), "nothing was guessed: {message}");
}

#[test]
fn colour_is_there_when_it_is_asked_for_and_never_in_a_pipe_by_itself() {
    let escapes = |args: &[&str]| stdout(&inspect(BLOCK, args).success()).contains('\u{1b}');
    assert!(!escapes(&[]));
    assert!(escapes(&["--color", "always"]));
    assert!(!escapes(&["--color", "never"]));
}

#[test]
fn the_same_seed_makes_the_same_files_and_another_seed_others() {
    let make = |seed: &str| {
        let dir = tempfile::tempdir().unwrap();
        let out = text(dir.path());
        let args = ["corpus", "generate", "--seed", seed, "--frames", "4", "--out", out];
        run(&args).success();
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        (read("firehose-frames.bin"), read("firehose-frames.json"))
    };
    let first = make("1");
    assert_eq!(first, make("1"));
    assert_ne!(first.0, make("2").0);
}

#[test]
fn records_and_a_repository_are_made_with_their_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let out = text(dir.path());
    let args = ["corpus", "generate", "records", "repository", "--records", "20", "--out", out];
    run(&args).success();
    let json = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(dir.path().join(name)).unwrap()).unwrap()
    };
    assert_eq!(json("mst-records.json")["counts"]["records"], 20);
    let description = json("repository.json");
    assert_eq!(description["counts"]["records"], 20);
    let archive = fs::read(dir.path().join("repository.car")).unwrap();
    let car = car::read(&archive, &car::Options::default()).unwrap();
    let root = car.roots.first().and_then(|root| root.to_cid()).unwrap();
    assert_eq!(description["commit"], root.to_string());
    assert_eq!(description["counts"]["blocks"], car.blocks.len());
}

#[test]
fn a_stream_comes_with_the_keys_of_its_accounts() {
    let dir = tempfile::tempdir().unwrap();
    let frames = stream(&dir);
    let accounts = fs::read(frames.with_file_name("accounts.json")).unwrap();
    let accounts: BTreeMap<String, String> = serde_json::from_slice(&accounts).unwrap();
    let described: Value =
        serde_json::from_slice(&fs::read(frames.with_extension("json")).unwrap()).unwrap();
    let described = described["accounts"].as_array().unwrap();
    assert_eq!(accounts.len(), described.len());
    for account in described {
        assert_eq!(account["signing_key"], accounts[account["did"].as_str().unwrap()]);
    }
}

#[test]
fn the_hostile_set_is_what_its_manifest_says() {
    let dir = tempfile::tempdir().unwrap();
    let out = text(dir.path());
    run(&["corpus", "hostile", "--out", out]).success();
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    let manifest: Value = serde_json::from_slice(&read("hostile.json")).unwrap();
    let cases = manifest["cases"].as_array().unwrap();
    assert!(cases.len() > 300);
    for case in cases {
        let file = case["file"].as_str().unwrap();
        let bytes = read(file);
        assert_eq!(case["file_bytes"], bytes.len(), "{file}");
        let digest = kernels::sha256::digest(&bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(case["sha256"], digest, "{file}");
        let given = Path::new(file).with_extension("json");
        let given: Value = serde_json::from_slice(&read(given.to_str().unwrap())).unwrap();
        for field in ["did", "signing_key", "now"] {
            assert_eq!(given.get(field), case.get(field), "{file}");
        }
        assert_eq!(given.get("expect"), None, "{file}");
        if case["kind"] == "frames" {
            assert!(corpus::read(&bytes).is_ok(), "{file}");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_exit_code_4() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let inside = file.join("folder");
    let args = ["corpus", "generate", "--frames", "1", "--out", text(&inside)];
    run(&args).code(4);
}

#[test]
fn the_repository_among_the_examples_is_the_one_that_the_generator_makes() {
    let dir = tempfile::tempdir().unwrap();
    run(&["corpus", "generate", "repository", "--records", "60", "--out", text(dir.path())])
        .success();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/examples");
    let read = |path: PathBuf| fs::read(path).unwrap();
    let example = read(examples.join("repository.car"));
    assert_eq!(read(dir.path().join("repository.car")), example);
    let parse = |path| serde_json::from_slice::<Value>(&read(path)).unwrap();
    let sidecar = parse(dir.path().join("repository.json"));
    assert_eq!(parse(examples.join("repository.did.json")), sidecar["didDoc"]);
}

#[test]
fn every_shell_gets_a_completion_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&run(&["completions", shell]).success());
        assert!(script.contains("wireproof"), "{shell}");
    }
}

#[test]
fn a_program_built_with_the_page_writes_it_and_another_one_says_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("page.html");
    let assert = run(&["page", "--out", text(&out)]);
    if program::page::PAGE.is_none() {
        let message = stderr(&assert.failure().code(2));
        assert!(message.contains("cargo xtask page") && message.lines().count() == 1, "{message}");
        assert!(!out.exists());
        return;
    }
    assert.success();
    let page = fs::read_to_string(out).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("Content-Security-Policy"));
    assert_eq!(stdout(&run(&["page", "--out", "-"]).success()), page);
}

#[test]
fn every_command_gets_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    run(&["man", text(dir.path())]).success();
    let page = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(page("wireproof.1").contains("verify"));
    assert!(page("wireproof-verify.1").contains("did\\-doc"));
    assert!(page("wireproof-frames-verify.1").contains("fail\\-on"));
    assert!(!dir.path().join("wireproof-runner.1").exists(), "a hidden command");
}

#[test]
fn every_command_that_prints_json_has_a_schema() {
    let dir = tempfile::tempdir().unwrap();
    run(&["man", text(dir.path())]).success();
    let mut count = 0;
    for page in fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let name = page.file_stem().unwrap().to_str().unwrap();
        let name = name.strip_prefix("wireproof").unwrap().trim_start_matches('-');
        let prints_json = fs::read_to_string(&page).unwrap().contains("\\-\\-json\\fR");
        // The results of `bench` have their own format, with its version in `schema`.
        if prints_json && !name.starts_with("bench") {
            assert!(schemas::has(name), "{name}");
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("frames.bin");
    let frame = info_frame();
    // More than a pipe holds.
    fs::write(&file, corpus::write((0..20_000).map(|_| &frame[..]))).unwrap();
    for args in [&["--limit", "0"][..], &["--json"]] {
        let mut child = Process::new(env!("CARGO_BIN_EXE_wireproof"))
            .args(["inspect", text(&file)])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_bench_of_ourselves_proves_equal_work_in_every_row_of_every_task_and_prints_only_json() {
    let dir = tempfile::tempdir().unwrap();
    let work_dir = text(dir.path());
    let bench = ["bench", "--all", "--peers", "wireproof", "--quick", "--work-dir", work_dir];
    let mut bench = command(&bench);
    bench.env_remove("WIREPROOF_FIXTURES").args(["--json", "-"]);
    let results = json(&bench.assert().success());
    assert_eq!(results["schema"], "wireproof-bench/1");
    let rows = results["rows"].as_array().unwrap();
    for row in rows {
        assert_eq!(row["parity"], "ok", "{row}");
        // Hostile cases are judged once and not timed, and so are lengths.
        let is_untimed = ["hostile", "nostr-size"].iter().any(|task| row["task"] == *task);
        let passes = if is_untimed { 0 } else { 3 };
        assert_eq!(row["passes_ns"].as_array().unwrap().len(), passes, "{row}");
    }
    for (task, unit, variant) in [
        ("decode", "frame", "verified/arena-reuse"),
        ("sigs", "commit", "full/batch-cached"),
        ("sigs", "commit", "preparsed/batch@mixed"),
        ("sigs", "commit", "full/batch-cached@many-accounts"),
        ("commit", "frame", "full/batch@many-accounts"),
        ("mst", "operation", "mixed"),
        ("schnorr", "event", "verify/batch"),
        ("nostr-deserialize", "event", "notepack"),
        ("nostr-validated", "event", "json/batch"),
        ("nostr-fields", "event", "ndb-note/both"),
        ("nostr-size", "event", "wireproof@kind-3"),
    ] {
        let is_it = |row: &&Value| row["task"] == task && row["variant"] == variant;
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no {variant}"));
        assert_eq!(row["unit"], unit);
    }
    // Signatures have three corpora. Frames are decoded and judged, frames of many accounts only judged. Events are in one
    // file, and some of them by kind and by class in files of their own.
    assert_eq!(results["corpora"].as_array().unwrap().len(), 12);
    assert_eq!(results["unavailable"], Value::Array(Vec::new()));
}

#[test]
fn sizes_of_real_events_stand_below_the_others_and_are_left_out_without_fixtures() {
    let dir = tempfile::tempdir().unwrap();
    run(&["corpus", "nostr", "--events", "40", "--out", text(dir.path())]).success();
    let events = fs::read_to_string(dir.path().join("nostr-events.jsonl")).unwrap();
    let fixtures = dir.path().join("fixtures");
    fs::create_dir_all(fixtures.join("nostr")).unwrap();
    let first: String = events.split_inclusive('\n').take(7).collect();
    fs::write(fixtures.join("nostr/events.jsonl"), first).unwrap();
    let work_dir = dir.path().join("work");
    let corpus = dir.path().join("nostr-events.jsonl");
    let bench = |fixtures: &[&str]| {
        let args = ["bench", "nostr-size", "--peers", "wireproof", "--work-dir", text(&work_dir)];
        let mut bench = command(&[&args[..], &["--corpus", text(&corpus)], fixtures].concat());
        bench.env_remove("WIREPROOF_FIXTURES");
        bench
    };
    let with = ["--fixtures", text(&fixtures)];
    let table = stdout(&bench(&with).assert().success());
    assert!(table.contains("over 40 events, and 7 real ones (@real)"), "{table}");
    let variants = table.lines().filter_map(|line| line.split_whitespace().next());
    let variants: Vec<&str> = variants.filter(|name| name.starts_with("notepack")).collect();
    assert_eq!(variants[..2], ["notepack", "notepack@real"], "{table}");
    let results = json(&bench(&with).args(["--json", "-"]).assert().success());
    let corpora = results["corpora"].as_array().unwrap();
    assert_eq!(
        (&corpora[1]["name"], &corpora[1]["units"]),
        (&"nostr-events-real".into(), &7.into())
    );
    let real = results["rows"].as_array().unwrap().iter().find(|row| row["variant"] == "json@real");
    assert_eq!(real.unwrap()["units"], 7);
    let missing = ["--fixtures", text(dir.path())];
    for fixtures in [&[][..], &missing] {
        let table = stdout(&bench(fixtures).assert().success());
        let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("real events are left out: --fixtures names no folder"), "{table}");
        assert!(!table.contains("@real"), "{table}");
    }
}

#[test]
fn a_bench_of_one_task_prints_the_table_of_that_task_alone() {
    let dir = tempfile::tempdir().unwrap();
    let work_dir = text(dir.path());
    let bench = ["bench", "schnorr", "--peers", "wireproof", "--quick", "--work-dir", work_dir];
    let table = stdout(&run(&bench).success());
    assert!(table.contains("schnorr: 400 events") && table.contains("verify/batch"), "{table}");
    assert!(!table.contains("decode") && !table.contains("commit"), "{table}");
}

#[test]
fn a_bench_prints_a_table_and_keeps_its_results() {
    let dir = tempfile::tempdir().unwrap();
    let file = stream(&dir);
    let work_dir = dir.path().join("work");
    let assert = command(&["bench", "decode", "--peers", "wireproof", "--passes", "1"])
        .args([Path::new("--corpus"), &file, Path::new("--work-dir"), &work_dir])
        .assert()
        .success();
    let table = stdout(&assert);
    assert!(table.contains("frames/s") && table.contains("verified/arena-reuse"), "{table}");
    let results = fs::read(work_dir.join("results.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&results).unwrap()["rows"].is_array());
}

#[test]
fn a_corpus_that_is_none_is_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("frames.bin");
    fs::write(&file, "not frames").unwrap();
    let bench = |tasks: &[&str]| {
        command(&["bench"])
            .args(tasks)
            .args([Path::new("--corpus"), &file, Path::new("--work-dir"), dir.path()])
            .assert()
    };
    for (task, fault) in [("decode", "a file of frames"), ("sigs", "a file of signed commits")] {
        assert!(stderr(&bench(&[task]).code(1)).contains(fault), "{task}");
    }
    assert!(stderr(&bench(&[]).code(2)).contains("one file is the corpus of one task"));
}

#[test]
fn a_compressed_archive_and_a_document_with_a_byte_order_mark_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let [archive, document] = ["repo.car.gz", "did.json"].map(|name| dir.path().join(name));
    fs::write(&archive, b"\x1f\x8b\x08\0").unwrap();
    fs::write(&document, b"\xef\xbb\xbf{}").unwrap();
    let (archive, document) = (text(&archive), text(&document));
    let gzip = ": the file is gzip-compressed: decompress it first\n";
    let mark = ": the file begins with a byte order mark: remove its 3 bytes\n";
    for (args, expected) in [
        (&["verify", archive, "--did-doc", document][..], mark),
        (&["verify", archive, "--without-signature"], gzip),
        (&["repo", "stats", archive], gzip),
        (&["inspect", archive], gzip),
        (&["inspect", document], mark),
        (&["plc", "verify", document], mark),
    ] {
        let message = stderr(&run(args).code(1));
        assert!(message.ends_with(expected), "{args:?}: {message}");
    }
}
