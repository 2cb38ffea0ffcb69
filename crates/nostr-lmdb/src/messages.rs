//! Messages of the process that reads a database to the one that started it.
//!
//! | message | after its type, in 1 byte |
//! |---|---|
//! | 1 opened | the program, 1 byte |
//! | 2 record | key, 8 bytes; length of the event and of the summary, 4 bytes each; fault; event; summary |
//! | 3 progress | – |
//! | 4 end | – |
//! | 5 error | its number, 1 byte; two integers, 8 bytes each; length of a text, 4 bytes; the text |
//!
//! A fault is 0, or its number and: of 1 the offset, 8 bytes, and the number of the reason, 1 byte; of 2 an id. Integers are little-endian. The
//! reader of the messages trusts none of them: lengths have limits, and a malformed message is an error.

use std::io::{self, Read, Write};

use nostr::{DecodeError, Reason};
use nostr_formats::container::MAX_EVENT_BYTES;

use crate::error::DatabaseError;
use crate::payload::{DICTIONARY, FRAME_OF_DICTIONARY, TOO_LONG, TYPE};
use crate::reader::Program;
use crate::record::{Record, RecordFault};

/// A message.
#[derive(Debug)]
pub(crate) enum Message {
    Opened(Program),
    /// A record, whose bytes are appended.
    Record(Record),
    Progress,
    End,
    Error(DatabaseError),
}

pub(crate) fn write_opened(out: &mut impl Write, program: Program) -> io::Result<()> {
    out.write_all(&[OPENED, u8::from(program == Program::Nostrdb)])
}

/// Writes a record with its event and its summary.
pub(crate) fn write_record(out: &mut impl Write, record: &Record, bytes: &[u8]) -> io::Result<()> {
    let Record { key, event_len, summary_len, fault } = *record;
    out.write_all(&[RECORD])?;
    out.write_all(&key.to_le_bytes())?;
    // Below 16 MiB each.
    out.write_all(&(event_len as u32).to_le_bytes())?;
    out.write_all(&(summary_len as u32).to_le_bytes())?;
    match fault {
        None => out.write_all(&[0])?,
        Some(RecordFault::Value(DecodeError { offset, reason, .. })) => {
            let reason = REASONS.iter().position(|other| *other == reason).unwrap_or_default();
            out.write_all(&[1])?;
            out.write_all(&(offset as u64).to_le_bytes())?;
            out.write_all(&[reason as u8])?;
        }
        Some(RecordFault::NoPayload(id)) => {
            out.write_all(&[2])?;
            out.write_all(&id)?;
        }
        Some(RecordFault::NoRow) => out.write_all(&[3])?,
        Some(RecordFault::MalformedRow) => out.write_all(&[4])?,
    }
    out.write_all(bytes)
}

pub(crate) fn write_progress(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[PROGRESS])
}

pub(crate) fn write_end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[END])
}

pub(crate) fn write_error(out: &mut impl Write, error: &DatabaseError) -> io::Result<()> {
    let (number, one, other, text) = match error {
        DatabaseError::Denied(error) => (1, 0, 0, error.to_string()),
        DatabaseError::Version => (2, 0, 0, String::new()),
        DatabaseError::Lmdb(text) => (3, 0, 0, text.clone()),
        DatabaseError::Truncated { len, end } => (4, *len, *end, String::new()),
        DatabaseError::Tables => (5, 0, 0, String::new()),
        DatabaseError::Key { after, len } => (6, *after, *len as u64, String::new()),
        DatabaseError::Order { after } => (7, *after, 0, String::new()),
        DatabaseError::Shared { after } => (8, *after, 0, String::new()),
        DatabaseError::Indexes(names) => (9, 0, 0, names.clone()),
        error => (0, 0, 0, error.to_string()),
    };
    let text = &text.as_bytes()[..text.len().min(MAX_TEXT_BYTES)];
    out.write_all(&[ERROR, number])?;
    out.write_all(&one.to_le_bytes())?;
    out.write_all(&other.to_le_bytes())?;
    out.write_all(&(text.len() as u32).to_le_bytes())?;
    out.write_all(text)
}

/// Reads a message, and appends the bytes of a record to `out`.
///
/// # Errors
/// If the messages end, or are malformed ([`io::ErrorKind::InvalidData`]).
pub(crate) fn read(input: &mut impl Read, out: &mut Vec<u8>) -> io::Result<Message> {
    match byte(input)? {
        OPENED => match byte(input)? {
            0 => Ok(Message::Opened(Program::Strfry)),
            1 => Ok(Message::Opened(Program::Nostrdb)),
            _ => Err(malformed()),
        },
        RECORD => read_record(input, out).map(Message::Record),
        PROGRESS => Ok(Message::Progress),
        END => Ok(Message::End),
        ERROR => read_error(input).map(Message::Error),
        _ => Err(malformed()),
    }
}

fn read_record(input: &mut impl Read, out: &mut Vec<u8>) -> io::Result<Record> {
    let key = integer(input)?;
    let (event_len, summary_len) = (length(input)?, length(input)?);
    let fault = match byte(input)? {
        0 => None,
        1 => {
            let offset = usize::try_from(integer(input)?).map_err(|_| malformed())?;
            let reason = REASONS.get(usize::from(byte(input)?)).ok_or_else(malformed)?;
            Some(RecordFault::Value(DecodeError::new(offset, *reason)))
        }
        2 => {
            let mut id = [0; 32];
            input.read_exact(&mut id)?;
            Some(RecordFault::NoPayload(id))
        }
        3 => Some(RecordFault::NoRow),
        4 => Some(RecordFault::MalformedRow),
        _ => return Err(malformed()),
    };
    if event_len > MAX_EVENT_BYTES || summary_len > MAX_EVENT_BYTES {
        return Err(malformed());
    }
    append(input, event_len + summary_len, out)?;
    Ok(Record { key, event_len, summary_len, fault })
}

fn read_error(input: &mut impl Read) -> io::Result<DatabaseError> {
    let number = byte(input)?;
    let one = integer(input)?;
    let other = integer(input)?;
    let len = length(input)?;
    if len > MAX_TEXT_BYTES {
        return Err(malformed());
    }
    let mut text = Vec::new();
    append(input, len, &mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(match number {
        0 => DatabaseError::Io(io::Error::other(text)),
        1 => DatabaseError::Denied(io::Error::other(text)),
        2 => DatabaseError::Version,
        3 => DatabaseError::Lmdb(text),
        4 => DatabaseError::Truncated { len: one, end: other },
        5 => DatabaseError::Tables,
        6 => DatabaseError::Key { after: one, len: usize::try_from(other).unwrap_or(usize::MAX) },
        7 => DatabaseError::Order { after: one },
        8 => DatabaseError::Shared { after: one },
        9 => DatabaseError::Indexes(text),
        _ => return Err(malformed()),
    })
}

/// Appends exactly this many bytes. Memory grows with the arrived bytes.
fn append(input: &mut impl Read, len: usize, out: &mut Vec<u8>) -> io::Result<()> {
    match input.take(len as u64).read_to_end(out)? {
        read if read == len => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn byte(input: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn integer(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn length(input: &mut impl Read) -> io::Result<usize> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| malformed())
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed message")
}

const OPENED: u8 = 1;
const RECORD: u8 = 2;
const PROGRESS: u8 = 3;
const END: u8 = 4;
const ERROR: u8 = 5;

/// Maximum length of a text in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// Why a value has no event, by number.
const REASONS: [Reason; 5] = [
    Reason::Truncated,
    Reason::Expected(TYPE),
    Reason::Expected(DICTIONARY),
    Reason::Expected(FRAME_OF_DICTIONARY),
    TOO_LONG,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<u8> {
        let mut out = Vec::new();
        write_opened(&mut out, Program::Nostrdb).unwrap();
        let faults = REASONS.map(|reason| Some(RecordFault::Value(DecodeError::new(5, reason))));
        let others =
            [RecordFault::NoPayload([7; 32]), RecordFault::NoRow, RecordFault::MalformedRow];
        for fault in faults.into_iter().chain(others.map(Some)).chain([None]) {
            let record = Record { key: 1 << 40, event_len: 5, summary_len: 3, fault };
            write_record(&mut out, &record, b"eventrow").unwrap();
        }
        write_progress(&mut out).unwrap();
        for error in errors() {
            write_error(&mut out, &error).unwrap();
        }
        write_end(&mut out).unwrap();
        out
    }

    fn errors() -> Vec<DatabaseError> {
        vec![
            DatabaseError::Io(io::Error::other("text")),
            DatabaseError::Denied(io::Error::other("text")),
            DatabaseError::Version,
            DatabaseError::Lmdb("text".to_owned()),
            DatabaseError::Truncated { len: 1, end: 2 },
            DatabaseError::Tables,
            DatabaseError::Key { after: 1, len: 2 },
            DatabaseError::Order { after: 1 },
            DatabaseError::Shared { after: 1 },
            DatabaseError::Indexes("text".to_owned()),
        ]
    }

    fn read_all(mut input: &[u8]) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut found = Vec::new();
        while !input.is_empty() {
            let mut out = Vec::new();
            let message = read(&mut input, &mut out)?;
            found.push((format!("{message:?}"), out));
        }
        Ok(found)
    }

    #[test]
    fn every_message_is_read_as_it_was_written() {
        let found = read_all(&messages()).unwrap();
        assert_eq!(found.len(), 1 + 9 + 1 + 10 + 1);
        assert_eq!(found[0].0, "Opened(Nostrdb)");
        for (text, out) in &found[1..10] {
            assert!(text.contains("1099511627776") && out == b"eventrow", "{text}");
        }
        for (error, (text, _)) in errors().iter().zip(&found[11..]) {
            assert_eq!(text, &format!("Error({error:?})"));
        }
    }

    #[test]
    fn a_message_that_is_cut_or_changed_is_an_error_or_another_message() {
        let messages = messages();
        for len in 0..messages.len() {
            // Between two messages it is complete.
            let _ = read_all(&messages[..len]);
        }
        for at in 0..messages.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = messages.clone();
                changed[at] = byte;
                let _ = read_all(&changed);
            }
        }
        assert!(read_all(&[9]).is_err() && read_all(&[RECORD, 0]).is_err());
    }
}
