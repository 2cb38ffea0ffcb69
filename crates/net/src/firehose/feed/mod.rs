//! The frames of one of several hosts, in the order in which they come.

mod options;

use std::collections::VecDeque;
use std::time::SystemTime;

use atproto::event::{Decoder, Event, Options as FrameOptions};
use bytes::Bytes;

use super::{FrameKind, Notice, ReceivedFrame, SeqStep, SequenceTracker};
use crate::hosts::{Backoff, HostId, Jitter};
use crate::http::Url;
use crate::reconnecting_socket::{Dial, ReconnectingSocket, SocketEvent};
use crate::websocket::{DialError, Dialer, SocketError, SocketMessage, sanitize};

use options::endpoint;
pub use options::{FeedError, Options, StartFrom, Upstream};

/// Follows one host of several at a time.
///
/// Every message is handed over once, whatever it is, except for the repetition of an event. While
/// nobody asks for the next one, nothing is read, and the host has to wait.
#[derive(Debug)]
pub struct Feed {
    dialer: Dialer,
    line: ReconnectingSocket,
    followed: Vec<Followed>,
    options: Options,
    /// Whether anything is known of any stream, so that another host must not be begun with now.
    has_history: bool,
    /// What is ready to be handed over.
    ready: VecDeque<Item>,
    failure: Option<FeedError>,
}

/// The next thing that happened.
#[derive(Clone, Debug)]
pub enum Item {
    /// A message.
    Frame(ReceivedFrame),
    /// Something else.
    Notice(Notice),
}

/// A host and how far it is known.
#[derive(Debug)]
struct Followed {
    endpoint: Url,
    sequence: SequenceTracker,
    /// Where it is begun with while there is no cursor.
    begin: StartFrom,
    /// Whether it counts anew.
    is_void: bool,
    /// The cursor of the last attempt.
    given: Option<u64>,
}

impl Feed {
    /// Prepares to follow `origins`, beginning with the first. Nothing happens before
    /// [`next`](Self::next) is called.
    ///
    /// # Panics
    /// If there is no origin.
    pub fn new(dialer: Dialer, origins: &[Upstream], options: Options, chance: Jitter) -> Self {
        let backoff = Backoff::new(options.backoff, chance);
        let line = ReconnectingSocket::new(
            origins.len(),
            backoff,
            options.message_timeout,
            &[FUTURE_CURSOR],
        );
        let has_history = origins.iter().any(|origin| origin.cursor.is_some());
        let begin = if has_history { options.start_after_switch } else { options.start };
        let followed = origins.iter().map(|origin| Followed::new(origin, begin)).collect();
        let ready = VecDeque::new();
        Self { dialer, line, followed, options, has_history, ready, failure: None }
    }

    /// The next thing that happened. A call that is given up loses nothing.
    ///
    /// # Errors
    /// If nothing more can come.
    pub async fn next(&mut self) -> Result<Item, FeedError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            let (dialer, followed, options) = (&self.dialer, &mut self.followed, &self.options);
            let dial = |host: HostId| followed[host.0].dial(dialer, options);
            match self.line.next(dial).await {
                Ok((host, turn)) => self.take(host, turn),
                Err(error) => return Err(FeedError::NoHostLeft(error)),
            }
        }
    }

    /// Ends the connection with a farewell.
    pub async fn close(self) {
        self.line.close().await;
    }

    fn take(&mut self, host: HostId, turn: SocketEvent) {
        match turn {
            SocketEvent::Message(SocketMessage::Binary(frame)) => self.arrive(host, frame),
            // No text is a frame, and what it is will be said of its bytes.
            SocketEvent::Message(SocketMessage::Text(text)) => self.arrive(host, text.into()),
            SocketEvent::Connected => {
                let cursor = self.followed[host.0].given;
                self.tell(Notice::Connected { host, cursor });
            }
            SocketEvent::Lost(reason) => self.tell(Notice::Disconnected { host, reason }),
            SocketEvent::ConnectFailed(error) => self.be_refused(host, error),
            SocketEvent::HostExcluded(error) => self.tell(Notice::HostExcluded { host, error }),
            SocketEvent::Rotated { from, to } => self.rotate(from, to),
            SocketEvent::RetryScheduled(time) => self.tell(Notice::RetryScheduled { host, time }),
        }
    }

    fn arrive(&mut self, host: HostId, frame: Bytes) {
        let arrival = ReceivedFrame::new(host, frame, SystemTime::now());
        let is_new = arrival.seq.is_none_or(|seq| self.follow(host, seq, &arrival.frame));
        let (kind, frame) = (arrival.kind, arrival.frame.clone());
        if is_new {
            self.ready.push_back(Item::Frame(arrival));
        }
        if matches!(kind, FrameKind::Info | FrameKind::Error) {
            self.hear(host, &frame);
        }
    }

    /// Takes note of a number. Whether its event is new.
    fn follow(&mut self, host: HostId, seq: u64, frame: &[u8]) -> bool {
        let step = self.followed[host.0].sequence.step(seq, frame);
        match step {
            SeqStep::Next => {}
            SeqStep::Gap(after) => self.tell(Notice::Gap { host, after, seq }),
            SeqStep::Repeated => self.tell(Notice::Repeated { host, seq }),
            SeqStep::Reused => self.tell(Notice::Reused { host, seq }),
            SeqStep::Regressed(after) => self.tell(Notice::Regressed { host, after, seq }),
        }
        let is_new = step != SeqStep::Repeated;
        if is_new {
            self.has_history = true;
            self.line.is_fruitful();
        }
        is_new
    }

    /// What the host says of the stream itself.
    fn hear(&mut self, host: HostId, frame: &[u8]) {
        let mut decoder = Decoder::new(FrameOptions::default());
        match decoder.decode(frame) {
            Ok(Event::Info(info)) => self.hear_info(host, info.name, info.message),
            Ok(Event::Error(error)) => self.hear_error(host, error.error, error.message),
            // An error that cannot be read ends the stream all the same.
            _ if matches!(ReceivedFrame::kind_of(frame), FrameKind::Error) => {
                self.hear_error(host, "", None)
            }
            _ => {}
        }
    }

    fn hear_info(&mut self, host: HostId, name: &str, message: Option<&str>) {
        let message = sanitize(message.unwrap_or_default());
        let cursor = self.followed[host.0].given;
        self.tell(match name {
            "OutdatedCursor" => Notice::OutdatedCursor { host, cursor, message },
            _ => Notice::ServerInfo { host, name: sanitize(name), message },
        });
    }

    fn hear_error(&mut self, host: HostId, name: &str, message: Option<&str>) {
        let message = sanitize(message.unwrap_or_default());
        match name {
            FUTURE_CURSOR => self.void_cursor(host, message),
            "ConsumerTooSlow" => self.tell(Notice::ConsumerTooSlow { host, message }),
            _ => self.tell(Notice::ServerError { host, name: sanitize(name), message }),
        }
        self.line.hang_up(SocketError::Ended(sanitize(name)));
    }

    /// The host counts anew: nothing that is known of its numbers holds any more.
    fn void_cursor(&mut self, host: HostId, message: String) {
        let followed = &mut self.followed[host.0];
        let cursor = followed.given;
        followed.sequence = SequenceTracker::default();
        followed.is_void = true;
        match self.options.start_after_reset {
            Some(begin) => followed.begin = begin,
            None => {
                let host = followed.endpoint.host_str().unwrap_or_default().to_owned();
                let cursor = cursor.unwrap_or_default();
                self.failure = Some(FeedError::FutureCursor { host, cursor });
            }
        }
        self.tell(Notice::FutureCursor { host, cursor, message });
    }

    fn be_refused(&mut self, host: HostId, error: DialError) {
        let is_future = error.name() == Some(FUTURE_CURSOR);
        self.tell(Notice::ConnectFailed { host, error });
        if is_future {
            self.void_cursor(host, String::new());
        }
    }

    fn rotate(&mut self, from: HostId, to: HostId) {
        if self.has_history && !self.followed[to.0].is_void {
            self.followed[to.0].begin = self.options.start_after_switch;
        }
        self.tell(Notice::Rotated { from, to });
    }

    fn tell(&mut self, notice: Notice) {
        self.ready.push_back(Item::Notice(notice));
    }
}

impl Followed {
    fn new(origin: &Upstream, begin: StartFrom) -> Self {
        Self {
            endpoint: endpoint(&origin.url),
            sequence: SequenceTracker::new(origin.cursor),
            begin,
            is_void: false,
            given: None,
        }
    }

    fn dial(&mut self, dialer: &Dialer, options: &Options) -> Dial {
        self.given = self.sequence.cursor().or((self.begin == StartFrom::Oldest).then_some(0));
        let mut url = self.endpoint.clone();
        if let Some(cursor) = self.given {
            url.query_pairs_mut().append_pair("cursor", &cursor.to_string());
        }
        let (dialer, socket) = (dialer.clone(), options.socket);
        Box::pin(async move { dialer.dial(&url, &socket).await })
    }
}

const FUTURE_CURSOR: &str = "FutureCursor";
