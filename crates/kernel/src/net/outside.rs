//! The way out of a sandbox, if its host offers one.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use wardian_vfs::Errno;

use super::host_stream::HostStream;

/// Connections to names and addresses outside the sandbox. The kernel decides nothing: whatever is asked here must be
/// checked here.
pub trait Outside: Send + Sync {
    /// Returns whether a name may be connected to. Does not resolve it; must not wait.
    fn look_up(&self, name: &str) -> Result<(), Errno>;

    /// Connects. The future is dropped when the socket is closed or its sandbox ends; it runs on the kernel's runtime.
    fn connect(&self, to: Destination) -> OutsideConnection;

    /// Is told of a connection that the kernel refuses itself: to a placeholder that stands for no name.
    fn refuse(&self, _to: Destination) {}
}

/// A connection in the making.
pub type OutsideConnection = Pin<Box<dyn Future<Output = Result<Serve, Errno>> + Send>>;

/// Serves a connection: given the guest's end, runs until both sides are done. Dropped when the sandbox ends.
pub type Serve = Box<dyn FnOnce(HostStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Where a guest wants to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The host.
    pub host: OutsideHost,
    /// The port.
    pub port: u16,
}

/// A host outside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutsideHost {
    /// A name that the guest looked up.
    Name(String),
    /// An address that the guest gave.
    Ip(IpAddr),
}
