//! A run on a firehose: its parts, and the events of the run as lines for a recipient.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use atproto::event::Options as Decoding;
use delivery::{Outbox, WebSocketMetrics};
use net::firehose::{
    self, Firehose, KeyProvider, ResolverKeys, ResyncOptions, ResyncRequests, RunError, RunMetrics,
    RunSummary, ServerStatuses, StopSignal, Upstream, Verification,
};
use net::identity::Resolver;
use net::xrpc;
use store::{Store, StoreState};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use verify::sync::{AccountState, SyncState};

use super::account_log::AccountLog;
use super::admin::{AdminServer, AdminSocket};
use super::args::FollowArgs;
use super::control::Control;
use super::handles;
use super::histories::Histories;
use super::keys::StoredKeys;
use super::line::LineContent;
use super::lost_events::{LastLoss, LostEvents};
use super::metrics::{FirehoseSeries, Metrics, MoreSeries, Readiness};
use super::printer::{LineRecipient, Printer};
use super::recheck::{Recheck, RecheckParts};
use super::reload;
use super::repetition_marks::RepetitionMarks;
use super::selection::{self, Selection};
use super::state::{self, StateJournal};
use super::stats::RunStats;
use super::status::Status;
use super::stored_changes::StoredChanges;
use crate::failure::Failure;
use crate::interrupt::Shutdown;
use crate::network::Network;
use crate::stream::{DEFAULT_RELAY, Hosts};

/// What a run needs from outside: files, sockets and arguments.
pub struct Setup<'a> {
    pub(super) args: &'a FollowArgs,
    /// The accounts of the arguments: DIDs and files.
    accounts: Vec<String>,
    pub(super) selection: Selection,
    pub(super) store: Store,
    pub(super) hosts: Hosts,
    pub(super) network: Network,
    /// Series of the recipient.
    pub series: Option<Arc<dyn MoreSeries>>,
    listener: Option<TcpListener>,
    admin: Option<AdminSocket>,
}

impl<'a> Setup<'a> {
    /// Reads files, opens the state, binds addresses and resolves handles.
    ///
    /// # Errors
    /// If one of these fails, or an argument is not valid.
    pub async fn new(args: &'a FollowArgs) -> Result<Self, Failure> {
        let token = args.admin()?;
        let changes = StoredChanges::load(&state::folder(args)?)?;
        let hosts = Hosts::new(&args.stream.host, DEFAULT_RELAY)?;
        let named = [hosts.urls.clone(), args.listed_servers()?].concat();
        let network = Network::open(&args.stream.network, &named)?;
        let accounts = handles::resolve(args.accounts(), &network).await?;
        let selection =
            Selection::new(&accounts, &args.collections, args.condition.clone(), changes)?;
        let listener = Metrics::bind(args.metrics).await?;
        let admin = match token {
            Some((address, token)) => Some(AdminSocket::bind(address, token).await?),
            None => None,
        };
        let store = state::open(args)?;
        reset_accounts(args, &store)?;
        Ok(Self { args, accounts, selection, store, hosts, network, series: None, listener, admin })
    }
}

/// Forgets the known revisions of the accounts of `--reset-account`. Where repositories are fetched, theirs is next.
fn reset_accounts(args: &FollowArgs, store: &Store) -> Result<(), Failure> {
    let sync = if args.resyncs() { SyncState::Desynchronized } else { SyncState::Synchronized };
    let state = AccountState { sync, ..AccountState::UNKNOWN };
    let reset = |did: &String| Ok((selection::did(did, "--reset-account")?, state));
    let accounts: Vec<_> = args.reset_account.iter().map(reset).collect::<Result<_, Failure>>()?;
    match accounts.is_empty() {
        true => Ok(()),
        false => Ok(store.checkpoint(&[] as &[(&str, u64)], &accounts)?),
    }
}

/// A run that has not started yet.
pub struct Run<'a> {
    pub(super) args: &'a FollowArgs,
    pub(super) store: Store,
    pub(super) stats: Arc<RunStats>,
    /// Standard error.
    pub status: Status,
    /// Ends the run.
    pub stop: StopSignal,
    pub(super) shutdown: Shutdown,
    /// The names of the hosts' streams.
    pub(super) streams: Vec<String>,
    /// Asks accounts' own servers.
    pub statuses: ServerStatuses,
    pub(super) selection: Selection,
    pub(super) resolver: Resolver,
    pub(super) xrpc: xrpc::Client,
    /// Requests of histories.
    pub(super) requests: ResyncRequests,
    /// Notified when histories are outdated.
    pub(super) outdated: Arc<Notify>,
    /// The histories of the run, if accounts get theirs.
    pub(super) histories: Option<Arc<Histories>>,
    named_accounts: Vec<String>,
    keys: Arc<StoredKeys>,
    firehose: Firehose,
    states: Vec<StoreState>,
    endpoint: Option<Metrics>,
    admin: Option<AdminServer>,
    /// What was last seen of accounts, for the admin API.
    accounts: Arc<AccountLog>,
    metrics: Arc<RunMetrics>,
    outbox: Option<Outbox>,
    recheck: Arc<Recheck>,
    /// Whether repositories are fetched.
    resyncs: bool,
}

impl<'a> Run<'a> {
    /// A run with these parts; those of the delivery are for its metrics. From now on SIGINT and SIGTERM stop it.
    ///
    /// # Errors
    /// If the state cannot be read, or the system gives no signals.
    pub fn new(
        setup: Setup<'a>,
        outbox: Option<Outbox>,
        websocket: Option<Arc<WebSocketMetrics>>,
    ) -> Result<Self, Failure> {
        let Setup { args, selection, store, hosts, network, series: more, listener, admin, .. } =
            setup;
        let named_accounts = setup.accounts;
        let keys = Arc::new(stored_keys(args, &hosts, &network, &store)?);
        let statuses = ServerStatuses::new(network.xrpc.clone(), network.resolver.clone());
        let mut options = options(args, &hosts, &network, keys.clone());
        options.statuses = Some(Arc::new(statuses.clone()));
        let requests = ResyncRequests::default();
        if let Some(resync) = &mut options.resync {
            resync.requests = requests.clone();
            let accounts = store.desynchronized(resync.max_queued)?;
            resync.desynchronized = accounts.into_iter().map(Box::from).collect();
            resync.accounts = (!selection.has_all_accounts).then(|| selection.dids.clone());
        }
        let (lines, recheck) = (outbox.clone(), Recheck::load(&state::folder(args)?)?);
        let resyncs = options.resync.is_some();
        let states = (0..options.workers).map(|_| store.chain_state()).collect::<Result<_, _>>()?;
        let streams = hosts.urls.iter().map(|url| Upstream::new(url.clone()).stream_name());
        let streams = streams.collect();
        let pause = options.pause.clone();
        pause.set(selection.changes().is_intake_paused);
        let firehose = Firehose::new(&network.http, options);
        let (stats, metrics) = (Arc::new(RunStats::new(hosts.names)), firehose.metrics());
        let (status, stop) = (Status::new(), StopSignal::new());
        let (of_run, stop_of_run) = (stats.clone(), stop.clone());
        let readiness =
            Readiness { stats: of_run, outbox: outbox.clone(), stop: stop_of_run, pause };
        let (accounts, outdated) =
            (Arc::new(AccountLog::new(admin.is_some())), Arc::<Notify>::default());
        let admin = admin.map(|socket| {
            socket.serve(
                Control {
                    selection: selection.clone(),
                    store: store.clone(),
                    readiness: readiness.clone(),
                    metrics: metrics.clone(),
                    accounts: accounts.clone(),
                    histories: args.backfills().then(|| requests.clone()),
                    outdated: outdated.clone(),
                },
                &status,
            )
        });
        announce_changes(&selection, &status);
        args.verify_level().warning().into_iter().for_each(|text| status.print_warning(text));
        let (resolver, xrpc) = (network.resolver, network.xrpc);
        let endpoint = listener.map(|listener| {
            let (stats, metrics, store) = (stats.clone(), metrics.clone(), store.clone());
            let resolver = resolver.clone();
            let condition = args.condition.clone();
            let level = args.verify_level();
            let series = FirehoseSeries {
                stats,
                metrics,
                resolver,
                store,
                outbox,
                websocket,
                condition,
                level,
                more,
            };
            Metrics::new(listener, series, readiness, &status)
        });
        let (limit, announcing) = (args.stream.stop_limit(), status.clone());
        let announce = move || announcing.announce_stop(limit);
        let shutdown = Shutdown::listen(stop.clone(), limit, announce)?;
        Ok(Self {
            args,
            store,
            stats,
            status,
            stop,
            shutdown,
            streams,
            statuses,
            selection,
            resolver,
            xrpc,
            requests,
            outdated,
            histories: None,
            named_accounts,
            keys,
            firehose,
            states,
            endpoint,
            admin,
            accounts,
            metrics,
            outbox: lines,
            recheck,
            resyncs,
        })
    }

    /// Hands all events to `recipient`, until a stop is requested or `--events` is reached.
    pub async fn follow_into(self, recipient: impl LineRecipient) -> Followed {
        self.follow(recipient, None).await
    }

    /// Hands the lines of all events to `recipient`, until a stop is requested or `--events` is reached. Each checkpoint
    /// reserves numbers of `marks`.
    pub(super) async fn follow(
        self,
        recipient: impl LineRecipient,
        marks: Option<Arc<RepetitionMarks>>,
    ) -> Followed {
        let Self { args, store, stats, status, stop, mut states, .. } = self;
        let states = move |_| -> StoreState { states.pop().expect("one for each worker") };
        let selection = self.selection.clone();
        let printer = Printer {
            recipient,
            selection: self.selection,
            stats: stats.clone(),
            status: status.clone(),
            accounts: self.accounts,
            histories: self.histories.clone(),
            requests: self.requests.clone(),
            content: LineContent { proof: args.proof, level: args.verify_level() },
            lost: LostEvents {
                outbox: self.outbox.clone(),
                outdated: self.outdated.clone(),
                recheck: self.recheck.clone(),
                resyncs: self.resyncs,
                status: status.clone(),
                stop: stop.clone(),
                last: LastLoss::default(),
            },
            lines_going_back: AtomicU64::new(0),
        };
        let parts = RecheckParts {
            store: store.clone(),
            outbox: self.outbox,
            selection: selection.clone(),
            requests: self.requests,
            status: status.clone(),
        };
        let recheck = self.recheck.clone();
        let check = async {
            match self.resyncs {
                true => recheck.run(parts).await,
                false => std::future::pending().await,
            }
        };
        let initial_cursor = args.cursor.cursor();
        let (keys, recheck) = (self.keys, self.recheck.clone());
        let journal = StateJournal { store, keys, marks, recheck, initial_cursor };
        let (accounts, histories) = (self.named_accounts, self.histories);
        let backfills = args.backfills();
        let changed = |added, removed| {
            if let Some(histories) = &histories {
                histories.leave(removed);
                histories.add(if backfills { added } else { Vec::new() });
            }
        };
        let run = self.firehose.run(printer, journal, states, stop);
        let result = tokio::select! {
            result = run => result,
            never = Metrics::serve(self.endpoint) => match never {},
            never = AdminServer::run(self.admin) => match never {},
            never = status.update(&stats, &self.metrics) => match never {},
            never = check => match never {},
            never = reload::on_hangup(&accounts, &selection, &status, changed) => match never {},
        };
        status.end();
        status.print_skipped(&stats, &self.metrics.snapshot());
        Followed { result, status, stats, metrics: self.metrics, shutdown: self.shutdown }
    }
}

/// Says that the command line is not all that selects events.
fn announce_changes(selection: &Selection, status: &Status) {
    let changes = selection.changes();
    if changes.len() > 0 {
        let count = changes.len();
        status.print(&format!("{count} stored changes of accounts, collections and pauses apply"));
    }
    if changes.is_intake_paused {
        status.print_warning("the intake of events is paused: `wireproof resume` ends the pause");
    }
}

/// A run that has ended, unless its recipient still has lines.
pub struct Followed {
    result: Result<RunSummary, RunError>,
    pub(super) status: Status,
    stats: Arc<RunStats>,
    metrics: Arc<RunMetrics>,
    shutdown: Shutdown,
}

impl Followed {
    /// Whether the run has ended because it had received all events, or was stopped.
    pub(super) fn is_orderly(&self) -> bool {
        self.result.is_ok()
    }

    /// Reports events that were not acknowledged: `what` is missing for them.
    ///
    /// # Errors
    /// If the run failed.
    pub fn check(self, what: &str) -> Result<Shutdown, Failure> {
        let failed = |error| state::failure(error, &self.stats, &self.metrics);
        let unacknowledged = self.result.map_err(failed)?.unacknowledged;
        if unacknowledged > 0 {
            self.status.print(&format!(
                "{unacknowledged} events were not {what}: the next run repeats them"
            ));
        }
        Ok(self.shutdown)
    }
}

/// Keys from the directory, which are stored; with `--pds` those of the server's accounts.
fn stored_keys(
    args: &FollowArgs,
    hosts: &Hosts,
    network: &Network,
    store: &Store,
) -> Result<StoredKeys, Failure> {
    let server = match (args.pds, &*args.stream.host, &*hosts.urls) {
        (false, ..) => None,
        (true, [_], [server]) => Some(server.clone()),
        _ => return Err(Failure::Usage("--pds: name one server with --host".to_owned())),
    };
    Ok(StoredKeys::new(ResolverKeys::new(network.resolver.clone()), server, store.clone()))
}

fn options(
    args: &FollowArgs,
    hosts: &Hosts,
    network: &Network,
    keys: Arc<dyn KeyProvider>,
) -> firehose::Options {
    let mut options = firehose::Options::new(hosts.urls.clone(), keys);
    let decoding = Decoding::default();
    let verify = match (args.verify_level().policy(), options.verify) {
        (Some(mut policy), Verification::On { keys, cache_bytes, .. }) => {
            policy.strict_records = args.strict_records;
            Verification::On { policy, keys, cache_bytes }
        }
        _ => Verification::Off { decoding },
    };
    options.resync = (args.resyncs() && matches!(verify, Verification::On { .. })).then(|| {
        let mut resync = ResyncOptions::new(network.xrpc.clone(), network.resolver.clone());
        resync.repository.strict_records = args.strict_records;
        resync.retries = RESYNC_RETRIES;
        resync.folder = state::archive_folder(args).unwrap_or(resync.folder);
        if let Some(bytes) = args.resync_bytes {
            resync.max_bytes_in_use = bytes;
            let of_one = bytes.saturating_sub(OTHER_RESYNC_BYTES);
            resync.limits.max_bytes = resync.limits.max_bytes.min(of_one);
        }
        resync
    });
    options.verify = verify;
    options.feed = args.stream.feed_options(args.cursor);
    options.workers = args.workers.map_or(options.workers, usize::from);
    options.limits.max_gather = Duration::from_millis(args.gather_ms);
    options.max_events = args.events;
    options.clock_servers = vec![network.directory.clone()];
    if args.backfills() {
        options.limits.max_hold = MAX_BACKFILL_HOLD;
        if let Some(resync) = &mut options.resync {
            resync.is_paced = true;
            resync.max_fetches = BACKFILL_FETCHES;
            resync.max_fetches_per_domain = BACKFILL_FETCHES / 2;
            resync.max_fetches_per_host = 4;
        }
    }
    // The rest is for the recipient of the lines.
    options.stop_timeout = args.stream.stop_limit() / 10 * 8;
    options
}

/// Concurrent fetches of repositories of a backfill.
const BACKFILL_FETCHES: usize = 64;

/// Bytes of other repositories than the largest.
const OTHER_RESYNC_BYTES: u64 = 16 << 20;

/// Retries of a failed resync during the run: some eight hours.
const RESYNC_RETRIES: u32 = 12;

/// Maximum time for which events of an account wait until its history is delivered: repositories are fetched one after
/// the other, each within five minutes.
const MAX_BACKFILL_HOLD: Duration = Duration::from_secs(600);
