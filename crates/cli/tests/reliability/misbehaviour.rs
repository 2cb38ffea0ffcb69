//! Faulty frames and silence are reported, and lose no event.

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::event_log::EventLog;
use crate::follow::{self, Follow};

const RELAY: Server = Server::Relay(0);

fn sim() -> Simulation {
    let spec =
        Spec { accounts: 5, records: 5, jetstreams: 0, initial_commits: 40, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn follow(sim: &Simulation, state: &tempfile::TempDir, args: &[&str]) -> Follow {
    Follow::spawn(follow::command(sim, state.path(), args), 0)
}

#[test]
fn silence_for_the_idle_time_is_an_error_and_followed_by_a_reconnection() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    sim.faults().enable(RELAY, Fault::Stall, FaultSchedule::ONCE.after(9));
    let mut follow = follow(&sim, &folder, &["--idle-seconds", "1"]);
    follow.wait_for(40);
    assert_eq!(sim.faults().unfired(), []);
    let ended = follow.interrupt();
    let deliveries = EventLog::of(&sim).check(&ended.printed);
    assert_eq!((deliveries.events, deliveries.repeated), (40, 0));
    assert!(ended.errors.contains("no byte for 1 s"), "{}", ended.errors);
}

#[test]
fn faulty_frames_lose_no_valid_event() {
    let faults = [
        Fault::GarbageFrame,
        Fault::OversizedFrame,
        Fault::UnknownKind,
        Fault::UnknownOperation,
        Fault::ErrorFrame,
        Fault::RepeatedSeq,
        Fault::ReversedSeq,
        Fault::Close,
    ];
    for fault in faults {
        let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
        sim.faults().enable(RELAY, fault, FaultSchedule::ONCE.after(9));
        let mut follow = follow(&sim, &folder, &[]);
        let last = sim.last_seq(RELAY);
        follow.wait_until(fault.name(), |follow| {
            follow.lines_from(0).iter().any(|printed| printed.seq == Some(last))
        });
        assert_eq!(sim.faults().unfired(), [], "{}", fault.name());
        let ended = follow.interrupt();
        assert!(ended.is_orderly(), "{}: {}", fault.name(), ended.errors);
        let delivered = EventLog::of(&sim).check_delivered(&ended.printed);
        assert_eq!(delivered, 40, "{}", fault.name());
    }
}
