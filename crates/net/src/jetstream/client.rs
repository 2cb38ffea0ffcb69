//! The Jetstream client: events of one of several hosts, in order of arrival.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;

use super::call::{Call, Prepared};
use super::dictionary::{Dictionary, Unpacking};
use super::event::Event;
use super::followed::{Followed, cursor};
use super::item::{JetstreamError, JetstreamItem, Unrecognized};
use super::options::Options;
use super::reading::{Reading, read};
use super::request::{Question, Version};
use super::seen::Seen;
use super::wanted::{Filter, FilterError, FilterMatcher};
use crate::firehose::{Notice, StartFrom, Upstream};
use crate::hosts::{Backoff, HostId, Jitter};
use crate::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use crate::websocket::{DialError, DialFault, Dialer, SocketError, SocketMessage, sanitize};

/// Follows one Jetstream of several at a time.
///
/// Every event that is wanted is handed over once, as far as it is remembered, and whatever else comes
/// is handed over as it is. While nobody asks for the next one, nothing is read.
#[derive(Debug)]
pub struct Client {
    dialer: Dialer,
    line: ReconnectingSocket,
    followed: Vec<Followed>,
    options: Options,
    wanted: Filter,
    filter: FilterMatcher,
    seen: Seen,
    /// The host that brought something new last, and when that was told at the latest.
    latest: Option<(HostId, u64)>,
    /// What the next connection is opened with.
    prepared: Arc<Mutex<Prepared>>,
    dictionary: Option<Dictionary>,
    /// What is yet to be said over the connection.
    hello: Option<String>,
    /// How often something else was wanted.
    changes: u64,
    /// The cursor of the event before, on the same connection.
    before: Option<u64>,
    ready: VecDeque<JetstreamItem>,
    failure: Option<JetstreamError>,
}

impl Client {
    /// Prepares to follow `origins`, beginning with the first. Nothing happens before
    /// [`next`](Self::next) is called.
    ///
    /// # Errors
    /// If what is wanted may not be asked for, or what was given is no dictionary.
    ///
    /// # Panics
    /// If there is no origin.
    pub fn new(
        dialer: Dialer,
        origins: &[Upstream],
        wanted: Filter,
        options: Options,
        chance: Jitter,
    ) -> Result<Self, FilterError> {
        wanted.check()?;
        options.compression.check()?;
        let backoff = Backoff::new(options.backoff, chance);
        let lessons = if options.compression.follows_the_host() { LESSONS } else { &LESSONS[..2] };
        let followed: Vec<_> =
            origins.iter().map(|origin| Followed::new(origin, options.start)).collect();
        let times = followed.iter().enumerate();
        let times = times.filter_map(|(at, followed)| Some((followed.micros?, HostId(at))));
        Ok(Self {
            line: ReconnectingSocket::new(origins.len(), backoff, options.message_timeout, lessons),
            latest: times.max().map(|(micros, host)| (host, micros)),
            filter: FilterMatcher::new(&wanted),
            seen: Seen::new(options.dedup_capacity),
            prepared: Arc::default(),
            dictionary: None,
            hello: None,
            changes: 0,
            before: None,
            ready: VecDeque::new(),
            failure: None,
            dialer,
            followed,
            options,
            wanted,
        })
    }

    /// The next thing that happened. A call that is given up loses nothing.
    ///
    /// # Errors
    /// If nothing more can come.
    pub async fn next(&mut self) -> Result<JetstreamItem, JetstreamError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if let Some(hello) = self.hello.clone() {
                // If this call is given up, it is said again: the host takes the last word.
                self.line.send_text(hello).await;
                self.hello = None;
            }
            let Self { line, followed, latest, options, wanted, changes, dialer, prepared, .. } =
                self;
            let dial = |host: HostId| {
                let cursor = cursor(followed, *latest, options.rewind, host);
                followed[host.0].given = cursor;
                let (url, wanted) = (followed[host.0].url.clone(), wanted.clone());
                let (dialer, prepared) = (dialer.clone(), prepared.clone());
                let (options, changes) = (options.clone(), *changes);
                let call = Call { dialer, url, cursor, wanted, changes, options, prepared };
                Box::pin(call.dial()) as Dial
            };
            match line.next(dial).await {
                Ok((host, turn)) => self.take(host, turn),
                Err(error) => return Err(JetstreamError::NoHostLeft(error)),
            }
        }
    }

    /// Wants something else from now on. Version 1 is told so over the connection that there is; in
    /// version 2 another one takes its place.
    ///
    /// # Errors
    /// If it may not be asked for; then nothing changes.
    pub fn set_filter(&mut self, wanted: Filter) -> Result<(), FilterError> {
        wanted.check()?;
        (self.filter, self.wanted) = (FilterMatcher::new(&wanted), wanted);
        self.changes += 1;
        self.pass_on();
        Ok(())
    }

    /// Lets the host know what is wanted now.
    fn pass_on(&mut self) {
        let version = self.options.version;
        match version {
            Version::V1 => {
                let (cursor, dictionary) = (None, None);
                let question = Question { version, wanted: &self.wanted, cursor, dictionary };
                self.hello = Some(question.update());
            }
            Version::V2 => self.line.disconnect(SocketError::Ended("other wishes".to_owned())),
        }
    }

    /// Ends the connection with a farewell.
    pub async fn close(self) {
        self.line.close().await;
    }

    fn take(&mut self, host: HostId, turn: SocketEvent) {
        match turn {
            SocketEvent::Message(message) => self.hear(host, message),
            SocketEvent::Connected => self.begin(host),
            SocketEvent::Lost(reason) => self.tell(Notice::Disconnected { host, reason }),
            SocketEvent::ConnectFailed(error) => self.be_refused(host, error),
            SocketEvent::HostExcluded(error) => self.tell(Notice::HostExcluded { host, error }),
            SocketEvent::Rotated { from, to } => self.tell(Notice::Rotated { from, to }),
            SocketEvent::RetryScheduled(time) => self.tell(Notice::RetryScheduled { host, time }),
        }
    }

    fn begin(&mut self, host: HostId) {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        (self.dictionary, self.hello) = (prepared.dictionary.take(), prepared.hello.take());
        let is_outdated = prepared.changes != self.changes;
        drop(prepared);
        self.before = None;
        self.tell(Notice::Connected { host, cursor: self.followed[host.0].given });
        if is_outdated {
            self.pass_on();
        }
    }

    fn hear(&mut self, host: HostId, message: SocketMessage) {
        let received = SystemTime::now();
        let text = match message {
            SocketMessage::Text(text) => Bytes::from(text),
            SocketMessage::Binary(packed) => match self.unpack(&packed) {
                Ok(text) => text,
                Err(Unpacking::Needs(needed)) => return self.fail(host, needed),
                Err(Unpacking::Broken(reason)) => {
                    return self.hand_over(Unrecognized { host, bytes: packed, reason, received });
                }
            },
        };
        match read(self.options.version, host, &text, received) {
            Ok(Reading::Event(event)) => self.arrive(event),
            Ok(Reading::Info { name, message }) => self.hear_info(host, &name, &message),
            Ok(Reading::Error { name, message }) => self.hear_error(host, &name, &message),
            Ok(Reading::Unknown(kind)) => {
                let reason = format!("a message of the unknown kind {:?}", sanitize(&kind));
                self.hand_over(Unrecognized { host, bytes: text, reason, received });
            }
            Err(reason) => self.hand_over(Unrecognized { host, bytes: text, reason, received }),
        }
    }

    fn unpack(&mut self, packed: &[u8]) -> Result<Bytes, Unpacking> {
        let most = self.options.socket.max_message_bytes;
        match &mut self.dictionary {
            Some(dictionary) => dictionary.unpack(packed, most).map(Bytes::from),
            None => Err(Unpacking::Broken("bytes where text was asked for".to_owned())),
        }
    }

    fn arrive(&mut self, event: Event) {
        let (host, seq) = (event.host, event.cursor);
        let followed = &mut self.followed[host.0];
        (followed.cursor, followed.micros) = (Some(seq), Some(event.micros));
        let before = self.before.replace(seq);
        if !self.seen.is_new(&event) {
            return self.tell(Notice::Repeated { host, seq });
        }
        if let Some(after) = before.filter(|before| seq < *before) {
            self.tell(Notice::Regressed { host, after, seq });
        }
        self.line.record_progress();
        self.note_time(&event);
        if self.filter.wants(&event) {
            self.ready.push_back(JetstreamItem::Event(event));
        }
    }

    /// A time that lies ahead would make us skip what comes until then.
    fn note_time(&mut self, event: &Event) {
        let now = event.received.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let micros = event.micros.min(u64::try_from(now.as_micros()).unwrap_or(u64::MAX));
        let before = self.latest.map_or(0, |(_, micros)| micros);
        self.latest = Some((event.host, micros.max(before)));
    }

    fn hear_info(&mut self, host: HostId, name: &str, message: &str) {
        let (message, cursor) = (sanitize(message), self.followed[host.0].given);
        self.tell(match name {
            "OutdatedCursor" => Notice::OutdatedCursor { host, cursor, message },
            _ => Notice::ServerInfo { host, name: sanitize(name), message },
        });
    }

    fn hear_error(&mut self, host: HostId, name: &str, message: &str) {
        match name {
            FUTURE_CURSOR => self.void_cursor(host, message, StartFrom::Live),
            "ConsumerTooSlow" => {
                self.tell(Notice::ConsumerTooSlow { host, message: sanitize(message) });
            }
            _ => {
                let (name, message) = (sanitize(name), sanitize(message));
                self.tell(Notice::ServerError { host, name, message });
            }
        }
        self.line.disconnect(SocketError::Ended(sanitize(name)));
    }

    fn be_refused(&mut self, host: HostId, error: DialError) {
        let name = error.name().unwrap_or_default().to_owned();
        let message = match &error.fault {
            DialFault::Refused(refusal) => refusal.message.clone(),
            _ => String::new(),
        };
        self.tell(Notice::ConnectFailed { host, error });
        match &*name {
            FUTURE_CURSOR => self.void_cursor(host, &message, StartFrom::Live),
            CURSOR_TOO_OLD => self.void_cursor(host, &message, StartFrom::Oldest),
            _ => {}
        }
    }

    /// The number is of no use to the host: the next attempt is made by time, if one is known.
    fn void_cursor(&mut self, host: HostId, message: &str, begin: StartFrom) {
        let followed = &mut self.followed[host.0];
        (followed.cursor, followed.micros, followed.begin) = (None, None, begin);
        let (cursor, message) = (followed.given, sanitize(message));
        self.tell(match begin {
            StartFrom::Live => Notice::FutureCursor { host, cursor, message },
            StartFrom::Oldest => Notice::OutdatedCursor { host, cursor, message },
        });
    }

    fn fail(&mut self, host: HostId, needed: u32) {
        let host = self.followed[host.0].url.host_str().unwrap_or_default().to_owned();
        self.failure = Some(JetstreamError::Dictionary { host, needed });
    }

    fn hand_over(&mut self, strange: Unrecognized) {
        self.ready.push_back(JetstreamItem::Unrecognized(strange));
    }

    fn tell(&mut self, notice: Notice) {
        self.ready.push_back(JetstreamItem::Notice(notice));
    }
}

/// Refusals after which something else is asked; the last one only if dictionaries are the host's choice.
const LESSONS: &[&str] = &[FUTURE_CURSOR, CURSOR_TOO_OLD, "UnknownZstdDictionary"];
const FUTURE_CURSOR: &str = "FutureCursor";
const CURSOR_TOO_OLD: &str = "CursorTooOld";
