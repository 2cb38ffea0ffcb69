//! The address of a database: a `postgres` URI without a password, and without ways to leave out TLS between machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::http::Url;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::tls::{self, ClientIdentity, TlsFiles, Verification};

/// Where a database is, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresAddress {
    config: Config,
    password_file: Option<PathBuf>,
    pub(super) tls: TlsFiles,
    pub(super) verification: Verification,
}

impl PostgresAddress {
    /// Parses `postgres://USER@HOST:PORT/DATABASE`, with keys of libpq after `?`:
    ///
    /// | `sslmode` | the connection |
    /// |---|---|
    /// | `disable` | has no TLS: the default for this machine, and allowed for no other |
    /// | `verify-full` | has TLS, and the server's certificate is verified with its host: the default for other machines |
    /// | `verify-ca` | has TLS, and the certificate is verified by `sslrootcert` for any host |
    /// | `require` | has TLS, and without `sslrootcert` nothing is verified; with a file it is `verify-ca`, as in libpq |
    ///
    /// `sslrootcert` names a PEM file of trusted certificates instead of the system's; `system` stands for these.
    /// `sslcert` and `sslkey` name PEM files of the client's certificate and its key. `password_file` names the file
    /// with the password, which is read for every connection; a password in the URI is refused, as other users of the
    /// machine see arguments.
    ///
    /// # Errors
    /// A text for a person, without a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut url = Url::parse(text).map_err(|error| error.to_string())?;
        let mut mode = None;
        let mut roots = None;
        let mut password_file = None;
        let mut others = Vec::new();
        let (mut certificate, mut client_key) = (None, None);
        for (key, value) in url.query_pairs() {
            match &*key {
                "sslmode" => mode = Some(value.into_owned()),
                "sslcert" => certificate = Some(PathBuf::from(&*value)),
                "sslkey" => client_key = Some(PathBuf::from(&*value)),
                "sslpassword" => return Err(WITHOUT_PASSPHRASE.to_owned()),
                "sslrootcert" => roots = Some(PathBuf::from(&*value)),
                "password_file" => password_file = Some(PathBuf::from(&*value)),
                _ => others.push((key.into_owned(), value.into_owned())),
            }
        }
        url.set_query(None);
        if !others.is_empty() {
            url.query_pairs_mut().extend_pairs(others);
            // In these URIs a space has no other form.
            let query = url.query().unwrap_or_default().replace('+', "%20");
            url.set_query(Some(&query));
        }
        let mut config: Config = url.as_str().parse().map_err(|error| message(&error))?;
        if config.get_password().is_some() {
            return Err(
                "a password in the URI: write it to a file, and name it with ?password_file=FILE"
                    .to_owned(),
            );
        }
        if config.get_dbname().is_none() || config.get_hosts().is_empty() {
            return Err("expected postgres://USER@HOST/DATABASE".to_owned());
        }
        let is_local = config.get_hosts().iter().all(is_local);
        let identity = ClientIdentity::of(certificate, client_key, ["sslcert", "sslkey"])?;
        let of_system = roots.as_deref() == Some(Path::new("system"));
        let has_files = roots.is_some() || identity.is_some();
        let roots = roots.filter(|_| !of_system);
        let (mode, verification) = match mode.as_deref() {
            None if is_local && !has_files => (SslMode::Disable, Verification::Full),
            Some("disable") if has_files => {
                let text = "sslmode=disable has no sslrootcert, sslcert or sslkey";
                return Err(text.to_owned());
            }
            Some("disable") if is_local => (SslMode::Disable, Verification::Full),
            Some("disable") => return Err("sslmode=disable is for this machine only".to_owned()),
            None | Some("verify-full") => (SslMode::Require, Verification::Full),
            Some("require" | "verify-ca") if of_system => {
                // Everybody gets a certificate of such an authority.
                return Err("sslrootcert=system: expected sslmode=verify-full".to_owned());
            }
            Some("require" | "verify-ca") if roots.is_some() => {
                (SslMode::Require, Verification::Authority)
            }
            Some("require") => (SslMode::Require, Verification::None),
            Some("verify-ca") => {
                return Err("sslmode=verify-ca: expected a file in sslrootcert".to_owned());
            }
            Some(_) => {
                let text = "expected sslmode=verify-full, verify-ca, require or disable";
                return Err(text.to_owned());
            }
        };
        config.ssl_mode(mode);
        let tls = TlsFiles { roots, identity };
        config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(TCP_TIMEOUT);
        config.keepalives_idle(TCP_TIMEOUT).application_name("wireproof");
        Ok(Self { config, password_file, tls, verification })
    }

    /// The options of a new connection, with the password as it is in its file now.
    pub(super) fn config(&self) -> Result<Config, String> {
        let mut config = self.config.clone();
        if let Some(path) = &self.password_file {
            let password =
                fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            config.password(password.trim_ascii());
        }
        Ok(config)
    }

    /// The host, port and name of the database, and the options that choose its tables: the same for all users.
    pub fn name(&self) -> String {
        let hosts: Vec<String> = self.config.get_hosts().iter().map(host_name).collect();
        let ports: Vec<String> = match self.config.get_ports() {
            [] => vec!["5432".to_owned()],
            ports => ports.iter().map(u16::to_string).collect(),
        };
        let database = self.config.get_dbname().unwrap_or_default();
        let options = self.config.get_options().map(|text| format!(" {text}")).unwrap_or_default();
        format!("{}:{}/{database}{options}", hosts.join(","), ports.join(","))
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => tls::is_loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// An error with its causes.
pub(super) fn message(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

const WITHOUT_PASSPHRASE: &str =
    "sslpassword: write the key without a passphrase to a file that only this user can read";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TCP_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink_address::SinkAddress;

    fn mode(text: &str) -> SslMode {
        PostgresAddress::parse(text).unwrap().config.get_ssl_mode()
    }

    #[test]
    fn between_machines_certificates_are_verified() {
        for local in ["localhost", "127.0.0.1:5433", "[::1]"] {
            assert_eq!(mode(&format!("postgres://u@{local}/d")), SslMode::Disable);
            assert_eq!(
                mode(&format!("postgres://u@{local}/d?sslmode=verify-full")),
                SslMode::Require
            );
        }
        assert_eq!(mode("postgres:///d?host=/run/postgresql&user=u"), SslMode::Disable);
        assert_eq!(mode("postgres://u@db.example/d"), SslMode::Require);
        let refused = |text: &str| PostgresAddress::parse(text).unwrap_err();
        assert!(refused("postgres://u@db.example/d?sslmode=disable").contains("this machine only"));
        let mixed = "postgres://u@localhost/d?host=db.example&sslmode=disable";
        assert!(refused(mixed).contains("this machine only"));
        for weaker in ["allow", "prefer", "verify-ca", ""] {
            assert!(
                refused(&format!("postgres://u@localhost/d?sslmode={weaker}")).contains("sslmode")
            );
        }
    }

    #[test]
    fn less_is_verified_only_where_the_uri_says_so() {
        let of = |query: &str| {
            let uri = format!("postgres://u@db.example/d?{query}");
            PostgresAddress::parse(&uri).map(|of| (of.verification, of.warning().is_some()))
        };
        for full in ["", "sslmode=verify-full", "sslrootcert=a.pem", "sslrootcert=system"] {
            assert_eq!(of(full), Ok((Verification::Full, false)), "{full}");
        }
        assert_eq!(of("sslmode=require"), Ok((Verification::None, true)));
        for authority in
            ["sslmode=require&sslrootcert=a.pem", "sslrootcert=a.pem&sslmode=verify-ca"]
        {
            assert_eq!(of(authority), Ok((Verification::Authority, false)), "{authority}");
        }
        for wrong in [
            "sslmode=require&sslrootcert=system",
            "sslmode=verify-ca",
            "sslcert=a.pem",
            "sslkey=a.pem",
            "sslcert=a.pem&sslkey=b.pem&sslpassword=secret",
        ] {
            assert!(!of(wrong).unwrap_err().contains("secret"), "{wrong}");
        }
        // A certificate of the client is of no use without TLS.
        assert_eq!(mode("postgres://u@localhost/d?sslcert=a.pem&sslkey=b.pem"), SslMode::Require);
        let refused =
            PostgresAddress::parse("postgres://u@localhost/d?sslmode=disable&sslcert=a&sslkey=b");
        assert!(refused.unwrap_err().contains("sslcert"));
    }

    #[test]
    fn a_password_comes_from_its_file_and_is_in_no_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "secret\n").unwrap();
        let uri = format!("postgres://ada@localhost/d?password_file={}", file.path().display());
        let address = PostgresAddress::parse(&uri).unwrap();
        let config = address.config().unwrap();
        assert_eq!(config.get_password(), Some(&b"secret"[..]));
        let texts = format!("{address:?} {config:?} {}", address.name());
        assert!(!texts.contains("secret"), "{texts}");
        for wrong in [
            "postgres://ada:secret@localhost/d",
            "postgres://ada@localhost/d?password=secret",
            "postgres://ada:secret@localhost",
            "postgres://ada:secret@localhost/d?unknown=1",
            "postgres://ada:secret@localhost:99999/d",
            "postgres://ada:secret@localhost/d?sslmode=no",
        ] {
            let error = PostgresAddress::parse(wrong).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_database_has_the_same_name_for_each_user() {
        let name = |text: &str| PostgresAddress::parse(text).unwrap().name();
        let first = name("postgresql://ada@localhost/posts?connect_timeout=3");
        assert_eq!(first, "localhost:5432/posts");
        assert_eq!(first, name("postgres://eve@localhost:5432/posts?password_file=x"));
        let schema = "postgres://localhost/posts?options=-c%20search_path%3Da%2Bb";
        assert_eq!(name(schema), "localhost:5432/posts -c search_path=a+b");
    }
}
