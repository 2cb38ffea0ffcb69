//! Queries to `wireproof serve` by `@atproto/api`, whose answers are compared with the accounts of the network.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simnet::servers::{AccountStatus, ExpectedAccount, Server};
use wireproof_interop::kit;
use wireproof_interop::reader::Reader;

use crate::served::{RELAY, Served};

#[test]
fn atproto_api_finds_the_last_commit_and_the_state_of_every_account_after_a_kill() {
    let kit = kit!(Readers);
    let mut served = Served::start();
    served.change();
    // The key of a deleted account is nowhere.
    let is_served = |of: &ExpectedAccount| {
        let query = format!("/xrpc/com.atproto.sync.getLatestCommit?did={}", of.account.did);
        served.get(&query).contains(&of.rev.to_string())
    };
    let deadline = Instant::now() + TIMEOUT;
    while !served.sim.expected_accounts().iter().all(is_served) {
        assert!(Instant::now() < deadline, "a commit is not served");
        sleep(Duration::from_millis(100));
    }
    served.sim.set_account_status(0, AccountStatus::TakenDown);
    served.sim.set_account_status(1, AccountStatus::Suspended);
    served.sim.set_account_status(3, AccountStatus::Deactivated);
    served.sim.delete_account(5);
    served.kill_and_restart();
    let accounts = served.sim.expected_accounts();
    let expected = expected_answers(&served, &accounts);
    let dids = accounts.iter().map(|of| &*of.account.did).chain([UNKNOWN]).collect::<Vec<_>>();
    let ask = || all_of(&Reader::atproto_api(&kit, &served.http_url(), COLLECTION, &dids));
    // Events are verified first, and queries are answered a moment after streams have them.
    let deadline = Instant::now() + TIMEOUT;
    let mut answers = ask();
    while answers != expected && Instant::now() < deadline {
        sleep(Duration::from_millis(200));
        answers = ask();
    }
    answers.iter().zip(&expected).for_each(|(answer, expected)| assert_eq!(answer, expected));
    assert_eq!(answers.len(), expected.len());
}

#[test]
fn atproto_repo_verifies_whole_repositories_and_the_proofs_of_records() {
    let kit = kit!(Readers);
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive").to_string_lossy().into_owned();
    let served = Served::start_after_backfill(&archive);
    served.sim.write_commits(100);
    let accounts = served.sim.expected_accounts();
    let dids: Vec<&str> = accounts.iter().map(|of| &*of.account.did).collect();
    let expected: Vec<Value> = accounts.iter().flat_map(whole_repository).collect();
    let plc = served.sim.url(Server::Plc);
    let ask = || all_of(&Reader::atproto_repo(&kit, &served.http_url(), &plc, &dids));
    let deadline = Instant::now() + TIMEOUT;
    let mut answers = ask();
    while answers != expected && Instant::now() < deadline {
        sleep(Duration::from_millis(200));
        answers = ask();
    }
    answers.iter().zip(&expected).for_each(|(answer, expected)| assert_eq!(answer, expected));
    assert_eq!(answers.len(), expected.len());
}

/// What is found in the repository of an account.
fn whole_repository(of: &ExpectedAccount) -> Vec<Value> {
    let did = &of.account.did;
    let commit = json!({
        "kind": "commit", "did": did, "cid": of.commit.to_string(), "rev": of.rev.to_string(),
    });
    let record = |(path, cid): (&String, &codec::Cid)| json!({ "kind": "record", "did": did, "path": path, "cid": cid.to_string() });
    let proof = json!({ "kind": "proof", "did": did, "verified": 1 });
    let records = of.records.iter().map(record);
    [commit].into_iter().chain(records).chain([proof]).collect()
}

fn all_of(reader: &Reader) -> Vec<Value> {
    std::iter::from_fn(|| reader.next_or_end()).collect()
}

fn expected_answers(served: &Served, accounts: &[ExpectedAccount]) -> Vec<Value> {
    let mut sorted: Vec<&ExpectedAccount> = accounts.iter().collect();
    sorted.sort_by(|a, b| a.account.did.cmp(&b.account.did));
    let mut answers: Vec<Value> = sorted.iter().map(|of| repo(of)).collect();
    // Every account has posted. A deleted one has nothing.
    let exists = |of: &&&ExpectedAccount| of.account.status != AccountStatus::Deleted;
    answers.extend(
        sorted
            .iter()
            .filter(exists)
            .map(|of| json!({ "kind": "repo in collection", "did": of.account.did })),
    );
    let (host, seq) = (hostname(served), served.sim.last_seq(RELAY));
    answers.push(json!({ "kind": "host", "hostname": host, "seq": seq, "status": "active" }));
    answers.extend(accounts.iter().flat_map(|of| [status(of), latest(of)]));
    answers.extend(["status", "latest"].map(
        |kind| json!({ "kind": kind, "did": UNKNOWN, "refusal": "RepoNotFound", "http": 404 }),
    ));
    answers.push(json!({
        "kind": "host status", "hostname": host, "seq": seq, "status": "active", "accountCount": accounts.len(),
    }));
    answers.push(json!({ "kind": "host status", "hostname": "another.test", "refusal": "HostNotFound", "http": 404 }));
    answers
}

fn hostname(served: &Served) -> String {
    served.sim.url(RELAY).trim_start_matches("http://").to_owned()
}

fn repo(of: &ExpectedAccount) -> Value {
    let (did, head, rev) = (&of.account.did, of.commit.to_string(), of.rev.to_string());
    with_status(of, json!({ "kind": "repo", "did": did, "head": head, "rev": rev }))
}

fn status(of: &ExpectedAccount) -> Value {
    let mut answer = with_status(of, json!({ "kind": "status", "did": of.account.did }));
    if is_active(of) {
        answer["rev"] = json!(of.rev.to_string());
    }
    answer
}

fn latest(of: &ExpectedAccount) -> Value {
    let did = &of.account.did;
    let refusal = match of.account.status {
        AccountStatus::Active => {
            let (cid, rev) = (of.commit.to_string(), of.rev.to_string());
            return json!({ "kind": "latest", "did": did, "cid": cid, "rev": rev });
        }
        AccountStatus::TakenDown => "RepoTakendown",
        AccountStatus::Suspended => "RepoSuspended",
        AccountStatus::Deactivated | AccountStatus::Deleted => "RepoDeactivated",
    };
    json!({ "kind": "latest", "did": did, "refusal": refusal, "http": 403 })
}

fn with_status(of: &ExpectedAccount, mut answer: Value) -> Value {
    answer["active"] = json!(is_active(of));
    if let Some(status) = of.account.status.as_str() {
        answer["status"] = json!(status);
    }
    answer
}

fn is_active(of: &ExpectedAccount) -> bool {
    of.account.status == AccountStatus::Active
}

const COLLECTION: &str = "app.bsky.feed.post";
const UNKNOWN: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";
const TIMEOUT: Duration = Duration::from_secs(120);
