//! Does a slow reader slow the server down, and not fill our memory?

use std::time::{Duration, Instant};

use simnet::servers::{AccountStatus, Server, Simulation, Spec, WriteRate};

use crate::child::{self, Follow};
use crate::ledger::Ledger;
use crate::{scaled, tell};

#[test]
fn a_slow_reader_is_waited_for_by_the_server_in_bounded_memory() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let mut follow = Follow::spawn(child::command(&sim, folder.path(), &[]), 0);
    sim.write_commits(10);
    follow.wait_for(10);

    let stream = scaled(burst as fn(&Simulation, &mut Follow) -> Stream, ten_minutes);
    let Stream { what, most_behind } = stream(&sim, &mut follow);
    let while_slow = follow.peak_memory();
    follow.read_at(0);
    follow.wait_for(sim.sent_count(RELAY));
    let peak = follow.peak_memory();
    let ended = follow.interrupt();
    assert!(ended.has_ended_well(), "{}: {}", ended.status, ended.errors);

    let hearing = Ledger::of(&sim).check(&ended.heard);
    assert_eq!(hearing.again, 0, "nobody had to come back");
    assert!(most_behind >= BACK_PRESSURE, "the server is only {most_behind} events behind");
    assert!(peak <= BOUND_BYTES, "{peak} bytes of memory, and {while_slow} before");
    tell(&format!(
        "{what}: at most {} MiB of memory, the server up to {most_behind} events behind, {} events and \
         none lost",
        peak >> 20,
        hearing.told
    ));
}

/// A stream that was told, and how far the server was behind with it.
struct Stream {
    what: String,
    most_behind: u64,
}

/// Everything at once, while nothing is read.
fn burst(sim: &Simulation, follow: &mut Follow) -> Stream {
    follow.read_at(1);
    for number in 0..BURST_LEN {
        match number % 200 {
            0 => sim.write_commits(1),
            // Said again, as hosts do: an event that costs next to nothing to make.
            _ => sim.set_account_status(number % sim.account_count(), AccountStatus::Active),
        }
    }
    // Until no more goes into the buffers of either end.
    let (mut behind, mut since) = (u64::MAX, Instant::now());
    while since.elapsed() < STEADY {
        let now = behind_now(sim);
        if now != behind {
            (behind, since) = (now, Instant::now());
        }
        std::thread::sleep(STEADY / 20);
    }
    Stream { what: format!("{BURST_LEN} events while nothing is read"), most_behind: behind }
}

/// Ten minutes of a stream that is read at four fifths of its pace.
fn ten_minutes(sim: &Simulation, follow: &mut Follow) -> Stream {
    follow.read_at(u64::from(RATE) * 4 / 5);
    sim.set_write_rate(WriteRate::PerSecond(RATE));
    let (since, before) = (Instant::now(), sim.sent_count(RELAY));
    let mut most_behind = 0;
    follow.wait_until("ten minutes", |_| {
        most_behind = most_behind.max(behind_now(sim));
        since.elapsed() >= TEN_MINUTES
    });
    sim.set_write_rate(WriteRate::Off);
    let told = (sim.sent_count(RELAY) - before) as f64 / since.elapsed().as_secs_f64();
    let what = format!("ten minutes of {told:.0} events/s, read at {} a second", RATE * 4 / 5);
    Stream { what, most_behind }
}

fn behind_now(sim: &Simulation) -> u64 {
    sim.backlogs(RELAY).into_iter().max().unwrap_or(0)
}

/// With readers who may be as far behind as they want: what is not read waits at the server.
fn sim() -> Simulation {
    let spec = Spec {
        accounts: scaled(20, 500),
        records: 1,
        jetstreams: 0,
        retained_events: scaled(usize::MAX, 1_000_000),
        max_backlog: u64::MAX,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

const RELAY: Server = Server::Relay(0);

/// More than fits into what is under way in the reader and the sockets.
const BURST_LEN: usize = 250_000;
const BACK_PRESSURE: u64 = 50_000;

const RATE: u32 = 5_000;
const TEN_MINUTES: Duration = Duration::from_secs(600);
const STEADY: Duration = Duration::from_millis(1_000);

/// What `follow` may take, however slow its reader is.
const BOUND_BYTES: u64 = 512 << 20;
