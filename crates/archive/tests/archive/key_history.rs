//! Keys of archived commits, compared with the signed histories of their accounts.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{ArrayRef, BooleanArray, TimestampMicrosecondArray};
use atproto::label::UnsignedLabel;
use atproto::plc::{AccountData, AuditEntry, Operation, UnsignedOperation, Update};
use atproto::repo::RepositoryWriter;
use atproto::syntax::{DatetimeBuf, DidBuf, Tid};
use crypto::{Curve, SecretKey};
use verify::Verified;
use verify::identity::AccountKeys;
use verify::plc::{History, Options, verify_audit_log};
use verify::repository;
use verify::sync::Policy;
use wireproof_archive::{
    Archive, ArchivedLabel, ArchivedRepository, ImportOptions, LabelRange, Sealed, Table,
    VerifyOptions, VerifyReport, WorkId,
};

use crate::common::changed_file::{change, flip};
use crate::common::writers::{DAY_0, after, record};
use crate::common::{archive, is_stored};

/// An account of a directory, whose operations and commits are made here.
struct Account {
    did: DidBuf,
    entries: Vec<AuditEntry>,
    repository: RepositoryWriter,
    seq: i64,
}

impl Account {
    /// An account with the signing key 0, of the begin of the first day.
    fn new() -> Self {
        let genesis = signed(&update(0, None), OWNER);
        let did = genesis.did().unwrap();
        let repository = RepositoryWriter::new(did.as_did());
        let mut account = Self { did, entries: Vec::new(), repository, seq: 0 };
        account.add(genesis, 0);
        account
    }

    /// Gives the account another signing key after some hours: an operation after the one at `prev`, signed by `by`.
    fn rotate(&mut self, key: u8, prev: usize, by: u8, hours: i64) {
        let operation = signed(&update(key, Some(self.entries[prev].cid)), by);
        self.add(operation, hours);
        for nullified in prev + 1..self.entries.len() - 1 {
            self.entries[nullified].nullified = true;
        }
    }

    fn add(&mut self, operation: Operation, hours: i64) {
        self.entries.push(AuditEntry {
            did: self.did.clone(),
            cid: operation.cid(),
            operation,
            nullified: false,
            created_at: DatetimeBuf::from_unix_micros(at(hours)).unwrap(),
        });
    }

    fn history(&self) -> Verified<History> {
        verify_audit_log(self.entries.clone(), &Options::default()).unwrap()
    }

    async fn store_history(&self, archive: &Archive, hours: i64) -> Sealed {
        let work = WorkId { writer: format!("log {} {hours}", self.did), number: 0 };
        archive.seal_key_histories(vec![self.history()], at(hours), &work).await.unwrap()
    }

    /// Archives a commit that is made under a key after some hours, and came at once.
    async fn commit(&mut self, archive: &Archive, key: u8, hours: i64) {
        self.seq += 1;
        let path = format!("app.test.c0/{:013}", self.seq);
        let content = record(&path, self.seq as u64, "a post");
        self.repository.create(&path, &content).unwrap();
        let secret = secret(key);
        let rev = Tid::new(at(hours) as u64, 0);
        let commit = self.repository.commit(rev, |message| secret.sign(message)).unwrap();
        let frame = commit.to_frame(self.seq, "2026-07-01T00:00:00Z").unwrap();
        let keys = BTreeMap::from([(self.did.as_str(), secret.public_key().to_did_key())]);
        let keys = AccountKeys::from_json(&serde_json::to_vec(&keys).unwrap()).unwrap();
        let options = ImportOptions {
            host: "relay.test".to_owned(),
            name: format!("{} {}", self.did, self.seq),
            now_micros: at(hours) + 1_000_000,
            policy: Policy::default(),
        };
        let imported = archive.import_frames([frame.as_slice()], &keys, &options).await.unwrap();
        assert_eq!(imported.verified, 1);
    }

    /// Archives a label of the account that is signed under a key after some hours.
    async fn label(&mut self, archive: &Archive, key: u8, hours: i64) {
        let label = UnsignedLabel {
            src: self.did.as_str(),
            uri: "did:web:subject.test",
            val: "spam",
            cts: "2026-07-01T00:00:00Z",
            ..UnsignedLabel::default()
        };
        let label = label.with_signature(&secret(key).sign(&label.to_bytes()));
        let did_key = secret(key).public_key().to_did_key();
        let (service, host) = (self.did.as_str(), "https://labels.test");
        let after = archive.label_cursor(service, host).await.unwrap();
        let seq = after.unwrap_or_default() + 1;
        let archived = ArchivedLabel {
            service,
            host,
            seq,
            idx: 0,
            received: at(hours),
            verdict: "verified",
            key: Some(&did_key),
            judge: "test",
            label: &label,
        };
        let (service, host) = (service.to_owned(), host.to_owned());
        let range = LabelRange { service, host, after, up_to: seq };
        archive.seal_labels(vec![archived], &[range]).await.unwrap();
    }

    /// Archives the repository, fetched after some hours and verified under a key.
    async fn snapshot(&mut self, archive: &Archive, key: u8, hours: i64) {
        let (car, key) = (self.repository.export(Vec::new()).unwrap(), secret(key).public_key());
        let repository =
            repository::verify(&car, None, &key, &repository::Options::default()).unwrap();
        let archived = ArchivedRepository {
            repository: &repository,
            key: &key,
            host: "pds.test",
            fetched: at(hours),
        };
        archive.seal_repositories(vec![archived], None).await.unwrap();
    }
}

/// An operation with the rotation keys of the owner and of the host, the owner's first, and a signing key.
fn update(key: u8, prev: Option<codec::Cid>) -> UnsignedOperation {
    let did_key = |number| secret(number).public_key().to_did_key();
    let data = AccountData {
        rotation_keys: vec![did_key(OWNER), did_key(HOST)],
        verification_methods: [
            ("atproto".to_owned(), did_key(key)),
            ("atproto_label".to_owned(), did_key(LABELS + key)),
        ]
        .into(),
        ..AccountData::default()
    };
    UnsignedOperation::Update(Update { data, prev })
}

fn signed(unsigned: &UnsignedOperation, by: u8) -> Operation {
    let sig = secret(by).sign(&unsigned.to_bytes());
    unsigned.clone().with_signature(sig)
}

fn secret(number: u8) -> SecretKey {
    let curve = if number.is_multiple_of(2) { Curve::K256 } else { Curve::P256 };
    SecretKey::from_bytes(curve, &[number + 1; 32]).unwrap()
}

/// Hours after the begin of the first day, in microseconds since 1970.
fn at(hours: i64) -> i64 {
    DAY_0 as i64 + hours * 3_600_000_000
}

async fn verify(archive: &Archive) -> VerifyReport {
    archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap()
}

/// Refusals by code.
async fn refused(archive: &Archive) -> Vec<(String, u64)> {
    verify(archive).await.refused.into_iter().collect()
}

/// A change of a column.
type Edit = fn(ArrayRef) -> ArrayRef;

/// The label key of an operation is its signing key and this number.
const LABELS: u8 = 50;

const OWNER: u8 = 100;
const HOST: u8 = 101;

#[tokio::test]
async fn commits_and_repositories_are_proved_under_the_keys_that_their_account_had() {
    let (mut account, (_folder, archive)) = (Account::new(), archive());
    account.commit(&archive, 0, 1).await;
    account.snapshot(&archive, 0, 2).await;
    account.rotate(1, 0, HOST, 48);
    // A commit of the old key is on its way, and a program may use the key for a day.
    account.commit(&archive, 0, 60).await;
    account.commit(&archive, 1, 61).await;
    account.snapshot(&archive, 1, 62).await;
    let before = verify(&archive).await;
    assert!(!before.is_refused(), "{before:?}");
    assert_eq!((before.compared_keys, before.key_histories), (0, 0));

    assert_eq!(account.store_history(&archive, 100).await.files, 1);
    let report = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.compared_keys, report.key_histories), (5, 1));
    assert_eq!((report.proved, report.proved_snapshots), (3, 2));
    // The same work adds nothing; commits in compact form are compared too.
    assert_eq!(account.store_history(&archive, 100).await, Sealed::default());
    assert_eq!(archive.thin(after(3)).await.unwrap().commits, 3);
    let report = verify(&archive).await;
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.compared_keys, report.compact), (5, 3));
}

#[tokio::test]
async fn a_key_that_the_account_did_not_have_is_refused() {
    for is_compact in [false, true] {
        let (mut account, (_folder, archive)) = (Account::new(), archive());
        account.commit(&archive, 0, 1).await;
        // A key that the account never had, one before its operation, and one a day after another has replaced it.
        account.commit(&archive, 7, 2).await;
        account.commit(&archive, 1, 3).await;
        account.rotate(1, 0, HOST, 48);
        account.commit(&archive, 0, 48 + 25).await;
        account.snapshot(&archive, 0, 48 + 26).await;
        account.commit(&archive, 1, 48 + 27).await;
        if is_compact {
            assert_eq!(archive.thin(after(9)).await.unwrap().commits, 5);
        }
        assert_eq!(refused(&archive).await, []);
        account.store_history(&archive, 100).await;
        let report = verify(&archive).await;
        assert_eq!(report.refused, BTreeMap::from([("archive/key".to_owned(), 4)]), "{report:?}");
        // Correct rows are proved all the same.
        assert_eq!((report.proved, report.proved_snapshots), (2, 0), "{report:?}");
    }
}

#[tokio::test]
async fn labels_are_compared_with_the_label_keys_of_their_source() {
    let (mut account, (_folder, archive)) = (Account::new(), archive());
    account.label(&archive, LABELS, 1).await;
    account.rotate(1, 0, HOST, 48);
    account.label(&archive, LABELS, 60).await;
    account.label(&archive, LABELS + 1, 61).await;
    assert_eq!(refused(&archive).await, []);
    account.store_history(&archive, 100).await;
    let report = verify(&archive).await;
    assert_eq!((report.is_refused(), report.compared_keys, report.proved_labels), (false, 3, 3));
    // The key of commits, a label key before its operation, and one a day after another has replaced it.
    account.label(&archive, 1, 62).await;
    account.label(&archive, LABELS + 1, 2).await;
    account.label(&archive, LABELS, 48 + 25).await;
    let report = verify(&archive).await;
    assert_eq!(report.refused, BTreeMap::from([("archive/key".to_owned(), 3)]), "{report:?}");
    assert_eq!(report.proved_labels, 3);
}

#[tokio::test]
async fn a_key_that_was_taken_back_is_told_apart() {
    let (mut account, (_folder, archive)) = (Account::new(), archive());
    account.rotate(5, 0, HOST, 10);
    account.commit(&archive, 5, 12).await;
    account.store_history(&archive, 13).await;
    assert_eq!(refused(&archive).await, []);
    account.rotate(0, 0, OWNER, 40);
    account.commit(&archive, 0, 41).await;
    account.commit(&archive, 5, 40 + 25).await;
    // The last history counts, in whatever order they were imported.
    account.store_history(&archive, 70).await;
    let taken_back = ("archive/key-nullified".to_owned(), 1);
    let never = ("archive/key".to_owned(), 1);
    assert_eq!(refused(&archive).await, [never.clone(), taken_back.clone()]);
    let report = verify(&archive).await;
    assert_eq!((report.proved, report.key_histories), (1, 1));
    // Merged files say the same.
    assert_eq!(archive.table_stats(Table::PlcOps).await.unwrap().files, 2);
    archive.compact(after(9)).await.unwrap();
    assert_eq!(refused(&archive).await, [never, taken_back]);
}

#[tokio::test]
async fn a_history_that_was_changed_is_refused_and_decides_about_nothing() {
    let edits: [(&str, Edit); 4] = [
        ("op", flip),
        ("cid", flip),
        ("nullified", |column| {
            let values = column.as_boolean().iter().map(|value| value.map(|value| !value));
            Arc::new(values.collect::<BooleanArray>())
        }),
        ("created", |column| {
            let mut times = column.as_primitive::<TimestampMicrosecondType>().values().to_vec();
            times.reverse();
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
        }),
    ];
    for (column, edit) in edits {
        let (mut account, (folder, archive)) = (Account::new(), archive());
        account.rotate(1, 0, HOST, 5);
        account.commit(&archive, 1, 6).await;
        account.store_history(&archive, 7).await;
        change(folder.path(), "plc_ops", column, edit);
        let reopened = Archive::open(folder.path().to_str().unwrap()).unwrap();
        let report = verify(&reopened).await;
        let expected = BTreeMap::from([("archive/history".to_owned(), 1)]);
        assert_eq!(report.refused, expected, "{column}: {report:?}");
        assert_eq!((report.proved, report.compared_keys), (1, 0), "{column}");
    }
}

#[tokio::test]
async fn a_history_of_more_operations_than_a_log_may_have_is_refused() {
    let (mut account, (_folder, archive)) = (Account::new(), archive());
    let max = Options::default().limits.operations;
    for number in 1..=max {
        account.rotate(0, number - 1, HOST, number as i64);
    }
    account.store_history(&archive, 20_000).await;
    assert_eq!(refused(&archive).await, [("archive/history".to_owned(), 1)]);
}

#[tokio::test]
async fn the_history_of_an_erased_account_is_erased_and_does_not_come_back() {
    let (mut account, (folder, archive)) = (Account::new(), archive());
    account.commit(&archive, 0, 1).await;
    account.store_history(&archive, 2).await;
    let operation = account.entries[0].operation.to_bytes();
    assert!(is_stored(folder.path(), &operation));
    archive.erase(account.did.as_str(), "deleted", at(3)).await.unwrap();
    assert!(!is_stored(folder.path(), &operation));
    account.rotate(3, 0, HOST, 4);
    account.store_history(&archive, 5).await;
    assert!(!is_stored(folder.path(), &operation));
    assert_eq!(archive.table_stats(Table::PlcOps).await.unwrap().rows, 0);
}
