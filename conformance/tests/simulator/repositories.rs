//! The sync endpoints of PDSs and relays; documents, logs and handles.

use atproto::did_document::{DidDocument, Options};
use codec::{Cid, car};
use simnet::servers::{AccountStatus, Server, Simulation};
use verify::{identity, plc, record, repository};

use crate::client::{get, key, sim, try_get, xrpc};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

/// Verifies the repository that a PDS returns for an account, and counts its records.
async fn records(sim: &Simulation, number: usize) -> u64 {
    let account = sim.account(number);
    let export =
        xrpc(sim, Server::Pds(account.host), &format!("getRepo?did={}", account.did)).await;
    assert_eq!(export.header("content-type"), "application/vnd.ipld.car");
    let options = repository::Options::default();
    let whole = repository::verify(&export.bytes, Some(&account.did), &key(&account), &options);
    let whole = whole.expect("a repository that holds");
    assert_eq!(whole.root(), sim.expected_accounts()[number].commit);
    whole.tree().records
}

#[tokio::test]
async fn a_repository_holds_and_has_the_records_that_are_expected() {
    let sim = sim(|_| ());
    for number in 0..sim.account_count() {
        assert_eq!(records(&sim, number).await, 20);
    }
    sim.write_commits(60);
    for (number, expected) in sim.expected_accounts().iter().enumerate() {
        assert_eq!(records(&sim, number).await, expected.records.len() as u64);
    }
}

#[tokio::test]
async fn a_repository_is_signed_by_the_key_after_a_rotation() {
    let sim = sim(|_| ());
    sim.rotate_key(0);
    records(&sim, 0).await;
}

#[tokio::test]
async fn a_record_is_proved_present_or_absent() {
    let sim = sim(|_| ());
    let account = sim.account(0);
    let options = record::Options::default();
    let expected = sim.expected_accounts()[0].records.clone();
    let absent = "app.bsky.feed.post/3zzzzzzzzzzzz";
    for path in expected.keys().map(String::as_str).chain([absent]) {
        let (collection, rkey) = path.split_once('/').unwrap();
        let query = format!("getRecord?did={}&collection={collection}&rkey={rkey}", account.did);
        let slice = xrpc(&sim, PDS, &query).await;
        let proof =
            record::verify(&slice.bytes, path, Some(&account.did), &key(&account), &options);
        let proof = proof.expect("a proof");
        assert_eq!(proof.record().is_some(), expected.contains_key(path), "{path}");
    }
}

#[tokio::test]
async fn blocks_come_by_their_names() {
    let sim = sim(|_| ());
    let expected = &sim.expected_accounts()[0];
    let did = &expected.account.did;
    let record = expected.records.values().next().unwrap();
    let wanted = [expected.commit, expected.data, *record];
    let names: String = wanted.iter().map(|cid| format!("&cids={cid}")).collect();
    let slice = xrpc(&sim, PDS, &format!("getBlocks?did={did}{names}")).await;
    let read = car::read(&slice.bytes, &car::Options::default()).unwrap();
    let found: Vec<Cid> = read.blocks.iter().map(|block| block.cid.to_cid().unwrap()).collect();
    assert_eq!(found, wanted);
    let strange = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";
    let missing = xrpc(&sim, PDS, &format!("getBlocks?did={did}&cids={strange}")).await;
    assert_eq!((missing.status, missing.json()["error"].as_str()), (400, Some("BlockNotFound")));
}

#[tokio::test]
async fn the_latest_commit_and_the_status_are_returned() {
    let sim = sim(|_| ());
    sim.write_commits(20);
    let expected = &sim.expected_accounts()[0];
    let did = &expected.account.did;
    for server in [PDS, RELAY] {
        let latest = xrpc(&sim, server, &format!("getLatestCommit?did={did}")).await.json();
        assert_eq!(latest["cid"], expected.commit.to_string());
        assert_eq!(latest["rev"], expected.rev.to_string());
        let status = xrpc(&sim, server, &format!("getRepoStatus?did={did}")).await.json();
        assert_eq!((&status["active"], &status["rev"]), (&true.into(), &latest["rev"]));
    }
}

#[tokio::test]
async fn who_is_not_active_is_refused_by_name() {
    let sim = sim(|_| ());
    let did = sim.account(0).did;
    let statuses = [
        (AccountStatus::TakenDown, "takendown", "RepoTakendown"),
        (AccountStatus::Suspended, "suspended", "RepoSuspended"),
        (AccountStatus::Deactivated, "deactivated", "RepoDeactivated"),
    ];
    for (status, word, error) in statuses {
        sim.set_account_status(0, status);
        for method in ["getRepo", "getLatestCommit", "getBlocks"] {
            let answer = xrpc(&sim, PDS, &format!("{method}?did={did}")).await;
            assert_eq!((answer.status, answer.json()["error"].as_str()), (400, Some(error)));
        }
        let sent = xrpc(&sim, PDS, &format!("getRepoStatus?did={did}")).await.json();
        assert_eq!((&sent["active"], &sent["status"]), (&false.into(), &word.into()));
    }
    sim.set_account_status(0, AccountStatus::Active);
    assert_eq!(xrpc(&sim, PDS, &format!("getRepo?did={did}")).await.status, 200);
    let nobody = xrpc(&sim, PDS, "getRepo?did=did:plc:ewvi7nxzyoun6zhxrhs64oiz").await;
    assert_eq!(nobody.json()["error"], "RepoNotFound");
    let elsewhere = sim.account(1).did;
    let elsewhere = xrpc(&sim, PDS, &format!("getRepo?did={elsewhere}")).await;
    assert_eq!(elsewhere.json()["error"], "RepoNotFound");
}

#[tokio::test]
async fn lists_come_page_by_page() {
    let sim = sim(|spec| spec.accounts = 7);
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = xrpc(&sim, RELAY, &format!("listRepos?limit=2{cursor}")).await.json();
        let repos = page["repos"].as_array().unwrap();
        assert!(repos.len() <= 2);
        found.extend(repos.iter().map(|repo| repo["did"].as_str().unwrap().to_owned()));
        let Some(next) = page["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let all: Vec<String> = (0..7).map(|number| sim.account(number).did).collect();
    assert_eq!(found, all);
    let by_collection = |name| format!("listReposByCollection?collection={name}");
    let profiles = xrpc(&sim, RELAY, &by_collection("app.bsky.actor.profile")).await.json();
    assert_eq!(profiles["repos"].as_array().unwrap().len(), 7);
    let none = xrpc(&sim, RELAY, &by_collection("app.bsky.actor")).await.json();
    assert_eq!(none["repos"].as_array().unwrap().len(), 0);
    assert_eq!(xrpc(&sim, RELAY, "listRepos?limit=0").await.status, 400);
}

#[tokio::test]
async fn a_relay_names_its_hosts_and_sends_for_repositories_to_them() {
    let sim = sim(|_| ());
    let hosts = xrpc(&sim, RELAY, "listHosts").await.json();
    let host = &hosts["hosts"][1];
    assert_eq!(host["hostname"], format!("localhost:{}", sim.port(Server::Pds(1))));
    assert_eq!((&host["accountCount"], &host["status"]), (&3.into(), &"active".into()));
    let account = sim.account(1);
    let sent = xrpc(&sim, RELAY, &format!("getRepo?did={}", account.did)).await;
    assert_eq!(sent.status, 302);
    let location = sent.header("location");
    assert!(location.starts_with(&sim.url(Server::Pds(1))), "{location}");
    assert_eq!(reqwest::get(location).await.unwrap().status(), 200);
}

#[tokio::test]
async fn missing_data_is_reported_by_name() {
    let sim = sim(|_| ());
    assert_eq!(xrpc(&sim, PDS, "getWeather").await.json()["error"], "MethodNotImplemented");
    assert_eq!(xrpc(&sim, RELAY, "getRecord").await.status, 501);
    assert_eq!(xrpc(&sim, PDS, "getRepo").await.json()["error"], "InvalidRequest");
    assert_eq!(xrpc(&sim, PDS, "subscribeRepos").await.status, 426);
    for server in [PDS, RELAY, Server::Jetstream(0)] {
        assert_eq!(get(&sim, server, "/xrpc/_health").await.status, 200);
        assert_eq!(get(&sim, server, "/nothing").await.status, 404);
    }
    assert_eq!(sim.request_counts(PDS)["/xrpc/com.atproto.sync.getWeather"], 1);
}

async fn history(sim: &Simulation, did: &str, path: &str) -> plc::History {
    let log = get(sim, Server::Plc, &format!("/{did}{path}")).await;
    let mut options = plc::Options::default();
    options.did = Some(did.parse().unwrap());
    plc::verify(&log.bytes, &options).expect("a log that holds").into_inner()
}

#[tokio::test]
async fn a_did_is_the_hash_of_a_signed_operation_and_its_log_holds() {
    let sim = sim(|_| ());
    for number in 0..sim.account_count() {
        let account = sim.account(number);
        for path in ["/log", "/log/audit"] {
            let data = history(&sim, &account.did, path).await;
            let data = data.data().expect("no tombstone").clone();
            assert_eq!(data.signing_key(), Some(&*account.signing_key));
            assert_eq!(data.handle().unwrap(), account.handle.as_str());
        }
        let last = get(&sim, Server::Plc, &format!("/{}/log/last", account.did)).await.json();
        assert_eq!(last["services"]["atproto_pds"]["endpoint"], sim.url(Server::Pds(account.host)));
        let data = get(&sim, Server::Plc, &format!("/{}/data", account.did)).await.json();
        assert_eq!(data["did"], account.did);
    }
}

#[tokio::test]
async fn a_document_names_handle_key_and_host() {
    let sim = sim(|_| ());
    let account = sim.account(1);
    let answer = get(&sim, Server::Plc, &format!("/{}", account.did)).await;
    assert!(answer.header("content-type").starts_with("application/did+ld+json"));
    let document = DidDocument::parse(&answer.bytes, &Options::default()).unwrap();
    assert_eq!(document.did().as_str(), account.did);
    assert_eq!(document.handle().unwrap(), account.handle.as_str());
    let key = identity::signing_key(&document).unwrap().unwrap();
    assert_eq!(key.to_did_key(), account.signing_key);
    let service = &answer.json()["service"][0];
    assert_eq!(service["serviceEndpoint"], sim.url(Server::Pds(account.host)));
}

#[tokio::test]
async fn who_is_unknown_or_buried_is_not_found() {
    let sim = sim(|_| ());
    let unknown = get(&sim, Server::Plc, "/did:plc:ewvi7nxzyoun6zhxrhs64oiz").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["message"].as_str().unwrap().starts_with("DID not registered"));
    let account = sim.account(0);
    sim.delete_account(0);
    for path in ["", "/data"] {
        let gone = get(&sim, Server::Plc, &format!("/{}{path}", account.did)).await;
        assert_eq!(gone.status, 404, "{path}");
    }
    assert_eq!(history(&sim, &account.did, "/log/audit").await.data(), None);
}

#[tokio::test]
async fn a_handle_resolves_by_its_name_and_by_xrpc() {
    let sim = sim(|_| ());
    let account = sim.account(2);
    let host = [("host", account.handle.as_str())];
    let by_name = try_get(&sim, Server::Pds(0), "/.well-known/atproto-did", &host).await.unwrap();
    assert_eq!(by_name.text(), account.did);
    let path = |handle| format!("/xrpc/com.atproto.identity.resolveHandle?handle={handle}");
    let by_xrpc = get(&sim, Server::Pds(0), &path(account.handle.as_str())).await;
    assert_eq!(by_xrpc.json()["did"], account.did);
    assert_eq!(get(&sim, Server::Pds(0), &path("nobody.test")).await.status, 400);
    assert_eq!(get(&sim, Server::Pds(0), "/.well-known/atproto-did").await.status, 404);
}

#[tokio::test]
async fn a_new_key_handle_and_host_are_in_a_log_that_holds() {
    let sim = sim(|_| ());
    let old = sim.account(0);
    sim.rotate_key(0);
    sim.change_handle(0, "zoe.test");
    sim.migrate_account(0, 1);
    let new = sim.account(0);
    assert_ne!(new.signing_key, old.signing_key);
    let history = history(&sim, &new.did, "/log/audit").await;
    let data = history.data().expect("no tombstone");
    assert_eq!(data.signing_key(), Some(&*new.signing_key));
    let path = |handle| format!("/xrpc/com.atproto.identity.resolveHandle?handle={handle}");
    assert_eq!(get(&sim, Server::Pds(1), &path("zoe.test")).await.json()["did"], new.did);
    assert_eq!(get(&sim, Server::Pds(1), &path(old.handle.as_str())).await.status, 400);
    let list = |host| get(&sim, Server::Pds(host), "/xrpc/com.atproto.sync.listRepos");
    assert!(!list(0).await.text().contains(&new.did));
    assert!(list(1).await.text().contains(&new.did));
}

#[test]
fn the_same_seed_gives_the_same_accounts_on_any_port() {
    let [one, two] = [(); 2].map(|()| sim(|spec| spec.initial_commits = 30));
    assert_ne!(one.port(Server::Plc), two.port(Server::Plc));
    assert_eq!(one.expected_accounts(), two.expected_accounts());
    one.write_commits(10);
    two.write_commits(10);
    assert_eq!(one.expected_accounts(), two.expected_accounts());
    let lines = |sim: &Simulation| sim.sent_events(Server::Relay(0));
    assert_eq!(lines(&one), lines(&two));
    let other = sim(|spec| spec.seed = 7);
    assert_ne!(other.account(0).did, one.account(0).did);
}

#[test]
fn what_is_prepared_by_all_cores_is_what_would_have_been_written_one_by_one() {
    let prepared = sim(|spec| spec.initial_commits = 40);
    let written = sim(|_| ());
    written.write_commits(40);
    assert_eq!(prepared.expected_accounts(), written.expected_accounts());
}
