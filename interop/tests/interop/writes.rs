//! Repositories that we write, imported by the reference PDS and verified by indigo.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use atproto::repo::{RepositoryWriter, WrittenCommit};
use atproto::syntax::{Did, Tid};
use codec::{cbor, json as data_json};
use crypto::{Curve, SecretKey};
use serde_json::json;
use wireproof_interop::kit;
use wireproof_interop::pds::{Pds, Plc};

const TIME: &str = "2026-01-01T00:00:00.000Z";

/// An account that writes its own repository.
struct Author {
    repository: RepositoryWriter,
    secret: SecretKey,
    /// Microseconds since 1970 of the next revision.
    now_micros: u64,
}

impl Author {
    fn new(did: &str, curve: Curve) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Self {
            repository: RepositoryWriter::new(Did::parse(did).unwrap()),
            secret: SecretKey::from_bytes(curve, &[7; 32]).unwrap(),
            now_micros: u64::try_from(now.as_micros()).unwrap(),
        }
    }

    fn commit(&mut self) -> WrittenCommit {
        self.now_micros += 1;
        let rev = Tid::new(self.now_micros, 0);
        self.repository.commit(rev, |message| self.secret.sign(message)).unwrap()
    }

    /// Commits `count` new posts and a profile; later commits update, delete and create.
    fn write_history(&mut self, count: u64) -> Vec<WrittenCommit> {
        self.repository.create("app.bsky.actor.profile/self", &profile("first")).unwrap();
        for number in 0..count {
            self.repository.create(&path(number), &post(number)).unwrap();
        }
        let mut commits = vec![self.commit()];
        for number in 0..10 {
            self.repository.delete(&path(number * 7)).unwrap();
            self.repository.update(&path(number * 7 + 1), &post(1_000 + number)).unwrap();
            self.repository.create(&path(count + number), &post(count + number)).unwrap();
            commits.push(self.commit());
        }
        commits
    }

    /// The CIDs of all records, by path.
    fn records(&mut self) -> BTreeMap<String, String> {
        let export = self.repository.export(Vec::new()).unwrap();
        let options = Default::default();
        let read = atproto::repo::Repository::read(&export, &options).unwrap();
        let records = read.records().map(Result::unwrap);
        records.map(|record| (record.path, record.cid.to_string())).collect()
    }
}

fn path(number: u64) -> String {
    format!("app.bsky.feed.post/{}", Tid::new(1_600_000_000_000_000 + number, 0))
}

fn post(number: u64) -> Vec<u8> {
    record(
        json!({"$type": "app.bsky.feed.post", "text": format!("post {number}"), "createdAt": TIME}),
    )
}

fn profile(name: &str) -> Vec<u8> {
    record(json!({"$type": "app.bsky.actor.profile", "displayName": name}))
}

fn record(value: serde_json::Value) -> Vec<u8> {
    let arena = cbor::Arena::new();
    cbor::encode(&data_json::decode(&value.to_string(), &arena).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pds_imports_a_repository_that_we_wrote() {
    let kit = kit!(Pds);
    let plc = Plc::start(&kit).await;
    let pds = Pds::start(&kit, &plc).await;
    let account = pds.create_account("writer").await;
    let mut author = Author::new(&account.did, Curve::K256);
    author.write_history(80);
    let records = author.records();
    assert_eq!(records.len(), 81);
    pds.import_repo(&account, author.repository.export(Vec::new()).unwrap()).await;
    assert_eq!(pds.records(&account).await, records);
}

#[test]
fn indigo_verifies_commits_and_repositories_that_we_wrote() {
    let kit = kit!(Relay);
    let folder = tempfile::tempdir().unwrap();
    for (name, curve) in [("k256", Curve::K256), ("p256", Curve::P256)] {
        let did = "did:web:writer.example";
        let mut author = Author::new(did, curve);
        let commits = author.write_history(80);
        let key = author.secret.public_key().to_did_key();
        let file = |part: &str| folder.path().join(format!("{name}-{part}"));
        fs::write(file("repository.car"), author.repository.export(Vec::new()).unwrap()).unwrap();
        let mut verify = Command::new(kit.verifier());
        verify.args([did, &key]).arg(file("repository.car"));
        for (number, commit) in commits.iter().enumerate() {
            let frame = commit.to_frame(number as i64 + 1, TIME).unwrap();
            let path = file(&format!("{number}.frame"));
            fs::write(&path, frame).unwrap();
            verify.arg(path);
        }
        let output = verify.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"ok\n");

        // The verifier refuses a changed archive, so its "ok" means something.
        let mut changed = fs::read(file("repository.car")).unwrap();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        fs::write(file("changed.car"), changed).unwrap();
        let refused =
            Command::new(kit.verifier()).args([did, &key]).arg(file("changed.car")).output();
        assert_eq!(refused.unwrap().status.code(), Some(1));
    }
}
