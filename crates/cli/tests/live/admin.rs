//! `follow --admin`: the users of the API, and the effects of its commands.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use simnet::servers::{Server, Simulation};

use crate::{Running, file_lines, follow, quiet, schemas, stderr, with_commits};

const TOKEN: &str = "0123456789abcdef";

/// A `follow` with an admin API, and the address of that.
fn serve(sim: &Simulation, dir: &Path, args: &[&str]) -> (Running, String) {
    let mut command = follow(sim, dir, &[&["--admin", "127.0.0.1:0"], args].concat());
    command.env("WIREPROOF_ADMIN_TOKEN", TOKEN).stdin(Stdio::piped());
    let mut running = Running::start(command);
    let line = running.wait_for_stderr("admin API at ");
    (running, line.split("http://").nth(1).unwrap().trim().to_owned())
}

/// The answer to a request of these bytes.
fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // A server that refuses a request need not read all of it.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of the answer to a request with these headers.
fn status_of(address: &str, request: &str, headers: &str, body: &str) -> u16 {
    let len = body.len();
    let request = format!("{request} HTTP/1.1\r\nContent-Length: {len}\r\n{headers}\r\n{body}");
    let answer = raw(address, &request);
    answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer to {request}")).parse().unwrap()
}

/// A command about the run at this address.
fn command(address: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args).args(["--admin", address]).env("WIREPROOF_ADMIN_TOKEN", TOKEN);
    command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
}

/// The document of a command, which follows its schema.
fn document(address: &str, args: &[&str]) -> Value {
    let output = command(address, &[args, &["--json"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {}", stderr(&output));
    let document = serde_json::from_slice(&output.stdout).unwrap();
    let words: Vec<_> = args.iter().take(2).copied().collect();
    let both = words.join("-");
    schemas::check(if schemas::has(&both) { &both } else { words[0] }, &document);
    document
}

/// The accounts of the next `count` lines after this sequence number.
fn accounts_after(running: &mut Running, seq: u64, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    while lines.len() < count {
        // After a kill, earlier lines come again.
        let is_new = |line: &Value| line["seq"].as_u64().is_some_and(|of| of > seq);
        lines.extend(running.take(1).into_iter().filter(is_new));
    }
    let mut dids: Vec<_> =
        lines.iter().map(|line| line["did"].as_str().unwrap().to_owned()).collect();
    dids.sort();
    dids.dedup();
    dids
}

#[test]
fn requests_without_the_token_or_of_web_pages_are_refused_and_bodies_are_bounded() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (_running, address) = serve(&sim, dir.path(), &["--dids", "none"]);
    let host = format!("Host: {address}\r\n");
    let token = format!("{host}Authorization: Bearer {TOKEN}\r\n");
    let of = |request: &str, headers: &str| status_of(&address, request, headers, "");
    assert_eq!(of("GET /status", &host), 401);
    assert_eq!(of("GET /status", &format!("{host}Authorization: Bearer {TOKEN}x\r\n")), 401);
    assert_eq!(of("GET /unknown", &host), 401, "nothing is said without the token");
    for page in ["Origin: http://127.0.0.1\r\n", "Origin: null\r\n", "Sec-Fetch-Site: none\r\n"] {
        assert_eq!(of("GET /status", &format!("{token}{page}")), 403, "{page}");
    }
    let rebound = format!("Host: evil.test\r\nAuthorization: Bearer {TOKEN}\r\n");
    assert_eq!(of("GET /status", &rebound), 403);
    assert_eq!(of("GET /status", &token), 200);
    assert_eq!(of("GET /unknown", &token), 404);
    assert_eq!(of("DELETE /accounts", &token), 404);
    let add = |body: &str| status_of(&address, "POST /accounts/add", &token, body);
    assert_eq!(add(r#"{"dids":["did:web:a.test"]}"#), 200);
    for body in ["", "[]", r#"{"dids":["a.test"]}"#, r#"{"dids":[],"other":1}"#, &"[".repeat(9999)]
    {
        assert_eq!(add(body), 400, "{body:.40}");
    }
    assert_eq!(add(&format!("{}{{}}", " ".repeat(1 << 20))), 413);
    let headers: String = (0..100).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert_eq!(of("GET /status", &format!("{token}{headers}")), 431);
}

#[test]
fn a_client_that_is_slow_is_cut_off_and_delays_no_other() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (_running, address) = serve(&sim, dir.path(), &[]);
    let head = format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n");
    let starts = [
        "GET /status HTTP/1.1\r\n".to_owned(),
        format!("POST /pause HTTP/1.1\r\n{head}Content-Length: 9\r\n\r\n{{"),
    ];
    let slow = starts.map(|start| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(start.as_bytes()).unwrap();
        stream
    });
    assert_eq!(document(&address, &["status"])["paused"], false);
    for mut stream in slow {
        let mut answer = String::new();
        // The server closes it.
        let _ = stream.read_to_string(&mut answer);
        assert!(!answer.contains("200 OK"), "{answer}");
    }
}

#[test]
fn an_account_is_selected_from_the_next_event_on_also_after_a_kill() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let [first, second] = [0, 1].map(|at| sim.account(at).did);
    let args = ["--dids", &*second];
    let (mut running, address) = serve(&sim, dir.path(), &args);
    running.wait_for_stderr("connected");
    // Both write a commit by their rotation and have an `#identity` event.
    let write_and_take = |running: &mut Running| {
        let before = sim.last_seq(Server::Relay(0)) as u64;
        (0..2).for_each(|account| sim.rotate_key(account));
        accounts_after(running, before, 2)
    };
    let added = document(&address, &["accounts", "add", &first]);
    assert_eq!((&added["changed"], &added["selected"]), (&1.into(), &2.into()));
    let removed = document(&address, &["accounts", "remove", &second, "did:web:never.test"]);
    assert_eq!((&removed["changed"], &removed["selected"]), (&1.into(), &1.into()));
    assert_eq!(write_and_take(&mut running), std::slice::from_ref(&first));
    running.kill();

    let (mut running, address) = serve(&sim, dir.path(), &args);
    running.wait_for_stderr("connected");
    let list = document(&address, &["accounts", "list"]);
    assert_eq!(list["accounts"], serde_json::json!([first]), "the change wins over --dids");
    assert_eq!(write_and_take(&mut running), std::slice::from_ref(&first));
    let again = document(&address, &["accounts", "add", &first]);
    assert_eq!(again["changed"], 0);
    document(&address, &["accounts", "remove", &first]);
    document(&address, &["accounts", "add", &sim.account(1).handle]);
    assert_eq!(write_and_take(&mut running), [second], "the opposite change takes it back");
}

#[test]
fn a_collection_is_selected_from_the_next_commit_on() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let (mut running, address) = serve(&sim, dir.path(), &["--collections", "app.bsky.feed.like"]);
    let added = document(&address, &["collections", "add", "app.bsky.graph.*", "app.bsky.feed.*"]);
    assert_eq!((&added["changed"], &added["selected"]), (&2.into(), &3.into()));
    document(&address, &["collections", "remove", "app.bsky.feed.like", "app.bsky.feed.*"]);
    let list = document(&address, &["collections", "list"]);
    assert_eq!(list["collections"], serde_json::json!(["app.bsky.graph.*"]));
    // Earlier lines may have other collections.
    let before = sim.last_seq(Server::Relay(0)) as u64;
    sim.write_commits(200);
    let is_after = |line: &Value| line["seq"].as_u64().is_some_and(|seq| seq > before);
    let mut lines = Vec::new();
    while lines.len() < 5 {
        lines.extend(running.take(1).into_iter().filter(is_after));
    }
    let ops = lines.iter().flat_map(|line| line["ops"].as_array().unwrap());
    for op in ops {
        assert!(op["collection"].as_str().unwrap().starts_with("app.bsky.graph."), "{op}");
    }
    let wrong = command(&address, &["collections", "add", "app"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
}

#[test]
fn accounts_with_a_history_get_that_of_a_collection_that_is_added_and_once_also_after_a_kill() {
    let (sim, dir) = (crate::histories::network(6), tempfile::tempdir().unwrap());
    let tables = crate::histories::Tables::new(dir.path());
    let (dids, to) = ((0..4).map(|number| sim.account(number).did), tables.to());
    let dids = dids.collect::<Vec<_>>().join(",");
    let post = "app.bsky.feed.post";
    let args = ["--dids", &*dids, "--backfill", "--collections", post, "--to", &*to];
    let (running, address) = serve(&sim, dir.path(), &args);
    tables.wait_for_histories(4);
    let count = |prefix: &str| {
        let of = |account: &simnet::servers::ExpectedAccount| {
            account.records.keys().filter(|path| path.starts_with(prefix)).count()
        };
        sim.expected_accounts()[..4].iter().map(of).sum::<usize>()
    };
    let of = |what: &str| format!("SELECT count(*) FROM record WHERE {what}");
    assert_eq!(tables.query(&of("1")), i64::try_from(count(post)).ok());
    let added = document(&address, &["collections", "add", "app.bsky.feed.*"]);
    assert_eq!(added["changed"], 1);
    // The change is stored, and the next run delivers the remaining histories.
    running.kill();
    let (running, address) = serve(&sim, dir.path(), &args);
    let likes = of("collection = 'app.bsky.feed.like' AND NOT live");
    tables.wait("likes", &likes, count("app.bsky.feed.like/"));
    document(&address, &["collections", "add", "app.bsky.graph.follow"]);
    tables.wait(
        "follows",
        &of("NOT live"),
        count("app.bsky.feed.") + count("app.bsky.graph.follow/"),
    );
    assert!(count("app.bsky.graph.follow/") > 0 && count("app.bsky.feed.like/") > 0);
    tables.wait_for_histories(4);
    let begun = tables.query("SELECT max(generation) FROM account").unwrap();
    assert_eq!(begun, 1, "nothing was delivered as a whole again");
    // Selected records are not fetched again.
    let fetched = sim.request_counts(Server::Pds(0));
    document(&address, &["collections", "add", "app.bsky.graph.follow"]);
    document(&address, &["collections", "remove", post]);
    let complete_in =
        |names: &str| format!("SELECT count(*) FROM account WHERE complete_in = '{names}'");
    let all = r#"["app.bsky.feed.*","app.bsky.feed.post","app.bsky.graph.follow"]"#;
    assert_eq!(tables.query(&complete_in(all)), Some(4), "all posts are selected still");
    document(&address, &["collections", "remove", "app.bsky.graph.follow"]);
    tables.wait("fewer collections", &complete_in(r#"["app.bsky.feed.*"]"#), 4);
    assert_eq!(tables.query("SELECT count(*) FROM account WHERE complete"), Some(4));
    let status = document(&address, &["accounts", "status", &sim.account(0).did]);
    assert_eq!(status["complete_in"], serde_json::json!(["app.bsky.feed.*"]));
    running.interrupt();
    assert_eq!(sim.request_counts(Server::Pds(0)), fetched);
}

/// Waits until a file of the folder, which need not be complete, has a line with this text.
fn wait_for_line(folder: &Path, text: &str) {
    let since = Instant::now();
    let has_text = |path: PathBuf| fs::read_to_string(path).is_ok_and(|all| all.contains(text));
    while !fs::read_dir(folder).unwrap().any(|entry| has_text(entry.unwrap().path())) {
        assert!(since.elapsed() < Duration::from_secs(60), "no line has {text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_account_that_is_added_gets_its_history_before_its_events() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (folder, did) = (dir.path().join("events"), sim.account(0).did);
    let to = format!("file:{}", folder.display());
    let args = ["--dids", "none", "--backfill", "--to", &*to];
    let (mut running, address) = serve(&sim, dir.path(), &args);
    running.wait_for_stderr("connected");
    let expected = sim.expected_accounts().remove(0).records.len();
    document(&address, &["accounts", "add", &did]);
    // Without an event of it.
    while document(&address, &["accounts", "status", &did])["state"] != "synchronized" {}
    sim.rotate_key(0);
    while document(&address, &["accounts", "status", &did])["last_event"]["kind"] != "commit" {}
    // The next run delivers the lines that the destination had not taken at a stop.
    wait_for_line(&folder, "\"kind\":\"commit\"");
    assert_eq!(running.interrupt().1, Some(130));
    let lines = file_lines(&folder);
    let is_history = |line: &&Value| line["kind"] == "resync";
    let (history, events) = (lines.iter().filter(is_history), lines.iter().skip_while(is_history));
    let records: usize = history.map(|line| line["ops"].as_array().unwrap().len()).sum();
    assert_eq!(records, expected, "{lines:?}");
    assert!(events.count() >= 1 && lines.iter().all(|line| line["did"] == *did), "{lines:?}");
}

#[test]
fn a_paused_intake_stays_paused_after_a_kill_until_it_is_resumed() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (mut running, address) = serve(&sim, dir.path(), &[]);
    running.wait_for_stderr("connected");
    let paused = document(&address, &["pause"]);
    assert_eq!(paused["intake"], true);
    sim.rotate_key(0);
    let did = sim.account(0).did;
    let status = document(&address, &["status"]);
    assert_eq!((&status["paused"], &status["obstacle"]), (&true.into(), &"paused".into()));
    let of_account = document(&address, &["accounts", "status", &did]);
    assert_eq!(of_account["last_event"], Value::Null);
    assert_eq!(of_account["behind"][0]["reason"], "no-intake");
    running.kill();

    let (mut running, address) = serve(&sim, dir.path(), &[]);
    running.wait_for_stderr("the intake of events is paused");
    assert_eq!(document(&address, &["accounts", "status", &did])["last_event"], Value::Null);
    assert_eq!(document(&address, &["resume"])["intake"], false);
    assert_eq!(accounts_after(&mut running, 0, 2), std::slice::from_ref(&did));
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn a_stop_ends_a_paused_run_in_order() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let (mut running, address) = serve(&sim, dir.path(), &[]);
    running.take(10);
    document(&address, &["pause"]);
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn a_paused_destination_gets_nothing_and_others_everything() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let to = format!("file:{}", dir.path().join("events").display());
    let args = ["--to", &*to, "--ack-stdin"];
    let (mut running, address) = serve(&sim, dir.path(), &args);
    running.take(20);
    assert_eq!(document(&address, &["pause", "stdout"])["destinations"][0], "stdout");
    sim.rotate_key(0);
    let did = sim.account(0).did;
    let undelivered = |status: &Value, name: &str| {
        let all = status["destinations"].as_array().or(status["deliveries"].as_array()).unwrap();
        let of = all.iter().find(|of| of["destination"].as_str().unwrap().starts_with(name));
        of.unwrap()["undelivered"].as_u64().unwrap()
    };
    // Until the files have all of them, and the paused one none of the new ones.
    loop {
        let status = document(&address, &["status"]);
        if undelivered(&status, "stdout") == 22 && undelivered(&status, "file") == 0 {
            break;
        }
    }
    let output = command(&address, &["accounts", "status", &did]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let status = document(&address, &["accounts", "status", &did]);
    assert!(undelivered(&status, "stdout") >= 2 && undelivered(&status, "file") == 0, "{status}");
    assert!(status["behind"].to_string().contains("undelivered"), "{status}");
    document(&address, &["resume", "stdout"]);
    assert_eq!(accounts_after(&mut running, 0, 2), [did]);
    let unknown = command(&address, &["pause", "other"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("the run has [file-"), "{}", stderr(&unknown));
}

#[cfg(unix)]
#[test]
fn a_unix_socket_is_of_its_user_alone_and_replaced_after_a_kill() {
    use std::os::unix::fs::PermissionsExt;
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let (path, token) = (dir.path().join("admin.sock"), dir.path().join("token"));
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let address = format!("unix:{}", path.display());
    let args = ["--admin", &*address, "--admin-token-file", token.to_str().unwrap()];
    let start = || {
        let mut running = Running::start(follow(&sim, dir.path(), &args));
        running.wait_for_stderr("admin API at ");
        running
    };
    start().kill();
    let _running = start();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(document(&address, &["status"])["paused"], false);
    let text = command(&address, &["status"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("accounts      all"));
}

#[test]
fn options_and_requests_that_do_not_fit_are_refused_with_the_reason() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let refused = |args: &[&str], token: &str| {
        let mut command = follow(&sim, dir.path(), args);
        let output = command.env("WIREPROOF_ADMIN_TOKEN", token).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        stderr(&output)
    };
    let local = ["--admin", "127.0.0.1:0"];
    assert!(refused(&local, "").contains("add --admin-token-file"));
    assert!(refused(&local, "short").contains("use 16 to 256"));
    assert!(refused(&["--admin", "0.0.0.0:0"], TOKEN).contains("add --admin-remote"));
    assert!(refused(&["--admin", "localhost:1"], TOKEN).contains("expected an IP address"));
    assert!(refused(&["--dids", "none"], TOKEN).contains("add --admin"));
    let mut remote = follow(&sim, dir.path(), &["--admin", "0.0.0.0:0", "--admin-remote"]);
    let mut remote = Running::start({
        remote.env("WIREPROOF_ADMIN_TOKEN", TOKEN);
        remote
    });
    remote.wait_for_stderr("the token is sent unencrypted");
    drop(remote);

    let (running, address) = serve(&sim, dir.path(), &[]);
    let of_all = command(&address, &["accounts", "add", "did:web:a.test"]);
    assert_eq!(of_all.status.code(), Some(2));
    assert!(stderr(&of_all).contains("follows all accounts"), "{}", stderr(&of_all));
    let mut wrong = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    wrong.args(["status", "--admin", &address]).env("WIREPROOF_ADMIN_TOKEN", "0123456789abcdeF");
    assert_eq!(wrong.output().unwrap().status.code(), Some(3));
    running.kill();
    assert_eq!(command(&address, &["status"]).status.code(), Some(3));
}
