//! Streaming a server's events to one reader over a WebSocket, and injecting faults into the stream.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::altered_event;
use super::event_log::{EventLog, LogEntry, LogReader, ReadResult};
use super::fault::{Fault, Faults};
use super::network::NetworkState;
use super::spec::Server;
use crate::random::{Random, Seed};

/// The connection to the reader.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The encoding of events as messages of one kind of stream.
pub(super) trait Encoding: Send {
    /// Appends the messages of an event that the reader subscribes to.
    fn encode(&mut self, entry: &LogEntry, out: &mut Vec<Message>);
    /// Handles a message of the reader.
    fn handle_message(&mut self, message: &Message) -> ControlFlow<()> {
        let _ = message;
        ControlFlow::Continue(())
    }
    /// Whether the reader has sent the messages that it must send before it receives events.
    fn is_ready(&self) -> bool {
        true
    }
    /// The last message before a stream ends with an error.
    fn error_message(&self, name: &str, message: &str) -> Message;
    /// A message of an unknown operation or of an unknown type.
    fn unknown_message(&self, is_operation: bool) -> Message;
    /// A message of these bytes.
    fn raw_message(&self, bytes: Vec<u8>) -> Message;
}

/// A stream to a reader.
pub(super) struct StreamSetup {
    pub(super) network: Arc<NetworkState>,
    pub(super) server: Server,
    /// The first messages.
    pub(super) prelude: Vec<Message>,
    /// At the first event, and listed before the handshake is answered; `None` ends the stream after
    /// the prelude.
    pub(super) reader: Option<LogReader>,
    pub(super) encoding: Box<dyn Encoding>,
    /// Whether the reader has sent a cursor.
    pub(super) has_cursor: bool,
}

/// Streams until either end closes the connection.
pub(super) async fn run(socket: &mut Socket, setup: StreamSetup) {
    let StreamSetup { network, server, prelude, reader, encoding, has_cursor } = setup;
    for message in prelude {
        if socket.send(message).await.is_err() {
            return;
        }
    }
    if let Some((log, reader)) = network.event_log(server).zip(reader) {
        let injector = FaultInjector::new(&network, server, has_cursor);
        let max_backlog = network.spec.max_backlog;
        let streamer = Streamer { log, encoding, injector, reader, max_backlog, is_live: false };
        let pings = pings(network.spec.ping_interval);
        match streamer.run(socket, pings, &network).await {
            StreamEnd::Closed => {}
            StreamEnd::Stalled => std::future::pending().await,
            StreamEnd::Disconnected => return,
        }
    }
    // The reader may take that long to answer the close frame.
    let _ = socket.close(None).await;
    let _ =
        tokio::time::timeout(CLOSE_TIMEOUT, async { while socket.next().await.is_some() {} }).await;
}

fn pings(every: Duration) -> Interval {
    let every = every.max(Duration::from_millis(1));
    let mut pings = interval_at(Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

/// The end of a stream.
enum StreamEnd {
    /// In order: a close frame follows.
    Closed,
    /// In silence: the connection stays open.
    Stalled,
    /// By the end of the connection.
    Disconnected,
}

impl From<Error> for StreamEnd {
    fn from(_: Error) -> Self {
        Self::Disconnected
    }
}

struct Streamer<'n> {
    log: &'n EventLog,
    encoding: Box<dyn Encoding>,
    injector: FaultInjector<'n>,
    reader: LogReader,
    max_backlog: u64,
    /// Whether the reader has caught up once; from then on the backlog is limited.
    is_live: bool,
}

impl Streamer<'_> {
    async fn run(
        mut self,
        socket: &mut Socket,
        mut pings: Interval,
        network: &NetworkState,
    ) -> StreamEnd {
        let mut length = self.log.subscribe();
        let mut messages = Vec::new();
        loop {
            if !self.encoding.is_ready() {
                if let Some(end) = self.listen(socket).await {
                    return end;
                }
                continue;
            }
            length.mark_unchanged();
            let position = self.reader.position();
            let backlog = self.log.count().saturating_sub(position);
            let read = if self.is_live && backlog > self.max_backlog {
                ReadResult::Dropped
            } else {
                self.log.read(position, BATCH_LEN)
            };
            let outcome = match read {
                ReadResult::Events(entries, position) => {
                    let outcome = self.send_batch(socket, &entries, &mut messages, network).await;
                    self.reader.advance_to(position);
                    outcome
                }
                ReadResult::Empty => {
                    self.is_live = true;
                    tokio::select! {
                        _ = length.changed() => Ok(()),
                        end = self.listen(socket) => end.map_or(Ok(()), Err),
                        _ = pings.tick() => ping(socket).await,
                    }
                }
                ReadResult::Dropped => {
                    let last =
                        self.encoding.error_message("ConsumerTooSlow", "Stream consumer too slow");
                    socket.send(last).await.map_err(StreamEnd::from).and(Err(StreamEnd::Closed))
                }
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    async fn send_batch(
        &mut self,
        socket: &mut Socket,
        entries: &[LogEntry],
        messages: &mut Vec<Message>,
        network: &NetworkState,
    ) -> Result<(), StreamEnd> {
        let mut sent = 0;
        for entry in entries {
            messages.clear();
            self.encoding.encode(entry, messages);
            let outcome = self.injector.inject(&*self.encoding, messages);
            for message in messages.drain(..) {
                socket.feed(message).await?;
                sent += 1;
            }
            match outcome {
                Outcome::Continue => {}
                Outcome::Close => {
                    return socket
                        .flush()
                        .await
                        .map_err(StreamEnd::from)
                        .and(Err(StreamEnd::Closed));
                }
                Outcome::Stall => {
                    return socket
                        .flush()
                        .await
                        .map_err(StreamEnd::from)
                        .and(Err(StreamEnd::Stalled));
                }
            }
        }
        socket.flush().await?;
        network.traffic.count_frames(sent);
        // Messages of the reader are handled during a long replay, too.
        match self.listen(socket).now_or_never() {
            Some(Some(end)) => Err(end),
            _ => Ok(()),
        }
    }

    /// Waits for a message of the reader; returns the end of the stream if the message causes it.
    async fn listen(&mut self, socket: &mut Socket) -> Option<StreamEnd> {
        match socket.next().await {
            Some(Ok(Message::Close(_))) | Some(Err(_)) | None => Some(StreamEnd::Disconnected),
            Some(Ok(message)) => match self.encoding.handle_message(&message) {
                ControlFlow::Continue(()) => None,
                ControlFlow::Break(()) => Some(StreamEnd::Closed),
            },
        }
    }
}

async fn ping(socket: &mut Socket) -> Result<(), StreamEnd> {
    socket.send(Message::Ping(Default::default())).await.map_err(StreamEnd::from)
}

/// The number of events sent between two checks for messages of the reader.
const BATCH_LEN: usize = 64;

/// The time in which a reader must answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Injects the enabled faults into the frames of one reader.
pub(super) struct FaultInjector<'n> {
    faults: &'n Faults,
    server: Server,
    random: Random,
    /// The number of frames for this reader so far.
    frames: u64,
    /// Messages to be sent after the next ones.
    delayed: Vec<Message>,
    /// Whether the reader has sent a cursor.
    has_cursor: bool,
    /// The last sequence number.
    last_seq: i64,
}

/// The state of the stream after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The stream continues.
    Continue,
    /// It ends with a close frame.
    Close,
    /// It stalls.
    Stall,
}

impl<'n> FaultInjector<'n> {
    pub(super) fn new(network: &'n NetworkState, server: Server, has_cursor: bool) -> Self {
        let random = Seed::new(network.spec.seed, "mischief").stream(0);
        let (faults, delayed) = (&network.faults, Vec::new());
        Self { faults, server, random, frames: 0, delayed, has_cursor, last_seq: 0 }
    }

    /// Applies the enabled faults to the messages of one event.
    pub(super) fn inject(
        &mut self,
        encoding: &dyn Encoding,
        messages: &mut Vec<Message>,
    ) -> Outcome {
        if messages.is_empty() || (self.faults.none_enabled() && self.delayed.is_empty()) {
            return Outcome::Continue;
        }
        let delayed = std::mem::take(&mut self.delayed);
        if self.has_cursor {
            self.alter_replay(messages);
        }
        self.alter(encoding, messages);
        messages.extend(delayed);
        self.frames += 1;
        self.end_stream(encoding, messages)
    }

    fn alter(&mut self, encoding: &dyn Encoding, messages: &mut Vec<Message>) {
        self.reuse_seq(messages);
        if self.inject_fault(Fault::WrongMessage).is_some() {
            messages.iter_mut().for_each(swap_type);
        }
        if self.inject_fault(Fault::RepeatedSeq).is_some() {
            messages.extend_from_within(..);
        }
        if self.inject_fault(Fault::MissingSeq).is_some() {
            messages.clear();
        }
        if self.inject_fault(Fault::ReversedSeq).is_some() {
            self.delayed = std::mem::take(messages);
        }
        if let Some(bytes) = self.inject_fault(Fault::OversizedFrame) {
            messages.insert(0, encoding.raw_message(vec![b' '; bytes as usize]));
        }
        if let Some(bytes) = self.inject_fault(Fault::GarbageFrame) {
            let garbage = (0..bytes).map(|_| self.random.next_u64() as u8).collect();
            messages.insert(0, encoding.raw_message(garbage));
        }
        if self.inject_fault(Fault::UnknownKind).is_some() {
            messages.insert(0, encoding.unknown_message(false));
        }
        if self.inject_fault(Fault::UnknownOperation).is_some() {
            messages.insert(0, encoding.unknown_message(true));
        }
    }

    fn alter_replay(&mut self, messages: &mut Vec<Message>) {
        if self.inject_fault(Fault::MissingReplay).is_some() {
            messages.clear();
        }
        if self.inject_fault(Fault::AlteredReplay).is_some() {
            for message in messages {
                let altered = match message {
                    Message::Binary(frame) => altered_event::with_other_time(frame),
                    _ => None,
                };
                if let Some(altered) = altered {
                    *message = Message::binary(altered);
                }
            }
        }
    }

    /// Gives a frame the number of the frame before it.
    fn reuse_seq(&mut self, messages: &mut [Message]) {
        for message in messages {
            let Message::Binary(frame) = message else { continue };
            let seq = altered_event::seq(frame);
            let is_due = self.last_seq > 0 && self.inject_fault(Fault::ReusedSeq).is_some();
            let altered = is_due.then(|| altered_event::with_seq(frame, self.last_seq)).flatten();
            match altered {
                Some(altered) => *message = Message::binary(altered),
                None => self.last_seq = seq.unwrap_or(self.last_seq),
            }
        }
    }

    fn end_stream(&mut self, encoding: &dyn Encoding, messages: &mut Vec<Message>) -> Outcome {
        if self.inject_fault(Fault::ErrorFrame).is_some() {
            messages.push(encoding.error_message("ConsumerTooSlow", "Stream consumer too slow"));
            return Outcome::Close;
        }
        if self.inject_fault(Fault::Close).is_some() {
            return Outcome::Close;
        }
        if self.inject_fault(Fault::Stall).is_some() {
            return Outcome::Stall;
        }
        Outcome::Continue
    }

    fn inject_fault(&self, fault: Fault) -> Option<u64> {
        let amount = self.faults.due_nth(self.server, fault, Some(self.frames));
        amount.inspect(|_| self.faults.count(self.server, fault))
    }
}

/// Replaces text by bytes and bytes by text.
fn swap_type(message: &mut Message) {
    *message = match std::mem::replace(message, Message::Binary(Default::default())) {
        Message::Text(text) => Message::Binary(text.into()),
        Message::Binary(bytes) => Message::text(format!("{} bytes", bytes.len())),
        other => other,
    };
}
