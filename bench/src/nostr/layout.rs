//! The layouts of event files, and writing them.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use wireproof::kernels::hex;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{EncodeError, Event};

/// A layout of events in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// JSON, one event a line, alone or in a message `["EVENT",…]`; a line ends at a line feed only. A line that begins with
    /// `#` names the group of the lines after it. A blank line is nothing. The file may be compressed with gzip or Zstandard.
    Lines,
    /// gzip of events of `nostr.proto`, hexadecimal as text, each prefixed with its length as a LEB128 number.
    Records,
    /// The list of a format, read into memory as a whole.
    Batch(Format),
}

impl Layout {
    /// The layout with this name: `jsonl`, `pb.gz`, or the name of a format.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "jsonl" => Some(Self::Lines),
            "pb.gz" => Some(Self::Records),
            _ => Format::from_name(name).map(Self::Batch),
        }
    }

    /// The layout by the extension of a file: `.gz` is [`Records`](Self::Records), and [`Lines`](Self::Lines) after the extension
    /// of JSON lines, as in `.jsonl.gz`; all others are `Lines`.
    pub fn of_path(path: &Path) -> Self {
        let is = |path: &Path, wanted: &[&str]| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| wanted.contains(&extension))
        };
        let stem = path.file_stem().unwrap_or_default();
        match is(path, &["gz"]) && !is(Path::new(stem), &["jsonl", "ndjson", "json"]) {
            true => Self::Records,
            false => Self::Lines,
        }
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        ["jsonl", "pb.gz"].into_iter().chain(Format::ALL.iter().map(|it| it.name())).collect()
    }

    /// The format of one event.
    pub fn format(self) -> Format {
        match self {
            Self::Lines => Format::Json,
            Self::Records => Format::ProtoString,
            Self::Batch(format) => format,
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
    Records(Box<GzEncoder<W>>),
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
        /// What cannot be represented.
        fault: EncodeError,
    },
    /// The list of a format cannot represent the events together.
    #[error("the list of events: {0}")]
    Batch(EncodeError),
}

impl<W: Write> Output<W> {
    /// Writes lines of JSON.
    pub fn lines(out: W) -> Self {
        Self::new(Sink::Lines(out))
    }

    /// Writes `.pb.gz`.
    pub fn records(out: W) -> Self {
        let encoder = GzEncoder::new(out, Compression::default());
        Self::new(Sink::Records(Box::new(encoder)))
    }

    fn new(out: Sink<W>) -> Self {
        Self { out, written: 0, item: Vec::new() }
    }

    /// Writes one event.
    ///
    /// # Errors
    /// If the layout cannot represent it, or the system fails.
    pub fn write(&mut self, event: &Event<'_>) -> Result<(), OutputError> {
        self.item.clear();
        let fault = |fault| unheld(self.written, event, fault);
        match &mut self.out {
            Sink::Lines(out) => {
                Format::Json.encode(event, &mut self.item).map_err(fault)?;
                self.item.push(b'\n');
                out.write_all(&self.item)?;
            }
            Sink::Records(out) => {
                Format::ProtoString.encode(event, &mut self.item).map_err(fault)?;
                out.write_all(&leb128(self.item.len()))?;
                out.write_all(&self.item)?;
            }
        }
        self.written += 1;
        Ok(())
    }

    /// Finishes the file and returns the writer.
    ///
    /// # Errors
    /// If the system fails.
    pub fn finish(self) -> Result<W, OutputError> {
        Ok(match self.out {
            Sink::Lines(out) => out,
            Sink::Records(out) => out.finish()?,
        })
    }
}

impl Layout {
    /// Writes all `events`.
    ///
    /// # Errors
    /// If the layout cannot represent one of them, or the system fails.
    pub fn write<W: Write>(self, events: &[Event<'_>], mut out: W) -> Result<W, OutputError> {
        let mut file = match self {
            Self::Lines => Output::lines(out),
            Self::Records => Output::records(out),
            Self::Batch(format) => {
                let mut bytes = Vec::new();
                let encoded = format.encode_batch(events, &mut bytes);
                encoded.map_err(|fault| batch_fault(format, events, fault))?;
                out.write_all(&bytes)?;
                return Ok(out);
            }
        };
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
