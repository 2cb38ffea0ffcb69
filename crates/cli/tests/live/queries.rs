//! `archive query`: the rows that statements see.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::archives::state_home;
use crate::stderr;

/// An archive of a generated stream, and the keys of its accounts.
struct Archived {
    dir: TempDir,
}

impl Archived {
    fn new(frames: &str) -> Self {
        let archived = Self { dir: tempfile::tempdir().unwrap() };
        let dir = archived.dir.path().to_str().unwrap();
        archived.succeed(&["corpus", "generate", "--frames", frames, "--out", dir]);
        archived.succeed(&[
            "archive",
            "import",
            archived.path("firehose-frames.bin").to_str().unwrap(),
            "--keys",
            archived.path("accounts.json").to_str().unwrap(),
            "--to",
            archived.folder().to_str().unwrap(),
        ]);
        archived
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn folder(&self) -> PathBuf {
        self.path("archive")
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.env("XDG_STATE_HOME", state_home(&self.folder()));
        command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
    }

    fn succeed(&self, args: &[&str]) -> Vec<u8> {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output.stdout
    }

    /// A command about the archive.
    fn archive(&self, command: &str, args: &[&str]) -> Vec<u8> {
        let folder = self.folder();
        self.succeed(&[&["archive", command, folder.to_str().unwrap()], args].concat())
    }

    fn query(&self, sql: &str, args: &[&str]) -> Output {
        let folder = self.folder();
        self.run(&[&["archive", "query", folder.to_str().unwrap(), sql], args].concat())
    }

    /// The rows of an answer, as objects.
    fn rows(&self, sql: &str, args: &[&str]) -> Vec<Value> {
        let output = self.query(sql, &[&["--format", "ndjson"], args].concat());
        assert!(output.status.success(), "{sql}: {}", stderr(&output));
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// The number in the only column of the only row.
    fn count(&self, sql: &str) -> u64 {
        let rows = self.rows(&format!("SELECT count(*) AS n FROM {sql}"), &[]);
        rows[0]["n"].as_u64().unwrap()
    }
}

#[test]
fn records_of_stored_frames_are_those_of_the_commits() {
    let archived = Archived::new("200");
    let written = archived.count("ops WHERE action <> 'delete'");
    assert!(written > 100, "{written}");
    assert_eq!(
        archived.count("ops WHERE action <> 'delete' AND json(record) IS NOT NULL"),
        written
    );
    assert_eq!(archived.count("ops WHERE action = 'delete' AND record IS NOT NULL"), 0);
    // The simulator's records name their own collection.
    let named = "record_text(record, '$type') = collection";
    assert_eq!(archived.count(&format!("ops WHERE action <> 'delete' AND {named}")), written);
    let rows = archived.rows(
        "SELECT at_uri(did, collection, rkey) AS uri, did, cid(record) AS cid FROM ops LIMIT 3",
        &[],
    );
    for row in rows {
        let (uri, did) = (row["uri"].as_str().unwrap(), row["did"].as_str().unwrap());
        assert!(uri.starts_with(&format!("at://{did}/")), "{uri}");
        assert!(
            row["cid"].is_null() || row["cid"].as_str().unwrap().starts_with("bafyrei"),
            "{row}"
        );
    }
}

#[test]
fn a_proof_of_a_record_is_one_that_verify_accepts_and_a_proof_of_another_is_not() {
    let archived = Archived::new("200");
    let sql = "SELECT o.did, o.collection, o.rkey, e.key, proof(o.did, o.collection, o.rkey) AS car \
               FROM ops o JOIN events e ON o.did = e.did AND o.arrival = e.arrival ORDER BY o.arrival DESC LIMIT 5";
    let rows = archived.rows(sql, &[]);
    assert_eq!(rows.len(), 5);
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let car = from_hex(&text("car"));
        fs::write(archived.path("slice.car"), car).unwrap();
        let slice = archived.path("slice.car");
        let verify = |rkey: &str| {
            let uri = format!("at://{}/{}/{rkey}", text("did"), text("collection"));
            archived.run(&[
                "verify",
                slice.to_str().unwrap(),
                "--record",
                &uri,
                "--key",
                &text("key"),
            ])
        };
        let output = verify(&text("rkey"));
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let none =
        archived.rows("SELECT proof('did:web:nobody.test', 'app.test.note', 'a') AS car", &[]);
    assert!(none[0]["car"].is_null(), "{none:?}");
}

/// The bytes of hexadecimal text.
fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn statements_see_nothing_of_what_is_hidden_or_erased() {
    let archived = Archived::new("200");
    let rows =
        archived.rows("SELECT did FROM ops GROUP BY did ORDER BY count(*) DESC LIMIT 1", &[]);
    let did = rows[0]["did"].as_str().unwrap();
    let of_account = |table: &str| archived.count(&format!("{table} WHERE did = '{did}'"));
    let before = ["events", "ops", "current_records"].map(of_account);
    assert!(before.iter().all(|count| *count > 0), "{before:?}");
    archived.archive("hide", &["--did", did]);
    assert_eq!(["events", "ops", "current_records"].map(of_account), [0, 0, 0]);
    archived.archive("unhide", &["--did", did]);
    assert_eq!(["events", "ops", "current_records"].map(of_account), before);

    let record = &archived.rows(
        &format!("SELECT collection, rkey, arrival FROM ops WHERE did = '{did}' LIMIT 1"),
        &[],
    )[0];
    let path =
        format!("{}/{}", record["collection"].as_str().unwrap(), record["rkey"].as_str().unwrap());
    archived.archive("hide", &["--did", did, "--record", &path]);
    let frame =
        format!("SELECT frame FROM events WHERE did = '{did}' AND arrival = {}", record["arrival"]);
    assert!(archived.rows(&frame, &[])[0]["frame"].is_null());
    assert!(of_account("ops") < before[1]);
    archived.archive("unhide", &["--did", did, "--record", &path]);

    archived.archive("erase", &["--did", did]);
    assert_eq!(["events", "ops", "current_records"].map(of_account), [0, 0, 0]);
}

#[test]
fn a_lexicon_becomes_a_view_with_columns_of_its_types() {
    let archived = Archived::new("200");
    let lexicon = archived.path("post.json");
    let properties = r#"{"text": {"type": "string"}, "createdAt": {"type": "string", "format": "datetime"},
        "langs": {"type": "array", "items": {"type": "string"}}, "missing": {"type": "integer"}}"#;
    let document = format!(
        r#"{{"lexicon": 1, "id": "app.bsky.feed.post", "defs": {{"main": {{"type": "record", "key": "tid",
            "record": {{"type": "object", "properties": {properties}}}}}}}}}"#
    );
    fs::write(&lexicon, document).unwrap();
    let options = ["--lexicon", lexicon.to_str().unwrap()];
    let sql = r#"SELECT uri, text, "createdAt", langs, missing FROM app_bsky_feed_post"#;
    let rows = archived.rows(sql, &options);
    assert_eq!(
        rows.len() as u64,
        archived.count("current_records WHERE collection = 'app.bsky.feed.post'")
    );
    assert!(!rows.is_empty());
    for row in &rows {
        assert!(row["text"].is_string() && row["createdAt"].is_string(), "{row}");
        assert!(row["missing"].is_null(), "{row}");
    }
    let output = archived
        .query("SELECT 1", &["--lexicon", archived.path("accounts.json").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn rows_are_written_in_the_formats_of_other_programs() {
    let archived = Archived::new("50");
    let sql = "SELECT did, count(*) AS ops FROM ops GROUP BY did ORDER BY did";
    let accounts = archived.rows(sql, &[]).len();
    let csv = archived.query(sql, &["--format", "csv"]).stdout;
    assert_eq!(csv.iter().filter(|byte| **byte == b'\n').count(), accounts + 1);
    let table = String::from_utf8(archived.query(sql, &[]).stdout).unwrap();
    assert_eq!(table.lines().count(), accounts + 1, "{table}");
    for (format, magic) in [("parquet", &b"PAR1"[..]), ("arrow", &[0xff; 4])] {
        let file = archived.path("rows");
        let output = archived.query(sql, &["--format", format, "--output", file.to_str().unwrap()]);
        assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
        assert!(fs::read(&file).unwrap().starts_with(magic), "{format}");
    }
}

#[test]
fn statements_that_write_or_name_what_is_not_there_are_refused() {
    let archived = Archived::new("20");
    let outside = archived.path("outside.csv");
    let copy = format!("COPY (SELECT 1) TO '{}'", outside.display());
    let external =
        format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{}'", outside.display());
    for sql in [
        &copy,
        &external,
        "INSERT INTO hidden SELECT * FROM hidden",
        "DROP TABLE events",
        "SET datafusion.execution.batch_size = 1",
        "SELECT nothing FROM events",
        "SELECT * FROM stored_ops",
        "SELECT * FROM elsewhere",
        "SELEC 1",
        "",
    ] {
        let output = archived.query(sql, &[]);
        assert_eq!(output.status.code(), Some(2), "{sql}: {}", stderr(&output));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{sql}");
    }
    assert!(!Path::new(&outside).exists());
}
