//! A client of a stream after its handshake.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use archive::ArchiveError;
use base::StopSignal;
use hyper::upgrade::Upgraded;
use net::client_places::ClientPlace;
use net::websocket_server::{Readiness, Socket, SocketEnd};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::form::Form;
use crate::pace::Pace;
use crate::reader::{EventReader, Ready};
use crate::shared::Shared;

/// Where the stream of a client begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the first event that has this number or a later one.
    From(i64),
    /// Likewise, after a notice that earlier events were deleted.
    Outdated { from: i64, by_time: bool },
    /// Nowhere: the cursor is in the future.
    Future,
}

/// A client.
pub(crate) struct Client {
    shared: Arc<Shared>,
    socket: Socket,
    place: ClientPlace,
    form: Form,
    reader: EventReader,
    /// The first number that the client gets.
    from: i64,
    /// The messages that are sent next.
    messages: VecDeque<Message>,
    pace: Pace,
}

/// Why a stream ends.
#[derive(Debug)]
enum End {
    Socket(SocketEnd),
    Stopped,
    GivesWay,
    TooSlow,
    Future,
    Unreadable(ArchiveError),
}

impl From<SocketEnd> for End {
    fn from(end: SocketEnd) -> Self {
        Self::Socket(end)
    }
}

/// The event that a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The socket takes more.
    Socket,
    /// Events arrive.
    Events,
    /// Events are read from files.
    Stored,
    /// The client sends its options.
    Options,
}

impl Client {
    pub(crate) async fn new(
        shared: Arc<Shared>,
        upgraded: Upgraded,
        place: ClientPlace,
        form: Form,
        start: Start,
    ) -> Self {
        let max_message = if matches!(form, Form::Frames) { 4 << 10 } else { MAX_MESSAGE_BYTES };
        let socket = Socket::new(upgraded, max_message).await;
        let from = match start {
            Start::From(from) | Start::Outdated { from, .. } => from,
            Start::Future => i64::MAX,
        };
        // Earlier events are deleted, except for the commit that has the first number.
        let after = form.read_after(from).max(shared.log.floor().min(from - 1));
        let reader = EventReader::new(shared.log.clone(), after);
        let mut messages = VecDeque::new();
        if let Start::Outdated { from, by_time } = start {
            messages.extend(form.outdated(from, by_time));
        }
        Self { shared, socket, place, form, reader, from, messages, pace: Pace::default() }
    }

    /// Serves the client until it leaves, breaks a rule, is too slow, gives way to another one, or a stop is requested.
    pub(crate) async fn run(mut self, stop: &StopSignal) {
        let end = if self.from == i64::MAX { End::Future } else { self.serve(stop).await };
        let counts = self.shared.metrics.form(self.form.index());
        let (code, reason, error) = match end {
            End::Socket(SocketEnd::Closed) => return,
            End::Socket(SocketEnd::Violation(rule)) => {
                counts.dropped.fetch_add(1, Relaxed);
                return self.socket.close(CloseCode::Policy, rule).await;
            }
            End::Stopped => return self.socket.close(CloseCode::Away, "the server ends").await,
            End::GivesWay => {
                counts.gave_way.fetch_add(1, Relaxed);
                return self.socket.close(CloseCode::Again, "another client needs the place").await;
            }
            End::TooSlow => {
                counts.too_slow.fetch_add(1, Relaxed);
                let why = "the client reads more slowly than events are deleted or arrive";
                (CloseCode::Policy, "ConsumerTooSlow", self.form.error("ConsumerTooSlow", why))
            }
            End::Future => {
                let error = self.form.error("FutureCursor", "Cursor in the future.");
                (CloseCode::Policy, "FutureCursor", error)
            }
            End::Unreadable(why) => {
                tracing::warn!(target: "wireproof::serve", "a client is disconnected: {why}");
                (CloseCode::Error, "stored events cannot be read", None)
            }
        };
        // A client that reads nothing does not get it.
        let mut error = error;
        let _ = self.socket.send(|| error.take());
        let idle_timeout = self.shared.options.idle_timeout;
        tokio::select! {
            () = stop.requested() => {}
            _ = self.socket.finish(code, reason, idle_timeout.min(FINISH_TIMEOUT)) => {}
        }
    }

    async fn serve(&mut self, stop: &StopSignal) -> End {
        match self.send_all(stop).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn send_all(&mut self, stop: &StopSignal) -> Result<std::convert::Infallible, End> {
        let idle_timeout = self.shared.options.idle_timeout;
        let mut tick = interval((idle_timeout / 4).clamp(MIN_TICK, MAX_TICK));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_ping = Instant::now();
        let mut stored = self.shared.beat.subscribe();
        let (stopped, place) = (stop.requested(), self.place.gives_way());
        let gives_way = place.requested();
        tokio::pin!(stopped, gives_way);
        loop {
            // Marked before events are read: a later one wakes the client.
            stored.mark_unchanged();
            let wait = self.send()?;
            tokio::select! {
                biased;
                () = &mut stopped => return Err(End::Stopped),
                () = &mut gives_way => return Err(End::GivesWay),
                _ = tick.tick() => {
                    let now = Instant::now();
                    if self.socket.is_dead(now, idle_timeout) {
                        return Err(SocketEnd::Violation("no byte sent or taken for too long").into());
                    }
                    if now >= last_ping + idle_timeout / 3 {
                        last_ping = now;
                        self.socket.ping()?;
                    }
                    let behind = micros_between(self.reader.position(), *stored.borrow());
                    if self.pace.is_too_slow(now, behind, !self.messages.is_empty()) {
                        return Err(End::TooSlow);
                    }
                }
                ready = self.socket.wait(wait == Wait::Socket) => {
                    if let Readiness::Received(message) = ready? {
                        self.form.receive(&message).map_err(SocketEnd::Violation)?;
                    }
                }
                changed = stored.changed(), if wait == Wait::Events => {
                    changed.map_err(|_| End::Stopped)?;
                }
                events = self.reader.stored(), if wait == Wait::Stored => {
                    let events = events.map_err(End::Unreadable)?;
                    events.iter().for_each(|event| self.form.push(event, self.from, &mut self.messages));
                }
            }
        }
    }

    /// Sends until the client takes no more, and returns the event that it waits for.
    fn send(&mut self) -> Result<Wait, End> {
        if !self.form.is_ready() {
            return Ok(Wait::Options);
        }
        for _ in 0..MAX_BATCHES {
            if !self.send_messages()? {
                return Ok(Wait::Socket);
            }
            match self.reader.ready() {
                Ready::Events(events) => {
                    events
                        .iter()
                        .for_each(|event| self.form.push(event, self.from, &mut self.messages));
                }
                Ready::UpToDate => return Ok(Wait::Events),
                Ready::Stored => return Ok(Wait::Stored),
                Ready::Deleted => return Err(End::TooSlow),
            }
        }
        // Others have their turn.
        Ok(Wait::Socket)
    }

    /// Sends the messages that are there; whether the client took all of them.
    fn send_messages(&mut self) -> Result<bool, SocketEnd> {
        let (mut count, mut bytes) = (0, 0);
        let messages = &mut self.messages;
        self.socket.send(|| {
            let message = messages.pop_front()?;
            (count, bytes) = (count + 1, bytes + message.len() as u64);
            Some(message)
        })?;
        if count > 0 {
            self.place.note_taken();
            self.pace.note_taken(count);
            let counts = self.shared.metrics.form(self.form.index());
            counts.sent.fetch_add(count, Relaxed);
            counts.sent_bytes.fetch_add(bytes, Relaxed);
        }
        Ok(self.messages.is_empty())
    }
}

fn micros_between(earlier: i64, later: i64) -> Duration {
    Duration::from_micros(u64::try_from(later.saturating_sub(earlier)).unwrap_or_default())
}

/// Maximum number of batches that are sent before other clients have their turn.
const MAX_BATCHES: usize = 16;

/// Maximum size of a message of a client in bytes: of the options of a Jetstream.
const MAX_MESSAGE_BYTES: usize = crate::jetstream::request::MAX_CLIENT_MESSAGE_BYTES;

/// Maximum time in which a client takes the last messages of its stream.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// Bounds of the interval at which times are checked.
const MIN_TICK: Duration = Duration::from_millis(5);
const MAX_TICK: Duration = Duration::from_secs(1);
