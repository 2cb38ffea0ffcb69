//! Seals closed segments into the tables.

use std::path::Path;
use std::{fs, io};

use base::crash_point;
use mapping::MappedFile;

use super::record;
use super::repeats::SealedEvents;
use super::segment::{Segment, sealed_path};
use super::writer::{Wal, write_file};
use crate::archive::Archive;
use crate::erasures::{ActiveAccounts, NoConfirmation};
use crate::error::{ArchiveError, ArchiveFault};
use crate::sealed::{Sealed, WorkId};

impl Wal {
    /// Seals a closed segment into the archive, and deletes it, or keeps it for readers. Done again after a crash at any point, it has the same
    /// result.
    ///
    /// # Errors
    /// If the segment is damaged, or the archive cannot be written. The segment stays.
    pub async fn seal(&self, segment: &Segment, archive: &Archive) -> Result<Sealed, ArchiveError> {
        self.seal_confirmed(segment, archive, &NoConfirmation).await
    }

    /// Seals a segment as [`seal`](Self::seal), with the events of erased accounts that their servers confirm to be active again.
    ///
    /// # Errors
    /// As [`seal`](Self::seal).
    pub async fn seal_confirmed(
        &self,
        segment: &Segment,
        archive: &Archive,
        servers: &dyn ActiveAccounts,
    ) -> Result<Sealed, ArchiveError> {
        let name = segment.path.display().to_string();
        let failed = |error: io::Error| ArchiveError::new(&*name, error);
        let bytes = MappedFile::open(&segment.path).map_err(failed)?;
        let read = record::read(&bytes).map_err(ArchiveError::at(&name))?;
        if read.len != bytes.len() as u64 {
            // An incomplete group was cut off before the segment was closed.
            let offset = read.len;
            let reason = "a damaged group at the end";
            return Err(ArchiveError::new(&*name, ArchiveFault::DamagedLog { offset, reason }));
        }
        let folder = self.folder();
        let before = SealedEvents::read(&sealed_path(folder, segment.number.wrapping_sub(1)))
            .map_err(failed)?;
        let mut these = SealedEvents::default();
        let is_new = |event: &_| these.insert(event) && !before.contains(event);
        let events = read.events.into_iter().filter(is_new).collect();
        let work = WorkId { writer: self.name().to_owned(), number: segment.number as i64 };
        let sealed = archive.seal_confirmed(events, &work, servers).await?;
        let listed = write_file(&sealed_path(folder, segment.number), &these.to_bytes());
        listed.map_err(failed)?;
        crash_point("archive/listed");
        if self.keeps_segments() {
            self.keep(segment)?;
        } else {
            self.shared().catalogue().remove(segment.number);
            fs::remove_file(&segment.path).map_err(failed)?;
            self.release(segment.number, bytes.len() as u64);
        }
        crash_point("archive/deleted");
        if let Some(before) = segment.number.checked_sub(1) {
            remove_if_there(&sealed_path(folder, before)).map_err(failed)?;
        }
        Ok(sealed)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
