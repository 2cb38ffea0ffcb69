//! Where events are handed over: the handler gets them with a word to give back.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use atproto::event::Event;

use super::ack::{Batch, RunState, States};
use super::counters::RunMetrics;
use super::handler::{DeliveredEvent, Handler, Verdict};
use super::item::Item;
use super::pending_states::PendingStates;
use super::resync::ResyncedRepo;

/// A worker's way to the handler.
#[derive(Debug)]
pub(super) struct Dispatcher<H> {
    pub(super) handler: Arc<H>,
    pub(super) run_state: Arc<RunState>,
    pub(super) pending_states: Arc<PendingStates>,
    pub(super) counters: Arc<RunMetrics>,
    /// Whether what is known of accounts is journaled.
    pub(super) keeps_accounts: bool,
}

/// A batch that is being handed over.
#[derive(Debug)]
pub(super) struct BatchDelivery<'c, H> {
    counter: &'c Dispatcher<H>,
    batch: Arc<Batch>,
    /// How many events are handed over.
    len: usize,
    began: Instant,
    tally: Vec<(&'static str, u64)>,
    /// The latest coming among them.
    received: Option<SystemTime>,
}

impl<H: Handler> Dispatcher<H> {
    pub(super) fn new(
        handler: &Arc<H>,
        run_state: &Arc<RunState>,
        counters: &Arc<RunMetrics>,
        keeps_accounts: bool,
    ) -> Self {
        let (handler, run_state, counters) = (handler.clone(), run_state.clone(), counters.clone());
        Self { handler, run_state, pending_states: Arc::default(), counters, keeps_accounts }
    }

    /// Begins to hand over these events.
    pub(super) fn begin<'i>(
        &self,
        items: impl Iterator<Item = &'i Item> + Clone,
    ) -> BatchDelivery<'_, H> {
        let tickets = items.clone().map(|item| item.ticket).collect();
        let bytes = items.clone().map(Item::len).sum();
        let accounts = match self.keeps_accounts {
            true => items.map(|item| item.account).collect(),
            false => Box::default(),
        };
        let batch = Batch::open(&self.run_state, tickets, bytes, accounts);
        if self.keeps_accounts {
            self.pending_states.note(batch.clone());
        }
        let (len, began, tally, received) = (0, Instant::now(), Vec::new(), None);
        BatchDelivery { counter: self, batch, len, began, tally, received }
    }

    /// Hands over a repository, and what is known of its account since.
    pub(super) fn resynced(&self, account: u64, resynced: &Arc<ResyncedRepo>, states: States) {
        let accounts = [account].into_iter().filter(|_| self.keeps_accounts).collect();
        let batch = Batch::open(&self.run_state, Box::default(), 0, accounts);
        if self.keeps_accounts {
            self.pending_states.note(batch.clone());
        }
        self.handler.resynced(resynced, batch.ack(None));
        batch.close(states);
    }
}

impl<H: Handler> BatchDelivery<'_, H> {
    /// Hands over the next of the events.
    pub(super) fn event(&mut self, item: &Item, event: Option<&Event<'_>>, verdict: Verdict<'_>) {
        let code = verdict.code();
        match self.tally.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.tally.push((code, 1)),
        }
        let arrival = &item.arrival;
        let delivered = DeliveredEvent {
            host: arrival.host,
            seq: arrival.seq,
            kind: arrival.kind,
            did: arrival.did(),
            frame: &arrival.frame,
            received: arrival.received,
            event,
            verdict,
        };
        let ack = self.batch.ack(Some(self.len));
        self.len += 1;
        self.received = Some(arrival.received);
        self.counter.handler.event(&delivered, ack);
    }

    /// All are handed over, and this is what is known since.
    pub(super) fn end(self, states: States) {
        self.batch.close(states);
        let counters = &self.counter.counters;
        counters.judged(&self.tally);
        counters.delivered.fetch_add(self.len as u64, Relaxed);
        counters.handler_time.count(self.began.elapsed());
        let lag = self.received.and_then(|received| received.elapsed().ok());
        counters.lag.count_many(lag.unwrap_or_default(), self.len as u64);
    }
}
