//! `wireproof repo stats`: counts records, nodes and bytes of a repository.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroUsize;

use atproto::mst::TreeLimits;
use atproto::mst::canonical::Step;
use atproto::repo::{RepoError, Repository};
use codec::printable::PrintableLines;
use serde::Serialize;

use super::source::{OpenRepository, RepositoryName};
use super::{DownloadedArgs, StatsArgs, read, records};
use crate::batch::{self, Outcome};
use crate::failure::Failure;
use crate::inputs::{InputKind, Inputs};
use crate::json::RecordPath;
use crate::output::{Output, table, write_json_line};

pub(super) fn run(args: &StatsArgs, output: Output) -> Result<(), Failure> {
    let inputs = Inputs::new(&args.files, InputKind::Archives);
    match inputs.single() {
        Some(file) => {
            let stats = Stats::of(file, &args.downloaded, args.jobs.count());
            let stats = output.or_failure_document(args.json, stats)?;
            output.document(&stats, args.json, Stats::to_text)
        }
        None => {
            batch::run(inputs, &args.jobs, "read", args.json, output, |file| count_one(file, args))
        }
    }
}

/// Counts one archive among others.
fn count_one(file: &str, args: &StatsArgs) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct StatsLine<'a> {
        file: &'a str,
        #[serde(flatten)]
        stats: Option<&'a Stats>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    let counted = Stats::of(file, &args.downloaded, NonZeroUsize::MIN);
    let (stats, failure) = (counted.as_ref().ok(), counted.as_ref().err());
    let mut printed = Vec::new();
    if args.json {
        let error = failure.and_then(Failure::message);
        write_json_line(&mut printed, &StatsLine { file, stats, error })?;
    } else if let Some(stats) = stats {
        let text = format!("{file}:\n{}\n", stats.to_text());
        write!(printed, "{}", PrintableLines(&text))?;
    }
    Ok(Outcome { printed, result: counted.map(drop) })
}

#[derive(Serialize)]
struct Stats {
    did: String,
    rev: String,
    commit: String,
    data: String,
    bytes: usize,
    #[serde(rename = "block_count")]
    blocks: u64,
    nodes: u64,
    node_bytes: u64,
    height: Option<u8>,
    #[serde(flatten)]
    total: RecordCounts,
    collections: Vec<CollectionCounts>,
}

#[derive(Serialize)]
struct CollectionCounts {
    collection: String,
    #[serde(flatten)]
    counts: RecordCounts,
}

#[derive(Clone, Copy, Default, Serialize)]
struct RecordCounts {
    records: u64,
    record_bytes: u64,
}

impl RecordCounts {
    fn add(&mut self, bytes: usize) {
        self.records += 1;
        self.record_bytes += bytes as u64;
    }
}

impl Stats {
    fn of(name: &str, args: &DownloadedArgs, threads: NonZeroUsize) -> Result<Self, Failure> {
        let OpenRepository { name, bytes, .. } = &RepositoryName::parse(name).open(&[], args)?;
        let repository = read(name, bytes, threads)?;
        Self::new(&repository, bytes.len()).map_err(|error| Failure::refused(name, error))
    }

    fn new(repository: &Repository<'_>, bytes: usize) -> Result<Self, String> {
        let commit = repository.commit();
        let (nodes, node_bytes, height) = nodes(repository).map_err(|error| error.to_string())?;
        let (mut total, mut collections) = (RecordCounts::default(), BTreeMap::new());
        for record in records(repository) {
            let record = record?;
            let RecordPath { collection, .. } = RecordPath::split(&record.path);
            let counts: &mut RecordCounts = collections.entry(collection.to_owned()).or_default();
            counts.add(record.block.len());
            total.add(record.block.len());
        }
        let collection = |(collection, counts)| CollectionCounts { collection, counts };
        Ok(Self {
            did: commit.did.to_owned(),
            rev: commit.rev.to_owned(),
            commit: repository.root().to_string(),
            data: commit.data.to_string(),
            bytes,
            blocks: repository.archive().block_count(),
            nodes,
            node_bytes,
            height,
            total,
            collections: collections.into_iter().map(collection).collect(),
        })
    }

    fn to_text(&self) -> String {
        let Self { did, rev, commit, data, bytes, blocks, nodes, node_bytes, .. } = self;
        let height = self.height.map_or("none".to_owned(), |height| height.to_string());
        let RecordCounts { records, record_bytes } = self.total;
        let mut text = format!(
            "did      {did}\nrev      {rev}\ncommit   {commit}\ndata     {data}\n\
             file     {bytes} bytes, {blocks} blocks\n\
             tree     {nodes} nodes, {node_bytes} bytes, height {height}\n\
             records  {records}, {record_bytes} bytes\n"
        );
        if records > 0 {
            let row = |CollectionCounts { collection, counts }: &CollectionCounts| {
                [collection.clone(), counts.records.to_string(), counts.record_bytes.to_string()]
            };
            text.push('\n');
            text += &table(["collection", "records", "bytes"], self.collections.iter().map(row));
        }
        text
    }
}

/// Number of tree nodes, their bytes, and the height of the tree.
fn nodes(repository: &Repository<'_>) -> Result<(u64, u64, Option<u8>), RepoError> {
    let mut walk = repository.walk(&TreeLimits::default());
    let mut bytes = 0;
    while let Some(step) = walk.next() {
        match step {
            Ok(Step::Node { block, .. }) => bytes += block.len() as u64,
            Ok(Step::Record { .. }) => {}
            Err(error) => return Err(RepoError::in_tree(error, repository.archive())),
        }
    }
    let summary = walk.summary();
    Ok((summary.nodes, bytes, summary.height))
}
