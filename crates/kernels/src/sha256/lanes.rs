//! The lane scheduler that the back ends for many messages share.
//!
//! ```text
//! give each lane a message
//! while enough lanes have one:  fold the next block of every lane;
//!                               a lane whose message ended writes its digest and takes the next
//! when no message waits and few lanes are busy: move those to a narrower engine
//! ```
//!
//! An idle lane folds a stale block, and its state is ignored.

use super::portable::{self, Block, to_digest};
use super::{Digest, INITIAL};

/// `N` SHA-256 states that move forward together.
pub(super) trait Engine<const N: usize> {
    /// All lanes at some state.
    fn new() -> Self;
    /// Sets one lane's state.
    fn set(&mut self, lane: usize, state: &[u32; 8]);
    /// Sets one lane's state to the one before the first block.
    #[inline]
    fn begin(&mut self, lane: usize) {
        self.set(lane, &INITIAL);
    }
    /// One lane's state.
    fn get(&self, lane: usize) -> [u32; 8];
    /// Folds one block into every lane.
    fn compress(&mut self, blocks: &[&Block; N]);
    /// As [`portable::pad_into`].
    #[inline]
    fn pad_into(blocks: &mut [Block; 2], tail: &[u8], message_len: usize) -> usize {
        portable::pad_into(blocks, tail, message_len)
    }
    /// With fewer busy lanes than this, [`Engine::narrow`] is faster.
    fn narrow_below() -> usize {
        0
    }
    /// Finishes messages on an engine with fewer lanes.
    fn narrow(_left: Halfway<'_, '_>, _digests: &mut [Digest]) {
        unreachable!("an engine with a narrowing bound implements `narrow`");
    }
}

/// A message in progress, or the rest of the last one in an idle lane.
#[derive(Clone, Copy)]
pub(super) struct Lane<'m> {
    /// Index of the message, and of its digest.
    index: usize,
    /// Whole blocks not yet folded.
    whole: &'m [Block],
    /// The padded end of the message: `padded[next_padded..padded_len]` is not yet folded.
    padded: [Block; 2],
    next_padded: usize,
    padded_len: usize,
}

impl<'m> Lane<'m> {
    const IDLE: Self =
        Self { index: 0, whole: &[], padded: [[0; 64]; 2], next_padded: 0, padded_len: 0 };

    #[inline]
    pub(super) fn start<const N: usize, E: Engine<N>>(&mut self, index: usize, message: &'m [u8]) {
        let (whole, tail) = message.as_chunks();
        self.index = index;
        self.whole = whole;
        self.next_padded = 0;
        self.padded_len = E::pad_into(&mut self.padded, tail, message.len());
    }

    /// The number of blocks not yet folded.
    #[inline]
    fn left(&self) -> usize {
        self.whole.len() + self.padded_len - self.next_padded
    }

    #[inline]
    fn block(&self) -> &Block {
        match self.whole {
            [next, ..] => next,
            [] => &self.padded[self.next_padded & 1],
        }
    }

    /// Steps over the block just folded.
    #[inline]
    fn advance(&mut self) {
        // Without a branch, which could not be predicted.
        let is_whole = usize::from(!self.whole.is_empty());
        self.whole = &self.whole[is_whole..];
        self.next_padded += 1 - is_whole;
    }
}

/// A supply of messages for lanes.
pub(super) trait Source<'m> {
    /// Starts the next message in a lane of the engine. Returns `false` if there is none.
    fn start_next<const N: usize, E: Engine<N>>(
        &mut self,
        engine: &mut E,
        at: usize,
        lane: &mut Lane<'m>,
    ) -> bool;
    /// Whether no message is left.
    fn is_empty(&self) -> bool;
}

/// Messages from their beginning.
struct Fresh<'s, 'm> {
    messages: &'s [&'m [u8]],
    next: usize,
}

impl<'m> Source<'m> for Fresh<'_, 'm> {
    #[inline]
    fn start_next<const N: usize, E: Engine<N>>(
        &mut self,
        engine: &mut E,
        at: usize,
        lane: &mut Lane<'m>,
    ) -> bool {
        let Some(message) = self.messages.get(self.next) else { return false };
        lane.start::<N, E>(self.next, message);
        engine.begin(at);
        self.next += 1;
        true
    }

    fn is_empty(&self) -> bool {
        self.next == self.messages.len()
    }
}

/// Messages that another engine has started.
pub(super) struct Halfway<'s, 'm> {
    left: &'s [(Lane<'m>, [u32; 8])],
}

impl<'m> Source<'m> for Halfway<'_, 'm> {
    fn start_next<const N: usize, E: Engine<N>>(
        &mut self,
        engine: &mut E,
        at: usize,
        lane: &mut Lane<'m>,
    ) -> bool {
        let Some(((message, state), left)) = self.left.split_first() else { return false };
        self.left = left;
        *lane = *message;
        engine.set(at, state);
        true
    }

    fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

/// The digest of one message, without the scheduler: of a short message that is a good part of the time.
#[inline]
pub(super) fn digest<E: Engine<1>>(message: &[u8]) -> Digest {
    let mut engine = E::new();
    let (whole, tail) = message.as_chunks();
    whole.iter().for_each(|block| engine.compress(&[block]));
    let mut padded = Aligned([[0; 64]; 2]);
    let used = E::pad_into(&mut padded.0, tail, message.len());
    padded.0[..used].iter().for_each(|block| engine.compress(&[block]));
    to_digest(&engine.get(0))
}

/// Blocks in cache lines of their own: one that was written as a whole across two is read later.
#[repr(align(64))]
struct Aligned([Block; 2]);

/// Writes the digest of every message, computed by `E`.
pub(super) fn run<const N: usize, E: Engine<N>>(messages: &[&[u8]], digests: &mut [Digest]) {
    if !messages.is_empty() {
        drive::<N, E>(Fresh { messages, next: 0 }, digests);
    }
}

/// Finishes every message of `source` by `E`.
#[inline]
pub(super) fn drive<'m, const N: usize, E: Engine<N>>(
    mut source: impl Source<'m>,
    digests: &mut [Digest],
) {
    let mut engine = E::new();
    let mut lanes = [Lane::IDLE; N];
    // Blocks that a lane has not yet folded; for an idle lane, a number that never reaches zero.
    let mut left = [IDLE; N];
    let mut busy = 0;
    for (at, lane) in lanes.iter_mut().enumerate() {
        if !source.start_next(&mut engine, at, lane) {
            break;
        }
        left[at] = lane.left();
        busy += 1;
    }
    while busy > 0 {
        if busy < E::narrow_below() && source.is_empty() {
            return narrow(&engine, &lanes, &left, digests);
        }
        // In a loop: the compiler does not always see through `map`.
        let mut blocks = [&lanes[0].padded[0]; N];
        for (block, lane) in blocks.iter_mut().zip(&lanes) {
            *block = lane.block();
        }
        engine.compress(&blocks);
        let mut ended = 0_u64;
        for (at, (lane, left)) in lanes.iter_mut().zip(&mut left).enumerate() {
            lane.advance();
            *left -= 1;
            ended |= u64::from(*left == 0) << at;
        }
        while ended != 0 {
            let at = ended.trailing_zeros() as usize;
            ended &= ended - 1;
            let lane = &mut lanes[at];
            digests[lane.index] = to_digest(&engine.get(at));
            left[at] = if source.start_next(&mut engine, at, lane) {
                lane.left()
            } else {
                busy -= 1;
                IDLE
            };
        }
    }
}

#[cold]
fn narrow<const N: usize, E: Engine<N>>(
    engine: &E,
    lanes: &[Lane<'_>; N],
    blocks_left: &[usize; N],
    digests: &mut [Digest],
) {
    let mut left = [(Lane::IDLE, INITIAL); N];
    let mut count = 0;
    let is_busy = |at: &usize| blocks_left[*at] < IDLE / 2;
    for at in (0..N).filter(is_busy) {
        left[count] = (lanes[at], engine.get(at));
        count += 1;
    }
    E::narrow(Halfway { left: &left[..count] }, digests);
}

/// The blocks left of a lane without a message: a count that never reaches zero.
const IDLE: usize = usize::MAX;
