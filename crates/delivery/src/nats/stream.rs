//! The settings of a stream that decide whether it takes and acknowledges the messages of events.

use async_nats::jetstream::stream::Config;
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};

use super::address::NatsAddress;
use crate::config_fault::ConfigFault;

/// Why a stream does not take the messages of an address, or acknowledges none.
pub(super) fn fault_of(config: &Config, address: &NatsAddress) -> Option<ConfigFault> {
    let name = || address.stream.clone();
    if config.sealed {
        return Some(ConfigFault::Sealed(name()));
    }
    if let Some(mirror) = &config.mirror {
        return Some(ConfigFault::Mirror(name(), sanitize(&mirror.name, MAX_MESSAGE_CHARS)));
    }
    if config.no_ack {
        return Some(ConfigFault::NoAck(name()));
    }
    if config.allow_message_counter {
        return Some(ConfigFault::Counter(name()));
    }
    let is_taken = config.subjects.iter().any(|filter| address.is_taken_by(filter));
    (!is_taken).then(|| ConfigFault::Subjects(name(), address.subjects()))
}

/// The limit of a stream that an error of the server is about.
pub(super) fn full(error: &str, config: &Config) -> Option<ConfigFault> {
    let limit = if error.contains("maximum messages per subject exceeded") {
        format!("max_msgs_per_subject={}", config.max_messages_per_subject)
    } else if error.contains("maximum messages exceeded") {
        format!("max_msgs={}", config.max_messages)
    } else if error.contains("maximum bytes exceeded") {
        format!("max_bytes={}", config.max_bytes)
    } else {
        return None;
    };
    Some(ConfigFault::Full(error.to_owned(), config.name.clone(), limit))
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::stream::Source;

    use super::*;

    #[test]
    fn a_stream_that_takes_or_acknowledges_nothing_is_named_with_the_setting() {
        let address = NatsAddress::parse("nats://localhost/at.events").unwrap();
        let fits = || Config { subjects: vec!["at.>".to_owned()], ..Config::default() };
        let code = |config: Config| fault_of(&config, &address).map(|fault| fault.code());
        assert_eq!(code(fits()), None);
        let harmless = Config { deny_delete: true, deny_purge: true, max_bytes: 1, ..fits() };
        assert_eq!(code(harmless), None);
        assert_eq!(code(Config { no_ack: true, ..fits() }), Some("nats/no-ack"));
        assert_eq!(code(Config { sealed: true, ..fits() }), Some("nats/sealed"));
        let counter = Config { allow_message_counter: true, ..fits() };
        assert_eq!(code(counter), Some("nats/counter"));
        let mirror = Source { name: "origin".to_owned(), ..Source::default() };
        let mirror = Config { mirror: Some(mirror), ..Config::default() };
        assert_eq!(code(mirror), Some("nats/mirror"));
        assert_eq!(code(Config::default()), Some("nats/subjects"));
    }

    #[test]
    fn a_full_stream_is_named_with_its_limit() {
        let config = Config {
            max_bytes: 7,
            max_messages: 8,
            max_messages_per_subject: 9,
            ..Config::default()
        };
        for (error, limit) in [
            ("maximum bytes exceeded", "max_bytes=7"),
            ("maximum messages exceeded", "max_msgs=8"),
            ("maximum messages per subject exceeded", "max_msgs_per_subject=9"),
        ] {
            let text = full(error, &config).unwrap().text();
            assert!(text.contains(error) && text.contains(limit), "{text}");
        }
        assert_eq!(full("wrong last sequence", &config), None);
    }
}
