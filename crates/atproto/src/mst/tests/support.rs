//! Records, keys of chosen heights and trees of them.

use std::collections::BTreeMap;

use codec::cid::Codec;
use codec::{AnyCid, Cid, CidRef};
use proptest::prelude::*;

use crate::event::Action;
use crate::mst::inversion::RecordOp;
use crate::mst::reference::{self, Built};
use crate::mst::*;

pub(in crate::mst) type Records = BTreeMap<Vec<u8>, AnyCid>;

pub(in crate::mst) fn build(records: &Records) -> Built {
    reference::build(&Vec::from_iter(records.iter().map(|(key, value)| (key, value.clone()))))
}

pub(in crate::mst) fn value(seed: u64) -> AnyCid {
    Cid::of(Codec::DagCbor, &seed.to_be_bytes()).into()
}

/// CIDs of the usual length, and for odd seeds shorter ones.
pub(in crate::mst) fn value_of_any_length(seed: u64) -> AnyCid {
    if seed.is_multiple_of(2) {
        return value(seed);
    }
    let identity = [&[0x01, 0x55, 0x00, seed as u8][..], &vec![7; seed as usize]].concat();
    CidRef::from_bytes(&identity).expect("well formed").into()
}

pub(super) fn inserted<'r>(records: impl Iterator<Item = (&'r Vec<u8>, &'r AnyCid)>) -> Tree {
    let mut tree = Tree::empty();
    for (key, value) in records {
        assert_eq!(tree.insert(key, value.clone()), Ok(None));
    }
    tree
}

pub(super) fn loaded(built: &Built) -> Tree<BTreeMap<Cid, &[u8]>> {
    Tree::load_partial(built.root(), blocks_of(built))
}

/// Ascending keys of these heights.
pub(super) fn keys_of_heights(heights: &[u8]) -> Vec<Vec<u8>> {
    let mut number = 0u64;
    let mut next = |height| {
        loop {
            number += 1;
            let key = format!("k/{number:06}").into_bytes();
            if key_height(&key) == height {
                return key;
            }
        }
    };
    heights.iter().map(|height| next(*height)).collect()
}

pub(super) fn subset(keys: &[Vec<u8>], bits: usize) -> Records {
    let chosen = keys.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
    chosen.map(|(index, key)| (key.clone(), value(index as u64))).collect()
}

/// Sets of six heights: flat, steep, with gaps between layers, tall in the middle and at the edges.
pub(super) const HEIGHTS: [[u8; 6]; 8] = [
    [0, 0, 0, 0, 0, 0],
    [0, 1, 0, 1, 0, 1],
    [0, 1, 2, 3, 2, 0],
    [0, 3, 0, 0, 3, 0],
    [3, 0, 1, 1, 0, 3],
    [0, 0, 3, 0, 0, 0],
    [2, 0, 2, 0, 0, 2],
    [0, 2, 0, 1, 3, 0],
];

/// Keys with many prefixes in common, some that are prefixes of others, and zero bytes.
pub(super) fn any_key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0..400u32).prop_map(|n| format!("app.bsky.feed.post/{n}").into_bytes()),
        2 => (0..60u32).prop_map(|n| format!("app.bsky.feed.post/3jqfcqzm{n}").into_bytes()),
        2 => proptest::collection::vec(0..2u8, 1..14),
        1 => (1..40usize).prop_map(|n| vec![b'a'; n]),
        1 => (1..30usize).prop_map(|n| [b"zz".as_slice(), &vec![0; n]].concat()),
    ]
}

pub(super) fn any_records() -> impl Strategy<Value = Records> {
    proptest::collection::btree_map(any_key(), (0..10u64).prop_map(value), 0..120)
}

pub(super) fn blocks_of(built: &Built) -> BTreeMap<Cid, &[u8]> {
    built.nodes().iter().map(|(cid, block)| (*cid, &block[..])).collect()
}

pub(super) fn new_blocks_of(tree: &mut Tree<impl Sized>) -> BTreeMap<Cid, Vec<u8>> {
    tree.collect_blocks().into_iter().collect()
}

pub(super) fn created(after: &Built, before: &Built) -> BTreeMap<Cid, Vec<u8>> {
    let is_new = |(cid, _): &(&Cid, _)| !before.nodes().contains_key(*cid);
    after.nodes().iter().filter(is_new).map(|(cid, block)| (*cid, block.clone())).collect()
}

pub(super) fn undo<'a>(
    key: &'a [u8],
    cid: &'a Option<AnyCid>,
    prev: &'a Option<AnyCid>,
) -> RecordOp<'a> {
    let action = match (cid, prev) {
        (Some(_), None) => Action::Create,
        (Some(_), Some(_)) => Action::Update,
        _ => Action::Delete,
    };
    let borrowed = |cid: &'a Option<AnyCid>| cid.as_ref().map(AnyCid::as_cid_ref);
    RecordOp { action, key, cid: borrowed(cid), prev: borrowed(prev) }
}
