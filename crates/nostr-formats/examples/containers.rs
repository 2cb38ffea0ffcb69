//! How fast containers of every format are read: `cargo run --release -p wireproof-nostr-formats --example containers FILE
//! [COPIES]`.
//!
//! `FILE` has Nostr events as JSON lines, and is taken as often as `COPIES` says (30). The containers are in memory. A pass reads
//! all events of one format on one thread; the formats take turns, and the medians of five passes are printed, in MB of the JSON a
//! second. Then 2,000 events are read by their numbers, in microseconds.

use std::error::Error;
use std::io::Cursor;
use std::time::{Duration, Instant};

use bumpalo::Bump;
use nostr::{Event, Limits};
use wireproof_nostr_formats::Format;
use wireproof_nostr_formats::container::{IndexedReader, Item, StreamReader, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("expected a file of JSON lines")?;
    let copies: usize = args.next().map_or(Ok(30), |copies| copies.parse())?;
    let (text, arena) = (std::fs::read(path)?, Bump::new());
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|it| !it.is_empty()).collect();
    let decode = |line| Format::Json.decode(line, &arena, &Limits::default());
    let events: Result<Vec<Event<'_>>, _> = lines.into_iter().map(decode).collect();
    let events = events?;
    let json_mb = (text.len() * copies) as f64 / 1e6;
    let containers: Vec<(Format, Vec<u8>)> = Format::ALL
        .iter()
        .map(|format| Ok((*format, container(*format, &events, copies)?)))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let mut times = vec![Vec::new(); containers.len()];
    for _ in 0..PASSES {
        for ((_, bytes), times) in containers.iter().zip(&mut times) {
            times.push(read(bytes)?);
        }
    }
    println!("{:<20} {:>6} {:>9} {:>6} {:>6}", "format", "MB/s", "min–max", "µs", "99 %");
    for ((format, bytes), times) in containers.iter().zip(&mut times) {
        times.sort_unstable();
        let rate = |at: usize| json_mb / times[at].as_secs_f64();
        let lookups = lookups(bytes)?;
        let micros = |part: usize| lookups[lookups.len() * part / 100].as_secs_f64() * 1e6;
        let range = format!("{:.0}–{:.0}", rate(PASSES - 1), rate(0));
        let name = format.name();
        let rate = rate(PASSES / 2);
        let median = micros(50);
        let most = micros(99);
        println!("{name:<20} {rate:>6.0} {range:>9} {median:>6.0} {most:>6.0}");
    }
    Ok(())
}

/// The events that the format can hold, again and again.
fn container(
    format: Format,
    events: &[Event<'_>],
    copies: usize,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = Writer::new(Vec::new(), format);
    let holds = |event: &&Event<'_>| format.encode(event, &mut Vec::new()).is_ok();
    let events: Vec<_> = events.iter().filter(holds).collect();
    for _ in 0..copies {
        events.iter().try_for_each(|event| writer.push(event))?;
    }
    Ok(writer.finish()?)
}

/// The time to read all events.
fn read(container: &[u8]) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    let mut arena = Bump::new();
    let mut count = 0;
    let mut reader = StreamReader::new(container);
    while let Some(item) = reader.next_item()? {
        let Item::Block(block) = item else { return Err("a damaged block".into()) };
        arena.reset();
        for event in block.events() {
            block.format().decode(event, &arena, &Limits::default())?;
            count += 1;
        }
    }
    assert!(count > 0, "no event");
    Ok(started.elapsed())
}

/// The times to read events by their numbers, in ascending order.
fn lookups(container: &[u8]) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut reader = IndexedReader::open(Cursor::new(container))?;
    let mut times = Vec::with_capacity(LOOKUPS as usize);
    for at in 0..LOOKUPS {
        let (number, started) = (at * 7_919_317 % reader.len(), Instant::now());
        reader.event(number)?.ok_or("no event of this number")?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

const PASSES: usize = 5;
const LOOKUPS: u64 = 2_000;
