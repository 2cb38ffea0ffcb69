//! `wireproof delivery replay`: sends refused events again, with the same ids.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use delivery::{LineForm, NewEvent, Options, Outbox, TableContent, read_dead_letters};
use net::firehose::StopSignal;
use serde::Serialize;

use crate::failure::Failure;
use crate::files;
use crate::interrupt::Signals;
use crate::network::{self, NetworkArgs};
use crate::output::Output;
use follower::{
    Destination, DestinationOptions, DestinationParser, Destinations, SinkArgs, Status, drain,
};

/// Send the events in a file of dead letters again.
///
/// If a destination refuses an event, `follow` sets it aside in `refused-….ndjson`. Once the receiver is fixed, this
/// command sends these events again, in order and with the same ids, so that a receiver can skip ids that it knows. The
/// file does not change; events that are refused again go to a file of the same kind in --refused.
///
/// Exit code 0 if all are accepted, 1 if some are refused again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The file of dead letters.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Where to send the events: file:///FOLDER, https://… (signed webhook), kafka://HOST/TOPIC or nats://HOST/PREFIX.
    #[arg(long, value_name = "URI", value_parser = DestinationParser)]
    to: Destination,
    /// Send a line per operation, as `follow --ops` does.
    #[arg(long)]
    ops: bool,
    /// Folder for events that are refused again [default: refused-again next to the file].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    refused: Option<PathBuf>,
    #[command(flatten)]
    sinks: SinkArgs,
    #[command(flatten)]
    network: NetworkArgs,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ReplayArgs, output: Output) -> Result<(), Failure> {
    let refuses_events = match &args.to {
        Destination::Sink(address) => !address.stores_positions,
        Destination::WebSocket(_) => false,
    };
    if !refuses_events {
        let what = "--to: tables and WebSocket clients refuse no event; name a folder, a webhook, a topic or a stream";
        return Err(Failure::Usage(what.to_owned()));
    }
    let events = read_dead_letters(&args.file).map_err(|error| {
        if args.file.is_file() {
            Failure::Refused(error.to_string())
        } else {
            Failure::Local(error.to_string())
        }
    })?;
    let summary = network::runtime()?.block_on(replay(args, events))?;
    output.document(&summary, args.json, ReplaySummary::to_text)?;
    match (summary.is_interrupted, summary.refused_count) {
        (true, _) => Err(Failure::Interrupted),
        (false, 0) => Ok(()),
        (false, count) => {
            Err(Failure::refused(&args.file, format!("{count} events are refused again")))
        }
    }
}

async fn replay(args: &ReplayArgs, events: Vec<NewEvent>) -> Result<ReplaySummary, Failure> {
    let temporary = tempfile::tempdir().map_err(Failure::file(Path::new("a temporary folder")))?;
    let outbox = Outbox::open(&temporary.path().join("outbox.sqlite"), Options::default())?;
    let folder = args.refused.clone().unwrap_or_else(|| args.file.with_file_name("refused-again"));
    std::fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let options = DestinationOptions {
        args: &args.sinks,
        network: &args.network,
        form: if args.ops { LineForm::Operations } else { LineForm::Events },
        content: TableContent::Records,
        folder: &folder,
        stop_limit: STOP_LIMIT,
    };
    let to = std::slice::from_ref(&args.to);
    let destinations = Destinations::open(&outbox, to, &[], &options).await?;
    destinations.register()?;
    let count = events.len() as u64;
    for part in events.chunks(PART_EVENTS) {
        outbox.append_all(part.to_vec())?;
    }
    let (stop, status) = (StopSignal::new(), Status::new());
    let mut signals = Signals::listen()?;
    let tasks = destinations.start(&stop, &status)?;
    let metrics = tasks.metrics.clone();
    let is_interrupted = tokio::select! {
        () = drain(&outbox, &stop, &status) => false,
        _ = signals.next() => true,
    };
    stop.request();
    tasks.join().await?;
    let refused: u64 = metrics.iter().map(|of| of.set_aside()).sum();
    let left: u64 = outbox.status().consumers.iter().map(|of| of.behind).sum();
    Ok(ReplaySummary {
        event_count: count,
        accepted_count: count.saturating_sub(refused + left),
        refused_count: refused,
        undelivered_count: left,
        refused_folder: files::name(&folder),
        is_interrupted,
    })
}

/// The report, as JSON and text, of a replay.
#[derive(Debug, Serialize)]
struct ReplaySummary {
    event_count: u64,
    accepted_count: u64,
    /// Events that were refused again.
    refused_count: u64,
    /// Events that were not accepted before the end.
    undelivered_count: u64,
    #[serde(skip)]
    refused_folder: String,
    #[serde(skip)]
    is_interrupted: bool,
}

impl ReplaySummary {
    fn to_text(&self) -> String {
        let Self { event_count, accepted_count, refused_count, undelivered_count, .. } = self;
        let mut text = format!("{accepted_count} of {event_count} events accepted\n");
        if *refused_count > 0 {
            text += &format!("{refused_count} refused again: in {}\n", self.refused_folder);
        }
        if *undelivered_count > 0 {
            text += &format!("{undelivered_count} not delivered: run the command again\n");
        }
        text
    }
}

/// Time for the batches that are being sent after an interrupt.
const STOP_LIMIT: Duration = Duration::from_secs(100);

/// Events that are stored at once.
const PART_EVENTS: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  wireproof delivery replay refused-webhook-hooks.example.com-1f2e3d4c.ndjson --to https://hooks.example.com/events \\
    --webhook-secret-file /run/secrets/webhook";
