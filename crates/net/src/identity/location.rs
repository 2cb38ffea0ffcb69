//! Where does the document of a DID stand, and where does a host say which DID its name is?

use atproto::syntax::{Did, Handle};
use reqwest::Url;

use super::{IdentityError, IdentityFault, Options};
use crate::egress::EgressPolicy;

/// Where the document of a DID stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// In the directory.
    Directory(Url),
    /// At a host of its own, which may not send us elsewhere.
    Host(Url),
}

impl Location {
    /// Where the document of `did` stands.
    pub(super) fn of(
        did: Did<'_>,
        reach: EgressPolicy,
        options: &Options,
    ) -> Result<Self, IdentityError> {
        let fail = |fault| IdentityError::new(did, fault);
        match did.method() {
            "plc" if did.is_plc() => Ok(Self::Directory(in_directory(did, &options.directory))),
            "web" => web(did, reach, options).map(Self::Host).map_err(fail),
            "plc" => Err(fail(IdentityFault::Identifier)),
            _ => Err(fail(IdentityFault::Method)),
        }
    }
}

fn in_directory(did: Did<'_>, directory: &Url) -> Url {
    let mut url = directory.clone();
    url.set_path(&format!("{}/{did}", directory.path().trim_end_matches('/')));
    url
}

/// A host name, nothing behind it; a port only on this machine.
fn web(did: Did<'_>, reach: EgressPolicy, options: &Options) -> Result<Url, IdentityFault> {
    let host = did.identifier();
    if let Some(port) = port_of_localhost(host).filter(|_| reach == EgressPolicy::Loopback) {
        return url(&format!("http://localhost:{port}{DID_JSON}"));
    }
    let name = Handle::parse(host).map_err(|_| IdentityFault::Identifier)?;
    check_name(name, reach)?;
    url(&format!("{}{DID_JSON}", origin(name, reach, options)))
}

fn port_of_localhost(host: &str) -> Option<u16> {
    let port = host.strip_prefix("localhost%3A").or_else(|| host.strip_prefix("localhost%3a"))?;
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|port| is_number && *port > 0)
}

/// Where the host named as a handle says which DID that is.
pub(super) fn well_known(
    handle: Handle<'_>,
    reach: EgressPolicy,
    options: &Options,
) -> Result<Url, IdentityFault> {
    url(&format!("{}/.well-known/atproto-did", origin(handle, reach, options)))
}

/// Whether a name may be resolved at all: `.test` is for this machine, other reserved ones are for
/// nobody.
pub(super) fn check_name(name: Handle<'_>, reach: EgressPolicy) -> Result<(), IdentityFault> {
    let top = name.labels().next_back().unwrap_or_default();
    let is_test = top.eq_ignore_ascii_case("test");
    match name.is_reserved() || (is_test && reach == EgressPolicy::Public) {
        true => Err(IdentityFault::Reserved),
        false => Ok(()),
    }
}

fn origin(name: Handle<'_>, reach: EgressPolicy, options: &Options) -> String {
    match (reach, options.development_port) {
        (EgressPolicy::Loopback, Some(port)) => format!("http://{name}:{port}"),
        _ => format!("https://{name}"),
    }
}

fn url(text: &str) -> Result<Url, IdentityFault> {
    text.parse().map_err(|_| IdentityFault::Identifier)
}

const DID_JSON: &str = "/.well-known/did.json";

#[cfg(test)]
mod tests {
    use super::*;

    fn of(did: &str, reach: EgressPolicy) -> Result<Location, IdentityFault> {
        let options = Options { development_port: Some(80), ..Options::default() };
        Location::of(Did::parse(did).unwrap(), reach, &options).map_err(|error| error.fault)
    }

    fn at(reach: EgressPolicy, did: &str, text: &str) {
        assert_eq!(of(did, reach), Ok(Location::Host(text.parse().unwrap())));
    }

    #[test]
    fn a_did_of_the_directory_is_24_symbols_of_base32() {
        let good = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let url = format!("https://plc.directory/{good}").parse().unwrap();
        assert_eq!(of(good, EgressPolicy::Public), Ok(Location::Directory(url)));
        for bad in ["did:plc:ewvi7nxzyoun6zhxrhs64oi", "did:plc:EWVI7NXZYOUN6ZHXRHS64OIZ"] {
            assert_eq!(of(bad, EgressPolicy::Public), Err(IdentityFault::Identifier));
        }
        assert_eq!(of("did:key:z6Mk", EgressPolicy::Public), Err(IdentityFault::Method));
    }

    #[test]
    fn a_did_of_the_web_is_a_host_name_and_nothing_else() {
        at(EgressPolicy::Public, "did:web:a.b.com", "https://a.b.com/.well-known/did.json");
        for bad in ["a.com:path", "a.com%3A8080", "127.0.0.1", "localhost%3A80", "com", "a_b.com"] {
            let refusal = of(&format!("did:web:{bad}"), EgressPolicy::Public);
            assert_eq!(refusal, Err(IdentityFault::Identifier), "{bad}");
        }
        for reserved in ["a.local", "a.test", "a.localhost", "a.onion"] {
            let refusal = of(&format!("did:web:{reserved}"), EgressPolicy::Public);
            assert_eq!(refusal, Err(IdentityFault::Reserved), "{reserved}");
        }
    }

    #[test]
    fn in_development_localhost_has_a_port_and_test_is_a_domain() {
        at(
            EgressPolicy::Loopback,
            "did:web:localhost%3A2583",
            "http://localhost:2583/.well-known/did.json",
        );
        at(EgressPolicy::Loopback, "did:web:pds.test", "http://pds.test:80/.well-known/did.json");
        for bad in ["localhost%3A", "localhost%3A0", "localhost%3A65536", "a.test%3A80"] {
            let refusal = of(&format!("did:web:{bad}"), EgressPolicy::Loopback);
            assert_eq!(refusal, Err(IdentityFault::Identifier), "{bad}");
        }
    }
}
