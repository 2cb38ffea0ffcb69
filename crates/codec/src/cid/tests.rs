use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::*;

const EMPTY_NODE: &str = "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm";

#[test]
fn the_empty_tree_node_has_its_known_cid() {
    let cid = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
    assert_eq!(cid.to_string(), EMPTY_NODE);
    assert_eq!(EMPTY_NODE.parse(), Ok(cid));
    assert_eq!(Cid::from_bytes(cid.as_bytes()), Some(cid));
    assert_eq!(cid.as_cid_ref().to_cid(), Some(cid));
}

#[test]
fn text_that_differs_in_any_way_is_rejected_with_the_reason() {
    let upper = EMPTY_NODE.to_uppercase();
    let cases = [
        (&EMPTY_NODE[..58], CidTextError::Length(58)),
        ("", CidTextError::Length(0)),
        (&upper, CidTextError::Multibase),
        (&EMPTY_NODE.replace("bafy", "zafy"), CidTextError::Multibase),
        (&EMPTY_NODE.replace("hpm", "hp0"), CidTextError::Base32),
        (&EMPTY_NODE.replace("hpm", "hpn"), CidTextError::Base32),
        (&EMPTY_NODE.replace("bafyrei", "bafybei"), CidTextError::NotBlessed),
        (&EMPTY_NODE.replace("bafyrei", "bafyrmi"), CidTextError::NotBlessed),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<Cid>(), Err(expected), "{text}");
    }
}

#[test]
fn foreign_identifiers_are_well_formed_but_not_blessed() {
    let mut v0 = vec![0x12, 0x20];
    v0.extend([7; 32]);
    let identity = [0x01, 0x55, 0x00, 0x03, 1, 2, 3];
    let mut dag_pb = vec![0x01, 0x70, 0x12, 0x20];
    dag_pb.extend([7; 32]);
    for bytes in [&v0[..], &identity, &dag_pb] {
        let cid = CidRef::from_bytes(bytes).expect("well formed");
        assert_eq!(cid.as_bytes(), bytes);
        assert_eq!(cid.to_cid(), None);
        assert!(!cid.is_dag_cbor());
    }
    assert_eq!(CidRef::from_bytes(&v0).unwrap().sha256(), Some(&[7; 32]));
    assert_eq!(CidRef::from_bytes(&dag_pb).unwrap().sha256(), Some(&[7; 32]));
    assert_eq!(CidRef::from_bytes(&identity).unwrap().sha256(), None);
    let mut identity_of_v0 = vec![0x01, 0x55, 0x00, 34];
    identity_of_v0.extend(&v0);
    assert_eq!(CidRef::from_bytes(&identity_of_v0).unwrap().sha256(), None);
}

#[test]
fn version_0_is_written_in_base58() {
    let mut bytes = vec![0x12, 0x20];
    bytes.extend(kernels::sha256::digest(b""));
    let cid = CidRef::from_bytes(&bytes).expect("well formed");
    assert_eq!(cid.to_string(), "QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n");
}

#[test]
fn malformed_identifiers_are_rejected() {
    let good = *Cid::of(Codec::Raw, b"").as_bytes();
    for cut in 0..good.len() {
        assert_eq!(CidRef::from_bytes(&good[..cut]), None, "cut at {cut}");
    }
    let mut longer = good.to_vec();
    longer.push(0);
    let bad: [&[u8]; 5] = [
        &longer,
        &[0x02, 0x71, 0x13, 0x00],                   // version 2
        &[0x81, 0x00, 0x71, 0x13, 0x00],             // version in two bytes
        &[0x01, 0x71, 0x13, 0xff, 0xff, 0xff, 0x7f], // a digest of 256 MiB
        &[0x01, 0x71, 0x13, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    ];
    for bytes in bad {
        assert_eq!(CidRef::from_bytes(bytes), None, "{bytes:x?}");
    }
}

#[test]
fn a_digest_of_sha_256_has_32_bytes() {
    for codec in [0x55, 0x70, 0x71] {
        for len in (0..=64).filter(|len| *len != 32) {
            let named = [&[0x01, codec, 0x12, len], &vec![7; usize::from(len)][..]].concat();
            assert_eq!(CidRef::from_bytes(&named), None, "{len} bytes");
            assert_eq!(CidRef::from_prefix(&named), None, "{len} bytes");
            assert_eq!(CidRef::from_prefix(&[&named[..], &[7; 64]].concat()), None, "{len} bytes");
        }
    }
    let of_sha_512 = [&[0x01, 0x71, 0x13, 20][..], &[7; 20]].concat();
    assert!(CidRef::from_bytes(&of_sha_512).is_some(), "other functions are not judged");
}

#[test]
fn an_identifier_has_at_most_a_hundred_bytes() {
    for (digest_len, is_read) in [(96, true), (97, false)] {
        let bytes = [&[0x01, 0x55, 0x00, digest_len], &vec![7; digest_len.into()][..]].concat();
        assert_eq!(CidRef::from_bytes(&bytes).is_some(), is_read);
    }
}

#[test]
fn owned_identifiers_are_told_apart_by_their_hashes() {
    let hash = |content: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        content(&mut hasher);
        hasher.finish()
    };
    let cids = [b"a", b"b"].map(|block| Cid::of(Codec::Raw, block));
    let [a, b] = cids.map(|cid| hash(&|hasher| AnyCid::from(cid).hash(hasher)));
    assert_ne!(a, b);
    assert_eq!(a, hash(&|hasher| cids[0].as_cid_ref().hash(hasher)));
}

#[test]
fn the_digest_of_a_block_is_in_its_identifier() {
    let digest = kernels::sha256::digest(b"block");
    let cid = Cid::of(Codec::Raw, b"block");
    assert_eq!(cid.digest(), &digest);
    assert_eq!(Cid::from_digest(Codec::Raw, &digest), cid);
}

#[test]
fn reading_a_prefix_returns_the_bytes_after_it() {
    let cid = Cid::of(Codec::Raw, b"x");
    let mut bytes = cid.as_bytes().to_vec();
    bytes.extend(b"data");
    let (read, rest) = CidRef::from_prefix(&bytes).unwrap();
    assert_eq!((read.to_cid(), rest), (Some(cid), &b"data"[..]));
}

#[test]
fn an_owned_identifier_is_the_borrowed_one_blessed_or_foreign() {
    let blessed = Cid::of(Codec::Raw, b"blob");
    let foreign = [0x01, 0x70, 0x13, 0x02, 9, 9];
    for bytes in [blessed.as_bytes().as_slice(), &foreign] {
        let borrowed = CidRef::from_bytes(bytes).expect("well formed");
        let owned = AnyCid::from(borrowed);
        assert_eq!((owned.as_cid_ref(), owned.as_bytes()), (borrowed, bytes));
        assert_eq!(owned.to_cid(), borrowed.to_cid());
        assert_eq!(owned.to_string(), borrowed.to_string());
    }
    assert_eq!(AnyCid::from(blessed), blessed.as_cid_ref().into());
    assert!(AnyCid::from(blessed) < CidRef::from_bytes(&foreign).unwrap().into());
}
