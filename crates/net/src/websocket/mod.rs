//! WebSocket client with limits on messages and silence.
//!
//! The upgrade is a request of our [`Client`]: the address of the host is checked when it is connected to,
//! redirects are not followed, and a rejection is read up to a limit and reported. Messages of a [`Socket`]
//! have a maximum size, and the connection a maximum time without a byte.

mod error;
mod other_stream;
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
use crate::remote_text::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, sanitize};

pub use error::{DialError, DialFault, RejectedUpgrade, SocketError};
#[cfg(feature = "jetstream")]
pub(crate) use other_stream::JETSTREAM_V2;
pub use other_stream::StreamKind;
pub(crate) use other_stream::with_other_stream;
pub use socket::{Socket, SocketMessage};

/// Opens WebSockets. Clones share the HTTP client.
#[derive(Clone, Debug)]
pub struct Dialer(Client);

/// Options of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions<'a> {
    /// The requested subprotocol. A server may accept none, but no other. None.
    pub protocol: Option<&'a str>,
    /// Maximum time until the upgrade. 15 seconds.
    pub handshake_timeout: Duration,
    /// Maximum size of a message in bytes. 16 MiB.
    pub max_message_bytes: usize,
    /// Interval of pings. 30 seconds.
    pub ping_interval: Duration,
    /// Maximum time without a byte. 60 seconds.
    pub idle_timeout: Duration,
    /// Size of the read buffer in bytes, which is cleared for every read. 64 KiB.
    pub read_buffer_bytes: usize,
}

impl Default for SocketOptions<'_> {
    fn default() -> Self {
        Self {
            protocol: None,
            handshake_timeout: Duration::from_secs(15),
            max_message_bytes: 16 << 20,
            ping_interval: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            read_buffer_bytes: 64 << 10,
        }
    }
}

impl Dialer {
    /// A dialer that connects through `client`.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The HTTP client.
    pub fn client(&self) -> &Client {
        &self.0
    }

    /// Opens a WebSocket to `url`, whose scheme is `wss`, `https` or, in development, `ws` or `http`.
    ///
    /// # Errors
    /// If the policy denies the host, it does not respond, or rejects the upgrade.
    pub async fn dial(&self, url: &Url, options: &SocketOptions<'_>) -> Result<Socket, DialError> {
        let host = url.host_str().unwrap_or_default();
        let fail = |fault| DialError::new(host, fault);
        let key = generate_key();
        let headers = request_headers(&key, options.protocol).map_err(fail)?;
        let deadline = Instant::now() + options.handshake_timeout;
        let timed_out = |_| fail(DialFault::Http(HttpFault::Timeout(options.handshake_timeout)));
        let request = self.0.request_upgrade(url, headers);
        let response = timeout_at(deadline, request).await.map_err(timed_out)??;
        if response.status() != 101 {
            return Err(fail(DialFault::Refused(read_refusal(response).await)));
        }
        check(response.headers(), &key, options.protocol)
            .map_err(|rule| fail(DialFault::Handshake(rule)))?;
        let transport = |error| DialError::from(HttpError::of(host, &error));
        let upgraded = timeout_at(deadline, response.upgrade())
            .await
            .map_err(timed_out)?
            .map_err(transport)?;
        Ok(Socket::new(upgraded, options).await)
    }
}

fn request_headers(key: &str, protocol: Option<&str>) -> Result<HeaderMap, DialFault> {
    let value = |text: &str| {
        HeaderValue::from_str(text)
            .map_err(|_| DialFault::Handshake("the subprotocol is not a token"))
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

/// Checks the response by RFC 6455, section 4.1.
fn check(headers: &HeaderMap, key: &str, protocol: Option<&str>) -> Result<(), &'static str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let has = |name, token: &str| {
        text(name).split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
    };
    if !has(UPGRADE, "websocket") || !has(CONNECTION, "upgrade") {
        return Err("the response upgrades to another protocol");
    }
    if text(SEC_WEBSOCKET_ACCEPT) != derive_accept_key(key.as_bytes()) {
        return Err("Sec-WebSocket-Accept does not match the key");
    }
    match headers.get(SEC_WEBSOCKET_PROTOCOL) {
        Some(accepted) if Some(accepted.as_bytes()) != protocol.map(str::as_bytes) => {
            Err("a subprotocol that was not requested")
        }
        _ => Ok(()),
    }
}

/// The response of a host that rejects the upgrade, up to a limit of size and time.
async fn read_refusal(mut response: Response) -> RejectedUpgrade {
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL_BYTES - body.len())]);
            if body.len() == MAX_REFUSAL_BYTES {
                return;
            }
        }
    };
    // On a timeout, the part received until then is reported.
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, read).await;
    parse_rejection(status, response.headers(), &body)
}

/// Parses the response of a rejection.
pub(crate) fn parse_rejection(status: u16, headers: &HeaderMap, body: &[u8]) -> RejectedUpgrade {
    let error: ErrorBody = serde_json::from_slice(body).unwrap_or_else(|_| ErrorBody {
        error: None,
        message: Some(String::from_utf8_lossy(body).into_owned()),
    });
    let message = sanitize(error.message.as_deref().unwrap_or_default(), MAX_MESSAGE_CHARS);
    let name = error.error.map(|name| sanitize(&name, MAX_NAME_CHARS));
    let retry_after = rate_limit::retry_after(status, headers);
    RejectedUpgrade { status, name, message, retry_after, other_stream: None }
}

#[derive(Deserialize)]
struct ErrorBody {
    error: Option<String>,
    message: Option<String>,
}

const MAX_REFUSAL_BYTES: usize = 4 << 10;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
