//! What is told of a proof, or of a refusal?

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use wireproof::verify::repository::{RepositoryRejection, SignatureProof, WholeRepository};

use crate::table;

/// A step on the way to the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stage {
    Parse,
    Signature,
    Tree,
    Records,
    Rebuild,
}

/// A proof, or how far it got.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    file: String,
    bytes: usize,
    proved: bool,
    stages: Vec<Timed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<Repository>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Fault>,
}

/// A stage that was passed.
#[derive(Debug, Serialize)]
struct Timed {
    stage: Stage,
    seconds: f64,
}

/// What was proved.
#[derive(Debug, Serialize)]
struct Repository {
    did: String,
    rev: String,
    commit: String,
    data: String,
    signature_checked: bool,
    blocks: u64,
    nodes: u64,
    height: Option<u8>,
    records: u64,
    extra_blocks: u64,
    extra_bytes: u64,
}

/// Why it was not.
#[derive(Debug, Serialize)]
struct Fault {
    code: &'static str,
    cid: Option<String>,
    path: Option<String>,
    /// Bytes from the start of the file.
    offset: Option<u64>,
    reason: String,
}

impl Report {
    pub(super) fn new(file: &Path, bytes: usize) -> Self {
        Self {
            file: file.display().to_string(),
            bytes,
            proved: false,
            stages: Vec::new(),
            repository: None,
            faults: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, stage: Stage, time: Duration) {
        self.stages.push(Timed { stage, seconds: time.as_secs_f64() });
    }

    pub(super) fn prove(&mut self, whole: &WholeRepository<'_>) {
        let (commit, tree, extra) = (whole.commit(), whole.tree(), whole.extra());
        self.proved = true;
        self.repository = Some(Repository {
            did: commit.did.to_owned(),
            rev: commit.rev.to_owned(),
            commit: whole.root().to_string(),
            data: commit.data.to_string(),
            signature_checked: whole.signature() == SignatureProof::Checked,
            blocks: whole.archive().block_count(),
            nodes: tree.nodes,
            height: tree.height,
            records: tree.records,
            extra_blocks: extra.blocks,
            extra_bytes: extra.bytes,
        });
    }

    pub(super) fn refuse(&mut self, rejections: &[RepositoryRejection]) {
        self.faults = rejections.iter().map(Fault::of).collect();
    }

    pub(super) fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        writeln!(out)
    }

    pub(super) fn write_text(&self, mut out: impl Write) -> io::Result<()> {
        // One fault is told on standard error, as the reason of the exit code.
        if self.faults.len() > 1 {
            for Fault { code, reason, .. } in &self.faults {
                writeln!(out, "{code}: {reason}")?;
            }
            writeln!(out)?;
        }
        let rows = self.stages.iter().map(|timed| [timed.stage.described(), ms(timed.seconds)]);
        let total = self.stages.iter().map(|timed| timed.seconds).sum();
        let rows = rows.chain([["total".to_owned(), ms(total)]]);
        out.write_all(table::of(["stage", "ms"], rows).as_bytes())?;
        match &self.repository {
            Some(repository) => write!(out, "\n{}", repository.to_text(self.bytes)),
            None => Ok(()),
        }
    }
}

impl Stage {
    fn described(self) -> String {
        match self {
            Self::Parse => "CAR and hashes",
            Self::Signature => "signature",
            Self::Tree => "tree",
            Self::Records => "records",
            Self::Rebuild => "rebuild",
        }
        .to_owned()
    }
}

impl Repository {
    fn to_text(&self, bytes: usize) -> String {
        let Self { did, rev, commit, data, blocks, nodes, records, .. } = self;
        let Self { extra_blocks, extra_bytes, .. } = self;
        let height = self.height.map_or(String::new(), |height| format!(", height {height}"));
        let claim = if self.signature_checked {
            "the whole repository, signed by the account's key"
        } else {
            "a whole repository; whose it is was not asked: the signature is not checked"
        };
        format!(
            "proved   {claim}\naccount  {did}\nrev      {rev}\ncommit   {commit}\ndata     {data}\n\
             archive  {bytes} bytes, {blocks} blocks, {extra_blocks} of them ({extra_bytes} bytes) \
             not part of the repository\n\
             tree     {nodes} nodes{height}\nrecords  {records}\n"
        )
    }
}

impl Fault {
    fn of(rejection: &RepositoryRejection) -> Self {
        Self {
            code: rejection.code(),
            cid: rejection.cid.map(|cid| cid.to_string()),
            path: rejection.path.as_deref().map(str::to_owned),
            offset: rejection.offset,
            reason: rejection.to_string(),
        }
    }
}

/// Seconds as milliseconds.
fn ms(seconds: f64) -> String {
    format!("{:.3}", seconds * 1e3)
}
