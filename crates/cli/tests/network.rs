//! What do `resolve` and `verify` answer of accounts on a network, with which exit code, and what do they
//! make of hosts that fail and lie?

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;
use simnet::hostile::{self, Expect, InputKind};
use simnet::servers::{AccountInfo, AccountStatus, Fault, FaultSchedule, Server, Simulation, Spec};

const PDS: Server = Server::Pds(0);

/// A small network, and the command told of it.
struct Stage {
    sim: Simulation,
    account: AccountInfo,
}

impl Stage {
    fn set() -> Self {
        let spec = Spec { accounts: 4, records: 20, ..Spec::default() };
        let sim = Simulation::start(spec).expect("ports for a small network");
        Self { account: sim.account(0), sim }
    }

    fn with(server: Server, fault: Fault, dose: FaultSchedule) -> Self {
        let stage = Self::set();
        stage.sim.faults().enable(server, fault, dose);
        stage
    }

    fn run(&self, args: &[&str]) -> Assert {
        let plc = self.sim.url(Server::Plc);
        let port = self.sim.port(PDS).to_string();
        let network = ["--plc", &plc, "--development-port", &port];
        command().args(args).args(network).assert()
    }

    /// Lets the account be verified, with these arguments besides.
    fn verify(&self, args: &[&str]) -> Assert {
        self.run(&[&["verify", &*self.account.handle], args].concat())
    }

    /// The same, when it must fail with this code and for a reason in which these words are.
    fn fails(&self, args: &[&str], code: i32, words: &str) {
        let failed = self.verify(args).code(code);
        assert!(stderr(&failed).contains(words), "{}", stderr(&failed));
        assert_eq!(stderr(&failed).lines().count(), 1);
        assert_eq!(self.sim.faults().unfired(), []);
    }
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    for name in ["WIREPROOF_PLC", "WIREPROOF_DEVELOPMENT", "WIREPROOF_DEVELOPMENT_PORT"] {
        command.env_remove(name);
    }
    command
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn json(assert: &Assert) -> Value {
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

fn stages(report: &Value) -> Vec<&str> {
    let stages = report["stages"].as_array().unwrap().iter();
    stages.map(|stage| stage["stage"].as_str().unwrap()).collect()
}

#[test]
fn a_handle_leads_to_did_server_and_key_and_a_did_back_to_its_handle() {
    let stage = Stage::set();
    let AccountInfo { did, handle, signing_key, .. } = &stage.account;
    let told = stdout(&stage.run(&["resolve", handle]).success());
    for part in [did, &format!("{handle}, verified"), signing_key, "resolve handle", "resolve DID"]
    {
        assert!(told.contains(part), "{told}");
    }
    for (who, expected) in
        [(handle, ["resolve_handle", "resolve_did"]), (did, ["resolve_did", "check_handle"])]
    {
        let told = json(&stage.run(&["resolve", who, "--json"]).success());
        assert_eq!((&told["did"], &told["handle"]), (&(**did).into(), &(**handle).into()));
        assert_eq!(told["pds"], stage.sim.url(PDS));
        assert_eq!(told["signing_key"], **signing_key);
        assert_eq!(stages(&told), expected);
    }
}

#[test]
fn an_account_stands_without_its_handle_but_no_handle_without_its_account() {
    let stage = Stage::with(PDS, Fault::WrongHandle, FaultSchedule::times(3));
    let AccountInfo { did, handle, .. } = &stage.account;
    let told = json(&stage.run(&["resolve", did, "--json"]).success());
    assert_eq!((&told["handle"], &told["claimed_handle"]), (&Value::Null, &(**handle).into()));
    assert!(told["handle_fault"].as_str().unwrap().contains("leads to did:plc:ewvi7"), "{told}");
    let told = stdout(&stage.run(&["resolve", did]).success());
    assert!(told.contains("not verified"), "{told}");
    // The account that the handle leads to instead is in no directory.
    stage.run(&["resolve", handle]).code(1);
    assert_eq!(stage.sim.faults().fired(PDS, Fault::WrongHandle), 3);
}

#[test]
fn who_is_nobody_ends_with_1_who_cannot_be_asked_with_3_and_nonsense_with_2() {
    let stage = Stage::set();
    stage.run(&["resolve", "nobody.test"]).code(1);
    stage.run(&["resolve", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"]).code(1);
    stage.run(&["resolve", "did:key:z6Mk"]).code(1);
    stage.run(&["resolve", "no handle"]).code(2);
    stage.run(&["verify", "no handle"]).code(2);
    stage.sim.faults().enable(Server::Plc, Fault::MalformedDocument, FaultSchedule::ONCE);
    stage.run(&["resolve", &stage.account.did]).code(1);
    stage.sim.faults().enable(Server::Plc, Fault::RequestUnavailable, FaultSchedule::ONCE);
    stage.run(&["resolve", &stage.account.did]).code(3);
    stage.sim.stop_server(Server::Plc).unwrap();
    stage.run(&["resolve", &stage.account.did]).code(3);
    assert_eq!(stage.sim.faults().unfired(), []);
}

#[test]
fn this_machine_is_asked_only_by_name_of_the_option() {
    let stage = Stage::set();
    let (plc, did) = (stage.sim.url(Server::Plc), &stage.account.did);
    let refused = command().args(["resolve", did, "--plc", &plc]).assert().code(3);
    assert!(stderr(&refused).contains("not allowed"), "{}", stderr(&refused));
    let port = stage.sim.port(PDS).to_string();
    let mut by_environment = command();
    by_environment.env("WIREPROOF_PLC", &plc).env("WIREPROOF_DEVELOPMENT", "1");
    by_environment.env("WIREPROOF_DEVELOPMENT_PORT", port);
    by_environment.args(["resolve", &stage.account.handle]).assert().success();
    assert!(stage.sim.request_counts(Server::Plc).values().sum::<u64>() == 1);
}

#[test]
fn a_handle_is_verified_from_its_name_to_its_records_and_kept_as_it_came() {
    let stage = Stage::set();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.car");
    let saved = saved.to_str().unwrap();
    let proof = stage.verify(&["--save", saved, "--rebuild"]).success();
    let told = stdout(&proof);
    for part in ["resolve handle", "fetch", "network ms", "compute ms", "rebuild", "total"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(told.contains(", verified\n") && told.contains("\nrecords  20\n"), "{told}");
    assert_eq!(stderr(&proof), "");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1);
    let key = &*stage.account.signing_key;
    let again = command().args(["verify", saved, "--key", key, "--json"]).assert().success();
    assert_eq!(json(&again)["repository"]["records"], 20);
}

#[test]
fn the_proof_of_an_account_as_json_keeps_network_and_compute_apart() {
    let stage = Stage::set();
    let uri = format!("at://{}", stage.account.handle);
    for (who, first) in [
        (&stage.account.handle, "resolve_handle"),
        (&stage.account.did, "resolve_did"),
        (&uri, "resolve_handle"),
    ] {
        let proof = json(&stage.run(&["verify", who, "--json"]).success());
        assert_eq!((&proof["proved"], &proof["repository"]["records"]), (&true.into(), &20.into()));
        assert_eq!(
            proof["repository"]["commit"],
            stage.sim.expected_accounts()[0].commit.to_string()
        );
        assert_eq!(proof["account"]["handle"], *stage.account.handle);
        assert_eq!(proof["fetched_from"], format!("localhost:{}", stage.sim.port(PDS)));
        let stages = stages(&proof);
        assert_eq!((stages[0], stages.len()), (first, 7));
        assert!(stages.ends_with(&["fetch", "parse", "signature", "tree", "records"]));
        let seconds = |of: &str| proof[of].as_f64().unwrap();
        assert!(seconds("network_seconds") > 0.0 && seconds("compute_seconds") > 0.0);
    }
}

#[test]
fn a_repository_is_proved_whoever_gives_it() {
    let stage = Stage::set();
    let relay = stage.sim.url(Server::Relay(0));
    let proof = json(&stage.verify(&["--from", &relay, "--json"]).success());
    assert_eq!(proof["fetched_from"], format!("localhost:{}", stage.sim.port(PDS)));
    stage.sim.rotate_key(0);
    stage.verify(&[]).success();
}

#[test]
fn a_key_that_is_not_the_accounts_proves_nothing() {
    let stage = Stage::with(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    stage.fails(&[], 1, "signature/wrong");
    let report = json(&stage.verify(&["--json", "--all"]).code(1));
    assert_eq!((&report["proved"], stages(&report).len()), (&false.into(), 4));
    assert_eq!(report["faults"][0]["code"], "signature/wrong");
}

#[test]
fn what_directories_and_servers_say_wrongly_is_refused_where_it_is_said() {
    let faults = [
        (Server::Plc, Fault::WrongDocument, 1, "of another DID"),
        (Server::Plc, Fault::MalformedDocument, 1, "not the JSON of a DID document"),
        (Server::Plc, Fault::PrivateHost, 3, "10.0.0.1 is not this machine"),
        (PDS, Fault::CutRepo, 3, "getRepo"),
    ];
    for (server, fault, code, words) in faults {
        Stage::with(server, fault, FaultSchedule::ALWAYS).fails(&[], code, words);
    }
    // The first request is for the handle.
    let away = Stage::with(PDS, Fault::PrivateRedirect, FaultSchedule::ALWAYS.after(1));
    away.fails(&[], 3, "10.0.0.1 is not this machine");
    let endless = Stage::with(PDS, Fault::EndlessRepo, FaultSchedule::ALWAYS);
    endless.fails(&["--max-bytes", "1000000"], 3, "more than 1000000 bytes");
    let stalled = Stage::with(PDS, Fault::StalledRepo, FaultSchedule::ALWAYS);
    stalled.fails(&["--max-silent-seconds", "1"], 3, "no byte for 1s");
}

#[test]
fn a_server_that_is_down_or_does_not_give_the_repository_ends_with_3() {
    let stage = Stage::set();
    stage.sim.set_account_status(0, AccountStatus::TakenDown);
    stage.fails(&[], 3, "RepoTakendown");
    let did = stage.account.did.clone();
    stage.sim.stop_server(PDS).unwrap();
    let down = stage.run(&["verify", &did]).code(3);
    assert!(stderr(&down).contains("no connection"), "{}", stderr(&down));
}

#[test]
fn hostile_repositories_are_refused_by_their_rule_and_odd_ones_are_proved() {
    let stage = Stage::set();
    let set = hostile::CaseSet::generate(&hostile::Spec::default());
    let repositories = set.cases().iter().filter(|case| case.kind == InputKind::Repo);
    let some = repositories.step_by(5);
    let mut seen = [0, 0];
    for case in some {
        stage.sim.serve_case(case);
        let outcome = stage.run(&["verify", &case.did, "--json"]);
        let is_odd = case.expect == Expect::Accept;
        let outcome = outcome.code(i32::from(!is_odd));
        assert_eq!(json(&outcome)["proved"], is_odd, "{}", case.name);
        if let Some(code) = case.code {
            assert!(stderr(&outcome).contains(code), "{}: {}", case.name, stderr(&outcome));
        }
        seen[usize::from(is_odd)] += 1;
    }
    assert!(seen[0] > 3, "{seen:?}");
}

#[test]
fn a_record_is_proved_there_with_its_value_or_not_there() {
    let stage = Stage::set();
    let expected = &stage.sim.expected_accounts()[0];
    let (path, cid) = expected.records.first_key_value().unwrap();
    let uri = format!("at://{}/{path}", stage.account.handle);
    let proof = json(&stage.run(&["verify", &uri, "--json"]).success());
    assert_eq!((&proof["proved"], &proof["record"]["present"]), (&true.into(), &true.into()));
    assert_eq!(proof["record"]["cid"], cid.to_string());
    assert_eq!(proof["record"]["value"]["$type"], path.split_once('/').unwrap().0);
    assert!(stages(&proof).ends_with(&["fetch", "record"]));
    let absent = format!("at://{}/app.bsky.feed.post/3zzzzzzzzzzzz", stage.account.did);
    let proof = stdout(&stage.run(&["verify", &absent]).success());
    assert!(proof.contains("there is no record at app.bsky.feed.post/3zzzzzzzzzzzz"), "{proof}");
    stage.sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    let refused = stage.run(&["verify", &uri]).code(1);
    assert!(stderr(&refused).contains("signature/wrong"), "{}", stderr(&refused));
}

#[test]
fn what_does_not_go_together_ends_with_2_and_says_what_does() {
    let stage = Stage::set();
    let collection = format!("at://{}/app.bsky.feed.post", stage.account.handle);
    let key = &*stage.account.signing_key;
    for (args, words) in [
        (&["verify", &collection][..], "repo ls"),
        (&["verify", "at://no handle/x"], "at://no handle/x"),
        (&["verify", &stage.account.handle, "--key", key], "DID document"),
        (&["verify", "there.car"], "--without-signature"),
        (&["verify", "there.car", "--key", key, "--save", "x.car"], "--save"),
    ] {
        let usage = stage.run(args).code(2);
        assert!(stderr(&usage).contains(words), "{}", stderr(&usage));
    }
    // What looks like a file is one, and so is what is said to be.
    stage.run(&["verify", "./not.there", "--key", key]).code(4);
    stage.run(&["verify", "--file", "not.there", "--key", key]).code(4);
    assert!(!Path::new("x.car").exists());
}

#[test]
fn a_bench_fetches_the_repository_once_and_lets_everyone_verify_it() {
    let stage = Stage::set();
    let folder = tempfile::tempdir().unwrap();
    let work_dir = folder.path().to_str().unwrap();
    let peers = ["--peers", "wireproof", "--passes", "1", "--warmup", "0", "--work-dir", work_dir];
    let bench = [&["bench", "verify", &*stage.account.handle], &peers[..]].concat();
    let table = stdout(&stage.run(&bench).success());
    for part in ["resolve handle", "fetch", "network ms", "repo", "wireproof"] {
        assert!(table.contains(part), "{table}");
    }
    let requests = stage.sim.request_counts(PDS);
    assert_eq!(requests["/xrpc/com.atproto.sync.getRepo"], 1);
    let kept = folder.path().join("fetched").join(stage.account.did.replace(':', "-"));
    let owner: Value =
        serde_json::from_slice(&fs::read(kept.with_extension("json")).unwrap()).unwrap();
    assert_eq!(owner["signing_key"], *stage.account.signing_key);
    let car = kept.with_extension("car");
    let car = car.to_str().unwrap();
    command().args(["verify", car, "--key", &*stage.account.signing_key]).assert().success();

    stage.sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    let refused = stage.run(&bench).code(1);
    assert!(stderr(&refused).contains("signature/wrong"), "{}", stderr(&refused));
    assert_eq!(stdout(&refused), "");
}
