//! A verification of an archive: its scope, findings and counts.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use sha2::{Digest, Sha256};

use crate::event::ArchivedEvent;
use crate::event_rows::EventRow;
use crate::rule::BrokenRule;
use crate::table_scan::Selection;

/// The scope of a verification: the whole archive by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// One account. Files that cannot have rows of it are not read.
    pub did: Option<String>,
    /// The first time of arrival, in microseconds since 1970.
    pub since: Option<i64>,
    /// One account in this number, chosen by a hash of its DID and `seed`.
    pub sample: Option<NonZeroU64>,
    /// Decides which accounts are of the sample.
    pub seed: u64,
}

impl VerifyOptions {
    fn has_account(&self, did: &str) -> bool {
        let is_sampled = |every: NonZeroU64| {
            let mut hash = Sha256::new();
            hash.update(self.seed.to_le_bytes());
            hash.update(did);
            let digest: [u8; 32] = hash.finalize().into();
            let (number, _) = digest.split_first_chunk().expect("32 bytes");
            u64::from_le_bytes(*number).is_multiple_of(every.get())
        };
        self.did.as_ref().is_none_or(|only| *only == *did) && self.sample.is_none_or(is_sampled)
    }

    /// Whether events without an account are verified too.
    fn has_all_accounts(&self) -> bool {
        self.did.is_none() && self.sample.is_none()
    }

    pub(crate) fn selection(&self) -> Selection {
        Selection { did: self.did.clone(), ..Selection::default() }
    }
}

/// The findings and counts of a verification.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Number of versions of the tables' logs.
    pub versions: u64,
    /// Number of files that another program wrote, by its name and operation. Their rows are proved by their content; nothing proves
    /// rows without a signature.
    pub rewritten: BTreeMap<String, u64>,
    /// Number of Parquet files in the tables' folders that no log names: from a writer that is at work or has ended, or
    /// put there by someone else.
    pub unnamed_files: u64,
    /// Number of files whose hash was compared with their name.
    pub files: u64,
    /// Number of events.
    pub events: u64,
    /// Number of events that were proved again.
    pub proved: u64,
    /// Number of proved events that are stored in compact form.
    pub compact: u64,
    /// Number of snapshots of repositories.
    pub snapshots: u64,
    /// Number of snapshots that were proved again.
    pub proved_snapshots: u64,
    /// Number of parts of repositories.
    pub parts: u64,
    /// Number of parts that were proved again.
    pub proved_parts: u64,
    /// Number of histories of keys.
    pub key_histories: u64,
    /// Number of blobs, once for every account that has one.
    pub blobs: u64,
    /// Number of blobs whose bytes were hashed again.
    pub proved_blobs: u64,
    /// Number of labels.
    pub labels: u64,
    /// Number of labels that were proved again.
    pub proved_labels: u64,
    /// Number of verified events, snapshots, parts and labels whose key was compared with the stored history of the account's keys.
    pub compared_keys: u64,
    /// Number of proved commits that do not continue the one before.
    pub gaps: u64,
    /// Number of events and labels that were stored as not verified, by their code.
    pub unverified: BTreeMap<String, u64>,
    /// Number of refusals, by code.
    pub refused: BTreeMap<String, u64>,
}

/// A row that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's path within the archive.
    pub file: String,
    /// The row in it, from 0; `None` for the file as a whole.
    pub row: Option<u64>,
    /// The account.
    pub did: Option<String>,
    /// The stable code of the broken rule.
    pub code: &'static str,
    /// The rule in words.
    pub message: String,
}

impl Finding {
    pub(crate) fn of(row: &EventRow, code: &'static str, message: String) -> Self {
        let (file, number) = row.place();
        let did = row.event().did.map(str::to_owned);
        Self { file: file.to_owned(), row: Some(number), did, code, message }
    }
}

impl VerifyReport {
    /// Whether anything was refused.
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }
}

/// A verification under way.
pub(crate) struct Verification<'f> {
    pub(crate) report: VerifyReport,
    options: &'f VerifyOptions,
    on_finding: &'f mut dyn FnMut(Finding),
}

impl<'f> Verification<'f> {
    /// A verification that has found nothing yet.
    pub(crate) fn new(options: &'f VerifyOptions, on_finding: &'f mut dyn FnMut(Finding)) -> Self {
        Self { report: VerifyReport::default(), options, on_finding }
    }

    /// Whether an account is verified.
    pub(crate) fn has_account(&self, did: &str) -> bool {
        self.options.has_account(did)
    }

    /// Whether a row of these accounts, some of which it may lack, is verified.
    pub(crate) fn has_row_of(&self, accounts: &[Option<&str>]) -> bool {
        self.options.has_all_accounts()
            || accounts.iter().flatten().any(|did| self.has_account(did))
    }

    /// The first time of arrival that is verified.
    pub(crate) fn since(&self) -> i64 {
        self.options.since.unwrap_or(i64::MIN)
    }

    /// Whether a row is verified.
    pub(crate) fn has(&self, event: &ArchivedEvent<'_>) -> bool {
        let is_of_account =
            event.did.map_or(self.options.has_all_accounts(), |did| self.has_account(did));
        is_of_account && event.received >= self.since()
    }

    /// Counts a row as proved, unless it breaks a rule.
    pub(crate) fn settle(&mut self, row: &EventRow, refusal: Option<BrokenRule>) {
        match refusal {
            None => self.report.proved += 1,
            Some((code, message)) => self.refuse(Finding::of(row, code, message)),
        }
    }

    pub(crate) fn refuse(&mut self, finding: Finding) {
        *self.report.refused.entry(finding.code.to_owned()).or_default() += 1;
        (self.on_finding)(finding);
    }
}
