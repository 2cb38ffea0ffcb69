//! Archives in an object store: imports and follows, through kills of both sides, and refusals.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use archive::{Archive, ArchivedEvent, ErasureKey, Storage, Table, VerifyOptions, WorkId};
use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};
use tokio::time::sleep;
use wireproof_interop::kit;
use wireproof_interop::s3::{S3, SECRET_KEY, files, variables};

use crate::activity::wireproof;
use crate::{round_time, scaled};

/// The bucket, and the archive in it.
pub(crate) const BUCKET: &str = "history";
pub(crate) const ADDRESS: &str = "s3://history/relays/one";

pub(crate) fn open(variables: &[(String, String)]) -> Archive {
    open_at(ADDRESS, variables)
}

pub(crate) fn open_at(address: &str, variables: &[(String, String)]) -> Archive {
    let archive = Archive::new(Storage::open_with(address, variables).expect("an address"));
    archive.with_erasure_key(Some(ErasureKey::from_bytes([7; 32])))
}

/// An event that was refused when it came.
pub(crate) fn event(seq: i64, frame: &[u8]) -> ArchivedEvent<'_> {
    ArchivedEvent {
        did: Some(["did:web:alice.test", "did:web:bob.test"][seq as usize % 2]),
        arrival: NOW + seq,
        host: "relay.test",
        seq: Some(seq),
        kind: "",
        received: NOW,
        verdict: "frame/truncated",
        key: None,
        judge: "test",
        frame,
    }
}

/// 2026-07-01 in microseconds.
pub(crate) const NOW: i64 = 1_782_864_000_000_000;

/// The sequence numbers of all events, in order, repeated as often as they are there.
pub(crate) async fn seqs(archive: &Archive) -> Vec<i64> {
    let (mut seqs, mut events) = (Vec::new(), archive.events().await.expect("the tables"));
    while let Some(row) = events.next().await.expect("a row") {
        seqs.push(row.event().seq.expect("a number"));
    }
    seqs.sort_unstable();
    seqs
}

/// The number of Parquet files in the bucket, and of those in the tables.
pub(crate) async fn file_counts(s3: &S3, archive: &Archive) -> (usize, u64) {
    let is_table = |path: &PathBuf| path.extension().is_some_and(|end| end == "parquet");
    let mut listed = 0;
    for table in Table::ALL {
        listed += archive.table_stats(table).await.expect("a log").files;
    }
    (files(&s3.bucket(BUCKET)).iter().filter(|path| is_table(path)).count(), listed)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_many_parts_is_stored_whole() {
    let kit = kit!(S3);
    let s3 = S3::start(&kit, BUCKET).await;
    let archive = open(&s3.variables());
    let frames = incompressible(40);
    let events = (0..).zip(&frames).map(|(seq, frame)| event(seq, frame)).collect();
    let sealed = archive.seal(events, &WorkId { writer: "test".to_owned(), number: 0 }).await;
    let bytes = sealed.expect("a commit").bytes;
    assert!(bytes > 20 << 20, "{bytes} bytes are one part");
    let report = archive
        .verify(&VerifyOptions::default(), &mut |finding| panic!("{finding:?}"))
        .await
        .expect("the tables");
    assert_eq!((report.events, report.files), (frames.len() as u64, 1));
}

/// Frames of half a mebibyte that do not compress.
fn incompressible(count: usize) -> Vec<Vec<u8>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..count).map(|_| (0..1 << 16).flat_map(|_| next()).collect()).collect()
}

/// The command, with an object store in its environment.
fn command(args: &[&str], variables: &[(String, String)]) -> Command {
    let mut command = Command::new(wireproof());
    command.arg("archive").args(args).env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    let state = std::env::temp_dir().join(format!("wireproof-interop-{}", std::process::id()));
    command.env("XDG_STATE_HOME", state);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// The document that the command prints.
pub(crate) fn json(args: &[&str], variables: &[(String, String)]) -> Value {
    let output = command(args, variables).arg("--json").output().expect("the command starts");
    assert!(output.status.success(), "{args:?}: {}", errors(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of frames and the keys of their accounts.
pub(crate) fn corpus(folder: &Path) -> [String; 2] {
    let mut generate = Command::new(wireproof());
    generate.args(["corpus", "generate", "--frames", "200", "--out"]).arg(folder);
    let output = generate.output().expect("the command starts");
    assert!(output.status.success(), "{}", errors(&output));
    ["firehose-frames.bin", "accounts.json"].map(|name| folder.join(name).display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_works_on_an_archive_in_a_bucket() {
    let kit = kit!(S3);
    let (s3, folder) = (S3::start(&kit, BUCKET).await, tempfile::tempdir().expect("a folder"));
    let (environment, [frames, keys]) = (s3.variables(), corpus(folder.path()));
    let run = |args: &[&str]| json(args, &environment);
    let import = ["import", &frames, "--keys", &keys, "--to", ADDRESS];
    let imported = run(&import)["event_count"].as_u64().expect("a number");
    let stored = files(&s3.bucket(BUCKET));
    run(&import);
    assert_eq!(files(&s3.bucket(BUCKET)), stored, "a second import adds nothing");
    let count = |table: &str, key: &str| -> u64 {
        let stats = run(&["stats", ADDRESS]);
        let mut tables = stats["tables"].as_array().expect("tables").clone().into_iter();
        tables.find(|line| line["table"] == table).expect("a table")[key]
            .as_u64()
            .expect("a number")
    };
    assert_eq!(count("events", "rows"), imported);
    let proved = run(&["verify", ADDRESS])["proved_count"].clone();
    assert!(proved.as_u64().is_some_and(|proved| proved > 100), "{proved}");

    let keys: Value = serde_json::from_slice(&fs::read(&keys).expect("a file")).expect("JSON");
    let did = first_did(&keys);
    let replayed = folder.path().join("replayed.bin").display().to_string();
    let replay = || run(&["replay", ADDRESS, "--to", &replayed])["frame_count"].clone();
    let whole = replay();
    run(&["hide", ADDRESS, "--did", &did]);
    let hidden = replay();
    assert!(hidden.as_u64() < whole.as_u64(), "{hidden} of {whole}");
    run(&["unhide", ADDRESS, "--did", &did]);
    assert_eq!(replay(), whole);
    let erased = run(&["erase", ADDRESS, "--did", &did]);
    // Its events, their operations, and its hiding and showing: two files of one row each.
    assert_eq!(erased["file_count"], 4, "{erased}");
    assert_eq!(replay(), hidden);
    let report = run(&["verify", ADDRESS]);
    assert!(report["proved_count"].as_u64() < proved.as_u64(), "{report}");
    // Erased events are not in the bucket under another name.
    let (stored, listed) = file_counts(&s3, &open(&environment)).await;
    assert_eq!(stored as u64, listed);
}

/// An account of a file of keys.
fn first_did(keys: &Value) -> String {
    match keys {
        Value::Object(keys) => keys.keys().next().expect("an account").clone(),
        keys => keys[0]["did"].as_str().expect("an account").to_owned(),
    }
}

/// `archive follow` of the relay of a network, from its oldest event.
pub(crate) fn follow(sim: &Simulation, wal: &Path, environment: &[(String, String)]) -> Command {
    let mut command = command(&["follow", "--to", ADDRESS, "--cursor", "oldest"], environment);
    let port = sim.port(Server::Pds(0)).to_string();
    command.args(["--host", &sim.url(Server::Relay(0)), "--plc", &sim.url(Server::Plc)]);
    command.args(["--development-port", &port, "--backoff-first-ms", "10"]).arg("--wal").arg(wal);
    command.stdout(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_stores_every_event_once_whichever_side_is_killed() {
    let kit = kit!(S3);
    let mut s3 = S3::start(&kit, BUCKET).await;
    let (environment, folder) = (s3.variables(), tempfile::tempdir().expect("a folder"));
    let (wal, marker) = (folder.path().join("wal"), folder.path().join("marker"));
    let spec =
        Spec { accounts: 6, records: 5, jetstreams: 0, initial_commits: 12, ..Spec::default() };
    let sim = Simulation::start(spec).expect("a network");
    for point in POINTS {
        sim.write_commits(12);
        let mut follow = follow(&sim, &wal, &environment);
        follow.args(["--events", "6"]).env("WIREPROOF_CRASH_POINT", point);
        let output = follow.env("WIREPROOF_CRASH_MARKER", &marker).output().expect("a process");
        let errors = errors(&output);
        assert!(marker.exists() && !output.status.success(), "{point} was not passed: {errors}");
        fs::remove_file(&marker).expect("a file");
    }
    for round in 0..scaled(6, 60) {
        sim.write_commits(12);
        let mut child =
            follow(&sim, &wal, &environment).stderr(Stdio::null()).spawn().expect("a process");
        sleep(round_time(round)).await;
        if round % 2 == 0 {
            s3.run().await;
        }
        interrupt(&child);
        sleep(round_time(round + 3) / 8).await;
        child.kill().expect("a kill");
        child.wait().expect("its end");
    }
    let sent: BTreeSet<i64> =
        sim.sent_events(Server::Relay(0)).iter().map(|event| event.seq).collect();
    let archive = open(&environment);
    let (mut stored, mut said) = (Vec::new(), String::new());
    for seconds in 1..16 {
        let child =
            follow(&sim, &wal, &environment).stderr(Stdio::piped()).spawn().expect("a process");
        sleep(Duration::from_secs(seconds)).await;
        interrupt(&child);
        let output = child.wait_with_output().expect("its end");
        said = errors(&output);
        assert_eq!(output.status.code(), Some(130), "{said}");
        stored = seqs(&archive).await;
        if stored.len() >= sent.len() {
            break;
        }
    }
    assert_eq!(stored, sent.into_iter().collect::<Vec<_>>(), "{said}");
    let report = archive
        .verify(&VerifyOptions::default(), &mut |finding| panic!("{finding:?}"))
        .await
        .expect("the tables");
    assert!(report.proved > 0, "{report:?}");
}

fn interrupt(child: &std::process::Child) {
    let _ = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_used_is_refused_with_the_cure_and_without_the_secret() {
    let kit = kit!(S3);
    let mut s3 = S3::start(&kit, BUCKET).await;
    let folder = tempfile::tempdir().expect("a folder");
    let wal = folder.path().join("wal").display().to_string();
    let right = s3.variables();
    let with = |name: &str, value: &str| -> Vec<(String, String)> {
        let others = right.iter().filter(|(other, _)| other != name).cloned();
        others.chain([(name.to_owned(), value.to_owned())]).collect()
    };
    let [stats, follow] = [&["stats", ADDRESS][..], &["follow", "--wal", &wal, "--to", ADDRESS]];
    let away = variables("http://127.0.0.1:1");
    let wrong_secret = with("AWS_SECRET_ACCESS_KEY", "wrong-secret");
    let no_bucket = ["stats", "s3://elsewhere/relays"];
    let cases: [Case<'_>; 11] = [
        (stats, &right, 4, "`archive follow` and `archive import` create one"),
        (stats, &wrong_secret, 3, "AWS_SECRET_ACCESS_KEY"),
        (stats, &with("AWS_ACCESS_KEY_ID", "eve"), 3, "AWS_ACCESS_KEY_ID"),
        (follow, &wrong_secret, 3, "AWS_SECRET_ACCESS_KEY"),
        (&no_bucket, &right, 3, "the bucket of the address does not exist"),
        (stats, &away, 3, "check AWS_ENDPOINT_URL"),
        (stats, &with("AWS_ALLOW_HTTP", "false"), 2, "set AWS_ALLOW_HTTP=true"),
        (stats, &with("AWS_REGION", "mars"), 3, "AWS_REGION"),
        (&["follow", "--to", ADDRESS], &right, 2, "--wal"),
        (&["stats", "s3://"], &right, 2, "s3://BUCKET/PREFIX"),
        (&["stats", "ftp://history/one"], &right, 2, "az://CONTAINER/PREFIX"),
    ];
    let check = |args: &[&str], environment: &[(String, String)], code: i32, text: &str| {
        let output = command(args, environment).output().expect("the command starts");
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        assert!(errors.contains(text), "{args:?} says {text}: {errors}");
        assert!(!errors.contains("wrong-secret") && !errors.contains(SECRET_KEY), "{errors}");
    };
    for (args, environment, code, text) in cases {
        check(args, environment, code, text);
    }
    s3.kill();
    check(stats, &right, 3, "check AWS_ENDPOINT_URL");
}

/// A command, its environment, its exit code, and the name in its message.
type Case<'a> = (&'a [&'a str], &'a [(String, String)], i32, &'a str);

/// Crash points of a run, with the passages at which they end.
const POINTS: [&str; 7] = [
    "archive/wal-written@1",
    "archive/wal-synced@1",
    "archive/uploaded@1",
    "archive/committed@1",
    "archive/committed@2",
    "archive/listed@1",
    "archive/deleted@1",
];
