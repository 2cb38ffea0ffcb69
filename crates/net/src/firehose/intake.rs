//! What comes in gets a ticket and goes to the worker whose account it is of, as soon as there is room.
//!
//! Events go in groups, as many as are there at once, so that a lock is taken once a group; one that
//! comes alone goes alone.

use std::sync::Arc;

use super::ack::Books;
use super::arrival::Arrival;
use super::counters::Counters;
use super::inbox::Inbox;
use super::item::{Item, Numbers, worker_of};

/// The way in.
#[derive(Debug)]
pub(super) struct Intake {
    books: Arc<Books>,
    inboxes: Arc<[Inbox]>,
    counters: Arc<Counters>,
    numbers: Numbers,
    /// What has room already, in order.
    group: Vec<Arrival>,
    /// What goes to each worker.
    shares: Vec<Vec<Item>>,
}

impl Intake {
    pub(super) fn new(
        books: Arc<Books>,
        inboxes: Arc<[Inbox]>,
        counters: Arc<Counters>,
        numbers: Numbers,
    ) -> Self {
        let shares = inboxes.iter().map(|_| Vec::new()).collect();
        Self { books, inboxes, counters, numbers, group: Vec::new(), shares }
    }

    /// Takes an event into the group, when there is room. Who gives up waiting has lost nothing that
    /// has a ticket.
    pub(super) async fn take(&mut self, arrival: Arrival) {
        let bytes = arrival.frame.len();
        if !self.books.room.try_take(bytes) {
            // Nobody makes room whose events are still here.
            self.pass_on();
            self.books.room.take(bytes).await;
        }
        self.counters.arrived(&arrival);
        self.group.push(arrival);
    }

    /// Whether the group is as large as it may be.
    pub(super) fn is_full(&self) -> bool {
        self.group.len() >= MAX_GROUP
    }

    /// Passes the group on.
    pub(super) fn pass_on(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let mut ledger = self.books.ledger();
        let mut last = None;
        for arrival in self.group.drain(..) {
            last = arrival.seq.map(|seq| (arrival.host, seq)).or(last);
            let ticket = ledger.begin(arrival.host, arrival.seq);
            let account = self.numbers.of(arrival.did());
            let share = worker_of(account, self.shares.len());
            self.shares[share].push(Item { arrival, ticket, account, answer: None });
        }
        drop(ledger);
        if let Some((host, seq)) = last {
            self.counters.reached(host.0, seq);
        }
        for (inbox, share) in self.inboxes.iter().zip(&mut self.shares) {
            inbox.put(share);
        }
    }
}

const MAX_GROUP: usize = 256;
