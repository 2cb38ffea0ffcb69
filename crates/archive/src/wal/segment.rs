//! Closed segments, and their files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::storage::refuse_link;

/// A closed segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

impl Segment {
    /// Size in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(fs::metadata(&self.path)?.len())
    }
}

/// The segments of a folder that are written or wait to be sealed, by number.
pub(super) fn segments(folder: &Path) -> io::Result<Vec<Segment>> {
    with_extension(folder, WRITTEN)
}

/// The segments of a folder that are kept, by number.
pub(super) fn kept_segments(folder: &Path) -> io::Result<Vec<Segment>> {
    with_extension(folder, KEPT)
}

fn with_extension(folder: &Path, extension: &str) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| segment_number(name, extension));
        if number.is_some() {
            // Segments are truncated and deleted: never the target of a link.
            refuse_link(&path)?;
        }
        segments.extend(number.map(|number| Segment { number, path }));
    }
    segments.sort();
    Ok(segments)
}

/// The number of a segment by its name.
fn segment_number(name: &str, extension: &str) -> Option<u64> {
    let digits = name.strip_suffix(extension)?.strip_suffix('.')?;
    let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.{WRITTEN}"))
}

pub(super) fn kept_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.{KEPT}"))
}

pub(super) fn sealed_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.sealed"))
}

const WRITTEN: &str = "wal";
const KEPT: &str = "kept";
