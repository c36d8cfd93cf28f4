//! Names of hosts, in one spelling, and the patterns that rules have for them.
//!
//! Everything that a guest, a `Host` header or a policy calls a host goes through [`Host::parse`] before any rule looks at
//! it: case, a trailing dot, Unicode, IPv4 in octal, hexadecimal or fewer parts, and IPv4 inside IPv6 are gone afterwards.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The longest text that is looked at. A name in DNS has at most 253 characters; Unicode may need more bytes before IDNA.
const LONGEST: usize = 1_024;

/// A host: a name in lower case ASCII without a trailing dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name.
    Name(String),
    /// An address.
    Ip(IpAddr),
}

/// The text is not the name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid host name: {0}")]
pub struct InvalidHost(&'static str);

impl Host {
    /// Reads a host without a port. Addresses in IPv6 may be in brackets.
    pub fn parse(text: &str) -> Result<Host, InvalidHost> {
        if text.is_empty() || text.len() > LONGEST {
            return Err(InvalidHost("it is empty or too long"));
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(InvalidHost("a bracket is not closed"))?;
            return inner
                .parse::<Ipv6Addr>()
                .map(Host::from_v6)
                .map_err(|_| InvalidHost("not an IPv6 address"));
        }
        if text.contains(':') {
            return text
                .parse::<Ipv6Addr>()
                .map(Host::from_v6)
                .map_err(|_| InvalidHost("not an IPv6 address"));
        }
        // What separates the parts of a URL must not survive as part of a name, whatever IDNA would map it to.
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || "/\\@#?%<>[]^|`\"{}".contains(c)) {
            return Err(InvalidHost("it has a character that no name has"));
        }
        let ascii = idna::domain_to_ascii(text).map_err(|_| InvalidHost("not a valid international name"))?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        match odd_ipv4(name) {
            Some(Ok(address)) => return Ok(Host::Ip(IpAddr::V4(address))),
            Some(Err(())) => return Err(InvalidHost("a name that ends in a number must be an IPv4 address")),
            None => {}
        }
        if name.is_empty() || name.len() > 253 {
            return Err(InvalidHost("it is empty or too long"));
        }
        let label = |label: &str| {
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
            !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
        };
        match name.split('.').all(label) {
            true => Ok(Host::Name(name.to_owned())),
            false => Err(InvalidHost("a part is empty, too long or has a character that no name has")),
        }
    }

    /// Returns the host of an address: IPv4 in IPv6 becomes IPv4.
    pub fn from_ip(address: IpAddr) -> Host {
        match address {
            IpAddr::V4(_) => Host::Ip(address),
            IpAddr::V6(address) => Host::from_v6(address),
        }
    }

    fn from_v6(address: Ipv6Addr) -> Host {
        Host::Ip(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
    }

    /// Returns the same host in the one spelling that rules compare: a caller may have built it from parts.
    pub fn normalised(&self) -> Result<Host, InvalidHost> {
        match self {
            Host::Name(name) => Host::parse(name),
            Host::Ip(address) => Ok(Host::from_ip(*address)),
        }
    }
}

impl fmt::Display for Host {
    /// As in a URL: IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(address)) => address.fmt(f),
            Host::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Reads IPv4 as C libraries do: up to four parts, each decimal, octal (`0…`) or hexadecimal (`0x…`), the last filling what
/// is left. `None` if the text does not end in a number, so that it is a name.
fn odd_ipv4(text: &str) -> Option<Result<Ipv4Addr, ()>> {
    let parts: Vec<&str> = text.split('.').collect();
    let last = parts.last()?;
    let hexadecimal = last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    let decimal = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    if !(hexadecimal || decimal) {
        return None;
    }
    Some(parse_odd_ipv4(&parts).ok_or(()))
}

fn parse_odd_ipv4(parts: &[&str]) -> Option<Ipv4Addr> {
    if parts.len() > 4 {
        return None;
    }
    let numbers = parts.iter().map(|part| number(part)).collect::<Option<Vec<u64>>>()?;
    let (last, front) = numbers.split_last()?;
    if front.iter().any(|part| *part > 255) || *last >= 1 << (8 * (4 - front.len())) {
        return None;
    }
    let front = front.iter().enumerate().map(|(at, part)| part << (24 - 8 * at)).sum::<u64>();
    u32::try_from(front + last).ok().map(Ipv4Addr::from)
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match part.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(rest) => (rest, 16),
        None if part.len() > 1 && part.starts_with('0') => (&part[1..], 8),
        None => (part, 10),
    };
    if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Which hosts a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// `*`: every name. Addresses are not names.
    EveryName,
    /// `*.x.com`: every name below `x.com`, not `x.com` itself. Stored as `.x.com`.
    Below(String),
    /// One host.
    Exactly(Host),
    /// A network of addresses, for connections to addresses.
    Network(IpNet),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Pattern, InvalidHost> {
        if text == "*" {
            return Ok(Pattern::EveryName);
        }
        if let Some(rest) = text.strip_prefix("*.") {
            return match Host::parse(rest)? {
                Host::Name(name) => Ok(Pattern::Below(format!(".{name}"))),
                Host::Ip(_) => Err(InvalidHost("an address has no names below it")),
            };
        }
        if text.contains('/') {
            return text.parse().map(Pattern::Network).map_err(|_| InvalidHost("not a network"));
        }
        Host::parse(text).map(Pattern::Exactly)
    }

    pub(crate) fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Pattern::EveryName, Host::Name(_)) => true,
            (Pattern::Below(suffix), Host::Name(name)) => {
                name.len() > suffix.len() && name.ends_with(suffix.as_str())
            }
            (Pattern::Exactly(exact), host) => exact == host,
            (Pattern::Network(network), Host::Ip(address)) => network.contains(address),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ip(text: &str) -> Host {
        Host::Ip(text.parse().expect("an address"))
    }

    #[test]
    fn odd_spellings_of_an_address_are_that_address() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0177.0.0.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "127.0.0.1.",
            "0X7F.0.0.1",
            "::ffff:127.0.0.1",
            "[::ffff:7f00:1]",
            "１２７.0.0.1",
            "127。0。0。1",
            "127.0x0.0.01",
        ] {
            assert_eq!(Host::parse(text), Ok(ip("127.0.0.1")), "{text}");
        }
        for text in [
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.256",
            "4294967296",
            "0x1ffffffff",
            "foo.1",
            "09.1.1.1",
            "1..1",
            "foo.0x1",
        ] {
            assert!(Host::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_have_one_spelling() {
        for (text, name) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("ｅxample.com", "example.com"),
            ("a_b.example.com", "a_b.example.com"),
        ] {
            assert_eq!(Host::parse(text), Ok(Host::Name(name.into())), "{text}");
        }
        for text in [
            "",
            ".",
            "..",
            "a..b",
            "example.com..",
            ".example.com",
            "a b",
            "a\tb",
            "a\0b",
            "user@example.com",
            "a/b",
            "a\\b",
            "a%2eb",
            "a:80",
            "[::1",
            "fe80::1%eth0",
            "a#b",
            "a?b",
            "*",
            "a*b",
            "a,b",
            "a\nb",
            "exam\u{2028}ple.com",
            "a\u{ff0f}b.com",
        ] {
            assert!(Host::parse(text).is_err(), "{text:?} is {:?}", Host::parse(text));
        }
        assert!(Host::parse(&"a".repeat(64)).is_err());
        assert!(Host::parse(&"a.".repeat(127)).is_ok());
        assert!(Host::parse(&"a.".repeat(128)).is_err());
    }

    #[test]
    fn patterns_match_what_they_say() {
        let matches = |pattern: &str, host: &str| {
            Pattern::parse(pattern).expect("a pattern").matches(&Host::parse(host).expect("a host"))
        };
        assert!(matches("*", "a.com") && !matches("*", "1.2.3.4"));
        assert!(matches("*.x.com", "a.x.com") && matches("*.X.com", "b.a.x.com."));
        assert!(
            !matches("*.x.com", "x.com")
                && !matches("*.x.com", "ax.com")
                && !matches("*.x.com", "x.com.evil.com")
        );
        assert!(matches("x.com", "X.COM.") && !matches("x.com", "a.x.com"));
        assert!(
            matches("10.0.0.0/8", "10.1.2.3")
                && matches("10.0.0.0/8", "0xa.1")
                && !matches("10.0.0.0/8", "11.0.0.1")
        );
        for wrong in
            ["*x.com", "a.*.com", "*.1.2.3.4", "**", "*.", "10.0.0.0/33", "https://x.com", "x.com:80"]
        {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// Whatever the text, parsing what was parsed changes nothing: no rule sees another spelling than the next one.
        #[test]
        fn parsing_is_idempotent(text in "\\PC{0,40}|[a-z0-9.xX:\\[\\]-]{0,24}") {
            if let Ok(host) = Host::parse(&text) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host.clone()));
                prop_assert_eq!(host.normalised(), Ok(host));
            }
        }

        /// Every spelling of an address that C libraries accept is that address.
        #[test]
        fn spellings_of_ipv4(address: [u8; 4], radix in prop::array::uniform4(0u8..3), parts in 1usize..5) {
            let whole = u32::from_be_bytes(address);
            let mut text = String::new();
            for at in 0..parts {
                let value = match at + 1 == parts {
                    true if at == 0 => u64::from(whole),
                    true => u64::from(whole) & ((1 << (8 * (4 - at))) - 1),
                    false => u64::from(address[at]),
                };
                if at > 0 { text.push('.'); }
                text += &match radix[at] { 0 => format!("{value}"), 1 => format!("0{value:o}"), _ => format!("0x{value:x}") };
            }
            prop_assert_eq!(Host::parse(&text), Ok(Host::Ip(IpAddr::V4(Ipv4Addr::from(whole)))), "{}", text);
        }
    }
}
