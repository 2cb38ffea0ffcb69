//! The hosts that are followed next to the operator's: from lists of relays, and at their own request.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use net::concurrency::registrable_domain;
use net::egress::EgressPolicy;
use net::firehose::{AddedHost, HostRole, MoreHosts};
use net::http::Url;

use crate::xrpc::XrpcError;

/// The hosts of a crawl. A host that a client names by `requestCrawl` is followed only in the domains that the operator
/// accepts.
#[derive(Debug)]
pub struct Crawl {
    more: MoreHosts,
    policy: EgressPolicy,
    accepted: Vec<AcceptedDomain>,
    state: Mutex<State>,
}

/// A domain whose hosts may ask to be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedDomain {
    /// All domains.
    All,
    /// This one, and those below it.
    Domain(Box<str>),
}

#[derive(Debug, Default)]
struct State {
    /// The hosts, with their ports.
    hosts: HashSet<Box<str>>,
    /// Number of hosts that asked to be followed, by registrable domain.
    of_domains: HashMap<Box<str>, usize>,
    /// The hosts that asked in an hour.
    hour: Option<(Instant, usize)>,
}

/// Why a host is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Name,
    Domain,
    TooMany,
}

impl Crawl {
    /// Adds hosts to `more`, which connects by this policy.
    pub fn new(more: MoreHosts, policy: EgressPolicy, accepted: Vec<AcceptedDomain>) -> Self {
        Self { more, policy, accepted, state: Mutex::default() }
    }

    /// Follows a host of a list, as a PDS. Whether it is a new one.
    pub fn add_listed(&self, url: &Url) -> bool {
        let Some(name) = host_name(url) else { return false };
        let mut state = self.state();
        state.hosts.len() < MAX_HOSTS && state.hosts.insert(name) && self.follow(url.clone())
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.state().hosts.len()
    }

    /// Whether there is no host.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Follows the host that a client names, if it is accepted.
    pub(crate) fn request(&self, hostname: &str) -> Result<(), XrpcError> {
        self.accept(hostname, Instant::now()).map_err(|refusal| match refusal {
            Refusal::Name => XrpcError::invalid("hostname is not the name of a host"),
            Refusal::Domain => banned("this server follows no host of this domain"),
            Refusal::TooMany => {
                let message = "too many hosts asked to be followed: ask again later";
                XrpcError::new(StatusCode::TOO_MANY_REQUESTS, "RateLimitExceeded", message)
            }
        })
    }

    fn accept(&self, hostname: &str, now: Instant) -> Result<(), Refusal> {
        let (url, name) = self.url(hostname).ok_or(Refusal::Name)?;
        let domain = url.domain().unwrap_or_default();
        let mut state = self.state();
        if state.hosts.contains(&name) {
            return Ok(());
        }
        if !self.accepted.iter().any(|accepted| accepted.has(domain)) {
            return Err(Refusal::Domain);
        }
        if !state.takes(registrable_domain(domain), now) {
            return Err(Refusal::TooMany);
        }
        state.hosts.insert(name);
        self.follow(url);
        Ok(())
    }

    /// The URL of a host that a client names. Addresses are no names; a port is for development alone.
    fn url(&self, hostname: &str) -> Option<(Url, Box<str>)> {
        let is_local = self.policy == EgressPolicy::Loopback;
        let scheme = if is_local { "http" } else { "https" };
        let url: Url = format!("{scheme}://{hostname}/").parse().ok()?;
        url.domain().filter(|_| hostname.len() <= MAX_NAME && is_plain(hostname))?;
        let name = host_name(&url).filter(|_| is_local || url.port().is_none())?;
        Some((url, name))
    }

    fn follow(&self, url: Url) -> bool {
        self.more.add(AddedHost { url, role: HostRole::Pds });
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a host that asks, if the limits allow one more.
    fn takes(&mut self, domain: &str, now: Instant) -> bool {
        let (since, in_hour) = self.hour.unwrap_or((now, 0));
        let (since, in_hour) = if now - since < HOUR { (since, in_hour) } else { (now, 0) };
        let of_domain = self.of_domains.get(domain).copied().unwrap_or(0);
        let is_taken = in_hour < MAX_REQUESTED_PER_HOUR
            && of_domain < MAX_REQUESTED_PER_DOMAIN
            && self.hosts.len() < MAX_HOSTS;
        if is_taken {
            self.hour = Some((since, in_hour + 1));
            self.of_domains.insert(domain.into(), of_domain + 1);
        }
        is_taken
    }
}

impl AcceptedDomain {
    /// The domain of an argument: `*`, or a name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::All),
            name => {
                let url: Url = format!("https://{name}/").parse().ok()?;
                let domain = url.domain().filter(|domain| *domain == name && is_plain(name))?;
                Some(Self::Domain(domain.into()))
            }
        }
    }

    fn has(&self, domain: &str) -> bool {
        match self {
            Self::All => true,
            Self::Domain(of) => {
                let before = domain.strip_suffix(&**of);
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
        }
    }
}

/// Whether a text has only the letters of names and ports.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte))
}

/// The answer to a request for a host that is not accepted.
pub(crate) fn banned(message: &str) -> XrpcError {
    XrpcError::new(StatusCode::FORBIDDEN, "HostBanned", message)
}

/// The name of a host, with its port unless it is the default.
fn host_name(url: &Url) -> Option<Box<str>> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.into(), |port| format!("{host}:{port}").into()))
}

/// Maximum number of hosts.
const MAX_HOSTS: usize = 10_000;

/// Maximum number of hosts of one registrable domain that are followed since they asked.
const MAX_REQUESTED_PER_DOMAIN: usize = 100;

/// Maximum number of hosts that are followed since they asked, in an hour.
const MAX_REQUESTED_PER_HOUR: usize = 100;

const HOUR: Duration = Duration::from_secs(3_600);

/// Maximum length of a name and a port.
const MAX_NAME: usize = 253 + 6;

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    fn crawl(policy: EgressPolicy, accepted: &[&str]) -> Crawl {
        let accepted = accepted.iter().map(|name| AcceptedDomain::parse(name).unwrap()).collect();
        Crawl::new(MoreHosts::new(NonZero::<u32>::MIN), policy, accepted)
    }

    #[test]
    fn no_host_is_followed_at_a_request_unless_it_is_listed_or_in_an_accepted_domain() {
        let now = Instant::now();
        let none = crawl(EgressPolicy::Public, &[]);
        assert_eq!(none.accept("pds.example.com", now), Err(Refusal::Domain));
        assert!(none.add_listed(&"https://pds.example.com".parse().unwrap()));
        assert_eq!(none.accept("pds.example.com", now), Ok(()));
        let some = crawl(EgressPolicy::Public, &["example.com"]);
        for (name, accepted) in [
            ("pds.example.com", Ok(())),
            ("example.com", Ok(())),
            ("PDS.example.com", Ok(())),
            ("badexample.com", Err(Refusal::Domain)),
            ("example.com.evil.test", Err(Refusal::Domain)),
            ("127.0.0.1", Err(Refusal::Name)),
            ("0x7f.1", Err(Refusal::Name)),
            ("[::1]", Err(Refusal::Name)),
            ("pds.example.com:8443", Err(Refusal::Name)),
            ("user@pds.example.com", Err(Refusal::Name)),
            ("pds.example.com/path", Err(Refusal::Name)),
            ("", Err(Refusal::Name)),
        ] {
            assert_eq!(some.accept(name, now), accepted, "{name}");
        }
        assert_eq!(some.len(), 2, "a name in other letters is the same host");
        assert!(AcceptedDomain::parse("*.example.com").is_none());
        let all = crawl(EgressPolicy::Loopback, &["*"]);
        assert_eq!(all.accept("localhost:4481", now), Ok(()));
    }

    #[test]
    fn the_hosts_that_ask_have_limits_for_each_domain_and_hour() {
        let (all, now) = (crawl(EgressPolicy::Public, &["*"]), Instant::now());
        for number in 0..50 {
            assert_eq!(all.accept(&format!("pds{number}.a.com"), now), Ok(()));
            assert_eq!(all.accept(&format!("pds{number}.b.com"), now), Ok(()));
        }
        assert_eq!(all.accept("pds.c.com", now), Err(Refusal::TooMany));
        assert_eq!(all.accept("pds7.a.com", now), Ok(()), "it is followed already");
        let later = now + HOUR;
        for number in 50..100 {
            assert_eq!(all.accept(&format!("pds{number}.a.com"), later), Ok(()));
        }
        assert_eq!(all.accept("pds100.a.com", later), Err(Refusal::TooMany));
        assert_eq!(all.accept("pds.c.com", later), Ok(()));
    }
}
