//! The messages of `com.atproto.label.subscribeLabels`: one binary message, one frame of the event stream.
//!
//! A label that breaks a rule is no fault of its message: [`Labels::labels`] has the bytes of every label, which are
//! canonical DAG-CBOR and nothing more.

use codec::cbor::{Encoder, KeyOrder, Reader};

use crate::event::{ErrorFrame, FrameError, FrameFault, Header, Info, Unknown, peek};

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelMessage<'a> {
    /// New labels.
    Labels(Labels<'a>),
    /// A notice from the server.
    Info(Info<'a>),
    /// The server ends the stream.
    Error(ErrorFrame<'a>),
    /// A type of message that this version does not know.
    Unknown(Unknown<'a>),
}

/// `#labels`: new labels, under one sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels<'a> {
    /// The sequence number.
    pub seq: i64,
    /// The bytes of the labels, in order.
    pub labels: Vec<&'a [u8]>,
}

impl<'a> LabelMessage<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// If it is not canonical, lacks a field, or exceeds [`MAX_MESSAGE_BYTES`] or [`MAX_LABELS`].
    pub fn decode(frame: &'a [u8]) -> Result<Self, FrameError> {
        if frame.len() > MAX_MESSAGE_BYTES {
            return fail(0, FrameFault::FrameLimit(MAX_MESSAGE_BYTES));
        }
        let (header, at) = peek(frame)?;
        let mut reader = Reader::starting_at(frame, at);
        let message = match header {
            Header { op: Header::MESSAGE, kind: Some("#labels") } => {
                Self::Labels(read_labels(&mut reader, frame)?)
            }
            Header { op: Header::MESSAGE, kind: Some("#info") } => {
                let (name, message) = name_and_message(&mut reader, "name")?;
                Self::Info(Info { name, message })
            }
            Header { op: Header::ERROR, .. } => {
                let (error, message) = name_and_message(&mut reader, "error")?;
                Self::Error(ErrorFrame { error, message })
            }
            header => {
                reader.skip()?;
                Self::Unknown(Unknown { header, payload: &frame[at..] })
            }
        };
        reader.finish()?;
        Ok(message)
    }

    /// The sequence number, of labels.
    pub fn seq(&self) -> Option<i64> {
        match self {
            Self::Labels(labels) => Some(labels.seq),
            _ => None,
        }
    }
}

impl Labels<'_> {
    /// Encodes the message as a frame. Labels that are not canonical make a frame that is not.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.map(2).text("t").text("#labels").text("op").integer(Header::MESSAGE);
        out.map(2).text("seq").integer(self.seq).text("labels").array(self.labels.len());
        let mut frame = out.into_bytes();
        self.labels.iter().for_each(|label| frame.extend_from_slice(label));
        frame
    }
}

fn read_labels<'a>(reader: &mut Reader<'a>, frame: &'a [u8]) -> Result<Labels<'a>, FrameError> {
    let start = reader.offset();
    let (mut seq, mut labels) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "seq" => seq = Some(reader.integer()?),
            "labels" => labels = Some(read_list(reader, frame)?),
            _ => reader.skip()?,
        }
    }
    let missing = |name| FrameError { offset: start, fault: FrameFault::Missing(name) };
    let seq = seq.ok_or_else(|| missing("seq"))?;
    if seq < 0 {
        return fail(start, FrameFault::Field("seq"));
    }
    Ok(Labels { seq, labels: labels.ok_or_else(|| missing("labels"))? })
}

fn read_list<'a>(reader: &mut Reader<'a>, frame: &'a [u8]) -> Result<Vec<&'a [u8]>, FrameError> {
    let start = reader.offset();
    let count = reader.array()?;
    if count > MAX_LABELS {
        return fail(start, FrameFault::LabelsLimit(MAX_LABELS));
    }
    let mut labels = Vec::with_capacity(count);
    for _ in 0..count {
        let start = reader.offset();
        reader.skip()?;
        labels.push(&frame[start..reader.offset()]);
    }
    Ok(labels)
}

fn name_and_message<'a>(
    reader: &mut Reader<'a>,
    name_key: &'static str,
) -> Result<(&'a str, Option<&'a str>), FrameError> {
    let start = reader.offset();
    let (mut name, mut message) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            key if key == name_key => name = Some(reader.text()?),
            "message" if reader.take_null() => {}
            "message" => message = Some(reader.text()?),
            _ => reader.skip()?,
        }
    }
    let missing = || FrameError { offset: start, fault: FrameFault::Missing(name_key) };
    Ok((name.ok_or_else(missing)?, message))
}

#[cold]
fn fail<T>(offset: usize, fault: FrameFault) -> Result<T, FrameError> {
    Err(FrameError { offset, fault })
}

/// Maximum length of a message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 5_000_000;

/// Maximum number of labels of a message.
pub const MAX_LABELS: usize = 10_000;
