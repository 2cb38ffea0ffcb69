//! An accepted summary of strfry is whole: its parts cover all of its bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wireproof::nostr::formats::packed_event::PackedEvent;

fuzz_target!(|bytes: &[u8]| match PackedEvent::new(bytes) {
    Ok(summary) => {
        let tags: usize = summary.tags().map(|tag| 2 + tag.value.len()).sum();
        assert_eq!(88 + tags, bytes.len());
    }
    Err(error) => assert!(error.offset <= bytes.len(), "{error}"),
});
