//! Whole repositories in memory: the verdict as JSON, and the records and nodes of a proved one.

use std::collections::BTreeMap;

use atproto::commit::Commit;
use atproto::mst::canonical::{Step, Summary, search};
use atproto::mst::{TreeLimits, node::KeyBuffer, node::Node};
use atproto::repo::BlockTotals;
use codec::Cid;
use self_cell::self_cell;
use serde::Deserialize;
use serde_json::{Value, json};
use verify::repository::{self, Options, SignatureProof, WholeRepository};
use verify::{InvalidRecords, Verified};

use crate::fault::Fault;
use crate::key::KeyArgument;

/// The options of a verification, as JSON has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct OptionFields {
    /// Refuses a record that is signed and not valid, instead of counting it.
    pub strict_records: bool,
    /// Maximum number of blocks that the commit does not lead to.
    pub max_extra_blocks: Option<u64>,
    /// Maximum bytes in such blocks.
    pub max_extra_bytes: Option<u64>,
    /// Maximum bytes of blocks of a stream that are held until the tree names them.
    pub max_held_bytes: Option<usize>,
}

impl OptionFields {
    /// Reads the options.
    ///
    /// # Errors
    /// If there is no such option, or it has a value of another type.
    pub fn parse(json: &str) -> Result<Self, Fault> {
        serde_json::from_str(json).map_err(|error| Fault::argument("options", error))
    }

    /// The limits of a repository.
    #[must_use]
    pub fn limits(&self) -> Options {
        let mut options = Options::default();
        options.strict_records = self.strict_records;
        if let Some(blocks) = self.max_extra_blocks {
            options.max_extra_blocks = blocks;
        }
        if let Some(bytes) = self.max_extra_bytes {
            options.max_extra_bytes = bytes;
        }
        options
    }
}

/// Verifies a repository, and returns its summary as JSON. Without a key the author is not proved.
///
/// # Errors
/// At the first broken rule.
pub fn verify(
    car: &[u8],
    key: Option<KeyArgument<'_>>,
    did: Option<&str>,
    options: &OptionFields,
) -> Result<String, Fault> {
    Ok(summary(&*prove(car, key, did, options)?).to_string())
}

fn prove<'a>(
    car: &'a [u8],
    key: Option<KeyArgument<'_>>,
    did: Option<&str>,
    options: &OptionFields,
) -> Result<Verified<WholeRepository<'a>>, Fault> {
    let limits = options.limits();
    let Some(key) = key else { return Ok(repository::verify_without_signature(car, &limits)?) };
    let account = key.resolve(did)?;
    Ok(repository::verify(car, account.did.as_deref(), &account.key, &limits)?)
}

fn summary(whole: &WholeRepository<'_>) -> Value {
    let archive = whole.archive();
    Proof {
        commit: *whole.commit(),
        root: whole.root(),
        signature: whole.signature(),
        tree: whole.tree(),
        blocks: archive.block_count(),
        bytes: archive.as_bytes().len() as u64,
        extra: whole.extra(),
        invalid: whole.invalid_records(),
    }
    .to_value()
}

/// The facts of a proved repository, read from memory or from a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proof<'p> {
    pub(crate) commit: Commit<'p>,
    pub(crate) root: Cid,
    pub(crate) signature: SignatureProof,
    pub(crate) tree: Summary,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) extra: BlockTotals,
    pub(crate) invalid: &'p InvalidRecords,
}

impl Proof<'_> {
    pub(crate) fn to_value(self) -> Value {
        json!({
            "did": self.commit.did,
            "rev": self.commit.rev,
            "root": self.root.to_string(),
            "data": self.commit.data.to_string(),
            "signed": self.signature == SignatureProof::Checked,
            "records": self.tree.records,
            "nodes": self.tree.nodes,
            "height": self.tree.height,
            "blocks": self.blocks,
            "bytes": self.bytes,
            "extraBlocks": self.extra.blocks,
            "extraBytes": self.extra.bytes,
            "invalidRecords": self.invalid.records,
            "firstInvalid": self.invalid.first.as_ref().map(|first| json!({
                "path": first.path,
                "cid": first.cid.to_string(),
                "code": first.error.code(),
                "rule": first.error.fault.to_string(),
                "offset": first.error.offset,
            })),
        })
    }
}

self_cell!(
    /// A proved repository with the bytes that it was read from.
    struct Proved {
        owner: Vec<u8>,
        #[covariant]
        dependent: Whole,
    }
);

type Whole<'a> = Verified<WholeRepository<'a>>;

/// A proved repository that stays in memory.
pub struct OpenRepository {
    proved: Proved,
    /// The records in the order of their paths, once they are asked for.
    records: Option<Vec<RecordPlace>>,
}

/// A record in the archive.
struct RecordPlace {
    path: String,
    cid: Cid,
    at: usize,
    len: usize,
}

impl OpenRepository {
    /// Verifies a repository and keeps it.
    ///
    /// # Errors
    /// At the first broken rule.
    pub fn new(
        car: Vec<u8>,
        key: Option<KeyArgument<'_>>,
        did: Option<&str>,
        options: &OptionFields,
    ) -> Result<Self, Fault> {
        let proved = Proved::try_new(car, |car| prove(car, key, did, options))?;
        Ok(Self { proved, records: None })
    }

    fn whole(&self) -> &WholeRepository<'_> {
        self.proved.borrow_dependent()
    }

    /// The summary as JSON.
    #[must_use]
    pub fn summary(&self) -> String {
        summary(self.whole()).to_string()
    }

    /// The number of records of every collection, by its name.
    #[must_use]
    pub fn collections(&mut self) -> String {
        let mut counts = BTreeMap::new();
        for record in self.records() {
            let (collection, _) = record.path.split_once('/').unwrap_or((&record.path, ""));
            *counts.entry(collection.to_owned()).or_insert(0_u64) += 1;
        }
        json!(counts).to_string()
    }

    /// Number and range of the records whose paths begin with `prefix`.
    #[must_use]
    pub fn range(&mut self, prefix: &str) -> [u32; 2] {
        let records = self.records();
        let from = records.partition_point(|record| *record.path < *prefix);
        let is_in = |record: &&RecordPlace| record.path.starts_with(prefix);
        let len = records[from..].iter().take_while(is_in).count();
        [from as u32, (from + len) as u32]
    }

    /// The records of a range by their numbers as a JSON array of path, CID, offset and length.
    #[must_use]
    pub fn records_json(&mut self, from: u32, to: u32) -> String {
        let records = self.records();
        let to = (to as usize).min(records.len());
        let from = (from as usize).min(to);
        let row = |record: &RecordPlace| {
            json!([record.path, record.cid.to_string(), record.at, record.len])
        };
        Value::Array(records[from..to].iter().map(row).collect()).to_string()
    }

    /// Offset and length of the block of this CID in the archive.
    #[must_use]
    pub fn block(&self, cid: &str) -> Option<[u32; 2]> {
        let whole = self.whole();
        let cid = cid.parse::<Cid>().ok()?;
        let block = whole.block(&cid)?;
        Some([whole.archive().offset_of(block) as u32, block.len() as u32])
    }

    /// The node of this CID as JSON: its entries with their whole keys, and the links to its children.
    #[must_use]
    pub fn node(&self, cid: &str) -> Option<String> {
        let whole = self.whole();
        let cid = cid.parse::<Cid>().ok()?;
        let node = Node::parse(whole.block(&cid)?).ok()?;
        let mut key = KeyBuffer::new();
        let entries = node.entries().map(|entry| {
            let key = String::from_utf8_lossy(key.advance(&entry)).into_owned();
            let (value, right) = (entry.value.to_string(), entry.right.map(|cid| cid.to_string()));
            json!({ "key": key, "value": value, "right": right })
        });
        let entries = entries.collect::<Vec<_>>();
        let left = node.left().map(|cid| cid.to_string());
        Some(json!({ "cid": cid.to_string(), "left": left, "entries": entries }).to_string())
    }

    /// The CIDs of the nodes from the root to the one with this path, or to the one that has no place for it.
    #[must_use]
    pub fn proof_path(&self, path: &str) -> Vec<String> {
        let whole = self.whole();
        let found = search(whole.commit().data, whole.archive(), path.as_bytes());
        let nodes = found.map(|found| found.nodes).unwrap_or_default();
        nodes.iter().map(|(cid, _)| cid.to_string()).collect()
    }

    /// The records, which are found at the first call.
    fn records(&mut self) -> &[RecordPlace] {
        if self.records.is_none() {
            self.records = Some(find_records(self.whole()));
        }
        self.records.as_deref().unwrap_or_default()
    }
}

/// The records in the order of the walk, which was proved before.
fn find_records(whole: &WholeRepository<'_>) -> Vec<RecordPlace> {
    let archive = whole.archive();
    let mut walk = whole.walk(&TreeLimits::default());
    let mut records = Vec::new();
    while let Some(Ok(step)) = walk.next() {
        let Step::Record { key, value } = step else { continue };
        let Some(cid) = value.to_cid() else { continue };
        let Some(block) = archive.block(&cid) else { continue };
        let (at, len) = (archive.offset_of(block) as usize, block.len());
        records.push(RecordPlace { path: String::from_utf8_lossy(key).into_owned(), cid, at, len });
    }
    records
}
