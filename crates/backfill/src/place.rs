//! Places: the lists that start new requests at a time, and the condition for a list to keep its place.
//!
//! A list keeps its place from its first page to its last while it makes progress. One that does not gives its place to
//! a list that waits, even in the middle of a page: its running requests continue, and it starts nothing new until it
//! has a place again. So hosts that answer slowly delay no others, however many they are. The time of a list is bounded
//! too: [`ListFloor::ACCOUNTS`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use program::list_floor::ListFloor;

/// The places of a run.
#[derive(Debug)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    /// Number of lists that wait for a place.
    waiting: AtomicUsize,
    /// Number of lists that were slow, gave their place back, and go on.
    suspended: AtomicUsize,
}

/// The place of a list.
pub(crate) struct Place<'l> {
    places: Arc<Places>,
    state: State,
    prompt: &'l mut Prompt,
    /// Accounts that are done, in all and in this slice of time.
    done: u64,
    done_in_slice: u64,
    /// Time of the list before its current state. The time in which it waits for a place does not count.
    spent: Duration,
    is_suspended: bool,
}

enum State {
    Held {
        _permit: OwnedSemaphorePermit,
        since: Instant,
    },
    /// Given back; nothing new is to be started.
    Released {
        since: Instant,
    },
    Waiting(Pin<Box<dyn Future<Output = OwnedSemaphorePermit> + Send>>),
}

impl Places {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(count));
        Arc::new(Self { free, waiting: AtomicUsize::new(0), suspended: AtomicUsize::new(0) })
    }

    /// Waits for a place for a list.
    pub(crate) async fn take<'l>(self: &Arc<Self>, prompt: &'l mut Prompt) -> Place<'l> {
        let state = State::Held { _permit: self.acquire().await, since: Instant::now() };
        Place {
            places: self.clone(),
            state,
            prompt,
            done: 0,
            done_in_slice: 0,
            spent: Duration::ZERO,
            is_suspended: false,
        }
    }

    /// Waits for a permit, in turn.
    fn acquire(self: &Arc<Self>) -> impl Future<Output = OwnedSemaphorePermit> + Send + 'static {
        let waiting = Waiting::start(self.clone());
        async move {
            let permit = waiting.0.free.clone().acquire_owned().await;
            permit.expect("the places are never closed")
        }
    }
}

/// A list that waits.
struct Waiting(Arc<Places>);

impl Waiting {
    fn start(places: Arc<Places>) -> Self {
        places.waiting.fetch_add(1, Relaxed);
        Self(places)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

impl Place<'_> {
    /// Whether new requests may be started.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    /// Counts an account that is done.
    pub(crate) fn count(&mut self) {
        self.done += 1;
        self.done_in_slice += 1;
    }

    /// Asks for a place again, if it was given back.
    pub(crate) fn want(&mut self) {
        if let State::Released { .. } = self.state {
            self.spent = self.spent();
            self.state = State::Waiting(Box::pin(self.places.acquire()));
        }
    }

    /// The next change: the place is there again, or its slice of time is over. Cancel-safe.
    ///
    /// # Errors
    /// Why the list is given up.
    pub(crate) async fn changed(&mut self) -> Result<(), String> {
        let deadline = ListFloor::ACCOUNTS.deadline(self.done).saturating_sub(self.spent);
        match &mut self.state {
            State::Waiting(permit) => {
                let _permit = permit.await;
                self.state = State::Held { _permit, since: Instant::now() };
                self.done_in_slice = 0;
                return Ok(());
            }
            State::Released { since } => sleep_until(*since + deadline).await,
            State::Held { since, .. } => sleep_until(*since + deadline.min(SLICE)).await,
        }
        let spent = self.spent();
        match ListFloor::ACCOUNTS.fault(self.done, spent) {
            Some(fault) => Err(fault),
            None => self.end_slice(spent),
        }
    }

    /// Does work of which nothing new is started, such as a request for a page.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    pub(crate) async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, String> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                changed = self.changed() => changed?,
            }
        }
    }

    fn end_slice(&mut self, spent: Duration) -> Result<(), String> {
        let is_slow = self.done_in_slice < MIN_DONE_IN_SLICE;
        (self.done_in_slice, self.spent) = (0, spent);
        let since = Instant::now();
        if is_slow {
            self.prompt.fall_behind();
        }
        if is_slow && self.is_held() && self.places.waiting.load(Relaxed) > 0 {
            self.suspend()?;
            self.state = State::Released { since };
            return Ok(());
        }
        match &mut self.state {
            State::Held { since: started, .. } | State::Released { since: started } => {
                *started = since;
            }
            State::Waiting(_) => {}
        }
        Ok(())
    }

    fn suspend(&mut self) -> Result<(), String> {
        if self.is_suspended {
            return Ok(());
        }
        if self.places.suspended.fetch_add(1, Relaxed) >= MAX_SUSPENDED {
            self.places.suspended.fetch_sub(1, Relaxed);
            return Err(format!("it is slow, and so are {MAX_SUSPENDED} other lists"));
        }
        self.is_suspended = true;
        Ok(())
    }

    fn spent(&self) -> Duration {
        match &self.state {
            State::Held { since, .. } | State::Released { since } => self.spent + since.elapsed(),
            State::Waiting(_) => self.spent,
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_suspended {
            self.places.suspended.fetch_sub(1, Relaxed);
        }
    }
}

/// Counts the lists that the next sweep waits for: lists that are being read and are not behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptLists(Arc<watch::Sender<usize>>);

/// Whether a list is one of them.
#[derive(Debug)]
pub(crate) struct Prompt {
    lists: PromptLists,
    is_counted: bool,
}

impl PromptLists {
    /// A list that is not read yet.
    pub(crate) fn list(&self) -> Prompt {
        Prompt { lists: self.clone(), is_counted: false }
    }

    /// Waits until all lists that are being read are behind.
    pub(crate) async fn until_none(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Prompt {
    /// The list is being read from now on.
    pub(crate) fn start(&mut self) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.lists.0.send_modify(|count| *count += 1);
        }
    }

    /// The next sweep over other lists does not wait for it.
    pub(crate) fn fall_behind(&mut self) {
        if std::mem::replace(&mut self.is_counted, false) {
            self.lists.0.send_modify(|count| *count -= 1);
        }
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.fall_behind();
    }
}

/// Time after which a list that does less than the minimum gives its place back.
const SLICE: Duration = Duration::from_secs(30);

/// Accounts that a list does in a slice at least. A host that is overloaded is asked every two seconds.
const MIN_DONE_IN_SLICE: u64 = 12;

/// Lists that are suspended at a time: a suspended list has a page in memory, and renews its lease.
const MAX_SUSPENDED: usize = 256;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt;
    use tokio::time::sleep;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Lists that take a minute per account, until the floor ends them.
    fn start_slow_lists(places: &Arc<Places>, prompt: &PromptLists, count: usize) {
        for _ in 0..count {
            let mut prompt = prompt.list();
            prompt.start();
            tokio::spawn(read_slow_list(places.clone(), prompt));
        }
    }

    async fn read_slow_list(places: Arc<Places>, mut prompt: Prompt) -> Result<Infallible, String> {
        let mut place = places.take(&mut prompt).await;
        loop {
            place.want();
            while !place.is_held() {
                place.changed().await?;
            }
            place.during(sleep(Duration::from_secs(60))).await?;
            place.count();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_lists_leave_their_places_to_others_however_many_they_are() {
        let (places, prompt) = (Places::new(32), PromptLists::default());
        start_slow_lists(&places, &prompt, 64);
        tokio::task::yield_now().await;
        let started = Instant::now();
        let mut honest = prompt.list();
        let mut place = places.take(&mut honest).await;
        assert!(started.elapsed() <= SLICE * 2, "{:?}", started.elapsed());
        // It makes progress, and so keeps its place to its end.
        for _ in 0..10_000 {
            place.during(sleep(Duration::from_secs(1))).await.unwrap();
            place.count();
            assert!(place.is_held());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_list_keeps_its_place_while_no_other_waits_and_the_next_sweep_goes_on() {
        let (places, prompt) = (Places::new(1), PromptLists::default());
        let mut slow = prompt.list();
        slow.start();
        let mut place = places.take(&mut slow).await;
        assert!(prompt.until_none().now_or_never().is_none());
        place.during(sleep(SLICE * 3)).await.unwrap();
        assert!(place.is_held());
        assert!(prompt.until_none().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_limits_an_hour_long_is_waited_for_once_and_a_list_without_end_ends() {
        let (places, prompt) = (Places::new(1), PromptLists::default());
        let mut list = prompt.list();
        let mut place = places.take(&mut list).await;
        place.during(sleep(HOUR + HOUR / 2)).await.unwrap();
        let fault = place.during(sleep(HOUR)).await.unwrap_err();
        assert!(fault.contains("0 new accounts done within 2 hours"), "{fault}");
        // One account a minute.
        let (mut list, started) = (prompt.list(), Instant::now());
        drop(place);
        let mut place = places.take(&mut list).await;
        while place.during(sleep(Duration::from_secs(60))).await.is_ok() {
            place.count();
        }
        assert!(started.elapsed() <= HOUR * 3, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_lists_beyond_the_bound_are_given_up() {
        let (places, prompt) = (Places::new(1), PromptLists::default());
        start_slow_lists(&places, &prompt, MAX_SUSPENDED + 50);
        sleep(HOUR * 12).await;
        assert!(places.suspended.load(Relaxed) <= MAX_SUSPENDED);
    }
}
