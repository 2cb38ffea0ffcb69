//! The address of a topic of Kafka.

use krafka::auth::{AuthConfig, TlsConfig};

use crate::server_address::ServerAddress;

/// Where a topic of Kafka is, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaAddress {
    pub(super) brokers: ServerAddress,
    mechanism: Mechanism,
}

/// How a user authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    Plain,
    Scram256,
    Scram512,
}

impl KafkaAddress {
    /// Parses `kafka://USER@HOST:PORT/TOPIC`. The keys after `?` are `broker` for each further `HOST:PORT` of the same
    /// cluster; `tls`, `true` or, within this machine only, `false`; `roots`, a PEM file of trusted certificates instead of
    /// those of the system; `password_file`, which is read for each connection; and `sasl`, by default `scram-sha-512`,
    /// else `scram-sha-256` or, with TLS, `plain`.
    ///
    /// # Errors
    /// A text for a person, without a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut brokers = ServerAddress::parse(text, DEFAULT_PORT, "broker")?;
        if !is_topic(&brokers.path) {
            return Err(format!(
                "expected kafka://HOST/TOPIC, a topic of up to {MAX_TOPIC_BYTES} letters, digits, `.`, `_` and `-`; name \
                 further brokers with ?broker=HOST:PORT"
            ));
        }
        let mut named = None;
        for (key, value) in std::mem::take(&mut brokers.options) {
            match (&*key, &*value) {
                ("sasl", "plain") if !brokers.has_tls => {
                    return Err("sasl=plain sends the password: it needs tls=true".to_owned());
                }
                ("sasl", "plain") => named = Some(Mechanism::Plain),
                ("sasl", "scram-sha-256") => named = Some(Mechanism::Scram256),
                ("sasl", "scram-sha-512") => named = Some(Mechanism::Scram512),
                ("sasl", _) => {
                    return Err("sasl: expected scram-sha-512, scram-sha-256 or plain".to_owned());
                }
                _ => return Err(format!("unknown key `{}`", key.escape_debug())),
            }
        }
        if named.is_some() && brokers.user.is_none() {
            return Err("sasl needs a user: USER@HOST".to_owned());
        }
        Ok(Self { brokers, mechanism: named.unwrap_or(Mechanism::Scram512) })
    }

    /// The brokers and the topic: the same for each user.
    pub fn name(&self) -> String {
        self.brokers.name()
    }

    /// The topic.
    pub(super) fn topic(&self) -> &str {
        &self.brokers.path
    }

    /// TLS and the user, with the password as it is in its file now.
    pub(super) fn security(&self) -> Result<AuthConfig, String> {
        let ServerAddress { user, roots, has_tls, .. } = &self.brokers;
        let password = self.brokers.password()?.unwrap_or_default();
        let config = match (user, self.mechanism) {
            (None, _) => AuthConfig::plaintext(),
            (Some(user), Mechanism::Plain) => AuthConfig::sasl_plain(user, password),
            (Some(user), Mechanism::Scram256) => AuthConfig::sasl_scram_sha256(user, password),
            (Some(user), Mechanism::Scram512) => AuthConfig::sasl_scram_sha512(user, password),
        };
        Ok(match roots {
            _ if !has_tls => config,
            Some(roots) => config.with_tls(TlsConfig::new().with_ca_cert(roots.to_string_lossy())),
            None => config.with_tls(TlsConfig::new().with_native_roots()),
        })
    }
}

fn is_topic(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let has_len = (1..=MAX_TOPIC_BYTES).contains(&text.len());
    has_len && text != "." && text != ".." && text.bytes().all(is_allowed)
}

const DEFAULT_PORT: u16 = 9092;

/// The limit of Kafka.
const MAX_TOPIC_BYTES: usize = 249;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_a_name_that_kafka_allows() {
        let address =
            KafkaAddress::parse("kafka://localhost/at.events-1_x?broker=[::1]:9").unwrap();
        assert_eq!(address.topic(), "at.events-1_x");
        assert_eq!(address.brokers.hosts, ["localhost:9092", "[::1]:9"]);
        let long = format!("kafka://localhost/{}", "x".repeat(250));
        for wrong in [
            "kafka://localhost",
            "kafka://localhost/",
            "kafka://localhost/..",
            "kafka://localhost/a/b",
            "kafka://localhost/a%20b",
            "kafka://localhost/a?topic=b",
            "kafka://a:9092",
            &long,
        ] {
            assert!(KafkaAddress::parse(wrong).is_err(), "{wrong}");
        }
        let without_topic = KafkaAddress::parse("kafka://a:9092").unwrap_err();
        assert!(without_topic.contains("?broker=HOST:PORT"), "{without_topic}");
    }

    #[test]
    fn a_password_is_never_sent_without_tls() {
        let security =
            |text: &str| KafkaAddress::parse(text).map(|address| address.security().unwrap());
        assert!(!security("kafka://localhost/t").unwrap().requires_sasl());
        let local = security("kafka://ada@localhost/t").unwrap();
        assert!(local.requires_sasl() && !local.requires_tls());
        assert!(local.scram_credentials().is_some(), "SCRAM proves the password");
        assert!(security("kafka://ada@localhost/t?sasl=plain").unwrap_err().contains("tls=true"));
        let plain = security("kafka://ada@db.example/t?sasl=plain").unwrap();
        assert!(plain.requires_tls() && plain.plain_credentials().is_some());
        assert!(security("kafka://db.example/t").unwrap().requires_tls());
        for wrong in ["kafka://localhost/t?sasl=plain", "kafka://localhost/t?sasl=scram-sha-512"] {
            assert!(security(wrong).is_err(), "{wrong}");
        }
        assert!(security("kafka://ada@localhost/t?sasl=gssapi").is_err());
    }
}
