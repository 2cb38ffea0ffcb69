//! Whole repositories, records and blocks, from the archive and the window.

use std::path::Path;

use archive::{Archive, NoConfirmation, Subject};
use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use codec::car;
use codec::cbor::Encoder;
use crypto::{Curve, SecretKey};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use verify::record;
use verify::repository::{self, Options};

use super::*;
use crate::history::ServedArchive;

const DID: &str = "did:web:writer.test";

/// An account that writes.
struct Writer {
    repository: RepositoryWriter,
    secret: SecretKey,
    commits: u64,
}

impl Writer {
    fn new() -> Self {
        let repository = RepositoryWriter::new(Did::parse(DID).unwrap());
        let secret = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
        Self { repository, secret, commits: 0 }
    }

    /// The frame of a commit that creates a record of this size.
    fn create(&mut self, size: usize) -> Vec<u8> {
        self.commits += 1;
        let path = format!("app.test.post/{:06}", self.commits);
        let text = format!("{:06}{}", self.commits, "x".repeat(size));
        let mut record = Encoder::new();
        record.map(2).text("text").text(&text).text("$type").text("app.test.post");
        self.repository.create(&path, &record.into_bytes()).unwrap();
        let micros = NOW as u64 + self.commits * 1_000_000;
        let secret = &self.secret;
        let commit = self.repository.commit(Tid::new(micros, 0), |message| secret.sign(message));
        commit.unwrap().to_frame(1, "2026-07-01T00:00:00Z").unwrap()
    }

    /// Stores commits, and waits until they are in the directory.
    async fn write(&mut self, serving: &Serving, commits: usize, size: usize) {
        let key = self.secret.public_key().to_did_key();
        let mut last = 0;
        for _ in 0..commits {
            let frame = self.create(size);
            last = serving.append_verified(NOW, &frame, Some(&key)).await.unwrap();
        }
        serving.is_listed(last).await;
    }

    /// The revision of a repository that is this account's whole one.
    fn verify(&mut self, car: &[u8]) {
        let key = self.secret.public_key();
        let found = repository::verify(car, None, &key, &Options::default()).unwrap();
        assert_eq!((found.commit().did, found.tree().records), (DID, self.commits));
        let head = self.repository.head().unwrap();
        assert_eq!(Cid::of(Codec::DagCbor, found.commit_block()), head);
    }
}

async fn serving(folder: &Path) -> Serving {
    Serving::start(&folder.join("state"), |options| {
        options.window.max_bytes = 2 << 20;
        let archive = Archive::open(&folder.join("archive").display().to_string()).unwrap();
        options.archive = Some(ServedArchive { archive, servers: Arc::new(NoConfirmation) });
    })
    .await
}

impl Serving {
    async fn get(&self, path: &str) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let uri = format!("/xrpc/com.atproto.sync.{path}");
        let request = Request::get(uri).header("host", "localhost").body(Empty::<Bytes>::new());
        sender.send_request(request.unwrap()).await.unwrap()
    }

    async fn car(&self, path: &str) -> Vec<u8> {
        let response = self.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["content-type"], "application/vnd.ipld.car");
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_whole_with_commits_of_the_archive_and_of_the_window() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new();
    let whole = format!("getRepo?did={DID}");
    let server = serving(folder.path()).await;
    writer.write(&server, 40, 100).await;
    writer.verify(&server.car(&whole).await);
    // These fill some segments, which are sealed.
    writer.write(&server, 30, 30_000).await;
    let sealed_until = || server.shared.log.wal.sealed_until().unwrap();
    while sealed_until() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    writer.verify(&server.car(&whole).await);
    writer.write(&server, 1, 100).await;
    writer.verify(&server.car(&whole).await);
    writer.verify(&server.car(&whole).await);
    server.stop().await;
    let server = serving(folder.path()).await;
    writer.verify(&server.car(&whole).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_and_blocks_come_with_their_proofs() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, serving) = (Writer::new(), serving(folder.path()).await);
    writer.write(&serving, 20, 100).await;
    let key = writer.secret.public_key();
    for (rkey, is_present) in [("000007", true), ("absent", false)] {
        let query = format!("getRecord?did={DID}&collection=app.test.post&rkey={rkey}");
        let slice = serving.car(&query).await;
        let path = format!("app.test.post/{rkey}");
        let proof = record::verify(&slice, &path, Some(DID), &key, &Default::default()).unwrap();
        assert_eq!(proof.record().is_some(), is_present, "{rkey}");
    }
    let car = serving.car(&format!("getRepo?did={DID}")).await;
    let all = car::read(&car, &car::Options::default()).unwrap().blocks;
    let cids: Vec<String> = all[3..6].iter().map(|of| format!("cids={}", of.cid)).collect();
    let some = serving.car(&format!("getBlocks?did={DID}&{}", cids.join("&"))).await;
    let some = car::read(&some, &car::Options::default()).unwrap().blocks;
    let data = |blocks: &[car::Block<'_>]| -> std::collections::BTreeSet<Vec<u8>> {
        blocks.iter().map(|block| block.data.to_vec()).collect()
    };
    assert_eq!(data(&some), data(&all[3..6]));
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_that_cannot_be_served_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, serving) = (Writer::new(), serving(folder.path()).await);
    // Its first commit is not here.
    writer.create(1);
    writer.write(&serving, 2, 1).await;
    let foreign = Cid::of(Codec::DagCbor, b"\xa0");
    for (path, status, name) in [
        (format!("getRepo?did={DID}"), 404, "RepoNotFound"),
        ("getRepo?did=did:web:unknown.test".to_owned(), 404, "RepoNotFound"),
        ("getRepo".to_owned(), 400, "InvalidRequest"),
        ("getRepo?did=alice".to_owned(), 400, "InvalidRequest"),
        (format!("getRecord?did={DID}&collection=post&rkey=a"), 400, "InvalidRequest"),
        (format!("getRecord?did={DID}&collection=app.test.post&rkey=a%2Fb"), 400, "InvalidRequest"),
        (format!("getBlocks?did={DID}"), 400, "InvalidRequest"),
        (format!("getBlocks?did={DID}&cids=x"), 400, "InvalidRequest"),
        (format!("getBlocks?did={DID}&cids={foreign}"), 404, "RepoNotFound"),
    ] {
        let (code, body) = serving.query(&format!("com.atproto.sync.{path}")).await;
        assert_eq!((code, body["error"].as_str()), (status, Some(name)), "{path}");
    }
    let time = "2026-07-01T00:00:00Z";
    let account = Account { seq: 1, did: DID, time, active: false, status: Some("takendown") };
    let arrival = serving.store_at(NOW, &Event::Account(account)).await;
    serving.is_listed(arrival).await;
    let (code, body) = serving.query(&format!("com.atproto.sync.getRepo?did={DID}")).await;
    assert_eq!((code, body["error"].as_str()), (403, Some("RepoTakendown")));
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_of_an_account_that_is_hidden_after_its_repository_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, serving) = (Writer::new(), serving(folder.path()).await);
    writer.write(&serving, 3, 100).await;
    let whole = format!("getRepo?did={DID}");
    let car = serving.car(&whole).await;
    let cid = car::read(&car, &car::Options::default()).unwrap().blocks[0].cid;
    let parts = [
        whole.clone(),
        format!("getRecord?did={DID}&collection=app.test.post&rkey=000001"),
        format!("getBlocks?did={DID}&cids={cid}"),
    ];
    let archive = Archive::open(&folder.path().join("archive").display().to_string()).unwrap();
    let record = Subject::Record {
        did: DID.to_owned(),
        collection: "app.test.post".to_owned(),
        rkey: "000001".to_owned(),
    };
    for subject in [Subject::Account(DID.to_owned()), record] {
        archive.hide(&subject, "", NOW).await.unwrap();
        for path in &parts {
            let (code, body) = serving.query(&format!("com.atproto.sync.{path}")).await;
            assert_eq!((code, body["error"].as_str()), (404, Some("RepoNotFound")), "{path}");
        }
        archive.unhide(&subject, "", NOW).await.unwrap();
        writer.verify(&serving.car(&whole).await);
    }
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fifth_client_of_an_address_is_refused_and_a_broken_off_answer_is_incomplete() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, serving) = (Writer::new(), serving(folder.path()).await);
    writer.write(&serving, 20, 900_000).await;
    let path = format!("getRepo?did={DID}");
    let mut slow = Vec::new();
    for _ in 0..4 {
        slow.push(serving.get(&path).await);
    }
    let refused = serving.get(&path).await;
    assert_eq!(
        (refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()),
        (503, &b"10"[..])
    );
    drop(slow.pop());
    let car = loop {
        let response = serving.get(&path).await;
        if response.status() == 200 {
            break response.into_body().collect().await.unwrap().to_bytes();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    writer.verify(&car);
    serving.stop().await;
    for response in slow {
        let read = response.into_body().collect().await;
        assert!(read.is_err(), "a whole answer of {} bytes", read.unwrap().to_bytes().len());
    }
}
