//! A labeler on loopback: its DID document, its stream of labels with cursors, its query, and faults.
//!
//! ```no_run
//! use wireproof_simnet::labeler::{Labeler, LabelerFault};
//! let labeler = Labeler::start(7)?;
//! labeler.publish(&[labeler.label("did:plc:ewvi7nxzyoun6zhxrhs64oiz", "spam", 1)]);
//! labeler.inject([(1, LabelerFault::Cut)]);
//! // … follow labeler.did() …
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Its DID is a `did:web` of its port. It verifies nothing.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atproto::event::{ErrorFrame, Event, Info};
use atproto::label::{Label, Labels, UnsignedLabel};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use crate::keys::{Curve, SigningKey};
use crate::random::Seed;
use crate::time::datetime;

/// A running labeler; dropping it stops it.
#[derive(Debug)]
pub struct Labeler {
    port: u16,
    shared: Arc<Shared>,
    /// `None` only while it is shut down.
    runtime: Option<Runtime>,
}

/// Wrong behavior of a labeler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelerFault {
    /// It sends these bytes as a message.
    Say(Vec<u8>),
    /// It ends the connection without a close frame.
    Cut,
    /// It sends nothing any more, and keeps the connection.
    Stall,
}

#[derive(Debug)]
struct Shared {
    did: String,
    state: Mutex<State>,
    /// Number of published messages.
    published: watch::Sender<usize>,
    /// The faults of the next connections.
    scripts: Mutex<VecDeque<Script>>,
    pending_faults: AtomicUsize,
    connections: AtomicU64,
    document_requests: AtomicU64,
}

#[derive(Debug)]
struct State {
    seed: u64,
    keys: u64,
    key: SigningKey,
    /// The key of the DID document, where it differs.
    document_key: Option<String>,
    port: u16,
    /// Messages with their numbers.
    messages: Vec<(u64, Vec<Vec<u8>>)>,
    next_seq: u64,
    /// Whether its documents are answered with an error.
    is_document_away: bool,
}

/// The faults of a connection in their order, with the number of sent messages after which they are due.
type Script = VecDeque<(u64, LabelerFault)>;

impl Labeler {
    /// Starts a labeler with keys from this seed.
    ///
    /// # Errors
    /// If no port is free or a thread cannot be started.
    pub fn start(seed: u64) -> io::Result<Self> {
        Self::start_at(seed, 0)
    }

    /// Starts a labeler on a port of 127.0.0.1; 0 for any free one.
    ///
    /// # Errors
    /// If the port is in use or a thread cannot be started.
    pub fn start_at(seed: u64, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let state = State {
            seed,
            keys: 0,
            key: key(seed, 0),
            document_key: None,
            port,
            messages: Vec::new(),
            next_seq: 1,
            is_document_away: false,
        };
        let shared = Arc::new(Shared {
            did: format!("did:web:localhost%3A{port}"),
            state: Mutex::new(state),
            published: watch::Sender::new(0),
            scripts: Mutex::default(),
            pending_faults: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            document_requests: AtomicU64::new(0),
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("labeler")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        runtime.spawn(listen(listener, shared.clone()));
        Ok(Self { port, shared, runtime: Some(runtime) })
    }

    /// Its DID.
    pub fn did(&self) -> &str {
        &self.shared.did
    }

    /// Its URL, `http://localhost:` and the port.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// A signed label, created this number of milliseconds after 2026 began.
    pub fn label(&self, uri: &str, val: &str, millis: u64) -> Vec<u8> {
        let cts = created(millis);
        self.sign(&UnsignedLabel { src: self.did(), uri, val, cts: &cts, ..Default::default() })
    }

    /// A signed label that retracts another one.
    pub fn negation(&self, uri: &str, val: &str, millis: u64) -> Vec<u8> {
        let (cts, neg) = (created(millis), Some(true));
        self.sign(&UnsignedLabel {
            src: self.did(),
            uri,
            val,
            neg,
            cts: &cts,
            ..Default::default()
        })
    }

    /// Signs a label with the present key.
    pub fn sign(&self, label: &UnsignedLabel<'_>) -> Vec<u8> {
        let signature = lock(&self.shared.state).key.sign(&label.to_bytes());
        label.with_signature(&signature)
    }

    /// The signature of these bytes under the present key.
    pub fn sign_bytes(&self, bytes: &[u8]) -> [u8; 64] {
        lock(&self.shared.state).key.sign(bytes)
    }

    /// The present key as a `did:key`.
    pub fn did_key(&self) -> String {
        lock(&self.shared.state).key.did_key()
    }

    /// Sends labels in one message. Returns its number.
    pub fn publish(&self, labels: &[Vec<u8>]) -> u64 {
        let mut state = lock(&self.shared.state);
        let seq = state.next_seq;
        state.next_seq += 1;
        state.messages.push((seq, labels.to_vec()));
        let published = state.messages.len();
        drop(state);
        self.shared.published.send_replace(published);
        seq
    }

    /// Has the next number be this one.
    pub fn skip_to(&self, seq: u64) {
        lock(&self.shared.state).next_seq = seq;
    }

    /// Changes the key, in the DID document too.
    pub fn rotate_key(&self) {
        let mut state = lock(&self.shared.state);
        state.keys += 1;
        state.key = key(state.seed, state.keys);
    }

    /// Has the DID document name this key, whatever signs labels; `None` for the key that signs.
    pub fn set_document_key(&self, key: Option<String>) {
        lock(&self.shared.state).document_key = key;
    }

    /// Whether requests for the DID document are answered with an error.
    pub fn set_document_away(&self, is_away: bool) {
        lock(&self.shared.state).is_document_away = is_away;
    }

    /// Deletes the messages before this number.
    pub fn forget_before(&self, seq: u64) {
        lock(&self.shared.state).messages.retain(|(number, _)| *number >= seq);
    }

    /// Deletes all messages, and begins with the number 1 again.
    pub fn reset(&self) {
        let mut state = lock(&self.shared.state);
        state.messages.clear();
        state.next_seq = 1;
    }

    /// Adds the faults of a connection, the next one without faults so far: a fault happens when the connection has sent this many
    /// messages.
    pub fn inject(&self, faults: impl IntoIterator<Item = (u64, LabelerFault)>) {
        let script: Script = faults.into_iter().collect();
        self.shared.pending_faults.fetch_add(script.len(), Ordering::Relaxed);
        lock(&self.shared.scripts).push_back(script);
    }

    /// The number of faults that have not happened.
    pub fn pending_faults(&self) -> usize {
        self.shared.pending_faults.load(Ordering::Relaxed)
    }

    /// The number of connections to the stream so far.
    pub fn connection_count(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// The number of requests for the DID document so far.
    pub fn document_requests(&self) -> u64 {
        self.shared.document_requests.load(Ordering::Relaxed)
    }
}

impl Drop for Labeler {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn key(seed: u64, number: u64) -> SigningKey {
    SigningKey::generate(Curve::K256, &mut Seed::new(seed, "labeler").stream(number))
}

fn created(millis: u64) -> String {
    datetime(START_MICROS + millis * 1_000)
}

/// 2026-01-01T00:00:00Z.
const START_MICROS: u64 = 1_767_225_600_000_000;

async fn listen(listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let _ = serve(stream, &shared).await;
        });
    }
}

/// Serves a connection: a stream, or one document.
async fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut head = [0; 2048];
    let len = stream.peek(&mut head).await?;
    let head = String::from_utf8_lossy(&head[..len]).to_lowercase();
    if head.contains("upgrade: websocket") {
        return serve_stream(stream, shared).await;
    }
    let mut taken = vec![0; len];
    stream.read_exact(&mut taken).await?;
    let head = String::from_utf8_lossy(&taken).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = document(target, shared);
    let head = format!(
        "HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn document(target: &str, shared: &Shared) -> (u16, String) {
    let state = lock(&shared.state);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/.well-known/did.json" => {
            shared.document_requests.fetch_add(1, Ordering::Relaxed);
            match state.is_document_away {
                true => (503, "{}".to_owned()),
                false => (200, did_document(&shared.did, &state).to_string()),
            }
        }
        "/xrpc/com.atproto.label.queryLabels" => (200, page(&state, query).to_string()),
        _ => (404, "{}".to_owned()),
    }
}

fn did_document(did: &str, state: &State) -> Value {
    let key = state.document_key.clone().unwrap_or_else(|| state.key.did_key());
    json!({
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": did,
        "verificationMethod": [{
            "id": format!("{did}#atproto_label"),
            "type": "Multikey",
            "controller": did,
            "publicKeyMultibase": key.strip_prefix("did:key:").unwrap_or(&key),
        }],
        "service": [{
            "id": "#atproto_labeler",
            "type": "AtprotoLabeler",
            "serviceEndpoint": format!("http://localhost:{}", state.port),
        }],
    })
}

/// A page of the labels whose subjects match.
fn page(state: &State, query: &str) -> Value {
    let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let value = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| &**value);
    let start: usize = value("cursor").and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let limit: usize = value("limit").and_then(|limit| limit.parse().ok()).unwrap_or(50);
    let patterns: Vec<&str> = { pairs.iter() }
        .filter(|(key, _)| key == "uriPatterns")
        .map(|(_, pattern)| &**pattern)
        .collect();
    let matches = |label: &&Vec<u8>| {
        let uri = Label::parse(label).map_or(String::new(), |label| label.fields.uri.to_owned());
        patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => uri.starts_with(start),
            None => uri == *pattern,
        })
    };
    let labels: Vec<&Vec<u8>> =
        state.messages.iter().flat_map(|(_, labels)| labels).filter(matches).collect();
    let some = labels.iter().skip(start).take(limit);
    let json = some.map(|label| {
        let mut json = Vec::new();
        let _ = codec::json::append_item(&mut json, label);
        serde_json::from_slice(&json).unwrap_or(Value::Null)
    });
    let mut page = json!({ "labels": json.collect::<Vec<Value>>() });
    if start + limit < labels.len() {
        page["cursor"] = (start + limit).to_string().into();
    }
    page
}

/// Sends messages after the cursor of the request, and new ones.
async fn serve_stream(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut query = String::new();
    #[expect(clippy::result_large_err, reason = "the type of the callback")]
    let callback = |request: &Request, response: Response| {
        query = request.uri().query().unwrap_or_default().to_owned();
        Ok(response)
    };
    let accepted = tokio_tungstenite::accept_hdr_async(stream, callback).await;
    let Ok(mut socket) = accepted else { return Ok(()) };
    shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut script = lock(&shared.scripts).pop_front().unwrap_or_default();
    let mut published = shared.published.subscribe();
    let cursor = query.strip_prefix("cursor=").and_then(|cursor| cursor.parse::<u64>().ok());
    let (mut last, prelude, ends) = prelude(&lock(&shared.state), cursor);
    let send = |bytes: Vec<u8>| Message::Binary(bytes.into());
    for message in prelude {
        if socket.send(send(message)).await.is_err() {
            return Ok(());
        }
    }
    if ends {
        let _ = socket.close(None).await;
        return Ok(());
    }
    let mut sent = 0;
    loop {
        published.mark_unchanged();
        let next = next_message(&lock(&shared.state), last);
        if let Some((after, _)) = script.front()
            && sent >= *after
            && (next.is_some() || *after > 0)
        {
            let (_, fault) = script.pop_front().expect("there is one");
            shared.pending_faults.fetch_sub(1, Ordering::Relaxed);
            match fault {
                LabelerFault::Cut => return Ok(()),
                LabelerFault::Stall => std::future::pending().await,
                LabelerFault::Say(bytes) => {
                    let _ = socket.send(send(bytes)).await;
                }
            }
            continue;
        }
        match next {
            Some((seq, frame)) => {
                if socket.send(send(frame)).await.is_err() {
                    return Ok(());
                }
                (last, sent) = (seq, sent + 1);
            }
            None => tokio::select! {
                _ = published.changed() => {}
                message = socket.next() => if message.is_none_or(|message| message.is_err()) {
                    return Ok(());
                },
            },
        }
    }
}

/// The number after which messages are sent, the messages before them, and whether these end the stream.
fn prelude(state: &State, cursor: Option<u64>) -> (u64, Vec<Vec<u8>>, bool) {
    let newest = state.next_seq - 1;
    let oldest = state.messages.first().map_or(state.next_seq, |(seq, _)| *seq);
    match cursor {
        None => (newest, Vec::new(), false),
        Some(cursor) if cursor > newest => {
            let error = ErrorFrame { error: "FutureCursor", message: None };
            (cursor, vec![Event::Error(error).to_frame()], true)
        }
        Some(cursor) if cursor > 0 && cursor + 1 < oldest => {
            let info = Info { name: "OutdatedCursor", message: None };
            (cursor, vec![Event::Info(info).to_frame()], false)
        }
        Some(cursor) => (cursor, Vec::new(), false),
    }
}

fn next_message(state: &State, last: u64) -> Option<(u64, Vec<u8>)> {
    let at = state.messages.partition_point(|(seq, _)| *seq <= last);
    let (seq, labels) = state.messages.get(at)?;
    let labels = labels.iter().map(Vec::as_slice).collect();
    let number = i64::try_from(*seq).expect("a small number");
    Some((*seq, Labels { seq: number, labels }.to_frame()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
