//! Why the command failed: one line for a person on standard error, and an exit code for a script.

use std::fmt;
use std::io;

#[cfg(feature = "archive")]
use archive::{ArchiveError, ArchiveFault};
#[cfg(feature = "delivery")]
use delivery::OutboxError;
#[cfg(feature = "firehose")]
use net::firehose::{FeedError, RunError};
use net::http::HttpError;
use net::identity::{IdentityError, IdentityFault};
use net::plc_export::ExportError;
use net::xrpc::{FetchError, XrpcError};
#[cfg(feature = "store")]
use store::StoreError;

use crate::log::{self, Level};
#[cfg(feature = "archive")]
use crate::programs::ARCHIVE;

/// A failure by whose fault it is.
#[derive(Debug)]
pub enum Failure {
    /// Data that breaks a rule.
    Refused(String),
    /// Arguments that make no sense.
    Usage(String),
    /// The network, or a host on it.
    Network(String),
    /// A file, folder or program of this machine.
    Local(String),
    /// An orderly end after SIGINT.
    Interrupted,
    /// The reader of standard output closed it.
    OutputClosed,
}

impl Failure {
    /// Prints the message, and returns the exit code.
    pub fn report(self) -> u8 {
        // If standard error is closed, the exit code remains.
        let _ = self.message().map(|message| log::print(Level::Error, message));
        self.code()
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Network(_) => 3,
            Self::Local(_) => 4,
            Self::Interrupted => INTERRUPTED,
            Self::OutputClosed => 0,
        }
    }

    /// The message for a person. An orderly end has none.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Refused(message)
            | Self::Usage(message)
            | Self::Network(message)
            | Self::Local(message) => Some(message),
            Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// The failure with text before its message.
    pub fn after(self, text: &str) -> Self {
        match self {
            Self::Refused(message) => Self::Refused(format!("{text}{message}")),
            Self::Usage(message) => Self::Usage(format!("{text}{message}")),
            Self::Network(message) => Self::Network(format!("{text}{message}")),
            Self::Local(message) => Self::Local(format!("{text}{message}")),
            other => other,
        }
    }

    /// Names the file or folder that could not be read or written.
    pub fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Local(format!("{}: {error}", crate::files::name(path)))
    }

    /// Names the file whose content is refused.
    pub fn refused(path: &std::path::Path, what: impl std::fmt::Display) -> Self {
        Self::Refused(format!("{}: {what}", crate::files::name(path)))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupted => "interrupted",
            Self::OutputClosed => "the reader of the output has closed it",
            other => other.message().unwrap_or_default(),
        })
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    /// An error of standard input or output.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::Local(format!("standard input or output: {error}")),
        }
    }
}

/// Turns errors into failures of one kind.
macro_rules! failures {
    ($($(#[$feature:meta])? $error:ty => $kind:ident),* $(,)?) => {
        $($(#[$feature])? impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$kind(error.to_string())
            }
        })*
    };
}

failures! {
    ExportError => Network,
    HttpError => Network,
    XrpcError => Network,
    #[cfg(feature = "firehose")]
    FeedError => Network,
    #[cfg(feature = "store")]
    StoreError => Local,
    #[cfg(feature = "delivery")]
    OutboxError => Local,
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

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Remote(error) => error.into(),
            FetchError::Local(_) => Self::Local(error.to_string()),
        }
    }
}

#[cfg(feature = "firehose")]
impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Feed(error) => error.into(),
            other => Self::Local(other.to_string()),
        }
    }
}

#[cfg(feature = "archive")]
impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let message = error.to_string();
        if let Some(code) = error.fault.code() {
            return Self::Refused(format!("{}: refused ({code}): {}", error.file, error.fault));
        }
        match error.fault {
            ArchiveFault::NoObjectStores => {
                let part = format!("{}: an object store", error.file);
                Self::Usage(ARCHIVE.missing_feature(&part, "object-stores"))
            }
            ArchiveFault::Address | ArchiveFault::Settings(_) | ArchiveFault::LedgerName => {
                Self::Usage(message)
            }
            ArchiveFault::Store(_) => Self::Network(message),
            _ => Self::Local(message),
        }
    }
}

/// Exit code after SIGINT, and of a stop that was cut short.
pub const INTERRUPTED: u8 = 130;
