//! The address of a topic of Kafka.

use std::path::{Path, PathBuf};
use std::time::Duration;

use krafka::KrafkaError;
use krafka::auth::oidc::{ClientCredentials, OidcTokenProvider};
use krafka::auth::{AuthConfig, AwsMskIamCredentials, OAuthBearerToken, TlsConfig};

use crate::server_address::{ServerAddress, read_secret};
use crate::tls::TlsFiles;

/// Where a topic of Kafka is, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaAddress {
    pub(super) brokers: ServerAddress,
    mechanism: Mechanism,
}

/// How a user authenticates.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mechanism {
    Plain,
    Scram256,
    Scram512,
    /// By a token, which is in a file.
    TokenFile(PathBuf),
    /// By a token of an identity provider.
    Oidc(TokenEndpoint),
    /// By a signature of AWS, for clusters of MSK in a region; the credentials are in the environment.
    MskIam(String),
}

/// Where tokens are requested, with the credentials of a client (OAuth 2.0, RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
struct TokenEndpoint {
    url: String,
    client_id: String,
    secret_file: PathBuf,
    scope: Option<String>,
    /// File of trusted certificates for the endpoint, instead of the system's.
    roots: Option<PathBuf>,
}

/// The keys of a URI that choose how a user authenticates.
#[derive(Debug, Default)]
struct LoginKeys {
    sasl: Option<String>,
    token_file: Option<PathBuf>,
    token_endpoint: Option<String>,
    token_roots: Option<PathBuf>,
    client_id: Option<String>,
    client_secret_file: Option<PathBuf>,
    scope: Option<String>,
    region: Option<String>,
}

impl KafkaAddress {
    /// Parses `kafka://USER@HOST:PORT/TOPIC`. The keys after `?` are `broker` for every further `HOST:PORT` of the same
    /// cluster; `tls`, `true` or, within this machine only, `false`; `roots`, a PEM file of trusted certificates
    /// instead of the system's; `cert` and `key`, PEM files of the client's certificate and its key; `password_file`,
    /// which is read for every connection; and `sasl`: `scram-sha-512`, the default for a user, `scram-sha-256`, with
    /// TLS `plain`, or, without a user, `oauthbearer` and `aws-msk-iam`.
    ///
    /// With `oauthbearer` the token is in `token_file`, which is read for every connection, or comes from `token_endpoint`, an `https` URL,
    /// by `client_id` and `client_secret_file`, with `scope` and `token_roots` if they are given. With `aws-msk-iam` and `region` the
    /// credentials come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` in the environment.
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
        let mut keys = LoginKeys::default();
        for (key, value) in std::mem::take(&mut brokers.options) {
            keys.set(&key, value)?;
        }
        let mechanism = keys.mechanism(&brokers)?;
        Ok(Self { brokers, mechanism })
    }

    /// The brokers and the topic: the same for all users.
    pub fn name(&self) -> String {
        self.brokers.name()
    }

    /// The topic.
    pub(super) fn topic(&self) -> &str {
        &self.brokers.path
    }

    /// TLS and the user, with the password as it is in its file now. Tokens and credentials are read for every connection of the
    /// client.
    pub(super) fn security(&self) -> Result<AuthConfig, String> {
        let ServerAddress { user, tls, has_tls, .. } = &self.brokers;
        let user = user.as_deref();
        let password = self.brokers.password()?.unwrap_or_default();
        let config = match (user, &self.mechanism) {
            (_, Mechanism::TokenFile(path)) => by_token_file(path)?,
            (_, Mechanism::Oidc(endpoint)) => endpoint.auth()?,
            (_, Mechanism::MskIam(region)) => by_msk_iam(region)?,
            (None, _) => AuthConfig::plaintext(),
            (Some(user), Mechanism::Plain) => AuthConfig::sasl_plain(user, password),
            (Some(user), Mechanism::Scram256) => AuthConfig::sasl_scram_sha256(user, password),
            (Some(user), Mechanism::Scram512) => AuthConfig::sasl_scram_sha512(user, password),
        };
        Ok(if *has_tls { config.with_tls(tls_config(tls)) } else { config })
    }
}

fn tls_config(files: &TlsFiles) -> TlsConfig {
    let config = match &files.roots {
        Some(roots) => TlsConfig::new().with_ca_cert(roots.to_string_lossy()),
        None => TlsConfig::new().with_native_roots(),
    };
    match &files.identity {
        Some(identity) => config.with_client_cert(
            identity.certificate.to_string_lossy(),
            identity.key.to_string_lossy(),
        ),
        None => config,
    }
}

fn by_token_file(path: &Path) -> Result<AuthConfig, String> {
    // A file that is missing is an error of the start.
    read_secret(path)?;
    let path = path.to_owned();
    Ok(AuthConfig::sasl_oauthbearer_provider(move || {
        let token = read_secret(&path).map_err(KrafkaError::auth);
        std::future::ready(token.map(OAuthBearerToken::new))
    }))
}

fn by_msk_iam(region: &str) -> Result<AuthConfig, String> {
    let credentials = AwsMskIamCredentials::from_env_with_region(region);
    let credentials = credentials.map_err(|error| format!("sasl=aws-msk-iam: {error}"))?;
    Ok(AuthConfig::aws_msk_iam_with_credentials(credentials))
}

impl TokenEndpoint {
    fn auth(&self) -> Result<AuthConfig, String> {
        let secret = read_secret(&self.secret_file)?;
        let builder = OidcTokenProvider::builder(&self.url)
            .credentials(ClientCredentials::secret(&self.client_id, secret))
            .request_timeout(TOKEN_TIMEOUT);
        let builder = match &self.scope {
            Some(scope) => builder.scope(scope),
            None => builder,
        };
        let builder = match &self.roots {
            Some(roots) => builder.ca_cert(roots.to_string_lossy()),
            None => builder.native_roots(),
        };
        let provider = builder.build().map_err(|error| format!("token_endpoint: {error}"))?;
        Ok(AuthConfig::sasl_oauthbearer_provider(provider))
    }
}

impl LoginKeys {
    fn set(&mut self, key: &str, value: String) -> Result<(), String> {
        match key {
            "sasl" => self.sasl = Some(value),
            "token_file" => self.token_file = Some(value.into()),
            "token_endpoint" => self.token_endpoint = Some(value),
            "token_roots" => self.token_roots = Some(value.into()),
            "client_id" => self.client_id = Some(value),
            "client_secret_file" => self.client_secret_file = Some(value.into()),
            "scope" => self.scope = Some(value),
            "region" => self.region = Some(value),
            "token" | "client_secret" => {
                return Err(format!("a secret in the URI: name its file with {key}_file"));
            }
            _ => return Err(format!("unknown key `{}`", key.escape_debug())),
        }
        Ok(())
    }

    fn mechanism(self, brokers: &ServerAddress) -> Result<Mechanism, String> {
        let sasl = self.sasl.as_deref();
        let has_token = self.token_file.is_some() || self.token_endpoint.is_some();
        if has_token != (sasl == Some("oauthbearer")) {
            let text = "sasl=oauthbearer and one of token_file and token_endpoint: expected both";
            return Err(text.to_owned());
        }
        if self.region.is_some() != (sasl == Some("aws-msk-iam")) {
            let text = "sasl=aws-msk-iam and region, such as eu-west-1: expected both";
            return Err(text.to_owned());
        }
        let mechanism = match sasl {
            Some("plain") if !brokers.has_tls => {
                return Err("sasl=plain sends the password: it needs tls=true".to_owned());
            }
            Some("aws-msk-iam") if !brokers.has_tls => {
                return Err("sasl=aws-msk-iam needs tls=true".to_owned());
            }
            Some("plain") => Mechanism::Plain,
            Some("scram-sha-256") => Mechanism::Scram256,
            None | Some("scram-sha-512") => Mechanism::Scram512,
            Some("oauthbearer") => return self.oauthbearer(brokers),
            Some("aws-msk-iam") => Mechanism::MskIam(self.region.unwrap_or_default()),
            Some(_) => {
                let text = "sasl: expected scram-sha-512, scram-sha-256, plain, oauthbearer or aws-msk-iam";
                return Err(text.to_owned());
            }
        };
        let is_iam = matches!(mechanism, Mechanism::MskIam(_));
        match (sasl, &brokers.user) {
            (Some(_), None) if !is_iam => Err("sasl needs a user: USER@HOST".to_owned()),
            (_, Some(_)) if is_iam => Err(WITHOUT_USER.to_owned()),
            _ => Ok(mechanism),
        }
    }

    fn oauthbearer(self, brokers: &ServerAddress) -> Result<Mechanism, String> {
        let Self {
            token_file,
            token_endpoint,
            client_id,
            client_secret_file,
            scope,
            token_roots,
            ..
        } = self;
        if brokers.user.is_some() {
            return Err(WITHOUT_USER.to_owned());
        }
        match (token_file, token_endpoint, client_id, client_secret_file) {
            (Some(path), None, None, None) if scope.is_none() && token_roots.is_none() => {
                Ok(Mechanism::TokenFile(path))
            }
            (None, Some(url), Some(client_id), Some(secret_file)) if url.starts_with("https://") => {
                let roots = token_roots;
                Ok(Mechanism::Oidc(TokenEndpoint { url, client_id, secret_file, scope, roots }))
            }
            _ => Err("sasl=oauthbearer: expected token_file alone, or token_endpoint, an https URL, with client_id and \
                      client_secret_file"
                .to_owned()),
        }
    }
}

fn is_topic(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let has_len = (1..=MAX_TOPIC_BYTES).contains(&text.len());
    has_len && text != "." && text != ".." && text.bytes().all(is_allowed)
}

const DEFAULT_PORT: u16 = 9092;

/// Maximum time of a request for a token.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(10);

const WITHOUT_USER: &str = "sasl=oauthbearer and sasl=aws-msk-iam: expected no user, as the token or the credentials stand for one";

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

    #[test]
    fn tokens_and_credentials_come_from_files_or_the_environment_and_are_in_no_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, "secret-token\n").unwrap();
        let name = file.display();
        let parse = |text: &str| KafkaAddress::parse(text);
        let by_file = format!("kafka://localhost/t?sasl=oauthbearer&token_file={name}");
        let address = parse(&by_file).unwrap();
        let security = address.security().unwrap();
        assert!(security.requires_sasl() && !security.requires_tls());
        assert!(!format!("{address:?}{security:?}").contains("secret-token"));
        let missing =
            parse("kafka://localhost/t?sasl=oauthbearer&token_file=/nonexistent").unwrap();
        assert!(missing.security().unwrap_err().contains("/nonexistent"));
        let oidc = format!(
            "kafka://db.example/t?sasl=oauthbearer&token_endpoint=https://id.example/token&client_id=a&client_secret_file={name}&scope=b"
        );
        assert!(parse(&oidc).unwrap().security().unwrap().requires_tls());
        assert!(parse("kafka://b.example/t?sasl=aws-msk-iam&region=eu-west-1").is_ok());
        for wrong in [
            "kafka://ada@localhost/t?sasl=oauthbearer&token_file=a",
            "kafka://localhost/t?sasl=oauthbearer",
            "kafka://localhost/t?token_file=a",
            "kafka://localhost/t?sasl=oauthbearer&token=secret",
            "kafka://localhost/t?sasl=oauthbearer&token_endpoint=https://a/&client_id=b&client_secret=secret",
            "kafka://localhost/t?sasl=oauthbearer&token_endpoint=http://a/&client_id=b&client_secret_file=c",
            "kafka://localhost/t?sasl=oauthbearer&token_endpoint=https://a/&client_id=b",
            "kafka://localhost/t?sasl=aws-msk-iam&region=eu-west-1",
            "kafka://b.example/t?sasl=aws-msk-iam",
            "kafka://b.example/t?region=eu-west-1",
            "kafka://ada@b.example/t?sasl=aws-msk-iam&region=eu-west-1",
        ] {
            let refused = parse(wrong).unwrap_err();
            assert!(!refused.contains("secret\""), "{refused}");
        }
    }
}
