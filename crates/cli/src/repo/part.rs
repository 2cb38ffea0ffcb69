//! The part of a repository that has all records of some collections.

use std::io::{self, BufWriter, Write};

use atproto::mst::canonical::{KeyRanges, search_ranges};
use atproto::repo::{Record, Repository};
use atproto::syntax::{CollectionPatternBuf, RepoPathChecker};
use codec::{Cid, car};

/// All records of some collections, and the nodes that can have their keys.
pub(super) struct Part<'a> {
    commit: (Cid, &'a [u8]),
    nodes: Vec<(Cid, &'a [u8])>,
    pub(super) records: Vec<Record<'a>>,
}

impl<'a> Part<'a> {
    /// Reads the part. Its nodes must be canonical and complete, and its keys record paths.
    pub(super) fn read(
        repository: &Repository<'a>,
        collections: &[CollectionPatternBuf],
    ) -> Result<Self, String> {
        let archive = repository.archive();
        let ranges = KeyRanges::of_collections(collections);
        let found = search_ranges(repository.commit().data, archive, ranges, u64::MAX)
            .map_err(|error| error.to_string())?;
        let mut paths = RepoPathChecker::default();
        let mut records = Vec::with_capacity(found.records.len());
        for (key, value) in &found.records {
            let path = String::from_utf8_lossy(key).into_owned();
            paths.check(key).map_err(|error| format!("the record path {path:?}: {error}"))?;
            let block = value.to_cid().and_then(|cid| Some((cid, archive.block(&cid)?)));
            let (cid, block) = block.ok_or_else(|| format!("the record at {path} is missing"))?;
            records.push(Record { path, cid, block });
        }
        let commit = (repository.root(), repository.commit_block());
        Ok(Self { commit, nodes: found.nodes, records })
    }

    /// Writes the part as a CAR, which `wireproof verify --collection` proves.
    pub(super) fn write_car(&self, out: &mut dyn Write) -> io::Result<()> {
        let (root, commit) = self.commit;
        let mut writer = car::Writer::new(BufWriter::new(out), &[root])?;
        writer.block(&root, commit)?;
        self.nodes.iter().try_for_each(|(cid, block)| writer.block(cid, block))?;
        let mut records: Vec<_> = self.records.iter().map(|r| (r.cid, r.block)).collect();
        records.sort_by_key(|(cid, _)| *cid);
        records.dedup_by_key(|(cid, _)| *cid);
        records.iter().try_for_each(|(cid, block)| writer.block(cid, block))?;
        writer.into_inner().flush()
    }
}
