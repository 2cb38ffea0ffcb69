//! The CAR slice inside an event: its blocks, their values, and finding one by CID.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use codec::CidRef;
use codec::car::{self, Sections};
use codec::cbor::{self, DecodeError, Reader, Value};

use super::Block;
use super::decoder::{Options, Values};
use super::error::{FrameError, FrameFault, fail};

/// A CAR slice, split and decoded but not hashed.
pub(super) struct Blocks<'a> {
    pub(super) car: &'a [u8],
    pub(super) root: Option<CidRef<'a>>,
    pub(super) blocks: &'a [Block<'a>],
}

/// Reads the byte string at the reader as a CAR slice.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    options: &Options,
    arena: &'a Bump,
) -> Result<Blocks<'a>, FrameError> {
    let start = reader.offset();
    let car = reader.bytes()?;
    if car.len() > options.max_blocks_bytes {
        return fail(start, FrameFault::BlocksLimit(options.max_blocks_bytes));
    }
    let car_at = reader.offset() - car.len();
    let in_car = |error| FrameError::in_car(error, car_at);
    let sections = Sections::new(car, &options.car()).map_err(in_car)?;
    let root = sections.roots().first();
    let mut blocks = ArenaVec::with_capacity_in(USUAL_BLOCKS, arena);
    for section in sections {
        let section = section.map_err(in_car)?;
        let car::Block { cid, data, .. } = section;
        blocks.push(Block { cid, data, value: None, proof: options.proof_of(cid) });
        if cid.is_dag_cbor() {
            let value = &mut blocks.last_mut().expect("just pushed").value;
            decode(data, options.values, arena, value)
                .map_err(|error| FrameError::in_block(error, car_at + section.data_offset()))?;
        }
    }
    Ok(Blocks { car, root, blocks: blocks.into_bump_slice() })
}

#[inline]
fn decode<'a>(
    data: &'a [u8],
    values: Values,
    arena: &'a Bump,
    value: &mut Option<Value<'a>>,
) -> Result<(), DecodeError> {
    match values {
        Values::Build => cbor::decode_into(data, arena, value.insert(Value::Null)),
        Values::ValidateOnly => cbor::validate(data),
    }
}

/// Finds blocks by CID at a cost that stays linear in the frame, whatever the frame.
pub(super) enum Index<'a> {
    /// Few enough pairs to look at each block each time.
    Unsorted(&'a [Block<'a>]),
    /// Sorted by CID; of equal ones the first in the archive comes first.
    Sorted(&'a [&'a Block<'a>]),
}

impl<'a> Index<'a> {
    pub(super) fn new(blocks: &'a [Block<'a>], lookups: usize, arena: &'a Bump) -> Self {
        if blocks.len() * lookups <= UNSORTED_PAIRS {
            return Self::Unsorted(blocks);
        }
        let sorted = arena.alloc_slice_fill_iter(blocks);
        sorted.sort_by_key(|block| block.cid);
        Self::Sorted(sorted)
    }

    pub(super) fn get(&self, cid: CidRef<'_>) -> Option<&'a Block<'a>> {
        match self {
            Self::Unsorted(blocks) => blocks.iter().find(|block| block.cid == cid),
            Self::Sorted(blocks) => {
                let at = blocks.partition_point(|block| block.cid < cid);
                blocks.get(at).copied().filter(|block| block.cid == cid)
            }
        }
    }
}

/// Up to this many comparisons, looking at each block is cheaper than sorting.
const UNSORTED_PAIRS: usize = 256;

/// Most commits have seven to twelve blocks.
const USUAL_BLOCKS: usize = 16;
