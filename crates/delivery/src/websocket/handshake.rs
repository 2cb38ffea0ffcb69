//! The requests to a WebSocket server: which of them are upgraded, and the answers to the others.
//!
//! A consumer has one client at a time. Another client replaces it once the first has acknowledged none of its
//! events for the time after which events are sent again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use base::StopSignal;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use net::http_server;
use net::websocket_server::{switching, upgrade_key};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::messages::Protocol;
use super::options::{WebSocketMetrics, WebSocketOptions};
use crate::consumer::Consumer;
use crate::error::OutboxFault;
use crate::outbox::Outbox;

/// State that the connections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbox: Outbox,
    pub(super) consumers: BTreeMap<Box<str>, Seat>,
    pub(super) options: Arc<WebSocketOptions>,
    pub(super) metrics: Arc<WebSocketMetrics>,
}

/// The place of the client of a consumer.
#[derive(Debug, Default)]
pub(super) struct Seat {
    /// Locked by the connection.
    lock: Arc<Mutex<()>>,
    client: std::sync::Mutex<Arc<Client>>,
}

/// The state of the client of a consumer.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// Whether it has acknowledged none of its events for too long.
    pub(super) is_stalled: AtomicBool,
    /// Requested when another client replaces it.
    pub(super) gives_way: StopSignal,
}

/// A request to upgrade.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) protocol: Protocol,
    pub(super) upgrade: OnUpgrade,
    // Before the lock, so that the next connection finds it free.
    pub(super) consumer: Consumer,
    pub(super) client: Arc<Client>,
    pub(super) lock: OwnedMutexGuard<()>,
}

/// The key of a handshake.
type Key = Vec<u8>;

/// A consumer with its client, and its lock.
type Attached = (Consumer, Arc<Client>, OwnedMutexGuard<()>);

/// The answer to a request that is not upgraded.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    reason: &'static str,
}

impl Shared {
    /// Answers a request. The answer to an upgrade comes with the next step.
    pub(super) async fn respond(
        &self,
        request: &mut Request<Incoming>,
    ) -> (Response<Full<Bytes>>, Option<Accepted>) {
        match self.accept(request).await {
            Ok((protocol, key, (consumer, client, lock))) => {
                let upgrade = hyper::upgrade::on(request);
                (switching(&key), Some(Accepted { protocol, upgrade, consumer, client, lock }))
            }
            Err(refusal) => {
                self.metrics.refused.fetch_add(1, Relaxed);
                (refusal.into_response(), None)
            }
        }
    }

    /// The protocol, the key and the consumer of a request.
    async fn accept(
        &self,
        request: &Request<Incoming>,
    ) -> Result<(Protocol, Key, Attached), Refusal> {
        self.check_sender(request.headers())?;
        let protocol = Protocol::at(request.uri().path()).ok_or_else(|| {
            refuse(StatusCode::NOT_FOUND, "WebSockets are at /lines and /channel")
        })?;
        let name = self.consumer_of(request.uri().query().unwrap_or_default())?;
        let key = upgrade_key(request).ok_or_else(|| {
            refuse(StatusCode::UPGRADE_REQUIRED, "expected a WebSocket handshake of version 13")
        })?;
        Ok((protocol, key, self.attach(name).await?))
    }

    /// Checks the token and the origin. Every browser sends an origin, and lets any page connect to a loopback address.
    fn check_sender(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        if let Some(origin) = text(ORIGIN)
            && !self.options.origins.iter().any(|allowed| allowed == origin)
        {
            return Err(refuse(StatusCode::FORBIDDEN, "web pages of this origin may not connect"));
        }
        match &self.options.token {
            Some(token) if !token.is_in(headers) => {
                Err(refuse(StatusCode::UNAUTHORIZED, "expected Authorization: Bearer TOKEN"))
            }
            _ => Ok(()),
        }
    }

    /// The consumer that a query names; without `consumer` the only one.
    fn consumer_of(&self, query: &str) -> Result<&str, Refusal> {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let named = pairs.find(|(key, _)| key == "consumer").map(|(_, name)| name);
        let mut names = self.consumers.keys();
        match (named, names.next(), names.next()) {
            (Some(named), ..) => self.consumers.get_key_value(&*named).map(|(name, _)| &**name),
            (None, Some(only), None) => return Ok(only),
            _ => {
                let reason = "this server has several consumers: add ?consumer=NAME";
                return Err(refuse(StatusCode::BAD_REQUEST, reason));
            }
        }
        .ok_or_else(|| refuse(StatusCode::NOT_FOUND, "this server has no such consumer"))
    }

    /// Attaches to a consumer, after a wait for the end of another connection of it, which is ended if it is stalled.
    async fn attach(&self, name: &str) -> Result<Attached, Refusal> {
        let in_use =
            || refuse(StatusCode::CONFLICT, "another client is connected as this consumer");
        let seat = self.consumers.get(name).ok_or_else(in_use)?;
        let before = seat.client();
        if before.is_stalled.load(Relaxed) {
            before.gives_way.request();
        }
        let locked = timeout(self.options.takeover_timeout, seat.lock.clone().lock_owned()).await;
        let lock = locked.map_err(|_| in_use())?;
        let consumer = self.outbox.consumer(name).map_err(|error| match error.fault {
            OutboxFault::ConsumerInUse(_) => in_use(),
            _ => refuse(StatusCode::INTERNAL_SERVER_ERROR, "the consumer is not registered"),
        })?;
        Ok((consumer, seat.new_client(), lock))
    }
}

impl Seat {
    fn client(&self) -> Arc<Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn new_client(&self) -> Arc<Client> {
        let new = Arc::<Client>::default();
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = new.clone();
        new
    }
}

fn refuse(status: StatusCode, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

impl Refusal {
    fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = http_server::text_response(self.status, self.reason);
        if self.status == StatusCode::UNAUTHORIZED {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
