//! `wireproof plc mirror`: reads the export of a directory, and verifies and stores every operation.

use std::path::PathBuf;
use std::time::Duration;

use atproto::plc::ExportLine;
use clap::{Args, ValueHint};
use net::http::Url;
use net::plc_export::{ExportError, PAGE_LINES, PlcExport};
use serde::Serialize;
use store::{PlcMirror, RefusedOperation};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::failure::Failure;
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
    let export = PlcExport::new(network.http, directory);
    let mut run = MirrorRun { export, mirror, requests: 0, accepted: 0, refused: 0 };
    let from = run.mirror.totals().cursor;
    let mut progress = ProgressLine::new();
    let ended = network::runtime()?.block_on(run.run(args.max_rate, &mut progress));
    progress.end();
    ended?;
    output.document(&MirrorSummary::new(&run, from), args.json, MirrorSummary::to_text)?;
    match run.refused {
        0 => Ok(()),
        count => Err(Failure::Refused(format!("{count} operations were refused"))),
    }
}

/// A run that reads pages.
struct MirrorRun {
    export: PlcExport,
    mirror: PlcMirror,
    requests: u64,
    accepted: u64,
    refused: u64,
}

impl MirrorRun {
    /// Reads pages up to the last one.
    async fn run(&mut self, max_rate: f64, progress: &mut ProgressLine) -> Result<(), Failure> {
        let mut turns = interval(Duration::from_secs_f64(1.0 / max_rate));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let from = self.mirror.totals().cursor;
        loop {
            turns.tick().await;
            let cursor = self.mirror.totals().cursor;
            progress.step(format!("{} operations, at {cursor}", self.accepted));
            let lines = progress.during(self.page(cursor)).await?;
            if lines.is_empty() && cursor == from {
                turns.tick().await;
                self.requests += 1;
                return Ok(self.export.check_reaches(cursor).await?);
            }
            let applied = self.mirror.apply(&lines)?;
            self.accepted += applied.accepted;
            progress.suspend(|| self.report(&applied.refused));
            self.refused += applied.refused.len() as u64;
            if lines.len() < PAGE_LINES {
                return Ok(());
            }
        }
    }

    /// The page after a number. An outage is passed over some times.
    async fn page(&mut self, after: u64) -> Result<Vec<ExportLine>, ExportError> {
        let mut delay = FIRST_RETRY;
        for _ in 1..ATTEMPTS {
            self.requests += 1;
            match self.export.page(after).await {
                Err(error) if error.is_retryable() => sleep(delay).await,
                result => return result,
            }
            delay = MAX_RETRY.min(2 * delay);
        }
        self.requests += 1;
        self.export.page(after).await
    }

    /// Names the first refused operations; the mirror has all of them.
    fn report(&self, refused: &[RefusedOperation]) {
        let left = NAMED_REFUSALS.saturating_sub(self.refused) as usize;
        for RefusedOperation { seq, did, code, message } in refused.iter().take(left) {
            let text = format!("{did}: operation {seq} is refused ({code}): {message}");
            // If standard error is closed, the exit code remains.
            let _ = log::print(Level::Warning, &text);
        }
    }
}

/// The report, as JSON and text, of a run.
#[derive(Serialize)]
struct MirrorSummary {
    directory: String,
    /// The number of the last operation that the mirror had, and that it has now.
    from: u64,
    cursor: u64,
    request_count: u64,
    accepted_count: u64,
    refused_count: u64,
    /// Operations of all runs.
    stored_accepted_count: u64,
    stored_refused_count: u64,
}

impl MirrorSummary {
    fn new(run: &MirrorRun, from: u64) -> Self {
        let totals = run.mirror.totals();
        Self {
            directory: totals.directory.clone(),
            from,
            cursor: totals.cursor,
            request_count: run.requests,
            accepted_count: run.accepted,
            refused_count: run.refused,
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

/// Attempts at a page, and the delays between them, which double: two minutes in all.
const ATTEMPTS: u32 = 8;
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

/// Refused operations that a run names.
const NAMED_REFUSALS: u64 = 100;

const EXAMPLES: &str = "\
Examples:
  wireproof plc mirror --to plc.sqlite --contact ops@example.com
  wireproof plc mirror --to plc.sqlite --url http://localhost:2582 --development";
