//! How long does each chunk of a pass take?

use std::time::Instant;

/// Notes the time of chunks that follow one another.
pub(super) struct ChunkClock {
    since: Instant,
    chunks_ns: Vec<u64>,
}

impl ChunkClock {
    pub(super) fn new() -> Self {
        Self { since: Instant::now(), chunks_ns: Vec::new() }
    }

    /// A pass begins.
    pub(super) fn start(&mut self) {
        self.chunks_ns.clear();
        self.since = Instant::now();
    }

    /// A chunk ends.
    #[inline]
    pub(super) fn lap(&mut self) {
        let now = Instant::now();
        self.chunks_ns.push((now - self.since).as_nanos() as u64);
        self.since = now;
    }

    /// The chunks of the last pass.
    pub(super) fn chunks_ns(&self) -> Vec<u64> {
        self.chunks_ns.clone()
    }
}
