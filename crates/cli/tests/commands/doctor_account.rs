//! `doctor DID|HANDLE`: the faults of an account, for every fault of its hosts and of the state.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;
use serde_json::{Value, json};
use simnet::hostile::{self, InputKind};
use simnet::servers::{AccountStatus, Fault, FaultSchedule, Server, Simulation, Spec};
use store::{Options, Store, StoredKey};
use verify::sync::{AccountState, Head, SyncState};

use crate::{command, json as document_of, stderr, stdout};

/// The server of the first account, the server of the handles, and the relay.
const PDS: Server = Server::Pds(0);
const OTHER_PDS: Server = Server::Pds(1);
const RELAY: Server = Server::Relay(0);

fn start() -> Simulation {
    // Revisions of the current time, which the directory's times are compared with.
    let clock_skew = Some(Duration::ZERO);
    Simulation::start(Spec { accounts: 4, records: 5, clock_skew, ..Spec::default() }).unwrap()
}

/// The exit code, the codes of the findings and the report of a run about `who`.
fn doctor(sim: &Simulation, who: &str, args: &[&str]) -> (i32, Vec<String>, Value) {
    let (plc, port) = (sim.url(Server::Plc), sim.port(OTHER_PDS).to_string());
    let mut command = command(&["doctor", who, "--json", "--development-port", &port]);
    if !args.contains(&"--plc") {
        command.args(["--plc", &plc]);
    }
    for name in ["WIREPROOF_HOST", "WIREPROOF_STATE"] {
        command.env_remove(name);
    }
    command.env("XDG_STATE_HOME", "/nonexistent");
    if !args.contains(&"--host") {
        command.args(["--host", &sim.url(RELAY)]);
    }
    if !args.contains(&"--wait-seconds") {
        command.args(["--wait-seconds", "0"]);
    }
    let ended = command.args(args).assert();
    let code = ended.get_output().status.code().unwrap();
    assert!(!ended.get_output().stdout.is_empty(), "{}", stderr(&ended));
    let report = document_of(&ended);
    let findings = report["findings"].as_array().unwrap().iter();
    let codes: Vec<String> = findings.map(|of| of["code"].as_str().unwrap().to_owned()).collect();
    assert_eq!(report["healthy"], codes.is_empty(), "{report}");
    // The message names the codes of the report.
    assert!(codes.iter().all(|code| stderr(&ended).contains(code)), "{}", stderr(&ended));
    (code, codes, report)
}

/// Requires this exit code and these findings.
fn finds(sim: &Simulation, args: &[&str], code: i32, codes: &[&str]) {
    let (ended, found, report) = doctor(sim, &sim.account(0).did, args);
    assert_eq!(
        (ended, &*found),
        (code, &*codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>()),
        "{report:#}"
    );
}

#[test]
fn an_account_without_faults_is_proved_and_nothing_is_wrong() {
    let sim = start();
    sim.write_commits(8);
    let (account, expected) = (sim.account(0), &sim.expected_accounts()[0]);
    for who in [&account.did, &account.handle] {
        let (code, codes, report) = doctor(&sim, who, &[]);
        assert_eq!((code, &*codes), (0, &[][..]), "{report:#}");
        assert_eq!(report["did"], *account.did);
        assert_eq!(report["handle"], *account.handle);
        assert_eq!(
            (&report["log"], &report["signing_key"]),
            (&"verified".into(), &(*account.signing_key).into())
        );
        let server = &report["sources"][0];
        assert_eq!(server["commit"], expected.commit.to_string());
        assert_eq!(
            (&server["rev"], &server["verified"]),
            (&expected.rev.to_string().into(), &true.into())
        );
        let relay = &report["sources"][1];
        assert_eq!((&relay["at"], &relay["rev"]), (&sim.url(RELAY).into(), &server["rev"]));
    }
    let (plc, port) = (sim.url(Server::Plc), sim.port(OTHER_PDS).to_string());
    let options = ["--plc", &plc, "--development-port", &port, "--host", &sim.url(RELAY)];
    let mut text = command(&["doctor", &account.handle]);
    let text = stdout(&text.args(options).env("XDG_STATE_HOME", "/nonexistent").assert().success());
    assert!(text.contains("nothing is wrong") && text.contains(", verified\n"), "{text}");
}

#[test]
fn doctor_without_an_account_or_with_a_malformed_one_is_exit_code_2() {
    command(&["doctor"]).assert().code(2);
    command(&["doctor", "no handle"]).assert().code(2);
    command(&["doctor", "cpus"]).assert().code(2);
    // Options in the environment do not turn the subcommand into an account.
    command(&["doctor", "cpu"]).env("WIREPROOF_HOST", "relay.test").assert().success();
}

#[test]
fn a_commit_that_the_registered_key_has_not_signed_is_found() {
    let sim = start();
    sim.sign_with_unregistered_key(0);
    finds(&sim, &[], 1, &["server/signature"]);
    // A rotation that is registered is none.
    let sim = start();
    sim.rotate_key(0);
    finds(&sim, &[], 0, &[]);
}

#[test]
fn a_directory_that_contradicts_its_log_or_does_not_answer_is_found() {
    let with = |fault, code, codes: &[&str]| {
        let sim = start();
        sim.faults().enable(Server::Plc, fault, FaultSchedule::ALWAYS);
        finds(&sim, &[], code, codes);
        assert_eq!(sim.faults().unfired(), []);
    };
    with(Fault::WrongKey, 1, &["identity/other-document"]);
    with(
        Fault::PrivateHost,
        1,
        &["identity/other-document", "server/refused", "relay/unknown-server"],
    );
    with(Fault::MalformedDocument, 1, &["identity/unusable"]);
    with(Fault::WrongDocument, 1, &["identity/unusable"]);
    with(Fault::RequestUnavailable, 3, &["identity/log-unanswered", "identity/unanswered"]);
    let sim = start();
    sim.stop_server(Server::Plc);
    finds(&sim, &[], 3, &["identity/log-unanswered", "identity/unanswered"]);
    let sim = start();
    sim.delete_account(0);
    finds(&sim, &[], 1, &["identity/deleted"]);
}

#[test]
fn a_handle_that_does_not_lead_back_is_found() {
    let sim = start();
    sim.faults().enable(OTHER_PDS, Fault::WrongHandle, FaultSchedule::ALWAYS);
    finds(&sim, &[], 1, &["handle/unverified"]);
    let sim = start();
    sim.stop_server(OTHER_PDS);
    finds(&sim, &[], 3, &["handle/unanswered"]);
}

#[test]
fn a_server_that_refuses_or_has_no_active_account_is_found() {
    for status in [AccountStatus::TakenDown, AccountStatus::Suspended, AccountStatus::Deactivated] {
        let sim = start();
        sim.set_account_status(0, status);
        let (code, codes, report) = doctor(&sim, &sim.account(0).did, &[]);
        assert_eq!((code, &*codes), (1, &["server/inactive".to_owned()][..]), "{report:#}");
        assert_eq!(report["sources"][0]["status"], status.as_str().unwrap());
    }
    let sim = start();
    sim.faults().enable(PDS, Fault::RequestUnavailable, FaultSchedule::ALWAYS);
    finds(&sim, &[], 3, &["server/unanswered"]);
    sim.faults().disable(PDS, Fault::RequestUnavailable);
    sim.faults().enable(PDS, Fault::PrivateRedirect, FaultSchedule::ALWAYS);
    finds(&sim, &[], 1, &["server/refused"]);
    sim.faults().disable(PDS, Fault::PrivateRedirect);
    sim.stop_server(PDS);
    finds(&sim, &[], 3, &["server/unanswered"]);
    // Accounts of the hostile set have a document, and no account on its server.
    let sim = start();
    let set = hostile::CaseSet::generate(&hostile::Spec::default());
    let case = set.cases().iter().find(|case| case.kind == InputKind::Repo).unwrap();
    sim.serve_case(case);
    let (code, codes, _) = doctor(&sim, &case.did, &[]);
    assert_eq!(code, 1);
    assert!(codes.contains(&"server/unknown-account".to_owned()), "{codes:?}");
    assert!(codes.contains(&"relay/unknown-account".to_owned()), "{codes:?}");
}

#[test]
fn a_relay_that_is_behind_away_or_does_not_know_the_account_is_found() {
    let sim = start();
    sim.faults().enable(RELAY, Fault::OldRev, FaultSchedule::ALWAYS);
    finds(&sim, &[], 1, &["relay/behind"]);
    // The relay catches up while it is waited for.
    sim.faults().enable(RELAY, Fault::OldRev, FaultSchedule::times(2));
    finds(&sim, &["--wait-seconds", "60"], 0, &[]);
    sim.faults().enable(PDS, Fault::OldRev, FaultSchedule::ALWAYS);
    finds(&sim, &[], 1, &["server/commit"]);
    sim.faults().disable(PDS, Fault::OldRev);
    finds(&sim, &["--host", &sim.url(OTHER_PDS)], 1, &["relay/unknown-account"]);
    finds(&sim, &["--host", &sim.url(Server::Jetstream(0))], 1, &["relay/refused"]);
    sim.stop_server(RELAY);
    finds(&sim, &[], 3, &["relay/unanswered"]);
    // The finding that something is wrong takes precedence over the one that something is unknown.
    let both = [&*sim.url(RELAY), &sim.url(OTHER_PDS)].join(",");
    finds(&sim, &["--host", &both], 1, &["relay/unanswered", "relay/unknown-account"]);
}

#[test]
fn a_relay_that_is_silent_since_a_migration_is_found() {
    let sim = start();
    sim.write_commits(8);
    sim.migrate_account(0, 1);
    finds(&sim, &[], 0, &[]);
    sim.write_unannounced(0);
    sim.faults().enable(RELAY, Fault::OldRev, FaultSchedule::ALWAYS);
    finds(&sim, &[], 1, &["relay/silent-after-migration"]);
}

#[test]
fn a_relay_that_never_answers_is_given_up() {
    let sim = start();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", silent.local_addr().unwrap().port());
    finds(&sim, &["--host", &url], 3, &["relay/unanswered"]);
}

/// A host that answers the requests whose target has a text, and 404 else.
fn host(answers: Vec<(&'static str, Value)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let answer = answers.iter().find(|(target, _)| request.contains(target));
            let (status, body) = match answer {
                Some((_, body)) => ("200 OK", body.to_string()),
                None => ("404 Not Found", "{}".to_owned()),
            };
            let len = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
            let end = format!("Content-Length: {len}\r\nConnection: close\r\n\r\n{body}");
            // A client that has left needs no answer.
            let _ = stream.write_all((head + &end).as_bytes());
        }
    });
    url
}

#[test]
fn a_relay_that_contradicts_the_server_is_found() {
    let (sim, expected) = (start(), |sim: &Simulation| sim.expected_accounts().remove(0));
    let did = sim.account(0).did;
    let active = |rev: &str| json!({"did": did, "active": true, "rev": rev});
    let server = |status: &str| json!({"hostname": "pds.test", "seq": 1, "status": status});
    let relay = |status: Value, of_server: Value| {
        host(vec![("getRepoStatus", status), ("getHostStatus", of_server)])
    };
    let rev = expected(&sim).rev.to_string();
    let of = |sim: &Simulation, url: String, codes: &[&str]| {
        finds(sim, &["--host", &url], 1, codes);
    };
    finds(&sim, &["--host", &relay(active(&rev), server("active"))], 0, &[]);
    of(&sim, relay(active("jzzzzzzzzzzzz"), server("active")), &["relay/ahead"]);
    let inactive = json!({"did": did, "active": false, "status": "takendown"});
    of(&sim, relay(inactive, server("active")), &["relay/inactive"]);
    for status in ["banned", "offline", "throttled"] {
        of(&sim, relay(active(&rev), server(status)), &["relay/server-not-followed"]);
    }
    sim.set_account_status(0, AccountStatus::Deactivated);
    let still = relay(active(&rev), server("active"));
    of(&sim, still, &["server/inactive", "relay/still-active"]);
}

#[test]
fn a_document_without_a_key_or_a_server_and_a_refused_log_are_found() {
    let sim = start();
    let account = sim.account(0);
    let document = |keys: Value, services: Value| json!({"id": account.did, "alsoKnownAs": [], "verificationMethod": keys, "service": services});
    let id = format!("{}#atproto", account.did);
    let multibase = account.signing_key.strip_prefix("did:key:").unwrap();
    let key = json!([{"id": id, "type": "Multikey", "controller": account.did,
        "publicKeyMultibase": multibase}]);
    let service = json!([{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer",
        "serviceEndpoint": sim.url(PDS)}]);
    for (document, code) in [
        (document(json!([]), service.clone()), "identity/no-key"),
        (document(key.clone(), json!([])), "identity/no-server"),
        (document(key, service), "identity/log"),
    ] {
        let plc = host(vec![("/log/audit", json!([])), ("did:plc:", document)]);
        let (ended, codes, report) = doctor(&sim, &account.did, &["--plc", &plc]);
        assert_eq!(ended, 1, "{report:#}");
        assert!(codes.contains(&code.to_owned()), "{code}: {report:#}");
        assert!(codes.contains(&"identity/log".to_owned()), "an empty log: {report:#}");
    }
}

/// A state folder with this state of the first account, and its key and server.
fn stored(sim: &Simulation, account: Option<AccountState>) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("state.sqlite"), Options::default()).unwrap();
    let first = sim.account(0);
    let account = account.map(|account| (&*first.did, account));
    store.checkpoint(&[("wss://relay.test", 7)], account.as_slice()).unwrap();
    let host = Some(sim.url(Server::Pds(first.host)) + "/");
    let key = StoredKey { did_key: first.signing_key, fetched_micros: 1, host };
    store.save_keys(vec![(first.did.into(), Some(key))]).unwrap();
    (folder, store)
}

/// The state of the first account at its newest commit.
fn current(sim: &Simulation) -> AccountState {
    let expected = &sim.expected_accounts()[0];
    let head = Head { rev: expected.rev, data: expected.data, commit: expected.commit };
    AccountState { head: Some(head), ..AccountState::UNKNOWN }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_state_is_compared_while_another_process_uses_it() {
    let sim = start();
    let (folder, store) = stored(&sim, Some(current(&sim)));
    let state = ["--state", text(folder.path())];
    let (code, codes, report) = doctor(&sim, &sim.account(0).did, &state);
    assert_eq!((code, &*codes), (0, &[][..]), "{report:#}");
    let in_state = &report["sources"][2];
    assert_eq!(
        (&in_state["source"], &in_state["rev"]),
        (&"state".into(), &report["sources"][0]["rev"])
    );
    sim.write_unannounced(0);
    finds(&sim, &state, 1, &["state/behind"]);
    sim.rotate_key(0);
    finds(&sim, &state, 1, &["state/old-key", "state/behind"]);
    sim.migrate_account(0, 1);
    finds(&sim, &state, 1, &["state/old-key", "state/old-server", "state/behind"]);
    // The state stays usable.
    assert_eq!(store.cursor("wss://relay.test"), Ok(Some(7)));
    drop(store);
    finds(&sim, &state, 1, &["state/old-key", "state/old-server", "state/behind"]);
    let again = Store::open(&folder.path().join("state.sqlite"), Options::default()).unwrap();
    assert_eq!(again.cursor("wss://relay.test"), Ok(Some(7)));
}

#[test]
fn a_state_that_differs_from_the_proved_commit_is_found() {
    let sim = start();
    let head = current(&sim).head.unwrap();
    let with = |account: AccountState, code: &str| {
        let (folder, _store) = stored(&sim, Some(account));
        finds(&sim, &["--state", text(folder.path())], 1, &[code]);
    };
    let later = Tid::new(head.rev.micros() + 1, 0);
    with(AccountState { head: Some(Head { rev: later, ..head }), ..current(&sim) }, "state/ahead");
    let commit = Cid::of(Codec::DagCbor, b"another commit");
    with(
        AccountState { head: Some(Head { commit, ..head }), ..current(&sim) },
        "state/other-commit",
    );
    with(AccountState { sync: SyncState::Desynchronized, ..current(&sim) }, "state/desynchronized");
    with(AccountState { is_active: false, ..current(&sim) }, "state/other-status");
    let (folder, _store) = stored(&sim, None);
    finds(&sim, &["--state", text(folder.path())], 0, &[]);
}

#[test]
fn a_state_that_cannot_be_read_is_exit_code_4_and_stays_as_it_was() {
    let sim = start();
    let folder = tempfile::tempdir().unwrap();
    let did = sim.account(0).did;
    let mut missing = command(&["doctor", &did, "--state", text(folder.path())]);
    missing.assert().code(4);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    let file = folder.path().join("state.sqlite");
    std::fs::write(&file, [b'x'; 8192]).unwrap();
    let ended = command(&["doctor", &did, "--state", text(folder.path())]).assert().code(4);
    assert!(stderr(&ended).contains("not a state file"), "{}", stderr(&ended));
    assert_eq!(std::fs::read(&file).unwrap(), [b'x'; 8192]);
}

#[test]
fn the_reference_and_the_schema_list_each_code_of_a_finding() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let source = read("crates/cli/src/doctor/findings.rs");
    let codes = codes_between(&source, '"');
    assert!(codes.len() > 25, "{codes:?}");
    assert_eq!(codes_between(&read("docs/reference/doctor.md"), '`'), codes);
    assert_eq!(codes_between(&read("docs/formats/schemas/doctor.json"), '"'), codes);
}

/// The codes of findings in a text, between `quote`s.
fn codes_between(text: &str, quote: char) -> BTreeSet<&str> {
    let layers = ["identity", "handle", "server", "relay", "state"];
    let is_code = |part: &&str| {
        let name =
            |name: &str| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
        part.split_once('/').is_some_and(|(layer, of)| layers.contains(&layer) && name(of))
    };
    text.split(quote).filter(is_code).collect()
}
