//! Writing an archive.

use std::io::{self, Write};

use kernels::varint;

use crate::cbor::Encoder;
use crate::cid::Cid;

/// Writes an archive to `W`, block by block, in the order given.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Buffer for the bytes before a block's data.
    prefix: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W, roots: &[Cid]) -> io::Result<Self> {
        let mut writer = Self { out, prefix: Vec::new() };
        let header = encode_header(roots);
        varint::write(header.len() as u64, &mut writer.prefix);
        writer.out.write_all(&writer.prefix)?;
        writer.out.write_all(&header)?;
        Ok(writer)
    }

    /// Adds blocks to an archive that `out` ends with.
    pub fn append_to(out: W) -> Self {
        Self { out, prefix: Vec::new() }
    }

    /// Writes a block. The caller guarantees that `data` matches `cid`.
    ///
    /// # Errors
    /// If the output fails.
    pub fn block(&mut self, cid: &Cid, data: &[u8]) -> io::Result<()> {
        self.prefix.clear();
        varint::write((Cid::LEN + data.len()) as u64, &mut self.prefix);
        self.prefix.extend_from_slice(cid.as_bytes());
        self.out.write_all(&self.prefix)?;
        self.out.write_all(data)
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// The header of an archive with these roots.
fn encode_header(roots: &[Cid]) -> Vec<u8> {
    let mut header = Encoder::new();
    header.map(2).text("roots").array(roots.len());
    for root in roots {
        header.link(root.as_cid_ref());
    }
    header.text("version").integer(1);
    header.into_bytes()
}
