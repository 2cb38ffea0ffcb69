//! Changes of an operator to a run: accounts, collections and pauses, in a file of the state folder.
//!
//! A change wins over the command line, in this run and in later ones with the same state folder, until the opposite
//! change. The file is replaced as a whole before a change is in effect.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use atproto::syntax::CollectionPatternBuf;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;

/// The changes, and the file in which they are stored; without a file they are in memory only.
#[derive(Debug, Default)]
pub(super) struct StoredChanges {
    path: Option<PathBuf>,
    pub(super) changes: Changes,
}

/// Changes to the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Changes {
    v: u64,
    pub(super) accounts: ListChanges<String>,
    pub(super) collections: ListChanges<CollectionPatternBuf>,
    /// Whether no events are received.
    pub(super) is_intake_paused: bool,
    /// Destinations that get no events.
    pub(super) paused_destinations: BTreeSet<String>,
}

/// Changes to a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "T: Ord + Deserialize<'de>"))]
pub(super) struct ListChanges<T> {
    added: BTreeSet<T>,
    removed: BTreeSet<T>,
}

impl StoredChanges {
    /// The changes in a state folder; none if it has none.
    pub(super) fn load(state: &Path) -> Result<Self, Failure> {
        let path = state.join(FILE);
        let changes = match std::fs::metadata(&path) {
            Ok(_) => {
                let bytes = files::read_document(&path, MAX_FILE_BYTES)?;
                let changes = serde_json::from_slice::<Changes>(&bytes);
                let changes = changes.ok().filter(|changes| changes.v == VERSION);
                changes.ok_or_else(|| {
                    let path = path.display();
                    Failure::Local(format!(
                        "{path}: not the changes of this version: delete it to follow the command line alone"
                    ))
                })?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Changes::default(),
            Err(error) => return Err(Failure::file(&path)(error)),
        };
        Ok(Self { path: Some(path), changes })
    }

    /// Stores other changes instead of these.
    pub(super) fn replace(&mut self, changes: Changes) -> Result<(), Failure> {
        let changes = Changes { v: VERSION, ..changes };
        let count = changes.accounts.len() + changes.collections.len();
        if count > MAX_CHANGES {
            return Err(Failure::Usage(format!(
                "{count} changed accounts and collections: at most {MAX_CHANGES} are allowed; write the others into \
                 the file of --dids"
            )));
        }
        if let Some(path) = &self.path {
            let mut file = files::create_sibling(path)?;
            let written = file.write_all(&files::to_json(&changes));
            let written = written.and_then(|()| file.as_file().sync_all());
            written.map_err(Failure::file(path))?;
            files::persist(file, path)?;
        }
        self.changes = changes;
        Ok(())
    }
}

impl Changes {
    /// Number of changes.
    pub(super) fn len(&self) -> usize {
        let paused = usize::from(self.is_intake_paused) + self.paused_destinations.len();
        self.accounts.len() + self.collections.len() + paused
    }
}

impl<T> Default for ListChanges<T> {
    fn default() -> Self {
        Self { added: BTreeSet::new(), removed: BTreeSet::new() }
    }
}

impl<T: Clone + Hash + Ord> ListChanges<T> {
    pub(super) fn add(&mut self, entry: T) {
        self.removed.remove(&entry);
        self.added.insert(entry);
    }

    pub(super) fn remove(&mut self, entry: T) {
        self.added.remove(&entry);
        self.removed.insert(entry);
    }

    /// A list with these changes.
    pub(super) fn apply(&self, list: &HashSet<T>) -> HashSet<T> {
        let all = list.iter().chain(&self.added);
        all.filter(|entry| !self.removed.contains(*entry)).cloned().collect()
    }

    fn len(&self) -> usize {
        self.added.len() + self.removed.len()
    }
}

/// Name of the file in the state folder.
const FILE: &str = "changes.json";
const VERSION: u64 = 1;
const MAX_CHANGES: usize = 100_000;
const MAX_FILE_BYTES: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> HashSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_change_wins_over_the_list_until_the_opposite_change() {
        let mut changes = ListChanges::default();
        let given = list(&["a", "b"]);
        assert_eq!(changes.apply(&given), given);
        changes.remove("a".to_owned());
        changes.add("c".to_owned());
        assert_eq!(changes.apply(&given), list(&["b", "c"]));
        assert_eq!(changes.apply(&list(&["a"])), list(&["c"]), "another list of a later run");
        changes.add("a".to_owned());
        changes.remove("c".to_owned());
        assert_eq!(changes.apply(&given), given);
    }

    #[test]
    fn changes_are_stored_and_a_file_that_is_not_of_this_version_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let load = || StoredChanges::load(dir.path());
        let mut stored = load().unwrap();
        assert_eq!(stored.changes, Changes::default());
        let mut changes = Changes::default();
        changes.accounts.add("did:web:a.test".to_owned());
        changes.is_intake_paused = true;
        stored.replace(changes).unwrap();
        assert_eq!(load().unwrap().changes, stored.changes);
        for text in ["", "{}", r#"{"v":2,"accounts":{"added":[],"removed":[]}}"#] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert!(matches!(load(), Err(Failure::Local(_))), "{text}");
        }
    }

    #[test]
    fn too_many_changes_are_refused_and_the_others_stay() {
        let mut stored = StoredChanges::default();
        let mut changes = Changes::default();
        (0..=MAX_CHANGES).for_each(|number| changes.accounts.add(number.to_string()));
        assert!(matches!(stored.replace(changes), Err(Failure::Usage(_))));
        assert_eq!(stored.changes, Changes::default());
    }
}
