//! The tree of a set of records, built as plainly as the specification defines it: the reference that
//! faster trees are compared with in tests.
//!
//! ```text
//! build(items, layer):
//!     left, entries = [], []
//!     for (key, value) in items:
//!         if height(key) == layer: entries.append([key, value, []])
//!         else: append to the last entry's right list, or to left if there is none
//!     child(list) = build(list, layer - 1), or null if the list is empty
//!     node = {e: [{k: …, p: …, t: child(right), v: value} …], l: child(left)}
//!
//! proof(keys) = the union over each key K that was created or deleted, in the tree afterwards, of
//!     the nodes on the path to K,
//!     the nodes on the path to the greatest key below K, and
//!     the nodes on the path to the least key above K
//! ```
//!
//! It shares no code with [`Tree`](super::Tree): the general encoder writes nodes.

use std::collections::{BTreeMap, BTreeSet};

use codec::cbor::Encoder;
use codec::cid::Codec;
use codec::{AnyCid, Cid};
use kernels::sha256;

/// The value of all records in the specification's examples.
pub const KNOWN_VALUE: &str = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";

/// Record keys, in the short form `3fo` for `3jqfcqzm3fo2j`, and the root of their tree.
pub const KNOWN_ROOTS: [(&str, &str); 11] = [
    ("", "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm"),
    ("3fo", "bafyreibj4lsc3aqnrvphp5xmrnfoorvru4wynt6lwidqbm2623a6tatzdu"),
    ("3fx", "bafyreih7wfei65pxzhauoibu3ls7jgmkju4bspy4t2ha2qdjnzqvoy33ai"),
    ("3fp 3fr 3fs 3ft 4fc", "bafyreicmahysq4n6wfuxo522m6dpiy7z7qzym3dzs756t5n7nfdgccwq7m"),
    ("3fn 3fo 3fp 3fs 3ft 3fu", "bafyreifnqrwbk6ffmyaz5qtujqrzf5qmxf7cbxvgzktl4e3gabuxbtatv4"),
    ("3fn 3fo 3fp 3ft 3fu", "bafyreie4kjuxbwkhzg2i5dljaswcroeih4dgiqq6pazcmunwt2byd725vi"),
    (
        "3fo 3fp 3fr 3fs 3ft 3fz 4fc 4fd 4ff 4fg 4fh",
        "bafyreiettyludka6fpgp33stwxfuwhkzlur6chs4d2v4nkmq2j3ogpdjem",
    ),
    (
        "3fo 3fp 3fr 3fs 3ft 3fx 3fz 4fc 4fd 4ff 4fg 4fh",
        "bafyreid2x5eqs4w4qxvc5jiwda4cien3gw2q6cshofxwnvv7iucrmfohpm",
    ),
    ("3ft 3fz", "bafyreidfcktqnfmykz2ps3dbul35pepleq7kvv526g47xahuz3rqtptmky"),
    ("3ft 3fx 3fz", "bafyreiavxaxdz7o7rbvr3zg2liox2yww46t7g6hkehx4i4h3lwudly7dhy"),
    ("3ft 3fx 3fz 4fd", "bafyreig4jv3vuajbsybhyvb7gggvpwh2zszwfyttjrj6qwvcsp24h6popu"),
];

/// A whole tree: the blocks of its nodes by CID, and their keys and children.
#[derive(Clone, Debug, Default)]
pub struct Built {
    root: Option<Cid>,
    nodes: BTreeMap<Cid, Vec<u8>>,
    contents: BTreeMap<Cid, Node>,
    keys: BTreeSet<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct Node {
    left: Option<Cid>,
    /// The keys with the children after them.
    entries: Vec<(Vec<u8>, Option<Cid>)>,
}

type Record<'r> = (&'r [u8], &'r AnyCid);

/// Builds the tree of `records`. If keys are equal, the last record counts.
pub fn build<K: AsRef<[u8]>, V: Clone + Into<AnyCid>>(records: &[(K, V)]) -> Built {
    let owned = |(key, value): &(K, V)| (key.as_ref().to_vec(), value.clone().into());
    let records: BTreeMap<Vec<u8>, AnyCid> = records.iter().map(owned).collect();
    let sorted: Vec<Record<'_>> = records.iter().map(|(key, value)| (&key[..], value)).collect();
    let root_layer = sorted.iter().map(|(key, _)| height(key)).max().unwrap_or(0);
    let mut built = Built::default();
    built.root = Some(built.add_node(&sorted, root_layer));
    built.keys = records.into_keys().collect();
    built
}

/// Half of the leading zero bits of the key's SHA-256, rounded down.
fn height(key: &[u8]) -> u8 {
    let digest = sha256::digest(key);
    let zero_bytes = digest.iter().take_while(|byte| **byte == 0).count();
    let more_zeros = digest.get(zero_bytes).map_or(0, |byte| byte.leading_zeros() as usize);
    ((8 * zero_bytes + more_zeros) / 2) as u8
}

/// The block of a node: keys with their values and the children after them, whole prefixes shared.
pub fn encode_node(left: Option<&Cid>, entries: &[(&[u8], &AnyCid, Option<Cid>)]) -> Vec<u8> {
    let mut out = Encoder::new();
    out.map(2).text("e").array(entries.len());
    let mut prev: &[u8] = b"";
    for (key, value, right) in entries {
        let shared = prev.iter().zip(*key).take_while(|(a, b)| a == b).count();
        out.map(4).text("k").bytes(&key[shared..]).text("p").integer(shared as i64);
        out.text("t").link_or_null(right.as_ref().map(Cid::as_cid_ref));
        out.text("v").link(value.as_cid_ref());
        prev = key;
    }
    out.text("l").link_or_null(left.map(Cid::as_cid_ref));
    out.into_bytes()
}

impl Built {
    /// The CID of the root: `data` in a commit.
    pub fn root(&self) -> Cid {
        self.root.expect("every tree has a root")
    }

    /// The blocks of all nodes by CID.
    pub fn nodes(&self) -> &BTreeMap<Cid, Vec<u8>> {
        &self.nodes
    }

    fn add_node(&mut self, records: &[Record<'_>], layer: u8) -> Cid {
        let is_here = |(key, _): &Record<'_>| height(key) == layer;
        let left_len = records.iter().position(is_here).unwrap_or(records.len());
        let left = self.add_child(&records[..left_len], layer);
        let mut entries = Vec::new();
        for group in records[left_len..].chunk_by(|_, next| !is_here(next)) {
            let (key, value) = group[0];
            entries.push((key, value, self.add_child(&group[1..], layer)));
        }
        let block = encode_node(left.as_ref(), &entries);
        let cid = Cid::of(Codec::DagCbor, &block);
        self.nodes.insert(cid, block);
        let entries = entries.into_iter().map(|(key, _, right)| (key.to_vec(), right)).collect();
        self.contents.insert(cid, Node { left, entries });
        cid
    }

    fn add_child(&mut self, records: &[Record<'_>], layer: u8) -> Option<Cid> {
        (!records.is_empty()).then(|| self.add_node(records, layer - 1))
    }

    /// The CIDs of the nodes that prove the creation, update or deletion of `keys`, where this is the
    /// tree afterwards.
    pub fn covering_proof<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> BTreeSet<Cid> {
        let mut proof = BTreeSet::new();
        for key in keys {
            let key = key.as_ref();
            let below = self.keys.iter().rfind(|other| &other[..] < key);
            let above = self.keys.iter().find(|other| &other[..] > key);
            let neighbors = below.into_iter().chain(above).map(|key| &key[..]);
            proof.extend(neighbors.chain([key]).flat_map(|key| self.path(key)));
        }
        proof
    }

    /// The CIDs of the nodes on the path to `key`, from the root.
    pub fn path(&self, key: &[u8]) -> Vec<Cid> {
        let mut path = Vec::new();
        let mut next = self.root;
        while let Some(cid) = next {
            path.push(cid);
            let Node { left, entries } = &self.contents[&cid];
            next = match entries.iter().rfind(|(other, _)| &other[..] <= key) {
                Some((other, _)) if other == key => return path,
                Some((_, right)) => *right,
                None => *left,
            };
        }
        path
    }
}
