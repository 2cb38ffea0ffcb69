//! The limits of a repository's verification.

use std::num::NonZeroUsize;

use atproto::mst::TreeLimits;
use codec::car;

/// Limits of a repository. Every rule is strict unless a field relaxes it, except the rules of records, which a field
/// makes strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Limits of the archive. Hashes are always checked, whatever `trust_hashes` says here.
    pub archive: car::Options,
    /// Limits of the tree.
    pub tree: TreeLimits,
    /// Maximum record size in bytes; a longer record is invalid.
    pub max_record_bytes: usize,
    /// Maximum number of blocks that the commit does not lead to. They are always counted.
    pub max_extra_blocks: u64,
    /// Maximum total size of such blocks in bytes.
    pub max_extra_bytes: u64,
    /// Rejects a repository with an [invalid record](crate::InvalidRecord), which otherwise is verified and
    /// reports the record.
    pub strict_records: bool,
    /// Accepts keys of the tree that are not a collection and a record key.
    pub allow_any_key: bool,
    /// Maximum number of threads that hash an archive from 4 MiB, the caller's among them. A [stream](super::stream) is
    /// hashed on the caller's.
    pub threads: NonZeroUsize,
}

impl Default for Options {
    /// The default limits of archives and trees, records of up to 1 MiB, any number of extra blocks,
    /// only record paths as keys, and one thread.
    fn default() -> Self {
        Self {
            archive: car::Options::default(),
            tree: TreeLimits::default(),
            max_record_bytes: 1 << 20,
            max_extra_blocks: u64::MAX,
            max_extra_bytes: u64::MAX,
            strict_records: false,
            allow_any_key: false,
            threads: NonZeroUsize::MIN,
        }
    }
}

impl Options {
    /// The options of the archive, with every hash checked.
    pub(super) fn checked_archive(&self) -> car::Options {
        let mut checked = self.archive;
        checked.trust_hashes = false;
        checked
    }
}
