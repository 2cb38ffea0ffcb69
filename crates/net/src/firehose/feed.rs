//! The feed of one of several hosts: frames in order of arrival, deduplicated by sequence number.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use atproto::event::{Decoder, Event, Options as FrameOptions};
use bytes::Bytes;
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use futures_util::FutureExt;

use super::error::RunError;
use super::feed_item::{FeedItem, FrameKind, Notice, ReceivedFrame};
use crate::cursors::stream_name;
use crate::hosts::{Backoff, BackoffOptions, HostId, Jitter};
use crate::http::Url;
use crate::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use crate::remote_text::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, sanitize};
use crate::websocket::{
    DialError, Dialer, SocketError, SocketMessage, SocketOptions, StreamKind, with_other_stream,
};

/// A host to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The host. The path of the method is added unless the URL has one.
    pub url: Url,
    /// The cursor of an earlier run: every event up to it is acknowledged. 0 for the oldest event that the host has.
    pub cursor: Option<u64>,
}

impl Upstream {
    /// A host without a cursor.
    pub fn new(url: Url) -> Self {
        Self { url, cursor: None }
    }

    /// The name of the stream, under which its cursor is stored.
    pub fn stream_name(&self) -> String {
        stream_name(&endpoint(&self.url))
    }
}

/// Where a stream without a cursor starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartFrom {
    /// At the next live event.
    Live,
    /// At the oldest event that the host has.
    Oldest,
}

/// Options of a [`Feed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedOptions {
    /// Where the first host starts. [`StartFrom::Live`].
    pub start: StartFrom,
    /// Where another host starts once events were received or a cursor is known; [`StartFrom::Live`] would
    /// lose the events in between. [`StartFrom::Oldest`].
    pub start_after_switch: StartFrom,
    /// Where to resume when a host resets its sequence; `None` makes that an error. [`StartFrom::Oldest`], as
    /// [`StartFrom::Live`] loses the events since the reset.
    pub start_after_reset: Option<StartFrom>,
    /// Maximum time between two messages, pings not counted; `None` for no limit. Ten minutes.
    pub message_timeout: Option<Duration>,
    /// Delays between connection attempts.
    pub backoff: BackoffOptions,
    /// Options of the WebSocket.
    pub socket: SocketOptions<'static>,
}

impl Default for FeedOptions {
    fn default() -> Self {
        Self {
            start: StartFrom::Live,
            start_after_switch: StartFrom::Oldest,
            start_after_reset: Some(StartFrom::Oldest),
            message_timeout: Some(Duration::from_secs(600)),
            backoff: BackoffOptions::default(),
            socket: SocketOptions::default(),
        }
    }
}

/// Why a feed ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Every host was excluded; the reason for the last one.
    #[error("no host is left: {0}")]
    NoHostLeft(DialError),
    /// The cursor is ahead of the host's stream, and [`FeedOptions::start_after_reset`] is `None`.
    #[error("{host}: the cursor {cursor} is ahead of the stream")]
    FutureCursor {
        /// The host.
        host: String,
        /// The cursor.
        cursor: u64,
    },
}

/// A source of feed items: a [`Feed`], or a script in tests.
pub(super) trait FeedSource {
    /// Waits for the next item. Cancel-safe.
    async fn next(&mut self) -> Result<FeedItem, RunError>;

    /// The next item, if one is ready.
    fn try_next(&mut self) -> Result<Option<FeedItem>, RunError>;

    /// Closes the connection.
    async fn close(self);
}

impl FeedSource for Feed {
    async fn next(&mut self) -> Result<FeedItem, RunError> {
        Ok(Feed::next(self).await?)
    }

    fn try_next(&mut self) -> Result<Option<FeedItem>, RunError> {
        Ok(Feed::next(self).now_or_never().transpose()?)
    }

    async fn close(self) {
        Feed::close(self).await;
    }
}

/// Follows one of several hosts at a time.
///
/// Every message is returned once, except for repeated events, which become a [`Notice`]. Reads only when
/// [`next`](Self::next) is called: otherwise the host has to wait (backpressure).
#[derive(Debug)]
pub struct Feed {
    dialer: Dialer,
    socket: ReconnectingSocket,
    pub(super) hosts: Vec<FollowedHost>,
    options: FeedOptions,
    /// Whether a stream was opened or a cursor is known, so that no later connection may start live.
    has_history: bool,
    /// Items to return next.
    ready: VecDeque<FeedItem>,
    failure: Option<FeedError>,
}

/// A host and its position.
#[derive(Debug)]
pub(super) struct FollowedHost {
    endpoint: Url,
    sequence: SequenceTracker,
    /// Where to start while there is no cursor.
    start: StartFrom,
    /// Whether the host reset its sequence.
    was_reset: bool,
    /// The numbers and digests of the frames that showed a reset, the oldest first: if they are received again, they
    /// are part of the events that the host keeps.
    resets: VecDeque<(u64, u64)>,
    /// The cursor of the last connection attempt.
    requested_cursor: Option<u64>,
}

impl Feed {
    /// A feed of `upstreams`, starting with the first. Connects when [`next`](Self::next) is called.
    ///
    /// # Panics
    /// If `upstreams` is empty.
    pub fn new(
        dialer: Dialer,
        upstreams: &[Upstream],
        options: FeedOptions,
        jitter: Jitter,
    ) -> Self {
        let backoff = Backoff::new(options.backoff, jitter);
        let timeout = options.message_timeout;
        let socket = ReconnectingSocket::new(upstreams.len(), backoff, timeout, &[FUTURE_CURSOR]);
        let has_history = upstreams.iter().any(|upstream| upstream.cursor.is_some());
        let start = if has_history { options.start_after_switch } else { options.start };
        let hosts = upstreams.iter().map(|upstream| FollowedHost::new(upstream, start)).collect();
        Self { dialer, socket, hosts, options, has_history, ready: VecDeque::new(), failure: None }
    }

    /// Waits for the next item. Cancel-safe.
    ///
    /// # Errors
    /// If the feed has ended.
    pub async fn next(&mut self) -> Result<FeedItem, FeedError> {
        loop {
            if let Some(item) = self.next_ready()? {
                return Ok(item);
            }
            let dialer = &self.dialer;
            let hosts = &mut self.hosts;
            let options = &self.options;
            let dial = |host: HostId| hosts[host.0].dial(dialer, options);
            match self.socket.next(dial).await {
                Ok((host, event)) => self.handle(host, event),
                Err(error) => return Err(FeedError::NoHostLeft(error)),
            }
        }
    }

    /// The names of the streams of its hosts.
    pub(super) fn stream_names(&self) -> impl Iterator<Item = String> {
        self.hosts.iter().map(|host| stream_name(&host.endpoint))
    }

    /// Closes the connection with a close frame.
    pub async fn close(self) {
        self.socket.close().await;
    }

    /// The next item that needs no socket.
    pub(super) fn next_ready(&mut self) -> Result<Option<FeedItem>, FeedError> {
        match (self.ready.pop_front(), &self.failure) {
            (None, Some(failure)) => Err(failure.clone()),
            (item, _) => Ok(item),
        }
    }

    /// Handles an event of the socket, which may make items ready.
    pub(super) fn handle(&mut self, host: HostId, event: SocketEvent) {
        match event {
            SocketEvent::Message(SocketMessage::Binary(frame)) => self.receive(host, frame),
            // Text is not a frame: decoding rejects its bytes.
            SocketEvent::Message(SocketMessage::Text(text)) => self.receive(host, text.into()),
            SocketEvent::Connected => self.connected(host),
            SocketEvent::Lost(reason) => self.lost(host, reason),
            SocketEvent::ConnectFailed(error) => self.connect_failed(host, error),
            SocketEvent::HostExcluded(error) => self.notify(Notice::HostExcluded { host, error }),
            SocketEvent::Rotated { from, to } => self.rotate(from, to),
            SocketEvent::RetryScheduled(time) => {
                self.notify(Notice::RetryScheduled { host, time });
            }
        }
    }

    fn connected(&mut self, host: HostId) {
        let followed = &mut self.hosts[host.0];
        followed.sequence.connected();
        // Live events from now on would be lost by another live start, even if none has come yet.
        followed.start = StartFrom::Oldest;
        self.has_history = true;
        let cursor = followed.requested_cursor;
        self.notify(Notice::Connected { host, cursor });
    }

    fn lost(&mut self, host: HostId, reason: SocketError) {
        let names_reset = |reason: &str| reason.contains(FUTURE_CURSOR);
        let is_future =
            matches!(&reason, SocketError::Closed { reason, .. } if names_reset(reason));
        self.notify(Notice::Disconnected { host, reason });
        if is_future {
            self.void_cursor(host, String::new());
        }
    }

    fn receive(&mut self, host: HostId, frame: Bytes) {
        let received = ReceivedFrame::new(host, frame, SystemTime::now());
        let is_new = received.seq.is_none_or(|seq| self.track(host, seq, &received.frame));
        let control = matches!(received.kind, FrameKind::Info | FrameKind::Error);
        let control = control.then(|| received.clone());
        if is_new {
            self.ready.push_back(FeedItem::Frame(received));
        }
        if let Some(frame) = control {
            self.handle_control(host, &frame);
        }
    }

    /// Tracks a sequence number. Whether its event is new.
    fn track(&mut self, host: HostId, seq: u64, frame: &[u8]) -> bool {
        let step = self.hosts[host.0].sequence.observe(seq, frame);
        match step {
            SeqStep::Next => {}
            SeqStep::Gap(after) => self.notify(Notice::Gap { host, after, seq }),
            SeqStep::Repeated => self.notify(Notice::Repeated { host, seq }),
            SeqStep::Reused => self.notify(Notice::Reused { host, seq }),
            SeqStep::Regressed(after) => self.notify(Notice::Regressed { host, after, seq }),
            SeqStep::Reset(after) => return self.reset_sequence(host, after, seq, frame),
        }
        let is_new = step != SeqStep::Repeated;
        if is_new {
            self.has_history = true;
            self.socket.record_progress();
        }
        is_new
    }

    /// Handles a message about the stream itself.
    fn handle_control(&mut self, host: HostId, frame: &ReceivedFrame) {
        let mut decoder = Decoder::new(FrameOptions::default());
        match &decoder.decode_batch(&[frame.as_frame()])[0] {
            Ok(Event::Info(info)) => self.handle_info(host, info.name, info.message),
            Ok(Event::Error(error)) => self.handle_error(host, error.error, error.message),
            // An error frame ends the stream even if it cannot be decoded.
            _ if frame.kind == FrameKind::Error => self.handle_error(host, "", None),
            _ => {}
        }
    }

    fn handle_info(&mut self, host: HostId, name: &str, message: Option<&str>) {
        let message = sanitize(message.unwrap_or_default(), MAX_MESSAGE_CHARS);
        let cursor = self.hosts[host.0].requested_cursor;
        self.notify(match name {
            "OutdatedCursor" => Notice::OutdatedCursor { host, cursor, message },
            _ => Notice::ServerInfo { host, name: sanitize(name, MAX_NAME_CHARS), message },
        });
    }

    fn handle_error(&mut self, host: HostId, name: &str, message: Option<&str>) {
        let message = sanitize(message.unwrap_or_default(), MAX_MESSAGE_CHARS);
        match name {
            FUTURE_CURSOR => self.void_cursor(host, message),
            "ConsumerTooSlow" => self.notify(Notice::ConsumerTooSlow { host, message }),
            _ => self.notify(Notice::ServerError {
                host,
                name: sanitize(name, MAX_NAME_CHARS),
                message,
            }),
        }
        self.socket.disconnect(SocketError::Ended(sanitize(name, MAX_NAME_CHARS)));
    }

    /// Forgets the cursor and the sequence of a host that has reset them.
    fn void_cursor(&mut self, host: HostId, message: String) {
        let cursor = self.hosts[host.0].requested_cursor;
        self.begin_sequence(host, cursor.unwrap_or_default());
        self.notify(Notice::FutureCursor { host, cursor, message });
    }

    /// Handles the first event of another sequence, which the host has begun without a word. Whether it is delivered: it
    /// is not where the host is read again from its oldest event.
    fn reset_sequence(&mut self, host: HostId, after: u64, seq: u64, frame: &[u8]) -> bool {
        let followed = &mut self.hosts[host.0];
        let event = (seq, followed.sequence.digest.of(frame));
        if followed.resets.contains(&event) {
            // The events that the host keeps have two sequences.
            self.notify(Notice::Regressed { host, after, seq });
            self.socket.record_progress();
            return true;
        }
        if followed.resets.len() == MAX_RESETS {
            followed.resets.pop_front();
        }
        followed.resets.push_back(event);
        self.notify(Notice::SequenceReset { host, after, seq });
        if self.options.start_after_reset == Some(StartFrom::Live) {
            self.hosts[host.0].was_reset = true;
            self.socket.record_progress();
            return true;
        }
        self.begin_sequence(host, after);
        self.socket.disconnect(SocketError::Ended("a reset of its sequence".to_owned()));
        false
    }

    /// Begins another sequence of a host, whose cursor `after` is void.
    fn begin_sequence(&mut self, host: HostId, after: u64) {
        let followed = &mut self.hosts[host.0];
        let digest = followed.sequence.digest.clone();
        followed.sequence = SequenceTracker { digest, ..SequenceTracker::default() };
        followed.was_reset = true;
        match self.options.start_after_reset {
            // A host that rejects this cursor too has no events.
            Some(_) if followed.requested_cursor == Some(0) => followed.start = StartFrom::Live,
            Some(start) => followed.start = start,
            None => {
                let host = followed.endpoint.host_str().unwrap_or_default().to_owned();
                self.failure = Some(FeedError::FutureCursor { host, cursor: after });
            }
        }
    }

    fn connect_failed(&mut self, host: HostId, error: DialError) {
        let is_future = error.name() == Some(FUTURE_CURSOR);
        self.notify(Notice::ConnectFailed { host, error });
        if is_future {
            self.void_cursor(host, String::new());
        }
    }

    fn rotate(&mut self, from: HostId, to: HostId) {
        if self.has_history && !self.hosts[to.0].was_reset {
            self.hosts[to.0].start = self.options.start_after_switch;
        }
        self.notify(Notice::Rotated { from, to });
    }

    fn notify(&mut self, notice: Notice) {
        self.ready.push_back(FeedItem::Notice(notice));
    }
}

impl FollowedHost {
    fn new(upstream: &Upstream, start: StartFrom) -> Self {
        // The cursor of the oldest event is no number of an event.
        let sequence = SequenceTracker::new(upstream.cursor.filter(|cursor| *cursor > 0));
        let start = if upstream.cursor.is_some() { StartFrom::Oldest } else { start };
        let endpoint = endpoint(&upstream.url);
        let (was_reset, resets, requested_cursor) = Default::default();
        Self { endpoint, sequence, start, was_reset, resets, requested_cursor }
    }

    /// The cursor of the next connection; `None` for the next live event.
    pub(super) fn request_cursor(&mut self) -> Option<u64> {
        let oldest = (self.start == StartFrom::Oldest).then_some(0);
        self.requested_cursor = self.sequence.cursor().or(oldest);
        self.requested_cursor
    }

    fn dial(&mut self, dialer: &Dialer, options: &FeedOptions) -> Dial {
        let mut url = self.endpoint.clone();
        if let Some(cursor) = self.request_cursor() {
            url.query_pairs_mut().append_pair("cursor", &cursor.to_string());
        }
        let (dialer, socket) = (dialer.clone(), options.socket);
        Box::pin(async move {
            match dialer.dial(&url, &socket).await {
                Err(error) => {
                    Err(with_other_stream(error, &dialer, &url, StreamKind::Firehose).await)
                }
                socket => socket,
            }
        })
    }
}

/// Tracks the sequence numbers of one host.
#[derive(Clone, Debug, Default)]
pub struct SequenceTracker {
    /// The last sequence number, or the cursor of an earlier run.
    last: Option<u64>,
    /// The cursor of the connection, if it has one: the server was asked for all numbers above.
    floor: Option<u64>,
    /// The first sequence number of the connection.
    first: Option<u64>,
    /// Number of events of the connection.
    received: u64,
    /// The highest sequence number of the connection.
    highest: u64,
    /// Number of events in a row that were not above the highest.
    late: usize,
    /// The latest sequence numbers, with the digests of their frames.
    recent: VecDeque<(u64, u64)>,
    digest: FrameDigest,
}

/// The relation of a sequence number to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeqStep {
    /// The first number, or the successor of the last.
    Next,
    /// Numbers after this one are skipped. Relays skip the numbers of events that they do not forward; lost
    /// events look the same.
    Gap(u64),
    /// The same event was received in this run, or is the event of the cursor, which some servers send
    /// first.
    Repeated,
    /// The number was received with other bytes.
    Reused,
    /// The number is lower than this one, which came before it, and was skipped in the same connection: the event is
    /// late.
    Regressed(u64),
    /// The number does not continue this one: the server has begun another sequence. It is lower than the cursor of the
    /// connection, or than all numbers of it, or was received with other bytes, or many before it were late.
    Reset(u64),
}

impl SequenceTracker {
    /// Starts after the cursor of an earlier run, if there is one.
    pub fn new(cursor: Option<u64>) -> Self {
        Self { last: cursor, floor: cursor, ..Self::default() }
    }

    /// The cursor for the next connection.
    pub fn cursor(&self) -> Option<u64> {
        self.last
    }

    /// Begins another connection, which was asked for the events after the last number.
    pub fn connected(&mut self) {
        (self.first, self.received, self.highest, self.late) = Default::default();
        self.floor = self.last;
    }

    /// Records a frame. Its number becomes the last one even if it is lower: a server that resets its
    /// sequence is followed, and for others it costs a few repetitions.
    pub fn observe(&mut self, seq: u64, frame: &[u8]) -> SeqStep {
        let digest = self.digest.of(frame);
        let step = self.classify(seq, digest);
        if matches!(step, SeqStep::Reset(_)) {
            self.last = None;
            self.connected();
            self.recent.clear();
        }
        self.last = Some(seq);
        if step != SeqStep::Repeated {
            self.first.get_or_insert(seq);
            self.received += 1;
            self.late = if seq > self.highest { 0 } else { self.late + 1 };
            self.highest = self.highest.max(seq);
            if self.recent.len() == MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((seq, digest));
        }
        step
    }

    fn classify(&self, seq: u64, digest: u64) -> SeqStep {
        match self.last {
            None => SeqStep::Next,
            Some(last) if seq > last => match seq - last {
                _ if self.late >= MAX_LATE && seq < self.highest => SeqStep::Reset(self.highest),
                1 => SeqStep::Next,
                _ => SeqStep::Gap(last),
            },
            Some(last) => self.classify_old(seq, digest, last),
        }
    }

    #[cold]
    fn classify_old(&self, seq: u64, digest: u64, last: u64) -> SeqStep {
        let is_equal = |(_, known): &(u64, u64)| *known == digest;
        let mut same = self.recent.iter().filter(|(recent, _)| *recent == seq).peekable();
        match (same.peek().is_some(), same.any(is_equal)) {
            (true, true) => SeqStep::Repeated,
            (true, false) if self.first.is_some() && seq == last => SeqStep::Reused,
            (true, false) => SeqStep::Reset(last),
            (false, _) if self.recent.is_empty() && seq == last => SeqStep::Repeated,
            (false, _) if self.was_skipped(seq) => SeqStep::Regressed(last),
            (false, _) => SeqStep::Reset(last),
        }
    }

    /// Whether the connection has passed over a number, as far as its numbers are remembered.
    fn was_skipped(&self, seq: u64) -> bool {
        let oldest = self.recent.front().filter(|_| self.recent.len() == MAX_RECENT);
        let is_remembered = oldest.is_none_or(|(oldest, _)| seq > *oldest);
        let Some(first) = self.first else { return false };
        let is_asked_for = match self.floor {
            Some(floor) => seq > floor,
            // Without a cursor, the second event of a stream may be late.
            None => seq > first || (self.received == 1 && first - seq <= MAX_FIRST_STEP),
        };
        is_remembered && is_asked_for
    }
}

/// Distinguishes frames with the same number by a keyed hash of all their bytes. A host does not learn the
/// key, so it cannot send an event that is dropped as the repetition of another one.
#[derive(Clone, Debug)]
struct FrameDigest(SeedableRandomState);

impl FrameDigest {
    fn of(&self, frame: &[u8]) -> u64 {
        // 0.1 µs for a frame of 4.5 KB (SipHash: 1.2 µs).
        self.0.hash_one(frame)
    }
}

impl Default for FrameDigest {
    fn default() -> Self {
        static KEY: OnceLock<SharedSeed> = OnceLock::new();
        // The standard library's seed comes from the operating system.
        let random = || RandomState::new().hash_one(());
        let shared = KEY.get_or_init(|| SharedSeed::from_u64(random()));
        Self(SeedableRandomState::with_seed(random(), shared))
    }
}

/// The URL of the method, unless the URL of the host has a path.
fn endpoint(host: &Url) -> Url {
    let mut url = host.clone();
    if url.path() == "/" {
        url.set_path(METHOD);
    }
    url
}

const METHOD: &str = "/xrpc/com.atproto.sync.subscribeRepos";

const FUTURE_CURSOR: &str = "FutureCursor";

/// Remembered sequence numbers: 256 KiB per host.
const MAX_RECENT: usize = 16 << 10;

/// Late events in a row after which they count as events of another sequence.
const MAX_LATE: usize = 64;

/// How far the second event of a stream without a cursor may be below the first.
const MAX_FIRST_STEP: u64 = 4;

/// Number of remembered frames that showed a reset.
const MAX_RESETS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn steps<const N: usize>(cursor: Option<u64>, seqs: [u64; N]) -> [SeqStep; N] {
        let mut sequence = SequenceTracker::new(cursor);
        seqs.map(|seq| sequence.observe(seq, &seq.to_be_bytes()))
    }

    #[test]
    fn gaps_are_detected_from_the_cursor_on() {
        use SeqStep::{Gap, Next};
        assert_eq!(steps(None, [9, 10, 12]), [Next, Next, Gap(10)]);
        assert_eq!(steps(Some(8), [9, 10, 12]), [Next, Next, Gap(10)]);
        assert_eq!(steps(Some(5), [9]), [Gap(5)]);
    }

    #[test]
    fn the_event_of_the_cursor_is_a_repetition_once() {
        use SeqStep::{Next, Repeated, Reset};
        assert_eq!(steps(Some(8), [8, 9]), [Repeated, Next]);
        assert_eq!(steps(Some(8), [7, 8]), [Reset(8), Next]);
    }

    #[test]
    fn a_known_lower_number_is_a_repetition_and_a_skipped_one_is_late() {
        use SeqStep::{Gap, Next, Regressed, Repeated};
        assert_eq!(steps(None, [5, 5, 6, 5]), [Next, Repeated, Next, Repeated]);
        assert_eq!(steps(None, [5, 7, 6, 8]), [Next, Gap(5), Regressed(7), Gap(6)]);
    }

    #[test]
    fn a_number_below_the_cursor_or_below_the_connection_begins_another_sequence() {
        use SeqStep::{Gap, Next, Reset};
        assert_eq!(steps(Some(900), [3, 4]), [Reset(900), Next]);
        assert_eq!(steps(Some(2), [3, 4, 1, 2]), [Next, Next, Reset(4), Next]);
        assert_eq!(steps(None, [5, 9, 4, 6]), [Next, Gap(5), Reset(9), Gap(4)]);
        // Asked for the events after 2, the server may send 4 before 3; without a cursor, only as the first two.
        assert_eq!(steps(Some(2), [4, 3, 5]), [Gap(2), SeqStep::Regressed(4), Gap(3)]);
        assert_eq!(steps(None, [4, 3, 5]), [Next, SeqStep::Regressed(4), Gap(3)]);
        assert_eq!(steps(None, [9, 3, 5]), [Next, Reset(9), Gap(3)]);
        // The numbers of the connection before were not skipped by this one.
        let mut sequence = SequenceTracker::new(None);
        let mut observe = |seq: u64, frame: &[u8]| sequence.observe(seq, frame);
        assert_eq!([observe(1, b"1"), observe(9, b"9")], [Next, Gap(1)]);
        sequence.connected();
        let mut observe = |seq: u64, frame: &[u8]| sequence.observe(seq, frame);
        assert_eq!([observe(9, b"9"), observe(5, b"5")], [SeqStep::Repeated, Reset(9)]);
    }

    #[test]
    fn a_number_that_was_received_with_other_bytes_begins_another_sequence_unless_it_is_the_last() {
        let mut sequence = SequenceTracker::new(None);
        (1..=9).for_each(|seq| assert_eq!(sequence.observe(seq, b"old"), SeqStep::Next));
        assert_eq!(sequence.observe(9, b"twice"), SeqStep::Reused);
        assert_eq!(sequence.observe(1, b"new"), SeqStep::Reset(9));
        assert_eq!(sequence.observe(2, b"old"), SeqStep::Next, "nothing is known of the new one");
        sequence.connected();
        assert_eq!(sequence.observe(2, b"other"), SeqStep::Reset(2), "the event of the cursor");
    }

    #[test]
    fn many_late_numbers_in_a_row_are_those_of_another_sequence() {
        let mut sequence = SequenceTracker::new(None);
        assert_eq!(sequence.observe(1, b""), SeqStep::Next);
        assert_eq!(sequence.observe(1_000, b""), SeqStep::Gap(1));
        let steps: Vec<_> = (2..100).map(|seq| sequence.observe(seq, b"")).collect();
        assert_eq!(steps[0], SeqStep::Regressed(1_000));
        let resets = steps.iter().filter(|step| matches!(step, SeqStep::Reset(1_000)));
        assert_eq!((resets.count(), steps[MAX_LATE]), (1, SeqStep::Reset(1_000)));
    }

    #[test]
    fn a_number_with_other_bytes_is_no_repetition() {
        let mut sequence = SequenceTracker::new(None);
        assert_eq!(sequence.observe(5, b"one"), SeqStep::Next);
        assert_eq!(sequence.observe(5, b"two"), SeqStep::Reused);
        assert_eq!(sequence.observe(5, b"one"), SeqStep::Repeated);
        assert_eq!(sequence.observe(5, b"two"), SeqStep::Repeated);
    }

    #[test]
    fn frames_that_differ_in_one_byte_anywhere_are_no_repetitions() {
        let mut sequence = SequenceTracker::new(None);
        let mut frame = vec![0; 5_000];
        assert_eq!(sequence.observe(5, &frame), SeqStep::Next);
        for at in [0, 128, 2_500, 4_871, 4_999] {
            frame[at] ^= 1;
            assert_eq!(sequence.observe(5, &frame), SeqStep::Reused, "byte {at}");
            assert_eq!(sequence.observe(5, &frame), SeqStep::Repeated, "byte {at}");
        }
    }

    #[test]
    fn the_digest_depends_on_a_secret_of_the_process() {
        assert_ne!(FrameDigest::default().of(b"frame"), FrameDigest::default().of(b"frame"));
    }

    #[test]
    fn memory_is_bounded_and_a_forgotten_number_counts_as_new() {
        let mut sequence = SequenceTracker::new(None);
        for seq in 0..2 * MAX_RECENT as u64 {
            sequence.observe(seq, b"");
        }
        assert_eq!(sequence.recent.len(), MAX_RECENT);
        assert!(matches!(sequence.observe(0, b""), SeqStep::Reset(_)));
    }
}
