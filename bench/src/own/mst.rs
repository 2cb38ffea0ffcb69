//! Builds trees and looks keys up as any caller does.

use std::hint::black_box;

use atproto::mst::{Builder, Tree, TreeError};
use codec::{Cid, CidRef};
use protocol::{BoxError, Checksum, Counts, Loaded, LookupCounts, Parts, Proof, Work};
use simnet::tree::reference;
use simnet::tree_records::{self, Operation, ROOT_EVERY, TreeRecords};

use super::Variants;

/// The variants; no check can be left out.
pub(super) fn variants() -> Variants {
    let names =
        ["insert-root/ascending", "insert-root/ascending/builder", "insert-root/shuffled", "bulk"];
    let names = names.into_iter().chain(LOOKUP_VARIANTS).chain([MIXED_VARIANT]);
    names.map(|name| (name.to_owned(), Vec::new())).collect()
}

/// The variants whose unit is a lookup.
pub(crate) const LOOKUP_VARIANTS: [&str; 4] =
    ["lookup", "lookup/batch", "lookup/indexed", "lookup/indexed/changing"];

/// The variant whose unit is an operation.
pub(crate) const MIXED_VARIANT: &str = "mixed";

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let [file] = files else { return Err("not one file of records".into()) };
    let file = tree_records::read(file).ok_or("not a file of records")?;
    Ok(Some(match variant {
        "insert-root/ascending" => Box::new(Build::new(file.records, insert)),
        "insert-root/ascending/builder" => Box::new(Build::new(file.records, insert_by_builder)),
        "insert-root/shuffled" => {
            let shuffled = file.shuffled.iter().map(|at| file.records[*at as usize]);
            Box::new(Build::new(shuffled, insert))
        }
        "bulk" => Box::new(Build::new(file.records, bulk)),
        "lookup" => Box::new(Lookups::new(&file, LookupMethod::Single)?),
        "lookup/batch" => Box::new(Lookups::new(&file, LookupMethod::Batch)?),
        "lookup/indexed" => Box::new(Lookups::new(&file, LookupMethod::Indexed)?),
        "lookup/indexed/changing" => Box::new(Lookups::new(&file, LookupMethod::Changing)?),
        MIXED_VARIANT => Box::new(Mixed::new(&file)),
        _ => return Ok(None),
    }))
}

/// The reference counts of a file: the root by the plain reference tree, the lookups by the file itself. `None` if a
/// key is not text.
pub(crate) fn counts(file: &TreeRecords<'_>) -> Option<Counts> {
    let mut lookups = LookupCounts { lookups: file.lookups.len() as u64, ..Default::default() };
    for at in &file.lookups {
        lookups.add_found(file.records[*at as usize].1.digest());
    }
    let mut entries = Vec::with_capacity(file.records.len());
    for (key, cid) in &file.records {
        entries.push((str::from_utf8(key).ok()?, *cid));
    }
    let root = reference::build(&entries).root().to_string();
    let operations = tree_records::count_operations(&file.records, &file.operations)?;
    let tree = Counts::from(lookups).with("records", entries.len() as u64).with("root", root);
    Some(tree.with_all(Counts::from_fields(&operations)))
}

/// A key, and the CID of its record. Every runner owns the keys that it passes to its library, so that all of them read the
/// same memory.
type Record = (Box<[u8]>, Cid);

fn loaded<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Loaded {
    Loaded::of(keys.map(|key| key.len() + Cid::LEN))
}

/// Inserts one record after the other.
fn insert(records: &[Record]) -> Result<Cid, TreeError> {
    let mut tree = Tree::empty();
    for (key, cid) in records {
        tree.insert(key, *cid)?;
    }
    Ok(tree.root())
}

/// Inserts one record after the other through the append buffer.
fn insert_by_builder(records: &[Record]) -> Result<Cid, TreeError> {
    let mut builder = Builder::new();
    for (key, cid) in records {
        builder.insert(key, *cid)?;
    }
    Ok(builder.finish().root())
}

/// Builds from all records at once.
fn bulk(records: &[Record]) -> Result<Cid, TreeError> {
    Ok(Tree::from_sorted(records.iter().map(|(key, cid)| (key, *cid)))?.root())
}

/// Builds a tree and requests its root.
struct Build {
    /// In the order of the variant.
    records: Vec<Record>,
    root: fn(&[Record]) -> Result<Cid, TreeError>,
}

impl Build {
    fn new<'f>(
        records: impl IntoIterator<Item = (&'f [u8], Cid)>,
        root: fn(&[Record]) -> Result<Cid, TreeError>,
    ) -> Self {
        Self { records: records.into_iter().map(|(key, cid)| (key.into(), cid)).collect(), root }
    }
}

impl Work for Build {
    fn loaded(&self) -> Loaded {
        loaded(self.records.iter().map(|(key, _)| &**key))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let root = (self.root)(&self.records)?.to_string();
        let counts = Counts::from_iter([("records", self.records.len() as u64)]);
        Ok(counts.with("root", root).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let _ = black_box((self.root)(&self.records));
        Ok(Parts::default())
    }
}

/// Looks keys up in a tree that was built at load.
struct Lookups {
    tree: Tree,
    /// One per lookup, as in the other runners.
    keys: Vec<Box<[u8]>>,
    method: LookupMethod,
}

#[derive(Clone, Copy)]
enum LookupMethod {
    /// One key after the other.
    Single,
    /// Keys in batches.
    Batch,
    /// One key after the other in an indexed tree. Every pass builds the index.
    Indexed,
    /// The same, and before every [`CHANGE_EVERY`] lookups a record is removed and put back.
    Changing,
}

impl Lookups {
    fn new(file: &TreeRecords<'_>, method: LookupMethod) -> Result<Self, TreeError> {
        let tree = Tree::from_sorted(file.records.iter().copied())?;
        let keys = file.lookups.iter().map(|at| file.records[*at as usize].0.into()).collect();
        Ok(Self { tree, keys, method })
    }

    /// Calls `visit` with every result.
    #[inline(always)]
    fn look_up(&mut self, mut visit: impl FnMut(Option<CidRef<'_>>)) {
        let Self { tree, keys, method } = self;
        match method {
            LookupMethod::Single => keys.iter().for_each(|key| visit(tree.get(key).ok().flatten())),
            LookupMethod::Batch => {
                for keys in keys.chunks(BATCH) {
                    let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
                    tree.get_many(&keys).into_iter().flatten().for_each(&mut visit);
                }
            }
            LookupMethod::Indexed => {
                let Ok(indexed) = std::mem::replace(tree, Tree::empty()).indexed() else { return };
                keys.iter().for_each(|key| visit(indexed.get(key)));
                *tree = indexed.into_tree();
            }
            LookupMethod::Changing => {
                let Ok(mut indexed) = std::mem::replace(tree, Tree::empty()).indexed() else {
                    return;
                };
                for keys in keys.chunks(CHANGE_EVERY) {
                    if let Ok(Some(record)) = indexed.remove(&keys[0]) {
                        let _ = indexed.insert(&keys[0], record);
                    }
                    keys.iter().for_each(|key| visit(indexed.get(key)));
                }
                *tree = indexed.into_tree();
            }
        }
    }
}

impl Work for Lookups {
    fn loaded(&self) -> Loaded {
        loaded(self.keys.iter().map(|key| &**key))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = LookupCounts { lookups: self.keys.len() as u64, ..Default::default() };
        self.look_up(|cid| {
            if let Some(cid) = cid.and_then(CidRef::to_cid) {
                counts.add_found(cid.digest());
            }
        });
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.look_up(|cid| {
            black_box(cid);
        });
        Ok(Parts::default())
    }
}

/// Inserts, updates, deletes and lookups in turn, the root every [`ROOT_EVERY`].
struct Mixed {
    steps: Vec<Step>,
}

/// An operation with its key.
enum Step {
    Insert(Box<[u8]>, Cid),
    Delete(Box<[u8]>),
    Lookup(Box<[u8]>),
}

impl Step {
    fn key(&self) -> &[u8] {
        match self {
            Self::Insert(key, _) | Self::Delete(key) | Self::Lookup(key) => key,
        }
    }
}

impl Mixed {
    fn new(file: &TreeRecords<'_>) -> Self {
        let record = |at: u32| file.records[at as usize];
        let step = |operation: &Operation| match *operation {
            Operation::Insert(at) => Step::Insert(record(at).0.into(), record(at).1),
            Operation::Update { key, value } => Step::Insert(record(key).0.into(), record(value).1),
            Operation::Delete(at) => Step::Delete(record(at).0.into()),
            Operation::Lookup(at) => Step::Lookup(record(at).0.into()),
        };
        Self { steps: file.operations.iter().map(step).collect() }
    }

    /// Calls `found` with the records found, and `root` with the roots.
    #[inline(always)]
    fn run(
        &self,
        mut found: impl FnMut(CidRef<'_>),
        mut root: impl FnMut(Cid),
    ) -> Result<(), TreeError> {
        let mut tree = Tree::empty();
        for some in self.steps.chunks(ROOT_EVERY) {
            for step in some {
                match step {
                    Step::Insert(key, cid) => drop(tree.insert(key, *cid)?),
                    Step::Delete(key) => drop(tree.remove(key)?),
                    Step::Lookup(key) => tree.get(key)?.into_iter().for_each(&mut found),
                }
            }
            root(tree.root());
        }
        Ok(())
    }
}

impl Work for Mixed {
    fn loaded(&self) -> Loaded {
        loaded(self.steps.iter().map(Step::key))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut hits = Checksum::default();
        let mut roots = Checksum::default();
        let mut last = None;
        self.run(
            |cid| cid.to_cid().into_iter().for_each(|cid| hits.add(cid.digest())),
            |cid| {
                roots.add(cid.digest());
                last = Some(cid);
            },
        )?;
        let last = last.map_or_else(String::new, |root| root.to_string());
        Ok(protocol::operation_counts(self.steps.len(), hits, roots, last).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.run(
            |cid| {
                black_box(cid);
            },
            |root| {
                black_box(root);
            },
        )?;
        Ok(Parts::default())
    }
}

/// Keys looked up together.
const BATCH: usize = 256;

/// Lookups from one change of the tree to the next.
const CHANGE_EVERY: usize = 64;
