//! Follows AT Protocol streams: prints the events of a stream as lines of JSON, or delivers them to destinations.
//!
//! [`Follower`] is the library call; `wireproof follow` is the same with arguments. Messages for an operator are events of
//! `tracing`.
//!
//! ```text
//! hosts ── Firehose ── Printer::event on every worker ──┬── LineWriter ── standard output
//!              │                                       └── Outbox ── Delivery ── destination, for every --to
//!              │                                              └───── WebSocketServer ── clients
//!              │ <────────────────── ack ───────────────── once a line is taken by the reader, or stored in the outbox
//!              └── StateJournal: cursors, account states and keys, as far as acked
//! ```

#![forbid(unsafe_code)]

mod account_log;
mod ack_stdin;
mod admin;
pub mod admin_api;
mod admin_args;
mod args;
mod condition;
mod consumer_args;
mod control;
mod deliveries;
mod delivery_args;
mod delivery_progress;
mod destination;
mod destinations;
mod follower;
mod gaps;
mod handles;
mod histories;
mod history_progress;
mod jetstream;
mod keys;
pub mod line;
mod lines_to_outbox;
mod lines_to_stdout;
mod listing;
mod lost_events;
mod messages;
mod metrics;
mod outbox_acks;
mod outbox_binding;
mod printed_events;
mod printer;
mod recheck;
mod recipient_options;
mod refused_events;
mod reload;
mod repetition_marks;
mod repository_slice;
mod run;
mod selection;
mod state;
mod stats;
mod status;
mod status_checks;
mod stdout;
mod stored_changes;
mod stored_selection;
mod taken;
mod verified_stream;
mod verify_level;
mod warnings;
mod websocket;
mod writer;

use std::sync::Arc;

use base::crash_point;

use program::{
    account, failure, files, first_contact, help, interrupt, list_floor, log, names, network,
    progress, standard_streams, stream,
};

use deliveries::Deliveries;
use lines_to_stdout::LinesToStdout;
use repetition_marks::RepetitionMarks;

pub use admin_args::AdminArgs;
pub use args::FollowArgs;
pub use consumer_args::ConsumerArgs;
pub use delivery_args::{DELIVERY, OutboxArgs, SinkArgs};
pub use destination::{Destination, DestinationParser};
pub use destinations::{DestinationOptions, Destinations, drain, report_undelivered, stop_appends};
pub use follower::{FollowedLine, Follower, FollowerBuilder, VerifyLevel};
pub use line::{EventLine, ResyncLines};
pub use metrics::{Metrics, MoreSeries};
pub use outbox_acks::{SharedAck, Unstored};
pub use outbox_binding::check as check_outbox;
pub use printer::LineRecipient;
pub use program::failure::Failure;
pub use program::stream::Start;
pub use recipient_options::RecipientOptions;
pub use run::{Followed, MAX_ADDED_HOSTS, Run, Setup};
pub use state::state_folder;
pub use stats::micros;
pub use status::Status;
pub use taken::Acknowledge;
pub use verified_stream::VerifiedStream;
pub use writer::{LineSender, LineWriter, Lines, failure as output_failure};

/// Follows as the arguments say, until a stop is requested.
///
/// # Errors
/// If the run cannot start, or fails.
pub fn run(mut args: FollowArgs) -> Result<(), Failure> {
    args.check_delivery()?;
    args.check_verify_level()?;
    let _temporary = state::temporary_at_terminal(&mut args)?;
    let args = &args;
    keep_memory_small();
    let runtime = network::runtime()?;
    let result = match args.jetstream {
        Some(_) => runtime.block_on(jetstream::follow(args)),
        None => runtime.block_on(follow(args)),
    };
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_background();
    result
}

/// Keeps the resident memory of this process close to its use. Nothing but memory depends on it.
pub fn keep_memory_small() {
    // Many small buffers would all take part of a huge page, and make 60 MiB resident memory 100.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    // Of 66 MiB with 500 accounts, 8 were free for less than a second.
    #[cfg(feature = "allocator")]
    allocator::return_memory_at_once();
}

async fn follow(args: &FollowArgs) -> Result<(), Failure> {
    let setup = Setup::new(args).await?;
    if !args.delivery.uses_outbox() {
        return print(Run::new(setup, None, None)?).await;
    }
    let deliveries = Deliveries::open(&setup).await?;
    let outbox = deliveries.outbox().clone();
    let run = Run::new(setup, Some(outbox), deliveries.websocket_metrics())?;
    deliveries.run(run).await
}

/// Prints the events of a run to standard output.
async fn print(run: Run<'_>) -> Result<(), Failure> {
    let limit = run.args.stream.stop_limit() / 10;
    let (lines, writer) = LineWriter::stdout(&run.stop)?;
    let marks = Arc::new(RepetitionMarks::load(run.store.clone(), run.streams.iter().cloned())?);
    let (stats, status) = (run.stats.clone(), run.status.clone());
    let recipient =
        LinesToStdout { form: run.args.line_form(), lines, marks: marks.clone(), stats, status };
    let followed = run.follow(recipient, Some(marks.clone())).await;
    let written = writer.finish(limit).await;
    crash_point("run/finished");
    let marked = marks.finish();
    // A failed write is reported first: dropped events follow from it.
    written.map_err(writer::failure)?;
    let shutdown = followed.check("printed, or not taken by the reader")?;
    marked?;
    shutdown.result()
}
