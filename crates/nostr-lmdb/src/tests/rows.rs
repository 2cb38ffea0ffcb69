//! Tables and indexes of strfry that do not agree.

use std::path::Path;

use bumpalo::Bump;
use heed::RwTxn;
use nostr::OwnedEvent;
use nostr_formats::Format;
use nostr_formats::packed_event::PackedEvent;
use tempfile::TempDir;

use super::{difference_of, encoded, events, plain};
use crate::tables::{self, INDEXES, Index, Tables};
use crate::{DatabaseError, Reader, RecordFault, StrfryWriter};

/// A database of a hundred events, changed by `change` under its tables.
fn changed(change: impl FnOnce(&Tables, &mut RwTxn<'_>)) -> TempDir {
    let (owned, arena) = (events(), Bump::new());
    let events: Vec<_> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StrfryWriter::create(folder.path()).unwrap();
    writer.write(&events).unwrap();
    let (env, tables) = writer.parts();
    let mut txn = env.write_txn().unwrap();
    change(tables, &mut txn);
    txn.commit().unwrap();
    folder
}

/// Keys of records, with the field in which the event differs from its row, or the fault.
type Refused = Vec<(u64, Result<&'static str, RecordFault>)>;

/// The records that are refused, with the fields in which events differ from their rows.
fn refused(folder: &Path) -> (Refused, Option<String>) {
    let (mut reader, mut refused) = (Reader::open(folder).unwrap(), Vec::new());
    let end = loop {
        let mut out = Vec::new();
        let record = match reader.next_record(&mut out) {
            Ok(Some(record)) => record,
            Ok(None) => break None,
            Err(DatabaseError::Indexes(names)) => break Some(names),
            Err(error) => panic!("{error}"),
        };
        let (json, summary) = out.split_at(record.event_len);
        let other = if summary.is_empty() { None } else { difference_of(json, summary) };
        refused.extend(record.fault.map(Err).or(other.map(Ok)).map(|why| (record.key, why)));
    };
    (refused, end)
}

#[test]
fn an_event_is_refused_that_has_no_payload_or_no_row_wherever_it_is() {
    for number in [1_u64, 2, 50, 99, 100] {
        let key = &number.to_ne_bytes()[..];
        let folder = changed(|tables, txn| {
            tables.payloads.delete(txn, key).unwrap();
        });
        let fault = RecordFault::NoPayload([number as u8 - 1; 32]);
        assert_eq!(refused(folder.path()), (vec![(number, Err(fault))], None), "{number}");
        let folder = changed(|tables, txn| {
            tables.summaries.delete(txn, key).unwrap();
        });
        let (found, indexes) = refused(folder.path());
        assert_eq!(found, [(number, Err(RecordFault::NoRow))]);
        assert!(indexes.is_some_and(|names| names.contains("__id")), "its entries are too many");
    }
    let folder = changed(|tables, txn| tables.payloads.clear(txn).unwrap());
    assert_eq!(refused(folder.path()).0.len(), 100, "a table without any payload");
    let folder = changed(|tables, txn| tables.summaries.clear(txn).unwrap());
    assert_eq!(refused(folder.path()).0.len(), 100, "a table without any row");
}

#[test]
fn a_payload_of_another_event_is_refused_by_the_field_that_differs() {
    type Change = fn(&mut OwnedEvent);
    let fields: [(&str, Change); 6] = [
        ("id", |event| event.id = [0xfe; 32]),
        ("pubkey", |event| event.pubkey = [9; 32]),
        ("created_at", |event| event.created_at += 1),
        ("kind", |event| event.kind += 1),
        ("tags or expiration", |event| event.tags.push(vec!["t".to_owned()])),
        ("tags or expiration", |event| {
            event.tags.push(vec!["expiration".into(), "1700000000".into()])
        }),
    ];
    for (name, change) in fields {
        let mut event = events()[6].clone();
        change(&mut event);
        let payload = plain(&encoded(Format::Json, &event));
        let folder = changed(|tables, txn| {
            tables.payloads.put(txn, &7_u64.to_ne_bytes(), &payload).unwrap();
        });
        assert_eq!(refused(folder.path()), (vec![(7, Ok(name))], None));
    }
    let folder = changed(|tables, txn| {
        let [seven, eight] = [7_u64, 8].map(u64::to_ne_bytes);
        let payloads =
            [&seven, &eight].map(|key| tables.payloads.get(txn, key).unwrap().unwrap().to_vec());
        tables.payloads.put(txn, &seven, &payloads[1]).unwrap();
        tables.payloads.put(txn, &eight, &payloads[0]).unwrap();
    });
    assert_eq!(refused(folder.path()), (vec![(7, Ok("id")), (8, Ok("id"))], None));
}

#[test]
fn a_row_that_is_no_summary_is_refused() {
    let folder = changed(|tables, txn| {
        tables.summaries.put(txn, &7_u64.to_ne_bytes(), b"no summary").unwrap();
    });
    assert_eq!(refused(folder.path()).0, [(7, Err(RecordFault::MalformedRow))]);
}

#[test]
fn an_index_with_other_entries_than_those_of_the_events_is_named() {
    for index in INDEXES {
        let missing = changed(|tables, txn| {
            let summary =
                tables.summaries.get(txn, &7_u64.to_ne_bytes()).unwrap().unwrap().to_vec();
            let entries = tables::entries(&PackedEvent::new(&summary).unwrap());
            let Some((_, key)) = entries.into_iter().find(|entry| entry.0 == index) else { return };
            tables.index(index).remove(txn, &key, 7).unwrap();
        });
        let added = changed(|tables, txn| {
            tables.index(index).insert(txn, &[1; 40][..index_key_len(index)], 7).unwrap();
        });
        let expected = (index != Index::ReplaceDeletion).then(|| index.name().to_owned());
        assert_eq!(refused(added.path()), (vec![], expected.clone()));
        let is_of_all = matches!(
            index,
            Index::CreatedAt | Index::Id | Index::Pubkey | Index::Kind | Index::PubkeyKind
        );
        if is_of_all {
            assert_eq!(refused(missing.path()), (vec![], expected));
        }
    }
    // As many entries, one of another event.
    let folder = changed(|tables, txn| {
        let key = tables::key(&[&[6; 32]], &[1_700_000_006]);
        tables.index(Index::Id).remove(txn, &key, 7).unwrap();
        tables.index(Index::Id).insert(txn, &key, 8).unwrap();
    });
    assert_eq!(refused(folder.path()), (vec![], Some(Index::Id.name().to_owned())));
}

fn index_key_len(index: Index) -> usize {
    if matches!(index, Index::CreatedAt | Index::Expiration) { 8 } else { 40 }
}

#[test]
fn a_database_whose_values_share_bytes_ends_the_reading() {
    let folder = changed(|_, _| {});
    let mut reader = Reader::open(folder.path()).unwrap();
    reader.limit_bytes(1_000);
    let (mut out, mut read) = (Vec::new(), 0);
    let error = loop {
        match reader.next_record(&mut out) {
            Ok(record) => read += u64::from(record.is_some()),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, DatabaseError::Shared { after } if after == read && read > 0),
        "{error}"
    );
    assert!(out.len() <= 1_000);
}
