//! `nostr follow --to`: the outbox of a run and its destinations.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use delivery::{LineForm, Outbox, TableContent};
use net::firehose::StopSignal;

use super::args::NostrFollowArgs;
use super::checkpoints::Progress;
use super::recipient::Recipient;
use super::{Ended, Run};
use crate::failure::Failure;
use follower::{
    DestinationOptions, Destinations, Unstored, check_outbox, drain, report_undelivered,
    state_folder, stop_appends,
};

/// Follows relays, stores their events in the outbox, and delivers them. A run that ends by itself waits until every
/// destination has acknowledged all of them.
pub(super) async fn deliver(run: &Run<'_>) -> Result<Ended, Failure> {
    let folder = outbox_folder(run.args)?;
    let outbox = open_outbox(run.args, &folder)?;
    let destinations = open_destinations(run.args, &outbox, &folder).await?;
    let unstored: Arc<Unstored<Progress>> = Unstored::new(run.stop.clone());
    let mut tasks = destinations.start(&run.stop, &run.status)?;
    let room_limit = run.args.stop_limit() / 10 * 4;
    tasks.helpers.spawn(stop_appends(outbox.clone(), run.stop.clone(), room_limit));
    // With --events relays end before the deliveries.
    let intake = StopSignal::new();
    tasks.helpers.spawn(forward(run.stop.clone(), intake.clone()));
    let recipient = Recipient::outbox(outbox.clone(), unstored.clone());
    let ended = run.follow(recipient, intake).await;
    if ended.verified.is_ok() {
        drain(&outbox, &run.stop, &run.status).await;
    }
    run.stop.request();
    let delivered = tasks.join().await;
    let flushed = outbox.flush();
    report_undelivered(&outbox, &run.status);
    let stored = unstored.error().map_or(Ok(()), |error| Err(Failure::Local(error)));
    let output = stored.and(delivered).and(flushed.map_err(Failure::from));
    Ok(Ended { output, ..ended })
}

/// The folder of the outbox and of refused events, apart from that of `follow`.
fn outbox_folder(args: &NostrFollowArgs) -> Result<PathBuf, Failure> {
    let folder = match &args.delivery.outbox {
        Some(folder) => folder.clone(),
        None => state_folder(args.state.as_deref())?.join("outbox"),
    };
    Ok(folder.join("nostr"))
}

fn open_outbox(args: &NostrFollowArgs, folder: &Path) -> Result<Outbox, Failure> {
    let options = args.delivery.outbox_options();
    let outbox = Outbox::open(&folder.join("outbox.sqlite"), options)?;
    if let Some(state) = args.checkpoint_folder()? {
        check_outbox(&state, &outbox, WITHOUT_OUTBOX)?;
    }
    args.delivery.forget.iter().try_for_each(|name| outbox.remove(name))?;
    Ok(outbox)
}

async fn open_destinations(
    args: &NostrFollowArgs,
    outbox: &Outbox,
    folder: &Path,
) -> Result<Destinations, Failure> {
    let options = DestinationOptions {
        args: &args.delivery.sinks,
        network: &args.network,
        form: LineForm::Events,
        content: TableContent::NostrEvents,
        folder,
        stop_limit: args.stop_limit(),
    };
    let destinations = Destinations::open(outbox, &args.to, &[], &options).await?;
    destinations.check().await?;
    destinations.register()?;
    Ok(destinations)
}

async fn forward(stop: StopSignal, intake: StopSignal) {
    stop.requested().await;
    intake.request();
}

/// How to start without the outbox of a state.
const WITHOUT_OUTBOX: &str = "name another --state, which begins with all stored events";
