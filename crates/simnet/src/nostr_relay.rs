//! A Nostr relay on loopback: requests by NIP-01, comparisons by NIP-77, and faults.
//!
//! ```no_run
//! use wireproof_simnet::nostr_events::{Corpus, Spec};
//! use wireproof_simnet::nostr_relay::{NostrRelay, Options, RelayFault};
//! let corpus = Corpus::generate(&Spec::quick());
//! let relay = NostrRelay::start(corpus.events(), Options::default())?;
//! relay.inject([(100, RelayFault::Cut)]);
//! // … follow relay.url() …
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! It verifies nothing, sends no more stored events than a page, in the order of its [`Options`], and new ones as they are published.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use futures_util::{SinkExt, StreamExt};
use kernels::hex;
use nostr::negentropy::{self, Item, Items};
use nostr::{Arena, Filter, Limits, OwnedEvent};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::broadcast;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

/// A running relay; dropping it stops it.
#[derive(Debug)]
pub struct NostrRelay {
    port: u16,
    shared: Arc<Shared>,
    /// `None` only while it is shut down.
    runtime: Option<Runtime>,
}

/// The behaviour of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The port on 127.0.0.1; 0 for any free one.
    pub port: u16,
    /// The maximum number of stored events in answer to a request.
    pub page_events: usize,
    /// The maximum size of a message of a comparison in bytes, before its hexadecimal form.
    pub max_compared_bytes: usize,
    /// Whether it compares ids.
    pub compares: bool,
    /// Which stored events are in an answer, and in which order.
    pub order: Order,
    /// Whether the order holds for requests with a limit too, against NIP-01: they have the newest events otherwise.
    pub ignores_newest: bool,
    /// The hint about further events at the end of an answer (NIP-67).
    pub hints: Hints,
    /// The maximum number of subscriptions of a connection.
    pub max_subscriptions: usize,
    /// Whether it asks who a client is (NIP-42), and answers nobody else.
    pub requires_auth: bool,
}

/// The hint about further stored events at the end of an answer (NIP-67).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hints {
    /// Nothing.
    None,
    /// Whether there are any.
    Right,
    /// That there are none, whatever there is.
    AlwaysFinish,
}

/// The order of stored events in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The newest first.
    Descending,
    /// The oldest first.
    Ascending,
    /// Any events in any order, by a seed.
    Random(u64),
}

impl Default for Options {
    /// Any free port, pages of 500 events, comparisons in messages of 60,000 bytes.
    fn default() -> Self {
        Self {
            port: 0,
            page_events: 500,
            max_compared_bytes: 60_000,
            compares: true,
            order: Order::Descending,
            ignores_newest: false,
            hints: Hints::None,
            max_subscriptions: usize::MAX,
            requires_auth: false,
        }
    }
}

/// Wrong behavior of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayFault {
    /// It sends this text, in which `{sub}` is the subscription.
    Say(String),
    /// It ends the connection without a close frame.
    Cut,
    /// It neither reads nor sends any more, and keeps the connection.
    Stall,
}

/// The state that connections share.
#[derive(Debug)]
struct Shared {
    options: Options,
    /// The newest first.
    events: RwLock<Vec<Arc<StoredEvent>>>,
    published: broadcast::Sender<Arc<StoredEvent>>,
    /// The faults of the next connections.
    scripts: Mutex<VecDeque<Script>>,
    /// Number of faults that have not happened.
    pending_faults: AtomicUsize,
    requests: Mutex<Vec<String>>,
    connections: AtomicU64,
    sent_bytes: AtomicU64,
}

/// The faults of a connection in their order, with the number of sent events after which they are due.
type Script = VecDeque<(u64, RelayFault)>;

#[derive(Debug)]
struct StoredEvent {
    event: OwnedEvent,
    json: String,
}

impl NostrRelay {
    /// Starts a relay with these events.
    ///
    /// # Errors
    /// If the port is in use or a thread cannot be started.
    pub fn start(events: &[OwnedEvent], options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let mut events: Vec<_> = events.iter().map(StoredEvent::new).collect();
        events.sort_by_key(|stored| stored.place());
        let shared = Arc::new(Shared {
            options,
            events: RwLock::new(events),
            published: broadcast::Sender::new(MAX_UNSENT),
            scripts: Mutex::default(),
            pending_faults: AtomicUsize::new(0),
            requests: Mutex::default(),
            connections: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nostr-relay")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        runtime.spawn(listen(listener, shared.clone()));
        Ok(Self { port, shared, runtime: Some(runtime) })
    }

    /// The URL, `ws://localhost:` and the port.
    pub fn url(&self) -> String {
        format!("ws://localhost:{}/", self.port)
    }

    /// Stores an event, and sends it to the subscriptions that it matches.
    pub fn publish(&self, event: &OwnedEvent) {
        let stored = StoredEvent::new(event);
        let mut events = self.shared.events.write().unwrap_or_else(PoisonError::into_inner);
        let at = events.partition_point(|other| other.place() < stored.place());
        events.insert(at, stored.clone());
        // Without connections there is no receiver.
        let _ = self.shared.published.send(stored);
    }

    /// Adds the faults of a connection, the next one without faults so far: a fault happens when the connection has
    /// sent this many events, and sends another one or the end of the stored ones.
    pub fn inject(&self, faults: impl IntoIterator<Item = (u64, RelayFault)>) {
        let script: Script = faults.into_iter().collect();
        self.shared.pending_faults.fetch_add(script.len(), Ordering::Relaxed);
        lock(&self.shared.scripts).push_back(script);
    }

    /// The number of faults that have not happened.
    pub fn pending_faults(&self) -> usize {
        self.shared.pending_faults.load(Ordering::Relaxed)
    }

    /// All messages of clients.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.requests).clone()
    }

    /// The number of connections so far.
    pub fn connection_count(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Bytes of messages to clients so far, without WebSocket framing.
    pub fn sent_bytes(&self) -> u64 {
        self.shared.sent_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for NostrRelay {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl StoredEvent {
    fn new(event: &OwnedEvent) -> Arc<Self> {
        let mut bytes = Vec::new();
        nostr::json::encode(&event.borrow_in(&Arena::new()), &mut bytes);
        let json = String::from_utf8(bytes).expect("JSON is text");
        Arc::new(Self { event: event.clone(), json })
    }

    /// Its place among the events.
    fn place(&self) -> (Reverse<i64>, [u8; 32]) {
        (Reverse(self.event.created_at), self.event.id)
    }

    fn matches(&self, filter: &Filter) -> bool {
        filter.matches(&self.event.borrow_in(&Arena::new()))
    }

    fn item(&self) -> Option<Item> {
        let created_at = u64::try_from(self.event.created_at).ok()?;
        Some(Item { created_at, id: self.event.id })
    }
}

impl Order {
    fn sort(self, events: &mut [Arc<StoredEvent>]) {
        match self {
            Self::Descending => {}
            Self::Ascending => events.reverse(),
            Self::Random(seed) => events.sort_by_cached_key(|stored| {
                let start: [u8; 8] = stored.event.id[..8].try_into().expect("8 of 32 bytes");
                (u64::from_le_bytes(start) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7
            }),
        }
    }
}

impl Shared {
    /// A page of the events that match, and whether there are others.
    fn page(&self, filter: &Filter) -> (Vec<Arc<StoredEvent>>, bool) {
        let limit = filter.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.map_or(self.options.page_events, |it| it.min(self.options.page_events));
        let events = self.events.read().unwrap_or_else(PoisonError::into_inner);
        let is_later = |stored: &Arc<StoredEvent>| {
            filter.until.is_some_and(|until| stored.event.created_at > until)
        };
        let events = events[events.partition_point(is_later)..].iter();
        let matching = events.filter(|stored| stored.matches(filter)).cloned();
        // With a limit the newest events are sent, in any order.
        let is_newest = filter.limit.is_some() && !self.options.ignores_newest;
        if is_newest || self.options.order == Order::Descending {
            let mut rest = matching;
            let mut page: Vec<_> = rest.by_ref().take(limit).collect();
            self.options.order.sort(&mut page);
            return (page, rest.next().is_some());
        }
        let mut page: Vec<_> = matching.collect();
        let has_more = page.len() > limit;
        self.options.order.sort(&mut page);
        page.truncate(limit);
        (page, has_more)
    }

    fn items(&self, filter: &Filter) -> Items {
        let events = self.events.read().unwrap_or_else(PoisonError::into_inner);
        let matching = events.iter().filter(|stored| stored.matches(filter));
        matching.filter_map(|stored| stored.item()).collect()
    }
}

async fn listen(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    loop {
        // Accepting fails when file descriptors run out, for example, and may succeed later.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        shared.connections.fetch_add(1, Ordering::Relaxed);
        let shared = shared.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            if let Ok(socket) = tokio_tungstenite::accept_async(stream).await {
                let published = shared.published.subscribe();
                let script = lock(&shared.scripts).pop_front().unwrap_or_default();
                let (subscriptions, comparisons) = Default::default();
                let challenge = format!("challenge {}", shared.connections.load(Ordering::Relaxed));
                let connection = Connection {
                    socket,
                    shared,
                    script,
                    sent: 0,
                    subscriptions,
                    comparisons,
                    challenge,
                    is_authenticated: false,
                };
                connection.run(published).await;
            }
        });
    }
}

/// A connection of a client.
struct Connection {
    socket: WebSocketStream<TcpStream>,
    shared: Arc<Shared>,
    script: Script,
    /// Events sent.
    sent: u64,
    subscriptions: BTreeMap<String, Filter>,
    comparisons: BTreeMap<String, Items>,
    challenge: String,
    is_authenticated: bool,
}

/// Why a connection ends.
enum End {
    Closed,
    Stalled,
}

impl From<tungstenite::Error> for End {
    fn from(_: tungstenite::Error) -> Self {
        Self::Closed
    }
}

impl Connection {
    async fn run(mut self, mut published: broadcast::Receiver<Arc<StoredEvent>>) {
        if self.shared.options.requires_auth {
            let challenge = json!(["AUTH", self.challenge]);
            if self.say(&challenge).await.is_err() {
                return;
            }
        }
        let end = loop {
            let outcome = tokio::select! {
                message = self.socket.next() => match message {
                    Some(Ok(Message::Text(text))) => self.handle(text.as_str()).await,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => Err(End::Closed),
                    Some(Ok(_)) => Ok(()),
                },
                event = published.recv() => match event {
                    Ok(event) => self.send_new(&event).await,
                    // A client that is too slow.
                    Err(_) => Err(End::Closed),
                },
            };
            if let Err(end) = outcome {
                break end;
            }
        };
        if let End::Stalled = end {
            std::future::pending::<()>().await;
        }
    }

    async fn handle(&mut self, text: &str) -> Result<(), End> {
        lock(&self.shared.requests).push(text.to_owned());
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let text = message[1].as_str().or(message[1]["id"].as_str());
        let Some(subscription) = text.map(str::to_owned) else {
            return self.say(&json!(["NOTICE", "error: not a message"])).await;
        };
        let options = self.shared.options;
        let is_new = !self.subscriptions.contains_key(&subscription);
        match message[0].as_str().unwrap_or_default() {
            "AUTH" => self.authenticate(&message[1]).await,
            "REQ" | "NEG-OPEN" if options.requires_auth && !self.is_authenticated => {
                let reason = "auth-required: who are you";
                self.say(&json!(["CLOSED", subscription, reason])).await
            }
            "REQ" if is_new && self.subscriptions.len() >= options.max_subscriptions => {
                let reason = "error: too many subscriptions";
                self.say(&json!(["CLOSED", subscription, reason])).await
            }
            "REQ" => {
                let filter = filter(&message[2]);
                self.send_stored(&subscription, &filter).await?;
                self.subscriptions.insert(subscription, filter);
                Ok(())
            }
            "CLOSE" => {
                self.subscriptions.remove(&subscription);
                Ok(())
            }
            "NEG-OPEN" if !self.shared.options.compares => {
                self.say(&json!(["NEG-ERR", subscription, "blocked: not here"])).await
            }
            "NEG-OPEN" => {
                let items = self.shared.items(&filter(&message[2]));
                self.comparisons.insert(subscription.clone(), items);
                self.compare(&subscription, &message[3]).await
            }
            "NEG-MSG" => self.compare(&subscription, &message[2]).await,
            "NEG-CLOSE" => {
                self.comparisons.remove(&subscription);
                Ok(())
            }
            _ => self.say(&json!(["NOTICE", "error: unknown message"])).await,
        }
    }

    /// Accepts a valid event with the challenge of this connection.
    async fn authenticate(&mut self, event: &Value) -> Result<(), End> {
        let (arena, text) = (Arena::new(), event.to_string());
        let decoded = nostr::json::decode(text.as_bytes(), &arena, &Limits::default());
        let tags = &event["tags"];
        let has_tag = |name: &str, value: &str| {
            tags.as_array().into_iter().flatten().any(|tag| tag[0] == name && tag[1] == value)
        };
        let is_right = decoded.is_ok_and(|event| event.kind == 22_242 && event.verify().is_ok())
            && has_tag("challenge", &self.challenge)
            && tags.as_array().into_iter().flatten().any(|tag| tag[0] == "relay");
        self.is_authenticated |= is_right;
        let reason = if is_right { "" } else { "invalid: not the challenge" };
        self.say(&json!(["OK", event["id"], is_right, reason])).await
    }

    async fn send_stored(&mut self, subscription: &str, filter: &Filter) -> Result<(), End> {
        let (page, has_more) = self.shared.page(filter);
        for stored in page {
            self.send_event(subscription, &stored).await?;
        }
        self.misbehave(subscription).await?;
        let hint = match self.shared.options.hints {
            Hints::None => return self.say(&json!(["EOSE", subscription])).await,
            Hints::Right if has_more => "more",
            Hints::Right | Hints::AlwaysFinish => "finish",
        };
        self.say(&json!(["EOSE", subscription, [hint]])).await
    }

    async fn send_new(&mut self, stored: &StoredEvent) -> Result<(), End> {
        let matching = self.subscriptions.iter().filter(|(_, filter)| stored.matches(filter));
        let matching: Vec<String> =
            matching.map(|(subscription, _)| subscription.clone()).collect();
        for subscription in matching {
            self.send_event(&subscription, stored).await?;
        }
        Ok(self.socket.flush().await?)
    }

    async fn send_event(&mut self, subscription: &str, stored: &StoredEvent) -> Result<(), End> {
        self.misbehave(subscription).await?;
        self.sent += 1;
        self.feed(format!(r#"["EVENT",{},{}]"#, json!(subscription), stored.json)).await
    }

    /// Carries out the faults that are due.
    async fn misbehave(&mut self, subscription: &str) -> Result<(), End> {
        while let Some((after, _)) = self.script.front()
            && *after <= self.sent
            && let Some((_, fault)) = self.script.pop_front()
        {
            self.shared.pending_faults.fetch_sub(1, Ordering::Relaxed);
            match fault {
                RelayFault::Say(text) => {
                    self.feed(text.replace("{sub}", subscription)).await?;
                }
                RelayFault::Cut => {
                    self.socket.flush().await?;
                    return Err(End::Closed);
                }
                RelayFault::Stall => {
                    self.socket.flush().await?;
                    return Err(End::Stalled);
                }
            }
        }
        Ok(())
    }

    async fn compare(&mut self, subscription: &str, message: &Value) -> Result<(), End> {
        let mut bytes = Vec::new();
        let is_hex = hex::decode_into(message.as_str().unwrap_or_default().as_bytes(), &mut bytes);
        let max_bytes = self.shared.options.max_compared_bytes;
        let reply = match self.comparisons.get(subscription) {
            Some(items) if is_hex => negentropy::answer(items, &bytes, max_bytes)
                .map_err(|error| format!("error: {error}")),
            _ => Err("closed: no such comparison".to_owned()),
        };
        match reply {
            Ok(reply) => self.say(&json!(["NEG-MSG", subscription, hex::encode(&reply)])).await,
            Err(reason) => self.say(&json!(["NEG-ERR", subscription, reason])).await,
        }
    }

    async fn say(&mut self, message: &Value) -> Result<(), End> {
        self.feed(message.to_string()).await?;
        Ok(self.socket.flush().await?)
    }

    async fn feed(&mut self, text: String) -> Result<(), End> {
        self.shared.sent_bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        Ok(self.socket.feed(Message::text(text)).await?)
    }
}

/// The filter of a request. Malformed parts of it are left out.
fn filter(json: &Value) -> Filter {
    let list = |name: &str| json[name].as_array().cloned().unwrap_or_default();
    let key = |text: &Value| {
        let mut key = [0; 32];
        let is_key = hex::decode(text.as_str().unwrap_or_default().as_bytes(), &mut key);
        is_key.then_some(key)
    };
    let mut filter = Filter {
        ids: list("ids").iter().filter_map(key).collect(),
        kinds: list("kinds").iter().filter_map(|kind| kind.as_u64()?.try_into().ok()).collect(),
        authors: list("authors").iter().filter_map(key).collect(),
        tags: Vec::new(),
        since: json["since"].as_i64(),
        until: json["until"].as_i64(),
        limit: json["limit"].as_u64(),
    };
    for (name, values) in json.as_object().into_iter().flatten() {
        if let (Some(name), Some(values)) = (name.strip_prefix('#'), values.as_array()) {
            let values = values.iter().filter_map(Value::as_str);
            filter.tags.extend(values.map(|value| (name.to_owned(), value.to_owned())));
        }
    }
    filter
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The maximum number of published events that a client has not received.
const MAX_UNSENT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr_events::{Corpus, Spec};

    #[test]
    fn a_page_has_the_newest_events_that_match() {
        let corpus = Corpus::generate(&Spec { events: 60, authors: 30, ..Spec::quick() });
        let options = Options { page_events: 20, ..Options::default() };
        let relay = NostrRelay::start(corpus.events(), options).unwrap();
        let page = |json: Value| -> Vec<i64> {
            let (page, _) = relay.shared.page(&filter(&json));
            page.iter().map(|stored| stored.event.created_at).collect()
        };
        let mut times: Vec<i64> = corpus.events().iter().map(|event| event.created_at).collect();
        times.sort_unstable_by_key(|time| Reverse(*time));
        assert_eq!(page(json!({})), times[..20]);
        assert_eq!(page(json!({ "limit": 3 })), times[..3]);
        let until = times[30];
        assert!(page(json!({ "until": until })).iter().all(|time| *time <= until));
        let kinds = corpus.events().iter().filter(|event| event.kind == 1).count();
        assert_eq!(page(json!({ "kinds": [1] })).len(), kinds.min(20));
        assert_eq!(page(json!({ "#t": ["no such tag"] })), [] as [i64; 0]);
    }

    #[test]
    fn the_order_decides_which_events_a_request_without_a_limit_brings() {
        let corpus = Corpus::generate(&Spec { events: 60, authors: 30, ..Spec::quick() });
        let mut times: Vec<i64> = corpus.events().iter().map(|event| event.created_at).collect();
        times.sort_unstable();
        for order in [Order::Ascending, Order::Random(7)] {
            let options = Options { page_events: 20, order, ..Options::default() };
            let relay = NostrRelay::start(corpus.events(), options).unwrap();
            let page = |json: Value| -> Vec<i64> {
                let (page, has_more) = relay.shared.page(&filter(&json));
                assert!(has_more);
                page.iter().map(|stored| stored.event.created_at).collect()
            };
            let (any, mut newest) = (page(json!({})), page(json!({ "limit": 40 })));
            assert_eq!(any == times[..20], order == Order::Ascending);
            newest.sort_unstable();
            assert_eq!(newest, times[40..]);
        }
    }
}
