//! Closed segments that stay in the folder for readers, up to a size and an age.

use std::fs::{self, File};
use std::io;

use base::crash_point;

use super::segment::{Segment, kept_path, segments};
use super::writer::Wal;
use crate::error::ArchiveError;

impl Wal {
    /// Keeps a closed segment for readers: it will not be sealed.
    ///
    /// # Errors
    /// If its file cannot be renamed.
    pub fn keep(&self, segment: &Segment) -> Result<(), ArchiveError> {
        let name = segment.path.display().to_string();
        let failed = ArchiveError::at::<io::Error>(&name);
        let renamed = segment.len().and_then(|len| {
            fs::rename(&segment.path, kept_path(self.folder(), segment.number))?;
            crash_point("archive/kept");
            File::open(self.folder())?.sync_all()?;
            Ok(len)
        });
        self.release(segment.number, renamed.map_err(failed)?);
        Ok(())
    }

    /// Deletes kept segments, oldest first, while all segments together have more than `max_bytes`, or while the oldest has no
    /// event that arrived after `cutoff`. Returns their number.
    ///
    /// # Errors
    /// If a file cannot be deleted.
    pub fn forget_kept(&self, max_bytes: u64, cutoff: i64) -> Result<u64, ArchiveError> {
        let mut forgotten = 0;
        loop {
            let Some(number) = self.shared().catalogue().due(max_bytes, cutoff) else {
                return Ok(forgotten);
            };
            let path = kept_path(self.folder(), number);
            if !path.exists() {
                // It is not sealed yet.
                return Ok(forgotten);
            }
            // From now on no reader begins in it.
            self.shared().catalogue().remove(number);
            let name = path.display().to_string();
            fs::remove_file(&path).map_err(ArchiveError::at::<io::Error>(&name))?;
            forgotten += 1;
        }
    }

    /// The arrival after which every event can be read; 0 if no event was deleted.
    pub fn floor(&self) -> i64 {
        self.shared().catalogue().floor()
    }

    /// The arrival after which no event is sealed yet: all that arrived before are in the archive, if all closed segments are
    /// sealed and none is kept otherwise.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn sealed_until(&self) -> Result<i64, ArchiveError> {
        let name = self.folder().display().to_string();
        let unsealed = segments(self.folder()).map_err(ArchiveError::at::<io::Error>(&name))?;
        let first = unsealed.iter().find_map(|of| self.shared().catalogue().get(of.number));
        Ok(first.map_or_else(|| *self.stored().borrow(), |bounds| bounds.before))
    }

    /// The arrival of the first event that can be read.
    pub fn first(&self) -> Option<i64> {
        self.shared().catalogue().first()
    }
}
