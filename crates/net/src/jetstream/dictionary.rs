//! Decompression of messages with a Zstandard dictionary.

use std::sync::Arc;

use zstd::bulk::Decompressor;
use zstd::zstd_safe::{get_dict_id_from_dict, get_dict_id_from_frame};

use super::wanted::FilterError;
use crate::http::{Client, Limits, Url};
use crate::websocket::{DialError, DialFault, parse_rejection};

/// How messages come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As text.
    #[default]
    None,
    /// Compressed with this dictionary of Zstandard.
    Given(Arc<[u8]>),
    /// Compressed with a dictionary that the host serves: the one of this number, or its current one. It
    /// is asked for before each connection.
    Served(Option<u32>),
}

impl Compression {
    /// Whether a dictionary that was given is one.
    pub(super) fn check(&self) -> Result<(), FilterError> {
        match self {
            Self::Given(bytes) if Dictionary::new(bytes).is_none() => {
                Err(FilterError::NotADictionary)
            }
            _ => Ok(()),
        }
    }

    /// Whether the host says which dictionary it is: then the next one it says may be another.
    pub(super) fn follows_the_host(&self) -> bool {
        *self == Self::Served(None)
    }
}

/// A dictionary, ready to be used.
pub(super) struct Dictionary {
    pub(super) id: u32,
    decompressor: Decompressor<'static>,
}

/// Why a message cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unpacking {
    /// It needs a dictionary of another number.
    Needs(u32),
    /// It is not compressed, or too long.
    Broken(String),
}

impl Dictionary {
    /// Takes the bytes of a dictionary; `None` if they are none.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let id = get_dict_id_from_dict(bytes)?.get();
        Some(Self { id, decompressor: Decompressor::with_dictionary(bytes).ok()? })
    }

    /// The text of a message, of so many bytes at most.
    pub(super) fn unpack(&mut self, message: &[u8], most: usize) -> Result<Vec<u8>, Unpacking> {
        match get_dict_id_from_frame(message) {
            Some(id) if id.get() != self.id => return Err(Unpacking::Needs(id.get())),
            _ => {}
        }
        let text = self.decompressor.decompress(message, most);
        text.map_err(|error| Unpacking::Broken(error.to_string()))
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dictionary {}", self.id)
    }
}

/// Asks a host for a dictionary.
pub(super) async fn fetch(
    client: &Client,
    host: &Url,
    id: Option<u32>,
) -> Result<Dictionary, DialError> {
    let mut url = host.clone();
    let scheme = if matches!(url.scheme(), "wss" | "https") { "https" } else { "http" };
    // What has no host is refused when it is asked.
    let _ = url.set_scheme(scheme);
    url.set_path(METHOD);
    url.set_query(id.map(|id| format!("id={id}")).as_deref());
    let answer = client.get(&url, &Limits::DOCUMENT).await?;
    let fault = match answer.status {
        200 => match Dictionary::new(&answer.body) {
            Some(dictionary) => return Ok(dictionary),
            None => DialFault::Handshake("what the host serves is no dictionary"),
        },
        status => DialFault::Refused(parse_rejection(status, &answer.headers, &answer.body)),
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

    fn pack(dictionary: &[u8], text: &[u8]) -> Vec<u8> {
        zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap().compress(text).unwrap()
    }

    #[test]
    fn what_was_packed_with_it_comes_out_and_nothing_longer_than_wanted() {
        let bytes = trained(5);
        let mut dictionary = Dictionary::new(&bytes).unwrap();
        let text = b"{\"kind\":\"commit\",\"seq\":5000}".repeat(100);
        let packed = pack(&bytes, &text);
        assert_eq!(dictionary.unpack(&packed, text.len()), Ok(text.clone()));
        let short = dictionary.unpack(&packed, text.len() - 1);
        assert!(matches!(short, Err(Unpacking::Broken(_))));
    }

    #[test]
    fn another_dictionary_is_asked_for_by_its_number() {
        let packed = pack(&trained(6), b"{\"kind\":\"commit\"}");
        let mut dictionary = Dictionary::new(&trained(5)).unwrap();
        assert_eq!(dictionary.unpack(&packed, 1000), Err(Unpacking::Needs(6)));
    }

    #[test]
    fn garbage_is_neither_a_dictionary_nor_a_message() {
        assert!(Dictionary::new(b"").is_none());
        assert!(Dictionary::new(&[7; 4096]).is_none());
        let mut dictionary = Dictionary::new(&trained(5)).unwrap();
        let packed = pack(&trained(5), b"{\"kind\":\"commit\"}");
        for len in 1..packed.len() {
            assert!(dictionary.unpack(&packed[..len], 1000).is_err(), "{len}");
        }
    }
}
