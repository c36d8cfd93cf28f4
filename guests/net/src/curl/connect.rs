//! Connections, kept for the next request.

use super::worker::Kind;
use super::{Failure, Session};
use crate::curl::operation::Operation;
use crate::curl::report::Stats;
use crate::http::Error;
use crate::http::tls::{self, Refused};
use crate::http::url::Url;
use crate::http::wire::{self, Wire};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use wardian_abi::Errno;

/// An open connection and where it leads.
pub struct Connection {
    pub wire: Wire,
    key: String,
    pub number: usize,
    pub reused: bool,
}

/// How long a connection may take if nothing is said.
const PATIENCE: Duration = Duration::from_secs(300);

/// The most connections that are kept.
const MOST: usize = 8;

fn key(operation: &Operation, url: &Url) -> String {
    let unix = operation.unix_socket.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    format!("{}://{}:{} {} {unix}", url.scheme, url.host, url.port_or_default(), operation.insecure)
}

impl Session {
    /// Returns a connection to the host of a URL: one that is open, or a new one.
    pub fn connection(
        &mut self,
        operation: &Operation,
        url: &Url,
        deadline: Option<Instant>,
        stats: &mut Stats,
        fresh: bool,
    ) -> Result<Connection, Failure> {
        let key = key(operation, url);
        if fresh {
            self.pool.retain(|connection| connection.key != key);
        }
        if let Some(at) = self.pool.iter().position(|connection| connection.key == key) {
            let mut connection = self.pool.remove(at);
            connection.reused = true;
            connection.wire.deadline = deadline;
            self.info(&format!("Re-using existing connection #{} with host {}", connection.number, url.host));
            return Ok(connection);
        }
        let started = Instant::now();
        let until = started + operation.connect_timeout.unwrap_or(PATIENCE);
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let mut wire = match &operation.unix_socket {
            Some(path) => self.connect_unix(path),
            None => self.connect_tcp(operation, url, started, until, stats),
        }
        .inspect_err(|_| self.info(&format!("Closing connection {}", self.connections)))?;
        stats.connected();
        stats.connects += 1;
        let number = self.connections;
        self.connections += 1;
        let peer = wire.peer.map(|peer| peer.ip().to_string()).unwrap_or_default();
        self.info(&format!("Connected to {} ({peer}) port {} (#{number})", url.host, url.port_or_default()));
        if url.scheme == "https" {
            wire.deadline = Some(until);
            self.start_tls(&mut wire, operation, url, started)?;
            stats.secured();
            self.answered();
        }
        wire.deadline = deadline;
        Ok(Connection { wire, key, number, reused: false })
    }

    /// Tells that the server takes one request after the other.
    pub fn answered(&self) {
        if let Some(teller) = &self.teller {
            teller.tell(Kind::Answered, b"");
        }
    }

    /// Keeps a connection for later.
    pub fn keep(&mut self, connection: Connection) {
        self.info(&format!(
            "Connection #{} to host {} left intact",
            connection.number,
            host_of(&connection.key)
        ));
        if self.pool.len() >= MOST {
            self.pool.remove(0);
        }
        self.pool.push(connection);
    }

    fn connect_unix(&self, path: &[u8]) -> Result<Wire, Failure> {
        let name = String::from_utf8_lossy(path);
        self.info(&format!("  Trying {name}:0..."));
        Wire::connect_unix(path).map_err(|_| {
            Failure::new(
                7,
                &format!("Failed to connect to {name} port 0 after 0 ms: Couldn't connect to server"),
            )
        })
    }

    fn connect_tcp(
        &self,
        operation: &Operation,
        url: &Url,
        started: Instant,
        until: Instant,
        stats: &mut Stats,
    ) -> Result<Wire, Failure> {
        let wanted = |address: &IpAddr| {
            (!operation.ipv4 || address.is_ipv4()) && (!operation.ipv6 || address.is_ipv6())
        };
        let mut addresses = wire::addresses(&url.host);
        addresses.retain(wanted);
        stats.looked_up();
        if addresses.is_empty() {
            return Err(Failure::new(6, &format!("Could not resolve host: {}", url.host)));
        }
        let port = url.port_or_default();
        let mut timed_out = false;
        for address in addresses {
            let place = SocketAddr::new(address, port);
            self.info(&format!("  Trying {place}..."));
            let left = until.saturating_duration_since(Instant::now());
            match Wire::connect(&place, Some(left)) {
                Ok(wire) => return Ok(wire),
                Err(errno) => {
                    timed_out = errno == Errno::TIMEDOUT || left.is_zero();
                    self.info(&format!("connect to {address} port {port} failed: {errno}"));
                }
            }
        }
        let spent = started.elapsed().as_millis();
        if timed_out {
            return Err(Failure::new(28, &format!("Connection timed out after {spent} milliseconds")));
        }
        let words = "Couldn't connect to server";
        self.info(&format!("Failed to connect to {} port {port} after {spent} ms: {words}", url.host));
        Err(Failure::refused(&format!(
            "Failed to connect to {} port {port} after {spent} ms: {words}",
            url.host
        )))
    }

    fn start_tls(
        &self,
        wire: &mut Wire,
        operation: &Operation,
        url: &Url,
        started: Instant,
    ) -> Result<(), Failure> {
        let asked = tls::start(wire, &url.host, !operation.insecure, !operation.alpn_off);
        asked.map_err(|refused| tls_failure(refused, url, started))?;
        let Some(agreed) = &wire.tls else { return Ok(()) };
        self.info(&format!("SSL connection using {} / {}", agreed.version, agreed.cipher));
        if let Some(alpn) = &agreed.alpn {
            self.info(&format!("ALPN: server accepted {alpn}"));
        }
        self.info(&format!("The gateway reports {} certificates", agreed.certificates.len()));
        if operation.tls13 && agreed.version != "TLSv1.3" {
            return Err(Failure::new(
                35,
                &format!("the server speaks {}, and TLSv1.3 was asked for", agreed.version),
            ));
        }
        Ok(())
    }
}

fn host_of(key: &str) -> String {
    let place = key.split("://").nth(1).unwrap_or_default().split(' ').next().unwrap_or_default();
    place.rsplit_once(':').map_or(place, |(host, _)| host).to_owned()
}

const ADVICE: &str = "\nMore details here: https://curl.se/docs/sslcerts.html\n\n\
    curl failed to verify the legitimacy of the server and therefore could not\n\
    establish a secure connection to it. To learn more about this situation and\n\
    how to fix it, please visit the web page mentioned above.";

fn tls_failure(refused: Refused, url: &Url, started: Instant) -> Failure {
    let spent = started.elapsed().as_millis();
    match refused {
        Refused::Wire(Error::Timeout) => {
            Failure::new(28, &format!("SSL connection timeout after {spent} ms"))
        }
        Refused::Wire(_) | Refused::NoGateway => Failure::new(
            35,
            &format!(
                "{} did not answer as the sandbox's gateway does; TLS works only through the gateway",
                url.host
            ),
        ),
        Refused::Answer(code, message) => match code.as_str() {
            "certificate" => Failure::new(60, &format!("SSL certificate problem: {message}{ADVICE}")),
            "name" => {
                let words = "SSL: no alternative certificate subject name matches target host name";
                Failure::new(60, &format!("{words} '{}'{ADVICE}", url.host))
            }
            "denied" => {
                Failure::new(7, &format!("the sandbox's network policy denies {}: {message}", url.host))
            }
            _ => Failure::new(35, &message),
        },
    }
}
