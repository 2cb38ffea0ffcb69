//! A slice of a repository that proves one record or its absence, or all records of collections.

use atproto::mst::canonical;
use atproto::repo::Repository;
use atproto::syntax::CollectionPatternBuf;
use codec::Cid;
use crypto::PublicKey;
use serde::Serialize;
use verify::collections;
use verify::record::{self, Options};

use crate::repository::{Summary, invalid, refusal, summary};
use crate::{Refusal, Result};

/// A proved record, or its proved absence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// The fields of the commit, and the size of the proof.
    pub summary: Summary,
    /// The path.
    pub path: String,
    /// Offset and length of every node from the root to the record.
    pub nodes: Vec<(usize, usize)>,
    /// Offset and length of the record; `None` if it is proved to be absent.
    pub record: Option<(usize, usize)>,
}

/// Verifies the record at `path` as [`record::verify`] does.
///
/// # Errors
/// At the first fault.
pub fn view(slice: &[u8], path: &str, did: Option<&str>, key: &PublicKey) -> Result<Proof> {
    let options = Options::default();
    let of_slice = |rejection| refusal(slice, &rejection);
    let proof = record::verify(slice, path, did, key, &options).map_err(of_slice)?;
    let repository =
        Repository::read(slice, &options.archive).map_err(|error| of_slice(error.into()))?;
    let archive = repository.archive();
    let place = |block: &[u8]| (archive.offset_of(block) as usize, block.len());
    let nodes = canonical::search(repository.commit().data, &repository, path.as_bytes());
    let nodes = nodes.map_or(Vec::new(), |found| found.nodes);
    let summary = Summary {
        signed: true,
        blocks: archive.block_count(),
        nodes: proof.nodes() as u64,
        records: u64::from(proof.record().is_some()),
        extra_blocks: proof.extra().blocks,
        extra_bytes: proof.extra().bytes,
        invalid_records: u64::from(proof.invalid_record().is_some()),
        first_invalid: proof.invalid_record().map(|record| invalid(&repository, record)),
        ..summary(&repository)
    };
    Ok(Proof {
        summary,
        path: path.to_owned(),
        nodes: nodes.iter().map(|(_, block): &(Cid, &[u8])| place(block)).collect(),
        record: proof.record().map(|(_, block)| place(block)),
    })
}

/// All records of collections, proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The fields of the commit, and the size of the proof.
    pub summary: Summary,
    /// The records in the order of their paths.
    pub records: Vec<RangeRecord>,
}

/// A record of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RangeRecord {
    /// The path.
    pub path: String,
    /// Offset in the slice.
    pub offset: usize,
    /// Length in bytes.
    pub length: usize,
}

/// Verifies all records of the collections that match `patterns`, as [`collections::verify`] does.
///
/// # Errors
/// At the first fault, and if no collection is named.
pub fn range(
    slice: &[u8],
    patterns: &[CollectionPatternBuf],
    did: Option<&str>,
    key: &PublicKey,
) -> Result<Range> {
    if patterns.is_empty() {
        return Err(Refusal::new("argument", "no collection is named").into());
    }
    let options = Options::default();
    let of_slice = |rejection| refusal(slice, &rejection);
    let proof = collections::verify(slice, patterns, did, key, &options).map_err(of_slice)?;
    let repository =
        Repository::read(slice, &options.archive).map_err(|error| of_slice(error.into()))?;
    let archive = repository.archive();
    let records = proof.records().iter().map(|record| RangeRecord {
        path: record.path.clone(),
        offset: archive.offset_of(record.bytes) as usize,
        length: record.bytes.len(),
    });
    let invalid_records = proof.records().iter().filter_map(|record| record.invalid.as_ref());
    let summary = Summary {
        signed: true,
        blocks: archive.block_count(),
        nodes: proof.nodes().len() as u64,
        records: proof.records().len() as u64,
        extra_blocks: proof.extra().blocks,
        extra_bytes: proof.extra().bytes,
        invalid_records: invalid_records.clone().count() as u64,
        first_invalid: invalid_records.clone().next().map(|record| invalid(&repository, record)),
        ..summary(&repository)
    };
    Ok(Range { summary, records: records.collect() })
}
