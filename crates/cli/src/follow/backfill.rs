//! History of the selected accounts: which of them are fetched before their new events.
//!
//! An account is marked as desynchronized in the state file, so that the run fetches and delivers its repository before
//! the events that follow it, as after a gap. A file beside the outbox names the accounts that were marked: the others, and
//! all when a destination is new, are marked before the run. The marks are durable before the names, so a crash repeats a
//! fetch and omits none.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use wireproof::store::{Store, StoreError};
use wireproof::verify::sync::{AccountState, ChainState, SyncState};

use crate::failure::Failure;
use crate::files;

/// Marks the accounts whose history is to be delivered. `list` names those of earlier runs.
pub(super) fn mark(
    dids: &HashSet<String>,
    store: &Store,
    list: &Path,
    has_new_destination: bool,
) -> Result<(), Failure> {
    if dids.len() > MAX_ACCOUNTS {
        let count = dids.len();
        let text = format!("--backfill: {count} accounts: at most {MAX_ACCOUNTS} are allowed");
        return Err(Failure::Usage(text));
    }
    let marked = if has_new_destination { HashSet::new() } else { read(list)? };
    mark_in_state(dids, store, &marked)?;
    write(list, dids.union(&marked))
}

/// Marks the accounts that are not named, or have lost their state since.
fn mark_in_state(
    dids: &HashSet<String>,
    store: &Store,
    marked: &HashSet<String>,
) -> Result<(), StoreError> {
    let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
    let (mut states, mut accounts) =
        (store.chain_state()?, vec![AccountState::UNKNOWN; dids.len()]);
    states.load_many(&dids, &mut accounts)?;
    let unmarked = dids.into_iter().zip(accounts).filter(|(did, account)| {
        let is_known = account.head.is_some() || account.sync != SyncState::Synchronized;
        !marked.contains(*did) || !is_known
    });
    let sync = SyncState::Desynchronized;
    let changed: Vec<(&str, AccountState)> =
        unmarked.map(|(did, account)| (did, AccountState { sync, ..account })).collect();
    states.store_many(&changed)?;
    store.checkpoint(&NO_CURSORS, &changed)
}

fn read(list: &Path) -> Result<HashSet<String>, Failure> {
    match list.try_exists().map_err(Failure::file(list))? {
        true => {
            let text = std::fs::read_to_string(list).map_err(Failure::file(list))?;
            Ok(text.lines().map(str::to_owned).collect())
        }
        false => Ok(HashSet::new()),
    }
}

fn write<'d>(list: &Path, dids: impl Iterator<Item = &'d String>) -> Result<(), Failure> {
    let mut dids: Vec<&str> = dids.map(String::as_str).collect();
    dids.sort_unstable();
    let mut file = files::create_sibling(list)?;
    let text: String = dids.iter().flat_map(|did| [*did, "\n"]).collect();
    let written = file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all());
    written.map_err(Failure::file(list))?;
    files::persist(file, list)
}

/// Maximum number of accounts whose history is fetched by one run.
const MAX_ACCOUNTS: usize = 1000;

const NO_CURSORS: [(&str, u64); 0] = [];

#[cfg(test)]
mod tests {
    use wireproof::atproto::syntax::Tid;
    use wireproof::codec::cid::{Cid, Codec};
    use wireproof::store::Options;
    use wireproof::verify::sync::Head;

    use super::*;

    fn dids(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| format!("did:web:{name}.test")).collect()
    }

    #[test]
    fn each_account_is_marked_once_and_all_again_for_a_new_destination() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("state.sqlite"), Options::default()).unwrap();
        let list = dir.path().join("backfilled");
        let marked = |names: &[&str], is_new: bool| {
            mark(&dids(names), &store, &list, is_new).unwrap();
            let marked = store.desynchronized(10).unwrap();
            // Their repositories are fetched.
            let state = AccountState { head: Some(head()), ..AccountState::UNKNOWN };
            let fetched: Vec<_> = marked.iter().map(|did| (did.as_str(), state)).collect();
            store.chain_state().unwrap().store_many(&fetched).unwrap();
            store.checkpoint(&NO_CURSORS, &fetched).unwrap();
            marked.iter().map(|did| did["did:web:".len()..].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(marked(&["a", "b"], true), ["a.test", "b.test"]);
        assert!(marked(&["a", "b"], false).is_empty());
        assert_eq!(marked(&["a", "c"], false), ["c.test"]);
        assert!(marked(&["b"], false).is_empty(), "named by an earlier run");
        assert_eq!(marked(&["a", "b"], true), ["a.test", "b.test"]);
        std::fs::remove_file(&list).unwrap();
        assert_eq!(marked(&["b"], false), ["b.test"]);
    }

    #[test]
    fn an_account_that_is_not_in_the_state_file_is_marked_whatever_the_list_says() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("state.sqlite"), Options::default()).unwrap();
        let list = dir.path().join("backfilled");
        std::fs::write(&list, "did:web:a.test\n").unwrap();
        mark(&dids(&["a"]), &store, &list, false).unwrap();
        assert_eq!(store.desynchronized(10).unwrap(), ["did:web:a.test"]);
    }

    #[test]
    fn too_many_accounts_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("state.sqlite"), Options::default()).unwrap();
        let many: Vec<String> = (0..=MAX_ACCOUNTS).map(|number| number.to_string()).collect();
        let many = dids(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let refused = mark(&many, &store, &dir.path().join("backfilled"), true);
        assert!(matches!(refused, Err(Failure::Usage(_))));
        assert!(store.desynchronized(10).unwrap().is_empty());
    }

    fn head() -> Head {
        let cid = Cid::of(Codec::DagCbor, b"\xa0");
        Head { rev: Tid::parse("3jzfcijpj2z2a").unwrap(), data: cid, commit: cid }
    }
}
