//! The sync endpoints of PDSs and relays.

use simnet::servers::{AccountStatus, Server, Simulation};
use wireproof::codec::{Cid, car};
use wireproof::verify::{record, repository};

use crate::client::{get, key, sim, xrpc};

const PDS: Server = Server::Pds(0);
const RELAY: Server = Server::Relay(0);

/// Judges what a PDS gives as the repository of an account, and counts its records.
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
async fn the_latest_commit_and_the_status_are_told() {
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
        let told = xrpc(&sim, PDS, &format!("getRepoStatus?did={did}")).await.json();
        assert_eq!((&told["active"], &told["status"]), (&false.into(), &word.into()));
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
async fn what_nobody_has_is_said_so() {
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
