//! The handle of a running network.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use codec::Cid;
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Runtime};

use super::door::{Door, take_port};
use super::fault::{Faults, UNPOISONED};
use super::member::{AccountStatus, Member};
use super::network::{Addresses, Network, lock, now};
use super::outbox::SentEvent;
use super::spec::{Server, Spec, WriteRate};
use super::stranger::{self, Stranger};
use crate::hostile;
use crate::tid::Tid;

/// A running network; dropping it stops it.
///
/// It has threads of its own, so that whoever asks it may be asynchronous or not.
#[derive(Debug)]
pub struct Simulation {
    network: Arc<Network>,
    doors: Mutex<BTreeMap<Server, Gate>>,
    pen: Mutex<Option<Pen>>,
    /// Taken only to be shut down.
    runtime: Option<Runtime>,
}

/// An account, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// The DID: the hash of its first operation.
    pub did: String,
    /// The handle.
    pub handle: String,
    /// The key that signs for it, as a `did:key`.
    pub signing_key: String,
    /// The PDS, by its number.
    pub host: usize,
    /// How its host stands to it.
    pub status: AccountStatus,
}

/// What somebody must have of an account who has followed the network to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedAccount {
    /// Who it is.
    pub account: AccountInfo,
    /// The newest commit.
    pub commit: Cid,
    /// Its revision.
    pub rev: Tid,
    /// The root of its tree.
    pub data: Cid,
    /// All records, by path.
    pub records: BTreeMap<String, Cid>,
}

impl Simulation {
    /// Makes the network of `spec` and opens its servers on 127.0.0.1.
    ///
    /// # Errors
    /// If a port is taken, or this system gives no more threads.
    pub fn start(spec: Spec) -> io::Result<Self> {
        let mut sockets = BTreeMap::new();
        let mut ports = BTreeMap::new();
        for server in spec.servers() {
            let socket = take_port(spec.port(server))?;
            ports.insert(server, socket.local_addr()?.port());
            sockets.insert(server, socket);
        }
        let rate = spec.write_rate;
        let network = Arc::new(Network::new(spec, Addresses(ports)));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("simnet")
            .enable_all()
            .build()?;
        let mut doors = BTreeMap::new();
        for (server, socket) in sockets {
            let door = Door::open(runtime.handle(), &network, server, socket)?;
            doors.insert(server, Gate::Open(door));
        }
        let (doors, pen) = (Mutex::new(doors), Mutex::default());
        let sim = Self { network, doors, pen, runtime: Some(runtime) };
        sim.set_write_rate(rate);
        Ok(sim)
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.network.spec
    }

    /// A server's URL, `http://localhost:` and its port.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn url(&self, server: Server) -> String {
        self.network.addresses.url(server)
    }

    /// A server's port on 127.0.0.1.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn port(&self, server: Server) -> u16 {
        self.network.addresses.0[&server]
    }

    /// Closes a server and all connections to it. Its port is refused from then on, and stays its own.
    ///
    /// # Errors
    /// If somebody else has taken the port in that moment.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn stop_server(&self, server: Server) -> io::Result<()> {
        let port = self.port(server);
        let mut doors = self.doors.lock().expect(UNPOISONED);
        if let Some(Gate::Open(door)) = doors.remove(&server) {
            door.close();
        }
        doors.insert(server, Gate::Closed(take_port(port)?));
        Ok(())
    }

    /// Opens a closed server again; what it has told, it knows.
    ///
    /// # Errors
    /// If this system does not let it listen.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn start_server(&self, server: Server) -> io::Result<()> {
        let port = self.port(server);
        let mut doors = self.doors.lock().expect(UNPOISONED);
        let socket = match doors.remove(&server) {
            Some(Gate::Open(door)) => {
                doors.insert(server, Gate::Open(door));
                return Ok(());
            }
            Some(Gate::Closed(socket)) => socket,
            None => take_port(port)?,
        };
        let door = Door::open(self.runtime().handle(), &self.network, server, socket)?;
        doors.insert(server, Gate::Open(door));
        Ok(())
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("a sim that runs")
    }

    /// The switches of what can go wrong.
    pub fn faults(&self) -> &Faults {
        &self.network.faults
    }

    /// How fast accounts write from now on.
    pub fn set_write_rate(&self, rate: WriteRate) {
        let mut pen = self.pen.lock().expect(UNPOISONED);
        // The old one is stopped before the new one starts.
        drop(pen.take());
        if rate != WriteRate::Off {
            *pen = Some(Pen::start(self.network.clone(), rate));
        }
    }

    /// Lets accounts write so many commits, now.
    pub fn write_commits(&self, commits: usize) {
        self.network.write(commits);
    }

    /// How many accounts there are.
    pub fn account_count(&self) -> usize {
        self.network.member_count()
    }

    /// The account of this number.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn account(&self, number: usize) -> AccountInfo {
        now_of(&lock(&self.network.member(number).expect("an account of the network")))
    }

    /// Lets one more account join, and tells it; gives its number.
    pub fn add_account(&self) -> usize {
        self.network.join()
    }

    /// Lets this account write a commit.
    ///
    /// # Panics
    /// Here and below: if there are not that many accounts.
    pub fn write_commit_as(&self, number: usize) {
        self.network.change(number, |member, micros| vec![member.write(micros, now())]);
    }

    /// Lets it write commits of which nobody is told: the next one does not follow what is known.
    pub fn write_unannounced(&self, number: usize) {
        self.network.change(number, |member, micros| {
            drop(member.write(micros, now()));
            Vec::new()
        });
    }

    /// Tells with `#sync` where the account's repository is.
    pub fn send_sync(&self, number: usize) {
        self.network.change(number, |member, _| vec![member.tell_sync(now())]);
    }

    /// Gives it another signing key: the directory learns it, `#identity` is told, and a commit is
    /// signed with it.
    pub fn rotate_key(&self, number: usize) {
        self.network.change(number, |member, micros| {
            member.rotate(now());
            vec![member.tell_identity(now()), member.write(micros, now())]
        });
    }

    /// Gives it another handle, and tells `#identity`.
    pub fn change_handle(&self, number: usize, handle: &str) {
        self.network.change(number, |member, _| {
            member.handle = handle.to_ascii_lowercase();
            let name = format!("at://{}", member.handle);
            member.register(now(), |data| data.also_known_as = vec![name]);
            vec![member.tell_identity(now())]
        });
    }

    /// Changes how its host stands to it, and tells `#account`; of one that comes back, `#identity` and
    /// `#sync` too.
    pub fn set_account_status(&self, number: usize, status: AccountStatus) {
        self.network.change(number, |member, _| {
            let comes_back = status == AccountStatus::Active && member.status != status;
            member.status = status;
            let mut told = vec![member.tell_account(now())];
            if comes_back {
                told.extend([member.tell_identity(now()), member.tell_sync(now())]);
            }
            told
        });
    }

    /// Deletes it: the directory gets a tombstone, and `#account` is told.
    pub fn delete_account(&self, number: usize) {
        self.network.change(number, |member, _| {
            member.bury(now());
            member.status = AccountStatus::Deleted;
            vec![member.tell_account(now())]
        });
    }

    /// Moves it to another PDS, and tells `#identity` and `#account` there.
    pub fn migrate_account(&self, number: usize, host: usize) {
        let endpoint = self.url(Server::Pds(host));
        self.network.change(number, |member, _| {
            member.host = host;
            let service = super::member::pds(&endpoint);
            member.register(now(), |data| {
                drop(data.services.insert("atproto_pds".to_owned(), service))
            });
            vec![member.tell_identity(now()), member.tell_account(now())]
        });
    }

    /// Plays a case of the hostile set: its account becomes a guest of the first PDS. A repository is
    /// what `getRepo` gives for it from now on; frames are told, now, with sequence numbers of
    /// the stream. Cases of one set share their accounts, so that one spoils the next for whoever
    /// remembers; a set of another seed has other accounts.
    pub fn serve_case(&self, case: &hostile::Case) {
        let mut strangers = self.network.strangers().write().expect(UNPOISONED);
        strangers.insert(case.did.clone(), Stranger::of(case));
        drop(strangers);
        self.network.tell_in_turn(0, stranger::events(case, now()));
    }

    /// What a faithful reader has of each account in the end.
    pub fn expected_accounts(&self) -> Vec<ExpectedAccount> {
        let members = (0..self.account_count()).filter_map(|number| self.network.member(number));
        members.map(|member| expected_of(&lock(&member))).collect()
    }

    /// Everything that a server has told since the start; nothing for the directory.
    pub fn sent_events(&self, server: Server) -> Vec<SentEvent> {
        self.network.outbox(server).map(|outbox| outbox.ledger()).unwrap_or_default()
    }

    /// How many events a server has told since the start.
    pub fn sent_count(&self, server: Server) -> u64 {
        self.network.outbox(server).map_or(0, |outbox| outbox.count())
    }

    /// The last sequence number of a server.
    pub fn last_seq(&self, server: Server) -> i64 {
        self.network.outbox(server).map_or(0, |outbox| outbox.last_seq())
    }

    /// How many events each reader of a server has yet to be sent.
    pub fn backlogs(&self, server: Server) -> Vec<u64> {
        self.network.outbox(server).map(|outbox| outbox.backlogs()).unwrap_or_default()
    }

    /// How often each path of a server was asked for.
    pub fn request_counts(&self, server: Server) -> BTreeMap<String, u64> {
        self.network.traffic.requests(server)
    }

    /// How many frames went to readers, of all servers.
    pub fn frames_sent(&self) -> u64 {
        self.network.traffic.frames.load(Ordering::Relaxed)
    }

    /// How many connections there were, to all servers.
    pub fn connection_count(&self) -> u64 {
        self.network.traffic.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        drop(self.pen.lock().map(|mut pen| pen.take()));
        drop(self.doors.lock().map(|mut doors| doors.clear()));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A server's port.
#[derive(Debug)]
enum Gate {
    Open(Door),
    /// Nobody else can have it.
    Closed(TcpSocket),
}

fn now_of(member: &Member) -> AccountInfo {
    AccountInfo {
        did: member.did().to_owned(),
        handle: member.handle.clone(),
        signing_key: member.repository.account().key().did_key(),
        host: member.host,
        status: member.status,
    }
}

fn expected_of(member: &Member) -> ExpectedAccount {
    let repository = &member.repository;
    let records = repository.tree().entries().iter();
    ExpectedAccount {
        account: now_of(member),
        commit: repository.head().cid,
        rev: repository.rev(),
        data: repository.tree().root(),
        records: records.map(|entry| (entry.key.to_string(), entry.value)).collect(),
    }
}

/// The thread that lets accounts write; dropping it stops it.
#[derive(Debug)]
struct Pen {
    is_dry: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pen {
    fn start(network: Arc<Network>, rate: WriteRate) -> Self {
        let is_dry = Arc::new(AtomicBool::new(false));
        let stops = is_dry.clone();
        let thread = std::thread::spawn(move || match rate {
            WriteRate::Off => {}
            WriteRate::PerSecond(rate) => write_evenly(&network, rate, &stops),
            WriteRate::MatchReaders => write_as_read(&network, &stops),
        });
        Self { is_dry, thread: Some(thread) }
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        self.is_dry.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has only panicked if writing did, which its caller has seen by then.
            let _ = thread.join();
        }
    }
}

fn write_evenly(network: &Network, rate: u32, stops: &AtomicBool) {
    let mut since = Instant::now();
    let mut written = 0;
    while !stops.load(Ordering::Relaxed) {
        let due = (since.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        let late = due - written;
        let count = late.min(u64::from(rate / 10).max(1));
        network.write(count as usize);
        written += count;
        if late > u64::from(rate) {
            // What this machine does not manage in a second is not made up for.
            (since, written) = (Instant::now(), 0);
        }
        std::thread::sleep(TICK);
    }
}

fn write_as_read(network: &Network, stops: &AtomicBool) {
    while !stops.load(Ordering::Relaxed) {
        let slowest = network.outboxes().flat_map(|outbox| outbox.backlogs()).max();
        match slowest.is_some_and(|backlog| backlog < AHEAD) {
            true => network.write(AS_READ_BATCH),
            false => std::thread::sleep(TICK),
        }
    }
}

/// Threads that serve.
const THREADS: usize = 2;

/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(1);

/// So many events may wait for the slowest reader before writing pauses.
const AHEAD: u64 = 1024;
const AS_READ_BATCH: usize = 64;
