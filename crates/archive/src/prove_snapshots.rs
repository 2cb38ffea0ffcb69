//! Proves the snapshots of an archive again: the tree of their records must have the root that the account signed.

use atproto::mst::Tree;
use codec::Cid;
use crypto::PublicKey;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::key_history::{KeyHistories, SignedAt};
use crate::record_trees::{RecordTree, RecordTrees};
use crate::repository_rows::SnapshotColumns;
use crate::rule::{BrokenRule, Rule};
use crate::scan::Scan;
use crate::table_rows::Row;
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification};

impl Archive {
    pub(crate) async fn prove_snapshots(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut snapshots: Scan<SnapshotColumns> = self.scan(selection).await?;
        let mut trees = RecordTrees::open(self, selection).await?;
        let mut built = trees.build_next().await?;
        let mut histories = KeyHistories::open(self, selection).await?;
        while let Some(row) = snapshots.next().await? {
            let (columns, index) = (row.columns(), row.index());
            let place = (columns.did.value(index), columns.rev.value(index));
            if !verification.has_account(place.0)
                || columns.fetched.value(index) < verification.since()
            {
                continue;
            }
            verification.report.snapshots += 1;
            while built.as_ref().is_some_and(|built| built.place() < place) {
                built = trees.build_next().await?;
            }
            let records = built.as_mut().filter(|built| built.place() == place);
            let signed = SignedAt { rev: Some(place.1), received: columns.fetched.value(index) };
            let key = columns.key.value(index);
            let had_key = histories.check(place.0, key, signed, &mut verification.report).await?;
            match had_key.and_then(|()| check(&row, records)) {
                Ok(()) => verification.report.proved_snapshots += 1,
                Err((code, message)) => {
                    let (file, number) = row.place();
                    verification.refuse(Finding {
                        file: file.to_owned(),
                        row: Some(number),
                        did: Some(place.0.to_owned()),
                        code,
                        message,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Checks that the account signed the tree of these records.
fn check(row: &Row<SnapshotColumns>, built: Option<&mut RecordTree>) -> Result<(), BrokenRule> {
    let (columns, index) = (row.columns(), row.index());
    let refused = |code, message: &str| Err((code, message.to_owned()));
    let Some(data) = Cid::from_bytes(columns.data.value(index)) else {
        return refused(Rule::Value.code(), "data is no CID");
    };
    let count = columns.records.value(index);
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
    let commit = row.commit();
    let message = commit.signing_bytes(data)?;
    let key = columns.key.value(index);
    let key = match PublicKey::from_did_key(key) {
        Ok(key) => key,
        Err(error) => return Err((Rule::Value.code(), format!("key {key}: {error}"))),
    };
    key.verify(&message, commit.sig).map_err(|fault| (Rule::Signature.code(), fault.to_string()))
}
