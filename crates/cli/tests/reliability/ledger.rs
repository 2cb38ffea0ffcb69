//! What was told, and is that what was heard?

use std::collections::HashMap;

use simnet::servers::{EventKind, SentEvent, Server, Simulation};

use crate::heard::Heard;

/// What the relays of a network have told: all the same events, in one order, each by its own numbers.
pub(crate) struct Ledger {
    events: Vec<SentEvent>,
    /// The place of each event, by port and number.
    places: HashMap<(u16, i64), usize>,
}

/// How it was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hearing {
    /// Events that were told.
    pub(crate) told: usize,
    /// Events that were heard once more.
    pub(crate) again: usize,
}

impl Ledger {
    pub(crate) fn of(sim: &Simulation) -> Self {
        let mut places = HashMap::new();
        let relays = (0..sim.spec().relays).map(Server::Relay);
        let told: Vec<Vec<SentEvent>> = relays
            .map(|relay| {
                let (port, lines) = (sim.port(relay), sim.sent_events(relay));
                places.extend(lines.iter().enumerate().map(|(at, line)| ((port, line.seq), at)));
                lines
            })
            .collect();
        let subjects =
            |lines: &[SentEvent]| lines.iter().map(|line| line.subject.clone()).collect::<Vec<_>>();
        for other in &told[1..] {
            assert!(subjects(other) == subjects(&told[0]), "all relays tell the same");
        }
        Self { events: told.into_iter().next().unwrap_or_default(), places }
    }

    /// Holds what was heard, in its order and by however many processes, against what was told.
    ///
    /// # Panics
    /// If an event was not heard or was never proved, if something was heard that was not told, or if
    /// events of an account were heard in another order than theirs.
    pub(crate) fn check(&self, heard: &[Heard]) -> Hearing {
        let mut is_heard = vec![false; self.events.len()];
        let mut is_proved = vec![false; self.events.len()];
        // How far each account is: its newest event that was heard, and the one of this connection.
        let mut newest: HashMap<&str, usize> = HashMap::new();
        let mut of_stay: HashMap<&str, usize> = HashMap::new();
        let mut stay = None;
        let mut again = 0;
        for heard in heard.iter().filter(|heard| heard.seq.is_some()) {
            let at = self.place(heard);
            let did = self.events[at].subject.did.as_str();
            if stay.replace((heard.run, heard.port)) != Some((heard.run, heard.port)) {
                of_stay.clear();
            }
            let before = of_stay.insert(did, at);
            assert!(before.is_none_or(|before| before < at), "out of order: {heard:?}");
            if !is_heard[at] {
                let before = newest.insert(did, at);
                assert!(before.is_none_or(|before| before < at), "overtaken: {heard:?}");
            }
            again += usize::from(is_heard[at]);
            is_heard[at] = true;
            is_proved[at] |= heard.is_verified() || !self.has_proof(at);
        }
        let missing: Vec<&SentEvent> = self.those(&is_heard, false).take(5).collect();
        assert!(missing.is_empty(), "never heard: {missing:?}, …");
        let unproved = { heard.iter().filter(|heard| heard.seq.is_some()) }
            .filter(|heard| !is_proved[self.place(heard)]);
        let unproved: Vec<&Heard> = unproved.take(5).collect();
        assert!(unproved.is_empty(), "heard, but never proved: {unproved:?}, …");
        Hearing { told: self.events.len(), again }
    }

    /// How many events were heard, proved or not.
    ///
    /// # Panics
    /// If one was not, or something was heard that was not told.
    pub(crate) fn check_heard(&self, heard: &[Heard]) -> usize {
        let with_number = heard.iter().filter(|heard| heard.seq.is_some());
        let places: std::collections::BTreeSet<usize> =
            with_number.map(|heard| self.place(heard)).collect();
        assert_eq!(places.len(), self.events.len(), "every event is heard");
        places.len()
    }

    /// Holds a stored cursor against what had been heard when it was read.
    ///
    /// # Panics
    /// If an event up to the cursor had not been heard.
    pub(crate) fn check_cursor(&self, port: u16, cursor: Option<i64>, heard: &[Heard]) {
        let Some(cursor) = cursor else { return };
        let mut is_heard = vec![false; self.events.len()];
        heard.iter().filter(|heard| heard.seq.is_some()).for_each(|heard| {
            is_heard[self.place(heard)] = true;
        });
        let mut up_to: Vec<(i64, usize)> = { self.places.iter() }
            .filter(|((of, seq), _)| *of == port && *seq <= cursor)
            .map(|((_, seq), at)| (*seq, *at))
            .collect();
        up_to.sort_unstable();
        let missing = up_to.iter().find(|(_, at)| !is_heard[*at]);
        assert_eq!(missing, None, "the cursor {cursor} is ahead of what was heard");
    }

    /// Whether the event can be proved: others are a host's word.
    fn has_proof(&self, at: usize) -> bool {
        matches!(self.events[at].subject.kind, EventKind::Commit | EventKind::Sync)
    }

    fn place(&self, heard: &Heard) -> usize {
        let seq = heard.seq.expect("an event with a number");
        let place = self.places.get(&(heard.port, seq));
        let at = *place.unwrap_or_else(|| panic!("nobody told {heard:?}"));
        let subject = &self.events[at].subject;
        assert_eq!((&*heard.did, &*heard.rev), (&*subject.did, &*subject.rev), "{heard:?}");
        at
    }

    fn those<'l>(&'l self, marks: &'l [bool], mark: bool) -> impl Iterator<Item = &'l SentEvent> {
        self.events.iter().zip(marks).filter(move |(_, is)| **is == mark).map(|(line, _)| line)
    }
}

/// A check that notices nothing is none.
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use simnet::servers::Spec;

    use super::*;

    fn sim() -> Simulation {
        let spec =
            Spec { accounts: 2, records: 2, relays: 2, initial_commits: 12, ..Spec::default() };
        Simulation::start(spec).unwrap()
    }

    /// What a faithful reader of a relay hears.
    fn heard(sim: &Simulation, relay: usize, run: usize) -> Vec<Heard> {
        let port = sim.port(Server::Relay(relay));
        let told = sim.sent_events(Server::Relay(relay)).into_iter();
        told.map(|SentEvent { seq, subject }| Heard {
            run,
            port,
            seq: Some(seq),
            kind: "commit".into(),
            did: subject.did.into(),
            rev: subject.rev.into(),
            verdict: "verified".into(),
            code: "verified".into(),
        })
        .collect()
    }

    fn fault(ledger: &Ledger, heard: &[Heard]) -> String {
        let outcome = catch_unwind(AssertUnwindSafe(|| ledger.check(heard)));
        let fault = outcome.expect_err("a fault is noticed");
        fault.downcast_ref::<String>().expect("a message").clone()
    }

    #[test]
    fn all_that_was_told_is_well_also_from_two_hosts_and_twice() {
        let sim = sim();
        let ledger = Ledger::of(&sim);
        let (first, second) = (heard(&sim, 0, 0), heard(&sim, 1, 0));
        assert_eq!(ledger.check(&first), Hearing { told: 12, again: 0 });
        let switched = [&first[..7], &second[3..]].concat();
        assert_eq!(ledger.check(&switched), Hearing { told: 12, again: 4 });
        let restarted = [&first[..7], &heard(&sim, 0, 1)[5..]].concat();
        assert_eq!(ledger.check(&restarted), Hearing { told: 12, again: 2 });
    }

    #[test]
    fn a_loss_a_forgery_and_another_order_are_noticed() {
        let sim = sim();
        let (ledger, all) = (Ledger::of(&sim), heard(&sim, 0, 0));
        assert!(fault(&ledger, &all[..11]).contains("never heard"));
        let mut unproved = all.clone();
        unproved[4].code = "signature/wrong".into();
        assert!(fault(&ledger, &unproved).contains("never proved"));
        let mut forged = all.clone();
        forged[4].rev = "3jzfcijpj2z2a".into();
        assert!(fault(&ledger, &forged).contains("3jzfcijpj2z2a"));
        let mut strange = all.clone();
        strange[4].seq = Some(1);
        assert!(fault(&ledger, &strange).contains("nobody told"));
        // Two of one account, swapped.
        let other = (6..12).find(|at| all[*at].did == all[5].did).unwrap();
        let mut swapped = all.clone();
        swapped.swap(5, other);
        assert!(fault(&ledger, &swapped).contains("out of order"));
        let overtaken = [&all[other..=other], &heard(&sim, 1, 0)[..]].concat();
        assert!(fault(&ledger, &overtaken).contains("overtaken"));
    }

    #[test]
    fn a_cursor_ahead_of_what_was_heard_is_noticed() {
        let sim = sim();
        let (ledger, all) = (Ledger::of(&sim), heard(&sim, 0, 0));
        let (port, seq) = (all[0].port, all[7].seq);
        ledger.check_cursor(port, seq, &all[..8]);
        ledger.check_cursor(port, None, &[]);
        for heard in [&all[..7], &all[1..]] {
            let outcome = catch_unwind(AssertUnwindSafe(|| ledger.check_cursor(port, seq, heard)));
            assert!(outcome.is_err());
        }
    }
}
