//! History of the selected accounts: which of them are fetched before their new events.
//!
//! An account is marked as desynchronized in the state file, so that the run fetches and delivers its repository before
//! the events that follow it, as after a gap. The outbox knows which histories it has: the others are marked before the
//! run, and all when a destination is new.

use std::collections::HashSet;

use wireproof::delivery::{Histories, Outbox};
use wireproof::store::Store;
use wireproof::verify::sync::{AccountState, ChainState, SyncState};

use crate::failure::Failure;

/// Marks the accounts whose history is to be delivered.
pub(super) fn mark(dids: &HashSet<String>, store: &Store, outbox: &Outbox) -> Result<(), Failure> {
    if dids.len() > MAX_ACCOUNTS {
        let count = dids.len();
        let text = format!("--backfill: {count} accounts: at most {MAX_ACCOUNTS} are allowed");
        return Err(Failure::Usage(text));
    }
    outbox.await_histories(dids.iter().map(String::as_str))?;
    mark_in_state(dids, store, &outbox.histories()?)
}

/// Marks the accounts whose history is not complete, or that have lost their state since.
fn mark_in_state(
    dids: &HashSet<String>,
    store: &Store,
    histories: &Histories,
) -> Result<(), Failure> {
    let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
    let (mut states, mut accounts) =
        (store.chain_state()?, vec![AccountState::UNKNOWN; dids.len()]);
    states.load_many(&dids, &mut accounts)?;
    let mut changed: Vec<(&str, AccountState)> = Vec::new();
    for (did, account) in dids.into_iter().zip(accounts) {
        let is_known = account.head.is_some() || account.sync != SyncState::Synchronized;
        if !is_known || !histories.is_complete(did)? {
            changed.push((did, AccountState { sync: SyncState::Desynchronized, ..account }));
        }
    }
    states.store_many(&changed)?;
    Ok(store.checkpoint(&NO_CURSORS, &changed)?)
}

/// Maximum number of accounts whose history is fetched by one run.
const MAX_ACCOUNTS: usize = 1000;

const NO_CURSORS: [(&str, u64); 0] = [];

#[cfg(test)]
mod tests {
    use wireproof::atproto::syntax::Tid;
    use wireproof::codec::cid::{Cid, Codec};
    use wireproof::delivery::{self, EventId, NewEvent, RecordEffects, StartAt};
    use wireproof::store::Options;
    use wireproof::verify::sync::Head;

    use super::*;

    struct Files {
        folder: tempfile::TempDir,
        store: Store,
        outbox: Outbox,
    }

    impl Files {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = |name| folder.path().join(name);
            let store = Store::open(&path("state.sqlite"), Options::default()).unwrap();
            let outbox = Outbox::open(&path("outbox.sqlite"), delivery::Options::default());
            let outbox = outbox.unwrap();
            outbox.register("reader", StartAt::Oldest).unwrap();
            Self { folder, store, outbox }
        }

        /// Marks these accounts; those that are marked get their history.
        fn mark(&self, names: &[&str]) -> Vec<String> {
            mark(&dids(names), &self.store, &self.outbox).unwrap();
            let marked = self.store.desynchronized(10).unwrap();
            marked.iter().for_each(|did| self.fetch(did));
            marked.iter().map(|did| did["did:web:".len()..].to_owned()).collect()
        }

        fn fetch(&self, did: &str) {
            let cid = Cid::of(Codec::DagCbor, b"\xa0");
            let rev = Tid::parse("3jzfcijpj2z2a").unwrap();
            let head = Some(Head { rev, data: cid, commit: cid });
            let fetched = [(did, AccountState { head, ..AccountState::UNKNOWN })];
            self.store.chain_state().unwrap().store_many(&fetched).unwrap();
            self.store.checkpoint(&NO_CURSORS, &fetched).unwrap();
            let mut effects = RecordEffects::of_repository(true);
            effects.complete();
            let event = NewEvent::new(EventId::of_commit(did, "1"), did, "{}").unwrap();
            self.outbox.append_all([event.with_effects(effects)]).unwrap();
        }
    }

    fn dids(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| format!("did:web:{name}.test")).collect()
    }

    #[test]
    fn each_account_is_marked_until_its_history_is_complete_and_again_for_a_new_destination() {
        let files = Files::new();
        assert_eq!(files.mark(&["a", "b"]), ["a.test", "b.test"]);
        assert!(files.mark(&["a", "b"]).is_empty());
        assert_eq!(files.mark(&["a", "c"]), ["c.test"]);
        files.outbox.restart_histories().unwrap();
        // An equal event is not stored twice.
        mark(&dids(&["a", "b"]), &files.store, &files.outbox).unwrap();
        assert_eq!(files.store.desynchronized(10).unwrap(), ["did:web:a.test", "did:web:b.test"]);
    }

    #[test]
    fn an_account_that_is_not_in_the_state_file_is_marked_whatever_the_outbox_has() {
        let mut files = Files::new();
        files.mark(&["a"]);
        let path = files.folder.path().join("other.sqlite");
        files.store = Store::open(&path, Options::default()).unwrap();
        assert_eq!(files.mark(&["a"]), ["a.test"]);
    }

    #[test]
    fn too_many_accounts_are_refused() {
        let files = Files::new();
        let many: Vec<String> = (0..=MAX_ACCOUNTS).map(|number| number.to_string()).collect();
        let many = dids(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let refused = mark(&many, &files.store, &files.outbox);
        assert!(matches!(refused, Err(Failure::Usage(_))));
        assert!(files.store.desynchronized(10).unwrap().is_empty());
    }
}
