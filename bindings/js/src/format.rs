//! Frames, archives and DAG-CBOR: every rule and every hash checked, and the places of the parts in the caller's bytes.

use atproto::event::{Decoder, Event, Options, Values, peek};
use codec::car::{self, Block, HashProof};
use codec::cbor;

use crate::fault::Fault;
use crate::slice::place;

/// Checks that `bytes` are one canonical item.
///
/// # Errors
/// At the item that breaks a rule.
pub fn check_cbor(bytes: &[u8]) -> Result<(), Fault> {
    Ok(cbor::validate(bytes)?)
}

/// Checks an archive; returns the places of its roots and its blocks: their number, offset and length of each root, then
/// [`BLOCK_FIELDS`] numbers a block.
///
/// # Errors
/// At the first part that breaks a rule, or does not match its hash.
pub fn car_places(bytes: &[u8]) -> Result<Vec<u32>, Fault> {
    let archive = car::read(bytes, &car::Options::default())?;
    let mut places = vec![archive.roots.len() as u32];
    for root in archive.roots.iter() {
        let cid = root.as_bytes();
        places.extend([place(bytes, cid) as u32, cid.len() as u32]);
    }
    archive.blocks.iter().for_each(|block| push_block(&mut places, bytes, block));
    Ok(places)
}

fn push_block(places: &mut Vec<u32>, bytes: &[u8], block: &Block<'_>) {
    let cid = block.cid.as_bytes();
    let cid_at = place(bytes, cid) as u32;
    places.extend([cid_at, cid.len() as u32, block.data.len() as u32, flags_of(block)]);
}

/// The flags of a block.
pub(crate) fn flags_of(block: &Block<'_>) -> u32 {
    let is_proved = u32::from(block.proof == HashProof::Checked);
    let is_canonical = u32::from(block.cid.is_dag_cbor() && cbor::validate(block.data).is_ok());
    is_proved | is_canonical << 1
}

/// Numbers that describe a block: offset of its CID, length of its CID, length of its data, which follows the CID, and two
/// flags: whether the hash is proved, and whether the data is canonical DAG-CBOR.
pub const BLOCK_FIELDS: usize = 4;

/// Reads frames that the caller writes into its memory, which it keeps for the next ones.
#[derive(Debug)]
pub struct FrameReader {
    decoder: Decoder,
    input: Vec<u8>,
    places: Vec<u32>,
}

impl Default for FrameReader {
    fn default() -> Self {
        let mut options = Options::default();
        options.values = Values::ValidateOnly;
        Self { decoder: Decoder::new(options), input: Vec::new(), places: Vec::new() }
    }
}

impl FrameReader {
    /// Room for a frame of `len` bytes.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        if self.input.len() < len || self.input.len() > MAX_KEPT_BYTES {
            // Nothing of the last frame is copied.
            self.input = vec![0; len];
        }
        &mut self.input[..len]
    }

    /// Checks the frame in the room and the hashes of its blocks; returns the offset of its payload, the number of its blocks, and
    /// [`BLOCK_FIELDS`] numbers a block.
    ///
    /// # Errors
    /// At the first part that breaks a rule, or does not match its hash.
    pub fn places(&mut self, len: usize) -> Result<&[u32], Fault> {
        let Self { decoder, input, places } = self;
        let frame = &input[..len.min(input.len())];
        let (_, payload_at) = peek(frame)?;
        let event: &Event<'_> = &decoder.decode(frame)?;
        let blocks = event.blocks();
        places.clear();
        places.extend([payload_at as u32, blocks.len() as u32]);
        for block in blocks {
            let cid = block.cid.as_bytes();
            let is_proved = u32::from(block.proof == HashProof::Checked);
            let flags = is_proved | u32::from(block.is_canonical) << 1;
            let cid_at = place(frame, cid) as u32;
            places.extend([cid_at, cid.len() as u32, block.data.len() as u32, flags]);
        }
        Ok(places)
    }
}

/// Maximum size of the room that is kept for the next frame, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;
