//! How does a connection to one of several hosts stay up?
//!
//! A [`ReconnectingSocket`] dials, waits, goes to the next host and says what it does; what is asked for, with which
//! cursor, its owner says anew for each attempt.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::hosts::{Backoff, HostId, Hosts};
use crate::websocket::{DialError, Socket, SocketError, SocketMessage};

/// A connection that is being made.
pub(crate) type Dial = Pin<Box<dyn Future<Output = Result<Socket, DialError>> + Send>>;

/// A connection to one of several hosts.
pub(crate) struct ReconnectingSocket {
    hosts: Hosts,
    backoff: Backoff,
    /// Refusals by which the owner learns to ask for something else, whatever their status.
    lessons: &'static [&'static str],
    message_timeout: Option<Duration>,
    state: State,
    /// What has happened and was not told yet.
    turns: VecDeque<(HostId, SocketEvent)>,
}

enum State {
    Resting(Instant),
    Dialing(Dial),
    Open(Open),
    Over(DialError),
}

struct Open {
    socket: Box<Socket>,
    since: Instant,
    /// Since when a message has been waited for; while none is, silence is not the host's.
    waiting: Option<Instant>,
    /// Whether it has brought something new.
    made_progress: bool,
}

/// What happened on the line.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    Connected,
    Message(SocketMessage),
    Lost(SocketError),
    ConnectFailed(DialError),
    HostExcluded(DialError),
    Rotated { from: HostId, to: HostId },
    RetryScheduled(Duration),
}

impl ReconnectingSocket {
    pub(crate) fn new(
        hosts: usize,
        backoff: Backoff,
        message_timeout: Option<Duration>,
        lessons: &'static [&'static str],
    ) -> Self {
        Self {
            hosts: Hosts::new(hosts),
            backoff,
            lessons,
            message_timeout,
            state: State::Resting(Instant::now()),
            turns: VecDeque::new(),
        }
    }

    /// What happens next, and to which host; a rotation happens to the new one. A call that is given up loses nothing.
    ///
    /// # Errors
    /// If no host is left: why the last one was left out.
    pub(crate) async fn next(
        &mut self,
        mut dial: impl FnMut(HostId) -> Dial,
    ) -> Result<(HostId, SocketEvent), DialError> {
        loop {
            if let Some(turn) = self.turns.pop_front() {
                return Ok(turn);
            }
            match &mut self.state {
                State::Resting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Dialing(dial(self.hosts.current()));
                }
                State::Dialing(dial) => match dial.await {
                    Ok(socket) => self.open(socket),
                    Err(error) => self.miss(error),
                },
                State::Open(open) => match open.next(self.message_timeout).await {
                    Ok(message) => {
                        return Ok((self.hosts.current(), SocketEvent::Message(message)));
                    }
                    Err(error) => self.disconnect(error),
                },
                State::Over(error) => return Err(error.clone()),
            }
        }
    }

    /// The connection has brought something new.
    pub(crate) fn record_progress(&mut self) {
        if let State::Open(open) = &mut self.state {
            open.made_progress = true;
        }
        self.hosts.record_success();
    }

    /// Says a text over the connection, if there is one. That it breaks is found when it is read.
    pub(crate) async fn say(&mut self, text: String) {
        if let State::Open(open) = &mut self.state
            && let Err(error) = open.socket.send_text(text).await
        {
            self.disconnect(error);
        }
    }

    /// Ends the connection, if there is one, for this reason.
    pub(crate) fn disconnect(&mut self, reason: SocketError) {
        let State::Open(open) = &self.state else { return };
        let (held, made_progress) = (open.since.elapsed(), open.made_progress);
        self.tell(SocketEvent::Lost(reason));
        match made_progress {
            true => self.backoff.connection_ended(held),
            false => drop(self.fail()),
        }
        self.rest(Duration::ZERO);
    }

    /// Ends the line with a farewell.
    pub(crate) async fn close(self) {
        if let State::Open(open) = self.state {
            open.socket.close().await;
        }
    }

    fn open(&mut self, socket: Socket) {
        let (socket, now) = (Box::new(socket), Instant::now());
        self.state = State::Open(Open { socket, since: now, waiting: None, made_progress: false });
        self.tell(SocketEvent::Connected);
    }

    /// There is no connection.
    fn miss(&mut self, error: DialError) {
        let is_lesson = error.name().is_some_and(|name| self.lessons.contains(&name));
        let asked = error.retry_after().unwrap_or_default();
        if !is_lesson && !error.is_retryable() {
            return self.exclude(error);
        }
        self.tell(SocketEvent::ConnectFailed(error));
        // Whoever wants to be left alone for so long is not waited for while there are others.
        match self.backoff.exceeds_max(asked) {
            true if self.advance(Hosts::advance) => self.rest(Duration::ZERO),
            _ if self.fail() => self.rest(Duration::ZERO),
            _ => self.rest(asked),
        }
    }

    fn exclude(&mut self, error: DialError) {
        self.tell(SocketEvent::HostExcluded(error.clone()));
        match self.advance(Hosts::exclude) {
            true => self.rest(Duration::ZERO),
            false => self.state = State::Over(error),
        }
    }

    /// Counts an attempt that brought nothing. Whether the next one is made elsewhere.
    fn fail(&mut self) -> bool {
        self.advance(Hosts::record_failure)
    }

    fn advance(&mut self, step: impl FnOnce(&mut Hosts) -> Option<HostId>) -> bool {
        let from = self.hosts.current();
        let Some(to) = step(&mut self.hosts) else { return false };
        self.tell(SocketEvent::Rotated { from, to });
        true
    }

    fn tell(&mut self, turn: SocketEvent) {
        self.turns.push_back((self.hosts.current(), turn));
    }

    fn rest(&mut self, least: Duration) {
        let wait = self.backoff.next_delay(least);
        self.tell(SocketEvent::RetryScheduled(wait));
        self.state = State::Resting(Instant::now() + wait);
    }
}

impl Open {
    async fn next(
        &mut self,
        message_timeout: Option<Duration>,
    ) -> Result<SocketMessage, SocketError> {
        let waiting = *self.waiting.get_or_insert_with(Instant::now);
        let message = match message_timeout {
            None => self.socket.next().await?,
            Some(quiet) => {
                let next = timeout_at(waiting + quiet, self.socket.next()).await;
                next.map_err(|_| SocketError::NoMessage(quiet))??
            }
        };
        self.waiting = None;
        Ok(message)
    }
}

impl std::fmt::Debug for ReconnectingSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Resting(_) => "resting",
            State::Dialing(_) => "dialing",
            State::Open(_) => "open",
            State::Over(_) => "over",
        };
        write!(f, "line to {:?}, {state}", self.hosts.current())
    }
}
