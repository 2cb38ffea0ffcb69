//! `wireproof plc serve`: a did:plc directory from a mirror.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use base::StopSignal;
use clap::{Args, ValueHint};
use directory::{Options, Server, ServerError};
use serde::Serialize;
use tokio::runtime::Builder;

use crate::failure::Failure;
use crate::interrupt::Shutdown;
use crate::log::{self, Level};
use crate::output::Output;

/// Serve a mirror as a did:plc directory, until Ctrl-C.
///
/// Answers /DID, /DID/data, /DID/log, /DID/log/audit, /DID/log/last, /export, /export/stream and /_health as the reference server
/// does, with the numbers of the mirrored directory. Refused operations are not served. New operations are not taken: they go to
/// the directory. `plc mirror --follow` may write the mirror meanwhile, and its operations are served within a moment.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The file of the mirror.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    from: PathBuf,
    /// The address to listen on.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "WIREPROOF_PLC_LISTEN",
        default_value = "127.0.0.1:2582"
    )]
    listen: SocketAddr,
    /// Maximum number of open connections without a stream.
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=65_536))]
    connections: u32,
    /// Maximum number of streams.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    streams: u32,
    /// Maximum number of streams of one address.
    #[arg(long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    streams_per_address: u32,
    /// Age in days of the oldest operation that a stream begins with; older cursors get OutdatedCursor.
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=36_500))]
    stream_days: u64,
    /// Print one JSON document once clients can connect.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ServeArgs, output: Output) -> Result<(), Failure> {
    let mut options = Options::new(args.from.clone(), args.listen);
    options.max_connections = args.connections as usize;
    options.max_streams = args.streams as usize;
    options.max_streams_per_address = args.streams_per_address as usize;
    options.stream_window = Duration::from_secs(args.stream_days * 86_400);
    let runtime = Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::Local(format!("the sockets of this system: {error}")))?;
    runtime.block_on(serve(args, options, output))
}

async fn serve(args: &ServeArgs, options: Options, output: Output) -> Result<(), Failure> {
    // Before a client can connect: whoever sees the port may stop the process in order.
    let stop = StopSignal::new();
    let shutdown = Shutdown::listen(stop.clone(), STOP_LIMIT, || ())?;
    let server = Server::bind(options).await.map_err(|error| match error {
        ServerError::Mirror(error) => error.into(),
        other => Failure::Local(other.to_string()),
    })?;
    let summary = ServeSummary { url: format!("http://{}", server.address()) };
    output.document(&summary, args.json, ServeSummary::to_text)?;
    let _ = log::print(Level::Info, &format!("serving at {}", summary.url));
    server.run(&stop).await;
    shutdown.result()
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

/// Maximum time from a signal to the end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  wireproof plc serve --from plc.sqlite
  wireproof plc serve --from plc.sqlite --listen 127.0.0.1:8080";
