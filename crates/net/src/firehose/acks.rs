//! Which cursor of each host is behind us: everything up to it is acknowledged?
//!
//! Each event takes a ticket when it comes and gives it back when it is acknowledged, in any order.
//! The cursor of a host is the last one before its oldest ticket that is still out:
//!
//! ```text
//! seq      101  102  105  106        cursor 102: 105 is out, 106 waits for it
//! ticket     0    1    2    3
//! is out     ·    ·    ×    ·
//! ```
//!
//! Order is that of arrival, not of `seq`: where a host counts backwards, we have what came before.
//! What is kept is as much as there are tickets out, whatever came after the oldest.

use std::collections::BTreeMap;

use crate::hosts::HostId;

/// An event on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    host: HostId,
    number: u64,
}

/// The tickets that are out, and the cursors that follow from them.
#[derive(Debug)]
pub(super) struct AckTracker {
    hosts: Vec<Host>,
    /// Of the next ticket.
    number: u64,
}

#[derive(Debug, Default)]
struct Host {
    /// The cursor when no ticket is out.
    newest: Option<u64>,
    out: BTreeMap<u64, Out>,
}

/// A ticket that is out.
#[derive(Clone, Copy, Debug)]
struct Out {
    /// The cursor when everything before is acknowledged.
    before: Option<u64>,
    seq: Option<u64>,
}

impl Ticket {
    pub(super) fn host(self) -> HostId {
        self.host
    }
}

impl Host {
    fn cursor(&self) -> Option<u64> {
        self.out.first_key_value().map_or(self.newest, |(_, out)| out.before)
    }
}

impl AckTracker {
    /// Nothing is out; the hosts have these cursors.
    pub(super) fn new(cursors: impl IntoIterator<Item = Option<u64>>) -> Self {
        let host = |newest| Host { newest, out: BTreeMap::new() };
        Self { hosts: cursors.into_iter().map(host).collect(), number: 0 }
    }

    /// An event of `host` came; one without `seq` leaves the cursor where it is.
    pub(super) fn begin(&mut self, host: HostId, seq: Option<u64>) -> Ticket {
        let number = self.number;
        self.number += 1;
        let known = self.host_mut(host);
        known.out.insert(number, Out { before: known.newest, seq });
        known.newest = seq.or(known.newest);
        Ticket { host, number }
    }

    /// The event is acknowledged.
    pub(super) fn done(&mut self, ticket: Ticket) {
        self.host_mut(ticket.host).out.remove(&ticket.number);
    }

    /// The host counts anew: it has no cursor until an event that comes from now on is acknowledged,
    /// and all before it.
    pub(super) fn forget(&mut self, host: HostId) {
        let host = self.host_mut(host);
        host.newest = None;
        host.out.values_mut().for_each(|out| *out = Out { before: None, ..*out });
    }

    /// The cursor of each host, in their order.
    pub(super) fn cursors(&self) -> impl Iterator<Item = Option<u64>> {
        self.hosts.iter().map(Host::cursor)
    }

    /// Where in its host's stream the event of a ticket is that is out.
    pub(super) fn seq(&self, ticket: Ticket) -> Option<u64> {
        self.hosts.get(ticket.host.0)?.out.get(&ticket.number)?.seq
    }

    /// How many tickets are out.
    pub(super) fn out(&self) -> usize {
        self.hosts.iter().map(|host| host.out.len()).sum()
    }

    fn host_mut(&mut self, host: HostId) -> &mut Host {
        let at = host.0;
        if at >= self.hosts.len() {
            self.hosts.resize_with(at + 1, Host::default);
        }
        &mut self.hosts[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId(0);
    const OTHER: HostId = HostId(1);

    fn cursor(acks: &AckTracker) -> Option<u64> {
        acks.cursors().next().unwrap()
    }

    fn begun(acks: &mut AckTracker, seqs: &[u64]) -> Vec<Ticket> {
        seqs.iter().map(|seq| acks.begin(HOST, Some(*seq))).collect()
    }

    #[test]
    fn the_cursor_stops_before_the_oldest_event_that_is_not_acknowledged() {
        let mut acks = AckTracker::new([Some(7)]);
        let tickets = begun(&mut acks, &[11, 12, 15, 16]);
        for (done, expected) in [(1, 7), (0, 12), (3, 12), (2, 16)] {
            acks.done(tickets[done]);
            assert_eq!(cursor(&acks), Some(expected), "after {done}");
        }
        assert_eq!(acks.out(), 0);
    }

    #[test]
    fn no_order_of_acknowledging_moves_the_cursor_past_what_is_out() {
        let orders =
            |n: usize| (0..n.pow(4)).map(move |i| [i % n, i / n % n, i / n / n % n, i / n / n / n]);
        for order in orders(4) {
            let mut acks = AckTracker::new([None]);
            let tickets = begun(&mut acks, &[1, 2, 3, 4]);
            let mut is_done = [false; 4];
            for at in order {
                acks.done(tickets[at]);
                is_done[at] = true;
                let first_out = is_done.iter().position(|done| !done).unwrap_or(4);
                assert_eq!(cursor(&acks).unwrap_or(0), first_out as u64, "{order:?}");
            }
        }
    }

    #[test]
    fn hosts_have_cursors_of_their_own() {
        let mut acks = AckTracker::new([Some(1), Some(900)]);
        let ours = acks.begin(HOST, Some(2));
        let theirs = acks.begin(OTHER, Some(901));
        acks.done(theirs);
        assert!(acks.cursors().eq([Some(1), Some(901)]));
        acks.done(ours);
        assert!(acks.cursors().eq([Some(2), Some(901)]));
    }

    #[test]
    fn what_has_no_seq_holds_the_cursor_but_does_not_move_it() {
        let mut acks = AckTracker::new([Some(5)]);
        let remark = acks.begin(HOST, None);
        let event = acks.begin(HOST, Some(6));
        acks.done(event);
        assert_eq!((cursor(&acks), acks.seq(remark)), (Some(5), None));
        acks.done(remark);
        assert_eq!(cursor(&acks), Some(6));
    }

    #[test]
    fn a_host_that_counts_backwards_is_followed() {
        let mut acks = AckTracker::new([Some(500)]);
        let tickets = begun(&mut acks, &[501, 3, 4]);
        acks.done(tickets[1]);
        acks.done(tickets[0]);
        assert_eq!(cursor(&acks), Some(3));
        acks.done(tickets[2]);
        assert_eq!(cursor(&acks), Some(4));
    }

    #[test]
    fn a_host_that_counts_anew_has_no_cursor_until_something_new_is_acknowledged() {
        let mut acks = AckTracker::new([Some(1_000)]);
        let old = begun(&mut acks, &[1_001, 1_002]);
        acks.done(old[0]);
        acks.forget(HOST);
        assert_eq!(cursor(&acks), None);
        let new = begun(&mut acks, &[1, 2]);
        acks.done(new[0]);
        assert_eq!(cursor(&acks), None);
        acks.done(old[1]);
        assert_eq!(cursor(&acks), Some(1));
    }

    #[test]
    fn one_event_that_is_never_acknowledged_costs_no_memory_for_those_that_are() {
        let mut acks = AckTracker::new([None]);
        acks.begin(HOST, Some(1));
        for seq in 2..10_000 {
            let ticket = acks.begin(HOST, Some(seq));
            acks.done(ticket);
        }
        assert_eq!((acks.out(), cursor(&acks)), (1, None));
    }
}
