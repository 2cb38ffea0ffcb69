//! Blocks that arrive before a link to them is reached: in memory up to a limit, then in a spill file.

use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use atproto::repo::BlockTotals;
use codec::Cid;

use super::tables::TableState;

/// A file for blocks beyond the limit of memory, of this process alone.
pub trait Spill: Read + Write + Seek {}

impl<T: Read + Write + Seek> Spill for T {}

/// Opens an empty spill file.
pub type OpenSpill = fn() -> io::Result<Box<dyn Spill>>;

/// Why a block cannot be held.
pub(super) enum HoldError {
    Io(io::Error),
    /// There is no spill file.
    Limit,
}

impl From<io::Error> for HoldError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Held blocks by CID, of repeated ones the first.
pub(super) struct HeldBlocks {
    blocks: HashMap<Cid, HeldBlock, TableState>,
    max_memory_bytes: usize,
    /// Bytes of data in memory.
    memory_bytes: usize,
    open_spill: Option<OpenSpill>,
    spill: Option<SpillFile>,
}

/// A block that waits.
struct HeldBlock {
    /// Bytes from the start of the archive to the data.
    offset: u64,
    len: u32,
    place: Place,
}

enum Place {
    Memory(Arc<[u8]>),
    /// Bytes from the start of the spill file.
    Spilled(u64),
    /// The data is not needed any more.
    Dropped,
}

/// A block that was held.
pub(super) struct TakenBlock {
    pub(super) offset: u64,
    pub(super) data: Arc<[u8]>,
}

impl HeldBlocks {
    pub(super) fn new(
        max_memory_bytes: usize,
        open_spill: Option<OpenSpill>,
        tables: TableState,
    ) -> Self {
        let blocks = HashMap::with_hasher(tables);
        Self { blocks, max_memory_bytes, memory_bytes: 0, open_spill, spill: None }
    }

    /// Adds a block whose data is at `offset` of the archive.
    pub(super) fn insert(&mut self, cid: Cid, offset: u64, data: &[u8]) -> Result<(), HoldError> {
        if self.blocks.contains_key(&cid) {
            return Ok(());
        }
        let place = if self.memory_bytes + data.len() <= self.max_memory_bytes {
            self.memory_bytes += data.len();
            Place::Memory(Arc::from(data))
        } else {
            Place::Spilled(self.spill(data)?)
        };
        self.blocks.insert(cid, HeldBlock { offset, len: data.len() as u32, place });
        Ok(())
    }

    /// Adds a block that is only counted.
    pub(super) fn insert_dropped(&mut self, cid: Cid, offset: u64, len: usize) {
        let (len, place) = (len as u32, Place::Dropped);
        self.blocks.entry(cid).or_insert(HeldBlock { offset, len, place });
    }

    fn spill(&mut self, data: &[u8]) -> Result<u64, HoldError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            None => {
                let open = self.open_spill.ok_or(HoldError::Limit)?;
                self.spill.insert(SpillFile::new(open()?))
            }
        };
        Ok(spill.append(data)?)
    }

    /// Removes a block, if it is held with its data.
    pub(super) fn take(&mut self, cid: &Cid) -> io::Result<Option<TakenBlock>> {
        if self.blocks.is_empty() {
            return Ok(None);
        }
        let Some(HeldBlock { offset, len, place }) = self.blocks.remove(cid) else {
            return Ok(None);
        };
        let data = match place {
            Place::Memory(data) => {
                self.memory_bytes -= data.len();
                data
            }
            Place::Spilled(at) => match &mut self.spill {
                Some(spill) => spill.read(at, len as usize)?,
                None => return Ok(None),
            },
            Place::Dropped => return Ok(None),
        };
        Ok(Some(TakenBlock { offset, data }))
    }

    /// Removes a block that need not be counted.
    pub(super) fn remove(&mut self, cid: &Cid) {
        self.blocks.remove(cid);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Where the data of a held block starts in the archive.
    pub(super) fn offset_of(&self, cid: &Cid) -> Option<u64> {
        if self.blocks.is_empty() {
            return None;
        }
        self.blocks.get(cid).map(|block| block.offset)
    }

    /// The number and size of all held blocks.
    pub(super) fn totals(&self) -> BlockTotals {
        let bytes = self.blocks.values().map(|block| u64::from(block.len)).sum();
        BlockTotals { blocks: self.blocks.len() as u64, bytes }
    }
}

/// Blocks in a file, one after the other. The last ones are written together.
struct SpillFile {
    file: Box<dyn Spill>,
    written: u64,
    /// The bytes to append to the file.
    pending: Vec<u8>,
}

impl SpillFile {
    fn new(file: Box<dyn Spill>) -> Self {
        Self { file, written: 0, pending: Vec::new() }
    }

    /// Adds a block; returns its place.
    fn append(&mut self, data: &[u8]) -> io::Result<u64> {
        if self.pending.len() + data.len() > PENDING_BYTES {
            self.file.seek(SeekFrom::Start(self.written))?;
            self.file.write_all(&self.pending)?;
            self.written += self.pending.len() as u64;
            self.pending.clear();
        }
        let at = self.written + self.pending.len() as u64;
        self.pending.extend_from_slice(data);
        Ok(at)
    }

    fn read(&mut self, at: u64, len: usize) -> io::Result<Arc<[u8]>> {
        if let Some(at) = at.checked_sub(self.written) {
            return Ok(Arc::from(&self.pending[at as usize..][..len]));
        }
        let mut data = vec![0; len];
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(&mut data)?;
        Ok(Arc::from(data))
    }
}

/// Bytes that are written to a spill file together.
const PENDING_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use codec::cid::Codec;

    use super::*;

    fn cid(number: usize) -> Cid {
        Cid::of(Codec::DagCbor, &number.to_be_bytes())
    }

    fn data(number: usize) -> Vec<u8> {
        vec![number as u8; 1 + number * 37 % 9_000]
    }

    fn open() -> io::Result<Box<dyn Spill>> {
        Ok(Box::new(Cursor::new(Vec::new())))
    }

    #[test]
    fn blocks_come_back_from_memory_and_from_the_spill_file_in_any_order() {
        let mut held = HeldBlocks::new(100_000, Some(open), TableState::new(None));
        for number in 0..500 {
            assert!(held.insert(cid(number), number as u64, &data(number)).is_ok());
        }
        let bytes = (0..500).map(|number| data(number).len() as u64).sum();
        assert_eq!(held.totals(), BlockTotals { blocks: 500, bytes });
        assert!(held.memory_bytes <= 100_000);
        let pending = held.spill.as_ref().map(|spill| spill.pending.len());
        assert!(pending.is_some_and(|pending| pending <= PENDING_BYTES));
        for number in (0..500).map(|step| step * 7 % 500) {
            let taken = held.take(&cid(number)).unwrap().expect("a held block");
            assert_eq!((taken.offset, &*taken.data), (number as u64, &*data(number)));
        }
        assert!(held.is_empty() && held.memory_bytes == 0);
        assert!(held.take(&cid(0)).unwrap().is_none());
    }

    #[test]
    fn a_block_that_is_taken_leaves_room_for_as_many_bytes() {
        let mut held = HeldBlocks::new(1_000, None, TableState::new(None));
        for (number, len) in [(1, 600), (2, 400), (3, 400)] {
            if number == 3 {
                assert!(held.take(&cid(2)).unwrap().is_some());
            }
            assert!(held.insert(cid(number), 0, &vec![0; len]).is_ok());
            assert!(matches!(held.insert(cid(9), 0, &[0; 401]), Err(HoldError::Limit)));
        }
    }

    #[test]
    fn without_a_spill_file_the_limit_of_memory_is_an_error() {
        let mut held = HeldBlocks::new(10, None, TableState::new(Some([3; 16])));
        assert!(held.insert(cid(1), 0, &[0; 10]).is_ok());
        assert!(held.insert(cid(1), 5, &[0; 10]).is_ok(), "a further copy takes no memory");
        assert!(matches!(held.insert(cid(2), 0, &[0]), Err(HoldError::Limit)));
        assert_eq!(held.offset_of(&cid(1)), Some(0));
    }
}
