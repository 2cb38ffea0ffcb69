//! The gzip coding of a body (RFC 1952), decoded in parts of bounded size as it is received.

use std::io::{self, Write};

use bytes::{Buf, Bytes};
use flate2::write::GzDecoder;

/// Decodes one gzip stream.
#[derive(Debug)]
pub(super) struct GzipDecoder {
    decoder: GzDecoder<Vec<u8>>,
    /// Received bytes that are not decoded yet.
    input: Bytes,
    is_finished: bool,
}

impl GzipDecoder {
    pub(super) fn new() -> Self {
        Self { decoder: GzDecoder::new(Vec::new()), input: Bytes::new(), is_finished: false }
    }

    /// Adds received bytes, when [`next_piece`](Self::next_piece) has none left.
    pub(super) fn push(&mut self, chunk: Bytes) {
        self.input = chunk;
    }

    /// The next decoded bytes, not more than a few windows of 32 KiB; `None` if more must be received.
    ///
    /// # Errors
    /// If the bytes are no gzip stream, or others follow its end.
    pub(super) fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() {
            let taken = self.decoder.write(&self.input)?;
            if taken == 0 {
                return Err(io::Error::other("bytes follow its end"));
            }
            self.input.advance(taken);
            if let Some(piece) = self.take_decoded() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// The last decoded bytes, after all were received; `None` if there are no more.
    ///
    /// # Errors
    /// If the stream ends early, or its checksum or its length is wrong.
    pub(super) fn finish(&mut self) -> io::Result<Option<Bytes>> {
        if !self.is_finished {
            self.decoder.try_finish()?;
            self.is_finished = true;
        }
        Ok(self.take_decoded())
    }

    fn take_decoded(&mut self) -> Option<Bytes> {
        let decoded = std::mem::take(self.decoder.get_mut());
        (!decoded.is_empty()).then(|| decoded.into())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    /// The decoded bytes of a stream that is received in chunks of this length, and the length of the longest part.
    fn decoded(stream: &[u8], chunk_len: usize) -> io::Result<(Vec<u8>, usize)> {
        let mut decoder = GzipDecoder::new();
        let mut decoded = Vec::new();
        let mut longest = 0;
        let mut take = |piece: Bytes| {
            longest = longest.max(piece.len());
            decoded.extend_from_slice(&piece);
        };
        for chunk in stream.chunks(chunk_len) {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(piece) = decoder.next_piece()? {
                take(piece);
            }
        }
        while let Some(piece) = decoder.finish()? {
            take(piece);
        }
        Ok((decoded, longest))
    }

    fn text() -> Vec<u8> {
        (0..40_000_u32).flat_map(|number| (number % 977).to_string().into_bytes()).collect()
    }

    #[test]
    fn a_stream_is_decoded_in_chunks_of_any_length() {
        let (text, stream) = (text(), compressed(&text()));
        for chunk_len in [1, 7, 1_000, stream.len()] {
            assert_eq!(decoded(&stream, chunk_len).unwrap().0, text, "{chunk_len}");
        }
        assert_eq!(decoded(&compressed(b""), 4).unwrap().0, b"");
    }

    #[test]
    fn a_bomb_is_decoded_in_small_pieces() {
        let zeros = vec![0; 64 << 20];
        let stream = compressed(&zeros);
        let (decoded, longest) = decoded(&stream, stream.len()).unwrap();
        assert_eq!(decoded.len(), zeros.len());
        assert!(stream.len() < 80_000 && longest <= 256 << 10, "{} {longest}", stream.len());
    }

    #[test]
    fn every_beginning_of_a_stream_is_refused() {
        let stream = compressed(b"not much, and not much, and not much");
        for len in 0..stream.len() {
            assert!(decoded(&stream[..len], 5).is_err(), "{len}");
        }
    }

    #[test]
    fn every_changed_byte_of_a_stream_is_refused_or_changes_nothing() {
        let text = b"not much, and not much, and not much";
        let stream = compressed(text);
        let mut refused = 0;
        for at in 0..stream.len() {
            let mut damaged = stream.clone();
            damaged[at] ^= 0x10;
            match decoded(&damaged, 64) {
                Ok((decoded, _)) => assert_eq!(decoded, text, "{at}"),
                Err(_) => refused += 1,
            }
        }
        // Time, operating system and level in the header say nothing of the content.
        assert!(refused >= stream.len() - 7, "{refused} of {}", stream.len());
    }

    #[test]
    fn what_follows_the_stream_is_refused() {
        let stream = compressed(b"one");
        for rest in [&b"x"[..], &stream] {
            let error = decoded(&[&stream, rest].concat(), 1_000).unwrap_err();
            assert_eq!(error.to_string(), "bytes follow its end");
        }
    }
}
