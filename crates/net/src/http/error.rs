//! Errors of HTTP requests.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::egress_checks::{MAX_REDIRECTS, NoAddress};
use crate::DurationText;
use crate::dns::DnsError;
use crate::egress::EgressError;

/// Why there is no complete response from a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {fault}")]
pub struct HttpError {
    /// The host of the request; a redirect may have led to another.
    pub host: String,
    /// The reason.
    pub fault: HttpFault,
}

/// A fault of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpFault {
    /// The egress policy denies the host, or one that it redirected to.
    #[error("not allowed: {0}")]
    Egress(EgressError),
    /// The DNS lookup failed.
    #[error(transparent)]
    Dns(DnsError),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
    /// More redirects than allowed.
    #[error("more than {0} redirects")]
    Redirects(usize),
    /// The whole response took too long.
    #[error("no complete response within {text}", text = DurationText(*.0))]
    Timeout(Duration),
    /// No byte was received for too long.
    #[error("no byte for {text}", text = DurationText(*.0))]
    Idle(Duration),
    /// The body was received more slowly than this minimum, which rises with its age.
    #[error("fewer than {0} bytes per second")]
    TooSlow(u64),
    /// The body is compressed, although this was not asked for.
    #[error("the response is compressed with {0:?}, which was not requested")]
    Compressed(String),
    /// The body was asked for compressed, and is no intact gzip stream, or more than one.
    #[error("the gzip stream is damaged: {0}")]
    DamagedGzip(String),
    /// The body is too long, as it was received or decoded.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// The host's certificate is invalid.
    #[error("invalid certificate: {0}")]
    Certificate(CertificateFault),
    /// The host does not speak TLS, or no TLS that we accept.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The given PEM contains no certificate.
    #[error("the given PEM contains no certificate of an authority")]
    NoAuthority,
    /// The connection could not be opened.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection failed, or the peer does not speak HTTP.
    #[error("the connection failed: {0}")]
    Transport(String),
}

/// Why a host's certificate is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateFault {
    /// No trusted authority issued it.
    #[error("no trusted authority issued it")]
    UnknownIssuer,
    /// The signature of its issuer is wrong.
    #[error("the signature of its issuer is wrong")]
    BadSignature,
    /// It is for another name.
    #[error("it is for another name")]
    OtherName,
    /// It is expired or not valid yet.
    #[error("it is expired or not valid yet: check the clock of this machine, too")]
    NotNow,
    /// It is the certificate of an authority, as self-signed ones are.
    #[error(
        "it belongs to an authority, not to a host: a self-signed certificate must not be marked as an authority"
    )]
    Authority,
    /// Its authority has revoked it.
    #[error("its authority has revoked it")]
    Revoked,
    /// It cannot be parsed.
    #[error("it cannot be parsed")]
    Malformed,
    /// It is not for servers.
    #[error("it is not for servers")]
    OtherPurpose,
    /// Another fault, as named by the TLS library.
    #[error("the TLS library rejects it: {0}")]
    Other(String),
}

impl HttpError {
    pub(crate) fn new(host: &str, fault: HttpFault) -> Self {
        Self { host: host.to_owned(), fault }
    }

    /// Classifies an error of the HTTP library by its causes.
    pub(crate) fn of(host: &str, error: &reqwest::Error) -> Self {
        Self { host: host.to_owned(), fault: fault_of(error) }
    }
}

fn fault_of(error: &reqwest::Error) -> HttpFault {
    if let Some(denied) = cause::<EgressError>(error) {
        return HttpFault::Egress(*denied);
    }
    if let Some(error) = cause::<DnsError>(error) {
        return HttpFault::Dns(error.clone());
    }
    #[cfg(feature = "tls")]
    if let Some(error) = cause(error) {
        return super::tls_fault::of(error);
    }
    if cause::<NoAddress>(error).is_some() {
        return HttpFault::NoAddress;
    }
    if error.is_redirect() {
        return HttpFault::Redirects(MAX_REDIRECTS);
    }
    let innermost = causes(error).last().map(ToString::to_string).unwrap_or_default();
    if error.is_connect() { HttpFault::Connect(innermost) } else { HttpFault::Transport(innermost) }
}

/// An error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| inner_of_io(*error).or_else(|| (**error).source()))
}

/// The error inside an I/O error, which is not its `source`.
fn inner_of_io<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    Some(inner)
}

fn cause<E: Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_errors_are_rounded_for_a_person() {
        let long = Duration::from_nanos(86_399_999_973_691);
        assert_eq!(HttpFault::Idle(long).to_string(), "no byte for 1 day");
        let timeout = HttpFault::Timeout(Duration::from_millis(1_500));
        assert_eq!(timeout.to_string(), "no complete response within 1.5 s");
    }
}
