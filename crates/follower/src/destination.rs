//! Destinations of events: the URIs of `--to`.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use delivery::{AnyAddress, Sinks, UriError};
use program::programs::WIREPROOF;

/// Where events are delivered.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A sink, to which events are sent.
    Sink(AnyAddress),
    /// Clients of a WebSocket server at an address, which pull events.
    WebSocket(SocketAddr),
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

    fn from_str(uri: &str) -> Result<Self, String> {
        Self::parse(uri, &Sinks::built_in())
    }
}

impl Destination {
    /// Parses the URI of a WebSocket server, or of one of these sinks.
    ///
    /// # Errors
    /// A text for a person, which does not repeat a password.
    pub fn parse(uri: &str, sinks: &Sinks) -> Result<Self, String> {
        if let Some(rest) = uri.strip_prefix("ws:") {
            return address(rest).map(Self::WebSocket);
        }
        sinks.address(uri).map(Self::Sink).map_err(|error| match error {
            UriError::UnknownScheme => expected(sinks),
            UriError::MissingFeature { scheme, feature } => {
                WIREPROOF.missing_feature(&format!("{scheme}://"), feature)
            }
            other => other.to_string(),
        })
    }

    /// The names of the consumers: the clients of a server, or the sink.
    pub(super) fn consumers(&self, clients: &[String]) -> Vec<String> {
        match self {
            Self::Sink(address) => vec![address.consumer.clone()],
            Self::WebSocket(_) => clients.to_vec(),
        }
    }
}

/// The kinds of URIs.
fn expected(sinks: &Sinks) -> String {
    let forms: Vec<&str> = sinks.forms().collect();
    let (last, others) = forms.split_last().unwrap_or((&"", &[]));
    format!("expected {}, ws://ADDRESS:PORT, or {last}", others.join(", "))
}

/// The address of a server. A name would leave open which of its addresses is bound.
fn address(rest: &str) -> Result<SocketAddr, String> {
    let text = rest.strip_prefix("//").unwrap_or(rest);
    text.strip_suffix('/')
        .unwrap_or(text)
        .parse()
        .map_err(|_| "expected an IP address and a port, as in ws://127.0.0.1:2480".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Destination, String> {
        text.parse()
    }

    #[test]
    fn a_uri_names_a_sink_or_the_address_of_a_server() {
        for sink in ["file:///var/events", "sqlite:a.db", "https://hook.test/in"] {
            assert!(matches!(parse(sink), Ok(Destination::Sink(_))), "{sink}");
        }
        let address = |text: &str| match parse(text) {
            Ok(Destination::WebSocket(address)) => address.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(address("ws://127.0.0.1:2480"), "127.0.0.1:2480");
        assert_eq!(address("ws://[::1]:2480/"), "[::1]:2480");
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
    fn an_unknown_scheme_is_answered_with_the_known_ones() {
        let expected = "expected file:///FOLDER, sqlite:///FILE, postgres://…, kafka://HOST/TOPIC, nats://HOST/PREFIX, \
                        ws://ADDRESS:PORT, or a URL of https or http";
        for unknown in ["events", "FILE:///a", "ftp://me:secret@a.test/"] {
            assert_eq!(parse(unknown).unwrap_err(), expected);
        }
    }

    #[cfg(not(feature = "kafka"))]
    #[test]
    fn a_sink_that_is_not_built_in_is_answered_with_its_feature() {
        let error = parse("kafka://localhost/events").unwrap_err();
        assert!(error.starts_with("kafka:// needs the feature `kafka`"), "{error}");
        assert!(error.contains("--features kafka"), "{error}");
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
