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
use wardian_net::{AuditSink, ConnectError, Destination, Ending, Gateway, Host};
use wardian_vfs::Errno;

/// How many refused hosts a run keeps: enough to see what it wanted.
const DENIED_KEPT: usize = 16;
/// The longest name of one.
const NAME_KEPT: usize = 256;

/// The way out of one sandbox.
pub(crate) struct Way {
    gateway: Option<Gateway>,
    audit: Option<Arc<dyn AuditSink>>,
    /// Who was refused since the last run ended.
    denied: Arc<Mutex<Vec<Vec<u8>>>>,
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
        let gateway = gateway.map(|gateway| gateway.fork_recorded_by(audit.clone()));
        Arc::new(Way { gateway, audit, denied: Arc::default() })
    }

    /// Returns the gateway, for forks.
    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// Takes what was refused so far.
    pub(crate) fn take_denied(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.denied.lock())
    }

    /// Refuses without a gateway.
    fn refuse(&self, host: &str, port: Option<u16>) {
        note(&self.denied, host);
        if let Some(audit) = &self.audit {
            let host: String = host.chars().take(NAME_KEPT).collect();
            let mut data =
                Map::from_iter([("host".to_owned(), json!(host)), ("rule".to_owned(), json!("mode"))]);
            if let Some(port) = port {
                data.insert("port".to_owned(), json!(port));
            }
            // Nothing was done that would have to be undone.
            let _ = audit.record("net.denied", data);
        }
    }
}

/// Remembers that a host was refused.
fn note(denied: &Mutex<Vec<Vec<u8>>>, host: &str) {
    let mut kept = host.as_bytes().to_vec();
    kept.truncate(NAME_KEPT);
    let mut denied = denied.lock();
    if denied.len() < DENIED_KEPT && !denied.contains(&kept) {
        denied.push(kept);
    }
}

impl Outside for Way {
    fn look_up(&self, name: &str) -> Result<(), Errno> {
        let Some(gateway) = &self.gateway else {
            self.refuse(name, None);
            return Err(Errno::EACCES);
        };
        gateway.look_up(name).map_err(|_| {
            note(&self.denied, name);
            Errno::EACCES
        })
    }

    fn connect(&self, to: kernel::Destination) -> OutsideConnection {
        let name = name(&to);
        let Some(gateway) = self.gateway.clone() else {
            self.refuse(&name, Some(to.port));
            return Box::pin(async { Err(Errno::ECONNREFUSED) });
        };
        let denied = self.denied.clone();
        Box::pin(async move {
            let host = match to.host {
                OutsideHost::Name(name) => Host::Name(name),
                OutsideHost::Ip(address) => Host::Ip(address),
            };
            let connected = gateway.connect(&Destination { host, port: to.port }).await;
            let connection = connected.map_err(|error| {
                if matches!(error, ConnectError::Denied(_)) {
                    note(&denied, &name);
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
