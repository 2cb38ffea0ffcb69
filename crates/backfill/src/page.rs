//! A page of a list: its accounts, their repositories, its row in the ledger.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use archive::{FailedAccount, PageRow};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};

use crate::account::Outcome;
use crate::backfill_run::{BackfillRun, PageError, ended_early};
use crate::lists::{AccountList, ListedAccount, SeenAccounts};
use crate::place::Place;
use crate::repository_batch::{RepositoryBatch, StoredBatch};
use crate::summary;
use program::clock::now_micros;
use program::failure::Failure;

/// The next page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NextPage {
    pub(crate) sweep: u32,
    pub(crate) page: u64,
    pub(crate) cursor: Option<String>,
}

impl BackfillRun {
    /// Processes a page: its accounts, their repositories, its row.
    pub(crate) async fn page(
        self: Arc<Self>,
        list: &Arc<AccountList>,
        next: &NextPage,
        failed: &FailedAccounts,
        seen: &mut SeenAccounts,
        place: &mut Place<'_>,
    ) -> Result<PageRow, PageError> {
        let started = now_micros();
        let page = list.page(&self.client, next.cursor.as_deref(), &mut seen.answering);
        let page = place.during(page).await.map_err(PageError::List)?;
        let mut page = page.map_err(|error| PageError::List(error.to_string()))?;
        let mut row = PageRow {
            sweep: next.sweep,
            page: next.page,
            cursor: next.cursor.clone(),
            next: page.next.map(String::from),
            started,
            listed: page.accounts.len() as u64,
            ..PageRow::default()
        };
        for entry in seen.odd.append(page.odd) {
            self.progress.say(format!("{}: entry left out: {entry}", list.name()));
        }
        seen.retain_new(&mut page.accounts);
        if let Some(excess) = seen.excess(row.next.is_some()) {
            return Err(PageError::List(excess));
        }
        let mut accounts = page.accounts;
        if next.sweep > 1 {
            accounts.iter_mut().for_each(|account| failed.prepare(account));
        }
        let mut work = PageWork {
            run: self.clone(),
            row: &mut row,
            batch: RepositoryBatch::default(),
            storing: None,
        };
        work.process(list, accounts, place).await?;
        row.finished = now_micros();
        let name = list.name();
        let added = row.clone();
        let is_new = self
            .on_thread(
                move |run, runtime| Ok(runtime.block_on(run.ledger.add_page(&name, &added))?),
            )
            .await?;
        if is_new { Ok(row) } else { Err(PageError::Elsewhere) }
    }
}

/// The accounts of a page that are being processed.
struct PageWork<'p> {
    run: Arc<BackfillRun>,
    row: &'p mut PageRow,
    batch: RepositoryBatch,
    /// The batch that is being stored.
    storing: Option<JoinHandle<Result<StoredBatch, Failure>>>,
}

impl PageWork<'_> {
    /// Processes the accounts, some at a time, and stores their repositories in batches. Outcomes are taken in the order of the
    /// list, so that a page that is repeated after the end of a process has the same batches, which are stored once; out of
    /// order while another fetch waits for the space of these archives.
    async fn process(
        &mut self,
        list: &Arc<AccountList>,
        accounts: Vec<ListedAccount>,
        place: &mut Place<'_>,
    ) -> Result<(), PageError> {
        let mut waiting = accounts.into_iter().enumerate();
        let mut tasks = JoinSet::new();
        let mut started = 0;
        let mut taken = 0;
        let mut done = BTreeMap::new();
        let is_first_sweep = self.row.sweep == 1;
        let space = self.run.client.space().clone();
        loop {
            if waiting.len() > 0 {
                place.want();
            }
            while place.is_held()
                && tasks.len() < ACCOUNTS_AT_A_TIME
                && started - taken < MAX_UNTAKEN
                && let Some((index, account)) = waiting.next()
            {
                let processed = self.run.clone().process(list.clone(), account, is_first_sweep);
                tasks.spawn(async move { (index, processed.await) });
                started += 1;
            }
            if tasks.is_empty() && waiting.len() == 0 {
                break;
            }
            let (holds_any, holds_slot) = self.held_space(&done);
            tokio::select! {
                Some(ended) = tasks.join_next() => {
                    let (index, outcome) = ended.map_err(ended_early)?;
                    done.insert(index, Some(outcome.map_err(not_kept)?));
                    place.count();
                }
                changed = place.changed() => if let Err(fault) = changed {
                    // Fetched repositories are kept: the next sweep over the list does not fetch them again.
                    self.store_all(&mut done).await?;
                    self.finish_storing().await?;
                    return Err(PageError::List(fault));
                },
                () = space.until_wanted(holds_slot), if holds_any => self.store_all(&mut done).await?,
            }
            while let Some(outcome) = done.remove(&taken) {
                if let Some(outcome) = outcome {
                    self.add(outcome).await?;
                }
                taken += 1;
            }
        }
        self.store_batch().await?;
        Ok(self.finish_storing().await?)
    }

    /// Whether fetched repositories hold space, and whether one of them holds a slot.
    fn held_space(&self, done: &BTreeMap<usize, Option<Outcome>>) -> (bool, bool) {
        let of_done = done.values().filter_map(|outcome| match outcome {
            Some(Outcome::Fetched(account)) => Some(&**account),
            _ => None,
        });
        let held = of_done.chain(self.batch.accounts());
        held.fold((false, false), |(_, slot), account| (true, slot || account.space.is_slot()))
    }

    /// Begins to store all fetched repositories, so that their space is returned.
    async fn store_all(
        &mut self,
        done: &mut BTreeMap<usize, Option<Outcome>>,
    ) -> Result<(), Failure> {
        for outcome in done.values_mut() {
            if let Some(Outcome::Fetched(_)) = outcome
                && let Some(fetched) = outcome.take()
            {
                self.add(fetched).await?;
            }
        }
        self.store_batch().await
    }

    async fn add(&mut self, outcome: Outcome) -> Result<(), Failure> {
        match outcome {
            Outcome::Excluded => self.row.excluded += 1,
            Outcome::Present => self.row.present += 1,
            Outcome::Elsewhere => self.row.elsewhere += 1,
            Outcome::Failed(failure) => self.row.failures.push(failure),
            Outcome::Inactive { did, status } => {
                *self.row.inactive.entry(status.to_string()).or_default() += 1;
                if self.run.stored.has(did.as_str()) {
                    let hide = move |run: &BackfillRun, runtime: &Handle| {
                        run.hide(did.as_str(), &status, runtime)
                    };
                    self.run.on_thread(hide).await?;
                }
            }
            Outcome::Fetched(account) => {
                self.row.bytes += account.bytes;
                self.row.wire_bytes += account.wire_bytes;
                self.batch.push(*account);
                if self.batch.bytes() >= self.run.batch_bytes {
                    self.store_batch().await?;
                }
            }
        }
        Ok(())
    }

    /// Begins to store the batch, after the one before it.
    async fn store_batch(&mut self) -> Result<(), Failure> {
        self.finish_storing().await?;
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            self.storing = Some(tokio::spawn(store(self.run.clone(), batch)));
        }
        Ok(())
    }

    async fn finish_storing(&mut self) -> Result<(), Failure> {
        let Some(storing) = self.storing.take() else { return Ok(()) };
        let StoredBatch { stored, records, failures } = storing.await.map_err(ended_early)??;
        self.row.stored += stored;
        self.row.records += records;
        for FailedAccount { did, class, message, .. } in &failures {
            // If standard error is closed, the ledger remains.
            tracing::debug!(target: "wireproof::backfill", "{did}: refused ({class}): {message}");
        }
        self.row.failures.extend(failures);
        Ok(())
    }
}

/// Stores a batch once few others are being stored.
async fn store(run: Arc<BackfillRun>, batch: RepositoryBatch) -> Result<StoredBatch, Failure> {
    let _permit = run.storers.acquire().await;
    let storing = run.clone();
    let runtime = Handle::current();
    spawn_blocking(move || storing.store(&batch, &runtime)).await.map_err(ended_early)?
}

/// The accounts that failed in their last attempt, and whether a rule was broken then.
#[derive(Debug, Default)]
pub(crate) struct FailedAccounts(HashMap<String, bool>);

impl FailedAccounts {
    /// The accounts that failed by these rows.
    pub(crate) fn of(rows: &[PageRow]) -> Self {
        // The code of a rule has a slash, and the class of another failure none.
        let failed = |of: &FailedAccount| (of.did.clone(), of.class.contains('/'));
        Self(summary::failures(rows).map(failed).collect())
    }

    /// Decides what an account needs in a later sweep. Any stored revision is accepted, since writes after the first sweep are in the
    /// stream; but an account that failed needs the revision that its host lists, and the whole repository if its part was refused.
    fn prepare(&self, account: &mut ListedAccount) {
        match self.0.get(account.did.as_str()) {
            None => account.rev = None,
            Some(is_refused) => account.is_whole = *is_refused,
        }
    }
}

/// The next page of a list whose pages these are; `None` if nothing is left that may change.
pub(crate) fn next_page(rows: &[PageRow]) -> Option<NextPage> {
    let Some(last) = rows.last() else {
        return Some(NextPage { sweep: 1, page: 0, cursor: None });
    };
    match &last.next {
        Some(cursor) => {
            Some(NextPage { sweep: last.sweep, page: last.page + 1, cursor: Some(cursor.clone()) })
        }
        None if summary::is_settled(rows) => None,
        None => Some(NextPage { sweep: last.sweep + 1, page: 0, cursor: None }),
    }
}

/// A repository that this machine could not keep.
fn not_kept(error: io::Error) -> Failure {
    Failure::Local(format!("{}: {error}", std::env::temp_dir().display()))
}

/// Accounts of a page that are processed at a time.
const ACCOUNTS_AT_A_TIME: usize = 16;

/// Accounts that are processed or wait for one before them in the list.
const MAX_UNTAKEN: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn row(sweep: u32, page: u64, next: Option<&str>, stored: u64) -> PageRow {
        let next = next.map(str::to_owned);
        PageRow { sweep, page, next, stored, ..PageRow::default() }
    }

    fn place(sweep: u32, page: u64, cursor: Option<&str>) -> Option<NextPage> {
        Some(NextPage { sweep, page, cursor: cursor.map(str::to_owned) })
    }

    #[test]
    fn a_list_is_continued_after_its_last_page_and_swept_again_until_nothing_changes() {
        assert_eq!(next_page(&[]), place(1, 0, None));
        let mut rows = vec![row(1, 0, Some("a"), 7)];
        assert_eq!(next_page(&rows), place(1, 1, Some("a")));
        rows.push(row(1, 1, None, 0));
        assert_eq!(next_page(&rows), place(2, 0, None));
        rows.push(row(2, 0, None, 0));
        assert_eq!(next_page(&rows), None);
        rows.pop();
        rows.push(row(2, 0, None, 1));
        assert_eq!(next_page(&rows), place(3, 0, None));
        rows.push(row(3, 0, None, 1));
        assert_eq!(next_page(&rows), None);
    }

    fn failure(did: &str, class: &str, is_temporary: bool) -> FailedAccount {
        FailedAccount {
            did: did.to_owned(),
            host: None,
            class: class.to_owned(),
            message: String::new(),
            is_temporary,
        }
    }

    #[test]
    fn in_a_later_sweep_an_account_that_failed_needs_the_listed_revision_and_others_any() {
        let failures = vec![
            failure("did:web:a1.test", "slow", true),
            failure("did:web:a2.test", "tree/missing-node", true),
        ];
        let failed = FailedAccounts::of(&[PageRow { failures, ..row(1, 0, None, 0) }]);
        for (number, needs_listed, is_whole) in
            [(0, false, false), (1, true, false), (2, true, true)]
        {
            let did = format!("did:web:a{number}.test").parse().unwrap();
            let rev = Some("3jzfcijpj2z2a".parse().unwrap());
            let mut account = ListedAccount { rev, ..ListedAccount::new(did) };
            failed.prepare(&mut account);
            assert_eq!((account.rev.is_some(), account.is_whole), (needs_listed, is_whole));
        }
    }

    #[test]
    fn a_failure_that_may_pass_leads_to_another_sweep_and_one_that_does_not_to_none() {
        for (is_temporary, expected) in [(true, place(3, 0, None)), (false, None)] {
            let failure = failure("did:web:a.test", "slow", is_temporary);
            let failed = PageRow { failures: vec![failure], ..row(2, 0, None, 0) };
            assert_eq!(next_page(&[row(1, 0, None, 3), failed]), expected);
        }
    }
}
