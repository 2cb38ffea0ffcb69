//! A run of a backfill: sweeps over all lists, several at a time, page by page.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use archive::{Archive, FailedAccount, HideList, HostRow, Ledger, PageRow, StopRow};
use net::http::Limits;
use net::xrpc::PacedClient;
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::{JoinError, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{interval, sleep};

use super::account::Outcome;
use super::identities::Identities;
use super::lease::{self, Holder, ListLease};
use super::lists::{AccountList, ListedAccount, SeenAccounts, Source};
use super::part::{Part, StoredPart, part_bytes};
use super::place::{Place, Places, Prompt, PromptLists};
use super::progress::{RunProgress, SweepCounts};
use super::selection::Selection;
use super::stored::StoredRevisions;
use super::summary::{self, Summary};
use crate::archive::now_micros;
use crate::failure::Failure;
use crate::log::{self, Level};
use crate::progress::ProgressLine;

/// What a run works with.
pub(super) struct RunParts {
    pub(super) identities: Identities,
    pub(super) client: PacedClient,
    pub(super) limits: Limits,
    pub(super) archive: Archive,
    pub(super) ledger: Ledger,
    pub(super) selection: Selection,
    pub(super) holder: Holder,
    pub(super) concurrent_lists: usize,
    pub(super) retry_delay: Duration,
}

/// A run of a backfill.
pub(super) struct Run {
    pub(super) identities: Identities,
    pub(super) client: PacedClient,
    pub(super) limits: Limits,
    pub(super) archive: Archive,
    pub(super) selection: Selection,
    pub(super) stored: StoredRevisions,
    /// What the archive does not take again: accounts that were erased.
    pub(super) hidden: HideList,
    pub(super) ledger: Ledger,
    /// This process, as the leases name it.
    pub(super) holder: Holder,
    places: Arc<Places>,
    prompt: PromptLists,
    /// Bytes of repositories that are stored together.
    part_bytes: u64,
    retry_delay: Duration,
    progress: RunProgress,
    messages: Option<UnboundedReceiver<String>>,
}

/// The next page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NextPage {
    sweep: u32,
    page: u64,
    cursor: Option<String>,
}

/// How a sweep over a list ended.
enum SweepEnd {
    /// There was nothing to do.
    Settled,
    /// The list was read to its end, or given up.
    Swept,
    /// Another process works on it.
    Elsewhere,
}

/// A list, and the sweeps over it.
struct SweptList {
    list: Arc<AccountList>,
    sweeps: u32,
    /// When the round of sweeps began that it is in.
    round_started: i64,
    /// Since when another process has it.
    elsewhere_since: Option<Instant>,
    prompt: Prompt,
}

/// The lists that are being swept.
#[derive(Default)]
struct Sweeping {
    tasks: JoinSet<(SweptList, Result<SweepEnd, Failure>)>,
    /// The names of those that other processes have.
    elsewhere: HashSet<String>,
}

impl Sweeping {
    /// Sweeps over a list after a delay.
    fn start(&mut self, run: &Arc<Run>, mut list: SweptList, delay: Duration) {
        if list.elsewhere_since.is_none_or(|since| since.elapsed() <= MAX_WAIT_ELSEWHERE) {
            list.prompt.start();
        }
        let run = run.clone();
        self.tasks.spawn(async move {
            sleep(delay).await;
            let SweptList { list: of, round_started, prompt, .. } = &mut list;
            let ended = run.sweep(of.clone(), *round_started, prompt).await;
            (list, ended)
        });
    }

    /// Says how many lists other processes have, when that changes.
    fn say_elsewhere(&mut self, run: &Run, list: &SweptList, is_elsewhere: bool) {
        let name = list.list.name();
        let changed = match is_elsewhere {
            true => self.elsewhere.insert(name),
            false => self.elsewhere.remove(&name),
        };
        if changed {
            let count = self.elsewhere.len();
            run.progress.say(format!("lists that other processes have: {count}"));
        }
    }
}

/// Why a page was not processed.
pub(super) enum PageError {
    /// The list cannot be read.
    List(String),
    /// Another process has the list.
    Elsewhere,
    /// The run cannot go on.
    Run(Failure),
}

impl Run {
    pub(super) fn new(parts: RunParts) -> Self {
        let (sender, messages) = unbounded_channel();
        let part_bytes = part_bytes(parts.client.space().pool_bytes(), parts.concurrent_lists);
        Self {
            identities: parts.identities,
            client: parts.client,
            limits: parts.limits,
            archive: parts.archive,
            selection: parts.selection,
            stored: StoredRevisions::default(),
            hidden: HideList::default(),
            ledger: parts.ledger,
            holder: parts.holder,
            places: Places::new(parts.concurrent_lists),
            prompt: PromptLists::default(),
            part_bytes,
            retry_delay: parts.retry_delay,
            progress: RunProgress::new(sender),
            messages: Some(messages),
        }
    }

    /// Runs to the end, and returns what the ledger has then.
    pub(super) fn complete(mut self, source: Source) -> Result<Summary, Failure> {
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::Local(format!("the threads of this system: {error}")))?;
        runtime.block_on(self.archive.check_logs())?;
        let lists = runtime.block_on(self.prepare(&source))?;
        let messages = self.messages.take();
        let run = Arc::new(self);
        runtime.block_on(run.clone().show(lists, messages))?;
        runtime.block_on(Summary::read(&run.ledger))
    }

    /// Reads the lists, and what the archive does not take.
    async fn prepare(&mut self, source: &Source) -> Result<Vec<Arc<AccountList>>, Failure> {
        self.hidden = self.archive.hide_list().await?;
        let policy = self.identities.policy();
        let lists = source.lists(&self.client, &self.selection, policy).await?;
        for list in &lists {
            let row = HostRow { list: list.name(), stated_accounts: list.stated_accounts };
            self.ledger.add_list(&row).await?;
        }
        Ok(lists.into_iter().map(Arc::new).collect())
    }

    /// Runs the sweeps, and shows their progress.
    async fn show(
        self: Arc<Self>,
        lists: Vec<Arc<AccountList>>,
        messages: Option<UnboundedReceiver<String>>,
    ) -> Result<(), Failure> {
        let Some(mut messages) = messages else { return Ok(()) };
        let (mut line, mut ticks, mut printed) =
            (ProgressLine::new(), interval(TICK), Instant::now());
        let mut sweeps = tokio::spawn(self.clone().sweeps(lists));
        let ended = loop {
            tokio::select! {
                ended = &mut sweeps => break ended,
                Some(message) = messages.recv() => line.print(&message),
                _ = ticks.tick() => line.step(self.progress.text()),
            }
            if !io::stderr().is_terminal() && printed.elapsed() >= PLAIN_INTERVAL {
                printed = Instant::now();
                line.print(&self.progress.text());
            }
        };
        while let Ok(message) = messages.try_recv() {
            line.print(&message);
        }
        line.end();
        ended.map_err(ended_early)?
    }

    /// Sweeps over the lists until nothing is left that may change. A sweep over lists that were read waits for those that are
    /// being read, but not for those that are behind: they go on by themselves.
    async fn sweeps(self: Arc<Self>, lists: Vec<Arc<AccountList>>) -> Result<(), Failure> {
        let swept = |list| SweptList {
            list,
            sweeps: 0,
            round_started: 0,
            elsewhere_since: None,
            prompt: self.prompt.list(),
        };
        let mut due: Vec<SweptList> = lists.into_iter().map(swept).collect();
        let (mut sweeping, mut rounds, mut last_read) = (Sweeping::default(), 0, Instant::now());
        loop {
            if rounds >= summary::MAX_SWEEPS {
                // Lists that were behind end one by one, and each round reads the revisions of the whole archive.
                sleep(LATE_ROUND_PAUSE.saturating_sub(last_read.elapsed())).await;
            }
            let sweeps = due.iter().map(|list| list.sweeps).max().unwrap_or_default();
            if sweeps > 0 && self.has_trouble(&due).await? {
                sleep(self.retry_delay * 6_u32.pow(sweeps - 1)).await;
            }
            // Other processes may have stored what this one did not.
            self.read_stored().await?;
            (rounds, last_read) = (rounds + 1, Instant::now());
            let round_started = now_micros();
            for list in due.drain(..) {
                sweeping.start(&self, SweptList { round_started, ..list }, Duration::ZERO);
            }
            due = self.finished(&mut sweeping).await?;
            if due.is_empty() && sweeping.tasks.is_empty() {
                break;
            }
        }
        self.holder.release();
        Ok(())
    }

    /// Waits for lists, and returns those that are due to be swept again: all that are not behind, or some that were.
    async fn finished(
        self: &Arc<Self>,
        sweeping: &mut Sweeping,
    ) -> Result<Vec<SweptList>, Failure> {
        let mut due = Vec::new();
        loop {
            let ended = tokio::select! {
                biased;
                ended = sweeping.tasks.join_next() => ended,
                () = self.prompt.until_none(), if !due.is_empty() => return Ok(due),
            };
            let Some(ended) = ended else { return Ok(due) };
            let (mut list, end) = ended.map_err(ended_early)?;
            let end = end?;
            if let SweepEnd::Elsewhere = end {
                let pause = self.retry_delay.clamp(lease::MIN_PAUSE, lease::MAX_PAUSE);
                let since = *list.elsewhere_since.get_or_insert_with(Instant::now);
                sweeping.say_elsewhere(self, &list, true);
                if since.elapsed() > MAX_WAIT_ELSEWHERE {
                    list.prompt.fall_behind();
                }
                sweeping.start(self, list, pause);
                continue;
            }
            sweeping.say_elsewhere(self, &list, false);
            list.prompt.fall_behind();
            list.elsewhere_since = None;
            list.sweeps += 1;
            if let SweepEnd::Swept = end
                && list.sweeps < summary::MAX_SWEEPS
            {
                due.push(list);
            }
        }
    }

    /// Reads again which repositories the archive has.
    pub(super) async fn read_stored(self: &Arc<Self>) -> Result<(), Failure> {
        self.on_thread(|run, runtime| Ok(runtime.block_on(run.stored.read(&run.archive))?)).await
    }

    /// Whether an account or a list has failed and is asked for again.
    async fn has_trouble(self: &Arc<Self>, lists: &[SweptList]) -> Result<bool, Failure> {
        let names: Vec<String> = lists.iter().map(|swept| swept.list.name()).collect();
        self.on_thread(move |run, runtime| {
            for name in &names {
                let rows = runtime.block_on(run.ledger.pages(name))?;
                let is_open = rows.last().is_none_or(|row| row.next.is_some());
                let next = next_page(&rows);
                if next.is_some() && (is_open || summary::failures(&rows).any(|of| of.is_temporary))
                {
                    return Ok(true);
                }
            }
            Ok(false)
        })
        .await
    }

    /// Makes the next sweep over a list, or goes on with it, unless another process does, or has since the start of the round.
    async fn sweep(
        self: Arc<Self>,
        list: Arc<AccountList>,
        round_started: i64,
        prompt: &mut Prompt,
    ) -> Result<SweepEnd, Failure> {
        let mut place = self.places.take(prompt).await;
        let name = list.name();
        let Some(mut lease) = self.lease(&name).await? else { return Ok(SweepEnd::Elsewhere) };
        let rows = self.clone().pages_of(name.clone()).await?;
        let is_swept =
            rows.last().is_some_and(|row| row.next.is_none() && row.finished >= round_started);
        let ended = match next_page(&rows) {
            Some(_) if is_swept => SweepEnd::Swept,
            Some(next) => {
                let failed = summary::failures(&rows).map(|failure| failure.did.clone()).collect();
                drop(rows);
                self.clone().pages(&list, next, &failed, &mut lease, &mut place).await?
            }
            None => SweepEnd::Settled,
        };
        self.return_lease(lease).await?;
        Ok(ended)
    }

    /// Processes the pages of a sweep from this one on; `failed` are the accounts that failed in their last attempt.
    async fn pages(
        self: Arc<Self>,
        list: &Arc<AccountList>,
        mut next: NextPage,
        failed: &HashSet<String>,
        lease: &mut ListLease,
        place: &mut Place<'_>,
    ) -> Result<SweepEnd, Failure> {
        let name = list.name();
        self.progress.reading.fetch_add(1, Relaxed);
        let (mut seen, mut counts) = (SeenAccounts::default(), SweepCounts::default());
        let ended = loop {
            let page = self.clone().page(list, &next, failed, &mut seen, place);
            match self.with_lease(lease, page).await {
                Ok(row) => {
                    self.progress.add(&row);
                    counts.add(&row);
                    seen.count(&row);
                    let (sweep, page) = (row.sweep, row.page + 1);
                    match row.next {
                        Some(cursor) => next = NextPage { sweep, page, cursor: Some(cursor) },
                        None => break Ok(SweepEnd::Swept),
                    }
                }
                Err(PageError::List(message)) => {
                    self.say_stopped(&name, &next, &message);
                    break self.clone().stop(name.clone(), &next, message).await;
                }
                Err(PageError::Elsewhere) => break Ok(SweepEnd::Elsewhere),
                Err(PageError::Run(failure)) => break Err(failure),
            }
        };
        self.progress.reading.fetch_sub(1, Relaxed);
        self.progress.say(counts.text(&name, next.sweep, seen.odd.count()));
        ended
    }

    /// Processes a page: its accounts, their repositories, its row.
    async fn page(
        self: Arc<Self>,
        list: &Arc<AccountList>,
        next: &NextPage,
        failed: &HashSet<String>,
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
            accept_stored_revisions(&mut accounts, failed);
        }
        let mut work =
            PageWork { run: self.clone(), row: &mut row, part: Part::default(), storing: None };
        work.process(list, accounts, place).await?;
        row.finished = now_micros();
        let (name, added) = (list.name(), row.clone());
        let is_new = self
            .on_thread(
                move |run, runtime| Ok(runtime.block_on(run.ledger.add_page(&name, &added))?),
            )
            .await?;
        if is_new { Ok(row) } else { Err(PageError::Elsewhere) }
    }

    fn say_stopped(&self, name: &str, place: &NextPage, message: &str) {
        let NextPage { sweep, page, .. } = place;
        self.progress.say(format!("{name}: given up at page {page} of sweep {sweep}: {message}"));
    }

    /// Writes why a list was given up.
    async fn stop(
        self: Arc<Self>,
        name: String,
        place: &NextPage,
        message: String,
    ) -> Result<SweepEnd, Failure> {
        let row = StopRow { at: now_micros(), sweep: place.sweep, page: place.page, message };
        self.on_thread(move |run, runtime| Ok(runtime.block_on(run.ledger.add_stop(&name, &row))?))
            .await?;
        Ok(SweepEnd::Swept)
    }

    async fn pages_of(self: Arc<Self>, name: String) -> Result<Vec<PageRow>, Failure> {
        self.on_thread(move |run, runtime| Ok(runtime.block_on(run.ledger.pages(&name))?)).await
    }

    /// Runs work with the archive on a thread of its own, so that no other task waits for it.
    pub(super) async fn on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self, &Handle) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (run, runtime) = (self.clone(), Handle::current());
        spawn_blocking(move || work(&run, &runtime)).await.map_err(ended_early)?
    }
}

impl From<Failure> for PageError {
    fn from(failure: Failure) -> Self {
        Self::Run(failure)
    }
}

/// The accounts of a page that are being processed.
struct PageWork<'p> {
    run: Arc<Run>,
    row: &'p mut PageRow,
    part: Part,
    /// The part that is being stored.
    storing: Option<JoinHandle<Result<StoredPart, Failure>>>,
}

impl PageWork<'_> {
    /// Processes the accounts, some at a time, and stores their repositories in parts. Outcomes are taken in the order of the
    /// list, so that a page that is repeated after the end of a process has the same parts, which are stored once; out of
    /// order while another fetch waits for the space of these archives.
    async fn process(
        &mut self,
        list: &Arc<AccountList>,
        accounts: Vec<ListedAccount>,
        place: &mut Place<'_>,
    ) -> Result<(), PageError> {
        let (mut waiting, mut tasks) = (accounts.into_iter().enumerate(), JoinSet::new());
        let (mut started, mut taken, mut done) = (0, 0, BTreeMap::new());
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
                    // What was fetched is kept: the next sweep over the list does not fetch it again.
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
        self.store_part().await?;
        Ok(self.finish_storing().await?)
    }

    /// Whether fetched repositories hold space, and whether one of them holds a slot.
    fn held_space(&self, done: &BTreeMap<usize, Option<Outcome>>) -> (bool, bool) {
        let of_done = done.values().filter_map(|outcome| match outcome {
            Some(Outcome::Fetched(account)) => Some(&**account),
            _ => None,
        });
        let held = of_done.chain(self.part.accounts());
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
        self.store_part().await
    }

    async fn add(&mut self, outcome: Outcome) -> Result<(), Failure> {
        match outcome {
            Outcome::Excluded => self.row.excluded += 1,
            Outcome::Present => self.row.present += 1,
            Outcome::Elsewhere => self.row.elsewhere += 1,
            Outcome::Failed(failure) => self.row.failures.push(failure),
            Outcome::Inactive { did, status } => {
                *self.row.inactive.entry(status.to_string()).or_default() += 1;
                if self.run.stored.get(did.as_str()).is_some() {
                    let hide =
                        move |run: &Run, runtime: &Handle| run.hide(did.as_str(), &status, runtime);
                    self.run.on_thread(hide).await?;
                }
            }
            Outcome::Fetched(account) => {
                self.row.bytes += account.bytes;
                self.row.wire_bytes += account.wire_bytes;
                self.part.push(*account);
                if self.part.bytes() >= self.run.part_bytes {
                    self.store_part().await?;
                }
            }
        }
        Ok(())
    }

    /// Begins to store the part, after the one before it.
    async fn store_part(&mut self) -> Result<(), Failure> {
        self.finish_storing().await?;
        if !self.part.is_empty() {
            let (part, run) = (std::mem::take(&mut self.part), self.run.clone());
            let runtime = Handle::current();
            self.storing = Some(spawn_blocking(move || run.store(&part, &runtime)));
        }
        Ok(())
    }

    async fn finish_storing(&mut self) -> Result<(), Failure> {
        let Some(storing) = self.storing.take() else { return Ok(()) };
        let StoredPart { stored, records, failures } = storing.await.map_err(ended_early)??;
        (self.row.stored, self.row.records) =
            (self.row.stored + stored, self.row.records + records);
        for FailedAccount { did, class, message, .. } in &failures {
            // If standard error is closed, the ledger remains.
            let _ = log::print(Level::Debug, &format!("{did}: refused ({class}): {message}"));
        }
        self.row.failures.extend(failures);
        Ok(())
    }
}

/// Has any stored revision do for the accounts of a later sweep: what they have written since their first one is in the stream.
/// An account that failed needs the one that its host lists.
fn accept_stored_revisions(accounts: &mut [ListedAccount], failed: &HashSet<String>) {
    let is_done = |account: &&mut ListedAccount| !failed.contains(account.did.as_str());
    accounts.iter_mut().filter(is_done).for_each(|account| account.rev = None);
}

/// The next page of a list whose pages these are; `None` if nothing is left that may change.
fn next_page(rows: &[PageRow]) -> Option<NextPage> {
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

/// A task that has panicked: a bug of this program.
fn ended_early(error: JoinError) -> Failure {
    Failure::Local(format!("a part of the program failed: {error}"))
}

/// A repository that this machine could not keep.
fn not_kept(error: io::Error) -> Failure {
    Failure::Local(format!("{}: {error}", std::env::temp_dir().display()))
}

/// Time between the rounds of sweeps over lists that were behind.
const LATE_ROUND_PAUSE: Duration = Duration::from_secs(60);

/// Time for which the next sweep waits for lists that other processes have.
const MAX_WAIT_ELSEWHERE: Duration = Duration::from_secs(60);

/// Accounts of a page that are processed at a time.
const ACCOUNTS_AT_A_TIME: usize = 16;

/// Accounts that are processed or wait for one before them in the list.
const MAX_UNTAKEN: usize = 128;

/// Interval at which the progress is shown on a terminal, and elsewhere.
const TICK: Duration = Duration::from_millis(500);
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);

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

    #[test]
    fn in_a_later_sweep_an_account_that_failed_needs_the_listed_revision_and_others_any() {
        let account = |number: usize| ListedAccount {
            did: format!("did:web:a{number}.test").parse().unwrap(),
            rev: Some("3jzfcijpj2z2a".parse().unwrap()),
            inactive: None,
        };
        let mut accounts: Vec<ListedAccount> = (0..3).map(account).collect();
        accept_stored_revisions(&mut accounts, &["did:web:a1.test".to_owned()].into());
        let needed: Vec<bool> = accounts.iter().map(|account| account.rev.is_some()).collect();
        assert_eq!(needed, [false, true, false]);
    }

    #[test]
    fn a_failure_that_may_pass_leads_to_another_sweep_and_one_that_does_not_to_none() {
        for (is_temporary, expected) in [(true, place(3, 0, None)), (false, None)] {
            let failure = FailedAccount {
                did: "did:web:a.test".to_owned(),
                host: None,
                class: "slow".to_owned(),
                message: String::new(),
                is_temporary,
            };
            let failed = PageRow { failures: vec![failure], ..row(2, 0, None, 0) };
            assert_eq!(next_page(&[row(1, 0, None, 3), failed]), expected);
        }
    }
}
