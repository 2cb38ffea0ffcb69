//! The result of `wireproof verify` as text and as JSON.

use std::fmt;
use std::path::Path;

use atproto::commit::Commit;
use atproto::mst::canonical::Summary;
use atproto::repo::BlockTotals;
use atproto::syntax::{AtIdentifier, CollectionPatternBuf};
use codec::Cid;
use net::xrpc::FetchedSlice;
use serde::Serialize;
use verify::collections::CollectionsProof;
use verify::record::RecordProof as Proof;
use verify::repository::stream::StreamedRepository;
use verify::repository::{RepositoryRejection, SignatureProof, WholeRepository};
use verify::{Flagged, InvalidRecords};

use crate::account::{AccountSummary, ResolvedAccount};
use crate::failure::Failure;
use crate::json::{FlaggedRecords, InvalidSummary, RecordContent, RecordPath};
use crate::stage::Stages;

/// A proof, or the facts that are known without one.
#[derive(Debug, Default, Serialize)]
pub(super) struct ProofReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The account as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<AccountSummary>,
    /// The server of the download.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    pub(super) bytes: u64,
    /// Whether all is proved, the signature too.
    verified: bool,
    /// Whether all but the signature is proved.
    checked: bool,
    /// Why one input among many has no proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    pub(super) stages: Stages,
    network_seconds: f64,
    compute_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository: Option<RepositorySummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record_proof: Option<RecordSummary>,
    #[serde(flatten)]
    transfer: Option<Transfer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collections_proof: Option<CollectionsSummary>,
}

/// A verified repository.
#[derive(Debug, Serialize)]
struct RepositorySummary {
    did: String,
    rev: String,
    commit: String,
    data: String,
    signature_checked: bool,
    #[serde(rename = "block_count")]
    blocks: u64,
    nodes: u64,
    height: Option<u8>,
    records: u64,
    invalid: InvalidSummary,
    flagged: FlaggedRecords,
    extra_blocks: u64,
    extra_bytes: u64,
}

/// A record that was proved to be present or absent.
#[derive(Debug, Serialize)]
struct RecordSummary {
    did: String,
    #[serde(flatten)]
    path: RecordPath,
    present: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cid: Option<String>,
    #[serde(flatten)]
    content: Option<RecordContent>,
    flagged: FlaggedRecords,
    rev: String,
    commit: String,
    nodes: usize,
    extra_blocks: u64,
    extra_bytes: u64,
}

/// Collections whose records were proved, all of them.
#[derive(Debug, Serialize)]
struct CollectionsSummary {
    did: String,
    collections: Vec<String>,
    records: u64,
    invalid: InvalidSummary,
    rev: String,
    commit: String,
    nodes: usize,
    extra_blocks: u64,
    extra_bytes: u64,
}

/// The requests for a slice.
#[derive(Debug, Serialize)]
struct Transfer {
    requests: u64,
    received_bytes: u64,
    /// Why the whole repository was fetched, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_repository: Option<String>,
}

/// A broken rule, and its place.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    code: &'static str,
    cid: Option<String>,
    #[serde(flatten)]
    path: Option<RecordPath>,
    /// Bytes from the start of the archive.
    offset: Option<u64>,
    message: String,
}

/// The server and size of a download.
pub(super) struct Download {
    pub(super) host: String,
    pub(super) bytes: u64,
}

impl ProofReport {
    pub(super) fn of_file(file: &Path) -> Self {
        Self { file: Some(file.display().to_string()), ..Self::default() }
    }

    pub(super) fn of_account(
        who: AtIdentifier<'_>,
        account: &ResolvedAccount,
        stages: Stages,
    ) -> Self {
        Self {
            target: Some(who.to_string()),
            account: Some(AccountSummary::new(account)),
            stages,
            ..Self::default()
        }
    }

    pub(super) fn add_download(&mut self, Download { host, bytes }: Download) {
        (self.host, self.bytes) = (Some(host), bytes);
    }

    pub(super) fn add_transfer(&mut self, slice: &FetchedSlice) {
        let whole_repository = slice.whole.as_ref().map(ToString::to_string);
        let (requests, received_bytes) = (slice.requests, slice.received);
        self.transfer = Some(Transfer { requests, received_bytes, whole_repository });
    }

    /// The server of the download.
    pub(super) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// Without a proof: the input `named`, and why.
    pub(super) fn of_failure(named: &str, failure: &Failure) -> Self {
        Self { target: Some(named.to_owned()), ..Self::default() }.with_error(failure)
    }

    pub(super) fn with_error(self, failure: &Failure) -> Self {
        Self { error: failure.message().map(str::to_owned), ..self }
    }

    fn set_proved(&mut self, signature: SignatureProof) {
        self.checked = true;
        self.verified = signature == SignatureProof::Checked;
    }

    pub(super) fn add_repository(&mut self, whole: &WholeRepository<'_>) {
        self.set_proved(whole.signature());
        self.repository = Some(RepositorySummary::of(Proved {
            commit: whole.commit(),
            root: whole.root(),
            signature: whole.signature(),
            blocks: whole.archive().block_count(),
            tree: whole.tree(),
            invalid: whole.invalid_records(),
            flagged: Flagged::of_repository(whole),
            extra: whole.extra(),
        }));
    }

    pub(super) fn add_stream(&mut self, whole: &StreamedRepository) {
        self.set_proved(whole.signature());
        self.repository = Some(RepositorySummary::of(Proved {
            commit: &whole.commit(),
            root: whole.root(),
            signature: whole.signature(),
            blocks: whole.blocks(),
            tree: whole.tree(),
            invalid: whole.invalid_records(),
            flagged: whole.flagged_records().clone(),
            extra: whole.extra(),
        }));
    }

    pub(super) fn add_record(&mut self, path: RecordPath<&str>, proof: &Proof<'_>) {
        let path = path.to_owned();
        let commit = proof.commit();
        let extra = proof.extra();
        let text = path.to_string();
        let invalid = proof.invalid_record();
        let content = proof.record().map(|(_, block)| RecordContent::of(invalid, block));
        let flagged = proof.record().map(|(_, block)| Flagged::of_record(&text, block));
        self.set_proved(SignatureProof::Checked);
        self.record_proof = Some(RecordSummary {
            did: commit.did.to_owned(),
            path,
            present: proof.record().is_some(),
            cid: proof.record().map(|(cid, _)| cid.to_string()),
            content,
            flagged: flagged.unwrap_or_default().into(),
            rev: commit.rev.to_owned(),
            commit: proof.root().to_string(),
            nodes: proof.nodes(),
            extra_blocks: extra.blocks,
            extra_bytes: extra.bytes,
        });
    }

    pub(super) fn add_collections(
        &mut self,
        collections: &[CollectionPatternBuf],
        proof: &CollectionsProof<'_>,
    ) {
        let (commit, extra) = (proof.commit(), proof.extra());
        self.set_proved(SignatureProof::Checked);
        self.collections_proof = Some(CollectionsSummary {
            did: commit.did.to_owned(),
            collections: collections.iter().map(CollectionPatternBuf::to_string).collect(),
            records: proof.records().len() as u64,
            invalid: (&proof.invalid_records()).into(),
            rev: commit.rev.to_owned(),
            commit: proof.root().to_string(),
            nodes: proof.nodes().len(),
            extra_blocks: extra.blocks,
            extra_bytes: extra.bytes,
        });
    }

    /// Adds the total times, once all stages have run.
    pub(super) fn with_totals(self) -> Self {
        let (network_seconds, compute_seconds) =
            (self.stages.network_seconds(), self.stages.compute_seconds());
        Self { network_seconds, compute_seconds, ..self }
    }

    /// One line for the input `named`, among others.
    pub(super) fn to_line(&self, named: &str) -> String {
        if let Some(RepositorySummary { did, rev, records, invalid, .. }) = &self.repository {
            let invalid = match invalid.records() {
                0 => String::new(),
                records => format!(", {records} invalid"),
            };
            let word = proof_word(self.verified);
            return format!("{named}: {word}: {did}, rev {rev}, {records} records{invalid}\n");
        }
        if let Some(CollectionsSummary { did, collections, records, .. }) = &self.collections_proof
        {
            let collections = collections.join(", ");
            return format!("{named}: proved: all {records} records of {collections}, {did}\n");
        }
        match &self.record_proof {
            Some(RecordSummary { did, present, .. }) => {
                let presence = if *present { "present" } else { "absent" };
                format!("{named}: proved: {presence}, {did}\n")
            }
            None => String::new(),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = self.stages.to_table();
        if let Some(account) = &self.account {
            let (handle, host) = (account.handle_text(), self.host());
            let directory = account.directory_text();
            text += &format!("\nhandle   {handle}\nplc      {directory}\nfetched  from {host}\n");
        } else if self.checked {
            text += "\n";
        }
        if let Some(repository) = &self.repository {
            text += &repository.to_text(self.bytes);
        }
        if let Some(record) = &self.record_proof {
            text += &record.to_text(self.bytes);
        }
        if let Some(collections) = &self.collections_proof {
            text += &collections.to_text(self.bytes);
        }
        if let Some(Transfer { requests, received_bytes, whole_repository }) = &self.transfer {
            text += &format!("requests {requests}, {received_bytes} bytes received\n");
            if let Some(reason) = whole_repository {
                text += &format!("whole    the whole repository was fetched: {reason}\n");
            }
        }
        text
    }
}

/// The command's word for a repository: without a known signer it is not proved.
pub(super) fn proof_word(signature_checked: bool) -> &'static str {
    if signature_checked { "proved" } else { "consistent, signature not checked" }
}

/// The proved facts of a repository, in memory or as a stream.
struct Proved<'p> {
    commit: &'p Commit<'p>,
    root: Cid,
    signature: SignatureProof,
    blocks: u64,
    tree: Summary,
    invalid: &'p InvalidRecords,
    flagged: Flagged,
    extra: BlockTotals,
}

impl RepositorySummary {
    fn of(proved: Proved<'_>) -> Self {
        let Proved { commit, root, signature, blocks, tree, invalid, flagged, extra } = proved;
        Self {
            did: commit.did.to_owned(),
            rev: commit.rev.to_owned(),
            commit: root.to_string(),
            data: commit.data.to_string(),
            signature_checked: signature == SignatureProof::Checked,
            blocks,
            nodes: tree.nodes,
            height: tree.height,
            records: tree.records,
            invalid: invalid.into(),
            flagged: flagged.into(),
            extra_blocks: extra.blocks,
            extra_bytes: extra.bytes,
        }
    }

    fn to_text(&self, bytes: u64) -> String {
        let Self { did, rev, commit, data, blocks, nodes, records, .. } = self;
        let Self { invalid, flagged, extra_blocks, extra_bytes, .. } = self;
        let height = self.height.map_or(String::new(), |height| format!(", height {height}"));
        let claim = if self.signature_checked {
            "proved   the whole repository, signed by the account's key"
        } else {
            "result   consistent, signature not checked: the whole repository, of an unknown signer"
        };
        format!(
            "{claim}\naccount  {did}\nrev      {rev}\ncommit   {commit}\ndata     {data}\n\
             archive  {bytes} bytes, {blocks} blocks, {extra_blocks} of them ({extra_bytes} bytes) \
             not part of the repository\n\
             tree     {nodes} nodes{height}\nrecords  {records}\ninvalid  {invalid}\nflagged  {flagged}\n"
        )
    }
}

impl RecordSummary {
    fn to_text(&self, bytes: u64) -> String {
        let Self { path, flagged, did, rev, commit, nodes, extra_blocks, extra_bytes, .. } = self;
        let claim = match (&self.cid, &self.content) {
            (Some(cid), Some(RecordContent::Record(record))) => format!(
                "the record at {path}\ncid      {cid}\nrecord   {record}\nflagged  {flagged}"
            ),
            (Some(cid), Some(RecordContent::Invalid(invalid))) => {
                format!("the bytes of the record at {path}\ncid      {cid}\ninvalid  {invalid}")
            }
            _ => format!("that there is no record at {path}"),
        };
        format!(
            "proved   {claim}\naccount  {did}\nrev      {rev}\ncommit   {commit}\n\
             archive  {bytes} bytes, {extra_blocks} blocks of it ({extra_bytes} bytes) not part of \
             the proof\ntree     {nodes} nodes on the path\n"
        )
    }
}

impl CollectionsSummary {
    fn to_text(&self, bytes: u64) -> String {
        let Self { did, records, invalid, rev, commit, nodes, extra_blocks, extra_bytes, .. } =
            self;
        let collections = self.collections.join(", ");
        format!(
            "proved   all {records} records of {collections}; there are no others\naccount  {did}\nrev      {rev}\n\
             commit   {commit}\narchive  {bytes} bytes, {extra_blocks} blocks of it ({extra_bytes} bytes) not part of \
             the proof\ntree     {nodes} nodes that can have their keys\ninvalid  {invalid}\n"
        )
    }
}

impl Finding {
    pub(super) fn new(rejection: &RepositoryRejection) -> Self {
        Self {
            code: rejection.code(),
            cid: rejection.cid.map(|cid| cid.to_string()),
            path: rejection.path.as_deref().map(|path| RecordPath::split(path).to_owned()),
            offset: rejection.offset,
            message: rejection.to_string(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}
