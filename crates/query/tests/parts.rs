//! Current records of archives with parts of repositories.

use archive::{Archive, ArchivedPart, ArchivedRepository, Collections};
use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use crypto::{Curve, SecretKey};
use datafusion::arrow::array::cast::AsArray;
use verify::repository;
use verify::{collections, record};
use wireproof_query::{Options, Session};

const DID: &str = "did:web:account.test";

/// An account that writes, and its archive.
struct Account {
    _folder: tempfile::TempDir,
    archive: Archive,
    secret: SecretKey,
    repository: RepositoryWriter,
    micros: u64,
}

impl Account {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
        let secret = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
        let repository = RepositoryWriter::new(Did::parse(DID).unwrap());
        Self { _folder: folder, archive, secret, repository, micros: 1_782_864_000_000_000 }
    }

    fn create(&mut self, paths: &[&str]) {
        for path in paths {
            self.repository.create(path, b"\xa0").unwrap();
        }
    }

    /// The repository at a new revision.
    fn export(&mut self) -> Vec<u8> {
        self.micros += 1_000_000;
        let rev = Tid::new(self.micros, 0);
        let secret = &self.secret;
        self.repository.commit(rev, |message| secret.sign(message)).unwrap();
        self.repository.export(Vec::new()).unwrap()
    }

    async fn store_whole(&mut self) {
        let (car, key) = (self.export(), self.secret.public_key());
        let options = repository::Options::default();
        let repository = repository::verify(&car, None, &key, &options).unwrap();
        let archived = ArchivedRepository {
            repository: &repository,
            key: &key,
            host: "pds.test",
            fetched: self.micros as i64,
        };
        self.archive.seal_repositories(vec![archived], None).await.unwrap();
    }

    async fn store_part(&mut self, text: &str) {
        let (car, key) = (self.export(), self.secret.public_key());
        let selected: Collections = text.parse().unwrap();
        let options = record::Options::default();
        let proof = collections::verify(&car, selected.patterns(), None, &key, &options).unwrap();
        let part = ArchivedPart {
            proof: &proof,
            collections: &selected,
            key: &key,
            host: "pds.test",
            fetched: self.micros as i64,
        };
        self.archive.seal_parts(vec![part], None).await.unwrap();
    }

    /// The first column of an answer.
    async fn texts(&self, sql: &str) -> Vec<String> {
        let session = Session::open(&self.archive, &Options::default()).await.unwrap();
        let (mut rows, mut texts) = (session.sql(sql).await.unwrap(), Vec::new());
        while let Some(batch) = rows.next().await.unwrap() {
            let column = batch.column(0).as_string_view().clone();
            texts.extend(column.iter().flatten().map(str::to_owned));
        }
        texts
    }

    async fn current(&self) -> Vec<String> {
        let path = "arrow_cast(collection || '/' || rkey, 'Utf8View')";
        self.texts(&format!("SELECT {path} FROM current_records ORDER BY 1")).await
    }
}

#[tokio::test]
async fn current_records_are_of_the_last_repository_or_part_that_has_their_collection() {
    let mut account = Account::new();
    account.create(&["app.a.one/1", "app.a.one/2", "app.a.two/1", "app.b.one/1"]);
    account.store_part("app.a.one").await;
    assert_eq!(account.current().await, ["app.a.one/1", "app.a.one/2"]);
    account.store_whole().await;
    let all = ["app.a.one/1", "app.a.one/2", "app.a.two/1", "app.b.one/1"];
    assert_eq!(account.current().await, all);
    // A later part lacks deleted records.
    account.repository.delete("app.a.one/2").unwrap();
    account.repository.delete("app.b.one/1").unwrap();
    account.create(&["app.a.two/2"]);
    account.store_part("app.a.*").await;
    let expected = ["app.a.one/1", "app.a.two/1", "app.a.two/2", "app.b.one/1"];
    assert_eq!(account.current().await, expected);
    account.store_whole().await;
    assert_eq!(account.current().await, ["app.a.one/1", "app.a.two/1", "app.a.two/2"]);
}

#[tokio::test]
async fn a_statement_can_ask_for_the_accounts_that_are_complete_for_a_collection() {
    let mut account = Account::new();
    account.create(&["app.a.one/1"]);
    account.store_part("app.a.*,app.b.one").await;
    for (collection, is_complete) in
        [("app.a.one", true), ("app.a.two", true), ("app.b.one", true), ("app.b.two", false)]
    {
        let did = "arrow_cast(did, 'Utf8View')";
        let sql = format!("SELECT {did} FROM parts WHERE covers(collections, '{collection}')");
        assert_eq!(account.texts(&sql).await.len(), usize::from(is_complete), "{collection}");
    }
}
