//! The state that all servers share: accounts, event logs, faults and traffic counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use super::event::NetworkEvent;
use super::event_log::{EventLog, LogEntry, Numbering};
use super::fault::{Faults, UNPOISONED};
use super::hosted_account::{AccountStatus, GuestAccount, HomePds, HostedAccount};
use super::plc_export::ExportLog;
use super::request_limits::RequestLimits;
use super::spec::{Server, Spec};
use super::zstandard::Dictionaries;
use crate::random::{Random, Seed};
use crate::time::START_MICROS;

/// The state of the network.
#[derive(Debug)]
pub(super) struct NetworkState {
    pub(super) spec: Spec,
    pub(super) addresses: Addresses,
    pub(super) faults: Faults,
    pub(super) traffic: Traffic,
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
    /// How far the clocks are ahead of that of this machine, in microseconds.
    skew: Arc<AtomicI64>,
    /// The dictionaries of the Jetstreams, once they are trained.
    pub(super) dictionaries: OnceLock<Dictionaries>,
}

#[derive(Debug, Default)]
struct AccountIndex {
    all: Vec<Arc<Mutex<HostedAccount>>>,
    by_did: HashMap<String, usize>,
    by_handle: HashMap<String, usize>,
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
    /// If set, the time is at least that of this machine and this, in microseconds.
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
        let network = Self {
            pds: (0..spec.pds).map(|number| log(Server::Pds(number))).collect(),
            relays: (0..spec.relays).map(|number| log(Server::Relay(number))).collect(),
            jetstreams: (0..spec.jetstreams).map(|n| log(Server::Jetstream(n))).collect(),
            faults: Faults::new(spec.seed),
            traffic: Traffic::default(),
            request_limits: RequestLimits::new(spec.request_limit),
            export: Mutex::default(),
            attack_rounds: AtomicU64::new(0),
            accounts: RwLock::default(),
            guests: RwLock::default(),
            clock: Mutex::new(clock),
            skew,
            dictionaries: OnceLock::new(),
            addresses,
            spec,
        };
        network.populate();
        network
    }

    /// Adds the initial accounts and writes the initial commits.
    fn populate(&self) {
        let count = self.spec.accounts;
        let numbers: Vec<usize> = (0..count).collect();
        let accounts = parallel_map(&numbers, |number| self.create_account(*number, START_MICROS));
        for account in accounts {
            self.insert(account);
        }
        self.write_initial(self.spec.initial_commits);
    }

    fn create_account(&self, number: usize, micros: u64) -> HostedAccount {
        let host = number % self.spec.pds.max(1);
        let endpoint = self.addresses.url(Server::Pds(host));
        let home = HomePds { number: host, endpoint: &endpoint };
        HostedAccount::new(self.spec.seed, number, self.spec.records, micros, home)
    }

    fn insert(&self, account: HostedAccount) -> usize {
        let mut accounts = self.accounts.write().expect(UNPOISONED);
        let number = accounts.all.len();
        accounts.by_did.insert(account.did().to_owned(), number);
        accounts.by_handle.insert(account.handle.clone(), number);
        accounts.all.push(Arc::new(Mutex::new(account)));
        number
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
            let account = self.account(*number).expect("a scheduled account exists");
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
            let account = self.account(write.account).expect("a scheduled account exists");
            let mut account = account.lock().expect(UNPOISONED);
            let event = account.write(write.micros, self.now());
            self.publish(account.host, event);
        }
    }

    /// The next commit, of a random active account. `None` if no account is active.
    fn next_write(&self, clock: &mut WriteClock) -> Option<ScheduledWrite> {
        let accounts = self.accounts.read().expect(UNPOISONED);
        let micros = clock.tick();
        let first = clock.random.below(accounts.all.len().max(1) as u64) as usize;
        let all = (first..accounts.all.len()).chain(0..first);
        let is_active = |account: &usize| {
            accounts.all[*account].lock().expect(UNPOISONED).status == AccountStatus::Active
        };
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
        let account = self.account(number).expect("an account of the network");
        let mut account = account.lock().expect(UNPOISONED);
        let events = change(&mut account, micros);
        if let Some(old) = self.outdated_handle(number, &account.handle) {
            self.accounts.write().expect(UNPOISONED).rename(number, &old, &account.handle);
        }
        events.into_iter().for_each(|event| self.publish(account.host, event));
    }

    /// The indexed handle of an account, if it differs from `handle`.
    fn outdated_handle(&self, number: usize, handle: &str) -> Option<String> {
        let accounts = self.accounts.read().expect(UNPOISONED);
        let known = accounts.by_handle.iter().find(|(_, other)| **other == number)?;
        (known.0 != handle).then(|| known.0.clone())
    }

    /// Adds an account and publishes its first events; returns its number.
    pub(super) fn add_account(&self) -> usize {
        let mut clock = self.clock.lock().expect(UNPOISONED);
        let micros = clock.tick();
        let account = self.create_account(self.account_count(), micros);
        let host = account.host;
        let now = self.now();
        let events =
            [account.identity_event(now), account.account_event(now), account.sync_event(now)];
        let number = self.insert(account);
        events.into_iter().for_each(|event| self.publish(host, event));
        number
    }

    /// Appends an event to the logs of a PDS and of all relays and Jetstreams.
    fn publish(&self, host: usize, event: NetworkEvent) {
        let event = Arc::new(event);
        let readers = self.relays.iter().chain(&self.jetstreams);
        self.pds.get(host).into_iter().chain(readers).for_each(|log| log.append(&event));
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

    /// The account of this number.
    pub(super) fn account(&self, number: usize) -> Option<Arc<Mutex<HostedAccount>>> {
        self.accounts.read().expect(UNPOISONED).all.get(number).cloned()
    }

    /// The number of accounts.
    pub(super) fn account_count(&self) -> usize {
        self.accounts.read().expect(UNPOISONED).all.len()
    }

    /// The account with this DID.
    pub(super) fn account_by_did(&self, did: &str) -> Option<Arc<Mutex<HostedAccount>>> {
        let accounts = self.accounts.read().expect(UNPOISONED);
        accounts.by_did.get(did).map(|number| accounts.all[*number].clone())
    }

    /// The DID of a handle.
    pub(super) fn did_by_handle(&self, handle: &str) -> Option<String> {
        let handle = handle.to_ascii_lowercase();
        let accounts = self.accounts.read().expect(UNPOISONED);
        let account = accounts.all[*accounts.by_handle.get(&handle)?].clone();
        drop(accounts);
        Some(account.lock().expect(UNPOISONED).did().to_owned())
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

impl AccountIndex {
    fn rename(&mut self, number: usize, old: &str, new: &str) {
        self.by_handle.remove(old);
        self.by_handle.insert(new.to_owned(), number);
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

/// Counts of requests, connections and frames.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    requests: Mutex<BTreeMap<Server, BTreeMap<String, u64>>>,
    /// Frames sent on all streams.
    pub(super) frames: AtomicU64,
    /// Accepted connections.
    pub(super) connections: AtomicU64,
}

impl Traffic {
    /// Counts a request for `path` of `server`.
    pub(super) fn count_request(&self, server: Server, path: &str) {
        let mut requests = self.requests.lock().expect(UNPOISONED);
        let paths = requests.entry(server).or_default();
        if paths.len() < MAX_PATHS || paths.contains_key(path) {
            *paths.entry(path.to_owned()).or_default() += 1;
        }
    }

    /// The number of requests for each path.
    pub(super) fn requests(&self, server: Server) -> BTreeMap<String, u64> {
        self.requests.lock().expect(UNPOISONED).get(&server).cloned().unwrap_or_default()
    }

    pub(super) fn count_frames(&self, frames: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
    }
}

/// The time of this machine in microseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// The results of `work` on each item, in input order, computed on all cores.
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

/// The maximum number of counted paths of a server.
const MAX_PATHS: usize = 10_000;
