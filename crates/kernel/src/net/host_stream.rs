//! The host's end of a connection with a socket in the sandbox.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::channel::Channel;

/// A byte stream between the host and a socket of a sandbox. Dropping it closes both directions.
pub struct HostStream {
    incoming: Arc<Channel>,
    outgoing: Arc<Channel>,
    changed: Arc<Notify>,
    reading: Option<Pin<Box<OwnedNotified>>>,
    writing: Option<Pin<Box<OwnedNotified>>>,
}

impl std::fmt::Debug for HostStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostStream").finish_non_exhaustive()
    }
}

impl HostStream {
    pub(super) fn new(incoming: Arc<Channel>, outgoing: Arc<Channel>, changed: Arc<Notify>) -> HostStream {
        HostStream { incoming, outgoing, changed, reading: None, writing: None }
    }

    /// Waits until the guest can receive nothing any more: it has closed its socket, or ended that direction. What it has
    /// sent may still be there to be read.
    pub fn deserted(&self) -> impl Future<Output = ()> + Send + 'static {
        let (outgoing, changed) = (self.outgoing.clone(), self.changed.clone());
        async move {
            loop {
                let mut change = std::pin::pin!(changed.notified());
                change.as_mut().enable();
                if outgoing.is_deaf() {
                    return;
                }
                change.await;
            }
        }
    }

    /// Ends it so that the guest reads ECONNRESET after what it was sent, instead of the end.
    pub fn reset(self) {
        self.outgoing.reset();
    }
}

/// Tries until there is an answer, and is woken by the next change.
fn attempt<T>(
    waiting: &mut Option<Pin<Box<OwnedNotified>>>,
    changed: &Arc<Notify>,
    cx: &mut Context<'_>,
    mut attempt: impl FnMut() -> Option<T>,
) -> Poll<T> {
    loop {
        let next = waiting.get_or_insert_with(|| Box::pin(changed.clone().notified_owned()));
        next.as_mut().enable();
        if let Some(done) = attempt() {
            *waiting = None;
            return Poll::Ready(done);
        }
        ready!(next.as_mut().poll(cx));
        *waiting = None;
    }
}

fn failed(errno: wardian_vfs::Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.raw())
}

impl AsyncRead for HostStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let HostStream { incoming, changed, reading, .. } = &mut *self;
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let received = ready!(attempt(reading, changed, cx, || {
            incoming.try_receive(buf.initialize_unfilled(), false)
        }));
        // Descriptors mean nothing to the host: they are closed.
        let (count, _) = received.map_err(failed)?;
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HostStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let HostStream { outgoing, changed, writing, .. } = &mut *self;
        let sent = ready!(attempt(writing, changed, cx, || match outgoing.try_send(data, &mut None) {
            Ok(0) if !data.is_empty() => None,
            sent => Some(sent),
        }));
        Poll::Ready(sent.map_err(failed))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        let unread = self.incoming.stop_receiving(true);
        match unread {
            true => self.outgoing.reset(),
            false => self.outgoing.end(),
        }
    }
}
