//! The tree of a set of records as plainly as the specification says it: what the fast one is held
//! against.

use std::collections::{BTreeMap, BTreeSet};

use codec::cid::Codec;
use codec::{AnyCid, Cid};

use super::key_height;
use super::node::Writer;

pub(super) type Records = BTreeMap<Vec<u8>, AnyCid>;

/// A whole tree: its nodes by name, each with its keys and children.
#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) root: Option<Cid>,
    pub(super) blocks: BTreeMap<Cid, Vec<u8>>,
    nodes: BTreeMap<Cid, (Option<Cid>, Vec<Entry>)>,
}

type Entry = (Vec<u8>, Option<Cid>);
type Item<'r> = (&'r Vec<u8>, &'r AnyCid);

pub(super) fn build(records: &Records) -> Built {
    let mut built = Built::default();
    let items: Vec<Item<'_>> = records.iter().collect();
    let height = items.iter().map(|(key, _)| key_height(key)).max().unwrap_or(0);
    built.root = Some(built.node(&items, height));
    built
}

impl Built {
    pub(super) fn root(&self) -> Cid {
        self.root.expect("built")
    }

    fn node(&mut self, items: &[Item<'_>], height: u8) -> Cid {
        let is_here = |(key, _): &Item<'_>| key_height(key) == height;
        let first = items.iter().position(is_here).unwrap_or(items.len());
        let left = self.child(&items[..first], height);
        let mut entries = Vec::new();
        for group in items[first..].chunk_by(|_, next| !is_here(next)) {
            entries.push((group[0], self.child(&group[1..], height)));
        }
        let mut block = Vec::new();
        let mut writer = Writer::new(&mut block, entries.len());
        let mut before: &[u8] = b"";
        for ((key, value), right) in &entries {
            let shared = before.iter().zip(*key).take_while(|(a, b)| a == b).count();
            writer.entry(shared, &key[shared..], value.as_cid_ref(), right.as_ref());
            before = key;
        }
        writer.finish(left.as_ref());
        let cid = Cid::of(Codec::DagCbor, &block);
        self.blocks.insert(cid, block);
        let entries = entries.into_iter().map(|((key, _), right)| (key.clone(), right)).collect();
        self.nodes.insert(cid, (left, entries));
        cid
    }

    fn child(&mut self, items: &[Item<'_>], height: u8) -> Option<Cid> {
        (!items.is_empty()).then(|| self.node(items, height - 1))
    }

    /// The nodes that prove what was done to `keys`, where this is the tree after.
    pub(super) fn covering_proof(&self, records: &Records, keys: &[&[u8]]) -> BTreeSet<Cid> {
        let mut proof = BTreeSet::new();
        for key in keys {
            let below = records.keys().rfind(|other| &other[..] < *key);
            let above = records.keys().find(|other| &other[..] > *key);
            let neighbours = below.into_iter().chain(above).map(|key| &key[..]);
            for target in neighbours.chain([*key]) {
                proof.extend(self.path(target));
            }
        }
        proof
    }

    /// The nodes met looking for `key`.
    pub(super) fn path(&self, key: &[u8]) -> Vec<Cid> {
        let mut path = Vec::new();
        let mut next = self.root;
        while let Some(cid) = next {
            path.push(cid);
            let (left, entries) = &self.nodes[&cid];
            next = match entries.iter().rfind(|(other, _)| &other[..] <= key) {
                Some((other, _)) if other == key => return path,
                Some((_, right)) => *right,
                None => *left,
            };
        }
        path
    }
}
