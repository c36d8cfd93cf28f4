//! The gateway of one sandbox: who may be reached, and the connections to them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};

use crate::audit::{Audit, AuditSink};
use crate::callback::OnRequest;
use crate::cassette::Cassette;
use crate::connection::Connection;
use crate::limits::Limits;
use crate::name::Host;
use crate::policy::NetworkPolicy;
use crate::proxy::Proxy;
use crate::resolve::{Resolve, SystemResolver};
use crate::rules::{Denied, Kind, PolicyError, Rules, short};
use crate::tls::Tls;

/// Most addresses of a name. All of them are checked.
const ADDRESSES: usize = 64;

/// Refusals that are no decision of the policy: a guest's malformed request, a slow server, a cassette that cannot be written.
const MISHAPS: [&str; 3] = ["http", "responseTimeoutMs", "record"];

/// Is told of what the policy refuses within a connection, with the port: there is no other error that says so.
pub type OnDenied = Arc<dyn Fn(&Denied, Option<u16>) + Send + Sync>;

/// What an embedder provides in addition to the policy.
#[derive(Clone)]
pub struct Options {
    /// Looks up names.
    pub resolver: Arc<dyn Resolve>,
    /// Takes records.
    pub audit: Option<Arc<dyn AuditSink>>,
    /// Decides about requests that the policy allows.
    pub on_request: Option<Arc<dyn OnRequest>>,
    /// Is told of refusals within connections.
    pub on_denied: Option<OnDenied>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Options {
        let resolver = Arc::new(SystemResolver::default());
        Options { resolver, audit: None, on_request: None, on_denied: None }
    }
}

/// Where a guest wants to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The policy does not allow it.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The sandbox has as many connections as it may have, or has moved as many bytes.
    #[error("network limit reached: {0}")]
    Limit(&'static str),
    /// The name has no address.
    #[error("name not found")]
    NotFound,
    /// It took too long.
    #[error("timed out")]
    TimedOut,
    /// The server, or the network, did not accept it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ConnectError {
    /// Returns the policy's decision, if it is one: of a rule, or of the limit that is used up.
    pub fn denied(&self, host: &Host) -> Option<Denied> {
        match self {
            ConnectError::Denied(denied) => Some(denied.clone()),
            ConnectError::Limit(limit) => {
                let host = host.normalised().unwrap_or_else(|_| host.clone());
                Some(Denied::new(short(&host.to_string()), limit, format_args!("{limit} is used up")))
            }
            ConnectError::NotFound | ConnectError::TimedOut | ConnectError::Io(_) => None,
        }
    }
}

/// The gateway of one sandbox. Cloning the handle shares it.
#[derive(Clone)]
pub struct Gateway(pub(crate) Arc<Inner>);

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) rules: Arc<Rules>,
    pub(crate) options: Options,
    pub(crate) audit: Audit,
    pub(crate) limits: Limits,
    pub(crate) tls: Tls,
    pub(crate) cassette: Option<Arc<Cassette>>,
    proxy: Option<Arc<Proxy>>,
}

impl Gateway {
    /// Creates a gateway.
    pub fn new(policy: NetworkPolicy, options: Options) -> Result<Gateway, PolicyError> {
        let rules = Rules::new(policy)?;
        let policy = &rules.policy;
        Ok(Gateway(Arc::new(Inner {
            tls: Tls::new(policy)?,
            limits: Limits::new(policy, 0),
            cassette: Cassette::open(policy)?.map(Arc::new),
            proxy: policy.proxy.as_ref().map(Proxy::new).transpose()?.flatten().map(Arc::new),
            audit: Audit(options.audit.clone()),
            options,
            rules: Arc::new(rules),
        })))
    }

    /// Creates the gateway of a fork: the same policy, counters of its own that start where these are.
    pub fn fork(&self) -> Gateway {
        self.fork_reporting_to(self.0.options.audit.clone(), self.0.options.on_denied.clone())
    }

    /// Does the same, with records that go to `audit`, and refusals to `on_denied`.
    pub fn fork_reporting_to(
        &self,
        audit: Option<Arc<dyn AuditSink>>,
        on_denied: Option<OnDenied>,
    ) -> Gateway {
        let inner = &self.0;
        Gateway(Arc::new(Inner {
            rules: inner.rules.clone(),
            audit: Audit(audit.clone()),
            options: Options { audit, on_denied, ..inner.options.clone() },
            limits: Limits::new(&inner.rules.policy, inner.limits.used()),
            tls: inner.tls.fresh(),
            cassette: inner.cassette.as_ref().map(|cassette| Arc::new(cassette.fork())),
            proxy: inner.proxy.clone(),
        }))
    }

    /// Returns the variables that stand for secrets in the guest, with their values.
    pub fn placeholders(&self) -> Vec<(String, String)> {
        self.0.rules.secrets.placeholders()
    }

    /// Returns how many bytes were moved, both ways.
    pub fn bytes_moved(&self) -> u64 {
        self.0.limits.used()
    }

    /// Decides whether a name may be looked up. Nothing is asked outside.
    pub fn look_up(&self, name: &str) -> Result<(), Denied> {
        let host = Host::parse(name).map_err(|error| Denied::new(short(name), "name", error));
        let decided = host.and_then(|host| self.0.rules.allow_host(&host).map(drop));
        decided.inspect_err(|denied| self.0.record_denied(denied, None))
    }

    /// Connects to a destination: looks its name up once, checks every address, and connects to one of those.
    pub async fn connect(&self, destination: &Destination) -> Result<Connection, ConnectError> {
        let connected = self.0.clone().connect(self.clone(), destination).await;
        if let Some(denied) = connected.as_ref().err().and_then(|error| error.denied(&destination.host)) {
            self.0.record_denied(&denied, Some(destination.port));
        }
        connected
    }
}

impl Inner {
    async fn connect(
        self: Arc<Inner>,
        gateway: Gateway,
        destination: &Destination,
    ) -> Result<Connection, ConnectError> {
        let port = destination.port;
        let name = |host: &Host| short(&host.to_string());
        let host = destination
            .host
            .normalised()
            .map_err(|error| Denied::new(name(&destination.host), "name", error))?;
        let rule = self.rules.allow_host(&host)?.to_owned();
        let kind = self.rules.allow_port(&host, port)?;
        if self.limits.is_exhausted() {
            return Err(ConnectError::Limit("totalBytes"));
        }
        let permit = self.limits.connections.clone().try_acquire_owned();
        let permit = permit.map_err(|_| ConnectError::Limit("maxConnections"))?;
        let replays = self.cassette.as_ref().is_some_and(|cassette| cassette.replays());
        if replays && kind != Kind::Http {
            return Err(Denied::new(&host, "replay", "only HTTP can be replayed").into());
        }
        let start = Instant::now();
        let reached = match replays {
            true => Ok(None),
            false => self.reach(&host, port).await.map(Some),
        };
        let stream = match reached {
            Ok(stream) => stream.map(Ok),
            // The callback may answer requests to a host that does not exist.
            Err(error) if self.options.on_request.is_some() && kind == Kind::Http => Some(Err(error)),
            Err(error) => return Err(error),
        };
        let address = match &stream {
            Some(Ok((_, address))) => Some(address.to_string()),
            _ => None,
        };
        self.connected(&host, port, address, start.elapsed(), &rule)?;
        let stream = stream.map(|stream| stream.map(|(stream, _)| stream));
        Ok(Connection { gateway, host, port, kind, stream, rule, _permit: permit })
    }

    fn connected(
        &self,
        host: &Host,
        port: u16,
        address: Option<String>,
        took: Duration,
        rule: &str,
    ) -> Result<(), Denied> {
        let recorded = self.audit.record(
            "net.connect",
            [
                ("host", host.to_string().into()),
                ("port", port.into()),
                ("address", address.map_or(Value::Null, Value::from)),
                ("durationMs", (took.as_millis() as u64).into()),
                ("rule", rule.into()),
            ],
        );
        recorded.map_err(|error| Denied::new(host, "audit", error))
    }

    /// Opens a connection to one of the host's addresses, all of which must be allowed.
    async fn reach(&self, host: &Host, port: u16) -> Result<(TcpStream, SocketAddr), ConnectError> {
        let patience = self.rules.connect_timeout();
        let proxy = self.proxy.as_ref().filter(|proxy| proxy.is_for(host));
        if let Some(proxy) = proxy.filter(|proxy| proxy.resolves_names && matches!(host, Host::Name(_))) {
            return through(proxy, host, port, patience).await;
        }
        let addresses = self.addresses(host).await?;
        if let Some(proxy) = proxy {
            return through(proxy, &Host::from_ip(addresses[0]), port, patience).await;
        }
        let each = patience / addresses.len().min(4) as u32;
        let mut last = ConnectError::NotFound;
        for address in addresses.into_iter().take(4) {
            let address = SocketAddr::new(address, port);
            last = match timeout(each, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    stream.set_nodelay(true)?;
                    return Ok((stream, address));
                }
                Ok(Err(error)) => error.into(),
                Err(_) => ConnectError::TimedOut,
            };
        }
        Err(last)
    }

    /// Returns the addresses of a host. If one is refused, the name is: it might be chosen the next time.
    async fn addresses(&self, host: &Host) -> Result<Vec<IpAddr>, ConnectError> {
        let addresses = match host {
            Host::Ip(address) => vec![*address],
            Host::Name(name) => {
                let asked = timeout(self.rules.connect_timeout(), self.options.resolver.resolve(name)).await;
                match asked.map_err(|_| ConnectError::TimedOut)? {
                    Ok(addresses) => addresses,
                    Err(error) => {
                        tracing::debug!(%error, name, "name not found");
                        return Err(ConnectError::NotFound);
                    }
                }
            }
        };
        if addresses.is_empty() {
            return Err(ConnectError::NotFound);
        }
        if addresses.len() > ADDRESSES {
            return Err(Denied::new(host, "allowPrivate", "it has more addresses than can be checked").into());
        }
        let mut checked = Vec::with_capacity(addresses.len());
        for address in addresses {
            let Host::Ip(address) = Host::from_ip(address) else { continue };
            self.rules.allow_address(host, address)?;
            checked.push(address);
        }
        Ok(checked)
    }

    /// Records and tells what was refused within a connection.
    pub(crate) fn denied(&self, denied: &Denied, port: Option<u16>) {
        self.record_denied(denied, port);
        if let Some(tell) = self.options.on_denied.as_ref().filter(|_| !MISHAPS.contains(&denied.rule)) {
            tell(&Denied { why: self.masked(&denied.why), ..denied.clone() }, port);
        }
    }

    fn record_denied(&self, denied: &Denied, port: Option<u16>) {
        // Nothing was done, so a record that is lost is not a reason to refuse once more.
        let _ = self.audit.record(
            "net.denied",
            [
                ("host", denied.host.as_str().into()),
                ("port", port.map_or(Value::Null, Value::from)),
                ("rule", denied.rule.into()),
                ("why", self.masked(&denied.why).into()),
            ],
        );
    }

    /// Returns a text without secrets, for records and messages.
    pub(crate) fn masked(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.rules.secrets.mask_whole(text.as_bytes())).into_owned()
    }
}

async fn through(
    proxy: &Proxy,
    host: &Host,
    port: u16,
    patience: Duration,
) -> Result<(TcpStream, SocketAddr), ConnectError> {
    let stream = timeout(patience, proxy.connect(host, port)).await.map_err(|_| ConnectError::TimedOut)??;
    stream.set_nodelay(true)?;
    let address = stream.peer_addr()?;
    Ok((stream, address))
}

/// A place among the connections of a sandbox.
pub(crate) type Permit = OwnedSemaphorePermit;
