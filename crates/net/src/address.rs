//! Which addresses are the public internet, and which are somebody's own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Returns what kind of address it is if it is not on the public internet.
pub(crate) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

/// Returns why a connection to the address is refused, unless it is public or in one of the granted networks.
pub(crate) fn refused(address: IpAddr, granted: &[IpNet]) -> Option<&'static str> {
    let kind = not_public(address)?;
    let grants = |address: IpAddr| granted.iter().any(|network| network.contains(&address));
    let inner = match address {
        IpAddr::V6(address) => embedded(address).map(IpAddr::V4),
        IpAddr::V4(_) => None,
    };
    match grants(address) || inner.is_some_and(grants) {
        true => None,
        false => Some(kind),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("unspecified"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("private"),
        [100, 64..=127, ..] => Some("carrier-grade NAT"),
        [127, ..] => Some("loopback"),
        [169, 254, 169, 254] | [169, 254, 170, 2] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            Some("cloud metadata")
        }
        [169, 254, ..] => Some("link-local"),
        [192, 0, 0, _] | [192, 88, 99, _] => Some("reserved for protocols"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("documentation"),
        [198, 18..=19, ..] => Some("benchmarking"),
        [224..=239, ..] => Some("multicast"),
        [255, 255, 255, 255] => Some("broadcast"),
        [240..=255, ..] => Some("reserved"),
        _ => None,
    }
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("loopback"),
        // Translated to IPv4 by the network (NAT64): as public as what it is translated to.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => not_public_v4(last_v4(segments)),
        [0, 0, 0, 0, 0, 0xffff, ..] => not_public_v4(last_v4(segments)),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfec0..=0xfeff, ..] => Some("site-local"),
        [0xfc00..=0xfdff, ..] => Some("unique local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("documentation"),
        [0x2001, 0, ..] => Some("Teredo"),
        [0x2001, 0..=0x1ff, ..] => Some("reserved for protocols"),
        [0x2002, ..] => Some("6to4"),
        // Only 2000::/3 is given out.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

fn last_v4(segments: [u16; 8]) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(segments[6]) << 16) | u32::from(segments[7]))
}

/// Returns the IPv4 address inside an IPv6 one that stands for it, so that granting the one grants the other.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(last_v4(segments)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        for text in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "100::1",
            "2001:db8::1",
            "4000::1",
        ] {
            assert!(refused(text.parse().expect("an address"), &[]).is_some(), "{text}");
        }
        for text in [
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
        ] {
            assert_eq!(refused(text.parse().expect("an address"), &[]), None, "{text}");
        }
    }

    #[test]
    fn a_grant_is_for_its_network_alone() {
        let granted = ["10.1.0.0/16".parse().expect("a network"), "::1/128".parse().expect("a network")];
        for (text, ok) in [
            ("10.1.2.3", true),
            ("10.2.0.1", false),
            ("64:ff9b::a01:203", true),
            ("::ffff:10.1.0.1", true),
            ("::1", true),
            ("127.0.0.1", false),
            ("2002:a01:1::", false),
        ] {
            assert_eq!(refused(text.parse().expect("an address"), &granted).is_none(), ok, "{text}");
        }
    }

    proptest! {
        /// IPv4 dressed up as IPv6 is refused whenever it would be refused plain.
        #[test]
        fn no_notation_makes_an_address_public(address: u32) {
            let plain = Ipv4Addr::from(address);
            let [a, b, c, d] = plain.octets().map(u16::from);
            let (high, low) = ((a << 8) | b, (c << 8) | d);
            let dressed = [
                plain.to_ipv6_mapped(),
                plain.to_ipv6_compatible(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ];
            if not_public_v4(plain).is_some() {
                for address in dressed {
                    prop_assert!(refused(IpAddr::V6(address), &[]).is_some(), "{}", address);
                }
            }
        }

        /// The standard library knows some of these kinds: nothing that it calls local is public here.
        #[test]
        fn agrees_with_the_standard_library(v4: u32, v6: u128) {
            let (v4, v6) = (Ipv4Addr::from(v4), Ipv6Addr::from(v6));
            let local = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified();
            prop_assert!(!local || not_public_v4(v4).is_some());
            let local = v6.is_loopback() || v6.is_multicast() || v6.is_unicast_link_local() || v6.is_unique_local();
            prop_assert!(!local || not_public_v6(v6).is_some());
        }
    }
}
