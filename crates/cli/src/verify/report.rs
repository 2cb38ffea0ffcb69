//! What is told of a proof, or of a refusal?

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::value::RawValue;
use wireproof::atproto::repo;
use wireproof::atproto::syntax::AtIdentifier;
use wireproof::codec::Cid;
use wireproof::net::xrpc::FetchedRepo;
use wireproof::verify::Flagged;
use wireproof::verify::record::RecordProof;
use wireproof::verify::repository::{RepositoryRejection, SignatureProof, WholeRepository};

use crate::account::{Found, Told};
use crate::failure::Failure;
use crate::flagged::FlaggedRecords;
use crate::stage::Stages;

/// A proof, or how far it got.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Told>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fetched_from: Option<String>,
    bytes: u64,
    proved: bool,
    pub(super) stages: Stages,
    network_seconds: f64,
    compute_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<Repository>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<Record>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<Fault>,
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
    flagged: FlaggedRecords,
    extra_blocks: u64,
    extra_bytes: u64,
}

/// What was proved of a path.
#[derive(Debug, Serialize)]
struct Record {
    path: String,
    present: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    flagged: FlaggedRecords,
    did: String,
    rev: String,
    commit: String,
    nodes: usize,
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
    pub(super) fn of_file(file: &Path, bytes: usize) -> Self {
        let stages = Stages::default();
        Self { file: Some(file.display().to_string()), ..Self::new(bytes as u64, stages) }
    }

    pub(super) fn of_account(
        who: AtIdentifier<'_>,
        found: &Found,
        fetched: &FetchedRepo,
        stages: Stages,
    ) -> Self {
        Self {
            asked: Some(who.to_string()),
            account: Some(Told::of(found)),
            fetched_from: Some(fetched.host.to_string()),
            ..Self::new(fetched.bytes, stages)
        }
    }

    fn new(bytes: u64, stages: Stages) -> Self {
        Self {
            file: None,
            asked: None,
            account: None,
            fetched_from: None,
            bytes,
            proved: false,
            stages,
            network_seconds: 0.0,
            compute_seconds: 0.0,
            repository: None,
            record: None,
            faults: Vec::new(),
        }
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
            flagged: Flagged::of_repository(whole).into(),
            extra_blocks: extra.blocks,
            extra_bytes: extra.bytes,
        });
    }

    pub(super) fn prove_record(
        &mut self,
        path: &str,
        proof: &RecordProof<'_>,
    ) -> Result<(), Failure> {
        let (commit, extra) = (proof.commit(), proof.extra());
        let value = proof.record().map(|(cid, block)| value(path, cid, block)).transpose()?;
        let flagged = proof.record().map(|(_, block)| Flagged::of_record(path, block));
        self.proved = true;
        self.record = Some(Record {
            path: path.to_owned(),
            present: proof.record().is_some(),
            cid: proof.record().map(|(cid, _)| cid.to_string()),
            value,
            flagged: flagged.unwrap_or_default().into(),
            did: commit.did.to_owned(),
            rev: commit.rev.to_owned(),
            commit: proof.root().to_string(),
            nodes: proof.nodes(),
            extra_blocks: extra.blocks,
            extra_bytes: extra.bytes,
        });
        Ok(())
    }

    pub(super) fn refuse(&mut self, rejections: &[RepositoryRejection]) {
        self.faults = rejections.iter().map(Fault::of).collect();
    }

    /// Sums up, when all stages are there.
    pub(super) fn summed(self) -> Self {
        let (network_seconds, compute_seconds) = (self.stages.network_s(), self.stages.compute_s());
        Self { network_seconds, compute_seconds, ..self }
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
        out.write_all(self.stages.to_table().as_bytes())?;
        if let Some(account) = &self.account {
            write!(out, "\nhandle   {}\n", account.handle_text())?;
            writeln!(out, "fetched  from {}", self.fetched_from.as_deref().unwrap_or_default())?;
        } else if self.proved {
            writeln!(out)?;
        }
        if let Some(repository) = &self.repository {
            out.write_all(repository.to_text(self.bytes).as_bytes())?;
        }
        match &self.record {
            Some(record) => out.write_all(record.to_text(self.bytes).as_bytes()),
            None => Ok(()),
        }
    }
}

/// The record as JSON.
fn value(path: &str, cid: Cid, block: &[u8]) -> Result<Box<RawValue>, Failure> {
    let record = repo::Record { path: path.to_owned(), cid, block };
    let json = record.to_json().map_err(|error| error.to_string());
    let value =
        json.and_then(|json| RawValue::from_string(json).map_err(|error| error.to_string()));
    value.map_err(|error| Failure::Refused(format!("{path}: {error}")))
}

impl Repository {
    fn to_text(&self, bytes: u64) -> String {
        let Self { did, rev, commit, data, blocks, nodes, records, .. } = self;
        let Self { flagged, extra_blocks, extra_bytes, .. } = self;
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
             tree     {nodes} nodes{height}\nrecords  {records}\nflagged  {flagged}\n"
        )
    }
}

impl Record {
    fn to_text(&self, bytes: u64) -> String {
        let Self { path, flagged, did, rev, commit, nodes, extra_blocks, extra_bytes, .. } = self;
        let claim = match (&self.cid, &self.value) {
            (Some(cid), Some(value)) => {
                format!(
                    "the record at {path}\ncid      {cid}\nrecord   {value}\nflagged  {flagged}"
                )
            }
            _ => format!("that there is no record at {path}"),
        };
        format!(
            "proved   {claim}\naccount  {did}\nrev      {rev}\ncommit   {commit}\n\
             archive  {bytes} bytes, {extra_blocks} blocks of it ({extra_bytes} bytes) not part of \
             the proof\ntree     {nodes} nodes on the way\n"
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
