//! Which bytes are the units of work?
//!
//! | bytes | what |
//! |---|---|
//! | 4 | number of frames, big-endian |
//! | 4 | length of the next frame, big-endian |
//! | … | the frame; then the next length |

use std::fs;
use std::ops::Range;

/// The frames of some files, in memory.
pub(crate) struct Corpus {
    bytes: Vec<u8>,
    // Each lies within `bytes`.
    units: Vec<Range<usize>>,
}

impl Corpus {
    pub(crate) fn read<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut corpus = Corpus { bytes: Vec::new(), units: Vec::new() };
        for path in paths {
            let file = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
            corpus.append(&file).ok_or_else(|| format!("{path}: not a file of frames"))?;
        }
        Ok(corpus)
    }

    pub(crate) fn units(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.units.iter().map(|range| &self.bytes[range.clone()])
    }

    /// Bytes of all units together, without the lengths between them.
    pub(crate) fn unit_bytes(&self) -> usize {
        self.units().map(<[u8]>::len).sum()
    }

    /// Takes in one file, or nothing of it if its lengths do not add up.
    fn append(&mut self, file: &[u8]) -> Option<()> {
        let base = self.bytes.len();
        let units = split(file)?;
        self.units.extend(units.into_iter().map(|unit| base + unit.start..base + unit.end));
        self.bytes.extend_from_slice(file);
        Some(())
    }
}

fn split(file: &[u8]) -> Option<Vec<Range<usize>>> {
    let count = u32_at(file, 0)?;
    let mut offset = 4_usize;
    let mut units = Vec::new();
    for _ in 0..count {
        let start = offset + 4;
        let end = start.checked_add(u32_at(file, offset)?)?;
        file.get(start..end)?;
        units.push(start..end);
        offset = end;
    }
    (offset == file.len()).then_some(units)
}

fn u32_at(file: &[u8], offset: usize) -> Option<usize> {
    let bytes = file.get(offset..)?.first_chunk()?;
    usize::try_from(u32::from_be_bytes(*bytes)).ok()
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
    fn a_file_that_ends_early_or_late_is_refused() {
        let file = [0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3];
        assert_eq!(split(&file[..9]), None);
        assert_eq!(split(&file), None);
        assert!(split(&file[..10]).is_some());
    }
}
