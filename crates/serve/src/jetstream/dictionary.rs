//! The Zstandard dictionary of Jetstreams, and the compression of single messages.
//!
//! `subscribe.zdict` is the dictionary that clients of version 1 bring along, published with the Jetstream server under the
//! MIT and Apache-2.0 licences. Clients of version 2 ask for it by its id.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

/// The dictionary.
pub(crate) static DICTIONARY: &[u8] = include_bytes!("subscribe.zdict");

/// The id of the dictionary, in its bytes 4 to 7.
pub(crate) const DICTIONARY_ID: u32 = 1_612_007_021;

/// Compresses a message into one frame.
pub(crate) fn compress(message: &[u8]) -> Bytes {
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.compress(message).expect("memory of the stated bound is enough").into()
    })
}

fn compressor() -> Compressor<'static> {
    let mut compressor =
        Compressor::with_dictionary(LEVEL, DICTIONARY).expect("the dictionary is valid");
    // Clients of version 1 have a window of this size.
    let window = compressor.set_parameter(CParameter::WindowLog(17));
    window.expect("a window of 128 KiB is allowed");
    compressor
}

thread_local! {
    static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::new(compressor());
}

const LEVEL: i32 = 3;

#[cfg(test)]
mod tests {
    use zstd::bulk::Decompressor;

    use super::*;

    #[test]
    fn the_dictionary_has_the_id_that_clients_ask_for() {
        let id: [u8; 4] = DICTIONARY[4..8].try_into().unwrap();
        assert_eq!(u32::from_le_bytes(id), DICTIONARY_ID);
    }

    #[test]
    fn every_message_is_one_frame_that_the_dictionary_opens() {
        let mut decompressor = Decompressor::with_dictionary(DICTIONARY).unwrap();
        for len in [0, 1, 300, 200_000] {
            let message: Vec<u8> =
                b"{\"did\":\"did:plc:".iter().copied().cycle().take(len).collect();
            let compressed = compress(&message);
            assert_eq!(decompressor.decompress(&compressed, len).unwrap(), message);
        }
        let event = br#"{"did":"did:plc:eygmaihciaxprqvxpfvl6flk","time_us":1725911162329308,"kind":"commit"}"#;
        // Nothing in it repeats: the dictionary alone makes it shorter.
        let alone = zstd::bulk::compress(event, LEVEL).unwrap();
        assert!(compress(event).len() < event.len() * 3 / 4 && alone.len() > event.len());
    }
}
