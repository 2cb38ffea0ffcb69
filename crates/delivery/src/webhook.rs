//! The sink of webhooks: batches of events as signed HTTP requests, in the form of Standard Webhooks.
//!
//! | header | value |
//! |---|---|
//! | `content-type` | `application/json`: an array of the payloads; or `application/x-ndjson`: the payload of one event a line |
//! | `webhook-id`, `idempotency-key` | hash of the ids of the events: the same for every attempt with the same events |
//! | `webhook-timestamp` | seconds since 1970 when the attempt was made |
//! | `webhook-signature` | `v1,` and the HMAC-SHA-256 of `ID.TIMESTAMP.BODY` in base64 |
//!
//! The receiver accepts all events with a 2xx status, whatever the body of its response. It sees an event again when its response
//! was lost, under the same `webhook-id` or, after a restart, in another batch: the ids in the lines never change.
//!
//! | response | consequence |
//! |---|---|
//! | 2xx | the events are accepted |
//! | 400, 409, 413, 415, 422 | the batch is halved to find the refused events, which are set aside after some attempts if the receiver accepts others meanwhile |
//! | 408, 425, 429, 5xx, no response | the same request again after a growing delay, not before `Retry-After` up to 15 minutes |
//! | any other | the same: the receiver refuses the address or the sender, and not the events |

pub(crate) mod options;

use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use kernels::sha256;
use net::http::{self, Url};
use net::rate_limit;
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};

use self::options::{WebhookOptions, WebhookSecret};
use crate::event::{self, Event};
use crate::line_form::lines_of;
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};
use crate::sink_address::{OpenFailure, SinkAddress, consumer_name};
use crate::sink_options::SinkOptions;

/// The URL of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAddress(Url);

impl SinkAddress for WebhookAddress {
    const SCHEMES: &'static [&'static str] = &["https", "http"];
    const FORM: &'static str = "a URL of https or http";
    const SIGNS_REQUESTS: bool = true;
    type Sink = WebhookSink;

    fn from_uri(uri: &str) -> Result<Self, String> {
        let url = Url::parse(uri).map_err(|error| error.to_string())?;
        if url.username().is_empty() && url.password().is_none() {
            Ok(Self(url))
        } else {
            Err("expected a URL without a user: requests are signed instead".to_owned())
        }
    }

    fn consumer(&self) -> String {
        consumer_name("webhook", self.0.host_str().unwrap_or_default(), self.0.as_str().as_bytes())
    }

    async fn open(&self, options: &SinkOptions) -> Result<WebhookSink, OpenFailure> {
        let needs = |what: &str| OpenFailure::Local(format!("a webhook needs {what}"));
        let client = options.http.clone().ok_or_else(|| needs("an HTTP client"))?;
        let secret = options.webhook_secret.clone().ok_or_else(|| needs("a secret"))?;
        let sent = WebhookOptions {
            form: options.form,
            body: options.webhook_body,
            ..WebhookOptions::default()
        };
        Ok(WebhookSink::new(client, self.0.clone(), secret, sent))
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

/// The consequence of a response.
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
    // Every id with its length, so that no two lists of ids have the same bytes.
    let with_len = |id: &str| [&(id.len() as u64).to_be_bytes(), id.as_bytes()].concat();
    let ids: Vec<u8> = events.iter().flat_map(|event| with_len(event.id())).collect();
    HEXLOWER.encode(&event::truncated(&sha256::digest(&ids)))
}

#[cfg(test)]
mod tests;
