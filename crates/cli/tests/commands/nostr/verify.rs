//! `nostr verify`: verdicts, filters, and the events passed to the next program.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Corpus, ESCAPED_ID, forged, nostr};
use crate::{command, json, stderr, stdout, text};

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
fn a_valid_event_goes_on_before_the_next_one_arrives() {
    let corpus = Corpus::make();
    let lines = fs::read_to_string(corpus.events()).unwrap();
    let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"))
        .args(["nostr", "verify", "--emit", "valid", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = verify.stdin.take().unwrap();
    let mut emitted = BufReader::new(verify.stdout.take().unwrap()).lines();
    // Every line waits for the one before; with a whole group in memory this would not end.
    for line in lines.lines().take(3) {
        writeln!(to, "{line}").unwrap();
        assert_eq!(emitted.next().unwrap().unwrap(), line);
    }
    drop(to);
    assert!(emitted.next().is_none());
    assert!(verify.wait().unwrap().success());
}

#[test]
fn control_characters_of_events_are_written_as_escapes() {
    let corpus = Corpus::make();
    let content = "a\u{9b}31m\u{202e}b\u{7f}\u{2066}é👩\u{200d}👧";
    let path = corpus.changed(3, |line| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        event["content"] = content.into();
        event["tags"] = serde_json::json!([["t", "\u{85}"]]);
        event.to_string()
    });
    assert!(fs::read_to_string(&path).unwrap().contains('\u{9b}'));
    let database = corpus.path("container.nostr");
    nostr(&["convert", text(&path), "--to", "container", "-o", text(&database)]).success();
    for (args, code) in [
        (&["verify", text(&path), "--emit", "all"][..], 1),
        (&["verify", text(&database), "--emit", "invalid"], 1),
        (&["sample", text(&path)], 0),
        (&["convert", text(&path), "--to", "jsonl"], 0),
        (&["convert", text(&path), "--to", "json"], 0),
        (&["get", text(&path), "3"], 0),
    ] {
        let printed = stdout(&nostr(args).code(code));
        let is_control = |letter: char| letter != '\n' && letter.is_control();
        assert!(!printed.contains(is_control) && !printed.contains('\u{202e}'), "{args:?}");
        assert!(!printed.contains('\u{2066}') && printed.contains("👩\u{200d}👧"), "{args:?}");
        let is_array = printed.starts_with('[');
        let events: Vec<Value> = if is_array {
            serde_json::from_str(&printed).unwrap()
        } else {
            printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        assert!(events.iter().any(|event| event["content"] == content), "{args:?}");
    }
    // A line that is not an event is passed on unchanged.
    let path = corpus.changed(3, |_| "no event \u{9b}".to_owned());
    let printed = stdout(&nostr(&["verify", text(&path), "--emit", "invalid"]).code(1));
    assert_eq!(printed, "no event \u{9b}\n");
}
