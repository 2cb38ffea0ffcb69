//! `wireproof archive serve`: an archive as a stream with cursors.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archive::{ArchiveServer, ServeMetrics, ServeOptions};
use clap::Args;
use net::firehose::StopSignal;
use serde::Serialize;
use tokio::net::TcpListener;

use super::arguments::AddressArgs;
use follower::Metrics;

use crate::failure::Failure;
use crate::follow::ServeSeries;
use crate::interrupt::Shutdown;
use crate::log::{self, Level};
use crate::output::Output;

/// Serve an archive as a stream with cursors, until Ctrl-C.
///
/// Consumers of com.atproto.sync.subscribeRepos catch up from it: `cursor` is the archive's number of an event, and the
/// sequence number of its frame. A client without a cursor gets the events that are sealed from now on. Hidden and
/// erased accounts are left out within a second. A client that reads nothing for a minute is disconnected. If all
/// places are taken when another client connects, a client that has read no event for five seconds is disconnected.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", env = "WIREPROOF_ARCHIVE_LISTEN")]
    listen: SocketAddr,
    /// Maximum number of clients. Further clients are refused, unless a client has read no event for five seconds and
    /// gives way.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_024))]
    clients: u16,
    /// Serve events this many minutes after their arrival. For an archive with several writers, set more than the
    /// longest --seal-minutes, to keep events in order.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=10_080))]
    delay_minutes: u64,
    /// Origin of web pages that may connect, such as https://app.example. May be repeated [default: none].
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,
    /// Serve Prometheus metrics at /metrics of this address, and /health and /ready.
    #[arg(long, value_name = "ADDRESS:PORT", env = "WIREPROOF_METRICS")]
    metrics: Option<SocketAddr>,
    /// Print one JSON document once clients can connect.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    let signals = signals()?;
    let archive = args.address.open().await?;
    let mut options = ServeOptions::default();
    options.max_connections = usize::from(args.clients);
    options.delay = Duration::from_secs(args.delay_minutes * 60);
    options.origins = args.origin.clone();
    let listener = Metrics::bind(args.metrics).await?;
    let server = ArchiveServer::bind(archive, args.listen, options).await?;
    warn_if_reachable("--listen ", args.listen);
    let summary = ServeSummary { url: server.url() };
    output.document(&summary, args.json, ServeSummary::to_text)?;
    serve(server, listener, signals).await
}

/// Listens to signals: before the port is open, since whoever sees it may stop the process in order.
pub(super) fn signals() -> Result<(StopSignal, Shutdown), Failure> {
    let stop = StopSignal::new();
    let shutdown = Shutdown::listen(stop.clone(), STOP_LIMIT, || ())?;
    Ok((stop, shutdown))
}

/// Serves clients until the server has nothing more to do, or a signal.
pub(super) async fn serve(
    server: ArchiveServer,
    metrics: Option<TcpListener>,
    (stop, shutdown): (StopSignal, Shutdown),
) -> Result<(), Failure> {
    let _ = log::print(Level::Info, &format!("serving at {}", server.url()));
    let server = server.with_warnings(|text| drop(log::print(Level::Warning, text)));
    let endpoint = endpoint(metrics, server.metrics(), &stop);
    tokio::select! {
        ended = server.run(stop) => ended?,
        never = Metrics::serve(endpoint) => match never {},
    }
    shutdown.result()
}

fn endpoint(
    listener: Option<TcpListener>,
    metrics: Arc<ServeMetrics>,
    stop: &StopSignal,
) -> Option<Metrics> {
    let stop = stop.clone();
    let obstacle = move || stop.is_requested().then(|| "stopping".to_owned());
    listener.map(|listener| Metrics::of_server(listener, ServeSeries(metrics), obstacle))
}

/// Warns of an address that others than this machine may reach.
pub(super) fn warn_if_reachable(option: &str, address: SocketAddr) {
    if !address.ip().to_canonical().is_loopback() {
        let _ = log::print(
            Level::Warning,
            &format!(
                "{option}{address} is not a loopback address: any machine that reaches it can read the archive, and the \
                 connection is not encrypted: put a TLS proxy in front of it"
            ),
        );
    }
}

/// The report, as JSON and text, of a server.
#[derive(Debug, Serialize)]
struct ServeSummary {
    url: String,
}

impl ServeSummary {
    fn to_text(&self) -> String {
        format!("{}\nCtrl-C ends the server.\n", self.url)
    }
}

/// Maximum time of an end after a signal.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  wireproof archive serve archive --listen 127.0.0.1:4490
  wireproof archive serve archive --listen 127.0.0.1:4490 --metrics 127.0.0.1:9464";
