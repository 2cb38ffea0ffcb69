//! How do events become a file?

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{EncodeError, Event};

use super::Layout;

/// A file of events that is being written, one event after the other.
pub struct Output<W: Write> {
    out: Sink<W>,
    written: u64,
    item: Vec<u8>,
}

enum Sink<W: Write> {
    Lines(W),
    Records(GzEncoder<W>),
}

/// Why a file cannot be written on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The system cannot write it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The layout cannot hold an event.
    #[error("event {at}: {fault}")]
    Event {
        /// Its place, from 0.
        at: u64,
        /// What there is no place for.
        fault: EncodeError,
    },
    /// The list of a format cannot hold one of the events.
    #[error("an event of the list: {0}")]
    Batch(EncodeError),
}

impl<W: Write> Output<W> {
    /// Writes lines of JSON.
    pub fn lines(out: W) -> Self {
        Self::new(Sink::Lines(out))
    }

    /// Writes `.pb.gz`.
    pub fn records(out: W) -> Self {
        Self::new(Sink::Records(GzEncoder::new(out, Compression::default())))
    }

    fn new(out: Sink<W>) -> Self {
        Self { out, written: 0, item: Vec::new() }
    }

    /// Writes one event.
    ///
    /// # Errors
    /// If the layout cannot hold it, or the system fails.
    pub fn write(&mut self, event: &Event<'_>) -> Result<(), OutputError> {
        self.item.clear();
        let fault = |fault| OutputError::Event { at: self.written, fault };
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

    /// Ends the file, and gives back what it was written to.
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
    /// If the layout cannot hold one of them, or the system fails.
    pub fn write<W: Write>(self, events: &[Event<'_>], mut out: W) -> Result<W, OutputError> {
        let mut file = match self {
            Self::Lines => Output::lines(out),
            Self::Records => Output::records(out),
            Self::Batch(format) => {
                let mut bytes = Vec::new();
                format.encode_batch(events, &mut bytes).map_err(OutputError::Batch)?;
                out.write_all(&bytes)?;
                return Ok(out);
            }
        };
        events.iter().try_for_each(|event| file.write(event))?;
        file.finish()
    }
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
