//! Proves commits in compact form again: their operations must leave the tree that the account signed.

use crypto::CompressedKey;
use verify::commit::signature_code;

use crate::archive::Archive;
use crate::chain::{ChainCommit, ChainFault, Chains, ops_of_rows};
use crate::error::ArchiveError;
use crate::event_rows::EventRow;
use crate::op_rows::OpColumns;
use crate::prove_snapshots::SnapshotProver;
use crate::rule::{BrokenRule, Rule, refuse_future};
use crate::scan::Scan;
use crate::signatures::SignatureBatch;
use crate::table_rows::{Key, Row};
use crate::table_scan::Selection;
use crate::verification::Verification;

/// Proves compact rows of `events`, in the order of the table.
pub(crate) struct CompactProver {
    ops: OpsOfCommits,
    chains: Chains,
    signatures: SignatureBatch<EventRow>,
}

impl CompactProver {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            ops: OpsOfCommits::open(archive, selection).await?,
            chains: Chains::default(),
            signatures: SignatureBatch::new(),
        })
    }

    /// Proves a row, or follows it without a proof if it is not `selected`. `snapshots` has the trees from which chains begin.
    pub(crate) async fn prove(
        &mut self,
        row: EventRow,
        is_selected: bool,
        snapshots: &mut SnapshotProver,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        match self.check(&row, snapshots, verification).await? {
            Ok(_) if !is_selected => {}
            Ok((message, key)) => {
                let sig = row.commit().map(|commit| commit.sig.to_vec()).unwrap_or_default();
                self.signatures.push(row, message, &sig, key);
            }
            Err(refusal) => verification.settle(&row, Some(refusal)),
        }
        if self.signatures.is_full() {
            self.finish(verification);
        }
        Ok(())
    }

    /// Verifies the signatures of the rows so far.
    pub(crate) fn finish(&mut self, verification: &mut Verification<'_>) {
        for (row, verdict) in self.signatures.verify() {
            let refusal = verdict.err().map(|fault| {
                let message = format!("{fault}: it is not of the tree that the operations leave");
                (signature_code(fault), message)
            });
            verification.report.compact += u64::from(refusal.is_none());
            verification.settle(&row, refusal);
        }
    }

    /// The bytes that were signed and the key, or the rule that the row breaks.
    async fn check(
        &mut self,
        row: &EventRow,
        snapshots: &mut SnapshotProver,
        verification: &mut Verification<'_>,
    ) -> Result<Result<(Vec<u8>, CompressedKey), BrokenRule>, ArchiveError> {
        let event = row.event();
        let refused = |rule: Rule, message: &str| Ok(Err((rule.code(), message.to_owned())));
        let Some(commit) = row.commit() else {
            return refused(Rule::Value, "a compact commit without account or revision");
        };
        let Some(key) = event.key.and_then(|key| CompressedKey::from_did_key(key).ok()) else {
            return refused(Rule::Value, "key is no did:key");
        };
        let ops = match ops_of_rows(&self.ops.at(commit.did, event.arrival).await?) {
            Ok(ops) => ops,
            Err(fault) => return Ok(Err(refusal(&fault))),
        };
        let (did, rev, since) = (commit.did, commit.rev, row.since());
        let chained = ChainCommit { did, rev, since, ops };
        let base = match self.chains.base_of(&chained) {
            Some(rev) => snapshots.tree_at(did, rev, verification).await?,
            None => None,
        };
        let data = match self.chains.apply(chained, base) {
            Ok(data) => data,
            Err(fault) => return Ok(Err(refusal(&fault))),
        };
        Ok(match refuse_future(rev, event.received) {
            Some(refusal) => Err(refusal),
            None => commit.signing_bytes(data).map(|message| (message, key)),
        })
    }
}

fn refusal(fault: &ChainFault) -> BrokenRule {
    let rule = match fault {
        ChainFault::NoBase(_) => Rule::Base,
        _ => Rule::Operations,
    };
    (rule.code(), fault.to_string())
}

/// The rows of `ops`, commit by commit.
pub(crate) struct OpsOfCommits(Scan<OpColumns>);

impl OpsOfCommits {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        Ok(Self(archive.scan(selection).await?))
    }

    /// The operations of a commit, which must not come before one that was asked for.
    pub(crate) async fn at(
        &mut self,
        did: &str,
        arrival: i64,
    ) -> Result<Vec<Row<OpColumns>>, ArchiveError> {
        let place = |number| Key { did: Some(did.into()), number, text: None };
        self.0.skip_to(&place(arrival)).await?;
        let mut rows = Vec::new();
        let end = place(arrival.saturating_add(1));
        while let Some(row) = self.0.next_before(&end).await? {
            rows.push(row);
        }
        Ok(rows)
    }
}
