//! The client of one relay: its connections, the subscriptions of each, and where the next one resumes.

use std::collections::VecDeque;

use nostr::formats::json::{self, Json};
use nostr::formats::{Codec, ReadFields};
use nostr::{Arena, DecodeError, Filter, Limits};
use reqwest::Url;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::comparison::{Comparison, Missing, Step};
use super::item::{EventText, RelayError, RelayEvent, RelayItem, RelayNotice, Traffic};
use super::message::{self, Message, Reason};
use super::options::Options;
use crate::clock::now_micros;
use crate::hosts::{Backoff, Jitter};
use crate::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use crate::websocket::{Dialer, SocketError, SocketMessage};

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
    /// The number of the next subscription, and that of the first one of this connection.
    next_subscription: u64,
    first_subscription: u64,
    /// Messages to send.
    outgoing: VecDeque<String>,
    ready: VecDeque<RelayItem>,
    /// The time up to which events are received.
    resume: Option<u64>,
    /// The latest creation time of the stored events so far, and the number of events of the largest page.
    latest_stored: Option<u64>,
    largest_page: u64,
    traffic: Traffic,
    arena: Arena,
    failure: Option<RelayError>,
}

/// What the relay is doing on this connection.
#[derive(Debug)]
enum Stage {
    Offline,
    Comparing { subscription: String },
    Fetching { subscription: String },
    Stored { subscription: String, page: Page },
    Live,
}

/// A request for stored events.
#[derive(Debug)]
struct Page {
    until: Option<i64>,
    /// The oldest creation time among its events so far.
    oldest: Option<i64>,
    count: u64,
}

/// What became of the comparison with the events that are known.
#[derive(Debug)]
enum KnownEvents {
    /// Nothing is to be compared, or all that was missing is received.
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
            latest_stored: None,
            largest_page: 0,
            traffic: Traffic::default(),
            arena: Arena::new(),
            failure: None,
            dialer,
            url,
            filter,
            options,
        }
    }

    /// Waits for the next item. Cancel-safe, but for a request that was sent in part: it is sent again.
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

    /// Closes the connection with a close frame.
    pub async fn close(self) {
        self.socket.close().await;
    }

    /// The next event of the socket; `None` if the relay was silent for too long.
    async fn next_event(&mut self) -> Option<SocketEvent> {
        let Self { socket, dialer, url, options, stage, .. } = self;
        let dial = |_| {
            let (dialer, url, socket) = (dialer.clone(), url.clone(), options.socket);
            Box::pin(async move { dialer.dial(&url, &socket).await }) as Dial
        };
        let next = socket.next(dial);
        let next = match stage {
            Stage::Offline | Stage::Live => next.await,
            _ => timeout(options.answer_timeout, next).await.ok()?,
        };
        match next {
            Ok((_, event)) => Some(event),
            // The reason was returned before, as that of the only host.
            Err(error) => Some(SocketEvent::HostExcluded(error)),
        }
    }

    fn handle(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Message(SocketMessage::Text(text)) => self.handle_text(text),
            SocketEvent::Message(SocketMessage::Binary(bytes)) => {
                self.traffic.received += bytes.len() as u64;
                self.notify(RelayNotice::Unrecognized("a binary message"));
            }
            SocketEvent::Connected => self.handle_connected(),
            SocketEvent::Lost(reason) => {
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
        let since = self.since();
        self.notify(RelayNotice::Connected { since });
        match std::mem::replace(&mut self.known, KnownEvents::Complete) {
            KnownEvents::Complete => self.request_stored(None),
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

    /// Handles an answer that did not come in time.
    fn handle_silence(&mut self) {
        match self.stage {
            Stage::Comparing { .. } => {
                let what = "no answer to NEG-OPEN".to_owned();
                self.fail(RelayError::NotCompared(what));
            }
            _ => self.disconnect(SocketError::NoMessage(self.options.answer_timeout)),
        }
    }

    fn handle_text(&mut self, text: Utf8Bytes) {
        self.traffic.received += text.len() as u64;
        match Message::parse(text.as_str()) {
            Ok(Message::Event { subscription, object }) => {
                let is_awaited = self.is_awaited(subscription);
                match self.is_ours(subscription) {
                    true => self.handle_event(EventText::new(text, object), is_awaited),
                    false => self.notify(RelayNotice::UnknownSubscription),
                }
            }
            Ok(Message::EndOfStored { subscription }) => self.handle_end_of_stored(&subscription),
            Ok(Message::Closed { subscription, reason }) => {
                self.handle_closed(&subscription, reason);
            }
            Ok(Message::Compare { subscription, message }) => {
                match self.is_comparing(&subscription) {
                    true => self.handle_comparison(&message),
                    false => self.notify(RelayNotice::UnknownSubscription),
                }
            }
            Ok(Message::CompareFailed { subscription, reason }) => {
                match self.is_comparing(&subscription) {
                    true => self.fail(RelayError::NotCompared(reason.to_string())),
                    false => self.notify(RelayNotice::UnknownSubscription),
                }
            }
            Ok(Message::Notice(text)) => self.notify(RelayNotice::Message(text)),
            Ok(Message::Auth { challenge }) => {
                self.notify(RelayNotice::AuthRequested { challenge });
            }
            Ok(Message::Other) => {}
            Err(rule) => self.notify(RelayNotice::Unrecognized(rule)),
        }
    }

    fn handle_event(&mut self, text: EventText, is_awaited: bool) {
        self.socket.record_progress();
        let is_wanted = match self.stage {
            Stage::Fetching { .. } if is_awaited => self.take_missing(&text),
            Stage::Stored { .. } => self.take_stored(&text, is_awaited),
            Stage::Live => {
                let created_at = self.created_at(&text);
                self.resume = self.resume.max(created_at.and_then(bounded_by_now));
                true
            }
            // A late answer to an earlier request.
            _ => true,
        };
        match is_wanted {
            true => {
                let is_live = matches!(self.stage, Stage::Live);
                let resume = self.resume.filter(|_| is_live);
                self.ready.push_back(RelayItem::Event(RelayEvent { text, resume }));
            }
            false => self.notify(RelayNotice::Unrequested),
        }
    }

    /// Whether an event is one of those that were requested by id. One that cannot be read is refused where it is verified.
    fn take_missing(&mut self, text: &EventText) -> bool {
        let id = self.fields(text, |fields| fields.id());
        let KnownEvents::Fetching(missing, _) = &mut self.known else { return false };
        id.is_none_or(|id| missing.take(&id))
    }

    /// Notes the time of a stored event, or of a new one while older ones are requested. Whether it is within the limit.
    fn take_stored(&mut self, text: &EventText, is_awaited: bool) -> bool {
        let created_at = self.created_at(text);
        self.latest_stored = self.latest_stored.max(created_at.and_then(bounded_by_now));
        let Stage::Stored { page, .. } = &mut self.stage else { return false };
        if !is_awaited {
            return true;
        }
        page.count += 1;
        if let Some(created_at) = created_at {
            page.oldest = Some(page.oldest.map_or(created_at, |oldest| oldest.min(created_at)));
        }
        self.filter.limit.is_none_or(|limit| page.count <= limit)
    }

    fn handle_end_of_stored(&mut self, subscription: &str) {
        if !self.is_ours(subscription) {
            return self.notify(RelayNotice::UnknownSubscription);
        }
        self.socket.record_progress();
        match &self.stage {
            // Said twice.
            _ if !self.is_awaited(subscription) => {}
            Stage::Fetching { .. } => {
                self.outgoing.push_back(message::close(subscription));
                self.fetch_next();
            }
            Stage::Stored { .. } => self.end_page(),
            Stage::Offline | Stage::Comparing { .. } | Stage::Live => {}
        }
    }

    /// Requests the next page, if there may be older events.
    fn end_page(&mut self) {
        let stage = std::mem::replace(&mut self.stage, Stage::Live);
        let Stage::Stored { subscription, page } = stage else { return };
        if page.until.is_some() {
            self.outgoing.push_back(message::close(&subscription));
        }
        self.largest_page = self.largest_page.max(page.count);
        match self.next_page(&page) {
            Some(until) => self.request_stored(Some(until)),
            None => self.go_live(),
        }
    }

    /// The end of the next page.
    fn next_page(&mut self, page: &Page) -> Option<i64> {
        let oldest = page.oldest.filter(|_| self.filter.limit.is_none())?;
        let until = match page.until {
            // The relay does not keep to the time, and would send these events again and again.
            Some(until) if oldest > until => {
                self.notify(RelayNotice::Unrequested);
                return None;
            }
            // The events of the last second of the page before, again.
            Some(until) if oldest == until => {
                if page.count >= self.largest_page.max(FULL_PAGE) {
                    self.notify(RelayNotice::FullSecond(until));
                }
                until.checked_sub(1)?
            }
            _ => oldest,
        };
        let is_before_start = self.since().is_some_and(|since| until < since);
        (!is_before_start).then_some(until)
    }

    fn go_live(&mut self) {
        self.stage = Stage::Live;
        self.resume = self.resume.max(self.latest_stored);
        self.notify(RelayNotice::EndOfStored { resume: self.resume });
    }

    /// Requests stored events up to a time, or the newest ones and all that follow.
    fn request_stored(&mut self, until: Option<i64>) {
        let subscription = self.new_subscription();
        let mut filter = Filter { since: self.since(), ..self.filter.clone() };
        filter.until = until.or(filter.until);
        self.outgoing.push_back(message::request(&subscription, &filter));
        if until.is_none() {
            self.lasting = Some(subscription.clone());
        }
        let page = Page { until, oldest: None, count: 0 };
        self.stage = Stage::Stored { subscription, page };
    }

    fn start_comparison(&mut self) {
        let Some(known) = self.options.known.clone() else { return };
        let comparison = Comparison::new(known, &self.options);
        let subscription = self.new_subscription();
        let filter = Filter { limit: None, ..self.filter.clone() };
        let first = message::compare_open(&subscription, &filter, &comparison.open());
        self.outgoing.push_back(first);
        self.known = KnownEvents::Comparing(comparison, now_seconds());
        self.stage = Stage::Comparing { subscription };
    }

    fn handle_comparison(&mut self, received: &[u8]) {
        let Stage::Comparing { subscription } = &self.stage else { return };
        let KnownEvents::Comparing(comparison, started) = &mut self.known else { return };
        let started = *started;
        match comparison.receive(received) {
            Ok(Step::Send(next)) => {
                self.outgoing.push_back(message::compare_next(subscription, &next));
            }
            Ok(Step::Done) => {
                self.outgoing.push_back(message::compare_close(subscription));
                let KnownEvents::Comparing(comparison, _) =
                    std::mem::replace(&mut self.known, KnownEvents::Complete)
                else {
                    return;
                };
                let rounds = comparison.rounds();
                let missing = comparison.into_missing();
                self.notify(RelayNotice::Compared { rounds, missing: missing.len() });
                self.known = KnownEvents::Fetching(missing, started);
                self.fetch_next();
            }
            Err(reason) => self.fail(RelayError::NotCompared(reason)),
        }
    }

    /// Requests the next missing events, or goes on with those since the comparison.
    fn fetch_next(&mut self) {
        let KnownEvents::Fetching(missing, started) = &mut self.known else { return };
        let (started, ids) = (*started, missing.next_group());
        if ids.is_empty() {
            let withheld = missing.withheld();
            self.known = KnownEvents::Complete;
            self.notify(RelayNotice::Fetched { withheld });
            self.resume = self.resume.max(Some(started));
            return self.request_stored(None);
        }
        let subscription = self.new_subscription();
        let filter = Filter { ids, ..Filter::default() };
        self.outgoing.push_back(message::request(&subscription, &filter));
        self.stage = Stage::Fetching { subscription };
    }

    fn handle_closed(&mut self, subscription: &str, reason: Reason) {
        if !self.is_ours(subscription) {
            return self.notify(RelayNotice::UnknownSubscription);
        }
        // Some relays say it of a subscription that the client has ended.
        if !self.is_awaited(subscription) && self.lasting.as_deref() != Some(subscription) {
            return;
        }
        self.notify(RelayNotice::Closed(reason.clone()));
        match &self.stage {
            Stage::Comparing { .. } => self.fail(RelayError::NotCompared(reason.to_string())),
            _ if reason.is_final() => self.fail(RelayError::Refused(reason)),
            _ => self.disconnect(SocketError::Ended("CLOSED".to_owned())),
        }
    }

    /// Ends the connection. The next one follows after a delay.
    fn disconnect(&mut self, reason: SocketError) {
        self.socket.disconnect(reason);
        self.go_offline();
    }

    fn fail(&mut self, error: RelayError) {
        self.go_offline();
        self.failure = Some(error);
    }

    /// The earliest creation time to request.
    fn since(&self) -> Option<i64> {
        let overlap = self.options.overlap.as_secs();
        let resume =
            self.resume.map(|resume| resume.saturating_sub(overlap).min(MAX_SECONDS) as i64);
        self.filter.since.max(resume)
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
            | Stage::Stored { subscription: ours, .. } => ours == subscription,
            Stage::Offline | Stage::Live => false,
        }
    }

    fn is_comparing(&self, subscription: &str) -> bool {
        matches!(self.stage, Stage::Comparing { .. }) && self.is_awaited(subscription)
    }

    fn created_at(&mut self, text: &EventText) -> Option<i64> {
        self.fields(text, |fields| fields.created_at())
    }

    /// A field of an event, if it can be read.
    fn fields<T>(
        &mut self,
        text: &EventText,
        read: impl FnOnce(&json::Fields<'_>) -> Result<T, DecodeError>,
    ) -> Option<T> {
        self.arena.reset();
        let fields = Json.fields(text.as_str().as_bytes(), &self.arena, &Limits::default());
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

/// Number of events from which on a page can be all that a relay sends at once.
const FULL_PAGE: u64 = 100;

/// The latest time of a filter.
const MAX_SECONDS: u64 = i64::MAX as u64;
