//! `resolve`, `verify` and `bench verify` of accounts on a simulated network, with failing and lying hosts.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;
use simnet::hostile::{self, Expect, InputKind};
use simnet::servers::{AccountInfo, AccountStatus, Fault, FaultSchedule, Server, Simulation, Spec};

use crate::{json, json_lines, stderr, stdout};

const PDS: Server = Server::Pds(0);

/// A small network and its first account.
struct Network {
    sim: Simulation,
    account: AccountInfo,
}

impl Network {
    fn start() -> Self {
        let spec = Spec { accounts: 4, records: 20, ..Spec::default() };
        let sim = Simulation::start(spec).expect("free ports");
        Self { account: sim.account(0), sim }
    }

    fn with(server: Server, fault: Fault, dose: FaultSchedule) -> Self {
        let network = Self::start();
        network.sim.faults().enable(server, fault, dose);
        network
    }

    fn run(&self, args: &[&str]) -> Assert {
        let plc = self.sim.url(Server::Plc);
        let port = self.sim.port(PDS).to_string();
        let options = ["--plc", &plc, "--development-port", &port];
        command().args(args).args(options).assert()
    }

    /// Verifies the account, with additional arguments.
    fn verify(&self, args: &[&str]) -> Assert {
        self.run(&[&["verify", &*self.account.handle], args].concat())
    }

    /// Verifies the account, and requires this exit code and these words in the message.
    fn fails(&self, args: &[&str], code: i32, words: &str) {
        let failed = self.verify(args).code(code);
        assert!(stderr(&failed).contains(words), "{}", stderr(&failed));
        // The first line warns of the directory.
        assert_eq!(stderr(&failed).lines().count(), 2);
        assert_eq!(self.sim.faults().unfired(), []);
    }
}

fn command() -> Command {
    let mut command = crate::command(&[]);
    for name in ["WIREPROOF_PLC", "WIREPROOF_DEVELOPMENT", "WIREPROOF_DEVELOPMENT_PORT"] {
        command.env_remove(name);
    }
    command
}

fn stages(report: &Value) -> Vec<&str> {
    let stages = report["stages"].as_array().unwrap().iter();
    stages.map(|stage| stage["stage"].as_str().unwrap()).collect()
}

#[test]
fn a_handle_resolves_to_did_server_and_key_and_a_did_back_to_its_handle() {
    let network = Network::start();
    let AccountInfo { did, handle, signing_key, .. } = &network.account;
    let printed = stdout(&network.run(&["resolve", handle]).success());
    for part in [did, &format!("{handle}, verified"), signing_key, "resolve handle", "resolve DID"]
    {
        assert!(printed.contains(part), "{printed}");
    }
    for (who, expected) in
        [(handle, ["resolve_handle", "resolve_did"]), (did, ["resolve_did", "check_handle"])]
    {
        let printed = json(&network.run(&["resolve", who, "--json"]).success());
        assert_eq!((&printed["did"], &printed["handle"]), (&(**did).into(), &(**handle).into()));
        assert_eq!(printed["pds"], network.sim.url(PDS));
        assert_eq!(printed["plc"], network.sim.url(Server::Plc));
        assert_eq!(printed["signing_key"], **signing_key);
        assert_eq!(stages(&printed), expected);
    }
}

#[test]
fn a_did_resolves_without_its_handle_but_a_handle_not_without_its_account() {
    let network = Network::with(PDS, Fault::WrongHandle, FaultSchedule::times(3));
    let AccountInfo { did, handle, .. } = &network.account;
    let printed = json(&network.run(&["resolve", did, "--json"]).success());
    assert_eq!(
        (&printed["handle"], &printed["claimed_handle"]),
        (&Value::Null, &(**handle).into())
    );
    assert!(
        printed["handle_error"].as_str().unwrap().contains("resolves to did:plc:ewvi7"),
        "{printed}"
    );
    let printed = stdout(&network.run(&["resolve", did]).success());
    assert!(printed.contains("not verified"), "{printed}");
    // The account that the handle leads to instead is in no directory.
    network.run(&["resolve", handle]).code(1);
    assert_eq!(network.sim.faults().fired(PDS, Fault::WrongHandle), 3);
}

#[test]
fn an_unknown_account_is_exit_code_1_a_failed_host_3_and_malformed_input_2() {
    let network = Network::start();
    network.run(&["resolve", "nobody.test"]).code(1);
    network.run(&["resolve", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"]).code(1);
    network.run(&["resolve", "did:key:z6Mk"]).code(1);
    network.run(&["resolve", "no handle"]).code(2);
    network.run(&["verify", "no handle"]).code(2);
    network.sim.faults().enable(Server::Plc, Fault::MalformedDocument, FaultSchedule::ONCE);
    network.run(&["resolve", &network.account.did]).code(1);
    network.sim.faults().enable(Server::Plc, Fault::RequestUnavailable, FaultSchedule::ONCE);
    network.run(&["resolve", &network.account.did]).code(3);
    network.sim.stop_server(Server::Plc);
    network.run(&["resolve", &network.account.did]).code(3);
    assert_eq!(network.sim.faults().unfired(), []);
}

#[test]
fn loopback_is_reached_only_with_the_option() {
    let network = Network::start();
    let (plc, did) = (network.sim.url(Server::Plc), &network.account.did);
    let refused = command().args(["resolve", did, "--plc", &plc]).assert().code(3);
    assert!(stderr(&refused).contains("not allowed"), "{}", stderr(&refused));
    let port = network.sim.port(PDS).to_string();
    let mut by_environment = command();
    by_environment.env("WIREPROOF_PLC", &plc).env("WIREPROOF_DEVELOPMENT", "1");
    by_environment.env("WIREPROOF_DEVELOPMENT_PORT", port);
    by_environment.args(["resolve", &network.account.handle]).assert().success();
    assert!(network.sim.request_counts(Server::Plc).values().sum::<u64>() == 1);
}

#[test]
fn a_handle_is_verified_end_to_end_and_the_download_saved_unchanged() {
    let network = Network::start();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved.car");
    let saved = saved.to_str().unwrap();
    let proof = network.verify(&["--save", saved, "--rebuild"]).success();
    let printed = stdout(&proof);
    for part in ["resolve handle", "fetch", "network ms", "compute ms", "rebuild", "total"] {
        assert!(printed.contains(part), "{printed}");
    }
    assert!(printed.contains(", verified\n") && printed.contains("\nrecords  20\n"), "{printed}");
    assert!(stderr(&proof).lines().all(|line| line.contains("warning: the keys")));
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1);
    let key = &*network.account.signing_key;
    let again = command().args(["verify", saved, "--key", key, "--json"]).assert().success();
    assert_eq!(json(&again)["repository"]["records"], 20);
}

#[test]
fn the_proof_of_an_account_as_json_separates_network_and_compute() {
    let network = Network::start();
    let uri = format!("at://{}", network.account.handle);
    for (who, first) in [
        (&network.account.handle, "resolve_handle"),
        (&network.account.did, "resolve_did"),
        (&uri, "resolve_handle"),
    ] {
        let proof = json(&network.run(&["verify", who, "--json"]).success());
        assert_eq!(
            (&proof["verified"], &proof["repository"]["records"]),
            (&true.into(), &20.into())
        );
        assert_eq!(
            proof["repository"]["commit"],
            network.sim.expected_accounts()[0].commit.to_string()
        );
        assert_eq!(proof["account"]["handle"], *network.account.handle);
        assert_eq!(proof["host"], network.sim.url(PDS));
        let named = stages(&proof);
        assert_eq!((named[0], named.len()), (first, 4));
        assert!(named.ends_with(&["fetch", "stream"]));
        let seconds = |of: &str| proof[of].as_f64().unwrap();
        assert!(seconds("network_seconds") > 0.0 && seconds("compute_seconds") > 0.0);
        // A proof that reads the archive twice needs it in a file.
        let rebuilt = json(&network.run(&["verify", who, "--json", "--rebuild"]).success());
        let stages = stages(&rebuilt);
        assert!(stages.ends_with(&["fetch", "parse", "signature", "tree", "rebuild", "records"]));
        assert_eq!(
            (&rebuilt["repository"], &rebuilt["bytes"]),
            (&proof["repository"], &proof["bytes"])
        );
    }
}

#[test]
fn a_repository_is_verified_from_any_server() {
    let network = Network::start();
    let relay = network.sim.url(Server::Relay(0));
    let proof = json(&network.verify(&["--from", &relay, "--json"]).success());
    assert_eq!(proof["host"], network.sim.url(PDS));
    network.sim.rotate_key(0);
    network.verify(&[]).success();
}

#[test]
fn a_repository_under_another_key_is_refused() {
    let network = Network::with(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    network.fails(&[], 1, "signature/wrong");
    let report = json(&network.verify(&["--json", "--all"]).code(1));
    assert_eq!((&report["verified"], stages(&report).len()), (&false.into(), 4));
    assert_eq!(report["findings"][0]["code"], "signature/wrong");
}

#[test]
fn wrong_responses_of_directories_and_servers_are_refused_where_they_occur() {
    let faults = [
        (Server::Plc, Fault::WrongDocument, 1, "of another DID"),
        (Server::Plc, Fault::MalformedDocument, 1, "not the JSON of a DID document"),
        (Server::Plc, Fault::PrivateHost, 3, "10.0.0.1 is not a loopback address"),
        (PDS, Fault::CutRepo, 3, "getRepo"),
    ];
    for (server, fault, code, words) in faults {
        Network::with(server, fault, FaultSchedule::ALWAYS).fails(&[], code, words);
    }
    // The first request is for the handle.
    let away = Network::with(PDS, Fault::PrivateRedirect, FaultSchedule::ALWAYS.after(1));
    away.fails(&[], 3, "10.0.0.1 is not a loopback address");
    let endless = Network::with(PDS, Fault::EndlessRepo, FaultSchedule::ALWAYS);
    endless.fails(&["--max-bytes", "1000000"], 3, "more than 1000000 bytes");
    let stalled = Network::with(PDS, Fault::StalledRepo, FaultSchedule::ALWAYS);
    stalled.fails(&["--max-silent-seconds", "1"], 3, "no byte for 1 s");
}

#[test]
fn a_server_that_is_down_or_refuses_the_repository_is_exit_code_3() {
    let network = Network::start();
    network.sim.set_account_status(0, AccountStatus::TakenDown);
    network.fails(&[], 3, "RepoTakendown");
    let did = network.account.did.clone();
    network.sim.stop_server(PDS);
    let down = network.run(&["verify", &did]).code(3);
    assert!(stderr(&down).contains("cannot connect"), "{}", stderr(&down));
}

#[test]
fn hostile_repositories_are_refused_by_their_rule_and_edge_cases_verified() {
    let network = Network::start();
    let set = hostile::CaseSet::generate(&hostile::Spec::default());
    let repositories = set.cases().iter().filter(|case| case.kind == InputKind::Repo);
    let some = repositories.step_by(5);
    let mut seen = [0, 0];
    for case in some {
        network.sim.serve_case(case);
        let outcome = network.run(&["verify", &case.did, "--json"]);
        let is_odd = case.expect != Expect::Refuse;
        let outcome = outcome.code(i32::from(!is_odd));
        let proof = json(&outcome);
        assert_eq!(proof["verified"], is_odd, "{}", case.name);
        match (case.expect, case.code) {
            (Expect::Refuse, Some(code)) => {
                assert!(stderr(&outcome).contains(code), "{}: {}", case.name, stderr(&outcome));
            }
            (_, code) => {
                let first = &proof["repository"]["invalid"]["first"]["code"];
                assert_eq!(first.as_str(), code, "{}", case.name);
            }
        }
        seen[usize::from(is_odd)] += 1;
    }
    assert!(seen[0] > 3, "{seen:?}");
}

#[test]
fn a_record_is_proved_present_with_its_value_or_absent() {
    let network = Network::start();
    let expected = &network.sim.expected_accounts()[0];
    let (path, cid) = expected.records.first_key_value().unwrap();
    let uri = format!("at://{}/{path}", network.account.handle);
    let proof = json(&network.run(&["verify", &uri, "--json"]).success());
    assert_eq!(
        (&proof["verified"], &proof["record_proof"]["present"]),
        (&true.into(), &true.into())
    );
    assert_eq!(proof["record_proof"]["cid"], cid.to_string());
    assert_eq!(proof["record_proof"]["record"]["$type"], path.split_once('/').unwrap().0);
    assert!(stages(&proof).ends_with(&["fetch", "record"]));
    let absent = format!("at://{}/app.bsky.feed.post/3zzzzzzzzzzzz", network.account.did);
    let proof = stdout(&network.run(&["verify", &absent]).success());
    assert!(proof.contains("there is no record at app.bsky.feed.post/3zzzzzzzzzzzz"), "{proof}");
    network.sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    let refused = network.run(&["verify", &uri]).code(1);
    assert!(stderr(&refused).contains("signature/wrong"), "{}", stderr(&refused));
}

#[test]
fn a_collection_is_proved_whole_by_its_part_of_the_repository() {
    let spec = Spec { accounts: 1, records: 600, ..Spec::default() };
    let sim = Simulation::start(spec).expect("free ports");
    let network = Network { account: sim.account(0), sim };
    let AccountInfo { did, handle, signing_key, .. } = &network.account;
    let expected = &network.sim.expected_accounts()[0];
    let dir = tempfile::tempdir().unwrap();
    let part = dir.path().join("part.car");
    let part_name = part.to_str().unwrap();
    let whole = json(&network.verify(&["--json"]).success());
    let collections: std::collections::BTreeSet<&str> =
        expected.records.keys().map(|path| path.split_once('/').unwrap().0).collect();
    for collection in collections.iter().copied().chain(["com.example.missing"]) {
        let prefix = format!("{collection}/");
        let count = expected.records.keys().filter(|path| path.starts_with(&prefix)).count();
        let uri = format!("at://{handle}/{collection}");
        let proof = json(&network.run(&["verify", &uri, "--json", "--save", part_name]).success());
        let proved = &proof["collections_proof"];
        assert_eq!((&proof["verified"], &proved["did"]), (&true.into(), &(**did).into()));
        assert_eq!((&proved["records"], &proved["extra_blocks"]), (&count.into(), &0.into()));
        assert!(proof["bytes"].as_u64() < whole["bytes"].as_u64(), "{proof}");
        // The probe, a request for each of at most ten layers of nodes, and one for every 90 records.
        let most = 11 + count.div_ceil(90) as u64;
        assert!(proof["requests"].as_u64().unwrap() <= most, "{proof}");

        // The saved part proves the same, and no other collection.
        let offline = ["verify", part_name, "--key", signing_key, "--did", did];
        let offline = |collection: &str| {
            command().args(offline).args(["--collection", collection, "--json"]).assert()
        };
        assert_eq!(json(&offline(collection).success())["collections_proof"], *proved);
        let other = if collection == "app.bsky.feed.like" {
            "app.bsky.feed.post"
        } else {
            "app.bsky.feed.like"
        };
        let findings = &json(&offline(other).code(1))["findings"];
        assert_eq!(findings[0]["code"], "tree/missing-node", "{findings}");
    }
    let all = collections.iter().copied().collect::<Vec<_>>().join(",");
    let printed = stdout(&network.verify(&["--collection", &all]).success());
    assert!(printed.contains("proved   all 600 records of"), "{printed}");
    let printed = stdout(&network.verify(&["--collection", "app.bsky.*"]).success());
    assert!(printed.contains("proved   all 600 records of app.bsky.*; there are no others"));
    network.fails(&["--collection", &all, "--max-bytes", "1000"], 3, "the limit of --max-bytes");
    network.sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    network.fails(&["--collection", "app.bsky.feed.post"], 1, "signature/wrong");
}

#[test]
fn records_of_an_account_are_listed_and_printed_by_name_once_they_are_proved() {
    let network = Network::start();
    let AccountInfo { did, handle, .. } = &network.account;
    let listed = stdout(&network.run(&["ls", handle]).success());
    let records: Vec<(&str, &str)> =
        listed.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(records.len(), 20);
    let (path, cid) = records[3];
    let (collection, _) = path.split_once('/').unwrap();

    // Every form of the name is the same record, with one slice per form.
    let uri = format!("at://{did}/{path}");
    let record = stdout(&network.run(&["get", &uri]).success());
    let parsed: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(parsed["$type"], collection);
    for name in [format!("{handle}/{path}"), format!(" @{handle}/{path}")] {
        assert_eq!(stdout(&network.run(&["get", &name]).success()), record, "{name}");
    }
    assert_eq!(stdout(&network.run(&["repo", "get", handle, path]).success()), record);
    let raw = network.run(&["get", &uri, "--raw"]).success();
    let raw = raw.get_output().stdout.clone();
    assert_eq!(codec::cid::Cid::of(codec::cid::Codec::DagCbor, &raw).to_string(), cid);

    let of_collection = |args: &[&str]| stdout(&network.run(args).success()).lines().count();
    let count = records.iter().filter(|(path, _)| path.split_once('/').unwrap().0 == collection);
    let count = count.count();
    assert_eq!(of_collection(&["ls", &format!("at://{handle}/{collection}")]), count);
    assert_eq!(of_collection(&["repo", "ls", did, "--collection", collection]), count);
    let mut other = records.iter().map(|(path, _)| path.split_once('/').unwrap().0);
    let other = other.rfind(|other| *other != collection).unwrap();
    let both = format!("{collection}, {other}");
    let lines = of_collection(&["ls", handle, "--collection", &both]);
    let is_of_both = |path: &&str| [collection, other].contains(&path.split_once('/').unwrap().0);
    assert_eq!(lines, records.iter().map(|(path, _)| *path).filter(is_of_both).count());
    let exported = stdout(&network.run(&["repo", "export", did, "--format", "ndjson"]).success());
    let stats = json(&network.run(&["repo", "stats", did, "--json"]).success());
    assert_eq!(stats["did"], *did);
    assert_eq!(stats["records"], exported.lines().count());
    assert_eq!(exported.lines().count(), records.len());

    let absent = network.run(&["get", &format!("{handle}/app.bsky.feed.post/3zzzzzzzzzzzz")]);
    assert!(stderr(&absent.code(1)).contains("proved absent"));
    assert!(stderr(&network.run(&["get", handle]).code(2)).contains("wireproof ls"));
    assert!(stderr(&network.run(&["ls", "alice"]).code(2)).contains("alice.bsky.social"));
}

#[test]
fn the_part_of_a_repository_with_a_collection_is_exported_and_proved_again() {
    let network = Network::start();
    let AccountInfo { did, handle, signing_key, .. } = &network.account;
    let dir = tempfile::tempdir().unwrap();
    let name = |file: &str| dir.path().join(file).to_str().unwrap().to_owned();
    let (whole, part, again) = (name("whole.car"), name("part.car"), name("again.car"));
    network.verify(&["--save", &whole]).success();
    let expected = &network.sim.expected_accounts()[0].records;
    let collection = expected.keys().next().unwrap().split_once('/').unwrap().0;
    let prefix = format!("{collection}/");
    let paths: Vec<&str> =
        expected.keys().map(|path| &**path).filter(|path| path.starts_with(&prefix)).collect();
    let uri = format!("at://{handle}/{collection}");

    let lines = json_lines(&network.run(&["repo", "export", &uri, "--format", "ndjson"]).success());
    let exported: Vec<String> =
        lines.iter().map(|line| format!("{prefix}{}", line["rkey"].as_str().unwrap())).collect();
    assert_eq!(exported, paths);

    network.run(&["repo", "export", &uri, "--out", &part]).success();
    let of_file = ["repo", "export", &whole, "--collection", collection, "--out", &again];
    command().args(of_file).assert().success();
    assert!(std::fs::metadata(&again).unwrap().len() < std::fs::metadata(&whole).unwrap().len());
    for file in [&part, &again] {
        let options = ["--key", signing_key, "--did", did, "--collection", collection, "--json"];
        let proof = json(&command().args(["verify", file]).args(options).assert().success());
        let proof = &proof["collections_proof"];
        assert_eq!((&proof["records"], &proof["extra_blocks"]), (&paths.len().into(), &0.into()));
        let list = |options: &[&str]| command().args(["repo", "ls", file]).args(options).assert();
        let listed = stdout(&list(&["--collection", collection]).success());
        let listed: Vec<&str> =
            listed.lines().map(|line| line.split_once('\t').unwrap().0).collect();
        assert_eq!(listed, paths);
        // It is not the whole repository, and proves nothing of another collection that it lacks.
        let refused = list(&[]).code(1);
        assert!(stderr(&refused).contains(&**file), "{}", stderr(&refused));
    }
    let usage = network.run(&["ls", handle, "--collection", "posts"]).code(2);
    assert!(stderr(&usage).contains("--collection posts"), "{}", stderr(&usage));
    network.sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    let refused = network.run(&["repo", "export", &uri]).code(1);
    assert!(stderr(&refused).contains("signature/wrong"), "{}", stderr(&refused));
    assert_eq!(stdout(&refused), "");
}

#[test]
fn a_server_without_get_blocks_sends_the_whole_repository_and_the_command_says_so() {
    let network = Network::start();
    let relay = network.sim.url(Server::Relay(0));
    let uri = format!("at://{}/app.bsky.feed.post", network.account.handle);
    let from = ["--from", &*relay];
    let proof = json(&network.run(&[&["verify", &uri, "--json"], &from[..]].concat()).success());
    let reason = proof["whole_repository"].as_str().unwrap();
    assert!(reason.contains("getBlocks: MethodNotImplemented"), "{reason}");
    assert_eq!(proof["collections_proof"]["extra_blocks"], 0);
    assert!(proof["received_bytes"].as_u64() > proof["bytes"].as_u64(), "{proof}");
    let listed = network.run(&[&["ls", &uri], &from[..]].concat()).success();
    assert!(stderr(&listed).contains("the whole repository was fetched"), "{}", stderr(&listed));
    assert!(stdout(&listed).lines().all(|line| line.starts_with("app.bsky.feed.post/")));
}

#[test]
fn a_record_or_a_repository_that_is_not_proved_is_not_printed() {
    let network = Network::with(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    let (did, handle) = (&network.account.did, &network.account.handle);
    let expected = &network.sim.expected_accounts()[0];
    let (path, _) = expected.records.first_key_value().unwrap();
    for args in [&["ls", handle.as_str()][..], &["get", &format!("at://{did}/{path}")]] {
        let refused = network.run(args).code(1);
        assert!(stderr(&refused).contains("signature/wrong"), "{args:?}: {}", stderr(&refused));
        assert_eq!(stdout(&refused), "", "{args:?}");
    }
}

#[test]
fn options_that_conflict_are_exit_code_2_with_advice() {
    let network = Network::start();
    let collection = format!("at://{}/app.bsky.feed.post", network.account.handle);
    let record = format!("{collection}/3zzzzzzzzzzzz");
    let key = &*network.account.signing_key;
    for (args, words) in [
        (&["verify", &collection, "--collection", "app.bsky.feed.like"][..], "--collection"),
        (&["verify", &record, "--collection", "app.bsky.feed.like"], "not for a record"),
        (&["verify", &network.account.handle, "--collection", "posts"], "--collection posts"),
        (&["verify", &collection, "--rebuild"], "whole repositories"),
        (
            &["verify", "there.car", "--without-signature", "--collection", "app.bsky.feed.like"],
            "give one",
        ),
        (&["verify", "at://no handle/x"], "at://no handle/x"),
        (&["verify", &network.account.handle, "--key", key], "DID document"),
        (&["verify", "there.car"], "--without-signature"),
        (&["verify", "there.car", "--key", key, "--save", "x.car"], "--save"),
    ] {
        let usage = network.run(args).code(2);
        assert!(stderr(&usage).contains(words), "{}", stderr(&usage));
    }
    // A path or --file names a file.
    network.run(&["verify", "./not.there", "--key", key]).code(4);
    network.run(&["verify", "--file", "not.there", "--key", key]).code(4);
    assert!(!Path::new("x.car").exists());
}

#[test]
fn bench_verify_downloads_the_repository_once_for_all_peers() {
    let network = Network::start();
    let folder = tempfile::tempdir().unwrap();
    let work_dir = folder.path().to_str().unwrap();
    let peers = ["--peers", "wireproof", "--passes", "1", "--warmup", "0", "--work-dir", work_dir];
    let bench = [&["bench", "verify", &*network.account.handle], &peers[..]].concat();
    let table = stdout(&network.run(&bench).success());
    for part in ["resolve handle", "fetch", "network ms", "repo", "wireproof"] {
        assert!(table.contains(part), "{table}");
    }
    let requests = network.sim.request_counts(PDS);
    assert_eq!(requests["/xrpc/com.atproto.sync.getRepo"], 1);
    let kept = folder.path().join("fetched").join(network.account.did.replace(':', "-"));
    let owner: Value =
        serde_json::from_slice(&fs::read(kept.with_extension("json")).unwrap()).unwrap();
    assert_eq!(owner["signing_key"], *network.account.signing_key);
    let car = kept.with_extension("car");
    let car = car.to_str().unwrap();
    command().args(["verify", car, "--key", &*network.account.signing_key]).assert().success();

    network.sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ONCE);
    let refused = network.run(&bench).code(1);
    assert!(stderr(&refused).contains("signature/wrong"), "{}", stderr(&refused));
    assert_eq!(stdout(&refused), "");
}
