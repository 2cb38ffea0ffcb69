//! Which message is in which lane: the scheduler that the many-at-once back ends share.
//!
//! ```text
//! give each lane a message
//! while enough lanes have one:  fold the next block of every lane;
//!                               a lane whose message ended writes its digest and takes the next
//! when no message waits and few lanes are left: hand those to a narrower engine
//! ```
//!
//! A lane that has nothing to do folds a stale block, and nobody looks at its state.

use super::portable::{Block, pad_into, to_digest};
use super::{Digest, INITIAL};

/// `N` SHA-256 states that move forward together.
pub(super) trait Engine<const N: usize> {
    /// All lanes at some state.
    fn new() -> Self;
    /// Sets one lane's state.
    fn set(&mut self, lane: usize, state: &[u32; 8]);
    /// One lane's state.
    fn get(&self, lane: usize) -> [u32; 8];
    /// Folds one block into each lane.
    fn compress(&mut self, blocks: &[&Block; N]);
    /// With fewer busy lanes than this, [`Engine::narrow`] is the faster way.
    fn narrow_below() -> usize {
        0
    }
    /// Finishes messages on an engine with fewer lanes.
    fn narrow(_left: Halfway<'_, '_>, _digests: &mut [Digest]) {
        unreachable!("an engine that asks to narrow says how");
    }
}

/// A message on its way, or what is left of the last one in an idle lane.
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
    fn start(&mut self, index: usize, message: &'m [u8]) {
        let (whole, tail) = message.as_chunks();
        self.index = index;
        self.whole = whole;
        self.next_padded = 0;
        self.padded_len = pad_into(&mut self.padded, tail, message.len());
    }

    #[inline]
    fn is_busy(&self) -> bool {
        self.next_padded < self.padded_len
    }

    #[inline]
    fn block(&self) -> &Block {
        match self.whole {
            [next, ..] => next,
            [] => &self.padded[self.next_padded & 1],
        }
    }

    /// Steps over the block just folded. True if it was the message's last.
    #[inline]
    fn advance(&mut self) -> bool {
        if let [_, rest @ ..] = self.whole {
            self.whole = rest;
            return false;
        }
        let was_busy = self.is_busy();
        self.next_padded += usize::from(was_busy);
        was_busy && !self.is_busy()
    }
}

/// Where lanes get their work from.
pub(super) trait Source<'m> {
    /// Fills `lane`, and answers the state that its message starts from; `None` when all is given.
    fn next_into(&mut self, lane: &mut Lane<'m>) -> Option<[u32; 8]>;
    /// True when all is given.
    fn is_empty(&self) -> bool;
}

/// Messages from their beginning.
struct Fresh<'s, 'm> {
    messages: &'s [&'m [u8]],
    next: usize,
}

impl<'m> Source<'m> for Fresh<'_, 'm> {
    #[inline]
    fn next_into(&mut self, lane: &mut Lane<'m>) -> Option<[u32; 8]> {
        let message = self.messages.get(self.next)?;
        lane.start(self.next, message);
        self.next += 1;
        Some(INITIAL)
    }

    fn is_empty(&self) -> bool {
        self.next == self.messages.len()
    }
}

/// Messages that another engine has begun.
pub(super) struct Halfway<'s, 'm> {
    left: &'s [(Lane<'m>, [u32; 8])],
}

impl<'m> Source<'m> for Halfway<'_, 'm> {
    fn next_into(&mut self, lane: &mut Lane<'m>) -> Option<[u32; 8]> {
        let ((message, state), left) = self.left.split_first()?;
        self.left = left;
        *lane = *message;
        Some(*state)
    }

    fn is_empty(&self) -> bool {
        self.left.is_empty()
    }
}

/// Writes the digest of each message by way of `E`.
pub(super) fn run<const N: usize, E: Engine<N>>(messages: &[&[u8]], digests: &mut [Digest]) {
    drive::<N, E>(Fresh { messages, next: 0 }, digests);
}

/// Finishes each message of `source` by way of `E`.
#[inline]
pub(super) fn drive<'m, const N: usize, E: Engine<N>>(
    mut source: impl Source<'m>,
    digests: &mut [Digest],
) {
    let mut engine = E::new();
    let mut lanes = [Lane::IDLE; N];
    let mut busy = 0;
    for (at, lane) in lanes.iter_mut().enumerate() {
        let Some(state) = source.next_into(lane) else { break };
        engine.set(at, &state);
        busy += 1;
    }
    while busy > 0 {
        if busy < E::narrow_below() && source.is_empty() {
            return narrow(&engine, &lanes, digests);
        }
        engine.compress(&lanes.each_ref().map(Lane::block));
        for (at, lane) in lanes.iter_mut().enumerate() {
            if !lane.advance() {
                continue;
            }
            digests[lane.index] = to_digest(&engine.get(at));
            match source.next_into(lane) {
                Some(state) => engine.set(at, &state),
                None => busy -= 1,
            }
        }
    }
}

#[cold]
fn narrow<const N: usize, E: Engine<N>>(engine: &E, lanes: &[Lane<'_>; N], digests: &mut [Digest]) {
    let mut left = [(Lane::IDLE, INITIAL); N];
    let mut count = 0;
    for (at, lane) in lanes.iter().enumerate().filter(|(_, lane)| lane.is_busy()) {
        left[count] = (*lane, engine.get(at));
        count += 1;
    }
    E::narrow(Halfway { left: &left[..count] }, digests);
}
