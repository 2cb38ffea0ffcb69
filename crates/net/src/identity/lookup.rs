//! Lookups: the URL of a DID document, and the DID of a handle by DNS and HTTP.
//!
//! DNS and the handle's host are asked concurrently. The answer of DNS takes precedence, even if it is
//! invalid; only if it has none does the answer of the host count.

use std::pin::pin;
use std::time::Duration;

use atproto::syntax::{Did, DidBuf, Handle};
use futures_util::future::{Either, select};
use reqwest::Url;

use super::{IdentityError, IdentityFault, Options};
use crate::concurrency::{ConcurrencyLimit, registrable_domain};
use crate::dns::DnsResolver;
use crate::egress::EgressPolicy;
use crate::http::{Client, Limits};
use crate::rate_limit::RateLimiter;

/// The means of a handle lookup.
pub(super) struct HandleLookup<'l> {
    pub(super) http: &'l Client,
    pub(super) dns: &'l dyn DnsResolver,
    pub(super) options: &'l Options,
    pub(super) rate_limiter: &'l RateLimiter,
    pub(super) limit: &'l ConcurrencyLimit,
}

/// The DID that `handle` resolves to.
pub(super) async fn resolve_handle(
    lookup: &HandleLookup<'_>,
    handle: Handle<'_>,
) -> Result<DidBuf, IdentityError> {
    let policy = lookup.http.egress_policy();
    check_name(handle, policy).map_err(|fault| IdentityError::new(handle, fault))?;
    let dns = pin!(query_dns(lookup.dns, handle));
    let host = pin!(query_host(lookup, handle));
    let (dns, host) = match select(dns, host).await {
        Either::Left((Ok(None), host)) => (Ok(None), host.await),
        Either::Left((Err(error), host)) if error.is_outage() => (Err(error), host.await),
        Either::Left((Ok(Some(did)), _)) => return Ok(did),
        Either::Left((Err(error), _)) => return Err(error),
        Either::Right((host, dns)) => (dns.await, host),
    };
    combine(dns, host)
}

/// Combines the two answers.
fn combine(
    dns: Result<Option<DidBuf>, IdentityError>,
    host: Result<DidBuf, IdentityError>,
) -> Result<DidBuf, IdentityError> {
    match (dns, host) {
        (Ok(Some(did)), _) | (Ok(None), Ok(did)) => Ok(did),
        (Err(error), Ok(did)) if error.is_outage() => Ok(did),
        // Without an answer of DNS it is unknown whether the handle has a DID.
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

async fn query_dns(
    dns: &dyn DnsResolver,
    handle: Handle<'_>,
) -> Result<Option<DidBuf>, IdentityError> {
    let name = format!("_atproto.{handle}");
    let texts = match tokio::time::timeout(DNS_TIMEOUT, dns.texts(&name)).await {
        Ok(Ok(texts)) => texts,
        Ok(Err(error)) => return Err(IdentityError::new(handle, IdentityFault::Dns(error))),
        Err(_) => return Err(IdentityError::new(handle, IdentityFault::DnsTimeout)),
    };
    did_in(&texts).map_err(|fault| IdentityError::at(handle, &name, fault))
}

/// The DID in TXT records; other records are ignored.
fn did_in(texts: &[Vec<u8>]) -> Result<Option<DidBuf>, IdentityFault> {
    let mut dids: Vec<&[u8]> = texts.iter().filter_map(|text| text.strip_prefix(b"did=")).collect();
    dids.sort_unstable();
    dids.dedup();
    match dids[..] {
        [] => Ok(None),
        [did] => parse(did).map(Some),
        _ => Err(IdentityFault::Ambiguous(dids.len())),
    }
}

async fn query_host(
    lookup: &HandleLookup<'_>,
    handle: Handle<'_>,
) -> Result<DidBuf, IdentityError> {
    let url = well_known(handle, lookup.http.egress_policy(), lookup.options)
        .map_err(|fault| IdentityError::new(handle, fault))?;
    let host = handle.as_str();
    let _permit = lookup.limit.acquire(registrable_domain(host)).await;
    let ready = lookup.rate_limiter.until_ready(host).await;
    ready
        .map_err(|limited| IdentityError::at(handle, host, IdentityFault::RateLimited(limited)))?;
    let answer = lookup.http.get(&url, &WELL_KNOWN).await;
    let answer = answer.map_err(|error| IdentityError::http(handle, error))?;
    lookup.rate_limiter.record_response(host, answer.status, &answer.headers);
    let did = match answer.status {
        200 => did_in_body(&answer.body),
        404 | 410 => Err(IdentityFault::NotFound),
        status => Err(IdentityFault::Status(status)),
    };
    did.map_err(|fault| IdentityError::at(handle, handle.as_str(), fault))
}

/// The DID in the first line of a body, without the white space around it.
fn did_in_body(body: &[u8]) -> Result<DidBuf, IdentityFault> {
    let line = body.trim_ascii_start().split(|byte| *byte == b'\n').next();
    parse(line.unwrap_or_default())
}

fn parse(text: &[u8]) -> Result<DidBuf, IdentityFault> {
    let text = str::from_utf8(text.trim_ascii()).map_err(|_| IdentityFault::NotADid)?;
    text.parse().map_err(|_| IdentityFault::NotADid)
}

const DNS_TIMEOUT: Duration = Duration::from_secs(10);

const WELL_KNOWN: Limits = Limits { max_bytes: 2 << 10, ..Limits::DOCUMENT };

/// The location of a DID document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the PLC directory.
    Directory(Url),
    /// At its own host, which may not redirect.
    Host(Url),
}

impl Location {
    /// The location of the document of `did`.
    pub(super) fn of(
        did: Did<'_>,
        policy: EgressPolicy,
        options: &Options,
    ) -> Result<Self, IdentityError> {
        let fail = |fault| IdentityError::new(did, fault);
        match did.method() {
            "plc" if did.is_plc() => Ok(Self::Directory(in_directory(did, &options.directory))),
            "web" => web(did, policy, options).map(Self::Host).map_err(fail),
            "plc" => Err(fail(IdentityFault::Identifier)),
            _ => Err(fail(IdentityFault::Method)),
        }
    }
}

fn in_directory(did: Did<'_>, directory: &Url) -> Url {
    let mut url = directory.clone();
    url.set_path(&format!("{}/{did}", directory.path().trim_end_matches('/')));
    url
}

/// The URL for a host name alone, or for a port of localhost under the loopback policy.
fn web(did: Did<'_>, policy: EgressPolicy, options: &Options) -> Result<Url, IdentityFault> {
    let host = did.identifier();
    if let Some(port) = port_of_localhost(host).filter(|_| policy == EgressPolicy::Loopback) {
        return url(&format!("http://localhost:{port}{DID_JSON}"));
    }
    let name = Handle::parse(host).map_err(|_| IdentityFault::Identifier)?;
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(IdentityFault::NotNormal);
    }
    check_name(name, policy)?;
    url(&format!("{}{DID_JSON}", origin(name, policy, options)))
}

/// The port after `localhost%3A`, in its one spelling: without zeros or a sign before it.
fn port_of_localhost(host: &str) -> Option<u16> {
    let text = host.strip_prefix("localhost%3A")?;
    text.parse().ok().filter(|port: &u16| *port > 0 && port.to_string() == text)
}

/// The URL of the DID at the host of a handle.
fn well_known(
    handle: Handle<'_>,
    policy: EgressPolicy,
    options: &Options,
) -> Result<Url, IdentityFault> {
    url(&format!("{}/.well-known/atproto-did", origin(handle, policy, options)))
}

/// Checks that a name may be resolved: `.test` only under the loopback policy, other reserved ones never.
fn check_name(name: Handle<'_>, policy: EgressPolicy) -> Result<(), IdentityFault> {
    let top = name.labels().next_back().unwrap_or_default();
    let is_test = top.eq_ignore_ascii_case("test");
    if name.is_reserved() || (is_test && policy == EgressPolicy::Public) {
        Err(IdentityFault::Reserved)
    } else {
        Ok(())
    }
}

fn origin(name: Handle<'_>, policy: EgressPolicy, options: &Options) -> String {
    match (policy, options.development_port) {
        (EgressPolicy::Loopback, Some(port)) => format!("http://{name}:{port}"),
        _ => format!("https://{name}"),
    }
}

fn url(text: &str) -> Result<Url, IdentityFault> {
    text.parse().map_err(|_| IdentityFault::Identifier)
}

const DID_JSON: &str = "/.well-known/did.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(did: &str, policy: EgressPolicy) -> Result<Location, IdentityFault> {
        let options = Options { development_port: Some(80), ..Options::default() };
        Location::of(Did::parse(did).unwrap(), policy, &options).map_err(|error| error.fault)
    }

    fn at(policy: EgressPolicy, did: &str, text: &str) {
        assert_eq!(of(did, policy), Ok(Location::Host(text.parse().unwrap())));
    }

    #[test]
    fn white_space_around_the_did_of_a_body_is_stripped() {
        let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        for (before, after) in [
            ("", ""),
            ("", "\n"),
            ("", "\r\n"),
            ("", "\r"),
            ("\n", ""),
            ("\r\n", "\r\n"),
            (" \t", "\t "),
            ("\n \n", "\n\n"),
            ("\n", "\nanother line"),
        ] {
            let body = format!("{before}{did}{after}");
            assert_eq!(did_in_body(body.as_bytes()).unwrap().to_string(), did, "{body:?}");
        }
        for bad in ["", "\n", "did=", "\"", "# a comment\n", "\0", "did :"] {
            let body = format!("{bad}{}", if bad.trim().is_empty() { "" } else { did });
            assert_eq!(did_in_body(body.as_bytes()), Err(IdentityFault::NotADid), "{body:?}");
        }
    }

    #[test]
    fn a_plc_did_has_24_characters_of_base32() {
        let good = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let url = format!("https://plc.directory/{good}").parse().unwrap();
        assert_eq!(of(good, EgressPolicy::Public), Ok(Location::Directory(url)));
        for bad in ["did:plc:ewvi7nxzyoun6zhxrhs64oi", "did:plc:EWVI7NXZYOUN6ZHXRHS64OIZ"] {
            assert_eq!(of(bad, EgressPolicy::Public), Err(IdentityFault::Identifier));
        }
        assert_eq!(of("did:key:z6Mk", EgressPolicy::Public), Err(IdentityFault::Method));
    }

    #[test]
    fn a_web_did_is_a_host_name_and_nothing_else() {
        at(EgressPolicy::Public, "did:web:a.b.com", "https://a.b.com/.well-known/did.json");
        for bad in ["a.com:path", "a.com%3A8080", "127.0.0.1", "localhost%3A80", "com", "a_b.com"] {
            let refusal = of(&format!("did:web:{bad}"), EgressPolicy::Public);
            assert_eq!(refusal, Err(IdentityFault::Identifier), "{bad}");
        }
        for other in ["A.com", "a.Com", "xn--A.com"] {
            let refusal = of(&format!("did:web:{other}"), EgressPolicy::Public);
            assert_eq!(refusal, Err(IdentityFault::NotNormal), "{other}");
        }
        for encoded in ["%61.com", "a%2Ecom", "a%2ecom", "a.com%2F"] {
            let refusal = of(&format!("did:web:{encoded}"), EgressPolicy::Public);
            assert_eq!(refusal, Err(IdentityFault::Identifier), "{encoded}");
        }
        for reserved in ["a.local", "a.test", "a.localhost", "a.onion"] {
            let refusal = of(&format!("did:web:{reserved}"), EgressPolicy::Public);
            assert_eq!(refusal, Err(IdentityFault::Reserved), "{reserved}");
        }
    }

    #[test]
    fn the_loopback_policy_allows_ports_of_localhost_and_the_domain_test() {
        at(
            EgressPolicy::Loopback,
            "did:web:localhost%3A2583",
            "http://localhost:2583/.well-known/did.json",
        );
        at(EgressPolicy::Loopback, "did:web:pds.test", "http://pds.test:80/.well-known/did.json");
        for bad in [
            "localhost%3A",
            "localhost%3A0",
            "localhost%3A65536",
            "localhost%3A080",
            "localhost%3a80",
            "a.test%3A80",
        ] {
            let refusal = of(&format!("did:web:{bad}"), EgressPolicy::Loopback);
            assert_eq!(refusal, Err(IdentityFault::Identifier), "{bad}");
        }
    }
}
