//! Why the command failed: one line for a person on standard error, and an exit code for a script.

use std::io;

use ::bench::BenchError;
use ::bench::nostr::{FileFault, InputError};
use ::report::publish::PublishError;
use ::report::{ReadError, ReadFault};
use delivery::OutboxError;
use net::firehose::{FeedError, RunError};
use net::http::HttpError;
use net::identity::{IdentityError, IdentityFault};
use net::xrpc::{FetchError, XrpcError};
use store::StoreError;

use crate::log::{self, Level};
#[cfg(feature = "nostr-lmdb")]
use crate::nostr::database_code;

/// A failure by whose fault it is.
#[derive(Debug)]
pub(crate) enum Failure {
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
    pub(crate) fn report(self) -> u8 {
        // If standard error is closed, the exit code remains.
        let _ = self.message().map(|message| log::print(Level::Error, message));
        self.code()
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
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
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Refused(message)
            | Self::Usage(message)
            | Self::Network(message)
            | Self::Local(message) => Some(message),
            Self::Interrupted | Self::OutputClosed => None,
        }
    }

    /// The failure with text before its message.
    pub(crate) fn after(self, text: &str) -> Self {
        match self {
            Self::Refused(message) => Self::Refused(format!("{text}{message}")),
            Self::Usage(message) => Self::Usage(format!("{text}{message}")),
            Self::Network(message) => Self::Network(format!("{text}{message}")),
            Self::Local(message) => Self::Local(format!("{text}{message}")),
            other => other,
        }
    }

    /// Names the file or folder that could not be read or written.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Local(format!("{}: {error}", crate::files::name(path)))
    }

    /// Names the file whose content is refused.
    pub(crate) fn refused(path: &std::path::Path, what: impl std::fmt::Display) -> Self {
        Self::Refused(format!("{}: {what}", crate::files::name(path)))
    }
}

/// Says that a part of the command needs a feature that this build does not have, and how to get it.
pub(crate) fn missing_feature(part: &str, feature: &str) -> String {
    format!(
        "{part} needs the feature `{feature}`, which this build does not have. In a clone of the repository, run: \
         cargo install --locked --path crates/cli --features {feature}"
    )
}

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
    ($($error:ty => $kind:ident),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::$kind(error.to_string())
            }
        })*
    };
}

failures! {
    HttpError => Network,
    XrpcError => Network,
    FeedError => Network,
    StoreError => Local,
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

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Feed(error) => error.into(),
            other => Self::Local(other.to_string()),
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

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Io(..) => Self::Local(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        match error {
            error if error.is_local() => Self::Local(error.to_string()),
            InputError::EmptyFolder(_) => Self::Refused(error.to_string()),
            InputError::File { fault: FileFault::Damaged(_), .. } => Self::Refused(format!(
                "{error} (`nostr convert --skip-damaged` takes what is intact)"
            )),
            #[cfg(feature = "nostr-lmdb")]
            InputError::File { fault: FileFault::Database(ref fault), .. } => Self::Refused(
                format!("{error} ({}: see {DATABASES})", fault.code().unwrap_or_default()),
            ),
            #[cfg(feature = "nostr-lmdb")]
            InputError::File { fault: FileFault::Event { fault, .. }, .. }
                if database_code(fault).is_some() =>
            {
                let code = database_code(fault).unwrap_or_default();
                Self::Refused(format!("{error} ({code}: see {DATABASES})"))
            }
            #[cfg(not(feature = "nostr-lmdb"))]
            InputError::File { path, fault: FileFault::NoDatabases } => {
                let part = format!("{}: an LMDB database", path.display());
                Self::Usage(missing_feature(&part, "nostr-lmdb"))
            }
            _ => Self::Refused(format!("{error} (--from names the layout of a file)")),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match &error {
            BenchError::UnknownPeer { .. }
            | BenchError::OneFileForManyTasks(_)
            | BenchError::RustProfile(_) => Self::Usage(error.to_string()),
            BenchError::Corpus { .. }
            | BenchError::Sidecar { .. }
            | BenchError::Accounts { .. }
            | BenchError::OtherCorpus(_) => Self::Refused(error.to_string()),
            _ => Self::Local(error.to_string()),
        }
    }
}

/// The part of the guide on databases of Nostr events.
#[cfg(feature = "nostr-lmdb")]
const DATABASES: &str = "docs/guide/nostr.md#databases";

/// Exit code after SIGINT, and of a stop that was cut short.
pub(crate) const INTERRUPTED: u8 = 130;
