//! Faults of TLS, from the errors of its library.

use rustls::{CertificateError, Error};

use super::error::{CertificateFault, HttpFault};

/// The fault that this error of the library is.
pub(super) fn of(error: &Error) -> HttpFault {
    match error {
        Error::InvalidCertificate(reason) => HttpFault::Certificate(reason.into()),
        other => HttpFault::Tls(text(other)),
    }
}

impl From<&CertificateError> for CertificateFault {
    fn from(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::BadSignature => Self::BadSignature,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherName
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::NotNow,
            CertificateError::Revoked => Self::Revoked,
            CertificateError::BadEncoding => Self::Malformed,
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                Self::OtherPurpose
            }
            CertificateError::Other(other) => match &*other.0.to_string() {
                "CaUsedAsEndEntity" => Self::Authority,
                name => Self::Other(words(name)),
            },
            other => Self::Other(words(&format!("{other:?}"))),
        }
    }
}

/// A failure of TLS other than an invalid certificate, for a person.
fn text(error: &Error) -> String {
    match error {
        Error::InvalidMessage(_) => {
            "the response is not TLS: check the scheme and the port".to_owned()
        }
        Error::PeerIncompatible(_) => {
            "the host supports no version or cipher that is accepted here: it needs TLS 1.2 or 1.3"
                .to_owned()
        }
        Error::AlertReceived(alert) => {
            format!("the host ended it with the alert: {}", words(&format!("{alert:?}")))
        }
        other => words(&format!("{other:?}")),
    }
}

/// The words of a name in camel case at the start of a text: `BadRecordMac…` becomes `bad record mac`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::{AlertDescription, OtherError, PeerIncompatible};

    use super::*;

    /// An error as the TLS library reports a certificate of an authority: its text is its debug form.
    #[derive(Debug, thiserror::Error)]
    #[error("{self:?}")]
    enum LibraryError {
        CaUsedAsEndEntity,
        PathLenConstraintViolated,
    }

    #[test]
    fn faults_of_tls_are_explained_without_debug_output() {
        let other = |error| CertificateError::Other(OtherError(Arc::new(error)));
        for (error, text) in [
            (other(LibraryError::CaUsedAsEndEntity), "it belongs to an authority"),
            (other(LibraryError::PathLenConstraintViolated), "path len constraint violated"),
            (CertificateError::Revoked, "its authority has revoked it"),
            (CertificateError::InvalidPurpose, "it is not for servers"),
            (CertificateError::UnhandledCriticalExtension, "unhandled critical extension"),
        ] {
            let fault = of(&Error::InvalidCertificate(error)).to_string();
            assert!(fault.starts_with("invalid certificate: ") && fault.contains(text), "{fault}");
            assert!(!fault.contains(['(', '{', '"']), "{fault}");
        }
        let alert = Error::AlertReceived(AlertDescription::HandshakeFailure);
        assert_eq!(text(&alert), "the host ended it with the alert: handshake failure");
        let peer = Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon);
        assert!(text(&peer).contains("TLS 1.2 or 1.3"));
    }
}
