//! A damaged state file is refused, or read to its end and written; a changed byte never moves a cursor.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use store::{Options, Store, StoreError, StoredKey};
use tempfile::TempDir;
use verify::sync::{AccountState, ChainState};

/// Runs the target on one input: a first byte that says which file is damaged, and the damage.
pub(crate) fn run(input: &[u8]) {
    let Some((mode, damage)) = input.split_first() else { return };
    let folder = folder();
    let path = folder.path().join("state.sqlite");
    match mode % 4 {
        0 => write(&path, damage),
        1 => {
            write(&path, &VALID);
            write(&folder.path().join("state.sqlite-wal"), damage);
        }
        _ => write(&path, &patched(damage)),
    }
    match use_store(&path) {
        // One changed byte is found, or changes nothing: a cursor that moves would skip events.
        Ok(streams) if mode % 4 >= 2 && damage.len() < 8 => assert_eq!(streams, CURSORS.map(owned)),
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains("state.sqlite"), "{error}"),
    }
}

/// Reads everything, stores a checkpoint, and returns the cursors that were read.
fn use_store(path: &Path) -> Result<Vec<(String, u64)>, StoreError> {
    let store = Store::open(path, Options::default())?;
    let streams = store.cursors()?;
    for (stream, cursor) in &streams {
        assert_eq!(store.cursor(stream)?, Some(*cursor));
        store.printed(stream)?;
    }
    let mut accounts = store.chain_state()?;
    accounts.load_many(&DIDS, &mut [AccountState::UNKNOWN; 3])?;
    for did in DIDS {
        store.key(did)?;
    }
    store.desynchronized(100)?;
    store.checkpoint(&[(STREAM, 7)], &[(DIDS[0], AccountState::UNKNOWN)])?;
    assert_eq!(store.cursor(STREAM)?, Some(7));
    Ok(streams)
}

/// The valid file with some bytes replaced: a patch is a place in three bytes and the new byte.
fn patched(patches: &[u8]) -> Vec<u8> {
    let mut file = VALID.clone();
    for [high, middle, low, byte] in patches.as_chunks::<4>().0 {
        let place = u32::from_be_bytes([0, *high, *middle, *low]) as usize % file.len();
        file[place] = *byte;
    }
    file
}

/// A file with a few cursors, accounts and keys.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = folder();
    let path = folder.path().join("state.sqlite");
    fill(&path).expect("a new state file");
    fs::read(&path).expect("the file that was written")
});

fn fill(path: &Path) -> Result<(), StoreError> {
    let store = Store::open(path, Options::default())?;
    let accounts = DIDS.map(|did| (did, AccountState::UNKNOWN));
    store.checkpoint(&CURSORS, &accounts)?;
    let key = StoredKey { did_key: DID_KEY.to_owned(), fetched_micros: 1, host: None };
    store.save_keys(DIDS.iter().map(|did| ((*did).into(), Some(key.clone()))).collect())?;
    store.set_printed(STREAM, 4712)
}

/// A folder in memory where there is one, as every transaction is synced.
fn folder() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    tempfile::tempdir_in(parent).expect("a temporary folder")
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file in a temporary folder");
}

fn owned((stream, cursor): (&str, u64)) -> (String, u64) {
    (stream.to_owned(), cursor)
}

const STREAM: &str = "wss://a.test";
const CURSORS: [(&str, u64); 2] = [(STREAM, 4711), ("wss://b.test", 1)];
const DIDS: [&str; 3] = ["did:web:a.test", "did:web:b.test", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"];
const DID_KEY: &str = "did:key:zQ3shunBKsXixLxKtC5qeSG9E4J5RkGN57im31pcTzbNQnm5w";
