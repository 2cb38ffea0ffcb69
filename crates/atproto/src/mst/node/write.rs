//! Writing nodes.

use codec::{Cid, CidRef};

/// Appends the block of a node, entry by entry.
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::atproto::mst::node::Writer;
/// let mut block = Vec::new();
/// Writer::new(&mut block, 0).finish(None);
/// assert_eq!(
///     Cid::of(Codec::DagCbor, &block).to_string(),
///     "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm",
/// );
/// ```
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    /// Starts a node; `len` entries must follow.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, len: usize) -> Self {
        out.extend_from_slice(b"\xa2\x61e");
        head(out, ARRAY, len);
        Self { out }
    }

    /// Appends an entry: the length of the prefix that its key shares with the one before, the rest of the
    /// key, the record and the child after the key.
    #[inline]
    pub fn entry(
        &mut self,
        prefix_len: usize,
        suffix: &[u8],
        value: CidRef<'_>,
        right: Option<&Cid>,
    ) -> &mut Self {
        write_key(self.out, prefix_len, suffix);
        match (right, value.as_bytes().try_into()) {
            (None, Ok(cid)) => write_null_and_value(self.out, cid),
            (right, _) => {
                self.child(b't', right);
                self.value(value);
            }
        }
        self
    }

    /// Ends the node with the child before its first key.
    #[inline]
    pub fn finish(mut self, left: Option<&Cid>) {
        self.child(b'l', left);
    }

    /// Appends a field with a child or null.
    #[inline]
    fn child(&mut self, name: u8, child: Option<&Cid>) {
        let Some(child) = child else { return self.out.extend_from_slice(&[0x61, name, 0xf6]) };
        self.link(name, child.as_bytes());
    }

    #[inline]
    fn value(&mut self, value: CidRef<'_>) {
        match value.as_bytes().try_into() {
            Ok(cid) => self.link(b'v', cid),
            Err(_) => self.foreign_value(value),
        }
    }

    /// Appends a field with a link of the usual length.
    #[inline]
    fn link(&mut self, name: u8, cid: &[u8; Cid::LEN]) {
        self.out.extend_from_slice(&[0x61, name, 0xd8, 0x2a, 0x58, Cid::LEN as u8 + 1, 0x00]);
        self.out.extend_from_slice(cid);
    }

    #[cold]
    fn foreign_value(&mut self, value: CidRef<'_>) {
        self.out.extend_from_slice(b"\x61v\xd8\x2a");
        head(self.out, BYTES, value.as_bytes().len() + 1);
        self.out.push(0);
        self.out.extend_from_slice(value.as_bytes());
    }
}

/// Appends the start of an entry: the rest of its key, and the length of the prefix.
#[inline]
pub(in crate::mst) fn write_key(out: &mut Vec<u8>, prefix_len: usize, suffix: &[u8]) {
    // Adjacent bytes are appended together.
    match small(suffix.len()) {
        Small::One(len) => out.extend_from_slice(&[0xa4, 0x61, b'k', BYTES | len]),
        Small::Two(len) => out.extend_from_slice(&[0xa4, 0x61, b'k', BYTES | 24, len]),
        Small::Not => {
            out.extend_from_slice(b"\xa4\x61k");
            wide_head(out, BYTES, suffix.len());
        }
    }
    out.extend_from_slice(suffix);
    match small(prefix_len) {
        Small::One(len) => out.extend_from_slice(&[0x61, b'p', UNSIGNED | len]),
        Small::Two(len) => out.extend_from_slice(&[0x61, b'p', UNSIGNED | 24, len]),
        Small::Not => {
            out.extend_from_slice(b"\x61p");
            wide_head(out, UNSIGNED, prefix_len);
        }
    }
}

/// Appends the rest of an entry without a child, whose record has a CID of the usual length.
#[inline]
pub(in crate::mst) fn write_null_and_value(out: &mut Vec<u8>, cid: &[u8; Cid::LEN]) {
    out.extend_from_slice(b"\x61t\xf6\x61v\xd8\x2a\x58\x25\x00");
    out.extend_from_slice(cid);
}

/// Appends the head of an item, in the fewest bytes.
#[inline]
fn head(out: &mut Vec<u8>, kind: u8, number: usize) {
    match small(number) {
        Small::One(number) => out.push(kind | number),
        Small::Two(number) => out.extend_from_slice(&[kind | 24, number]),
        Small::Not => wide_head(out, kind, number),
    }
}

/// A number in the fewest bytes of a head, if it takes no more than two.
enum Small {
    One(u8),
    Two(u8),
    Not,
}

#[inline]
fn small(number: usize) -> Small {
    match u8::try_from(number) {
        Ok(number @ 0..24) => Small::One(number),
        Ok(number) => Small::Two(number),
        Err(_) => Small::Not,
    }
}

#[cold]
fn wide_head(out: &mut Vec<u8>, kind: u8, number: usize) {
    match u16::try_from(number) {
        Ok(number) => {
            out.push(kind | 25);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Err(_) => {
            out.push(kind | 26);
            out.extend_from_slice(&u32::try_from(number).expect("below 4 GiB").to_be_bytes());
        }
    }
}

const UNSIGNED: u8 = 0 << 5;
const BYTES: u8 = 2 << 5;
const ARRAY: u8 = 4 << 5;
