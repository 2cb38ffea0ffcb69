//! Merkle trees over a list, as RFC 9162 (section 2.1) defines them: roots, inclusion proofs, and the verification of both.
//!
//! ```text
//! leaf(d)        = SHA-256(0x00 || d)
//! node(l, r)     = SHA-256(0x01 || l || r)
//! root(d)        = leaf(d)
//! root(d1 … dn)  = node(root(d1 … dk), root(dk+1 … dn)), k the largest power of two below n
//! ```

use kernels::sha256::{self, Digest};

/// Computes the root of a list, and the proofs of some of its entries, with memory for its height only.
#[derive(Clone, Debug, Default)]
pub struct MerkleTree {
    /// Roots of complete subtrees, from the left and the largest.
    subtrees: Vec<Subtree>,
    len: u64,
    watched: Vec<InclusionProof>,
}

#[derive(Clone, Copy, Debug)]
struct Subtree {
    root: Digest,
    /// Its first entry, and the one after its last.
    range: (u64, u64),
}

/// The path from an entry to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof {
    /// The place of the entry, from 0.
    pub index: u64,
    /// The roots of the subtrees next to the path, from the entry up.
    pub path: Vec<Digest>,
}

impl MerkleTree {
    /// A tree without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        let range = (self.len, self.len + 1);
        self.subtrees.push(Subtree { root: leaf(entry), range });
        self.len += 1;
        // As many merges as the number of entries has factors of two.
        for _ in 0..self.len.trailing_zeros() {
            self.merge_last();
        }
    }

    /// Makes a proof of the entry that is added next.
    pub fn watch_next(&mut self) {
        self.watched.push(InclusionProof { index: self.len, path: Vec::new() });
    }

    /// The root, and the proofs of the watched entries in their order. Without entries the root is the hash of nothing.
    pub fn finish(mut self) -> (Digest, Vec<InclusionProof>) {
        while self.subtrees.len() > 1 {
            self.merge_last();
        }
        let root = self.subtrees.pop().map_or_else(|| sha256::digest(&[]), |last| last.root);
        (root, self.watched)
    }

    /// Merges the last two subtrees, and adds either to the proofs of the other's entries.
    fn merge_last(&mut self) {
        let (Some(right), Some(left)) = (self.subtrees.pop(), self.subtrees.pop()) else { return };
        let contains = |tree: &Subtree, index| (tree.range.0..tree.range.1).contains(&index);
        for proof in &mut self.watched {
            if contains(&left, proof.index) {
                proof.path.push(right.root);
            } else if contains(&right, proof.index) {
                proof.path.push(left.root);
            }
        }
        let range = (left.range.0, right.range.1);
        self.subtrees.push(Subtree { root: node(&left.root, &right.root), range });
    }
}

impl InclusionProof {
    /// The root of the list of `len` entries that has this entry at the place of the proof; `None` if no such list has a path of
    /// this length there.
    pub fn root(&self, entry: &[u8], len: u64) -> Option<Digest> {
        if self.index >= len {
            return None;
        }
        let (mut place, mut last) = (self.index, len - 1);
        let mut root = leaf(entry);
        for sibling in &self.path {
            if last == 0 {
                return None;
            }
            if place & 1 == 1 || place == last {
                root = node(sibling, &root);
                while place & 1 == 0 && place != 0 {
                    (place, last) = (place >> 1, last >> 1);
                }
            } else {
                root = node(&root, sibling);
            }
            (place, last) = (place >> 1, last >> 1);
        }
        (last == 0).then_some(root)
    }
}

fn leaf(entry: &[u8]) -> Digest {
    sha256::digest_parts(&[&[0], entry])
}

fn node(left: &Digest, right: &Digest) -> Digest {
    sha256::digest_parts(&[&[1], left, right])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of RFC 9162, word by word.
    fn defined_root(entries: &[Vec<u8>]) -> Digest {
        match entries {
            [] => sha256::digest(&[]),
            [entry] => leaf(entry),
            _ => {
                let half = entries.len().next_power_of_two() / 2;
                node(&defined_root(&entries[..half]), &defined_root(&entries[half..]))
            }
        }
    }

    fn defined_path(index: usize, entries: &[Vec<u8>]) -> Vec<Digest> {
        if entries.len() < 2 {
            return Vec::new();
        }
        let (left, right) = entries.split_at(entries.len().next_power_of_two() / 2);
        let (mut path, sibling) = match index.checked_sub(left.len()) {
            None => (defined_path(index, left), defined_root(right)),
            Some(index) => (defined_path(index, right), defined_root(left)),
        };
        path.push(sibling);
        path
    }

    fn entries(len: usize) -> Vec<Vec<u8>> {
        (0..len).map(|entry| entry.to_string().into_bytes()).collect()
    }

    fn tree(entries: &[Vec<u8>]) -> (Digest, Vec<InclusionProof>) {
        let mut tree = MerkleTree::new();
        for entry in entries {
            tree.watch_next();
            tree.push(entry);
        }
        tree.finish()
    }

    #[test]
    fn roots_and_paths_are_as_defined() {
        for len in 0..130 {
            let entries = entries(len);
            let (root, proofs) = tree(&entries);
            assert_eq!(root, defined_root(&entries), "{len}");
            for (index, proof) in proofs.iter().enumerate() {
                assert_eq!(proof.path, defined_path(index, &entries), "{index} of {len}");
                assert_eq!(proof.root(&entries[index], len as u64), Some(root));
            }
        }
    }

    #[test]
    fn a_proof_holds_for_its_entry_place_and_length_only() {
        for len in 1..40_u64 {
            let entries = entries(len as usize);
            let (root, proofs) = tree(&entries);
            for proof in &proofs {
                let entry = &entries[proof.index as usize];
                for place in (0..len + 3).filter(|place| *place != proof.index) {
                    let moved = InclusionProof { index: place, ..proof.clone() };
                    assert_ne!(moved.root(entry, len), Some(root), "{place} of {len}");
                }
                assert_ne!(proof.root(b"other", len), Some(root));
                let mut longer = proof.clone();
                longer.path.push([0; 32]);
                assert_eq!(longer.root(entry, len), None);
                let mut shorter = proof.clone();
                if shorter.path.pop().is_some() {
                    assert_eq!(shorter.root(entry, len), None);
                }
                for at in 0..proof.path.len() {
                    let mut changed = proof.clone();
                    changed.path[at][0] ^= 1;
                    assert_ne!(changed.root(entry, len), Some(root));
                }
            }
        }
    }

    #[test]
    fn lengths_up_to_the_largest_are_safe() {
        let proof = InclusionProof { index: u64::MAX - 1, path: vec![[0; 32]; 64] };
        let _ = proof.root(b"", u64::MAX);
        assert_eq!(InclusionProof { index: u64::MAX, path: vec![] }.root(b"", u64::MAX), None);
        assert_eq!(InclusionProof { index: 0, path: vec![] }.root(b"", 0), None);
    }
}
