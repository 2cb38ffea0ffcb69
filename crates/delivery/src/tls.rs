//! TLS for sinks: certificates are always verified, and only connections within this machine go without.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// A configuration that trusts the certificates of this system, or those in a PEM file instead.
///
/// # Errors
/// A text for a person.
pub(crate) fn client_config(roots: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let builder = match roots {
        Some(path) => builder.with_root_certificates(read_roots(path)?),
        None => builder.with_platform_verifier().map_err(|error| format!("TLS: {error}"))?,
    };
    Ok(builder.with_no_client_auth())
}

fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = fs::read(path).map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&file) {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    match roots.is_empty() {
        true => Err(failed(&"no certificate in PEM form")),
        false => Ok(roots),
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
    fn a_file_without_certificates_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roots.pem");
        assert!(client_config(Some(&path)).unwrap_err().contains("roots.pem"));
        fs::write(&path, "none").unwrap();
        assert!(client_config(Some(&path)).unwrap_err().contains("no certificate"));
    }
}
