//! Errors of XRPC methods.

use std::fmt;

use super::unsigned::MAX_CURSOR_BYTES;
use crate::http::HttpFault;
use crate::rate_limit::RateLimited;
use crate::remote_text::{MAX_MESSAGE_CHARS, MAX_NAME_CHARS, sanitize};

/// Why a method failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {method}: {fault}")]
pub struct XrpcError {
    /// The host of the last request; after a redirect, its target.
    pub host: Box<str>,
    /// The method without its namespace, such as `com.atproto.sync.`.
    pub method: &'static str,
    /// The reason.
    pub fault: XrpcFault,
}

/// A fault of a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XrpcFault {
    /// The server returned an XRPC error.
    #[error("{0}")]
    Named(NamedError),
    /// The server returned an error status without an XRPC error.
    #[error("status {0} without an XRPC error")]
    Status(u16),
    /// The host requests a delay.
    #[error(transparent)]
    RateLimited(RateLimited),
    /// There is no complete response.
    #[error(transparent)]
    Http(HttpFault),
    /// A redirect without a valid URL.
    #[error("redirect (status {0}) without a valid URL")]
    Location(u16),
    /// The body has a content type that no method returns.
    #[error("unexpected content type `{0}`")]
    ContentType(Box<str>),
    /// The body is not JSON, or does not match the schema of the method.
    #[error("the response does not match the schema: {0}")]
    Schema(Box<str>),
    /// The cursor of the next page equals the cursor of this page.
    #[error("the list repeats: the cursor of the next page is the same")]
    Cursor,
    /// The cursor of the next page is longer than allowed; its length in bytes.
    #[error("the cursor of the next page has {0} bytes: at most {MAX_CURSOR_BYTES} are allowed")]
    LongCursor(usize),
}

/// An XRPC error. It is identified by its name, not its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedError {
    /// The name.
    pub name: ErrorName,
    /// The message of the server, of at most 300 characters.
    pub message: Box<str>,
    /// The HTTP status.
    pub status: u16,
}

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The name of an error.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorName {
            $($(#[doc = $doc])+ $name,)+
            /// Another name.
            Other(Box<str>),
        }

        impl From<&str> for ErrorName {
            fn from(text: &str) -> Self {
                match text {
                    $(stringify!($name) => Self::$name,)+
                    _ => Self::Other(sanitize(text, MAX_NAME_CHARS).into()),
                }
            }
        }

        impl ErrorName {
            /// The status of an account that the error states, such as `takendown`.
            pub fn account_status(&self) -> Option<&'static str> {
                match self {
                    Self::RepoDeleted => Some("deleted"),
                    Self::RepoTakendown => Some("takendown"),
                    Self::RepoSuspended => Some("suspended"),
                    Self::RepoDeactivated => Some("deactivated"),
                    _ => None,
                }
            }

            /// The name as the protocol spells it.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Other(text) => text,
                }
            }
        }
    };
}

names! {
    /// The host does not have the account.
    RepoNotFound,
    /// The host has taken the account down.
    RepoTakendown,
    /// The host has suspended the account.
    RepoSuspended,
    /// The owner has deactivated the account.
    RepoDeactivated,
    /// The account is deleted.
    RepoDeleted,
    /// The account is not active, for any reason.
    RepoInactive,
    /// The host does not have the current state of the account.
    RepoNotSynchronized,
    /// There is no such record.
    RecordNotFound,
    /// There is no such block.
    BlockNotFound,
    /// The relay does not know the host.
    HostNotFound,
    /// The relay has banned the host.
    HostBanned,
    /// The request violates a rule of the method.
    InvalidRequest,
    /// The server does not have the method.
    MethodNotImplemented,
    /// The method requires authentication.
    AuthenticationRequired,
    /// Too many requests.
    RateLimitExceeded,
    /// The server failed.
    InternalServerError,
    /// An upstream server failed.
    UpstreamFailure,
}

impl XrpcError {
    #[cold]
    pub(crate) fn new(host: &str, method: &'static str, fault: XrpcFault) -> Self {
        Self { host: host.into(), method, fault }
    }

    /// The name of the XRPC error, if the server returned one.
    pub fn name(&self) -> Option<&ErrorName> {
        match &self.fault {
            XrpcFault::Named(error) => Some(&error.name),
            _ => None,
        }
    }

    /// Whether the response was a rate limit, whose delay the rate limiter has recorded.
    pub(crate) fn is_rate_limit(&self) -> bool {
        match &self.fault {
            XrpcFault::Named(NamedError { status, .. }) | XrpcFault::Status(status) => {
                matches!(status, 429 | 503)
            }
            _ => false,
        }
    }

    /// Whether a retry may succeed: the host did not respond, or is overloaded.
    pub fn is_retryable(&self) -> bool {
        match &self.fault {
            XrpcFault::Named(NamedError { status, .. }) | XrpcFault::Status(status) => {
                matches!(status, 408 | 429 | 500..)
                    && self.name() != Some(&ErrorName::MethodNotImplemented)
            }
            XrpcFault::Http(fault) => !matches!(
                fault,
                HttpFault::Egress(_)
                    | HttpFault::TooLarge(_)
                    | HttpFault::Compressed(_)
                    | HttpFault::Redirects(_)
            ),
            XrpcFault::RateLimited(_) => true,
            _ => false,
        }
    }
}

impl NamedError {
    pub(crate) fn new(name: &str, message: &str, status: u16) -> Self {
        Self { name: name.into(), message: sanitize(message, MAX_MESSAGE_CHARS).into(), status }
    }
}

impl fmt::Display for NamedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.name, self.status)?;
        match &*self.message {
            "" => Ok(()),
            message => write!(f, ": {message}"),
        }
    }
}

impl fmt::Display for ErrorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_protocol_and_unknown_names_are_kept_up_to_a_length() {
        assert_eq!(ErrorName::from("RepoTakendown"), ErrorName::RepoTakendown);
        assert_eq!(ErrorName::RepoTakendown.to_string(), "RepoTakendown");
        assert_eq!(ErrorName::from("OutOfTea").as_str(), "OutOfTea");
        assert_eq!(ErrorName::from(&*"x".repeat(1000)).as_str().len(), MAX_NAME_CHARS);
    }

    #[test]
    fn control_characters_in_messages_are_escaped() {
        let error = NamedError::new("RepoNotFound", "\u{1b}[2Jgone\u{7}", 400);
        assert_eq!(error.to_string(), "RepoNotFound (status 400): \\u{1b}[2Jgone\\u{7}");
    }
}
