//! An HTTP client with limits on size, time and redirects.
//!
//! [`Client`] follows redirects only to hosts that the egress policy allows, checks every address when it
//! connects to it, and aborts responses that are too long or too slow. Bodies are not compressed, so that their length is the number of
//! bytes sent, except where a caller asks for gzip: then the limit on their size holds for the decoded bytes too. It uses no proxy, as its
//! connections could not be checked.

mod body;
mod contact;
mod egress_checks;
mod error;
mod gzip;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls_fault;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, USER_AGENT};
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, RequestBuilder, Response as RawResponse};

use crate::dns::DnsResolver;
use crate::egress::{AllowedPorts, EgressPolicy};

pub use body::ResponseBody;
pub use contact::{Contact, InvalidContact};
use egress_checks::CheckedResolver;
pub(crate) use egress_checks::MAX_REDIRECTS;
pub use error::{CertificateFault, HttpError, HttpFault};
pub use reqwest::Url;
pub use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Limits of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of the body in bytes: as received, and decoded.
    pub max_bytes: u64,
    /// Maximum time from the first packet to the last.
    pub max_time: Duration,
    /// Maximum time without a byte, once connected.
    pub idle_timeout: Duration,
    /// Minimum rate in bytes per second over the first [`Limits::progress_window`] of a body, twice as much over
    /// the second, and so on: a response that takes long must be long. 0 for none.
    pub min_bytes_per_s: u64,
    /// Window over which the rate is measured.
    pub progress_window: Duration,
}

impl Limits {
    /// For documents: 256 KiB within ten seconds.
    pub const DOCUMENT: Self = Self {
        max_bytes: 256 << 10,
        max_time: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(5),
        min_bytes_per_s: 0,
        progress_window: Duration::from_secs(30),
    };
    /// For a page of a list: 4 MiB within thirty seconds.
    pub const LIST: Self =
        Self { max_bytes: 4 << 20, max_time: Duration::from_secs(30), ..Self::DOCUMENT };
    /// For a part of a repository: 64 MiB, otherwise as [`Limits::REPOSITORY`].
    pub const SLICE: Self = Self { max_bytes: 64 << 20, ..Self::REPOSITORY };
    /// For a page of the export of a directory: 32 MiB within two minutes.
    pub const EXPORT: Self = Self {
        max_bytes: 32 << 20,
        max_time: Duration::from_secs(120),
        idle_timeout: Duration::from_secs(30),
        ..Self::DOCUMENT
    };
    /// For repositories: 512 MiB within five minutes, at 4 KiB a second or more in the first ten seconds, 8 KiB in
    /// the next ten, and so on.
    ///
    /// A record takes some 420 bytes of an archive, with its part of the tree, so 512 MiB hold 1.2 million: sixty
    /// times the records of the median active account.
    pub const REPOSITORY: Self = Self {
        max_bytes: 512 << 20,
        max_time: Duration::from_secs(5 * 60),
        idle_timeout: Duration::from_secs(30),
        min_bytes_per_s: 4 << 10,
        progress_window: Duration::from_secs(10),
    };
}

/// The coding of a body that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// None: the body is received uncompressed.
    #[default]
    Identity,
    /// Compressed with gzip, or not: a host that does not compress sends the body uncompressed.
    Gzip,
}

/// A response with its whole body.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Sends GET requests, and POST requests without redirects. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    following: reqwest::Client,
    direct: reqwest::Client,
    upgrading: reqwest::Client,
    policy: EgressPolicy,
    ports: Arc<AllowedPorts>,
    contact: Option<Contact>,
}

impl Client {
    /// A client that connects only where `policy` allows, and looks up addresses with `dns`.
    ///
    /// # Errors
    /// If TLS cannot be set up on this system.
    pub fn new(policy: EgressPolicy, dns: Arc<dyn DnsResolver>) -> Result<Self, HttpError> {
        Self::with_ports(policy, AllowedPorts::default(), dns)
    }

    /// Like [`new`](Self::new), and also connects to these ports of public hosts.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_ports(
        policy: EgressPolicy,
        ports: AllowedPorts,
        dns: Arc<dyn DnsResolver>,
    ) -> Result<Self, HttpError> {
        Self::with_trust(policy, ports, dns, |builder| builder)
    }

    /// A client for development: it connects only to loopback addresses, and trusts only the certificate authorities in
    /// `authorities`, in PEM, not the system's.
    ///
    /// # Errors
    /// If there is no certificate in `authorities`, or TLS cannot be set up.
    #[cfg(feature = "tls")]
    pub fn on_loopback_trusting_only(
        authorities: &[u8],
        dns: Arc<dyn DnsResolver>,
    ) -> Result<Self, HttpError> {
        let authorities = reqwest::Certificate::from_pem_bundle(authorities).unwrap_or_default();
        if authorities.is_empty() {
            return Err(HttpError::new(LOCAL, HttpFault::NoAuthority));
        }
        let trust = |builder: ClientBuilder| builder.tls_certs_only(authorities.iter().cloned());
        Self::with_trust(EgressPolicy::Loopback, AllowedPorts::default(), dns, trust)
    }

    fn with_trust(
        policy: EgressPolicy,
        ports: AllowedPorts,
        dns: Arc<dyn DnsResolver>,
        trust: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, HttpError> {
        let (resolver, ports) = (Arc::new(CheckedResolver::new(policy, dns)), Arc::new(ports));
        let redirects = egress_checks::redirects(policy, Arc::clone(&ports));
        let builder = || trust(client_builder(&resolver));
        let direct = || builder().redirect(Policy::none());
        Ok(Self {
            following: build(builder().redirect(redirects))?,
            direct: build(direct())?,
            // HTTP/2 has no upgrade requests.
            upgrading: build(direct().http1_only())?,
            policy,
            ports,
            contact: None,
        })
    }

    /// Names a contact in the `User-Agent` of every request.
    #[must_use]
    pub fn with_contact(self, contact: Contact) -> Self {
        Self { contact: Some(contact), ..self }
    }

    /// The egress policy of this client.
    pub fn egress_policy(&self) -> EgressPolicy {
        self.policy
    }

    /// Requests `url` and waits for the whole response, whatever its status.
    ///
    /// # Errors
    /// If the policy denies the host, it does not respond, or exceeds a limit.
    pub async fn get(&self, url: &Url, limits: &Limits) -> Result<Response, HttpError> {
        read_body(self.open(url, limits).await?).await
    }

    /// Like [`get`](Self::get), without following redirects.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_direct(&self, url: &Url, limits: &Limits) -> Result<Response, HttpError> {
        read_body(self.send(&self.direct, url, limits, Coding::Identity).await?).await
    }

    /// Requests `url` and returns the response when its headers are received.
    ///
    /// # Errors
    /// If the policy denies the host, or it does not respond in time.
    pub async fn open(&self, url: &Url, limits: &Limits) -> Result<ResponseBody, HttpError> {
        self.send(&self.following, url, limits, Coding::Identity).await
    }

    /// Like [`open`](Self::open), without following redirects.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_direct(&self, url: &Url, limits: &Limits) -> Result<ResponseBody, HttpError> {
        self.open_coded(url, limits, Coding::Identity).await
    }

    /// Like [`open_direct`](Self::open_direct), with a body in this coding or in none.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_coded(
        &self,
        url: &Url,
        limits: &Limits,
        coding: Coding,
    ) -> Result<ResponseBody, HttpError> {
        self.send(&self.direct, url, limits, coding).await
    }

    /// Like [`open_direct`](Self::open_direct), with these headers; a request with a body is a POST request.
    #[cfg(feature = "jetstream")]
    pub(crate) async fn open_with(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Option<Bytes>,
        limits: &Limits,
    ) -> Result<ResponseBody, HttpError> {
        let request = match body {
            Some(body) => self.direct.post(url.clone()).body(body),
            None => self.direct.get(url.clone()),
        };
        self.send_request(request.headers(headers), url, limits, Coding::Identity).await
    }

    /// Sends `body` with these headers, and returns the response, whatever its status. A redirect is returned as it is:
    /// its target is not the one that the operator has named.
    ///
    /// The status tells the outcome of the request. The part of the response's body that arrives within a moment is
    /// returned, up to `max_bytes`; a longer one, one that breaks off and a compressed one are no errors.
    ///
    /// # Errors
    /// If there is no response within the limits.
    pub async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        limits: &Limits,
    ) -> Result<Response, HttpError> {
        let request = self.direct.post(url.clone()).headers(headers).body(body);
        let (mut response, _) = self.send_raw(request, url, limits).await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = BytesMut::new();
        let read = read_some(&mut response, limits.max_bytes, &mut body);
        let _ = tokio::time::timeout(MAX_DRAIN_TIME.min(limits.max_time), read).await;
        if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            body.clear();
        }
        Ok(Response { status, headers, body: body.freeze() })
    }

    /// Requests an upgrade to a WebSocket, and returns any response. The caller limits the time.
    pub(crate) async fn request_upgrade(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<RawResponse, HttpError> {
        self.check(url)?;
        let mut url = url.clone();
        let scheme = if matches!(url.scheme(), "wss" | "https") { "https" } else { "http" };
        url.set_scheme(scheme).expect("an allowed URL has a host, so its scheme can be replaced");
        let response = self.upgrading.get(url.clone()).headers(headers).send().await;
        response.map_err(|error| HttpError::of(url.host_str().unwrap_or_default(), &error))
    }

    /// Refuses a URL that the policy denies, or that needs TLS in a build without it.
    fn check(&self, url: &Url) -> Result<(), HttpError> {
        let fault = match self.policy.check_url(url, &self.ports) {
            Err(denied) => HttpFault::Egress(denied),
            Ok(()) if !cfg!(feature = "tls") && matches!(url.scheme(), "https" | "wss") => {
                HttpFault::Tls("this program was built without the feature `tls`".to_owned())
            }
            Ok(()) => return Ok(()),
        };
        Err(HttpError::new(url.host_str().unwrap_or_default(), fault))
    }

    async fn send(
        &self,
        client: &reqwest::Client,
        url: &Url,
        limits: &Limits,
        coding: Coding,
    ) -> Result<ResponseBody, HttpError> {
        let request = client.get(url.clone());
        let request = match coding {
            Coding::Identity => request,
            Coding::Gzip => request.header(ACCEPT_ENCODING, "gzip"),
        };
        self.send_request(request, url, limits, coding).await
    }

    /// Sends a request to `url`.
    async fn send_request(
        &self,
        request: RequestBuilder,
        url: &Url,
        limits: &Limits,
        coding: Coding,
    ) -> Result<ResponseBody, HttpError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let (response, deadline) = self.send_raw(request, url, limits).await?;
        ResponseBody::new(host, response, limits, deadline, coding)
    }

    /// Sends a request to `url`, and returns the response when its headers have come, with the deadline of the whole.
    async fn send_raw(
        &self,
        request: RequestBuilder,
        url: &Url,
        limits: &Limits,
    ) -> Result<(RawResponse, tokio::time::Instant), HttpError> {
        let host = url.host_str().unwrap_or_default().to_owned();
        self.check(url)?;
        let request = match &self.contact {
            Some(contact) => request.header(USER_AGENT, contact.user_agent()),
            None => request,
        };
        let now = tokio::time::Instant::now();
        let deadline = now + limits.max_time;
        let headers_deadline = deadline.min(now + CONNECT_TIMEOUT + limits.idle_timeout);
        let fault = match tokio::time::timeout_at(headers_deadline, request.send()).await {
            Ok(Ok(response)) => {
                let (path, status) = (url.path(), response.status().as_u16());
                tracing::debug!(target: "wireproof::net::http", host, path, status, "response");
                return Ok((response, deadline));
            }
            Ok(Err(error)) => return Err(HttpError::of(&host, &error)),
            Err(_) if headers_deadline < deadline => HttpFault::Idle(limits.idle_timeout),
            Err(_) => HttpFault::Timeout(limits.max_time),
        };
        tracing::debug!(target: "wireproof::net::http", host, path = url.path(), %fault, "no response");
        Err(HttpError { host, fault })
    }
}

/// The host of a URL, with the port unless it is the default: the unit of rate limits.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

async fn read_body(mut body: ResponseBody) -> Result<Response, HttpError> {
    let (status, headers) = (body.status(), body.headers().clone());
    Ok(Response { status, headers, body: body.read_to_end().await? })
}

/// Reads a body up to a size. One that is read to its end leaves the connection to the next request.
async fn read_some(response: &mut RawResponse, max_bytes: u64, body: &mut BytesMut) {
    while let Ok(Some(chunk)) = response.chunk().await {
        let left = usize::try_from(max_bytes).unwrap_or(usize::MAX) - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if chunk.len() > left {
            return;
        }
    }
}

fn client_builder(resolver: &Arc<CheckedResolver>) -> ClientBuilder {
    // Compressed responses are refused where they were not asked for.
    let headers = [(ACCEPT_ENCODING, HeaderValue::from_static("identity"))];
    reqwest::Client::builder()
        .user_agent(USER_AGENT_NAME)
        .default_headers(headers.into_iter().collect())
        .no_proxy()
        .referer(false)
        .dns_resolver(Arc::clone(resolver))
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
}

fn build(builder: ClientBuilder) -> Result<reqwest::Client, HttpError> {
    builder.build().map_err(|error| HttpError::of(LOCAL, &error))
}

/// The program and its version, as hosts see it.
const USER_AGENT_NAME: &str = concat!("wireproof/", env!("CARGO_PKG_VERSION"));

/// The host of an error of the client itself.
const LOCAL: &str = "this machine";

/// Time for the body of a response whose status is known.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections to a host that are kept for later requests, of some 20 KiB each.
const MAX_IDLE_CONNECTIONS: usize = 16;
