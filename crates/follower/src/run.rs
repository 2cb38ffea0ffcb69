//! A run on a firehose: its parts, and the events of the run as lines for a recipient.

use std::convert::Infallible;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use delivery::{Outbox, WebSocketMetrics};
use net::firehose::{
    self, Firehose, PauseSignal, ResolverKeys, ResyncCollections, ResyncRequests, RunError,
    RunMetrics, RunSummary, ServerStatuses, StopSignal, Upstream,
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
use super::verified_stream::VerifiedStream;
use crate::failure::Failure;
use crate::interrupt::Shutdown;
use crate::network::Network;
use crate::stream::{DEFAULT_RELAY, Hosts};

/// The inputs of a run: files, sockets and arguments.
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
    /// Ends the run; `None` if the signals of the process do.
    stop: Option<StopSignal>,
    listener: Option<TcpListener>,
    admin: Option<AdminSocket>,
    /// Maximum time until a host is reached.
    first_contact_limit: Option<Duration>,
}

impl<'a> Setup<'a> {
    /// Reads files, opens the state, binds addresses and resolves handles. SIGINT and SIGTERM end the run, and SIGHUP reads the
    /// files of accounts again.
    ///
    /// # Errors
    /// If one of these fails, or an argument is not valid.
    pub async fn new(args: &'a FollowArgs) -> Result<Self, Failure> {
        Self::stopped_by(args, None).await
    }

    /// As [`new`](Self::new), for a run that `stop` ends, if it is given, and no signal of the process.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub async fn stopped_by(
        args: &'a FollowArgs,
        stop: Option<StopSignal>,
    ) -> Result<Self, Failure> {
        let token = args.admin.socket()?;
        let changes = StoredChanges::load(&state::folder(args)?)?;
        let hosts = match &args.more_hosts {
            Some(_) if args.stream.host.is_empty() => Hosts::none(),
            _ => Hosts::new(&args.stream.host, DEFAULT_RELAY)?,
        };
        let named = [hosts.urls.clone(), args.listed_servers()?].concat();
        let network = Network::open_with_identities(&args.stream.network, &named, IDENTITIES)?;
        let accounts = args.accounts();
        let selected = handles::selected(&accounts, &network.resolver).await?;
        let selection =
            Selection::new(selected, &args.collections, args.condition.clone(), changes)?;
        let listener = Metrics::bind(args.metrics).await?;
        let admin = match token {
            Some((address, token)) => Some(AdminSocket::bind(address, token).await?),
            None => None,
        };
        let store = state::open(args)?;
        let streams = stream_names(&hosts);
        state::check_cursor(args, &streams, &store)?;
        let first_contact_limit = match &args.more_hosts {
            Some(_) => None,
            None => state::first_contact_limit(args, &streams, &store)?,
        };
        reset_accounts(args, &store)?;
        Ok(Self {
            args,
            accounts,
            selection,
            store,
            hosts,
            network,
            series: None,
            stop,
            listener,
            admin,
            first_contact_limit,
        })
    }
}

/// The names of the hosts' streams in the state.
fn stream_names(hosts: &Hosts) -> Vec<String> {
    hosts.urls.iter().map(|url| Upstream::new(url.clone()).stream_name()).collect()
}

/// Forgets the known revisions of the accounts of `--reset-account`. Where repositories are fetched, theirs is next.
fn reset_accounts(args: &FollowArgs, store: &Store) -> Result<(), Failure> {
    let sync = if args.resyncs() { SyncState::Desynchronized } else { SyncState::Synchronized };
    let state = AccountState { sync, ..AccountState::UNKNOWN };
    let reset = |did: &String| Ok((selection::did(did, "--reset-account")?, state));
    let accounts: Vec<_> = args.reset_account.iter().map(reset).collect::<Result<_, Failure>>()?;
    if accounts.is_empty() {
        Ok(())
    } else {
        Ok(store.checkpoint(&[] as &[(&str, u64)], &accounts)?)
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
    /// Whether signals of the process are for this run.
    has_signals: bool,
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
    /// The last known activity of accounts, for the admin API.
    accounts: Arc<AccountLog>,
    pub(super) metrics: Arc<RunMetrics>,
    outbox: Option<Outbox>,
    recheck: Arc<Recheck>,
    /// Whether repositories are fetched.
    resyncs: bool,
    /// Maximum time until a host is reached.
    first_contact_limit: Option<Duration>,
    pause: PauseSignal,
}

impl<'a> Run<'a> {
    /// A run with these parts; the parts of the delivery are for its metrics. From now on SIGINT and SIGTERM stop it,
    /// unless its caller does.
    ///
    /// # Errors
    /// If the state cannot be read, or the system gives no signals.
    pub fn new(
        setup: Setup<'a>,
        outbox: Option<Outbox>,
        websocket: Option<Arc<WebSocketMetrics>>,
    ) -> Result<Self, Failure> {
        let Setup { args, selection, store, hosts, network, series: more, stop, .. } = setup;
        let Setup { accounts: named_accounts, listener, admin, first_contact_limit, .. } = setup;
        state::forget_cursors(args, &stream_names(&hosts), &store)?;
        let keys = Arc::new(stored_keys(args, &hosts, &network, &store)?);
        let stream = VerifiedStream {
            hosts: &hosts.urls,
            resolver: &network.resolver,
            xrpc: &network.xrpc,
            directory: &network.directory,
            keys: keys.clone(),
            policy: args.policy(),
            resyncs: args.resyncs(),
            store: Some(&store),
            accounts: Some(&selection.dids).filter(|_| !selection.has_all_accounts),
            collections: match args.whole_repositories {
                true => ResyncCollections::default(),
                false => selection.resyncs.clone(),
            },
        };
        let statuses = stream.statuses();
        let mut options = stream.options(&statuses)?;
        let requests = ResyncRequests::default();
        if let Some(resync) = &mut options.resync {
            resync.requests = requests.clone();
        }
        set_limits(&mut options, args);
        options.more_hosts.clone_from(&args.more_hosts);
        let (lines, recheck) = (outbox.clone(), Recheck::load(&state::folder(args)?)?);
        let resyncs = options.resync.is_some();
        let states = (0..options.workers).map(|_| store.chain_state()).collect::<Result<_, _>>()?;
        let streams = stream_names(&hosts);
        let pause = options.pause.clone();
        pause.set(selection.changes().is_intake_paused);
        let of_contact = pause.clone();
        let firehose = Firehose::new(&network.http, options);
        let more_hosts = if args.more_hosts.is_some() { MAX_ADDED_HOSTS } else { 0 };
        let (stats, metrics) =
            (Arc::new(RunStats::with_more(hosts.names, more_hosts)), firehose.metrics());
        let has_signals = stop.is_none();
        let status = match (has_signals, args.delivery.to.is_empty() || args.delivery.ack_stdin) {
            (false, _) => Status::hidden(),
            (true, true) => Status::new(),
            (true, false) => Status::of_deliveries(),
        };
        let stop = stop.unwrap_or_default();
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
                    resolver: network.resolver.clone(),
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
            let stats = stats.clone();
            let metrics = metrics.clone();
            let store = store.clone();
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
        let shutdown = if has_signals {
            Shutdown::listen(stop.clone(), limit, announce)?
        } else {
            Shutdown::by_caller()
        };
        Ok(Self {
            args,
            store,
            stats,
            status,
            stop,
            shutdown,
            has_signals,
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
            first_contact_limit,
            pause: of_contact,
        })
    }

    /// Hands all events to `recipient`, until a stop is requested or `--events` is reached.
    pub async fn follow_into(self, recipient: impl LineRecipient) -> Followed {
        self.follow(recipient, None).await
    }

    /// Hands the lines of all events to `recipient`, until a stop is requested or `--events` is reached. Every checkpoint
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
            if self.resyncs { recheck.run(parts).await } else { std::future::pending().await }
        };
        let initial_cursor = args.start().cursor();
        let (keys, recheck) = (self.keys, self.recheck.clone());
        let journal = StateJournal { store, keys, marks, recheck, initial_cursor };
        let (accounts, histories) = (self.named_accounts, self.histories);
        let (backfills, resolver) = (args.backfills(), self.resolver);
        let changed = |added, removed| {
            if let Some(histories) = &histories {
                histories.leave(removed);
                histories.add(if backfills { added } else { Vec::new() });
            }
        };
        let read_again = async {
            if self.has_signals {
                reload::on_hangup(&accounts, &selection, &resolver, &status, changed).await
            } else {
                std::future::pending().await
            }
        };
        let missed = OnceLock::new();
        let of_stop = stop.clone();
        let first_contact = async {
            let why = missed_contact(&stats, self.first_contact_limit, &self.pause).await;
            missed.get_or_init(|| why);
            of_stop.request();
            std::future::pending::<Infallible>().await
        };
        let run = self.firehose.run(printer, journal, states, stop);
        let result = tokio::select! {
            result = run => result,
            never = first_contact => match never {},
            never = Metrics::serve(self.endpoint) => match never {},
            never = AdminServer::run(self.admin) => match never {},
            never = status.update(&stats, &self.metrics) => match never {},
            never = check => match never {},
            never = read_again => match never {},
        };
        status.end();
        status.print_skipped(&stats, &self.metrics.snapshot());
        let missed = missed.into_inner();
        Followed { result, missed, status, stats, metrics: self.metrics, shutdown: self.shutdown }
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
    /// Why no host was reached in time.
    missed: Option<Failure>,
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
        self.missed.map_or(Ok(self.shutdown), Err)
    }
}

/// Waits until no host was reached in time. A run that is paused reads no stream, so its time does not count.
async fn missed_contact(stats: &RunStats, limit: Option<Duration>, pause: &PauseSignal) -> Failure {
    loop {
        pause.resumed().await;
        tokio::select! {
            why = stats.contact.missed(limit) => return why,
            () = pause.begun() => {}
        }
    }
}

/// Keys from the directory, which are stored; with `--pds`, keys of the server's accounts.
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
    let keys = StoredKeys::new(ResolverKeys::new(network.resolver.clone()), server, store.clone());
    Ok(if args.more_hosts.is_some() { keys.with_hosts() } else { keys })
}

/// Applies the arguments for time, memory and threads.
fn set_limits(options: &mut firehose::Options, args: &FollowArgs) {
    if let Some(resync) = &mut options.resync {
        resync.retries = RESYNC_RETRIES;
        if let Some(folder) = state::archive_folder(args) {
            resync.folder = folder;
        }
        if let Some(bytes) = args.resync_bytes {
            resync.max_bytes_in_use = bytes;
            let of_one = bytes.saturating_sub(OTHER_RESYNC_BYTES);
            resync.limits.max_bytes = resync.limits.max_bytes.min(of_one);
        }
    }
    options.feed = args.stream.feed_options(args.start());
    options.workers = args.workers.map_or(options.workers, usize::from);
    options.limits.max_gather = Duration::from_millis(args.gather_ms);
    options.max_events = args.events;
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
}

/// Identities in memory: more for lookups in progress. The state file has the key and the host of every account.
const IDENTITIES: usize = 4 << 10;

/// Maximum number of hosts that are added to a run, and have a name in it.
pub const MAX_ADDED_HOSTS: usize = 16 << 10;

/// Concurrent fetches of repositories of a backfill.
const BACKFILL_FETCHES: usize = 64;

/// Bytes of other repositories than the largest.
const OTHER_RESYNC_BYTES: u64 = 16 << 20;

/// Retries of a failed resync during the run: some eight hours.
const RESYNC_RETRIES: u32 = 12;

/// Maximum time for which events of an account wait until its history is delivered: repositories are fetched one after
/// the other, every one within five minutes.
const MAX_BACKFILL_HOLD: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_pause_does_not_count_for_the_first_contact() {
        let (stats, pause) = (RunStats::new(Vec::new()), PauseSignal::new());
        let limit = Some(Duration::from_secs(30));
        let within = |seconds| {
            tokio::time::timeout(
                Duration::from_secs(seconds),
                missed_contact(&stats, limit, &pause),
            )
        };
        pause.set(true);
        assert!(within(3600).await.is_err());
        pause.set(false);
        assert!(within(29).await.is_err());
        let why = within(31).await.unwrap();
        assert_eq!(why.message(), Some("no event stream within 30 s: no answer"));
    }
}
