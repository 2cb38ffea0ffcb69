//! `wireproof plc mirror`: reads the export and the stream of a directory, and verifies and stores every operation.

use std::path::PathBuf;
use std::time::Duration;

use base::StopSignal;
use clap::{Args, ValueHint};
use directory::{MirrorError, MirrorNews, MirrorOptions, MirrorRun};
use net::http::Url;
use serde::Serialize;
use store::{PlcMirror, RefusedOperation};

use crate::failure::Failure;
use crate::interrupt::Shutdown;
use crate::log::{self, Level};
use crate::network::{self, ContactArgs, Network, NetworkArgs};
use crate::output::Output;
use crate::progress::ProgressLine;

/// Mirror a did:plc directory: read its export, verify every operation as part of its account's history, and store it.
///
/// Every operation must follow the operation that it names, be signed by a rotation key of its predecessor, and nullify
/// others only with a key of higher priority within 72 hours. An operation that breaks a rule is reported and stored as
/// refused; the account's history continues without it. The command ends after the last operation. The next run resumes
/// there, even after a crash. Exit code 1 if an operation was refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MirrorArgs {
    /// The file of the mirror, an SQLite database; it is created if it is missing.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    to: PathBuf,
    /// The directory whose export is read [default: the directory of --plc].
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// Do not end: read the directory's stream, /export/stream, and store new operations until Ctrl-C or SIGTERM. Pages of the
    /// export are read where the stream ends, is missing, is silent or skips a number.
    #[arg(long)]
    follow: bool,
    /// Maximum number of requests per second.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = network::rate)]
    max_rate: f64,
    /// Print one JSON document at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    contact: ContactArgs,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(super) fn run(args: &MirrorArgs, output: Output) -> Result<(), Failure> {
    let named: Vec<Url> = args.url.iter().cloned().collect();
    let network = Network::open_with_contact(&args.network, &args.contact, &named)?;
    let directory = args.url.clone().unwrap_or(network.directory);
    let mirror = PlcMirror::open(&args.to, &network::origin(&directory))?;
    let mut options = MirrorOptions::default();
    options.max_rate = args.max_rate;
    let from = mirror.totals().cursor;
    let ended = network::runtime()?.block_on(async {
        let mut run = MirrorRun::new(network.http, directory, mirror, options);
        let ended = if args.follow { follow(&mut run).await } else { catch_up(&mut run).await };
        ended.map(|()| run)
    });
    let run = ended?;
    output.document(&MirrorSummary::new(&run, from), args.json, MirrorSummary::to_text)?;
    match run.counts().refused {
        0 => Ok(()),
        count => Err(Failure::Refused(format!("{count} operations were refused"))),
    }
}

/// Reads pages up to the last one.
async fn catch_up(run: &mut MirrorRun) -> Result<(), Failure> {
    let mut progress = ProgressLine::new();
    let mut named = 0;
    let ended = run
        .catch_up(&mut |news| match news {
            MirrorNews::Stored { cursor, counts, refused } => {
                progress.step(format!("{} operations, at {cursor}", counts.accepted));
                progress.suspend(|| report_refused(refused, &mut named));
            }
            other => progress.suspend(|| report(&other)),
        })
        .await;
    progress.end();
    ended.map_err(failure)
}

/// Stores new operations until a signal.
async fn follow(run: &mut MirrorRun) -> Result<(), Failure> {
    let stop = StopSignal::new();
    let shutdown = Shutdown::listen(stop.clone(), STOP_LIMIT, || ())?;
    let mut named = 0;
    let mut told = |news: MirrorNews<'_>| match news {
        MirrorNews::Stored { refused, .. } => report_refused(refused, &mut named),
        other => report(&other),
    };
    run.follow(&stop, &mut told).await.map_err(failure)?;
    // A run that follows ends by a signal only: both are an orderly end.
    let _ = shutdown.result();
    Ok(())
}

fn failure(error: MirrorError) -> Failure {
    match error {
        MirrorError::Export(error) => error.into(),
        MirrorError::Store(error) => error.into(),
        other => Failure::Local(other.to_string()),
    }
}

/// Names the first refused operations; the mirror has all of them.
fn report_refused(refused: &[RefusedOperation], named: &mut usize) {
    let left = NAMED_REFUSALS.saturating_sub(*named);
    *named += refused.len();
    for RefusedOperation { seq, did, code, message } in refused.iter().take(left) {
        let text = format!("{did}: operation {seq} is refused ({code}): {message}");
        // If standard error is closed, the exit code remains.
        let _ = log::print(Level::Warning, &text);
    }
}

fn report(news: &MirrorNews<'_>) {
    let (level, text) = match news {
        MirrorNews::Streaming(cursor) => (Level::Info, format!("streaming after {cursor}")),
        MirrorNews::StreamEnded(fault) => (Level::Info, format!("the stream ended: {fault}")),
        MirrorNews::StreamStalled => {
            (Level::Warning, "the stream was silent while the export had operations".to_owned())
        }
        MirrorNews::ExportBehind(seq) => (
            Level::Info,
            format!("the export does not have {seq} yet, which the stream had or skipped to"),
        ),
        MirrorNews::LeftOut(count) => (
            Level::Warning,
            format!("the stream left {count} operations out so far, which the export had"),
        ),
        MirrorNews::NoStream(error) => {
            (Level::Info, format!("no stream, so pages are read: {error}"))
        }
        MirrorNews::PageFailed(error, delay) => {
            (Level::Warning, format!("{error}; again in {} s", delay.as_secs()))
        }
        _ => return,
    };
    let _ = log::print(level, &text);
}

/// The report, as JSON and text, of a run.
#[derive(Serialize)]
struct MirrorSummary {
    directory: String,
    /// The number of the last operation that the mirror had, and that it has now.
    from: u64,
    cursor: u64,
    request_count: u64,
    stream_count: u64,
    accepted_count: u64,
    refused_count: u64,
    /// Operations that a stream left out and the export had.
    left_out_count: u64,
    /// Operations of all runs.
    stored_accepted_count: u64,
    stored_refused_count: u64,
}

impl MirrorSummary {
    fn new(run: &MirrorRun, from: u64) -> Self {
        let (totals, counts) = (run.mirror().totals(), run.counts());
        Self {
            directory: totals.directory.clone(),
            from,
            cursor: totals.cursor,
            request_count: counts.requests,
            stream_count: counts.streams,
            accepted_count: counts.accepted,
            refused_count: counts.refused,
            left_out_count: counts.left_out,
            stored_accepted_count: totals.operations,
            stored_refused_count: totals.refused,
        }
    }

    fn to_text(&self) -> String {
        format!(
            "{}: {} operations accepted, {} refused, after {} up to {}\nthe mirror has {} operations, and {} refused ones\n",
            self.directory,
            self.accepted_count,
            self.refused_count,
            self.from,
            self.cursor,
            self.stored_accepted_count,
            self.stored_refused_count,
        )
    }
}

/// Refused operations that a run names.
const NAMED_REFUSALS: usize = 100;

/// Maximum time from a signal to the end.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  wireproof plc mirror --to plc.sqlite --contact ops@example.com
  wireproof plc mirror --to plc.sqlite --contact ops@example.com --follow
  wireproof plc mirror --to plc.sqlite --url http://localhost:2582 --development";
