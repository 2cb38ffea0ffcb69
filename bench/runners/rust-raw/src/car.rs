//! Splits a CAR v1 into its blocks.
//!
//! | bytes | content |
//! |---|---|
//! | LEB128 | length of the header |
//! | … | the header: `{roots, version: 1}` |
//! | LEB128 | length of the next section, which is a CID and a block |
//! | 36 | CID: version 1, codec, SHA-256, 32, digest |
//! | … | the block; then the next section |

use bumpalo::Bump;
use minicbor::Decoder;

use crate::value::{Malformed, Value};

/// Bytes of a CID whose hash is SHA-256.
const CID_LEN: usize = 36;

/// An iterator over the blocks, in their order.
pub(crate) struct Car<'a> {
    rest: &'a [u8],
}

pub(crate) struct Block<'a> {
    pub(crate) codec: u8,
    pub(crate) digest: &'a [u8; 32],
    pub(crate) bytes: &'a [u8],
}

impl<'a> Car<'a> {
    /// Reads the header; the position is then at the first block.
    pub(crate) fn open(car: &'a [u8], arena: &'a Bump) -> Result<Self, Malformed> {
        let (header, rest) = section(car)?;
        let header = Value::decode_last(&mut Decoder::new(header), arena)?;
        match header.get("version") {
            Some(Value::Integer(1)) => Ok(Car { rest }),
            _ => Err(Malformed("a CAR has version 1")),
        }
    }

    fn next_block(&mut self) -> Result<Block<'a>, Malformed> {
        let (cid_and_bytes, rest) = section(self.rest)?;
        self.rest = rest;
        let (cid, bytes) = cid_and_bytes
            .split_first_chunk::<CID_LEN>()
            .ok_or(Malformed("a section holds a CID"))?;
        let [1, codec, 0x12, 32, digest @ ..] = cid else {
            return Err(Malformed("a CID has version 1 and SHA-256"));
        };
        Ok(Block { codec: *codec, digest, bytes })
    }
}

impl<'a> Iterator for Car<'a> {
    type Item = Result<Block<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.next_block())
    }
}

/// Splits off the bytes that follow a LEB128 length.
fn section(input: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let (len, rest) = leb128(input).ok_or(Malformed("a length is whole"))?;
    rest.split_at_checked(len).ok_or(Malformed("a section is whole"))
}

/// Four bytes are enough for 256 MiB, and no frame is as long.
fn leb128(input: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (at, &byte) in input.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((value, &input[at + 1..]));
        }
    }
    None
}
