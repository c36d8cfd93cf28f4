//! Looking up names. A trait, so that an embedder can bring another resolver, and tests one that lies.

use std::future::Future;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// What an asynchronous method of a trait returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Look-ups of one gateway at once: each may hold a thread until the system gives up.
const AT_ONCE: usize = 4;

/// Looks up names.
pub trait Resolve: Send + Sync {
    /// Returns the addresses of a name (lower case, no trailing dot). Called once for each connection.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's resolver (`getaddrinfo`): hosts file, DNS and whatever else the machine is set up to use.
#[derive(Debug)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> SystemResolver {
        SystemResolver(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = self.0.clone().acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let looked_up = tokio::task::spawn_blocking(move || {
                // Held until the system is done, not until the caller stops waiting.
                let _permit = permit;
                // With a dot at the end no search domain is tried; without it the hosts file is found.
                let addresses = (format!("{name}."), 0u16).to_socket_addrs();
                let addresses = addresses.or_else(|_| (name, 0u16).to_socket_addrs())?;
                Ok(addresses.map(|address| address.ip()).collect())
            });
            looked_up.await.map_err(io::Error::other)?
        })
    }
}
