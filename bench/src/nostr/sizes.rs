//! The sizes of events by format, bare and compressed.

use std::io::{self, Write};

use ::nostr::{Event, Limits};
use bumpalo::Bump;
use flate2::Compression;
use flate2::write::GzEncoder;
use nostr_formats::Format;
use protocol::Counts;
use serde::Serialize;
use simnet::nostr_sampling::KINDS;

use super::Unheld;
use crate::corpora::Corpus;
use crate::error::BenchError;
use crate::own::{PEER, nostr};
use crate::{Parity, Plan, Row, Sizes, Task};

/// The sizes of the same events in several formats.
///
/// Compressed one by one by gzip at level 6 and by Zstandard at level 3; and framed, all events prefixed with their
/// 32-bit big-endian lengths and compressed together by Zstandard at level 3.
pub struct SizeTable {
    columns: Vec<Column>,
    compressor: zstd::bulk::Compressor<'static>,
    json: Vec<u8>,
    encoded: Vec<u8>,
    arena: Bump,
    events: u64,
}

/// A format, and the sums over the events that it can hold.
struct Column {
    format: Format,
    events: u64,
    sums: Sums,
    /// The same events as JSON; `None` for JSON itself.
    json: Option<Sums>,
    unheld: Unheld,
}

/// The sizes of the events that a format can hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FormatSizes {
    /// The format's name.
    pub format: &'static str,
    /// The events in the sums: the ones that the format can hold.
    pub events: u64,
    /// Bytes of these events.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// Bytes of the same events as JSON.
    pub json: Sizes,
    /// The events that the format cannot hold.
    pub unheld: Unheld,
}

impl SizeTable {
    /// An empty table of these formats.
    ///
    /// # Panics
    /// If Zstandard cannot allocate.
    pub fn new(formats: &[Format]) -> Self {
        let column = |format: &Format| Column {
            format: *format,
            events: 0,
            sums: Sums::new(),
            json: (*format != Format::Json).then(Sums::new),
            unheld: Unheld::default(),
        };
        Self {
            columns: formats.iter().map(column).collect(),
            compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL).expect("memory for a window"),
            json: Vec::new(),
            encoded: Vec::new(),
            arena: Bump::new(),
            events: 0,
        }
    }

    /// Adds an event to the sums of every format that can hold it: that encodes it, and decodes it to an equal one. The
    /// other formats name it.
    ///
    /// # Panics
    /// If Zstandard cannot allocate.
    pub fn add(&mut self, event: &Event<'_>) {
        let Self { columns, compressor, json, encoded, arena, events } = self;
        *events += 1;
        json.clear();
        Format::Json.encode(event, json).expect("JSON can represent every event");
        let of_json = alone(json, compressor);
        for column in columns {
            arena.reset();
            encoded.clear();
            match hold(column.format, event, encoded, arena) {
                Err(reason) => column.unheld.add(event, reason),
                Ok(()) => {
                    column.events += 1;
                    column.sums.add(encoded, alone(encoded, compressor));
                    column.json.iter_mut().for_each(|sums| sums.add(json, of_json));
                }
            }
        }
    }

    /// Events added.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The sizes, in the order of the formats.
    ///
    /// # Panics
    /// If Zstandard cannot allocate.
    pub fn finish(self) -> Vec<FormatSizes> {
        self.columns.into_iter().map(Column::finish).collect()
    }
}

impl Column {
    fn finish(self) -> FormatSizes {
        let sizes = self.sums.finish();
        FormatSizes {
            format: self.format.name(),
            events: self.events,
            sizes,
            json: self.json.map_or(sizes, Sums::finish),
            unheld: self.unheld,
        }
    }
}

/// Encodes an event, or says why the format cannot hold it.
fn hold(format: Format, event: &Event<'_>, out: &mut Vec<u8>, arena: &Bump) -> Result<(), String> {
    format.encode(event, out).map_err(|error| error.to_string())?;
    match format.decode(out, arena, &Limits::default()) {
        Ok(decoded) if decoded == *event => Ok(()),
        Ok(_) => Err("decoded to another event".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Sums of sizes.
struct Sums {
    sizes: Sizes,
    framed: zstd::stream::write::Encoder<'static, Counted>,
}

impl Sums {
    fn new() -> Self {
        let framed = zstd::stream::write::Encoder::new(Counted(0), ZSTD_LEVEL);
        Self { sizes: Sizes::default(), framed: framed.expect("memory for a window") }
    }

    /// Adds an event with its sizes alone.
    fn add(&mut self, encoded: &[u8], alone: Sizes) {
        self.sizes.raw += alone.raw;
        self.sizes.gzip6 += alone.gzip6;
        self.sizes.zstd3 += alone.zstd3;
        let len = (encoded.len() as u32).to_be_bytes();
        let written = self.framed.write_all(&len).and_then(|()| self.framed.write_all(encoded));
        written.expect(COUNTED);
    }

    fn finish(self) -> Sizes {
        let Counted(framed_zstd3) = self.framed.finish().expect(COUNTED);
        Sizes { framed_zstd3, ..self.sizes }
    }
}

/// The sizes of one event, without a frame.
fn alone(encoded: &[u8], compressor: &mut zstd::bulk::Compressor<'static>) -> Sizes {
    let zstd3 = compressor.compress(encoded).expect("memory for a window").len() as u64;
    Sizes {
        raw: encoded.len() as u64,
        gzip6: gzip_len(encoded).expect(COUNTED),
        zstd3,
        framed_zstd3: 0,
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

/// Rows of the task `nostr-size` for every format: over all events of a corpus, and over every kind of the first one that has
/// a group; none if the plan leaves out the task or our own runner.
pub(crate) fn size_rows(plan: &Plan, corpora: &[Corpus]) -> Result<Vec<Row>, BenchError> {
    let is_chosen = plan.peers.as_ref().is_none_or(|peers| peers.iter().any(|peer| peer == PEER));
    let corpora = corpora.iter().filter(|corpus| corpus.task == Task::NostrSize);
    let mut rows = Vec::new();
    for corpus in corpora.filter(|_| is_chosen && plan.own.is_some()) {
        let [path, ..] = &corpus.files[..] else { continue };
        let file = std::fs::read(path).map_err(BenchError::io(path))?;
        let arena = Bump::new();
        let faulty = |fault| BenchError::Corpus { path: path.clone(), fault };
        let groups = nostr::groups(&file).unwrap_or_default();
        let events = nostr::events(&groups, &arena).map_err(faulty)?;
        rows.extend(rows_of(&events, corpus.suffix));
        if corpus.suffix.is_empty() {
            rows.extend(KINDS.into_iter().flat_map(|kind| of_kind(&events, kind)));
        }
    }
    Ok(rows)
}

fn of_kind(events: &[Event<'_>], kind: u16) -> Vec<Row> {
    rows_of(events.iter().filter(|event| event.kind == kind), &format!("@kind-{kind}"))
}

/// A row per format, if there are events.
fn rows_of<'e>(events: impl IntoIterator<Item = &'e Event<'e>>, suffix: &str) -> Vec<Row> {
    let mut table = SizeTable::new(Format::ALL);
    events.into_iter().for_each(|event| table.add(event));
    match table.events() {
        0 => Vec::new(),
        _ => table.finish().into_iter().map(|sizes| row(sizes, suffix)).collect(),
    }
}

fn row(of_format: FormatSizes, suffix: &str) -> Row {
    let FormatSizes { format, events, sizes, json, unheld } = of_format;
    Row {
        units: events,
        bytes: sizes.raw,
        sizes: Some(sizes),
        json_sizes: (!unheld.is_empty()).then_some(json),
        unheld: unheld.events,
        counts: Counts::from_iter([("events", events), ("errors", 0)]),
        parity: Parity::Ok,
        note: unheld.note(),
        ..Row::new(Task::NostrSize, format!("{format}{suffix}"), PEER)
    }
}

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
const COUNTED: &str = "counting bytes cannot fail";

#[cfg(test)]
mod tests {
    use simnet::nostr_events::{Corpus, Spec};

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

    fn table<'e>(
        formats: &[Format],
        events: impl IntoIterator<Item = &'e Event<'e>>,
    ) -> Vec<FormatSizes> {
        let mut table = SizeTable::new(formats);
        events.into_iter().for_each(|event| table.add(event));
        table.finish()
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
        let table = table(&[Format::Json], &contents.map(event));
        let found = table[0].sizes;
        assert_eq!(found.raw, sum(|bytes| bytes.len() as u64));
        assert_eq!(found.gzip6, sum(|bytes| gzip_len(bytes).unwrap()));
        assert_eq!(found.zstd3, sum(|bytes| zstd::bulk::compress(bytes, 3).unwrap().len() as u64));
        let streamed = zstd::stream::encode_all(&framed[..], 3).unwrap();
        assert_eq!(found.framed_zstd3, streamed.len() as u64);
        assert!(found.framed_zstd3 < found.zstd3 && found.zstd3 < found.gzip6);
    }

    #[test]
    fn an_event_that_one_format_cannot_hold_is_named_and_stays_in_the_sums_of_the_others() {
        let [short, long] = [event("gm"), event("good morning")];
        let many = ["x"; 300].map(::nostr::Value::Text);
        let tagged = Event { id: [9; 32], tags: &[&many], ..event("") };
        let formats = [Format::Json, Format::Capnp, Format::Notepack];
        let found = table(&formats, &[short, tagged, long]);
        assert_eq!(found.iter().map(|it| it.events).collect::<Vec<_>>(), [3, 2, 3]);
        let held = table(&formats, &[short, long]);
        assert_eq!((found[1].sizes, found[1].json), (held[1].sizes, held[0].sizes));
        assert_eq!(found[2].json, found[0].sizes);
        let [named] = &found[1].unheld.named[..] else { panic!("{found:?}") };
        assert_eq!((&named.id, named.kind), (&"09".repeat(32), 1));
        assert!(!named.reason.is_empty() && found[2].unheld.is_empty());
    }

    #[test]
    fn a_row_names_the_event_that_its_format_cannot_hold_and_has_json_of_the_others() {
        let many = ["x"; 300].map(::nostr::Value::Text);
        let events = [event("gm"), Event { tags: &[&many], ..event("") }];
        let rows = rows_of(&events, "@real");
        let of = |variant: &str| rows.iter().find(|row| row.variant == variant).unwrap();
        let (row, json) = (of("capnp@real"), of("json@real"));
        assert_eq!((row.units, row.unheld, row.parity), (1, 1, Parity::Ok));
        assert_eq!((json.units, json.unheld, json.json_sizes), (2, 0, None));
        assert_eq!(row.json_sizes.unwrap(), table(&[Format::Json], &events[..1])[0].sizes);
        let named = format!("without 1 event that it cannot hold: {} of kind 1: ", "01".repeat(32));
        assert!(row.note.as_ref().unwrap().starts_with(&named), "{:?}", row.note);
    }

    #[test]
    fn no_events_take_only_the_bytes_of_an_empty_frame() {
        let none = table(&[Format::Json], &[])[0].sizes;
        assert_eq!((none.raw, none.gzip6, none.zstd3), (0, 0, 0));
        assert!(none.framed_zstd3 < 16);
    }

    #[test]
    fn framed_zstandard_leaves_notepack_the_share_of_json_that_real_events_have() {
        let (corpus, arena) = (Corpus::generate(&Spec::default()), Bump::new());
        let mut table = SizeTable::new(&[Format::Json, Format::Notepack, Format::Dannypack]);
        corpus.events().iter().for_each(|event| table.add(&event.borrow_in(&arena)));
        let found = table.finish();
        // The shares of 6,232 published events.
        for (format, real) in [(1, 92.8), (2, 92.6)] {
            let FormatSizes { format, sizes, json, .. } = &found[format];
            let percent = 100.0 * sizes.framed_zstd3 as f64 / json.framed_zstd3 as f64;
            assert!((percent - real).abs() < 0.5, "{format}: {percent:.2} for {real}");
        }
    }
}
