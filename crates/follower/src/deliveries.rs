//! The deliveries of a run: the outbox, and one task per destination.

use std::collections::HashSet;
use std::sync::Arc;

use delivery::{Outbox, TableContent, WebSocketMetrics, WebSocketServer};
use store::{Store, StoreError};
use tracing::Level;
use verify::sync::{AccountState, ChainState, SyncState};

use super::destinations::{
    DestinationOptions, Destinations, drain, report_undelivered, stop_appends,
};
use super::histories::{Histories, HistoryParts, HistoryQueue};
use super::lines_to_outbox::LinesToOutbox;
use super::listing::Listing;
use super::outbox_acks::Unstored;
use super::run::{Run, Setup};
use super::status_checks::{StatusChecker, StatusChecks};
use super::stored_selection::{SelectionChange, StoredSelection};
use super::{outbox_binding, state, websocket};
use crate::failure::Failure;
use crate::messages;

/// The outbox of a run, and its destinations.
pub(super) struct Deliveries {
    outbox: Outbox,
    destinations: Destinations,
    server: Option<WebSocketServer>,
    /// The lists of accounts whose history is delivered.
    listings: Vec<Listing>,
}

impl Deliveries {
    /// Opens the outbox and the destinations, registers new ones, and notes the accounts whose history has to
    /// be delivered.
    pub(super) async fn open(setup: &Setup<'_>) -> Result<Self, Failure> {
        let args = setup.args;
        let (state, stored) = (state::folder(args)?, &args.delivery.stored);
        let folder = args.outbox_folder()?;
        let outbox = Outbox::open(&folder.join("outbox.sqlite"), stored.outbox_options())?;
        outbox_binding::check_level(&state, &outbox, args.verify_level(), WITHOUT_OUTBOX)?;
        stored.forget.iter().try_for_each(|name| outbox.remove(name))?;
        let options = DestinationOptions {
            args: &stored.sinks,
            network: &args.stream.network,
            form: args.line_form(),
            content: TableContent::Records,
            folder: &folder,
            stop_limit: args.stream.stop_limit(),
        };
        let (to, clients) = (&args.delivery.to, &args.delivery.ws_consumer);
        let mut destinations = Destinations::open(&outbox, to, clients, &options).await?;
        if args.delivery.ack_stdin {
            destinations.add_stdout();
        }
        let server = websocket::bind(args, &outbox, &setup.network.resolver)?;
        if destinations.check().await? {
            outbox.restart_histories()?;
        }
        destinations.register()?;
        for name in &setup.selection.changes().paused_destinations {
            if destinations.has(name) {
                outbox.set_paused(name, true)?;
            }
        }
        let (stored, changed) = StoredSelection::of(&setup.selection)
            .store(&outbox, |did| setup.selection.has_account(Some(did)))?;
        setup.selection.resyncs.replace_base(stored.base().iter().cloned());
        announce_selection(changed);
        if args.restart.is_some() {
            outbox.outdate_histories()?;
        }
        outbox.outdate_histories_of(args.reset_account.iter().map(String::as_str))?;
        let listings =
            if args.backfills() { find_accounts(setup, &outbox).await? } else { Vec::new() };
        Ok(Self { outbox, destinations, server, listings })
    }

    /// The outbox.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The counters of the WebSocket server, if there is one.
    pub(super) fn websocket_metrics(&self) -> Option<Arc<WebSocketMetrics>> {
        self.server.as_ref().map(WebSocketServer::metrics)
    }

    /// Stores the lines of a run, and delivers them. A run that ends by itself waits until every destination has
    /// acknowledged all of them.
    pub(super) async fn run(self, mut run: Run<'_>) -> Result<(), Failure> {
        let outbox = self.outbox.clone();
        let stop = run.stop.clone();
        let status = run.status.clone();
        let unstored = Unstored::new(stop.clone());
        let (recipient, checker) = recipient_of(&run, &outbox, &unstored);
        let room_limit = run.args.stream.stop_limit() / 10 * 4;
        let histories = if run.args.resyncs() { Some(self.histories(&mut run)?) } else { None };
        let mut tasks = self.destinations.start(&stop, &status)?;
        if let Some(server) = self.server {
            tasks.deliveries.spawn(websocket::serve(server, stop.clone(), status.clone()));
        }
        if let Some(queue) = histories {
            tasks.helpers.spawn(queue.run(stop.clone()));
        }
        tasks.helpers.spawn(checker.run(stop.clone()));
        tasks.helpers.spawn(stop_appends(outbox.clone(), stop.clone(), room_limit));
        let followed = run.follow(recipient, None).await;
        if followed.is_orderly() {
            drain(&outbox, &stop, &status).await;
        }
        stop.request();
        let delivered = tasks.join().await;
        let flushed = outbox.flush();
        status.print_totals();
        report_undelivered(&outbox, &status);
        unstored.error().map_or(Ok(()), |error| Err(Failure::Local(error)))?;
        delivered?;
        flushed?;
        followed.check("stored in the outbox")?.result()
    }

    /// The histories of a run.
    fn histories(&self, run: &mut Run<'_>) -> Result<HistoryQueue, Failure> {
        let parts = HistoryParts {
            outbox: self.outbox.clone(),
            requests: run.requests.clone(),
            resolver: run.resolver.clone(),
            selection: run.selection.clone(),
            status: run.status.clone(),
            progress: run.stats.histories.clone(),
            client: run.xrpc.clone(),
            list_interval: run.args.delivery.list_interval(),
            outdated: run.outdated.clone(),
            backfills: run.args.backfills(),
        };
        let lost = if run.args.backfills() {
            without_state(&run.selection.dids.snapshot(), &run.store)?
        } else {
            Vec::new()
        };
        let (histories, queue) = Histories::new(parts, self.listings.clone(), lost)?;
        run.histories = Some(histories);
        Ok(queue)
    }
}

/// Says how the selection differs from the last run's.
fn announce_selection(SelectionChange { selects_more, selects_less, .. }: SelectionChange) {
    let print = |text: &str| messages::print(Level::WARN, text);
    if selects_more {
        print(
            "more is selected than in the last run: delivered histories are fetched again for the records that were \
             added",
        );
    }
    if selects_less {
        print(
            "less is selected than in the last run: destinations keep the records that are left out, but no longer update them",
        );
    }
}

/// Notes the accounts whose history has to be delivered, and returns the lists that were read.
async fn find_accounts(setup: &Setup<'_>, outbox: &Outbox) -> Result<Vec<Listing>, Failure> {
    let dids = setup.selection.dids.snapshot();
    outbox.await_histories(dids.iter().map(String::as_str))?;
    let listings = setup.args.listings(&setup.hosts.urls[0])?;
    for listing in &listings {
        listing.read(&setup.network.xrpc, outbox).await?;
    }
    Ok(listings)
}

/// The accounts that are not in the state file: their changes since their history are not known.
fn without_state(dids: &HashSet<String>, store: &Store) -> Result<Vec<Box<str>>, StoreError> {
    let dids: Vec<&str> = dids.iter().map(String::as_str).collect();
    let mut accounts = vec![AccountState::UNKNOWN; dids.len()];
    store.chain_state()?.load_many(&dids, &mut accounts)?;
    let is_known =
        |account: &AccountState| account.head.is_some() || account.sync != SyncState::Synchronized;
    let all = dids.into_iter().zip(accounts);
    Ok(all.filter(|(_, account)| !is_known(account)).map(|(did, _)| did.into()).collect())
}

/// The target of the lines of a run, and the check of the statuses among them.
fn recipient_of(
    run: &Run<'_>,
    outbox: &Outbox,
    unstored: &Arc<Unstored>,
) -> (LinesToOutbox, StatusChecker) {
    let status = || run.status.clone();
    let (checks, queue) = StatusChecks::new(status());
    let outbox = outbox.clone();
    let stats = run.stats.clone();
    let unstored = unstored.clone();
    let statuses = run.statuses.clone();
    let checker = StatusChecker { queue, statuses, outbox: outbox.clone(), status: status() };
    (LinesToOutbox { outbox, stats, unstored, checks }, checker)
}

/// How to start without the outbox of a state.
const WITHOUT_OUTBOX: &str = "delete this file and start with --cursor at the last event that every destination has, or \
                              with --backfill";
