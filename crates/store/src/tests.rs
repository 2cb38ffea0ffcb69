//! Checkpointed state survives closing, a kill at any moment, and a full disk.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;
use proptest::prelude::*;
use tempfile::TempDir;
use verify::sync::{AccountState, ChainState, Head, SyncState};

use super::*;

const STREAM: &str = "wss://relay.example.com/xrpc/com.atproto.sync.subscribeRepos";
const NOTHING: [(&str, AccountState); 0] = [];

fn account(number: u64) -> AccountState {
    let cid = |salt: u8| Cid::of(Codec::DagCbor, &[&number.to_be_bytes()[..], &[salt]].concat());
    let head = Head { rev: Tid::from_u64(number), data: cid(0), commit: cid(1) };
    AccountState { head: Some(head), ..AccountState::UNKNOWN }
}

fn did(number: u64) -> String {
    format!("did:web:{number}.test")
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("folder").join("state.sqlite")
}

fn open(path: &Path) -> Store {
    Store::open(path, Options::default()).unwrap()
}

fn load(accounts: &mut StoreState, did: &str) -> AccountState {
    let mut loaded = [AccountState::UNKNOWN];
    accounts.load_many(&[did], &mut loaded).unwrap();
    loaded[0]
}

fn fault<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreFault {
    result.unwrap_err().fault
}

#[test]
fn checkpointed_states_survive_a_restart_and_others_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    assert_eq!(store.cursor(STREAM), Ok(None));
    let mut accounts = store.chain_state().unwrap();
    let gone = AccountState { is_active: false, ..account(3) };
    accounts.store_many(&[("did:web:a.test", account(1)), ("did:web:b.test", gone)]).unwrap();
    accounts.store_many(&[("did:web:c.test", account(2))]).unwrap();
    let handled = [("did:web:a.test", account(1)), ("did:web:b.test", gone)];
    store.checkpoint(&[(STREAM, 9), ("wss://b.test", u64::MAX)], &handled).unwrap();
    assert_eq!(store.in_memory(), (3, 1));
    drop((store, accounts));

    let store = open(&file(&dir));
    let mut accounts = store.chain_state().unwrap();
    let mut loaded = [account(77); 4];
    let dids = ["did:web:b.test", "did:web:c.test", "did:web:a.test", "did:web:stranger.test"];
    accounts.load_many(&dids, &mut loaded).unwrap();
    assert_eq!(loaded, [gone, AccountState::UNKNOWN, account(1), AccountState::UNKNOWN]);
    let cursors = [(STREAM.to_owned(), 9), ("wss://b.test".to_owned(), u64::MAX)];
    assert_eq!(store.cursors().unwrap().len(), 2);
    assert!(cursors.iter().all(|cursor| store.cursors().unwrap().contains(cursor)));
}

#[test]
fn a_cursor_can_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    store.checkpoint(&[(STREAM, 9)], &NOTHING).unwrap();
    store.forget_cursor(STREAM).unwrap();
    assert_eq!(store.cursor(STREAM), Ok(None));
}

#[test]
fn keys_are_stored_replaced_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let key = |name: &str, at| StoredKey {
        did_key: format!("did:key:{name}"),
        fetched_micros: at,
        host: Some(format!("https://{name}.test/")),
    };
    let keep = |did: &str, key| store.save_keys(vec![(did.into(), key)]).unwrap();
    keep("did:web:a.test", Some(key("zA", 1)));
    keep("did:web:a.test", Some(key("zB", 2)));
    keep("did:web:b.test", Some(key("zC", 3)));
    keep("did:web:b.test", None);
    assert_eq!(store.key("did:web:a.test"), Ok(Some(key("zB", 2))));
    assert_eq!(store.key("did:web:b.test"), Ok(None));
}

/// A file that an earlier version has created, with a cursor, an account and a key.
fn create_version(path: &Path, version: usize) -> rusqlite::Connection {
    fs::create_dir(path.parent().unwrap()).unwrap();
    let old = rusqlite::Connection::open(path).unwrap();
    old.pragma_update(None, "journal_mode", "WAL").unwrap();
    old.execute_batch(EARLIER_VERSIONS[version - 1]).unwrap();
    old.execute("INSERT INTO cursor VALUES (?1, 9)", [STREAM]).unwrap();
    let Head { rev, data, commit } = account(1).head.unwrap();
    let insert = "INSERT INTO account (did, rev, data, \"commit\", sync, active) \
                  VALUES (?1, ?2, ?3, ?4, 0, 1)";
    let row = (did(0), rev.to_string(), data.as_bytes(), commit.as_bytes());
    old.execute(insert, row).unwrap();
    let key = "INSERT INTO key (did, key, fetched) VALUES ('did:web:a.test', 'did:key:zA', 7)";
    old.execute(key, []).unwrap();
    old
}

#[test]
fn a_file_of_an_earlier_version_is_migrated_with_its_cursors_states_and_keys() {
    for version in 1..=EARLIER_VERSIONS.len() {
        let dir = tempfile::tempdir().unwrap();
        create_version(&file(&dir), version).close().unwrap();
        let fault = crate::StateReader::open(&file(&dir)).unwrap_err().fault;
        let StoreFault::EarlierVersion { found, .. } = fault else { panic!("{fault}") };
        assert_eq!(found, version as i64, "a reader changes nothing");
        for _ in 0..2 {
            let store = open(&file(&dir));
            let mut accounts = store.chain_state().unwrap();
            assert_eq!(store.cursors(), Ok(vec![(STREAM.to_owned(), 9)]), "version {version}");
            assert_eq!(load(&mut accounts, &did(0)), account(1));
            let (did_key, fetched_micros) = ("did:key:zA".to_owned(), 7);
            let key = StoredKey { did_key, fetched_micros, host: None };
            assert_eq!(store.key("did:web:a.test"), Ok(Some(key)));
            assert_eq!(store.printed(STREAM), Ok((version > 1).then_some(12)));
        }
        let store = open(&file(&dir));
        store.checkpoint(&[(STREAM, 10)], &[(did(0), account(2))]).unwrap();
        assert_eq!(store.cursor(STREAM), Ok(Some(10)));
    }
}

#[test]
fn an_interrupted_resync_leaves_the_account_desynchronized() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let at = |sync| AccountState { sync, ..account(1) };
    let states = [
        ("did:web:a.test", at(SyncState::InProgress)),
        ("did:web:b.test", at(SyncState::Desynchronized)),
        ("did:web:c.test", at(SyncState::Synchronized)),
    ];
    store.checkpoint(&[(STREAM, 1)], &states).unwrap();
    drop(store);
    let store = open(&file(&dir));
    assert_eq!(store.desynchronized(10).unwrap(), ["did:web:a.test", "did:web:b.test"]);
    assert_eq!(store.desynchronized(1).unwrap().len(), 1);
    let mut accounts = store.chain_state().unwrap();
    assert_eq!(load(&mut accounts, "did:web:a.test"), at(SyncState::Desynchronized));
}

#[test]
fn accounts_are_listed_in_order_whether_they_are_in_the_file_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let mut accounts = store.chain_state().unwrap();
    let dids: Vec<String> = (0..10).map(did).collect();
    let changed: Vec<_> = dids.iter().map(|did| (did.as_str(), account(1))).collect();
    accounts.store_many(&changed).unwrap();
    let stored: Vec<_> = dids.iter().step_by(2).map(|did| (did.clone(), account(1))).collect();
    store.checkpoint(&[(STREAM, 1)], &stored).unwrap();
    accounts.store_many(&[("did:web:nothing.test", AccountState::UNKNOWN)]).unwrap();
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = store.accounts_after(&after, 3).unwrap();
        let Some(last) = page.last() else { break };
        after.clone_from(last);
        assert!(page.len() <= 3);
        all.extend(page);
    }
    let mut expected = dids;
    expected.sort_unstable();
    assert_eq!(all, expected);
}

#[test]
fn a_file_in_use_cannot_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let accounts = store.chain_state().unwrap();
    let again = || Store::open(&file(&dir), Options::default());
    assert_eq!(fault(again()), StoreFault::InUse);
    drop(store);
    assert_eq!(fault(again()), StoreFault::InUse, "a judge still reads it");
    drop(accounts);
    again().unwrap();
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was_and_the_accounts_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: Some(64 << 10), ..Options::default() };
    let store = Store::open(&file(&dir), options).unwrap();
    let mut accounts = store.chain_state().unwrap();
    store.checkpoint(&[(STREAM, 1)], &[(did(0), account(1))]).unwrap();
    let many: Vec<_> = (0..5_000).map(|number| (did(number), account(2))).collect();
    let changed: Vec<_> = many.iter().map(|(did, account)| (did.as_str(), *account)).collect();
    accounts.store_many(&changed).unwrap();
    let error = store.checkpoint(&[(STREAM, 2)], &many).unwrap_err();
    assert_eq!((error.fault, error.path), (StoreFault::Full, file(&dir)));
    assert_eq!((store.cursor(STREAM), store.in_memory().1), (Ok(Some(1)), 5_000));
    // A row that fits is still written.
    store.checkpoint(&[(STREAM, 3)], &[(did(0), account(2))]).unwrap();
    drop((store, accounts));
    let store = open(&file(&dir));
    let mut accounts = store.chain_state().unwrap();
    assert_eq!(store.cursor(STREAM), Ok(Some(3)));
    assert_eq!(
        (load(&mut accounts, &did(0)), load(&mut accounts, &did(1))).1,
        AccountState::UNKNOWN
    );
}

#[test]
fn a_damaged_row_is_an_error_that_names_its_account() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let other = rusqlite::Connection::open(file(&dir)).unwrap();
    let row = "INSERT INTO account VALUES ('did:web:a.test', 'x', x'00', x'00', 0, 1, 0)";
    other.execute(row, []).unwrap();
    other.close().unwrap();
    let mut accounts = store.chain_state().unwrap();
    let in_use = fault(accounts.load_many(&["did:web:a.test"], &mut [AccountState::UNKNOWN]));
    drop((store, accounts));
    let at_the_start = fault(Store::open(&file(&dir), Options::default()));
    let damaged = StoreFault::Damaged("rev of did:web:a.test".to_owned());
    assert_eq!([in_use, at_the_start], [damaged.clone(), damaged]);
}

#[test]
fn a_damaged_page_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let many: Vec<_> = (0..2_000).map(|number| (did(number), account(number))).collect();
    store.checkpoint(&[(STREAM, 1)], &many).unwrap();
    drop(store);
    let mut bytes = fs::read(file(&dir)).unwrap();
    bytes[4096..].fill(0x5a);
    fs::write(file(&dir), bytes).unwrap();
    let fault = match Store::open(&file(&dir), Options::default()) {
        Err(error) => error.fault,
        Ok(store) => fault(store.cursor(STREAM)),
    };
    assert!(matches!(fault, StoreFault::Damaged(_)), "{fault}");
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
struct Contents {
    cursors: Vec<(String, u64)>,
    printed: Vec<Option<u64>>,
    accounts: Vec<AccountState>,
    keys: Vec<Option<StoredKey>>,
}

/// Reads everything that [`used_file`] has stored.
fn read_contents(path: &Path) -> Result<Contents, StoreError> {
    let store = Store::open(path, Options::default())?;
    let mut state = store.chain_state()?;
    let mut accounts = vec![AccountState::UNKNOWN; ACCOUNTS as usize];
    let dids: Vec<String> = (0..ACCOUNTS).map(did).collect();
    let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
    state.load_many(&dids, &mut accounts)?;
    let printed = STREAMS.iter().map(|stream| store.printed(stream)).collect::<Result<_, _>>()?;
    let keys = dids.iter().map(|did| store.key(did)).collect::<Result<_, _>>()?;
    Ok(Contents { cursors: store.cursors()?, printed, accounts, keys })
}

/// A file as some runs leave it, in order.
fn used_file() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    for round in 1..4 {
        let handled: Vec<_> = (0..ACCOUNTS).map(|number| (did(number), used(number))).collect();
        let cursors: Vec<_> = STREAMS.iter().map(|stream| (stream, 1_000 * round)).collect();
        store.checkpoint(&cursors, &handled).unwrap();
        STREAMS.iter().for_each(|stream| store.set_printed(stream, 1_000 * round + 7).unwrap());
        let host = Some("https://host.test/".to_owned());
        let key = StoredKey { did_key: "did:key:zA".to_owned(), fetched_micros: 7 + round, host };
        store
            .save_keys(
                (0..ACCOUNTS).map(|number| (did(number).into(), Some(key.clone()))).collect(),
            )
            .unwrap();
    }
    drop(store);
    fs::read(file(&dir)).unwrap()
}

/// One of some accounts in all states.
fn used(number: u64) -> AccountState {
    match number % 5 {
        0 => AccountState { is_active: false, ..account(number) },
        1 => AccountState { sync: SyncState::Desynchronized, ..account(number) },
        2 => DESYNCHRONIZED,
        _ => account(number),
    }
}

/// Opens a copy of the file with these bytes. No panic, and no contents that the original lacks: at most,
/// a key is missing.
fn check_damaged(bytes: &[u8], original: &Contents) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.sqlite");
    fs::write(&path, bytes).unwrap();
    let Ok(mut found) = read_contents(&path) else { return true };
    for (key, original) in found.keys.iter_mut().zip(&original.keys) {
        if key.is_none() {
            key.clone_from(original);
        }
    }
    // Without the contents, which are long.
    assert!(found == *original, "neither an error nor the contents");
    false
}

fn contents_of(bytes: &[u8]) -> Contents {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.sqlite");
    fs::write(&path, bytes).unwrap();
    read_contents(&path).unwrap()
}

#[test]
fn every_flipped_bit_of_a_cursor_is_an_error() {
    let bytes = used_file();
    let original = contents_of(&bytes);
    let text = STREAMS[1].as_bytes();
    let places: Vec<usize> =
        (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert_eq!(places.len(), 2, "a cursor and a printed bound");
    for at in places {
        // The row: its header, the name, the number.
        for byte in at - 5..at + text.len() + 2 {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1 << (byte % 8);
            assert!(check_damaged(&damaged, &original), "byte {byte}");
        }
    }
}

#[test]
fn every_damaged_length_or_type_of_a_row_is_an_error_or_changes_nothing() {
    let bytes = used_file();
    let original = contents_of(&bytes);
    for number in [90, 91, 92, 93] {
        let did = did(number);
        let text = did.as_bytes();
        for at in (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)) {
            // The row begins with its length, that of its header, and the type of every column.
            for byte in at - 10..at {
                for value in (0..16).chain([0x7f, 0x80, 0x81, 0xff]) {
                    let mut damaged = bytes.clone();
                    damaged[byte] = value;
                    check_damaged(&damaged, &original);
                }
            }
        }
    }
}

#[test]
fn a_damaged_key_is_none_and_can_be_stored_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let key = StoredKey { did_key: "did:key:zA".into(), fetched_micros: 1, host: None };
    store.save_keys(vec![("did:web:a.test".into(), Some(key.clone()))]).unwrap();
    let other = rusqlite::Connection::open(file(&dir)).unwrap();
    other.execute("UPDATE key SET host = 'https://other.test/'", []).unwrap();
    other.close().unwrap();
    assert_eq!(store.key("did:web:a.test"), Ok(None));
    store.save_keys(vec![("did:web:a.test".into(), Some(key.clone()))]).unwrap();
    assert_eq!(store.key("did:web:a.test"), Ok(Some(key)));
}

#[test]
fn a_cursor_that_is_changed_or_lost_during_a_run_is_never_sealed() {
    for change in
        ["UPDATE cursor SET seq = 99", "DELETE FROM cursor", "DELETE FROM stream_checksum"]
    {
        let dir = tempfile::tempdir().unwrap();
        let store = open(&file(&dir));
        store.checkpoint(&[(STREAM, 1)], &NOTHING).unwrap();
        let other = rusqlite::Connection::open(file(&dir)).unwrap();
        other.execute(change, []).unwrap();
        other.close().unwrap();
        let is_damaged = |fault| matches!(fault, StoreFault::Damaged(_));
        assert!(is_damaged(fault(store.checkpoint(&[(STREAM, 2)], &NOTHING))), "{change}");
        assert!(is_damaged(fault(store.cursor(STREAM))), "{change}");
        drop(store);
        assert!(is_damaged(fault(Store::open(&file(&dir), Options::default()))), "{change}");
    }
}

const ACCOUNTS: u64 = 120;
const STREAMS: [&str; 3] = [STREAM, "wss://a.test/", "wss://b.test/"];

#[test]
fn a_lock_of_another_program_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let other = rusqlite::Connection::open(file(&dir)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(fault(store.checkpoint(&[(STREAM, 1)], &NOTHING)), StoreFault::Locked);
    other.execute_batch("ROLLBACK").unwrap();
    store.checkpoint(&[(STREAM, 2)], &NOTHING).unwrap();
    assert_eq!(store.cursor(STREAM), Ok(Some(2)));
}

/// Opens a file, lets `harm` change its folder, and returns the error of the next checkpoint.
fn error_after(harm: impl FnOnce(&Path)) -> StoreError {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    store.checkpoint(&[(STREAM, 1)], &[(did(0), account(1))]).unwrap();
    harm(&file(&dir));
    let error = store.checkpoint(&[(STREAM, 2)], &NOTHING).unwrap_err();
    assert_eq!(store.checkpoint(&[(STREAM, 3)], &NOTHING), Err(error.clone()), "for good");
    error
}

#[test]
fn a_file_that_is_deleted_or_replaced_in_use_is_an_error_of_the_next_checkpoint() {
    let deleted = error_after(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap());
    let replaced = error_after(|path| {
        fs::copy(path, path.with_extension("copy")).unwrap();
        fs::rename(path.with_extension("copy"), path).unwrap();
    });
    for error in [deleted, replaced] {
        assert_eq!(error.fault, StoreFault::Replaced);
        assert_eq!(error.path.file_name().unwrap(), "state.sqlite");
    }
}

#[test]
fn a_deleted_lock_file_is_an_error_of_the_next_checkpoint_even_with_nothing_to_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    fs::remove_file(file(&dir).with_extension("sqlite.lock")).unwrap();
    let second = open(&file(&dir));
    let nothing: [(&str, u64); 0] = [];
    let error = store.checkpoint(&nothing, &NOTHING).unwrap_err();
    assert_eq!(error.fault, StoreFault::Replaced);
    assert_eq!(error.path.extension().unwrap(), "lock");
    drop(store);
    second.checkpoint(&[(STREAM, 2)], &NOTHING).unwrap();
}

#[test]
fn an_emptied_file_is_an_error_in_use_and_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    store.checkpoint(&[(STREAM, 1)], &[(did(0), account(1))]).unwrap();
    fs::write(file(&dir), "").unwrap();
    assert_eq!(fault(store.checkpoint(&[(STREAM, 2)], &NOTHING)), StoreFault::Emptied);
    drop(store);
    assert_eq!(fs::metadata(file(&dir)).unwrap().len(), 0, "not filled from the log");
    assert_eq!(fault(Store::open(&file(&dir), Options::default())), StoreFault::Emptied);
}

#[test]
fn a_file_that_was_half_created_is_created_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(file(&dir).parent().unwrap()).unwrap();
    fs::write(file(&dir).with_extension("sqlite.new"), "half").unwrap();
    fs::write(file(&dir).with_extension("sqlite-wal"), "the log of a deleted file").unwrap();
    assert_eq!(open(&file(&dir)).cursors(), Ok(vec![]));
}

const DESYNCHRONIZED: AccountState =
    AccountState { sync: SyncState::Desynchronized, ..AccountState::UNKNOWN };

#[test]
fn an_account_without_a_commit_is_stored_only_while_it_is_desynchronized() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let suspended = AccountState { is_active: false, ..AccountState::UNKNOWN };
    let mut store_one = |account| {
        store.checkpoint(&[(STREAM, 1)], &[(did(0), account)]).unwrap();
        store.without_head().unwrap().0
    };
    let counts = [suspended, DESYNCHRONIZED, AccountState::UNKNOWN].map(&mut store_one);
    assert_eq!(counts, [0, 1, 0]);
    assert_eq!([DESYNCHRONIZED, account(1)].map(store_one), [1, 0]);
}

#[test]
fn invented_accounts_take_bounded_space_in_the_file_and_none_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    let mut accounts = store.chain_state().unwrap();
    store.checkpoint(&[(STREAM, 1)], &[("did:web:known.test", account(1))]).unwrap();
    (0..50_000)
        .for_each(|number| assert_eq!(load(&mut accounts, &did(number)), AccountState::UNKNOWN));
    assert_eq!(store.in_memory(), (0, 0));
    for numbers in [0..20_000, 20_000..40_000, 40_000..60_000] {
        let invented: Vec<_> = numbers.map(|number| (did(number), DESYNCHRONIZED)).collect();
        store.checkpoint(&[(STREAM, 2)], &invented).unwrap();
        let (count, limit) = store.without_head().unwrap();
        assert!(count > 0 && count <= limit, "{count} of at most {limit}");
    }
    assert_eq!(load(&mut accounts, "did:web:known.test"), account(1));
    drop((store, accounts));
    let bytes = fs::metadata(file(&dir)).unwrap().len();
    assert!(bytes < 16 << 20, "{bytes} bytes");
}

/// In a file of version 1 every invented account has a row.
#[test]
fn a_file_of_version_1_loses_its_accounts_without_a_commit() {
    let dir = tempfile::tempdir().unwrap();
    let old = create_version(&file(&dir), 1);
    let invented = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 81000) \
                    INSERT INTO account SELECT 'did:plc:invented' || i, NULL, NULL, NULL, 0, 0 FROM n";
    old.execute(invented, []).unwrap();
    old.close().unwrap();
    let before = fs::metadata(file(&dir)).unwrap().len();

    let store = open(&file(&dir));
    let mut accounts = store.chain_state().unwrap();
    assert_eq!((store.cursor(STREAM), load(&mut accounts, &did(0))), (Ok(Some(9)), account(1)));
    assert_eq!(load(&mut accounts, "did:plc:invented7"), AccountState::UNKNOWN);
    drop((store, accounts));
    let after = fs::metadata(file(&dir)).unwrap().len();
    assert!(before > 2 << 20 && after < 64 << 10, "{before} bytes before, {after} after");
    open(&file(&dir));
}

/// Killed at any moment, even one in which the log was written by half, the file holds one of the
/// checkpoints, whole. The folder is copied as a kill would leave it; then the copy's log is cut at
/// many lengths, and damaged at many places.
#[test]
fn a_kill_at_any_moment_leaves_a_whole_checkpoint() {
    const CHECKPOINTS: u64 = 6;
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    for seq in 1..=CHECKPOINTS {
        let handled: Vec<_> = (0..40).map(|number| (did(number), account(seq))).collect();
        store.checkpoint(&[(STREAM, seq)], &handled).unwrap();
    }
    let main = fs::read(file(&dir)).unwrap();
    let log = fs::read(file(&dir).with_extension("sqlite-wal")).unwrap();
    let cuts = (0..log.len()).step_by(1711).chain([log.len()]);
    let seen: Vec<u64> = cuts.map(|cut| checkpoint_with_log(&main, &log[..cut])).collect();
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!((seen[0], *seen.last().unwrap()), (0, CHECKPOINTS));
    // A flipped bit of the log undoes the checkpoints from there on.
    let flips = (0..log.len()).step_by(1711).map(|at| {
        let mut damaged = log.clone();
        damaged[at] ^= 4;
        checkpoint_with_log(&main, &damaged)
    });
    let seen: std::collections::BTreeSet<u64> = flips.collect();
    assert!(seen.len() > 2, "{seen:?}");
}

/// The checkpoint in a copy of the file with this log.
fn checkpoint_with_log(main: &[u8], log: &[u8]) -> u64 {
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("state.sqlite");
    fs::write(&path, main).unwrap();
    fs::write(path.with_extension("sqlite-wal"), log).unwrap();
    checkpoint_of(&open(&path))
}

/// The checkpoint in the file: the cursor's. Every account must have the same one.
fn checkpoint_of(store: &Store) -> u64 {
    let seq = store.cursor(STREAM).unwrap().unwrap_or(0);
    let mut accounts = store.chain_state().unwrap();
    let expected = if seq == 0 { AccountState::UNKNOWN } else { account(seq) };
    assert!((0..40).all(|number| load(&mut accounts, &did(number)) == expected), "{seq}");
    seq
}

#[test]
fn concurrent_writers_all_get_their_results() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&file(&dir));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for seq in 1..=20 {
                    store
                        .checkpoint(&[(did(thread), seq)], &[(did(thread), account(seq))])
                        .unwrap();
                    assert_eq!(store.cursor(&did(thread)), Ok(Some(seq)));
                }
            });
        }
    });
    assert_eq!(store.cursors().unwrap().len(), 8);
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Store {
        judge: usize,
        did: u64,
    },
    /// Checkpoints up to this many of the accounts stored since the last one.
    Checkpoint(usize),
    Load {
        judge: usize,
        did: u64,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2usize, 0..200u64).prop_map(|(judge, did)| Step::Store { judge, did }),
        2 => (0..20usize).prop_map(Step::Checkpoint),
        8 => (0..2usize, 0..200u64).prop_map(|(judge, did)| Step::Load { judge, did }),
        1 => Just(Step::Reopen),
    ]
}

/// Damage of a disk to a file: places and lengths are fractions of the file in 1/65,536.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit(u16, u8),
    Byte(u16, u8),
    Zeroes(u16, u8),
    Cut(u16),
    /// A page takes the place of another one.
    Page(u16, u16),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        3 => (any::<u16>(), 0..8u8).prop_map(|(at, bit)| Damage::Bit(at, bit)),
        3 => (any::<u16>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        1 => (any::<u16>(), 1..200u8).prop_map(|(at, len)| Damage::Zeroes(at, len)),
        1 => any::<u16>().prop_map(Damage::Cut),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Damage::Page(from, to)),
    ]
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        let place = |at: u16| usize::from(at) * len / 65_536;
        match self {
            Self::Bit(at, bit) => bytes[place(at)] ^= 1 << bit,
            Self::Byte(at, byte) => bytes[place(at)] = byte,
            Self::Zeroes(at, count) => {
                let at = place(at);
                bytes[at..len.min(at + usize::from(count))].fill(0);
            }
            Self::Cut(at) => bytes.truncate(place(at)),
            Self::Page(from, to) => {
                let [from, to] = [from, to].map(|at| place(at) / 4096 * 4096);
                bytes.copy_within(from..from + 4096, to);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// However a file is damaged, it is an error, or the cursors and states are as stored.
    #[test]
    fn a_damaged_file_is_an_error_or_unchanged(damage in damage()) {
        static USED: std::sync::LazyLock<(Vec<u8>, Contents)> = std::sync::LazyLock::new(|| {
            let bytes = used_file();
            (bytes.clone(), contents_of(&bytes))
        });
        let (bytes, original) = &*USED;
        let mut damaged = bytes.clone();
        damage.apply(&mut damaged);
        check_damaged(&damaged, original);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However states are stored, checkpointed, dropped from memory and read again, the results equal a plain
    /// map, and after a restart a map of the checkpointed states.
    #[test]
    fn accounts_are_a_map(steps in prop::collection::vec(step(), 1..200)) {
        let dir = tempfile::tempdir().unwrap();
        // Nearly no memory, so that nearly everything comes from the file.
        let options = Options { cached_accounts: 1, ..Options::default() };
        let open = || {
            let store = Store::open(&file(&dir), options).unwrap();
            let judges = [store.chain_state().unwrap(), store.chain_state().unwrap()];
            (store, judges)
        };
        let (mut store, mut judges) = open();
        let (mut map, mut saved) = (HashMap::new(), HashMap::new());
        let mut pending: Vec<(String, AccountState)> = Vec::new();
        for (rev, step) in (1..).zip(steps) {
            match step {
                Step::Store { judge, did: number } => {
                    let (did, to) = (did(number), account(rev));
                    judges[judge].store_many(&[(&did, to)]).unwrap();
                    map.insert(did.clone(), to);
                    pending.push((did, to));
                }
                Step::Checkpoint(count) => {
                    let handled: Vec<_> = pending.drain(..count.min(pending.len())).collect();
                    store.checkpoint(&[(STREAM, 1)], &handled).unwrap();
                    saved.extend(handled);
                }
                Step::Load { judge, did: number } => {
                    let known = map.get(&did(number)).copied().unwrap_or_default();
                    prop_assert_eq!(load(&mut judges[judge], &did(number)), known);
                }
                Step::Reopen => {
                    drop((store, judges));
                    (store, judges) = open();
                    map.clone_from(&saved);
                    pending.clear();
                }
            }
        }
    }
}

const EARLIER_VERSIONS: [&str; 4] = [
    include_str!("../fixtures/version-1.sql"),
    include_str!("../fixtures/version-2.sql"),
    include_str!("../fixtures/version-3.sql"),
    include_str!("../fixtures/version-4.sql"),
];
