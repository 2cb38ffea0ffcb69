//! Several hosts at the same time: a [`Feed`] each, read in turn.

use std::num::NonZero;
use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{SelectAll, Stream, StreamExt, unfold};
use tokio::time::{Instant, sleep};

use super::error::RunError;
use super::feed::{Feed, FeedError, FeedOptions, FeedSource, Upstream};
use super::feed_item::{FeedItem, Notice};
use super::journal::JournalError;
use super::more_hosts::{AddedHost, MoreHosts};
use crate::hosts::{HostId, Jitter};
use crate::websocket::{DialError, Dialer};

/// The feed of the run's first hosts, of which one is followed at a time, and the feeds of the hosts that are added.
pub(super) struct Feeds {
    dialer: Dialer,
    options: FeedOptions,
    more: MoreHosts,
    cursors: Cursors,
    running: SelectAll<HostFeed>,
    /// The hosts that were added so far.
    added: usize,
    /// The names of the streams, by number.
    streams: Vec<String>,
    /// Why the last feed has ended.
    ended: Option<DialError>,
}

/// The cursor of a stream in the journal.
pub(super) type Cursors = Box<dyn Fn(&str) -> Result<Option<u64>, JournalError> + Send>;

/// The items of a feed, up to its error.
type HostFeed = Pin<Box<dyn Stream<Item = Result<FeedItem, FeedError>> + Send>>;

impl Feeds {
    /// The feed of the first hosts, if there are any, and the feeds of `more`.
    pub(super) fn new(
        dialer: Dialer,
        first: Option<Feed>,
        options: FeedOptions,
        more: MoreHosts,
        cursors: Cursors,
    ) -> Self {
        let (mut running, mut streams) = (SelectAll::new(), Vec::new());
        if let Some(feed) = first {
            streams.extend(feed.stream_names());
            running.push(items(feed, None, None));
        }
        Self { dialer, options, more, cursors, running, added: 0, streams, ended: None }
    }

    /// Follows a host that was added, unless it is followed already.
    fn add(&mut self, added: AddedHost) -> Result<Option<FeedItem>, JournalError> {
        let mut upstream = Upstream::new(added.url.clone());
        let stream = upstream.stream_name();
        self.added += 1;
        if self.streams.contains(&stream) {
            return Ok(None);
        }
        let cursor = (self.cursors)(&stream)?;
        upstream.cursor = cursor;
        let feed = Feed::new(self.dialer.clone(), &[upstream], self.options, Jitter::new());
        let host = HostId(self.streams.len());
        let pace = Pace::new(self.more.max_events_per_s());
        self.running.push(items(feed, Some(host), Some(pace)));
        self.streams.push(stream);
        Ok(Some(FeedItem::Notice(Notice::HostAdded { host, added, cursor })))
    }

    /// The item of a feed; `None` if it is the end of one, as the others continue.
    fn item(&mut self, next: Result<FeedItem, FeedError>) -> Result<Option<FeedItem>, RunError> {
        match next {
            Ok(item) => Ok(Some(item)),
            // Its last notice said why.
            Err(FeedError::NoHostLeft(error)) => {
                self.ended = Some(error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Fails if no host is left and none will be added.
    fn check_end(&self) -> Result<(), FeedError> {
        match &self.ended {
            Some(error) if self.running.is_empty() && self.more.is_complete(self.added) => {
                Err(FeedError::NoHostLeft(error.clone()))
            }
            _ => Ok(()),
        }
    }
}

impl FeedSource for Feeds {
    async fn next(&mut self) -> Result<FeedItem, RunError> {
        loop {
            self.check_end()?;
            let item = tokio::select! {
                biased;
                added = self.more.after(self.added) => self.add(added)?,
                next = self.running.next(), if !self.running.is_empty() => match next {
                    Some(next) => self.item(next)?,
                    None => None,
                },
            };
            if let Some(item) = item {
                return Ok(item);
            }
        }
    }

    fn try_next(&mut self) -> Result<Option<FeedItem>, RunError> {
        match self.running.next().now_or_never() {
            Some(Some(next)) => self.item(next),
            _ => Ok(None),
        }
    }

    /// Ends the connections without close frames, which would be sent one after the other.
    async fn close(self) {}
}

/// The items of a feed, which has one host with this number, or the first hosts.
fn items(feed: Feed, host: Option<HostId>, pace: Option<Pace>) -> HostFeed {
    let next = move |state: Option<(Feed, Option<Pace>)>| async move {
        let (mut feed, mut pace) = state?;
        if let Some(pace) = &mut pace {
            pace.wait().await;
        }
        match feed.next().await {
            Ok(item) => {
                let is_event = matches!(item, FeedItem::Frame(_));
                pace.iter_mut().filter(|_| is_event).for_each(Pace::count);
                let item = match host {
                    Some(host) => item.of_host(host),
                    None => item,
                };
                Some((Ok(item), Some((feed, pace))))
            }
            Err(error) => Some((Err(error), None)),
        }
    };
    Box::pin(unfold(Some((feed, pace)), next))
}

/// The rate at which the events of a host are read.
#[derive(Debug)]
struct Pace {
    interval: Duration,
    /// When the next event would be read at the highest rate.
    due: Instant,
}

impl Pace {
    fn new(max_events_per_s: NonZero<u32>) -> Self {
        Self { interval: Duration::from_secs(1) / max_events_per_s.get(), due: Instant::now() }
    }

    /// Counts an event.
    fn count(&mut self) {
        self.due = self.due.max(Instant::now()) + self.interval;
    }

    /// Waits until another event may be read.
    async fn wait(&self) {
        let ahead = self.due.saturating_duration_since(Instant::now());
        if let Some(wait) = ahead.checked_sub(BURST) {
            sleep(wait).await;
        }
    }
}

/// Time whose events may come at once.
const BURST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_host_is_read_at_its_rate_once_the_events_of_the_first_seconds_are_read() {
        let mut pace = Pace::new(NonZero::new(100).unwrap());
        let start = Instant::now();
        let mut read = async |events: u32| {
            for _ in 0..events {
                pace.wait().await;
                pace.count();
            }
            start.elapsed()
        };
        assert_eq!(read(1_000).await, Duration::ZERO);
        let elapsed = read(500).await;
        assert!((elapsed.as_secs_f64() - 5.0).abs() < 0.1, "{elapsed:?}");
    }
}
