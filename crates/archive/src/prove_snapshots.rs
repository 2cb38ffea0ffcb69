//! Proves the snapshots of an archive again: the tree of their records must have the root that the account signed.
//!
//! The tree of a repository is built once: a chain of compact commits that begins at it gets the tree after its proof.

use atproto::mst::Tree;
use codec::Cid;
use crypto::{CompressedKey, PublicKey};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::key_history::{KeyHistories, SignedAt};
use crate::record_trees::{RecordTree, RecordTrees};
use crate::repository_rows::SnapshotColumns;
use crate::rule::{BrokenRule, Rule};
use crate::scan::Scan;
use crate::signatures::SignatureBatch;
use crate::table_rows::Row;
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification};

/// Proves the snapshots in the order of their table.
pub(crate) struct SnapshotProver {
    snapshots: Scan<SnapshotColumns>,
    /// The next snapshot.
    next: Option<Row<SnapshotColumns>>,
    trees: RecordTrees,
    /// The records of the last snapshot.
    built: Option<RecordTree>,
    histories: KeyHistories,
    signatures: SignatureBatch<Row<SnapshotColumns>>,
}

impl SnapshotProver {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        let mut snapshots: Scan<SnapshotColumns> = archive.scan(selection).await?;
        Ok(Self {
            next: snapshots.next().await?,
            snapshots,
            trees: RecordTrees::open(archive, selection).await?,
            built: None,
            histories: KeyHistories::open(archive, selection).await?,
            signatures: SignatureBatch::new(),
        })
    }

    /// Proves the snapshots up to a revision of an account, and returns its tree; `None` if it is not there, or before one that
    /// was asked for.
    pub(crate) async fn tree_at(
        &mut self,
        did: &str,
        rev: &str,
        verification: &mut Verification<'_>,
    ) -> Result<Option<Tree>, ArchiveError> {
        while let Some(row) = self.next.take_if(|row| row.revision() <= (did, rev)) {
            self.prove(row, verification).await?;
            self.next = self.snapshots.next().await?;
        }
        self.build((did, rev)).await?;
        let built = self.built.take_if(|built| built.place() == (did, rev));
        Ok(built.and_then(|built| built.tree.ok()))
    }

    /// Proves the other snapshots.
    pub(crate) async fn finish(
        mut self,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        while let Some(row) = self.next.take() {
            self.prove(row, verification).await?;
            self.next = self.snapshots.next().await?;
        }
        self.verify_signatures(verification);
        Ok(())
    }

    async fn prove(
        &mut self,
        row: Row<SnapshotColumns>,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let fetched = row.columns().fetched.value(row.index());
        let (did, rev) = row.revision();
        if !verification.has_account(did) || fetched < verification.since() {
            return Ok(());
        }
        verification.report.snapshots += 1;
        self.build((did, rev)).await?;
        let signed = SignedAt { rev: Some(rev), received: fetched };
        let had_key =
            self.histories.check(did, row.key(), signed, &mut verification.report).await?;
        let built = self.built.as_mut().filter(|built| built.place() == (did, rev));
        match had_key.and_then(|()| check_tree(&row, built)) {
            Ok(message) => self.push_signature(row, message, verification),
            Err(refusal) => refuse(&row, refusal, verification),
        }
        Ok(())
    }

    /// Builds the records of a revision, if it is after the last one.
    async fn build(&mut self, place: (&str, &str)) -> Result<(), ArchiveError> {
        if self.built.as_ref().is_none_or(|built| built.place() < place) {
            self.built = self.trees.at(place.0, place.1).await?;
        }
        Ok(())
    }

    fn push_signature(
        &mut self,
        row: Row<SnapshotColumns>,
        message: Vec<u8>,
        verification: &mut Verification<'_>,
    ) {
        let sig = row.commit().sig.to_vec();
        match CompressedKey::from_did_key(row.key()) {
            Ok(key) => self.signatures.push(row, message, &sig, key),
            Err(_) => settle(&row, check_signature(&row), verification),
        }
        if self.signatures.is_full() {
            self.verify_signatures(verification);
        }
    }

    fn verify_signatures(&mut self, verification: &mut Verification<'_>) {
        for (row, verdict) in self.signatures.verify() {
            // A refusal states its rule as a check of this signature alone does.
            let checked = verdict.or_else(|_| check_signature(&row));
            settle(&row, checked, verification);
        }
    }
}

fn settle(
    row: &Row<SnapshotColumns>,
    checked: Result<(), BrokenRule>,
    verification: &mut Verification<'_>,
) {
    match checked {
        Ok(()) => verification.report.proved_snapshots += 1,
        Err(refusal) => refuse(row, refusal, verification),
    }
}

fn refuse(
    row: &Row<SnapshotColumns>,
    (code, message): BrokenRule,
    verification: &mut Verification<'_>,
) {
    let ((file, number), (did, _)) = (row.place(), row.revision());
    let (file, did) = (file.to_owned(), Some(did.to_owned()));
    verification.refuse(Finding { file, row: Some(number), did, code, message });
}

/// Checks that the commit has the tree of these records; returns the bytes that the account signed.
fn check_tree(
    row: &Row<SnapshotColumns>,
    built: Option<&mut RecordTree>,
) -> Result<Vec<u8>, BrokenRule> {
    let refused = |code, message: &str| Err((code, message.to_owned()));
    let data = data(row)?;
    let count = row.records();
    let root = match built {
        Some(RecordTree { records, tree, .. }) if *records == count => match tree {
            Ok(tree) => tree.root(),
            Err(fault) => return refused(Rule::Records.code(), fault),
        },
        // A repository without records has no row.
        None if count == 0 => Tree::empty().root(),
        Some(_) | None => {
            return refused(Rule::Records.code(), "the table has another number of records");
        }
    };
    if root != data {
        let message = format!("the records give the tree {root}, the commit has {data}");
        return Err((Rule::Records.code(), message));
    }
    row.commit().signing_bytes(data)
}

/// Checks that the account signed the commit.
fn check_signature(row: &Row<SnapshotColumns>) -> Result<(), BrokenRule> {
    let commit = row.commit();
    let message = commit.signing_bytes(data(row)?)?;
    let key = row.key();
    let key = match PublicKey::from_did_key(key) {
        Ok(key) => key,
        Err(error) => return Err((Rule::Value.code(), format!("key {key}: {error}"))),
    };
    key.verify(&message, commit.sig).map_err(|fault| (Rule::Signature.code(), fault.to_string()))
}

/// The root of the tree, as the row states it.
fn data(row: &Row<SnapshotColumns>) -> Result<Cid, BrokenRule> {
    let data = Cid::from_bytes(row.columns().data.value(row.index()));
    data.ok_or_else(|| (Rule::Value.code(), "data is no CID".to_owned()))
}
