//! A connection after its handshake: it sends the events of a feed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use atproto::event::{ErrorFrame, Event, Info};
use base::StopSignal;
use hyper::upgrade::Upgraded;
use net::client_places::ClientPlace;
use net::websocket_server::{Socket, SocketEnd};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::feed::{self, Item};
use super::shared::Shared;
use crate::replay::ReplayedEvent;

/// A connection of a client.
pub(super) struct Connection {
    socket: Socket,
    items: Receiver<Item>,
    shared: Arc<Shared>,
    place: ClientPlace,
    /// The message that is sent next.
    next: Option<Message>,
    /// How the stream ends, once all messages are sent.
    end: Option<StreamEnd>,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    Complete,
    Future,
    Failed,
}

/// Why a connection ends.
enum ConnectionEnd {
    Socket(SocketEnd),
    Stream(StreamEnd),
    GivesWay,
    Stopped,
}

impl From<SocketEnd> for ConnectionEnd {
    fn from(end: SocketEnd) -> Self {
        Self::Socket(end)
    }
}

impl Connection {
    /// The connection of a client, with its place and its cursor.
    pub(super) async fn new(
        shared: Arc<Shared>,
        upgraded: Upgraded,
        place: ClientPlace,
        cursor: Option<i64>,
    ) -> Self {
        let socket = Socket::new(upgraded, MAX_MESSAGE_BYTES).await;
        let (sender, items) = channel(MAX_READ_AHEAD);
        // It ends when the receiver is dropped.
        tokio::spawn(feed::run(shared.clone(), cursor, sender));
        Self { socket, items, shared, place, next: None, end: None }
    }

    /// Serves the client until it leaves, breaks a rule, has all events, gives way to another one, or a stop is requested.
    pub(super) async fn run(mut self, stop: &StopSignal) {
        let idle_timeout = self.shared.options.idle_timeout;
        let (code, reason) = match self.serve(stop).await {
            ConnectionEnd::Socket(SocketEnd::Closed) => return,
            ConnectionEnd::Socket(SocketEnd::Violation(rule)) => {
                self.shared.metrics.dropped.fetch_add(1, Relaxed);
                return self.socket.close(CloseCode::Policy, rule).await;
            }
            ConnectionEnd::GivesWay => {
                self.shared.metrics.gave_way.fetch_add(1, Relaxed);
                return self.socket.close(CloseCode::Again, GIVES_WAY).await;
            }
            ConnectionEnd::Stopped => {
                return self.socket.close(CloseCode::Away, "the server ends").await;
            }
            ConnectionEnd::Stream(StreamEnd::Complete) => (CloseCode::Normal, "all was sent"),
            ConnectionEnd::Stream(StreamEnd::Future) => (CloseCode::Normal, "FutureCursor"),
            ConnectionEnd::Stream(StreamEnd::Failed) => {
                (CloseCode::Error, "the archive cannot be read")
            }
        };
        let has_all = self.end == Some(StreamEnd::Complete);
        let is_taken = tokio::select! {
            () = stop.requested() => false,
            is_taken = self.socket.finish(code, reason, idle_timeout) => is_taken,
        };
        if has_all && is_taken {
            self.shared.metrics.completed.fetch_add(1, Relaxed);
        }
    }

    async fn serve(&mut self, stop: &StopSignal) -> ConnectionEnd {
        match self.send_all(stop).await {
            Ok(end) => ConnectionEnd::Stream(end),
            Err(end) => end,
        }
    }

    async fn send_all(&mut self, stop: &StopSignal) -> Result<StreamEnd, ConnectionEnd> {
        let idle_timeout = self.shared.options.idle_timeout;
        let mut tick = interval((idle_timeout / 4).clamp(MIN_TICK, MAX_TICK));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_ping = Instant::now();
        let stopped = stop.requested();
        let place = self.place.gives_way();
        let gives_way = place.requested();
        tokio::pin!(stopped, gives_way);
        loop {
            if let (None, Some(end)) = (&self.next, self.end) {
                return Ok(end);
            }
            let is_free = self.next.is_none();
            tokio::select! {
                biased;
                () = &mut stopped => return Err(ConnectionEnd::Stopped),
                () = &mut gives_way => return Err(ConnectionEnd::GivesWay),
                _ = tick.tick() => {
                    let now = Instant::now();
                    if self.socket.is_dead(now, idle_timeout) {
                        return Err(SocketEnd::Violation("no byte sent or taken for too long").into());
                    }
                    if now >= last_ping + idle_timeout / 3 {
                        last_ping = now;
                        self.socket.ping()?;
                    }
                }
                // Messages of a client have no meaning here.
                ready = self.socket.wait(!is_free) => {
                    ready?;
                    self.send()?;
                }
                item = self.items.recv(), if is_free => {
                    // The feed is gone with the server.
                    let item = item.ok_or(ConnectionEnd::Stopped)?;
                    self.next = self.message(item);
                    self.send()?;
                }
            }
        }
    }

    /// Sends the available items, as long as the client reads.
    fn send(&mut self) -> Result<(), SocketEnd> {
        let mut batch = Vec::new();
        loop {
            if self.next.is_none() {
                self.next = self.next_message();
            }
            let Some(message) = self.next.take() else { return Ok(()) };
            batch.push(message);
            self.socket.send(|| batch.pop())?;
            if let Some(message) = batch.pop() {
                self.next = Some(message);
                return Ok(());
            }
            self.place.note_taken();
        }
    }

    /// The next message, if it is there.
    fn next_message(&mut self) -> Option<Message> {
        while self.end.is_none() {
            let item = self.items.try_recv().ok()?;
            if let Some(message) = self.message(item) {
                return Some(message);
            }
        }
        None
    }

    /// The message of an item; `None` for hidden items, and for an end without a message.
    fn message(&mut self, item: Item) -> Option<Message> {
        match item {
            Item::Event(event) => self.event(&event),
            Item::Outdated => {
                let message = Some("Requested cursor exceeded limit. Possibly missing events");
                Some(frame(&Event::Info(Info { name: "OutdatedCursor", message })))
            }
            Item::Future => {
                self.end = Some(StreamEnd::Future);
                let message = Some("Cursor in the future.");
                Some(frame(&Event::Error(ErrorFrame { error: "FutureCursor", message })))
            }
            Item::End => {
                self.end = Some(StreamEnd::Complete);
                None
            }
            Item::Failed => {
                self.end = Some(StreamEnd::Failed);
                None
            }
        }
    }

    fn event(&self, replayed: &ReplayedEvent) -> Option<Message> {
        // It may have been hidden since it was read.
        if self.shared.view.borrow().hidden.hides(&replayed.event()) {
            return None;
        }
        let message = match &self.shared.lines {
            Some(write) => Message::text(write(replayed)?),
            None => Message::binary(replayed.renumbered_frame()?),
        };
        self.shared.metrics.sent.fetch_add(1, Relaxed);
        self.shared.metrics.sent_bytes.fetch_add(message.len() as u64, Relaxed);
        Some(message)
    }
}

fn frame(event: &Event<'_>) -> Message {
    Message::binary(event.to_frame())
}

/// Why a client that took nothing for longest is disconnected.
const GIVES_WAY: &str = "another client needs the place";

/// Events that are read before the client takes them: references to them.
const MAX_READ_AHEAD: usize = 16;

/// Maximum size of a message of a client.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Bounds of the interval at which times are checked.
const MIN_TICK: Duration = Duration::from_millis(5);
const MAX_TICK: Duration = Duration::from_secs(1);
