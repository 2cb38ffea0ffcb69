//! A slow reader slows the server down, in bounded memory.

use std::time::{Duration, Instant};

use simnet::servers::{AccountStatus, Server, Simulation, Spec, WriteRate};

use crate::event_log::EventLog;
use crate::follow::{self, Follow};
use crate::{report, scaled};

#[test]
fn a_slow_reader_slows_the_server_down_in_bounded_memory() {
    let (sim, folder) = (sim(), tempfile::tempdir().unwrap());
    let mut follow = Follow::spawn(follow::command(&sim, folder.path(), &[]), 0);
    sim.write_commits(10);
    follow.wait_for(10);

    let stream = scaled(burst as fn(&Simulation, &mut Follow) -> Backlog, ten_minutes);
    let Backlog { what, max_backlog } = stream(&sim, &mut follow);
    let while_slow = follow.peak_memory();
    follow.read_at(0);
    follow.wait_for(sim.sent_count(RELAY));
    let peak = follow.peak_memory();
    let ended = follow.interrupt();
    assert!(ended.is_orderly(), "{}: {}", ended.status, ended.errors);

    let deliveries = EventLog::of(&sim).check(&ended.printed);
    assert_eq!(deliveries.repeated, 0, "no reconnection");
    assert!(max_backlog >= BACK_PRESSURE, "the server is only {max_backlog} events behind");
    assert!(peak <= BOUND_BYTES, "{peak} bytes of memory, and {while_slow} before");
    report(&format!(
        "{what}: at most {} MiB of memory, the server up to {max_backlog} events behind, {} events and \
         none lost",
        peak >> 20,
        deliveries.events
    ));
}

/// The sent events, and the maximum backlog of the server.
struct Backlog {
    what: String,
    max_backlog: u64,
}

/// All events at once, while nothing is read.
fn burst(sim: &Simulation, follow: &mut Follow) -> Backlog {
    follow.read_at(1);
    for number in 0..BURST_LEN {
        match number % 200 {
            0 => sim.write_commits(1),
            // A repeated status, which is cheap to generate.
            _ => sim.set_account_status(number % sim.account_count(), AccountStatus::Active),
        }
    }
    // Until the buffers of both ends are full.
    let (mut last, mut since) = (u64::MAX, Instant::now());
    while since.elapsed() < STEADY {
        let now = backlog(sim);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        std::thread::sleep(STEADY / 20);
    }
    Backlog { what: format!("{BURST_LEN} events while nothing is read"), max_backlog: last }
}

/// Ten minutes of a stream that is read at four fifths of its rate.
fn ten_minutes(sim: &Simulation, follow: &mut Follow) -> Backlog {
    follow.read_at(u64::from(RATE) * 4 / 5);
    sim.set_write_rate(WriteRate::PerSecond(RATE));
    let (since, before) = (Instant::now(), sim.sent_count(RELAY));
    let mut max_backlog = 0;
    follow.wait_until("ten minutes", |_| {
        max_backlog = max_backlog.max(backlog(sim));
        since.elapsed() >= TEN_MINUTES
    });
    sim.set_write_rate(WriteRate::Off);
    let sent_rate = (sim.sent_count(RELAY) - before) as f64 / since.elapsed().as_secs_f64();
    let what = format!("ten minutes of {sent_rate:.0} events/s, read at {} a second", RATE * 4 / 5);
    Backlog { what, max_backlog }
}

fn backlog(sim: &Simulation) -> u64 {
    sim.backlogs(RELAY).into_iter().max().unwrap_or(0)
}

/// A network without a limit of the backlog.
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

/// More events than fit in the reader and the sockets.
const BURST_LEN: usize = 250_000;
const BACK_PRESSURE: u64 = 50_000;

const RATE: u32 = 5_000;
const TEN_MINUTES: Duration = Duration::from_secs(600);
const STEADY: Duration = Duration::from_millis(1_000);

/// Maximum memory of `follow` with a slow reader.
const BOUND_BYTES: u64 = 512 << 20;
