//! Databases that are made here, table by table, and databases that the writer makes.

mod orders;
mod rows;

use std::fs;
use std::path::Path;

use bumpalo::Bump;
use heed::types::Bytes;
use heed::{CommitOrAbort, Comparator, DefaultComparator, Env, IntegerComparator, WithoutTls};
use mapping::lmdb;
use nostr::{Event, Limits, OwnedEvent, Reason};
use nostr_formats::Format;
use nostr_formats::packed_event::PackedEvent;
use tempfile::TempDir;
use zstd::bulk::Compressor;

use super::*;
use crate::flat::tests::of_bytes;
use crate::payload::{COMPRESSED, MAX_DICTIONARY_BYTES, PLAIN, TOO_LONG};
use crate::tables::{self, DICTIONARIES, INDEXES, Index, META, PAYLOADS, SUMMARIES};

/// The values of a table by their keys.
type Entries<'a> = &'a [(&'a [u8], &'a [u8])];

/// A database with these tables.
fn database(tables: &[(&str, Entries<'_>)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let env = lmdb::create(folder.path(), 8, 1 << 30).unwrap();
    for (name, entries) in tables {
        if entries.iter().all(|(key, _)| key.len() == 8) {
            fill::<IntegerComparator>(&env, name, entries)
        } else {
            fill::<DefaultComparator>(&env, name, entries)
        }
    }
    folder
}

fn fill<C: Comparator + 'static>(env: &Env<WithoutTls>, name: &str, entries: Entries<'_>) {
    let filled = env.create_databases_and_commit(env.write_txn().unwrap(), |opener, txn| {
        let options = opener.database_options().types::<Bytes, Bytes>();
        let table = options.key_comparator::<C>().name(name).create(txn)?;
        entries.iter().try_for_each(|(key, value)| table.put(txn, key, value))?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(()))
    });
    filled.unwrap();
}

/// A database of strfry with payloads from number 255 on, and dictionaries by their numbers.
fn strfry(payloads: &[Vec<u8>], dictionaries: &[(u64, Vec<u8>)]) -> TempDir {
    let numbers: Vec<_> = (255_u64..).map(u64::to_ne_bytes).take(payloads.len()).collect();
    let payloads: Vec<_> =
        numbers.iter().zip(payloads).map(|(number, value)| (&number[..], &value[..])).collect();
    let dictionaries: Vec<_> =
        dictionaries.iter().map(|(number, value)| (number.to_ne_bytes(), value)).collect();
    let dictionaries: Vec<_> =
        dictionaries.iter().map(|(number, value)| (&number[..], &value[..])).collect();
    // Of version 2, whose rows are no summaries.
    let rows: Vec<(&[u8], &[u8])> =
        numbers.iter().map(|number| (&number[..], &b"row"[..])).collect();
    let meta = flat::of_integers(&[2, 1, 1]);
    database(&[
        (PAYLOADS, &payloads),
        (DICTIONARIES, &dictionaries),
        (SUMMARIES, &rows),
        (META, &[(&1_u64.to_ne_bytes(), &meta)]),
    ])
}

type Read = Vec<(u64, Result<Vec<u8>, RecordFault>)>;

fn read(folder: &Path) -> Result<Read, DatabaseError> {
    let (mut reader, mut found) = (Reader::open(folder)?, Vec::new());
    let mut out = b"before".to_vec();
    while let Some(record) = reader.next_record(&mut out)? {
        let mut bytes = out.split_off(6);
        assert_eq!(bytes.len(), record.event_len + record.summary_len);
        let summary = bytes.split_off(record.event_len);
        if let Some(RecordFault::Value(_)) = record.fault {
            assert!(bytes.is_empty(), "nothing is appended of what is refused");
        }
        let other = if summary.is_empty() { None } else { difference_of(&bytes, &summary) };
        assert_eq!(other, None, "{}", record.key);
        found.push((record.key, record.fault.map_or(Ok(bytes), Err)));
    }
    Ok(found)
}

fn difference_of(json: &[u8], summary: &[u8]) -> Option<&'static str> {
    let arena = Bump::new();
    let event = Format::Json.decode(json, &arena, &Limits::default()).unwrap();
    difference(&event, summary)
}

fn events() -> Vec<OwnedEvent> {
    // Without signatures of these, as nothing here verifies them.
    let event = |number: u8| OwnedEvent {
        id: [number; 32],
        created_at: 1_700_000_000 + i64::from(number),
        content: format!("event {number}"),
        ..example()
    };
    (0..100).map(event).collect()
}

fn example() -> OwnedEvent {
    let arena = Bump::new();
    let json = nostr::example::JSON.as_bytes();
    Format::Json.decode(json, &arena, &Limits::default()).unwrap().to_owned()
}

fn encoded(format: Format, event: &OwnedEvent) -> Vec<u8> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    format.encode(&event.borrow_in(&arena), &mut bytes).unwrap();
    bytes
}

fn plain(json: &[u8]) -> Vec<u8> {
    [&[PLAIN], json].concat()
}

fn compressed(number: u32, dictionary: &[u8], json: &[u8]) -> Vec<u8> {
    let frame = Compressor::with_dictionary(3, dictionary).unwrap().compress(json).unwrap();
    [&[COMPRESSED], &number.to_ne_bytes()[..], &frame].concat()
}

fn json_of_events() -> Vec<Vec<u8>> {
    events().iter().map(|event| encoded(Format::Json, event)).collect()
}

#[test]
fn payloads_of_strfry_are_read_in_the_order_of_their_numbers() {
    let json = json_of_events();
    let folder = strfry(&json.iter().map(|json| plain(json)).collect::<Vec<_>>(), &[]);
    assert_eq!(Reader::open(folder.path()).unwrap().program(), Program::Strfry);
    // Numbers from 255 on, whose bytes are not in this order.
    let expected: Read = (255..).zip(json).map(|(key, json)| (key, Ok(json))).collect();
    assert_eq!(read(folder.path()).unwrap(), expected);
}

#[test]
fn payloads_under_dictionaries_are_decompressed() {
    let json = json_of_events();
    let trained = zstd::dict::from_samples(&json, 2_000).unwrap();
    // More of them than are open at a time; one trained, the others plain text.
    let dictionary = |number: u32| match number {
        0 => trained.clone(),
        number => format!("{number} {}", nostr::example::JSON).into_bytes(),
    };
    let payload = |(at, json): (u32, &Vec<u8>)| compressed(at % 40, &dictionary(at % 40), json);
    let payloads: Vec<_> = (0..).zip(&json).map(payload).collect();
    let dictionaries: Vec<_> =
        (0..40).map(|number| (number.into(), of_bytes(&dictionary(number)))).collect();
    let folder = strfry(&payloads, &dictionaries);
    let expected: Read = (255..).zip(json).map(|(key, json)| (key, Ok(json))).collect();
    assert_eq!(read(folder.path()).unwrap(), expected);
}

#[test]
fn what_is_no_payload_is_refused_with_its_place_and_the_next_one_is_read() {
    let json = nostr::example::JSON.as_bytes();
    let dictionary = b"a dictionary of plain text".to_vec();
    let right = compressed(1, &dictionary, json);
    let long = vec![b' '; (16 << 20) + 1];
    // A frame that states a length, and one that does not.
    let bomb = compressed(1, &dictionary, &long);
    let frame = zstd::stream::encode_all(&long[..], 3).unwrap();
    assert_eq!(zstd::zstd_safe::get_frame_content_size(&frame).unwrap(), None);
    let streamed_bomb = [&right[..5], &frame].concat();
    let with_number =
        |number: u32| [&[COMPRESSED], &number.to_ne_bytes()[..], &right[5..]].concat();
    let frame = Reason::Expected("a frame of Zstandard under this dictionary");
    let no_dictionary = Reason::Expected("the number of a dictionary of the database");
    let cases = [
        (vec![], 0, Reason::Truncated),
        (vec![2, b'{'], 0, Reason::Expected("a payload of type 0 or 1")),
        (b"{}".to_vec(), 0, Reason::Expected("a payload of type 0 or 1")),
        (vec![COMPRESSED], 1, Reason::Truncated),
        (right[..4].to_vec(), 4, Reason::Truncated),
        (right[..5].to_vec(), 5, frame),
        (right[..right.len() - 1].to_vec(), 5, frame),
        ([&right[..], b"x"].concat(), 5, frame),
        (with_number(2), 1, no_dictionary),
        // Too long, malformed, and no table of FlatBuffers.
        (with_number(3), 1, no_dictionary),
        (with_number(4), 1, no_dictionary),
        (with_number(5), 1, no_dictionary),
        (bomb, 5, TOO_LONG),
        (streamed_bomb, 5, frame),
        (plain(&long), 0, TOO_LONG),
    ];
    let payloads: Vec<_> = cases.iter().map(|case| case.0.clone()).chain([right.clone()]).collect();
    let mut malformed = zstd::dict::from_samples(&json_of_events(), 2_000).unwrap();
    malformed.truncate(20);
    let dictionaries = [
        (1, of_bytes(&dictionary)),
        (3, of_bytes(&vec![b'x'; MAX_DICTIONARY_BYTES + 1])),
        (4, of_bytes(&malformed)),
        (5, b"no table".to_vec()),
    ];
    let folder = strfry(&payloads, &dictionaries);
    let found = read(folder.path()).unwrap();
    assert_eq!(found.len(), cases.len() + 1);
    for ((_, offset, reason), (key, event)) in cases.iter().zip(&found) {
        let expected = RecordFault::Value(nostr::DecodeError::new(*offset, *reason));
        assert_eq!(event, &Err(expected), "{key}");
    }
    assert_eq!(found.last().unwrap().1, Ok(json.to_vec()));
}

#[test]
fn a_payload_is_refused_whose_dictionaries_are_in_no_table() {
    let json = nostr::example::JSON.as_bytes();
    let payload = compressed(1, b"a dictionary", json);
    let meta = flat::of_integers(&[2, 1, 1]);
    let key = 1_u64.to_ne_bytes();
    let folder = database(&[
        (PAYLOADS, &[(&key, &payload)]),
        (SUMMARIES, &[(&key, b"row")]),
        (META, &[(&key, &meta)]),
    ]);
    let reason = Reason::Expected("the number of a dictionary of the database");
    let refused = Err(RecordFault::Value(nostr::DecodeError::new(1, reason)));
    assert_eq!(read(folder.path()).unwrap(), [(1, refused)]);
}

#[test]
fn notes_of_nostrdb_are_read() {
    let notes: Vec<_> = events().iter().map(|event| encoded(Format::NdbNote, event)).collect();
    let numbers: Vec<_> = (1_u64..).map(u64::to_ne_bytes).take(notes.len()).collect();
    let entries: Vec<_> =
        numbers.iter().zip(&notes).map(|(number, note)| (&number[..], &note[..])).collect();
    let version = (&1_u64.to_ne_bytes()[..], &5_u64.to_ne_bytes()[..]);
    let folder = database(&[("note", &entries), ("ndb_meta", &[version]), ("profile", &[])]);
    let reader = Reader::open(folder.path()).unwrap();
    assert_eq!((reader.program(), reader.program().format()), (Program::Nostrdb, Format::NdbNote));
    drop(reader);
    let expected: Read = (1..).zip(notes).map(|(key, note)| (key, Ok(note))).collect();
    assert_eq!(read(folder.path()).unwrap(), expected);
}

#[test]
fn an_empty_table_of_events_is_no_events() {
    let folder = tempfile::tempdir().unwrap();
    StrfryWriter::create(folder.path()).unwrap().finish().unwrap();
    assert_eq!(read(folder.path()).unwrap(), []);
    let folder = database(&[("note", &[]), ("ndb_meta", &[])]);
    assert_eq!(read(folder.path()).unwrap(), []);
}

#[test]
fn databases_of_other_programs_are_refused() {
    let note: (&[u8], &[u8]) = (&1_u64.to_ne_bytes(), b"text");
    let cases: [&[(&str, Entries<'_>)]; 4] = [
        &[],
        &[("note", &[note])],
        &[("ndb_meta", &[note])],
        &[("rasgueadb_defaultDb__Event", &[note]), ("notes", &[note])],
    ];
    for tables in cases {
        let folder = database(tables);
        assert!(matches!(read(folder.path()), Err(DatabaseError::Tables)), "{tables:?}");
    }
}

#[test]
fn a_key_that_is_no_number_ends_the_reading_with_its_place() {
    let payload = plain(nostr::example::JSON.as_bytes());
    let folder = database(&[(PAYLOADS, &[(&7_u64.to_le_bytes(), &payload), (b"seven", &payload)])]);
    let mut reader = Reader::open(folder.path()).unwrap();
    let mut out = Vec::new();
    assert_eq!(reader.next_record(&mut out).unwrap().unwrap().key, 7_u64.to_le());
    let error = reader.next_record(&mut out).unwrap_err();
    assert!(matches!(error, DatabaseError::Key { after: 7, len: 5 }), "{error}");
}

#[test]
fn what_is_no_database_or_the_beginning_of_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!is_database(folder.path()));
    assert!(Reader::open(folder.path()).unwrap_err().is_local());
    let file = folder.path().join("data.mdb");
    fs::write(&file, [b'{'; 10_000]).unwrap();
    assert!(is_database(folder.path()));
    assert!(matches!(Reader::open(folder.path()), Err(DatabaseError::Lmdb(_))));
    let payloads: Vec<_> = json_of_events().iter().map(|json| plain(json)).collect();
    let whole = strfry(&payloads, &[]);
    let bytes = fs::read(whole.path().join("data.mdb")).unwrap();
    for len in [bytes.len() - 1, bytes.len() - 4096, 3 * 4096] {
        fs::write(&file, &bytes[..len]).unwrap();
        let error = Reader::open(folder.path()).unwrap_err();
        let end = bytes.len() as u64;
        assert!(
            matches!(error, DatabaseError::Truncated { len: found, end: last } if found == len as u64 && last <= end),
            "{error}"
        );
    }
}

fn write(groups: &[&[Event<'_>]]) -> (TempDir, Vec<Outcome>, Counts) {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StrfryWriter::create(folder.path()).unwrap();
    let mut outcomes = Vec::new();
    for group in groups {
        outcomes.extend(writer.write(group).unwrap().into_iter().map(Result::unwrap));
    }
    assert_indexes_are_those_of_the_events(&writer);
    writer.resolve().unwrap();
    assert_indexes_are_those_of_the_events(&writer);
    (folder, outcomes, writer.finish().unwrap())
}

/// Every index has the entries of the events that are stored, and no others.
fn assert_indexes_are_those_of_the_events(writer: &StrfryWriter) {
    let (env, tables) = writer.parts();
    let txn = env.read_txn().unwrap();
    let mut expected = Vec::new();
    for summary in tables.summaries.iter(&txn).unwrap() {
        let (number, summary) = summary.unwrap();
        let number = tables::number_of(number).unwrap();
        let entries = tables::entries(&PackedEvent::new(summary).unwrap());
        expected.extend(entries.into_iter().map(|(index, key)| (index, key, number)));
        assert!(tables.payloads.get(&txn, &number.to_ne_bytes()).unwrap().is_some());
    }
    let mut found = Vec::new();
    for index in INDEXES {
        let entries = tables.index(index).entries(&txn).unwrap();
        found.extend(entries.into_iter().map(|(key, number)| (index, key, number)));
    }
    let sorted = |mut entries: Vec<(Index, Vec<u8>, u64)>| {
        entries.sort_by_key(|(index, key, number)| (*index as usize, key.clone(), *number));
        entries.dedup();
        entries
    };
    assert_eq!(sorted(found), sorted(expected));
    let stored = tables.summaries.len(&txn).unwrap();
    assert_eq!(tables.payloads.len(&txn).unwrap(), stored);
}

#[test]
fn written_events_are_read_back() {
    let (owned, arena) = (events(), Bump::new());
    let events: Vec<_> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    let (folder, outcomes, counts) = write(&[&events[..60], &events[40..]]);
    assert_eq!(counts, Counts { stored: 100, duplicates: 20, ..Counts::default() });
    assert!(outcomes[..60].iter().all(|outcome| *outcome == Outcome::Stored));
    assert!(outcomes[60..80].iter().all(|outcome| *outcome == Outcome::Duplicate));
    let expected: Read = (1..).zip(json_of_events()).map(|(key, json)| (key, Ok(json))).collect();
    assert_eq!(read(folder.path()).unwrap(), expected);
}

#[test]
fn keys_are_in_the_order_of_their_integers() {
    let event = |number: u8, created_at| OwnedEvent {
        id: [number; 32],
        created_at,
        kind: 256 - u16::from(number % 2),
        ..example()
    };
    let (owned, arena) = ([event(1, 256), event(2, 255), event(3, 1)], Bump::new());
    let events = owned.each_ref().map(|event| event.borrow_in(&arena));
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StrfryWriter::create(folder.path()).unwrap();
    writer.write(&events).unwrap();
    let (env, tables) = writer.parts();
    let txn = env.read_txn().unwrap();
    let order = |index| -> Vec<u64> {
        tables.index(index).entries(&txn).unwrap().into_iter().map(|entry| entry.1).collect()
    };
    // By time; by kind, then time; by author, then time.
    assert_eq!(order(Index::CreatedAt), [3, 2, 1]);
    assert_eq!(order(Index::Kind), [3, 1, 2]);
    assert_eq!(order(Index::Pubkey), [3, 2, 1]);
    assert_eq!(order(Index::PubkeyKind), [3, 1, 2]);
}

/// An event of an author, with tags.
fn tagged(id: u8, kind: u16, created_at: i64, tags: &[[String; 2]]) -> OwnedEvent {
    let tags = tags.iter().map(|tag| tag.to_vec()).collect();
    OwnedEvent { id: [id; 32], kind, created_at, tags, ..example() }
}

fn tag(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.to_owned(), value.into()]
}

/// The events left of two, in both orders.
fn remaining(one: &OwnedEvent, other: &OwnedEvent) -> [Vec<u8>; 2] {
    [[one, other], [other, one]].map(|events| {
        let remaining = stored(&events.map(OwnedEvent::clone)).into_iter().map(|event| event.id[0]);
        remaining.collect()
    })
}

/// The events left after storing them in this order.
fn stored(events: &[OwnedEvent]) -> Vec<OwnedEvent> {
    let arena = Bump::new();
    let borrowed: Vec<_> = events.iter().map(|event| event.borrow_in(&arena)).collect();
    let groups: Vec<&[Event<'_>]> = borrowed.chunks(3).collect();
    let (folder, _, counts) = write(&groups);
    let found = read(folder.path()).unwrap();
    let Counts { stored, duplicates, replaced, deleted, ephemeral } = counts;
    assert_eq!(stored, found.len() as u64);
    assert_eq!(stored + duplicates + replaced + deleted + ephemeral, events.len() as u64);
    let decoded = found.into_iter().map(|(_, json)| {
        let arena = Bump::new();
        Format::Json.decode(&json.unwrap(), &arena, &Limits::default()).unwrap().to_owned()
    });
    let mut decoded: Vec<OwnedEvent> = decoded.collect();
    decoded.sort_unstable_by_key(|event| event.id);
    decoded
}

#[test]
fn the_newest_event_of_an_address_is_kept_in_any_order() {
    let d = |value: &str| [tag("d", value)];
    for kind in [0, 3, 10_002, 30_023] {
        let older = tagged(1, kind, 10, &d("x"));
        let newer = tagged(2, kind, 11, &d("x"));
        assert_eq!(remaining(&older, &newer), [[2], [2]], "{kind}");
        let at_once = tagged(2, kind, 10, &d("x"));
        assert_eq!(remaining(&older, &at_once), [[1], [1]], "the lower id: {kind}");
        let elsewhere = tagged(2, kind, 11, &d("y"));
        let expected: &[u8] = if kind == 30_023 { &[1, 2] } else { &[2] };
        assert_eq!(remaining(&older, &elsewhere), [expected, expected], "{kind}");
        let of_another = OwnedEvent { pubkey: [9; 32], ..newer };
        assert_eq!(remaining(&older, &of_another), [[1, 2], [1, 2]], "{kind}");
    }
    let notes = [tagged(1, 1, 10, &d("x")), tagged(2, 1, 11, &d("x"))];
    assert_eq!(remaining(&notes[0], &notes[1]), [[1, 2], [1, 2]]);
}

#[test]
fn what_its_author_deleted_is_removed_and_refused_in_any_order() {
    let note = tagged(1, 1, 10, &[]);
    let deletion = tagged(2, 5, 9, &[tag("e", "01".repeat(32))]);
    assert_eq!(remaining(&note, &deletion), [[2], [2]]);
    let of_another = OwnedEvent { pubkey: [9; 32], ..deletion };
    assert_eq!(remaining(&note, &of_another), [[1, 2], [1, 2]]);
    let wrap = OwnedEvent {
        pubkey: [9; 32],
        ..tagged(1, 1_059, 10, &[tag("p", kernels::hex::encode(&example().pubkey))])
    };
    let by_recipient = tagged(2, 5, 11, &[tag("e", "01".repeat(32))]);
    assert_eq!(remaining(&wrap, &by_recipient), [[2], [2]]);
    let author = kernels::hex::encode(&example().pubkey);
    let address = |kind: u16, d: &str| [tag("a", format!("{kind}:{author}:{d}"))];
    let article = tagged(1, 30_023, 10, &[tag("d", "a:b")]);
    for (time, kind, d, expected) in [
        (10, 30_023, "a:b", &[2][..]),
        (9, 30_023, "a:b", &[1, 2]),
        (11, 30_023, "a", &[1, 2]),
        (11, 30_024, "a:b", &[1, 2]),
    ] {
        let deletion = tagged(2, 5, time, &address(kind, d));
        assert_eq!(remaining(&article, &deletion), [expected, expected], "{time} {kind} {d}");
    }
    let not_of_them = tagged(2, 5, 11, &[tag("a", format!("30023:{}:a:b", "09".repeat(32)))]);
    assert_eq!(remaining(&article, &not_of_them), [[1, 2], [1, 2]]);
}

#[test]
fn what_a_database_cannot_hold_is_refused_and_the_others_are_stored() {
    let [held, unheld] = [tagged(1, 1, 10, &[]), tagged(2, 1, 10, &[tag("e", "short")])];
    let arena = Bump::new();
    let folder = tempfile::tempdir().unwrap();
    let mut writer = StrfryWriter::create(folder.path()).unwrap();
    let outcomes = writer.write(&[unheld.borrow_in(&arena), held.borrow_in(&arena)]).unwrap();
    let fault = nostr::EncodeError::Unsupported("a tag `e` or `p` whose value is not an id");
    assert_eq!(outcomes, [Err(fault), Ok(Outcome::Stored)]);
    assert_indexes_are_those_of_the_events(&writer);
    assert_eq!(writer.finish().unwrap().stored, 1);
}

#[test]
fn a_folder_with_something_in_it_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    StrfryWriter::create(folder.path()).unwrap().finish().unwrap();
    let error = StrfryWriter::create(folder.path()).err().unwrap();
    assert!(matches!(error, DatabaseError::Exists));
    let missing = folder.path().join("none");
    assert!(StrfryWriter::create(&missing).err().unwrap().is_local());
}

#[test]
fn the_record_of_a_new_database_is_of_version_3_and_this_byte_order() {
    let folder = tempfile::tempdir().unwrap();
    let writer = StrfryWriter::create(folder.path()).unwrap();
    let (env, tables) = writer.parts();
    let txn = env.read_txn().unwrap();
    let record = tables.meta.get(&txn, &1_u64.to_ne_bytes()).unwrap().unwrap();
    // The root, 4 bytes; then a vtable of 10 bytes and a table of its distance and three integers.
    let root = u32::from_le_bytes(*record.first_chunk().unwrap()) as usize;
    let distance = i32::from_le_bytes(*record[root..].first_chunk().unwrap());
    let vtable = root.checked_add_signed(-distance as isize).unwrap();
    let field = |slot: usize| {
        let offset = u16::from_le_bytes(*record[vtable + slot..].first_chunk().unwrap());
        u64::from_le_bytes(*record[root + usize::from(offset)..].first_chunk().unwrap())
    };
    assert_eq!([4, 6, 8].map(field), [3, 1, 1]);
}

#[test]
fn a_denied_file_and_another_version_are_named() {
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let error = DatabaseError::from(heed::Error::Io(denied));
    assert!(error.is_local() && error.to_string().contains("lock.mdb"), "{error}");
    let error = DatabaseError::from(heed::Error::Mdb(heed::MdbError::VersionMismatch));
    assert!(!error.is_local() && error.to_string().contains("another version of LMDB"), "{error}");
}
