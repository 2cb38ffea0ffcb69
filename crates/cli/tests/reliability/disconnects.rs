//! Is every event delivered, in its account's order, through disconnects, other hosts and a kill?

use std::path::Path;
use std::time::Duration;

use simnet::random::{Random, Seed};
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec, WriteRate};

use crate::child::{self, Follow};
use crate::heard::Heard;
use crate::ledger::Ledger;
use crate::{scaled, state, tell};

/// Events that are told, disconnects among them, and where the rest happens.
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
    for (at, trouble) in plan.troubles() {
        run.reach(at);
        run.suffer(trouble);
    }
    run.reach(plan.events);
    let heard = run.finish();

    let ledger = Ledger::of(&sim);
    let hearing = ledger.check(&heard);
    for relay in RELAYS {
        let (port, cursor) = (sim.port(relay), state::cursor(folder.path(), &sim, relay));
        ledger.check_cursor(port, cursor, &heard);
    }
    assert!(hearing.told as u64 >= plan.events);
    assert_eq!(sim.faults().unfired(), []);
    tell(&format!(
        "{} events through {} disconnects, 2 host switches and a kill: none missing, {} delivered again",
        hearing.told, plan.disconnects, hearing.again
    ));
}

/// Something that happens to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// The server goes away with all its connections, and comes back.
    Gone,
    /// The stream ends in order.
    Close,
    /// The stream ends with an error.
    ErrorFrame,
    /// The stream ends in order, and the next one at this byte.
    Cut(u64),
    /// The host is away until another one is followed.
    Switch,
    /// The reader is killed, and started again.
    Kill,
}

impl Plan {
    /// Troubles, and the events behind which they come.
    fn troubles(&self) -> Vec<(u64, Trouble)> {
        let mut random = self.random.clone();
        let mut troubles = vec![Trouble::Switch, Trouble::Switch, Trouble::Kill];
        let mut left = self.disconnects;
        while left > 0 {
            let trouble = match random.below(4) {
                0 if left > 1 => Trouble::Cut(random.between(1, 200_000)),
                1 => Trouble::Close,
                2 => Trouble::ErrorFrame,
                _ => Trouble::Gone,
            };
            left -= if matches!(trouble, Trouble::Cut(_)) { 2 } else { 1 };
            troubles.push(trouble);
        }
        let mut placed: Vec<(u64, Trouble)> = { troubles.into_iter() }
            .map(|trouble| (random.between(self.events / 50, self.events), trouble))
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
    /// Which process it is.
    number: usize,
    /// What the ones before have printed.
    before: Vec<Heard>,
}

impl<'w> Run<'w> {
    fn start(sim: &'w Simulation, state: &'w Path) -> Self {
        let mut run = Self { sim, state, follow: None, number: 0, before: Vec::new() };
        run.spawn();
        sim.set_write_rate(WriteRate::MatchReaders);
        run
    }

    fn spawn(&mut self) {
        let command = child::command(self.sim, self.state, &[]);
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

    /// Goes on until so many events have been told, and what is told now is heard.
    fn reach(&mut self, events: u64) {
        let (sim, relay) = (self.sim, self.relay());
        let count = self.follow().count();
        self.follow().wait_until("events", |_| sim.sent_count(relay) >= events);
        self.follow().wait_until("a line", |follow| follow.count() > count);
    }

    fn suffer(&mut self, trouble: Trouble) {
        let faults = self.sim.faults();
        let relay = self.relay();
        match trouble {
            Trouble::Gone => {
                self.sim.stop_server(relay).unwrap();
                self.sim.start_server(relay).unwrap();
                self.go_on();
            }
            Trouble::Close => self.strike(Fault::Close, FaultSchedule::ONCE),
            Trouble::ErrorFrame => self.strike(Fault::ErrorFrame, FaultSchedule::ONCE),
            Trouble::Cut(bytes) => {
                let cut = faults.fired(relay, Fault::Cut);
                faults.enable(relay, Fault::Cut, FaultSchedule::ONCE.with_amount(bytes));
                self.strike(Fault::Close, FaultSchedule::ONCE);
                let sim = self.sim;
                let is_cut = |_: &Follow| sim.faults().fired(relay, Fault::Cut) > cut;
                self.follow().wait_until("the cut", is_cut);
                self.go_on();
            }
            Trouble::Switch => self.switch(),
            Trouble::Kill => self.kill(),
        }
    }

    fn strike(&mut self, fault: Fault, dose: FaultSchedule) {
        let (sim, relay) = (self.sim, self.relay());
        let before = sim.faults().fired(relay, fault);
        sim.faults().enable(relay, fault, dose);
        let has_fired = |_: &Follow| sim.faults().fired(relay, fault) > before;
        self.follow().wait_until(fault.name(), has_fired);
        self.go_on();
    }

    /// Waits until something is heard again.
    fn go_on(&mut self) {
        let count = self.follow().count();
        self.follow().wait_until("another line", |follow| follow.count() > count);
    }

    fn switch(&mut self) {
        let away = self.relay();
        self.sim.stop_server(away).unwrap();
        let sim = self.sim;
        self.follow().wait_until("the end", |_| sim.backlogs(away).is_empty());
        assert_ne!(self.relay(), away);
        self.go_on();
        self.sim.start_server(away).unwrap();
    }

    /// Kills the reader, and starts another one, which begins with the first host.
    fn kill(&mut self) {
        let killed = self.follow.take().expect("a reader that runs");
        self.before.extend(killed.kill());
        // Nobody tells anything while it is looked at.
        self.sim.set_write_rate(WriteRate::Off);
        let ledger = Ledger::of(self.sim);
        for relay in RELAYS {
            let cursor = state::cursor(self.state, self.sim, relay);
            ledger.check_cursor(self.sim.port(relay), cursor, &self.before);
        }
        self.spawn();
        self.sim.set_write_rate(WriteRate::MatchReaders);
        self.go_on();
    }

    /// Lets everything be read that was told, and ends.
    fn finish(mut self) -> Vec<Heard> {
        self.sim.set_write_rate(WriteRate::Off);
        let (sim, relay) = (self.sim, self.relay());
        let last = sim.last_seq(relay);
        let is_last = |heard: &Heard| heard.seq == Some(last);
        let mut from = 0;
        self.follow().wait_until("the last event", |follow| {
            let heard = follow.heard_from(from);
            from += heard.len();
            heard.iter().any(is_last)
        });
        std::thread::sleep(SETTLING);
        let ended = self.follow.take().expect("a reader that runs").interrupt();
        assert!(ended.has_ended_well(), "{}: {}", ended.status, ended.errors);
        assert_eq!(state::cursor(self.state, sim, relay), Some(last), "all is acknowledged");
        self.before.extend(ended.heard);
        self.before
    }
}

/// Two relays; what they keep is more than is told while one of them is away.
fn sim() -> Simulation {
    let spec =
        Spec { accounts: 200, records: 10, relays: 2, retained_events: 30_000, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

const RELAYS: [Server; 2] = [Server::Relay(0), Server::Relay(1)];

/// The last event may overtake others of other accounts.
const SETTLING: Duration = Duration::from_millis(500);
