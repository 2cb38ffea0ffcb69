//! The identity of a file, which another file under its name does not have.

use std::fs;

/// The device and the number of a file; `None` where the system has none.
pub(crate) fn identity(metadata: &fs::Metadata) -> Option<(u64, u64)> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}
