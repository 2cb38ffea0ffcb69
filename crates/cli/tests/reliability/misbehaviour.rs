//! Is whatever a server sends told, and is silence noticed?

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::child::{self, Follow};
use crate::ledger::Ledger;

const RELAY: Server = Server::Relay(0);

fn sim() -> Simulation {
    let spec =
        Spec { accounts: 5, records: 5, jetstreams: 0, initial_commits: 40, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn follow(sim: &Simulation, state: &tempfile::TempDir, args: &[&str]) -> Follow {
    Follow::spawn(child::command(sim, state.path(), args), 0)
}

#[test]
fn silence_for_the_idle_time_is_an_error_behind_which_it_reconnects() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    sim.faults().enable(RELAY, Fault::Stall, FaultSchedule::ONCE.after(9));
    let mut follow = follow(&sim, &folder, &["--idle-seconds", "1"]);
    follow.wait_for(40);
    assert_eq!(sim.faults().unfired(), []);
    let ended = follow.interrupt();
    let hearing = Ledger::of(&sim).check(&ended.heard);
    assert_eq!((hearing.told, hearing.again), (40, 0));
    assert!(ended.errors.contains("no byte for 1s"), "{}", ended.errors);
}

/// Each of these is told with the host, and nothing that was right is lost by it.
#[test]
fn whatever_a_server_sends_is_told_and_loses_nothing() {
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
            follow.heard_from(0).iter().any(|heard| heard.seq == Some(last))
        });
        assert_eq!(sim.faults().unfired(), [], "{}", fault.name());
        let ended = follow.interrupt();
        assert!(ended.has_ended_well(), "{}: {}", fault.name(), ended.errors);
        let told = Ledger::of(&sim).check_heard(&ended.heard);
        assert_eq!(told, 40, "{}", fault.name());
    }
}
