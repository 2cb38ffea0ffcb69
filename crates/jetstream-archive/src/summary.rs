//! The report on an archive.

use std::collections::BTreeMap;

use program::failure::Failure;
use serde::Serialize;

use crate::download::DownloadTotals;
use crate::sampling::SampleReport;
use crate::verdict::{AccountVerdict, Verdict};

/// The report, as JSON and text, on a hosted archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The origin of the server.
    pub host: String,
    /// The last sequence number of the archive.
    pub sealed_tip_seq: u64,
    /// Downloaded segments; a segment of which two pages name blocks counts twice.
    pub segment_count: u64,
    /// Blocks that were read.
    pub block_count: u64,
    /// Requests to the server of the archive.
    pub request_count: u64,
    /// Bytes of segments and blocks.
    pub byte_count: u64,
    /// Events in the range that was asked for.
    pub event_count: u64,
    /// Events that no repository can have: without an account, a path or a record.
    pub unusable_event_count: u64,
    /// Accounts that were named, or that have events that were asked for.
    pub population_count: u64,
    /// Whether the population was counted, or estimated.
    pub is_population_exact: bool,
    /// Accounts with a verdict.
    pub account_count: u64,
    /// Accounts whose records are the signed ones.
    pub proved_count: u64,
    /// Records of proved accounts.
    pub proved_record_count: u64,
    /// Accounts that have written since the end of the archive.
    pub newer_count: u64,
    /// Accounts with records that differ from the signed ones.
    pub wrong_count: u64,
    /// Records that wrong accounts have not signed.
    pub unsigned_record_count: u64,
    /// Records of wrong accounts whose bytes are not the signed ones.
    pub altered_record_count: u64,
    /// Signed records of wrong accounts that the archive has not.
    pub missing_record_count: u64,
    /// Accounts that are not served, by status.
    pub inactive: BTreeMap<String, u64>,
    /// Accounts that could not be checked, by the class of the failure or the code of the broken rule.
    pub unproved: BTreeMap<String, u64>,
    /// Repositories that were stored.
    pub stored_count: u64,
    /// Bytes of the new files of the archive.
    pub stored_byte_count: u64,
    /// The bounds that a sample gives for all accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<SampleReport>,
}

impl Summary {
    pub(crate) fn add_downloads(&mut self, totals: &DownloadTotals) {
        self.sealed_tip_seq = totals.tip;
        self.segment_count = totals.segments;
        self.block_count = totals.blocks;
        self.request_count = totals.requests;
        self.byte_count = totals.bytes;
        self.event_count = totals.events;
    }

    pub(crate) fn add(&mut self, verdict: &AccountVerdict) {
        self.account_count += 1;
        let code = || verdict.code.clone().unwrap_or_default();
        match verdict.verdict {
            Verdict::Proved => {
                self.proved_count += 1;
                self.proved_record_count += verdict.record_count;
            }
            Verdict::Newer => self.newer_count += 1,
            Verdict::Wrong => {
                self.wrong_count += 1;
                self.unsigned_record_count += verdict.differences.unsigned.count;
                self.altered_record_count += verdict.differences.altered.count;
                self.missing_record_count += verdict.differences.missing.count;
            }
            Verdict::Inactive => *self.inactive.entry(code()).or_default() += 1,
            Verdict::Unproved => *self.unproved.entry(code()).or_default() += 1,
        }
    }

    /// Whether the archive has passed: no account is wrong, and all that are served were checked.
    ///
    /// # Errors
    /// [`Failure::Refused`] if an account is wrong, or an account's host has sent data that breaks a rule;
    /// [`Failure::Network`] if an account could not be checked.
    pub fn result(&self) -> Result<(), Failure> {
        if self.wrong_count > 0 {
            let wrong = self.wrong_count;
            let what = "accounts of the archive have records that differ from the signed ones";
            return Err(Failure::Refused(format!("{wrong} {what}")));
        }
        let unproved: u64 = self.unproved.values().sum();
        if unproved == 0 {
            return Ok(());
        }
        let message = format!("{unproved} accounts could not be checked");
        // Codes of broken rules have a slash.
        match self.unproved.keys().any(|class| class.contains('/')) {
            true => Err(Failure::Refused(message)),
            false => Err(Failure::Network(message)),
        }
    }

    /// The report for a person.
    pub fn to_text(&self) -> String {
        let about = if self.is_population_exact { "" } else { "about " };
        let mut text = format!(
            "{}: {} events of {about}{} accounts up to sequence number {}\n\
             {} segments, {} blocks, {} bytes in {} requests\n\
             {} accounts: {} proved with {} records, {} newer than the archive, {} wrong\n",
            self.host,
            self.event_count,
            self.population_count,
            self.sealed_tip_seq,
            self.segment_count,
            self.block_count,
            self.byte_count,
            self.request_count,
            self.account_count,
            self.proved_count,
            self.proved_record_count,
            self.newer_count,
            self.wrong_count,
        );
        if self.wrong_count > 0 {
            text.push_str(&format!(
                "records of wrong accounts: {} unsigned, {} altered, {} missing\n",
                self.unsigned_record_count, self.altered_record_count, self.missing_record_count
            ));
        }
        for (name, counts) in [("not served", &self.inactive), ("not checked", &self.unproved)] {
            let counts: Vec<String> =
                counts.iter().map(|(class, count)| format!("{count} {class}")).collect();
            if !counts.is_empty() {
                text.push_str(&format!("{name}: {}\n", counts.join(", ")));
            }
        }
        if self.unusable_event_count > 0 {
            let count = self.unusable_event_count;
            text.push_str(&format!("{count} events that no repository can have\n"));
        }
        if let Some(sample) = &self.sample {
            text.push_str(&sample.to_text());
        }
        if self.stored_count > 0 {
            let (count, bytes) = (self.stored_count, self.stored_byte_count);
            text.push_str(&format!("{count} repositories stored in {bytes} bytes\n"));
        }
        text
    }
}

impl SampleReport {
    fn to_text(&self) -> String {
        let Self { size, seed, decided_count, wrong_count, confidence_percent, method, .. } = self;
        let (least, most) = (self.wrong_at_least_percent, self.wrong_at_most_percent);
        let bound = match wrong_count {
            0 => format!("at most {most:.3} %"),
            _ => format!("{least:.3} % to {most:.3} %"),
        };
        format!(
            "sample of {size} with seed {seed}: {wrong_count} of {decided_count} decided accounts are wrong, so {bound} of all \
             are wrong, with {confidence_percent:.0} % confidence ({method})\n"
        )
    }
}
