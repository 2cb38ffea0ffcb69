//! Prefetching an archive ahead of a sequential reader. The start of a section is known only after the one
//! before it, so that splitting an archive would wait for memory once a section.

use kernels::prefetch;

/// The prefetched part of an archive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefetcher {
    /// Offset of its end.
    end: usize,
}

impl Prefetcher {
    /// Prefetches the bytes after `offset`.
    #[inline]
    pub(super) fn advance(&mut self, bytes: &[u8], offset: usize) {
        let end = (offset + LOOKAHEAD_BYTES).min(bytes.len());
        // After a jump of the reader, skipped bytes are not prefetched.
        let start = self.end.clamp(offset.min(end), end);
        prefetch::bytes(&bytes[start..end]);
        self.end = start + (end - start).next_multiple_of(prefetch::LINE_BYTES);
    }
}

/// Bytes that are prefetched ahead of the reader.
const LOOKAHEAD_BYTES: usize = 16 << 10;
