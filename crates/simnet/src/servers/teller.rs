//! Telling a reader, over a WebSocket, all that a server has told from some place on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::mischief::{Mischief, Twist};
use super::network::Network;
use super::outbox::{Entry, Outbox, Read};
use super::spec::Server;

/// The other end.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// How a stream spells what it tells.
pub(super) trait Tongue: Send {
    /// Appends the messages of an event that this reader wants.
    fn spell(&mut self, entry: &Entry, out: &mut Vec<Message>);
    /// Takes note of what the reader says.
    fn hear(&mut self, message: &Message) -> ControlFlow<()> {
        let _ = message;
        ControlFlow::Continue(())
    }
    /// Whether the reader has said what it must say before it is told anything.
    fn is_ready(&self) -> bool {
        true
    }
    /// The last word before a stream ends.
    fn error(&self, name: &str, message: &str) -> Message;
    /// A message of a kind that nobody knows, and whether that is an operation or a type.
    fn unknown(&self, is_operation: bool) -> Message;
    /// These bytes as a message of the usual type.
    fn raw(&self, bytes: Vec<u8>) -> Message;
}

/// What a reader is told, and from where on.
pub(super) struct Telling {
    pub(super) network: Arc<Network>,
    pub(super) server: Server,
    /// What comes first.
    pub(super) prelude: Vec<Message>,
    /// Where the events begin; without, there are none, and the stream ends behind the prelude.
    pub(super) place: Option<u64>,
    pub(super) tongue: Box<dyn Tongue>,
}

/// Tells until either end has enough.
pub(super) async fn tell(socket: &mut Socket, telling: Telling) {
    let Telling { network, server, prelude, place, tongue } = telling;
    for message in prelude {
        if socket.send(message).await.is_err() {
            return;
        }
    }
    if let Some((outbox, place)) = network.outbox(server).zip(place) {
        let mischief = Mischief::new(&network, server);
        let max_backlog = network.spec.max_backlog;
        let teller = Teller { outbox, tongue, mischief, place, max_backlog, is_live: false };
        let pings = pings(network.spec.ping_interval);
        match teller.run(socket, pings, &network).await {
            End::Over => {}
            End::Stalled => std::future::pending().await,
            End::Gone => return,
        }
    }
    // The reader has until then to answer the close.
    let _ = socket.close(None).await;
    let _ = tokio::time::timeout(FAREWELL, async { while socket.next().await.is_some() {} }).await;
}

fn pings(every: Duration) -> Interval {
    let every = every.max(Duration::from_millis(1));
    let mut pings = interval_at(Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}

/// How telling ends.
enum End {
    /// In order: a close follows.
    Over,
    /// In silence.
    Stalled,
    /// With the connection.
    Gone,
}

impl From<Error> for End {
    fn from(_: Error) -> Self {
        Self::Gone
    }
}

struct Teller<'n> {
    outbox: &'n Outbox,
    tongue: Box<dyn Tongue>,
    mischief: Mischief<'n>,
    place: u64,
    max_backlog: u64,
    /// Whether the reader has once been told all there was: from then on it has to keep up.
    is_live: bool,
}

impl Teller<'_> {
    async fn run(mut self, socket: &mut Socket, mut pings: Interval, network: &Network) -> End {
        let reader = self.outbox.enter(self.place);
        let mut grown = self.outbox.watch();
        let mut messages = Vec::new();
        loop {
            if !self.tongue.is_ready() {
                if let Some(end) = self.listen(socket).await {
                    return end;
                }
                continue;
            }
            grown.mark_unchanged();
            let backlog = self.outbox.count().saturating_sub(self.place);
            let read = match self.is_live && backlog > self.max_backlog {
                true => Read::Gone,
                false => self.outbox.read(self.place, BATCH_LEN),
            };
            let outcome = match read {
                Read::Events(entries, place) => {
                    let outcome = self.tell_batch(socket, &entries, &mut messages, network).await;
                    self.place = place;
                    reader.store(place, Ordering::Relaxed);
                    outcome
                }
                Read::Nothing => {
                    self.is_live = true;
                    tokio::select! {
                        _ = grown.changed() => Ok(()),
                        end = self.listen(socket) => end.map_or(Ok(()), Err),
                        _ = pings.tick() => ping(socket).await,
                    }
                }
                Read::Gone => {
                    let last = self.tongue.error("ConsumerTooSlow", "Stream consumer too slow");
                    socket.send(last).await.map_err(End::from).and(Err(End::Over))
                }
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    async fn tell_batch(
        &mut self,
        socket: &mut Socket,
        entries: &[Entry],
        messages: &mut Vec<Message>,
        network: &Network,
    ) -> Result<(), End> {
        let mut sent = 0;
        for entry in entries {
            messages.clear();
            self.tongue.spell(entry, messages);
            let twist = self.mischief.twist(&*self.tongue, messages);
            for message in messages.drain(..) {
                socket.feed(message).await?;
                sent += 1;
            }
            match twist {
                Twist::None => {}
                Twist::End => return socket.flush().await.map_err(End::from).and(Err(End::Over)),
                Twist::Stall => {
                    return socket.flush().await.map_err(End::from).and(Err(End::Stalled));
                }
            }
        }
        socket.flush().await?;
        network.traffic.count_frames(sent);
        // While there is much to tell, the reader is still listened to.
        match self.listen(socket).now_or_never() {
            Some(Some(end)) => Err(end),
            _ => Ok(()),
        }
    }

    /// Waits for the reader to say something; says how that ends the stream, if it does.
    async fn listen(&mut self, socket: &mut Socket) -> Option<End> {
        match socket.next().await {
            Some(Ok(Message::Close(_))) | Some(Err(_)) | None => Some(End::Gone),
            Some(Ok(message)) => match self.tongue.hear(&message) {
                ControlFlow::Continue(()) => None,
                ControlFlow::Break(()) => Some(End::Over),
            },
        }
    }
}

async fn ping(socket: &mut Socket) -> Result<(), End> {
    socket.send(Message::Ping(Default::default())).await.map_err(End::from)
}

/// Events told between two looks at what the reader says.
const BATCH_LEN: usize = 64;

/// How long a reader may take to answer a close.
const FAREWELL: Duration = Duration::from_secs(1);
