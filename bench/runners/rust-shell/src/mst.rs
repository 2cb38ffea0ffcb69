//! The task `mst`: a unit is a record that goes into a tree, or a key that is looked up in one.
//!
//! A file of records:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | number of records, big-endian |
//! | 2, …, 36 | length of the key, the key, its CID; in ascending order |
//! | 4, 4 × that | number of indices, and the records in shuffled order |
//! | 4, 4 × that | number of indices, and the records to look up |
//! | 4, 9 × that | number of operations, and for each a byte (0 insert, 1 update, 2 delete, 3 look up), the indices of key and CID |

use std::fmt::Display;
use std::hint::black_box;

use protocol::{
    BoxError, Checksum, Counts, Loaded, LookupCounts, Parts, Proof, Work, operation_counts,
};

use crate::files::{read, split_prefixed, split_u32};
use crate::{Task, Variant, catch_panic};

/// A library that has Merkle search trees.
pub trait Peer: Sized + 'static {
    /// A CID as the library represents it; its text equals the CID's.
    type Cid: Clone + Display;
    type Tree;

    const VARIANTS: &'static [Variant];

    fn start() -> Self;

    /// Reads the bytes of a CID.
    ///
    /// # Errors
    ///
    /// When there is no such CID.
    fn cid(bytes: &[u8; 36]) -> Result<Self::Cid, BoxError>;

    /// The digest inside a CID.
    fn digest(cid: &Self::Cid) -> &[u8];

    /// Inserts records one by one, in the order given, into an empty tree.
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn insert(&self, records: &[(String, Self::Cid)]) -> Result<Self::Tree, BoxError>;

    /// The root of a tree whose blocks were not requested before.
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn root(&self, tree: &mut Self::Tree) -> Result<Self::Cid, BoxError>;

    /// The CID at a key.
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn get(&self, tree: &mut Self::Tree, key: &str) -> Result<Option<Self::Cid>, BoxError>;

    /// Makes these steps on an empty tree, and calls `seen` with the records found and the roots.
    ///
    /// # Errors
    ///
    /// When the library fails.
    fn run(
        &self,
        steps: &[Step<Self::Cid>],
        seen: impl FnMut(Seen<Self::Cid>),
    ) -> Result<(), BoxError>;
}

/// A step of the variant `mixed`.
pub enum Step<C> {
    Insert(String, C),
    Update(String, C),
    Delete(String),
    Lookup(String),
    /// The root is read.
    Root,
}

/// The result of a step.
pub enum Seen<C> {
    /// The CID of a record that a lookup found.
    Record(C),
    /// The CID of the root.
    Root(C),
}

/// The variants of a peer without a call for many records at once.
pub const VARIANTS: [Variant; 4] = [
    Variant { name: "insert-root/ascending", checks: &[] },
    Variant { name: "insert-root/shuffled", checks: &[] },
    Variant { name: "lookup", checks: &[] },
    Variant { name: "mixed", checks: &[] },
];

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "mst", variants: P::VARIANTS, load: load::<P> }
}

/// The records of one file.
struct Records {
    records: Vec<(String, [u8; 36])>,
    /// Indices of `records`, all of them.
    shuffled: Vec<usize>,
    /// Indices of `records`.
    lookups: Vec<usize>,
    operations: Vec<Operation>,
}

/// An operation; the numbers are indices of the records with its key and with its CID.
#[derive(Debug, PartialEq, Eq)]
struct Operation {
    kind: u8,
    key: usize,
    value: usize,
}

fn split(mut file: &[u8]) -> Option<Records> {
    let rest = &mut file;
    let mut records = Vec::new();
    for _ in 0..split_u32(rest)? {
        let key = str::from_utf8(split_prefixed(rest)?).ok()?.to_owned();
        records.push((key, rest.split_off(..36)?.try_into().ok()?));
    }
    let shuffled = indices(rest, records.len())?;
    let lookups = indices(rest, records.len())?;
    let operations = operations(rest, records.len())?;
    (rest.is_empty() && shuffled.len() == records.len()).then_some(Records {
        records,
        shuffled,
        lookups,
        operations,
    })
}

/// A list of indices below `bound`.
fn indices(rest: &mut &[u8], bound: usize) -> Option<Vec<usize>> {
    let count = split_u32(rest)?;
    let below = |index: &usize| *index < bound;
    (0..count).map(|_| usize::try_from(split_u32(rest)?).ok().filter(below)).collect()
}

/// A list of operations on records below `bound`.
fn operations(rest: &mut &[u8], bound: usize) -> Option<Vec<Operation>> {
    let count = split_u32(rest)?;
    let mut operation = || {
        let kind = *rest.split_off_first()?;
        let mut index = || usize::try_from(split_u32(rest)?).ok().filter(|at| *at < bound);
        (kind < 4).then_some(Operation { kind, key: index()?, value: index()? })
    };
    (0..count).map(|_| operation()).collect()
}

fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let [path] = files else { return Err("the records are one file".into()) };
    let corpus = split(&read(path)?).ok_or_else(|| format!("{path}: not a file of records"))?;
    let peer = P::start();
    let parse = |(key, cid): &(String, [u8; 36])| Ok((key.clone(), P::cid(cid)?));
    let sorted = corpus.records.iter().map(parse).collect::<Result<Vec<_>, BoxError>>()?;
    Ok(match variant {
        "lookup" => {
            let tree = catch_panic(|| peer.insert(&sorted))?;
            Box::new(Lookups { peer, tree, keys: keys(&sorted, &corpus.lookups) })
        }
        "mixed" => Box::new(Mixed { peer, steps: steps(&sorted, &corpus.operations) }),
        "insert-root/shuffled" => {
            let records = corpus.shuffled.iter().map(|index| sorted[*index].clone()).collect();
            Box::new(Insertion { peer, records })
        }
        _ => Box::new(Insertion { peer, records: sorted }),
    })
}

fn keys<C>(records: &[(String, C)], lookups: &[usize]) -> Vec<String> {
    lookups.iter().map(|index| records[*index].0.clone()).collect()
}

/// Builds a tree and requests its root.
struct Insertion<P: Peer> {
    peer: P,
    records: Vec<(String, P::Cid)>,
}

impl<P: Peer> Insertion<P> {
    fn root(&self) -> Result<P::Cid, BoxError> {
        catch_panic(|| self.peer.root(&mut self.peer.insert(&self.records)?))
    }
}

impl<P: Peer> Work for Insertion<P> {
    fn loaded(&self) -> Loaded {
        loaded(self.records.iter().map(|(key, _)| key))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let root = self.root()?.to_string();
        let counts = Counts::from_iter([("records", self.records.len() as u64)]);
        Ok(counts.with("root", root).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        black_box(self.root()?);
        Ok(Parts::default())
    }
}

/// Looks keys up. They own their text, so that none is found by its address.
struct Lookups<P: Peer> {
    peer: P,
    tree: P::Tree,
    keys: Vec<String>,
}

impl<P: Peer> Lookups<P> {
    fn look_up(&mut self, mut found: impl FnMut(&P::Cid)) -> Result<(), BoxError> {
        for key in &self.keys {
            if let Some(cid) = self.peer.get(&mut self.tree, key)? {
                found(&cid);
            }
        }
        Ok(())
    }
}

impl<P: Peer> Work for Lookups<P> {
    fn loaded(&self) -> Loaded {
        loaded(self.keys.iter())
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = LookupCounts { lookups: self.keys.len() as u64, ..Default::default() };
        self.look_up(|cid| counts.add_found(P::digest(cid)))?;
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.look_up(|cid| {
            black_box(cid);
        })?;
        Ok(Parts::default())
    }
}

/// The operations with their keys, and a reading of the root after every [`ROOT_EVERY`] and after the last.
fn steps<C: Clone>(records: &[(String, C)], operations: &[Operation]) -> Vec<Step<C>> {
    let mut steps = Vec::with_capacity(operations.len() + operations.len().div_ceil(ROOT_EVERY));
    for some in operations.chunks(ROOT_EVERY) {
        steps.extend(some.iter().map(|Operation { kind, key, value }| {
            let (key, cid) = (records[*key].0.clone(), &records[*value].1);
            match kind {
                0 => Step::Insert(key, cid.clone()),
                1 => Step::Update(key, cid.clone()),
                2 => Step::Delete(key),
                _ => Step::Lookup(key),
            }
        }));
        steps.push(Step::Root);
    }
    steps
}

/// Inserts, updates, deletes and looks keys up in turn.
struct Mixed<P: Peer> {
    peer: P,
    steps: Vec<Step<P::Cid>>,
}

impl<P: Peer> Mixed<P> {
    /// The keys of the operations.
    fn keys(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().filter_map(|step| match step {
            Step::Insert(key, _) | Step::Update(key, _) => Some(key),
            Step::Delete(key) | Step::Lookup(key) => Some(key),
            Step::Root => None,
        })
    }
}

impl<P: Peer> Work for Mixed<P> {
    fn loaded(&self) -> Loaded {
        let lens: Vec<usize> = self.keys().map(|key| key.len() + 36).collect();
        Loaded::of(lens.into_iter())
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let (mut hits, mut roots, mut last) = (Checksum::default(), Checksum::default(), None);
        catch_panic(|| {
            self.peer.run(&self.steps, |seen| match seen {
                Seen::Record(cid) => hits.add(P::digest(&cid)),
                Seen::Root(cid) => {
                    roots.add(P::digest(&cid));
                    last = Some(cid.to_string());
                }
            })
        })?;
        let operations = self.keys().count();
        Ok(operation_counts(operations, hits, roots, last.unwrap_or_default()).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        catch_panic(|| {
            self.peer.run(&self.steps, |seen| {
                black_box(seen);
            })
        })?;
        Ok(Parts::default())
    }
}

/// The number of operations from one reading of the root to the next.
const ROOT_EVERY: usize = 100;

/// The keys with their CIDs.
fn loaded<'a>(keys: impl Iterator<Item = &'a String>) -> Loaded {
    Loaded::of(keys.map(|key| key.len() + 36))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fmt;

    use super::*;

    /// Two records, `b` and then `a` in the shuffled order, three lookups; `b` is inserted, updated, deleted and looked up,
    /// then `a` inserted and looked up.
    fn two_records() -> Vec<u8> {
        let cid = |digest: u8| [[1, 0x71, 0x12, 0x20].as_slice(), &[digest; 32]].concat();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect();
        let (orders, count): (Vec<u8>, Vec<u8>) = (words(&[2, 1, 0, 3, 1, 1, 0]), words(&[2]));
        let operations = [(0, 1, 1), (1, 1, 0), (2, 1, 1), (3, 1, 1), (0, 0, 0), (3, 0, 0)];
        let operations: Vec<u8> = operations
            .iter()
            .flat_map(|(kind, key, cid)| [*kind, 0, 0, 0, *key, 0, 0, 0, *cid])
            .collect();
        let records = [&count, b"\0\x01a".as_slice(), &cid(5), b"\0\x01b", &cid(0xff)].concat();
        [&records, orders.as_slice(), &[0, 0, 0, 6], &operations].concat()
    }

    #[test]
    fn records_are_split_by_their_lengths_and_truncated_or_extended_files_are_rejected() {
        let file = two_records();
        let corpus = split(&file).unwrap();
        assert_eq!(corpus.records[1].0, "b");
        assert_eq!(corpus.records[1].1[4..], [0xff; 32]);
        assert_eq!((corpus.shuffled, corpus.lookups), (vec![1, 0], vec![1, 1, 0]));
        assert_eq!(corpus.operations[1], Operation { kind: 1, key: 1, value: 0 });
        assert!((0..file.len()).all(|len| split(&file[..len]).is_none()));
        assert!(split(&[file.as_slice(), &[0]].concat()).is_none());
    }

    #[test]
    fn an_index_out_of_range_is_rejected() {
        let mut file = two_records();
        *file.last_mut().unwrap() = 2;
        assert!(split(&file).is_none());
    }

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

        const VARIANTS: &'static [Variant] = &super::VARIANTS;

        fn start() -> Self {
            Map
        }

        fn cid(bytes: &[u8; 36]) -> Result<Bytes, BoxError> {
            Ok(Bytes(*bytes))
        }

        fn digest(cid: &Bytes) -> &[u8] {
            &cid.0[4..]
        }

        fn insert(&self, records: &[(String, Bytes)]) -> Result<Self::Tree, BoxError> {
            Ok((records.first().map(|(_, cid)| cid.clone()), records.iter().cloned().collect()))
        }

        fn root(&self, tree: &mut Self::Tree) -> Result<Bytes, BoxError> {
            tree.0.clone().ok_or_else(|| "an empty tree".into())
        }

        fn get(&self, tree: &mut Self::Tree, key: &str) -> Result<Option<Bytes>, BoxError> {
            Ok(tree.1.get(key).cloned())
        }

        fn run(
            &self,
            steps: &[Step<Bytes>],
            mut seen: impl FnMut(Seen<Bytes>),
        ) -> Result<(), BoxError> {
            let mut map: HashMap<&str, &Bytes> = HashMap::new();
            for step in steps {
                match step {
                    Step::Insert(key, cid) => assert!(map.insert(key, cid).is_none()),
                    Step::Update(key, cid) => assert!(map.insert(key, cid).is_some()),
                    Step::Delete(key) => assert!(map.remove(&**key).is_some()),
                    Step::Lookup(key) => map
                        .get(&**key)
                        .into_iter()
                        .for_each(|cid| seen(Seen::Record((*cid).clone()))),
                    Step::Root => seen(Seen::Root(Bytes([map.len() as u8; 36]))),
                }
            }
            Ok(())
        }
    }

    fn open(variant: &str) -> Box<dyn Work> {
        let path = crate::files::scratch("records");
        std::fs::write(&path, two_records()).unwrap();
        let work = load::<Map>(variant, &[path.to_str().unwrap()]).unwrap();
        std::fs::remove_file(path).unwrap();
        work
    }

    fn counts(variant: &str) -> Counts {
        open(variant).prove().unwrap().counts
    }

    #[test]
    fn a_tree_gets_its_records_in_the_order_of_the_variant() {
        let records = Counts::from_iter([("records", 2)]);
        assert_eq!(counts("insert-root/ascending"), records.clone().with("root", "05"));
        assert_eq!(counts("insert-root/shuffled"), records.with("root", "ff"));
    }

    #[test]
    fn the_checksum_is_the_sum_of_first_words_and_wraps() {
        let checksum = 2_u64 * 0xffff_ffff + 0x0505_0505;
        let expected =
            [("lookups", 3), ("found", 3), ("lookup_checksum", u64::from(checksum as u32))];
        assert_eq!(counts("lookup"), Counts::from_iter(expected));
    }

    #[test]
    fn operations_are_made_in_order_and_the_root_is_read_after_the_last() {
        let expected = [
            ("operations", 6),
            ("hits", 1),
            ("hit_checksum", 0x0505_0505),
            ("root_checksum", 0x0101_0101),
        ];
        assert_eq!(counts("mixed"), Counts::from_iter(expected).with("last_root", "01"));
        assert_eq!(open("mixed").loaded(), Loaded { units: 6, bytes: 6 * 37 });
    }

    #[test]
    fn the_bytes_of_a_record_are_its_key_and_its_cid() {
        let loaded = |variant| open(variant).loaded();
        assert_eq!(loaded("insert-root/ascending"), Loaded { units: 2, bytes: 2 * 37 });
        assert_eq!(loaded("lookup"), Loaded { units: 3, bytes: 3 * 37 });
    }
}
