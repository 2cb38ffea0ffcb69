//! The selection of accounts and collections: `--dids` and `--collections`, and the stored changes of an operator.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use atproto::syntax::{CollectionPatternBuf, Did};
use net::firehose::{AccountSet, ResyncCollections};

use super::condition::Condition;
use super::stored_changes::{Changes, StoredChanges};
use crate::failure::Failure;
use crate::{files, names, standard_streams};

/// Selected accounts and collections. Events without an account are always selected, and collections
/// select commits only. Clones share the selection, which may change while events are read.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    /// Whether all accounts are selected, whatever `dids` has.
    pub(super) has_all_accounts: bool,
    pub(super) dids: AccountSet,
    /// The collections of which repositories are fetched.
    pub(super) resyncs: ResyncCollections,
    filter: Arc<RwLock<Arc<Filter>>>,
    lists: Arc<Mutex<Lists>>,
}

/// Selected collections.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    has_all_collections: bool,
    /// In order.
    collections: Vec<CollectionPatternBuf>,
    /// The condition that the operations in them must match.
    pub(super) condition: Option<Condition>,
}

/// The lists of the command line, and the changes to them.
#[derive(Debug)]
struct Lists {
    accounts: HashSet<String>,
    collections: HashSet<CollectionPatternBuf>,
    changes: StoredChanges,
}

impl Selection {
    /// Parses the arguments, to which the changes are applied. Without `accounts` all are selected.
    pub(super) fn new(
        accounts: Option<HashSet<String>>,
        collections: &[String],
        condition: Option<Condition>,
        changes: StoredChanges,
    ) -> Result<Self, Failure> {
        let parsed = collections.iter().map(|text| collection(text));
        let has_all_collections = collections.is_empty();
        let filter = Filter { has_all_collections, collections: Vec::new(), condition };
        let has_all_accounts = accounts.is_none();
        let lists = Lists {
            accounts: accounts.unwrap_or_default(),
            collections: parsed.collect::<Result<_, _>>()?,
            changes,
        };
        let selection = Self {
            has_all_accounts,
            dids: AccountSet::default(),
            resyncs: ResyncCollections::default(),
            filter: Arc::new(RwLock::new(Arc::new(filter))),
            lists: Arc::new(Mutex::new(lists)),
        };
        selection.update(&selection.lock());
        Ok(selection)
    }

    pub(super) fn has_account(&self, did: Option<&str>) -> bool {
        self.has_all_accounts || did.is_none_or(|did| self.dids.contains(did))
    }

    /// The collections now.
    pub(super) fn filter(&self) -> Arc<Filter> {
        self.filter.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the accounts of the command line. The changes stay.
    pub(super) fn replace_accounts(&self, accounts: HashSet<String>) {
        let mut lists = self.lock();
        lists.accounts = accounts;
        self.update(&lists);
    }

    /// The changes to the command line.
    pub(super) fn changes(&self) -> Changes {
        self.lock().changes.changes.clone()
    }

    /// Changes the selection. `prepare` gets the new accounts and collections; then the changes are stored, then in effect. The result of
    /// `edit` is passed on.
    pub(super) fn change<T>(
        &self,
        edit: impl FnOnce(&mut Changes) -> T,
        prepare: impl FnOnce(&HashSet<String>, &HashSet<CollectionPatternBuf>) -> Result<(), Failure>,
    ) -> Result<T, Failure> {
        let mut lists = self.lock();
        let mut changes = lists.changes.changes.clone();
        let result = edit(&mut changes);
        let accounts = changes.accounts.apply(&lists.accounts);
        prepare(&accounts, &changes.collections.apply(&lists.collections))?;
        lists.changes.replace(changes)?;
        self.update(&lists);
        Ok(result)
    }

    fn update(&self, lists: &Lists) {
        let Lists { accounts, collections, changes } = lists;
        self.dids.replace(changes.changes.accounts.apply(accounts));
        let before = self.filter();
        let (has_all_collections, condition) =
            (before.has_all_collections, before.condition.clone());
        let mut collections: Vec<_> =
            changes.changes.collections.apply(collections).into_iter().collect();
        collections.sort_unstable();
        let filter = Arc::new(Filter { has_all_collections, collections, condition });
        self.resyncs.replace((!has_all_collections).then(|| filter.collections.iter().cloned()));
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = filter;
    }

    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Filter {
    /// Whether a commit with operations at these paths is selected.
    pub(super) fn has_any<'p>(&self, mut paths: impl Iterator<Item = &'p str>) -> bool {
        self.has_all_collections || paths.any(|path| self.has_path(path))
    }

    pub(super) fn has_path(&self, path: &str) -> bool {
        let name = path.split_once('/').map_or(path, |(name, _)| name);
        self.has_all_collections || self.collections.iter().any(|selected| selected.matches(name))
    }

    /// The same filter, limited to these collections.
    pub(super) fn within(&self, others: &[CollectionPatternBuf]) -> Self {
        let is_selected = |other: &&CollectionPatternBuf| {
            self.has_all_collections || self.collections.iter().any(|outer| outer.includes(other))
        };
        let is_within =
            |name: &&CollectionPatternBuf| others.iter().any(|outer| outer.includes(name));
        let of_others = others.iter().filter(is_selected);
        let both: BTreeSet<_> =
            of_others.chain(self.collections.iter().filter(is_within)).collect();
        Self {
            has_all_collections: false,
            collections: both.into_iter().cloned().collect(),
            condition: self.condition.clone(),
        }
    }

    /// Whether the same collections are selected.
    pub(super) fn has_same_collections(&self, other: &Self) -> bool {
        (self.has_all_collections, &self.collections)
            == (other.has_all_collections, &other.collections)
    }

    /// Whether all collections are selected.
    pub(super) fn has_all_collections(&self) -> bool {
        self.has_all_collections
    }

    /// The selected collections in order; none if all are.
    pub(super) fn collections(&self) -> &[CollectionPatternBuf] {
        &self.collections
    }

    /// The selected collections as an operator writes them.
    pub(super) fn collection_names(&self) -> Vec<String> {
        self.collections.iter().map(CollectionPatternBuf::to_string).collect()
    }
}

/// Names of accounts.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) dids: HashSet<String>,
    /// Handles, and where they were read.
    pub(super) handles: Vec<(String, String)>,
}

impl Names {
    /// Adds a DID or a handle that was read at `place`, as people copy them.
    pub(super) fn add(&mut self, text: &str, place: &str) -> Result<(), Failure> {
        if Did::parse(text).is_ok() {
            self.dids.insert(text.to_owned());
            return Ok(());
        }
        let name = names::account(text).map_err(|failure| failure.after(&format!("{place}: ")))?;
        match name.as_did() {
            Some(did) => drop(self.dids.insert(did.to_string())),
            None => self.handles.push((name.to_string(), place.to_owned())),
        }
        Ok(())
    }
}

/// The names of `--dids`, some of which are in files.
pub(super) fn read_names(texts: &[String]) -> Result<Names, Failure> {
    let mut all = Names::default();
    if texts == [NO_ACCOUNT] {
        return Ok(all);
    }
    for text in texts {
        match text.strip_prefix('@') {
            Some(path) => read_file(Path::new(path), &mut all)?,
            None => all.add(text, OPTION)?,
        }
    }
    if all.dids.is_empty() && all.handles.is_empty() {
        // None would select all of them.
        return Err(Failure::Usage(format!("{OPTION} {}: no account", texts.join(","))));
    }
    Ok(all)
}

fn read_file(path: &Path, all: &mut Names) -> Result<(), Failure> {
    let text = if files::is_standard_stream(path) {
        std::io::read_to_string(standard_streams::stdin()?)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(Failure::file(path))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let place = format!("{}, line {}", path.display(), number + 1);
            all.add(line, &place)?;
        }
    }
    Ok(())
}

pub(super) fn did(text: &str, place: &str) -> Result<String, Failure> {
    match Did::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(Failure::Usage(format!("{place}: `{text}`: {error}"))),
    }
}

pub(super) fn collection(text: &str) -> Result<CollectionPatternBuf, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("--collections: `{text}`: {error}")))
}

/// The argument of `--dids` that selects no account.
const NO_ACCOUNT: &str = "none";

/// The option that names accounts.
pub(super) const OPTION: &str = "--dids";

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(dids: &[&str], collections: &[&str]) -> Result<Selection, Failure> {
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let accounts = match dids {
            [] => None,
            dids => Some(read_names(&texts(dids))?.dids),
        };
        Selection::new(accounts, &texts(collections), None, StoredChanges::default())
    }

    #[test]
    fn an_empty_selection_is_everything() {
        let all = selection(&[], &[]).unwrap();
        assert!(all.has_account(Some("did:web:a.test")) && all.has_account(None));
        assert!(all.filter().has_any(std::iter::empty()) && all.filter().has_path("a.b.c/self"));
    }

    #[test]
    fn a_name_matches_exactly_and_a_prefix_ends_at_a_dot() {
        let some = selection(&[], &["app.bsky.feed.post", "app.bsky.graph.*", "org.*"]).unwrap();
        assert!(some.filter().has_path("app.bsky.feed.post/3k"));
        assert!(
            some.filter().has_path("app.bsky.graph.follow/3k")
                && some.filter().has_path("org.b.c/3k")
        );
        assert!(
            !some.filter().has_path("app.bsky.feed.postgate/3k")
                && !some.filter().has_path("app.bsky.graphs.x/3k")
        );
        assert!(!some.filter().has_any(std::iter::empty()));
        assert!(some.filter().has_any(["x.y.z/a", "org.a.b/c"].into_iter()));
    }

    #[test]
    fn what_is_selected_of_other_collections_is_in_both() {
        let within = |selected: &[&str], names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
            selection(&[], selected).unwrap().filter().within(&names).collection_names()
        };
        assert_eq!(within(&["a.b.c", "a.b.d"], &["a.b.d", "a.b.e"]), ["a.b.d"]);
        assert_eq!(within(&["a.b.*"], &["a.b.c", "a.bc.d"]), ["a.b.c"]);
        assert_eq!(within(&["a.b.c", "x.y.z"], &["a.*"]), ["a.b.c"]);
        assert_eq!(within(&["a.b.*", "x.y.z"], &["a.*", "x.y.*"]), ["a.b.*", "x.y.z"]);
        assert_eq!(within(&[], &["a.b.c", "x.*"]), ["a.b.c", "x.*"]);
        assert_eq!(within(&["a.b.c"], &[]), [""; 0]);
    }

    #[test]
    fn accounts_come_from_arguments_and_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dids");
        std::fs::write(&path, "# ours\ndid:web:a.test\n\n  did:web:b.test  \n").unwrap();
        let file = format!("@{}", path.display());
        let some = selection(&[&file, "did:web:c.test"], &[]).unwrap();
        assert_eq!(some.dids.len(), 3);
        assert!(
            some.has_account(Some("did:web:b.test")) && !some.has_account(Some("did:web:d.test"))
        );
        assert!(some.has_account(None));
        std::fs::write(&path, "# none\n").unwrap();
        assert!(matches!(selection(&[&file], &[]), Err(Failure::Usage(_))), "not all accounts");
        std::fs::write(&path, "did:web:a.test\nnobody\n").unwrap();
        let Err(Failure::Usage(message)) = selection(&[&file], &[]) else { panic!("accepted") };
        assert!(message.contains("line 2"), "{message}");
    }

    #[test]
    fn malformed_dids_and_names_are_refused() {
        for (dids, collections) in
            [(&["x"][..], &[][..]), (&[], &["post"]), (&[], &["a..*"]), (&[], &["*"])]
        {
            assert!(matches!(selection(dids, collections), Err(Failure::Usage(_))), "{dids:?}");
        }
    }
}
