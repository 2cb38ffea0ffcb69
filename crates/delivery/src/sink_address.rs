//! The interface of sink addresses: the target of a URI, the name of its consumer, and how to open it.

use std::fmt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use kernels::sha256;

use crate::sink::{SendFailure, Sink};
use crate::sink_options::SinkOptions;

/// The address of a sink, which a URI names.
///
/// [`Sinks`](crate::Sinks) parses a URI by the address type of its scheme.
pub trait SinkAddress: fmt::Debug + Sized + Send + Sync + 'static {
    /// The schemes of its URIs, in lower case.
    const SCHEMES: &'static [&'static str];
    /// The form of its URIs, for messages: `file:///FOLDER`.
    const FORM: &'static str;
    /// Whether its sinks store the position of the last event with their data: see [`Sink::stored`]. Default: no.
    const STORES_POSITIONS: bool = false;
    /// Whether its sinks need [`SinkOptions::http`] and [`SinkOptions::webhook_secret`]. Default: no.
    const SIGNS_REQUESTS: bool = false;
    /// The sink that is opened.
    type Sink: Sink;

    /// Parses a URI of one of the schemes.
    ///
    /// # Errors
    /// A text for a person, which does not repeat a password.
    fn from_uri(uri: &str) -> Result<Self, String>;

    /// The name of the consumer, as [`consumer_name`] makes it: the same in every run, and another one for another address.
    fn consumer(&self) -> String;

    /// A warning about an accepted address, for the operator. Default: none.
    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether a sink with these options can refuse an event, which is then set aside. Default: yes.
    fn can_refuse(&self, options: &SinkOptions) -> bool {
        let _ = options;
        true
    }

    /// Opens the sink. Called in a Tokio runtime with time.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(
        &self,
        options: &SinkOptions,
    ) -> impl Future<Output = Result<Self::Sink, OpenFailure>> + Send;
}

/// Why a sink cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenFailure {
    /// Something on this machine is wrong, which the text names.
    #[error("{0}")]
    Local(String),
    /// A server is away, or refuses. The text does not name it.
    #[error(transparent)]
    Remote(#[from] SendFailure),
}

impl OpenFailure {
    /// A failure on this machine.
    pub fn local(reason: impl ToString) -> Self {
        Self::Local(reason.to_string())
    }
}

/// The name of a consumer: a kind, a readable part, which is shortened, and a hash of all that tells the address from others.
pub fn consumer_name(kind: &str, readable: &str, whole: &[u8]) -> String {
    let allowed = |letter: char| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() || ".-".contains(letter) => letter,
        _ => '_',
    };
    let readable: String = readable.chars().take(MAX_READABLE_CHARS).map(allowed).collect();
    let hash = HEXLOWER.encode(&sha256::digest(whole)[..4]);
    format!("{kind}-{readable}-{hash}")
}

/// The name of the consumer of a file or folder.
pub(crate) fn path_consumer(kind: &str, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    consumer_name(kind, &name, path.as_os_str().as_encoded_bytes())
}

/// The absolute path after the scheme. Unlike in other URIs nothing is escaped, and no part of it names a host.
///
/// # Errors
/// If there is no path.
pub(crate) fn local_path(uri: &str) -> Result<PathBuf, String> {
    let rest = uri.split_once(':').map_or(uri, |(_, rest)| rest);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err("expected a path after the scheme".to_owned());
    }
    std::path::absolute(path).map_err(|error| error.to_string())
}

const MAX_READABLE_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_absolute_and_follows_the_scheme() {
        let current = std::env::current_dir().unwrap();
        assert_eq!(local_path("file:///var/events"), Ok("/var/events".into()));
        assert_eq!(local_path("sqlite://a.db"), Ok(current.join("a.db")));
        assert_eq!(local_path("sqlite:b/a.db"), Ok(current.join("b/a.db")));
        for wrong in ["sqlite:", "file://"] {
            assert!(local_path(wrong).is_err(), "{wrong}");
        }
    }
}
