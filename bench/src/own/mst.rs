//! Builds trees and looks keys up as any caller does.

use std::hint::black_box;

use protocol::{BoxError, Counts, Loaded, LookupCounts, Parts, Proof, Work};
use simnet::tree::reference;
use simnet::tree_records::{self, TreeRecords};
use wireproof::atproto::mst::{Builder, Tree, TreeError};
use wireproof::codec::{Cid, CidRef};

use super::Variants;

/// The variants; no check can be left out.
pub(super) fn variants() -> Variants {
    let names =
        ["insert-root/ascending", "insert-root/ascending/builder", "insert-root/shuffled", "bulk"];
    names.into_iter().chain(LOOKUP_VARIANTS).map(|name| (name.to_owned(), Vec::new())).collect()
}

/// The variants whose unit is a lookup.
pub(crate) const LOOKUP_VARIANTS: [&str; 3] = ["lookup", "lookup/batch", "lookup/snapshot"];

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let [file] = files else { return Err("not one file of records".into()) };
    let file = tree_records::read(file).ok_or("not a file of records")?;
    Ok(Some(match variant {
        "insert-root/ascending" => Box::new(Build { records: file.records, root: insert }),
        "insert-root/ascending/builder" => {
            Box::new(Build { records: file.records, root: insert_by_builder })
        }
        "insert-root/shuffled" => {
            let shuffled = file.shuffled.iter().map(|at| file.records[*at as usize]);
            Box::new(Build { records: shuffled.collect(), root: insert })
        }
        "bulk" => Box::new(Build { records: file.records, root: bulk }),
        "lookup" => Box::new(Lookups::new(&file, LookupMethod::Single)?),
        "lookup/batch" => Box::new(Lookups::new(&file, LookupMethod::Batch)?),
        "lookup/snapshot" => Box::new(Lookups::new(&file, LookupMethod::Snapshot)?),
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
    Some(Counts::from(lookups).with("records", entries.len() as u64).with("root", root))
}

/// A key and the CID of its record.
type Record<'f> = (&'f [u8], Cid);

fn loaded<'f>(keys: impl Iterator<Item = &'f [u8]>) -> Loaded {
    Loaded::of(keys.map(|key| key.len() + Cid::LEN))
}

/// Inserts one record after the other.
fn insert(records: &[Record<'_>]) -> Result<Cid, TreeError> {
    let mut tree = Tree::empty();
    for (key, cid) in records {
        tree.insert(key, *cid)?;
    }
    Ok(tree.root())
}

/// Inserts one record after the other through the append buffer.
fn insert_by_builder(records: &[Record<'_>]) -> Result<Cid, TreeError> {
    let mut builder = Builder::new();
    for (key, cid) in records {
        builder.insert(key, *cid)?;
    }
    Ok(builder.finish().root())
}

/// Builds from all records at once.
fn bulk(records: &[Record<'_>]) -> Result<Cid, TreeError> {
    Ok(Tree::from_sorted(records.iter().copied())?.root())
}

/// Builds a tree and requests its root.
struct Build<'f> {
    /// In the order of the variant.
    records: Vec<Record<'f>>,
    root: fn(&[Record<'_>]) -> Result<Cid, TreeError>,
}

impl Work for Build<'_> {
    fn loaded(&self) -> Loaded {
        loaded(self.records.iter().map(|(key, _)| *key))
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
struct Lookups<'f> {
    tree: Tree,
    keys: Vec<&'f [u8]>,
    method: LookupMethod,
}

#[derive(Clone, Copy)]
enum LookupMethod {
    /// One key after the other.
    Single,
    /// Keys in batches.
    Batch,
    /// One key after the other in a snapshot, which every pass builds.
    Snapshot,
}

impl<'f> Lookups<'f> {
    fn new(file: &TreeRecords<'f>, method: LookupMethod) -> Result<Self, TreeError> {
        let tree = Tree::from_sorted(file.records.iter().copied())?;
        let keys = file.lookups.iter().map(|at| file.records[*at as usize].0).collect();
        Ok(Self { tree, keys, method })
    }

    /// Calls `visit` with each result.
    #[inline(always)]
    fn look_up(&mut self, mut visit: impl FnMut(Option<CidRef<'_>>)) {
        let Self { tree, keys, method } = self;
        match method {
            LookupMethod::Single => keys.iter().for_each(|key| visit(tree.get(key).ok().flatten())),
            LookupMethod::Batch => {
                for keys in keys.chunks(BATCH) {
                    tree.get_many(keys).into_iter().flatten().for_each(&mut visit);
                }
            }
            LookupMethod::Snapshot => {
                let Ok(snapshot) = tree.snapshot() else { return };
                keys.iter().for_each(|key| visit(snapshot.get(key)));
            }
        }
    }
}

impl Work for Lookups<'_> {
    fn loaded(&self) -> Loaded {
        loaded(self.keys.iter().copied())
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

/// Keys looked up together.
const BATCH: usize = 256;
