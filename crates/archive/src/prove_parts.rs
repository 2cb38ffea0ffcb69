//! Proves the parts of an archive again: the stored commit and nodes prove the stored records, and no others, of the collections.

use crypto::PublicKey;
use verify::collections;
use verify::record::Options;

use crate::archive::Archive;
use crate::collections::Collections;
use crate::error::ArchiveError;
use crate::key_history::{KeyHistories, SignedAt};
use crate::part_rows::PartColumns;
use crate::part_slice::{PartSlice, PartSlices};
use crate::rule::{BrokenRule, Rule};
use crate::scan::Scan;
use crate::table_rows::Row;
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification};

impl Archive {
    pub(crate) async fn prove_parts(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut parts: Scan<PartColumns> = self.scan(selection).await?;
        let mut slices = PartSlices::open(self, selection).await?;
        let mut histories = KeyHistories::open(self, selection).await?;
        while let Some(row) = parts.next().await? {
            let [did, rev, _] = row.part();
            let fetched = row.columns().fetched.value(row.index());
            if !verification.has_account(did) || fetched < verification.since() {
                continue;
            }
            verification.report.parts += 1;
            let slice = slices.of(&row).await?;
            let signed = SignedAt { rev: Some(rev), received: fetched };
            let key = row.columns().key.value(row.index());
            let had_key = histories.check(did, key, signed, &mut verification.report).await?;
            match had_key.and(slice).and_then(|slice| check(&row, &slice)) {
                Ok(()) => verification.report.proved_parts += 1,
                Err((code, message)) => {
                    let (file, number) = row.place();
                    verification.refuse(Finding {
                        file: file.to_owned(),
                        row: Some(number),
                        did: Some(did.to_owned()),
                        code,
                        message,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Checks that the account signed these records of the collections, and no others.
fn check(row: &Row<PartColumns>, slice: &PartSlice) -> Result<(), BrokenRule> {
    let refused = |code: Rule, message: &str| Err((code.code(), message.to_owned()));
    let ([did, rev, collections], key) = (row.part(), row.columns().key.value(row.index()));
    let key = match PublicKey::from_did_key(key) {
        Ok(key) => key,
        Err(error) => return refused(Rule::Value, &format!("key {key}: {error}")),
    };
    let collections: Collections = match collections.parse() {
        Ok(collections) => collections,
        Err(error) => return refused(Rule::Value, &format!("collections {collections}: {error}")),
    };
    let patterns = collections.patterns();
    let proof = collections::verify(&slice.archive, patterns, Some(did), &key, &Options::default())
        .map_err(|rejection| (rejection.code(), rejection.to_string()))?;
    if proof.commit().rev != rev {
        return refused(
            Rule::Account,
            &format!("the commit has the revision {}", proof.commit().rev),
        );
    }
    let proved = proof.records().iter().map(|record| (&*record.path, record.cid));
    if !proved.eq(slice.records.iter().map(|(path, cid)| (&**path, *cid))) {
        return refused(Rule::Records, "the table has other records than the tree");
    }
    if proof.records().len() as i64 != row.columns().records.value(row.index()) {
        return refused(Rule::Records, "the column `records` has another number");
    }
    match proof.extra().blocks {
        0 => Ok(()),
        extra => refused(Rule::Records, &format!("the proof does not need {extra} of its blocks")),
    }
}
