//! Faults of TLS certificates.

use rustls::CertificateError;

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
    #[error("it is expired or not valid yet")]
    NotNow,
    /// Another fault, as described by the TLS library.
    #[error("{0}")]
    Other(String),
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
            other => Self::Other(other.to_string()),
        }
    }
}
