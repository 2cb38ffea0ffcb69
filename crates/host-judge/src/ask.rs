//! Requests to the judged host: paced, bounded, and judged by the rules of HTTP and XRPC.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use net::http::{Client, HeaderMap, HttpFault, Limits, Url};
use net::rate_limit::RateLimiter;
use net::remote_text::sanitize;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::finding::{Finding, Findings};
use crate::rule;

/// The judged host.
pub(crate) struct Host {
    pub(crate) url: Url,
    pub(crate) http: Client,
    limiter: RateLimiter,
    /// The time of the next request.
    next: tokio::sync::Mutex<Instant>,
    interval: Duration,
    /// Maximum silence within a body, and on a stream.
    pub(crate) idle: Duration,
    findings: Mutex<Findings>,
    /// The methods that answered at least once.
    answered: Mutex<u64>,
}

/// An answer of the host.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A body, and whether the host redirected the request to another one.
    Body { body: Vec<u8>, is_elsewhere: bool },
    /// A body longer than the limit, up to it.
    TooLong { body: Vec<u8>, is_elsewhere: bool },
    /// An XRPC error, or an error status.
    Refused(Refusal),
    /// No answer that could be judged; the finding is noted.
    Failed,
}

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// The name of the XRPC error; empty without one.
    pub(crate) name: String,
    pub(crate) message: String,
}

/// The parameters of a request.
pub(crate) type Parameters<'p> = [(&'p str, &'p str)];

impl Refusal {
    /// Whether the host says that it does not have the account.
    pub(crate) fn is_unknown_account(&self) -> bool {
        self.name == "RepoNotFound"
            || (self.status == 404 && self.name == "NotFound")
            || (matches!(self.status, 400 | 404)
                && !self.is_inactive()
                && self.message.to_ascii_lowercase().contains("not find"))
    }

    /// Whether the host says that the account is not active.
    pub(crate) fn is_inactive(&self) -> bool {
        ["RepoTakendown", "RepoSuspended", "RepoDeactivated", "RepoDeleted", "RepoInactive"]
            .contains(&&*self.name)
    }

    /// Whether the host has no such method.
    pub(crate) fn is_no_method(&self) -> bool {
        self.name == "MethodNotImplemented"
            || self.status == 501
            || (self.status == 404 && matches!(&*self.name, "" | "NotFound" | "XRPCNotSupported"))
            || self.status == 405
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "status {}", self.status)?;
        let texts = [&self.name, &self.message].into_iter().filter(|text| !text.is_empty());
        texts.into_iter().try_for_each(|text| write!(f, ": {text}"))
    }
}

impl Host {
    pub(crate) fn new(url: Url, http: Client, requests_per_s: u32, idle: Duration) -> Self {
        Self {
            url,
            http,
            limiter: RateLimiter::new(MAX_RATE_WAIT),
            next: tokio::sync::Mutex::new(Instant::now()),
            interval: Duration::from_secs(1) / requests_per_s.max(1),
            idle,
            findings: Mutex::default(),
            answered: Mutex::new(0),
        }
    }

    /// Adds a finding.
    pub(crate) fn note(&self, finding: Finding) {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).add(finding);
    }

    /// The findings so far, which are no longer kept here.
    pub(crate) fn take_findings(&self) -> Findings {
        std::mem::take(&mut self.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Number of requests that were answered.
    pub(crate) fn answered(&self) -> u64 {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command that sends a request again.
    pub(crate) fn curl(&self, method: &str, parameters: &Parameters<'_>) -> String {
        format!("curl -sSi '{}'", self.method_url(method, parameters))
    }

    fn method_url(&self, method: &str, parameters: &Parameters<'_>) -> Url {
        let mut url = self.url.clone();
        let namespace = if method.contains('.') { "" } else { "com.atproto.sync." };
        url.set_path(&format!("/xrpc/{namespace}{method}"));
        url.set_query(None);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        url
    }

    /// Sends a request, again if there is no complete answer.
    pub(crate) async fn ask(
        &self,
        method: &'static str,
        parameters: &Parameters<'_>,
        limits: &Limits,
    ) -> Reply {
        let limits = Limits { idle_timeout: self.idle.min(limits.idle_timeout), ..*limits };
        let mut attempts = 1;
        loop {
            let reply = self.ask_once(method, parameters, &limits).await;
            match reply {
                Ok(reply) => return reply,
                Err(_) if attempts < MAX_ATTEMPTS => attempts += 1,
                Err(finding) => {
                    let finding = self.without_outage(finding, &limits).await;
                    self.note(finding.seen_by(self.curl(method, parameters)));
                    return Reply::Failed;
                }
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// A lost answer counts as a fault only of a host that answers other requests at the time.
    async fn without_outage(&self, finding: Finding, limits: &Limits) -> Finding {
        let is_lost = [rule::CUT.code, rule::STALLED.code].contains(&finding.code);
        if is_lost && self.ask_once("listRepos", &[("limit", "1")], limits).await.is_err() {
            return Finding::of(&rule::UNANSWERED, finding.method, finding.message);
        }
        finding
    }

    async fn ask_once(
        &self,
        method: &'static str,
        parameters: &Parameters<'_>,
        limits: &Limits,
    ) -> Result<Reply, Finding> {
        let mut url = self.method_url(method, parameters);
        for _ in 0..=MAX_REDIRECTS {
            let is_elsewhere = url.origin() != self.url.origin();
            if !is_elsewhere {
                self.wait().await.map_err(|text| Finding::of(&rule::UNANSWERED, method, text))?;
            }
            let opened = timeout(MAX_REQUEST, self.http.open_direct(&url, limits)).await;
            let fault = match opened {
                Ok(Ok(mut body)) => {
                    let (status, headers) = (body.status(), body.headers().clone());
                    if !is_elsewhere {
                        self.judge_headers(method, parameters, status, &headers);
                    }
                    if (300..400).contains(&status) {
                        url = target(&url, &headers).ok_or_else(|| {
                            let text = format!("status {status} without a valid `Location`");
                            Finding::of(&rule::REDIRECT, method, text)
                        })?;
                        continue;
                    }
                    let mut bytes = Vec::new();
                    let read = timeout(limits.max_time, async {
                        while let Some(chunk) = body.next().await? {
                            bytes.extend_from_slice(&chunk);
                        }
                        Ok::<_, net::http::HttpError>(())
                    });
                    let read = read.await.unwrap_or_else(|_| {
                        let fault = HttpFault::Timeout(limits.max_time);
                        Err(net::http::HttpError { host: String::new(), fault })
                    });
                    if !is_elsewhere {
                        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                    }
                    return match read.map_err(|error| error.fault) {
                        Ok(()) if status == 200 => Ok(Reply::Body { body: bytes, is_elsewhere }),
                        Ok(()) => self.refused(method, status, &bytes),
                        Err(HttpFault::TooLarge(_)) if status == 200 => {
                            Ok(Reply::TooLong { body: bytes, is_elsewhere })
                        }
                        Err(fault) => Err(broken_body(method, &fault, bytes.len())),
                    };
                }
                Ok(Err(error)) => error.fault,
                Err(_) => HttpFault::Timeout(MAX_REQUEST),
            };
            return Err(no_answer(method, &fault, is_elsewhere, &url));
        }
        let text = format!("more than {MAX_REDIRECTS} redirects");
        Err(Finding::of(&rule::REDIRECT, method, text))
    }

    /// An error of the host. One that asks to come back counts as no answer.
    fn refused(&self, method: &'static str, status: u16, body: &[u8]) -> Result<Reply, Finding> {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| sanitize(value[name].as_str().unwrap_or_default(), MAX_TEXT_CHARS);
        let refusal = Refusal { status, name: text("error"), message: text("message") };
        if matches!(status, 408 | 429 | 500 | 502..=599) {
            return Err(Finding::of(&rule::UNANSWERED, method, refusal.to_string()));
        }
        Ok(Reply::Refused(refusal))
    }

    /// Waits for the turn of the next request: by our own pace, and as the host demands.
    async fn wait(&self) -> Result<(), String> {
        let mut next = self.next.lock().await;
        sleep_until(*next).await;
        *next = Instant::now() + self.interval;
        drop(next);
        let ready = self.limiter.until_ready(&self.url.authority().to_owned()).await;
        ready.map(drop).map_err(|limited| limited.to_string())
    }

    fn judge_headers(
        &self,
        method: &'static str,
        parameters: &Parameters<'_>,
        status: u16,
        headers: &HeaderMap,
    ) {
        self.limiter.record_response(self.url.authority(), status, headers);
        let number = |name: &str| -> Option<u64> { headers.get(name)?.to_str().ok()?.parse().ok() };
        let (limit, left) = (number("ratelimit-limit"), number("ratelimit-remaining"));
        if let (Some(limit), Some(left)) = (limit, left)
            && left > limit
        {
            let text = format!("{left} requests of {limit} are left");
            let command = self.curl(method, parameters);
            self.note(Finding::of(&rule::RATE_HEADERS, method, text).seen_by(command));
        }
        let says =
            ["retry-after", "ratelimit-reset"].iter().any(|name| headers.contains_key(*name));
        if status == 429 && !says {
            let command = self.curl(method, parameters);
            let text = "neither `Retry-After` nor `RateLimit-Reset`";
            self.note(Finding::of(&rule::RATE_UNSTATED, method, text).seen_by(command));
        }
    }
}

fn target(url: &Url, headers: &HeaderMap) -> Option<Url> {
    url.join(headers.get("location")?.to_str().ok()?).ok()
}

/// A request without an answer: the host is away, or its redirect leads nowhere that may be dialled.
fn no_answer(method: &'static str, fault: &HttpFault, is_elsewhere: bool, url: &Url) -> Finding {
    match fault {
        HttpFault::Compressed(_) => Finding::of(&rule::CODING, method, fault.to_string()),
        HttpFault::Egress(_) if is_elsewhere => {
            Finding::of(&rule::REDIRECT, method, format!("redirect to {url}: {fault}"))
        }
        HttpFault::TooLarge(_) => {
            Finding::of(&rule::SCHEMA, method, format!("the body has {fault}"))
        }
        HttpFault::Transport(_) if !is_elsewhere => {
            Finding::of(&rule::CUT, method, fault.to_string())
        }
        _ => Finding::of(&rule::UNANSWERED, method, fault.to_string()),
    }
}

/// A body that is not complete.
fn broken_body(method: &'static str, fault: &HttpFault, len: usize) -> Finding {
    let text = format!("after {len} bytes: {fault}");
    match fault {
        HttpFault::Idle(_) | HttpFault::TooSlow(_) | HttpFault::Timeout(_) => {
            Finding::of(&rule::STALLED, method, text)
        }
        HttpFault::Compressed(_) => Finding::of(&rule::CODING, method, text),
        HttpFault::TooLarge(_) => Finding::of(&rule::SCHEMA, method, text),
        _ => Finding::of(&rule::CUT, method, text),
    }
}

/// Attempts of a request: a host that restarts, or a network that loses a connection, is not accused.
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay that a host may request.
const MAX_RATE_WAIT: Duration = Duration::from_secs(15);
/// Maximum time until the headers of an answer.
const MAX_REQUEST: Duration = Duration::from_secs(20);
const MAX_REDIRECTS: u32 = 3;
const MAX_TEXT_CHARS: usize = 200;
