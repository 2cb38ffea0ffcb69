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
    let Some((count, mut rest)) = file.split_first_chunk() else {
        return Err(CorpusError::NoCount);
    };
    let count = u32::from_be_bytes(*count) as usize;
    // Each frame takes at least the bytes of its length, so the reservation is bounded by the file.
    let mut frames = Vec::with_capacity(count.min(rest.len() / 4));
    for index in 0..count {
        let offset = file.len() - rest.len();
        let Some((frame, others)) = split_frame(rest) else {
            return Err(CorpusError::Truncated { offset, index, count });
        };
        frames.push(frame);
        rest = others;
    }
    if rest.is_empty() {
        Ok(frames)
    } else {
        Err(CorpusError::TrailingBytes(file.len() - rest.len()))
    }
}

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
