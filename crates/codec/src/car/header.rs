//! The archive's header: its version and its roots.

use super::error::{CarError, CarFault, fail};
use crate::cbor::{DecodeError, Encoder, KeyOrder, Reader};
use crate::cid::{Cid, CidRef};

/// The root links of an archive, in order. There may be none.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// The items of the root array, each seen to be a link.
    items: &'a [u8],
    len: usize,
}

impl<'a> Roots<'a> {
    /// How many roots there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first root: the commit, in a repository's archive.
    pub fn first(&self) -> Option<CidRef<'a>> {
        self.iter().next()
    }

    /// The roots in order.
    pub fn iter(&self) -> impl Iterator<Item = CidRef<'a>> + use<'a> {
        let mut reader = Reader::new(self.items);
        (0..self.len)
            .map(move |_| reader.link().expect("seen to be a link when the header was read"))
    }
}

/// Reads a header that stands at `offset` of the archive.
pub(super) fn read(header: &[u8], offset: u64) -> Result<Roots<'_>, CarError> {
    match fields(header) {
        Ok((Some(roots), Some(1))) => Ok(roots),
        Ok((_, Some(version))) if version != 1 => fail(offset, CarFault::Version(version)),
        Ok(_) => fail(offset, CarFault::HeaderField),
        Err(error) => fail(offset, CarFault::Header(error)),
    }
}

type Fields<'a> = (Option<Roots<'a>>, Option<i64>);

fn fields(header: &[u8]) -> Result<Fields<'_>, DecodeError> {
    let mut reader = Reader::new(header);
    let (mut roots, mut version) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "roots" => roots = Some(read_roots(&mut reader)?),
            "version" => version = Some(reader.integer()?),
            _ => reader.skip()?,
        }
    }
    reader.finish()?;
    Ok((roots, version))
}

fn read_roots<'a>(reader: &mut Reader<'a>) -> Result<Roots<'a>, DecodeError> {
    let len = reader.array()?;
    let items = reader.rest();
    for _ in 0..len {
        reader.link()?;
    }
    Ok(Roots { items, len })
}

/// The header of an archive with these roots.
pub(super) fn encode(roots: &[Cid]) -> Vec<u8> {
    let mut header = Encoder::new();
    header.map(2).text("roots").array(roots.len());
    for root in roots {
        header.link(root.as_cid_ref());
    }
    header.text("version").integer(1);
    header.into_bytes()
}
