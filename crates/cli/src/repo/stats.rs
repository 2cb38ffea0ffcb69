//! `wireproof repo stats`: how much is in it, and in which collections?

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use wireproof::atproto::mst::TreeLimits;
use wireproof::atproto::mst::canonical::Step;
use wireproof::atproto::repo::{RepoError, Repository};

use super::{collection, open, read, refused};
use crate::args::repo::StatsArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::table;

pub(super) fn run(args: &StatsArgs, output: Output) -> Result<(), Failure> {
    let bytes = open(&args.file)?;
    let repository = read(&args.file, &bytes)?;
    let stats = Stats::of(&repository, bytes.len()).map_err(|error| refused(&args.file, error))?;
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &stats).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    Ok(out.write_all(stats.to_text().as_bytes())?)
}

#[derive(Serialize)]
struct Stats {
    did: String,
    rev: String,
    commit: String,
    data: String,
    bytes: usize,
    blocks: u64,
    nodes: u64,
    node_bytes: u64,
    height: Option<u8>,
    #[serde(flatten)]
    records: Records,
    collections: BTreeMap<String, Records>,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Records {
    records: u64,
    record_bytes: u64,
}

impl Records {
    fn add(&mut self, bytes: usize) {
        self.records += 1;
        self.record_bytes += bytes as u64;
    }
}

impl Stats {
    fn of(repository: &Repository<'_>, bytes: usize) -> Result<Self, RepoError> {
        let commit = repository.commit();
        let (nodes, node_bytes, height) = nodes(repository)?;
        let mut stats = Self {
            did: commit.did.to_owned(),
            rev: commit.rev.to_owned(),
            commit: repository.root().to_string(),
            data: commit.data.to_string(),
            bytes,
            blocks: repository.archive().block_count(),
            nodes,
            node_bytes,
            height,
            records: Records::default(),
            collections: BTreeMap::new(),
        };
        for record in repository.records() {
            let record = record?;
            let name = collection(&record.path).to_owned();
            stats.records.add(record.block.len());
            stats.collections.entry(name).or_default().add(record.block.len());
        }
        Ok(stats)
    }

    fn to_text(&self) -> String {
        let Self { did, rev, commit, data, bytes, blocks, nodes, node_bytes, .. } = self;
        let height = self.height.map_or("none".to_owned(), |height| height.to_string());
        let Records { records, record_bytes } = self.records;
        let mut text = format!(
            "did      {did}\nrev      {rev}\ncommit   {commit}\ndata     {data}\n\
             file     {bytes} bytes, {blocks} blocks\n\
             tree     {nodes} nodes, {node_bytes} bytes, height {height}\n\
             records  {records}, {record_bytes} bytes\n"
        );
        if records > 0 {
            let cells = |(name, in_it): (&String, &Records)| {
                [name.clone(), in_it.records.to_string(), in_it.record_bytes.to_string()]
            };
            text.push('\n');
            text +=
                &table::of(["collection", "records", "bytes"], self.collections.iter().map(cells));
        }
        text
    }
}

/// How many nodes the tree has, of how many bytes, and how high it is.
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
