//! Tests of a peer's claimed checks with hand-made frames that break one rule each.
//!
//! A check counts as made when every sample that breaks its rule is rejected. [`assert_claims`] is the test of every
//! runner, so that `describe` cannot drift from what the libraries do.

use sha2::{Digest, Sha256};

use super::{DecodeCounts, Peer, decode};
use crate::Variant;

/// Compares the claims of every variant with what it rejects.
///
/// # Panics
///
/// When a claim is false, when a check that is made is not claimed, or when a valid item is rejected.
pub fn assert_claims<P: Peer>() {
    for variant in P::VARIANTS {
        let mut peer = P::start(variant.name);
        for good in good_items() {
            assert!(
                accepts(&mut peer, &frame_with(&good)),
                "{}: rejected {good:02x?}",
                variant.name
            );
        }
        assert_eq!(checks_made(&mut peer, variant), variant.checks, "{}", variant.name);
    }
}

fn checks_made<P: Peer>(peer: &mut P, variant: &Variant) -> Vec<&'static str> {
    let mut made = Vec::new();
    if !accepts(peer, &frame_with_wrong_digest()) {
        made.push("cid-sha256");
    }
    for (check, samples) in bad_items() {
        let accepted =
            samples.iter().filter(|item| accepts(peer, &frame_with(item))).collect::<Vec<_>>();
        if accepted.is_empty() {
            made.push(check);
        }
        println!("{}: {check}: accepted {}/{}", variant.name, accepted.len(), samples.len());
        accepted.iter().for_each(|item| println!("    {:02x?}", &item[..item.len().min(48)]));
    }
    made
}

fn accepts<P: Peer>(peer: &mut P, frame: &[u8]) -> bool {
    let mut counts = DecodeCounts::default();
    decode(peer, frame, &mut counts).is_ok() && counts.blocks == 1
}

/// Items that every peer must accept, so that a rejection below has one reason only.
fn good_items() -> Vec<Vec<u8>> {
    vec![
        b"\xa0".into(),
        b"\xa2\x61b\x01\x62aa\x02".into(),
        b"\x89\x17\x18\x18\x19\x01\x00\x1a\x00\x01\x00\x00\x20\x38\x18\xf4\xf5\xf6".into(),
        b"\x82\x62\xc3\xa9\x42\xff\x00".into(),
        b"\x81\xfb\x3f\xf8\x00\x00\x00\x00\x00\x00".into(),
        nested(20),
        link(&cid(DAG_CBOR, b"linked")),
        link(&cid(RAW, b"linked")),
    ]
}

/// Items that break the rule of one check each, by the names and in the order of the protocol.
fn bad_items() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let cid = cid(DAG_CBOR, b"linked");
    vec![
        ("key-order", vec![b"\xa2\x61b\x01\x61a\x02".into(), b"\xa2\x62aa\x01\x61b\x02".into()]),
        ("duplicate-keys", vec![b"\xa2\x61a\x01\x61a\x02".into(), b"\xa2\x60\x01\x60\x02".into()]),
        (
            "minimal-heads",
            vec![
                b"\x18\x01".into(),
                b"\x19\x00\x18".into(),
                b"\x1a\x00\x00\x01\x00".into(),
                b"\x1b\x00\x00\x00\x00\x00\x01\x00\x00".into(),
                b"\x38\x01".into(),
                b"\x58\x01\x00".into(),
                b"\x78\x01a".into(),
                b"\x98\x01\x00".into(),
                b"\xb8\x01\x61a\x00".into(),
                b"\xa1\x78\x01a\x00".into(),
                [b"\xd9\x00\x2a".as_slice(), &link(&cid)[2..]].concat(),
            ],
        ),
        ("utf8", vec![b"\x61\xff".into(), b"\x63\xed\xa0\x80".into(), b"\xa1\x61\xff\x00".into()]),
        (
            "indefinite-lengths",
            vec![
                b"\x9f\x00\xff".into(),
                b"\xbf\x61a\x00\xff".into(),
                b"\x7f\x61a\xff".into(),
                b"\x5f\x41\x00\xff".into(),
                b"\xbf\x7f\x61a\xff\x00\xff".into(),
            ],
        ),
        (
            "float-canonical",
            vec![
                b"\xf9\x3c\x00".into(),
                b"\xfa\x3f\x80\x00\x00".into(),
                float(f64::NAN),
                float(f64::INFINITY),
                float(f64::NEG_INFINITY),
                float(-0.0),
            ],
        ),
        ("only-tag-42", vec![b"\xc0\x61a".into(), b"\xc1\x00".into(), b"\xd8\x2b\x41\x00".into()]),
        (
            "link-shape",
            vec![
                b"\xd8\x2a\x40".into(),
                b"\xd8\x2a\x41\x00".into(),
                b"\xd8\x2a\x61a".into(),
                tagged(&cid),
                link(&cid[..35]),
                link(&[cid.as_slice(), b"\x00"].concat()),
                link(&[b"\x02".as_slice(), &cid[1..]].concat()),
            ],
        ),
        ("trailing-bytes", vec![b"\x00\x00".into(), b"\xa0\xa0".into()]),
        ("depth-bound", vec![nested(100_000)]),
    ]
}

const DAG_CBOR: u8 = 0x71;
const RAW: u8 = 0x55;

/// A `#commit` whose CAR holds this one block.
fn frame_with(block: &[u8]) -> Vec<u8> {
    frame(&cid(DAG_CBOR, block), block)
}

fn frame_with_wrong_digest() -> Vec<u8> {
    let mut wrong = cid(DAG_CBOR, b"\xa0");
    wrong[35] ^= 1;
    frame(&wrong, b"\xa0")
}

fn frame(cid: &[u8], block: &[u8]) -> Vec<u8> {
    let header = map(&[("t", text("#commit")), ("op", vec![1])]);
    let payload = map(&[
        ("ops", head(4, 0)),
        ("rev", text("3l2ywhzsiaa2a")),
        ("seq", vec![1]),
        ("repo", text("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")),
        ("time", text("2026-01-01T00:00:00.000Z")),
        ("blobs", head(4, 0)),
        ("since", text("3l2ywhzsia22a")),
        ("blocks", bytes(&car(cid, block))),
        ("commit", link(cid)),
        ("rebase", vec![0xf4]),
        ("tooBig", vec![0xf4]),
        ("prevData", link(cid)),
    ]);
    [header, payload].concat()
}

fn car(cid: &[u8], block: &[u8]) -> Vec<u8> {
    let roots = [head(4, 1), link(cid)].concat();
    let header = map(&[("roots", roots), ("version", vec![1])]);
    let len = leb128(cid.len() + block.len());
    [leb128(header.len()).as_slice(), &header, &len, cid, block].concat()
}

fn cid(codec: u8, block: &[u8]) -> [u8; 36] {
    let mut cid = [0; 36];
    cid[..4].copy_from_slice(&[1, codec, 0x12, 32]);
    cid[4..].copy_from_slice(&Sha256::digest(block));
    cid
}

fn link(cid: &[u8]) -> Vec<u8> {
    tagged(&[b"\x00", cid].concat())
}

fn tagged(content: &[u8]) -> Vec<u8> {
    [vec![0xd8, 42], bytes(content)].concat()
}

fn float(value: f64) -> Vec<u8> {
    [[0xfb].as_slice(), &value.to_be_bytes()].concat()
}

fn nested(depth: usize) -> Vec<u8> {
    [vec![0x81; depth], vec![0]].concat()
}

fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entry = |(key, value): &(&str, Vec<u8>)| [text(key), value.clone()].concat();
    [head(5, entries.len()), entries.iter().flat_map(entry).collect()].concat()
}

fn text(text: &str) -> Vec<u8> {
    [head(3, text.len()).as_slice(), text.as_bytes()].concat()
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    [head(2, bytes.len()).as_slice(), bytes].concat()
}

fn head(major: u8, argument: usize) -> Vec<u8> {
    let [.., b3, b2, b1, b0] = argument.to_be_bytes();
    match argument {
        0..24 => vec![major << 5 | b0],
        24..0x100 => vec![major << 5 | 24, b0],
        0x100..0x1_0000 => vec![major << 5 | 25, b1, b0],
        _ => vec![major << 5 | 26, b3, b2, b1, b0],
    }
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}
