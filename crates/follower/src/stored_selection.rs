//! The selection that histories were delivered for: in the outbox, for comparison with the next run's.
//!
//! A history is complete for a selection. If the next one selects more, the additions were never fetched, and the
//! complete histories are outdated in the transaction that stores it: an end before they are fetched changes nothing.
//! Accounts that are not selected miss events from then on, so that their histories are outdated too.

use std::collections::HashSet;

use atproto::syntax::CollectionPatternBuf;
use delivery::{Outbox, OutboxError, Selected};
use serde::{Deserialize, Serialize};

use super::selection::Selection;
use crate::failure::Failure;

/// The selection of a run, except its accounts: the outbox knows whether the history of an account is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSelection {
    /// The collections in order; `None` for all.
    collections: Option<Vec<CollectionPatternBuf>>,
    /// The expression of `--where`.
    #[serde(rename = "where")]
    condition: Option<String>,
    /// The collections of which all histories are complete that [lack only others](delivery::AwaitedHistory::is_widened).
    #[serde(default)]
    base: Vec<CollectionPatternBuf>,
}

/// How a selection differs from the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SelectionChange {
    /// Whether it may select a record that the one before did not.
    pub(super) selects_more: bool,
    /// Whether it may leave out a record that the one before selected.
    pub(super) selects_less: bool,
    /// Whether it selects more, and only of other collections.
    selects_collections: bool,
    /// Whether it leaves out a collection that the one before selected.
    leaves_out_collections: bool,
}

impl StoredSelection {
    /// The current selection of a run.
    pub(super) fn of(selection: &Selection) -> Self {
        let filter = selection.filter();
        let condition = filter.condition.as_ref().map(|condition| condition.text().to_owned());
        let collections = (!filter.has_all_collections()).then(|| filter.collections().to_vec());
        Self { collections, condition, base: Vec::new() }
    }

    /// The same with these collections.
    pub(super) fn with_collections(self, collections: &HashSet<CollectionPatternBuf>) -> Self {
        let mut collections: Vec<_> = collections.iter().cloned().collect();
        collections.sort_unstable();
        Self { collections: Some(collections), ..self }
    }

    /// The difference to the one before. Of two expressions nothing is known but whether they are the same.
    fn change_from(&self, before: &Self) -> SelectionChange {
        let selects_more = !before.covers(self);
        let has_lists = self.collections.is_some() && before.collections.is_some();
        SelectionChange {
            selects_more,
            selects_less: !self.covers(before),
            selects_collections: selects_more && has_lists && self.condition == before.condition,
            leaves_out_collections: !self.has_collections_of(before),
        }
    }

    /// Whether it surely selects all that another one does.
    fn covers(&self, other: &Self) -> bool {
        self.has_collections_of(other)
            && (self.condition.is_none() || self.condition == other.condition)
    }

    /// Whether it selects all collections that another one does.
    fn has_collections_of(&self, other: &Self) -> bool {
        match (&self.collections, &other.collections) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(of), Some(others)) => {
                others.iter().all(|other| of.iter().any(|name| name.includes(other)))
            }
        }
    }

    /// The stored selection, and its text; `None` if there is none of this version.
    pub(super) fn read(outbox: &Outbox) -> Result<Option<(Self, String)>, OutboxError> {
        let text = outbox.selection()?;
        Ok(text.and_then(|text| Some((serde_json::from_str(&text).ok()?, text))))
    }

    /// The collections in order; `None` for all.
    pub(super) fn collections(&self) -> Option<&[CollectionPatternBuf]> {
        self.collections.as_deref()
    }

    /// The collections of which a consumer still has all records.
    pub(super) fn base(&self) -> &[CollectionPatternBuf] {
        &self.base
    }

    /// The same after another one, for which histories are complete; if some are not yet, they are for its base.
    fn after(self, before: &Self, has_widened: bool) -> Self {
        let had =
            if has_widened { &before.base } else { before.collections.as_deref().unwrap_or(&[]) };
        let has = |name: &&CollectionPatternBuf| {
            let lists = [self.collections.as_deref(), before.collections.as_deref()];
            lists.iter().flatten().all(|list| list.iter().any(|outer| outer.includes(name)))
        };
        Self { base: had.iter().filter(has).cloned().collect(), ..self }
    }

    /// Stores it in the outbox, and outdates the histories that are not complete for it. Returns it as stored.
    pub(super) fn store(
        self,
        outbox: &Outbox,
        has_account: impl Fn(&str) -> bool,
    ) -> Result<(Self, SelectionChange), Failure> {
        let before = outbox.selection()?;
        let before = before.map(|text| serde_json::from_str::<Self>(&text));
        let (stored, change) = match before {
            Some(Ok(before)) => {
                let change = self.change_from(&before);
                (self.after(&before, outbox.has_widened_histories()?), change)
            }
            // A selection of another version says nothing.
            Some(Err(_)) => {
                (self, SelectionChange { selects_more: true, ..SelectionChange::default() })
            }
            None => (self, SelectionChange::default()),
        };
        let selected = match (change.selects_more, change.selects_collections) {
            (false, _) if change.leaves_out_collections => Selected::FewerCollections,
            (false, _) => Selected::NoMore,
            (true, true) => Selected::MoreCollections,
            (true, false) => Selected::More,
        };
        let text = serde_json::to_string(&stored).expect("lists of texts");
        outbox.select(&text, selected, has_account)?;
        Ok((stored, change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(collections: &[&str], condition: &str) -> StoredSelection {
        let names: Vec<_> = collections.iter().map(|name| name.parse().unwrap()).collect();
        StoredSelection {
            collections: (!names.is_empty()).then_some(names),
            condition: (!condition.is_empty()).then(|| condition.to_owned()),
            base: Vec::new(),
        }
    }

    #[test]
    fn a_selection_is_compared_by_what_it_may_add_and_leave_out() {
        let more = (true, false);
        let less = (false, true);
        let both = (true, true);
        for (before, now, expected) in [
            (selection(&[], ""), selection(&[], ""), (false, false)),
            (selection(&["a.b.c"], ""), selection(&[], ""), more),
            (selection(&[], ""), selection(&["a.b.c"], ""), less),
            (selection(&["a.b.c"], ""), selection(&["a.b.c", "a.b.d"], ""), more),
            (selection(&["a.b.*"], ""), selection(&["a.b.c"], ""), less),
            (selection(&["a.b.c"], ""), selection(&["a.b.*"], ""), more),
            (selection(&["a.b.*"], ""), selection(&["a.b.c.*"], ""), less),
            (selection(&["a.b.c"], ""), selection(&["a.b.cd"], ""), both),
            (selection(&["a.b.c"], ""), selection(&["a.b.d"], ""), both),
            (selection(&[], "x"), selection(&[], "x"), (false, false)),
            (selection(&[], ""), selection(&[], "x"), less),
            (selection(&[], "x"), selection(&[], ""), more),
            (selection(&[], "x"), selection(&[], "y"), both),
            (selection(&["a.b.c"], "x"), selection(&[], "x"), more),
            (selection(&["a.b.c"], ""), selection(&["a.b.c", "a.b.d"], "x"), both),
        ] {
            let SelectionChange { selects_more, selects_less, .. } = now.change_from(&before);
            assert_eq!((selects_more, selects_less), expected, "{before:?} to {now:?}");
        }
    }

    #[test]
    fn a_stored_selection_outdates_what_it_adds_and_accounts_that_it_leaves_out() {
        use delivery::{EventId, NewEvent, Options, RecordEffects, StartAt};
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
        outbox.register("reader", StartAt::Oldest).unwrap();
        let complete = |did: &str, number: u64| {
            let mut effects = RecordEffects::of_repository(true);
            effects.complete();
            let id = EventId::of_resync(did, "3a", number, 0);
            let event = NewEvent::new(id, did, "{}").unwrap().with_effects(effects);
            outbox.append_all([event]).unwrap();
        };
        let outdated = || -> Vec<Box<str>> {
            let awaited = outbox.histories().unwrap().awaited().unwrap();
            awaited.into_iter().filter(|of| of.is_outdated).map(|of| of.did).collect()
        };
        let (a, b) = ("did:web:a.test", "did:web:b.test");
        let store = |selection: &StoredSelection, has_account: &dyn Fn(&str) -> bool| {
            selection.clone().store(&outbox, has_account).unwrap().1
        };
        let complete_both = |number| [a, b].into_iter().for_each(|did| complete(did, number));
        complete_both(1);
        let first = selection(&["a.b.c"], "");
        assert_eq!(store(&first, &|_| true), SelectionChange::default());
        assert!(outdated().is_empty(), "the first selection is that of what was delivered");
        let wider = selection(&["a.b.c", "a.b.d"], "");
        assert!(store(&wider, &|_| true).selects_more);
        assert_eq!(outdated(), [a.into(), b.into()]);
        assert_eq!(store(&wider, &|_| true), SelectionChange::default());
        assert_eq!(outdated().len(), 2, "until they are fetched");
        complete_both(2);
        assert!(store(&first, &|did| did == a).selects_less);
        assert_eq!(outdated(), [b.into()], "its events are not delivered");
    }
}
