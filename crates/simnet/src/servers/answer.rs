//! Questions and answers over HTTP, as short as they can be said.

use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

/// A question.
pub(super) type Question = Request<Incoming>;

/// An answer.
pub(super) type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Bytes as an answer.
pub(super) fn bytes(status: u16, content_type: &str, bytes: impl Into<Bytes>) -> Answer {
    let body = Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync();
    dressed(status, content_type, body)
}

/// Bytes that come as they are made.
pub(super) fn stream<S>(content_type: &str, pieces: S) -> Answer
where
    S: futures_util::Stream<Item = io::Result<Bytes>> + Send + 'static,
{
    use futures_util::StreamExt;
    let frames = pieces.map(|piece| piece.map(Frame::data));
    dressed(200, content_type, StreamBody::new(frames).boxed_unsync())
}

fn dressed(status: u16, content_type: &str, body: UnsyncBoxBody<Bytes, io::Error>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status of ours");
    with_header(answer, CONTENT_TYPE, content_type)
}

/// JSON as an answer.
pub(super) fn json(status: u16, value: &Value) -> Answer {
    bytes(status, "application/json; charset=utf-8", value.to_string())
}

/// Text as an answer.
pub(super) fn text(status: u16, text: &str) -> Answer {
    bytes(status, "text/plain; charset=utf-8", text.to_owned())
}

/// Why there is no answer: an error of XRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    status: u16,
    name: &'static str,
    message: String,
}

/// An error of XRPC.
#[cold]
pub(super) fn error(status: u16, name: &'static str, message: &str) -> Refusal {
    Refusal { status, name, message: message.to_owned() }
}

impl Refusal {
    /// The answer that says so.
    pub(super) fn into_answer(self) -> Answer {
        json(self.status, &json!({ "error": self.name, "message": self.message }))
    }
}

/// Go there.
pub(super) fn redirect(location: &str) -> Answer {
    with_header(text(302, ""), LOCATION, location)
}

/// The answer with this header.
pub(super) fn with_header(mut answer: Answer, name: HeaderName, value: &str) -> Answer {
    let value = HeaderValue::from_str(value).expect("visible ASCII");
    answer.headers_mut().insert(name, value);
    answer
}

/// 429 with everything that a server of the network says with it.
pub(super) fn too_many_requests(retry_after_s: u64, now_s: u64) -> Answer {
    let answer = error(429, "RateLimitExceeded", "Rate Limit Exceeded").into_answer();
    let headers = BTreeMap::from([
        ("retry-after", retry_after_s.to_string()),
        ("ratelimit-limit", "3000".to_owned()),
        ("ratelimit-remaining", "0".to_owned()),
        ("ratelimit-reset", (now_s + retry_after_s).to_string()),
        ("ratelimit-policy", "3000;w=300".to_owned()),
    ]);
    let named = headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value));
    named.fold(answer, |answer, (name, value)| with_header(answer, name, &value))
}

/// The parameters of a question.
#[derive(Clone, Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(question: &Question) -> Self {
        let query = question.uri().query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first parameter of this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All parameters of this name.
    pub(super) fn all<'q>(&'q self, name: &str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The names of all parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// A parameter that must be there.
    pub(super) fn need(&self, name: &str) -> Result<&str, Refusal> {
        let missing = || {
            error(
                400,
                "InvalidRequest",
                &format!("Error: Params must have the property \"{name}\""),
            )
        };
        self.get(name).ok_or_else(missing)
    }

    /// A number between 1 and `most`.
    pub(super) fn limit(&self, usual: usize, most: usize) -> Result<usize, Refusal> {
        let Some(text) = self.get("limit") else { return Ok(usual) };
        let limit = text.parse().ok().filter(|limit| (1..=most).contains(limit));
        let wrong = || format!("Error: limit must be an integer between 1 and {most}");
        limit.ok_or_else(|| error(400, "InvalidRequest", &wrong()))
    }

    /// A place in a list, which only we know how to read.
    pub(super) fn place(&self) -> Result<usize, Refusal> {
        let Some(text) = self.get("cursor") else { return Ok(0) };
        text.parse().map_err(|_| error(400, "InvalidRequest", "Malformed cursor"))
    }
}

/// Either outcome: what was to be answered, or why not.
pub(super) fn either(outcome: Result<Answer, Refusal>) -> Answer {
    outcome.unwrap_or_else(Refusal::into_answer)
}
