//! A proxy of the host, through which the gateway connects when the policy says so.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::name::Host;
use crate::policy::ProxyPolicy;
use crate::rules::PolicyError;

/// Most bytes of a proxy's answer.
const ANSWER: usize = 8 << 10;

/// A proxy.
pub(crate) struct Proxy {
    address: String,
    authorization: Option<String>,
    pub(crate) resolves_names: bool,
    /// Names that are reached without it: exact, or with a dot in front those below.
    except: Vec<String>,
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
        let except = except
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .filter(|name| !name.is_empty())
            .collect();
        url.map(|url| Proxy::parse(&url, policy.resolves_names, except)).transpose()
    }

    fn parse(url: &str, resolves_names: bool, except: Vec<String>) -> Result<Proxy, PolicyError> {
        // Without the text: it may have a password.
        let wrong = || PolicyError::new("proxy", "the URL is not http://[USER:PASSWORD@]HOST:PORT");
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, rest),
        };
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        Host::parse(host).map_err(|_| wrong())?;
        port.parse::<u16>().map_err(|_| wrong())?;
        let authorization = user.map(|user| STANDARD.encode(user));
        Ok(Proxy { address: address.to_owned(), authorization, resolves_names, except })
    }

    /// Tells whether a host is reached through it.
    pub(crate) fn is_for(&self, host: &Host) -> bool {
        let text = host.to_string();
        !self.except.iter().any(|name| match name.strip_prefix('.') {
            _ if name == "*" => true,
            Some(below) => text == below || text.ends_with(name.as_str()),
            None => text == *name || text.ends_with(&format!(".{name}")),
        })
    }

    /// Connects to a host and port through the proxy.
    pub(crate) async fn connect(&self, host: &Host, port: u16) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).await?;
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
