//! The sizes of events in each format, bare and compressed.

use std::io::{self, Write};

use bumpalo::Bump;
use flate2::Compression;
use flate2::write::GzEncoder;
use protocol::Counts;
use serde::Serialize;
use wireproof::kernels::hex;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{EncodeError, Event, Limits};

use crate::corpora::Corpus;
use crate::error::BenchError;
use crate::own::{PEER, nostr};
use crate::{Parity, Plan, Row, Sizes, Task};

/// The total sizes of `events` in `format`.
///
/// Compressed one by one by gzip at level 6 and by Zstandard at level 3; and framed, all events prefixed with their
/// 32-bit big-endian lengths and compressed together by Zstandard at level 3.
///
/// # Errors
/// If the format cannot represent one of them.
///
/// # Panics
/// If Zstandard cannot allocate.
pub fn sizes(format: Format, events: &[Event<'_>]) -> Result<Sizes, EncodeError> {
    let mut meter = Meter::new().expect("memory for a window");
    let mut encoded = Vec::new();
    for event in events {
        encoded.clear();
        format.encode(event, &mut encoded)?;
        meter.add(&encoded).expect("a vector takes every byte");
    }
    Ok(meter.finish().expect("a vector takes every byte"))
}

/// The sizes of the same events in several formats.
pub struct SizeTable {
    columns: Vec<Column>,
    events: u64,
    left_out: u64,
}

struct Column {
    format: Format,
    meter: Meter,
    encoded: Vec<u8>,
}

/// The sizes of all events together in one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FormatSizes {
    /// The format's name.
    pub format: &'static str,
    /// Bytes of all events.
    #[serde(flatten)]
    pub sizes: Sizes,
}

impl SizeTable {
    /// An empty table of these formats.
    ///
    /// # Panics
    /// If Zstandard cannot allocate.
    pub fn new(formats: &[Format]) -> Self {
        let meter = || Meter::new().expect("memory for a window");
        let column =
            |format: &Format| Column { format: *format, meter: meter(), encoded: Vec::new() };
        Self { columns: formats.iter().map(column).collect(), events: 0, left_out: 0 }
    }

    /// Adds an event in every format, or in none if one of them cannot represent it.
    ///
    /// # Panics
    /// If Zstandard cannot allocate.
    pub fn add(&mut self, event: &Event<'_>) {
        for column in &mut self.columns {
            column.encoded.clear();
            if column.format.encode(event, &mut column.encoded).is_err() {
                self.left_out += 1;
                return;
            }
        }
        self.events += 1;
        for column in &mut self.columns {
            column.meter.add(&column.encoded).expect("a vector takes every byte");
        }
    }

    /// Events in the table.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Events that some format cannot represent.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The sizes, in the order of the formats.
    ///
    /// # Panics
    /// If Zstandard cannot allocate.
    pub fn finish(self) -> Vec<FormatSizes> {
        let finish = |column: Column| FormatSizes {
            format: column.format.name(),
            sizes: column.meter.finish().expect("a vector takes every byte"),
        };
        self.columns.into_iter().map(finish).collect()
    }
}

/// Sums of sizes.
struct Meter {
    sizes: Sizes,
    alone: zstd::bulk::Compressor<'static>,
    framed: zstd::stream::write::Encoder<'static, Counted>,
}

impl Meter {
    fn new() -> io::Result<Self> {
        Ok(Self {
            sizes: Sizes { raw: 0, gzip6: 0, zstd3: 0, framed_zstd3: 0 },
            alone: zstd::bulk::Compressor::new(ZSTD_LEVEL)?,
            framed: zstd::stream::write::Encoder::new(Counted(0), ZSTD_LEVEL)?,
        })
    }

    fn add(&mut self, encoded: &[u8]) -> io::Result<()> {
        self.sizes.raw += encoded.len() as u64;
        self.sizes.gzip6 += gzip_len(encoded)?;
        self.sizes.zstd3 += self.alone.compress(encoded)?.len() as u64;
        self.framed.write_all(&(encoded.len() as u32).to_be_bytes())?;
        self.framed.write_all(encoded)
    }

    fn finish(self) -> io::Result<Sizes> {
        let Counted(framed_zstd3) = self.framed.finish()?;
        Ok(Sizes { framed_zstd3, ..self.sizes })
    }
}

fn gzip_len(bytes: &[u8]) -> io::Result<u64> {
    let mut gzip = GzEncoder::new(Counted(0), Compression::new(GZIP_LEVEL));
    gzip.write_all(bytes)?;
    let Counted(len) = gzip.finish()?;
    Ok(len)
}

/// Counts the bytes written and discards them.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A row of the task `nostr-size` for each format over all events, and for each kind that has a group; none if the plan
/// leaves out the task or our own runner.
pub(crate) fn size_rows(plan: &Plan, corpora: &[Corpus]) -> Result<Vec<Row>, BenchError> {
    let is_chosen = plan.peers.as_ref().is_none_or(|peers| peers.iter().any(|peer| peer == PEER));
    let corpus = corpora.iter().find(|corpus| corpus.task == Task::NostrSize);
    let Some(corpus) = corpus.filter(|_| is_chosen && plan.own.is_some()) else {
        return Ok(Vec::new());
    };
    let [path, ..] = &corpus.files[..] else { return Ok(Vec::new()) };
    let file = std::fs::read(path).map_err(BenchError::io(path))?;
    let arena = Bump::new();
    let faulty = |fault| BenchError::Corpus { path: path.clone(), fault };
    let groups = nostr::groups(&file).unwrap_or_default();
    let events = nostr::events(&groups, &arena).map_err(faulty)?;
    Ok(of_all(&events).chain(of_kinds(&events)).collect())
}

fn of_all<'e>(events: &'e [Event<'e>]) -> impl Iterator<Item = Row> + 'e {
    Format::ALL.iter().map(|format| row(*format, format.name().to_owned(), events))
}

fn of_kinds<'e>(events: &'e [Event<'e>]) -> impl Iterator<Item = Row> + 'e {
    let kinds = simnet::nostr_sampling::KINDS.into_iter();
    kinds.flat_map(|kind| {
        let of_kind: Vec<Event<'_>> =
            events.iter().filter(|event| event.kind == kind).copied().collect();
        let name = move |format: Format| format!("{}@kind-{kind}", format.name());
        let rows = Format::ALL.iter().map(move |format| row(*format, name(*format), &of_kind));
        rows.filter(|row| row.units > 0)
    })
}

fn row(format: Format, variant: String, events: &[Event<'_>]) -> Row {
    let held: Vec<Event<'_>> =
        events.iter().filter(|event| round_trips(format, event)).copied().collect();
    let sizes = sizes(format, &held).ok();
    let (units, rejected) = (events.len() as u64, (events.len() - held.len()) as u64);
    let first = events.iter().find(|event| !round_trips(format, event));
    Row {
        units,
        bytes: sizes.map_or(0, |sizes| sizes.raw),
        sizes,
        counts: Counts::from_iter([("events", units), ("errors", rejected)]),
        parity: if rejected == 0 { Parity::Ok } else { Parity::Mismatch },
        note: first.map(|event| unheld(format, rejected, event)),
        ..Row::new(Task::NostrSize, variant, PEER)
    }
}

/// The note on events that a format cannot hold: their number, the first of them, and the reason.
fn unheld(format: Format, rejected: u64, first: &Event<'_>) -> String {
    let error = format.encode(first, &mut Vec::new()).err();
    let reason = error.map_or_else(|| "decoded to another".to_owned(), |error| error.to_string());
    let (id, kind) = (hex::encode(&first.id), first.kind);
    format!(
        "events it cannot hold, not in the sums: {rejected}, the first {id} of kind {kind}: {reason}"
    )
}

/// Whether an event can be encoded, and is equal when it is decoded again.
fn round_trips(format: Format, event: &Event<'_>) -> bool {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    let is_encoded = format.encode(event, &mut bytes).is_ok();
    is_encoded && format.decode(&bytes, &arena, &Limits::default()).as_ref() == Ok(event)
}

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(content: &str) -> Event<'_> {
        Event {
            id: [1; 32],
            pubkey: [2; 32],
            created_at: 3,
            kind: 1,
            tags: &[],
            content,
            sig: [4; 64],
        }
    }

    #[test]
    fn sizes_are_those_of_the_compressors() {
        let contents = ["good morning", "good night"];
        let encoded = contents.map(|content| {
            let mut bytes = Vec::new();
            Format::Json.encode(&event(content), &mut bytes).unwrap();
            bytes
        });
        let framed: Vec<u8> = encoded
            .iter()
            .flat_map(|bytes| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat())
            .collect();
        let sum = |len: fn(&[u8]) -> u64| encoded.iter().map(|bytes| len(bytes)).sum::<u64>();
        let found = sizes(Format::Json, &contents.map(event)).unwrap();
        assert_eq!(found.raw, sum(|bytes| bytes.len() as u64));
        assert_eq!(found.gzip6, sum(|bytes| gzip_len(bytes).unwrap()));
        assert_eq!(found.zstd3, sum(|bytes| zstd::bulk::compress(bytes, 3).unwrap().len() as u64));
        let streamed = zstd::stream::encode_all(&framed[..], 3).unwrap();
        assert_eq!(found.framed_zstd3, streamed.len() as u64);
        assert!(found.framed_zstd3 < found.zstd3 && found.zstd3 < found.gzip6);
    }

    #[test]
    fn a_table_has_the_same_events_in_every_format() {
        let [short, long] = [event("gm"), event("good morning")];
        let many = ["x"; 300].map(wireproof::nostr::Value::Text);
        let tagged = Event { tags: &[&many], ..event("") };
        let formats = [Format::Json, Format::Capnp];
        let mut table = SizeTable::new(&formats);
        [short, tagged, long].iter().for_each(|event| table.add(event));
        assert_eq!((table.events(), table.left_out()), (2, 1));
        for (found, format) in table.finish().into_iter().zip(formats) {
            assert_eq!(found.sizes, sizes(format, &[short, long]).unwrap());
        }
    }

    #[test]
    fn a_row_names_the_event_that_its_format_cannot_hold_and_sums_the_others() {
        let many = ["x"; 300].map(wireproof::nostr::Value::Text);
        let events = [event("gm"), Event { tags: &[&many], ..event("") }];
        let row = row(Format::Capnp, "capnp".to_owned(), &events);
        assert_eq!(row.sizes.unwrap(), sizes(Format::Capnp, &events[..1]).unwrap());
        assert_eq!((row.counts.get("errors"), row.parity), (Some(1), Parity::Mismatch));
        let named = format!("not in the sums: 1, the first {} of kind 1: ", "01".repeat(32));
        assert!(row.note.unwrap().contains(&named));
    }

    #[test]
    fn no_events_take_only_the_bytes_of_an_empty_frame() {
        let none = sizes(Format::Json, &[]).unwrap();
        assert_eq!((none.raw, none.gzip6, none.zstd3), (0, 0, 0));
        assert!(none.framed_zstd3 < 16);
    }
}
