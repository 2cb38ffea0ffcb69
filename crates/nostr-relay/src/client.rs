//! The client of one relay: its connections, their subscriptions, and where the next one resumes.

mod authentication;
mod comparing;
mod stored;

use std::collections::VecDeque;
use std::time::Duration;

use nostr::json;
use nostr::{Arena, DecodeError, Filter};
use reqwest::Url;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::comparison::{Comparison, Missing};
use super::item::{EventText, RelayError, RelayEvent, RelayItem, RelayNotice, Traffic};
use super::message::Message;
use super::options::Options;
use super::walk::Walk;
use base::now_micros;
use net::hosts::{Backoff, Jitter};
use net::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use net::websocket::{Dialer, SocketError, SocketMessage};

/// Receives the events of one relay that match a filter, stored and new ones.
///
/// Reads only while [`next`](Self::next) is called: otherwise the relay has to wait.
#[derive(Debug)]
pub struct Client {
    dialer: Dialer,
    url: Url,
    filter: Filter,
    options: Options,
    socket: ReconnectingSocket,
    stage: Stage,
    /// The comparison to make, or its result, until all missing events are received.
    known: KnownEvents,
    /// The subscription that brings new events too.
    lasting: Option<String>,
    /// The number of the next subscription, and of the first one of this connection.
    next_subscription: u64,
    first_subscription: u64,
    /// Messages to send.
    outgoing: VecDeque<String>,
    ready: VecDeque<RelayItem>,
    /// The time up to which events are received.
    resume: Option<u64>,
    /// The time from which on events are requested while none are received.
    complete_at: Option<u64>,
    /// The requests for stored events, and whether some have to be made.
    walk: Walk,
    is_walking: bool,
    /// The latest creation time of the stored events so far.
    latest_stored: Option<u64>,
    /// Whether a limit counts no more: stored events were received.
    is_limit_met: bool,
    /// Number of messages of this connection that could not be read, and of events that the relay named and did not send.
    unreadable: u64,
    withheld: usize,
    /// Whether the relay allows one subscription at a time, and connections in a row that ended with the second one.
    is_one_at_a_time: bool,
    lost_beside: u32,
    /// Number of answers that brought the requests forward.
    answered: u64,
    /// Final refusals since the last answer.
    refusals: u32,
    authentication: Authentication,
    traffic: Traffic,
    arena: Arena,
    failure: Option<RelayError>,
}

/// The stage of the work on this connection.
#[derive(Debug)]
enum Stage {
    Offline,
    Authenticating,
    Comparing { subscription: String },
    Fetching { subscription: String },
    Stored { subscription: String },
    ComparingSecond { subscription: String, comparison: Comparison },
    Live,
}

/// The authentication on this connection.
#[derive(Debug, Default)]
struct Authentication {
    challenge: Option<String>,
    /// The id of the event that was sent.
    sent: Option<String>,
    is_accepted: bool,
}

/// The state of the comparison with the known events.
#[derive(Debug)]
enum KnownEvents {
    /// There is nothing to compare, or all missing events are received.
    Complete,
    /// The next connection begins a comparison.
    Due,
    /// The comparison is under way, since this time in seconds since 1970.
    Comparing(Comparison, u64),
    /// Missing events are requested, which were missing at that time.
    Fetching(Missing, u64),
}

impl Client {
    /// A client of the relay at `url`. The first call of [`next`](Self::next) connects.
    pub fn new(dialer: Dialer, url: Url, filter: Filter, options: Options, jitter: Jitter) -> Self {
        let backoff = Backoff::new(options.backoff, jitter);
        Self {
            socket: ReconnectingSocket::new(1, backoff, None, &[]),
            stage: Stage::Offline,
            known: match options.known {
                Some(_) => KnownEvents::Due,
                None => KnownEvents::Complete,
            },
            lasting: None,
            next_subscription: 1,
            first_subscription: 1,
            outgoing: VecDeque::new(),
            ready: VecDeque::new(),
            resume: options.resume,
            complete_at: None,
            walk: Walk::new(filter.clone(), 0),
            is_walking: false,
            latest_stored: None,
            is_limit_met: false,
            unreadable: 0,
            withheld: 0,
            is_one_at_a_time: false,
            lost_beside: 0,
            answered: 0,
            refusals: 0,
            authentication: Authentication::default(),
            traffic: Traffic::default(),
            arena: Arena::new(),
            failure: None,
            dialer,
            url,
            filter,
            options,
        }
    }

    /// Waits for the next item. Cancel-safe, except that a request sent in part is sent again.
    ///
    /// # Errors
    /// If the relay cannot be followed. Later calls return the same error.
    pub async fn next(&mut self) -> Result<RelayItem, RelayError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if let Some(text) = self.outgoing.front().cloned() {
                let len = text.len() as u64;
                self.socket.send_text(text).await;
                self.outgoing.pop_front();
                self.traffic.sent += len;
                continue;
            }
            match self.next_event().await {
                Some(event) => self.handle(event),
                None => self.handle_silence(),
            }
        }
    }

    /// Bytes of messages so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Number of requests for stored events so far that were answered, without the one that every connection repeats first.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Closes the connection with a close frame.
    pub async fn close(self) {
        self.socket.close().await;
    }

    /// The next event of the socket; `None` if the relay was silent for too long.
    async fn next_event(&mut self) -> Option<SocketEvent> {
        let limit = self.answer_timeout();
        let Self { socket, dialer, url, options, .. } = self;
        let dial = |_| {
            let dialer = dialer.clone();
            let url = url.clone();
            let socket = options.socket;
            Box::pin(async move { dialer.dial(&url, &socket).await }) as Dial
        };
        let next = socket.next(dial);
        let next = match limit {
            None => next.await,
            Some(limit) => timeout(limit, next).await.ok()?,
        };
        match next {
            Ok((_, event)) => Some(event),
            // The reason was returned before, for the only host.
            Err(error) => Some(SocketEvent::HostExcluded(error)),
        }
    }

    /// Maximum time without a message.
    fn answer_timeout(&self) -> Option<Duration> {
        match self.stage {
            Stage::Offline | Stage::Live => None,
            // Relays that do not know comparisons need not answer them.
            Stage::ComparingSecond { .. } => Some(self.options.answer_timeout.min(SHORT_TIMEOUT)),
            _ => Some(self.options.answer_timeout),
        }
    }

    fn handle(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Message(SocketMessage::Text(text)) => self.handle_text(text),
            SocketEvent::Message(SocketMessage::Binary(bytes)) => {
                self.traffic.received += bytes.len() as u64;
                self.count_unreadable("a binary message");
            }
            SocketEvent::Connected => self.handle_connected(),
            SocketEvent::Lost(reason) => {
                self.note_lost();
                self.go_offline();
                self.notify(RelayNotice::Disconnected(reason));
            }
            SocketEvent::ConnectFailed(error) => self.notify(RelayNotice::ConnectFailed(error)),
            SocketEvent::RetryScheduled(delay) => self.notify(RelayNotice::RetryScheduled(delay)),
            SocketEvent::HostExcluded(error) => self.failure = Some(RelayError::Excluded(error)),
            // There is no other host.
            SocketEvent::Rotated { .. } => {}
        }
    }

    fn handle_connected(&mut self) {
        self.first_subscription = self.next_subscription;
        self.authentication = Authentication::default();
        let since = self.since();
        self.notify(RelayNotice::Connected { since });
        self.start();
    }

    /// Begins with the requests of a connection, or with all of them again.
    fn start(&mut self) {
        match std::mem::replace(&mut self.known, KnownEvents::Complete) {
            KnownEvents::Complete => self.request_stored(),
            KnownEvents::Fetching(mut missing, started) => {
                missing.retry();
                self.known = KnownEvents::Fetching(missing, started);
                self.fetch_next();
            }
            KnownEvents::Due | KnownEvents::Comparing(..) => self.start_comparison(),
        }
    }

    fn go_offline(&mut self) {
        (self.stage, self.lasting) = (Stage::Offline, None);
        self.outgoing.clear();
    }

    /// Notes a connection that ended while a second subscription was requested: some relays allow one, and say it so.
    fn note_lost(&mut self) {
        let is_beside = self.lasting.as_ref().is_some_and(|lasting| {
            matches!(&self.stage, Stage::Stored { subscription } if subscription != lasting)
        });
        self.lost_beside += u32::from(is_beside);
        self.is_one_at_a_time |= self.lost_beside >= MAX_LOST_BESIDE;
    }

    /// Handles an answer that did not come in time.
    fn handle_silence(&mut self) {
        match self.stage {
            Stage::Comparing { .. } => {
                let what = "no answer to NEG-OPEN".to_owned();
                self.fail(RelayError::NotCompared(what));
            }
            Stage::ComparingSecond { .. } => self.give_up_comparison(),
            Stage::Stored { .. } if self.walk.give_up_proof() => self.request_next(),
            _ => self.disconnect(SocketError::NoMessage(self.options.answer_timeout)),
        }
    }

    fn handle_text(&mut self, text: Utf8Bytes) {
        self.traffic.received += text.len() as u64;
        match Message::parse(text.as_str()) {
            Ok(Message::Event { subscription, object }) => {
                let is_awaited = self.is_awaited(&subscription);
                if self.is_ours(&subscription) {
                    self.handle_event(EventText::new(text, object), is_awaited)
                } else {
                    self.notify(RelayNotice::UnknownSubscription)
                }
            }
            Ok(Message::EndOfStored { subscription, hint }) => {
                self.handle_end_of_stored(&subscription, hint);
            }
            Ok(Message::Closed { subscription, reason }) => {
                self.handle_closed(&subscription, reason);
            }
            Ok(Message::Compare { subscription, message }) => {
                if self.is_comparing(&subscription) {
                    self.handle_comparison(&message)
                } else {
                    self.notify(RelayNotice::UnknownSubscription)
                }
            }
            Ok(Message::CompareFailed { subscription, reason }) => {
                if self.is_comparing(&subscription) {
                    self.handle_compare_failed(reason)
                } else {
                    self.notify(RelayNotice::UnknownSubscription)
                }
            }
            Ok(Message::Notice(text)) => self.notify(RelayNotice::Message(text)),
            Ok(Message::Auth { challenge }) => self.handle_challenge(challenge),
            Ok(Message::Accepted { id, is_accepted, reason }) => {
                self.handle_accepted(&id, is_accepted, reason);
            }
            Ok(Message::Other) => {}
            Err(rule) => self.count_unreadable(rule),
        }
    }

    fn count_unreadable(&mut self, rule: &'static str) {
        self.unreadable += 1;
        self.notify(RelayNotice::Unrecognized(rule));
    }

    fn handle_event(&mut self, text: EventText, is_awaited: bool) {
        self.socket.record_progress();
        if is_awaited && matches!(self.stage, Stage::Stored { .. }) && self.walk.is_probing() {
            let (id, created_at) = self.place(&text);
            self.walk.take(id, created_at);
            return;
        }
        let is_wanted = match self.stage {
            Stage::Fetching { .. } if is_awaited => self.take_missing(&text),
            Stage::Stored { .. } => self.take_stored(&text, is_awaited),
            Stage::ComparingSecond { .. } => self.take_stored(&text, false),
            Stage::Live => {
                let (_, created_at) = self.place(&text);
                if self.gap().is_none() {
                    self.resume = self.resume.max(created_at.and_then(bounded_by_now));
                }
                true
            }
            // A late answer to an earlier request.
            _ => true,
        };
        if is_wanted {
            let is_live = matches!(self.stage, Stage::Live) && self.gap().is_none();
            let resume = self.resume.filter(|_| is_live);
            self.ready.push_back(RelayItem::Event(RelayEvent { text, resume }));
        } else {
            self.notify(RelayNotice::Unrequested)
        }
    }

    /// Whether an event was requested by id. Verification refuses an event that cannot be read.
    fn take_missing(&mut self, text: &EventText) -> bool {
        let id = self.fields(text, |fields| fields.id());
        let KnownEvents::Fetching(missing, _) = &mut self.known else { return false };
        id.is_none_or(|id| missing.take(&id))
    }

    /// Notes a stored event, or a new one while older ones are requested. Whether it is within the limit.
    fn take_stored(&mut self, text: &EventText, is_awaited: bool) -> bool {
        let (id, created_at) = self.place(text);
        self.latest_stored = self.latest_stored.max(created_at.and_then(bounded_by_now));
        if is_awaited {
            self.walk.take(id, created_at)
        } else {
            self.walk.take_live(id);
            true
        }
    }

    /// Ends the connection. The next one follows after a delay.
    fn disconnect(&mut self, reason: SocketError) {
        self.socket.disconnect(reason);
        self.note_lost();
        self.go_offline();
    }

    fn fail(&mut self, error: RelayError) {
        self.go_offline();
        self.failure = Some(error);
    }

    /// The earliest creation time to request.
    fn since(&self) -> Option<i64> {
        let overlap = self.options.overlap.as_secs();
        let resume = self.resume.or(self.complete_at);
        let resume = resume.map(|resume| resume.saturating_sub(overlap).min(MAX_SECONDS) as i64);
        self.filter.since.max(resume)
    }

    fn overlap_seconds(&self) -> i64 {
        i64::try_from(self.options.overlap.as_secs()).unwrap_or(i64::MAX)
    }

    fn new_subscription(&mut self) -> String {
        self.next_subscription += 1;
        format!("w{}", self.next_subscription - 1)
    }

    /// Whether a subscription was requested on this connection.
    fn is_ours(&self, subscription: &str) -> bool {
        let number = subscription.strip_prefix('w').and_then(|digits| digits.parse().ok());
        number.is_some_and(|number: u64| {
            (self.first_subscription..self.next_subscription).contains(&number)
        })
    }

    /// Whether an answer about a subscription is awaited.
    fn is_awaited(&self, subscription: &str) -> bool {
        match &self.stage {
            Stage::Comparing { subscription: ours }
            | Stage::Fetching { subscription: ours }
            | Stage::Stored { subscription: ours }
            | Stage::ComparingSecond { subscription: ours, .. } => ours == subscription,
            Stage::Offline | Stage::Authenticating | Stage::Live => false,
        }
    }

    fn is_comparing(&self, subscription: &str) -> bool {
        let is_comparing =
            matches!(self.stage, Stage::Comparing { .. } | Stage::ComparingSecond { .. });
        is_comparing && self.is_awaited(subscription)
    }

    /// The id and the creation time of an event. One that cannot be read is counted.
    fn place(&mut self, text: &EventText) -> (Option<[u8; 32]>, Option<i64>) {
        let place = self.fields(text, |fields| Ok((fields.id()?, fields.created_at()?)));
        self.unreadable += u64::from(place.is_none());
        place.unzip()
    }

    /// A field of an event, if it can be read.
    fn fields<T>(
        &mut self,
        text: &EventText,
        read: impl FnOnce(&json::Fields<'_>) -> Result<T, DecodeError>,
    ) -> Option<T> {
        self.arena.reset();
        let fields = json::Fields::open(text.as_str().as_bytes(), &self.arena);
        fields.and_then(|fields| read(&fields)).ok()
    }

    fn notify(&mut self, notice: RelayNotice) {
        self.ready.push_back(RelayItem::Notice(notice));
    }
}

/// A creation time that is no later than now: one in the future would skip events.
fn bounded_by_now(created_at: i64) -> Option<u64> {
    Some(u64::try_from(created_at).ok()?.min(now_seconds()))
}

fn now_seconds() -> u64 {
    now_micros() / 1_000_000
}

/// Connections in a row that end at a second subscription, after which there is one at a time.
const MAX_LOST_BESIDE: u32 = 2;

/// Maximum wait for a comparison that need not be answered.
const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The latest time of a filter.
const MAX_SECONDS: u64 = i64::MAX as u64;
