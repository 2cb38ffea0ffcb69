//! Every event is delivered in its account's order through disconnects, host switches and a kill.

use std::path::Path;
use std::time::Duration;

use simnet::random::{Random, Seed};
use simnet::servers::{Fault, FaultSchedule, Faults, Server, Simulation, Spec, WriteRate};

use crate::event_log::EventLog;
use crate::follow::{self, Follow, PrintedLine};
use crate::{report, scaled};

/// The number of events and disconnects, and the randomness of their places.
struct Plan {
    events: u64,
    disconnects: u64,
    random: Random,
}

#[test]
fn every_event_is_delivered_through_disconnects_two_host_switches_and_a_kill() {
    let plan = Plan {
        events: scaled(12_000, 1_000_000),
        disconnects: scaled(8, 64),
        random: Seed::new(5, "disconnects").stream(0),
    };
    let folder = tempfile::tempdir().unwrap();
    let sim = sim();
    let mut run = Run::start(&sim, folder.path());
    for (at, disruption) in plan.disruptions() {
        run.reach(at);
        run.disrupt(disruption);
    }
    run.reach(plan.events);
    let printed = run.finish();

    let log = EventLog::of(&sim);
    let deliveries = log.check(&printed);
    for relay in RELAYS {
        let (port, cursor) = (sim.port(relay), follow::stored_cursor(folder.path(), &sim, relay));
        log.check_cursor(port, cursor, &printed);
    }
    assert!(deliveries.events as u64 >= plan.events);
    report(&format!(
        "{} events through {} disconnects, 2 host switches and a kill: none missing, {} delivered again",
        deliveries.events, plan.disconnects, deliveries.repeated
    ));
}

/// A disruption of the reader or its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disruption {
    /// The server stops with all its connections, and restarts.
    Restart,
    /// The stream is closed.
    Close,
    /// The stream ends with an error.
    ErrorFrame,
    /// The stream is closed, and the next one is cut at this byte.
    Cut(u64),
    /// The host is down until another one is followed.
    Switch,
    /// The reader is killed and restarted.
    Kill,
}

impl Plan {
    /// Disruptions, and the events behind which they come.
    fn disruptions(&self) -> Vec<(u64, Disruption)> {
        let mut random = self.random.clone();
        let mut disruptions = vec![Disruption::Switch, Disruption::Switch, Disruption::Kill];
        let mut left = self.disconnects;
        while left > 0 {
            let disruption = match random.below(4) {
                0 if left > 1 => Disruption::Cut(random.between(1, 200_000)),
                1 => Disruption::Close,
                2 => Disruption::ErrorFrame,
                _ => Disruption::Restart,
            };
            left -= if matches!(disruption, Disruption::Cut(_)) { 2 } else { 1 };
            disruptions.push(disruption);
        }
        let mut placed: Vec<(u64, Disruption)> = { disruptions.into_iter() }
            .map(|disruption| (random.between(self.events / 50, self.events), disruption))
            .collect();
        placed.sort_unstable_by_key(|(at, _)| *at);
        placed
    }
}

/// A reader and its network.
struct Run<'w> {
    sim: &'w Simulation,
    state: &'w Path,
    follow: Option<Follow>,
    /// Number of the process.
    number: usize,
    /// Lines of earlier processes.
    before: Vec<PrintedLine>,
}

impl<'w> Run<'w> {
    fn start(sim: &'w Simulation, state: &'w Path) -> Self {
        let mut run = Self { sim, state, follow: None, number: 0, before: Vec::new() };
        run.spawn();
        sim.set_write_rate(WriteRate::MatchReaders);
        run
    }

    fn spawn(&mut self) {
        let command = follow::command(self.sim, self.state, &[]);
        self.follow = Some(Follow::spawn(command, self.number));
        self.number += 1;
    }

    fn follow(&mut self) -> &mut Follow {
        self.follow.as_mut().expect("a reader that runs")
    }

    /// The relay that is followed now.
    fn relay(&mut self) -> Server {
        let sim = self.sim;
        let is_read = |relay: &Server| !sim.backlogs(*relay).is_empty();
        let mut followed = None;
        self.follow().wait_until("a connection", |_| {
            followed = RELAYS.into_iter().find(is_read);
            followed.is_some()
        });
        followed.expect("one was awaited")
    }

    /// Waits until `events` events have been sent, and new lines are printed.
    fn reach(&mut self, events: u64) {
        let sim = self.sim;
        self.relay();
        let count = self.follow().count();
        let is_sent = |_: &Follow| RELAYS.iter().any(|relay| sim.sent_count(*relay) >= events);
        self.follow().wait_until("events", is_sent);
        self.follow().wait_until("a line", |follow| follow.count() > count);
    }

    fn disrupt(&mut self, disruption: Disruption) {
        match disruption {
            Disruption::Restart => {
                let relay = self.relay();
                self.sim.stop_server(relay);
                self.sim.start_server(relay).unwrap();
                self.wait_for_line();
            }
            Disruption::Close => self.inject(Fault::Close),
            Disruption::ErrorFrame => self.inject(Fault::ErrorFrame),
            Disruption::Cut(bytes) => {
                let before = fired(self.sim.faults(), Fault::Cut);
                self.enable(Fault::Cut, FaultSchedule::ONCE.with_amount(bytes));
                self.inject(Fault::Close);
                self.wait_until_fired(Fault::Cut, before);
            }
            Disruption::Switch => self.switch(),
            Disruption::Kill => self.kill(),
        }
    }

    fn inject(&mut self, fault: Fault) {
        let before = fired(self.sim.faults(), fault);
        self.enable(fault, FaultSchedule::ONCE);
        self.wait_until_fired(fault, before);
    }

    /// Enables a fault of both relays: a reader that cannot connect at once may switch at any time.
    fn enable(&self, fault: Fault, schedule: FaultSchedule) {
        RELAYS.iter().for_each(|relay| self.sim.faults().enable(*relay, fault, schedule));
    }

    fn wait_until_fired(&mut self, fault: Fault, before: u64) {
        let faults = self.sim.faults();
        self.follow().wait_until(fault.name(), |_| fired(faults, fault) > before);
        RELAYS.iter().for_each(|relay| faults.disable(*relay, fault));
        self.wait_for_line();
    }

    /// Waits for a new line.
    fn wait_for_line(&mut self) {
        let count = self.follow().count();
        self.follow().wait_until("another line", |follow| follow.count() > count);
    }

    fn switch(&mut self) {
        let stopped = self.relay();
        self.sim.stop_server(stopped);
        let sim = self.sim;
        self.follow().wait_until("the end", |_| sim.backlogs(stopped).is_empty());
        assert_ne!(self.relay(), stopped);
        self.wait_for_line();
        self.sim.start_server(stopped).unwrap();
    }

    /// Kills the reader, and starts another one, which starts with the first host.
    fn kill(&mut self) {
        let killed = self.follow.take().expect("a reader that runs");
        self.before.extend(killed.kill());
        // No events are sent during the comparison.
        self.sim.set_write_rate(WriteRate::Off);
        let log = EventLog::of(self.sim);
        for relay in RELAYS {
            let cursor = follow::stored_cursor(self.state, self.sim, relay);
            log.check_cursor(self.sim.port(relay), cursor, &self.before);
        }
        self.spawn();
        self.sim.set_write_rate(WriteRate::MatchReaders);
        self.wait_for_line();
    }

    /// Waits for the last event, and ends the reader.
    fn finish(mut self) -> Vec<PrintedLine> {
        self.sim.set_write_rate(WriteRate::Off);
        let (sim, relay) = (self.sim, self.relay());
        let last = sim.last_seq(relay);
        let is_last = |printed: &PrintedLine| printed.seq == Some(last);
        let mut from = 0;
        self.follow().wait_until("the last event", |follow| {
            let printed = follow.lines_from(from);
            from += printed.len();
            printed.iter().any(is_last)
        });
        std::thread::sleep(SETTLE_TIME);
        let ended = self.follow.take().expect("a reader that runs").interrupt();
        assert!(ended.is_orderly(), "{}: {}", ended.status, ended.errors);
        assert_eq!(
            follow::stored_cursor(self.state, sim, relay),
            Some(last),
            "all events are acked"
        );
        self.before.extend(ended.printed);
        self.before
    }
}

/// How often a fault of a relay has happened.
fn fired(faults: &Faults, fault: Fault) -> u64 {
    RELAYS.iter().map(|relay| faults.fired(*relay, fault)).sum()
}

/// Two relays that retain more events than are sent while one of them is down.
fn sim() -> Simulation {
    let spec =
        Spec { accounts: 200, records: 10, relays: 2, retained_events: 30_000, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

const RELAYS: [Server; 2] = [Server::Relay(0), Server::Relay(1)];

/// Time for events that the last one has overtaken.
const SETTLE_TIME: Duration = Duration::from_millis(500);
