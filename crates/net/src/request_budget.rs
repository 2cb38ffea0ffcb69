//! Requests that a host's window still allows, by the `RateLimit-Remaining` and `RateLimit-Reset` of its answers.
//!
//! Every request takes one of them before it is sent, so that no request is sent that the host would reject. Answers can only
//! lower what is left of a window: they come in any order, and do not count the requests that are under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::bounded_map::BoundedMap;

/// The budgets of hosts. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RequestBudgets(Arc<Mutex<BoundedMap<Box<str>, Budget>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    window: Option<Window>,
    /// Requests since the last window ended, at most [`MAX_UNCOUNTED`]: its first answer may not have counted them.
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    left: u64,
    until: Instant,
}

impl Budget {
    fn forget_ended(&mut self, now: Instant) {
        if self.window.is_some_and(|window| window.until <= now) {
            *self = Self::default();
        }
    }
}

impl RequestBudgets {
    /// How long the window of `host` allows no further request.
    pub(crate) fn remaining(&self, host: &str) -> Duration {
        let window = self.lock().peek(host).and_then(|budget| budget.window);
        let until = window.filter(|window| window.left == 0).map(|window| window.until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Takes a request that is about to be sent.
    pub(crate) fn take(&self, host: &str) {
        self.change(host, |budget| {
            budget.taken = (budget.taken + 1).min(MAX_UNCOUNTED);
            if let Some(window) = &mut budget.window {
                window.left = window.left.saturating_sub(1);
            }
        });
    }

    /// Notes what an answer says is left for this time; `None` if it says nothing.
    pub(crate) fn note(&self, host: &str, stated: Option<(u64, Duration)>) {
        self.change(host, |budget| match (stated, &mut budget.window) {
            (None, _) => budget.taken = 0,
            (Some((left, _)), Some(window)) => window.left = window.left.min(left),
            (Some((left, time)), window @ None) => {
                // Without the request that it answers.
                let left = left.saturating_sub(budget.taken.saturating_sub(1));
                *window = Some(Window { left, until: Instant::now() + time });
            }
        });
    }

    fn change(&self, host: &str, change: impl FnOnce(&mut Budget)) {
        let mut budgets = self.lock();
        let mut budget = budgets.peek(host).copied().unwrap_or_default();
        budget.forget_ended(Instant::now());
        change(&mut budget);
        budgets.insert(host.into(), budget);
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<Box<str>, Budget>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RequestBudgets {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(BoundedMap::new(MAX_HOSTS))))
    }
}

/// Requests under way that the first answer of a window may not have counted.
const MAX_UNCOUNTED: u64 = 16;

const MAX_HOSTS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn no_request_is_left_that_the_answers_do_not_allow_with_the_requests_under_way() {
        let budgets = RequestBudgets::default();
        (0..3).for_each(|_| budgets.take("a.test"));
        // The host has counted the first of three.
        budgets.note("a.test", Some((9, WINDOW)));
        for _ in 0..7 {
            assert_eq!(budgets.remaining("a.test"), Duration::ZERO);
            budgets.take("a.test");
        }
        assert_eq!(budgets.remaining("a.test"), WINDOW);
        assert_eq!(budgets.remaining("b.test"), Duration::ZERO);
        // Answers of earlier requests come late, and allow no more.
        budgets.note("a.test", Some((8, WINDOW)));
        assert_eq!(budgets.remaining("a.test"), WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_with_fewer_requests_than_known_counts_the_ones_of_others() {
        let budgets = RequestBudgets::default();
        budgets.take("a.test");
        budgets.note("a.test", Some((9, WINDOW)));
        budgets.note("a.test", Some((1, WINDOW)));
        budgets.take("a.test");
        assert_eq!(budgets.remaining("a.test"), WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_ends_with_its_time_and_the_next_one_has_what_its_first_answer_says() {
        let budgets = RequestBudgets::default();
        budgets.take("a.test");
        budgets.note("a.test", Some((0, WINDOW)));
        assert_eq!(budgets.remaining("a.test"), WINDOW);
        tokio::time::advance(WINDOW).await;
        assert_eq!(budgets.remaining("a.test"), Duration::ZERO);
        budgets.take("a.test");
        budgets.note("a.test", Some((1, WINDOW)));
        assert_eq!(budgets.remaining("a.test"), Duration::ZERO);
        budgets.take("a.test");
        assert_eq!(budgets.remaining("a.test"), WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_without_an_answer_cost_a_later_window_a_bounded_number() {
        let budgets = RequestBudgets::default();
        (0..1_000).for_each(|_| budgets.take("a.test"));
        budgets.note("a.test", Some((100, WINDOW)));
        (0..100 - MAX_UNCOUNTED).for_each(|_| budgets.take("a.test"));
        assert_eq!(budgets.remaining("a.test"), Duration::ZERO);
        // Hosts without the headers have no budget.
        (0..1_000).for_each(|_| budgets.take("b.test"));
        budgets.note("b.test", None);
        budgets.take("b.test");
        budgets.note("b.test", Some((1, WINDOW)));
        assert_eq!(budgets.remaining("b.test"), Duration::ZERO);
    }
}
