//! Writing an archive.

use std::io::{self, Write};

use kernels::varint;

use super::header;
use crate::cid::Cid;

/// Writes an archive to `W`, block by block, in the order given.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Scratch for the part in front of a block's data.
    prefix: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn new(out: W, roots: &[Cid]) -> io::Result<Self> {
        let mut writer = Self { out, prefix: Vec::new() };
        let header = header::encode(roots);
        varint::write(header.len() as u64, &mut writer.prefix);
        writer.out.write_all(&writer.prefix)?;
        writer.out.write_all(&header)?;
        Ok(writer)
    }

    /// Writes a block. The caller answers for `data` being what `cid` names.
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
