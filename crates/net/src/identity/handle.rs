//! Which DID does a handle lead to?
//!
//! The DNS and the host are asked at once. What the DNS says counts, also when it is wrong: several
//! DIDs are none. Only where it says nothing does the host's word count.

use std::pin::pin;
use std::time::Duration;

use atproto::syntax::{DidBuf, Handle};
use futures_util::future::{Either, select};

use super::location::{check_name, well_known};
use super::{IdentityError, IdentityFault, Options};
use crate::concurrency::ConcurrencyLimit;
use crate::dns::DnsResolver;
use crate::http::{Client, Limits};
use crate::rate_limit::RateLimiter;

/// Who is asked about handles, and how.
pub(super) struct Way<'w> {
    pub(super) http: &'w Client,
    pub(super) names: &'w dyn DnsResolver,
    pub(super) options: &'w Options,
    pub(super) gate: &'w RateLimiter,
    pub(super) turns: &'w ConcurrencyLimit,
}

/// The DID that `handle` leads to.
pub(super) async fn resolve_handle(
    way: &Way<'_>,
    handle: Handle<'_>,
) -> Result<DidBuf, IdentityError> {
    let reach = way.http.reach();
    check_name(handle, reach).map_err(|fault| IdentityError::new(handle, fault))?;
    let dns = pin!(ask_dns(way.names, handle));
    let host = pin!(ask_host(way, handle));
    let (dns, host) = match select(dns, host).await {
        Either::Left((Ok(None), host)) => (Ok(None), host.await),
        Either::Left((Err(error), host)) if error.is_outage() => (Err(error), host.await),
        Either::Left((Ok(Some(did)), _)) => return Ok(did),
        Either::Left((Err(error), _)) => return Err(error),
        Either::Right((host, dns)) => (dns.await, host),
    };
    decide(dns, host)
}

/// What counts of two answers.
fn decide(
    dns: Result<Option<DidBuf>, IdentityError>,
    host: Result<DidBuf, IdentityError>,
) -> Result<DidBuf, IdentityError> {
    match (dns, host) {
        (Ok(Some(did)), _) | (Ok(None), Ok(did)) => Ok(did),
        (Err(error), Ok(did)) if error.is_outage() => Ok(did),
        // Without an answer of the DNS, nobody knows whether the handle leads nowhere.
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

async fn ask_dns(
    names: &dyn DnsResolver,
    handle: Handle<'_>,
) -> Result<Option<DidBuf>, IdentityError> {
    let name = format!("_atproto.{handle}");
    let texts = match tokio::time::timeout(DNS_TIME, names.texts(&name)).await {
        Ok(Ok(texts)) => texts,
        Ok(Err(error)) => return Err(IdentityError::new(handle, IdentityFault::Dns(error))),
        Err(_) => return Err(IdentityError::new(handle, IdentityFault::DnsTimeout)),
    };
    did_in(&texts).map_err(|fault| IdentityError::at(handle, &name, fault))
}

/// The one DID that the texts name; other texts are passed by.
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

async fn ask_host(way: &Way<'_>, handle: Handle<'_>) -> Result<DidBuf, IdentityError> {
    let url = well_known(handle, way.http.reach(), way.options)
        .map_err(|fault| IdentityError::new(handle, fault))?;
    let host = handle.as_str();
    let _turn = way.turns.acquire(host).await;
    let entered = way.gate.until_ready(host).await;
    entered.map_err(|early| IdentityError::at(handle, host, IdentityFault::RateLimited(early)))?;
    let answer = way.http.get(&url, &WELL_KNOWN).await;
    let answer = answer.map_err(|error| IdentityError::http(handle, error))?;
    way.gate.record_response(host, answer.status, &answer.headers);
    let line = answer.body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let did = match answer.status {
        200 => parse(line),
        404 | 410 => Err(IdentityFault::NotFound),
        status => Err(IdentityFault::Status(status)),
    };
    did.map_err(|fault| IdentityError::at(handle, handle.as_str(), fault))
}

fn parse(text: &[u8]) -> Result<DidBuf, IdentityFault> {
    let text = str::from_utf8(text.trim_ascii()).map_err(|_| IdentityFault::NotADid)?;
    text.parse().map_err(|_| IdentityFault::NotADid)
}

const DNS_TIME: Duration = Duration::from_secs(10);

const WELL_KNOWN: Limits = Limits { max_bytes: 2 << 10, ..Limits::DOCUMENT };
