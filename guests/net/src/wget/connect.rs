//! wget's connections.

use super::code;
use super::fetch::{End, Session};
use crate::http::tls;
use crate::http::url::Url;
use crate::http::wire::{self, Wire};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use wardian_abi as abi;

/// How long TLS may take where nothing is said.
const PATIENCE: Duration = Duration::from_secs(300);

impl Session<'_> {
    pub(super) fn connect(&self, url: &Url, place: &str) -> Result<Wire, End> {
        let literal = url.host.parse::<std::net::IpAddr>().is_ok();
        if !literal {
            self.log.verbose(&format!("Resolving {0} ({0})... ", url.host));
        }
        let found = wire::resolve(&url.host);
        let mut addresses = found.clone().unwrap_or_default();
        addresses.retain(|address| {
            !(self.options.ipv4 && address.is_ipv6() || self.options.ipv6 && address.is_ipv4())
        });
        if addresses.is_empty() {
            let why = found.err().unwrap_or(wire::UNKNOWN_NAME);
            self.log.verbose(&format!("failed: {why}.\n"));
            self.log.always(&format!("wget: unable to resolve host address ‘{}’\n", url.host));
            return Err(End::Failed(code::NETWORK));
        }
        if !literal {
            let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            self.log.verbose(&format!("{}\n", shown.join(", ")));
        }
        let mut refused = true;
        for address in addresses {
            let shown = match literal {
                true => place.to_owned(),
                false => format!("{} ({})|{address}|:{}", url.host, url.host, url.port_or_default()),
            };
            self.log.verbose(&format!("Connecting to {shown}... "));
            let target = SocketAddr::new(address, url.port_or_default());
            match Wire::connect(&target, self.options.connect_timeout) {
                Ok(wire) => {
                    self.log.verbose("connected.\n");
                    return self.secure(url, wire);
                }
                Err(errno) => {
                    refused &= errno == abi::Errno::CONNREFUSED;
                    self.log.verbose(&format!("failed: {errno}.\n"));
                }
            }
        }
        match refused && !self.options.retry_refused {
            true => Err(End::Failed(code::NETWORK)),
            false => Err(End::Again(String::new())),
        }
    }

    fn secure(&self, url: &Url, mut wire: Wire) -> Result<Wire, End> {
        if url.scheme != "https" {
            return Ok(wire);
        }
        let patience = self.options.read_timeout.unwrap_or(PATIENCE);
        wire.deadline = Some(Instant::now() + patience);
        match tls::start(&mut wire, &url.host, !self.options.insecure, true) {
            Ok(()) => Ok(wire),
            Err(tls::Refused::Answer(kind, message)) if kind == "certificate" || kind == "name" => {
                self.log.always(&format!(
                    "ERROR: cannot verify {0}'s certificate: {message}\nTo connect to {0} insecurely, use \
                     `--no-check-certificate'.\n",
                    url.host
                ));
                Err(End::Failed(code::TLS))
            }
            Err(tls::Refused::Answer(_, message)) => {
                self.log.always(&format!("Unable to establish SSL connection: {message}\n"));
                Err(End::Failed(code::NETWORK))
            }
            Err(_) => {
                self.log.verbose("Unable to establish SSL connection.\n");
                Err(End::Failed(code::NETWORK))
            }
        }
    }
}
