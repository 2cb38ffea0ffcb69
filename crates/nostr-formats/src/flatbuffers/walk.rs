//! Bounds-checked navigation of a buffer: tables, vectors and strings.

use kernels::utf8;

use nostr::{DecodeError, Reason};

/// A buffer and the bounds of the objects visited in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    /// End of the last object visited.
    end: usize,
    /// Number of bytes of objects that may still be visited.
    left: usize,
}

/// A table and its vtable, both within the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    offset: usize,
    bytes: &'a [u8],
    vtable: &'a [u8],
}

/// A vector of tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tables<'a> {
    offset: usize,
    // Four bytes per table.
    bytes: &'a [u8],
}

impl<'a> Walk<'a> {
    /// Starts at the root of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if !bytes.len().is_multiple_of(4) {
            return Err(DecodeError::new(bytes.len(), Reason::Expected("a multiple of 4 bytes")));
        }
        Ok(Self { bytes, end: 4, left: MAX_VISIT_RATIO * bytes.len() })
    }

    #[inline]
    pub(super) fn root(&mut self) -> Result<Table<'a>, DecodeError> {
        let offset = self.follow(0)?;
        self.table(offset)
    }

    /// Checks that only padding follows the last object.
    pub(super) fn end(&self) -> Result<(), DecodeError> {
        match self.bytes.get(self.end..) {
            Some([] | [0] | [0, 0] | [0, 0, 0]) => Ok(()),
            _ => Err(DecodeError::new(self.end, Reason::TrailingBytes)),
        }
    }

    /// Reads a vector of bytes; returns its offset and bytes.
    #[inline]
    pub(super) fn vector(
        &mut self,
        table: Table<'a>,
        slot: u16,
    ) -> Result<Option<(usize, &'a [u8])>, DecodeError> {
        let Some(field) = table.field(slot, 4)? else { return Ok(None) };
        let offset = self.follow(table.offset + field)?;
        let len = self.u32(offset)? as usize;
        let bytes = self.visit(offset + 4, len)?;
        Ok(Some((offset + 4, bytes)))
    }

    /// Reads a string; returns its offset and text.
    #[inline]
    pub(super) fn text(
        &mut self,
        table: Table<'a>,
        slot: u16,
    ) -> Result<Option<(usize, &'a str)>, DecodeError> {
        let Some((offset, bytes)) = self.vector(table, slot)? else { return Ok(None) };
        let end = offset + bytes.len();
        if self.visit(end, 1)? != [0] {
            return Err(DecodeError::new(end, Reason::Expected("a zero byte after text")));
        }
        let text = utf8::from_utf8(bytes).ok_or_else(|| DecodeError::new(offset, Reason::Utf8))?;
        Ok(Some((offset, text)))
    }

    /// Reads a vector of tables.
    #[inline]
    pub(super) fn tables(
        &mut self,
        table: Table<'a>,
        slot: u16,
    ) -> Result<Option<Tables<'a>>, DecodeError> {
        let Some(field) = table.field(slot, 4)? else { return Ok(None) };
        let offset = self.follow(table.offset + field)?;
        let count = self.u32(offset)? as usize;
        let bytes = self.visit(offset + 4, 4 * count)?;
        Ok(Some(Tables { offset: offset + 4, bytes }))
    }

    /// Reads the table at `index` of a vector.
    #[inline]
    pub(super) fn item(
        &mut self,
        list: Tables<'a>,
        index: usize,
    ) -> Result<Table<'a>, DecodeError> {
        let offset = self.follow(list.offset + 4 * index)?;
        self.table(offset)
    }

    #[inline]
    fn table(&mut self, offset: usize) -> Result<Table<'a>, DecodeError> {
        let outside = || DecodeError::new(offset, Reason::Expected("a vtable in the buffer"));
        let back = self.u32(offset)? as i32;
        let vtable = usize::try_from(offset as i64 - i64::from(back)).map_err(|_| outside())?;
        let head =
            self.bytes.get(vtable..).and_then(<[u8]>::first_chunk::<4>).ok_or_else(outside)?;
        let vtable_len = usize::from(u16::from_le_bytes([head[0], head[1]]));
        let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
        if vtable_len < 4 || !vtable_len.is_multiple_of(2) || len < 4 {
            return Err(DecodeError::new(vtable, Reason::Expected("the lengths of a table")));
        }
        let slots = self.bytes.get(vtable..vtable + vtable_len).ok_or_else(outside)?;
        self.end = self.end.max(vtable + vtable_len);
        Ok(Table { offset, bytes: self.visit(offset, len)?, vtable: slots })
    }

    /// The target of the distance at `offset`.
    #[inline]
    fn follow(&self, offset: usize) -> Result<usize, DecodeError> {
        Ok(offset + self.u32(offset)? as usize)
    }

    #[inline]
    fn u32(&self, offset: usize) -> Result<u32, DecodeError> {
        match self.bytes.get(offset..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Ok(u32::from_le_bytes(*bytes)),
            None => Err(outside(offset.min(self.bytes.len()))),
        }
    }

    /// Visits the `len` bytes of an object at `offset`.
    #[inline]
    fn visit(&mut self, offset: usize, len: usize) -> Result<&'a [u8], DecodeError> {
        let Some(bytes) = self.bytes.get(offset..offset + len) else {
            return Err(outside(offset.min(self.bytes.len())));
        };
        let Some(left) = self.left.checked_sub(len + 4) else {
            return Err(DecodeError::new(
                offset,
                Reason::Expected("objects that share fewer bytes"),
            ));
        };
        self.left = left;
        self.end = self.end.max(offset + len);
        Ok(bytes)
    }
}

impl Table<'_> {
    /// Offset in the buffer.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// Reads an integer field; `None` if it has its default.
    #[inline]
    pub(super) fn integer<const N: usize>(
        &self,
        slot: u16,
    ) -> Result<Option<[u8; N]>, DecodeError> {
        let offset = self.field(slot, N)?;
        Ok(offset.and_then(|offset| self.bytes[offset..].first_chunk().copied()))
    }

    /// Offset in the table of a field of `len` bytes; `None` if it has its default.
    #[inline]
    fn field(&self, slot: u16, len: usize) -> Result<Option<usize>, DecodeError> {
        let Some(field) = self.vtable.get(usize::from(slot)..).and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        match usize::from(u16::from_le_bytes(*field)) {
            0 => Ok(None),
            offset if offset >= 4 && offset + len <= self.bytes.len() => Ok(Some(offset)),
            _ => Err(DecodeError::new(self.offset, Reason::Expected("a field in its table"))),
        }
    }
}

impl Tables<'_> {
    /// Number of tables.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / 4
    }

    /// Offset of the first item in the buffer.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }
}

/// Maximum number of objects of at least `min_bytes` that can be visited in `bytes`.
pub(super) fn max_visits(bytes: &[u8], min_bytes: usize) -> usize {
    MAX_VISIT_RATIO * bytes.len() / min_bytes
}

#[cold]
fn outside(offset: usize) -> DecodeError {
    DecodeError::new(offset, Reason::Truncated)
}

/// Maximum total length of the objects visited, as a multiple of the length of the buffer. An encoder may share
/// equal values, but an untrusted sender must not make the decoder visit the same objects without end.
const MAX_VISIT_RATIO: usize = 4;
