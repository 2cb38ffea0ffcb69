//! Requests to the judged host: paced, bounded, and judged by the rules of HTTP and XRPC.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use net::http::{Client, HeaderMap, HttpError, HttpFault, Limits, ResponseBody, Url};
use net::rate_limit::RateLimiter;
use net::remote_text::sanitize;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::finding::{Finding, Findings};
use crate::rule::{self, Rule};

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
    /// A body.
    Body(Vec<u8>),
    /// A body longer than the limit, up to it.
    TooLong(Vec<u8>),
    /// A redirect to another host, which is not judged.
    Elsewhere,
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
            || (self.status == 404 && matches!(&*self.name, "" | "Not Found" | "XRPCNotSupported"))
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
                    let finding = self.without_outage(*finding, &limits).await;
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
    ) -> Result<Reply, Box<Finding>> {
        let mut url = self.method_url(method, parameters);
        for _ in 0..=MAX_REDIRECTS {
            self.wait().await.map_err(|text| boxed(&rule::UNANSWERED, method, text))?;
            let opened = timeout(MAX_REQUEST, self.http.open_direct(&url, limits)).await;
            let mut body = match opened {
                Ok(Ok(body)) => body,
                Ok(Err(error)) => return Err(no_answer(method, &error.fault)),
                Err(_) => return Err(no_answer(method, &HttpFault::Timeout(MAX_REQUEST))),
            };
            let (status, headers) = (body.status(), body.headers().clone());
            self.judge_headers(method, parameters, status, &headers);
            if (300..400).contains(&status) {
                url = target(&url, &headers).ok_or_else(|| {
                    let text = format!("status {status} without a valid `Location`");
                    boxed(&rule::REDIRECT, method, text)
                })?;
                if url.origin() != self.url.origin() {
                    return self.elsewhere(method, &url, limits).await;
                }
                continue;
            }
            let mut bytes = Vec::new();
            let read = timeout(limits.max_time, read_to_end(&mut body, &mut bytes)).await;
            let read = read.unwrap_or(Err(HttpFault::Timeout(limits.max_time)));
            *self.answered.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            return match read {
                Ok(()) if status == 200 => Ok(Reply::Body(bytes)),
                Ok(()) => self.refused(method, status, &bytes),
                Err(HttpFault::TooLarge(_)) if status == 200 => Ok(Reply::TooLong(bytes)),
                Err(fault) => Err(broken_body(method, &fault, bytes.len())),
            };
        }
        let text = format!("more than {MAX_REDIRECTS} redirects");
        Err(boxed(&rule::REDIRECT, method, text))
    }

    /// A redirect to another host: whether it answers is not the fault of this one, but its address is.
    async fn elsewhere(
        &self,
        method: &'static str,
        url: &Url,
        limits: &Limits,
    ) -> Result<Reply, Box<Finding>> {
        match timeout(MAX_REQUEST, self.http.open_direct(url, limits)).await {
            Ok(Err(HttpError { fault: fault @ HttpFault::Egress(_), .. })) => {
                let text = format!("redirect to {url}: {fault}");
                Err(boxed(&rule::REDIRECT, method, text))
            }
            _ => Ok(Reply::Elsewhere),
        }
    }

    /// An error of the host. One that asks to come back counts as no answer.
    fn refused(
        &self,
        method: &'static str,
        status: u16,
        body: &[u8],
    ) -> Result<Reply, Box<Finding>> {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| sanitize(value[name].as_str().unwrap_or_default(), MAX_TEXT_CHARS);
        let refusal = Refusal { status, name: text("error"), message: text("message") };
        if matches!(status, 408 | 429 | 500 | 502..=599) {
            return Err(boxed(&rule::UNANSWERED, method, refusal.to_string()));
        }
        Ok(Reply::Refused(refusal))
    }

    /// Waits for the turn of the next request: by our own pace, and as the host demands.
    async fn wait(&self) -> Result<(), String> {
        let mut next = self.next.lock().await;
        sleep_until(*next).await;
        *next = Instant::now() + self.interval;
        drop(next);
        let ready = self.limiter.until_ready(self.url.authority()).await;
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

async fn read_to_end(body: &mut ResponseBody, bytes: &mut Vec<u8>) -> Result<(), HttpFault> {
    while let Some(chunk) = body.next().await.map_err(|error| error.fault)? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(())
}

#[cold]
fn boxed(rule: &Rule, method: &'static str, text: impl Into<String>) -> Box<Finding> {
    Box::new(Finding::of(rule, method, text))
}

/// A request without an answer.
fn no_answer(method: &'static str, fault: &HttpFault) -> Box<Finding> {
    match fault {
        HttpFault::Compressed(_) => boxed(&rule::CODING, method, fault.to_string()),
        HttpFault::TooLarge(_) => boxed(&rule::SCHEMA, method, format!("the body has {fault}")),
        HttpFault::Transport(_) => boxed(&rule::CUT, method, fault.to_string()),
        _ => boxed(&rule::UNANSWERED, method, fault.to_string()),
    }
}

/// A body that is not complete.
fn broken_body(method: &'static str, fault: &HttpFault, len: usize) -> Box<Finding> {
    let text = format!("after {len} bytes: {fault}");
    match fault {
        HttpFault::Idle(_) | HttpFault::TooSlow(_) | HttpFault::Timeout(_) => {
            boxed(&rule::STALLED, method, text)
        }
        HttpFault::Compressed(_) => boxed(&rule::CODING, method, text),
        HttpFault::TooLarge(_) => boxed(&rule::SCHEMA, method, text),
        _ => boxed(&rule::CUT, method, text),
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
