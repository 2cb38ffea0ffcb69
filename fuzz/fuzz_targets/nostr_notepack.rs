//! An event that is read from Notepack, bytes or string, comes back as it was, and no input does harm.

#![no_main]

use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use wireproof::nostr::Limits;
use wireproof::nostr::formats::{Format, notepack};

fuzz_target!(|bytes: &[u8]| {
    wireproof_fuzz::events(Format::Notepack, bytes);
    let (arena, limits) = (Bump::new(), Limits::default());
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(event) = notepack::decode_string(text, &arena, &limits)
    {
        let mut again = String::new();
        notepack::encode_string(&event, &mut again).expect("it was just read");
        assert_eq!(notepack::decode_string(&again, &arena, &limits), Ok(event));
    }
});
