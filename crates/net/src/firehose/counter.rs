//! Where events are handed over: the handler gets them with a word to give back.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use atproto::event::Event;

use super::ack::{Batch, Books, States};
use super::counters::Counters;
use super::handler::{Delivered, Handler, Verdict};
use super::item::Item;
use super::resync::Resynced;
use super::standings::Standings;

/// A worker's way to the handler.
#[derive(Debug)]
pub(super) struct Counter<H> {
    pub(super) handler: Arc<H>,
    pub(super) books: Arc<Books>,
    pub(super) standings: Arc<Standings>,
    pub(super) counters: Arc<Counters>,
    /// Whether what is known of accounts is journaled.
    pub(super) keeps_accounts: bool,
}

/// A batch that is being handed over.
#[derive(Debug)]
pub(super) struct HandingOver<'c, H> {
    counter: &'c Counter<H>,
    batch: Arc<Batch>,
    /// How many events are handed over.
    len: usize,
    began: Instant,
    tally: Vec<(&'static str, u64)>,
    /// The latest coming among them.
    received: Option<SystemTime>,
}

impl<H: Handler> Counter<H> {
    pub(super) fn new(
        handler: &Arc<H>,
        books: &Arc<Books>,
        counters: &Arc<Counters>,
        keeps_accounts: bool,
    ) -> Self {
        let (handler, books, counters) = (handler.clone(), books.clone(), counters.clone());
        Self { handler, books, standings: Arc::default(), counters, keeps_accounts }
    }

    /// Begins to hand over these events.
    pub(super) fn begin<'i>(
        &self,
        items: impl Iterator<Item = &'i Item> + Clone,
    ) -> HandingOver<'_, H> {
        let tickets = items.clone().map(|item| item.ticket).collect();
        let bytes = items.clone().map(Item::len).sum();
        let accounts = match self.keeps_accounts {
            true => items.map(|item| item.account).collect(),
            false => Box::default(),
        };
        let batch = Batch::open(&self.books, tickets, bytes, accounts);
        if self.keeps_accounts {
            self.standings.note(batch.clone());
        }
        let (len, began, tally, received) = (0, Instant::now(), Vec::new(), None);
        HandingOver { counter: self, batch, len, began, tally, received }
    }

    /// Hands over a repository, and what is known of its account since.
    pub(super) fn resynced(&self, account: u64, resynced: &Arc<Resynced>, states: States) {
        let accounts = [account].into_iter().filter(|_| self.keeps_accounts).collect();
        let batch = Batch::open(&self.books, Box::default(), 0, accounts);
        if self.keeps_accounts {
            self.standings.note(batch.clone());
        }
        self.handler.resynced(resynced, batch.ack(None));
        batch.close(states);
    }
}

impl<H: Handler> HandingOver<'_, H> {
    /// Hands over the next of the events.
    pub(super) fn event(&mut self, item: &Item, event: Option<&Event<'_>>, verdict: Verdict<'_>) {
        let code = verdict.code();
        match self.tally.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.tally.push((code, 1)),
        }
        let arrival = &item.arrival;
        let delivered = Delivered {
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
        counters.handed_over.fetch_add(self.len as u64, Relaxed);
        counters.handling.count(self.began.elapsed());
        let lag = self.received.and_then(|received| received.elapsed().ok());
        counters.lag.count_many(lag.unwrap_or_default(), self.len as u64);
    }
}
