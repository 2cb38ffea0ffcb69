//! A client built from the library's public parts, and the state it mirrors.

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use atproto::event::{Commit, Event};
use atproto::repo::{self, Repository};
use net::cursors::FileCursors;
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::firehose::{
    Ack, CursorsOnly, DeliveredEvent, Firehose, Handler, Notice, Options, ResolverKeys,
    ResyncError, ResyncOptions, ResyncedRepo, RunSummary, StartFrom, StopSignal, Verdict,
};
use net::http::Client as Http;
use net::identity::{self, Resolver};
use net::xrpc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use verify::sync::{Chain, Ignored, MemoryState, Outcome, SyncEffect};
use wireproof_interop::pds::{Pds, Plc};

/// A client that follows a server.
pub(crate) struct Client {
    mirror: Arc<Mutex<Mirror>>,
    stop: StopSignal,
    run: JoinHandle<RunSummary>,
}

/// A resolver of accounts on this machine.
pub(crate) fn resolver(plc: &Plc, pds: &Pds) -> (Http, Resolver) {
    resolver_at(plc, pds.port())
}

/// A resolver of accounts of the PDS on this port.
pub(crate) fn resolver_at(plc: &Plc, port: u16) -> (Http, Resolver) {
    let names = Arc::new(LoopbackDns);
    let http = Http::new(EgressPolicy::Loopback, names.clone()).expect("a client");
    let directory = plc.url().parse().expect("a URL");
    let development_port = Some(port);
    let mut options = identity::Options::default();
    (options.directory, options.development_port) = (directory, development_port);
    (http.clone(), Resolver::new(http, names, options))
}

impl Client {
    /// Follows `host` with `mirror` from the cursors in `folder`, or from the first retained event if there
    /// are none.
    pub(crate) fn follow(
        host: &str,
        (http, resolver): (Http, Resolver),
        folder: &Path,
        mirror: Mirror,
    ) -> Self {
        let host = host.parse().expect("a URL");
        let mut options = Options::new(vec![host], Arc::new(ResolverKeys::new(resolver.clone())));
        options.feed.start = StartFrom::Oldest;
        options.resync = Some(ResyncOptions::new(xrpc::Client::new(http.clone()), resolver));
        let journal = CursorsOnly(FileCursors::open(folder.join("cursors.json")).expect("cursors"));
        let (mirror, stop) = (Arc::new(Mutex::new(mirror)), StopSignal::new());
        let states = |_| MemoryState::new([7; 16]);
        let handler = MirrorHandler(Arc::clone(&mirror));
        let run = Firehose::new(&http, options).run(handler, journal, states, stop.clone());
        let run = tokio::spawn(async { run.await.expect("the run ends by the stop signal") });
        Self { mirror, stop, run }
    }

    /// The current state.
    pub(crate) fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().expect("no thread panics while it holds this lock")
    }

    /// Waits until the state fulfils `is_reached`.
    pub(crate) async fn wait_until(&self, what: &str, is_reached: impl Fn(&Mirror) -> bool) {
        let deadline = Instant::now() + STATE_TIMEOUT;
        while !is_reached(&self.mirror()) {
            assert!(Instant::now() < deadline, "{what} never came: {:?}", self.mirror());
            assert!(!self.run.is_finished(), "the client has ended");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Stops the client in order and returns its state.
    pub(crate) async fn end(self) -> Mirror {
        self.stop.request();
        let summary = self.run.await.expect("the run");
        assert_eq!(summary.unacknowledged, 0);
        std::mem::take(&mut self.mirror.lock().expect("no thread panics while it holds this lock"))
    }
}

/// Applies events to the mirror.
struct MirrorHandler(Arc<Mutex<Mirror>>);

impl MirrorHandler {
    fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.0.lock().expect("no thread panics while it holds this lock")
    }
}

impl Handler for MirrorHandler {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.mirror().apply(event);
        ack.done();
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        self.mirror().replace(resynced);
        ack.done();
    }

    fn resync_failed(&self, did: &str, why: &ResyncError) {
        self.mirror().faults.push(format!("{did}: {why}"));
    }

    fn notice(&self, notice: &Notice) {
        self.mirror().note(notice);
    }
}

/// The time in which an expected state must be reached on a busy machine.
const STATE_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// Records by path.
pub(crate) type Records = BTreeMap<String, String>;

/// The state of all accounts, with unexpected events and connections.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) replicas: BTreeMap<String, Replica>,
    /// Unexpected events and notices.
    pub(crate) faults: Vec<String>,
    pub(crate) connections: u64,
}

/// The state of an account.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Replica {
    pub(crate) rev: String,
    pub(crate) records: Records,
    /// `None` for an active account.
    pub(crate) status: Option<String>,
    /// Whether events are missing and the repository has not been fetched yet.
    is_broken: bool,
    /// The revision of the repository fetched last.
    fetched: Option<String>,
}

impl Mirror {
    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &DeliveredEvent<'_>) {
        let Verdict::Judged(outcome) = &event.verdict else {
            return self.faults.push(format!("{event:?}"));
        };
        match outcome {
            Outcome::Commit(commit, Chain::Intact | Chain::FirstSeen) => {
                self.replica(commit.repo).apply(commit);
            }
            Outcome::Commit(commit, Chain::Broken(_) | Chain::StillDesynchronized) => {
                self.replica(commit.repo).is_broken = true;
            }
            Outcome::Sync(sync, SyncEffect::Unchanged | SyncEffect::FirstSeen) => {
                self.replica(sync.did).rev = sync.rev.to_string();
            }
            Outcome::Sync(sync, SyncEffect::Desynchronized) => {
                self.replica(sync.did).is_broken = true;
            }
            Outcome::Unjudged(Event::Account(account)) => {
                let status = account.status.unwrap_or("unknown").to_owned();
                self.replica(account.did).set_status(account.active, status);
            }
            Outcome::Unjudged(Event::Identity(_)) => {}
            // A server sends `#sync` when an account is created or reactivated.
            Outcome::Ignored(Ignored::Stale { rev, stored })
                if rev == stored && matches!(event.event, Some(Event::Sync(_))) => {}
            // Events up to the fetched revision are sent as well.
            Outcome::Ignored(Ignored::Stale { rev, .. })
                if self.was_fetched(event.did.unwrap_or_default(), &rev.to_string()) => {}
            _ => self.faults.push(format!("{event:?}")),
        }
    }

    /// Replaces the records by the records of a fetched repository.
    pub(crate) fn replace(&mut self, resynced: &ResyncedRepo) {
        let (mut file, mut export) = (resynced.file(), Vec::new());
        file.rewind().and_then(|()| file.read_to_end(&mut export)).expect("an archive");
        let repository =
            Repository::read(&export, &repo::Options::default()).expect("a verified archive");
        let replica = self.replica(&resynced.did);
        replica.records = records(&repository);
        replica.rev = resynced.head.rev.to_string();
        replica.fetched = Some(replica.rev.clone());
        replica.is_broken = false;
    }

    /// Records a notice of the connection.
    pub(crate) fn note(&mut self, notice: &Notice) {
        match notice {
            Notice::Connected { .. } => self.connections += 1,
            // A killed server is unreachable for a while and may skip sequence numbers.
            Notice::Disconnected { .. }
            | Notice::ConnectFailed { .. }
            | Notice::RetryScheduled { .. }
            | Notice::Gap { .. } => {}
            _ => self.faults.push(format!("{notice:?}")),
        }
    }

    /// Whether the state of an account is complete up to a revision.
    pub(crate) fn has(&self, did: &str, rev: &str) -> bool {
        self.replicas.get(did).is_some_and(|replica| replica.rev == rev && !replica.is_broken)
    }

    fn was_fetched(&self, did: &str, rev: &str) -> bool {
        let fetched = self.replicas.get(did).and_then(|replica| replica.fetched.as_deref());
        // Revisions sort as texts.
        fetched.is_some_and(|fetched| rev <= fetched)
    }

    fn replica(&mut self, did: &str) -> &mut Replica {
        self.replicas.entry(did.to_owned()).or_default()
    }
}

impl Replica {
    fn apply(&mut self, commit: &Commit<'_>) {
        self.rev = commit.rev.to_string();
        for op in commit.ops {
            match op.cid {
                Some(cid) => self.records.insert(op.path.to_owned(), cid.to_string()),
                None => self.records.remove(op.path),
            };
        }
    }

    fn set_status(&mut self, is_active: bool, status: String) {
        if status == "deleted" {
            self.records.clear();
        }
        self.status = (!is_active).then_some(status);
    }
}

/// The records of a repository.
pub(crate) fn records(repository: &Repository<'_>) -> Records {
    let records = repository.records().map(|record| record.expect("a valid tree"));
    records.map(|record| (record.path, record.cid.to_string())).collect()
}
