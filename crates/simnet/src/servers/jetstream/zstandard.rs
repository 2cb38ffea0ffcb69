//! The Zstandard dictionaries of the Jetstreams, with numbers that no dictionary of a live server has.

use zstd::bulk::Compressor;
use zstd::dict::EncoderDictionary;

/// A dictionary prepared for compression.
pub(super) struct Dictionary {
    pub(super) id: u32,
    pub(super) bytes: Vec<u8>,
    prepared: EncoderDictionary<'static>,
}

/// The dictionaries of both versions of the protocol.
#[derive(Debug)]
pub(super) struct Dictionaries {
    pub(super) v1: Dictionary,
    pub(super) v2: Dictionary,
}

impl Dictionaries {
    /// Trains the dictionaries on messages of both versions.
    pub(super) fn train(v1: &[String], v2: &[String]) -> Self {
        Self {
            v1: Dictionary::train(V1_DICTIONARY_ID, v1),
            v2: Dictionary::train(V2_DICTIONARY_ID, v2),
        }
    }

    /// The dictionary with this number.
    pub(super) fn get(&self, id: u32) -> Option<&Dictionary> {
        [&self.v1, &self.v2].into_iter().find(|dictionary| dictionary.id == id)
    }
}

impl Dictionary {
    fn train(id: u32, samples: &[String]) -> Self {
        let mut bytes = zstd::dict::from_samples(samples, DICTIONARY_LEN).expect("enough samples");
        // The number follows the magic number of four bytes.
        bytes[4..8].copy_from_slice(&id.to_le_bytes());
        let prepared = EncoderDictionary::copy(&bytes, LEVEL);
        Self { id, bytes, prepared }
    }

    /// A compressor of one message at a time.
    pub(super) fn compressor(&self) -> Compressor<'_> {
        Compressor::with_prepared_dictionary(&self.prepared).expect("a prepared dictionary")
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "dictionary {} of {} bytes", self.id, self.bytes.len())
    }
}

/// The number of the dictionary for version 1.
pub const V1_DICTIONARY_ID: u32 = 1_000_001;

/// The number of the dictionary for version 2.
pub const V2_DICTIONARY_ID: u32 = 1_000_002;

const DICTIONARY_LEN: usize = 16 << 10;
const LEVEL: i32 = 3;
