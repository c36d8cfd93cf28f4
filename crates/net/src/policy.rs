//! What an embedder can say about the network, as data. `rules.rs` checks it and turns it into what is asked at run time.

use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// What a sandbox may reach. The default is nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NetworkPolicy {
    /// How much is granted. Absent: `hosts` if `allowedHosts` has any, else `off`.
    pub mode: Option<Mode>,
    /// Hosts that may be reached: `x.com`, `*.x.com` (names below it), `*` (every name), `93.184.216.34`, `192.0.2.0/24`.
    pub allowed_hosts: Vec<String>,
    /// Hosts that may not, whatever else says so. Networks also hold for the addresses that names have.
    pub blocked_hosts: Vec<String>,
    /// Ports that may be reached.
    pub ports: Vec<u16>,
    /// Ports other than 80 and 443 that are granted and parsed as HTTP. Others are opaque.
    pub http_ports: Vec<u16>,
    /// What requests to a host may be. A host that no rule names accepts every request.
    pub http_rules: Vec<HttpRule>,
    /// Hosts whose connections are opaque on every port, so that a guest can speak TLS itself.
    pub raw_hosts: Vec<String>,
    /// Networks that may be reached although they are not public.
    pub allow_private: Vec<IpNet>,
    /// Most bytes of a request's body.
    pub request_bytes: u64,
    /// Most bytes of a response's body.
    pub response_bytes: u64,
    /// Most bytes of everything, both ways, as long as the sandbox lives.
    pub total_bytes: Option<u64>,
    /// Most bytes per second of everything, both ways. Above it, connections are slowed down.
    pub bytes_per_second: Option<u64>,
    /// Most requests per second of all connections. Above it, requests wait.
    pub requests_per_second: Option<u32>,
    /// Most connections at once.
    pub max_connections: u32,
    /// How long to look up a name, to connect, and to shake hands, each.
    pub connect_timeout_ms: u64,
    /// How long to wait for the head of a response.
    pub response_timeout_ms: u64,
    /// How long a connection may be silent.
    pub idle_timeout_ms: u64,
    /// Values that the gateway puts into requests, unseen by the guest.
    pub secrets: Vec<Secret>,
    /// Whether a guest may ask for TLS without a check of the certificate. Secrets are never sent over such connections.
    pub allow_unverified_tls: bool,
    /// Which authorities are trusted.
    pub roots: Roots,
    /// A file with more authorities (PEM).
    pub ca_file: Option<PathBuf>,
    /// Whether HTTP/2 is offered to servers. Guests speak HTTP/1.1 either way.
    pub http2: bool,
    /// A proxy through which everything goes.
    pub proxy: Option<ProxyPolicy>,
    /// A cassette file to which requests and responses are appended.
    pub record: Option<PathBuf>,
    /// A cassette file from which requests are answered. Nothing is connected then.
    pub replay: Option<PathBuf>,
}

impl Default for NetworkPolicy {
    fn default() -> NetworkPolicy {
        NetworkPolicy {
            mode: None,
            allowed_hosts: Vec::new(),
            blocked_hosts: Vec::new(),
            ports: vec![80, 443],
            http_ports: Vec::new(),
            http_rules: Vec::new(),
            raw_hosts: Vec::new(),
            allow_private: Vec::new(),
            request_bytes: 64 << 20,
            response_bytes: 64 << 20,
            total_bytes: None,
            bytes_per_second: None,
            requests_per_second: None,
            max_connections: 64,
            connect_timeout_ms: 10_000,
            response_timeout_ms: 60_000,
            idle_timeout_ms: 120_000,
            secrets: Vec::new(),
            allow_unverified_tls: false,
            roots: Roots::Platform,
            ca_file: None,
            http2: false,
            proxy: None,
            record: None,
            replay: None,
        }
    }
}

/// How much is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Mode {
    /// Nothing.
    Off,
    /// `allowedHosts` on `ports`.
    Hosts,
    /// Every public host and address on every port.
    Full,
}

/// Requests that a host accepts. If several rules name a host, one of them must allow the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpRule {
    /// Which hosts, as in `allowedHosts`.
    pub host: String,
    /// Methods; empty: all.
    #[serde(default)]
    pub methods: Vec<String>,
    /// Starts of paths, by whole segments (`/v1` is `/v1` and `/v1/x`, not `/v1x`); empty: all.
    #[serde(default)]
    pub path_prefixes: Vec<String>,
}

/// A value that only the gateway knows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Secret {
    /// The variable in which the guest finds a placeholder.
    pub name: String,
    /// Which hosts get it, as in `allowedHosts`.
    pub host: String,
    /// The value.
    pub value: String,
    /// Where it is put.
    #[serde(rename = "as", default)]
    pub place: SecretPlace,
}

impl std::fmt::Debug for Secret {
    /// Without the value: policies are logged.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").field("name", &self.name).field("host", &self.host).finish_non_exhaustive()
    }
}

/// Where a secret is put into a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum SecretPlace {
    /// Wherever the guest put the placeholder, in header values and in the query. The other places include this one.
    #[default]
    Placeholder,
    /// `Authorization: Bearer VALUE`.
    Bearer,
    /// `Authorization: Basic …` with this user and the value as the password.
    Basic(String),
    /// A header of this name.
    Header(String),
    /// A parameter of this name in the query.
    Query(String),
}

/// Which authorities are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Roots {
    /// The machine's own, or Mozilla's if it has none.
    #[default]
    Platform,
    /// Mozilla's, as compiled in.
    Webpki,
    /// None but those of `caFile`.
    CaFile,
}

/// A proxy through which the gateway connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxyPolicy {
    /// `http://[USER:PASSWORD@]HOST:PORT`, or `environment`: what HTTPS_PROXY, HTTP_PROXY and NO_PROXY say.
    pub url: String,
    /// Whether the proxy looks names up. The gateway then cannot check their addresses.
    #[serde(default)]
    pub resolves_names: bool,
}
