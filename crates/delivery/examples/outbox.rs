//! Measures how many events an outbox stores and delivers a second, by the number of events that are appended together.
//!
//! `cargo run --release -p wireproof-delivery --example outbox [FOLDER]`

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wireproof_delivery::{EventId, NewEvent, Options, Outbox, StartAt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("wireproof-outbox-{}", std::process::id()));
    println!("together   append/s   drain/s (memory)   drain/s (file)");
    for (together, events) in [(1, 400), (16, 6_400), (256, 102_400), (4096, 409_600)] {
        let appended = append(&folder, together, events)?;
        let from_memory = drain_from_memory(&folder, events.min(MAX_DRAINED)).await?;
        let from_file = drain_from_file(&folder, events.min(MAX_DRAINED)).await?;
        let rate = |events: u64, took: Duration| events as f64 / took.as_secs_f64();
        println!(
            "{together:8}   {:8.0}   {:16.0}   {:14.0}",
            rate(events, appended),
            rate(events.min(MAX_DRAINED), from_memory),
            rate(events.min(MAX_DRAINED), from_file)
        );
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

/// Time to append events, waiting for every group to be on disk.
fn append(
    folder: &Path,
    together: u64,
    events: u64,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let outbox = open(folder, Options::default().recent_bytes)?;
    let groups: Vec<Vec<NewEvent>> = (0..events / together)
        .map(|group| (0..together).map(|number| event(group * together + number)).collect())
        .collect();
    let start = Instant::now();
    for group in groups {
        outbox.append_all(group)?;
    }
    Ok(start.elapsed())
}

/// Time to receive and acknowledge events that were just appended.
async fn drain_from_memory(
    folder: &Path,
    events: u64,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let outbox = open(&folder.join("memory"), 128 << 20)?;
    outbox.append_all((0..events).map(event))?;
    drain(&outbox, events).await
}

/// Time to receive and acknowledge events that an earlier run has appended.
async fn drain_from_file(
    folder: &Path,
    events: u64,
) -> Result<Duration, Box<dyn std::error::Error>> {
    drain(&open(folder, 0)?, events).await
}

async fn drain(outbox: &Outbox, events: u64) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut consumer = outbox.consumer("measure")?;
    let (start, mut received) = (Instant::now(), 0);
    while received < events {
        let batch = consumer.next_events().await?;
        received += batch.len() as u64;
        consumer.acknowledge(batch.iter().map(|event| event.position()))?;
    }
    outbox.flush()?;
    Ok(start.elapsed())
}

fn open(folder: &Path, recent_bytes: usize) -> Result<Outbox, Box<dyn std::error::Error>> {
    let mut options = Options::default();
    options.recent_bytes = recent_bytes;
    let outbox = Outbox::open(&folder.join("outbox.sqlite"), options)?;
    outbox.register("measure", StartAt::Oldest)?;
    Ok(outbox)
}

fn event(number: u64) -> NewEvent {
    let did = format!("did:plc:{:024}", number % 20_000);
    let id = EventId::of_commit(&did, &format!("{number:013}"));
    let payload = format!("{{\"id\":\"{id}\",\"n\":{number:0500}}}");
    let padding = " ".repeat(600_usize.saturating_sub(payload.len()));
    NewEvent::new(id, &did, payload + &padding).expect("one line")
}

/// Number of events that are drained. Default bounds hold them all.
const MAX_DRAINED: u64 = 102_400;
