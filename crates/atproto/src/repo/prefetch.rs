//! Bringing an archive into the cache before it is read.
//!
//! Where a section starts is known only when the one before it was looked at, so that splitting an
//! archive waits for memory once a section; lines that are asked for in order come before they are
//! needed.

use kernels::prefetch;

/// How much of an archive was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefetcher {
    /// Where the part that was asked for ends.
    asked: usize,
}

impl Prefetcher {
    /// Sees to it that what follows `offset` is on its way.
    #[inline]
    pub(super) fn advance(&mut self, bytes: &[u8], offset: usize) {
        let end = (offset + AHEAD_BYTES).min(bytes.len());
        // Where the reader jumps, what it left behind stays behind.
        let start = self.asked.clamp(offset.min(end), end);
        prefetch::bytes(&bytes[start..end]);
        self.asked = start + (end - start).next_multiple_of(prefetch::LINE_BYTES);
    }
}

/// How far ahead of what is read the archive is asked for.
const AHEAD_BYTES: usize = 16 << 10;
