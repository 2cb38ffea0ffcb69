//! Where in a buffer are its tables, vectors and strings, and are they in it whole?

use kernels::utf8;

use crate::{DecodeError, Reason};

/// A buffer that is followed from its root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    /// Where the last part ends that was met.
    end: usize,
    /// Bytes of parts that may still be met.
    left: usize,
}

/// A table that is in the buffer whole, with its vtable.
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
    // Four bytes for each.
    bytes: &'a [u8],
}

impl<'a> Walk<'a> {
    /// A walk over `bytes`, which are a whole buffer.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if !bytes.len().is_multiple_of(4) {
            return Err(DecodeError::new(bytes.len(), Reason::Expected("whole words")));
        }
        Ok(Self { bytes, end: 4, left: MOST_TIMES * bytes.len() })
    }

    #[inline]
    pub(super) fn root(&mut self) -> Result<Table<'a>, DecodeError> {
        let offset = self.follow(0)?;
        self.table(offset)
    }

    /// That the buffer ends with its last part.
    pub(super) fn end(&self) -> Result<(), DecodeError> {
        match self.bytes.get(self.end..) {
            Some([] | [0] | [0, 0] | [0, 0, 0]) => Ok(()),
            _ => Err(DecodeError::new(self.end, Reason::TrailingBytes)),
        }
    }

    /// The bytes that a field leads to.
    #[inline]
    pub(super) fn vector(
        &mut self,
        table: Table<'a>,
        slot: u16,
    ) -> Result<Option<(usize, &'a [u8])>, DecodeError> {
        let Some(place) = table.place(slot, 4)? else { return Ok(None) };
        let offset = self.follow(table.offset + place)?;
        let len = self.u32(offset)? as usize;
        let bytes = self.meet(offset + 4, len)?;
        Ok(Some((offset + 4, bytes)))
    }

    /// The text that a field leads to.
    #[inline]
    pub(super) fn text(
        &mut self,
        table: Table<'a>,
        slot: u16,
    ) -> Result<Option<(usize, &'a str)>, DecodeError> {
        let Some((offset, bytes)) = self.vector(table, slot)? else { return Ok(None) };
        let behind = offset + bytes.len();
        if self.meet(behind, 1)? != [0] {
            return Err(DecodeError::new(behind, Reason::Expected("a zero behind text")));
        }
        let text = utf8::from_utf8(bytes).ok_or_else(|| DecodeError::new(offset, Reason::Utf8))?;
        Ok(Some((offset, text)))
    }

    /// The vector of tables that a field leads to.
    #[inline]
    pub(super) fn tables(
        &mut self,
        table: Table<'a>,
        slot: u16,
    ) -> Result<Option<Tables<'a>>, DecodeError> {
        let Some(place) = table.place(slot, 4)? else { return Ok(None) };
        let offset = self.follow(table.offset + place)?;
        let count = self.u32(offset)? as usize;
        let bytes = self.meet(offset + 4, 4 * count)?;
        Ok(Some(Tables { offset: offset + 4, bytes }))
    }

    /// The table that an item of a vector leads to.
    #[inline]
    pub(super) fn item(&mut self, list: Tables<'a>, at: usize) -> Result<Table<'a>, DecodeError> {
        let offset = self.follow(list.offset + 4 * at)?;
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
        Ok(Table { offset, bytes: self.meet(offset, len)?, vtable: slots })
    }

    /// Where the distance at `offset` leads.
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

    /// The `len` bytes at `offset`, which are a part, or the rest of one.
    #[inline]
    fn meet(&mut self, offset: usize, len: usize) -> Result<&'a [u8], DecodeError> {
        let Some(bytes) = self.bytes.get(offset..offset + len) else {
            return Err(outside(offset.min(self.bytes.len())));
        };
        let Some(left) = self.left.checked_sub(len + 4) else {
            return Err(DecodeError::new(
                offset,
                Reason::Expected("a buffer whose parts are met once"),
            ));
        };
        self.left = left;
        self.end = self.end.max(offset + len);
        Ok(bytes)
    }
}

impl Table<'_> {
    /// Where it stands.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    /// The integer of a field, if it has not its default.
    #[inline]
    pub(super) fn integer<const N: usize>(
        &self,
        slot: u16,
    ) -> Result<Option<[u8; N]>, DecodeError> {
        let place = self.place(slot, N)?;
        Ok(place.and_then(|place| self.bytes[place..].first_chunk().copied()))
    }

    /// Where in the table the `len` bytes of a field are.
    #[inline]
    fn place(&self, slot: u16, len: usize) -> Result<Option<usize>, DecodeError> {
        let Some(place) = self.vtable.get(usize::from(slot)..).and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        match usize::from(u16::from_le_bytes(*place)) {
            0 => Ok(None),
            place if place >= 4 && place + len <= self.bytes.len() => Ok(Some(place)),
            _ => Err(DecodeError::new(self.offset, Reason::Expected("a field in its table"))),
        }
    }
}

impl Tables<'_> {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / 4
    }

    /// Where the first stands.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }
}

#[cold]
fn outside(offset: usize) -> DecodeError {
    DecodeError::new(offset, Reason::Truncated)
}

/// All parts together, as often as they are met, and how much longer than the buffer they may be: a writer may
/// keep equal values once, but a stranger must not make us walk the same way for ever.
const MOST_TIMES: usize = 4;
