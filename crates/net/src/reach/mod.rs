//! Which hosts and addresses may be connected to at all?
//!
//! Documents of strangers name the hosts that we call. [`Reach::Public`] allows host names over TLS,
//! and of what they resolve to only addresses of the public internet; the check is made on the very
//! address that is connected to, for each connection anew, redirects included. [`Reach::Loopback`] is
//! for trying things out: this machine and nothing else.
//!
//! ```
//! use wireproof_net::reach::{Forbidden, Reach};
//!
//! let allowed = |url: &str| Reach::Public.check_url(&url.parse().expect("a URL"));
//! assert_eq!(allowed("https://example.com"), Ok(()));
//! assert_eq!(allowed("http://example.com"), Err(Forbidden::Scheme));
//! assert_eq!(allowed("https://203.0.113.7"), Err(Forbidden::AddressAsHost));
//! // What a name leads to is asked when it is connected to.
//! assert!(Reach::Public.check_address([169, 254, 169, 254].into()).is_err());
//! ```

mod address;

use std::net::IpAddr;

use reqwest::Url;

#[cfg(test)]
pub(crate) use address::TABLE;
pub use address::{Range, special_range};

/// Where connections may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Hosts of the public internet, by name, over TLS.
    #[default]
    Public,
    /// This machine alone, over plain HTTP too: for development.
    Loopback,
}

/// Why a host may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forbidden {
    /// An address of a special range.
    #[error("{0} is not of the public internet: {1}")]
    Special(IpAddr, &'static Range),
    /// An address of another machine, in development.
    #[error("{0} is not this machine, and only that is allowed in development")]
    NotLoopback(IpAddr),
    /// A URL that is not `https`, `wss` or, in development, `http` or `ws`.
    #[error("the scheme is not allowed: https or wss are")]
    Scheme,
    /// An address where a name is wanted.
    #[error("the host is an address, a name is wanted")]
    AddressAsHost,
    /// A URL without a host.
    #[error("there is no host")]
    NoHost,
    /// User name or password in a URL.
    #[error("the URL holds a user name or password")]
    UserInfo,
}

impl Reach {
    /// Whether `address` may be connected to.
    ///
    /// # Errors
    /// If it may not: which rule.
    pub fn check_address(self, address: IpAddr) -> Result<(), Forbidden> {
        match (self, special_range(address)) {
            (Self::Public, None) => Ok(()),
            (Self::Public, Some(range)) => Err(Forbidden::Special(address, range)),
            (Self::Loopback, _) if address.is_loopback() => Ok(()),
            (Self::Loopback, _) => Err(Forbidden::NotLoopback(address)),
        }
    }

    /// Whether `url` may be asked, as far as its text tells.
    ///
    /// # Errors
    /// If it may not: which rule.
    pub fn check_url(self, url: &Url) -> Result<(), Forbidden> {
        if !self.schemes().contains(&url.scheme()) {
            return Err(Forbidden::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Forbidden::UserInfo);
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(Forbidden::NoHost)?;
        match (self, literal(host)) {
            (_, None) => Ok(()),
            (Self::Public, Some(_)) => Err(Forbidden::AddressAsHost),
            (Self::Loopback, Some(address)) => self.check_address(address),
        }
    }

    fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Public => &["https", "wss"],
            Self::Loopback => &["https", "wss", "http", "ws"],
        }
    }
}

/// The address that a host of a URL is, if it is one: URLs put IPv6 into brackets, and the parser has
/// already turned every odd spelling of IPv4 into the usual one.
fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reach: Reach, url: &str) -> Result<(), Forbidden> {
        reach.check_url(&url.parse().unwrap())
    }

    #[test]
    fn in_public_only_names_over_tls_are_allowed() {
        let public = |url: &str| check(Reach::Public, url);
        assert_eq!(public("https://pds.example.com/xrpc"), Ok(()));
        assert_eq!(public("wss://pds.example.com:8443/"), Ok(()));
        assert_eq!(public("http://pds.example.com/"), Err(Forbidden::Scheme));
        assert_eq!(public("file:///etc/passwd"), Err(Forbidden::Scheme));
        assert_eq!(public("https://me:secret@pds.example.com/"), Err(Forbidden::UserInfo));
        for host in ["8.8.8.8", "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[2606:4700::1]"] {
            assert_eq!(
                public(&format!("https://{host}/")),
                Err(Forbidden::AddressAsHost),
                "{host}"
            );
        }
    }

    #[test]
    fn in_development_this_machine_is_all_there_is() {
        let loopback = |url| check(Reach::Loopback, url);
        assert_eq!(loopback("http://127.0.0.1:2583/"), Ok(()));
        assert_eq!(loopback("ws://[::1]:2583/"), Ok(()));
        assert_eq!(loopback("http://localhost:2583/"), Ok(()));
        assert!(matches!(loopback("http://10.0.0.1/"), Err(Forbidden::NotLoopback(_))));
        assert!(Reach::Loopback.check_address("93.184.216.34".parse().unwrap()).is_err());
        assert!(Reach::Public.check_address("127.0.0.1".parse().unwrap()).is_err());
    }
}
