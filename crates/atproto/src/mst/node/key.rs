//! The key that an entry stands for, put together from prefix and suffix.

use super::Entry;
use super::error::NodeFault;
use crate::mst::{Limit, MAX_KEY_BYTES};

/// The key of the entry that was read last: what the next one's prefix counts in.
#[derive(Clone, Debug)]
pub struct KeyBuffer {
    bytes: [u8; MAX_KEY_BYTES],
    // len <= MAX_KEY_BYTES
    len: usize,
}

impl KeyBuffer {
    /// Before the first entry.
    #[inline]
    pub fn new() -> Self {
        Self { bytes: [0; MAX_KEY_BYTES], len: 0 }
    }

    /// Goes back to before the first entry, for another node.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The key.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Goes on to the next entry of a node that was parsed, and answers its key.
    ///
    /// # Panics
    /// If the entry does not follow the one before: a node's entries start with a clear buffer.
    #[inline]
    pub fn advance(&mut self, entry: &Entry<'_>) -> &[u8] {
        assert!(entry.prefix_len <= self.len, "entries follow one another from a clear buffer");
        self.set(entry.prefix_len, entry.suffix);
        self.as_bytes()
    }

    /// Goes on to an entry that must follow the one before by the rules of a node.
    #[inline(always)]
    pub(super) fn try_advance(
        &mut self,
        prefix_len: usize,
        suffix: &[u8],
    ) -> Result<(), NodeFault> {
        let Some(first) = suffix.first() else { return Err(NodeFault::EmptyKey) };
        // The key before either ends with the prefix, or goes on with a lesser byte.
        let is_greater = match self.as_bytes().get(prefix_len) {
            Some(before) => before < first,
            None => prefix_len == self.len,
        };
        let len = prefix_len.saturating_add(suffix.len());
        if !is_greater || len > MAX_KEY_BYTES {
            return Err(self.fault(prefix_len, *first));
        }
        self.set(prefix_len, suffix);
        Ok(())
    }

    #[inline(always)]
    fn set(&mut self, prefix_len: usize, suffix: &[u8]) {
        let len = prefix_len + suffix.len();
        self.bytes[prefix_len..len].copy_from_slice(suffix);
        self.len = len;
    }

    #[cold]
    fn fault(&self, prefix_len: usize, first: u8) -> NodeFault {
        match self.as_bytes().get(prefix_len) {
            Some(before) if *before > first => NodeFault::Order,
            Some(before) if *before == first => NodeFault::Prefix,
            None if prefix_len > self.len => NodeFault::Prefix,
            _ => NodeFault::Limit(Limit::KeyBytes),
        }
    }
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self::new()
    }
}
