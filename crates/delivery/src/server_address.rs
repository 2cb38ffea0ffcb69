//! Addresses of the servers of a queue: their hosts, the user, and TLS as the module `tls` demands it.

use std::fs;
use std::path::PathBuf;

use net::http::Url;

use crate::tls::{self, ClientIdentity, TlsFiles};

/// The servers of a queue, and how they are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    /// Hosts and ports; at least one.
    pub(crate) hosts: Vec<String>,
    /// Whether connections have TLS. Between machines they always do.
    pub(crate) has_tls: bool,
    /// The files of TLS.
    pub(crate) tls: TlsFiles,
    /// The user, if the URI names one.
    pub(crate) user: Option<String>,
    password_file: Option<PathBuf>,
    /// The path after the host, without slashes at its ends.
    pub(crate) path: String,
    /// The other keys of the query.
    pub(crate) options: Vec<(String, String)>,
}

impl ServerAddress {
    /// Parses `SCHEME://USER@HOST:PORT/PATH`. The keys after `?` are `more`, a name such as `broker` for every further
    /// `HOST:PORT`; `tls` with the values `true`, which is the default between machines, and `false`, which is allowed
    /// within this machine only; `roots`, `cert`, `key` and `password_file`, which name files; and others, which stay in `options`.
    ///
    /// # Errors
    /// A text for a person, without a password.
    pub(crate) fn parse(text: &str, default_port: u16, more: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        if url.password().is_some() {
            return Err(
                "a password in the URI: write it to a file, and name it with ?password_file=FILE"
                    .to_owned(),
            );
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("expected a host")?;
        let first = host_port(&format!("{host}:{}", url.port().unwrap_or(default_port)))?;
        let mut hosts = vec![first];
        let mut tls = None;
        let mut roots = None;
        let mut password_file = None;
        let mut options = Vec::new();
        let (mut certificate, mut client_key) = (None, None);
        for (key, value) in url.query_pairs() {
            match &*key {
                key if key == more => hosts.push(host_port(&value)?),
                "tls" => tls = Some(value.into_owned()),
                "roots" => roots = Some(PathBuf::from(&*value)),
                "cert" => certificate = Some(PathBuf::from(&*value)),
                "key" => client_key = Some(PathBuf::from(&*value)),
                "password_file" => password_file = Some(PathBuf::from(&*value)),
                _ => options.push((key.into_owned(), value.into_owned())),
            }
        }
        let identity = ClientIdentity::of(certificate, client_key, ["cert", "key"])?;
        let has_files = roots.is_some() || identity.is_some();
        let is_local = hosts.iter().all(|host| is_local(host));
        let has_tls = match tls.as_deref() {
            None => !is_local || has_files,
            Some("true") => true,
            Some("false") if is_local && !has_files => false,
            Some("false") if is_local => {
                return Err("tls=false has no roots, cert or key".to_owned());
            }
            Some("false") => return Err("tls=false is for this machine only".to_owned()),
            Some(_) => return Err("expected tls=true or tls=false".to_owned()),
        };
        let user = Some(decoded(url.username())).filter(|user| !user.is_empty());
        if password_file.is_some() && user.is_none() {
            return Err("password_file needs a user: USER@HOST".to_owned());
        }
        let path = url.path().trim_matches('/').to_owned();
        let tls = TlsFiles { roots, identity };
        Ok(Self { hosts, has_tls, tls, user, password_file, path, options })
    }

    /// The password as it is in its file now, if one is named.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn password(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.password_file else { return Ok(None) };
        read_secret(path).map(Some)
    }

    /// The hosts and the path: the same for all users.
    pub(crate) fn name(&self) -> String {
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        hosts.dedup();
        format!("{}/{}", hosts.join(","), self.path)
    }
}

/// The text in a file of a secret, without white space at its ends.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub(crate) fn read_secret(path: &std::path::Path) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Whether a `HOST:PORT` is on this machine.
pub(crate) fn is_local(host_port: &str) -> bool {
    host_port.rsplit_once(':').is_some_and(|(host, _)| tls::is_loopback(host))
}

/// A host and a port, as `HOST:PORT`.
fn host_port(text: &str) -> Result<String, String> {
    let expected = || format!("expected HOST:PORT instead of `{}`", text.escape_debug());
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_name = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    match port.parse::<u16>() {
        Ok(1..) if is_name || is_address => Ok(text.to_ascii_lowercase()),
        _ => Err(expected()),
    }
}

/// A part of a URI without its escapes.
fn decoded(part: &str) -> String {
    let part = part.replace('+', "%2B");
    form_urlencoded::parse(part.as_bytes()).map(|(key, _)| key.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ServerAddress, String> {
        ServerAddress::parse(text, 9092, "broker")
    }

    #[test]
    fn an_address_has_hosts_a_path_and_other_keys() {
        let address = parse("kafka://Ada%40x@A.example/events/?broker=b.example:1&x=y").unwrap();
        assert_eq!(address.hosts, ["a.example:9092", "b.example:1"]);
        assert_eq!((address.path.as_str(), address.user.as_deref()), ("events", Some("Ada@x")));
        assert_eq!(address.options, [("x".to_owned(), "y".to_owned())]);
        let swapped = parse("kafka://eve@b.example:1/events?broker=a.example:9092").unwrap();
        assert_eq!(address.name(), swapped.name());
        for wrong in
            ["kafka:///t", "kafka:t", "kafka://a:1,b:2/t", "kafka://a;b/t", "kafka://a:0/t"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("kafka://a/t?broker=b").unwrap_err().contains("HOST:PORT"));
    }

    #[test]
    fn between_machines_connections_have_tls() {
        let has_tls = |text: &str| parse(text).unwrap().has_tls;
        for local in ["localhost", "127.0.0.1:1", "[::1]:1"] {
            assert!(!has_tls(&format!("kafka://{local}/t")), "{local}");
            assert!(!has_tls(&format!("kafka://{local}/t?tls=false")), "{local}");
            assert!(has_tls(&format!("kafka://{local}/t?tls=true")), "{local}");
            assert!(has_tls(&format!("kafka://{local}/t?roots=a.pem")), "{local}");
            assert!(has_tls(&format!("kafka://{local}/t?broker=b.example:1")), "{local}");
            assert!(has_tls(&format!("kafka://{local}/t?cert=a.pem&key=b.pem")), "{local}");
            assert!(parse(&format!("kafka://{local}/t?cert=a.pem")).is_err(), "{local}");
            let without = format!("kafka://{local}/t?cert=a.pem&key=b.pem&tls=false");
            assert!(parse(&without).is_err(), "{local}");
        }
        assert!(has_tls("kafka://b.example/t"));
        let far = ["b.example/t?tls=false", "localhost/t?broker=b.example:1&tls=false"];
        for far in far {
            let refused = parse(&format!("kafka://{far}")).unwrap_err();
            assert!(refused.contains("this machine only"), "{refused}");
        }
        assert!(parse("kafka://localhost/t?tls=maybe").is_err());
    }

    #[test]
    fn a_password_comes_from_its_file_and_is_in_no_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "secret\n").unwrap();
        let text = format!("kafka://ada@localhost/t?password_file={}", file.path().display());
        let address = parse(&text).unwrap();
        assert_eq!(address.password(), Ok(Some("secret".to_owned())));
        assert!(!format!("{address:?}{}", address.name()).contains("secret"));
        assert!(parse(&text.replace("ada@", "")).unwrap_err().contains("needs a user"));
        let refused = parse("kafka://ada:secret@localhost/t").unwrap_err();
        assert!(refused.contains("password_file") && !refused.contains("secret"), "{refused}");
        let missing = parse("kafka://ada@localhost/t?password_file=/nonexistent").unwrap();
        assert!(missing.password().unwrap_err().contains("/nonexistent"));
    }
}
