//! The events that the relays sent, and the comparison of printed lines with them.

use std::collections::HashMap;

use simnet::servers::{EventKind, SentEvent, Server, Simulation};

use crate::follow::PrintedLine;

/// The events of all relays: the same events in one order, with every relay's own sequence numbers.
pub(crate) struct EventLog {
    events: Vec<SentEvent>,
    /// Indexes of the events by port and sequence number.
    indexes: HashMap<(u16, i64), usize>,
}

/// A summary of the printed events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deliveries {
    /// Events sent.
    pub(crate) events: usize,
    /// Events printed more than once.
    pub(crate) repeated: usize,
}

impl EventLog {
    pub(crate) fn of(sim: &Simulation) -> Self {
        let mut indexes = HashMap::new();
        let relays = (0..sim.spec().relays).map(Server::Relay);
        let sent: Vec<Vec<SentEvent>> = relays
            .map(|relay| {
                let (port, lines) = (sim.port(relay), sim.sent_events(relay));
                indexes.extend(lines.iter().enumerate().map(|(at, line)| ((port, line.seq), at)));
                lines
            })
            .collect();
        let subjects =
            |lines: &[SentEvent]| lines.iter().map(|line| line.subject.clone()).collect::<Vec<_>>();
        for other in &sent[1..] {
            assert!(subjects(other) == subjects(&sent[0]), "all relays send the same events");
        }
        Self { events: sent.into_iter().next().unwrap_or_default(), indexes }
    }

    /// Compares the lines of one or more processes with the events.
    ///
    /// # Panics
    /// If an event was not printed or never verified, if a line is of no event, or if the events of an
    /// account were printed out of order.
    pub(crate) fn check(&self, printed: &[PrintedLine]) -> Deliveries {
        let mut is_printed = vec![false; self.events.len()];
        let mut is_verified_at = vec![false; self.events.len()];
        // The newest printed event of every account, in all lines and on the current connection.
        let mut newest: HashMap<&str, usize> = HashMap::new();
        let mut on_connection: HashMap<&str, usize> = HashMap::new();
        let mut connection = None;
        let mut repeated = 0;
        for printed in printed.iter().filter(|printed| printed.seq.is_some()) {
            let at = self.index_of(printed);
            let did = self.events[at].subject.did.as_str();
            if connection.replace((printed.run, printed.port)) != Some((printed.run, printed.port))
            {
                on_connection.clear();
            }
            let before = on_connection.insert(did, at);
            assert!(before.is_none_or(|before| before < at), "out of order: {printed:?}");
            if !is_printed[at] {
                let before = newest.insert(did, at);
                assert!(before.is_none_or(|before| before < at), "overtaken: {printed:?}");
            }
            repeated += usize::from(is_printed[at]);
            is_printed[at] = true;
            is_verified_at[at] |= printed.is_verified() || !self.has_proof(at);
        }
        let missing: Vec<&SentEvent> = self.those(&is_printed, false).take(5).collect();
        assert!(missing.is_empty(), "never printed: {missing:?}, …");
        let unverified = { printed.iter().filter(|printed| printed.seq.is_some()) }
            .filter(|printed| !is_verified_at[self.index_of(printed)]);
        let unverified: Vec<&PrintedLine> = unverified.take(5).collect();
        assert!(unverified.is_empty(), "printed, but never verified: {unverified:?}, …");
        Deliveries { events: self.events.len(), repeated }
    }

    /// The number of printed events, verified or not.
    ///
    /// # Panics
    /// If an event was not printed, or a line is of no event.
    pub(crate) fn check_delivered(&self, printed: &[PrintedLine]) -> usize {
        let with_number = printed.iter().filter(|printed| printed.seq.is_some());
        let indexes: std::collections::BTreeSet<usize> =
            with_number.map(|printed| self.index_of(printed)).collect();
        assert_eq!(indexes.len(), self.events.len(), "every event is printed");
        indexes.len()
    }

    /// Compares a stored cursor with the lines printed when it was read.
    ///
    /// # Panics
    /// If an event up to the cursor had not been printed.
    pub(crate) fn check_cursor(&self, port: u16, cursor: Option<i64>, printed: &[PrintedLine]) {
        let Some(cursor) = cursor else { return };
        let mut is_printed = vec![false; self.events.len()];
        printed.iter().filter(|printed| printed.seq.is_some()).for_each(|printed| {
            is_printed[self.index_of(printed)] = true;
        });
        let mut up_to: Vec<(i64, usize)> = { self.indexes.iter() }
            .filter(|((of, seq), _)| *of == port && *seq <= cursor)
            .map(|((_, seq), at)| (*seq, *at))
            .collect();
        up_to.sort_unstable();
        let missing = up_to.iter().find(|(_, at)| !is_printed[*at]);
        assert_eq!(missing, None, "the cursor {cursor} is ahead of the printed lines");
    }

    /// Whether the event carries a proof.
    fn has_proof(&self, at: usize) -> bool {
        matches!(self.events[at].subject.kind, EventKind::Commit | EventKind::Sync)
    }

    fn index_of(&self, printed: &PrintedLine) -> usize {
        let seq = printed.seq.expect("an event with a number");
        let place = self.indexes.get(&(printed.port, seq));
        let at = *place.unwrap_or_else(|| panic!("no event of {printed:?}"));
        let subject = &self.events[at].subject;
        assert_eq!((&*printed.did, &*printed.rev), (&*subject.did, &*subject.rev), "{printed:?}");
        at
    }

    fn those<'l>(&'l self, marks: &'l [bool], mark: bool) -> impl Iterator<Item = &'l SentEvent> {
        self.events.iter().zip(marks).filter(move |(_, is)| **is == mark).map(|(line, _)| line)
    }
}

/// Tests of the comparison itself.
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use simnet::servers::Spec;

    use super::*;

    fn sim() -> Simulation {
        let spec =
            Spec { accounts: 2, records: 2, relays: 2, initial_commits: 12, ..Spec::default() };
        Simulation::start(spec).unwrap()
    }

    /// The lines of a correct reader of a relay.
    fn printed(sim: &Simulation, relay: usize, run: usize) -> Vec<PrintedLine> {
        let port = sim.port(Server::Relay(relay));
        let sent = sim.sent_events(Server::Relay(relay)).into_iter();
        sent.map(|SentEvent { seq, subject }| PrintedLine {
            run,
            port,
            seq: Some(seq),
            kind: "commit".into(),
            did: subject.did.into(),
            rev: subject.rev.into(),
            verdict: "verified".into(),
            code: "verified".into(),
            repeated: false,
            ops: Vec::new(),
            piece: None,
            is_whole: false,
            delay: None,
        })
        .collect()
    }

    fn fault(log: &EventLog, printed: &[PrintedLine]) -> String {
        let outcome = catch_unwind(AssertUnwindSafe(|| log.check(printed)));
        let fault = outcome.expect_err("a fault is detected");
        fault.downcast_ref::<String>().expect("a message").clone()
    }

    #[test]
    fn complete_lines_pass_also_from_two_hosts_and_repeated() {
        let sim = sim();
        let log = EventLog::of(&sim);
        let (first, second) = (printed(&sim, 0, 0), printed(&sim, 1, 0));
        assert_eq!(log.check(&first), Deliveries { events: 12, repeated: 0 });
        let switched = [&first[..7], &second[3..]].concat();
        assert_eq!(log.check(&switched), Deliveries { events: 12, repeated: 4 });
        let restarted = [&first[..7], &printed(&sim, 0, 1)[5..]].concat();
        assert_eq!(log.check(&restarted), Deliveries { events: 12, repeated: 2 });
    }

    #[test]
    fn a_loss_a_forgery_and_a_wrong_order_are_detected() {
        let sim = sim();
        let (log, all) = (EventLog::of(&sim), printed(&sim, 0, 0));
        assert!(fault(&log, &all[..11]).contains("never printed"));
        let mut unverified = all.clone();
        unverified[4].code = "signature/wrong".into();
        assert!(fault(&log, &unverified).contains("never verified"));
        let mut forged = all.clone();
        forged[4].rev = "3jzfcijpj2z2a".into();
        assert!(fault(&log, &forged).contains("3jzfcijpj2z2a"));
        let mut strange = all.clone();
        strange[4].seq = Some(1);
        assert!(fault(&log, &strange).contains("no event of"));
        // Two of one account, swapped.
        let other = (6..12).find(|at| all[*at].did == all[5].did).unwrap();
        let mut swapped = all.clone();
        swapped.swap(5, other);
        assert!(fault(&log, &swapped).contains("out of order"));
        let overtaken = [&all[other..=other], &printed(&sim, 1, 0)[..]].concat();
        assert!(fault(&log, &overtaken).contains("overtaken"));
    }

    #[test]
    fn a_cursor_ahead_of_what_was_heard_is_noticed() {
        let sim = sim();
        let (log, all) = (EventLog::of(&sim), printed(&sim, 0, 0));
        let (port, seq) = (all[0].port, all[7].seq);
        log.check_cursor(port, seq, &all[..8]);
        log.check_cursor(port, None, &[]);
        for printed in [&all[..7], &all[1..]] {
            let outcome = catch_unwind(AssertUnwindSafe(|| log.check_cursor(port, seq, printed)));
            assert!(outcome.is_err());
        }
    }
}
