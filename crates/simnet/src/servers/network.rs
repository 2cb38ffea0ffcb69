//! All that the servers share: who is there, what they have told, and what goes wrong.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use super::fault::{Faults, UNPOISONED};
use super::member::{AccountStatus, Home, Member};
use super::outbox::{Entry, Numbering, Outbox};
use super::spec::{Server, Spec};
use super::stranger::Stranger;
use super::told::Told;
use super::zstandard::Dictionaries;
use crate::random::{Random, Seed};

/// The network.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) spec: Spec,
    pub(super) addresses: Addresses,
    pub(super) faults: Faults,
    pub(super) traffic: Traffic,
    members: RwLock<Members>,
    strangers: RwLock<HashMap<String, Stranger>>,
    pds: Vec<Outbox>,
    relays: Vec<Outbox>,
    jetstreams: Vec<Outbox>,
    /// Whoever holds it tells events: so all servers tell them in one order.
    pace: Mutex<Pace>,
    dictionaries: OnceLock<Dictionaries>,
}

#[derive(Debug, Default)]
struct Members {
    all: Vec<Arc<Mutex<Member>>>,
    by_did: HashMap<String, usize>,
    by_handle: HashMap<String, usize>,
}

/// The ports of the servers.
#[derive(Clone, Debug)]
pub(super) struct Addresses(pub(super) BTreeMap<Server, u16>);

impl Addresses {
    /// The server's name and port.
    pub(super) fn host(&self, server: Server) -> String {
        format!("localhost:{}", self.0[&server])
    }

    /// The server's URL, without a slash at its end.
    pub(super) fn url(&self, server: Server) -> String {
        format!("http://{}", self.host(server))
    }
}

/// Who writes when.
#[derive(Debug)]
struct Pace {
    random: Random,
    micros: u64,
}

/// A commit to be made.
#[derive(Clone, Copy, Debug)]
struct Turn {
    member: usize,
    micros: u64,
}

impl Network {
    /// The network when all its accounts have joined, with what they have told since.
    pub(super) fn new(spec: Spec, addresses: Addresses) -> Self {
        let window = spec.retained_events.max(spec.initial_commits);
        let numbered = |server: Server| Seed::new(spec.seed, &format!("numbers of {server}"));
        let outbox = |server: Server| {
            let random = numbered(server).stream(0);
            match server {
                Server::Pds(_) | Server::Plc => Outbox::new(0, Numbering::Even, window),
                Server::Relay(number) => {
                    let before = FIRST_RELAY_SEQ + number as i64 * RELAY_SEQ_STEP;
                    Outbox::new(before, Numbering::Gaps(random.into()), window)
                }
                Server::Jetstream(_) => Outbox::new(0, Numbering::Postings, window),
            }
        };
        let pace = Pace { random: Seed::new(spec.seed, "pace").stream(0), micros: START_MICROS };
        let network = Self {
            pds: (0..spec.pds).map(|number| outbox(Server::Pds(number))).collect(),
            relays: (0..spec.relays).map(|number| outbox(Server::Relay(number))).collect(),
            jetstreams: (0..spec.jetstreams).map(|n| outbox(Server::Jetstream(n))).collect(),
            faults: Faults::new(spec.seed),
            traffic: Traffic::default(),
            members: RwLock::default(),
            strangers: RwLock::default(),
            pace: Mutex::new(pace),
            dictionaries: OnceLock::new(),
            addresses,
            spec,
        };
        network.settle();
        network
    }

    /// Lets the first accounts join, and tells what is prepared.
    fn settle(&self) {
        let count = self.spec.accounts;
        let numbers: Vec<usize> = (0..count).collect();
        let members = in_parallel(&numbers, |number| self.make_member(*number, START_MICROS));
        for member in members {
            self.admit(member);
        }
        self.prepare(self.spec.initial_commits);
    }

    fn make_member(&self, number: usize, micros: u64) -> Member {
        let host = number % self.spec.pds.max(1);
        let endpoint = self.addresses.url(Server::Pds(host));
        let home = Home { number: host, endpoint: &endpoint };
        Member::new(self.spec.seed, number, self.spec.records, micros, home)
    }

    fn admit(&self, member: Member) -> usize {
        let mut members = self.members.write().expect(UNPOISONED);
        let number = members.all.len();
        members.by_did.insert(member.did().to_owned(), number);
        members.by_handle.insert(member.handle.clone(), number);
        members.all.push(Arc::new(Mutex::new(member)));
        number
    }

    /// Tells so many commits, which are made by all cores: no account looks at another.
    fn prepare(&self, count: usize) {
        let mut pace = self.pace.lock().expect(UNPOISONED);
        let turns: Vec<Turn> = (0..count).map_while(|_| self.next_turn(&mut pace)).collect();
        let mut of_members: BTreeMap<usize, Vec<(usize, u64)>> = BTreeMap::new();
        for (at, turn) in turns.iter().enumerate() {
            of_members.entry(turn.member).or_default().push((at, turn.micros));
        }
        let of_members: Vec<_> = of_members.into_iter().collect();
        let told = in_parallel(&of_members, |(number, turns)| {
            let member = self.member(*number).expect("who has a turn is there");
            let mut member = member.lock().expect(UNPOISONED);
            let host = member.host;
            let told = turns.iter().map(|(at, micros)| (*at, host, member.write(*micros, now())));
            told.collect::<Vec<_>>()
        });
        let mut told: Vec<_> = told.into_iter().flatten().collect();
        told.sort_unstable_by_key(|(at, ..)| *at);
        told.into_iter().for_each(|(_, host, told)| self.tell(host, told));
    }

    /// Lets accounts write so many commits.
    pub(super) fn write(&self, count: usize) {
        let mut pace = self.pace.lock().expect(UNPOISONED);
        for _ in 0..count {
            let Some(turn) = self.next_turn(&mut pace) else { return };
            let member = self.member(turn.member).expect("who has a turn is there");
            let mut member = member.lock().expect(UNPOISONED);
            let told = member.write(turn.micros, now());
            self.tell(member.host, told);
        }
    }

    /// Somebody who is there, a little later. `None` if nobody is.
    fn next_turn(&self, pace: &mut Pace) -> Option<Turn> {
        let members = self.members.read().expect(UNPOISONED);
        let micros = pace.tick();
        let first = pace.random.below(members.all.len().max(1) as u64) as usize;
        let all = (first..members.all.len()).chain(0..first);
        let is_active = |member: &usize| {
            members.all[*member].lock().expect(UNPOISONED).status == AccountStatus::Active
        };
        let member = { all }.find(is_active)?;
        Some(Turn { member, micros })
    }

    /// Does something to an account, at a moment of the network's time, and tells what comes of it.
    pub(super) fn change(&self, number: usize, change: impl FnOnce(&mut Member, u64) -> Vec<Told>) {
        let mut pace = self.pace.lock().expect(UNPOISONED);
        let micros = pace.tick();
        let member = self.member(number).expect("an account of the network");
        let mut member = member.lock().expect(UNPOISONED);
        let told = change(&mut member, micros);
        if let Some(old) = self.handle_to_forget(number, &member.handle) {
            self.members.write().expect(UNPOISONED).rename(number, &old, &member.handle);
        }
        told.into_iter().for_each(|told| self.tell(member.host, told));
    }

    /// The handle under which an account is still known, if that is no longer its own.
    fn handle_to_forget(&self, number: usize, handle: &str) -> Option<String> {
        let members = self.members.read().expect(UNPOISONED);
        let known = members.by_handle.iter().find(|(_, other)| **other == number)?;
        (known.0 != handle).then(|| known.0.clone())
    }

    /// Lets another account join; gives its number.
    pub(super) fn join(&self) -> usize {
        let mut pace = self.pace.lock().expect(UNPOISONED);
        let micros = pace.tick();
        let member = self.make_member(self.member_count(), micros);
        let host = member.host;
        let now = now();
        let told = [member.tell_identity(now), member.tell_account(now), member.tell_sync(now)];
        let number = self.admit(member);
        told.into_iter().for_each(|told| self.tell(host, told));
        number
    }

    /// Has a PDS tell an event, and all who read it.
    pub(super) fn tell(&self, host: usize, told: Told) {
        let told = Arc::new(told);
        let readers = self.relays.iter().chain(&self.jetstreams);
        self.pds.get(host).into_iter().chain(readers).for_each(|outbox| outbox.append(&told));
    }

    /// Has an event told between others.
    pub(super) fn tell_in_turn(&self, host: usize, told: Vec<Told>) {
        let _turn = self.pace.lock().expect(UNPOISONED);
        told.into_iter().for_each(|told| self.tell(host, told));
    }

    /// The account of this number.
    pub(super) fn member(&self, number: usize) -> Option<Arc<Mutex<Member>>> {
        self.members.read().expect(UNPOISONED).all.get(number).cloned()
    }

    /// How many accounts there are.
    pub(super) fn member_count(&self) -> usize {
        self.members.read().expect(UNPOISONED).all.len()
    }

    /// The account with this DID.
    pub(super) fn member_by_did(&self, did: &str) -> Option<Arc<Mutex<Member>>> {
        let members = self.members.read().expect(UNPOISONED);
        members.by_did.get(did).map(|number| members.all[*number].clone())
    }

    /// The DID behind a handle.
    pub(super) fn did_by_handle(&self, handle: &str) -> Option<String> {
        let handle = handle.to_ascii_lowercase();
        let members = self.members.read().expect(UNPOISONED);
        let member = members.all[*members.by_handle.get(&handle)?].clone();
        drop(members);
        Some(member.lock().expect(UNPOISONED).did().to_owned())
    }

    /// The accounts that are not of this network but of the hostile set.
    pub(super) fn strangers(&self) -> &RwLock<HashMap<String, Stranger>> {
        &self.strangers
    }

    /// What a server tells; the directory tells nothing.
    pub(super) fn outbox(&self, server: Server) -> Option<&Outbox> {
        match server {
            Server::Plc => None,
            Server::Pds(number) => self.pds.get(number),
            Server::Relay(number) => self.relays.get(number),
            Server::Jetstream(number) => self.jetstreams.get(number),
        }
    }

    /// All that is told by anyone.
    pub(super) fn outboxes(&self) -> impl Iterator<Item = &Outbox> {
        self.pds.iter().chain(&self.relays).chain(&self.jetstreams)
    }

    /// What an account might tell that is not of the network.
    pub(super) fn invent(&self, count: usize) -> Vec<Entry> {
        let mut member = self.make_member(usize::MAX, START_MICROS);
        let mut pace =
            Pace { random: Seed::new(self.spec.seed, "inventing").stream(0), micros: START_MICROS };
        let told = (1..).take(count).map(|seq| {
            let micros = pace.tick();
            Entry { seq, micros, told: Arc::new(member.write(micros, micros)) }
        });
        told.collect()
    }

    /// The dictionaries of the Jetstreams, made when the first one is asked for.
    pub(super) fn dictionaries(&self) -> &Dictionaries {
        self.dictionaries.get_or_init(|| Dictionaries::train(self))
    }
}

impl Members {
    fn rename(&mut self, number: usize, old: &str, new: &str) {
        self.by_handle.remove(old);
        self.by_handle.insert(new.to_owned(), number);
    }
}

impl Pace {
    fn tick(&mut self) -> u64 {
        self.micros += self.random.between(1_000, 13_000);
        self.micros
    }
}

/// A lock on an account.
pub(super) fn lock(member: &Mutex<Member>) -> MutexGuard<'_, Member> {
    member.lock().expect(UNPOISONED)
}

/// What was asked for and sent.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    requests: Mutex<BTreeMap<Server, BTreeMap<String, u64>>>,
    /// Frames that went to readers of any stream.
    pub(super) frames: AtomicU64,
    /// Connections, of any kind.
    pub(super) connections: AtomicU64,
}

impl Traffic {
    /// Somebody asks `server` for `path`.
    pub(super) fn count_request(&self, server: Server, path: &str) {
        let mut requests = self.requests.lock().expect(UNPOISONED);
        let paths = requests.entry(server).or_default();
        if paths.len() < MAX_PATHS || paths.contains_key(path) {
            *paths.entry(path.to_owned()).or_default() += 1;
        }
    }

    /// How often each path was asked for.
    pub(super) fn requests(&self, server: Server) -> BTreeMap<String, u64> {
        self.requests.lock().expect(UNPOISONED).get(&server).cloned().unwrap_or_default()
    }

    pub(super) fn count_frames(&self, frames: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
    }
}

/// Now, in microseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// `work` on each item, by all cores; the results are in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(1);
    let work = &work;
    std::thread::scope(|scope| {
        let run = |chunk: &'_ [T]| chunk.iter().map(work).collect::<Vec<R>>();
        let threads: Vec<_> =
            items.chunks(share).map(|chunk| scope.spawn(move || run(chunk))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic here")).collect()
    })
}

/// When the network begins: 2026-07-01T00:00:00Z.
const START_MICROS: u64 = 1_782_864_000_000_000;

/// Around where the sequence numbers of the large relay are.
const FIRST_RELAY_SEQ: i64 = 26_650_000_000;

/// How far apart the numbers of two relays are: nobody takes one's for another's.
const RELAY_SEQ_STEP: i64 = 10_000_000_000;

/// How many paths of a server are counted.
const MAX_PATHS: usize = 10_000;
