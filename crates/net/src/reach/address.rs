//! Which IP addresses belong to the public internet?
//!
//! A host that strangers name may resolve to a machine that only we can reach: a metadata service, a
//! printer, ourselves. The table lists every special-purpose range of the IANA registries, those that
//! are never to be connected to and those that are reachable but stand for another protocol; IPv6
//! addresses must lie in 2000::/3 besides, the only part that is given out.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses that is not of the public internet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    network: IpAddr,
    prefix_len: u8,
    name: &'static str,
}

impl Range {
    /// What the range is for.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The first address of the range, and the last.
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

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, {}", self.network, self.prefix_len, self.name)
    }
}

/// The special range that `address` lies in; `None` if it is of the public internet.
pub fn special_range(address: IpAddr) -> Option<&'static Range> {
    let listed = TABLE.iter().find(|range| range.contains(address));
    listed.or_else(|| (address.is_ipv6() && !GLOBAL_UNICAST.contains(address)).then_some(&OUTSIDE))
}

const fn v4(a: u8, b: u8, c: u8, prefix_len: u8, name: &'static str) -> Range {
    Range { network: IpAddr::V4(Ipv4Addr::new(a, b, c, 0)), prefix_len, name }
}

const fn v6(a: u16, b: u16, c: u16, prefix_len: u8, name: &'static str) -> Range {
    Range { network: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix_len, name }
}

/// The last word of an address that starts with zeros.
const fn v6_low(f: u16, h: u16, prefix_len: u8, name: &'static str) -> Range {
    Range { network: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, f, 0, h)), prefix_len, name }
}

/// The registries, narrower ranges before those around them.
pub(crate) static TABLE: [Range; 33] = [
    v4(0, 0, 0, 8, "this network"),
    v4(10, 0, 0, 8, "private"),
    v4(100, 64, 0, 10, "shared by carrier-grade NAT"),
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
    v6(0x2001, 0, 0, 23, "protocol assignments, Teredo and ORCHID among them"),
    v6(0x2002, 0, 0, 16, "6to4"),
    v6(0x3fff, 0, 0, 20, "documentation"),
    v6(0x5f00, 0, 0, 16, "segment routing"),
    v6(0xfc00, 0, 0, 7, "unique local"),
    v6(0xfe80, 0, 0, 10, "link-local"),
    v6(0xff00, 0, 0, 8, "multicast"),
];

static GLOBAL_UNICAST: Range = v6(0x2000, 0, 0, 3, "global unicast");

static OUTSIDE: Range = v6(0, 0, 0, 0, "outside 2000::/3");

#[cfg(test)]
mod tests {
    use super::*;

    fn name(address: &str) -> Option<&'static str> {
        special_range(address.parse().unwrap()).map(Range::name)
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
    fn the_addresses_beside_a_range_are_public() {
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
            ("100.64.0.1", "shared by carrier-grade NAT"),
            ("255.255.255.255", "reserved"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::ffff:8.8.8.8", "IPv4-mapped"),
            ("::8.8.8.8", "IPv4-compatible"),
            ("64:ff9b::a00:1", "NAT64"),
            ("64:ff9b:1::1", "local NAT64"),
            ("2002:a00:1::", "6to4"),
            ("2001::1", "protocol assignments, Teredo and ORCHID among them"),
            ("fd00::1", "unique local"),
            ("fe80::1", "link-local"),
            ("4000::1", "outside 2000::/3"),
            ("1fff:ffff::1", "outside 2000::/3"),
        ] {
            assert_eq!(name(address), Some(expected), "{address}");
        }
    }
}
