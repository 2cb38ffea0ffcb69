//! Why there is no answer from a host.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::CertificateFault;
use super::guard::NoAddress;
use crate::dns::DnsError;
use crate::egress::EgressError;

/// Why there is no answer, or no whole one, and from whom.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {fault}")]
pub struct HttpError {
    /// The host that was asked first; a redirect may have led to another.
    pub host: String,
    /// What went wrong.
    pub fault: HttpFault,
}

/// What can go wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpFault {
    /// The host, or one that it sent us to, may not be reached.
    #[error("not allowed: {0}")]
    Egress(EgressError),
    /// The DNS did not answer.
    #[error(transparent)]
    Dns(DnsError),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
    /// More redirects than allowed.
    #[error("more than {0} redirects")]
    Redirects(usize),
    /// The whole answer took too long.
    #[error("no whole answer within {0:?}")]
    Timeout(Duration),
    /// Nothing came for too long.
    #[error("no byte for {0:?}")]
    Idle(Duration),
    /// The body came too slowly.
    #[error("fewer than {0} bytes a second")]
    TooSlow(u64),
    /// The body is too long.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// The host's certificate is not taken.
    #[error("its certificate is not taken: {0}")]
    Certificate(CertificateFault),
    /// What was given to trust holds no certificate.
    #[error("there is no certificate of an authority in the PEM that was given")]
    NoAuthority,
    /// The connection could not be made.
    #[error("no connection: {0}")]
    Connect(String),
    /// The connection broke, or what came over it is not HTTP.
    #[error("{0}")]
    Transport(String),
}

impl HttpError {
    pub(crate) fn new(host: &str, fault: HttpFault) -> Self {
        Self { host: host.to_owned(), fault }
    }

    /// What an error of the HTTP library means, told by its innermost cause.
    pub(crate) fn of(host: &str, error: &reqwest::Error) -> Self {
        Self { host: host.to_owned(), fault: fault_of(error) }
    }
}

fn fault_of(error: &reqwest::Error) -> HttpFault {
    if let Some(forbidden) = cause::<EgressError>(error) {
        return HttpFault::Egress(*forbidden);
    }
    if let Some(name) = cause::<DnsError>(error) {
        return HttpFault::Dns(name.clone());
    }
    if let Some(rustls::Error::InvalidCertificate(reason)) = cause(error) {
        return HttpFault::Certificate(reason.into());
    }
    if cause::<NoAddress>(error).is_some() {
        return HttpFault::NoAddress;
    }
    if error.is_redirect() {
        return HttpFault::Redirects(super::guard::MAX_REDIRECTS);
    }
    let innermost = causes(error).last().map(ToString::to_string).unwrap_or_default();
    match error.is_connect() {
        true => HttpFault::Connect(innermost),
        false => HttpFault::Transport(innermost),
    }
}

/// An error and what caused it, down to the first cause.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| inside(*error).or_else(|| (**error).source()))
}

/// What an error of I/O wraps: it does not call that its source.
fn inside<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    Some(inner)
}

fn cause<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref())
}
