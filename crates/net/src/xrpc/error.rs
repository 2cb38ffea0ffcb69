//! Errors of XRPC methods.

use std::fmt;

use crate::http::HttpFault;
use crate::rate_limit::RateLimited;

/// Why there is no answer to a method, or no whole one, and from whom.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {method}: {fault}")]
pub struct XrpcError {
    /// The host that was asked last: behind a redirect, the one that it led to.
    pub host: Box<str>,
    /// The method, without `com.atproto.sync`.
    pub method: &'static str,
    /// What went wrong.
    pub fault: XrpcFault,
}

/// What can go wrong with a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum XrpcFault {
    /// The server gives an error of the protocol.
    #[error("{0}")]
    Named(NamedError),
    /// The status is none of a result, and the body is no error of the protocol.
    #[error("the answer's status is {0}, without an error of XRPC")]
    Status(u16),
    /// The host asked us to come later.
    #[error(transparent)]
    RateLimited(RateLimited),
    /// No answer, or no whole one.
    #[error(transparent)]
    Http(HttpFault),
    /// A redirect that leads nowhere.
    #[error("a redirect (status {0}) without a URL to go to")]
    Location(u16),
    /// A body of another type than the method's.
    #[error("the answer is of the type {0:?}")]
    ContentType(Box<str>),
    /// A body that is not JSON, or not as the method has it.
    #[error("the answer is not as the method has it: {0}")]
    Schema(Box<str>),
    /// A list whose next page is the one that was just given.
    #[error("the list goes in a circle: the same cursor twice")]
    Cursor,
}

/// An error that a server gives: its name counts, not its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedError {
    /// The name.
    pub name: ErrorName,
    /// What the server says about it, cut short.
    pub message: Box<str>,
    /// The status that it came with.
    pub status: u16,
}

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The name of an error.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorName {
            $($(#[doc = $doc])+ $name,)+
            /// Another one.
            Other(Box<str>),
        }

        impl From<&str> for ErrorName {
            fn from(text: &str) -> Self {
                match text {
                    $(stringify!($name) => Self::$name,)+
                    _ => Self::Other(cut(text, MAX_NAME_CHARS)),
                }
            }
        }

        impl ErrorName {
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
    /// The account is not of this host.
    RepoNotFound,
    /// The host has taken the account down.
    RepoTakendown,
    /// The host has suspended the account.
    RepoSuspended,
    /// The account's owner has put it to rest.
    RepoDeactivated,
    /// The account is deleted.
    RepoDeleted,
    /// The account is not active, for whatever reason.
    RepoInactive,
    /// The host does not have the newest of the account itself.
    RepoNotSynchronized,
    /// There is no such record.
    RecordNotFound,
    /// There is no such block.
    BlockNotFound,
    /// The relay does not know the host.
    HostNotFound,
    /// The relay wants nothing of the host.
    HostBanned,
    /// The request breaks a rule of the method.
    InvalidRequest,
    /// The server does not have the method.
    MethodNotImplemented,
    /// The request wants somebody who is logged in.
    AuthenticationRequired,
    /// Too many questions.
    RateLimitExceeded,
    /// The server fails.
    InternalServerError,
    /// A server behind the server fails.
    UpstreamFailure,
}

impl XrpcError {
    #[cold]
    pub(super) fn new(host: &str, method: &'static str, fault: XrpcFault) -> Self {
        Self { host: host.into(), method, fault }
    }

    /// The name of the error, if the server gave one.
    pub fn name(&self) -> Option<&ErrorName> {
        match &self.fault {
            XrpcFault::Named(error) => Some(&error.name),
            _ => None,
        }
    }

    /// Whether the next answer may well be another: the host did not answer, or is busy.
    pub fn is_retryable(&self) -> bool {
        match &self.fault {
            XrpcFault::Named(NamedError { status, .. }) | XrpcFault::Status(status) => {
                matches!(status, 408 | 429 | 500..)
                    && self.name() != Some(&ErrorName::MethodNotImplemented)
            }
            XrpcFault::Http(fault) => !matches!(
                fault,
                HttpFault::Egress(_) | HttpFault::TooLarge(_) | HttpFault::Redirects(_)
            ),
            XrpcFault::RateLimited(_) => true,
            _ => false,
        }
    }
}

impl NamedError {
    pub(super) fn new(name: &str, message: &str, status: u16) -> Self {
        Self { name: name.into(), message: cut(message, MAX_MESSAGE_CHARS), status }
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

/// The beginning of a stranger's text, in which nothing moves a cursor or rings a bell.
pub(super) fn cut(text: &str, max_chars: usize) -> Box<str> {
    let harmless = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(max_chars).map(harmless).collect::<String>().into()
}

const MAX_NAME_CHARS: usize = 64;
const MAX_MESSAGE_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_as_the_protocol_does_and_strange_ones_are_kept() {
        assert_eq!(ErrorName::from("RepoTakendown"), ErrorName::RepoTakendown);
        assert_eq!(ErrorName::RepoTakendown.to_string(), "RepoTakendown");
        assert_eq!(ErrorName::from("OutOfTea").as_str(), "OutOfTea");
        assert_eq!(ErrorName::from(&*"x".repeat(1000)).as_str().len(), MAX_NAME_CHARS);
    }

    #[test]
    fn what_a_stranger_says_cannot_write_on_a_terminal() {
        let error = NamedError::new("RepoNotFound", "\u{1b}[2Jgone\u{7}", 400);
        assert_eq!(error.to_string(), "RepoNotFound (status 400): \u{fffd}[2Jgone\u{fffd}");
    }
}
