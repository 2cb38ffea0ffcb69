//! The sink of webhooks: batches of events as signed HTTP requests, in the form of Standard Webhooks.
//!
//! | header | value |
//! |---|---|
//! | `content-type` | `application/json`: an array of the payloads; or `application/x-ndjson`: the payload of one event a line |
//! | `webhook-id`, `idempotency-key` | hash of the ids of the events: the same for each attempt with the same events |
//! | `webhook-timestamp` | seconds since 1970 when the attempt was made |
//! | `webhook-signature` | `v1,` and the HMAC-SHA-256 of `ID.TIMESTAMP.BODY` in base64 |
//!
//! The receiver accepts all events with a 2xx status, whatever the body of its response. It sees an event again when its response
//! was lost, under the same `webhook-id` or, after a restart, in another batch: the ids in the lines never change.
//!
//! | response | what follows |
//! |---|---|
//! | 2xx | the events are accepted |
//! | 400, 409, 413, 415, 422 | the batch is halved to find the refused events, which are set aside after some attempts if the receiver accepts others meanwhile |
//! | 408, 425, 429, 5xx, no response | the same request again after a growing delay, not before `Retry-After` up to 15 minutes |
//! | any other | the same: the receiver refuses the address or the sender, and not the events |

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use kernels::sha256;
use net::http::{self, Limits, Url};
use net::rate_limit;
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};
use sha2::Sha256;

use crate::event::{self, Event};
use crate::line_form::{LineForm, lines_of};
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};

/// The secret that signs requests. Its debug output does not contain it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Box<[u8]>);

impl WebhookSecret {
    /// Parses a secret: `whsec_` and base64, or any other text, whose bytes are used as they are.
    ///
    /// # Errors
    /// If the key has fewer than 24 or more than 64 bytes, or is not base64 after `whsec_`.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let key = match text.strip_prefix("whsec_") {
            Some(encoded) => {
                BASE64.decode(encoded.as_bytes()).map_err(|_| InvalidSecret::Base64)?
            }
            None => text.as_bytes().to_vec(),
        };
        match key.len() {
            24..=64 => Ok(Self(key.into())),
            len => Err(InvalidSecret::Length(len)),
        }
    }

    /// The signature of a request.
    fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is allowed");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
    }
}

impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// Why a text is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSecret {
    /// It is too short or too long.
    #[error("a secret of {0} bytes: use 24 to 64")]
    Length(usize),
    /// The text after `whsec_` is not base64.
    #[error("the text after `whsec_` is not base64")]
    Base64,
}

/// Options of a [`WebhookSink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// Limits of the requests. Default: 256 events and 1 MiB a request, 4 requests at once.
    pub batches: SinkLimits,
    /// Limits of a response. Default: 30 seconds; of its body 64 KiB are read.
    pub response: Limits,
    /// What is one line. Default: an event.
    pub form: LineForm,
    /// The form of a body. Default: a JSON array.
    pub body: WebhookBody,
}

/// The form of the body of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookBody {
    /// One JSON document, an array of lines: what libraries of Standard Webhooks parse after they verified the signature.
    #[default]
    Json,
    /// JSON lines, each with a line feed.
    Ndjson,
}

impl WebhookBody {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// The body with these lines, each of which ends with a line feed.
    fn of(self, lines: Vec<u8>) -> Bytes {
        match self {
            Self::Ndjson => lines.into(),
            Self::Json => {
                let lines = lines.strip_suffix(b"\n").unwrap_or(&lines);
                let mut body = Vec::with_capacity(lines.len() + 2);
                body.push(b'[');
                body.extend(lines.iter().map(|byte| if *byte == b'\n' { b',' } else { *byte }));
                body.push(b']');
                body.into()
            }
        }
    }
}

impl Default for WebhookOptions {
    fn default() -> Self {
        let seconds = Duration::from_secs(30);
        let response = Limits {
            max_bytes: 64 << 10,
            max_time: seconds,
            idle_timeout: seconds,
            ..Limits::DOCUMENT
        };
        let batches = SinkLimits::new(256, 1 << 20).with_concurrency(4);
        Self { batches, response, form: LineForm::default(), body: WebhookBody::default() }
    }
}

/// Sends events to a URL of the operator.
#[derive(Clone, Debug)]
pub struct WebhookSink {
    client: http::Client,
    url: Url,
    secret: WebhookSecret,
    options: WebhookOptions,
}

impl WebhookSink {
    /// A sink that sends to `url`, which the operator has named: with a `client` of
    /// [`EgressPolicy::Unrestricted`](net::egress::EgressPolicy) it may be in a private network. Redirects are not
    /// followed.
    pub fn new(
        client: http::Client,
        url: Url,
        secret: WebhookSecret,
        options: WebhookOptions,
    ) -> Self {
        Self { client, url, secret, options }
    }

    /// The headers of a request that is made now.
    fn headers(&self, events: &[Event], body: &[u8]) -> Option<http::HeaderMap> {
        let id = batch_id(events);
        let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let pairs = [
            ("content-type", self.options.body.content_type().to_owned()),
            ("idempotency-key", id.clone()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", self.secret.sign(&id, timestamp, body)),
            ("webhook-id", id),
        ];
        let header = |(name, value): (&'static str, String)| {
            Some((http::HeaderName::from_static(name), value.parse().ok()?))
        };
        pairs.into_iter().map(header).collect()
    }
}

impl Sink for WebhookSink {
    fn limits(&self) -> SinkLimits {
        self.options.batches
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let (lines, refused) = lines_of(self.options.form, events);
        if let Some(refused) = refused {
            // Those before it are sent without it.
            return Err(SendFailure { accepted: Vec::new(), ..refused });
        }
        let body = self.options.body.of(lines);
        let headers = self.headers(events, &body);
        let headers = headers.ok_or_else(|| SendFailure::temporary("a header cannot be sent"))?;
        match self.client.post(&self.url, headers, body, &self.options.response).await {
            Ok(response) => check(&response),
            Err(error) => Err(SendFailure::temporary(error)),
        }
    }
}

/// What follows from a response.
fn check(response: &http::Response) -> Result<(), SendFailure> {
    let status = response.status;
    let kind = match status {
        200..=299 => return Ok(()),
        400 | 409 | 413 | 415 | 422 => FailureKind::Declined,
        _ => {
            let requested = rate_limit::retry_after(status, &response.headers);
            FailureKind::Temporary(requested.unwrap_or_default())
        }
    };
    let about = match status {
        300..=399 => ": redirects are not followed, name the address that it leads to",
        401..=407 | 410..=412 | 416..=421 | 426 | 451 => {
            ": the receiver refuses the address or the sender, not the events"
        }
        _ => "",
    };
    let text = sanitize(&String::from_utf8_lossy(&response.body), MAX_MESSAGE_CHARS);
    let separator = if text.is_empty() { "" } else { ": " };
    Err(SendFailure::new(kind, format!("status {status}{about}{separator}{text}")))
}

/// The id of a batch: the same for the same events in the same order.
fn batch_id(events: &[Event]) -> String {
    // Each with its length, so that no two lists of ids have the same bytes.
    let with_len = |id: &str| [&(id.len() as u64).to_be_bytes(), id.as_bytes()].concat();
    let ids: Vec<u8> = events.iter().flat_map(|event| with_len(event.id())).collect();
    HEXLOWER.encode(&event::truncated(&sha256::digest(&ids)))
}

#[cfg(test)]
mod tests;
