//! Proves one account: rebuilds the tree of its archived records and compares it with the tree that the account has signed.
//!
//! If the roots are equal, so are all records. Otherwise the signed tree is walked from its root: a node that the rebuilt tree has too
//! is taken from there, so that only nodes above a difference are fetched. Where only some collections are known, the walk covers
//! them alone, and proves that they have these records and no others.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem::take;

use archive::Collections;
use atproto::mst::Tree;
use atproto::mst::canonical::KeyRanges;
use atproto::syntax::Did;
use backfill::{Identities, Identity, class_of};
use bytes::Bytes;
use codec::cid::Codec;
use codec::{AnyCid, Cid};
use crypto::PublicKey;
use net::http::Url;
use net::xrpc::PacedClient;
use program::clock::now_micros;
use program::network;
use verify::collections::{self, CollectionsProof};
use verify::repository::{self, RepositoryRejection};
use verify::sync::{FutureWindow, Policy};
use verify::{Verified, record};

use crate::fold::FoldedAccount;
use crate::signed::{AccountHost, SignedCommit, SignedError, SignedRecords, archive_of};
use crate::verdict::{AccountVerdict, Differences, Verdict};

/// Proves accounts.
pub(crate) struct Prover<'p> {
    pub(crate) identities: &'p Identities,
    pub(crate) client: &'p PacedClient,
    /// The collections that the archive was read for; all if there is none.
    pub(crate) collections: Option<&'p Collections>,
}

/// A verdict, and the proof of an account whose records are the signed ones, which is not verified yet.
pub(crate) struct Judged {
    pub(crate) verdict: AccountVerdict,
    pub(crate) proved: Option<ProvedAccount>,
}

/// An account with a proof.
pub(crate) struct ProvedAccount {
    /// The commit, the nodes of the tree and the records.
    pub(crate) archive: Vec<u8>,
    pub(crate) key: PublicKey,
    pub(crate) host: String,
    pub(crate) commit: Cid,
    /// When the commit was fetched, in microseconds since 1970.
    pub(crate) fetched: i64,
}

/// Why an account is not proved or refuted.
struct Unproved {
    verdict: Verdict,
    class: String,
    message: String,
    is_temporary: bool,
}

impl Unproved {
    fn new(class: &str, message: impl Into<String>) -> Self {
        let (class, message) = (class.to_owned(), message.into());
        Self { verdict: Verdict::Unproved, class, message, is_temporary: false }
    }

    fn inactive(status: &str) -> Self {
        let status = if STATUSES.contains(&status) { status } else { "inactive" };
        let message = format!("the account is {status}");
        Self { verdict: Verdict::Inactive, ..Self::new(status, message) }
    }
}

impl From<SignedError> for Unproved {
    fn from(error: SignedError) -> Self {
        let message = error.to_string();
        let request = match (&error, error.code()) {
            (SignedError::Request(request), _) => request,
            (_, code) => return Self::new(code.unwrap_or_default(), message),
        };
        match request.name().and_then(|name| name.account_status()) {
            Some(status) => Self::inactive(status),
            None => {
                let (class, is_temporary) = class_of(request);
                Self { is_temporary, ..Self::new(class, message) }
            }
        }
    }
}

/// The records of the archive as a tree.
struct Rebuilt<'a> {
    cids: BTreeMap<&'a str, Cid>,
    root: Cid,
    nodes: BTreeMap<Cid, Vec<u8>>,
}

impl<'a> Rebuilt<'a> {
    fn new(records: &'a BTreeMap<String, Bytes>) -> Result<Self, Unproved> {
        let cids: BTreeMap<&str, Cid> = records
            .iter()
            .map(|(path, record)| (path.as_str(), Cid::of(Codec::DagCbor, record)))
            .collect();
        let tree = Tree::from_sorted(cids.iter().map(|(path, cid)| (path, *cid)));
        let mut tree =
            tree.map_err(|error| Unproved::new(error.fault.code(), error.to_string()))?;
        Ok(Self { root: tree.root(), nodes: tree.collect_blocks().into_iter().collect(), cids })
    }

    /// The differences from the signed records.
    fn compare(&self, signed: &BTreeMap<Vec<u8>, AnyCid>) -> Differences {
        let mut differences = Differences::default();
        for (path, cid) in &self.cids {
            match signed.get(path.as_bytes()) {
                None => differences.unsigned.push(path),
                Some(signed) if signed.to_cid() != Some(*cid) => differences.altered.push(path),
                Some(_) => {}
            }
        }
        for path in signed.keys() {
            let is_known = str::from_utf8(path).is_ok_and(|path| self.cids.contains_key(path));
            if !is_known {
                differences.missing.push(&String::from_utf8_lossy(path));
            }
        }
        differences
    }
}

impl Prover<'_> {
    /// The verdict on an account.
    pub(crate) async fn judge(&self, account: &FoldedAccount) -> Judged {
        let mut verdict = AccountVerdict {
            did: account.did.to_string(),
            verdict: Verdict::Proved,
            code: None,
            message: None,
            is_temporary: false,
            host: None,
            rev: None,
            archived_rev: account.rev.map(|rev| rev.to_string()),
            record_count: account.records.len() as u64,
            fetched_node_count: 0,
            differences: Differences::default(),
        };
        let proved = match self.prove(account, &mut verdict).await {
            Ok(proved) => proved,
            Err(Unproved { verdict: kind, class, message, is_temporary }) => {
                (verdict.verdict, verdict.code, verdict.message) =
                    (kind, Some(class), Some(message));
                verdict.is_temporary = is_temporary;
                None
            }
        };
        Judged { verdict, proved }
    }

    async fn prove(
        &self,
        account: &FoldedAccount,
        verdict: &mut AccountVerdict,
    ) -> Result<Option<ProvedAccount>, Unproved> {
        if let Some(status) = &account.status {
            return Err(Unproved::inactive(status));
        }
        let did = account.did.as_did();
        let (key, url) = self.identity(did, false).await?;
        verdict.host = Some(network::origin(&url));
        let host = AccountHost { client: self.client, url: &url, did };
        let (commit, key) = self.commit(&host, key).await?;
        verdict.rev = Some(commit.rev.to_string());
        let mut rebuilt = Rebuilt::new(&account.records)?;
        let signed = if rebuilt.root == commit.data && self.collections.is_none() {
            None
        } else {
            Some(self.walk(&host, &commit, take(&mut rebuilt.nodes), verdict).await?)
        };
        if let Some((signed, _)) = &signed {
            verdict.differences = rebuilt.compare(&signed.records);
            if let Some(code) = verdict.differences.code() {
                let (kind, code) = match account.rev.cmp(&Some(commit.rev)) {
                    Ordering::Less => (Verdict::Newer, NEWER_CODE),
                    Ordering::Equal => (Verdict::Wrong, code),
                    // The host is outdated, or the archive invents revisions: no signature says which.
                    Ordering::Greater => (Verdict::Unproved, OLDER_CODE),
                };
                (verdict.verdict, verdict.code) = (kind, Some(code.to_owned()));
                verdict.is_temporary = kind != Verdict::Wrong;
                return Ok(None);
            }
        }
        let nodes: BTreeMap<Cid, &[u8]> = match &signed {
            None => rebuilt.nodes.iter().map(|(cid, node)| (*cid, &node[..])).collect(),
            Some((signed, known)) => {
                signed.nodes.iter().map(|cid| (*cid, &known[cid][..])).collect()
            }
        };
        let records =
            rebuilt.cids.values().copied().zip(account.records.values().map(|record| &record[..]));
        let records: BTreeMap<Cid, &[u8]> =
            records.filter(|(cid, _)| !nodes.contains_key(cid)).collect();
        let first = [(commit.cid, &commit.block[..])];
        let archive = archive_of(commit.cid, first.into_iter().chain(nodes).chain(records));
        let fetched = now_micros();
        let host = network::origin(&url);
        Ok(Some(ProvedAccount { archive, key, host, commit: commit.cid, fetched }))
    }

    /// The newest commit, under the key that the account has now if the known one does not fit.
    async fn commit(
        &self,
        host: &AccountHost<'_>,
        key: PublicKey,
    ) -> Result<(SignedCommit, PublicKey), Unproved> {
        let commit = match host.commit(&key).await {
            Err(error) if error.code() == Some("signature/wrong") => {
                let (fresh, _) = self.identity(host.did, true).await?;
                if fresh == key {
                    return Err(error.into());
                }
                (host.commit(&fresh).await?, fresh)
            }
            commit => (commit?, key),
        };
        let now = u64::try_from(now_micros()).unwrap_or_default();
        if !FutureWindow::new(now, &Policy::default()).admits(commit.0.rev) {
            let message = format!("the commit is of {}, which is ahead of the clock", commit.0.rev);
            return Err(Unproved::new("event/future-rev", message));
        }
        Ok(commit)
    }

    async fn identity(&self, did: Did<'_>, is_fresh: bool) -> Result<(PublicKey, Url), Unproved> {
        let identity = if is_fresh {
            self.identities.get_fresh(did).await
        } else {
            self.identities.get(did).await
        };
        match identity {
            Ok(Identity::Known { key: Some(key), host: Some(host) }) => Ok((key, host)),
            Ok(Identity::Known { host: None, .. }) => {
                Err(Unproved::new("no-host", "its DID document names no host"))
            }
            Ok(Identity::Known { key: None, .. }) => {
                Err(Unproved::new("no-key", "its DID document has no usable key"))
            }
            Ok(Identity::Deleted) => Err(Unproved::inactive("deleted")),
            Err(error) => {
                let is_temporary = error.is_outage();
                Err(Unproved { is_temporary, ..Unproved::new("identity", error.to_string()) })
            }
        }
    }

    /// The signed records in the collections, and the nodes that are known then.
    async fn walk(
        &self,
        host: &AccountHost<'_>,
        commit: &SignedCommit,
        mut known: BTreeMap<Cid, Vec<u8>>,
        verdict: &mut AccountVerdict,
    ) -> Result<(SignedRecords, BTreeMap<Cid, Vec<u8>>), Unproved> {
        let ranges = match self.collections {
            None => KeyRanges::of_prefixes([b""]),
            Some(collections) => KeyRanges::of_collections(collections.patterns()),
        };
        let signed = host.records(commit.data, ranges, &mut known).await?;
        verdict.fetched_node_count = signed.fetched;
        Ok((signed, known))
    }
}

/// Proves all records of some collections.
pub(crate) fn ranges_proof<'a>(
    archive: &'a [u8],
    collections: &Collections,
    did: Option<&str>,
    key: &PublicKey,
) -> Result<Verified<CollectionsProof<'a>>, RepositoryRejection> {
    let mut options = record::Options::default();
    options.archive = repository::Options::default().archive;
    collections::verify(archive, collections.patterns(), did, key, &options)
}

/// The code of an account that has written since the end of the archive.
const NEWER_CODE: &str = "jetstream/newer";

/// The code of an account whose host has an earlier commit than the archive.
const OLDER_CODE: &str = "jetstream/older";

/// The statuses of the protocol: an archive can state any text.
const STATUSES: [&str; 6] =
    ["takendown", "suspended", "deactivated", "deleted", "desynchronized", "throttled"];
