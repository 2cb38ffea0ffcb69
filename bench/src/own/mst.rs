//! How do we build trees and ask them when measured? Through the same calls as anyone.

use std::hint::black_box;

use simnet::tree_records::{self, TreeRecords};
use wireproof::atproto::mst::{Tree, TreeError};
use wireproof::codec::{Cid, CidRef};

use super::Work;
use crate::corpora::records::checksum;
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name; none makes a check that another could leave out.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    let names = ["insert-root/ascending", "insert-root/shuffled", "bulk", "lookup", "lookup/batch"];
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
        "insert-root/shuffled" => {
            let records = picked(&file, &file.shuffled);
            Box::new(Made { records, make: insert })
        }
        "bulk" => Box::new(Made { records: file.records, make: build }),
        "lookup" => Box::new(Asked::new(&file, 1).map_err(|error| error.to_string())?),
        "lookup/batch" => Box::new(Asked::new(&file, BATCH).map_err(|error| error.to_string())?),
        _ => return Ok(None),
    }))
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

/// Lookups in a tree that was made before.
struct Asked<'f> {
    tree: Tree,
    keys: Vec<&'f [u8]>,
    /// How many keys are looked up together.
    at_once: usize,
}

impl<'f> Asked<'f> {
    fn new(file: &TreeRecords<'f>, at_once: usize) -> Result<Self, TreeError> {
        let tree = Tree::from_sorted(file.records.iter().copied())?;
        let keys = file.lookups.iter().map(|at| file.records[*at as usize].0).collect();
        Ok(Self { tree, keys, at_once })
    }
}

impl Work for Asked<'_> {
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

impl Asked<'_> {
    /// Looks all keys up, and shows what is found.
    #[inline(always)]
    fn look_up(&mut self, mut see: impl FnMut(Option<CidRef<'_>>)) {
        let Self { tree, keys, at_once } = self;
        if *at_once == 1 {
            return keys.iter().for_each(|key| see(tree.get(key).ok().flatten()));
        }
        for keys in keys.chunks(*at_once) {
            tree.get_many(keys).into_iter().flatten().for_each(&mut see);
        }
    }
}

/// Keys handed over together.
const BATCH: usize = 256;

const NO_CHECKS: &[&str] = &[];
