//! The handle of a running simulated network.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use atproto::syntax::Tid;
use codec::Cid;
use tokio::runtime::{Builder, Runtime};

use super::attack::Attack;
use super::event_log::SentEvent;
use super::fault::{Faults, UNPOISONED};
use super::host_condition::{self, HostCondition};
use super::hosted_account::{AccountStatus, GuestAccount, HostedAccount, guest_events, pds};
#[cfg(feature = "jetstream")]
use super::jetstream::SealedArchive;
use super::listener::{Listener, ReservedPort};
use super::network::{Addresses, NetworkState, lock};
use super::request_limits::RequestWindow;
use super::spec::{Server, Spec, WriteRate};
use super::traffic::ServerTraffic;
use crate::blob_account::BlobAccount;
use crate::hostile;

/// A running network; dropping it stops it.
///
/// It runs on its own threads, so synchronous and asynchronous code can use it.
#[derive(Debug)]
pub struct Simulation {
    network: Arc<NetworkState>,
    reserved: BTreeMap<Server, ReservedPort>,
    /// The servers that run.
    listeners: Mutex<BTreeMap<Server, Listener>>,
    writer: Mutex<Option<WriterThread>>,
    /// The repositories of the hostile set that are served from the start.
    hostile: Vec<hostile::Case>,
    /// `None` only while it is shut down.
    runtime: Option<Runtime>,
}

/// The current state of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountInfo {
    /// The DID: the hash of its first operation.
    pub did: String,
    /// The handle.
    pub handle: String,
    /// The signing key, as a `did:key`.
    pub signing_key: String,
    /// The number of its PDS.
    pub host: usize,
    /// The status on its host.
    pub status: AccountStatus,
}

/// The state of an account that a complete and correct reader ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedAccount {
    /// The account.
    pub account: AccountInfo,
    /// The newest commit.
    pub commit: Cid,
    /// The newest revision.
    pub rev: Tid,
    /// The root of the tree.
    pub data: Cid,
    /// All records by path.
    pub records: BTreeMap<String, Cid>,
}

impl Simulation {
    /// Generates the network of `spec` and starts its servers on 127.0.0.1.
    ///
    /// # Errors
    /// If a port is in use or a thread cannot be started.
    pub fn start(spec: Spec) -> io::Result<Self> {
        let mut reserved = BTreeMap::new();
        for server in spec.servers() {
            reserved.insert(server, ReservedPort::new(spec.port(server))?);
        }
        let ports = reserved.iter().map(|(server, port)| (*server, port.port())).collect();
        let rate = spec.write_rate;
        let network = Arc::new(NetworkState::new(spec, Addresses(ports)));
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("simnet")
            .enable_all()
            .build()?;
        let mut listeners = BTreeMap::new();
        for (server, port) in reserved.iter().filter(|(server, _)| !network.is_refusing(**server)) {
            listeners.insert(*server, Listener::open(runtime.handle(), &network, *server, port)?);
        }
        let (listeners, writer) = (Mutex::new(listeners), Mutex::default());
        let has_hostile = network.conditions.contains(&HostCondition::Hostile);
        let hostile = has_hostile.then(|| host_condition::hostile_repositories(network.spec.seed));
        let hostile = hostile.unwrap_or_default();
        let sim = Self { network, reserved, listeners, writer, hostile, runtime: Some(runtime) };
        sim.apply_conditions();
        sim.set_write_rate(rate);
        Ok(sim)
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.network.spec
    }

    /// The URL of a server, `http://localhost:` and its port.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn url(&self, server: Server) -> String {
        self.network.addresses.url(server)
    }

    /// The port of a server on 127.0.0.1.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn port(&self, server: Server) -> u16 {
        self.network.addresses.0[&server]
    }

    /// Stops a server and closes its connections. Its port stays reserved and refuses connections.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn stop_server(&self, server: Server) {
        assert!(self.reserved.contains_key(&server), "no server {server:?}");
        let mut listeners = self.listeners.lock().expect(UNPOISONED);
        if let Some(listener) = listeners.remove(&server) {
            listener.close();
        }
    }

    /// Starts a stopped server again, with the events it had.
    ///
    /// # Errors
    /// If the port cannot be listened on.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn start_server(&self, server: Server) -> io::Result<()> {
        let mut listeners = self.listeners.lock().expect(UNPOISONED);
        if let Entry::Vacant(stopped) = listeners.entry(server) {
            let (runtime, port) = (self.runtime().handle(), &self.reserved[&server]);
            stopped.insert(Listener::open(runtime, &self.network, server, port)?);
        }
        Ok(())
    }

    /// Numbers the next event of a server with `seq`, as after a restart from another database. A number that was given before begins
    /// the sequence again: the server forgets its earlier events, and readers of them should be disconnected.
    ///
    /// # Panics
    /// If the server sends no events.
    pub fn renumber(&self, server: Server, seq: i64) {
        self.network.event_log(server).expect("a server with events").renumber(seq);
    }

    /// Enables the faults of the hosts, and serves the hostile repositories if a host has them.
    fn apply_conditions(&self) {
        for (number, condition) in self.network.conditions.iter().enumerate() {
            condition.enable_faults(Server::Pds(number), self.faults());
        }
        self.hostile.iter().for_each(|case| self.serve_case(case));
    }

    /// The repositories of the hostile set that are served from the start.
    pub fn hostile_repositories(&self) -> &[hostile::Case] {
        &self.hostile
    }

    /// The conditions of the PDSs.
    pub fn host_conditions(&self) -> &[HostCondition] {
        &self.network.conditions
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("a running simulation")
    }

    /// The faults that can be enabled.
    pub fn faults(&self) -> &Faults {
        &self.network.faults
    }

    /// Sets the rate at which accounts write by themselves.
    pub fn set_write_rate(&self, rate: WriteRate) {
        let mut writer = self.writer.lock().expect(UNPOISONED);
        // Stop the old thread before starting a new one.
        drop(writer.take());
        if rate != WriteRate::Off {
            *writer = Some(WriterThread::start(self.network.clone(), rate));
        }
    }

    /// Sets the clocks of all servers ahead of this machine's clock, or behind it, as if they had jumped. The
    /// revisions of commits follow if the network was started with a [`clock_skew`](Spec::clock_skew).
    pub fn set_clock_skew(&self, seconds: i64) {
        self.network.set_clock_skew(seconds);
    }

    /// Writes `commits` commits of random accounts now.
    pub fn write_commits(&self, commits: usize) {
        self.network.write(commits);
    }

    /// The number of accounts.
    pub fn account_count(&self) -> usize {
        self.network.account_count()
    }

    /// The account of this number.
    ///
    /// # Panics
    /// If there is no such account.
    pub fn account(&self, number: usize) -> AccountInfo {
        account_info(&lock(&self.network.account(number).expect("an account of the network")))
    }

    /// Adds an account, announced by `#identity`, `#account` and `#sync`; returns its number.
    pub fn add_account(&self) -> usize {
        self.network.add_account()
    }

    /// Writes a commit of this account.
    ///
    /// # Panics
    /// Here and below: if there is no such account.
    pub fn write_commit_as(&self, number: usize) {
        self.network
            .change(number, |account, micros| vec![account.write(micros, self.network.now())]);
    }

    /// Writes a commit without an event, so that the next event does not continue the known state.
    pub fn write_unannounced(&self, number: usize) {
        self.network.change(number, |account, micros| {
            drop(account.write(micros, self.network.now()));
            Vec::new()
        });
    }

    /// Writes a commit of this account, which another PDS sends.
    pub fn write_commit_at(&self, number: usize, host: usize) {
        let mut written = Vec::new();
        self.network.change(number, |account, micros| {
            written.push(account.write(micros, self.network.now()));
            Vec::new()
        });
        self.network.publish_all(host, written);
    }

    /// Sends `#sync` with the current commit.
    pub fn send_sync(&self, number: usize) {
        self.network.change(number, |account, _| vec![account.sync_event(self.network.now())]);
    }

    /// Replaces the signing key in the directory, sends `#identity` and writes a commit signed with it.
    pub fn rotate_key(&self, number: usize) {
        self.network.change(number, |account, micros| {
            account.rotate(self.network.now());
            vec![
                account.identity_event(self.network.now()),
                account.write(micros, self.network.now()),
            ]
        });
    }

    /// Writes a commit with a signing key that is not registered in the directory.
    pub fn sign_with_unregistered_key(&self, number: usize) {
        self.network.change(number, |account, micros| {
            account.change_key();
            vec![account.write(micros, self.network.now())]
        });
    }

    /// Changes the handle and sends `#identity`.
    pub fn change_handle(&self, number: usize, handle: &str) {
        self.network.change(number, |account, _| {
            account.handle = handle.to_ascii_lowercase();
            let name = format!("at://{}", account.handle);
            account.register(self.network.now(), |data| data.also_known_as = vec![name]);
            vec![account.identity_event(self.network.now())]
        });
    }

    /// Changes the status and sends `#account`; for an account that becomes active again, `#identity` and
    /// `#sync` too.
    pub fn set_account_status(&self, number: usize, status: AccountStatus) {
        self.network.change(number, |account, _| {
            let is_reactivated = status == AccountStatus::Active && account.status != status;
            account.status = status;
            let mut events = vec![account.account_event(self.network.now())];
            if is_reactivated {
                events.extend([
                    account.identity_event(self.network.now()),
                    account.sync_event(self.network.now()),
                ]);
            }
            events
        });
    }

    /// Deletes the account: registers a tombstone and sends `#account`.
    pub fn delete_account(&self, number: usize) {
        self.network.change(number, |account, _| {
            account.tombstone(self.network.now());
            account.status = AccountStatus::Deleted;
            vec![account.account_event(self.network.now())]
        });
    }

    /// Moves the account to another PDS, which sends `#identity` and `#account`.
    pub fn migrate_account(&self, number: usize, host: usize) {
        let endpoint = self.url(Server::Pds(host));
        self.network.change(number, |account, _| {
            account.host = host;
            let service = pds(&endpoint);
            account.register(self.network.now(), |data| {
                drop(data.services.insert("atproto_pds".to_owned(), service))
            });
            vec![
                account.identity_event(self.network.now()),
                account.account_event(self.network.now()),
            ]
        });
    }

    /// Serves a case of the hostile set on the first PDS: `listRepos` and `getRepo` return a repository from now on, and
    /// frames are sent now with sequence numbers of the stream. Cases of one set share their accounts,
    /// so a case may affect the verification of later ones; sets of other seeds have other accounts.
    pub fn serve_case(&self, case: &hostile::Case) {
        let mut guests = self.network.guests().write().expect(UNPOISONED);
        guests.insert(case.did.clone(), GuestAccount::of(case));
        drop(guests);
        self.network.publish_all(0, guest_events(case, self.network.now()));
    }

    /// Serves an account with its repository and its blobs on the PDS of this number from now on. It is not announced.
    pub fn serve_blob_account(&self, pds: usize, account: BlobAccount) {
        let guest = GuestAccount {
            signing_key: account.signing_key().to_owned(),
            archive: Some(account.archive().to_vec()),
            pds,
            ..GuestAccount::default()
        };
        let did = account.did().to_owned();
        let guest = GuestAccount { blobs: Some(account.into()), ..guest };
        self.network.guests().write().expect(UNPOISONED).insert(did, guest);
    }

    /// Runs an attack once, of this amount; [`Attack`] gives the unit of the amount. Every call uses other names.
    pub fn attack(&self, attack: Attack, amount: u64) {
        let round = self.network.attack_rounds.fetch_add(1, Ordering::Relaxed);
        self.network.publish_all(0, attack.events(&self.network, round, amount));
    }

    /// Adds a line to the export of the directory: the JSON of an operation with `did`, `operation`, `cid` and `createdAt`, of
    /// any account. It gets the next number when the export is requested, unless it has a `seq`.
    ///
    /// # Panics
    /// If it is not a JSON object.
    pub fn add_to_export(&self, line: &str) {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(line.is_object(), "a JSON object");
        self.network.export.lock().expect(UNPOISONED).add(line);
    }

    /// Lets streams of the directory begin after this number or a later one only; earlier cursors are outdated.
    pub fn begin_export_streams(&self, seq: u64) {
        self.network.export.lock().expect(UNPOISONED).begin_streams(seq);
    }

    /// Begins the numbers of the export again, without the lines that were added to it.
    pub fn restart_export(&self) {
        self.network.export.lock().expect(UNPOISONED).restart();
    }

    /// Seals the hosted archive of a Jetstream with the accounts as they are now. The first request does so otherwise, and later
    /// changes of accounts are not part of it.
    #[cfg(feature = "jetstream")]
    pub fn seal_archive(&self, server: Server) {
        SealedArchive::renew(&self.network, server);
    }

    /// A segment of the hosted archive of a Jetstream, as it was sealed; `None` after the last.
    #[cfg(feature = "jetstream")]
    pub fn archive_segment(&self, server: Server, number: usize) -> Option<Vec<u8>> {
        let archive = SealedArchive::kept(&self.network, server);
        archive.segments.get(number).map(|segment| segment.bytes.clone())
    }

    /// The states of the accounts that a complete and correct reader ends with.
    pub fn expected_accounts(&self) -> Vec<ExpectedAccount> {
        let accounts = (0..self.account_count()).filter_map(|number| self.network.account(number));
        accounts.map(|account| expected_account(&lock(&account))).collect()
    }

    /// All events that a server has sent since the start; none for the directory.
    pub fn sent_events(&self, server: Server) -> Vec<SentEvent> {
        self.network.event_log(server).map(|log| log.sent()).unwrap_or_default()
    }

    /// The number of events that a server has sent since the start.
    pub fn sent_count(&self, server: Server) -> u64 {
        self.network.event_log(server).map_or(0, |log| log.count())
    }

    /// The last sequence number of a server.
    pub fn last_seq(&self, server: Server) -> i64 {
        self.network.event_log(server).map_or(0, |log| log.last_seq())
    }

    /// The numbers of events not yet sent, by reader of a server.
    pub fn backlogs(&self, server: Server) -> Vec<u64> {
        self.network.event_log(server).map(|log| log.backlogs()).unwrap_or_default()
    }

    /// The numbers of requests to a server by path.
    pub fn request_counts(&self, server: Server) -> BTreeMap<String, u64> {
        self.server_traffic(server).requests
    }

    /// The requests and answers of a server.
    pub fn server_traffic(&self, server: Server) -> ServerTraffic {
        self.network.traffic.of(server)
    }

    /// The requests to a server in the windows of its limit so far.
    pub fn request_windows(&self, server: Server) -> Vec<RequestWindow> {
        self.network.request_limits.windows(server)
    }

    /// The number of frames sent by all servers.
    pub fn frames_sent(&self) -> u64 {
        self.network.traffic.frames.load(Ordering::Relaxed)
    }

    /// The number of connections accepted by all servers.
    pub fn connection_count(&self) -> u64 {
        self.network.traffic.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        drop(self.writer.lock().map(|mut writer| writer.take()));
        drop(self.listeners.lock().map(|mut listeners| listeners.clear()));
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn account_info(account: &HostedAccount) -> AccountInfo {
    AccountInfo {
        did: account.did().to_owned(),
        handle: account.handle.clone(),
        signing_key: account.repository.account().key().did_key(),
        host: account.host,
        status: account.status,
    }
}

fn expected_account(account: &HostedAccount) -> ExpectedAccount {
    let repository = account.repository.get();
    let records = repository.tree().entries().iter();
    ExpectedAccount {
        account: account_info(account),
        commit: repository.head().cid,
        rev: repository.rev(),
        data: repository.tree().root(),
        records: records.map(|entry| (entry.key.to_string(), entry.value)).collect(),
    }
}

/// The thread that writes commits; dropping it stops the thread.
#[derive(Debug)]
struct WriterThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    fn start(network: Arc<NetworkState>, rate: WriteRate) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let should_stop = stop.clone();
        let thread = std::thread::spawn(move || match rate {
            WriteRate::Off => {}
            WriteRate::PerSecond(rate) => write_at_rate(&network, rate, &should_stop),
            WriteRate::MatchReaders => write_as_read(&network, &should_stop),
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is reported where it happens.
            let _ = thread.join();
        }
    }
}

fn write_at_rate(network: &NetworkState, rate: u32, stop: &AtomicBool) {
    let mut start = Instant::now();
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u64;
        let lag = due - written;
        let count = lag.min(u64::from(rate / 10).max(1));
        network.write(count as usize);
        written += count;
        if lag > u64::from(rate) {
            // A lag of more than a second is not caught up.
            (start, written) = (Instant::now(), 0);
        }
        std::thread::sleep(TICK);
    }
}

fn write_as_read(network: &NetworkState, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let slowest = network.event_logs().flat_map(|log| log.backlogs()).max();
        if slowest.is_some_and(|backlog| backlog < MAX_WRITER_LEAD) {
            network.write(COMMITS_PER_BATCH)
        } else {
            std::thread::sleep(TICK)
        }
    }
}

/// The number of threads of the servers.
const THREADS: usize = 2;

/// The interval between writes.
const TICK: Duration = Duration::from_millis(1);

/// The backlog of the slowest reader at which writing pauses.
const MAX_WRITER_LEAD: u64 = 1024;
/// The number of commits written at once.
const COMMITS_PER_BATCH: usize = 64;
