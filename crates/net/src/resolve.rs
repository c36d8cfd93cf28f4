//! Looking up names. A trait, so that an embedder can bring another resolver, and tests one that lies.

use std::fs::File;
use std::future::Future;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
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

/// The machine's resolver: its hosts file first, then `getaddrinfo` with a dot at the end of the name, so that no search domain
/// is tried. A name is looked up once.
#[derive(Debug)]
pub struct SystemResolver {
    at_once: Arc<Semaphore>,
    hosts: PathBuf,
}

impl Default for SystemResolver {
    fn default() -> SystemResolver {
        SystemResolver { at_once: Arc::new(Semaphore::new(AT_ONCE)), hosts: "/etc/hosts".into() }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = self.at_once.clone().acquire_owned().await.map_err(io::Error::other)?;
            let (name, hosts) = (name.to_owned(), self.hosts.clone());
            let looked_up = tokio::task::spawn_blocking(move || {
                // Held until the system is done, not until the caller stops waiting.
                let _permit = permit;
                let ask =
                    |name: &str| Ok((name, 0u16).to_socket_addrs()?.map(|address| address.ip()).collect());
                look_up(&hosts, &name, ask)
            });
            looked_up.await.map_err(io::Error::other)?
        })
    }
}

/// Looks a name up in the hosts file, or else asks for it.
fn look_up(
    hosts: &Path,
    name: &str,
    ask: impl FnOnce(&str) -> io::Result<Vec<IpAddr>>,
) -> io::Result<Vec<IpAddr>> {
    // A machine may have no such file.
    let pinned = File::open(hosts).map(|file| pinned(BufReader::new(file), name)).unwrap_or_default();
    match pinned.is_empty() {
        false => Ok(pinned),
        // Nobody has such a name (RFC 6761), so nobody is asked.
        true if name.ends_with(".invalid") => Err(io::ErrorKind::NotFound.into()),
        true => ask(&format!("{name}.")),
    }
}

/// Returns the addresses that a hosts file has for a name.
fn pinned(mut hosts: impl BufRead, name: &str) -> Vec<IpAddr> {
    let (mut found, mut line) = (Vec::new(), Vec::new());
    while hosts.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
        if let Some(Ok(address)) = words.next().map(str::parse)
            && words.any(|word| word.trim_end_matches('.').eq_ignore_ascii_case(name))
            && !found.contains(&address)
        {
            found.push(address);
        }
        line.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const HOSTS: &str = "127.0.0.1 localhost\n# 10.0.0.9 pinned.test\n10.0.0.1\tother.test Pinned.Test # of ours\n\
                         nonsense pinned.test\n\u{fffd}\nfd00::1 pinned.test.\n10.0.0.1 pinned.test";

    /// Returns what a name has, and what was asked outside for it.
    fn look_up_with(hosts: &Path, name: &str) -> (io::Result<Vec<IpAddr>>, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let ask = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            Err(io::ErrorKind::NotFound.into())
        };
        (look_up(hosts, name, ask), asked.into_inner())
    }

    #[test]
    fn the_hosts_file_comes_first_and_a_name_is_asked_for_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let hosts = directory.path().join("hosts");
        std::fs::write(&hosts, HOSTS).expect("written");
        let (found, asked) = look_up_with(&hosts, "pinned.test");
        let expected: Vec<IpAddr> =
            ["10.0.0.1", "fd00::1"].map(|text| text.parse().expect("an address")).into();
        assert_eq!((found.expect("found"), asked), (expected, vec![]));
        // No search domain is tried, and nothing twice.
        let (found, asked) = look_up_with(&hosts, "unknown.test");
        assert_eq!((found.is_err(), asked), (true, vec!["unknown.test.".to_owned()]));
        let (found, asked) = look_up_with(&hosts, "unknown.invalid");
        assert_eq!((found.is_err(), asked), (true, vec![]));
        let (found, asked) = look_up_with(&directory.path().join("missing"), "pinned.test");
        assert_eq!((found.is_err(), asked), (true, vec!["pinned.test.".to_owned()]));
    }

    #[tokio::test]
    async fn a_pinned_name_is_resolved_without_asking_anybody() {
        let directory = tempfile::tempdir().expect("a directory");
        let hosts = directory.path().join("hosts");
        std::fs::write(&hosts, "192.0.2.7 pinned.invalid\n").expect("written");
        let resolver = SystemResolver { hosts, ..SystemResolver::default() };
        let found = resolver.resolve("pinned.invalid").await.expect("found");
        assert_eq!(found, ["192.0.2.7".parse::<IpAddr>().expect("an address")]);
    }
}
