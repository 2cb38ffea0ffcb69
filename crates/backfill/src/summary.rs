//! How far a backfill is, by its ledger.

use std::collections::BTreeMap;
use std::time::Duration;

use archive::{ArchiveError, FailedAccount, Ledger, PageRow, StopRow};
use indicatif::BinaryBytes;
use net::DurationText;
use serde::Serialize;

use program::failure::Failure;
use program::output::table;

/// The report, as JSON and text, of a backfill.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Number of lists of accounts.
    pub list_count: u64,
    /// Lists of which nothing is left to do.
    pub done_list_count: u64,
    /// The accounts of all lists.
    #[serde(flatten)]
    pub totals: AccountCounts,
    /// Seconds until the lists that are being read are done at their present rates, if relays state their sizes.
    eta_seconds: Option<u64>,
    lists: Vec<ListSummary>,
}

/// AccountCounts of accounts.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct AccountCounts {
    /// All that are listed.
    pub account_count: u64,
    /// Repositories that were stored.
    pub stored_count: u64,
    /// Records of the stored repositories.
    pub record_count: u64,
    /// Bytes of the stored repositories.
    pub byte_count: u64,
    /// Bytes as they were received: fewer where hosts have compressed them.
    pub wire_byte_count: u64,
    /// Repositories that the archive had.
    pub present_count: u64,
    /// Accounts that are excluded, or not selected.
    pub excluded_count: u64,
    /// Accounts whose own document names another host.
    pub elsewhere_count: u64,
    /// Accounts that are not active, by the status that their host states.
    pub inactive: BTreeMap<String, u64>,
    /// Accounts that failed in their last attempt, by class.
    pub failed: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct ListSummary {
    list: String,
    state: State,
    sweep: u32,
    page_count: u64,
    stated_accounts: Option<u64>,
    #[serde(flatten)]
    counts: AccountCounts,
    eta_seconds: Option<u64>,
    /// Why the list was given up after its last page, if it was.
    stopped: Option<String>,
    #[serde(skip)]
    has_network_failure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Waiting,
    Reading,
    Stopped,
    Done,
}

impl Summary {
    /// Reads a ledger.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn read(ledger: &Ledger) -> Result<Self, Failure> {
        let mut lists = Vec::new();
        for row in ledger.lists().await? {
            lists.push(ListSummary::read(ledger, row.list, row.stated_accounts).await?);
        }
        let mut totals = AccountCounts::default();
        lists.iter().for_each(|list| totals.add(&list.counts));
        let done = lists.iter().filter(|list| list.state == State::Done).count();
        Ok(Self {
            list_count: lists.len() as u64,
            done_list_count: done as u64,
            totals,
            eta_seconds: lists.iter().filter_map(|list| list.eta_seconds).max(),
            lists,
        })
    }

    /// The result of a run that has ended so.
    ///
    /// # Errors
    /// If a list was not read to its end, or a repository was refused.
    pub fn result(&self) -> Result<(), Failure> {
        let failed: u64 = self.totals.failed.values().sum();
        let open = self.list_count - self.done_list_count;
        if open > 0 || self.lists.iter().any(|list| list.has_network_failure) {
            return Err(Failure::Network(format!(
                "{open} lists were not read to their end{}, and {failed} accounts failed: the same command retries the rest",
                self.named_open_lists()
            )));
        }
        match failed {
            0 => Ok(()),
            failed => Err(Failure::Refused(format!("{failed} repositories were refused"))),
        }
    }

    /// The first lists that were not read to their end.
    fn named_open_lists(&self) -> String {
        let open = self.lists.iter().filter(|list| list.state != State::Done);
        let names: Vec<&str> = open.map(|list| &*list.list).collect();
        match names.split_at_checked(MAX_NAMED) {
            _ if names.is_empty() => String::new(),
            Some((first, rest)) if !rest.is_empty() => {
                format!(" ({} and {} more)", first.join(", "), rest.len())
            }
            _ => format!(" ({})", names.join(", ")),
        }
    }

    /// The summary for a person.
    pub fn to_text(&self) -> String {
        let rows = self.lists.iter().take(MAX_ROWS).map(ListSummary::row);
        let mut text = table(
            ["list", "state", "sweep", "accounts", "stored", "failed", "bytes", "left"],
            rows,
        );
        if self.lists.len() > MAX_ROWS {
            text += &format!("… and {} more: --json shows them\n", self.lists.len() - MAX_ROWS);
        }
        let AccountCounts {
            account_count,
            stored_count,
            record_count,
            byte_count,
            present_count,
            ..
        } = &self.totals;
        let AccountCounts {
            wire_byte_count,
            excluded_count,
            elsewhere_count,
            inactive,
            failed,
            ..
        } = &self.totals;
        text += &format!(
            "{} of {} lists done, {account_count} accounts\n\
             {stored_count} repositories stored with {record_count} records, {} ({} as received)\n\
             {present_count} present before, {excluded_count} excluded, {elsewhere_count} hosted elsewhere\n",
            self.done_list_count,
            self.list_count,
            BinaryBytes(*byte_count),
            BinaryBytes(*wire_byte_count),
        );
        for (what, counts) in [("inactive", inactive), ("failed", failed)] {
            for (class, count) in counts {
                text += &format!("{count} {what}: {class}\n");
            }
        }
        for list in &self.lists {
            if let Some(message) = &list.stopped {
                text += &format!("{}: given up: {message}\n", list.list);
            }
        }
        text
    }
}

impl ListSummary {
    async fn read(
        ledger: &Ledger,
        list: String,
        stated_accounts: Option<u64>,
    ) -> Result<Self, ArchiveError> {
        let (rows, stop) = (ledger.pages(&list).await?, ledger.last_stop(&list).await?);
        let finished = rows.last().map_or(i64::MIN, |row| row.finished);
        let stop = stop.filter(|StopRow { at, .. }| *at >= finished);
        let is_done = rows.last().is_some_and(|row| row.next.is_none()) && is_settled(&rows);
        let state = match (is_done, &stop, rows.is_empty()) {
            (true, ..) => State::Done,
            (_, Some(_), _) => State::Stopped,
            (.., true) => State::Waiting,
            _ => State::Reading,
        };
        let counts = AccountCounts::of(&rows);
        Ok(Self {
            list,
            state,
            sweep: rows.last().map_or(0, |row| row.sweep),
            page_count: rows.len() as u64,
            stated_accounts,
            eta_seconds: eta_seconds(&rows, stated_accounts),
            stopped: stop.filter(|_| !is_done).map(|stop| stop.message),
            has_network_failure: failures(&rows).any(|failure| !failure.class.contains('/')),
            counts,
        })
    }

    fn row(&self) -> [String; 8] {
        let AccountCounts { account_count, stored_count, byte_count, failed, .. } = &self.counts;
        let state = format!("{:?}", self.state).to_lowercase();
        let left = self.eta_seconds.map(|seconds| DurationText(Duration::from_secs(seconds)));
        [
            self.list.clone(),
            state,
            self.sweep.to_string(),
            account_count.to_string(),
            stored_count.to_string(),
            failed.values().sum::<u64>().to_string(),
            BinaryBytes(*byte_count).to_string(),
            left.map_or_else(String::new, |left| left.to_string()),
        ]
    }
}

impl AccountCounts {
    /// The counts of a list. The accounts are from the first sweep; later sweeps see the same ones.
    fn of(rows: &[PageRow]) -> Self {
        let mut counts = Self::default();
        for row in rows {
            counts.stored_count += row.stored;
            counts.record_count += row.records;
            counts.byte_count += row.bytes;
            counts.wire_byte_count += row.wire_bytes;
        }
        for row in rows.iter().filter(|row| row.sweep == 1) {
            counts.account_count += row.listed;
            counts.present_count += row.present;
        }
        for row in newest(rows) {
            counts.excluded_count += row.excluded;
            counts.elsewhere_count += row.elsewhere;
            for (status, count) in &row.inactive {
                *counts.inactive.entry(status.clone()).or_default() += count;
            }
        }
        for failure in failures(rows) {
            *counts.failed.entry(failure.class.clone()).or_default() += 1;
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.account_count += other.account_count;
        self.stored_count += other.stored_count;
        self.record_count += other.record_count;
        self.byte_count += other.byte_count;
        self.wire_byte_count += other.wire_byte_count;
        self.present_count += other.present_count;
        self.excluded_count += other.excluded_count;
        self.elsewhere_count += other.elsewhere_count;
        for (sum, added) in
            [(&mut self.inactive, &other.inactive), (&mut self.failed, &other.failed)]
        {
            for (name, count) in added {
                *sum.entry(name.clone()).or_default() += count;
            }
        }
    }
}

/// Whether no further sweep can change anything: there were three, or the last one stored nothing, and nothing failed in it
/// that may pass. The second sweep is always made, for accounts that moved to a host after its first.
pub(crate) fn is_settled(rows: &[PageRow]) -> bool {
    let Some(last) = rows.last() else { return false };
    let mut of_last = rows.iter().filter(|row| row.sweep == last.sweep);
    let changes = |row: &PageRow| row.stored > 0 || row.failures.iter().any(|of| of.is_temporary);
    last.sweep >= MAX_SWEEPS || last.sweep > 1 && !of_last.any(changes)
}

/// The accounts that failed in their last attempt.
pub(crate) fn failures(rows: &[PageRow]) -> impl Iterator<Item = &FailedAccount> {
    newest(rows).flat_map(|row| &row.failures)
}

/// The pages of the last sweep, and the pages of the sweep before that it has not reached.
fn newest(rows: &[PageRow]) -> impl Iterator<Item = &PageRow> {
    let last = rows.last().map(|row| (row.sweep, row.page, row.next.is_none()));
    rows.iter().filter(move |row| {
        last.is_some_and(|(sweep, page, is_whole)| {
            row.sweep == sweep || row.sweep + 1 == sweep && !is_whole && row.page > page
        })
    })
}

/// Seconds until the first sweep is done, at the rate of all of its pages together.
fn eta_seconds(rows: &[PageRow], stated_accounts: Option<u64>) -> Option<u64> {
    let (last, stated) = (rows.last()?, stated_accounts?);
    if last.sweep > 1 || last.next.is_none() {
        return None;
    }
    let listed: u64 = rows.iter().map(|row| row.listed).sum();
    let micros: i64 = rows.iter().map(|row| row.finished.saturating_sub(row.started)).sum();
    let per_account = micros as f64 / 1e6 / listed.max(1) as f64;
    Some((per_account * stated.saturating_sub(listed) as f64) as u64)
}

/// Sweeps over a list.
pub(crate) const MAX_SWEEPS: u32 = 3;

/// Lists that an error names.
const MAX_NAMED: usize = 8;

/// Lists in a table for people.
const MAX_ROWS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(did: &str, class: &str) -> FailedAccount {
        FailedAccount {
            did: did.to_owned(),
            host: None,
            class: class.to_owned(),
            message: String::new(),
            is_temporary: true,
        }
    }

    fn row(sweep: u32, page: u64, next: bool, failures: &[(&str, &str)]) -> PageRow {
        let failures = failures.iter().map(|(did, class)| failure(did, class)).collect();
        let (next, listed) = (next.then(|| "next".to_owned()), 10);
        PageRow { sweep, page, next, listed, failures, finished: 5_000_000, ..PageRow::default() }
    }

    fn classes(rows: &[PageRow]) -> Vec<&str> {
        failures(rows).map(|failure| &*failure.class).collect()
    }

    #[test]
    fn an_account_that_fails_again_counts_once_and_one_that_succeeds_does_not() {
        let first = [row(1, 0, true, &[("a", "slow")]), row(1, 1, false, &[("b", "car/hash")])];
        assert_eq!(classes(&first), ["slow", "car/hash"]);
        let begun = [&first[..], &[row(2, 0, true, &[])]].concat();
        assert_eq!(classes(&begun), ["car/hash"], "the second sweep has not reached it");
        let whole = [&begun[..], &[row(2, 1, false, &[("b", "car/hash")])]].concat();
        assert_eq!(classes(&whole), ["car/hash"]);
        // A list that has become shorter.
        let short = [&first[..], &[row(2, 0, false, &[])]].concat();
        assert_eq!(classes(&short), Vec::<&str>::new());
        assert_eq!(AccountCounts::of(&whole).account_count, 20);
    }

    fn summary(states: &[State]) -> Summary {
        let list = |(number, state): (usize, &State)| ListSummary {
            list: format!("https://host{number}.test"),
            state: *state,
            sweep: 1,
            page_count: 1,
            stated_accounts: None,
            counts: AccountCounts::default(),
            eta_seconds: None,
            stopped: None,
            has_network_failure: false,
        };
        let done = states.iter().filter(|state| **state == State::Done).count() as u64;
        Summary {
            list_count: states.len() as u64,
            done_list_count: done,
            totals: AccountCounts::default(),
            eta_seconds: None,
            lists: states.iter().enumerate().map(list).collect(),
        }
    }

    /// The message of a network failure.
    fn message(summary: &Summary) -> String {
        match summary.result() {
            Err(Failure::Network(message)) => message,
            _ => panic!("not a network failure"),
        }
    }

    #[test]
    fn a_run_with_a_list_that_was_given_up_fails_and_names_it() {
        assert!(summary(&[State::Done]).result().is_ok());
        for state in [State::Stopped, State::Reading, State::Waiting] {
            let failure = message(&summary(&[State::Done, state]));
            assert!(
                failure.contains("1 lists") && failure.contains("(https://host1.test)"),
                "{failure}"
            );
            assert!(!failure.contains("host0"), "{failure}");
        }
        let failure = message(&summary(&[State::Stopped; 30]));
        assert!(failure.contains("host7.test and 22 more"), "{failure}");
    }

    #[test]
    fn the_time_left_follows_from_the_size_that_a_relay_states() {
        let rows = [row(1, 0, true, &[])];
        assert_eq!(eta_seconds(&rows, Some(30)), Some(10));
        assert_eq!(eta_seconds(&rows, Some(5)), Some(0));
        assert_eq!((eta_seconds(&rows, None), eta_seconds(&[], Some(30))), (None, None));
        assert_eq!(eta_seconds(&[row(1, 0, false, &[])], Some(30)), None);
    }
}
