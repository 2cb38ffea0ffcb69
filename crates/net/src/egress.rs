//! Egress policy: which hosts and addresses connections may go to.
//!
//! Documents written by strangers name the hosts that this crate connects to, and such a name may resolve
//! to a machine that only we can reach: a metadata service, a printer, this process.
//! [`EgressPolicy::Public`] allows host names over TLS, at port 443, that resolve to addresses of the public
//! internet; every connection is checked by its address, redirects included.
//! [`AllowedPorts`] are the exceptions of an operator.
//! [`EgressPolicy::Loopback`] allows this machine only, for development. [`EgressPolicy::Unrestricted`] is for URLs
//! that the operator has written, and for nothing that a stranger names.
//!
//! The table lists every special-purpose range of the IANA registries: ranges that must never be connected to, and
//! ranges that are reachable but belong to another protocol. IPv6 addresses must also lie in 2000::/3, the only block
//! that is allocated.
//!
//! ```
//! use wireproof::net::egress::{AllowedPorts, EgressError, EgressPolicy};
//!
//! let ports = AllowedPorts::default().on_all_hosts(8443);
//! let check = |url: &str| EgressPolicy::Public.check_url(&url.parse().expect("a URL"), &ports);
//! assert_eq!(check("https://example.com"), Ok(()));
//! assert_eq!(check("https://example.com:8443"), Ok(()));
//! assert_eq!(check("https://example.com:22"), Err(EgressError::Port(22)));
//! assert_eq!(check("http://example.com"), Err(EgressError::Scheme));
//! assert_eq!(check("https://203.0.113.7"), Err(EgressError::AddressAsHost));
//! // The address of a name is checked when it is connected to.
//! assert!(EgressPolicy::Public.check_address([169, 254, 169, 254].into()).is_err());
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Where connections may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EgressPolicy {
    /// Hosts of the public internet, by name, over TLS.
    #[default]
    Public,
    /// This machine only, plain HTTP included: for development.
    Loopback,
    /// Every host and address, plain HTTP included: for a client that requests nothing but URLs of the operator, such
    /// as a webhook in a private network.
    Unrestricted,
}

/// Why the policy denies a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// An address in a special-purpose range.
    #[error("{0} is not a public address: {1}")]
    SpecialAddress(IpAddr, &'static AddressRange),
    /// An address of another machine under [`EgressPolicy::Loopback`].
    #[error("{0} is not a loopback address, and the policy allows no other")]
    NotLoopback(IpAddr),
    /// A URL scheme other than `https`, `wss` or, under another policy than [`EgressPolicy::Public`], `http`, `ws`.
    #[error("the URL scheme is not allowed: use https or wss")]
    Scheme,
    /// An IP address in place of a host name.
    #[error("the host is an IP address: use a host name")]
    AddressAsHost,
    /// A port of a public host other than 443 and the [`AllowedPorts`].
    #[error(
        "port {0} of a public host is not allowed: only 443, and ports that the operator allows"
    )]
    Port(u16),
    /// A URL without a host.
    #[error("the URL has no host")]
    NoHost,
    /// A user name or password in the URL.
    #[error("the URL contains a user name or password")]
    UserInfo,
}

impl EgressPolicy {
    /// Checks an address before it is connected to.
    ///
    /// # Errors
    /// If the policy denies it: the rule.
    pub fn check_address(self, address: IpAddr) -> Result<(), EgressError> {
        match (self, special_range(address)) {
            (Self::Public, None) | (Self::Unrestricted, _) => Ok(()),
            (Self::Public, Some(range)) => Err(EgressError::SpecialAddress(address, range)),
            (Self::Loopback, _) if address.is_loopback() => Ok(()),
            (Self::Loopback, _) => Err(EgressError::NotLoopback(address)),
        }
    }

    /// Checks the text of a URL before its host is resolved. `ports` are allowed in addition to the default port.
    ///
    /// # Errors
    /// If the policy denies it: the rule.
    pub fn check_url(self, url: &Url, ports: &AllowedPorts) -> Result<(), EgressError> {
        if !self.schemes().contains(&url.scheme()) {
            return Err(EgressError::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::UserInfo);
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(EgressError::NoHost)?;
        match (self, ip_literal(host)) {
            (Self::Public, None) => ports.check(host, url.port()),
            (Self::Loopback, None) | (Self::Unrestricted, _) => Ok(()),
            (Self::Public, Some(_)) => Err(EgressError::AddressAsHost),
            (Self::Loopback, Some(address)) => self.check_address(address),
        }
    }

    fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Public => &["https", "wss"],
            Self::Loopback | Self::Unrestricted => &["https", "wss", "http", "ws"],
        }
    }
}

/// Ports of public hosts that may be connected to, in addition to 443, the default port of `https` and `wss`.
///
/// A stranger's document can name any port. At other ports there are other protocols, and machines that
/// block addresses which connect to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedPorts {
    on_all_hosts: Vec<u16>,
    on_hosts: Vec<(Box<str>, u16)>,
}

impl AllowedPorts {
    /// Allows `port` on all public hosts.
    #[must_use]
    pub fn on_all_hosts(mut self, port: u16) -> Self {
        self.on_all_hosts.push(port);
        self
    }

    /// Allows the port of `url` on its host, for a URL that the operator names.
    #[must_use]
    pub fn on_host_of(mut self, url: &Url) -> Self {
        if let (Some(host), Some(port)) = (url.host_str(), url.port()) {
            self.on_hosts.push((host.into(), port));
        }
        self
    }

    /// Checks the port of a URL; `None` is the default port.
    fn check(&self, host: &str, port: Option<u16>) -> Result<(), EgressError> {
        let Some(port) = port else { return Ok(()) };
        let is_named = self.on_hosts.iter().any(|(name, on)| (&**name, *on) == (host, port));
        if is_named || self.on_all_hosts.contains(&port) {
            Ok(())
        } else {
            Err(EgressError::Port(port))
        }
    }
}

/// The IP address in the host part of a URL, if it is one. IPv6 is in brackets there, and the URL parser has
/// already normalized every unusual spelling of IPv4.
fn ip_literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// A range of addresses outside the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    network: IpAddr,
    prefix_len: u8,
    name: &'static str,
}

impl AddressRange {
    /// The purpose of the range.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The first and the last address of the range.
    #[cfg(test)]
    pub(crate) fn ends(&self) -> [IpAddr; 2] {
        let host_v4 = u32::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0);
        let host_v6 = u128::MAX.checked_shr(self.prefix_len.into()).unwrap_or(0);
        let last = match self.network {
            IpAddr::V4(network) => Ipv4Addr::from_bits(network.to_bits() | host_v4).into(),
            IpAddr::V6(network) => Ipv6Addr::from_bits(network.to_bits() | host_v6).into(),
        };
        [self.network, last]
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= self.prefix_len.into()
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= self.prefix_len.into()
            }
            _ => false,
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, {}", self.network, self.prefix_len, self.name)
    }
}

/// The special-purpose range that contains `address`; `None` for a public address.
pub fn special_range(address: IpAddr) -> Option<&'static AddressRange> {
    let listed = TABLE.iter().find(|range| range.contains(address));
    listed.or_else(|| (address.is_ipv6() && !GLOBAL_UNICAST.contains(address)).then_some(&OUTSIDE))
}

const fn v4(a: u8, b: u8, c: u8, prefix_len: u8, name: &'static str) -> AddressRange {
    AddressRange { network: IpAddr::V4(Ipv4Addr::new(a, b, c, 0)), prefix_len, name }
}

const fn v6(a: u16, b: u16, c: u16, prefix_len: u8, name: &'static str) -> AddressRange {
    AddressRange { network: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix_len, name }
}

/// A range given by the sixth and the last group of an address whose other groups are zero.
const fn v6_low(f: u16, h: u16, prefix_len: u8, name: &'static str) -> AddressRange {
    AddressRange { network: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, f, 0, h)), prefix_len, name }
}

/// The IANA registries, narrower ranges before the ranges that contain them.
pub(crate) static TABLE: [AddressRange; 33] = [
    v4(0, 0, 0, 8, "this network"),
    v4(10, 0, 0, 8, "private"),
    v4(100, 64, 0, 10, "carrier-grade NAT"),
    v4(127, 0, 0, 8, "loopback"),
    v4(169, 254, 0, 16, "link-local"),
    v4(172, 16, 0, 12, "private"),
    v4(192, 0, 0, 24, "protocol assignments"),
    v4(192, 0, 2, 24, "documentation"),
    v4(192, 31, 196, 24, "AS112"),
    v4(192, 52, 193, 24, "multicast tunnelling"),
    v4(192, 88, 99, 24, "6to4 relay"),
    v4(192, 168, 0, 16, "private"),
    v4(192, 175, 48, 24, "AS112"),
    v4(198, 18, 0, 15, "benchmarking"),
    v4(198, 51, 100, 24, "documentation"),
    v4(203, 0, 113, 24, "documentation"),
    v4(224, 0, 0, 4, "multicast"),
    v4(240, 0, 0, 4, "reserved"),
    v6_low(0, 0, 128, "unspecified"),
    v6_low(0, 1, 128, "loopback"),
    v6_low(0xffff, 0, 96, "IPv4-mapped"),
    v6_low(0, 0, 96, "IPv4-compatible"),
    v6(0x64, 0xff9b, 0, 96, "NAT64"),
    v6(0x64, 0xff9b, 1, 48, "local NAT64"),
    v6(0x100, 0, 0, 64, "discard"),
    v6(0x2001, 0xdb8, 0, 32, "documentation"),
    v6(0x2001, 0, 0, 23, "protocol assignments, including Teredo and ORCHID"),
    v6(0x2002, 0, 0, 16, "6to4"),
    v6(0x3fff, 0, 0, 20, "documentation"),
    v6(0x5f00, 0, 0, 16, "segment routing"),
    v6(0xfc00, 0, 0, 7, "unique local"),
    v6(0xfe80, 0, 0, 10, "link-local"),
    v6(0xff00, 0, 0, 8, "multicast"),
];

static GLOBAL_UNICAST: AddressRange = v6(0x2000, 0, 0, 3, "global unicast");

static OUTSIDE: AddressRange = v6(0, 0, 0, 0, "outside 2000::/3");

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: EgressPolicy, url: &str) -> Result<(), EgressError> {
        policy.check_url(&url.parse().unwrap(), &AllowedPorts::default())
    }

    #[test]
    fn the_public_policy_allows_only_names_over_tls() {
        let public = |url: &str| check(EgressPolicy::Public, url);
        assert_eq!(public("https://pds.example.com/xrpc"), Ok(()));
        assert_eq!(public("wss://pds.example.com:443/"), Ok(()));
        assert_eq!(public("http://pds.example.com/"), Err(EgressError::Scheme));
        assert_eq!(public("file:///etc/passwd"), Err(EgressError::Scheme));
        assert_eq!(public("https://me:secret@pds.example.com/"), Err(EgressError::UserInfo));
        for host in ["8.8.8.8", "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[2606:4700::1]"] {
            assert_eq!(
                public(&format!("https://{host}/")),
                Err(EgressError::AddressAsHost),
                "{host}"
            );
        }
    }

    #[test]
    fn a_public_host_is_reached_at_other_ports_only_where_the_operator_allows_it() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let ports = AllowedPorts::default().on_host_of(&url("wss://relay.example.com:2470"));
        let check =
            |text: &str, ports: &AllowedPorts| EgressPolicy::Public.check_url(&url(text), ports);
        for port in [22, 80, 3306, 8443] {
            let other = format!("https://pds.example.com:{port}/");
            assert_eq!(check(&other, &ports), Err(EgressError::Port(port)));
        }
        assert_eq!(check("https://relay.example.com:2470/xrpc", &ports), Ok(()));
        assert_eq!(check("https://relay.example.com:2471/", &ports), Err(EgressError::Port(2471)));
        assert_eq!(check("https://a.example.com:2470/", &ports), Err(EgressError::Port(2470)));
        let ports = ports.on_all_hosts(8443);
        assert_eq!(check("https://pds.example.com:8443/", &ports), Ok(()));
    }

    #[test]
    fn the_loopback_policy_allows_only_this_machine() {
        let loopback = |url| check(EgressPolicy::Loopback, url);
        assert_eq!(loopback("http://127.0.0.1:2583/"), Ok(()));
        assert_eq!(loopback("ws://[::1]:2583/"), Ok(()));
        assert_eq!(loopback("http://localhost:2583/"), Ok(()));
        assert!(matches!(loopback("http://10.0.0.1/"), Err(EgressError::NotLoopback(_))));
        assert!(EgressPolicy::Loopback.check_address("93.184.216.34".parse().unwrap()).is_err());
        assert!(EgressPolicy::Public.check_address("127.0.0.1".parse().unwrap()).is_err());
    }

    #[test]
    fn the_unrestricted_policy_allows_every_address_and_only_schemes_of_http() {
        let unrestricted = |url| check(EgressPolicy::Unrestricted, url);
        for url in ["http://10.0.0.1:8080/hook", "http://hook.internal/", "https://[fd00::1]/"] {
            assert_eq!(unrestricted(url), Ok(()), "{url}");
        }
        assert_eq!(unrestricted("file:///etc/passwd"), Err(EgressError::Scheme));
        assert_eq!(unrestricted("http://me:secret@hook.internal/"), Err(EgressError::UserInfo));
        for range in &TABLE {
            let [first, last] = range.ends().map(|at| EgressPolicy::Unrestricted.check_address(at));
            assert_eq!([first, last], [Ok(()), Ok(())], "{range}");
        }
    }

    fn name(address: &str) -> Option<&'static str> {
        special_range(address.parse().unwrap()).map(AddressRange::name)
    }

    #[test]
    fn the_first_and_the_last_address_of_every_range_are_special() {
        for range in &TABLE {
            for address in range.ends() {
                assert!(special_range(address).is_some(), "{address} of {range}");
            }
        }
    }

    #[test]
    fn the_addresses_next_to_a_range_are_public() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2606:4700::1111",
            "3ffe:ffff::",
            "3fff:1000::",
        ] {
            assert_eq!(name(address), None, "{address}");
        }
    }

    #[test]
    fn an_address_has_the_name_of_its_range() {
        for (address, expected) in [
            ("169.254.169.254", "link-local"),
            ("100.64.0.1", "carrier-grade NAT"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::ffff:8.8.8.8", "IPv4-mapped"),
            ("::8.8.8.8", "IPv4-compatible"),
            ("64:ff9b::a00:1", "NAT64"),
            ("64:ff9b:1::1", "local NAT64"),
            ("2002:a00:1::", "6to4"),
            ("2001::1", "protocol assignments, including Teredo and ORCHID"),
            ("fd00::1", "unique local"),
            ("fe80::1", "link-local"),
            ("4000::1", "outside 2000::/3"),
            ("1fff:ffff::1", "outside 2000::/3"),
        ] {
            assert_eq!(name(address), Some(expected), "{address}");
        }
    }
}
