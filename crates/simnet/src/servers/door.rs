//! Where one server listens: connections, the requests on them, and the streams that come of those.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::answer::{self, Answer, Query, Question, Refusal, either, error};
use super::fault::Fault;
use super::network::{Network, now};
use super::spec::Server;
use super::teller::{self, Telling};
use super::wire::{Tap, Wire};
use super::{firehose, jetstream, pds, plc, relay};

/// An open server; dropping it closes it and every connection to it.
#[derive(Debug)]
pub(super) struct Door {
    /// Its end is what everyone inside waits for.
    open: Option<watch::Sender<()>>,
    listening: JoinHandle<()>,
}

impl Door {
    /// Opens a server on a port that is its own already.
    pub(super) fn open(
        runtime: &Handle,
        network: &Arc<Network>,
        server: Server,
        port: TcpSocket,
    ) -> io::Result<Self> {
        let _inside = runtime.enter();
        let listener = port.listen(BACKLOG)?;
        let (open, closed) = watch::channel(());
        let site = Site { network: network.clone(), server, closed };
        Ok(Self { open: Some(open), listening: runtime.spawn(site.listen(listener)) })
    }

    /// Closes it. From then on, nobody can connect.
    pub(super) fn close(mut self) {
        drop(self.open.take());
        while !self.listening.is_finished() {
            std::thread::sleep(MOMENT);
        }
    }
}

/// Takes a port of 127.0.0.1, 0 for any, where nobody can connect yet.
pub(super) fn take_port(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // The last connections of the one before may still be closing.
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket)
}

#[derive(Clone)]
struct Site {
    network: Arc<Network>,
    server: Server,
    closed: watch::Receiver<()>,
}

impl Site {
    async fn listen(self, listener: TcpListener) {
        let mut closed = self.closed.clone();
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = closed.changed() => return,
            };
            // What cannot be accepted now, such as for want of descriptors, may be a little later.
            let Ok((stream, _)) = stream else {
                tokio::task::yield_now().await;
                continue;
            };
            self.network.traffic.connections.fetch_add(1, Ordering::Relaxed);
            if self.network.faults.hit(self.server, Fault::Drop).is_none() {
                tokio::spawn(self.clone().serve(stream));
            }
        }
    }

    async fn serve(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let tap = Tap::new();
        let wire = TokioIo::new(Wire::new(stream, tap.clone()));
        let mut closed = self.closed.clone();
        let service = service_fn(move |question| {
            let answer = self.answer(question, &tap);
            async move { Ok::<Answer, io::Error>(answer) }
        });
        let connection = http1::Builder::new().serve_connection(wire, service).with_upgrades();
        tokio::select! {
            _ = connection => {}
            _ = closed.changed() => {}
        }
    }

    fn answer(&self, mut question: Question, tap: &Arc<Tap>) -> Answer {
        let path = question.uri().path().to_owned();
        self.network.traffic.count_request(self.server, &path);
        match self.telling(&path, &question) {
            Some(Ok(telling)) => self
                .refusal_to_upgrade()
                .unwrap_or_else(|| either(self.upgrade(&mut question, telling, tap))),
            Some(Err(refusal)) => refusal.into_answer(),
            None => self.refusal().unwrap_or_else(|| self.document(&question)),
        }
    }

    /// What is told at this path; `None` if it is no stream.
    fn telling(&self, path: &str, question: &Question) -> Option<Result<Telling, Refusal>> {
        let (network, server) = (&self.network, self.server);
        match (server, path) {
            (Server::Pds(_) | Server::Relay(_), "/xrpc/com.atproto.sync.subscribeRepos") => {
                Some(firehose::telling(network, server, &Query::of(question)))
            }
            (Server::Jetstream(_), _) => jetstream::telling(network, server, question),
            _ => None,
        }
    }

    fn document(&self, question: &Question) -> Answer {
        match self.server {
            Server::Plc => plc::answer(&self.network, question),
            Server::Pds(_) => pds::answer(&self.network, self.server, question),
            Server::Relay(_) => relay::answer(&self.network, self.server, question),
            Server::Jetstream(_) => jetstream::answer(&self.network, question),
        }
    }

    fn hit(&self, fault: Fault) -> Option<u64> {
        self.network.faults.hit(self.server, fault)
    }

    fn refusal(&self) -> Option<Answer> {
        if let Some(seconds) = self.hit(Fault::RequestTooMany) {
            return Some(answer::too_many_requests(seconds, now() / 1_000_000));
        }
        if self.hit(Fault::RequestUnavailable).is_some() {
            return Some(answer::bytes(503, "text/html", "<h1>503 Service Unavailable</h1>"));
        }
        let is_sent_away = self.hit(Fault::PrivateRedirect).is_some();
        is_sent_away.then(|| answer::redirect(&format!("{}/", plc::PRIVATE)))
    }

    fn refusal_to_upgrade(&self) -> Option<Answer> {
        if let Some(seconds) = self.hit(Fault::UpgradeTooMany) {
            return Some(answer::too_many_requests(seconds, now() / 1_000_000));
        }
        if self.hit(Fault::UpgradeUnavailable).is_some() {
            return Some(error(503, "ServiceUnavailable", "Service Unavailable").into_answer());
        }
        let is_forbidden = self.hit(Fault::UpgradeForbidden).is_some();
        is_forbidden.then(|| error(403, "Forbidden", "Forbidden").into_answer())
    }

    /// Switches protocols, and tells from then on.
    fn upgrade(
        &self,
        question: &mut Question,
        telling: Telling,
        tap: &Arc<Tap>,
    ) -> Result<Answer, Refusal> {
        let key = question.headers().get(SEC_WEBSOCKET_KEY).map(|key| key.as_bytes().to_vec());
        let key = key.ok_or_else(|| error(426, "UpgradeRequired", "This is a WebSocket"))?;
        let protocol = jetstream::protocol(question);
        let upgraded = hyper::upgrade::on(question);
        let (site, tap) = (self.clone(), tap.clone());
        tokio::spawn(async move {
            if let Ok(upgraded) = upgraded.await {
                site.tell(TokioIo::new(upgraded), telling, &tap).await;
            }
        });
        let mut answer = answer::text(101, "");
        let headers = [(CONNECTION, "upgrade"), (UPGRADE, "websocket")];
        for (name, value) in headers {
            answer = answer::with_header(answer, name, value);
        }
        answer = answer::with_header(answer, SEC_WEBSOCKET_ACCEPT, &derive_accept_key(&key));
        Ok(match protocol {
            Some(protocol) => answer::with_header(answer, SEC_WEBSOCKET_PROTOCOL, protocol),
            None => answer,
        })
    }

    async fn tell(mut self, io: TokioIo<hyper::upgrade::Upgraded>, telling: Telling, tap: &Tap) {
        if let Some(bytes) = self.network.faults.strike(self.server, Fault::Cut) {
            tap.cut_after(bytes);
        }
        let config = WebSocketConfig::default().max_message_size(Some(MAX_HEARD_LEN));
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        tokio::select! {
            () = teller::tell(&mut socket, telling) => {}
            _ = self.closed.changed() => {}
        }
        // Before the connection ends with the socket, and the reader may look.
        if tap.was_reached() {
            self.network.faults.count(self.server, Fault::Cut);
        }
    }
}

/// The longest message that a reader may send: options with 10,000 DIDs.
const MAX_HEARD_LEN: usize = 10_000_000;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

const MOMENT: Duration = Duration::from_micros(200);
