//! `archive verify` finds in compact commits and repositories what a plain proof finds: row by row, every tree built anew by
//! single insertions, every signature verified alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use atproto::commit::UnsignedCommit;
use atproto::mst::Tree;
use codec::Cid;
use codec::cid::Codec;
use crypto::PublicKey;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use verify::commit::signature_code;
use wireproof_archive::{Archive, Finding, VerifyOptions};

use crate::common::changed_file::change_rows;
use crate::common::writers::{Writers, after};
use crate::common::{archive, files};

#[tokio::test]
async fn whole_histories_are_accepted_by_both() {
    for seed in 0..6 {
        let (_writers, (folder, archive)) = history(seed).await;
        let plain = PlainProof::of(folder.path());
        assert_eq!(plain.refused, [], "seed {seed}");
        assert!(plain.compact > 30 && plain.snapshots > 0, "{plain:?}");
        assert_eq!(proved(&archive).await, plain, "seed {seed}");
    }
}

#[tokio::test]
async fn damaged_histories_are_refused_at_the_same_rows_for_the_same_rules() {
    let mut refused = BTreeMap::new();
    for seed in 0..24 {
        let (mut writers, (folder, _)) = history(seed).await;
        for _ in 0..=writers.random(2) {
            damage(&mut writers, folder.path());
        }
        let plain = PlainProof::of(folder.path());
        for (_, _, code) in &plain.refused {
            *refused.entry(code.clone()).or_insert(0) += 1;
        }
        let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(proved(&archive).await, plain, "seed {seed}");
    }
    let codes = ["archive/base", "archive/operations", "archive/records", "signature/wrong"];
    for code in codes {
        assert!(refused.contains_key(code), "no damage breaks {code}: {refused:?}");
    }
}

/// Accounts with and without a repository before their compact commits, in one file a table.
async fn history(seed: u64) -> (Writers, (tempfile::TempDir, Archive)) {
    let (mut writers, (folder, archive)) = (Writers::new(5, 900 + seed), archive());
    for account in 0..3 {
        for _ in 0..=writers.random(if account == 0 { 300 } else { 20 }) {
            writers.commit(account);
        }
        // No chain begins at a repository without records.
        while writers.accounts[account].paths().is_empty() {
            writers.commit(account);
        }
        writers.accounts[account].snapshot(&archive, 0).await;
    }
    let frames = writers.commits(80);
    writers.import(&archive, &frames, "stream", 0).await;
    // A repository in the middle of a chain, and one that is there twice.
    let (middle, twice) = (writers.random(3) as usize, writers.random(3) as usize);
    writers.accounts[middle].snapshot(&archive, 0).await;
    writers.accounts[twice].snapshot(&archive, 0).await;
    archive.thin(after(0)).await.unwrap();
    archive.compact(after(0)).await.unwrap();
    (writers, (folder, archive))
}

/// Changes, removes or exchanges something of a random row.
fn damage(writers: &mut Writers, folder: &Path) {
    let (choice, number) = (writers.random(11), writers.random(1 << 30) as usize);
    let table = ["events", "ops", "records", "snapshots"]
        [[0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3][choice as usize]];
    change_rows(folder, table, |rows| {
        let row = number % rows.num_rows();
        match choice {
            0 => with_bytes(&rows, "sig", row, flipped),
            1 => with_text_of(&rows, "rev", row, number / 7 % rows.num_rows()),
            2 => with_text_of(&rows, "since", row, number / 7 % rows.num_rows()),
            3 | 6 | 8 => without(&rows, row),
            4 | 7 => with_bytes(&rows, "record", row, flipped),
            5 => with_text_of(&rows, "action", row, number / 7 % rows.num_rows()),
            9 => with_bytes(&rows, "sig", row, flipped),
            _ => with_bytes(&rows, "data", row, flipped),
        }
    });
}

fn flipped(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes
}

fn with_column(rows: &RecordBatch, name: &str, column: ArrayRef) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of(name).unwrap()] = column;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

fn with_bytes(
    rows: &RecordBatch,
    name: &str,
    row: usize,
    edit: fn(Vec<u8>) -> Vec<u8>,
) -> RecordBatch {
    let mut values = bytes(rows, name);
    values[row] = values[row].take().map(edit);
    with_column(rows, name, Arc::new(BinaryArray::from_iter(values)))
}

/// Gives a row the text of another row.
fn with_text_of(rows: &RecordBatch, name: &str, row: usize, other: usize) -> RecordBatch {
    let mut values = texts(rows, name);
    values[row] = values[other].clone().or_else(|| values[row].clone());
    with_column(rows, name, Arc::new(StringArray::from_iter(values)))
}

fn without(rows: &RecordBatch, row: usize) -> RecordBatch {
    let keep: BooleanArray = (0..rows.num_rows()).map(|index| Some(index != row)).collect();
    filter_record_batch(rows, &keep).unwrap()
}

/// The results of a proof: the refused rows of compact commits and snapshots, by table, number and code.
#[derive(Debug, PartialEq, Eq)]
struct PlainProof {
    compact: u64,
    snapshots: u64,
    refused: Vec<(String, u64, String)>,
}

/// The results of `archive verify`. Rows of operations without their event are refused for other reasons.
async fn proved(archive: &Archive) -> PlainProof {
    let mut refused = Vec::new();
    let mut note = |finding: Finding| {
        if finding.code != "archive/derived" {
            let table = finding.file.split('/').next().unwrap().to_owned();
            refused.push((table, finding.row.unwrap(), finding.code.to_owned()));
        }
    };
    let report = archive.verify(&VerifyOptions::default(), &mut note).await.unwrap();
    refused.sort();
    PlainProof { compact: report.compact, snapshots: report.proved_snapshots, refused }
}

impl PlainProof {
    fn of(folder: &Path) -> Self {
        let tables = Tables::read(folder);
        let mut proof = Self { compact: 0, snapshots: 0, refused: Vec::new() };
        for (row, snapshot) in (0..).zip(&tables.snapshots) {
            match tables.prove_snapshot(snapshot) {
                Ok(()) => proof.snapshots += 1,
                Err(code) => proof.refused.push(("snapshots".to_owned(), row, code.to_owned())),
            }
        }
        let mut chains = PlainChains { tables: &tables, asked: None, last: None };
        for (row, event) in (0..).zip(&tables.events) {
            match chains.prove(event) {
                Ok(()) => proof.compact += 1,
                Err(code) => proof.refused.push(("events".to_owned(), row, code.to_owned())),
            }
        }
        proof.refused.sort();
        proof
    }
}

/// The rows of an archive in which every commit is compact.
struct Tables {
    events: Vec<EventRow>,
    ops: Vec<OpRow>,
    snapshots: Vec<SnapshotRow>,
    records: Vec<RecordRow>,
}

struct EventRow {
    did: String,
    arrival: i64,
    rev: String,
    since: Option<String>,
    key: String,
    sig: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq)]
struct OpRow {
    did: String,
    arrival: i64,
    action: String,
    path: String,
    record: Option<Vec<u8>>,
}

struct SnapshotRow {
    did: String,
    rev: String,
    key: String,
    sig: Vec<u8>,
    data: Vec<u8>,
    records: i64,
}

struct RecordRow {
    did: String,
    rev: String,
    path: String,
    record: Vec<u8>,
}

impl Tables {
    fn read(folder: &Path) -> Self {
        let events = table(folder, "events");
        let (arrivals, sigs) = (numbers(&events, "arrival"), bytes(&events, "sig"));
        let [dids, revs, sinces, keys] =
            ["did", "rev", "since", "key"].map(|name| texts(&events, name));
        assert!(texts(&events, "form").iter().flatten().all(|form| form == "compact"));
        let events = (0..events.num_rows()).map(|row| EventRow {
            did: dids[row].clone().unwrap(),
            arrival: arrivals[row],
            rev: revs[row].clone().unwrap(),
            since: sinces[row].clone(),
            key: keys[row].clone().unwrap(),
            sig: sigs[row].clone().unwrap(),
        });
        let events = events.collect();
        let ops = table(folder, "ops");
        let (arrivals, records) = (numbers(&ops, "arrival"), bytes(&ops, "record"));
        let ([dids, actions], paths) =
            (["did", "action"].map(|name| texts(&ops, name)), paths(&ops));
        let ops = (0..ops.num_rows()).map(|row| OpRow {
            did: dids[row].clone().unwrap(),
            arrival: arrivals[row],
            action: actions[row].clone().unwrap(),
            path: paths[row].clone(),
            record: records[row].clone(),
        });
        let ops = ops.collect();
        Self { events, ops, snapshots: snapshots(folder), records: records_of(folder) }
    }

    /// The records of a revision.
    fn records(&self, did: &str, rev: &str) -> Vec<&RecordRow> {
        self.records.iter().filter(|record| (&*record.did, &*record.rev) == (did, rev)).collect()
    }

    fn prove_snapshot(&self, snapshot: &SnapshotRow) -> Result<(), &'static str> {
        let SnapshotRow { did, rev, .. } = snapshot;
        let records = self.records(did, rev);
        if records.len() as i64 != snapshot.records {
            return Err("archive/records");
        }
        let tree = records.iter().map(|record| (record.path.clone(), record_cid(&record.record)));
        let data = root(&tree.collect());
        if data.as_bytes()[..] != snapshot.data[..] {
            return Err("archive/records");
        }
        let message = UnsignedCommit { did, rev, data, prev: None }.to_bytes();
        let key = PublicKey::from_did_key(&snapshot.key).map_err(|_| "archive/value")?;
        key.verify(&message, &snapshot.sig).map_err(|_| "signature/wrong")
    }
}

fn snapshots(folder: &Path) -> Vec<SnapshotRow> {
    let rows = table(folder, "snapshots");
    let [dids, revs, keys] = ["did", "rev", "key"].map(|name| texts(&rows, name));
    let [sigs, datas] = ["sig", "data"].map(|name| bytes(&rows, name));
    let counts = numbers(&rows, "records");
    let rows = (0..rows.num_rows()).map(|row| SnapshotRow {
        did: dids[row].clone().unwrap(),
        rev: revs[row].clone().unwrap(),
        key: keys[row].clone().unwrap(),
        sig: sigs[row].clone().unwrap(),
        data: datas[row].clone().unwrap(),
        records: counts[row],
    });
    rows.collect()
}

fn records_of(folder: &Path) -> Vec<RecordRow> {
    let rows = table(folder, "records");
    let [dids, revs] = ["did", "rev"].map(|name| texts(&rows, name));
    let (paths, records) = (paths(&rows), bytes(&rows, "record"));
    let rows = (0..rows.num_rows()).map(|row| RecordRow {
        did: dids[row].clone().unwrap(),
        rev: revs[row].clone().unwrap(),
        path: paths[row].clone(),
        record: records[row].clone().unwrap(),
    });
    rows.collect()
}

/// A tree by its records.
type Records = BTreeMap<String, Cid>;

/// The last commit of an account, and its tree.
struct Last {
    did: String,
    rev: String,
    ops: Vec<OpRow>,
    records: Records,
}

struct PlainChains<'t> {
    tables: &'t Tables,
    /// The greatest revision whose tree a chain began with: trees are read once, in their order.
    asked: Option<(String, String)>,
    last: Option<Last>,
}

impl PlainChains<'_> {
    fn prove(&mut self, event: &EventRow) -> Result<(), &'static str> {
        let EventRow { did, rev, .. } = event;
        let data = root(self.apply(event)?);
        let message = UnsignedCommit { did, rev, data, prev: None }.to_bytes();
        let key = PublicKey::from_did_key(&event.key).map_err(|_| "archive/value")?;
        key.verify(&message, &event.sig).map_err(signature_code)
    }

    /// The tree that a commit leaves.
    fn apply(&mut self, event: &EventRow) -> Result<&Records, &'static str> {
        let wrong = "archive/operations";
        let is_of = |op: &&OpRow| (&op.did, op.arrival) == (&event.did, event.arrival);
        let ops: Vec<OpRow> = self.tables.ops.iter().filter(is_of).cloned().collect();
        if ops.iter().any(|op| op.action != "delete" && op.record.is_none()) {
            return Err(wrong);
        }
        if event.since.as_ref().is_some_and(|since| *since >= event.rev) {
            return Err(wrong);
        }
        let last = self.last.as_ref().filter(|last| last.did == event.did);
        if last.is_some_and(|last| last.rev == event.rev) {
            let last = self.last.as_ref().unwrap();
            let same = |(a, b): (&OpRow, &OpRow)| {
                (&a.action, &a.path, value(a)) == (&b.action, &b.path, value(b))
            };
            let is_same = last.ops.len() == ops.len() && last.ops.iter().zip(&ops).all(same);
            return if is_same { Ok(&last.records) } else { Err(wrong) };
        }
        let mut records = match last {
            Some(last) if Some(&last.rev) == event.since.as_ref() => last.records.clone(),
            Some(last) if event.rev < last.rev => return Err(wrong),
            _ => self.base(event)?,
        };
        for op in &ops {
            let before = match value(op) {
                Some(value) => records.insert(op.path.clone(), value),
                None => records.remove(&op.path),
            };
            if before.is_none() != (op.action == "create") {
                return Err(wrong);
            }
        }
        let (did, rev) = (event.did.clone(), event.rev.clone());
        Ok(&self.last.insert(Last { did, rev, ops, records }).records)
    }

    /// The tree from which a commit begins a chain.
    fn base(&mut self, event: &EventRow) -> Result<Records, &'static str> {
        let Some(since) = &event.since else { return Ok(Records::new()) };
        let place = Some((event.did.clone(), since.clone()));
        if self.asked >= place {
            return Err("archive/base");
        }
        self.asked = place;
        let records = self.tables.records(&event.did, since);
        if records.is_empty() {
            return Err("archive/base");
        }
        Ok(records.iter().map(|record| (record.path.clone(), record_cid(&record.record))).collect())
    }
}

/// The record that an operation leaves.
fn value(op: &OpRow) -> Option<Cid> {
    op.record.as_deref().filter(|_| op.action != "delete").map(record_cid)
}

fn record_cid(record: &[u8]) -> Cid {
    Cid::of(Codec::DagCbor, record)
}

fn root(records: &Records) -> Cid {
    let mut tree = Tree::empty();
    for (path, record) in records {
        tree.insert(path.as_bytes(), *record).unwrap();
    }
    tree.root()
}

/// The rows of the only file of a table.
fn table(folder: &Path, name: &str) -> RecordBatch {
    let files = files(&folder.join(name));
    let mut parquet = files.iter().filter(|path| path.extension().unwrap() == "parquet");
    let path = parquet.next().unwrap();
    assert_eq!(parquet.next(), None, "one file of {name}");
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn texts(rows: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = rows.column_by_name(name).unwrap().as_string::<i32>();
    column.iter().map(|value| value.map(str::to_owned)).collect()
}

fn bytes(rows: &RecordBatch, name: &str) -> Vec<Option<Vec<u8>>> {
    let column = rows.column_by_name(name).unwrap().as_binary::<i32>();
    column.iter().map(|value| value.map(<[u8]>::to_vec)).collect()
}

fn numbers(rows: &RecordBatch, name: &str) -> Vec<i64> {
    let column: &Int64Array = rows.column_by_name(name).unwrap().as_primitive::<Int64Type>();
    column.values().to_vec()
}

fn paths(rows: &RecordBatch) -> Vec<String> {
    let [collections, rkeys] = ["collection", "rkey"].map(|name| texts(rows, name));
    let pairs = collections.into_iter().flatten().zip(rkeys.into_iter().flatten());
    pairs.map(|(collection, rkey)| format!("{collection}/{rkey}")).collect()
}
