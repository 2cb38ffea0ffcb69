//! `follow --to` and `--ack-stdin`: the outbox, its destinations, and the refusals.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use simnet::servers::{AccountStatus, Server};

use crate::webhook::{self, Request};
use crate::{Running, file_lines, follow, stderr, with_commits};

fn ids(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["id"].as_str().expect("an id")).collect()
}

/// Runs a command that is expected to fail; its exit code and messages.
fn refused(mut command: Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), stderr(&output))
}

fn to_files(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

#[test]
fn files_have_each_event_once_over_several_runs_and_nothing_is_printed() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let (folder, mut total) = (dir.path().join("events"), 0);
    for count in ["1", "9", "50"] {
        let to = to_files(&folder);
        let args = ["--to", &to, "--events", count, "--file-bytes", "4000"];
        let output = follow(&sim, dir.path(), &args).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
        total += count.parse::<usize>().unwrap();
        assert_eq!(file_lines(&folder).len(), total);
    }
    let lines = file_lines(&folder);
    let different: BTreeSet<&str> = ids(&lines).into_iter().collect();
    assert_eq!(different.len(), total);
    assert!(lines.iter().all(|line| line["live"] == true && line.get("repeated").is_none()));
    let first = &lines[0];
    let id = format!("{}/{}", first["did"].as_str().unwrap(), first["rev"].as_str().unwrap());
    assert_eq!(first["id"], *id, "of a verified commit");
}

#[test]
fn the_history_of_an_account_is_in_the_table_before_its_events_and_once() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let (did, tables) = (sim.account(1).did, dir.path().join("posts.db"));
    let to = format!("sqlite:{}", tables.display());
    let select = ["--dids", &*did, "--backfill", "--to", &*to];
    let run = |count: &str| {
        let args = [&select[..], &["--events", count]].concat();
        let output = follow(&sim, dir.path(), &args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    run("1");
    let query = |select: &str| -> i64 {
        Connection::open(&tables).unwrap().query_row(select, [], |row| row.get(0)).unwrap()
    };
    let expected = &sim.expected_accounts()[1];
    let expected_count = i64::try_from(expected.records.len()).unwrap();
    assert_eq!(query("SELECT count(*) FROM active_record"), expected_count);
    assert_eq!(query("SELECT complete FROM account"), 1);
    assert_eq!(query("SELECT count(*) FROM event WHERE kind = 'resync' AND number = 1"), 1);
    assert_eq!(query("SELECT count(*) FROM event WHERE kind = 'resync'"), 1);
    assert_eq!(query("SELECT count(*) FROM record WHERE NOT json_valid(record)"), 0);
    let page = include_str!("../../../../docs/guide/into-a-database.md");
    let statement = page.split("```").find_map(|block| block.strip_prefix("sql\n"));
    let file = Connection::open(&tables).unwrap();
    let mut posts = file.prepare(statement.expect("the statement of the guide")).unwrap();
    let texts = posts.query_map([], |row| row.get::<_, Option<String>>(1)).unwrap();
    assert!(texts.flatten().flatten().count() > 0, "texts of posts");
    drop(posts);
    for _ in 0..3 {
        sim.write_commit_as(1);
    }
    // The others of the stream, of which the repository covers all but three.
    let sent = sim.sent_events(Server::Relay(0));
    let others = sent.iter().filter(|event| *event.subject.did == *did).count() - 1;
    run(&others.to_string());
    let applied = "SELECT count(*) FROM event WHERE live AND verdict = 'verified'";
    assert_eq!(query(applied), 3);
    assert_eq!(query("SELECT count(*) FROM event WHERE kind = 'resync'"), 1, "fetched once");
    let expected = &sim.expected_accounts()[1];
    assert_eq!(
        query("SELECT count(*) FROM record"),
        i64::try_from(expected.records.len()).unwrap()
    );

    // Deleted tables: a message names the missing rows, and the history is delivered again.
    fs::remove_file(&tables).unwrap();
    sim.write_commit_as(1);
    let output = follow(&sim, dir.path(), &["--dids", &*did, "--to", &*to, "--events", "1"]);
    let message = stderr(&{ output }.output().unwrap());
    assert!(message.contains("earlier events are missing"), "{message}");
    assert_eq!(query("SELECT complete FROM account"), 0);
    fs::remove_file(&tables).unwrap();
    sim.write_commit_as(1);
    run("1");
    assert_eq!(query("SELECT complete FROM account"), 1);

    // Another destination: the history is delivered again, to both.
    let other = format!("sqlite:{}", dir.path().join("other.db").display());
    sim.write_commit_as(1);
    let args = [&select[..], &["--to", &other, "--events", "1"]].concat();
    let output = follow(&sim, dir.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let other = Connection::open(dir.path().join("other.db")).unwrap();
    let count: i64 = other.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    let expected = &sim.expected_accounts()[1];
    assert_eq!(count, i64::try_from(expected.records.len()).unwrap());
    assert_eq!(query("SELECT count(*) FROM event WHERE kind = 'resync'"), 2);
}

#[test]
fn posts_of_an_account_that_a_handle_names_are_in_a_table_by_one_command() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let (account, tables) = (sim.account(2), dir.path().join("posts.db"));
    let to = format!("sqlite:{}", tables.display());
    let posts = "app.bsky.feed.post";
    let select = ["--dids", &*account.handle, "--collections", posts, "--backfill", "--to", &*to];
    let rows = || -> BTreeSet<(String, String, String)> {
        let file = Connection::open(&tables).unwrap();
        let statement = "SELECT did, collection || '/' || rkey, cid FROM active_record";
        let mut rows = file.prepare(statement).unwrap();
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        rows.query_map([], row).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let expected = || -> BTreeSet<(String, String, String)> {
        let records = &sim.expected_accounts()[2].records;
        let posts = records.iter().filter(|(path, _)| path.starts_with("app.bsky.feed.post/"));
        let row = |(path, cid): (&String, _)| (account.did.clone(), path.clone(), format!("{cid}"));
        posts.map(row).collect()
    };
    let args = [&select[..], &["--events", "1"]].concat();
    let output = follow(&sim, dir.path(), &args).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    let notice = format!("--dids {}: {}", account.handle, account.did);
    assert!(stderr(&output).contains(&notice), "{}", stderr(&output));
    let history = rows();
    assert!(!history.is_empty());
    assert_eq!(history, expected());
    // New posts come after the history.
    for _ in 0..12 {
        sim.write_commit_as(2);
    }
    let (running, since) = (Running::start(follow(&sim, dir.path(), &select)), Instant::now());
    while rows() != expected() && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(running.interrupt().1, Some(130));
    assert_eq!(rows(), expected());
    assert_ne!(rows(), history);
    let file = Connection::open(&tables).unwrap();
    let texts: i64 = file
        .query_row("SELECT count(json_extract(record, '$.text')) FROM record", [], |row| row.get(0))
        .unwrap();
    assert_eq!(usize::try_from(texts).unwrap(), rows().len());
}

#[test]
fn a_handle_without_an_account_is_refused_before_anything_is_stored() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    let tables = dir.path().join("posts.db");
    let to = format!("sqlite:{}", tables.display());
    let (code, message) =
        refused(follow(&sim, dir.path(), &["--dids", "nobody.test", "--to", &to]));
    assert!(message.contains("--dids nobody.test: "), "{message}");
    assert_eq!(code, Some(2), "{message}");
    assert!(!tables.exists());
    let list = dir.path().join("list");
    fs::write(&list, format!("{}\nnobody.test\n", sim.account(0).handle)).unwrap();
    let file = format!("@{}", list.display());
    let (code, message) = refused(follow(&sim, dir.path(), &["--dids", &file, "--to", &to]));
    assert!(message.contains("list, line 2: nobody.test: "), "{message}");
    assert_eq!(code, Some(2), "{message}");
    // An unavailable directory is not the operator's mistake.
    sim.stop_server(Server::Plc);
    let handle = &sim.account(0).handle;
    let (code, message) = refused(follow(&sim, dir.path(), &["--dids", handle, "--to", &to]));
    assert_eq!(
        (code, message.contains(&format!("--dids {handle}: "))),
        (Some(3), true),
        "{message}"
    );
}

#[test]
fn a_reader_with_acknowledgements_gets_again_what_it_did_not_acknowledge() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let start = || {
        let mut command = follow(&sim, dir.path(), &["--ack-stdin", "--events", "30"]);
        command.stdin(Stdio::piped());
        Running::start(command)
    };
    let mut first = start();
    let printed = first.take(30);
    let mut input = first.child.stdin.take().unwrap();
    // The tenth acknowledges the ones before it too; an unknown id is reported.
    writeln!(input, "{}\nunknown", ids(&printed)[9]).unwrap();
    let warning = first.wait_for_stderr("unknown");
    assert!(warning.contains("is not the id of an event"), "{warning}");
    drop(input);
    let (rest, code) = first.wait();
    assert_eq!((rest.len(), code), (0, Some(4)));

    let mut second = follow(&sim, dir.path(), &["--ack-stdin"]);
    second.stdin(Stdio::piped());
    let mut second = Running::start(second);
    let again = second.take(20);
    assert_eq!(ids(&again), ids(&printed)[10..]);
    let mut input = second.child.stdin.take().unwrap();
    writeln!(input, "{}", ids(&again)[19]).unwrap();
    drop(input);
    let (rest, code) = second.wait();
    assert_eq!((rest.len(), code), (0, Some(0)), "nothing is unacknowledged");
}

#[test]
fn the_records_of_a_deleted_account_are_deleted_and_those_of_a_deactivated_one_hidden() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let dids: Vec<String> = (0..3).map(|number| sim.account(number).did).collect();
    let tables = dir.path().join("tables.db");
    let (select, to) = (dids.join(","), format!("sqlite:{}", tables.display()));
    let args = ["--dids", &*select, "--backfill", "--to", &*to];
    let running = Running::start(follow(&sim, dir.path(), &args));
    let query = |select: &str| -> Option<i64> {
        let file = Connection::open_with_flags(&tables, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        file.query_row(select, [], |row| row.get(0)).ok()
    };
    let wait = |what: &str, select: &str, expected: i64| {
        let since = Instant::now();
        while query(select) != Some(expected) {
            assert!(since.elapsed() < Duration::from_secs(60), "{what}: {:?}", query(select));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait("the history", "SELECT count(*) FROM account WHERE complete", 3);
    sim.set_account_status(1, AccountStatus::Deactivated);
    sim.delete_account(0);
    let confirmed = "SELECT count(*) FROM event WHERE code = 'status/confirmed'";
    wait("both are confirmed", confirmed, 2);
    let with_records = "SELECT count(DISTINCT did) FROM record";
    wait("the records of the deleted account are gone", with_records, 2);
    assert_eq!(query("SELECT count(DISTINCT did) FROM active_record"), Some(1));
    assert_eq!(query("SELECT count(*) FROM account WHERE status = 'deleted'"), Some(1));
    let (_, code) = running.interrupt();
    assert_eq!(code, Some(130));
}

/// A receiver that answers the first request with 503, and the others with 200, which it passes on.
pub(crate) fn receiver() -> (String, Receiver<Request>) {
    receive(TcpListener::bind("127.0.0.1:0").unwrap())
}

pub(crate) fn receive(listener: TcpListener) -> (String, Receiver<Request>) {
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, requests) = channel();
    std::thread::spawn(move || {
        let mut is_first = true;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = Request::read(&stream).unwrap();
            let status = if std::mem::take(&mut is_first) { "503 Busy" } else { "200 OK" };
            if status.starts_with("200") && send.send(request).is_err() {
                return;
            }
            stream.write_all(webhook::response(status).as_bytes()).unwrap();
        }
    });
    (url, requests)
}

#[test]
fn a_webhook_gets_signed_requests_until_it_accepts_every_event() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let (url, requests) = receiver();
    let secret = dir.path().join("secret");
    fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    let secret = secret.to_str().unwrap();
    let args = ["--to", &url, "--webhook-secret-file", secret, "--events", "30"];
    let output = follow(&sim, dir.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let requests: Vec<_> = requests.try_iter().collect();
    let lines: Vec<Value> = requests.iter().flat_map(Request::lines).collect();
    lines.iter().for_each(|line| crate::schemas::check("follow", line));
    let different: BTreeSet<&str> = ids(&lines).into_iter().collect();
    assert_eq!((lines.len(), different.len()), (30, 30));
    let is_signed = |request: &Request| {
        request.header("webhook-signature").is_some_and(|value| value.starts_with("v1,"))
    };
    assert!(requests.iter().all(is_signed));
}

#[test]
fn events_are_stored_while_a_destination_is_away_and_delivered_when_it_is_back() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let url = format!("http://{}/hook", conformance::own_address());
    let secret = dir.path().join("secret");
    fs::write(&secret, "a secret of twenty-four bytes").unwrap();
    let folder = dir.path().join("events");
    let (secret, to) = (secret.to_str().unwrap(), to_files(&folder));
    let args = ["--to", &*to, "--to", &*url, "--webhook-secret-file", secret, "--events", "30"];
    let mut away = Running::start(follow(&sim, dir.path(), &args));
    let message = away.wait_for_stderr("delivering the last");
    assert!(message.contains("30 events"), "{message}");
    let (_, code) = away.interrupt();
    assert_eq!(code, Some(130));
    assert_eq!(file_lines(&folder).len(), 30, "the other destination has them");

    // A destination that is not named any more is refused until it is forgotten.
    let (code, message) = refused(follow(&sim, dir.path(), &["--to", &to, "--events", "1"]));
    assert_eq!(code, Some(2), "{message}");
    let name = message.split("--forget ").nth(1).expect("the command").trim().to_owned();
    sim.write_commits(1);
    let args = ["--to", &to, "--events", "1", "--forget", &name];
    let output = follow(&sim, dir.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(file_lines(&folder).len(), 31);
}

#[test]
fn at_the_bound_of_the_outbox_the_stream_waits_and_a_stop_ends_in_its_time() {
    let (sim, dir) = (with_commits(200), tempfile::tempdir().unwrap());
    let args = ["--ack-stdin", "--outbox-events", "50", "--stop-seconds", "3"];
    let mut command = follow(&sim, dir.path(), &args);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let printed = running.take(50);
    let message = running.wait_for_stderr("--outbox-events");
    assert!(message.contains("the stream waits for stdout"), "{message}");
    let mut input = running.child.stdin.take().unwrap();
    writeln!(input, "{}", ids(&printed)[49]).unwrap();
    let more = running.take(50);
    let (rest, code) = running.interrupt();
    assert_eq!((rest.len(), code), (0, Some(130)));

    let mut command = follow(&sim, dir.path(), &["--ack-stdin"]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let all = running.take(150);
    assert_eq!(ids(&all[..50]), ids(&more), "printed again");
    let different: BTreeSet<&str> = ids(&printed).into_iter().chain(ids(&all)).collect();
    assert_eq!(different.len(), 200, "no event is lost, and no id changes");
    drop(input);
}

#[test]
fn an_outbox_that_was_deleted_is_reported_and_no_event_is_passed_over() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let mut command = follow(&sim, dir.path(), &["--ack-stdin"]);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    running.take(20);
    assert_eq!(running.interrupt().1, Some(130));
    fs::remove_dir_all(dir.path().join("state/outbox")).unwrap();
    let (code, message) = refused(follow(&sim, dir.path(), &["--ack-stdin"]));
    assert!(code == Some(4) && message.contains("another outbox"), "{message}");
    assert!(message.contains("--backfill"), "{message}");
}

#[test]
fn options_that_do_not_fit_are_refused_with_the_reason() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    let (did, to) = (sim.account(0).did, to_files(&dir.path().join("events")));
    for (args, expected) in [
        (&["--backfill", "--dids", &*did][..], "need --to"),
        (&["--forget", "x"], "need --to"),
        (&["--to", &to, "--backfill"], "name the accounts with --dids"),
        (&["--to", &to, "--no-verify"], "leave out --no-verify"),
        (&["--ack-stdin", "--jetstream"], "leave out --jetstream"),
        (&["--to", &to, "--to", &to], "is named twice"),
        (&["--to", "amqp://broker/queue"], "expected file:///FOLDER"),
        (&["--to", "https://hook.test/"], "needs --webhook-secret-file"),
    ] {
        let (code, message) = refused(follow(&sim, dir.path(), args));
        assert!(code == Some(2) && message.contains(expected), "{args:?}: {message}");
    }
}

#[test]
fn refused_events_are_sent_again_with_their_ids_and_a_file_of_something_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (url, requests) = receiver();
    let secret = dir.path().join("secret");
    fs::write(&secret, "a secret of twenty-four bytes").unwrap();
    let letters = dir.path().join("refused-webhook.ndjson");
    let letter = |number: u32| {
        let id = format!("did:web:a.test/{number}");
        let event = serde_json::json!({"id": id, "n": number, "record": {"$type": "a.b.c"}});
        serde_json::json!({
            "time": 1, "consumer": "webhook", "id": id, "account": "did:web:a.test", "position": number,
            "attempts": 5, "reason": "status 422", "event": event,
        })
    };
    let text: String = (1..=3).map(|number| format!("{}\n", letter(number))).collect();
    fs::write(&letters, text.clone() + "{\"cut").unwrap();
    let replay = |to: &str, json: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["delivery", "replay"]).arg(&letters).args(["--to", to]).args(json);
        command.arg("--webhook-secret-file").arg(&secret);
        command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
    };
    let output = replay(&url, &["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schemas::check("delivery-replay", &document);
    assert_eq!((&document["event_count"], &document["accepted_count"]), (&3.into(), &3.into()));
    let lines: Vec<Value> = requests.try_iter().flat_map(|request| request.lines()).collect();
    let expected: Vec<Value> = (1..=3).map(|number| letter(number)["event"].clone()).collect();
    assert_eq!(lines, expected);
    // The file stays as it is.
    assert_eq!(fs::read_to_string(&letters).unwrap(), text + "{\"cut");
    let tables = format!("sqlite:{}", dir.path().join("tables.db").display());
    assert_eq!(replay(&tables, &[]).status.code(), Some(2));
    fs::write(&letters, "{\"id\":1}\n").unwrap();
    let refused = replay(&url, &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("line 1"), "{}", stderr(&refused));
}
