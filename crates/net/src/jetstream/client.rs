//! The events of one of several Jetstreams, in the order in which they come.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::LEAST_TIME;
use super::dictionary::{Compression, Dictionary, Unpacking, fetch};
use super::event::Event;
use super::reading::{Reading, read};
use super::request::{Question, Version};
use super::seen::Seen;
use super::wanted::{Filter, Wanted, WantedError};
use crate::firehose::{Begin, Notice, Origin};
use crate::hosts::{Backoff, Chance, HostId, Pace};
use crate::http::Url;
use crate::line::{Dial, Line, Turn};
use crate::websocket::{DialError, DialFault, Dialer, Message, SocketError, SocketOptions, tame};

/// How Jetstreams are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which version is spoken.
    pub version: Version,
    /// Where a host is begun with while nothing is known of any.
    pub first: Begin,
    /// How messages come.
    pub compression: Compression,
    /// How far behind what came last from another host a host is begun with.
    pub rewind: Duration,
    /// How many events are remembered, so as to hand none over twice.
    pub max_seen: usize,
    /// The longest time without a message, pings not counted; without, there is none.
    pub max_quiet: Option<Duration>,
    /// How long it is waited between attempts.
    pub pace: Pace,
    /// What a WebSocket must bear; a message's length counts both before and after it is unpacked.
    pub socket: SocketOptions<'static>,
}

impl Default for Options {
    /// Version 2, live, as text; half a minute behind another host, and 65,536 events remembered; ten
    /// minutes without a message; a WebSocket as by default.
    fn default() -> Self {
        Self {
            version: Version::V2,
            first: Begin::Live,
            compression: Compression::None,
            rewind: Duration::from_secs(30),
            max_seen: 64 << 10,
            max_quiet: Some(Duration::from_secs(600)),
            pace: Pace::default(),
            socket: SocketOptions::default(),
        }
    }
}

/// Follows one Jetstream of several at a time.
///
/// Every event that is wanted is handed over once, as far as it is remembered, and whatever else comes
/// is handed over as it is. While nobody asks for the next one, nothing is read.
#[derive(Debug)]
pub struct Client {
    dialer: Dialer,
    line: Line,
    followed: Vec<Followed>,
    options: Options,
    wanted: Wanted,
    filter: Filter,
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
    ready: VecDeque<Item>,
    failure: Option<ClientError>,
}

/// What was found out while dialing.
#[derive(Debug, Default)]
struct Prepared {
    dictionary: Option<Dictionary>,
    hello: Option<String>,
    /// The wishes with which it was dialed.
    changes: u64,
}

/// The next thing that happened.
#[derive(Clone, Debug)]
pub enum Item {
    /// An event.
    Event(Event),
    /// A message that is no event.
    Strange(Strange),
    /// Something else.
    Notice(Notice),
}

/// A message that is no event.
#[derive(Clone, Debug)]
pub struct Strange {
    /// Who sent it.
    pub host: HostId,
    /// What it says, unpacked if that was possible.
    pub bytes: Bytes,
    /// Why it is no event: a kind that nobody knows here, or a rule that it breaks.
    pub reason: String,
    /// When it came.
    pub received: SystemTime,
}

/// Why nothing more can come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No host is left that would have us.
    #[error("no host is left: {0}")]
    NoHostLeft(DialError),
    /// Messages are compressed with another dictionary.
    #[error("{host} compresses with the dictionary {needed}, which is not the one given")]
    Dictionary {
        /// The host.
        host: String,
        /// The number of the dictionary.
        needed: u32,
    },
}

/// A host and how far it is known.
#[derive(Debug)]
struct Followed {
    url: Url,
    /// The last event that it told, or the cursor of an earlier run.
    cursor: Option<u64>,
    /// When that was told.
    micros: Option<u64>,
    begin: Begin,
    /// The cursor of the last attempt.
    given: Option<u64>,
}

impl Client {
    /// Prepares to follow `origins`, beginning with the first. Nothing happens before
    /// [`next`](Self::next) is called.
    ///
    /// # Errors
    /// If what is wanted may not be asked for.
    ///
    /// # Panics
    /// If there is no origin.
    pub fn new(
        dialer: Dialer,
        origins: &[Origin],
        wanted: Wanted,
        options: Options,
        chance: Chance,
    ) -> Result<Self, WantedError> {
        wanted.check()?;
        let backoff = Backoff::new(options.pace, chance);
        let followed: Vec<_> =
            origins.iter().map(|origin| Followed::new(origin, options.first)).collect();
        let times = followed.iter().enumerate();
        let times = times.filter_map(|(at, followed)| Some((followed.micros?, HostId(at))));
        Ok(Self {
            line: Line::new(origins.len(), backoff, options.max_quiet, LESSONS),
            latest: times.max().map(|(micros, host)| (host, micros)),
            filter: Filter::new(&wanted),
            seen: Seen::new(options.max_seen),
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
    pub async fn next(&mut self) -> Result<Item, ClientError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            if let Some(hello) = self.hello.clone() {
                // If this call is given up, it is said again: the host takes the last word.
                self.line.say(hello).await;
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
                Err(error) => return Err(ClientError::NoHostLeft(error)),
            }
        }
    }

    /// Wants something else from now on. Version 1 is told so over the connection that there is; in
    /// version 2 another one takes its place.
    ///
    /// # Errors
    /// If it may not be asked for; then nothing changes.
    pub fn want(&mut self, wanted: Wanted) -> Result<(), WantedError> {
        wanted.check()?;
        (self.filter, self.wanted) = (Filter::new(&wanted), wanted);
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
            Version::V2 => self.line.hang_up(SocketError::Ended("other wishes".to_owned())),
        }
    }

    /// Ends the connection with a farewell.
    pub async fn close(self) {
        self.line.close().await;
    }

    fn take(&mut self, host: HostId, turn: Turn) {
        match turn {
            Turn::Message(message) => self.hear(host, message),
            Turn::Connected => self.begin(host),
            Turn::Lost(reason) => self.tell(Notice::Disconnected { host, reason }),
            Turn::Refused(error) => self.be_refused(host, error),
            Turn::LeftOut(error) => self.tell(Notice::LeftOut { host, error }),
            Turn::Rotated { from, to } => self.tell(Notice::Rotated { from, to }),
            Turn::Waiting(time) => self.tell(Notice::Waiting { host, time }),
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

    fn hear(&mut self, host: HostId, message: Message) {
        let received = SystemTime::now();
        let text = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Binary(packed) => match self.unpack(&packed) {
                Ok(text) => text,
                Err(Unpacking::Needs(needed)) => return self.fail(host, needed),
                Err(Unpacking::Broken(reason)) => {
                    return self.hand_over(Strange { host, bytes: packed, reason, received });
                }
            },
        };
        match read(self.options.version, host, &text, received) {
            Ok(Reading::Event(event)) => self.arrive(event),
            Ok(Reading::Info { name, message }) => self.hear_info(host, &name, &message),
            Ok(Reading::Error { name, message }) => self.hear_error(host, &name, &message),
            Ok(Reading::Unknown(kind)) => {
                let reason = format!("a message of the unknown kind {:?}", tame(&kind));
                self.hand_over(Strange { host, bytes: text, reason, received });
            }
            Err(reason) => self.hand_over(Strange { host, bytes: text, reason, received }),
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
        self.line.is_fruitful();
        self.note_time(&event);
        if self.filter.wants(&event) {
            self.ready.push_back(Item::Event(event));
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
        let (message, cursor) = (tame(message), self.followed[host.0].given);
        self.tell(match name {
            "OutdatedCursor" => Notice::OutdatedCursor { host, cursor, message },
            _ => Notice::ServerInfo { host, name: tame(name), message },
        });
    }

    fn hear_error(&mut self, host: HostId, name: &str, message: &str) {
        match name {
            FUTURE_CURSOR => self.void_cursor(host, message, Begin::Live),
            "ConsumerTooSlow" => {
                self.tell(Notice::ConsumerTooSlow { host, message: tame(message) });
            }
            _ => {
                let (name, message) = (tame(name), tame(message));
                self.tell(Notice::ServerError { host, name, message });
            }
        }
        self.line.hang_up(SocketError::Ended(tame(name)));
    }

    fn be_refused(&mut self, host: HostId, error: DialError) {
        let name = error.name().unwrap_or_default().to_owned();
        let message = match &error.fault {
            DialFault::Refused(refusal) => refusal.message.clone(),
            _ => String::new(),
        };
        self.tell(Notice::Refused { host, error });
        match &*name {
            FUTURE_CURSOR => self.void_cursor(host, &message, Begin::Live),
            CURSOR_TOO_OLD => self.void_cursor(host, &message, Begin::Oldest),
            _ => {}
        }
    }

    /// The number is of no use to the host: the next attempt is made by time, if one is known.
    fn void_cursor(&mut self, host: HostId, message: &str, begin: Begin) {
        let followed = &mut self.followed[host.0];
        (followed.cursor, followed.micros, followed.begin) = (None, None, begin);
        let (cursor, message) = (followed.given, tame(message));
        self.tell(match begin {
            Begin::Live => Notice::FutureCursor { host, cursor, message },
            Begin::Oldest => Notice::OutdatedCursor { host, cursor, message },
        });
    }

    fn fail(&mut self, host: HostId, needed: u32) {
        let host = self.followed[host.0].url.host_str().unwrap_or_default().to_owned();
        self.failure = Some(ClientError::Dictionary { host, needed });
    }

    fn hand_over(&mut self, strange: Strange) {
        self.ready.push_back(Item::Strange(strange));
    }

    fn tell(&mut self, notice: Notice) {
        self.ready.push_back(Item::Notice(notice));
    }
}

impl Followed {
    fn new(origin: &Origin, begin: Begin) -> Self {
        let micros = origin.cursor.filter(|cursor| *cursor >= LEAST_TIME);
        Self { url: origin.url.clone(), cursor: origin.cursor, micros, begin, given: None }
    }
}

/// The cursor with which a host is asked.
///
/// Numbers are of one host, so another one is asked for the time of what came last, and a little
/// earlier. That time is the one of an event and not of an attempt: however many attempts fail, it does
/// not go back.
fn cursor(
    followed: &[Followed],
    latest: Option<(HostId, u64)>,
    rewind: Duration,
    host: HostId,
) -> Option<u64> {
    let Followed { cursor, micros, begin, .. } = &followed[host.0];
    let rewind = u64::try_from(rewind.as_micros()).unwrap_or(u64::MAX);
    let bound = latest.map(|(_, micros)| micros.saturating_sub(rewind).max(LEAST_TIME));
    let is_another = latest.is_some_and(|(last, _)| last != host);
    match (*cursor, bound) {
        (Some(_), Some(bound)) if is_another && micros.is_none_or(|told| told < bound) => {
            Some(bound)
        }
        (Some(own), _) => Some(own),
        (None, Some(bound)) => Some(bound),
        (None, None) => (*begin == Begin::Oldest).then_some(LEAST_TIME),
    }
}

/// One attempt.
struct Call {
    dialer: Dialer,
    url: Url,
    cursor: Option<u64>,
    wanted: Wanted,
    changes: u64,
    options: Options,
    prepared: Arc<Mutex<Prepared>>,
}

impl Call {
    async fn dial(self) -> Result<crate::websocket::Socket, DialError> {
        let version = self.options.version;
        let dictionary = self.dictionary().await?;
        let id = dictionary.as_ref().map(|dictionary| dictionary.id);
        let (wanted, cursor) = (&self.wanted, self.cursor);
        let request = Question { version, wanted, cursor, dictionary: id }.to_request(&self.url);
        let protocol = (version == Version::V2).then_some(V2_PROTOCOL);
        let socket = SocketOptions { protocol, ..self.options.socket };
        let socket = self.dialer.dial(&request.url, &socket).await?;
        let prepared = Prepared { dictionary, hello: request.hello, changes: self.changes };
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = prepared;
        Ok(socket)
    }

    async fn dictionary(&self) -> Result<Option<Dictionary>, DialError> {
        match &self.options.compression {
            Compression::None => Ok(None),
            Compression::Served(id) => fetch(self.dialer.client(), &self.url, *id).await.map(Some),
            Compression::Given(bytes) => {
                let host = self.url.host_str().unwrap_or_default().to_owned();
                let fault = DialFault::Handshake("what was given is no dictionary");
                Dictionary::new(bytes).map(Some).ok_or(DialError { host, fault })
            }
        }
    }
}

/// Refusals after which something else is asked.
const LESSONS: &[&str] = &[FUTURE_CURSOR, CURSOR_TOO_OLD, "UnknownZstdDictionary"];
const FUTURE_CURSOR: &str = "FutureCursor";
const CURSOR_TOO_OLD: &str = "CursorTooOld";
const V2_PROTOCOL: &str = "xrpc.v1.json";
