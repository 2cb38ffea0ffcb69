//! Documents, logs and handles.

use simnet::servers::{Server, Simulation};
use wireproof::atproto::did_document::{DidDocument, Options};
use wireproof::verify::{identity, plc};

use crate::client::{get, sim, try_get};

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
