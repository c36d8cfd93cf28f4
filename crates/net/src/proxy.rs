//! A proxy of the host, through which the gateway connects when the policy says so.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::name::Host;
use crate::policy::ProxyPolicy;
use crate::rules::PolicyError;
use crate::secrets::percent_decoded;

/// Most bytes of a proxy's answer.
const ANSWER: usize = 8 << 10;

/// A proxy.
pub(crate) struct Proxy {
    address: String,
    authorization: Option<String>,
    pub(crate) resolves_names: bool,
    /// Hosts that are reached without it.
    except: Vec<Except>,
}

/// An entry of `NO_PROXY`.
enum Except {
    Everything,
    /// This name and all below it, with or without a dot or `*.` in front.
    Name(String),
    Network(IpNet),
}

impl Except {
    /// Reads an entry. `None`: it is empty, or nothing that a host can be.
    fn parse(text: &str) -> Option<Except> {
        let text = text.trim();
        if text == "*" {
            return Some(Except::Everything);
        }
        if let Ok(network) = text.parse() {
            return Some(Except::Network(network));
        }
        let name = text.strip_prefix('*').unwrap_or(text);
        match Host::parse(name.strip_prefix('.').unwrap_or(name)).ok()? {
            Host::Name(name) => Some(Except::Name(name)),
            Host::Ip(address) => Some(Except::Network(address.into())),
        }
    }

    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Except::Everything, _) => true,
            (Except::Name(name), Host::Name(host)) => {
                host.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Except::Network(network), Host::Ip(address)) => network.contains(address),
            _ => false,
        }
    }
}

impl Proxy {
    /// Reads the policy. `None`: the environment names no proxy.
    pub(crate) fn new(policy: &ProxyPolicy) -> Result<Option<Proxy>, PolicyError> {
        if policy.url != "environment" {
            return Proxy::parse(&policy.url, policy.resolves_names, Vec::new()).map(Some);
        }
        let variable = |names: [&str; 2]| {
            names.iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.is_empty()))
        };
        let url = variable(["HTTPS_PROXY", "https_proxy"]).or_else(|| variable(["HTTP_PROXY", "http_proxy"]));
        let except = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
        let except = except.split([',', ' ']).filter_map(Except::parse).collect();
        url.map(|url| Proxy::parse(&url, policy.resolves_names, except)).transpose()
    }

    fn parse(url: &str, resolves_names: bool, except: Vec<Except>) -> Result<Proxy, PolicyError> {
        // Without the text: it may have a password.
        let wrong = || PolicyError::new("proxy", "the URL is not http://[USER:PASSWORD@]HOST:PORT");
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(wrong()),
            None => url,
        };
        let rest = rest.trim_end_matches('/');
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, rest),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        Host::parse(host).map_err(|_| wrong())?;
        port.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        // In a URL what is not plain is encoded.
        let authorization = user.map(|user| STANDARD.encode(percent_decoded(user)));
        Ok(Proxy { address: address.to_owned(), authorization, resolves_names, except })
    }

    /// Tells whether a host is reached through it.
    pub(crate) fn is_for(&self, host: &Host) -> bool {
        !self.except.iter().any(|except| except.matches(host))
    }

    /// Connects to a host and port through the proxy.
    pub(crate) async fn connect(&self, host: &Host, port: u16) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let mut ask = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(authorization) = &self.authorization {
            ask += &format!("Proxy-Authorization: Basic {authorization}\r\n");
        }
        stream.write_all(format!("{ask}\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the empty line is the server's.
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= ANSWER {
                return Err(io::Error::other("the proxy's answer is too long"));
            }
            answer.push(stream.read_u8().await?);
        }
        let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
        match status {
            Some([b'2', ..]) => Ok(stream),
            Some(status) => {
                Err(io::Error::other(format!("the proxy refused: {}", String::from_utf8_lossy(status))))
            }
            None => Err(io::Error::other("the proxy does not speak HTTP")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(except: &str) -> Proxy {
        let except = except.split([',', ' ']).filter_map(Except::parse).collect();
        Proxy::parse("http://proxy.test:3128", false, except).expect("a proxy")
    }

    #[test]
    fn hosts_are_excepted_as_elsewhere() {
        for (except, host, through) in [
            ("", "x.com", true),
            ("*", "x.com", false),
            ("x.com", "x.com", false),
            ("x.com", "a.x.com", false),
            ("x.com", "ax.com", true),
            (".x.com", "x.com", false),
            ("*.x.com, y.com", "a.x.com", false),
            ("X.COM.", "x.com", false),
            ("10.0.0.0/8", "10.1.2.3", false),
            ("10.0.0.0/8", "11.1.2.3", true),
            ("127.0.0.1,::1", "127.0.0.1", false),
            ("127.0.0.1,::1", "[::1]", false),
            ("1.2.3.4", "x1.2.3.4.com", true),
        ] {
            assert_eq!(proxy(except).is_for(&Host::parse(host).expect("a host")), through, "{except} {host}");
        }
    }

    #[test]
    fn addresses_of_proxies_are_read_strictly() {
        let parse = |url: &str| Proxy::parse(url, false, Vec::new());
        let known = parse("HTTP://me:p%40ss@proxy.test:3128/").expect("a proxy");
        assert_eq!(known.address, "proxy.test:3128");
        assert_eq!(known.authorization, Some(STANDARD.encode("me:p@ss")));
        assert_eq!(parse("proxy.test:3128").expect("a proxy").authorization, None);
        for wrong in [
            "",
            "https://p:1",
            "socks5://p:1",
            "http://p",
            "http://p:0",
            "http://p:x",
            "http://:1",
            "http://a b:1",
        ] {
            let error = parse(wrong).err().expect("it is refused");
            assert_eq!((error.field, error.why.contains("p:1")), ("proxy", false), "{wrong}");
        }
    }
}
