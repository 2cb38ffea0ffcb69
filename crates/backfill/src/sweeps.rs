//! Sweeps over all lists, several at a time, page by page.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use archive::{HostRow, PageRow, StopRow};
use tokio::runtime::Builder;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

use crate::backfill_run::{BackfillRun, PageError, ended_early};
use crate::lease::{self, ListLease};
use crate::lists::{AccountList, SeenAccounts, Source};
use crate::page::{FailedAccounts, NextPage, next_page};
use crate::place::{Place, Prompt};
use crate::progress::SweepCounts;
use crate::summary::{self, Summary};
use program::clock::now_micros;
use program::failure::Failure;
use program::progress::ProgressLine;

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
    /// The names of the lists that other processes have.
    elsewhere: HashSet<String>,
}

impl Sweeping {
    /// Sweeps over a list after a delay.
    fn start(&mut self, run: &Arc<BackfillRun>, mut list: SweptList, delay: Duration) {
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
    fn say_elsewhere(&mut self, run: &BackfillRun, list: &SweptList, is_elsewhere: bool) {
        let name = list.list.name();
        let changed =
            if is_elsewhere { self.elsewhere.insert(name) } else { self.elsewhere.remove(&name) };
        if changed {
            let count = self.elsewhere.len();
            run.progress.say(format!("lists that other processes have: {count}"));
        }
    }
}

impl BackfillRun {
    /// Runs to the end, and returns the content of the ledger.
    pub(crate) fn complete(mut self, source: Source) -> Result<Summary, Failure> {
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

    /// Reads the lists, and the accounts that the archive does not accept.
    async fn prepare(&mut self, source: &Source) -> Result<Vec<Arc<AccountList>>, Failure> {
        self.hidden = self.archive.hide_list().await?;
        let policy = self.identities.policy();
        let lists =
            source.lists(&self.client, &self.selection, self.parts.as_ref(), policy).await?;
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
        let mut line = if self.is_silent { ProgressLine::silent() } else { ProgressLine::new() };
        let mut ticks = interval(TICK);
        let mut printed = Instant::now();
        let mut sweeps = tokio::spawn(self.clone().sweeps(lists));
        let ended = loop {
            tokio::select! {
                ended = &mut sweeps => break ended,
                Some(message) = messages.recv() => self.say(&line, &message),
                _ = ticks.tick() => line.step(self.progress.text()),
            }
            if !self.is_silent && !io::stderr().is_terminal() && printed.elapsed() >= PLAIN_INTERVAL
            {
                printed = Instant::now();
                line.print(&self.progress.text());
            }
        };
        while let Ok(message) = messages.try_recv() {
            self.say(&line, &message);
        }
        line.end();
        ended.map_err(ended_early)?
    }

    /// Passes a message on: to the line of a command, or to the subscriber of an embedder.
    fn say(&self, line: &ProgressLine, message: &str) {
        if self.is_silent {
            tracing::info!(target: "wireproof::backfill", "{message}")
        } else {
            line.print(message)
        }
    }

    /// Sweeps over the lists until nothing is left that may change. A sweep over lists that were read waits for lists that are
    /// being read, but not for lists that are behind: they continue alone.
    async fn sweeps(self: Arc<Self>, lists: Vec<Arc<AccountList>>) -> Result<(), Failure> {
        let swept = |list| SweptList {
            list,
            sweeps: 0,
            round_started: 0,
            elsewhere_since: None,
            prompt: self.prompt.list(),
        };
        let mut due: Vec<SweptList> = lists.into_iter().map(swept).collect();
        let mut sweeping = Sweeping::default();
        let mut rounds = 0;
        let mut last_read = Instant::now();
        loop {
            if rounds >= summary::MAX_SWEEPS {
                // Lists that were behind end one by one: some share a round.
                sleep(LATE_ROUND_PAUSE.saturating_sub(last_read.elapsed())).await;
            }
            let sweeps = due.iter().map(|list| list.sweeps).max().unwrap_or_default();
            if sweeps > 0 && self.has_trouble(&due).await? {
                sleep(self.retry_delay * 6_u32.pow(sweeps - 1)).await;
            }
            // Before the tables are read: a list that another process finishes meanwhile counts as swept, and is not swept with
            // tables that lack it.
            let round_started = now_micros();
            // Other processes may have stored repositories that failed here.
            self.read_stored().await?;
            rounds += 1;
            last_read = Instant::now();
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

    /// Waits for lists, and returns the lists that are due to be swept again: all that are not behind, or some that
    /// were.
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
                let failed = FailedAccounts::of(&rows);
                drop(rows);
                self.clone().pages(&list, next, &failed, &mut lease, &mut place).await?
            }
            None => SweepEnd::Settled,
        };
        self.return_lease(lease).await?;
        Ok(ended)
    }

    /// Processes the pages of a sweep from this one on.
    async fn pages(
        self: Arc<Self>,
        list: &Arc<AccountList>,
        mut next: NextPage,
        failed: &FailedAccounts,
        lease: &mut ListLease,
        place: &mut Place<'_>,
    ) -> Result<SweepEnd, Failure> {
        let name = list.name();
        self.progress.reading.fetch_add(1, Relaxed);
        let mut seen = SeenAccounts::default();
        let mut counts = SweepCounts::default();
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
}

/// Time between the rounds of sweeps over lists that were behind.
const LATE_ROUND_PAUSE: Duration = Duration::from_secs(60);

/// Time for which the next sweep waits for lists that other processes have.
const MAX_WAIT_ELSEWHERE: Duration = Duration::from_secs(60);

/// Interval at which the progress is shown on a terminal, and elsewhere.
const TICK: Duration = Duration::from_millis(500);
const PLAIN_INTERVAL: Duration = Duration::from_secs(30);
