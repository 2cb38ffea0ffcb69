//! Reads the stored events of a log while it is written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::record::{
    self, GROUP_HEADER_LEN, SEGMENT_HEADER_LEN, Salt, SegmentHeader, group_header, group_len,
};
use super::segment::{kept_path, segment_path};
use super::writer::{Shared, Wal};
use crate::error::{ArchiveError, ArchiveFault};
use crate::event::ArchivedEvent;

/// Reads the stored events of a log in order of arrival, from any arrival on.
#[derive(Debug)]
pub struct WalReader {
    shared: Arc<Shared>,
    folder: PathBuf,
    after: i64,
    open: Option<OpenSegment>,
}

/// The segment that is read.
#[derive(Debug)]
struct OpenSegment {
    number: u64,
    path: PathBuf,
    file: File,
    salt: Salt,
    /// Where the next group begins.
    offset: u64,
}

/// Events that were stored together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredGroup {
    records: Bytes,
}

impl Wal {
    /// A reader of the events that arrived after this arrival.
    pub fn reader(&self, after: i64) -> WalReader {
        let (shared, folder) = (self.shared().clone(), self.folder().to_owned());
        WalReader { shared, folder, after, open: None }
    }
}

impl WalReader {
    /// The next events; `None` at the end, until more are stored. Events that were [forgotten](Wal::forget_kept) are skipped.
    ///
    /// # Errors
    /// If a segment cannot be read, or is damaged.
    pub fn next_group(&mut self) -> Result<Option<StoredGroup>, ArchiveError> {
        loop {
            let Some(open) = self.open_segment()? else { return Ok(None) };
            let number = open.number;
            let known = self.shared.catalogue().get(number);
            let open = self.open.as_mut().expect("it was opened");
            let len = match known {
                Some(bounds) => bounds.len,
                // Forgotten meanwhile: the open file is still whole.
                None => open.file.metadata().map_err(open.failed())?.len(),
            };
            if open.offset < len {
                let group = open.read_group(len)?;
                let last = group.events().last().map(|event| event.arrival);
                if let Some(last) = last.filter(|last| *last > self.after) {
                    self.after = last;
                    return Ok(Some(group));
                }
                continue;
            }
            let following = self.shared.catalogue().segment_following(number);
            // A segment that is closed gets no more groups; its length is read after this is known.
            let is_read = following.is_some()
                && self.shared.catalogue().get(number).is_none_or(|bounds| bounds.len <= len);
            match following {
                Some(following) if is_read => self.open = self.open_number(following)?,
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The segment that is read, which is opened if none is.
    fn open_segment(&mut self) -> Result<Option<&OpenSegment>, ArchiveError> {
        while self.open.is_none() {
            let number = self.shared.catalogue().segment_after(self.after);
            let Some(number) = number else { return Ok(None) };
            self.open = self.open_number(number)?;
            if let Some(open) = &mut self.open {
                let len = self.shared.catalogue().get(number).map_or(0, |bounds| bounds.len);
                open.skip_to(self.after, len)?;
            }
        }
        Ok(self.open.as_ref())
    }

    /// Opens a segment under the name that it has now; `None` if it was forgotten meanwhile.
    fn open_number(&self, number: u64) -> Result<Option<OpenSegment>, ArchiveError> {
        // It can be renamed once, from the first name to the second.
        for path in [segment_path(&self.folder, number), kept_path(&self.folder, number)] {
            match File::open(&path) {
                Ok(file) => return OpenSegment::new(number, path, file).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ArchiveError::new(path.display().to_string(), error)),
            }
        }
        Ok(None)
    }
}

impl OpenSegment {
    fn new(number: u64, path: PathBuf, mut file: File) -> Result<Self, ArchiveError> {
        let name = path.display().to_string();
        let mut header = [0; SEGMENT_HEADER_LEN];
        file.read_exact(&mut header).map_err(ArchiveError::at::<io::Error>(&name))?;
        let header = SegmentHeader::of_bytes(&header).ok_or_else(|| damaged(&name, 0))?;
        Ok(Self { number, path, file, salt: header.salt, offset: SEGMENT_HEADER_LEN as u64 })
    }

    /// Skips the groups before the one that can have the first event after an arrival.
    fn skip_to(&mut self, after: i64, len: u64) -> Result<(), ArchiveError> {
        let mut next = self.offset;
        while next < len {
            let mut start = [0; GROUP_HEADER_LEN + 12];
            let read = self.file.seek(SeekFrom::Start(next));
            read.and_then(|_| self.file.read_exact(&mut start)).map_err(self.failed())?;
            let (header, records) = start.split_first_chunk().expect("the header is shorter");
            let group = group_len(self.salt, header).zip(record::first_arrival(records));
            let (bytes, first) = group.ok_or_else(|| self.damaged(next))?;
            if first > after {
                return Ok(());
            }
            self.offset = next;
            next += (GROUP_HEADER_LEN + bytes) as u64;
        }
        Ok(())
    }

    /// Reads the next group, of which all is on the disk.
    fn read_group(&mut self, len: u64) -> Result<StoredGroup, ArchiveError> {
        let mut header = [0; GROUP_HEADER_LEN];
        let read = self.file.seek(SeekFrom::Start(self.offset));
        read.and_then(|_| self.file.read_exact(&mut header)).map_err(self.failed())?;
        let start = self.offset + GROUP_HEADER_LEN as u64;
        let bytes = group_len(self.salt, &header).filter(|bytes| start + *bytes as u64 <= len);
        let bytes = bytes.ok_or_else(|| self.damaged(self.offset))?;
        let mut records = vec![0; bytes];
        self.file.read_exact(&mut records).map_err(self.failed())?;
        let is_whole = header == group_header(self.salt, &records)
            && record::read_records(&records, &mut Vec::new()).is_some();
        if !is_whole {
            return Err(self.damaged(self.offset));
        }
        self.offset = start + bytes as u64;
        Ok(StoredGroup { records: records.into() })
    }

    fn failed(&self) -> impl Fn(io::Error) -> ArchiveError {
        let name = self.path.display().to_string();
        move |error| ArchiveError::new(&*name, error)
    }

    fn damaged(&self, offset: u64) -> ArchiveError {
        damaged(&self.path.display().to_string(), offset)
    }
}

fn damaged(name: &str, offset: u64) -> ArchiveError {
    ArchiveError::new(name, ArchiveFault::DamagedLog { offset, reason: "a damaged group" })
}

impl StoredGroup {
    /// The events, in order of arrival.
    pub fn events(&self) -> Vec<ArchivedEvent<'_>> {
        let mut events = Vec::new();
        // Checked when the group was read.
        let _ = record::read_records(&self.records, &mut events);
        events
    }

    /// The frame of one of these events. It shares the bytes of the group.
    pub fn frame(&self, event: &ArchivedEvent<'_>) -> Bytes {
        self.records.slice_ref(event.frame)
    }
}
