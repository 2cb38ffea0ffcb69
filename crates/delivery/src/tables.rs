//! The content of tables of records: how lines of `wireproof follow` change them, in any database.
//!
//! A sink reads the rows of the accounts that a batch names, applies the lines to them in memory, and writes the changed
//! rows:
//!
//! ```text
//! events ── ParsedEvent ──┬── rows of `event`
//!                         └── Changes::apply ──┬── rows of `account`
//!              rows of `account` ──┘           └── steps: rows of `record`, once each, then deletions
//! ```
//!
//! Only verified events change records, and, where the operator asked for no verification, unverified ones. A payload
//! that is no line is refused, after the events before it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use atproto::syntax::CollectionPattern;
use events::{
    AccountClaims, Action, Body, Claims, Code, Json, Kind, Line, LineError, NostrEvent, Op, Resync,
    Text,
};

use crate::event::Event;
use crate::sink::SendFailure;

/// The kind of events in an outbox, which decides the tables that hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableContent {
    /// Lines of `wireproof follow`: records, accounts, and the last events.
    #[default]
    Records,
    /// Nostr events as JSON, as `wireproof nostr follow --to` delivers them: a row an event, once.
    NostrEvents,
    /// Lines of `wireproof labels follow --to`: the last label of every source, subject and value.
    Labels,
}

impl TableContent {
    /// How new tables get the content of earlier ones.
    pub(crate) fn fix(self) -> &'static str {
        match self {
            Self::Records => "fetch the history of the accounts (`follow --backfill`)",
            Self::NostrEvents => "follow the relays from the start, with another --state",
            Self::Labels => "follow the labelers from the start, with another --state",
        }
    }
}

/// An event and its line.
#[derive(Debug)]
pub(crate) struct ParsedEvent<'e> {
    pub(crate) event: &'e Event,
    pub(crate) line: Line<'e>,
}

impl ParsedEvent<'_> {
    /// The line as text; `None` for one of a repository: its records are in `record`, and may be many.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        let is_kept = self.line.kind() != Kind::Resync;
        is_kept.then(|| String::from_utf8_lossy(self.event.payload()))
    }
}

/// The parsed events of a batch up to the first malformed one, and the reason for refusing that one.
#[derive(Debug)]
pub(crate) struct ParsedBatch<T> {
    pub(crate) events: Vec<T>,
    pub(crate) malformed: Option<MalformedEvent>,
}

/// An event whose payload is malformed.
#[derive(Debug)]
pub(crate) struct MalformedEvent {
    position: u64,
    failure: SendFailure,
}

impl MalformedEvent {
    /// The refusal of the event, once the events of the batch before it are accepted.
    pub(crate) fn after(self, batch: &[Event]) -> SendFailure {
        let before = batch.iter().map(Event::position).take_while(|of| *of < self.position);
        SendFailure { accepted: before.collect(), ..self.failure }
    }
}

/// Reads the lines of events.
pub(crate) fn parse_lines(events: &[Event]) -> ParsedBatch<ParsedEvent<'_>> {
    let parse = |event| Ok(ParsedEvent { event, line: Line::parse(event.payload())? });
    parse_batch(events, parse)
}

/// Reads Nostr events.
pub(crate) fn parse_nostr_events(events: &[Event]) -> ParsedBatch<NostrEvent<'_>> {
    parse_batch(events, |event| NostrEvent::parse(event.payload()))
}

pub(crate) fn parse_batch<'e, T>(
    events: &'e [Event],
    parse: impl Fn(&'e Event) -> Result<T, LineError>,
) -> ParsedBatch<T> {
    let mut batch = ParsedBatch { events: Vec::with_capacity(events.len()), malformed: None };
    for event in events {
        match parse(event) {
            Ok(parsed) => batch.events.push(parsed),
            Err(error) => {
                let failure = SendFailure::malformed(event.id(), &error);
                batch.malformed = Some(MalformedEvent { position: event.position(), failure });
                break;
            }
        }
    }
    batch
}

/// A row of `account`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) rev: Option<String>,
    pub(crate) claimed_handle: Option<String>,
    pub(crate) active: bool,
    pub(crate) status: Option<String>,
    pub(crate) complete: bool,
    /// The collections in which the records are complete, whatever else is selected; `None` for all.
    pub(crate) complete_in: Option<Vec<String>>,
    /// Number of repositories of the account that have begun.
    pub(crate) generation: i64,
    /// The number of the next piece of its repository, while one arrives without a gap.
    pub(crate) next_piece: Option<i64>,
}

impl Account {
    const NEW: Self = Self {
        rev: None,
        claimed_handle: None,
        active: true,
        status: None,
        complete: false,
        complete_in: Some(Vec::new()),
        generation: 0,
        next_piece: None,
    };
}

impl Account {
    fn set_incomplete(&mut self) {
        (self.complete, self.complete_in) = (false, Some(Vec::new()));
    }

    fn keep_complete_if(&mut self, is_kept: bool) {
        if !is_kept {
            self.set_incomplete();
        }
    }

    /// Applies the end of a repository, or of the part that has some collections.
    fn end_repository(&mut self, resync: &Resync<'_>) {
        if self.generation == 0 {
            // A difference alone is no repository.
            return self.set_incomplete();
        }
        let Some(claimed) = resync.complete.as_ref().or(resync.collections.as_ref()) else {
            (self.complete, self.complete_in) = (true, None);
            return;
        };
        // The part says nothing of other collections: they are as complete as they were.
        let proved = resync.collections.as_ref().unwrap_or(claimed);
        let complete_in = self.complete_among(claimed, proved);
        self.complete = complete_in.len() == claimed.len();
        self.complete_in = Some(complete_in);
    }

    /// The collections of `names` that are proved, or were complete before.
    fn complete_among(&self, names: &[Text<'_>], proved: &[Text<'_>]) -> Vec<String> {
        let is_complete = |name: &&Text<'_>| {
            let is_within = |outer: &str| is_within(name, outer);
            let before = self.complete_in.as_ref();
            proved.iter().any(|outer| is_within(outer))
                || before.is_none_or(|before| before.iter().any(|outer| is_within(outer)))
        };
        names.iter().filter(is_complete).map(|name| name.to_string()).collect()
    }
}

/// Whether `outer` has all of `name`: each is a collection, or all below a name, as `app.bsky.feed.*`.
fn is_within(name: &str, outer: &str) -> bool {
    let pattern = |text| CollectionPattern::parse(text).ok();
    pattern(outer).zip(pattern(name)).is_some_and(|(outer, name)| outer.includes(name))
}

/// Where a record is: DID, collection, record key.
pub(crate) type RecordPath<'l> = (&'l str, &'l str, &'l str);

/// The change of a row of `record`.
#[derive(Debug)]
pub(crate) enum RecordChange<'l> {
    Put(RecordRow<'l>),
    Delete,
}

/// A row of `record`, without its path.
#[derive(Debug)]
pub(crate) struct RecordRow<'l> {
    pub(crate) cid: Option<&'l str>,
    pub(crate) rev: &'l str,
    pub(crate) live: bool,
    pub(crate) record: Option<&'l str>,
    pub(crate) invalid: Option<&'l str>,
    pub(crate) generation: i64,
    /// Whether the record had another content, or was deleted, earlier in the step. A record that has not changed keeps
    /// `rev` and `live` of the event that brought it.
    pub(crate) is_replaced: bool,
}

/// Changes that may be written together: the records, then the deletions.
#[derive(Debug, Default)]
pub(crate) struct Step<'l> {
    pub(crate) records: BTreeMap<RecordPath<'l>, RecordChange<'l>>,
    /// The accounts whose records of an earlier generation than this one are deleted.
    pub(crate) outdated: BTreeMap<&'l str, i64>,
}

/// The changes of the lines of a batch.
#[derive(Debug)]
pub(crate) struct Changes<'l> {
    accounts: HashMap<&'l str, Account>,
    changed: BTreeSet<&'l str>,
    steps: Vec<Step<'l>>,
}

/// The accounts that events name, without repetitions.
pub(crate) fn dids<'l>(events: &'l [ParsedEvent<'_>]) -> Vec<&'l str> {
    let mut dids: Vec<&str> = events.iter().map(|event| event.line.did()).collect();
    dids.sort_unstable();
    dids.dedup();
    dids
}

impl<'l> Changes<'l> {
    /// No changes yet; `accounts` has the rows of all accounts that the lines will name, if there are such rows.
    pub(crate) fn new(accounts: HashMap<&'l str, Account>) -> Self {
        Self { accounts, changed: BTreeSet::new(), steps: Vec::new() }
    }

    /// The rows of `account` that are new or have changed.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (&'l str, &Account)> {
        self.changed.iter().filter_map(|did| Some((*did, self.accounts.get(did)?)))
    }

    /// The changes of `record`, in their order.
    pub(crate) fn steps(&self) -> &[Step<'l>] {
        &self.steps
    }

    /// Number of rows of `record` that are written or deleted by their path.
    pub(crate) fn rows(&self) -> u64 {
        self.steps.iter().map(|step| step.records.len() as u64).sum()
    }

    /// Applies a line.
    pub(crate) fn apply(&mut self, line: &'l Line<'_>) {
        let did = line.did();
        match &line.body {
            Body::Event(event) => match &event.claims {
                Claims::Commit(Some(commit)) if line.has_operations() => {
                    let ops = event.ops.as_deref().unwrap_or_default();
                    self.apply_commit(line, &commit.rev, ops);
                }
                Claims::Sync(_) if line.is_verified() && line.code == Code::VerifiedBroken => {
                    self.change(did, Account::set_incomplete);
                }
                Claims::Identity(Some(identity)) if line.is_claim() => {
                    let handle = identity.handle.as_deref().map(str::to_owned);
                    self.change(did, |account| account.claimed_handle = handle);
                }
                Claims::Account(Some(claims)) if line.is_claim() => self.apply_claims(did, claims),
                _ => {}
            },
            Body::Resync(resync) if line.is_verified() => self.apply_piece(line, resync),
            Body::Status(status) if line.code == Code::StatusConfirmed => {
                self.apply_status(did, status.status.as_deref());
            }
            Body::History { complete, .. } => self.change(did, |account| {
                account.complete &= line.code == Code::HistoryNarrowed;
                let complete = complete.as_deref().unwrap_or_default();
                account.complete_in = Some(account.complete_among(complete, &[]));
            }),
            _ => {}
        }
    }

    /// Applies the operations of a commit, unless the tables have it or a later one: a stream that is read again from
    /// an older cursor must not bring back records that were deleted since.
    fn apply_commit(&mut self, line: &'l Line<'_>, rev: &'l str, ops: &'l [Op<'_>]) {
        let known = self.accounts.get(line.did());
        let generation = known.map_or(0, |account| account.generation);
        if known.and_then(|account| account.rev.as_deref()).is_some_and(|known| known >= rev) {
            return;
        }
        self.apply_ops(line, rev, ops, generation);
        // After a gap, or before the repository was fetched, records are missing.
        let is_continued = line.code == Code::Verified;
        self.change_or_insert(line.did(), |account| {
            account.rev = Some(rev.to_owned());
            (account.active, account.status) = (true, None);
            account.keep_complete_if(is_continued);
        });
    }

    /// Applies the claims of a host about an account.
    fn apply_claims(&mut self, did: &'l str, claims: &AccountClaims<'_>) {
        self.change(did, |account| {
            let was_whole = account.active && account.status.is_none();
            account.active = claims.active;
            account.status = claims.status.as_deref().map(str::to_owned);
            // The account's changes in the meantime are missing until its repository is fetched again.
            let is_whole = was_whole && account.status.is_none();
            account.keep_complete_if(is_whole || !account.active);
        });
    }

    /// Applies a status that the account's own server has confirmed, unless the account has become active since. The
    /// records of a deleted account are deleted.
    fn apply_status(&mut self, did: &'l str, status: Option<&str>) {
        if self.accounts.get(did).is_none_or(|account| account.active) {
            return;
        }
        let is_deleted = status == Some("deleted");
        if is_deleted {
            self.delete_older(did, i64::MAX);
        }
        self.change(did, |account| {
            account.status = status.map(str::to_owned);
            account.keep_complete_if(!is_deleted);
        });
    }

    /// Applies a piece of a repository, or of its difference to the lines before. With the last one of an unbroken row of
    /// pieces of a whole repository, the records that were in none of them are deleted. Until then the account is not
    /// complete.
    fn apply_piece(&mut self, line: &'l Line<'_>, resync: &'l Resync<'_>) {
        let (did, whole) = (&*resync.did, resync.whole);
        let piece = i64::try_from(resync.piece).unwrap_or(i64::MAX);
        if piece == 0 {
            self.change_or_insert(did, |account| {
                (account.active, account.status, account.complete) = (true, None, false);
                if whole {
                    account.set_incomplete();
                    account.generation += 1;
                }
                account.next_piece = Some(0);
            });
        }
        let Some(account) = self.accounts.get(did) else { return };
        let generation = account.generation;
        let is_next = account.next_piece == Some(piece);
        let is_end = resync.last && is_next;
        self.apply_ops(line, &resync.rev, &resync.ops, generation);
        if is_end && whole {
            self.delete_older(did, generation);
        }
        self.change(did, |account| {
            account.next_piece = (is_next && !is_end).then(|| piece.saturating_add(1));
            if is_end {
                account.rev = Some(resync.rev.to_string());
                account.end_repository(resync);
            }
        });
    }

    fn apply_ops(&mut self, line: &'l Line<'_>, rev: &'l str, ops: &'l [Op<'_>], generation: i64) {
        for op in ops {
            let row = RecordRow {
                cid: op.cid.as_deref(),
                rev,
                live: line.is_live(),
                record: op.record().map(Json::get),
                invalid: op.invalid().map(Json::get),
                generation,
                is_replaced: false,
            };
            self.apply_op(line.did(), op, row);
        }
    }

    fn apply_op(&mut self, did: &'l str, op: &'l Op<'_>, mut row: RecordRow<'l>) {
        let records = &mut self.step_before_deletions(did).records;
        let path = (did, &*op.collection, &*op.rkey);
        if op.action == Action::Delete {
            records.insert(path, RecordChange::Delete);
            return;
        }
        match records.get(&path) {
            Some(RecordChange::Put(before)) if before.cid == row.cid => {
                (row.rev, row.live, row.is_replaced) =
                    (before.rev, before.live, before.is_replaced);
            }
            Some(_) => row.is_replaced = true,
            None => {}
        }
        records.insert(path, RecordChange::Put(row));
    }

    /// The last step, or a new one if it deletes records of the account.
    fn step_before_deletions(&mut self, did: &str) -> &mut Step<'l> {
        if self.steps.last().is_none_or(|step| step.outdated.contains_key(did)) {
            self.steps.push(Step::default());
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    fn delete_older(&mut self, did: &'l str, generation: i64) {
        self.step_before_deletions(did).outdated.insert(did, generation);
    }

    /// Changes the row of an account, if there is one.
    fn change(&mut self, did: &'l str, change: impl FnOnce(&mut Account)) {
        if let Some(account) = self.accounts.get_mut(did) {
            change(account);
            self.changed.insert(did);
        }
    }

    fn change_or_insert(&mut self, did: &'l str, change: impl FnOnce(&mut Account)) {
        change(self.accounts.entry(did).or_insert(Account::NEW));
        self.changed.insert(did);
    }
}
