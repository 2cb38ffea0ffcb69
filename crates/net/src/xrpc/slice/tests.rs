//! Tests that a slice has all blocks of the collections and no others, from servers that answer well, partly or wrongly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atproto::commit::UnsignedCommit;
use atproto::mst::canonical;
use atproto::repo::RepositoryWriter;
use atproto::syntax::{CollectionPatternBuf, DidBuf, Tid};
use codec::cbor::Encoder;
use codec::cid::Codec;
use crypto::{Curve, SecretKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use verify::{collections, record};

use super::*;
use crate::dns::LoopbackDns;
use crate::egress::EgressPolicy;
use crate::http;
use crate::rate_limit::RateLimiter;

const DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

/// A repository of 3,000 posts, 40 things and 1,000 likes.
struct Repo {
    secret: SecretKey,
    writer: RepositoryWriter,
    rev: Tid,
}

impl Repo {
    fn new() -> Self {
        let secret = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
        let did: DidBuf = DID.parse().unwrap();
        let writer = RepositoryWriter::new(did.as_did());
        let mut repo = Self { secret, writer, rev: Tid::new(1_767_225_600_000_000, 0) };
        for (collection, count) in
            [("app.test.like", 1_000), ("app.test.post", 3_000), ("app.test.thing", 40)]
        {
            for number in 0..count {
                repo.create(collection, number);
                // A commit takes a limited number of operations.
                if number % 100 == 99 || number + 1 == count {
                    repo.commit();
                }
            }
        }
        repo
    }

    fn create(&mut self, collection: &str, number: usize) {
        let mut block = Encoder::new();
        block.map(2).text("n").integer(number as i64).text("$type").text(collection);
        self.writer.create(&format!("{collection}/{number:05}"), &block.into_bytes()).unwrap();
    }

    fn commit(&mut self) {
        self.rev = Tid::new(self.rev.micros() + 1, 0);
        self.writer.commit(self.rev, |message| self.secret.sign(message)).unwrap();
    }

    fn state(&mut self) -> State {
        let export = self.writer.export(Vec::new()).unwrap();
        let archive = car::read(&export, &car::Options::default()).unwrap();
        let root = archive.roots.first().unwrap().to_cid().unwrap();
        let blocks = archive.blocks.iter();
        let blocks = blocks.map(|block| (block.cid.to_cid().unwrap(), block.data.to_vec()));
        State { root, blocks: blocks.collect() }
    }
}

/// The blocks of a repository, the commit among them.
#[derive(Clone)]
struct State {
    root: Cid,
    blocks: BTreeMap<Cid, Vec<u8>>,
}

impl State {
    fn borrowed(&self) -> BTreeMap<Cid, &[u8]> {
        self.blocks.iter().map(|(cid, block)| (*cid, &block[..])).collect()
    }

    /// The commit and the nodes on the way to a key, as a CAR.
    fn proof(&self, key: &str) -> Vec<u8> {
        let data = Commit::parse(&self.blocks[&self.root]).unwrap().data;
        let found = canonical::search(data, self.borrowed(), key.as_bytes()).unwrap();
        let cids = found.nodes.iter().map(|(cid, _)| *cid);
        self.archive(&[self.root], &[self.root].into_iter().chain(cids).collect::<Vec<_>>())
    }

    fn archive(&self, roots: &[Cid], cids: &[Cid]) -> Vec<u8> {
        let mut writer = car::Writer::new(Vec::new(), roots).unwrap();
        cids.iter().for_each(|cid| writer.block(cid, &self.blocks[cid]).unwrap());
        writer.into_inner()
    }

    /// The nodes and records that prove a collection.
    fn part(&self, collection: &str) -> (Vec<Cid>, Vec<Cid>) {
        let data = Commit::parse(&self.blocks[&self.root]).unwrap().data;
        let ranges = KeyRanges::of_prefixes([format!("{collection}/").into_bytes()]);
        let found = canonical::search_ranges(data, self.borrowed(), ranges, 10_000).unwrap();
        let records = found.records.values().map(|cid| cid.to_cid().unwrap()).collect();
        (found.nodes.iter().map(|(cid, _)| *cid).collect(), records)
    }
}

/// The fault of a server.
#[derive(Clone, Copy)]
enum Fault {
    /// Nothing.
    None,
    /// It does not prove absence.
    RefusesProofs,
    /// It leaves a block out of its answers.
    Withholds(Cid),
    /// It sends another block under the CID.
    Alters(Cid),
    /// It adds a block to its answers.
    Adds,
    /// It adds every block of the repository to its first answer.
    ProvesAll,
    /// It has no `getBlocks`.
    NoBlocks,
    /// It refuses URLs of more than this many CIDs.
    ShortUrls(usize),
    /// It drops the blocks of this many former states: a request for one of them fails.
    MovesOn(usize),
}

/// A server with states of one repository, the first of which is current at first.
struct Host {
    url: Url,
    requests: Arc<Mutex<Vec<String>>>,
    /// Of all requests of a client together.
    max_time: Duration,
}

impl Host {
    async fn start(states: Vec<State>, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut blocks_requests = 0;
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let target = head.split(' ').nth(1).unwrap().to_owned();
                let (path, query) = target.split_once('?').unwrap();
                let method = path.rsplit('.').next().unwrap();
                log.lock().unwrap().push(method.to_owned());
                blocks_requests += usize::from(method == "getBlocks");
                let state = match fault {
                    Fault::MovesOn(times) => &states[(blocks_requests / 2).min(times)],
                    _ => &states[0],
                };
                let (status, kind, body) = answer(state, method, query, fault);
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
            }
        });
        Self { url: url.parse().unwrap(), requests, max_time: Duration::from_secs(60) }
    }

    async fn fetch(
        &self,
        collections: &[&str],
        max_bytes: u64,
    ) -> Result<FetchedSlice, SliceError> {
        let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let client = Client::new(http).with_rate_limiter(RateLimiter::new(Duration::ZERO));
        let limits = Limits { max_bytes, max_time: self.max_time, ..Limits::REPOSITORY };
        let (did, collections) = (Did::parse(DID).unwrap(), patterns(collections));
        client.fetch_collections(&self.url, did, &collections, &limits).await
    }

    /// The things as of a commit.
    async fn fetch_part_of(&self, commit: Cid) -> Result<FetchedPart, SliceError> {
        let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let client = Client::new(http).with_rate_limiter(RateLimiter::new(Duration::ZERO));
        let (did, collections) = (Did::parse(DID).unwrap(), patterns(&["app.test.thing"]));
        let wanted = WantedPart { collections: &collections, commit: Some(commit) };
        client.fetch_part(&self.url, did, wanted, &Limits::REPOSITORY, &NoTurn).await
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(state: &State, method: &str, query: &str, fault: Fault) -> (u16, &'static str, Vec<u8>) {
    const CAR: &str = "application/vnd.ipld.car";
    const JSON: &str = "application/json";
    let values = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(of, _)| *of == name).map(|(_, value)| value.to_owned()).collect::<Vec<_>>()
    };
    match method {
        "getRecord"
            if !matches!(fault, Fault::RefusesProofs | Fault::Alters(_) | Fault::MovesOn(_)) =>
        {
            let key = format!("{}/{}", values("collection")[0], values("rkey")[0]);
            let proof = match fault {
                Fault::ProvesAll => {
                    state.archive(&[state.root], &state.blocks.keys().copied().collect::<Vec<_>>())
                }
                _ => state.proof(&key),
            };
            (200, CAR, proof)
        }
        "getLatestCommit" => {
            let body = format!(r#"{{"cid":"{}","rev":"3mptbypluud2a"}}"#, state.root);
            (200, JSON, body.into_bytes())
        }
        "getRepo" => {
            let mut cids: Vec<Cid> = state.blocks.keys().copied().collect();
            if let Fault::Withholds(withheld) = fault {
                cids.retain(|cid| *cid != withheld);
            }
            (200, CAR, state.archive(&[state.root], &cids))
        }
        "getBlocks" if matches!(fault, Fault::NoBlocks) => {
            (501, JSON, br#"{"error":"MethodNotImplemented","message":"no"}"#.to_vec())
        }
        "getBlocks" if matches!(fault, Fault::ShortUrls(most) if values("cids").len() > most) => {
            (414, "text/html", b"<h1>URI Too Long</h1>".to_vec())
        }
        "getBlocks" => {
            let mut cids: Vec<Cid> =
                values("cids").iter().map(|text| text.parse().unwrap()).collect();
            if cids.iter().any(|cid| !state.blocks.contains_key(cid)) {
                return (
                    400,
                    JSON,
                    br#"{"error":"InvalidRequest","message":"no such block"}"#.to_vec(),
                );
            }
            match fault {
                Fault::Withholds(withheld) => cids.retain(|cid| *cid != withheld),
                Fault::Adds => cids.push(state.root),
                _ => {}
            }
            let mut body = state.archive(&[], &cids);
            if let Fault::Alters(cid) = fault
                && cids.contains(&cid)
            {
                *body.last_mut().unwrap() ^= 1;
            }
            (200, CAR, body)
        }
        _ => (400, JSON, br#"{"error":"RecordNotFound","message":"no such record"}"#.to_vec()),
    }
}

fn patterns(names: &[&str]) -> Vec<CollectionPatternBuf> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// The verdict on a slice: the paths, or the code and the block of the rejection.
fn verdict(
    repo: &Repo,
    slice: &FetchedSlice,
    wanted: &[&str],
) -> Result<Vec<String>, (&'static str, Option<Cid>)> {
    let (key, options) = (repo.secret.public_key(), record::Options::default());
    let proof = collections::verify(&slice.archive, &patterns(wanted), Some(DID), &key, &options)
        .map_err(|rejection| (rejection.code(), rejection.cid))?;
    assert_eq!(proof.extra().blocks, 0, "nothing is fetched in vain");
    Ok(proof.records().iter().map(|record| record.path.clone()).collect())
}

#[tokio::test]
async fn one_collection_of_a_repository_is_fetched_in_few_requests_and_bytes() {
    let mut repo = Repo::new();
    let state = repo.state();
    let whole: usize = state.blocks.values().map(Vec::len).sum();
    for (fault, most_requests) in [(Fault::None, 6), (Fault::RefusesProofs, 14)] {
        let host = Host::start(vec![state.clone()], fault).await;
        let slice = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap();
        let paths: Vec<String> =
            (0..40).map(|number| format!("app.test.thing/{number:05}")).collect();
        assert_eq!(verdict(&repo, &slice, &["app.test.thing"]), Ok(paths));
        assert_eq!(slice.requests, host.requests().len() as u64);
        assert!(slice.requests <= most_requests, "{:?}", host.requests());
        assert!(slice.received < whole as u64 / 20, "{} of {whole} bytes", slice.received);
    }
}

#[tokio::test]
async fn an_earlier_commit_is_fetched_where_the_server_still_has_it() {
    let mut repo = Repo::new();
    let before = repo.state();
    repo.create("app.test.thing", 100);
    repo.commit();
    let mut now = repo.state();
    let host = Host::start(vec![now.clone()], Fault::None).await;
    let error = host.fetch_part_of(before.root).await.unwrap_err();
    assert!(error.to_string().contains("no such block"), "{error}");
    assert_eq!(host.requests(), ["getRecord", "getBlocks"], "the present commit is not fetched");

    now.blocks.extend(before.blocks);
    let host = Host::start(vec![now.clone()], Fault::None).await;
    for (commit, records) in [(before.root, 40), (now.root, 41)] {
        let part = host.fetch_part_of(commit).await.unwrap();
        let FetchedPart::Slice(slice) = part else { panic!("{part:?}") };
        assert_eq!(verdict(&repo, &slice, &["app.test.thing"]).unwrap().len(), records);
        assert!(slice.requests <= 14, "{:?}", host.requests());
    }
}

#[tokio::test]
async fn several_collections_and_one_without_records_are_fetched_together() {
    let mut repo = Repo::new();
    let host = Host::start(vec![repo.state()], Fault::None).await;
    let wanted = ["app.test.thing", "app.test.like", "app.test.other"];
    let slice = host.fetch(&wanted, 1 << 20).await.unwrap();
    assert_eq!(verdict(&repo, &slice, &wanted).unwrap().len(), 1_040);
    let none = host.fetch(&["app.test.other"], 1 << 20).await.unwrap();
    assert_eq!(verdict(&repo, &none, &["app.test.other"]), Ok(Vec::new()));
    assert_eq!(none.requests, 1, "{:?}", host.requests());
}

/// The most bytes that may be received: a tenth more than the whole repository has.
fn most_bytes(state: &State) -> u64 {
    let cids: Vec<Cid> = state.blocks.keys().copied().collect();
    state.archive(&[state.root], &cids).len() as u64 * 11 / 10
}

#[tokio::test]
async fn the_whole_repository_is_fetched_where_it_costs_less_and_the_slice_is_the_same() {
    let mut repo = Repo::new();
    let state = repo.state();
    let all = ["app.test.like", "app.test.post", "app.test.thing"];
    for (wanted, is_whole) in [(&all[2..], false), (&all[..1], false), (&all, true)] {
        let host = Host::start(vec![state.clone()], Fault::None).await;
        let slice = host.fetch(wanted, 8 << 20).await.unwrap();
        let is_cost = matches!(&slice.whole, Some(WholeReason::Cost { requests, records, of })
            if *requests > 10 && (1_000..13_000).contains(records) && records <= of);
        assert_eq!((slice.whole.is_some(), is_cost), (is_whole, is_whole), "{:?}", slice.whole);
        let paths = verdict(&repo, &slice, wanted).unwrap();
        assert!(paths.iter().all(|path| wanted.contains(&path.split('/').next().unwrap())));
        assert!(slice.received <= most_bytes(&state), "{wanted:?}: {} bytes", slice.received);
        let most_requests = if is_whole { 8 } else { 25 };
        assert!(slice.requests <= most_requests, "{:?}", host.requests());
    }
    let withheld = state.part("app.test.post").1[2_000];
    let host = Host::start(vec![state], Fault::Withholds(withheld)).await;
    let slice = host.fetch(&all, 8 << 20).await.unwrap();
    assert!(slice.whole.is_some(), "{:?}", host.requests());
    let refused = verdict(&repo, &slice, &all).unwrap_err();
    assert_eq!(refused, ("record/missing", Some(withheld)));
}

#[tokio::test]
async fn a_server_without_blocks_sends_the_whole_repository_and_the_reason_names_it() {
    let mut repo = Repo::new();
    let host = Host::start(vec![repo.state()], Fault::NoBlocks).await;
    let slice = host.fetch(&["app.test.thing"], 8 << 20).await.unwrap();
    let reason = slice.whole.as_ref().unwrap().to_string();
    assert!(reason.contains("getBlocks: MethodNotImplemented"), "{reason}");
    assert_eq!(verdict(&repo, &slice, &["app.test.thing"]).unwrap().len(), 40);
    assert_eq!(host.requests(), ["getRecord", "getBlocks", "getRepo"]);
}

#[tokio::test]
async fn a_server_that_refuses_long_urls_gets_shorter_ones() {
    let mut repo = Repo::new();
    let host = Host::start(vec![repo.state()], Fault::ShortUrls(12)).await;
    let slice = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap();
    assert_eq!(verdict(&repo, &slice, &["app.test.thing"]).unwrap().len(), 40);
    assert!(slice.whole.is_none() && slice.requests <= 16, "{:?}", host.requests());
    let host = Host::start(vec![repo.state()], Fault::ShortUrls(0)).await;
    let error = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap_err();
    assert!(error.to_string().contains("status 414"), "{error}");
    assert!(host.requests().len() <= 12, "{:?}", host.requests());
}

#[tokio::test]
async fn a_withheld_block_is_named_by_the_verification() {
    let mut repo = Repo::new();
    let state = repo.state();
    let (nodes, records) = state.part("app.test.thing");
    let (node, record) = (*nodes.last().unwrap(), records[7]);
    for (withheld, code) in [(node, "tree/missing-node"), (record, "record/missing")] {
        let host = Host::start(vec![state.clone()], Fault::Withholds(withheld)).await;
        let slice = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap();
        let refused = verdict(&repo, &slice, &["app.test.thing"]).unwrap_err();
        assert_eq!(refused, (code, Some(withheld)));
    }
}

#[tokio::test]
async fn altered_and_unrequested_blocks_are_refused() {
    let state = Repo::new().state();
    let (nodes, records) = state.part("app.test.thing");
    for altered in [*nodes.last().unwrap(), records[7]] {
        let host = Host::start(vec![state.clone()], Fault::Alters(altered)).await;
        let error = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap_err();
        assert_eq!(error.code(), Some("car/hash"), "{error}");
    }
    let host = Host::start(vec![state], Fault::Adds).await;
    let error = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap_err();
    assert_eq!(error.code(), Some("car/extra"), "{error}");
}

#[tokio::test]
async fn the_tree_of_another_account_and_of_another_key_is_refused_by_the_verification() {
    let mut repo = Repo::new();
    let state = repo.state();
    let commit = Commit::parse(&state.blocks[&state.root]).unwrap();
    let signed = |did: &str, secret: &SecretKey| {
        let (rev, data) = (commit.rev, commit.data);
        let unsigned = UnsignedCommit { did, rev, data, prev: None };
        let block = unsigned.with_signature(&secret.sign(&unsigned.to_bytes()));
        let root = Cid::of(Codec::DagCbor, &block);
        let mut blocks = state.blocks.clone();
        blocks.insert(root, block);
        State { root, blocks }
    };
    let other_key = SecretKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    for (state, code) in [
        (signed("did:plc:ia76kvnndjutgedggx2ibrem", &repo.secret), "commit/did"),
        (signed(DID, &other_key), "signature/wrong"),
    ] {
        let host = Host::start(vec![state], Fault::None).await;
        let slice = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap();
        assert_eq!(verdict(&repo, &slice, &["app.test.thing"]).unwrap_err().0, code);
    }
}

#[tokio::test]
async fn more_than_was_asked_counts_and_is_not_in_the_slice() {
    let mut repo = Repo::new();
    let host = Host::start(vec![repo.state()], Fault::ProvesAll).await;
    let slice = host.fetch(&["app.test.thing"], 8 << 20).await.unwrap();
    assert_eq!(verdict(&repo, &slice, &["app.test.thing"]).unwrap().len(), 40);
    assert!(slice.received > 20 * slice.archive.len() as u64, "{} bytes", slice.received);
    let error = host.fetch(&["app.test.thing"], 100_000).await.unwrap_err();
    assert_eq!(error, SliceError::Size(100_000));
}

#[tokio::test]
async fn a_slice_has_a_limit_in_bytes() {
    let host = Host::start(vec![Repo::new().state()], Fault::None).await;
    let error = host.fetch(&["app.test.post"], 20_000).await.unwrap_err();
    assert_eq!((&error, error.code()), (&SliceError::Size(20_000), None));
}

#[tokio::test]
async fn all_requests_together_have_a_limit_in_time() {
    let mut host = Host::start(vec![Repo::new().state()], Fault::None).await;
    host.max_time = Duration::ZERO;
    let error = host.fetch(&["app.test.post"], 1 << 20).await.unwrap_err();
    assert_eq!(error, SliceError::Time(Duration::ZERO));
    assert_eq!(error.code(), None);
}

#[tokio::test]
async fn a_repository_that_changes_meanwhile_is_fetched_anew_a_few_times() {
    let mut repo = Repo::new();
    let mut states = vec![repo.state()];
    for number in 0..4 {
        repo.create("app.test.thing", 100 + number);
        repo.commit();
        states.push(repo.state());
    }
    let host = Host::start(states.clone(), Fault::MovesOn(1)).await;
    let slice = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap();
    assert_eq!(verdict(&repo, &slice, &["app.test.thing"]).unwrap().len(), 41);
    let host = Host::start(states, Fault::MovesOn(4)).await;
    let error = host.fetch(&["app.test.thing"], 1 << 20).await.unwrap_err();
    assert_eq!(error.code(), None, "{error}");
    assert!(host.requests().len() < 30, "{:?}", host.requests());
}
