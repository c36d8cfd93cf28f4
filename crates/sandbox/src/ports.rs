//! Connections from the host to servers in the sandbox.

use wardian_kernel::HostStream;

use crate::error::Error;
use crate::sandbox::Sandbox;

impl Sandbox {
    /// Connects to a TCP port that a process of the sandbox listens at, like a client on its loopback network. The stream
    /// implements tokio's `AsyncRead` and `AsyncWrite`, and needs no runtime of a certain kind. Waits while the server has
    /// more connections to accept than it asked for. Fails with ECONNREFUSED if no process listens.
    pub async fn connect(&self, port: u16) -> Result<HostStream, Error> {
        let connected = self.live()?.connect(port).await;
        connected.map_err(|errno| Error::refused(errno, format!("port {port}").as_bytes()))
    }
}
