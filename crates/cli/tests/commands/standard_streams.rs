//! `-` as an argument: standard input or output where the help names it, and refused elsewhere.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use serde_json::json;
use tempfile::TempDir;

use crate::{command, run, stderr, stdout, text};

/// A folder with an input of every kind.
struct Inputs(TempDir);

impl Inputs {
    fn make() -> Self {
        let inputs = Self(tempfile::tempdir().unwrap());
        let out = text(inputs.0.path());
        run(&["corpus", "generate", "--frames", "3", "--out", out]).success();
        run(&["corpus", "generate", "repository", "--records", "20", "--out", out]).success();
        run(&["corpus", "nostr", "--events", "5", "--out", out]).success();
        let manifest: serde_json::Value =
            serde_json::from_str(&inputs.read("repository.json")).unwrap();
        let (did, key) =
            (manifest["did"].as_str().unwrap(), manifest["signing_key"].as_str().unwrap());
        inputs.write("keys.json", &json!({ did: key }).to_string());
        inputs.write("did.json", &manifest["didDoc"].to_string());
        inputs.write("key", key);
        inputs.write("log.json", "[]");
        inputs.write("lines.ndjson", "{\"kind\":\"info\",\"verdict\":\"unchecked\"}\n");
        inputs.write("list", &format!("{}\n", inputs.path("repository.car").display()));
        inputs.write("sig.hex", &"01".repeat(64));
        inputs.write("message", "hello");
        let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/fixtures/everything.json");
        fs::copy(results, inputs.path("results.json")).unwrap();
        inputs
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The command in the folder, with the key of the repository for `KEY`.
    fn command(&self, args: &str) -> Command {
        let key = self.read("key");
        let args: Vec<&str> =
            args.split(' ').map(|arg| if arg == "KEY" { &key } else { arg }).collect();
        let mut command = command(&args);
        command.current_dir(self.0.path()).env("XDG_CONFIG_HOME", "/nonexistent");
        command
    }
}

/// Commands, the input that `<` stands for, and the exit code.
const INPUTS: [(&str, &str, i32); 33] = [
    ("verify repository.car --keys <", "keys.json", 0),
    ("verify repository.car --did-doc <", "did.json", 0),
    ("verify repository.car --plc-log <", "log.json", 1),
    ("verify --key KEY <", "repository.car", 0),
    ("verify --key KEY --file <", "repository.car", 0),
    ("verify --key KEY @<", "list", 0),
    ("verify --key KEY --record a.b.c/d <", "repository.car", 0),
    ("frames verify < --keys accounts.json", "firehose-frames.bin", 0),
    ("frames verify firehose-frames.bin --keys <", "accounts.json", 0),
    ("frames verify-lines < --keys accounts.json", "lines.ndjson", 0),
    ("frames verify-lines lines.ndjson --keys <", "accounts.json", 0),
    ("frames verify-lines lines.ndjson --did-doc <", "did.json", 0),
    ("frames verify-lines lines.ndjson --plc-log <", "log.json", 1),
    ("archive import firehose-frames.bin --to archive-of-< --keys <", "accounts.json", 0),
    ("plc verify <", "log.json", 1),
    ("repo ls <", "repository.car", 0),
    ("repo stats <", "repository.car", 0),
    ("repo export <", "repository.car", 0),
    ("repo diff repository.car <", "repository.car", 0),
    ("inspect <", "repository.car", 0),
    ("sig verify --key KEY --hex 00 --sig <", "sig.hex", 1),
    ("sig verify --key KEY --sig 00 --message <", "message", 1),
    ("nostr verify <", "nostr-events.jsonl", 0),
    ("nostr sample <", "nostr-events.jsonl", 0),
    ("nostr sizes <", "nostr-events.jsonl", 0),
    ("nostr analyze <", "nostr-events.jsonl", 0),
    ("nostr convert --to jsonl <", "nostr-events.jsonl", 0),
    ("nostr get < 2", "nostr-events.jsonl", 0),
    ("nostr recommend <", "results.json", 0),
    ("report --svg charts <", "results.json", 0),
    ("bench compare results.json <", "results.json", 0),
    ("bench compare < results.json", "results.json", 0),
    ("resolve --development @<", "message", 2),
];

#[test]
fn standard_input_is_judged_as_a_file_is() {
    let inputs = Inputs::make();
    for (args, input, code) in INPUTS {
        let of_file = inputs.command(&args.replace('<', input)).assert().code(code);
        let mut command = inputs.command(&args.replace('<', "-"));
        let of_stream =
            command.write_stdin(fs::read(inputs.path(input)).unwrap()).assert().code(code);
        assert_eq!(stderr(&of_file).replace(input, "standard input"), stderr(&of_stream), "{args}");
        // Reports of `verify`, `frames verify` and so on have times.
        let first =
            |text: String| text.lines().next().unwrap_or_default().replace(input, "standard input");
        if !args.contains("verify") {
            let [of_file, of_stream] = [&of_file, &of_stream]
                .map(|assert| String::from_utf8_lossy(&assert.get_output().stdout).into_owned());
            assert_eq!(first(of_file), first(of_stream), "{args}");
        }
    }
}

#[test]
fn standard_output_is_written_as_a_file_is() {
    let inputs = Inputs::make();
    for args in
        ["nostr convert nostr-events.jsonl --to jsonl -o >", "repo export repository.car --out >"]
    {
        inputs.command(&args.replace('>', "out")).assert().success();
        let printed = inputs.command(&args.replace('>', "-")).assert().success();
        assert_eq!(fs::read(inputs.path("out")).unwrap(), printed.get_output().stdout, "{args}");
        assert!(!inputs.path("-").exists(), "{args}");
    }
}

#[test]
fn two_inputs_from_standard_input_are_exit_code_2() {
    let inputs = Inputs::make();
    for (args, input) in [
        ("verify - --keys -", "keys.json"),
        ("verify - - --key KEY", "repository.car"),
        ("frames verify - --keys -", "accounts.json"),
        ("frames verify-lines - --keys -", "accounts.json"),
        ("repo diff - -", "repository.car"),
        ("bench compare - -", "results.json"),
        ("report - -", "results.json"),
        ("sig verify --key KEY --sig - --message -", "sig.hex"),
    ] {
        let mut command = inputs.command(args);
        let assert = command.write_stdin(fs::read(inputs.path(input)).unwrap()).assert().code(2);
        // Several targets have their lines among the results.
        let printed = stdout(&assert) + &stderr(&assert);
        assert!(printed.contains("standard input is one input"), "{args}: {printed}");
    }
}

#[test]
fn a_path_that_is_no_stream_refuses_a_dash_and_nothing_is_written() {
    let inputs = Inputs::make();
    for (args, name) in [
        ("verify ada.test --development --save -", "--save: `-` is no file"),
        ("--config - config show", "--config: `-` is no file"),
        ("corpus generate --frames 1 --out -", "--out: `-` is no folder"),
        ("corpus nostr --events 1 --out -", "--out: `-` is no folder"),
        ("corpus hostile --out -", "--out: `-` is no folder"),
        ("capture --development --out -", "--out: `-` is no folder"),
        ("report results.json --out -", "--out: `-` is no folder"),
        ("report results.json --svg -", "--svg: `-` is no folder"),
        ("bench decode --corpus -", "--corpus: `-` is no file"),
        ("bench decode --work-dir -", "--work-dir: `-` is no folder"),
        ("follow --development --state -", "--state: `-` is no folder"),
        ("follow --development --to file:x --outbox -", "--outbox: `-` is no folder"),
        ("archive import - --keys accounts.json --to archive", "FILE|DIR: `-` is no file"),
        ("archive follow --development --to archive --wal -", "--wal: `-` is no folder"),
        ("man -", "`-` is no folder"),
    ] {
        let assert = inputs.command(args).write_stdin("").assert().code(2);
        assert!(stderr(&assert).contains(name), "{args}: {}", stderr(&assert));
        assert!(stdout(&assert).is_empty() && !inputs.path("-").exists(), "{args}");
    }
    // A folder of that name can be named.
    inputs.command("corpus nostr --events 1 --out ./-").assert().success();
    assert!(inputs.path("-/nostr-events.jsonl").exists());
}
