//! Bounds on the decoded size of a Parquet file, checked before anything is decompressed: some kilobytes can state
//! pages of gigabytes, or name one large value of a dictionary in every row.
//!
//! The end of a file states the size of every column of a row group. These sizes are bounded, and the pages must not have more than
//! they say.

use parquet::basic::Type;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

/// A file, or a page of it, that would decode to more than a reader takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} of {found}, and at most {max} are decoded")]
pub struct DecodeLimit {
    what: &'static str,
    found: u64,
    max: u64,
}

/// The size of a row group in the file, as its end states it.
fn stored_bytes(group: &RowGroupMetaData) -> u64 {
    let sizes = group.columns().iter().map(ColumnChunkMetaData::compressed_size);
    sizes.map(|size| u64::try_from(size).unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
}

/// Bytes that a row group may decode to, by its size in the file.
fn max_group_bytes(group: &RowGroupMetaData) -> u64 {
    stored_bytes(group).saturating_mul(MAX_RATIO).clamp(MAX_PAGE_BYTES, MAX_GROUP_BYTES)
}

/// Checks the sizes that the end of a file of so many bytes states.
pub(crate) fn check_file(metadata: &ParquetMetaData, size: u64) -> Result<(), DecodeLimit> {
    check("row groups", stored_in_all(metadata), size)?;
    let mut rows = 0_u64;
    for group in metadata.row_groups() {
        rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
        let sizes = group.columns().iter().map(column_bytes);
        check("a row group", sizes.fold(0, u64::saturating_add), max_group_bytes(group))?;
        for column in group.columns() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(u64::MAX);
            check(
                "a column of values",
                u64::try_from(column.num_values()).unwrap_or(u64::MAX),
                rows,
            )?;
        }
    }
    check("a number of rows", rows, MAX_ROWS)
}

fn stored_in_all(metadata: &ParquetMetaData) -> u64 {
    metadata.row_groups().iter().map(stored_bytes).fold(0, u64::saturating_add)
}

/// Whether the file has a dictionary of binary values, of which every row can name a large one.
pub(crate) fn has_dictionaries(metadata: &ParquetMetaData) -> bool {
    metadata.row_groups().iter().flat_map(|group| group.columns()).any(has_dictionary)
}

/// Maximum decoded size of the rows of a file with dictionaries: every row can name one large value.
pub(crate) fn max_decoded(metadata: &ParquetMetaData) -> u64 {
    stored_in_all(metadata).saturating_mul(MAX_RATIO).saturating_add(MAX_PAGE_BYTES)
}

/// Checks the size of a frame that is to be stored: one that is larger than a page may be could not be read again.
pub(crate) fn check_frame(bytes: u64) -> Result<(), DecodeLimit> {
    check("a frame", bytes, MAX_FRAME_BYTES)
}

/// Checks the size that was decoded so far.
pub(crate) fn check_decoded(bytes: u64, max: u64) -> Result<(), DecodeLimit> {
    check("rows", bytes, max)
}

/// Checks the pages of a column of a row group, by their headers.
pub(crate) fn check_pages(column: &ColumnChunkMetaData, bytes: &[u8]) -> Result<(), DecodeLimit> {
    let max = column_bytes(column);
    let mut sum = 0_u64;
    let mut rest = bytes;
    while !rest.is_empty() {
        // Bytes that are not a header are left to the reader, which does not decode them.
        let Some((page, pages)) = page(rest) else { return Ok(()) };
        let limit = if page.is_dictionary { MAX_DICTIONARY_BYTES } else { MAX_PAGE_BYTES };
        check("a page", page.bytes, limit)?;
        sum = sum.saturating_add(page.bytes);
        check("the pages of a column", sum, max)?;
        rest = pages;
    }
    Ok(())
}

fn check(what: &'static str, found: u64, max: u64) -> Result<(), DecodeLimit> {
    if found > max { Err(DecodeLimit { what, found, max }) } else { Ok(()) }
}

fn column_bytes(column: &ColumnChunkMetaData) -> u64 {
    u64::try_from(column.uncompressed_size()).unwrap_or(u64::MAX)
}

fn has_dictionary(column: &ColumnChunkMetaData) -> bool {
    let descriptor = column.column_descr();
    let is_binary = descriptor.physical_type() == Type::BYTE_ARRAY
        && descriptor.logical_type_ref().is_none()
        && descriptor.converted_type() == parquet::basic::ConvertedType::NONE;
    is_binary && column.dictionary_page_offset().is_some()
}

/// A page, by its header.
struct Page {
    is_dictionary: bool,
    /// Size after decompression.
    bytes: u64,
}

/// The first page, and the bytes after it; `None` if there is no whole one.
fn page(bytes: &[u8]) -> Option<(Page, &[u8])> {
    let (mut thrift, mut field) = (Thrift(bytes), 0_i64);
    let mut kind = None;
    let mut uncompressed = None;
    let mut compressed = None;
    loop {
        let head = thrift.byte()?;
        if head == 0 {
            break;
        }
        field = match head >> 4 {
            0 => thrift.number()?,
            step => field.checked_add(step.into())?,
        };
        match (field, head & 15) {
            (1, 5) => kind = Some(thrift.number()?),
            (2, 5) => uncompressed = Some(thrift.number()?),
            (3, 5) => compressed = Some(thrift.number()?),
            (_, kind) => thrift.skip(kind, MAX_DEPTH)?,
        }
    }
    // A negative size is more than any limit.
    let size = |size: Option<i64>| u64::try_from(size?).ok().or(Some(u64::MAX));
    let len = usize::try_from(size(compressed)?).ok()?;
    let page = Page { is_dictionary: kind? == DICTIONARY_PAGE, bytes: size(uncompressed)? };
    Some((page, thrift.0.get(len..)?))
}

/// Bytes in Thrift's compact form.
struct Thrift<'t>(&'t [u8]);

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn number(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn bytes(&mut self, len: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(len).ok()?..)?;
        Some(())
    }

    /// Skips a value of this type.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()),
            3 => self.bytes(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.bytes(8),
            8 => {
                let len = self.unsigned()?;
                self.bytes(len)
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
                // An item of a list of booleans is a byte.
                let kind = if matches!(head & 15, 1 | 2) { 3 } else { head & 15 };
                (0..len).try_for_each(|_| self.skip(kind, depth))
            }
            12 => loop {
                let head = self.byte()?;
                if head == 0 {
                    return Some(());
                }
                if head >> 4 == 0 {
                    self.number()?;
                }
                self.skip(head & 15, depth)?;
            },
            _ => None,
        }
    }
}

/// The type of a page with a dictionary.
const DICTIONARY_PAGE: i64 = 2;

/// Size of a frame: some six times the limit of hosts.
const MAX_FRAME_BYTES: u64 = 32 << 20;

/// Structures in structures: a header has two.
const MAX_DEPTH: u32 = 8;

/// Bytes that a byte of a file may decode to.
const MAX_RATIO: u64 = 1_024;

/// Size of a row group. Row groups of this program decode to 28 MiB.
const MAX_GROUP_BYTES: u64 = 2 << 30;

/// Size of a page: 1 MiB, or one value.
const MAX_PAGE_BYTES: u64 = 64 << 20;

/// Size of a dictionary: 1 MiB, or one value.
const MAX_DICTIONARY_BYTES: u64 = 16 << 20;

/// Rows of a file: 256 MiB have fewer.
const MAX_ROWS: u64 = 1 << 27;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::file::metadata::FileMetaData;
    use parquet::schema::types::SchemaDescriptor;

    use super::*;

    /// A header with these sizes, a data page header of three fields, and a page of so many bytes.
    fn bytes(kind: u8, uncompressed: u32, compressed: usize) -> Vec<u8> {
        let varint = |mut number: u64| {
            let mut bytes = Vec::new();
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
            bytes
        };
        let zigzag = |number: u64| varint(number << 1);
        let mut header = vec![0x15, kind << 1, 0x15];
        header.extend(zigzag(uncompressed.into()));
        header.push(0x15);
        header.extend(zigzag(compressed as u64));
        // Field 5: a structure with two numbers and a text.
        header.extend([0x2c, 0x15, 2, 0x15, 0, 0x18, 1, b'x', 0, 0]);
        header.extend(vec![7; compressed]);
        header
    }

    /// The end of a file with one column, which states these sizes.
    fn end(compressed: i64, uncompressed: i64) -> ParquetMetaData {
        let message = "message schema { REQUIRED BINARY frame; }";
        let schema = parquet::schema::parser::parse_message_type(message).unwrap();
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(schema)));
        let column = ColumnChunkMetaData::builder(schema.column(0))
            .set_total_compressed_size(compressed)
            .set_total_uncompressed_size(uncompressed)
            .set_num_values(1);
        let group = RowGroupMetaData::builder(schema.clone())
            .set_num_rows(1)
            .set_column_metadata(vec![column.build().unwrap()]);
        let file = FileMetaData::new(1, 1, None, None, schema, None);
        ParquetMetaData::new(file, vec![group.build().unwrap()])
    }

    #[test]
    fn a_row_group_decodes_to_a_multiple_of_its_size_which_is_within_the_file() {
        let mib = 1 << 20;
        assert_eq!(check_file(&end(mib, 1_024 * mib), 2 << 20), Ok(()));
        for (compressed, uncompressed) in
            [(mib, 1_025 * mib), (3 * mib, mib), (i64::MAX, mib), (-1, mib), (mib, -1)]
        {
            let checked = check_file(&end(compressed, uncompressed), 2 << 20);
            assert!(checked.is_err(), "{compressed} {uncompressed}");
        }
    }

    #[test]
    fn the_sizes_of_pages_are_read_from_their_headers() {
        let both = [bytes(2, 9, 3), bytes(0, 70_000, 5)].concat();
        let (first, rest) = page(&both).unwrap();
        assert_eq!((first.is_dictionary, first.bytes), (true, 9));
        let (second, rest) = page(rest).unwrap();
        assert_eq!((second.is_dictionary, second.bytes), (false, 70_000));
        assert!(rest.is_empty());
    }

    #[test]
    fn what_is_no_header_is_none_and_no_panic() {
        let whole = bytes(0, 70_000, 5);
        for len in 0..whole.len() {
            assert!(page(&whole[..len]).is_none(), "{len}");
        }
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                let _ = page(&[
                    first, second, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                ]);
                let _ = page(&[&[0x5c][..], &[0x1c; 600], &[first, second]].concat());
            }
        }
    }
}
