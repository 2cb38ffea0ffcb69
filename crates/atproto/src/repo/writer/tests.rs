//! Commits that can be undone from their own blocks, exports that read back, and refusals that change
//! nothing.

use std::collections::BTreeMap;

use codec::cbor::Encoder;
use proptest::prelude::*;

use super::*;
use crate::event::Decoder;
use crate::mst::BlockSource;
use crate::mst::inversion::{RecordOp, invert};

const DID: &str = "did:plc:wq4aajammjtxdomz3e23667t";
const COLLECTION: &str = "app.test.note";
const TIME: &str = "2026-01-01T00:00:00Z";
const SIGNATURE: [u8; 64] = [1; 64];

fn writer() -> RepositoryWriter {
    RepositoryWriter::new(Did::parse(DID).unwrap())
}

fn record(number: u64) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(2).text("$type").text(COLLECTION).text("number").integer(number as i64);
    out.into_bytes()
}

fn path(number: u64) -> String {
    format!("{COLLECTION}/{}", Tid::new(number, 0))
}

fn rev(number: u64) -> Tid {
    Tid::new(1_700_000_000_000_000 + number, 0)
}

fn commit(repository: &mut RepositoryWriter, number: u64) -> WrittenCommit {
    repository.commit(rev(number), |_| SIGNATURE).unwrap()
}

/// Decodes the frame and undoes its operations with the blocks that it carries alone.
fn root_before(frame: &[u8]) -> Cid {
    let mut decoder = Decoder::new(event::Options::default());
    let Event::Commit(commit) = decoder.decode(frame).unwrap() else { panic!("no commit") };
    let blocks: BTreeMap<Cid, &[u8]> =
        commit.blocks.iter().map(|block| (block.cid.to_cid().unwrap(), block.data)).collect();
    let object = blocks.block(&commit.commit).unwrap();
    let data = crate::commit::Commit::parse(object).unwrap().data;
    for op in commit.ops {
        assert_eq!(op.record.is_some(), op.action != Action::Delete, "{}", op.path);
    }
    let ops: Vec<RecordOp<'_>> = commit.ops.iter().map(RecordOp::from).collect();
    invert(data, &blocks, &ops).unwrap()
}

fn records_of(export: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let repository = Repository::read(export, &Options::default()).unwrap();
    let records = repository.records().map(Result::unwrap);
    records.map(|record| (record.path, record.block.to_vec())).collect()
}

proptest! {
    /// Whatever is written, every commit leads back to the tree before it, its successor names it,
    /// and the export holds exactly the records.
    #[test]
    fn every_commit_inverts_to_the_tree_before(
        commits in proptest::collection::vec(
            proptest::collection::vec((0_u64..200, proptest::option::weighted(0.7, 0_u64..1000)), 0..40),
            1..8,
        ),
    ) {
        let (mut repository, mut model) = (writer(), BTreeMap::new());
        let mut data = Tree::empty().root();
        for (number, writes) in commits.iter().enumerate() {
            for (at, value) in writes {
                match value {
                    Some(value) => {
                        repository.put(&path(*at), &record(*value)).unwrap();
                        model.insert(path(*at), record(*value));
                    }
                    None => {
                        let deleted = repository.delete(&path(*at));
                        prop_assert_eq!(deleted.is_ok(), model.remove(&path(*at)).is_some());
                    }
                }
            }
            let written = commit(&mut repository, number as u64);
            let frame = written.to_frame(1, TIME).unwrap();
            prop_assert_eq!(root_before(&frame), data);
            prop_assert_eq!(written.prev_data, (number > 0).then_some(data));
            data = written.data();
        }
        let export = repository.export(Vec::new()).unwrap();
        prop_assert_eq!(records_of(&export), model);
    }
}

#[test]
fn a_repository_continued_from_its_export_writes_the_same_commit() {
    let mut repository = writer();
    for number in 0..300 {
        repository.create(&path(number), &record(number % 7)).unwrap();
    }
    commit(&mut repository, 0);
    let export = repository.export(Vec::new()).unwrap();
    let read = Repository::read(&export, &Options::default()).unwrap();
    let mut continued = RepositoryWriter::from_repository(&read).unwrap();
    assert_eq!((continued.head(), continued.rev()), (repository.head(), repository.rev()));
    for repository in [&mut repository, &mut continued] {
        repository.delete(&path(40)).unwrap();
        repository.update(&path(41), &record(99)).unwrap();
        repository.create(&path(900), &record(3)).unwrap();
    }
    let frames = [&mut repository, &mut continued]
        .map(|repository| commit(repository, 1).to_frame(7, TIME).unwrap());
    assert_eq!(frames[0], frames[1]);
    assert_eq!(repository.export(Vec::new()).unwrap(), continued.export(Vec::new()).unwrap());
}

#[test]
fn changes_of_one_path_are_one_operation() {
    let mut repository = writer();
    repository.create(&path(1), &record(1)).unwrap();
    repository.create(&path(2), &record(2)).unwrap();
    repository.create(&path(3), &record(3)).unwrap();
    commit(&mut repository, 0);
    let (one, five) = (Cid::of(Codec::DagCbor, &record(1)), Cid::of(Codec::DagCbor, &record(5)));
    // Updated twice; deleted and created as it was; updated and deleted; created and deleted.
    repository.update(&path(1), &record(4)).unwrap();
    repository.update(&path(1), &record(5)).unwrap();
    repository.delete(&path(2)).unwrap();
    repository.create(&path(2), &record(2)).unwrap();
    repository.update(&path(3), &record(6)).unwrap();
    repository.delete(&path(3)).unwrap();
    repository.create(&path(4), &record(7)).unwrap();
    repository.delete(&path(4)).unwrap();
    let written = commit(&mut repository, 1);
    let ops: Vec<_> = written.ops().iter().map(|op| (op.action, &*op.path)).collect();
    assert_eq!(ops, [(Action::Update, &*path(1)), (Action::Delete, &*path(3))]);
    assert_eq!(
        (&written.ops()[0].prev, &written.ops()[0].cid),
        (&Some(one.into()), &Some(five.into()))
    );
    assert_eq!(records_of(&repository.export(Vec::new()).unwrap()).len(), 2);
    assert_eq!(repository.records.0.len(), 2, "records without a path are dropped");
}

#[test]
fn discarded_changes_leave_the_repository_as_it_was() {
    let mut repository = writer();
    repository.create(&path(1), &record(1)).unwrap();
    commit(&mut repository, 0);
    let before = repository.export(Vec::new()).unwrap();
    repository.update(&path(1), &record(2)).unwrap();
    repository.delete(&path(1)).unwrap();
    repository.create(&path(2), &record(2)).unwrap();
    assert!(matches!(repository.export(Vec::new()), Err(WriteError::Staged)));
    repository.discard();
    assert_eq!(repository.export(Vec::new()).unwrap(), before);
    assert_eq!(repository.get(&path(1)), Some(&*record(1)));
    assert_eq!(repository.get(&path(2)), None);
    assert_eq!(repository.records.0.len(), 1);
}

#[test]
fn a_refused_write_stages_nothing() {
    let mut repository = writer();
    repository.create(&path(1), &record(1)).unwrap();
    let float = b"\xa2\x61x\xfb\x3f\xf8\0\0\0\0\0\0\x65$type\x6dapp.test.note";
    let large = [&record(1)[..], &vec![0; MAX_RECORD_BYTES]].concat();
    let refused = [
        repository.create("app.test.note", &record(1)).unwrap_err(),
        repository.create("app.test.note/a/b", &record(1)).unwrap_err(),
        repository.create(&path(1), &record(2)).unwrap_err(),
        repository.update(&path(2), &record(2)).unwrap_err(),
        repository.delete(&path(2)).unwrap_err(),
        repository.create("app.test.other/a", &record(2)).unwrap_err(),
        repository.create(&path(2), float).unwrap_err(),
        repository.create(&path(2), b"\xa0\xa0").unwrap_err(),
        repository.create(&path(2), &large).unwrap_err(),
    ];
    let kinds = refused.map(|error| match error {
        WriteError::Syntax(_) => "syntax",
        WriteError::Exists => "exists",
        WriteError::Absent => "absent",
        WriteError::Data(error) => error.code(),
        WriteError::RecordTooLarge => "size",
        other => panic!("{other}"),
    });
    let expected = [
        "syntax",
        "syntax",
        "exists",
        "absent",
        "absent",
        "data/record-type",
        "data/float",
        "data/cbor",
        "size",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(commit(&mut repository, 0).ops().len(), 1);
}

#[test]
fn a_commit_needs_a_newer_revision_and_the_tree_that_was_signed() {
    let mut repository = writer();
    assert!(matches!(repository.export(Vec::new()), Err(WriteError::NoCommit)));
    let first = commit(&mut repository, 5);
    assert_eq!((first.ops().len(), first.prev_data), (0, None));
    for number in [4, 5] {
        let refused = repository.commit(rev(number), |_| SIGNATURE);
        assert!(matches!(refused, Err(WriteError::RevNotNewer)), "{number}");
    }
    let prepared = repository.prepare(rev(6)).unwrap();
    repository.create(&path(1), &record(1)).unwrap();
    let outdated = repository.finish(prepared, &SIGNATURE);
    assert!(matches!(outdated, Err(WriteError::Outdated)));
    let (prepared, earlier) = (repository.prepare(rev(7)), repository.prepare(rev(6)));
    repository.finish(prepared.unwrap(), &SIGNATURE).unwrap();
    assert!(matches!(repository.finish(earlier.unwrap(), &SIGNATURE), Err(WriteError::Outdated)));
}

#[test]
fn a_commit_that_no_event_can_carry_is_announced_by_a_sync_event() {
    let mut repository = writer();
    for number in 0..201 {
        repository.create(&path(number), &record(number)).unwrap();
    }
    let written = commit(&mut repository, 0);
    assert!(matches!(written.to_frame(1, TIME), Err(WriteError::EventTooLarge)));
    let frame = written.to_sync_frame(1, TIME);
    let mut decoder = Decoder::new(event::Options::default());
    let Event::Sync(sync) = decoder.decode(&frame).unwrap() else { panic!("no sync event") };
    assert_eq!((sync.did, sync.rev.to_owned()), (DID, written.rev().to_string()));
    assert_eq!(sync.root, Some(written.cid().as_cid_ref()));
    assert_eq!(sync.blocks[0].data, written.block());
}
