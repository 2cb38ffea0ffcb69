//! Destinations of events: the URIs of `--to`, and the names of their consumers.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
#[cfg(feature = "kafka")]
use delivery::KafkaAddress;
#[cfg(feature = "nats")]
use delivery::NatsAddress;
use delivery::PostgresAddress;
use kernels::sha256;
use net::http::Url;

#[cfg(not(all(feature = "kafka", feature = "nats")))]
use program::programs::WIREPROOF;

/// Where events are delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Files of lines in a folder.
    Files(PathBuf),
    /// Signed requests to a URL.
    Webhook(Url),
    /// Tables in a SQLite file.
    Sqlite(PathBuf),
    /// Clients of a WebSocket server at an address.
    WebSocket(SocketAddr),
    /// Tables in a PostgreSQL database.
    Postgres(Box<PostgresAddress>),
    /// A topic of Kafka.
    #[cfg(feature = "kafka")]
    Kafka(Box<KafkaAddress>),
    /// A stream of NATS JetStream.
    #[cfg(feature = "nats")]
    Nats(Box<NatsAddress>),
}

/// Parses destinations. Its errors do not repeat the value, which may have a password.
#[derive(Clone, Copy, Debug)]
pub struct DestinationParser;

impl TypedValueParser for DestinationParser {
    type Value = Destination;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Destination, clap::Error> {
        let text = value.to_str().ok_or_else(|| "expected UTF-8".to_owned());
        text.and_then(str::parse).map_err(|fault| {
            let message = format!("invalid value for '--to <URI>': {fault}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            "expected file:///FOLDER, sqlite:///FILE, postgres://…, kafka://HOST/TOPIC, nats://HOST/PREFIX, ws://ADDRESS:PORT, or a URL of \
             https or http"
                .to_owned()
        };
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        match scheme {
            "file" => path(rest).map(Self::Files),
            "sqlite" => path(rest).map(Self::Sqlite),
            "postgres" | "postgresql" => {
                PostgresAddress::parse(text).map(|address| Self::Postgres(Box::new(address)))
            }
            #[cfg(feature = "kafka")]
            "kafka" => KafkaAddress::parse(text).map(|address| Self::Kafka(Box::new(address))),
            #[cfg(feature = "nats")]
            "nats" => NatsAddress::parse(text).map(|address| Self::Nats(Box::new(address))),
            #[cfg(not(feature = "kafka"))]
            "kafka" => Err(WIREPROOF.missing_feature("kafka://", "kafka")),
            #[cfg(not(feature = "nats"))]
            "nats" => Err(WIREPROOF.missing_feature("nats://", "nats")),
            "http" | "https" => webhook(text).map(Self::Webhook),
            "ws" => address(rest).map(Self::WebSocket),
            _ => Err(unknown()),
        }
    }
}

impl Destination {
    /// The names of the consumers: those of the clients of a server, or one that is the same in every run, whatever the
    /// current folder, and another one for another destination. It ends with a hash, since the readable part is
    /// shortened.
    pub(super) fn consumers(&self, clients: &[String]) -> Vec<String> {
        let file_name = |path: &Path| {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let path_bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        let (kind, name, whole) = match self {
            Self::Files(path) => ("file", file_name(path), path_bytes(path)),
            Self::Sqlite(path) => ("sqlite", file_name(path), path_bytes(path)),
            Self::Postgres(address) => ("postgres", address.name(), address.name().into_bytes()),
            #[cfg(feature = "kafka")]
            Self::Kafka(address) => ("kafka", address.name(), address.name().into_bytes()),
            #[cfg(feature = "nats")]
            Self::Nats(address) => ("nats", address.name(), address.name().into_bytes()),
            Self::Webhook(url) => {
                let host = url.host_str().unwrap_or_default().to_owned();
                ("webhook", host, url.as_str().as_bytes().to_vec())
            }
            Self::WebSocket(_) => return clients.to_vec(),
        };
        let allowed = |letter: char| match letter.to_ascii_lowercase() {
            letter if letter.is_ascii_alphanumeric() || ".-".contains(letter) => letter,
            _ => '_',
        };
        let name: String = name.chars().take(MAX_NAME_CHARS).map(allowed).collect();
        let digest = sha256::digest(&whole);
        let hash: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        vec![format!("{kind}-{name}-{hash}")]
    }
}

/// The absolute path after the scheme. Unlike in other URIs nothing is escaped, and no part of it names a host.
fn path(rest: &str) -> Result<PathBuf, String> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    if path.is_empty() {
        return Err("expected a path after the scheme".to_owned());
    }
    std::path::absolute(path).map_err(|error| error.to_string())
}

fn webhook(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err("expected a URL without a user: requests are signed instead".to_owned()),
    }
}

/// The address of a server. A name would leave open which of its addresses is bound.
fn address(rest: &str) -> Result<SocketAddr, String> {
    let text = rest.strip_prefix("//").unwrap_or(rest);
    text.strip_suffix('/')
        .unwrap_or(text)
        .parse()
        .map_err(|_| "expected an IP address and a port, as in ws://127.0.0.1:2480".to_owned())
}

const MAX_NAME_CHARS: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Destination, String> {
        text.parse()
    }

    #[test]
    fn a_uri_names_a_folder_a_file_or_a_url() {
        let current = std::env::current_dir().unwrap();
        assert_eq!(parse("file:///var/events"), Ok(Destination::Files("/var/events".into())));
        assert_eq!(parse("sqlite:///var/a.db"), Ok(Destination::Sqlite("/var/a.db".into())));
        assert_eq!(parse("sqlite://a.db"), Ok(Destination::Sqlite(current.join("a.db"))));
        assert_eq!(parse("sqlite:b/a.db"), Ok(Destination::Sqlite(current.join("b/a.db"))));
        let url = Url::parse("https://hook.test/in").unwrap();
        assert_eq!(parse("https://hook.test/in"), Ok(Destination::Webhook(url)));
        let address = |text: &str| Ok(Destination::WebSocket(text.parse().unwrap()));
        assert_eq!(parse("ws://127.0.0.1:2480"), address("127.0.0.1:2480"));
        assert_eq!(parse("ws://[::1]:2480/"), address("[::1]:2480"));
        for wrong in [
            "ws://localhost:2480",
            "ws://127.0.0.1",
            "ws://127.0.0.1:2480/lines",
            "wss://127.0.0.1:2480",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "events", "sqlite:", "file://", "kafka://a", "https://me:x@hook.test/"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_consumer_has_the_same_name_in_every_run_and_no_two_destinations_share_one() {
        let name = |text: &str| parse(text).unwrap().consumers(&[]).remove(0);
        assert!(name("sqlite:///var/Posts of ada.db").starts_with("sqlite-posts_of_ada.db-"));
        let current = std::env::current_dir().unwrap();
        assert_eq!(name("sqlite:a.db"), name(&format!("sqlite://{}/a.db", current.display())));
        let long = "x".repeat(300);
        let names = [
            name("sqlite:///a/posts.db"),
            name("sqlite:///b/posts.db"),
            name("file:///b/posts.db"),
            name(&format!("file:///{long}")),
            name(&format!("https://hook.test/{long}")),
            name(&format!("postgres://db.test/{long}")),
            name("postgres://db.test/posts"),
        ];
        assert!(names.last().unwrap().starts_with("postgres-db.test_5432_posts-"), "{names:?}");
        assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }
}
