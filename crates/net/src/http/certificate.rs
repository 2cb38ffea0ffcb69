//! Why is a host's certificate not taken?

use rustls::CertificateError;

/// Why a host's certificate is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Nobody who is trusted has signed it.
    #[error("no authority that is trusted has signed it")]
    UnknownIssuer,
    /// It names an authority that is trusted, which has not signed it.
    #[error("the authority that it names has not signed it")]
    BadSignature,
    /// It is for other names than the one that was asked.
    #[error("it is for another name")]
    OtherName,
    /// Its time is over, or has not come.
    #[error("it is not valid now")]
    NotNow,
    /// Something else, in the words of the TLS library.
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
