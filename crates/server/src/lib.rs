//! Sandboxes for clients in any language: JSON-RPC 2.0, one message per line, over standard streams or a Unix socket. In
//! addition, HTTP endpoints for monitoring and for native tools.
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
mod http;
mod lane;
#[doc(hidden)]
pub mod line;
mod methods;
mod outbox;
mod params;
mod rpc;
mod session;
mod socket;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

pub use http::{Http, HttpError};
pub use methods::result_object;
pub use socket::SocketError;

use session::Shared;

/// A server's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory for `persistence.export` and `persistence.import`; without it they have no files.
    pub state_dir: Option<PathBuf>,
    /// The maximum number of named sandboxes and forks of all clients together.
    pub max_sandboxes: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { state_dir: None, max_sandboxes: 4096 }
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
            state_dir: options.state_dir,
            room: Arc::new(Semaphore::new(max_sandboxes)),
            max_sandboxes,
            answers: budget::Shared::new(),
            heavy: Arc::new(Semaphore::new(session::heavy_at_once())),
            waiting_kib: Arc::new(Semaphore::new(session::WAITING_KIB)),
        }))
    }

    /// Serves one client until its input ends, it stops reading for good, or it sends `kill`. All its sandboxes are then
    /// destroyed.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) {
        connection::serve(self.0.clone(), input, output).await;
    }
}

/// An entry point for fuzzers: handles one line, as if sent by a client that has not created anything.
#[doc(hidden)]
pub fn try_line(line: &[u8]) -> Option<Vec<u8>> {
    connection::answer_without_sandbox(Server::new(Options::default()).0, line)
}
