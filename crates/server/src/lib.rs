//! Sandboxes for clients in any language: JSON-RPC 2.0, one message per line, over standard streams, a Unix socket or a
//! WebSocket. In addition, HTTP: sandboxes by REST and for E2B's SDKs, monitoring, and native tools.
//!
//! ```text
//!  line ─► Lines ─► rpc::parse ─► methods::prepare ─► a task ──► the library
//!                       │             │ in the order of the lines:    │
//!                       │             └ params, whose turn it is      │
//!                       └ responses to the server's calls (callback)  ▼
//!  line ◄──────────────────────── Outbox ◄──────────── answer, output, cb_N
//! ```
//!
//! Params and turns are decided in the order of the lines; the work is done concurrently. This crate has no logic that
//! the library lacks. The protocol is in docs/protocol.md.
//!
//! ```
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, split};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! let server = wardian_server::Server::new(wardian_server::Options::default());
//! let (client, ours) = tokio::io::duplex(1024);
//! let (input, output) = split(ours);
//! let serving = tokio::spawn(async move { server.serve(input, output).await });
//!
//! let (answers, mut requests) = split(client);
//! requests.write_all(b"{\"id\":1,\"method\":\"create\"}\n").await?;
//! requests.write_all(b"{\"id\":2,\"method\":\"run\",\"params\":{\"command\":\"echo hi\"}}\n").await?;
//! let mut answers = BufReader::new(answers).lines();
//! assert!(answers.next_line().await?.unwrap().contains(r#""ok":true"#));
//! assert!(answers.next_line().await?.unwrap().contains(r#""stdout":"hi\n""#));
//!
//! requests.shutdown().await?;
//! serving.await?;
//! # Ok(()) }
//! ```

mod admission;
mod budget;
mod callback;
mod connection;
mod doors;
mod e2b;
mod entry;
mod hibernation;
mod http;
mod lane;
#[doc(hidden)]
pub mod line;
mod methods;
mod metrics;
mod outbox;
mod params;
mod processes;
mod quota;
mod rpc;
mod session;
mod socket;
mod states;
mod streams;
mod tenant;
mod trace;
mod turns;
mod watchers;
mod watching;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use wardian::HostRoots;

pub use admission::max_clients;
pub use http::{AccessLog, Http, HttpError, PortLimits, Tokens, TokensError};
pub use methods::result_object;
pub use socket::{Socket, SocketError};

use session::Shared;
use states::StateDirectory;
use tenant::Tenant;
use turns::Turns;

/// A server's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory for `persistence.export` and `persistence.import`; without it they have no files.
    pub state_dir: Option<PathBuf>,
    /// How many bytes the files in that directory may have together.
    pub state_bytes: u64,
    /// Where sandboxes with names are saved; without it there are none.
    pub store: Option<wardian::Store>,
    /// After how long without a call a sandbox with a name leaves memory, until its next call; `None` unless its client says so.
    pub idle: Option<Duration>,
    /// How much memory sandboxes with names may take together, files included; beyond that the longest unused leave memory. No
    /// limit by default.
    pub awake_bytes: Option<u64>,
    /// Where everything is recorded that sandboxes do; nowhere by default.
    pub audit: Option<wardian::AuditLog>,
    /// The maximum number of sandboxes of all clients together, without those that are asleep.
    pub max_sandboxes: usize,
    /// What clients of a socket may grant. The only client of [`Server::serve`] may grant everything.
    pub network: ClientNetwork,
    /// From where clients may mount directories of this machine; from nowhere by default.
    pub mounts: MountRoots,
    /// The maximum number of clients of a socket at once; further ones are turned away. By default 1,024, or
    /// [`max_clients`] if that is less.
    pub max_clients: usize,
}

/// From where clients may mount directories of this machine.
#[derive(Clone, Debug, Default)]
pub struct MountRoots {
    /// The clients of one owner: the only client of [`Server::serve`], those of a socket, and those of HTTP that share a token or need
    /// none.
    pub of_others: HostRoots,
    /// Those who show one of several tokens.
    pub of_tenants: HostRoots,
}

/// How much of the network clients may grant their sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientNetwork {
    /// Nothing.
    Off,
    /// Public hosts.
    Public,
    /// Private networks as well, and files and proxies of this machine.
    Full,
}

/// Why a server cannot work with its options.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The state directory does not exist, or cannot be written.
    #[error("cannot keep states in {0}: {1}")]
    StateDir(PathBuf, std::io::Error),
    /// There are not enough descriptors for so many clients.
    #[error("{0} clients are too many: the limit of open files (ulimit -n) allows at most {1}")]
    MaxClients(usize, usize),
    /// Nobody could connect, or nobody create anything.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// What the server keeps for all clients could be read or destroyed through a mount.
    #[error("clients could mount what the server keeps in {0}: keep it elsewhere")]
    Mountable(PathBuf),
}

impl Options {
    /// Checks that a server can work with them.
    pub fn check(&self) -> Result<(), OptionsError> {
        for (name, number) in [("max-clients", self.max_clients), ("max-sandboxes", self.max_sandboxes)] {
            if number == 0 {
                return Err(OptionsError::Zero(name));
            }
        }
        if self.max_clients > max_clients() {
            return Err(OptionsError::MaxClients(self.max_clients, max_clients()));
        }
        let kept = [self.state_dir.as_deref(), self.store.as_ref().map(wardian::Store::directory)];
        for kept in kept.into_iter().flatten() {
            if self.mounts.of_others.touch(kept) || self.mounts.of_tenants.touch(kept) {
                return Err(OptionsError::Mountable(kept.to_owned()));
            }
        }
        match &self.state_dir {
            None => Ok(()),
            Some(dir) => match tempfile::NamedTempFile::new_in(dir) {
                Ok(_) => Ok(()),
                // Without the name of the file that was tried.
                Err(error) => Err(OptionsError::StateDir(
                    dir.clone(),
                    match error.kind() {
                        std::io::ErrorKind::NotFound => std::io::Error::other("the directory does not exist"),
                        kind => kind.into(),
                    },
                )),
            },
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            state_dir: None,
            state_bytes: 16 << 30,
            store: None,
            idle: None,
            awake_bytes: None,
            audit: None,
            max_sandboxes: 4096,
            network: ClientNetwork::Public,
            mounts: MountRoots::default(),
            max_clients: admission::clients(),
        }
    }
}

/// A server. Clones share its limits.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

impl Server {
    /// Creates a server without clients.
    pub fn new(options: Options) -> Server {
        let max_sandboxes = options.max_sandboxes.min(Semaphore::MAX_PERMITS);
        Server(Arc::new(Shared {
            states: options.state_dir.map(|path| Arc::new(StateDirectory::new(path, options.state_bytes))),
            store: options.store,
            audit: options.audit,
            room: Arc::new(Semaphore::new(max_sandboxes)),
            max_sandboxes,
            network: options.network,
            mounts: options.mounts,
            max_clients: options.max_clients.min(Semaphore::MAX_PERMITS),
            metrics: Arc::default(),
            clients: session::Clients::default(),
            answers: budget::Shared::for_answers(),
            requests: budget::Shared::for_requests(),
            heavy: Turns::of_server(),
            aside: Turns::of_server(),
            waiting_kib: Arc::new(Semaphore::new(session::WAITING_KIB)),
            streams: Arc::new(Semaphore::new(streams::SHARED)),
            processes: Arc::new(Semaphore::new(processes::SHARED)),
            watchers: Arc::new(Semaphore::new(watchers::SHARED)),
            doors: doors::Doors::default(),
            dormitory: hibernation::Dormitory::new(options.idle, options.awake_bytes),
        }))
    }

    /// Serves one client until its input ends, it stops reading for good, or it sends `kill`. All its sandboxes are then
    /// destroyed. The states in the state directory are its own.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        self.serve_until(input, output, std::future::pending()).await;
    }

    /// Does the same, but also until `end`: what runs then is answered as cancelled.
    pub async fn serve_until(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        end: impl Future<Output = ()>,
    ) {
        connection::serve(self.0.clone(), Tenant::Owner, input, output, end).await;
    }
}

/// An entry point for fuzzers: handles one line, as if sent by a client that has not created anything.
#[doc(hidden)]
pub fn try_line(line: &[u8]) -> Option<Vec<u8>> {
    connection::answer_without_sandbox(Server::new(Options::default()).0, line)
}
