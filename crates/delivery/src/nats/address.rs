//! The address of a JetStream stream, and the subjects of its messages.

use std::fs;
use std::path::PathBuf;

use super::header_id::hashed;
use crate::server_address::{ServerAddress, read_secret};

/// Where a JetStream stream is, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsAddress {
    pub(super) servers: ServerAddress,
    pub(super) prefix: String,
    pub(super) stream: String,
    login: Login,
}

/// How a client without a user and a password authenticates: by a file, which is read for every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Login {
    /// As a user with a password, by a certificate, or not at all.
    None,
    Token(PathBuf),
    /// The JWT of a user and the seed of its key, in the form of `nsc`.
    Credentials(PathBuf),
    /// The seed of a user's key.
    Nkey(PathBuf),
}

/// The credentials of a client.
pub(super) enum Secret {
    Token(String),
    Credentials(String),
    Nkey(String),
}

impl NatsAddress {
    /// Parses `nats://USER@HOST:PORT/PREFIX`. The prefix of the subjects has tokens of `A-Z`, `a-z`, `0-9`, `-` and
    /// `_`, separated by `.`. The keys after `?` are `stream`, by default the prefix with `_` for `.`; `server` for
    /// every further `HOST:PORT` of a cluster; `tls`, `true` or, within this machine only, `false`; `roots`, a PEM file
    /// of trusted certificates instead of the system's; `cert` and `key`, PEM files of the client's certificate and its
    /// key; and one of `password_file`, `token_file`, `creds_file` (the JWT and the seed of a user, as `nsc` writes
    /// them) and `nkey_file` (the seed of a user). Files are read for every connection.
    ///
    /// # Errors
    /// A text for a person, without a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut servers = ServerAddress::parse(text, DEFAULT_PORT, "server")?;
        let prefix = servers.path.clone();
        if prefix.len() > MAX_PREFIX_BYTES || !prefix.split('.').all(is_token) {
            return Err(format!(
                "expected nats://HOST/PREFIX, a prefix of up to {MAX_PREFIX_BYTES} letters, digits, `-`, `_` and `.` \
                 between them; name further servers with ?server=HOST:PORT"
            ));
        }
        let (mut stream, mut login) = (prefix.replace('.', "_"), Login::None);
        for (key, value) in std::mem::take(&mut servers.options) {
            match &*key {
                "stream" => stream = value,
                "token_file" | "creds_file" | "nkey_file" if login != Login::None => {
                    return Err("expected one of token_file, creds_file and nkey_file".to_owned());
                }
                "token_file" => login = Login::Token(value.into()),
                "creds_file" => login = Login::Credentials(value.into()),
                "nkey_file" => login = Login::Nkey(value.into()),
                "creds" => return Err("creds: name the file with creds_file".to_owned()),
                _ => return Err(format!("unknown key `{}`", key.escape_debug())),
            }
        }
        if stream.len() > MAX_PREFIX_BYTES || !is_token(&stream) {
            return Err("stream: expected letters, digits, `-` and `_`".to_owned());
        }
        if login != Login::None && servers.user.is_some() {
            return Err(
                "token_file, creds_file, nkey_file: expected no user, as the file stands for one"
                    .to_owned(),
            );
        }
        Ok(Self { servers, prefix, stream, login })
    }

    /// The servers, the prefix and the stream: the same for all users.
    pub fn name(&self) -> String {
        format!("{} {}", self.servers.name(), self.stream)
    }

    /// The current content of the login file, if one is named.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn secret(&self) -> Result<Option<Secret>, String> {
        Ok(Some(match &self.login {
            Login::None => return Ok(None),
            Login::Token(path) => Secret::Token(read_secret(path)?),
            Login::Nkey(path) => Secret::Nkey(read_secret(path)?),
            Login::Credentials(path) => {
                let text = fs::read_to_string(path);
                Secret::Credentials(text.map_err(|error| format!("{}: {error}", path.display()))?)
            }
        }))
    }

    /// The subjects of all messages.
    pub(super) fn subjects(&self) -> String {
        format!("{}.*", self.prefix)
    }

    /// The subject of an account: one token after the prefix. Bytes other than `A-Z`, `a-z`, `0-9`, `-`, `_` and `:` are
    /// percent-encoded. An account that is too long is replaced by its hash, none at all by `_`.
    pub(super) fn subject(&self, account: &str) -> String {
        let mut subject = format!("{}.", self.prefix);
        let start = subject.len();
        for byte in account.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b':' => {
                    subject.push(char::from(byte));
                }
                _ => subject.push_str(&format!("%{byte:02X}")),
            }
            if subject.len() > start + MAX_TOKEN_BYTES {
                subject.truncate(start);
                subject.push_str(&hashed(account));
                return subject;
            }
        }
        if account.is_empty() {
            subject.push('_');
        }
        subject
    }

    /// Whether a filter of a stream takes all subjects.
    pub(super) fn is_taken_by(&self, filter: &str) -> bool {
        let mut filter = filter.split('.');
        for token in self.subjects().split('.') {
            match filter.next() {
                Some(">") => return true,
                Some("*") => {}
                Some(literal) if literal == token => {}
                _ => return false,
            }
        }
        filter.next().is_none()
    }
}

fn is_token(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !text.is_empty() && text.bytes().all(is_allowed)
}

const DEFAULT_PORT: u16 = 4222;

/// Maximum length of a prefix and of the name of a stream, in bytes.
const MAX_PREFIX_BYTES: usize = 200;

/// Maximum length of the token of an account, in bytes. A server takes 4,096 for a subject and the rest of its line.
const MAX_TOKEN_BYTES: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> NatsAddress {
        NatsAddress::parse(text).unwrap()
    }

    #[test]
    fn a_prefix_and_a_stream_are_plain_names() {
        let address = parse("nats://localhost/at.events");
        assert_eq!((&*address.prefix, &*address.stream), ("at.events", "at_events"));
        assert_eq!(address.servers.hosts, ["localhost:4222"]);
        assert_eq!(parse("nats://localhost/at?stream=Posts").stream, "Posts");
        for wrong in [
            "nats://localhost",
            "nats://localhost/",
            "nats://localhost/a..b",
            "nats://localhost/a/b",
            "nats://localhost/a.*",
            "nats://localhost/a.%3E",
            "nats://localhost/$JS",
            "nats://localhost/a?stream=a.b",
            "nats://localhost/a?stream=",
            "nats://localhost/a?subject=b",
            "nats://ada@localhost/a?token_file=b",
            "nats://ada@localhost/a?creds_file=b",
            "nats://localhost/a?creds_file=b&token_file=c",
            "nats://localhost/a?creds=b",
            "nats://localhost/a?cert=b",
            "nats://ada:secret@localhost/a",
        ] {
            let refused = NatsAddress::parse(wrong).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_subject_has_one_token_for_each_account_whatever_a_stranger_claims() {
        let address = parse("nats://localhost/at");
        let subject = |account: &str| address.subject(account);
        assert_eq!(subject("did:plc:abc234"), "at.did:plc:abc234");
        assert_eq!(subject("did:web:a-b.test%3A80"), "at.did:web:a-b%2Etest%253A80");
        assert_eq!(subject(""), "at._");
        let long = "x.".repeat(2000);
        for odd in ["*", ">", "a b", "a\r\nPUB", "..", "é", &long] {
            let subject = subject(odd);
            let token = subject.strip_prefix("at.").unwrap();
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic() && !b".*>".contains(&byte)));
            assert!(!token.is_empty() && token.len() <= MAX_TOKEN_BYTES, "{token}");
        }
    }

    #[test]
    fn a_stream_takes_the_subjects_by_a_filter_that_covers_them() {
        let address = parse("nats://localhost/at.events");
        for filter in ["at.events.*", "at.events.>", "at.>", ">", "at.*.*", "*.*.*"] {
            assert!(address.is_taken_by(filter), "{filter}");
        }
        for filter in
            ["at.events", "at.*", "at.events.did", "at.events.*.*", "other.>", "at.events.*.>", ""]
        {
            assert!(!address.is_taken_by(filter), "{filter}");
        }
    }
}
