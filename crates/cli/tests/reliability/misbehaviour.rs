//! Is whatever a server sends told, and is silence noticed?

use simnet::servers::{Dose, Fault, Server, Spec, World};

use crate::child::{self, Follow};
use crate::ledger::Ledger;

const RELAY: Server = Server::Relay(0);

fn world() -> World {
    let spec = Spec { accounts: 5, records: 5, jetstreams: 0, prepared: 40, ..Spec::default() };
    World::start(spec).unwrap()
}

fn follow(world: &World, state: &tempfile::TempDir, args: &[&str]) -> Follow {
    Follow::spawn(child::command(world, state.path(), args), 0)
}

#[test]
fn silence_for_the_idle_time_is_an_error_behind_which_it_reconnects() {
    let (world, folder) = (world(), tempfile::tempdir().unwrap());
    world.faults().switch_on(RELAY, Fault::Stall, Dose::ONCE.after(9));
    let mut follow = follow(&world, &folder, &["--idle-seconds", "1"]);
    follow.wait_for(40);
    assert_eq!(world.faults().unfired(), []);
    let ended = follow.interrupt();
    let hearing = Ledger::of(&world).check(&ended.heard);
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
        let (world, folder) = (world(), tempfile::tempdir().unwrap());
        world.faults().switch_on(RELAY, fault, Dose::ONCE.after(9));
        let mut follow = follow(&world, &folder, &[]);
        let last = world.last_seq(RELAY);
        follow.wait_until(fault.name(), |follow| {
            follow.heard_from(0).iter().any(|heard| heard.seq == Some(last))
        });
        assert_eq!(world.faults().unfired(), [], "{}", fault.name());
        let ended = follow.interrupt();
        assert!(ended.has_ended_well(), "{}: {}", fault.name(), ended.errors);
        let told = Ledger::of(&world).check_heard(&ended.heard);
        assert_eq!(told, 40, "{}", fault.name());
    }
}
