//! `labels follow --to`: the outbox of a run and its destinations.

use std::sync::Arc;

use delivery::{LineForm, Outbox, TableContent};
use net::firehose::StopSignal;

use crate::checkpoints::Progress;
use crate::options::LabelFollowOptions;
use crate::recipient::Recipient;
use crate::run::{Ended, Run};
use follower::{
    DestinationOptions, Destinations, Unstored, check_outbox, drain, report_undelivered,
    stop_appends,
};
use program::failure::Failure;

/// Follows labelers, stores their labels in the outbox, and delivers them. A run that ends by itself waits until every
/// destination has acknowledged all of them.
pub(crate) async fn deliver(run: &Run<'_>) -> Result<Ended, Failure> {
    let outbox = open_outbox(run.options)?;
    let destinations = open_destinations(run.options, &outbox).await?;
    let unstored: Arc<Unstored<Progress>> = Unstored::new(run.stop.clone());
    let mut tasks = destinations.start(&run.stop, &run.status)?;
    let room_limit = run.options.stop_limit / 10 * 4;
    tasks.helpers.spawn(stop_appends(outbox.clone(), run.stop.clone(), room_limit));
    // With --events labelers end before the deliveries.
    let intake = StopSignal::new();
    tasks.helpers.spawn(forward(run.stop.clone(), intake.clone()));
    let recipient = Recipient::Outbox(outbox.clone(), unstored.clone());
    let ended = run.follow(recipient, intake).await;
    if ended.result.is_ok() {
        drain(&outbox, &run.stop, &run.status).await;
    }
    run.stop.request();
    let delivered = tasks.join().await;
    let flushed = outbox.flush();
    run.status.print_totals();
    report_undelivered(&outbox, &run.status);
    let stored = unstored.error().map_or(Ok(()), |error| Err(Failure::Local(error)));
    let output = stored.and(delivered).and(flushed.map_err(Failure::from));
    Ok(Ended { output, ..ended })
}

fn open_outbox(options: &LabelFollowOptions) -> Result<Outbox, Failure> {
    let file = options.outbox_folder.join("outbox.sqlite");
    let outbox = Outbox::open(&file, options.outbox.outbox_options())?;
    if let Some(state) = &options.checkpoints {
        check_outbox(state, &outbox, WITHOUT_OUTBOX)?;
    }
    options.outbox.forget.iter().try_for_each(|name| outbox.remove(name))?;
    Ok(outbox)
}

async fn open_destinations(
    options: &LabelFollowOptions,
    outbox: &Outbox,
) -> Result<Destinations, Failure> {
    let opening = DestinationOptions {
        args: &options.outbox.sinks,
        network: &options.network,
        form: LineForm::Events,
        content: TableContent::Labels,
        folder: &options.outbox_folder,
        stop_limit: options.stop_limit,
    };
    let destinations = Destinations::open(outbox, &options.to, &[], &opening).await?;
    destinations.check().await?;
    destinations.register()?;
    Ok(destinations)
}

async fn forward(stop: StopSignal, intake: StopSignal) {
    stop.requested().await;
    intake.request();
}

/// How to start without the outbox of a state.
const WITHOUT_OUTBOX: &str = "name another --state, which begins with all labels";
