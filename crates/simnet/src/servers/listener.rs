//! The listener of one server: its connections, their requests, and the streams they are upgraded to.

use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::Method;
use hyper::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::fault::Fault;
use super::http::{self, HttpRequest, HttpResponse, QueryParams, XrpcError, error, into_response};
use super::network::{NetworkState, now};
use super::plc_stream::ExportStream;
use super::request_limits::BeyondLimit;
use super::spec::Server;
use super::streamer::{self, StreamSetup};
use super::{attack, jetstream, plc, subscribe_repos, xrpc};

/// An open server; dropping it closes it and every connection to it.
#[derive(Debug)]
pub(super) struct Listener {
    /// Closes all connections when something is sent, or when it is dropped.
    open: watch::Sender<()>,
}

impl Listener {
    /// Starts a server on its port.
    pub(super) fn open(
        runtime: &Handle,
        network: &Arc<NetworkState>,
        server: Server,
        port: &ReservedPort,
    ) -> io::Result<Self> {
        let _inside = runtime.enter();
        let listener = bind(port.port(), true)?.listen(BACKLOG)?;
        let (open, closed) = watch::channel(());
        let context = ServerContext { network: network.clone(), server, closed };
        runtime.spawn(context.listen(listener));
        Ok(Self { open })
    }

    /// Stops the server; from then on connections are refused and nothing is sent.
    pub(super) fn close(self) {
        self.open.send_replace(());
        while self.open.receiver_count() > 0 {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// A port of 127.0.0.1 that no other process gets, even while nothing listens on it.
#[derive(Debug)]
pub(super) struct ReservedPort {
    port: u16,
    /// Bound, and never listening.
    _socket: TcpSocket,
}

impl ReservedPort {
    /// Reserves a port, any if `port` is 0.
    pub(super) fn new(port: u16) -> io::Result<Self> {
        if port != 0 {
            // A socket that shares its port would not notice another one that does.
            drop(bind(port, false)?);
        }
        let socket = bind(port, true)?;
        Ok(Self { port: socket.local_addr()?.port(), _socket: socket })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// Binds a port, which other sockets of this user may share if all of them say so.
fn bind(port: u16, is_shared: bool) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Connections of a previous listener may still be closing.
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(is_shared)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket)
}

/// One server of the network.
#[derive(Clone)]
struct ServerContext {
    network: Arc<NetworkState>,
    server: Server,
    closed: watch::Receiver<()>,
}

impl ServerContext {
    async fn listen(self, listener: TcpListener) {
        let mut closed = self.closed.clone();
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = closed.changed() => return,
            };
            // Accepting fails when file descriptors run out, for example, and may succeed later.
            let Ok((stream, _)) = stream else {
                tokio::task::yield_now().await;
                continue;
            };
            self.network.traffic.connections.fetch_add(1, Ordering::Relaxed);
            if self.inject(Fault::Drop).is_some() {
                continue;
            }
            match self.inject(Fault::Silence) {
                Some(_) => drop(tokio::spawn(self.clone().keep_silent(stream))),
                None => drop(tokio::spawn(self.clone().serve(stream))),
            }
        }
    }

    /// Reads from a client without an answer until it closes the connection.
    async fn keep_silent(mut self, stream: TcpStream) {
        let ended = async {
            let mut buffer = [0; 1024];
            while stream.readable().await.is_ok() {
                match stream.try_read(&mut buffer) {
                    Ok(0) => return,
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                    Ok(_) | Err(_) => {}
                }
            }
        };
        tokio::select! {
            () = ended => {}
            _ = self.closed.changed() => {}
        }
    }

    async fn serve(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let limit = WriteLimit::new();
        let stream = TokioIo::new(LimitedStream::new(stream, limit.clone()));
        let mut closed = self.closed.clone();
        let service = service_fn(move |request: HttpRequest| {
            let is_silent = attack::is_for_silent_host(&request);
            let delay = self.delay(&request);
            let (context, limit) = (self.clone(), limit.clone());
            async move {
                let response = match context.server {
                    Server::Jetstream(_) if request.method() == Method::POST => {
                        context.posted(request).await?
                    }
                    _ => context.response(request, &limit),
                };
                let response = context.with_rate_headers(context.with_limit(response));
                let response = http::dated(response, context.network.now());
                context.network.traffic.count_answer(context.server, response.status().as_u16());
                tokio::time::sleep(delay).await;
                if is_silent {
                    return std::future::pending().await;
                }
                Ok::<HttpResponse, io::Error>(response)
            }
        });
        let connection = http1::Builder::new().serve_connection(stream, service).with_upgrades();
        tokio::select! {
            _ = connection => {}
            _ = closed.changed() => {}
        }
    }

    /// An answer that says how many requests the limit leaves, if the server announces that.
    fn with_limit(&self, response: HttpResponse) -> HttpResponse {
        match self.network.request_limits.announced(self.server) {
            Some(announced) if response.status() != 429 && response.status() != 101 => {
                http::with_limit(response, &announced, now())
            }
            _ => response,
        }
    }

    /// An answer whose headers leave more requests than their limit has, if that is due.
    fn with_rate_headers(&self, response: HttpResponse) -> HttpResponse {
        if response.status() == 101 || self.inject(Fault::RateHeaders).is_none() {
            return response;
        }
        let headers = [("ratelimit-limit", "10"), ("ratelimit-remaining", "11")];
        headers.into_iter().fold(response, |response, (name, value)| {
            http::with_header(response, HeaderName::from_static(name), value)
        })
    }

    /// The time after which a request is answered.
    fn delay(&self, request: &HttpRequest) -> Duration {
        let is_stream = request.headers().contains_key(SEC_WEBSOCKET_KEY);
        let millis = (!is_stream).then(|| self.inject(Fault::LateAnswer)).flatten();
        Duration::from_millis(millis.unwrap_or(0))
    }

    fn response(&self, mut request: HttpRequest, limit: &Arc<WriteLimit>) -> HttpResponse {
        let path = request.uri().path().to_owned();
        self.network.traffic.count_request(self.server, &path);
        match self.stream(&path, &request) {
            Some(Ok(setup)) => self
                .upgrade_fault()
                .unwrap_or_else(|| into_response(self.upgrade(&mut request, setup, limit))),
            Some(Err(error)) => error.into_response(),
            None => self.request_fault().unwrap_or_else(|| self.document(&request)),
        }
    }

    /// The response to a request with a body.
    async fn posted(&self, request: HttpRequest) -> io::Result<HttpResponse> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(io::Error::other)?;
        let (path, body) = (parts.uri.path(), body.to_bytes());
        self.network.traffic.count_request(self.server, path);
        if let Some(refused) = self.request_fault() {
            return Ok(refused);
        }
        let answered = jetstream::posted(&self.network, self.server, &parts, &body);
        Ok(answered.unwrap_or_else(|| http::text(404, "Not Found")))
    }

    /// The stream at this path; `None` if there is none.
    fn stream(&self, path: &str, request: &HttpRequest) -> Option<Result<Stream, XrpcError>> {
        let (network, server) = (&self.network, self.server);
        let events = match (server, path) {
            (Server::Pds(_) | Server::Relay(_), "/xrpc/com.atproto.sync.subscribeRepos") => {
                Some(subscribe_repos::stream(network, server, &QueryParams::of(request)))
            }
            (Server::Jetstream(_), _) => jetstream::stream(network, server, request),
            (Server::Plc, "/export/stream") => {
                let export = ExportStream::of(network, request);
                return Some(export.map(Stream::Export));
            }
            _ => None,
        };
        events.map(|setup| setup.map(Stream::Events))
    }

    fn document(&self, request: &HttpRequest) -> HttpResponse {
        match self.server {
            Server::Plc => plc::response(&self.network, request),
            Server::Pds(_) => xrpc::pds_response(&self.network, self.server, request),
            Server::Relay(_) => xrpc::relay_response(&self.network, self.server, request),
            Server::Jetstream(_) => jetstream::response(&self.network, self.server, request),
        }
    }

    fn inject(&self, fault: Fault) -> Option<u64> {
        self.network.faults.inject(self.server, fault)
    }

    fn request_fault(&self) -> Option<HttpResponse> {
        match self.network.request_limits.take(self.server) {
            Ok(()) => {}
            Err(BeyondLimit::Stated(seconds)) => {
                return Some(http::too_many_requests(seconds, now() / 1_000_000));
            }
            Err(BeyondLimit::Unstated) => return Some(too_many_unstated()),
        }
        if let Some(seconds) = self.inject(Fault::RequestTooMany) {
            return Some(http::too_many_requests(seconds, now() / 1_000_000));
        }
        if self.inject(Fault::RequestTooManyUnstated).is_some() {
            return Some(too_many_unstated());
        }
        if self.inject(Fault::RequestUnavailable).is_some() {
            return Some(http::bytes(503, "text/html", "<h1>503 Service Unavailable</h1>"));
        }
        let is_redirected = self.inject(Fault::PrivateRedirect).is_some();
        is_redirected.then(|| http::redirect(&format!("{}/", plc::PRIVATE_URL)))
    }

    fn upgrade_fault(&self) -> Option<HttpResponse> {
        if let Some(seconds) = self.inject(Fault::UpgradeTooMany) {
            return Some(http::too_many_requests(seconds, now() / 1_000_000));
        }
        if self.inject(Fault::UpgradeUnavailable).is_some() {
            return Some(error(503, "ServiceUnavailable", "Service Unavailable").into_response());
        }
        let refusals = [
            (Fault::UpgradeForbidden, 403, "Forbidden"),
            (Fault::UpgradeNotFound, 404, "NotFound"),
            (Fault::UpgradeNotImplemented, 501, "MethodNotImplemented"),
        ];
        let due = refusals.into_iter().find(|(fault, ..)| self.inject(*fault).is_some());
        due.map(|(_, status, name)| error(status, name, name).into_response())
    }

    /// Switches protocols and starts the stream.
    fn upgrade(
        &self,
        request: &mut HttpRequest,
        setup: Stream,
        limit: &Arc<WriteLimit>,
    ) -> Result<HttpResponse, XrpcError> {
        let key = request.headers().get(SEC_WEBSOCKET_KEY).map(|key| key.as_bytes().to_vec());
        let key = key.ok_or_else(|| error(426, "UpgradeRequired", "This is a WebSocket"))?;
        let protocol = jetstream::protocol(request);
        let upgraded = hyper::upgrade::on(request);
        let (context, limit) = (self.clone(), limit.clone());
        tokio::spawn(async move {
            if let Ok(upgraded) = upgraded.await {
                context.run_stream(TokioIo::new(upgraded), setup, &limit).await;
            }
        });
        let mut response = http::text(101, "");
        let headers = [(CONNECTION, "upgrade"), (UPGRADE, "websocket")];
        for (name, value) in headers {
            response = http::with_header(response, name, value);
        }
        response = http::with_header(response, SEC_WEBSOCKET_ACCEPT, &derive_accept_key(&key));
        Ok(match protocol {
            Some(protocol) => http::with_header(response, SEC_WEBSOCKET_PROTOCOL, protocol),
            None => response,
        })
    }

    async fn run_stream(
        mut self,
        io: TokioIo<hyper::upgrade::Upgraded>,
        setup: Stream,
        limit: &WriteLimit,
    ) {
        if let Some(bytes) = self.network.faults.due(self.server, Fault::Cut) {
            limit.cut_after(bytes);
        }
        let config = WebSocketConfig::default().max_message_size(Some(MAX_READER_MESSAGE));
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        let run = async {
            match setup {
                Stream::Events(setup) => streamer::run(&mut socket, setup).await,
                Stream::Export(export) => export.run(&mut socket).await,
            }
        };
        tokio::select! {
            () = run => {}
            _ = self.closed.changed() => {}
        }
        // Before the connection ends with the socket, so that a reader that sees the end sees the count.
        if limit.was_reached() {
            self.network.faults.count(self.server, Fault::Cut);
        }
    }
}

/// A stream to a reader.
enum Stream {
    Events(StreamSetup),
    /// The operations of the directory.
    Export(ExportStream),
}

/// A 429 response that does not say for how long.
fn too_many_unstated() -> HttpResponse {
    http::bytes(429, "text/html", "<h1>429 Too Many Requests</h1>")
}

/// The maximum length of a message of a reader in bytes: options with 10,000 DIDs.
const MAX_READER_MESSAGE: usize = 10_000_000;

/// The maximum number of connections waiting to be accepted.
const BACKLOG: u32 = 1024;

/// The maximum length of the body of a request in bytes.
const MAX_BODY: usize = 1 << 20;

/// The interval of checks for the end of the listener and its connections.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// A TCP stream that fails when its [`WriteLimit`] is reached.
#[derive(Debug)]
struct LimitedStream {
    stream: TcpStream,
    limit: Arc<WriteLimit>,
}

/// The number of bytes that may be written.
#[derive(Debug)]
struct WriteLimit {
    written: AtomicU64,
    limit: AtomicU64,
    was_reached: AtomicBool,
}

impl WriteLimit {
    /// No limit.
    fn new() -> Arc<Self> {
        let (written, limit) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        Arc::new(Self { written, limit, was_reached: AtomicBool::new(false) })
    }

    /// Limits writes to `bytes` more bytes.
    fn cut_after(&self, bytes: u64) {
        self.limit.store(self.written.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Whether a write failed at the limit.
    fn was_reached(&self) -> bool {
        self.was_reached.load(Ordering::Relaxed)
    }

    fn allowance(&self) -> u64 {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.written.load(Ordering::Relaxed))
    }
}

impl LimitedStream {
    fn new(stream: TcpStream, limit: Arc<WriteLimit>) -> Self {
        Self { stream, limit }
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let allowed =
            bytes.len().min(usize::try_from(self.limit.allowance()).unwrap_or(usize::MAX));
        if allowed == 0 && !bytes.is_empty() {
            self.limit.was_reached.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(context, &bytes[..allowed]);
        if let Poll::Ready(Ok(written)) = outcome {
            self.limit.written.fetch_add(written as u64, Ordering::Relaxed);
        }
        outcome
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
