//! Writes the events of files of `events` to temporary files in order of arrival.
//!
//! A file of the table is sorted by account. One file is read at a time, and memory holds 16 bytes per event meanwhile.

use std::io::{self, BufWriter, Seek, Write};
use std::sync::Arc;

use mapping::MappedFile;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::event_rows::{EventColumns, EventRow};
use crate::rows::FULL;
use crate::scan::Scan;
use crate::spilled_file::{Entry, SpilledFile};
use crate::wal::record;

/// A file of the table in order of arrival, by its path in the table's folder.
pub(crate) async fn spilled(
    archive: &Archive,
    path: &str,
) -> Result<Arc<SpilledFile>, ArchiveError> {
    archive.spilled().get_or_spill(path, spill(archive, path)).await
}

/// Writes the verified and unsigned events of a file to temporary ones.
async fn spill(archive: &Archive, path: &str) -> Result<SpilledFile, ArchiveError> {
    let failed = |error: io::Error| ArchiveError::new(archive.storage().address(), error);
    let mut file = BufWriter::new(tempfile::tempfile().map_err(failed)?);
    let mut index = Vec::new();
    let mut start = 0;
    let mut record = Vec::new();
    let mut scan: Scan<EventColumns> = archive.scan_file(path).await?;
    while let Some(row) = scan.next().await? {
        let row = EventRow(row);
        let event = row.event();
        if !event.is_verified() && event.verdict != "unchecked" {
            continue;
        }
        // Other forms have no frame as it came.
        let frame = if row.form() == FULL { event.frame } else { &[] };
        record.clear();
        record::push(&mut record, &ArchivedEvent { frame, ..event });
        file.write_all(&record).map_err(failed)?;
        index.push(Entry { arrival: event.arrival, start });
        start += record.len() as u64;
    }
    let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    let records = MappedFile::of(&file).map_err(failed)?;
    SpilledFile::new(records, &mut index).map_err(failed)
}
