//! The stored events of a relay: which requests are still to be made, and which answers prove that nothing is missing. No I/O.
//!
//! ```text
//! page of the newest events ── page until the oldest of them, inclusive ── … ── a page with nothing new
//!   │ newer than the first page? new events in the middle of it?  then the relay has another order: halves of the time
//!   └ a page of one second alone: the second is compared by ids (NIP-77), or asked for in slices of kinds, authors, ids
//! ```
//!
//! NIP-01 promises that a request with a limit is answered with the newest events, in any order and as few as the relay likes. So
//! a page is read as a set, and a short one proves nothing. A page that is smaller than another one of the same relay is not cut
//! off by its limit.

use std::collections::{HashMap, HashSet};

use nostr::Filter;
use nostr::negentropy::{Item, Items};

use self::slices::{most_events, parts};
use self::task::{Edge, Id, Page, Proof, Task};
use super::message::Hint;

mod hints;
mod slices;
mod task;
#[cfg(test)]
mod tests;

/// The requests for the stored events that match a filter.
#[derive(Debug)]
pub(super) struct Walk {
    filter: Filter,
    since: i64,
    until: i64,
    /// Tasks that are not begun, the next one last.
    tasks: Vec<Task>,
    current: Option<(Task, Page)>,
    /// Whether the relay has answered with other events than the newest.
    is_unordered: bool,
    /// The first page, until its middle is checked.
    first: Option<HashMap<Id, i64>>,
    /// Whether a page was cut off by the limit of the relay.
    has_cut: bool,
    /// The largest number of events of a page.
    largest: usize,
    /// The limit of the next page, and its maximum.
    page_limit: usize,
    max_page_limit: usize,
    /// Whether ids may be compared.
    compares: bool,
    /// Number of requests for slices of seconds that may still be made.
    slices_left: u32,
    /// Ids of events that came as new ones.
    live: HashSet<Id>,
    /// Number of different events, for a limit.
    taken: u64,
    /// The time at the start, and the latest creation time of a complete page; in seconds since 1970.
    started: i64,
    latest: Option<i64>,
    gap: Option<Gap>,
}

/// Why stored events may be missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Gap {
    /// One second has as many events as the relay sends at once, and cannot be divided further.
    #[error("more events at {0} than the relay sends at once")]
    FullSecond(i64),
    /// The relay sends events outside the requested times.
    #[error("the relay does not keep to the requested times")]
    TimesIgnored,
    /// The relay says that it has more events, and sends none.
    #[error("the relay says that it has more events, and sends none")]
    Unsent,
    /// The relay does not begin with the newest events, so that the newest ones are unknown.
    #[error("the relay does not answer with the newest events")]
    Order,
    /// The relay named events that it does not send.
    #[error("the relay does not send {0} events that it named")]
    Withheld(usize),
    /// Messages of the relay cannot be read.
    #[error("{0} messages of the relay cannot be read")]
    Unreadable(u64),
}

/// The next message to send.
#[derive(Debug)]
pub(super) enum Step {
    /// A request for stored events.
    Request(Filter),
    /// A comparison of ids under a filter.
    Compare(Filter, Items),
}

impl Walk {
    /// The requests for the events that match a filter, at a time in seconds since 1970.
    pub(super) fn new(filter: Filter, now: i64) -> Self {
        let (since, until) = (filter.since.unwrap_or(i64::MIN), filter.until.unwrap_or(i64::MAX));
        Self {
            since,
            until,
            tasks: vec![Task::Range { since, until, edge: Edge::First }],
            current: None,
            is_unordered: false,
            first: None,
            has_cut: false,
            largest: 0,
            page_limit: FIRST_PAGE_LIMIT,
            max_page_limit: MAX_PAGE_LIMIT,
            compares: true,
            slices_left: MAX_SLICES,
            live: HashSet::new(),
            taken: 0,
            started: now,
            latest: None,
            gap: None,
            filter,
        }
    }

    /// The next request; `None` once all are answered.
    pub(super) fn next(&mut self) -> Option<Step> {
        loop {
            if self.is_answered() && self.wanted() == 0 {
                self.tasks.retain(|task| matches!(task, Task::Range { edge: Edge::Joined(_), .. }));
            }
            let task = self.tasks.pop()?;
            match self.step(&task) {
                Some(step) => {
                    let limit = match &step {
                        Step::Request(filter) => filter.limit.unwrap_or(0),
                        Step::Compare(..) => 0,
                    };
                    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                    self.current = Some((task, Page { limit, ..Page::default() }));
                    return Some(step);
                }
                None => self.divide_second(task),
            }
        }
    }

    /// Whether a first answer is complete.
    fn is_answered(&self) -> bool {
        !self.tasks.iter().any(|task| matches!(task, Task::Range { edge: Edge::First, .. }))
    }

    /// Number of events that may still come.
    fn wanted(&self) -> u64 {
        self.filter.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.taken))
    }

    /// The request of a task; `None` for a second to divide.
    fn step(&self, task: &Task) -> Option<Step> {
        let within = |since: i64, until: i64| Filter {
            since: (since > i64::MIN).then_some(since),
            until: (until < i64::MAX).then_some(until),
            limit: Some(self.page_limit as u64),
            ..self.filter.clone()
        };
        Some(Step::Request(match task {
            Task::Range { since, until, edge } => {
                let wanted = self.wanted().saturating_add(edge.len() as u64);
                let page = within(*since, *until);
                Filter { limit: page.limit.map(|limit| limit.min(wanted)), ..page }
            }
            Task::Newer { since, .. } => within(*since, self.until),
            Task::Middle { since, until, .. } | Task::Half { since, until } => {
                within(*since, *until)
            }
            Task::Second { known, proof: Proof::LargerPage, .. } => {
                Filter { limit: Some(known.len() as u64 + 1), ..Filter::default() }
            }
            Task::Second { at: at @ 0.., known, proof: Proof::Comparison } if self.compares => {
                let item = |id: &Id| Some(Item { created_at: u64::try_from(*at).ok()?, id: *id });
                let filter = Filter { limit: None, ..within(*at, *at) };
                return Some(Step::Compare(filter, known.iter().filter_map(item).collect()));
            }
            Task::Second { .. } => return None,
            Task::Slice { at, filter } => Filter {
                since: Some(*at),
                until: Some(*at),
                limit: Some(self.page_limit as u64),
                ..filter.clone()
            },
            Task::Ids { ids, .. } => {
                let ids = ids[..ids.len().min(GROUP_IDS)].to_vec();
                Filter { limit: Some(ids.len() as u64), ids, ..Filter::default() }
            }
        }))
    }

    /// Notes an event of the answer. Whether it is within the limit of the filter.
    pub(super) fn take(&mut self, id: Option<Id>, created_at: Option<i64>) -> bool {
        let is_full = self.wanted() == 0;
        let Some((task, page)) = &mut self.current else { return true };
        let (Some(id), Some(created_at)) = (id, created_at) else { return true };
        let (since, until) = task.range(self.until);
        if !(since..=until).contains(&created_at) {
            page.strays += 1;
            return true;
        }
        if page.events.contains_key(&id) {
            return true;
        }
        (page.oldest, page.newest) = match page.count {
            0 => (created_at, created_at),
            _ => (page.oldest.min(created_at), page.newest.max(created_at)),
        };
        page.count += 1;
        page.fresh += usize::from(created_at >= self.started - FRESH_SECONDS);
        if page.events.len() < MAX_PAGE_IDS {
            page.events.insert(id, created_at);
        }
        let is_new = !task.knows(&id);
        self.taken += u64::from(is_new && !is_full);
        !(is_new && is_full)
    }

    /// Notes a new event, which is not a part of an answer.
    pub(super) fn take_live(&mut self, id: Option<Id>) {
        if self.live.len() < MAX_PAGE_IDS {
            self.live.extend(id);
        }
    }

    /// Handles the end of the answer.
    pub(super) fn end_page(&mut self, hint: Option<Hint>) {
        let Some((task, page)) = self.current.take() else { return };
        let hint = hint.and_then(|hint| self.believed(hint, &task, &page));
        if page.strays > 0 && task.is_bounded() {
            self.note(Gap::TimesIgnored);
        }
        if task.reaches(self.until) && page.count > 0 {
            self.latest = self.latest.max(Some(page.newest.min(self.started)));
        }
        if !matches!(task, Task::Second { .. } | Task::Ids { .. }) {
            let is_first = matches!(task, Task::Range { edge: Edge::First | Edge::Resumed(_), .. });
            let fresh = if is_first { page.fresh } else { 0 };
            self.largest = self.largest.max(page.count - fresh);
        }
        self.has_cut |= hint == Some(Hint::More);
        let is_full = page.count >= self.largest.min(page.limit) || hint == Some(Hint::More);
        if page.count >= page.limit && page.limit == self.page_limit {
            self.page_limit = (2 * self.page_limit).min(self.max_page_limit);
        }
        match task {
            Task::Second { at, known, .. } if page.count <= known.len() => {
                self.tasks.push(Task::Second { at, known, proof: Proof::Comparison });
            }
            Task::Ids { at, ids } => self.end_ids(at, ids, &page),
            _ if hint == Some(Hint::More) && page.count == 0 => self.note(Gap::Unsent),
            _ if page.count == 0 => {}
            Task::Newer { known, rounds, .. } => {
                let is_full = is_full && hint != Some(Hint::Finish);
                self.end_newer(known, rounds, page, is_full);
            }
            Task::Range { until, edge: Edge::Within(_), .. }
                if hint == Some(Hint::Finish) && page.newest == until =>
            {
                self.has_cut |= page.oldest < until;
                self.check_middle();
            }
            Task::Range { since, until, edge: edge @ Edge::Within(_) } => {
                self.end_range((since, until), edge, page, is_full);
            }
            Task::Middle { known, .. } => {
                if page.events.keys().any(|id| !known.contains(id) && !self.live.contains(id)) {
                    self.halve_all();
                }
            }
            _ if hint == Some(Hint::Finish) => {}
            Task::Range { since, until, edge } => {
                self.end_range((since, until), edge, page, is_full);
            }
            Task::Half { since, until } if is_full => self.halve(since, until, &page),
            Task::Slice { at, filter } if is_full => self.divide_slice(at, &filter, page.count),
            Task::Half { .. } | Task::Slice { .. } | Task::Second { .. } => {}
        }
    }

    /// Requests the events of a range that are older than a page.
    fn end_range(&mut self, (since, until): (i64, i64), edge: Edge, page: Page, is_full: bool) {
        let mut known = page.at(page.oldest);
        let is_first = matches!(edge, Edge::First);
        let mut is_new = false;
        match edge {
            // The last page before, and this one, have all that there is.
            Edge::Joined(latest) | Edge::Resumed(latest) if !is_full || page.oldest <= latest => {
                return;
            }
            Edge::Joined(_) if self.is_unordered => {
                return self.tasks.push(Task::Half { since, until });
            }
            Edge::First | Edge::Resumed(_) | Edge::Joined(_) => {}
            Edge::Apart => self.has_cut = true,
            // The newest events have to be among the sent ones, and one is known to be there.
            Edge::Within(_) if page.newest != until => return self.halve_all(),
            Edge::Within(before) => {
                self.has_cut |= page.oldest < until;
                is_new = page.events.keys().any(|id| !before.contains(id));
                if page.oldest == until {
                    known.extend(before);
                }
            }
            // The relay has sent fewer events of that second than it sends at once, and had older ones.
            Edge::After(ids) => {
                self.has_cut = true;
                self.push_second(until.saturating_add(1), ids);
            }
        }
        self.check_middle();
        let older = if page.oldest < until {
            (page.oldest, Edge::Within(known))
        } else if is_new || is_full {
            self.push_second(until, known);
            (until.saturating_sub(1), Edge::Apart)
        } else {
            (until.saturating_sub(1), Edge::After(known))
        };
        if older.0 >= since && older.0 < i64::MAX {
            self.tasks.push(Task::Range { since, until: older.0, edge: older.1 });
        }
        if is_first && !self.is_unordered {
            let known = page.events.keys().copied().collect();
            self.tasks.push(Task::Newer { since: page.newest, known, rounds: 0 });
            self.first = Some(page.events);
        }
    }

    /// Checks that a relay that has cut off the first page has sent all that is between its events.
    fn check_middle(&mut self) {
        let Some(first) = self.first.take_if(|_| self.has_cut) else { return };
        let mut times: Vec<i64> = first.values().copied().collect();
        times.sort_unstable();
        let (Some(oldest), Some(middle)) = (times.first(), times.get(times.len() / 2)) else {
            return;
        };
        let (since, until) = (oldest.saturating_add(1), *middle);
        if since <= until {
            let known = first.into_keys().collect();
            self.tasks.push(Task::Middle { since, until, known });
        }
    }

    /// Tells new events from stored ones that the first page should have had.
    fn end_newer(&mut self, mut known: HashSet<Id>, rounds: u32, page: Page, is_full: bool) {
        let unknown = |id: &Id| !known.contains(id) && !self.live.contains(id);
        let unknown: Vec<Id> = page.events.keys().filter(|id| unknown(id)).copied().collect();
        if unknown.is_empty() {
            // A page that is full may have been cut off after known events.
            if is_full && page.newest < self.until {
                let since = page.newest + 1;
                self.tasks.push(Task::Newer { since, known, rounds });
            }
            return;
        }
        let is_old = |id: &Id| page.events[id] < self.started - NEW_SECONDS;
        if (is_full && unknown.len() > 1) || rounds >= MAX_ROUNDS || unknown.iter().any(is_old) {
            return self.halve_all();
        }
        known.extend(unknown);
        self.tasks.push(Task::Newer { since: page.newest, known, rounds: rounds + 1 });
    }

    /// Requests everything again in halves, as the order of the relay proves nothing.
    fn halve_all(&mut self) {
        self.is_unordered = true;
        self.tasks.retain(|task| {
            matches!(task, Task::Second { .. } | Task::Slice { .. } | Task::Ids { .. })
        });
        match self.filter.limit {
            Some(_) => self.note(Gap::Order),
            None => self.tasks.push(Task::Half { since: self.since, until: self.until }),
        }
    }

    fn halve(&mut self, since: i64, until: i64, page: &Page) {
        self.has_cut = true;
        if since == until {
            return self.push_second(since, page.events.keys().copied().collect());
        }
        let mut times: Vec<i64> = page.events.values().copied().collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or(since).min(until - 1);
        self.tasks.push(Task::Half { since, until: middle });
        self.tasks.push(Task::Half { since: middle + 1, until });
    }

    fn push_second(&mut self, at: i64, known: HashSet<Id>) {
        if most_events(&self.filter).is_some_and(|most| known.len() as u64 >= most) {
            return;
        }
        // Where a page was cut off its size is the limit of the relay.
        let is_all = self.filter == Filter { limit: self.filter.limit, ..Filter::default() };
        let proof = if self.has_cut || is_all { Proof::Comparison } else { Proof::LargerPage };
        self.tasks.push(Task::Second { at, known, proof });
    }

    /// Divides a second whose ids cannot be compared.
    fn divide_second(&mut self, task: Task) {
        let Task::Second { at, .. } = task else { return };
        let whole = Filter { since: None, until: None, limit: None, ..self.filter.clone() };
        match parts(&whole) {
            Some(parts) => self.push_slices(at, parts),
            None => self.note(Gap::FullSecond(at)),
        }
    }

    fn divide_slice(&mut self, at: i64, filter: &Filter, count: usize) {
        if most_events(filter).is_some_and(|most| count as u64 >= most) {
            return;
        }
        match parts(filter) {
            Some(parts) => self.push_slices(at, parts),
            None => self.note(Gap::FullSecond(at)),
        }
    }

    fn push_slices(&mut self, at: i64, parts: Vec<Filter>) {
        // A relay that does not keep to times may not keep to kinds.
        let is_futile = self.gap == Some(Gap::TimesIgnored);
        let left = self.slices_left.checked_sub(parts.len() as u32).filter(|_| !is_futile);
        match left {
            Some(left) => {
                self.slices_left = left;
                let slices = parts.into_iter().map(|filter| Task::Slice { at, filter });
                self.tasks.extend(slices);
            }
            None => self.note(Gap::FullSecond(at)),
        }
    }

    fn end_ids(&mut self, at: i64, mut ids: Vec<Id>, page: &Page) {
        ids.retain(|id| !page.events.contains_key(id));
        match (page.count, ids.is_empty()) {
            (_, true) => {}
            (0, false) => self.note(Gap::FullSecond(at)),
            _ => self.tasks.push(Task::Ids { at, ids }),
        }
    }

    /// Handles the end of a comparison.
    pub(super) fn compared(&mut self, missing: Vec<Id>) {
        let Some((Task::Second { at, .. }, _)) = self.current.take() else { return };
        if !missing.is_empty() {
            self.tasks.push(Task::Ids { at, ids: missing });
        }
    }

    /// Notes that the relay does not compare ids.
    pub(super) fn not_compared(&mut self) {
        self.compares = false;
        self.retry();
    }

    /// Whether the request is one without which the others are answered: the relay need not accept it. The missing proof is
    /// noted.
    pub(super) fn give_up_proof(&mut self) -> bool {
        let Some((task, _)) = &self.current else { return false };
        match task.clone() {
            Task::Slice { at, .. } | Task::Ids { at, .. } => self.note(Gap::FullSecond(at)),
            Task::Second { at, known, proof: Proof::LargerPage } => {
                self.tasks.push(Task::Second { at, known, proof: Proof::Comparison });
            }
            _ => return false,
        }
        self.current = None;
        true
    }

    /// Requests smaller pages from here on, unless they are small.
    pub(super) fn shrink_pages(&mut self) -> bool {
        self.max_page_limit = FIRST_PAGE_LIMIT;
        self.page_limit > std::mem::replace(&mut self.page_limit, FIRST_PAGE_LIMIT)
    }

    /// Puts the request back that was not answered.
    pub(super) fn retry(&mut self) {
        if let Some((task, page)) = self.current.take() {
            self.taken = self
                .taken
                .saturating_sub(page.events.keys().filter(|id| !task.knows(id)).count() as u64);
            self.tasks.push(task);
        }
    }

    /// Begins with the events since the latest one, less an overlap, on a new connection or subscription.
    pub(super) fn reconnect(&mut self, overlap: i64) {
        self.retry();
        if let (Some(since), Some(latest)) = (self.resume_time(overlap), self.latest) {
            let until = self.until;
            self.tasks.push(if self.is_unordered {
                Task::Half { since, until }
            } else {
                Task::Range { since, until, edge: Edge::Resumed(latest) }
            });
        }
    }

    /// Requests the events since the latest one once more, less an overlap, with a subscription that new ones follow on.
    pub(super) fn join(&mut self, overlap: i64) {
        let since = self.resume_time(overlap).unwrap_or(self.since);
        let edge = Edge::Joined(self.latest.unwrap_or(i64::MIN));
        self.tasks.push(Task::Range { since, until: self.until, edge });
    }

    /// Whether there is nothing more to request.
    pub(super) fn is_done(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether the request repeats events that an earlier connection has received.
    pub(super) fn is_resuming(&self) -> bool {
        matches!(&self.current, Some((Task::Range { edge: Edge::Resumed(_), .. }, _)))
    }

    /// Whether the answer is of interest for its number of events alone.
    pub(super) fn is_probing(&self) -> bool {
        matches!(&self.current, Some((Task::Second { .. }, _)))
    }

    /// The time from which on newer events are requested; `None` before the first answer.
    fn resume_time(&self, overlap: i64) -> Option<i64> {
        Some(self.latest?.saturating_sub(overlap).max(self.since))
    }

    fn note(&mut self, gap: Gap) {
        self.gap.get_or_insert(gap);
    }

    /// Why stored events may be missing; `None` if none are.
    pub(super) fn gap(&self) -> Option<&Gap> {
        self.gap.as_ref()
    }
}

/// The limit of the first page, which relays accept, and of later ones where a relay sends as many.
const FIRST_PAGE_LIMIT: usize = 500;
const MAX_PAGE_LIMIT: usize = 5_000;

/// Maximum number of events of a page whose ids are remembered: 1 MB.
const MAX_PAGE_IDS: usize = 20_000;

/// Ids in a request.
const GROUP_IDS: usize = 100;

/// Maximum number of requests for parts of seconds.
const MAX_SLICES: u32 = 1_024;

/// Age of events in seconds up to which the first page may have them as new ones.
const FRESH_SECONDS: i64 = 5;

/// Age in seconds up to which an event that is newer than the first page may have been published since.
const NEW_SECONDS: i64 = 60;

/// Requests in a row that bring newer events, after which the relay is taken for one that does not begin with them.
const MAX_ROUNDS: u32 = 5;
