//! The records of a corpus, put into trees, and the lookups, answered from one.

use std::hint::black_box;

use serde_json::json;

use super::Peer;
use super::corpus::Corpus;
use crate::protocol::guarded;
use crate::{Parts, Proof, Refusal, Size, Work};

pub(super) fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    prepare::<P>(variant, Corpus::read(files)?).map_err(|refusal| refusal.to_string())
}

fn prepare<P: Peer>(variant: &str, corpus: Corpus) -> Result<Box<dyn Work>, Refusal> {
    let peer = P::start();
    let read = |(key, cid): &(String, [u8; 36])| Ok((key.clone(), P::cid(cid)?));
    let sorted = corpus.records.iter().map(read).collect::<Result<Vec<_>, Refusal>>()?;
    Ok(match variant {
        "lookup" => {
            let tree = guarded(|| peer.insert(&sorted))?;
            Box::new(Lookups { peer, tree, keys: keys(&sorted, &corpus.asked) })
        }
        "insert-root/shuffled" => {
            let records = corpus.shuffled.iter().map(|index| sorted[*index].clone()).collect();
            Box::new(Insertion { peer, records })
        }
        _ => Box::new(Insertion { peer, records: sorted }),
    })
}

fn keys<C>(records: &[(String, C)], asked: &[usize]) -> Vec<String> {
    asked.iter().map(|index| records[*index].0.clone()).collect()
}

/// A tree is built from these and forgotten.
struct Insertion<P: Peer> {
    peer: P,
    records: Vec<(String, P::Cid)>,
}

impl<P: Peer> Insertion<P> {
    fn root(&self) -> Result<P::Cid, Refusal> {
        guarded(|| self.peer.root(&mut self.peer.insert(&self.records)?))
    }
}

impl<P: Peer> Work for Insertion<P> {
    fn size(&self) -> Size {
        size(self.records.iter().map(|(key, _)| key))
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let root = self.root()?.to_string();
        Ok(json!({ "records": self.records.len(), "root": root }).into())
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        black_box(self.root()?);
        Ok(Parts::default())
    }
}

/// Keys to look up, with text of their own: nobody finds one by its address.
struct Lookups<P: Peer> {
    peer: P,
    tree: P::Tree,
    keys: Vec<String>,
}

impl<P: Peer> Lookups<P> {
    fn look(&mut self, mut found: impl FnMut(&P::Cid)) -> Result<(), Refusal> {
        for key in &self.keys {
            if let Some(cid) = self.peer.get(&mut self.tree, key)? {
                found(&cid);
            }
        }
        Ok(())
    }
}

impl<P: Peer> Work for Lookups<P> {
    fn size(&self) -> Size {
        size(self.keys.iter())
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let (mut found, mut checksum) = (0_u64, 0_u32);
        let lookups = self.keys.len();
        self.look(|cid| {
            found += 1;
            checksum = checksum.wrapping_add(first_word(P::digest(cid)));
        })?;
        Ok(json!({ "lookups": lookups, "found": found, "lookup_checksum": checksum }).into())
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        self.look(|cid| {
            black_box(cid);
        })?;
        Ok(Parts::default())
    }
}

fn first_word(digest: &[u8]) -> u32 {
    digest.first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

/// The bytes of each key with its CID.
fn size<'a>(keys: impl ExactSizeIterator<Item = &'a String>) -> Size {
    Size { units: keys.len(), bytes: keys.map(|key| key.len() + 36).sum() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fmt;

    use super::super::corpus::tests::two_records;
    use super::*;
    use crate::Variant;

    /// Its root is the CID that was inserted first.
    struct Map;

    #[derive(Clone)]
    struct Bytes([u8; 36]);

    impl fmt::Display for Bytes {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "{:02x}", self.0[4])
        }
    }

    impl Peer for Map {
        type Cid = Bytes;
        type Tree = (Option<Bytes>, HashMap<String, Bytes>);

        const VARIANTS: &'static [Variant] = &super::super::VARIANTS;

        fn start() -> Self {
            Map
        }

        fn cid(bytes: &[u8; 36]) -> Result<Bytes, Refusal> {
            Ok(Bytes(*bytes))
        }

        fn digest(cid: &Bytes) -> &[u8] {
            &cid.0[4..]
        }

        fn insert(&self, records: &[(String, Bytes)]) -> Result<Self::Tree, Refusal> {
            Ok((records.first().map(|(_, cid)| cid.clone()), records.iter().cloned().collect()))
        }

        fn root(&self, tree: &mut Self::Tree) -> Result<Bytes, Refusal> {
            tree.0.clone().ok_or_else(|| "an empty tree".into())
        }

        fn get(&self, tree: &mut Self::Tree, key: &str) -> Result<Option<Bytes>, Refusal> {
            Ok(tree.1.get(key).cloned())
        }
    }

    fn loaded(variant: &str) -> Box<dyn Work> {
        let path = crate::files::scratch("records");
        std::fs::write(&path, two_records()).unwrap();
        let work = load::<Map>(variant, &[path.to_str().unwrap()]).unwrap();
        std::fs::remove_file(path).unwrap();
        work
    }

    fn counts(variant: &str) -> serde_json::Value {
        loaded(variant).prove().unwrap().counts
    }

    #[test]
    fn a_tree_is_given_its_records_in_the_order_asked_for() {
        assert_eq!(counts("insert-root/ascending"), json!({ "records": 2, "root": "05" }));
        assert_eq!(counts("insert-root/shuffled"), json!({ "records": 2, "root": "ff" }));
    }

    #[test]
    fn the_checksum_is_the_sum_of_first_words_and_wraps() {
        let checksum = 2_u64 * 0xffff_ffff + 0x0505_0505;
        assert_eq!(
            counts("lookup"),
            json!({ "lookups": 3, "found": 3, "lookup_checksum": checksum as u32 })
        );
    }

    #[test]
    fn the_bytes_of_a_record_are_its_key_and_its_cid() {
        let (insertion, lookup) = (loaded("insert-root/ascending").size(), loaded("lookup").size());
        assert_eq!((insertion.units, insertion.bytes), (2, 2 * 37));
        assert_eq!((lookup.units, lookup.bytes), (3, 3 * 37));
    }
}
