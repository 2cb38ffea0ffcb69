//! How is a WebSocket opened to a host that nobody vouches for, and kept within bounds?
//!
//! The upgrade is a request of our own [`Client`]: the host's address is checked
//! when it is connected to, redirects are not followed, and an answer that is no upgrade is read up to a
//! bound and told. What comes over the [`Socket`] then has a longest length and a longest silence.

mod error;
mod socket;

use std::time::Duration;

use reqwest::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Response, Url};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::http::{Client, HttpError, HttpFault};
use crate::rate_limit;

pub use error::{DialError, DialFault, Refusal, SocketError};
pub use socket::{Socket, SocketMessage};

/// Opens WebSockets. Clones share what it knows of TLS.
#[derive(Clone, Debug)]
pub struct Dialer(Client);

/// How a WebSocket is opened, and what it must bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions<'a> {
    /// The subprotocol that is asked for. A server may agree to none, but not to another.
    pub protocol: Option<&'a str>,
    /// The longest time until the upgrade.
    pub handshake_timeout: Duration,
    /// The longest message, in bytes.
    pub max_message_bytes: usize,
    /// How often the other side is pinged while nothing comes.
    pub ping_interval: Duration,
    /// The longest time without a byte.
    pub idle_timeout: Duration,
    /// How much is read at once, in bytes.
    pub read_buffer_bytes: usize,
}

impl Default for SocketOptions<'_> {
    /// No subprotocol; an upgrade within 15 seconds; messages of 16 MiB; a ping every 30 seconds, and 60
    /// without a byte; 256 KiB at once.
    fn default() -> Self {
        Self {
            protocol: None,
            handshake_timeout: Duration::from_secs(15),
            max_message_bytes: 16 << 20,
            ping_interval: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            read_buffer_bytes: 256 << 10,
        }
    }
}

impl Dialer {
    /// Opens WebSockets where `client` may connect, and as it does.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The client that the upgrades go through.
    pub fn client(&self) -> &Client {
        &self.0
    }

    /// Opens a WebSocket to `url`, whose scheme is `wss`, `https` or, in development, `ws` or `http`.
    ///
    /// # Errors
    /// If the host may not be reached, does not answer, or does not upgrade.
    pub async fn dial(&self, url: &Url, options: &SocketOptions<'_>) -> Result<Socket, DialError> {
        let host = url.host_str().unwrap_or_default();
        let refused = |fault| DialError::new(host, fault);
        let key = generate_key();
        let headers = request_headers(&key, options.protocol).map_err(refused)?;
        let ends = Instant::now() + options.handshake_timeout;
        let late = |_| refused(DialFault::Http(HttpFault::Timeout(options.handshake_timeout)));
        let asked = self.0.ask_upgrade(url, headers);
        let response = timeout_at(ends, asked).await.map_err(late)??;
        if response.status() != 101 {
            return Err(refused(DialFault::Refused(read_refusal(response).await)));
        }
        check(response.headers(), &key, options.protocol)
            .map_err(|rule| refused(DialFault::Handshake(rule)))?;
        let broken = |error| DialError::from(HttpError::of(host, &error));
        let upgraded = timeout_at(ends, response.upgrade()).await.map_err(late)?.map_err(broken)?;
        Ok(Socket::new(upgraded, options).await)
    }
}

fn request_headers(key: &str, protocol: Option<&str>) -> Result<HeaderMap, DialFault> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| DialFault::Handshake("a subprotocol is a token"))
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(SEC_WEBSOCKET_KEY, value(key)?);
    if let Some(protocol) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value(protocol)?);
    }
    Ok(headers)
}

/// Holds the answer to RFC 6455, section 4.1.
fn check(headers: &HeaderMap, key: &str, protocol: Option<&str>) -> Result<(), &'static str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let has =
        |name, word: &str| text(name).split(',').any(|part| part.trim().eq_ignore_ascii_case(word));
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") {
        return Err("the upgrade is to another protocol");
    }
    if text(SEC_WEBSOCKET_ACCEPT) != derive_accept_key(key.as_bytes()) {
        return Err("the answer does not follow from the key");
    }
    match headers.get(SEC_WEBSOCKET_PROTOCOL) {
        Some(agreed) if Some(agreed.as_bytes()) != protocol.map(str::as_bytes) => {
            Err("a subprotocol that nobody asked for")
        }
        _ => Ok(()),
    }
}

/// What the host says instead, as far as it says so shortly.
async fn read_refusal(mut response: Response) -> Refusal {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece[..piece.len().min(MAX_REFUSAL_BYTES - body.len())]);
            if body.len() == MAX_REFUSAL_BYTES {
                return;
            }
        }
    };
    // What has come by then is what is told.
    let _ = tokio::time::timeout(MAX_REFUSAL_TIME, read).await;
    read_said(status, response.headers(), &body)
}

/// What an answer with an error says.
pub(crate) fn read_said(status: u16, headers: &HeaderMap, body: &[u8]) -> Refusal {
    let said: Said = serde_json::from_slice(body).unwrap_or_else(|_| Said {
        error: None,
        message: Some(String::from_utf8_lossy(body).into_owned()),
    });
    let message = said.message.as_deref().map(sanitize).unwrap_or_default();
    let retry_after = rate_limit::retry_after(status, headers);
    Refusal { status, name: said.error.as_deref().map(sanitize), message, retry_after }
}

#[derive(Deserialize)]
struct Said {
    error: Option<String>,
    message: Option<String>,
}

/// One line of a stranger's text, without what would steer a terminal.
pub(crate) fn sanitize(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(MAX_TOLD_CHARS).collect()
}

const MAX_REFUSAL_BYTES: usize = 4 << 10;
const MAX_REFUSAL_TIME: Duration = Duration::from_secs(5);
const MAX_TOLD_CHARS: usize = 300;
