//! Readers of the task files.
//!
//! A file of frames:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | number of frames, big-endian |
//! | 4 | length of the next frame, big-endian |
//! | … | the frame; then the next length |

use std::fs;
use std::ops::Range;

use protocol::{BoxError, Loaded};
use serde::de::DeserializeOwned;

/// The frames of some files, in memory.
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// All lie within `bytes`.
    ranges: Vec<Range<usize>>,
}

impl Frames {
    pub(crate) fn read<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, BoxError> {
        let mut frames = Frames { bytes: Vec::new(), ranges: Vec::new() };
        for path in paths {
            frames.append(&read(path)?).ok_or_else(|| format!("{path}: not a file of frames"))?;
        }
        Ok(frames)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.ranges.iter().map(|range| &self.bytes[range.clone()])
    }

    pub(crate) fn loaded(&self) -> Loaded {
        Loaded::of(self.iter().map(<[u8]>::len))
    }

    /// Appends one file, or nothing of it if its lengths do not add up.
    fn append(&mut self, file: &[u8]) -> Option<()> {
        let base = self.bytes.len();
        let ranges = split(file)?;
        self.ranges.extend(ranges.into_iter().map(|range| base + range.start..base + range.end));
        self.bytes.extend_from_slice(file);
        Some(())
    }
}

fn split(file: &[u8]) -> Option<Vec<Range<usize>>> {
    let count = u32_at(file, 0)?;
    let mut offset = 4_usize;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let start = offset + 4;
        let end = start.checked_add(u32_at(file, offset)?)?;
        file.get(start..end)?;
        ranges.push(start..end);
        offset = end;
    }
    (offset == file.len()).then_some(ranges)
}

fn u32_at(file: &[u8], offset: usize) -> Option<usize> {
    let bytes = file.get(offset..)?.first_chunk()?;
    usize::try_from(u32::from_be_bytes(*bytes)).ok()
}

/// Reads a file and its JSON sidecar.
pub(crate) fn read_pair<T: DeserializeOwned>(files: &[&str]) -> Result<(Vec<u8>, T), BoxError> {
    let [path, sidecar] = files else {
        return Err("the files are two: one to work on, and a JSON".into());
    };
    let json =
        serde_json::from_slice(&read(sidecar)?).map_err(|error| format!("{sidecar}: {error}"))?;
    Ok((read(path)?, json))
}

pub(crate) fn read(path: &str) -> Result<Vec<u8>, BoxError> {
    Ok(fs::read(path).map_err(|error| format!("{path}: {error}"))?)
}

/// Splits a big-endian number off the front.
pub(crate) fn split_u32(rest: &mut &[u8]) -> Option<u32> {
    rest.split_off(..4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Splits off a slice that is prefixed with its length in two bytes.
pub(crate) fn split_prefixed<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = rest.split_off(..2)?.try_into().ok().map(u16::from_be_bytes)?;
    rest.split_off(..usize::from(len))
}

/// A unique path for a file that a test writes.
#[cfg(test)]
pub(crate) fn scratch(name: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("runner-shell-{}-{number}-{name}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_split_by_their_lengths() {
        let file = [0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0];
        assert_eq!(split(&file), Some(vec![8..11, 15..15]));
    }

    #[test]
    fn a_truncated_or_extended_file_is_rejected() {
        let file = [0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3];
        assert_eq!(split(&file[..9]), None);
        assert_eq!(split(&file), None);
        assert!(split(&file[..10]).is_some());
    }
}
