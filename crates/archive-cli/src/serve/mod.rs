//! `wireproof serve`: a relay, a Jetstream and a directory of repositories, of verified events alone.

mod crawl;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::archive::Archive;
use ::serve::{Consumers, Intake, Options, Page, ServedArchive, Server, Window};
use clap::{Args, ValueHint};
use follower::{AdminArgs, ConsumerArgs, FollowArgs, RecipientOptions, Run, Setup};
use net::firehose::{MoreHosts, ServerStatuses, StopSignal};
use program::page::PAGE;
use serde::Serialize;

use crate::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;
use crate::follow::account_servers;
use crate::interrupt::Shutdown;
use crate::log::{self, Level};
use crate::network::{self, Network};
use crate::output::Output;
use crate::stream::{Start, StreamArgs};
use crawl::{CrawlArgs, Crawler};

/// Serve a verified stream to the clients of relays and Jetstreams.
///
/// Every event of the source is verified and stored, and then served. At one address, clients find
/// com.atproto.sync.subscribeRepos, the Jetstream protocol at /subscribe and
/// /xrpc/network.bsky.jetstream.subscribeEvents, and listRepos, listReposByCollection, getRepoStatus, getLatestCommit,
/// listHosts and getHostStatus; with an archive also getRepo, getRecord and getBlocks. At / is the page that `wireproof page`
/// writes. Events that are not verified are not served. After a crash, a client continues at its cursor and misses nothing within
/// the window.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", env = "WIREPROOF_LISTEN")]
    #[arg(default_value = "127.0.0.1:2480")]
    listen: SocketAddr,
    /// Folder of the window, the directory, cursors, keys and account states. One process uses it at a time.
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: PathBuf,
    #[command(flatten)]
    stream: StreamArgs,
    #[command(flatten)]
    crawl: CrawlArgs,
    /// Where to start with a host that has no stored cursor: `live`, `oldest`, or after a sequence number.
    #[arg(long, env = "WIREPROOF_CURSOR", value_name = "CURSOR", default_value = "live")]
    cursor: Start,
    /// Hours for which clients can go back.
    #[arg(long, value_name = "N", env = "WIREPROOF_WINDOW_HOURS", default_value_t = 72)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=8_760))]
    window_hours: u64,
    /// Size in MiB up to which events are stored for clients that go back.
    #[arg(long, value_name = "N", env = "WIREPROOF_WINDOW_MIB", default_value_t = 65_536)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    window_mib: u64,
    /// Archive of what leaves the window, which clients can go back to: a folder, or the URL of an object store. This server alone
    /// writes its events.
    #[arg(long, value_name = "ARCHIVE", env = "WIREPROOF_SERVE_ARCHIVE", value_hint = ValueHint::DirPath)]
    archive: Option<String>,
    #[command(flatten)]
    erasure_key: ErasureKeyArgs,
    /// Names of clients that acknowledge every event, at /channel as clients of tap, or at /lines. A name has its own cursor,
    /// which begins with new events, and one connection at a time [default: none].
    #[arg(long, env = "WIREPROOF_WS_CONSUMER", value_name = "NAME", value_delimiter = ',')]
    ws_consumer: Vec<String>,
    #[command(flatten)]
    consumers: ConsumerArgs,
    /// Maximum number of clients of streams. Another one is refused, unless a client has read no event for a minute and gives
    /// way.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// Maximum number of clients of streams per address.
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients_per_address: u32,
    /// Origin of web pages that may connect, such as https://app.example, or * for all. May be repeated [default: none].
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Serve Prometheus metrics at /metrics of this address, and /health and /ready.
    #[arg(long, env = "WIREPROOF_METRICS", value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    admin: AdminArgs,
    /// End after N events.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    events: Option<u64>,
    /// Number of verifying threads [default: one per core].
    #[arg(long, env = "WIREPROOF_WORKERS", value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Print one JSON document once clients can connect.
    #[arg(long)]
    json: bool,
}

impl ServeArgs {
    fn options(&self, crawler: Option<&Crawler>) -> Options {
        let mut options = Options::new(self.listen, self.state.clone());
        let mut window = Window::default();
        window.max_bytes = self.window_mib.saturating_mul(1 << 20);
        window.max_age = Duration::from_secs(self.window_hours * 3_600);
        options.window = window;
        options.max_clients = self.clients as usize;
        options.max_clients_per_address = self.clients_per_address as usize;
        options.origins.clone_from(&self.origin);
        options.crawl = crawler.map(|crawler| crawler.crawl.clone());
        options.page = PAGE.map(Page::new);
        options
    }

    /// The clients that acknowledge events, if there are any.
    fn consumers(&self) -> Result<Option<Consumers>, Failure> {
        if self.ws_consumer.is_empty() {
            return Ok(None);
        }
        let network = Network::open(&self.stream.network, &[])?;
        let mut options = self.consumers.options(self.listen, &self.state)?;
        options.origins.clone_from(&self.origin);
        options.stop_timeout = self.stream.stop_limit() / 10;
        let mut consumers = Consumers::new(self.ws_consumer.clone(), options);
        consumers.resolver = Some(network.resolver);
        Ok(Some(consumers))
    }

    /// The archive, if there is one.
    async fn archive(&self) -> Result<Option<ServedArchive>, Failure> {
        let Some(address) = &self.archive else { return Ok(None) };
        let archive = self.erasure_key.add_to(Archive::open(address)?)?;
        archive.check_logs().await?;
        let network = Network::open(&self.stream.network, &[])?;
        let servers = ServerStatuses::new(network.xrpc, network.resolver);
        Ok(Some(ServedArchive { archive, servers: account_servers(servers) }))
    }

    /// The options of the run that verifies.
    fn into_follow(
        self,
        state: &Path,
        more_hosts: Option<MoreHosts>,
    ) -> Result<FollowArgs, Failure> {
        FollowArgs::for_recipient(RecipientOptions {
            stream: self.stream,
            collections: Vec::new(),
            dids: Vec::new(),
            state: state.to_owned(),
            cursor: self.cursor,
            resync: false,
            whole_repositories: false,
            metrics: self.metrics,
            admin: self.admin,
            events: self.events,
            more_hosts,
            gather_ms: GATHER_MS,
            workers: self.workers,
        })
    }
}

pub(crate) fn run(args: ServeArgs, output: Output) -> Result<(), Failure> {
    follower::keep_memory_small();
    let runtime = network::runtime()?;
    let result = runtime.block_on(serve(args, output));
    runtime.shutdown_background();
    result
}

async fn serve(mut args: ServeArgs, output: Output) -> Result<(), Failure> {
    // Before a client can connect: whoever sees the port may stop the process in order.
    let stop = StopSignal::new();
    let shutdown = Shutdown::listen(stop.clone(), args.stream.stop_limit(), || ())?;
    let crawler = args.crawl.crawler(&mut args.stream)?;
    let mut options = args.options(crawler.as_ref());
    options.archive = args.archive().await?;
    options.consumers = args.consumers()?;
    let server = Arc::new(Server::bind(options).await.map_err(local)?);
    let address = server.address();
    warn_if_reachable(address);
    let (state, is_json) = (args.state.clone(), args.json);
    let more_hosts = crawler.as_ref().map(|crawler| crawler.more.clone());
    let follow = args.into_follow(&state, more_hosts)?;
    // What is wrong with the arguments ends the command before it serves anybody.
    let first = start_run(&follow, &server).await?;
    output.document(&ServeSummary::new(address), is_json, ServeSummary::to_text)?;
    let _ = log::print(Level::Info, &format!("serving at ws://{address}"));
    let (of_clients, stop_clients) = (server.clone(), stop.clone());
    let clients = tokio::spawn(async move { of_clients.run(stop_clients).await });
    let crawled = async {
        match &crawler {
            Some(crawler) => crawler.run().await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        result = follow_source(&follow, &server, first, &stop) => result,
        never = crawled => match never {},
    };
    stop.request();
    // It panics only with the process.
    let _ = clients.await;
    result.and_then(|()| shutdown.result())
}

/// Follows the source until a stop is requested or all events were received. A run that fails is followed by another one:
/// meanwhile clients get what is stored.
async fn follow_source(
    follow: &FollowArgs,
    server: &Server,
    first: Started<'_>,
    stop: &StopSignal,
) -> Result<(), Failure> {
    let mut started = Ok(first);
    loop {
        let result = match started {
            Ok(started) => started.finish(stop).await,
            Err(failure) => Err(failure),
        };
        let Err(failure) = result else { return Ok(()) };
        let Some(why) = failure.message().filter(|_| !stop.is_requested()) else {
            return Err(failure);
        };
        let seconds = RETRY_INTERVAL.as_secs();
        let _ = log::print(
            Level::Warning,
            &format!("no events are received, again in {seconds} s: {why}"),
        );
        tokio::select! {
            () = stop.requested() => return Err(failure),
            () = tokio::time::sleep(RETRY_INTERVAL) => {}
        }
        started = start_run(follow, server).await;
    }
}

/// A run that has not received events yet.
struct Started<'a> {
    run: Run<'a>,
    intake: Intake,
    stop: StopSignal,
}

async fn start_run<'a>(follow: &'a FollowArgs, server: &Server) -> Result<Started<'a>, Failure> {
    let stop = StopSignal::new();
    let mut setup = Setup::stopped_by(follow, Some(stop.clone())).await?;
    setup.series = Some(server.series());
    let run = Run::new(setup, None, None)?;
    Ok(Started { run, intake: server.intake(stop.clone()), stop })
}

impl Started<'_> {
    /// Receives events until `stop` is requested, or the run ends.
    async fn finish(self, stop: &StopSignal) -> Result<(), Failure> {
        let Self { run, intake, stop: of_run } = self;
        let failure = intake.failure();
        let forward = async {
            stop.requested().await;
            of_run.request();
            std::future::pending().await
        };
        let followed = tokio::select! {
            followed = run.follow_into(intake) => followed,
            never = forward => never,
        };
        followed.check("stored")?;
        failure.reason().map_or(Ok(()), |reason| Err(Failure::Local(reason)))
    }
}

fn local(error: ::serve::ServerError) -> Failure {
    Failure::Local(error.to_string())
}

/// Warns of an address that others than this machine may reach.
fn warn_if_reachable(address: SocketAddr) {
    if !address.ip().to_canonical().is_loopback() {
        let text = format!(
            "--listen {address} is not a loopback address, and the connection is not encrypted: put a TLS proxy in front of it"
        );
        let _ = log::print(Level::Warning, &text);
    }
}

/// The URLs of a server.
#[derive(Debug, Serialize)]
struct ServeSummary {
    relay: String,
    jetstream: String,
    jetstream_v2: String,
}

impl ServeSummary {
    fn new(address: SocketAddr) -> Self {
        Self {
            relay: format!("ws://{address}/xrpc/com.atproto.sync.subscribeRepos"),
            jetstream: format!("ws://{address}/subscribe"),
            jetstream_v2: format!("ws://{address}/xrpc/network.bsky.jetstream.subscribeEvents"),
        }
    }

    fn to_text(&self) -> String {
        let Self { relay, jetstream, jetstream_v2 } = self;
        format!("{relay}\n{jetstream}\n{jetstream_v2}\nCtrl-C ends the server.\n")
    }
}

/// Time for which events wait to be verified together, in milliseconds: the verification of a few takes as long as that of one.
const GATHER_MS: u64 = 8;

/// Time after which a source that failed is followed again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  wireproof serve --state /var/lib/wireproof
  wireproof serve --state state --host https://relay.example.com --cursor oldest --listen 127.0.0.1:2480
  wireproof follow --host http://127.0.0.1:2480 --cursor oldest";
