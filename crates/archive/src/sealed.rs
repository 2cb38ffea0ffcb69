//! The identity of work that stores rows, and its result.

use std::ops::AddAssign;

use crate::delta::Add;

/// The name of a writer that seals events, and the number of its work: work with the same name and number is committed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkId {
    /// The writer: a name that no other writer uses.
    pub writer: String,
    /// Rises with every work of the writer.
    pub number: i64,
}

/// The result of sealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// Number of events.
    pub events: u64,
    /// Number of files.
    pub files: u64,
    /// Size of the files in bytes.
    pub bytes: u64,
}

impl Sealed {
    pub(crate) fn add_files(&mut self, added: &[Add]) {
        self.files += added.len() as u64;
        self.bytes += added.iter().map(|add| add.size).sum::<u64>();
    }
}

impl AddAssign for Sealed {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.files += other.files;
        self.bytes += other.bytes;
    }
}
