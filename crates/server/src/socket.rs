//! A Unix socket with many clients, each with its own sandboxes.

use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use rustix::fs::Mode;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::admission::Admission;
use crate::tenant::Tenant;
use crate::{Server, connection};

/// Why the socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another process already listens there.
    #[error("{0} is in use by another server")]
    InUse(PathBuf),
    /// Something there is not a socket, or the socket cannot be created.
    #[error("cannot listen at {path}: {error}")]
    Io {
        /// Its path.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// How long clients may take to be told that it is over.
const FAREWELL: Duration = Duration::from_secs(5);

/// A socket that is open, before anybody is served.
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Opens a socket at `path`, for this user only.
    pub fn bind(path: &Path) -> Result<Socket, SocketError> {
        Ok(Socket { listener: listen(path)?, path: path.to_owned() })
    }
}

impl Server {
    /// Listens at `path`, for this user only, until `end`; then answers what runs as cancelled, disconnects all clients and
    /// removes the socket.
    pub async fn serve_socket(&self, path: &Path, end: impl Future<Output = ()>) -> Result<(), SocketError> {
        self.serve_clients(Socket::bind(path)?, end).await;
        Ok(())
    }

    /// Does the same on a socket that was opened before.
    pub async fn serve_clients(&self, socket: Socket, end: impl Future<Output = ()>) {
        let Socket { listener, path } = socket;
        let mut end = pin!(end);
        let mut clients = JoinSet::new();
        let stop = watch::Sender::new(false);
        let admission = Admission::new(self.0.max_clients, self.0.metrics.clone());
        loop {
            let client = tokio::select! {
                () = &mut end => break,
                client = admission.next(|| listener.accept()) => client,
            };
            let (shared, mut stopping) = (self.0.clone(), stop.subscribe());
            clients.spawn(async move {
                let (stream, _place) = client;
                let (input, output) = stream.into_split();
                let stopped = async move { drop(stopping.wait_for(|stopping| *stopping).await) };
                connection::serve(shared, Tenant::Nobody, input, output, stopped).await;
            });
            while clients.try_join_next().is_some() {}
        }
        // Nobody can knock any more.
        let _ = std::fs::remove_file(path);
        drop(listener);
        stop.send_replace(true);
        let farewell = async { while clients.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        // Dropping a client's task ends its sandboxes.
        clients.shutdown().await;
    }
}

/// Creates a socket that only this user can ever open.
fn listen(path: &Path) -> Result<UnixListener, SocketError> {
    let failed = |error| SocketError::Io { path: path.to_owned(), error };
    remove_left_over(path)?;
    // Not only afterwards: between the two somebody else could get in.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener.map_err(failed)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Removes the socket of a server that is gone; never anything else.
fn remove_left_over(path: &Path) -> Result<(), SocketError> {
    let failed = |error| SocketError::Io { path: path.to_owned(), error };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(failed(io::Error::new(ErrorKind::AlreadyExists, "something else is there")));
        }
        Ok(_) => {}
    }
    match BlockingStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        _ => Err(SocketError::InUse(path.to_owned())),
    }
}
