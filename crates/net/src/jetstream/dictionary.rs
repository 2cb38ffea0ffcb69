//! Decompression of messages with a Zstandard dictionary.

use zstd::bulk::Decompressor;
use zstd::zstd_safe::{get_dict_id_from_dict, get_dict_id_from_frame};

use crate::http::{Client, Limits, Url};
use crate::websocket::{DialError, DialFault, parse_rejection};

/// A Zstandard dictionary, prepared for decompression.
pub(super) struct Dictionary {
    pub(super) id: u32,
    decompressor: Decompressor<'static>,
}

/// Why a message cannot be decompressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DecompressError {
    /// It requires the dictionary of this id.
    OtherDictionary(u32),
    /// It is not compressed, or exceeds the maximum size.
    Invalid(String),
}

impl Dictionary {
    /// Parses a dictionary; `None` if it is invalid.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let id = get_dict_id_from_dict(bytes)?.get();
        Some(Self { id, decompressor: Decompressor::with_dictionary(bytes).ok()? })
    }

    /// Decompresses a message to at most `max_bytes`.
    pub(super) fn decompress(
        &mut self,
        message: &[u8],
        max_bytes: usize,
    ) -> Result<Vec<u8>, DecompressError> {
        match get_dict_id_from_frame(message) {
            Some(id) if id.get() != self.id => {
                return Err(DecompressError::OtherDictionary(id.get()));
            }
            _ => {}
        }
        let text = self.decompressor.decompress(message, max_bytes);
        text.map_err(|error| DecompressError::Invalid(error.to_string()))
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dictionary {}", self.id)
    }
}

/// Requests a dictionary from a host: the one of this id, or its current one.
pub(super) async fn fetch(
    client: &Client,
    host: &Url,
    id: Option<u32>,
) -> Result<Dictionary, DialError> {
    let mut url = host.clone();
    let scheme = if matches!(url.scheme(), "wss" | "https") { "https" } else { "http" };
    // A URL that rejects the scheme has no host, and its request fails.
    let _ = url.set_scheme(scheme);
    url.set_path(METHOD);
    url.set_query(id.map(|id| format!("id={id}")).as_deref());
    let response = client.get(&url, &Limits::DOCUMENT).await?;
    let fault = match response.status {
        200 => match Dictionary::new(&response.body) {
            Some(dictionary) => return Ok(dictionary),
            None => DialFault::Handshake("the response is not a Zstandard dictionary"),
        },
        status => DialFault::Refused(parse_rejection(status, &response.headers, &response.body)),
    };
    Err(DialError { host: url.host_str().unwrap_or_default().to_owned(), fault })
}

const METHOD: &str = "/xrpc/network.bsky.jetstream.getZstdDictionary";

#[cfg(test)]
mod tests {
    use super::*;

    fn trained(id: u32) -> Vec<u8> {
        let samples: Vec<String> =
            (0..2_000).map(|n| format!("{{\"kind\":\"commit\",\"seq\":{n}}}")).collect();
        let mut bytes = zstd::dict::from_samples(&samples, 4 << 10).unwrap();
        bytes[4..8].copy_from_slice(&id.to_le_bytes());
        bytes
    }

    fn compress(dictionary: &[u8], text: &[u8]) -> Vec<u8> {
        zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap().compress(text).unwrap()
    }

    #[test]
    fn messages_are_decompressed_up_to_the_maximum_size() {
        let bytes = trained(5);
        let mut dictionary = Dictionary::new(&bytes).unwrap();
        let text = b"{\"kind\":\"commit\",\"seq\":5000}".repeat(100);
        let compressed = compress(&bytes, &text);
        assert_eq!(dictionary.decompress(&compressed, text.len()), Ok(text.clone()));
        let short = dictionary.decompress(&compressed, text.len() - 1);
        assert!(matches!(short, Err(DecompressError::Invalid(_))));
    }

    #[test]
    fn a_message_of_another_dictionary_is_rejected_with_its_id() {
        let compressed = compress(&trained(6), b"{\"kind\":\"commit\"}");
        let mut dictionary = Dictionary::new(&trained(5)).unwrap();
        assert_eq!(
            dictionary.decompress(&compressed, 1000),
            Err(DecompressError::OtherDictionary(6))
        );
    }

    #[test]
    fn invalid_dictionaries_and_truncated_messages_are_rejected() {
        assert!(Dictionary::new(b"").is_none());
        assert!(Dictionary::new(&[7; 4096]).is_none());
        let mut dictionary = Dictionary::new(&trained(5)).unwrap();
        let compressed = compress(&trained(5), b"{\"kind\":\"commit\"}");
        for len in 1..compressed.len() {
            assert!(dictionary.decompress(&compressed[..len], 1000).is_err(), "{len}");
        }
    }
}
