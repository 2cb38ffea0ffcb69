//! The layouts of event files, and writing them.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use kernels::hex;
use nostr::{EncodeError, Event};
use nostr_formats::container::{self, WriteError};
use nostr_formats::{Format, notepack};

/// A layout of events in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// JSON, one event a line, alone or in a message `["EVENT",…]`, or a string `notepack_…`; a line ends at a line feed only. A
    /// line that begins with `#` names the group of the lines after it. A blank line is nothing. The file may be compressed
    /// with gzip or Zstandard.
    Lines,
    /// Strings `notepack_…`, one a line. They are read as [`Lines`](Self::Lines) are.
    Strings,
    /// Events, every one after its length.
    Records(Records),
    /// A [container] with events of a format. The file itself says of which one it is read.
    Container(Format),
    /// The list of a format, read into memory as a whole.
    Batch(Format),
    /// One event.
    Single(Format),
}

/// How events follow each other, every one after its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records {
    pub(crate) format: Format,
    pub(crate) prefix: Prefix,
    pub(crate) is_gzip: bool,
}

/// The form of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// LEB128, as in delimited messages of Protocol Buffers.
    Varint,
    /// Four bytes, little-endian.
    Fixed,
}

impl Layout {
    /// The archives of binostr: gzip of delimited messages of `nostr.proto`, hexadecimal as text.
    pub const PB_GZ: Self = Self::Records(PB_GZ);
    /// A container of the format that holds every event and is small.
    pub const CONTAINER: Self = Self::Container(Format::Notepack);

    /// The layout with this name: `jsonl`, `notepack-string`, `container`, one of the records, or the name of a format.
    pub fn from_name(name: &str) -> Option<Self> {
        let records = RECORDS.iter().find(|(other, _)| *other == name);
        match name {
            "jsonl" => Some(Self::Lines),
            "notepack-string" => Some(Self::Strings),
            "container" => Some(Self::CONTAINER),
            _ => match records {
                Some((_, records)) => Some(Self::Records(*records)),
                None => Format::from_name(name).map(Self::Batch),
            },
        }
    }

    /// The layout by the extension of a file: `.notepack` and `.notepack.gz` are segments of Notepack, `.gz` is
    /// [`PB_GZ`](Self::PB_GZ), and [`Lines`](Self::Lines) after the extension of JSON lines, as in `.jsonl.gz`; all others are
    /// `Lines`.
    pub fn of_path(path: &Path) -> Self {
        let extension =
            |path: &Path| path.extension().and_then(|it| it.to_str()).map(str::to_owned);
        let inner = extension(Path::new(path.file_stem().unwrap_or_default()));
        match (extension(path).as_deref(), inner.as_deref()) {
            (Some("notepack"), _) => Self::Records(SEGMENT),
            (Some("gz"), Some("notepack")) => Self::Records(SEGMENT_GZ),
            (Some("gz"), Some("jsonl" | "ndjson" | "json")) => Self::Lines,
            (Some("gz"), _) => Self::PB_GZ,
            _ => Self::Lines,
        }
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        let records = RECORDS.iter().map(|(name, _)| *name);
        let formats = Format::ALL.iter().map(|format| format.name());
        ["jsonl", "notepack-string", "container"]
            .into_iter()
            .chain(records)
            .chain(formats)
            .collect()
    }

    /// The layout of one event, where this is the list of a format.
    pub fn single(self) -> Self {
        match self {
            Self::Batch(format) => Self::Single(format),
            other => other,
        }
    }
}

/// Writes a file of events, one event after the other.
pub struct Output<W: Write> {
    out: Sink<W>,
    written: u64,
    item: Vec<u8>,
}

enum Sink<W: Write> {
    Lines(W),
    Strings(W),
    Records(Records, W),
    Gzip(Records, Box<GzEncoder<W>>),
    Container(Box<container::Writer<W>>),
    Single(Format, W),
}

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The system cannot write it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The layout cannot represent an event.
    #[error("event {at}, {id}: {fault}")]
    Event {
        /// Its index.
        at: u64,
        /// Its id in hexadecimal.
        id: String,
        /// The reason.
        fault: EncodeError,
    },
    /// The list of a format cannot represent the events together.
    #[error("the list of events: {0}")]
    Batch(EncodeError),
    /// The layout holds one event, and there is another number of them.
    #[error("{0}, where the layout is that of one event")]
    Single(&'static str),
}

impl<W: Write> Output<W> {
    /// Writes a layout other than the list of a format.
    ///
    /// # Panics
    /// If the layout is a [list](Layout::Batch).
    pub fn new(layout: Layout, out: W) -> Self {
        let out = match layout {
            Layout::Lines => Sink::Lines(out),
            Layout::Strings => Sink::Strings(out),
            Layout::Records(records) if records.is_gzip => {
                Sink::Gzip(records, Box::new(GzEncoder::new(out, Compression::default())))
            }
            Layout::Records(records) => Sink::Records(records, out),
            Layout::Container(format) => {
                Sink::Container(Box::new(container::Writer::new(out, format)))
            }
            Layout::Single(format) => Sink::Single(format, out),
            Layout::Batch(_) => panic!("a list is written as a whole"),
        };
        Self { out, written: 0, item: Vec::new() }
    }

    /// Writes one event.
    ///
    /// # Errors
    /// If the layout cannot represent it, or the system fails.
    pub fn write(&mut self, event: &Event<'_>) -> Result<(), OutputError> {
        let (at, item) = (self.written, &mut self.item);
        item.clear();
        let fault = |fault| unheld(at, event, fault);
        match &mut self.out {
            Sink::Lines(out) => {
                Format::Json.encode(event, item).map_err(fault)?;
                item.push(b'\n');
                out.write_all(item)?;
            }
            Sink::Strings(out) => {
                let mut line = String::new();
                notepack::encode_string(event, &mut line).map_err(fault)?;
                line.push('\n');
                out.write_all(line.as_bytes())?;
            }
            Sink::Records(records, out) => records.write(event, item, out)?.map_err(fault)?,
            Sink::Gzip(records, out) => records.write(event, item, out)?.map_err(fault)?,
            Sink::Container(out) => match out.push(event) {
                Ok(()) => {}
                Err(WriteError::Encode(error)) => return Err(fault(error)),
                Err(WriteError::Io(error)) => return Err(error.into()),
            },
            Sink::Single(..) if at > 0 => return Err(OutputError::Single("a second event")),
            Sink::Single(format, out) => {
                format.encode(event, item).map_err(fault)?;
                out.write_all(item)?;
            }
        }
        self.written += 1;
        Ok(())
    }

    /// Finishes the file and returns the writer.
    ///
    /// # Errors
    /// If the system fails, or one event was to be written and there was none.
    pub fn finish(self) -> Result<W, OutputError> {
        match self.out {
            Sink::Single(..) if self.written == 0 => Err(OutputError::Single("no event")),
            Sink::Lines(out)
            | Sink::Strings(out)
            | Sink::Records(_, out)
            | Sink::Single(_, out) => Ok(out),
            Sink::Gzip(_, out) => Ok(out.finish()?),
            Sink::Container(out) => Ok(out.finish()?),
        }
    }
}

impl Records {
    /// Writes an event after its length; `item` is empty.
    fn write(
        self,
        event: &Event<'_>,
        item: &mut Vec<u8>,
        out: &mut impl Write,
    ) -> io::Result<Result<(), EncodeError>> {
        if let Err(fault) = self.format.encode(event, item) {
            return Ok(Err(fault));
        }
        match (self.prefix, u32::try_from(item.len())) {
            (Prefix::Varint, _) => out.write_all(&leb128(item.len()))?,
            (Prefix::Fixed, Ok(len)) => out.write_all(&len.to_le_bytes())?,
            (Prefix::Fixed, Err(_)) => {
                let (what, max) = ("bytes of an event", u32::MAX as usize);
                return Ok(Err(EncodeError::TooMany { what, count: item.len(), max }));
            }
        }
        out.write_all(item)?;
        Ok(Ok(()))
    }
}

impl Layout {
    /// Writes all `events`.
    ///
    /// # Errors
    /// If the layout cannot represent one of them, or the system fails.
    pub fn write<W: Write>(self, events: &[Event<'_>], mut out: W) -> Result<W, OutputError> {
        if let Self::Batch(format) = self {
            let mut bytes = Vec::new();
            let encoded = format.encode_batch(events, &mut bytes);
            encoded.map_err(|fault| batch_fault(format, events, fault))?;
            out.write_all(&bytes)?;
            return Ok(out);
        }
        let mut file = Output::new(self, out);
        events.iter().try_for_each(|event| file.write(event))?;
        file.finish()
    }
}

/// The first event that the format cannot hold by itself; `fault` if there is none.
fn batch_fault(format: Format, events: &[Event<'_>], fault: EncodeError) -> OutputError {
    let mut bytes = Vec::new();
    let mut first = events.iter().enumerate().filter_map(|(at, event)| {
        bytes.clear();
        Some(unheld(at as u64, event, format.encode(event, &mut bytes).err()?))
    });
    first.next().unwrap_or(OutputError::Batch(fault))
}

fn unheld(at: u64, event: &Event<'_>, fault: EncodeError) -> OutputError {
    OutputError::Event { at, id: hex::encode(&event.id), fault }
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

const PB_GZ: Records =
    Records { format: Format::ProtoString, prefix: Prefix::Varint, is_gzip: true };
/// The segments of pensieve, before and after compression.
const SEGMENT: Records =
    Records { format: Format::Notepack, prefix: Prefix::Fixed, is_gzip: false };
const SEGMENT_GZ: Records = Records { is_gzip: true, ..SEGMENT };

/// The names of records.
const RECORDS: [(&str, Records); 6] = [
    ("pb.gz", PB_GZ),
    ("pb", Records { is_gzip: false, ..PB_GZ }),
    ("proto-binary.pb", Records { format: Format::ProtoBinary, is_gzip: false, ..PB_GZ }),
    ("proto-binary-hex.pb", Records { format: Format::ProtoBinaryHex, is_gzip: false, ..PB_GZ }),
    ("notepack-segment", SEGMENT),
    ("notepack-segment.gz", SEGMENT_GZ),
];
