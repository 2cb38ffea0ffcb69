//! `archive follow`, and the other commands on its archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use atproto::corpus;
use serde_json::Value;
use simnet::servers::Server;

use crate::line_proofs::get;
use crate::{quiet, schemas, stderr, with_commits};

/// `archive follow` of a network's relay, from its oldest event.
pub(crate) fn archive_follow(
    sim: &simnet::servers::Simulation,
    archive: &Path,
    args: &[&str],
) -> Output {
    archive_following(sim, archive, args).output().unwrap()
}

/// The command of [`archive_follow`].
pub(crate) fn archive_following(
    sim: &simnet::servers::Simulation,
    archive: &Path,
    args: &[&str],
) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let port = sim.port(Server::Pds(0)).to_string();
    command.args(["archive", "follow", "--cursor", "oldest", "--host", &sim.url(Server::Relay(0))]);
    command
        .args(["--plc", &sim.url(Server::Plc), "--development-port", &port, "--to"])
        .arg(archive)
        .args(args);
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("XDG_STATE_HOME", state_home(archive));
    command
}

/// A command about an archive, with `--json`: the document, which follows the schema of the command, and the exit code.
fn archive(command: &str, archive: &Path, args: &[&str]) -> (Value, Option<i32>) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    process.args(["archive", command]).arg(archive).arg("--json").args(args);
    let process = process.env("XDG_CONFIG_HOME", "/nonexistent");
    let output = process.env("XDG_STATE_HOME", state_home(archive)).output().unwrap();
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    schemas::check(&format!("archive-{command}"), &document);
    (document, output.status.code())
}

/// Where the secret of the erasures is.
pub(crate) fn state_home(archive: &Path) -> PathBuf {
    archive.with_extension("state-home")
}

fn rows(stats: &Value, table: &str) -> u64 {
    let tables = stats["tables"].as_array().unwrap();
    tables.iter().find(|line| line["table"] == table).unwrap()["rows"].as_u64().unwrap()
}

#[test]
fn a_followed_stream_is_in_the_archive_once_proved_and_replayed_as_it_came() {
    let (sim, dir) = (with_commits(120), tempfile::tempdir().unwrap());
    let folder = dir.path().join("archive");
    // Two runs: the second one goes on where the first has ended.
    for events in ["50", "70"] {
        let output = archive_follow(&sim, &folder, &["--events", events]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let (stats, _) = archive("stats", &folder, &[]);
    assert_eq!(rows(&stats, "events"), 120);
    assert!(rows(&stats, "ops") >= 120);
    let (report, code) = archive("verify", &folder, &[]);
    assert_eq!(
        (code, &report["event_count"], &report["refused_count"]),
        (Some(0), &120.into(), &0.into())
    );
    assert_eq!(report["proved_count"], 120, "{report}");

    let replayed = dir.path().join("frames.bin");
    let (summary, _) = archive("replay", &folder, &["--to", replayed.to_str().unwrap()]);
    assert_eq!(summary["frame_count"], 120);
    let file = fs::read(&replayed).unwrap();
    let seqs: Vec<_> = corpus::frames(&file).unwrap().map(seq).collect();
    let mut sorted = seqs.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((seqs.len(), sorted.len()), (120, 120));
}

fn seq(frame: &[u8]) -> i64 {
    let mut decoder = atproto::event::Decoder::new(Default::default());
    decoder.decode(frame).unwrap().seq().unwrap()
}

#[test]
fn a_changed_file_is_named_and_the_exit_code_is_1() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let folder = dir.path().join("archive");
    let output = archive_follow(&sim, &folder, &["--events", "20"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut day = fs::read_dir(folder.join("events")).unwrap().map(|entry| entry.unwrap().path());
    let day = day.find(|path| !path.ends_with("_delta_log")).unwrap();
    let file = fs::read_dir(day).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let (report, code) = archive("verify", &folder, &[]);
    assert_eq!((code, &report["refused"]["archive/file"]), (Some(1), &1.into()));
    assert!(file.ends_with(report["findings"][0]["file"].as_str().unwrap()));

    let entry = "events/_delta_log/00000000000000000000.json";
    let text = fs::read_to_string(folder.join(entry)).unwrap();
    fs::write(folder.join(entry), text.replacen("\"numRecords\\\":20", "\"numRecords\\\":21", 1))
        .unwrap();
    assert_ne!(fs::read_to_string(folder.join(entry)).unwrap(), text);
    let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    verify.args(["archive", "verify"]).arg(&folder).env("XDG_CONFIG_HOME", "/nonexistent");
    let output = verify.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(entry), "{}", stderr(&output));
}

#[test]
fn a_repository_is_imported_once_and_its_tree_is_built_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("archive");
    let car = dir.path().join("repository.car");
    let keys = dir.path().join("accounts.json");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        let output = command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    run(&[
        "corpus",
        "generate",
        "repository",
        "--records",
        "700",
        "--out",
        dir.path().to_str().unwrap(),
    ]);
    let manifest = fs::read_to_string(dir.path().join("repository.json")).unwrap();
    let key = &manifest[manifest.find("did:key:").unwrap()..];
    let key = &key[..key.find('"').unwrap()];
    let proof = run(&["verify", car.to_str().unwrap(), "--key", key, "--json"]);
    let proof: Value = serde_json::from_slice(&proof).unwrap();
    let did = proof["repository"]["did"].as_str().unwrap();
    fs::write(&keys, serde_json::json!({ did: key }).to_string()).unwrap();
    for _ in 0..2 {
        let [car, keys, folder] = [&car, &keys, &folder].map(|path| path.to_str().unwrap());
        let import = ["archive", "import", car, "--keys", keys, "--to", folder, "--json"];
        let imported: Value = serde_json::from_slice(&run(&import)).unwrap();
        schemas::check("archive-import", &imported);
        assert_eq!(
            (&imported["repository_count"], &imported["record_count"]),
            (&1.into(), &700.into())
        );
    }
    let (stats, _) = archive("stats", &folder, &[]);
    assert_eq!((rows(&stats, "snapshots"), rows(&stats, "records")), (1, 700));
    let (report, code) = archive("verify", &folder, &[]);
    assert_eq!((code, &report["proved_snapshot_count"]), (Some(0), &1.into()), "{report}");
}

#[test]
fn keys_of_archived_commits_are_compared_with_the_logs_of_the_directory() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    sim.rotate_key(0);
    (0..5).for_each(|_| sim.write_commit_as(0));
    let (folder, log) = (dir.path().join("archive"), dir.path().join("log"));
    let output = archive_follow(&sim, &folder, &["--events", "36"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let logs: Vec<String> = (0..sim.account_count())
        .map(|number| {
            get(&format!("{}/{}/log/audit", sim.url(Server::Plc), sim.account(number).did))
        })
        .collect();
    let import = |text: &str| {
        fs::write(&log, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["archive", "import", "--json", "--plc-log"]).arg(&log);
        command.arg("--to").arg(&folder).env("XDG_CONFIG_HOME", "/nonexistent");
        let output = command.output().unwrap();
        let document = serde_json::from_slice(&output.stdout).inspect(|document: &Value| {
            schemas::check("archive-import", document);
        });
        let count =
            |name: &str| document.as_ref().map_or(0, |document| document[name].as_u64().unwrap());
        let counts = [count("key_history_count"), count("refused_key_history_count")];
        (counts, output.status.code(), stderr(&output))
    };
    // One log, and the others as an export has them.
    assert_eq!(import(&logs[0]).0, [1, 0]);
    let lines: String = logs[1..]
        .iter()
        .flat_map(|log| serde_json::from_str::<Vec<Value>>(log).unwrap())
        .map(|entry| format!("{entry}\n"))
        .collect();
    assert_eq!(import(&lines).0, [5, 0]);
    assert_eq!(import(&lines).0, [5, 0]);
    let (stats, _) = archive("stats", &folder, &[]);
    assert_eq!(rows(&stats, "plc_ops"), 13, "{stats}");
    let (report, code) = archive("verify", &folder, &[]);
    assert_eq!((code, &report["key_history_count"]), (Some(0), &6.into()), "{report}");
    assert_eq!(report["compared_key_count"], report["proved_count"], "{report}");

    #[cfg(feature = "full")]
    queries_leave_out_the_histories_of_hidden_accounts(&sim, &folder);

    // A log that is not its account's history is named and not stored.
    let (counts, code, message) = import(&logs[1].replace("\"sig\":\"", "\"sig\":\"A"));
    assert_eq!((counts, code), ([0, 1], Some(1)), "{message}");
    let (counts, code, message) = import("{\"did\":1}");
    assert_eq!((counts, code), ([0, 0], Some(1)), "{message}");
    let (stats, _) = archive("stats", &folder, &[]);
    assert_eq!(rows(&stats, "plc_ops"), 13);
}

/// `archive query` answers from the histories of accounts that are not hidden.
#[cfg(feature = "full")]
fn queries_leave_out_the_histories_of_hidden_accounts(
    sim: &simnet::servers::Simulation,
    folder: &Path,
) {
    let did = sim.account(1).did;
    let stored = || {
        let mut query = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        query.args(["archive", "query"]).arg(folder).args(["--format", "csv"]);
        query.arg(format!("SELECT seq FROM plc_ops WHERE did = '{did}'"));
        let output = query.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap().lines().skip(1).count()
    };
    assert_eq!(stored(), 2);
    archive("hide", folder, &["--did", &did]);
    assert_eq!(stored(), 0);
    archive("unhide", folder, &["--did", &did]);
    assert_eq!(stored(), 2);
}

#[test]
fn what_is_hidden_is_not_replayed_and_what_is_erased_leaves_the_tables() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let folder = dir.path().join("archive");
    let output = archive_follow(&sim, &folder, &["--events", "60"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let (sealed, _) = archive("seal", &folder, &[]);
    assert_eq!((&sealed["event_count"], &sealed["dropped_bytes"]), (&0.into(), &0.into()));

    let replayed = dir.path().join("frames.bin");
    let replayed = || archive("replay", &folder, &["--to", replayed.to_str().unwrap()]).0;
    let did = &*sim.account(0).did;
    let (hidden, code) = archive("hide", &folder, &["--did", did, "--reason", "court order"]);
    assert_eq!((code, &hidden["did"], &hidden["state"]), (Some(0), &did.into(), &"hidden".into()));
    let count = replayed()["frame_count"].as_u64().unwrap();
    assert!(count < 60, "{count}");
    assert_eq!(archive("unhide", &folder, &["--did", did]).0["state"], "shown");
    assert_eq!(replayed()["frame_count"], 60);
    let record = ["--did", did, "--record", "app.bsky.feed.post/3jt5tqkl6pb2x"];
    assert_eq!(archive("hide", &folder, &record).0["record"], record[3]);

    let (erased, code) = archive("erase", &folder, &["--did", did, "--reason", "takedown"]);
    assert_eq!((code, &erased["reason"]), (Some(0), &"takedown".into()));
    assert!(erased["row_count"].as_u64().unwrap() >= 60 - count, "{erased}");
    assert_eq!(erased["uncommitted_file_count"], 0);
    assert_eq!(
        (replayed()["frame_count"].as_u64(), archive("verify", &folder, &[]).1),
        (Some(count), Some(0))
    );
}

#[test]
fn an_erased_account_comes_back_with_a_later_event_and_the_word_of_its_own_server() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let folder = dir.path().join("archive");
    let frames = dir.path().join("frames.bin");
    let frames = || {
        archive("replay", &folder, &["--to", frames.to_str().unwrap()]).0["frame_count"].as_u64()
    };
    let follow = |events: &str| {
        let output = archive_follow(&sim, &folder, &["--events", events]);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    follow("20");
    let did = &*sim.account(0).did;
    assert_eq!(archive("erase", &folder, &["--did", did]).1, Some(0));
    let others = frames();
    // A relay's word alone, as the server cannot be asked.
    sim.stop_server(Server::Pds(0));
    sim.write_commit_as(0);
    follow("1");
    assert_eq!(frames(), others);
    sim.start_server(Server::Pds(0)).unwrap();
    sim.write_commit_as(0);
    follow("1");
    assert_eq!(frames(), others.map(|others| others + 1));
    assert_eq!(archive("verify", &folder, &[]).1, Some(0));
}

#[test]
fn the_key_of_erasures_is_a_secret_outside_the_archive_that_writing_needs() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let folder = dir.path().join("archive");
    assert!(archive_follow(&sim, &folder, &["--events", "20"]).status.success());
    let did = &*sim.account(0).did;
    let erase = |key: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["archive", "erase"]).arg(&folder).args(["--did", did, "--erasure-key"]);
        command.arg(key).env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
    };
    let inside = erase(&folder.join("erasure.key"));
    assert_eq!(inside.status.code(), Some(2), "{}", stderr(&inside));
    assert!(erase(&dir.path().join("erasure.key")).status.success());
    sim.write_commit_as(1);
    // The default key is another one, or none.
    let refused = archive_follow(&sim, &folder, &["--events", "1"]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("erasure key"), "{}", stderr(&refused));
    let key = dir.path().join("erasure.key");
    let sealed = archive("seal", &folder, &["--erasure-key", key.to_str().unwrap()]);
    assert_eq!((sealed.1, &sealed.0["event_count"]), (Some(0), &1.into()), "nothing was lost");
}

#[test]
fn commits_after_a_repository_get_a_compact_form_that_is_proved_and_files_of_this_day_stay() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let [folder, car, keys] =
        ["archive", "before.car", "accounts.json"].map(|name| dir.path().join(name));
    let account = sim.account(0);
    let port = sim.port(Server::Pds(0)).to_string();
    let mut save = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    save.args(["verify", &account.did, "--plc", &sim.url(Server::Plc)]);
    save.args(["--development-port", &port, "--save"]).arg(&car);
    let output = save.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    fs::write(&keys, serde_json::json!({ &account.did: account.signing_key }).to_string()).unwrap();
    let mut import = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    import.args(["archive", "import"]).arg(&car).arg("--keys").arg(&keys).arg("--to").arg(&folder);
    let output = import.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));

    // Commits of an account with a repository, and of one without.
    for number in [0, 0, 0, 1, 0, 1] {
        sim.write_commit_as(number);
    }
    let output = archive_follow(&sim, &folder, &["--events", "6"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let (compacted, code) = archive("compact", &folder, &[]);
    assert_eq!((code, &compacted["file_count"]), (Some(0), &0.into()), "{compacted}");
    let (thinned, code) = archive("thin", &folder, &["--days", "0"]);
    assert_eq!(
        (code, &thinned["commit_count"], &thinned["kept_count"]),
        (Some(0), &4.into(), &2.into())
    );
    let (report, code) = archive("verify", &folder, &[]);
    assert_eq!((code, &report["compact_count"]), (Some(0), &4.into()), "{report}");
    assert_eq!((&report["proved_count"], &report["refused_count"]), (&6.into(), &0.into()));
}

#[test]
fn what_is_no_archive_is_refused_with_what_makes_one() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("missing")] {
        let mut stats = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        let output = stats.args(["archive", "stats"]).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(4));
        assert!(
            stderr(&output).contains("`archive follow` and `archive import` create one"),
            "{}",
            stderr(&output)
        );
        assert!(!dir.path().join("missing").exists());
    }
}
