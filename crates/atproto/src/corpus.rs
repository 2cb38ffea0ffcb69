//! Files of firehose frames, the format in which benchmarks share captures.
//!
//! | part | bytes |
//! |---|---|
//! | count | 4, big-endian |
//! | each frame | 4 bytes of length, big-endian, and the frame |

/// Why bytes are not a file of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorpusError {
    /// The file ends inside its count.
    #[error("a file of frames starts with a count of 4 bytes")]
    NoCount,
    /// The file ends before a frame does.
    #[error("at byte {offset}: the file ends inside frame {index} of {count}")]
    Truncated {
        /// Bytes from the start of the file to the frame's length.
        offset: usize,
        /// The frame's index, from 0.
        index: usize,
        /// The number of frames that the file states.
        count: usize,
    },
    /// Bytes follow the last frame.
    #[error("at byte {0}: bytes follow the last frame")]
    TrailingBytes(usize),
}

/// Reads the frames of a file, in order.
///
/// # Errors
/// If the file does not consist of exactly the frames that it states.
///
/// ```
/// use wireproof::atproto::corpus;
/// let file = corpus::write([b"frame".as_slice(), b""]);
/// assert_eq!(corpus::read(&file).unwrap(), [b"frame".as_slice(), b""]);
/// ```
pub fn read(file: &[u8]) -> Result<Vec<&[u8]>, CorpusError> {
    frames(file).map(Frames::collect)
}

/// Checks that a file consists of the frames that it states, and iterates over them without a list of them
/// in memory.
///
/// # Errors
/// If the file does not consist of exactly the frames that it states.
///
/// ```
/// use wireproof::atproto::corpus;
/// let file = corpus::write([b"frame".as_slice(), b""]);
/// assert!(corpus::frames(&file).unwrap().eq([b"frame".as_slice(), b""]));
/// assert!(corpus::frames(&file[1..]).is_err());
/// ```
pub fn frames(file: &[u8]) -> Result<Frames<'_>, CorpusError> {
    let Some((count, frames)) = file.split_first_chunk() else {
        return Err(CorpusError::NoCount);
    };
    let (count, mut rest) = (u32::from_be_bytes(*count) as usize, frames);
    for index in 0..count {
        let offset = file.len() - rest.len();
        let Some((_, others)) = split_frame(rest) else {
            return Err(CorpusError::Truncated { offset, index, count });
        };
        rest = others;
    }
    if rest.is_empty() {
        Ok(Frames { rest: frames, count })
    } else {
        Err(CorpusError::TrailingBytes(file.len() - rest.len()))
    }
}

/// The frames of a file, in order.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    /// The frames that follow, each after its length.
    rest: &'a [u8],
    /// Their number.
    count: usize,
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (frame, rest) = split_frame(self.rest)?;
        self.rest = rest;
        self.count -= 1;
        Some(frame)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Frames<'_> {}

fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}

/// Writes a file of `frames`, in order.
///
/// # Panics
/// If there are 2³² frames or more, or one is 4 GiB or longer.
pub fn write<'f>(frames: impl IntoIterator<Item = &'f [u8]>) -> Vec<u8> {
    let mut file = vec![0; 4];
    let mut count = 0u32;
    for frame in frames {
        let len = u32::try_from(frame.len()).expect("a frame shorter than 4 GiB");
        file.extend(len.to_be_bytes());
        file.extend(frame);
        count = count.checked_add(1).expect("fewer than 2^32 frames");
    }
    file[..4].copy_from_slice(&count.to_be_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_truncation_and_any_trailing_byte_is_rejected() {
        let file = write([b"one".as_slice(), b"three", b""]);
        assert_eq!(read(&file).unwrap().len(), 3);
        for cut in 0..file.len() {
            assert!(read(&file[..cut]).is_err(), "cut at {cut}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert_eq!(read(&longer), Err(CorpusError::TrailingBytes(file.len())));
    }

    #[test]
    fn a_stated_count_or_length_beyond_the_file_is_rejected_without_reserving_it() {
        assert_eq!(
            read(&[0xff; 4]),
            Err(CorpusError::Truncated { offset: 4, index: 0, count: u32::MAX as usize })
        );
        assert!(read(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0]).is_err());
    }
}
