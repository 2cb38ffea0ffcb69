//! The state that all servers share: accounts, event logs, faults and traffic counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use super::account_index::{AccountIndex, AccountSlot, ListedAccount};
use super::altered_event;
use super::event::NetworkEvent;
use super::event_log::{EventLog, LogEntry, Numbering};
use super::fault::{Faults, UNPOISONED};
use super::host_condition::HostCondition;
use super::hosted_account::{DerivedAccount, GuestAccount, HomePds, HostedAccount};
use super::jetstream::JetstreamState;
use super::plc_export::ExportLog;
use super::request_limits::RequestLimits;
use super::spec::{RepositorySizes, Server, Spec};
use super::traffic::Traffic;
use crate::random::{Random, Seed};
use crate::time::START_MICROS;

/// The state of the network.
#[derive(Debug)]
pub(super) struct NetworkState {
    pub(super) spec: Spec,
    pub(super) addresses: Addresses,
    pub(super) faults: Faults,
    pub(super) traffic: Traffic,
    /// The conditions of the PDSs.
    pub(super) conditions: Vec<HostCondition>,
    pub(super) request_limits: RequestLimits,
    /// The order of the operations in the directory.
    pub(super) export: Mutex<ExportLog>,
    /// The number of attacks so far.
    pub(super) attack_rounds: AtomicU64,
    accounts: RwLock<AccountIndex>,
    guests: RwLock<HashMap<String, GuestAccount>>,
    pds: Vec<EventLog>,
    relays: Vec<EventLog>,
    jetstreams: Vec<EventLog>,
    /// Held while events are published, so that all servers send them in one order.
    clock: Mutex<WriteClock>,
    /// How far the clocks are ahead of this machine's, in microseconds.
    skew: Arc<AtomicI64>,
    /// The dictionaries and hosted archives of the Jetstreams.
    pub(super) jetstream_state: JetstreamState,
}

/// The ports of the servers.
#[derive(Clone, Debug)]
pub(super) struct Addresses(pub(super) BTreeMap<Server, u16>);

impl Addresses {
    /// The host name and port of a server.
    pub(super) fn host(&self, server: Server) -> String {
        format!("localhost:{}", self.0[&server])
    }

    /// The URL of a server, without a trailing slash.
    pub(super) fn url(&self, server: Server) -> String {
        format!("http://{}", self.host(server))
    }
}

/// The simulated time of writes.
#[derive(Debug)]
struct WriteClock {
    random: Random,
    micros: u64,
    /// If set, the time is at least this machine's plus this, in microseconds.
    skew: Option<Arc<AtomicI64>>,
}

/// A commit to be written.
#[derive(Clone, Copy, Debug)]
struct ScheduledWrite {
    account: usize,
    micros: u64,
}

impl NetworkState {
    /// The network with its initial accounts and commits.
    pub(super) fn new(spec: Spec, addresses: Addresses) -> Self {
        let retained = spec.retained_events.max(spec.initial_commits);
        let numbered = |server: Server| Seed::new(spec.seed, &format!("numbers of {server}"));
        let log = |server: Server| {
            let random = numbered(server).stream(0);
            match server {
                Server::Pds(_) | Server::Plc => EventLog::new(0, Numbering::Consecutive, retained),
                Server::Relay(number) => {
                    let before = FIRST_RELAY_SEQ + number as i64 * RELAY_SEQ_STEP;
                    EventLog::new(before, Numbering::Gaps(random.into()), retained)
                }
                Server::Jetstream(_) => EventLog::new(0, Numbering::PerJetstreamEvent, retained),
            }
        };
        let skew = spec.clock_skew.unwrap_or_default().as_micros() as i64;
        let skew = Arc::new(AtomicI64::new(skew));
        let clock = WriteClock {
            random: Seed::new(spec.seed, "pace").stream(0),
            micros: START_MICROS,
            skew: spec.clock_skew.map(|_| skew.clone()),
        };
        let conditions = HostCondition::all_of(&spec);
        let network = Self {
            pds: (0..spec.pds).map(|number| log(Server::Pds(number))).collect(),
            relays: (0..spec.relays).map(|number| log(Server::Relay(number))).collect(),
            jetstreams: (0..spec.jetstreams).map(|n| log(Server::Jetstream(n))).collect(),
            faults: Faults::new(spec.seed),
            traffic: Traffic::default(),
            request_limits: RequestLimits::new(&spec, &conditions),
            conditions,
            export: Mutex::default(),
            attack_rounds: AtomicU64::new(0),
            accounts: RwLock::default(),
            guests: RwLock::default(),
            clock: Mutex::new(clock),
            skew,
            jetstream_state: JetstreamState::default(),
            addresses,
            spec,
        };
        network.populate();
        network
    }

    /// Adds the initial accounts and writes the initial commits.
    fn populate(&self) {
        let numbers: Vec<usize> = (0..self.spec.accounts).collect();
        let slots = parallel_map(&numbers, |number| self.initial_account(*number));
        let mut accounts = self.accounts.write().expect(UNPOISONED);
        for (slot, handle) in slots {
            accounts.insert(slot, &handle);
        }
        drop(accounts);
        self.write_initial(self.spec.initial_commits);
    }

    /// An initial account, and its handle.
    fn initial_account(&self, number: usize) -> (AccountSlot, String) {
        match self.spec.sizes {
            RepositorySizes::Equal => {
                let account = self.create_account(number, START_MICROS).with_repository();
                let handle = account.handle.clone();
                (AccountSlot::Kept(Arc::new(Mutex::new(account))), handle)
            }
            RepositorySizes::Realistic => {
                let (records, host) = (self.spec.records_of(number), self.spec.home_of(number));
                let (derived, handle) = DerivedAccount::new(self.spec.seed, number, records, host);
                (AccountSlot::Derived(derived), handle)
            }
        }
    }

    fn create_account(&self, number: usize, micros: u64) -> HostedAccount {
        let host = self.spec.home_of(number);
        let endpoint = self.addresses.url(Server::Pds(host));
        let home = HomePds { number: host, endpoint: &endpoint };
        let records = self.spec.records_of(number);
        HostedAccount::new(self.spec.seed, number, records, micros, home)
    }

    /// Writes and publishes `count` commits, on all cores: accounts are independent of each other.
    fn write_initial(&self, count: usize) {
        let mut clock = self.clock.lock().expect(UNPOISONED);
        let writes: Vec<ScheduledWrite> =
            (0..count).map_while(|_| self.next_write(&mut clock)).collect();
        let mut by_account: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
        for (at, write) in writes.iter().enumerate() {
            by_account.entry(write.account).or_default().push((at, write.micros));
        }
        let by_account: Vec<_> = by_account.into_iter().collect();
        let events = parallel_map(&by_account, |(number, writes)| {
            let account = self.keep(*number).expect("a scheduled account exists");
            let mut account = account.lock().expect(UNPOISONED);
            let host = account.host;
            let events =
                writes.iter().map(|(at, micros)| (*at, host, account.write(*micros, self.now())));
            events.collect::<Vec<_>>()
        });
        let mut events: Vec<_> = events.into_iter().flatten().collect();
        events.sort_unstable_by_key(|(at, ..)| *at);
        events.into_iter().for_each(|(_, host, event)| self.publish(host, event));
    }

    /// Writes and publishes `count` commits of random accounts.
    pub(super) fn write(&self, count: usize) {
        let mut clock = self.clock.lock().expect(UNPOISONED);
        for _ in 0..count {
            let Some(write) = self.next_write(&mut clock) else { return };
            let account = self.keep(write.account).expect("a scheduled account exists");
            let mut account = account.lock().expect(UNPOISONED);
            let event = account.write(write.micros, self.now());
            self.publish(account.host, event);
        }
    }

    /// The next commit, of a random active account. `None` if no account is active.
    fn next_write(&self, clock: &mut WriteClock) -> Option<ScheduledWrite> {
        let accounts = self.accounts.read().expect(UNPOISONED);
        let micros = clock.tick();
        let first = clock.random.below(accounts.len().max(1) as u64) as usize;
        let all = (first..accounts.len()).chain(0..first);
        let is_active = |number: &usize| accounts.get(*number).is_some_and(AccountSlot::is_active);
        let account = { all }.find(is_active)?;
        Some(ScheduledWrite { account, micros })
    }

    /// Changes an account at the current simulated time and publishes the resulting events.
    pub(super) fn change(
        &self,
        number: usize,
        change: impl FnOnce(&mut HostedAccount, u64) -> Vec<NetworkEvent>,
    ) {
        let mut clock = self.clock.lock().expect(UNPOISONED);
        let micros = clock.tick();
        let account = self.keep(number).expect("an account of the network");
        let mut account = account.lock().expect(UNPOISONED);
        let events = change(&mut account, micros);
        let outdated = self.index().outdated_handle(number, &account.handle);
        if let Some(old) = outdated {
            self.accounts.write().expect(UNPOISONED).rename(number, &old, &account.handle);
        }
        events.into_iter().for_each(|event| self.publish(account.host, event));
    }

    /// Adds an account and publishes its first events; returns its number.
    pub(super) fn add_account(&self) -> usize {
        let mut clock = self.clock.lock().expect(UNPOISONED);
        let micros = clock.tick();
        let account = self.create_account(self.account_count(), micros).with_repository();
        let (host, handle) = (account.host, account.handle.clone());
        let now = self.now();
        let events =
            [account.identity_event(now), account.account_event(now), account.sync_event(now)];
        let slot = AccountSlot::Kept(Arc::new(Mutex::new(account)));
        let number = self.accounts.write().expect(UNPOISONED).insert(slot, &handle);
        events.into_iter().for_each(|event| self.publish(host, event));
        number
    }

    /// Appends an event to the logs of a PDS and of all relays and Jetstreams.
    fn publish(&self, host: usize, event: NetworkEvent) {
        let event = Arc::new(event);
        let pds = self.pds.get(host).map(|log| (Server::Pds(host), log));
        let relays = self.relays.iter().enumerate();
        let relays = relays.map(|(number, log)| (Server::Relay(number), log));
        let signed = pds.into_iter().chain(relays);
        signed.for_each(|(server, log)| altered_event::append(&self.faults, server, log, &event));
        self.jetstreams.iter().for_each(|log| log.append(&event));
    }

    /// Publishes events that no account of the network wrote.
    pub(super) fn publish_all(&self, host: usize, events: Vec<NetworkEvent>) {
        let _order = self.clock.lock().expect(UNPOISONED);
        events.into_iter().for_each(|event| self.publish(host, event));
    }

    pub(super) fn set_clock_skew(&self, seconds: i64) {
        self.skew.store(seconds.saturating_mul(1_000_000), Ordering::Relaxed);
    }

    /// The time of the servers in microseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        now().saturating_add_signed(self.skew.load(Ordering::Relaxed))
    }

    fn index(&self) -> RwLockReadGuard<'_, AccountIndex> {
        self.accounts.read().expect(UNPOISONED)
    }

    /// A slot of the index. An account is never locked while the index is, except by a holder of the clock.
    fn slot(&self, number: usize) -> Option<AccountSlot> {
        self.index().get(number).cloned()
    }

    /// The account of this number; a derived one is derived now, and not kept.
    pub(super) fn account(&self, number: usize) -> Option<Arc<Mutex<HostedAccount>>> {
        Some(match self.slot(number)? {
            AccountSlot::Kept(account) => account,
            AccountSlot::Derived(_) => {
                Arc::new(Mutex::new(self.create_account(number, START_MICROS)))
            }
        })
    }

    /// The account of this number, which is kept from now on, so that it can change.
    fn keep(&self, number: usize) -> Option<Arc<Mutex<HostedAccount>>> {
        let account = self.account(number)?;
        self.accounts.write().expect(UNPOISONED).keep(number, account.clone());
        Some(account)
    }

    /// The number of accounts.
    pub(super) fn account_count(&self) -> usize {
        self.index().len()
    }

    /// The number of accounts of a PDS.
    pub(super) fn account_count_of(&self, host: usize) -> usize {
        let kept = self.index().kept();
        let kept = kept.iter().filter(|account| lock(account).host == host).count();
        self.index().derived_count(host) + kept
    }

    /// The PDS of an account.
    pub(super) fn host_of(&self, number: usize) -> Option<usize> {
        self.slot(number).map(|slot| slot.host())
    }

    /// The entry of an account in lists.
    pub(super) fn listed_account(&self, number: usize) -> Option<ListedAccount> {
        self.slot(number).map(|slot| slot.listed())
    }

    /// The times of the operations of an account in the directory.
    pub(super) fn log_micros(&self, number: usize) -> Vec<u64> {
        self.slot(number).map(|slot| slot.log_micros()).unwrap_or_default()
    }

    /// The number of the account with this DID.
    pub(super) fn number_of_did(&self, did: &str) -> Option<usize> {
        self.index().number_of_did(did)
    }

    /// The account with this DID.
    pub(super) fn account_by_did(&self, did: &str) -> Option<Arc<Mutex<HostedAccount>>> {
        self.account(self.number_of_did(did)?)
    }

    /// The DID of a handle.
    pub(super) fn did_by_handle(&self, handle: &str) -> Option<String> {
        let number = self.index().number_of_handle(&handle.to_ascii_lowercase())?;
        self.slot(number).map(|slot| slot.did().to_string())
    }

    /// Whether a server refuses connections.
    pub(super) fn is_refusing(&self, server: Server) -> bool {
        matches!(server, Server::Pds(number) if self.conditions[number] == HostCondition::Refusing)
    }

    /// The accounts of hostile cases, by DID.
    pub(super) fn guests(&self) -> &RwLock<HashMap<String, GuestAccount>> {
        &self.guests
    }

    /// The event log of a server; the PLC directory has none.
    pub(super) fn event_log(&self, server: Server) -> Option<&EventLog> {
        match server {
            Server::Plc => None,
            Server::Pds(number) => self.pds.get(number),
            Server::Relay(number) => self.relays.get(number),
            Server::Jetstream(number) => self.jetstreams.get(number),
        }
    }

    /// All event logs.
    pub(super) fn event_logs(&self) -> impl Iterator<Item = &EventLog> {
        self.pds.iter().chain(&self.relays).chain(&self.jetstreams)
    }

    /// Events of an account outside the network.
    pub(super) fn sample_events(&self, count: usize) -> Vec<LogEntry> {
        let mut account = self.create_account(usize::MAX, START_MICROS);
        let mut clock = WriteClock {
            random: Seed::new(self.spec.seed, "inventing").stream(0),
            micros: START_MICROS,
            skew: None,
        };
        let events = (1..).take(count).map(|seq| {
            let micros = clock.tick();
            LogEntry { seq, micros, event: Arc::new(account.write(micros, micros)) }
        });
        events.collect()
    }
}

impl WriteClock {
    fn tick(&mut self) -> u64 {
        self.micros += self.random.between(1_000, 13_000);
        if let Some(skew) = &self.skew {
            let now = now().saturating_add_signed(skew.load(Ordering::Relaxed));
            self.micros = self.micros.max(now);
        }
        self.micros
    }
}

/// Locks an account.
pub(super) fn lock(account: &Mutex<HostedAccount>) -> MutexGuard<'_, HostedAccount> {
    account.lock().expect(UNPOISONED)
}

/// The time of this machine in microseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// The results of `work` on the items, in input order, computed on all cores.
fn parallel_map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(1);
    let work = &work;
    std::thread::scope(|scope| {
        let run = |chunk: &'_ [T]| chunk.iter().map(work).collect::<Vec<R>>();
        let threads: Vec<_> =
            items.chunks(share).map(|chunk| scope.spawn(move || run(chunk))).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no panic in a worker"))
            .collect()
    })
}

/// The order of magnitude of sequence numbers of the live relay.
const FIRST_RELAY_SEQ: i64 = 26_650_000_000;

/// The distance between the sequence numbers of two relays, so that they never overlap.
const RELAY_SEQ_STEP: i64 = 10_000_000_000;
