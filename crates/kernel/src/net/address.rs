//! Socket addresses, as the kernel keeps them and as Linux encodes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use wardian_vfs::{Errno, Result};

/// Linux's numbers of address families.
pub(crate) const AF_UNIX: u16 = 1;
pub(crate) const AF_INET: u16 = 2;
pub(crate) const AF_INET6: u16 = 10;

/// The longest encoded address: that of a Unix socket with a path of 108 bytes.
pub(crate) const LONGEST: u32 = 128;
/// The bytes of a Unix address after its family.
const UNIX_NAME: usize = 108;

/// The address family of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Domain {
    Unix,
    V4,
    V6,
}

impl Domain {
    pub(crate) fn number(self) -> u16 {
        match self {
            Domain::Unix => AF_UNIX,
            Domain::V4 => AF_INET,
            Domain::V6 => AF_INET6,
        }
    }

    pub(crate) fn from_number(number: u32) -> Result<Domain> {
        match u16::try_from(number) {
            Ok(AF_UNIX) => Ok(Domain::Unix),
            Ok(AF_INET) => Ok(Domain::V4),
            Ok(AF_INET6) => Ok(Domain::V6),
            _ => Err(Errno::EAFNOSUPPORT),
        }
    }

    /// The address of a socket that has none.
    pub(crate) fn nowhere(self) -> Address {
        match self {
            Domain::Unix => Address::Unix(UnixName::Unnamed),
            Domain::V4 => Address::Inet(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)),
            Domain::V6 => Address::Inet(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0)),
        }
    }
}

/// Where a socket is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    Inet(SocketAddr),
    Unix(UnixName),
}

/// The name of a Unix socket.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum UnixName {
    Unnamed,
    /// A file, by the path it was bound to.
    Path(Vec<u8>),
    /// A name outside the file system.
    Abstract(Vec<u8>),
}

impl Address {
    /// Decodes a `struct sockaddr` for a socket of this family.
    pub(crate) fn decode(raw: &[u8], domain: Domain) -> Result<Address> {
        let family = raw.get(..2).ok_or(Errno::EINVAL)?;
        let family = u16::from_le_bytes([family[0], family[1]]);
        let (shortest, foreign) = match domain {
            Domain::Unix => (2, Errno::EINVAL),
            Domain::V4 => (16, Errno::EAFNOSUPPORT),
            Domain::V6 => (24, Errno::EAFNOSUPPORT),
        };
        match () {
            () if raw.len() < shortest => return Err(Errno::EINVAL),
            () if family != domain.number() => return Err(foreign),
            () => {}
        }
        match domain {
            Domain::Unix => Ok(Address::Unix(UnixName::decode(&raw[2..])?)),
            Domain::V4 => Address::decode_v4(raw),
            Domain::V6 => Address::decode_v6(raw),
        }
    }

    fn decode_v4(raw: &[u8]) -> Result<Address> {
        let raw: &[u8; 8] = raw.first_chunk().filter(|_| raw.len() >= 16).ok_or(Errno::EINVAL)?;
        let [_, _, high, low, a, b, c, d] = *raw;
        let ip = Ipv4Addr::new(a, b, c, d);
        Ok(Address::Inet(SocketAddr::new(ip.into(), u16::from_be_bytes([high, low]))))
    }

    fn decode_v6(raw: &[u8]) -> Result<Address> {
        let raw: &[u8; 24] = raw.first_chunk().ok_or(Errno::EINVAL)?;
        let port = u16::from_be_bytes([raw[2], raw[3]]);
        let mut ip = [0; 16];
        ip.copy_from_slice(&raw[8..24]);
        Ok(Address::Inet(SocketAddr::new(Ipv6Addr::from(ip).into(), port)))
    }

    /// Encodes it as a `struct sockaddr` of a socket of this family.
    pub(crate) fn encode(&self, domain: Domain) -> Vec<u8> {
        let mut out = domain.number().to_le_bytes().to_vec();
        match self {
            Address::Unix(UnixName::Unnamed) => {}
            Address::Unix(UnixName::Path(path)) => {
                out.extend(path);
                if path.len() < UNIX_NAME {
                    out.push(0);
                }
            }
            Address::Unix(UnixName::Abstract(name)) => {
                out.push(0);
                out.extend(name);
            }
            Address::Inet(at) => {
                out.extend(at.port().to_be_bytes());
                match (domain, at.ip()) {
                    (Domain::V6, ip) => {
                        let (ip, scope) = match (ip, at) {
                            (IpAddr::V4(ip), _) => (ip.to_ipv6_mapped(), 0),
                            (IpAddr::V6(ip), SocketAddr::V6(at)) => (ip, SocketAddrV6::scope_id(at)),
                            (IpAddr::V6(ip), SocketAddr::V4(_)) => (ip, 0),
                        };
                        out.extend([0; 4]);
                        out.extend(ip.octets());
                        out.extend(scope.to_le_bytes());
                    }
                    (_, IpAddr::V4(ip)) => {
                        out.extend(ip.octets());
                        out.extend([0; 8]);
                    }
                    // A socket of IPv4 never has such a one.
                    (_, IpAddr::V6(_)) => out.extend([0; 12]),
                }
            }
        }
        out
    }

    /// The address and port, if it has them.
    pub(crate) fn inet(&self) -> Option<SocketAddr> {
        match self {
            Address::Inet(at) => Some(*at),
            Address::Unix(_) => None,
        }
    }
}

impl UnixName {
    fn decode(raw: &[u8]) -> Result<UnixName> {
        match raw {
            [] => Ok(UnixName::Unnamed),
            _ if raw.len() > UNIX_NAME => Err(Errno::EINVAL),
            [0, name @ ..] => Ok(UnixName::Abstract(name.to_vec())),
            path => {
                let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
                Ok(UnixName::Path(path[..end].to_vec()))
            }
        }
    }
}

/// Returns the IPv4 address that an IPv6 one stands for; others unchanged.
pub(crate) fn canonical(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// Returns where a connection to this address goes if that is within the sandbox: all zeros mean the sandbox itself.
pub(crate) fn within(ip: IpAddr) -> Option<IpAddr> {
    match canonical(ip) {
        IpAddr::V4(four) if four.is_unspecified() => Some(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(six) if six.is_unspecified() => Some(Ipv6Addr::LOCALHOST.into()),
        ip if ip.is_loopback() => Some(ip),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_encoding() {
        let inet = |text: &str| Address::Inet(text.parse().expect("an address"));
        let all = [
            (Domain::V4, inet("127.0.0.1:8000")),
            (Domain::V6, inet("[::1]:80")),
            (Domain::Unix, Address::Unix(UnixName::Unnamed)),
            (Domain::Unix, Address::Unix(UnixName::Path(b"/tmp/s".to_vec()))),
            (Domain::Unix, Address::Unix(UnixName::Path(vec![b'x'; UNIX_NAME]))),
            (Domain::Unix, Address::Unix(UnixName::Abstract(b"a\0b".to_vec()))),
        ];
        for (domain, address) in all {
            let raw = address.encode(domain);
            assert!(raw.len() <= LONGEST as usize);
            assert_eq!(Address::decode(&raw, domain), Ok(address));
        }
    }

    #[test]
    fn what_is_cut_off_or_of_another_family_is_refused() {
        let four = Domain::V4.nowhere().encode(Domain::V4);
        assert_eq!(Address::decode(&four[..15], Domain::V4), Err(Errno::EINVAL));
        let six = Domain::V6.nowhere().encode(Domain::V6);
        assert_eq!(Address::decode(&four, Domain::V6), Err(Errno::EINVAL), "that is looked at first");
        assert_eq!(Address::decode(&six, Domain::V4), Err(Errno::EAFNOSUPPORT));
        assert_eq!(Address::decode(&four, Domain::Unix), Err(Errno::EINVAL));
        assert_eq!(Address::decode(&[], Domain::V4), Err(Errno::EINVAL));
        assert_eq!(Address::decode(&[1; 200], Domain::Unix), Err(Errno::EINVAL));
    }

    #[test]
    fn a_mapped_address_is_that_of_ipv4() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(within(ip("::ffff:127.0.0.9")), Some(ip("127.0.0.9")));
        assert_eq!(within(ip("::")), Some(ip("::1")));
        assert_eq!(within(ip("0.0.0.0")), Some(ip("127.0.0.1")));
        assert_eq!(within(ip("::ffff:10.0.0.1")), None);
        assert_eq!(within(ip("128.0.0.1")), None);
    }
}
