//! Any graph of blocks is walked to an end, and accepted only if it is the tree of its own records.

use std::collections::BTreeMap;

use atproto::mst::canonical::{self, Step, Summary, Walk};
use atproto::mst::{Tree, TreeError, TreeLimits};
use codec::cid::Codec;
use codec::{AnyCid, Cid};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let blocks = blocks(input);
    let Some((root, _)) = blocks.last() else { return };
    let source: BTreeMap<Cid, &[u8]> =
        blocks.iter().map(|(cid, block)| (*cid, block.as_slice())).collect();
    let checked = canonical::check(*root, &source, &TreeLimits::default());
    let faults = canonical::faults(*root, &source, &TreeLimits::default(), 1000);
    assert_eq!(faults.first().copied(), checked.err());
    match checked {
        Ok(summary) => assert_is_the_tree_of_its_records(*root, &source, summary),
        Err(_) => assert!(steps(*root, &source) <= 4 * input.len() + 100),
    }
}

/// Blocks, a length in two bytes and the content, in which `cc n` is replaced by a link to block `n`.
fn blocks(mut input: &[u8]) -> Vec<(Cid, Vec<u8>)> {
    let mut blocks: Vec<(Cid, Vec<u8>)> = Vec::new();
    while let [low, high, rest @ ..] = input {
        let len = rest.len().min(usize::from(*low) | usize::from(*high) << 8);
        let (body, behind) = rest.split_at(len);
        let block = with_links(body, &blocks);
        blocks.push((Cid::of(Codec::DagCbor, &block), block));
        input = behind;
    }
    blocks
}

fn with_links(mut body: &[u8], blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    while let Some((byte, rest)) = body.split_first() {
        body = rest;
        match (byte, rest) {
            (0xcc, [number, behind @ ..]) if usize::from(*number) < blocks.len() => {
                block.extend_from_slice(b"\xd8\x2a\x58\x25\x00");
                block.extend_from_slice(blocks[usize::from(*number)].0.as_bytes());
                body = behind;
            }
            _ => block.push(*byte),
        }
    }
    block
}

fn steps(root: Cid, source: &BTreeMap<Cid, &[u8]>) -> usize {
    let mut walk = Walk::new(root, source, &TreeLimits::default());
    let mut steps = 0;
    while walk.next().is_some() {
        steps += 1;
    }
    steps
}

fn assert_is_the_tree_of_its_records(root: Cid, source: &BTreeMap<Cid, &[u8]>, summary: Summary) {
    let mut records: Vec<(Vec<u8>, AnyCid)> = Vec::new();
    let mut walk = Walk::new(root, source, &TreeLimits::default());
    while let Some(step) = walk.next() {
        if let Step::Record { key, value } = step.expect("accepted before") {
            records.push((key.to_vec(), value.into()));
        }
    }
    assert_eq!(records.len() as u64, summary.records);
    for (key, value) in &records {
        let found = canonical::search(root, source, key).expect("accepted before");
        assert_eq!(found.value, Some(value.as_cid_ref()));
    }
    let rebuilt = Tree::from_sorted(records).map(|mut tree| tree.root());
    assert_eq!(rebuilt, Ok::<_, TreeError>(root));
}
