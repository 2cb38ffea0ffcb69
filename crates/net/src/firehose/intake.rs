//! What comes in gets a ticket and goes to the worker whose account it is of, as soon as there is room.
//!
//! Events go in groups, as many as are there at once, so that a lock is taken once a group; one that
//! comes alone goes alone.

use std::sync::Arc;

use super::ack::RunState;
use super::arrival::ReceivedFrame;
use super::counters::RunMetrics;
use super::inbox::Inbox;
use super::item::{Item, Numbers, worker_of};

/// The way in.
#[derive(Debug)]
pub(super) struct Intake {
    run_state: Arc<RunState>,
    inboxes: Arc<[Inbox]>,
    counters: Arc<RunMetrics>,
    numbers: Numbers,
    /// What has room already, in order.
    group: Vec<ReceivedFrame>,
    /// What goes to each worker.
    shares: Vec<Vec<Item>>,
}

impl Intake {
    pub(super) fn new(
        run_state: Arc<RunState>,
        inboxes: Arc<[Inbox]>,
        counters: Arc<RunMetrics>,
        numbers: Numbers,
    ) -> Self {
        let shares = inboxes.iter().map(|_| Vec::new()).collect();
        Self { run_state, inboxes, counters, numbers, group: Vec::new(), shares }
    }

    /// Takes an event into the group, when there is room. Who gives up waiting has lost nothing that
    /// has a ticket.
    pub(super) async fn take(&mut self, arrival: ReceivedFrame) {
        let bytes = arrival.frame.len();
        if !self.run_state.in_flight.try_acquire(bytes) {
            // Nobody makes room whose events are still here.
            self.pass_on();
            self.run_state.in_flight.acquire(bytes).await;
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
        let mut acks = self.run_state.acks();
        let mut last = None;
        for arrival in self.group.drain(..) {
            last = arrival.seq.map(|seq| (arrival.host, seq)).or(last);
            let ticket = acks.begin(arrival.host, arrival.seq);
            let account = self.numbers.of(arrival.did());
            let partition = worker_of(account, self.shares.len());
            self.shares[partition].push(Item { arrival, ticket, account, answer: None });
        }
        drop(acks);
        if let Some((host, seq)) = last {
            self.counters.reached(host.0, seq);
        }
        for (inbox, partition) in self.inboxes.iter().zip(&mut self.shares) {
            inbox.put(partition);
        }
    }
}

const MAX_GROUP: usize = 256;
