//! A source whose bytes are pushed, for a [`StreamReader`](super::StreamReader) that cannot wait inside a read.

use std::io::{self, Read};
use std::mem;

use kernels::varint::{self, VarintError};

use super::Options;

/// Bytes that were pushed and not read. Reading more is an error of the kind [`WouldBlock`](io::ErrorKind::WouldBlock),
/// until there are more or the [end](Self::end) was declared.
///
/// ```
/// use wireproof::codec::car::{Options, Pushed, StreamReader};
/// # use wireproof::codec::{Cid, car, cid::Codec};
/// # let block = b"\xa2\x61e\x80\x61l\xf6";
/// # let cid = Cid::of(Codec::DagCbor, block);
/// # let mut writer = car::Writer::new(Vec::new(), &[cid])?;
/// # writer.block(&cid, block)?;
/// # let archive = writer.into_inner();
/// let (mut pushed, options) = (Pushed::default(), Options::default());
/// let mut pieces = archive.chunks(10);
/// while !pushed.has_header(&options) {
///     pushed.push(pieces.next().unwrap_or_default());
/// }
/// let mut reader = StreamReader::new(pushed, &options)?;
/// pieces.for_each(|piece| reader.source_mut().push(piece));
/// reader.source_mut().end();
/// assert_eq!(reader.next_batch()?.map(|batch| batch.len()), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pushed {
    bytes: Vec<u8>,
    /// Bytes of them that were read.
    // read <= bytes.len()
    read: usize,
    is_over: bool,
}

impl Pushed {
    /// Adds bytes at the end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..mem::take(&mut self.read));
        self.bytes.extend_from_slice(bytes);
    }

    /// Declares that no more bytes will be pushed.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether a [`StreamReader`](super::StreamReader) can be made: the unread bytes have the whole header of an archive,
    /// or cannot become one, or are the last.
    pub fn has_header(&self, options: &Options) -> bool {
        let unread = &self.bytes[self.read..];
        match varint::read(unread) {
            Ok((len, prefix)) => {
                let is_over_limit = len > options.max_header_bytes as u64
                    || prefix as u64 + len > options.max_total_bytes;
                self.is_over || is_over_limit || len <= (unread.len() - prefix) as u64
            }
            Err(VarintError::Truncated) => self.is_over,
            Err(_) => true,
        }
    }
}

impl Read for Pushed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut rest = &self.bytes[self.read..];
        if rest.is_empty() && !self.is_over && !out.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let read = rest.read(out)?;
        self.read += read;
        Ok(read)
    }
}
