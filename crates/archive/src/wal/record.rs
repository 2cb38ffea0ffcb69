//! Groups and records of a segment.
//!
//! | part | bytes |
//! |---|---|
//! | magic of a segment | 8: `wpwal\0\0\1` |
//! | salt of the segment | 8, random |
//! | arrival of the last event before the segment | 8, little-endian |
//! | CRC-32C of these | 4, little-endian |
//! | each group: the salt | 8 |
//! | … length of its records | 4, little-endian |
//! | … CRC-32C of its records | 4, little-endian |
//! | … records | length in 4 bytes, little-endian, and the fields below |
//!
//! | field of a record | bytes |
//! |---|---|
//! | arrival, received, seq (0: none) | 8 each, little-endian |
//! | did, host, kind, verdict, key, judge | length in 2 bytes, little-endian, and UTF-8; an empty did or key is none |
//! | frame | the rest |
//!
//! One sync makes one group durable. The last one may be incomplete after a crash; a damaged one that others follow was
//! changed later. No stranger knows the salt, so no frame contains a forged group.

use crate::error::ArchiveFault;
use crate::event::ArchivedEvent;

/// Appends a record to a group.
pub(crate) fn push(group: &mut Vec<u8>, event: &ArchivedEvent<'_>) {
    let start = group.len();
    group.extend([0; 4]);
    for number in [event.arrival, event.received, event.seq.unwrap_or(0)] {
        group.extend(number.to_le_bytes());
    }
    let (did, key) = (event.did.unwrap_or_default(), event.key.unwrap_or_default());
    for text in [did, event.host, event.kind, event.verdict, key, event.judge] {
        let text = cut(text);
        group.extend((text.len() as u16).to_le_bytes());
        group.extend(text.as_bytes());
    }
    group.extend(event.frame);
    let len = (group.len() - start - 4) as u32;
    group[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// The start of a text that is too long: of a kind of message that a stranger has invented.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_TEXT)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) salt: Salt,
    /// The arrival of the last event before the segment.
    pub(super) last_arrival: i64,
}

impl SegmentHeader {
    pub(super) fn to_bytes(self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut header = [0; SEGMENT_HEADER_LEN];
        header[..8].copy_from_slice(SEGMENT_MAGIC);
        header[8..16].copy_from_slice(&self.salt);
        header[16..24].copy_from_slice(&self.last_arrival.to_le_bytes());
        let checksum = crc32c::crc32c(&header[..24]);
        header[24..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Reads a header; `None` if it is none.
    pub(super) fn of_bytes(bytes: &[u8; SEGMENT_HEADER_LEN]) -> Option<Self> {
        let (salt, rest) = bytes[8..].split_first_chunk()?;
        let header = Self { salt: *salt, last_arrival: i64::from_le_bytes(*rest.first_chunk()?) };
        (*bytes == header.to_bytes()).then_some(header)
    }
}

/// The header of a group with these records.
pub(super) fn group_header(salt: Salt, records: &[u8]) -> [u8; GROUP_HEADER_LEN] {
    let mut header = [0; GROUP_HEADER_LEN];
    header[..8].copy_from_slice(&salt);
    header[8..12].copy_from_slice(&(records.len() as u32).to_le_bytes());
    header[12..].copy_from_slice(&crc32c::crc32c(records).to_le_bytes());
    header
}

/// A segment.
#[derive(Debug)]
pub(super) struct Segment<'a> {
    /// The header; `None` if a crash has left the file without all of it.
    pub(super) header: Option<SegmentHeader>,
    pub(super) events: Vec<ArchivedEvent<'a>>,
    /// Bytes from the start of the segment to the end of its last whole group.
    pub(super) len: u64,
}

/// Reads a segment. Bytes after the last whole group are an incomplete group.
///
/// # Errors
/// If a damaged group is followed by a whole one, or bytes are not a segment.
pub(super) fn read(segment: &[u8]) -> Result<Segment<'_>, ArchiveFault> {
    let damaged =
        |offset: usize, reason| ArchiveFault::DamagedLog { offset: offset as u64, reason };
    let Some((header, mut rest)) = segment.split_first_chunk::<SEGMENT_HEADER_LEN>() else {
        return Ok(Segment { header: None, events: Vec::new(), len: 0 });
    };
    let header = SegmentHeader::of_bytes(header);
    let header = header.ok_or_else(|| damaged(0, "no segment of a write-ahead log"))?;
    let mut events = Vec::new();
    while !rest.is_empty() {
        let offset = segment.len() - rest.len();
        let Some((records, following)) = split_group(header.salt, rest) else {
            if has_group(header.salt, &rest[1..]) {
                return Err(damaged(offset, "a damaged group, which whole ones follow"));
            } else {
                break;
            }
        };
        read_records(records, &mut events)
            .ok_or_else(|| damaged(offset, "a group of other records"))?;
        rest = following;
    }
    let len = (segment.len() - rest.len()) as u64;
    Ok(Segment { header: Some(header), events, len })
}

/// The length of the records of a group with this header, if it is one of the segment.
pub(super) fn group_len(salt: Salt, header: &[u8; GROUP_HEADER_LEN]) -> Option<usize> {
    let (of_segment, rest) = header.split_first_chunk::<8>()?;
    (*of_segment == salt).then_some(u32::from_le_bytes(*rest.first_chunk()?) as usize)
}

/// The records of the group at the start, if it is whole, and the bytes after it.
fn split_group(salt: Salt, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<GROUP_HEADER_LEN>()?;
    let len = u32::from_le_bytes(*header[8..].first_chunk()?) as usize;
    let (records, rest) = rest.split_at_checked(len)?;
    (*header == group_header(salt, records)).then_some((records, rest))
}

/// Whether a whole group starts anywhere in these bytes.
fn has_group(salt: Salt, bytes: &[u8]) -> bool {
    let mut starts = bytes.windows(salt.len()).enumerate().filter(|(_, window)| *window == salt);
    starts.any(|(start, _)| split_group(salt, &bytes[start..]).is_some())
}

pub(super) fn read_records<'a>(
    mut records: &'a [u8],
    events: &mut Vec<ArchivedEvent<'a>>,
) -> Option<()> {
    while !records.is_empty() {
        let (len, rest) = records.split_first_chunk()?;
        let (record, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        events.push(read_record(record)?);
        records = rest;
    }
    Some(())
}

/// The arrival of the first of these records; of a group, its first 12 bytes are enough.
pub(super) fn first_arrival(records: &[u8]) -> Option<i64> {
    Some(i64::from_le_bytes(*records.get(4..)?.first_chunk()?))
}

/// Reads the fields after the length of a record.
pub(crate) fn read_record(record: &[u8]) -> Option<ArchivedEvent<'_>> {
    let mut rest = record;
    let mut number = || {
        let (bytes, after) = rest.split_first_chunk()?;
        rest = after;
        Some(i64::from_le_bytes(*bytes))
    };
    let arrival = number()?;
    let received = number()?;
    let seq = number()?;
    let mut text = || {
        let (len, after) = rest.split_first_chunk()?;
        let (bytes, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
        rest = after;
        std::str::from_utf8(bytes).ok()
    };
    let did = text()?;
    let host = text()?;
    let kind = text()?;
    let verdict = text()?;
    let key = text()?;
    let judge = text()?;
    let some = |text: &'_ str| !text.is_empty();
    Some(ArchivedEvent {
        did: some(did).then_some(did),
        arrival,
        host,
        seq: (seq != 0).then_some(seq),
        kind,
        received,
        verdict,
        key: some(key).then_some(key),
        judge,
        frame: rest,
    })
}

/// Random bytes that mark the groups of a segment.
pub(super) type Salt = [u8; 8];

const SEGMENT_MAGIC: &[u8; 8] = b"wpwal\0\0\x01";
pub(super) const GROUP_HEADER_LEN: usize = 16;
pub(super) const SEGMENT_HEADER_LEN: usize = 28;

/// Longest text of a record; a DID has up to 2,048 bytes.
const MAX_TEXT: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: &Salt = b"\x81salt\0\x01\xff";

    fn event(arrival: i64, frame: &[u8]) -> ArchivedEvent<'_> {
        ArchivedEvent {
            did: Some("did:web:alice.test"),
            arrival,
            host: "relay.test",
            seq: (arrival % 2 == 0).then_some(arrival),
            kind: "#commit",
            received: arrival + 1,
            verdict: "verified",
            key: None,
            judge: "wireproof/0.1.0",
            frame,
        }
    }

    fn segment(groups: &[&[ArchivedEvent<'_>]]) -> Vec<u8> {
        let mut segment = SegmentHeader { salt: *SALT, last_arrival: 7 }.to_bytes().to_vec();
        for group in groups {
            let mut records = Vec::new();
            group.iter().for_each(|event| push(&mut records, event));
            segment.extend(group_header(*SALT, &records));
            segment.extend(records);
        }
        segment
    }

    #[test]
    fn a_segment_has_the_events_that_were_written() {
        let (first, second) = ([event(1, b"one"), event(2, b"")], [event(3, b"three")]);
        let segment = segment(&[&first, &second]);
        let read = read(&segment).unwrap();
        assert_eq!(read.events, [first[0], first[1], second[0]]);
        assert_eq!(read.len, segment.len() as u64);
    }

    #[test]
    fn a_segment_that_ends_anywhere_has_the_groups_before() {
        let (first, second) = ([event(1, b"one")], [event(2, b"two"), event(3, b"three")]);
        let (one, both) = (segment(&[&first]).len(), segment(&[&first, &second]));
        for end in 0..both.len() {
            let read = read(&both[..end]).unwrap();
            let whole = if end < one { &[][..] } else { &first[..] };
            assert_eq!(read.events, whole, "{end} bytes");
        }
    }

    #[test]
    fn a_flipped_bit_before_a_whole_group_is_an_error_and_in_the_last_group_drops_it() {
        let (first, second) = ([event(1, b"one")], [event(2, b"two")]);
        let (one, both) = (segment(&[&first]).len(), segment(&[&first, &second]));
        for bit in 0..both.len() * 8 {
            let mut changed = both.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match read(&changed) {
                Err(ArchiveFault::DamagedLog { offset, .. }) => {
                    assert!(bit / 8 < one && [0, 28].contains(&offset), "bit {bit}");
                }
                Ok(read) => assert!(bit / 8 >= one && read.events == first, "bit {bit}"),
                Err(other) => panic!("{other}"),
            }
        }
    }
}
