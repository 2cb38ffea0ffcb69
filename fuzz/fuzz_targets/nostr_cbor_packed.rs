//! An event in CBOR by position has one encoding, and no input does harm.

#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use wireproof::nostr::Limits;
use wireproof::nostr::formats::Format;

fuzz_target!(|bytes: &[u8]| {
    wireproof_fuzz::events(Format::CborPacked, bytes);
    let (arena, mut again) = (Bump::new(), Vec::new());
    let Ok(event) = Format::CborPacked.decode(bytes, &arena, &Limits::default()) else { return };
    Format::CborPacked.encode(&event, &mut again).expect("it was just read");
    assert_eq!(again, bytes);
});
