//! The way out of a sandbox: sockets of the kernel on one side, the gateway of `wardian-net` on the other.
//!
//! Inside, processes meet each other on a network of the sandbox's own, whatever is granted. Everything else comes through
//! here. Without a policy the answer is always no, and the run in which somebody asked says so.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use wardian_audit::AuditLog;
use wardian_kernel::{self as kernel, HostStream, Outside, OutsideConnection, OutsideHost};
use wardian_net::{AuditSink, ConnectError, Denied, Destination, Ending, Gateway, Host, OnDenied};
use wardian_vfs::Errno;

/// How many refusals a run keeps: enough to see what it wanted.
const DENIED_KEPT: usize = 16;
/// The longest name of a host, and the longest reason.
const NAME_KEPT: usize = 256;

/// The way out of one sandbox.
pub(crate) struct Way {
    gateway: Option<Gateway>,
    audit: Option<Arc<dyn AuditSink>>,
    refusals: Refusals,
}

/// What was refused since the last run ended, each as a line for people.
#[derive(Clone, Default)]
struct Refusals(Arc<Mutex<Vec<String>>>);

impl Refusals {
    /// Remembers that a host was refused.
    fn host(&self, host: &str) {
        self.note(format!("host not allowed: {}", beginning(host)));
    }

    /// Remembers that a connection was refused. If its host is granted, the line names the field of the policy that decided, or
    /// the limit, but not the address, which the guest does not learn.
    fn connection(&self, to: &str, denied: &Denied) {
        match denied.rule {
            rule @ ("allowPrivate" | "blockedHosts" | "ports" | "httpRules" | "replay") => {
                self.note(format!("host not allowed: {} ({rule})", beginning(to)));
            }
            "maxConnections" | "totalBytes" => {
                self.note(format!("not allowed: {}: {}", beginning(to), denied.why));
            }
            _ => self.host(to),
        }
    }

    /// Remembers what was refused to somebody who is connected.
    fn request(&self, denied: &Denied, port: Option<u16>) {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        self.note(format!("not allowed: {}{port}: {}", beginning(&denied.host), beginning(&denied.why)));
    }

    fn note(&self, line: String) {
        let mut kept = self.0.lock();
        if kept.len() < DENIED_KEPT && !kept.contains(&line) {
            kept.push(line);
        }
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(NAME_KEPT).collect()
}

/// Records for one sandbox.
struct Records {
    log: AuditLog,
    sandbox: String,
}

impl AuditSink for Records {
    fn record(&self, event: &'static str, data: Map<String, Value>) -> Result<(), String> {
        self.log.record(&self.sandbox, event, data).map_err(|error| error.to_string())
    }
}

impl Way {
    /// Creates the way of the sandbox with this id, through a gateway of its own that continues where this one is.
    pub(crate) fn of(sandbox: &str, gateway: Option<&Gateway>, log: Option<&AuditLog>) -> Arc<Way> {
        let records = |log: &AuditLog| -> Arc<dyn AuditSink> {
            Arc::new(Records { log: log.clone(), sandbox: sandbox.to_owned() })
        };
        let audit = log.map(records);
        let refusals = Refusals::default();
        let gateway = gateway.map(|gateway| {
            let refusals = refusals.clone();
            let told: OnDenied = Arc::new(move |denied, port| refusals.request(denied, port));
            gateway.fork_reporting_to(audit.clone(), Some(told))
        });
        Arc::new(Way { gateway, audit, refusals })
    }

    /// Returns the gateway, for forks.
    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// Takes what was refused so far.
    pub(crate) fn take_denied(&self) -> Vec<String> {
        std::mem::take(&mut self.refusals.0.lock())
    }

    /// Refuses without asking a gateway. `rule` says why, in the record.
    fn refuse(&self, host: &str, port: Option<u16>, rule: &str) {
        self.refusals.host(host);
        if let Some(audit) = &self.audit {
            let mut data = Map::from_iter([
                ("host".to_owned(), json!(beginning(host))),
                ("rule".to_owned(), json!(rule)),
            ]);
            if let Some(port) = port {
                data.insert("port".to_owned(), json!(port));
            }
            // Nothing was done that would have to be undone.
            let _ = audit.record("net.denied", data);
        }
    }
}

impl Outside for Way {
    fn look_up(&self, name: &str) -> Result<(), Errno> {
        let Some(gateway) = &self.gateway else {
            self.refuse(name, None, "mode");
            return Err(Errno::EACCES);
        };
        gateway.look_up(name).map_err(|_| {
            self.refusals.host(name);
            Errno::EACCES
        })
    }

    fn connect(&self, to: kernel::Destination) -> OutsideConnection {
        let name = name(&to);
        let Some(gateway) = self.gateway.clone() else {
            self.refuse(&name, Some(to.port), "mode");
            return Box::pin(async { Err(Errno::ECONNREFUSED) });
        };
        let refusals = self.refusals.clone();
        Box::pin(async move {
            let host = match to.host {
                OutsideHost::Name(name) => Host::Name(name),
                OutsideHost::Ip(address) => Host::Ip(address),
            };
            let destination = Destination { host, port: to.port };
            let connected = gateway.connect(&destination).await;
            let connection = connected.map_err(|error| {
                if let Some(denied) = error.denied(&destination.host) {
                    refusals.connection(&name, &denied);
                }
                errno(&error)
            })?;
            let serve: kernel::Serve = Box::new(|mut guest: HostStream| {
                Box::pin(async move {
                    let deserted = guest.deserted();
                    // What the guest has received may be incomplete: it must not take this for the end.
                    if let Ending::Reset(_) = connection.serve_while(&mut guest, deserted).await {
                        guest.reset();
                    }
                })
            });
            Ok(serve)
        })
    }

    fn refuse(&self, to: kernel::Destination) {
        Way::refuse(self, &name(&to), Some(to.port), "name");
    }
}

/// Returns what a destination is called.
fn name(to: &kernel::Destination) -> String {
    match &to.host {
        OutsideHost::Name(name) => format!("{name}:{}", to.port),
        OutsideHost::Ip(address) => SocketAddr::new(*address, to.port).to_string(),
    }
}

/// Returns what `connect` fails with.
fn errno(error: &ConnectError) -> Errno {
    match error {
        ConnectError::Denied(_) => Errno::ECONNREFUSED,
        ConnectError::Limit(_) => Errno::ENOBUFS,
        ConnectError::NotFound => Errno::EHOSTUNREACH,
        ConnectError::TimedOut => Errno::ETIMEDOUT,
        ConnectError::Io(error) => match error.raw_os_error().map(Errno::from_raw) {
            Some(
                errno @ (Errno::ECONNREFUSED | Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ETIMEDOUT),
            ) => errno,
            _ => Errno::ECONNRESET,
        },
    }
}
