//! Documents, logs and handles.

use simnet::servers::{Server, World};
use wireproof::atproto::did_document::{DidDocument, Options};
use wireproof::verify::{identity, plc};

use crate::client::{get, try_get, world};

async fn history(world: &World, did: &str, path: &str) -> plc::History {
    let log = get(world, Server::Plc, &format!("/{did}{path}")).await;
    let options = plc::Options { did: Some(did.parse().unwrap()), ..plc::Options::default() };
    plc::judge(&log.bytes, &options).expect("a log that holds").into_inner()
}

#[tokio::test]
async fn a_did_is_the_hash_of_a_signed_operation_and_its_log_holds() {
    let world = world(|_| ());
    for number in 0..world.accounts() {
        let account = world.account(number);
        for path in ["/log", "/log/audit"] {
            let data = history(&world, &account.did, path).await;
            let data = data.data().expect("no tombstone").clone();
            assert_eq!(data.signing_key(), Some(&*account.signing_key));
            assert_eq!(data.handle().unwrap(), account.handle.as_str());
        }
        let last = get(&world, Server::Plc, &format!("/{}/log/last", account.did)).await.json();
        assert_eq!(
            last["services"]["atproto_pds"]["endpoint"],
            world.url(Server::Pds(account.host))
        );
        let data = get(&world, Server::Plc, &format!("/{}/data", account.did)).await.json();
        assert_eq!(data["did"], account.did);
    }
}

#[tokio::test]
async fn a_document_names_handle_key_and_host() {
    let world = world(|_| ());
    let account = world.account(1);
    let answer = get(&world, Server::Plc, &format!("/{}", account.did)).await;
    assert!(answer.header("content-type").starts_with("application/did+ld+json"));
    let document = DidDocument::parse(&answer.bytes, &Options::default()).unwrap();
    assert_eq!(document.did().as_str(), account.did);
    assert_eq!(document.handle().unwrap(), account.handle.as_str());
    let key = identity::signing_key(&document).unwrap().unwrap();
    assert_eq!(key.to_did_key(), account.signing_key);
    let service = &answer.json()["service"][0];
    assert_eq!(service["serviceEndpoint"], world.url(Server::Pds(account.host)));
}

#[tokio::test]
async fn who_is_unknown_or_buried_is_not_found() {
    let world = world(|_| ());
    let unknown = get(&world, Server::Plc, "/did:plc:ewvi7nxzyoun6zhxrhs64oiz").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["message"].as_str().unwrap().starts_with("DID not registered"));
    let account = world.account(0);
    world.delete(0);
    for path in ["", "/data"] {
        let gone = get(&world, Server::Plc, &format!("/{}{path}", account.did)).await;
        assert_eq!(gone.status, 404, "{path}");
    }
    assert_eq!(history(&world, &account.did, "/log/audit").await.data(), None);
}

#[tokio::test]
async fn a_handle_resolves_by_its_name_and_by_xrpc() {
    let world = world(|_| ());
    let account = world.account(2);
    let host = [("host", account.handle.as_str())];
    let by_name = try_get(&world, Server::Pds(0), "/.well-known/atproto-did", &host).await.unwrap();
    assert_eq!(by_name.text(), account.did);
    let path = |handle| format!("/xrpc/com.atproto.identity.resolveHandle?handle={handle}");
    let by_xrpc = get(&world, Server::Pds(0), &path(account.handle.as_str())).await;
    assert_eq!(by_xrpc.json()["did"], account.did);
    assert_eq!(get(&world, Server::Pds(0), &path("nobody.test")).await.status, 400);
    assert_eq!(get(&world, Server::Pds(0), "/.well-known/atproto-did").await.status, 404);
}

#[tokio::test]
async fn a_new_key_handle_and_host_are_in_a_log_that_holds() {
    let world = world(|_| ());
    let old = world.account(0);
    world.rotate_key(0);
    world.rename(0, "zoe.test");
    world.migrate(0, 1);
    let new = world.account(0);
    assert_ne!(new.signing_key, old.signing_key);
    let history = history(&world, &new.did, "/log/audit").await;
    let data = history.data().expect("no tombstone");
    assert_eq!(data.signing_key(), Some(&*new.signing_key));
    let path = |handle| format!("/xrpc/com.atproto.identity.resolveHandle?handle={handle}");
    assert_eq!(get(&world, Server::Pds(1), &path("zoe.test")).await.json()["did"], new.did);
    assert_eq!(get(&world, Server::Pds(1), &path(old.handle.as_str())).await.status, 400);
    let list = |host| get(&world, Server::Pds(host), "/xrpc/com.atproto.sync.listRepos");
    assert!(!list(0).await.text().contains(&new.did));
    assert!(list(1).await.text().contains(&new.did));
}

#[test]
fn the_same_seed_gives_the_same_accounts_on_any_port() {
    let [one, two] = [(); 2].map(|()| world(|spec| spec.prepared = 30));
    assert_ne!(one.port(Server::Plc), two.port(Server::Plc));
    assert_eq!(one.expected(), two.expected());
    one.write(10);
    two.write(10);
    assert_eq!(one.expected(), two.expected());
    let lines = |world: &World| world.told(Server::Relay(0));
    assert_eq!(lines(&one), lines(&two));
    let other = world(|spec| spec.seed = 7);
    assert_ne!(other.account(0).did, one.account(0).did);
}

#[test]
fn what_is_prepared_by_all_cores_is_what_would_have_been_written_one_by_one() {
    let prepared = world(|spec| spec.prepared = 40);
    let written = world(|_| ());
    written.write(40);
    assert_eq!(prepared.expected(), written.expected());
}
