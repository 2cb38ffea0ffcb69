//! A WebSocket to one of several hosts that reconnects with backoff, and switches hosts after failures.
//!
//! The owner of a [`ReconnectingSocket`] makes the request of every attempt, as its cursor changes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use crate::hosts::{Backoff, HostId, Hosts};
use crate::websocket::{DialError, Socket, SocketError, SocketMessage};

/// A connection attempt.
pub type Dial = Pin<Box<dyn Future<Output = Result<Socket, DialError>> + Send>>;

/// A WebSocket to one of several hosts.
pub struct ReconnectingSocket {
    hosts: Hosts,
    backoff: Backoff,
    /// Errors after which the owner changes its request: they are retried soon whatever their status.
    retried: &'static [&'static str],
    message_timeout: Option<Duration>,
    state: State,
    /// Events to return next.
    events: VecDeque<(HostId, SocketEvent)>,
}

enum State {
    Waiting(Instant),
    Dialing(Dial),
    Open(Open),
    Ended(DialError),
}

struct Open {
    socket: Box<Socket>,
    since: Instant,
    /// Start of the wait for a message; `None` while the owner does not wait.
    waiting: Option<Instant>,
    /// Whether anything new was received.
    made_progress: bool,
}

/// An event of the socket.
#[derive(Debug)]
pub enum SocketEvent {
    Connected,
    Message(SocketMessage),
    Lost(SocketError),
    ConnectFailed(DialError),
    HostExcluded(DialError),
    Rotated { from: HostId, to: HostId },
    RetryScheduled(Duration),
}

impl ReconnectingSocket {
    pub fn new(
        hosts: usize,
        backoff: Backoff,
        message_timeout: Option<Duration>,
        retried: &'static [&'static str],
    ) -> Self {
        Self {
            hosts: Hosts::new(hosts),
            backoff,
            retried,
            message_timeout,
            state: State::Waiting(Instant::now()),
            events: VecDeque::new(),
        }
    }

    /// Waits for the next event, and returns its host; for a rotation, the new one. Cancel-safe.
    ///
    /// # Errors
    /// If every host is excluded: the reason for the last one.
    pub async fn next(
        &mut self,
        mut dial: impl FnMut(HostId) -> Dial,
    ) -> Result<(HostId, SocketEvent), DialError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            match &mut self.state {
                State::Waiting(until) => {
                    sleep_until(*until).await;
                    self.state = State::Dialing(dial(self.hosts.current()));
                }
                State::Dialing(dial) => match dial.await {
                    Ok(socket) => self.open(socket),
                    Err(error) => self.connect_failed(error),
                },
                State::Open(open) => match open.next(self.message_timeout).await {
                    Ok(message) => {
                        return Ok((self.hosts.current(), SocketEvent::Message(message)));
                    }
                    Err(error) => self.disconnect(error),
                },
                State::Ended(error) => return Err(error.clone()),
            }
        }
    }

    /// Records that the connection brought something new.
    pub fn record_progress(&mut self) {
        if let State::Open(open) = &mut self.state {
            open.made_progress = true;
        }
        self.hosts.record_success();
    }

    /// Sends a text, if there is a connection.
    pub async fn send_text(&mut self, text: String) {
        if let State::Open(open) = &mut self.state
            && let Err(error) = open.socket.send_text(text).await
        {
            self.disconnect(error);
        }
    }

    /// Ends the connection, if there is one, with this reason.
    pub fn disconnect(&mut self, reason: SocketError) {
        let State::Open(open) = &self.state else { return };
        let (held, made_progress) = (open.since.elapsed(), open.made_progress);
        self.emit(SocketEvent::Lost(reason));
        if made_progress {
            self.backoff.connection_ended(held)
        } else {
            let _ = self.fail();
        }
        self.schedule_retry(Duration::ZERO);
    }

    /// Closes the connection with a close frame.
    pub async fn close(self) {
        if let State::Open(open) = self.state {
            open.socket.close().await;
        }
    }

    fn open(&mut self, socket: Socket) {
        let (socket, now) = (Box::new(socket), Instant::now());
        self.backoff.connection_accepted();
        self.state = State::Open(Open { socket, since: now, waiting: None, made_progress: false });
        self.emit(SocketEvent::Connected);
    }

    /// Handles a failed attempt.
    fn connect_failed(&mut self, error: DialError) {
        let is_retried = error.name().is_some_and(|name| self.retried.contains(&name));
        let is_refusal = !is_retried && error.is_refusal();
        let requested = error.retry_after().unwrap_or_default();
        if !is_retried && !error.is_retryable() {
            return self.exclude(error);
        }
        self.emit(SocketEvent::ConnectFailed(error));
        if is_refusal {
            return self.refused(requested);
        }
        // A host that requests a long delay is skipped while there are others.
        match self.backoff.exceeds_max(requested) {
            true if self.advance(Hosts::advance) => self.schedule_retry(Duration::ZERO),
            _ if self.fail() => self.schedule_retry(Duration::ZERO),
            _ => self.schedule_retry(requested),
        }
    }

    /// Handles a refusal: the hosts that have not refused come first, then all after a growing delay.
    fn refused(&mut self, requested: Duration) {
        if self.advance(Hosts::refuse) {
            return self.schedule_retry(Duration::ZERO);
        }
        let delay = self.backoff.next_delay_after_refusal(requested);
        self.advance(Hosts::advance);
        self.wait(delay);
    }

    fn exclude(&mut self, error: DialError) {
        self.emit(SocketEvent::HostExcluded(error.clone()));
        if self.advance(Hosts::exclude) {
            self.schedule_retry(Duration::ZERO)
        } else {
            self.state = State::Ended(error)
        }
    }

    /// Records a failure. Whether the socket switched to another host.
    fn fail(&mut self) -> bool {
        self.advance(Hosts::record_failure)
    }

    fn advance(&mut self, step: impl FnOnce(&mut Hosts) -> Option<HostId>) -> bool {
        let from = self.hosts.current();
        let Some(to) = step(&mut self.hosts) else { return false };
        self.emit(SocketEvent::Rotated { from, to });
        true
    }

    fn emit(&mut self, event: SocketEvent) {
        self.events.push_back((self.hosts.current(), event));
    }

    fn schedule_retry(&mut self, requested: Duration) {
        let delay = self.backoff.next_delay(requested);
        self.wait(delay);
    }

    fn wait(&mut self, delay: Duration) {
        self.emit(SocketEvent::RetryScheduled(delay));
        self.state = State::Waiting(Instant::now() + delay);
    }
}

impl Open {
    async fn next(
        &mut self,
        message_timeout: Option<Duration>,
    ) -> Result<SocketMessage, SocketError> {
        if let Some(message) = self.socket.next_ready() {
            self.waiting = None;
            return message;
        }
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
            State::Waiting(_) => "waiting",
            State::Dialing(_) => "dialing",
            State::Open(_) => "open",
            State::Ended(_) => "ended",
        };
        write!(f, "socket to {:?}, {state}", self.hosts.current())
    }
}
