//! An event that is read from DannyPack comes back as it was, and no input does harm.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wireproof::nostr::formats::Format;

fuzz_target!(|bytes: &[u8]| wireproof_fuzz::events(Format::Dannypack, bytes));
