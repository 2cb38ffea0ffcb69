//! The header and the heads of blocks as bytes.

use super::Fault;

/// The start of the SHA-256 of the first body of a container.
pub(super) type Salt = [u8; 8];

/// The contents of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u32,
    /// Number of the format.
    pub(super) format: u32,
    pub(super) salt: Salt,
}

impl Header {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Self { version, format, salt } = self;
        with_checksum([&MAGIC[..], &version.to_le_bytes(), &format.to_le_bytes(), &salt].concat())
    }

    /// The header, if it is whole.
    pub(super) fn read(bytes: &[u8; HEADER_LEN]) -> Result<Self, Fault> {
        if !bytes.starts_with(&MAGIC) || !is_checked(bytes) {
            return Err(Fault::Header);
        }
        Ok(Self { version: u32_at(bytes, 8), format: u32_at(bytes, 12), salt: salt_at(bytes, 16) })
    }
}

/// The contents of the head of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub(super) salt: Salt,
    /// Number of the first event.
    pub(super) first: u64,
    /// Number of events.
    pub(super) count: u32,
    pub(super) body_len: u32,
    /// Number of the format.
    pub(super) format: u32,
    pub(super) body_checksum: u32,
}

impl BlockHead {
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Self { salt, first, count, body_len, format, body_checksum } = self;
        let numbers = [count, body_len, format, body_checksum].map(u32::to_le_bytes);
        with_checksum([&BLOCK[..], &salt, &first.to_le_bytes(), numbers.as_flattened()].concat())
    }

    /// The head, if it is whole and within the limits.
    pub(super) fn read(bytes: &[u8; BLOCK_HEAD_LEN]) -> Result<Self, Fault> {
        if !bytes.starts_with(&BLOCK) || !is_checked(bytes) {
            return Err(Fault::Head);
        }
        let head = Self {
            salt: salt_at(bytes, 8),
            first: u64_at(bytes, 16),
            count: u32_at(bytes, 24),
            body_len: u32_at(bytes, 28),
            format: u32_at(bytes, 32),
            body_checksum: u32_at(bytes, 36),
        };
        let is_counted = (1..=MAX_BLOCK_EVENTS).contains(&head.count)
            && head.first.checked_add(head.count.into()).is_some();
        let has_ends = u64::from(head.count) * END_BYTES as u64 <= u64::from(head.body_len);
        if is_counted && has_ends && head.body_len <= MAX_BODY_BYTES {
            Ok(head)
        } else {
            Err(Fault::Limit)
        }
    }

    /// Number of the event after the last one.
    pub(super) fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    /// Checks a body, and returns the ends of its events in the bytes after the ends.
    pub(super) fn check_body(&self, body: &[u8]) -> Result<Vec<u32>, Fault> {
        if crc32c::crc32c(body) != self.body_checksum {
            return Err(Fault::Checksum);
        }
        let (ends, events) =
            body.split_at_checked(self.count as usize * END_BYTES).ok_or(Fault::Lengths)?;
        let (ends, _) = ends.as_chunks();
        let ends: Vec<u32> = ends.iter().map(|end| u32::from_le_bytes(*end)).collect();
        let fill_it =
            ends.is_sorted() && ends.last().is_some_and(|end| *end as usize == events.len());
        if fill_it { Ok(ends) } else { Err(Fault::Lengths) }
    }
}

/// Appends the checksum of the bytes.
pub(super) fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Whether the last four bytes are the checksum of the others.
pub(super) fn is_checked(bytes: &[u8]) -> bool {
    let Some((rest, checksum)) = bytes.split_last_chunk() else { return false };
    u32::from_le_bytes(*checksum) == crc32c::crc32c(rest)
}

/// The integer at a constant offset within a part of constant length.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("within the part"))
}

/// As [`u32_at`], of 64 bits.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the part"))
}

/// The salt at a constant offset within a part of constant length.
pub(super) fn salt_at(bytes: &[u8], at: usize) -> Salt {
    *bytes[at..].first_chunk().expect("within the part")
}

pub(super) const VERSION: u32 = 1;

/// The first bytes of a container. A transfer as text changes them.
pub(super) const MAGIC: [u8; 8] = *b"\x89NSTR\r\n\x1a";
/// The sync markers of a block and of the index. No text has them.
pub(super) const BLOCK: [u8; 8] = *b"\xc1\xffNBLK\xff\xc1";
pub(super) const INDEX: [u8; 8] = *b"\xc1\xffNIDX\xff\xc1";
/// The last bytes of a container.
pub(super) const END: [u8; 8] = *b"\xc1\xffNEND\xff\xc1";

pub(super) const HEADER_LEN: usize = 28;
pub(super) const BLOCK_HEAD_LEN: usize = 44;
/// Bytes for the end of an event.
pub(super) const END_BYTES: usize = 4;

/// Maximum number of events of a block.
pub(super) const MAX_BLOCK_EVENTS: u32 = 1 << 16;
/// Maximum length of the body of a block in bytes: one event of the maximum length, or many.
pub(super) const MAX_BODY_BYTES: u32 = 17 << 20;
