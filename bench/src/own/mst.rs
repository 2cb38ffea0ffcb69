//! Building trees and looking up records, through the public API.

use std::hint::black_box;

use simnet::tree_records::{self, TreeRecords};
use wireproof::atproto::mst::{Builder, Tree, TreeError};
use wireproof::codec::{Cid, CidRef};

use super::Work;
use crate::corpora::records::checksum;
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name; none makes a check that another could leave out.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    let names = [
        "insert-root/ascending",
        "insert-root/ascending/builder",
        "insert-root/shuffled",
        "bulk",
        "lookup",
        "lookup/batch",
        "lookup/snapshot",
    ];
    names.into_iter().map(|name| (name.to_owned(), NO_CHECKS))
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let [file] = files else { return Err("not one file of records".to_owned()) };
    let file = tree_records::read(file).ok_or("not a file of records")?;
    Ok(Some(match variant {
        "insert-root/ascending" => Box::new(Made { records: file.records, make: insert }),
        "insert-root/ascending/builder" => {
            Box::new(Made { records: file.records, make: insert_by_builder })
        }
        "insert-root/shuffled" => {
            let records = picked(&file, &file.shuffled);
            Box::new(Made { records, make: insert })
        }
        "bulk" => Box::new(Made { records: file.records, make: build }),
        "lookup" => lookups(&file, LookupMethod::Single)?,
        "lookup/batch" => lookups(&file, LookupMethod::Batch)?,
        "lookup/snapshot" => lookups(&file, LookupMethod::Snapshot)?,
        _ => return Ok(None),
    }))
}

fn lookups<'f>(file: &TreeRecords<'f>, method: LookupMethod) -> Result<Box<dyn Work + 'f>, String> {
    Ok(Box::new(Lookups::new(file, method).map_err(|error| error.to_string())?))
}

/// A key and the record that it leads to.
type Record<'f> = (&'f [u8], Cid);

fn picked<'f>(file: &TreeRecords<'f>, places: &[u32]) -> Vec<Record<'f>> {
    places.iter().map(|at| file.records[*at as usize]).collect()
}

fn loaded(records: &[Record<'_>]) -> Loaded {
    let bytes = records.iter().map(|(key, _)| (key.len() + Cid::LEN) as u64).sum();
    Loaded { units: records.len() as u64, bytes }
}

/// One record after the other.
fn insert(records: &[Record<'_>]) -> Result<Cid, TreeError> {
    let mut tree = Tree::empty();
    for (key, cid) in records {
        tree.insert(key, *cid)?;
    }
    Ok(tree.root())
}

/// One record after the other, through the append buffer.
fn insert_by_builder(records: &[Record<'_>]) -> Result<Cid, TreeError> {
    let mut builder = Builder::new();
    for (key, cid) in records {
        builder.insert(key, *cid)?;
    }
    Ok(builder.finish().root())
}

/// All records at once.
fn build(records: &[Record<'_>]) -> Result<Cid, TreeError> {
    Ok(Tree::from_sorted(records.iter().copied())?.root())
}

/// A tree made of records.
struct Made<'f> {
    // In the order of the variant.
    records: Vec<Record<'f>>,
    make: fn(&[Record<'_>]) -> Result<Cid, TreeError>,
}

impl Work for Made<'_> {
    fn loaded(&self) -> Loaded {
        loaded(&self.records)
    }

    fn prove(&mut self) -> Counts {
        let counts = Counts::from_iter([("records", self.records.len() as u64)]);
        match (self.make)(&self.records) {
            Ok(root) => counts.with("root", root.to_string()),
            Err(error) => counts.with("root", error.to_string()),
        }
    }

    fn pass(&mut self) {
        let _ = black_box((self.make)(&self.records));
    }
}

/// Lookups in a tree that was built before.
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
    /// One key after the other in a snapshot, which every pass builds anew.
    Snapshot,
}

impl<'f> Lookups<'f> {
    fn new(file: &TreeRecords<'f>, method: LookupMethod) -> Result<Self, TreeError> {
        let tree = Tree::from_sorted(file.records.iter().copied())?;
        let keys = file.lookups.iter().map(|at| file.records[*at as usize].0).collect();
        Ok(Self { tree, keys, method })
    }
}

impl Work for Lookups<'_> {
    fn loaded(&self) -> Loaded {
        let bytes = self.keys.iter().map(|key| (key.len() + Cid::LEN) as u64).sum();
        Loaded { units: self.keys.len() as u64, bytes }
    }

    fn prove(&mut self) -> Counts {
        let mut found = Vec::with_capacity(self.keys.len());
        self.look_up(|cid| found.extend(cid.and_then(CidRef::to_cid)));
        Counts::from_iter([
            ("lookups", self.keys.len() as u64),
            ("found", found.len() as u64),
            ("lookup_checksum", checksum(found.into_iter())),
        ])
    }

    fn pass(&mut self) {
        self.look_up(|cid| {
            black_box(cid);
        });
    }
}

impl Lookups<'_> {
    /// Looks up all keys and calls `see` with each result.
    #[inline(always)]
    fn look_up(&mut self, mut see: impl FnMut(Option<CidRef<'_>>)) {
        let Self { tree, keys, method } = self;
        match method {
            LookupMethod::Single => keys.iter().for_each(|key| see(tree.get(key).ok().flatten())),
            LookupMethod::Batch => {
                for keys in keys.chunks(BATCH) {
                    tree.get_many(keys).into_iter().flatten().for_each(&mut see);
                }
            }
            LookupMethod::Snapshot => {
                let Ok(snapshot) = tree.snapshot() else { return };
                keys.iter().for_each(|key| see(snapshot.get(key)));
            }
        }
    }
}

/// Keys of a batch.
const BATCH: usize = 256;

const NO_CHECKS: &[&str] = &[];
