//! TLS for sinks: the verification of servers, and the client's certificate. Only connections within this machine go
//! without TLS.

mod unverified_host;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use self::unverified_host::{AnyHost, Unverified};

/// The trust and the identity of a connection with TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// File of trusted certificates, instead of the system's.
    pub(crate) roots: Option<PathBuf>,
    /// The certificate of the client and its key.
    pub(crate) identity: Option<ClientIdentity>,
}

/// The files of a client's certificate chain and key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientIdentity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The verification of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "queues verify everything"))]
pub(crate) enum Verification {
    /// Its certificate, and that it is of the host.
    #[default]
    Full,
    /// Its certificate alone, whose authority then has this server only.
    Authority,
    /// No verification: any server is trusted.
    None,
}

impl ClientIdentity {
    /// A certificate and its key, which are named together; `names` are the names of the options.
    ///
    /// # Errors
    /// If only one is named.
    pub(crate) fn of(
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
        names: [&str; 2],
    ) -> Result<Option<Self>, String> {
        match (certificate, key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Self { certificate, key })),
            _ => Err(format!("expected {} and {} together", names[0], names[1])),
        }
    }

    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain = read_certificates(&self.certificate)?;
        let path = self.key.display();
        let file = fs::read(&self.key).map_err(|error| format!("{path}: {error}"))?;
        // Its content is in no message.
        let key = PrivateKeyDer::from_pem_slice(&file)
            .map_err(|_| format!("{path}: no private key in PEM form without a passphrase"))?;
        Ok((chain, key))
    }
}

/// A configuration with the files as they are now.
///
/// # Errors
/// A text for a person, without content of the files.
pub(crate) fn client_config(
    files: &TlsFiles,
    verification: Verification,
) -> Result<ClientConfig, String> {
    let failed = |error: rustls::Error| format!("TLS: {error}");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = verifier(files.roots.as_deref(), verification, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match &files.identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = identity.read()?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| format!("{}: {error}", identity.certificate.display()))
        }
    }
}

fn verifier(
    roots: Option<&Path>,
    verification: Verification,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    if verification == Verification::None {
        return Ok(Arc::new(Unverified::new(provider)));
    }
    let full: Arc<dyn ServerCertVerifier> = match roots {
        Some(path) => {
            let roots = Arc::new(read_roots(path)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
            verifier.map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => {
            let verifier = Verifier::new(provider.clone());
            Arc::new(verifier.map_err(|error| format!("TLS: {error}"))?)
        }
    };
    Ok(match verification {
        Verification::Authority => Arc::new(AnyHost(full)),
        _ => full,
    })
}

fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

/// The certificates in a PEM file; at least one.
fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = fs::read(path).map_err(|error| failed(&error))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file).collect();
    let certificates = certificates.map_err(|error| failed(&error))?;
    if certificates.is_empty() {
        Err(failed(&"no certificate in PEM form"))
    } else {
        Ok(certificates)
    }
}

/// Whether a host is this machine: `localhost` or a loopback address.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_tls() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "10.0.0.1", "db", "0.0.0.0", "::", "127.0.0.1.nip.io", ""]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn files_without_certificates_or_keys_are_refused_and_their_content_is_in_no_message() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.pem");
        let with_roots = TlsFiles { roots: Some(path.clone()), identity: None };
        let identity = ClientIdentity { certificate: path.clone(), key: path.clone() };
        let with_identity = TlsFiles { roots: None, identity: Some(identity) };
        let refused = |files: &TlsFiles| client_config(files, Verification::Full).unwrap_err();
        for files in [&with_roots, &with_identity] {
            assert!(refused(files).contains("file.pem"));
        }
        fs::write(&path, "secret").unwrap();
        for files in [&with_roots, &with_identity] {
            let refused = refused(files);
            assert!(refused.contains("no certificate") && !refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_certificate_and_its_key_are_named_together() {
        let of = |certificate: Option<&str>, key: Option<&str>| {
            ClientIdentity::of(certificate.map(Into::into), key.map(Into::into), ["cert", "key"])
        };
        assert_eq!(of(None, None), Ok(None));
        assert!(of(Some("a"), Some("b")).unwrap().is_some());
        for refused in [of(Some("a"), None), of(None, Some("b"))] {
            assert_eq!(refused.unwrap_err(), "expected cert and key together");
        }
    }
}
