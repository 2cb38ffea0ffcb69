//! Signs at the start of a file that its content is wrapped: a byte order mark, or compression.
//!
//! Readers of CAR, DAG-CBOR and JSON reject such a file in any case; these signs let them name the reason.

/// The wrapping before, or around, the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrapping {
    /// The three bytes of a UTF-8 byte order mark, which JSON does not allow.
    #[error("begins with a byte order mark: remove its 3 bytes")]
    ByteOrderMark,
    /// A gzip stream.
    #[error("is gzip-compressed: decompress it first")]
    Gzip,
    /// A Zstandard frame.
    #[error("is Zstandard-compressed: decompress it first")]
    Zstd,
}

impl Wrapping {
    /// The wrapping of a file that begins with `start`, if it has one.
    ///
    /// ```
    /// use wireproof::codec::wrapping::Wrapping;
    /// assert_eq!(Wrapping::of(b"\xef\xbb\xbf{}"), Some(Wrapping::ByteOrderMark));
    /// assert_eq!(Wrapping::of(b"{}"), None);
    /// ```
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0xef, 0xbb, 0xbf, ..] => Some(Self::ByteOrderMark),
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapping_is_named_by_its_whole_sign() {
        let signs: [(&[u8], Wrapping); 3] = [
            (b"\xef\xbb\xbf", Wrapping::ByteOrderMark),
            (b"\x1f\x8b", Wrapping::Gzip),
            (b"\x28\xb5\x2f\xfd", Wrapping::Zstd),
        ];
        for (sign, wrapping) in signs {
            assert_eq!(Wrapping::of(sign), Some(wrapping));
            assert_eq!(Wrapping::of(&[sign, b"content"].concat()), Some(wrapping));
            assert_eq!(Wrapping::of(&sign[..sign.len() - 1]), None);
            assert_eq!(Wrapping::of(&[b" ", sign].concat()), None);
        }
    }
}
