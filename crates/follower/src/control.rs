//! The operations of the admin API on a run: its selection, pauses, and states.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use atproto::syntax::CollectionPatternBuf;
use delivery::{HistoryCounts, Outbox};
use net::firehose::{ResyncRequests, RunMetrics};
use net::identity::Resolver;
use store::Store;
use tokio::sync::Notify;
use verify::sync::{AccountState, ChainState, SyncState};

use super::account_log::{AccountEntry, AccountLog, seconds_since};
use super::metrics::Readiness;
use super::refused_events;
use super::selection::{self, Selection};
use super::stored_changes::{Changes, ListChanges};
use super::stored_selection::StoredSelection;
use crate::admin_api::documents::{
    AccountDelivery, AccountPage, AccountStatus, Behind, Changed, Collections, DestinationState,
    HistoriesState, HostState, LastEvent, OutboxState, Paused, Reason, RunStatus,
};
use crate::failure::Failure;

/// State that an operator can read and change during a run. Its functions may block.
pub(super) struct Control {
    /// Resolves handles.
    pub(super) resolver: Resolver,
    pub(super) selection: Selection,
    pub(super) store: Store,
    pub(super) readiness: Readiness,
    pub(super) metrics: Arc<RunMetrics>,
    pub(super) accounts: Arc<AccountLog>,
    /// Requests histories, with `--backfill`.
    pub(super) histories: Option<ResyncRequests>,
    /// Notified when histories are outdated.
    pub(super) outdated: Arc<Notify>,
}

/// Whether entries are added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    Add,
    Remove,
}

impl Edit {
    fn apply<T: Clone + Hash + Ord>(self, changes: &mut ListChanges<T>, entry: T) {
        match self {
            Self::Add => changes.add(entry),
            Self::Remove => changes.remove(entry),
        }
    }
}

impl Control {
    /// Adds or removes accounts.
    pub(super) fn edit_accounts(&self, edit: Edit, dids: &[String]) -> Result<Changed, Failure> {
        if self.selection.has_all_accounts {
            let text = "the run follows all accounts: start it with --dids none, or with a list";
            return Err(Failure::Usage(text.to_owned()));
        }
        let dids: HashSet<String> =
            dids.iter().map(|text| selection::did(text, "dids")).collect::<Result<_, _>>()?;
        let changed: Vec<String> =
            dids.iter().filter(|did| self.is_changed_by(edit, did)).cloned().collect();
        let change = |changes: &mut Changes| {
            dids.into_iter().for_each(|did| edit.apply(&mut changes.accounts, did));
        };
        let histories = self.histories.as_ref().filter(|_| edit == Edit::Add);
        let outbox = self.readiness.outbox.as_ref();
        let prepare =
            |_: &HashSet<String>, _: &HashSet<CollectionPatternBuf>| match (histories, outbox) {
                (Some(histories), Some(outbox)) => {
                    outbox.await_histories(changed.iter().map(String::as_str))?;
                    changed.iter().for_each(|did| histories.announce(did));
                    Ok(())
                }
                _ => Ok(()),
            };
        self.selection.change(change, prepare)?;
        if let Some(outbox) = outbox.filter(|_| edit == Edit::Remove) {
            // Their events are no longer delivered.
            outbox.outdate_histories_of(changed.iter().map(String::as_str))?;
        }
        self.outdated.notify_one();
        if let Some(histories) = histories {
            changed.iter().for_each(|did| histories.request(did));
        }
        Ok(Changed { changed: changed.len(), selected: self.selection.dids.len() })
    }

    fn is_changed_by(&self, edit: Edit, did: &str) -> bool {
        self.selection.dids.contains(did) == (edit == Edit::Remove)
    }

    /// Adds or removes collections, or prefixes such as `app.bsky.graph.*`. Accounts with a history get the records
    /// of the added ones.
    pub(super) fn edit_collections(
        &self,
        edit: Edit,
        collections: &[String],
    ) -> Result<Changed, Failure> {
        if self.selection.filter().has_all_collections() {
            let text = "the run follows all collections: start it with --collections";
            return Err(Failure::Usage(text.to_owned()));
        }
        let parsed = collections.iter().map(|text| selection::collection(text));
        let names: HashSet<CollectionPatternBuf> = parsed.collect::<Result<_, _>>()?;
        let before = self.selection.filter();
        let apply = |changes: &mut Changes| {
            names.into_iter().for_each(|name| edit.apply(&mut changes.collections, name));
        };
        let stored = StoredSelection::of(&self.selection);
        let prepare = |_: &HashSet<String>, collections: &HashSet<CollectionPatternBuf>| {
            let Some(outbox) = &self.readiness.outbox else { return Ok(()) };
            let stored = stored.with_collections(collections);
            let (stored, _) = stored.store(outbox, |did| self.selection.has_account(Some(did)))?;
            self.selection.resyncs.replace_base(stored.base().iter().cloned());
            Ok(())
        };
        self.selection.change(apply, prepare)?;
        self.outdated.notify_one();
        let after = self.selection.filter();
        let [old, new] = [&before, &after].map(|of| HashSet::<_>::from_iter(of.collections()));
        Ok(Changed { changed: old.symmetric_difference(&new).count(), selected: new.len() })
    }

    /// The selected accounts after `cursor`, in order.
    pub(super) fn list_accounts(&self, cursor: &str) -> AccountPage {
        let mut accounts: Vec<String> = if self.selection.has_all_accounts {
            Vec::new()
        } else {
            self.selection.dids.snapshot().into_iter().collect()
        };
        accounts.retain(|did| did.as_str() > cursor);
        accounts.sort_unstable();
        let has_more = accounts.len() > PAGE_ACCOUNTS;
        accounts.truncate(PAGE_ACCOUNTS);
        let cursor = accounts.last().cloned().filter(|_| has_more);
        AccountPage { all: self.selection.has_all_accounts, accounts, cursor }
    }

    /// The selected collections.
    pub(super) fn list_collections(&self) -> Collections {
        let filter = self.selection.filter();
        Collections { all: filter.has_all_collections(), collections: filter.collection_names() }
    }

    /// Pauses or resumes a destination; without one, the intake of events.
    pub(super) fn set_paused(
        &self,
        destination: Option<&str>,
        is_paused: bool,
    ) -> Result<Paused, Failure> {
        if let Some(name) = destination {
            self.check_destination(name)?;
        }
        let edit = |changes: &mut Changes| match (destination, is_paused) {
            (None, _) => changes.is_intake_paused = is_paused,
            (Some(name), true) => drop(changes.paused_destinations.insert(name.to_owned())),
            (Some(name), false) => drop(changes.paused_destinations.remove(name)),
        };
        self.selection.change(edit, |_, _| Ok(()))?;
        match (destination, &self.readiness.outbox) {
            (Some(name), Some(outbox)) => outbox.set_paused(name, is_paused)?,
            _ => self.readiness.pause.set(is_paused),
        }
        let changes = self.selection.changes();
        let destinations = changes.paused_destinations.into_iter().collect();
        Ok(Paused { intake: changes.is_intake_paused, destinations })
    }

    fn check_destination(&self, name: &str) -> Result<(), Failure> {
        let consumers = self.destinations();
        if consumers.iter().any(|of| of.destination == name) {
            Ok(())
        } else {
            let names: Vec<_> = consumers.iter().map(|of| of.destination.as_str()).collect();
            let names = names.join(", ");
            Err(Failure::Usage(format!("no destination `{name}`: the run has [{names}]")))
        }
    }

    /// The state of the run.
    pub(super) fn status(&self) -> RunStatus {
        let Readiness { stats, outbox, .. } = &self.readiness;
        let cursors = self.metrics.snapshot().cursors;
        let hosts = stats.host_stats().into_iter().enumerate().map(|(index, host)| HostState {
            host: stats.host(index).to_owned(),
            connected: host.is_connected,
            cursor: cursors.get(index).copied().flatten(),
        });
        let filter = self.selection.filter();
        RunStatus {
            obstacle: self.readiness.obstacle(),
            paused: self.readiness.pause.is_set(),
            hosts: hosts.collect(),
            lag_seconds: stats.lag_seconds(),
            accounts: (!self.selection.has_all_accounts).then(|| self.selection.dids.len()),
            collections: (!filter.has_all_collections()).then(|| filter.collections().len()),
            changes: self.selection.changes().len(),
            condition: filter.condition.as_ref().map(|condition| condition.text().to_owned()),
            histories: self.histories_state(),
            outbox: outbox.as_ref().map(outbox_state),
            destinations: self.destinations(),
        }
    }

    /// The histories by their state; none without an outbox, or while it cannot be read.
    fn histories_state(&self) -> Option<HistoriesState> {
        let counts = self.readiness.outbox.as_ref()?.histories().ok()?.counts().ok()?;
        let HistoryCounts { complete, outdated, awaited } = counts;
        Some(HistoriesState { complete, outdated, awaited })
    }

    fn destinations(&self) -> Vec<DestinationState> {
        let Some(outbox) = &self.readiness.outbox else { return Vec::new() };
        let consumers = outbox.status().consumers.into_iter();
        let state = consumers.map(|of| DestinationState {
            refused_bytes: refused_events::bytes(outbox, &of.name),
            destination: of.name,
            paused: of.is_paused,
            undelivered: of.behind,
        });
        state.collect()
    }

    /// The state of an account.
    pub(super) fn account(&self, did: &str) -> Result<AccountStatus, Failure> {
        let did = selection::did(did, "DID")?;
        let mut account = [AccountState::UNKNOWN];
        self.store.chain_state()?.load_many(&[&did], &mut account)?;
        let [account] = account;
        let entry = self.accounts.entry(&did);
        let deliveries = self.deliveries_of(&did)?;
        let selected = self.selection.has_account(Some(&did));
        let complete = self.is_complete(&did)?;
        let behind = self.reasons(selected, &account, complete, &entry, &deliveries);
        Ok(AccountStatus {
            selected,
            state: state_name(&account).to_owned(),
            active: account.is_active,
            complete,
            complete_in: self.complete_in(&did, complete)?,
            rev: account.head.map(|head| head.rev.to_string()),
            commit: account.head.map(|head| head.commit.to_string()),
            last_event: entry.event.map(|event| LastEvent {
                host: self.readiness.stats.host(event.host).to_owned(),
                seq: event.seq,
                kind: event.kind.to_owned(),
                code: event.code.to_owned(),
                seconds_ago: seconds_since(event.received_micros),
            }),
            did,
            deliveries,
            behind,
        })
    }

    fn deliveries_of(&self, did: &str) -> Result<Vec<AccountDelivery>, Failure> {
        let Some(outbox) = &self.readiness.outbox else { return Ok(Vec::new()) };
        let undelivered = outbox.undelivered_of(did, MAX_COUNTED_BYTES)?.into_iter();
        let delivery = undelivered.map(|of| AccountDelivery {
            destination: of.consumer,
            undelivered: of.events,
            oldest: of.oldest,
            complete: of.is_complete,
        });
        Ok(delivery.collect())
    }

    /// Whether all that is selected of an account was delivered; none without a history.
    fn is_complete(&self, did: &str) -> Result<Option<bool>, Failure> {
        let Some(outbox) = &self.readiness.outbox else { return Ok(None) };
        let histories = outbox.histories()?;
        let (is_complete, is_awaited) = (histories.is_complete(did)?, histories.is_awaited(did)?);
        Ok((is_complete || is_awaited).then_some(is_complete))
    }

    /// The collections of which all was delivered, while some are selected.
    fn complete_in(
        &self,
        did: &str,
        complete: Option<bool>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let (Some(outbox), Some(complete)) = (&self.readiness.outbox, complete) else {
            return Ok(None);
        };
        let Some((selection, _)) = StoredSelection::read(outbox)? else { return Ok(None) };
        let Some(collections) = selection.collections() else { return Ok(None) };
        let complete_in = match complete {
            true => collections,
            false if outbox.histories()?.is_widened(did)? => selection.base(),
            false => &[],
        };
        Ok(Some(complete_in.iter().map(CollectionPatternBuf::to_string).collect()))
    }

    /// Why an account is behind.
    fn reasons(
        &self,
        is_selected: bool,
        account: &AccountState,
        complete: Option<bool>,
        entry: &AccountEntry,
        deliveries: &[AccountDelivery],
    ) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut add = |reason, message| reasons.push(Reason { reason, message });
        if !is_selected {
            add(Behind::NotSelected, "the account is not selected".to_owned());
        }
        if let Some(obstacle) = self.readiness.obstacle() {
            add(Behind::NoIntake, format!("the run takes no events: {obstacle}"));
        }
        if !account.is_active {
            add(
                Behind::Inactive,
                "the stream calls the account inactive: its events are ignored".to_owned(),
            );
        }
        if account.sync != SyncState::Synchronized {
            let why = entry.failure.as_ref().map(|why| format!(": the last attempt failed: {why}"));
            let why = why.unwrap_or_default();
            add(
                Behind::Desynchronized,
                format!("events are missing, and the repository is awaited{why}"),
            );
        }
        if let Some(how) = &entry.going_back {
            add(Behind::Revisions, how.clone());
        }
        if complete == Some(false) {
            add(Behind::History, "its repository is awaited for the selected records".to_owned());
        }
        if let Some(event) = entry.event.filter(|event| is_refused(event.code)) {
            add(Behind::Refused, format!("its last event is not verified: {}", event.code));
        }
        for of in deliveries.iter().filter(|of| of.undelivered > 0) {
            let (name, count) = (&of.destination, of.undelivered);
            add(Behind::Undelivered, format!("{count} events are not acknowledged by {name}"));
        }
        reasons
    }
}

fn outbox_state(outbox: &Outbox) -> OutboxState {
    let state = outbox.status();
    OutboxState {
        events: state.events,
        bytes: state.bytes,
        oldest_seconds: state.age.as_secs_f64(),
    }
}

fn state_name(account: &AccountState) -> &'static str {
    match (account.sync, account.head) {
        (SyncState::Synchronized, None) => "unknown",
        (SyncState::Synchronized, Some(_)) => "synchronized",
        _ => "desynchronized",
    }
}

/// Whether an event with this code is not verified although it should be.
fn is_refused(event_code: &str) -> bool {
    !matches!(event_code, "verified" | "unchecked" | "not-asked")
        && !event_code.starts_with("verified/")
}

/// Number of accounts of a page.
const PAGE_ACCOUNTS: usize = 1000;

/// Size of the stored events that are read to count the events of an account, in bytes.
const MAX_COUNTED_BYTES: u64 = 64 << 20;
