//! The model of the follower: its permitted reactions to every event, by the truth about the events.
//!
//! It shares no code with the follower. Of every account it keeps the state that the follower needs (head, status,
//! whether commits are missing, key), of every host the events that arrived. It receives everything that can
//! be observed from outside: arrivals, deliveries, acknowledgements, answers of lookups, checkpoints. A broken
//! rule is kept as the violation of the schedule.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use atproto::syntax::Tid;
use bytes::Bytes;
use codec::Cid;
use tokio::time::Instant;
use verify::sync::{AccountState, SyncState};

use super::world::{Content, Fault, KeyNumber, SimEvent};

/// Revision, tree and commit.
pub(super) type Head = (Tid, Cid, Cid);

/// The follower's knowledge of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) head: Option<Head>,
    pub(super) is_synchronized: bool,
    pub(super) is_active: bool,
}

impl Known {
    pub(super) const NOTHING: Self = Self { head: None, is_synchronized: true, is_active: true };

    pub(super) fn of(state: &AccountState) -> Self {
        Self {
            head: state.head.map(|head| (head.rev, head.data, head.commit)),
            is_synchronized: state.sync == SyncState::Synchronized,
            is_active: state.is_active,
        }
    }
}

/// The answer of a key lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Number(KeyNumber),
    OtherHost,
}

/// The code of an event, and the follower's knowledge of its account after it.
pub(super) fn judge(
    before: Known,
    content: &Content,
    key: Option<Key>,
    checks_host: bool,
) -> (&'static str, Known) {
    let refuse = |code| (code, before);
    let (signed, is_sync) = match content {
        Content::Garbage => return refuse("frame/cbor"),
        Content::Info => return refuse("unchecked"),
        Content::Identity | Content::Account { .. } if checks_host && key.is_none() => {
            return refuse("signature/no-key");
        }
        Content::Identity | Content::Account { .. } if key == Some(Key::OtherHost) => {
            return refuse("event/host");
        }
        Content::Identity => return refuse("unchecked"),
        Content::Account { is_active } => {
            let is_known = before.head.is_some() || !before.is_synchronized;
            let is_doubtful = !before.is_active || !before.is_synchronized;
            let is_back = *is_active && is_known && is_doubtful;
            let is_active = *is_active || before.head.is_none();
            let is_synchronized = before.is_synchronized && !is_back;
            return ("unchecked", Known { is_active, is_synchronized, ..before });
        }
        Content::Commit(signed) => (signed, false),
        Content::Sync(signed) => (signed, true),
    };
    match (signed.fault, key) {
        (Some(Fault::Altered), _) => return refuse("car/hash"),
        (_, Some(Key::OtherHost)) => return refuse("event/host"),
        _ if !before.is_active => return refuse("event/inactive"),
        _ if before.head.is_some_and(|(rev, ..)| signed.rev <= rev) => {
            return refuse("event/stale-rev");
        }
        (Some(Fault::OtherAccount), _) => return refuse("event/did-mismatch"),
        (Some(Fault::TooBig), _) => return refuse("event/too-big"),
        (_, None) => return refuse("signature/no-key"),
        (_, Some(Key::Number(number))) if number != signed.signer => {
            return refuse("signature/wrong");
        }
        (Some(Fault::MissingOp | Fault::PrevData), _) => return refuse("event/inversion"),
        _ => {}
    }
    if !is_sync && signed.prev_data.is_none() && (signed.since.is_some() || before.head.is_some()) {
        return refuse("event/prev-data-missing");
    }
    let is_broken = match (before.head, is_sync) {
        (None, true) => !before.is_synchronized,
        (None, false) => false,
        (Some((_, data, _)), true) => data != signed.data,
        (Some((rev, data, _)), false) => {
            signed.since != Some(rev) || signed.prev_data.is_some_and(|prev| prev != data)
        }
    };
    let code = match (is_broken, before.is_synchronized || is_sync) {
        (true, _) => "verified/broken",
        (false, true) => "verified",
        (false, false) => "verified/unmended",
    };
    let is_synchronized = before.is_synchronized && !is_broken;
    (
        code,
        Known { head: Some((signed.rev, signed.data, signed.commit)), is_synchronized, ..before },
    )
}

/// An event that the follower delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery<'a> {
    pub(super) host: usize,
    pub(super) seq: Option<u64>,
    pub(super) frame: &'a Bytes,
    pub(super) code: &'static str,
    /// For an event without a key: whether the key may be found later.
    pub(super) is_unavailable: bool,
    /// Whether a limit on the wait was reached.
    pub(super) is_limit: bool,
    /// The key in the cache of the provider.
    pub(super) cached: Option<Key>,
}

/// The number of a delivery that can be acknowledged.
pub(super) type DeliveryNumber = u64;

/// The model.
#[derive(Debug)]
pub(super) struct Model {
    accounts: Vec<Account>,
    hosts: Vec<Host>,
    checks_host: bool,
    /// Counts everything that happens.
    clock: u64,
    /// Rejections that stand only if a later event of the batch is verified.
    suspects: Vec<Suspect>,
    /// Events without account.
    others: VecDeque<Arrival>,
    /// The steps, for the report of a violation.
    trace: Vec<String>,
    violation: Option<String>,
}

#[derive(Debug)]
struct Account {
    known: Known,
    /// The key that was looked up since the last `#identity`.
    key: Option<Key>,
    /// The answer about the status, until this time.
    status: Option<(bool, Instant)>,
    is_confirming: bool,
    /// Whether the follower stopped waiting before the server was asked.
    has_stopped_waiting: bool,
    /// When a lookup that replaces a cached key ended, and one that found none.
    refreshed: u64,
    not_found: u64,
    unavailable: u64,
    arrivals: VecDeque<Arrival>,
    /// The states of this run, every one after a delivery.
    history: Vec<Entry>,
    journaled_at_start: Known,
    journaled: Known,
}

/// A rejection for the key without a lookup.
#[derive(Debug)]
struct Suspect {
    account: usize,
    /// The keys that the follower may have used.
    keys: [Option<Key>; 2],
    what: String,
}

#[derive(Debug)]
struct Entry {
    known: Known,
    number: DeliveryNumber,
    is_acked: bool,
    /// Host and sequence number of the event.
    event: Option<(usize, u64)>,
}

/// The basis of a stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    /// Acknowledged events.
    Events,
    /// These, and the answer that the account is active.
    Answer,
}

#[derive(Clone, Debug)]
struct Arrival {
    event: SimEvent,
    host: usize,
    at: u64,
}

#[derive(Debug, Default)]
struct Host {
    /// Frames on their way.
    sent: VecDeque<SimEvent>,
    seen: HashSet<(u64, Bytes)>,
    last: Option<u64>,
    has_seen: bool,
    /// The events that arrived in this run.
    arrived: Vec<Arrived>,
    /// Sequence numbers of acknowledged events, of all runs.
    acked: HashSet<u64>,
    /// The lowest cursor that a run began with.
    began: Option<u64>,
    cursor: Option<u64>,
}

#[derive(Debug)]
struct Arrived {
    seq: u64,
    /// Its delivery, if it was delivered.
    number: Option<DeliveryNumber>,
    is_acked: bool,
}

impl Model {
    pub(super) fn new(accounts: usize, hosts: usize, checks_host: bool) -> Self {
        let account = |_| Account {
            known: Known::NOTHING,
            key: None,
            status: None,
            is_confirming: false,
            has_stopped_waiting: false,
            refreshed: 0,
            not_found: 0,
            unavailable: 0,
            arrivals: VecDeque::new(),
            history: Vec::new(),
            journaled_at_start: Known::NOTHING,
            journaled: Known::NOTHING,
        };
        Self {
            accounts: (0..accounts).map(account).collect(),
            hosts: (0..hosts).map(|_| Host::default()).collect(),
            checks_host,
            clock: 1,
            suspects: Vec::new(),
            others: VecDeque::new(),
            trace: Vec::new(),
            violation: None,
        }
    }

    /// The first rule that was broken.
    pub(super) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    pub(super) fn violate(&mut self, what: impl Into<String>) {
        let trace = &self.trace[self.trace.len().saturating_sub(MAX_TRACE)..];
        self.violation
            .get_or_insert_with(|| format!("{}\nafter:\n  {}", what.into(), trace.join("\n  ")));
    }

    /// The steps so far.
    pub(super) fn take_trace(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }

    /// Notes a step, for the report of a violation.
    pub(super) fn note(&mut self, what: impl Into<String>) {
        self.trace.push(what.into());
    }

    /// Whether everything that arrived was delivered.
    pub(super) fn is_quiet(&self) -> bool {
        let is_sent = self.hosts.iter().all(|host| host.sent.is_empty());
        is_sent && self.others.is_empty() && self.accounts.iter().all(|of| of.arrivals.is_empty())
    }

    // A run begins.

    /// A run begins from the journal.
    pub(super) fn begin(&mut self) {
        self.note("a run begins");
        for account in &mut self.accounts {
            (account.known, account.journaled_at_start) = (account.journaled, account.journaled);
            (account.key, account.status) = (None, None);
            (account.is_confirming, account.has_stopped_waiting) = (false, false);
            account.arrivals.clear();
            account.history.clear();
        }
        for host in &mut self.hosts {
            host.sent.clear();
            host.seen.clear();
            host.arrived.clear();
            (host.last, host.has_seen) = (host.cursor, false);
        }
        self.others.clear();
        self.suspects.clear();
    }

    // Arrivals.

    /// A host sent a frame, which the feed has not handled yet.
    pub(super) fn sent(&mut self, host: usize, event: &SimEvent) {
        let of = &mut self.hosts[host];
        let Some(seq) = event.seq else { return of.sent.push_back(event.clone()) };
        let is_repeated = match of.last {
            Some(last) if seq <= last => {
                of.seen.contains(&(seq, event.frame.clone())) || (!of.has_seen && seq == last)
            }
            _ => false,
        };
        of.last = Some(seq);
        if !is_repeated {
            of.has_seen = true;
            of.seen.insert((seq, event.frame.clone()));
            of.sent.push_back(event.clone());
        }
    }

    /// The feed passed a frame on.
    pub(super) fn arrived(&mut self, host: usize, frame: &Bytes) {
        self.clock += 1;
        let Some(event) = self.hosts[host].sent.pop_front() else {
            return self.violate("an event arrived that was not sent, or twice");
        };
        self.note(format!("host {host}: {:?} arrived", event.seq));
        if event.frame != *frame {
            return self.violate("an event arrived in place of another");
        }
        if let Some(seq) = event.seq {
            self.hosts[host].arrived.push(Arrived { seq, number: None, is_acked: false });
            self.hosts[host].began.get_or_insert(seq - 1);
        }
        let arrivals = match event.account {
            Some(account) => &mut self.accounts[account].arrivals,
            None => &mut self.others,
        };
        arrivals.push_back(Arrival { event, host, at: self.clock });
    }

    // Deliveries.

    /// An event was delivered. Its number, for the acknowledgement.
    pub(super) fn delivered(
        &mut self,
        account: Option<usize>,
        delivery: Delivery<'_>,
    ) -> DeliveryNumber {
        self.clock += 1;
        let number = self.clock;
        let Delivery { host, seq, code, .. } = delivery;
        self.note(format!(
            "host {host}: {seq:?} of {account:?} delivered as {code}, number {number}"
        ));
        let arrivals = match account {
            Some(account) => &mut self.accounts[account].arrivals,
            None => &mut self.others,
        };
        let Some(arrival) = arrivals.pop_front() else {
            self.violate(format!("an event was delivered that did not arrive: {delivery:?}"));
            return number;
        };
        if arrival.host != delivery.host || arrival.event.frame != *delivery.frame {
            self.violate(format!("out of order: {delivery:?} in place of {arrival:?}"));
        }
        if let Some(seq) = delivery.seq {
            let mut arrived = self.hosts[delivery.host].arrived.iter_mut();
            if let Some(of) = arrived.find(|of| of.seq == seq && of.number.is_none()) {
                of.number = Some(number);
            }
        }
        if let Some(account) = account {
            self.judge(account, &arrival, delivery, number);
        } else if judge(Known::NOTHING, &arrival.event.content, None, false).0 != delivery.code {
            self.violate(format!("the verdict is {}", delivery.code));
        }
        number
    }

    fn judge(
        &mut self,
        account: usize,
        arrival: &Arrival,
        delivery: Delivery<'_>,
        number: DeliveryNumber,
    ) {
        let content = &arrival.event.content;
        let of = &mut self.accounts[account];
        let keys = if of.key.is_some() { [of.key, delivery.cached] } else { [delivery.cached; 2] };
        if judge(of.known, content, keys[0], self.checks_host).0 == "event/inactive" {
            of.apply_status(number);
        }
        let allowed = keys.map(|key| judge(of.known, content, key, self.checks_host));
        let lacks_key = allowed.iter().all(|(code, _)| LACKS_KEY.contains(code));
        match allowed.iter().find(|(code, _)| *code == delivery.code) {
            Some((_, known)) => of.known = *known,
            None if delivery.is_unavailable && lacks_key => {}
            None => {
                let (known, code) = (of.known, delivery.code);
                let what = format!("{code}, not {} of {known:?} with {keys:?}", allowed[0].0);
                return self.violate(format!("account {account}: {what}: {arrival:?}"));
            }
        }
        of.known.is_synchronized &= !delivery.is_unavailable;
        of.record(number, delivery.seq.map(|seq| (delivery.host, seq)), false);
        self.check_lookups(account, arrival, delivery);
        if content == &Content::Identity && delivery.code == "unchecked" {
            self.accounts[account].key = None;
        }
    }

    /// A verdict that blames the key or the status follows an answer about it.
    fn check_lookups(&mut self, account: usize, arrival: &Arrival, delivery: Delivery<'_>) {
        let of = &self.accounts[account];
        let is_answered = match delivery.code {
            "event/inactive" => of.valid_status() == Some(false),
            _ if delivery.is_unavailable => delivery.is_limit || of.unavailable >= arrival.at,
            "signature/wrong" | "event/host" => of.refreshed >= arrival.at,
            "signature/no-key" => of.not_found >= arrival.at,
            _ => true,
        };
        if delivery.code.starts_with("verified") {
            self.suspects.retain(|suspect| suspect.account != account);
        }
        if !is_answered {
            let what = format!("{}, and no lookup ended since: {arrival:?}", delivery.code);
            self.suspects.push(Suspect { account, keys: [of.key, delivery.cached], what });
        }
    }

    /// A batch is delivered. A later event that was verified with the key can have been withheld, after a gap.
    pub(super) fn end_batch(&mut self) {
        let suspects = std::mem::take(&mut self.suspects);
        let is_wrong = |suspect: &Suspect| {
            let verifies = |key: &Option<Key>| self.verifies_later_event(suspect.account, *key);
            !suspect.keys.iter().any(verifies)
        };
        if let Some(Suspect { account, what, .. }) = suspects.into_iter().find(is_wrong) {
            self.violate(format!("account {account}: rejected as {what}"));
        }
    }

    /// Whether the key verifies an event of the account that has arrived and was not delivered.
    fn verifies_later_event(&self, account: usize, key: Option<Key>) -> bool {
        let of = &self.accounts[account];
        let mut known = of.known;
        of.arrivals.iter().any(|arrival| {
            let (code, after) = judge(known, &arrival.event.content, key, self.checks_host);
            known = after;
            code.starts_with("verified")
        })
    }

    /// A resynced repository was delivered.
    pub(super) fn resynced(
        &mut self,
        account: usize,
        head: Head,
        is_genuine: bool,
    ) -> DeliveryNumber {
        self.clock += 1;
        let number = self.clock;
        self.note(format!("{account} resynced at {head:?}, number {number}"));
        let of = &mut self.accounts[account];
        let is_older = of.known.head.is_some_and(|(known, ..)| head.0 < known);
        (of.known.head, of.known.is_synchronized) = (Some(head), true);
        of.record(number, None, false);
        if is_older {
            self.violate(format!(
                "account {account}: a repository older than the head was accepted"
            ));
        }
        if !is_genuine {
            self.violate(format!("account {account}: a forged repository was accepted"));
        }
        number
    }

    /// A resync failed: the consumer's copy of a known account is not its repository.
    pub(super) fn resync_failed(&mut self, account: usize) {
        self.clock += 1;
        let (of, number) = (&mut self.accounts[account], self.clock);
        of.known.is_synchronized &= of.known.head.is_none();
        of.record(number, None, true);
    }

    /// The handler acknowledged a delivery.
    pub(super) fn acked(&mut self, number: DeliveryNumber) {
        self.note(format!("number {number} acknowledged"));
        let entries = self.accounts.iter_mut().flat_map(|account| &mut account.history);
        entries.filter(|entry| entry.number == number).for_each(|entry| entry.is_acked = true);
        for host in &mut self.hosts {
            for of in host.arrived.iter_mut().filter(|of| of.number == Some(number)) {
                of.is_acked = true;
                host.acked.insert(of.seq);
            }
        }
    }

    // Answers.

    /// A key lookup ended: `Ok`, or whether the key may be found later.
    pub(super) fn key_answered(
        &mut self,
        account: usize,
        answer: Result<Key, bool>,
        is_refresh: bool,
    ) {
        self.clock += 1;
        self.note(format!("key of {account}: {answer:?}, refresh: {is_refresh}"));
        let of = &mut self.accounts[account];
        match answer {
            Ok(key) => of.key = Some(key),
            Err(true) => of.unavailable = self.clock,
            Err(false) => of.not_found = self.clock,
        }
        if is_refresh && answer != Err(true) {
            of.refreshed = self.clock;
        }
    }

    /// The server of an account is asked whether the account is active.
    pub(super) fn status_asked(&mut self, account: usize) {
        let of = &mut self.accounts[account];
        of.is_confirming |= !std::mem::take(&mut of.has_stopped_waiting);
    }

    /// It answered; or it did not, and the account counts as active.
    pub(super) fn status_answered(&mut self, account: usize, answer: Option<bool>) {
        self.clock += 1;
        self.note(format!("status of {account}: {answer:?}"));
        let (of, number) = (&mut self.accounts[account], self.clock);
        if !std::mem::take(&mut of.is_confirming) {
            match answer {
                Some(_) => return,
                None => of.has_stopped_waiting = true,
            }
        }
        let is_active = answer.unwrap_or(true);
        let validity = if is_active { ACTIVE_VALIDITY } else { INACTIVE_VALIDITY };
        of.status = Some((is_active, Instant::now() + validity));
        of.known.is_active = is_active;
        of.known.is_synchronized &= !is_active;
        of.record(number, None, true);
    }

    // Checkpoints.

    /// The journal was given a checkpoint, which it stores if `is_stored`.
    pub(super) fn checkpoint(
        &mut self,
        cursors: &BTreeMap<usize, u64>,
        accounts: &[(usize, Known)],
        is_stored: bool,
    ) {
        if !cursors.is_empty() || !accounts.is_empty() || !is_stored {
            self.note(format!("checkpoint: {cursors:?}, {accounts:?}, stored: {is_stored}"));
        }
        for (host, cursor) in cursors {
            if let Some(Arrived { seq, .. }) = self.hosts[*host].open_before(*cursor) {
                let what = format!("host {host}: the cursor {cursor} is past the open event {seq}");
                return self.violate(what);
            }
        }
        for (account, known) in accounts {
            match self.check_stored(*account, known, cursors) {
                Ok(Basis::Events) => {}
                // It stays active, even if the event is then rejected for another reason.
                Ok(Basis::Answer) => self.accounts[*account].apply_status(self.clock),
                Err(what) => return self.violate(what),
            }
        }
        self.check_unstored(cursors, accounts);
        if is_stored {
            cursors.iter().for_each(|(host, cursor)| self.hosts[*host].cursor = Some(*cursor));
            accounts.iter().for_each(|(account, known)| self.accounts[*account].journaled = *known);
        }
    }

    /// A stored state follows from acknowledged events, and from all that the cursors cover.
    fn check_stored(
        &self,
        account: usize,
        known: &Known,
        cursors: &BTreeMap<usize, u64>,
    ) -> Result<Basis, String> {
        let of = &self.accounts[account];
        let newest = of.history.iter().take_while(|entry| entry.is_acked).count();
        let oldest = self.covered(account, cursors).min(newest);
        let covered = || of.states().take(newest + 1).skip(oldest);
        if covered().any(|state| state == known) {
            return Ok(Basis::Events);
        }
        // An answer that still holds makes the account active when its commit is judged.
        let is_by_answer =
            |state: &Known| Known { is_active: true, is_synchronized: false, ..*state } == *known;
        if of.valid_status() == Some(true) && covered().any(is_by_answer) {
            Ok(Basis::Answer)
        } else {
            Err(format!(
                "account {account}: the state {known:?} is stored, of {oldest} to {newest} of {:?}",
                of.history
            ))
        }
    }

    /// The states that are not stored with the checkpoint must not be behind its cursors.
    fn check_unstored(&mut self, cursors: &BTreeMap<usize, u64>, accounts: &[(usize, Known)]) {
        for account in 0..self.accounts.len() {
            let journaled = self.accounts[account].journaled;
            let is_stored = accounts.iter().any(|(stored, _)| *stored == account);
            if !is_stored && let Err(what) = self.check_stored(account, &journaled, cursors) {
                return self.violate(format!("unchanged: {what}"));
            }
        }
    }

    /// The number of an account's deliveries that the cursors cover.
    fn covered(&self, account: usize, cursors: &BTreeMap<usize, u64>) -> usize {
        let is_covered = |entry: &Entry| {
            let cursor = |(host, seq): (usize, u64)| {
                let cursor = cursors.get(&host).copied().or(self.hosts[host].cursor);
                cursor.is_some_and(|cursor| seq <= cursor)
            };
            entry.event.is_some_and(cursor)
        };
        let history = &self.accounts[account].history;
        history.iter().rposition(is_covered).map_or(0, |at| at + 1)
    }

    /// Every event of a stream up to the cursor is acknowledged.
    pub(super) fn check_loss(&mut self, host: usize, stream: &[SimEvent]) {
        let of = &self.hosts[host];
        let (Some(began), Some(cursor)) = (of.began, of.cursor) else { return };
        let is_lost = |event: &&SimEvent| {
            let covered = event.seq.is_some_and(|seq| seq > began && seq <= cursor);
            covered && !event.was_reordered && event.seq.is_some_and(|seq| !of.acked.contains(&seq))
        };
        if let Some(lost) = stream.iter().find(is_lost) {
            self.violate(format!("host {host}: lost at the cursor {cursor}: {lost:?}"));
        }
    }

    /// The cursor that the journal has.
    pub(super) fn cursor(&self, host: usize) -> Option<u64> {
        self.hosts[host].cursor
    }

    /// The state that the journal has.
    pub(super) fn journaled(&self, account: usize) -> Known {
        self.accounts[account].journaled
    }
}

impl Host {
    /// An event up to the cursor that is not acknowledged. One that goes back in the order may still wait for a
    /// permit.
    fn open_before(&self, cursor: u64) -> Option<&Arrived> {
        let highest = self.arrived.iter().map(|of| of.seq).chain(self.cursor).max();
        let waits = |at: usize, of: &Arrived| {
            at + 1 == self.arrived.len() && of.number.is_none() && Some(of.seq) <= highest
        };
        let mut numbered = self.arrived.iter().enumerate();
        let open = numbered.find(|(at, of)| of.seq <= cursor && !of.is_acked && !waits(*at, of));
        open.map(|(_, of)| of)
    }
}

impl Account {
    /// Whether the account is active by an answer that still holds.
    fn valid_status(&self) -> Option<bool> {
        let (is_active, until) = self.status?;
        (Instant::now() < until).then_some(is_active)
    }

    /// Makes an account active if a valid answer says that it is.
    fn apply_status(&mut self, number: DeliveryNumber) {
        if self.valid_status() == Some(true) {
            self.status = Some((true, Instant::now() + ACTIVE_VALIDITY));
            (self.known.is_active, self.known.is_synchronized) = (true, false);
            self.record(number, None, true);
        }
    }

    /// Records the state after a delivery, or after an answer, which is not acknowledged.
    fn record(&mut self, number: DeliveryNumber, event: Option<(usize, u64)>, is_acked: bool) {
        self.history.push(Entry { known: self.known, number, is_acked, event });
    }

    /// The states of this run: the journal's state at its start, and the state after every entry.
    fn states(&self) -> impl Iterator<Item = &Known> {
        std::iter::once(&self.journaled_at_start)
            .chain(self.history.iter().map(|entry| &entry.known))
    }
}

/// Verdicts that another key may change.
const LACKS_KEY: [&str; 3] = ["signature/wrong", "signature/no-key", "event/host"];

/// Number of notes in a report.
const MAX_TRACE: usize = 60;

/// How long the answer that an account is active holds, and that it is not.
const ACTIVE_VALIDITY: Duration = Duration::from_secs(60);
const INACTIVE_VALIDITY: Duration = Duration::from_secs(600);
