//! Trees with a hash [index](super::index) of their records, for many lookups.

use codec::{AnyCid, Cid, CidRef};

use super::index::{Found, Index};
use super::{BlockSource, Tree, TreeError};

impl<'a, S: BlockSource<'a>> Tree<S> {
    /// Loads the whole tree and indexes its records: see [`IndexedTree`].
    ///
    /// # Errors
    /// If a node is missing or breaks a rule.
    pub fn indexed(mut self) -> Result<IndexedTree<S>, TreeError> {
        let index = self.index_records()?;
        Ok(IndexedTree { tree: self, index })
    }

    fn index_records(&mut self) -> Result<Index, TreeError> {
        let mut records = Vec::new();
        self.load_all(|arena, id| {
            records.extend(arena.node(id).entries.iter().map(|entry| entry.record()));
            Ok(())
        })?;
        Ok(Index::new(&self.arena, &records))
    }
}

/// A tree that is read often, even while it changes: for servers of record reads, and joins of one repository
/// against another. It finds a record, or that there is none, in two cache lines instead of a search.
///
/// The price is paid in [`Tree::indexed`]: every node that is not loaded is loaded, every node is visited and
/// every key hashed once, which takes about as long as looking up a quarter of the records in the tree does;
/// then a few nanoseconds an edit, and 10 to 32 bytes a record of memory. A tree that is read less belongs in
/// [`Tree::get`]. Lookups take a shared reference, so that several threads can make them.
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// use wireproof::atproto::mst::Tree;
/// let record = Cid::of(Codec::DagCbor, b"\xa0");
/// let mut tree = Tree::from_sorted([("a/1", record), ("a/2", record)])?.indexed()?;
/// assert_eq!(tree.get(b"a/2"), Some(record.as_cid_ref()));
/// tree.insert(b"a/3", record)?;
/// tree.remove(b"a/2")?;
/// assert_eq!(tree.get_many(&[b"a/2", b"a/3"]), [None, Some(record.as_cid_ref())]);
/// # Ok::<(), wireproof::atproto::mst::TreeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexedTree<S = ()> {
    // All nodes are loaded.
    tree: Tree<S>,
    index: Index,
}

impl<S> IndexedTree<S> {
    /// The record at `key`.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<CidRef<'_>> {
        self.checked(self.index.find(&self.tree.arena, key), key)
    }

    /// The records at `keys`, in their order: as [`get`](Self::get), with the memory accesses of many
    /// lookups interleaved.
    pub fn get_many(&self, keys: &[&[u8]]) -> Vec<Option<CidRef<'_>>> {
        let mut found = Vec::with_capacity(keys.len());
        self.index.find_many(&self.tree.arena, keys, &mut found);
        found.into_iter().zip(keys).map(|(found, key)| self.checked(found, key)).collect()
    }

    /// The record at `key`, of which the index knows this.
    #[inline]
    fn checked(&self, found: Found, key: &[u8]) -> Option<CidRef<'_>> {
        let Tree { arena, root, .. } = &self.tree;
        let record = match found {
            Found::Record(record) => record,
            Found::Absent => return None,
            Found::Unknown => arena.look_up_exactly(*root, key)?,
        };
        Some(arena.value_after(record, key.len()))
    }

    /// The CID of the root, as [`Tree::root`].
    pub fn root(&mut self) -> Cid {
        self.tree.root()
    }

    /// The nodes that are new, as [`Tree::collect_blocks`].
    pub fn collect_blocks(&mut self) -> Vec<(Cid, Vec<u8>)> {
        self.tree.collect_blocks()
    }

    /// The tree without the index.
    pub fn into_tree(self) -> Tree<S> {
        self.tree
    }
}

impl<'a, S: BlockSource<'a>> IndexedTree<S> {
    /// Puts `value` at `key`; returns the value before, if there was one.
    ///
    /// # Errors
    /// As [`Tree::insert`]. The tree is then as it was.
    pub fn insert(
        &mut self,
        key: &[u8],
        value: impl Into<AnyCid>,
    ) -> Result<Option<AnyCid>, TreeError> {
        let Self { tree, index } = self;
        let value = value.into();
        let value_len = value.as_bytes().len();
        let old = tree.insert(key, value.clone())?;
        if old.as_ref() == Some(&value) {
            return Ok(old);
        }
        let stored = || tree.arena.last_record(key.len(), value_len);
        match &old {
            // Overwritten in its place.
            Some(old) if old.as_bytes().len() == value_len => {}
            Some(_) => index.replace(&tree.arena, key, stored()),
            None => index.insert(key, stored()),
        }
        if index.is_crowded() {
            *index = tree.index_records()?;
        }
        Ok(old)
    }

    /// Removes the record at `key`; returns it, if it was there.
    ///
    /// # Errors
    /// As [`Tree::remove`]: the nodes are all there, so there is none.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<AnyCid>, TreeError> {
        let removed = self.tree.remove(key)?;
        if removed.is_some() {
            self.index.remove(&self.tree.arena, key);
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::mst::TreeFault;
    use crate::mst::index::{BUCKET_RECORDS, END, hash};
    use crate::mst::tests::{Records, build, value, value_of_any_length};

    /// Keys of all lengths that matter, and many whose hashes are equal.
    fn key(number: u64) -> Vec<u8> {
        match number % 4 {
            0 => format!("com.example.post/3jqfcqzm{number:05}"),
            1 => format!("a/{number}"),
            2 => format!("{number:05}.the.same.and.the.same/self"),
            _ => format!("{number:05}/{}", "k".repeat(number as usize % 70)),
        }
        .into_bytes()
    }

    fn records_of(numbers: impl Iterator<Item = u64>) -> Records {
        numbers.map(|number| (key(number), value(number))).collect()
    }

    fn indexed(records: &Records) -> IndexedTree {
        let records = records.iter().map(|(key, value)| (key, value.clone()));
        Tree::from_sorted(records).unwrap().indexed().unwrap()
    }

    /// Looks up `keys`, alone and together; returns how many the index has.
    fn check_lookups(tree: &IndexedTree<impl Sized>, records: &Records, keys: &[Vec<u8>]) -> usize {
        let expected = |key: &Vec<u8>| records.get(key).map(AnyCid::as_cid_ref);
        for key in keys {
            assert_eq!(tree.get(key), expected(key));
        }
        let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        assert!(tree.get_many(&borrowed).into_iter().eq(keys.iter().map(expected)));
        let is_indexed =
            |key: &&Vec<u8>| matches!(tree.index.find(&tree.tree.arena, key), Found::Record(_));
        keys.iter().filter(is_indexed).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn an_indexed_tree_finds_what_it_has_after_each_edit(
            numbers in proptest::collection::btree_set(0..80u64, 0..80),
            edits in proptest::collection::vec((0..80u64, 0..5u64), 1..60),
        ) {
            let mut records = records_of(numbers.into_iter());
            let mut tree = indexed(&records);
            let keys: Vec<Vec<u8>> = (0..80).map(key).collect();
            for (number, seed) in edits {
                let key = key(number);
                if seed == 0 {
                    prop_assert_eq!(tree.remove(&key).unwrap(), records.remove(&key));
                } else {
                    let value = value_of_any_length(seed);
                    let old = tree.insert(&key, value.clone()).unwrap();
                    prop_assert_eq!(old, records.insert(key, value));
                }
                check_lookups(&tree, &records, &keys);
            }
            let built = build(&records);
            prop_assert_eq!(tree.root(), built.root());
            prop_assert_eq!(&BTreeMap::from_iter(tree.collect_blocks()), built.nodes());
            prop_assert_eq!(tree.into_tree().root(), built.root());
        }
    }

    #[test]
    fn an_index_grows_with_its_tree() {
        let keys: Vec<Vec<u8>> = (0..2_000).map(|n| format!("a/{n:04}").into_bytes()).collect();
        let mut records = Records::new();
        let mut tree = indexed(&records);
        for (number, key) in (0..).zip(&keys) {
            tree.insert(key, value(number)).unwrap();
            assert_eq!(tree.remove(b"absent"), Ok(None));
            records.insert(key.clone(), value(number));
        }
        let indexed = check_lookups(&tree, &records, &keys);
        assert!(indexed > 1_800, "{indexed}");
        assert_eq!(tree.index.find(&tree.tree.arena, b"b"), Found::Absent);
    }

    #[test]
    fn long_keys_that_differ_in_their_middle_are_not_the_same() {
        let key =
            |middle: char| [&"a".repeat(END), &*middle.to_string(), &"z".repeat(END)].concat();
        let records = Records::from([(key('m').into_bytes(), value(1))]);
        let keys = ['m', 'n'].map(|middle| key(middle).into_bytes());
        assert_eq!(check_lookups(&indexed(&records), &records, &keys), 1);
    }

    #[test]
    fn a_full_bucket_takes_no_more_and_loses_no_record() {
        let keys: Vec<Vec<u8>> = (0..1_000)
            .map(|number| format!("{number:04}.the.same.and.the.same/self").into_bytes())
            .collect();
        assert!(keys.iter().all(|key| hash(key) == hash(&keys[0])));
        let records: Records = keys.iter().cloned().zip((0..).map(value)).collect();
        let mut tree = indexed(&records);
        // All have the same tag, of which the first is found.
        assert!((1..BUCKET_RECORDS).contains(&check_lookups(&tree, &records, &keys)));
        for key in &keys[..900] {
            tree.remove(key).unwrap();
        }
        let left = keys[900..].iter().map(|key| (key.clone(), records[key].clone())).collect();
        check_lookups(&tree, &left, &keys);
    }

    #[test]
    fn indexing_a_partial_tree_loads_what_is_not_loaded_and_fails_at_a_missing_node() {
        let records = records_of(0..1_000);
        let keys: Vec<Vec<u8>> = records.keys().cloned().collect();
        let built = build(&records);
        let source: BTreeMap<Cid, &[u8]> =
            built.nodes().iter().map(|(cid, block)| (*cid, &block[..])).collect();
        let mut tree = Tree::load_partial(built.root(), &source);
        assert!(keys[..100].iter().all(|key| tree.get(key).unwrap().is_some()));
        let indexed = check_lookups(&tree.indexed().unwrap(), &records, &keys);
        assert!(indexed > 450, "those with equal hashes share few buckets: {indexed}");
        for missing in source.keys().step_by(7) {
            let mut less = source.clone();
            less.remove(missing);
            let error = Tree::load_partial(built.root(), &less).indexed().map(drop).unwrap_err();
            assert_eq!((error.cid, error.fault), (Some(*missing), TreeFault::Missing));
        }
    }
}
