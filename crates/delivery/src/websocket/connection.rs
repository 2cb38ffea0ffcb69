//! A connection after its handshake: it sends the events of a consumer, and passes the client's acknowledgements on.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::StopSignal;
use net::websocket_server::{Readiness, Socket, SocketEnd};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::handles::{HandleLookups, LookedUpHandle};
use super::handshake::Client;
use super::messages::Protocol;
use super::options::{WebSocketMetrics, WebSocketOptions};
use super::schedule::{Acked, Schedule, ScheduleLimits};
use crate::consumer::Consumer;
use crate::error::OutboxError;
use crate::event::Event;

/// A connection of a client.
pub(super) struct Connection {
    socket: Socket,
    protocol: Protocol,
    consumer: Consumer,
    client: Arc<Client>,
    handles: HandleLookups,
    schedule: Schedule,
    options: Arc<WebSocketOptions>,
    metrics: Arc<WebSocketMetrics>,
    last_ping: Instant,
    /// When nothing was in flight, or something was acknowledged.
    last_progress: Instant,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum ConnectionEnd {
    #[error(transparent)]
    Socket(#[from] SocketEnd),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    #[error("the run ends")]
    Stopped,
}

impl Connection {
    pub(super) fn new(
        socket: Socket,
        (protocol, consumer, client): (Protocol, Consumer, Arc<Client>),
        handles: HandleLookups,
        options: Arc<WebSocketOptions>,
        metrics: Arc<WebSocketMetrics>,
    ) -> Self {
        let schedule = Schedule::new(ScheduleLimits {
            max_in_flight: options.max_in_flight,
            max_events: options.max_events,
            max_bytes: options.max_bytes,
        });
        let (last_ping, last_progress) = (Instant::now(), Instant::now());
        Self {
            socket,
            protocol,
            consumer,
            client,
            handles,
            schedule,
            options,
            metrics,
            last_ping,
            last_progress,
        }
    }

    /// Serves the client until it leaves, breaks a rule, or a stop is requested.
    ///
    /// # Errors
    /// If the outbox fails.
    pub(super) async fn run(mut self, stop: &StopSignal) -> Result<(), OutboxError> {
        let end = match self.serve(stop).await {
            Err(ConnectionEnd::Stopped) => self.settle().await,
            other => other,
        };
        let end = end.err().unwrap_or(ConnectionEnd::Stopped);
        self.close(end).await
    }

    async fn serve(&mut self, stop: &StopSignal) -> Result<(), ConnectionEnd> {
        let mut tick = self.tick();
        let client = self.client.clone();
        let (stopped, gives_way) = (stop.requested(), client.gives_way.requested());
        tokio::pin!(stopped, gives_way);
        loop {
            let has_room = self.schedule.has_room();
            tokio::select! {
                biased;
                () = &mut stopped => return Err(ConnectionEnd::Stopped),
                () = &mut gives_way => return Err(SocketEnd::Violation(STALLED).into()),
                _ = tick.tick() => self.check_times()?,
                ready = self.socket.wait(self.schedule.has_ready()) => self.progress(ready?)?,
                found = self.handles.next() => self.add_handle(found)?,
                events = self.consumer.next_events(), if has_room => self.add(&events?)?,
            }
        }
    }

    /// Sends nothing more, and waits a while for the acknowledgements of sent messages.
    async fn settle(&mut self) -> Result<(), ConnectionEnd> {
        let limit = self.options.stop_timeout;
        let wait = async {
            while !self.schedule.is_settled() {
                if let Readiness::Received(text) = self.socket.wait(false).await? {
                    self.receive(text)?;
                }
            }
            Ok(())
        };
        tokio::time::timeout(limit, wait).await.unwrap_or(Ok(()))
    }

    fn progress(&mut self, readiness: Readiness) -> Result<(), ConnectionEnd> {
        match readiness {
            Readiness::Received(text) => self.receive(text)?,
            Readiness::Writable => {}
        }
        self.send()
    }

    fn send(&mut self) -> Result<(), ConnectionEnd> {
        let (now, mut count) = (Instant::now(), 0);
        let schedule = &mut self.schedule;
        let sent =
            self.socket.send(|| schedule.next(now).inspect(|_| count += 1).map(Message::Text));
        self.metrics.sent.fetch_add(count, Relaxed);
        Ok(sent?)
    }

    /// Adds events of the outbox. Those without a message are acknowledged.
    fn add(&mut self, events: &[Event]) -> Result<(), ConnectionEnd> {
        let mut skipped = Vec::new();
        for event in events {
            let outgoing = self.protocol.messages(event, None).map_err(SocketEnd::Violation)?;
            match outgoing.messages.is_empty() {
                true => skipped.push(event.position()),
                false if outgoing.names_handle && self.handles.start(event) => {
                    self.schedule.add_awaited(event.account(), outgoing);
                }
                false => self.schedule.add(event.account(), outgoing),
            }
        }
        self.consumer.acknowledge(skipped)?;
        self.send()
    }

    /// Sends the message of an account whose handle was looked up.
    fn add_handle(&mut self, found: LookedUpHandle) -> Result<(), ConnectionEnd> {
        let LookedUpHandle { event, handle } = found;
        let outgoing = self.protocol.messages(&event, handle.as_deref());
        self.schedule.replace(event.account(), outgoing.map_err(SocketEnd::Violation)?);
        self.send()
    }

    /// Records the acknowledgements of a message and of messages that have arrived with it, even if the connection has
    /// ended after them.
    fn receive(&mut self, first: Utf8Bytes) -> Result<(), ConnectionEnd> {
        let mut completed = Vec::new();
        let received = self.complete(first, &mut completed);
        self.consumer.acknowledge(completed)?;
        Ok(received?)
    }

    fn complete(&mut self, first: Utf8Bytes, completed: &mut Vec<u64>) -> Result<(), SocketEnd> {
        let mut next = Some(Ok(first));
        while let Some(text) = next {
            for id in self.protocol.acknowledged(&text?).map_err(SocketEnd::Violation)? {
                let acked = self.schedule.acknowledge(&id);
                if !matches!(acked, Acked::Unknown) {
                    self.last_progress = Instant::now();
                }
                let count = match acked {
                    Acked::Unknown => &self.metrics.ignored,
                    Acked::Message => &self.metrics.acknowledged,
                    Acked::Event(position) => {
                        completed.push(position);
                        &self.metrics.acknowledged
                    }
                };
                count.fetch_add(1, Relaxed);
            }
            next = (completed.len() < MAX_COMPLETED).then(|| self.socket.next_ready()).flatten();
        }
        Ok(())
    }

    fn check_times(&mut self) -> Result<(), ConnectionEnd> {
        let now = Instant::now();
        if self.socket.is_dead(now, self.options.idle_timeout) {
            return Err(SocketEnd::Violation("no byte sent or taken for too long").into());
        }
        if self.schedule.is_settled() {
            self.last_progress = now;
        }
        let is_stalled = now.duration_since(self.last_progress) >= self.options.ack_timeout;
        self.client.is_stalled.store(is_stalled, Relaxed);
        let repeated = self.schedule.repeat_overdue(now, self.options.ack_timeout);
        self.metrics.repeated.fetch_add(repeated as u64, Relaxed);
        if now >= self.last_ping + self.options.idle_timeout / 3 {
            self.last_ping = now;
            self.socket.ping()?;
        }
        Ok(())
    }

    fn tick(&self) -> Interval {
        let period = (self.options.ack_timeout.min(self.options.idle_timeout) / 4).min(MAX_TICK);
        let mut tick = interval(period.max(MIN_TICK));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick
    }

    /// Ends the connection. A client of tap continues after an end without a close frame only, and so gets none.
    async fn close(self, end: ConnectionEnd) -> Result<(), OutboxError> {
        let (code, reason) = match &end {
            ConnectionEnd::Socket(SocketEnd::Closed) => return Ok(()),
            ConnectionEnd::Socket(SocketEnd::Violation(rule)) => {
                self.metrics.violations.fetch_add(1, Relaxed);
                (CloseCode::Policy, *rule)
            }
            ConnectionEnd::Outbox(_) => (CloseCode::Error, "the outbox failed"),
            ConnectionEnd::Stopped => (CloseCode::Away, "the run ends"),
        };
        if self.protocol == Protocol::Lines {
            self.socket.close(code, reason).await;
        }
        match end {
            ConnectionEnd::Outbox(error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Why a client is replaced by another one of its consumer.
const STALLED: &str =
    "nothing acknowledged for too long, and another client asks for this consumer";

/// Number of completed events after which they are passed on before more is read.
const MAX_COMPLETED: usize = 4096;

/// Bounds of the interval at which times are checked.
const MIN_TICK: Duration = Duration::from_millis(5);
const MAX_TICK: Duration = Duration::from_secs(1);
