//! Options for the requests of a webhook: the secret that signs them, their form and limits.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::BASE64;
use hmac::{Hmac, KeyInit, Mac};
use net::http::Limits;
use sha2::Sha256;

use crate::line_form::LineForm;
use crate::sink::SinkLimits;

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
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
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

/// Options of a [`WebhookSink`](crate::WebhookSink).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookOptions {
    /// Limits of the requests. Default: 256 events and 1 MiB a request, 4 requests at once.
    pub batches: SinkLimits,
    /// Limits of a response. Default: 30 seconds; of its body 64 KiB are read.
    pub response: Limits,
    /// The unit of a line. Default: an event.
    pub form: LineForm,
    /// The form of a body. Default: a JSON array.
    pub body: WebhookBody,
}

/// The form of the body of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookBody {
    /// One JSON document, an array of lines: libraries of Standard Webhooks parse it after they have verified the
    /// signature.
    #[default]
    Json,
    /// JSON lines, all with a line feed.
    Ndjson,
}

impl WebhookBody {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// The body with these lines, all of which end with a line feed.
    pub(super) fn of(self, lines: Vec<u8>) -> Bytes {
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
