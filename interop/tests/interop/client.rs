//! Our client, as anybody would build it from the library's parts.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use net::cursors::FileCursors;
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::firehose::{
    Ack, CursorsOnly, DeliveredEvent, Firehose, Handler, Notice, Options, ResolverKeys,
    ResyncError, ResyncOptions, ResyncedRepo, RunSummary, StartFrom, StopSignal,
};
use net::http::Client as Http;
use net::identity::{self, Resolver};
use net::xrpc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wireproof::verify::sync::MemoryState;
use wireproof_interop::pds::Pds;
use wireproof_interop::plc::Plc;

use crate::mirror::Mirror;

/// A client that follows a server.
pub(crate) struct Client {
    mirror: Arc<Mutex<Mirror>>,
    stop: StopSignal,
    run: JoinHandle<RunSummary>,
}

/// Somebody who finds out who an account is, on this machine.
pub(crate) fn resolver(plc: &Plc, pds: &Pds) -> (Http, Resolver) {
    let names = Arc::new(LoopbackDns);
    let http = Http::new(EgressPolicy::Loopback, names.clone()).expect("a client");
    let directory = plc.url().parse().expect("a URL");
    let development_port = Some(pds.port());
    let options = identity::Options { directory, development_port, ..Default::default() };
    (http.clone(), Resolver::new(http, names, options))
}

impl Client {
    /// Goes on with `mirror` where the cursors in `folder` say; without any, from the first event that
    /// `host` has kept.
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
        let handler = Keeper(Arc::clone(&mirror));
        let run = Firehose::new(&http, options).run(handler, journal, states, stop.clone());
        let run = tokio::spawn(async { run.await.expect("nothing ends it but us") });
        Self { mirror, stop, run }
    }

    /// What it has now.
    pub(crate) fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.mirror.lock().expect("nobody panics with it")
    }

    /// Waits until it has what `is_there` looks for.
    pub(crate) async fn wait_until(&self, what: &str, is_there: impl Fn(&Mirror) -> bool) {
        let patience = Instant::now() + PATIENCE;
        while !is_there(&self.mirror()) {
            assert!(Instant::now() < patience, "{what} never came: {:?}", self.mirror());
            assert!(!self.run.is_finished(), "the client has ended");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Ends it as Ctrl-C does, and hands over what it has.
    pub(crate) async fn end(self) -> Mirror {
        self.stop.request();
        let summary = self.run.await.expect("the run");
        assert_eq!(summary.unacknowledged, 0);
        std::mem::take(&mut self.mirror.lock().expect("nobody panics with it"))
    }
}

/// Enters what comes into the mirror.
struct Keeper(Arc<Mutex<Mirror>>);

impl Keeper {
    fn mirror(&self) -> MutexGuard<'_, Mirror> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl Handler for Keeper {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.mirror().enter(event);
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

/// How long a client may take for what must come, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
