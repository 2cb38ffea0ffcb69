//! Reads the frames of an archive in order of arrival.
//!
//! Files are sorted by account. Those that overlap in time are read together: their frames go to a temporary file, and from
//! there in order of arrival. Memory holds 24 bytes for each event of such a group.

use std::io::{Seek, Write};
use std::ops::RangeInclusive;

use mapping::MappedFile;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::rows::FULL;
use crate::scan::EventScan;
use crate::table::Table;

/// A frame of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed<'a> {
    /// The archive's number of the event.
    pub arrival: i64,
    /// The frame as it came.
    pub frame: &'a [u8],
}

/// Files that overlap in time.
struct Group {
    arrivals: RangeInclusive<i64>,
    paths: Vec<String>,
}

impl Archive {
    /// Passes the frames of verified and unsigned events that are not hidden, from `since` on, to `on_frame`, in order of arrival, until that
    /// returns an error. Events without a frame are left out.
    ///
    /// # Errors
    /// If the archive cannot be read, or that of `on_frame`.
    pub async fn replay<E: From<ArchiveError>>(
        &self,
        since: i64,
        mut on_frame: impl FnMut(Replayed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for group in self.groups(since).await? {
            let (index, spilled) = self.spill(&group, since).await?;
            for Spilled { arrival, start, len } in index {
                on_frame(Replayed { arrival, frame: &spilled[start..start + len as usize] })?;
            }
        }
        Ok(())
    }

    /// The files with events from `since` on, in order.
    async fn groups(&self, since: i64) -> Result<Vec<Group>, ArchiveError> {
        let snapshot = self.snapshot(Table::Events).await?;
        let mut files: Vec<(RangeInclusive<i64>, String)> = snapshot
            .files
            .values()
            .map(|add| {
                let stats = add.stats();
                let bound = |values: &serde_json::Map<String, serde_json::Value>| {
                    values.get("arrival")?.as_i64()
                };
                // A file without stats can have any event.
                let first = bound(&stats.min_values).unwrap_or(i64::MIN);
                let last = bound(&stats.max_values).unwrap_or(i64::MAX);
                (first..=last, add.path.clone())
            })
            .filter(|(arrivals, _)| *arrivals.end() >= since)
            .collect();
        files.sort_by_key(|(arrivals, _)| *arrivals.start());
        let mut groups: Vec<Group> = Vec::new();
        for (arrivals, path) in files {
            match groups.last_mut() {
                Some(group) if group.arrivals.contains(arrivals.start()) => {
                    let end = *group.arrivals.end().max(arrivals.end());
                    group.arrivals = *group.arrivals.start()..=end;
                    group.paths.push(path);
                }
                _ => groups.push(Group { arrivals, paths: vec![path] }),
            }
        }
        Ok(groups)
    }

    /// Writes the frames of a group to a temporary file, and lists them in order of arrival.
    async fn spill(
        &self,
        group: &Group,
        since: i64,
    ) -> Result<(Vec<Spilled>, MappedFile), ArchiveError> {
        let failed = |error: std::io::Error| ArchiveError::new(self.storage().address(), error);
        let mut file = std::io::BufWriter::new(tempfile::tempfile().map_err(failed)?);
        let (mut index, mut start) = (Vec::new(), 0);
        let hidden = self.hide_list().await?;
        let mut scan =
            EventScan { hidden, scan: self.scan_files(group.paths.iter().cloned()).await? };
        while let Some(row) = scan.next().await? {
            let event = row.event();
            let is_replayed = event.is_verified() || event.verdict == "unchecked";
            if event.arrival < since || row.form() != FULL || !is_replayed {
                continue;
            }
            file.write_all(event.frame).map_err(failed)?;
            index.push(Spilled { arrival: event.arrival, start, len: event.frame.len() as u32 });
            start += event.frame.len();
        }
        let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.rewind().map_err(failed)?;
        index.sort_by_key(|spilled| spilled.arrival);
        Ok((index, MappedFile::of(&file).map_err(failed)?))
    }
}

/// The place of a frame in the temporary file.
struct Spilled {
    arrival: i64,
    start: usize,
    len: u32,
}
