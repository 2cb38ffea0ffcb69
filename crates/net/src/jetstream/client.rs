//! The Jetstream client: events of one of several hosts in order of arrival, without duplicates.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::dictionary::{DecompressError, Dictionary};
use super::event::{Event, Filter, FilterError, FilterMatcher, JetstreamItem, Unrecognized};
use super::message::{self, Message};
use super::options::{Compression, Options, Version};
use super::request::{ConnectAttempt, ConnectionSetup, HostPosition, MIN_TIME_CURSOR, Parameters};
use crate::firehose::{Notice, StartFrom, Upstream};
use crate::hosts::{Backoff, HostId, Jitter};
use crate::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use crate::remote_text::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, sanitize};
use crate::websocket::{DialError, DialFault, Dialer, SocketError, SocketMessage};

/// Receives events of one of several Jetstreams at a time.
///
/// Returns every event that matches the filter once, within [`Options::dedup_capacity`], and every message that
/// is not a valid event. Reads only while [`next`](Self::next) is called.
#[derive(Debug)]
pub struct Client {
    dialer: Dialer,
    socket: ReconnectingSocket,
    hosts: Vec<HostPosition>,
    options: Options,
    filter: Filter,
    matcher: FilterMatcher,
    dedup: EventDedup,
    /// The host of the latest new event, and the latest time of an event in microseconds since 1970.
    latest: Option<(HostId, u64)>,
    /// The state of the next connection.
    setup: Arc<Mutex<ConnectionSetup>>,
    dictionary: Option<Dictionary>,
    /// A filter update to send.
    update: Option<String>,
    /// Number of changes of the filter.
    filter_revision: u64,
    /// The cursor of the first event of this connection.
    first_cursor: Option<u64>,
    /// The cursor of the previous event of this connection.
    previous_cursor: Option<u64>,
    ready: VecDeque<JetstreamItem>,
    failure: Option<JetstreamError>,
}

impl Client {
    /// A client of `origins`, the first of them first. The first call of [`next`](Self::next) connects.
    ///
    /// # Errors
    /// If the filter or the given dictionary is invalid.
    ///
    /// # Panics
    /// If `origins` is empty.
    pub fn new(
        dialer: Dialer,
        origins: &[Upstream],
        filter: Filter,
        options: Options,
        jitter: Jitter,
    ) -> Result<Self, FilterError> {
        filter.check()?;
        let retried = match &options.compression {
            Compression::Given(bytes) if Dictionary::new(bytes).is_none() => {
                return Err(FilterError::NotADictionary);
            }
            Compression::Served(None) => RETRIED,
            _ => &RETRIED[..2],
        };
        let (len, backoff) = (origins.len(), Backoff::new(options.backoff, jitter));
        let hosts = origins.iter().map(|origin| HostPosition::new(origin, options.start));
        let hosts: Vec<_> = hosts.collect();
        let times = hosts.iter().enumerate();
        let times = times.filter_map(|(index, host)| Some((host.micros?, HostId(index))));
        Ok(Self {
            socket: ReconnectingSocket::new(len, backoff, options.message_timeout, retried),
            latest: times.max().map(|(micros, host)| (host, micros)),
            matcher: FilterMatcher::new(&filter),
            dedup: EventDedup::new(options.dedup_capacity),
            setup: Arc::default(),
            dictionary: None,
            update: None,
            filter_revision: 0,
            first_cursor: None,
            previous_cursor: None,
            ready: VecDeque::new(),
            failure: None,
            dialer,
            hosts,
            options,
            filter,
        })
    }

    /// Waits for the next item. Cancel-safe.
    ///
    /// # Errors
    /// If no host is left, or messages require another dictionary. Later calls return the same error.
    pub async fn next(&mut self) -> Result<JetstreamItem, JetstreamError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if let Some(update) = self.update.clone() {
                // A canceled call sends it again: the latest update applies.
                self.socket.send_text(update).await;
                self.update = None;
            }
            let Self {
                socket, hosts, latest, options, filter, filter_revision, dialer, setup, ..
            } = self;
            let dial = |host: HostId| {
                let position = &mut hosts[host.0];
                let cursor = position.next_cursor(*latest, options, host);
                position.requested = cursor;
                let attempt = ConnectAttempt {
                    dialer: dialer.clone(),
                    url: position.url.clone(),
                    cursor,
                    filter: filter.clone(),
                    filter_revision: *filter_revision,
                    options: options.clone(),
                    setup: setup.clone(),
                };
                Box::pin(attempt.connect()) as Dial
            };
            match socket.next(dial).await {
                Ok((host, event)) => self.handle_socket_event(host, event),
                Err(error) => return Err(JetstreamError::NoHostLeft(error)),
            }
        }
    }

    /// Replaces the filter. Version 1 sends an update over the open connection; version 2 reconnects.
    ///
    /// # Errors
    /// If the filter is invalid; the previous one then stays.
    pub fn set_filter(&mut self, filter: Filter) -> Result<(), FilterError> {
        filter.check()?;
        (self.matcher, self.filter) = (FilterMatcher::new(&filter), filter);
        self.filter_revision += 1;
        self.apply_filter();
        Ok(())
    }

    /// Applies the current filter to the connection.
    fn apply_filter(&mut self) {
        let version = self.options.version;
        match version {
            Version::V1 => {
                let (cursor, dictionary) = (None, None);
                let parameters = Parameters { version, filter: &self.filter, cursor, dictionary };
                self.update = Some(parameters.update());
            }
            Version::V2 => {
                self.socket.disconnect(SocketError::Ended("a change of the filter".to_owned()));
            }
        }
    }

    /// Closes the connection with a close frame.
    pub async fn close(self) {
        self.socket.close().await;
    }

    fn handle_socket_event(&mut self, host: HostId, event: SocketEvent) {
        match event {
            SocketEvent::Message(message) => self.handle_message(host, message),
            SocketEvent::Connected => self.handle_connected(host),
            SocketEvent::Lost(reason) => self.notify(Notice::Disconnected { host, reason }),
            SocketEvent::ConnectFailed(error) => self.handle_connect_failure(host, error),
            SocketEvent::HostExcluded(error) => self.notify(Notice::HostExcluded { host, error }),
            SocketEvent::Rotated { from, to } => self.notify(Notice::Rotated { from, to }),
            SocketEvent::RetryScheduled(time) => self.notify(Notice::RetryScheduled { host, time }),
        }
    }

    fn handle_connected(&mut self, host: HostId) {
        let mut setup = self.setup.lock().unwrap_or_else(PoisonError::into_inner);
        (self.dictionary, self.update) = (setup.dictionary.take(), setup.update.take());
        let is_outdated = setup.filter_revision != self.filter_revision;
        drop(setup);
        (self.first_cursor, self.previous_cursor) = (None, None);
        let position = &mut self.hosts[host.0];
        // Live events from now on would be lost by another live start, even if none has come yet.
        position.start = StartFrom::Oldest;
        let cursor = position.requested;
        if cursor.is_none() && self.latest.is_none() {
            self.latest = Some((host, micros_before(LIVE_MARGIN)));
        }
        self.notify(Notice::Connected { host, cursor });
        if is_outdated {
            self.apply_filter();
        }
    }

    fn handle_message(&mut self, host: HostId, message: SocketMessage) {
        let received = SystemTime::now();
        let text = match message {
            SocketMessage::Text(text) => Bytes::from(text),
            SocketMessage::Binary(bytes) => match self.decompress(&bytes) {
                Ok(text) => text,
                Err(DecompressError::OtherDictionary(id)) => return self.fail(host, id),
                Err(DecompressError::Invalid(reason)) => {
                    return self.push_unrecognized(Unrecognized { host, bytes, reason, received });
                }
            },
        };
        let reason = match message::parse(self.options.version, host, &text, received) {
            Ok(Message::Event(event)) => return self.handle_event(event),
            Ok(Message::Info { name, message }) => return self.handle_info(host, &name, &message),
            Ok(Message::Error { name, message }) => {
                return self.handle_error(host, &name, &message);
            }
            Ok(Message::Unknown(kind)) => {
                format!("a message of the unknown kind {}", sanitize(&kind, MAX_NAME_CHARS))
            }
            Err(reason) => reason,
        };
        self.push_unrecognized(Unrecognized { host, bytes: text, reason, received });
    }

    fn decompress(&mut self, compressed: &[u8]) -> Result<Bytes, DecompressError> {
        let max_bytes = self.options.socket.max_message_bytes;
        match &mut self.dictionary {
            Some(dictionary) => dictionary.decompress(compressed, max_bytes).map(Bytes::from),
            None => {
                Err(DecompressError::Invalid("a binary message without compression".to_owned()))
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        let (host, seq) = (event.host, event.cursor);
        if let Some(after) = self.cursor_before_reset(&event) {
            return self.reset_sequence(after, &event);
        }
        self.first_cursor.get_or_insert(seq);
        let position = &mut self.hosts[host.0];
        (position.cursor, position.micros) = (Some(seq), Some(event.micros));
        let previous = self.previous_cursor.replace(seq);
        if !self.dedup.is_new(&event) {
            return self.notify(Notice::Repeated { host, seq });
        }
        if let Some(after) = previous.filter(|previous| seq < *previous) {
            self.notify(Notice::Regressed { host, after, seq });
        }
        self.socket.record_progress();
        self.record_time(&event);
        if self.matcher.matches(&event) {
            self.ready.push_back(JetstreamItem::Event(event));
        }
    }

    /// The cursor that an event shows to be void: the connection's cursor, before which the event comes, or the
    /// previous event's, if this one comes before all events of the connection.
    fn cursor_before_reset(&self, event: &Event) -> Option<u64> {
        let is_before = |cursor: u64| {
            if cursor >= MIN_TIME_CURSOR { event.micros < cursor } else { event.cursor < cursor }
        };
        match self.first_cursor {
            None => self.hosts[event.host.0].requested.filter(|cursor| is_before(*cursor)),
            Some(first) => self.previous_cursor.filter(|_| is_before(first)),
        }
    }

    /// Reads the host, which has begun another sequence without a word, from its oldest event. The first event of it is
    /// received again.
    fn reset_sequence(&mut self, after: u64, event: &Event) {
        let (host, seq) = (event.host, event.cursor);
        let position = &mut self.hosts[host.0];
        (position.cursor, position.micros, position.start) = (None, None, StartFrom::Oldest);
        // A time in the future would be the next cursor.
        self.latest = self.latest.filter(|(_, micros)| *micros <= event.micros);
        self.notify(Notice::SequenceReset { host, after, seq });
        self.socket.disconnect(SocketError::Ended("a reset of its sequence".to_owned()));
    }

    /// Records the time of an event, at most the current time: a cursor in the future would skip events.
    fn record_time(&mut self, event: &Event) {
        let now = event.received.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let micros = event.micros.min(u64::try_from(now.as_micros()).unwrap_or(u64::MAX));
        let latest = self.latest.map_or(0, |(_, micros)| micros);
        self.latest = Some((event.host, micros.max(latest)));
    }

    fn handle_info(&mut self, host: HostId, name: &str, message: &str) {
        let (message, cursor) =
            (sanitize(message, MAX_MESSAGE_CHARS), self.hosts[host.0].requested);
        self.notify(match name {
            "OutdatedCursor" => Notice::OutdatedCursor { host, cursor, message },
            _ => Notice::ServerInfo { host, name: sanitize(name, MAX_NAME_CHARS), message },
        });
    }

    fn handle_error(&mut self, host: HostId, name: &str, message: &str) {
        match name {
            FUTURE_CURSOR => self.discard_cursor(host, message, true),
            "ConsumerTooSlow" => {
                self.notify(Notice::ConsumerTooSlow {
                    host,
                    message: sanitize(message, MAX_MESSAGE_CHARS),
                });
            }
            _ => {
                let (name, message) =
                    (sanitize(name, MAX_NAME_CHARS), sanitize(message, MAX_MESSAGE_CHARS));
                self.notify(Notice::ServerError { host, name, message });
            }
        }
        self.socket.disconnect(SocketError::Ended(sanitize(name, MAX_NAME_CHARS)));
    }

    fn handle_connect_failure(&mut self, host: HostId, error: DialError) {
        let name = error.name().unwrap_or_default().to_owned();
        let message = match &error.fault {
            DialFault::Refused(refusal) => refusal.message.clone(),
            _ => String::new(),
        };
        self.notify(Notice::ConnectFailed { host, error });
        match &*name {
            FUTURE_CURSOR => self.discard_cursor(host, &message, true),
            CURSOR_TOO_OLD => self.discard_cursor(host, &message, false),
            _ => {}
        }
    }

    /// Discards the cursor that the host rejected, as one in the future or as too old: the next attempt uses the time of
    /// the latest event, if any, or the oldest event. A host that rejects that as one of the future has no events.
    fn discard_cursor(&mut self, host: HostId, message: &str, is_future: bool) {
        let position = &mut self.hosts[host.0];
        let has_events = !is_future || position.requested != Some(MIN_TIME_CURSOR);
        let start = if has_events { StartFrom::Oldest } else { StartFrom::Live };
        (position.cursor, position.micros, position.start) = (None, None, start);
        let (cursor, message) = (position.requested, sanitize(message, MAX_MESSAGE_CHARS));
        if is_future {
            let bound = cursor.filter(|cursor| *cursor >= MIN_TIME_CURSOR);
            self.latest = self.latest.filter(|(_, micros)| bound.is_none_or(|of| *micros < of));
        }
        self.notify(if is_future {
            Notice::FutureCursor { host, cursor, message }
        } else {
            Notice::OutdatedCursor { host, cursor, message }
        });
    }

    fn fail(&mut self, host: HostId, needed: u32) {
        let host = self.hosts[host.0].url.host_str().unwrap_or_default().to_owned();
        self.failure = Some(JetstreamError::Dictionary { host, needed });
    }

    fn push_unrecognized(&mut self, message: Unrecognized) {
        self.ready.push_back(JetstreamItem::Unrecognized(message));
    }

    fn notify(&mut self, notice: Notice) {
        self.ready.push_back(JetstreamItem::Notice(notice));
    }
}

/// Detects events that another host, or the same host, has already sent.
///
/// Remembers the 64-bit hashes of the latest events, under a random key: an author cannot make two events
/// collide.
#[derive(Debug)]
struct EventDedup {
    hashes: HashSet<u64>,
    /// The same hashes, oldest first.
    order: VecDeque<u64>,
    capacity: usize,
    state: RandomState,
}

impl EventDedup {
    fn new(capacity: usize) -> Self {
        let state = RandomState::new();
        Self { hashes: HashSet::new(), order: VecDeque::new(), capacity: capacity.max(1), state }
    }

    /// Remembers an event, and returns whether it is new.
    fn is_new(&mut self, event: &Event) -> bool {
        let mut hasher = self.state.build_hasher();
        event.hash_identity(&mut hasher);
        self.insert(hasher.finish())
    }

    fn insert(&mut self, hash: u64) -> bool {
        if !self.hashes.insert(hash) {
            return false;
        }
        if self.order.len() == self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        self.order.push_back(hash);
        true
    }
}

/// A cursor of now, before which no event of a live stream comes that is opened now, whatever the clock of its host.
pub fn live_cursor() -> u64 {
    micros_before(LIVE_MARGIN)
}

/// The time before now in microseconds since 1970.
fn micros_before(margin: Duration) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(margin).as_micros()).unwrap_or(u64::MAX)
}

/// How far the clock of a host may be behind ours where its place in the stream is a time of ours.
const LIVE_MARGIN: Duration = Duration::from_secs(300);

/// Why a client ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JetstreamError {
    /// Every host is excluded; the reason for the last one.
    #[error("no host is left: {0}")]
    NoHostLeft(DialError),
    /// Messages are compressed with another dictionary.
    #[error("{host} compresses with dictionary {needed}, not with the given one")]
    Dictionary {
        /// The host.
        host: String,
        /// The id of its dictionary.
        needed: u32,
    },
}

/// Names of errors after which the request changes; the last one only if the host chooses the dictionary.
const RETRIED: &[&str] = &[FUTURE_CURSOR, CURSOR_TOO_OLD, "UnknownZstdDictionary"];
const FUTURE_CURSOR: &str = "FutureCursor";
const CURSOR_TOO_OLD: &str = "CursorTooOld";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_events_up_to_the_capacity_are_remembered() {
        let mut dedup = EventDedup::new(3);
        assert!([1, 2, 3].into_iter().all(|hash| dedup.insert(hash)));
        assert!(![1, 2, 3].into_iter().any(|hash| dedup.insert(hash)));
        assert!(dedup.insert(4) && dedup.insert(1));
        assert!(!dedup.insert(3) && !dedup.insert(4));
        assert_eq!((dedup.hashes.len(), dedup.order.len()), (3, 3));
    }
}
