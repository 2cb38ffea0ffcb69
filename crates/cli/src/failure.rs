//! How does the command fail? With one line of what, where and what to do, and a code that tells a
//! script who is at fault.

use std::io::{self, Write};
use std::process::ExitCode;

use ::bench::BenchError;
use ::report::{ReadError, ReadFault};
use wireproof::net::firehose::{FeedError, RunError};
use wireproof::net::http::HttpError;
use wireproof::net::identity::{IdentityError, IdentityFault};
use wireproof::net::xrpc::{FetchError, XrpcError};
use wireproof::store::StoreError;

/// Why the command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bytes that break a rule. What was wrong may have been told already.
    Refused(String),
    /// Arguments that make no sense.
    Usage(String),
    /// The network, or a host on it.
    Network(String),
    /// A file, folder or program of this machine.
    Local(String),
    /// A person asked us to stop, and we did so in order.
    Interrupted,
    /// Whoever read our output has gone, and wants no more.
    NobodyReads,
}

impl Failure {
    /// Tells a person, and answers the code for a script.
    pub(crate) fn report(self) -> ExitCode {
        let (code, message) = match self {
            Self::Refused(message) => (1, message),
            Self::Usage(message) => (2, message),
            Self::Network(message) => (3, message),
            Self::Local(message) => (4, message),
            Self::Interrupted => return ExitCode::from(INTERRUPTED),
            Self::NobodyReads => return ExitCode::SUCCESS,
        };
        // If standard error is closed too, the code has to do.
        let _ = writeln!(anstream::stderr(), "wireproof: {message}");
        ExitCode::from(code)
    }

    /// A file or folder that could not be read or written.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Local(format!("{}: {error}", path.display()))
    }
}

impl From<io::Error> for Failure {
    /// Of standard input or output.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Local(format!("standard input or output: {error}")),
        }
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        match error.fault {
            IdentityFault::Status(_) | IdentityFault::Redirect(_) => {
                Self::Network(error.to_string())
            }
            _ if error.is_outage() => Self::Network(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Network(error.to_string())
    }
}

impl From<XrpcError> for Failure {
    fn from(error: XrpcError) -> Self {
        Self::Network(error.to_string())
    }
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Remote(error) => error.into(),
            FetchError::Local(_) => Self::Local(error.to_string()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error.fault {
            ReadFault::Io(_) => Self::Local(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<FeedError> for Failure {
    fn from(error: FeedError) -> Self {
        Self::Network(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Feed(error) => error.into(),
            other => Self::Local(other.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Local(error.to_string())
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match &error {
            BenchError::UnknownPeer { .. } | BenchError::OneFileForManyTasks(_) => {
                Self::Usage(error.to_string())
            }
            BenchError::Corpus { .. }
            | BenchError::Sidecar { .. }
            | BenchError::Accounts { .. }
            | BenchError::OtherCorpus(_) => Self::Refused(error.to_string()),
            _ => Self::Local(error.to_string()),
        }
    }
}

/// The exit code of what was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;
