//! What are these bytes? The four kinds start so differently that valid bytes are one of them:
//!
//! | kind | first bytes | why no other kind starts so |
//! |---|---|---|
//! | file of frames | `00`, and more bytes | as CBOR it is the integer 0 with bytes behind it; as a CAR, a header of no bytes. (The count's first byte; a file of 2²⁴ frames has to be named by hand) |
//! | CBOR block | one canonical item and nothing behind it | a frame is two items; a CAR's length prefix is an item with bytes behind it |
//! | frame | a canonical map with an integer `op`, then more | a CAR's prefix before its header is no map with text keys |
//! | CAR | a varint, then a map with the first key `roots` or `version` | |
//!
//! What is none of them is read as CBOR, whose errors say most.

use wireproof::atproto::event;
use wireproof::codec::cbor;
use wireproof::kernels::varint;

use crate::args::Kind;

/// What `bytes` are.
pub(super) fn kind(bytes: &[u8]) -> Kind {
    if bytes.len() > 1 && bytes[0] == 0 {
        Kind::Corpus
    } else if cbor::validate(bytes).is_ok() {
        Kind::Cbor
    } else if event::peek(bytes).is_ok() {
        Kind::Frame
    } else if starts_like_a_car(bytes) {
        Kind::Car
    } else {
        Kind::Cbor
    }
}

/// The kind in words.
pub(super) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Corpus => "a file of frames",
        Kind::Frame => "a frame",
        Kind::Car => "a CAR",
        Kind::Cbor => "a CBOR block",
    }
}

fn starts_like_a_car(bytes: &[u8]) -> bool {
    let Ok((_, prefix)) = varint::read(bytes) else { return false };
    let Some((head, keys)) = bytes[prefix..].split_first() else { return false };
    let is_map = (0xa1..=0xb7).contains(head);
    is_map && (keys.starts_with(b"\x65roots") || keys.starts_with(b"\x67version"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wireproof::atproto::corpus;
    use wireproof::atproto::event::{Event, Info};
    use wireproof::codec::car;
    use wireproof::codec::cid::{Cid, Codec};

    #[test]
    fn each_kind_is_told_from_the_others_whatever_is_in_it() {
        let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
        assert_eq!(kind(&frame), Kind::Frame);
        assert_eq!(kind(&corpus::write([frame.as_slice()])), Kind::Corpus);
        assert_eq!(kind(&corpus::write([])), Kind::Corpus);
        for item in
            [&b"\xa1\x62op\x01"[..], b"\x00", b"\x3a\x01\x02\x03\x04", b"\xa1\x60\xa1\x65roots\x80"]
        {
            assert_eq!(kind(item), Kind::Cbor, "{item:02x?}");
        }
    }

    #[test]
    fn an_archive_is_one_with_any_number_of_roots() {
        let root = Cid::of(Codec::DagCbor, b"\xa0");
        for count in 0..600 {
            let mut archive = car::Writer::new(Vec::new(), &vec![root; count]).unwrap();
            archive.block(&root, b"\xa0").unwrap();
            assert_eq!(kind(&archive.into_inner()), Kind::Car, "{count} roots");
        }
    }

    #[test]
    fn bytes_that_are_nothing_are_read_as_cbor() {
        for bytes in [&b""[..], b"\xff", b"<html>", b"\xa2\x61a"] {
            assert_eq!(kind(bytes), Kind::Cbor, "{bytes:02x?}");
        }
    }
}
