//! Decompression with a limit: one frame of Zstandard with a checksum of its content, and nothing after it.

use std::io::Read;

use zstd::stream::read::Decoder;
use zstd::zstd_safe;

use super::{Limit, MAX_BLOCK_BYTES, Place, SegmentError, SegmentFault};

/// The content of a frame, of exactly `stated` bytes if a length is stated.
///
/// # Errors
/// If the bytes are not one whole frame, its content has no checksum, a wrong one or a wrong length, or is too long.
pub(super) fn decompress(
    frame: &[u8],
    stated: Option<u32>,
    place: Place,
) -> Result<Vec<u8>, SegmentError> {
    let broken = |why: &str| SegmentError::at(place, SegmentFault::Compression(why.into()));
    // The second byte of a header, after the magic number of four bytes, says whether a checksum follows the content.
    let descriptor = frame.get(4).ok_or_else(|| broken("too short"))?;
    let len = zstd_safe::find_frame_compressed_size(frame);
    match len.map_err(zstd_safe::get_error_name) {
        Ok(len) if len == frame.len() => {}
        Ok(_) => return Err(broken("bytes after the frame")),
        Err(why) => return Err(broken(why)),
    }
    if descriptor & CONTENT_CHECKSUM == 0 {
        return Err(SegmentError::at(place, SegmentFault::NoContentChecksum));
    }
    let over = || SegmentError::at(place, SegmentFault::Limit(Limit::BlockBytes));
    let max = stated.map_or(MAX_BLOCK_BYTES, u64::from);
    if max > MAX_BLOCK_BYTES {
        return Err(over());
    }
    let content = read(frame, max).map_err(|error| broken(&error.to_string()))?;
    match stated {
        Some(stated) if content.len() as u64 != u64::from(stated) => Err(broken("another length")),
        None if content.len() as u64 > max => Err(over()),
        _ => Ok(content),
    }
}

/// Reads up to one byte more than `max`.
fn read(frame: &[u8], max: u64) -> std::io::Result<Vec<u8>> {
    let mut decoder = Decoder::with_buffer(frame)?.single_frame();
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    let mut content = Vec::new();
    decoder.take(max + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// The bit of the frame header that says whether the content has a checksum.
const CONTENT_CHECKSUM: u8 = 1 << 2;

/// The window that a frame may ask for, as a power of two: 128 MiB.
const MAX_WINDOW_LOG: u32 = 27;
