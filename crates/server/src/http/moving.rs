//! A stream that remembers when something last moved.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// When something last moved.
pub(super) struct Moved {
    read: Mutex<Instant>,
    written: Mutex<Instant>,
}

impl Default for Moved {
    fn default() -> Moved {
        Moved { read: Mutex::new(Instant::now()), written: Mutex::new(Instant::now()) }
    }
}

impl Moved {
    /// Waits until nothing has moved for so long.
    pub(super) async fn nothing_for(&self, long: Duration) {
        wait(long, || (*self.read.lock()).max(*self.written.lock())).await;
    }

    /// Waits until nothing was written for so long, whatever was read.
    pub(super) async fn nothing_written_for(&self, long: Duration) {
        wait(long, || *self.written.lock()).await;
    }
}

async fn wait(long: Duration, last: impl Fn() -> Instant) {
    loop {
        let until = last() + long;
        if until <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(until).await;
    }
}

pub(super) struct Moving<S> {
    stream: S,
    moved: Arc<Moved>,
}

impl<S> Moving<S> {
    pub(super) fn new(stream: S, moved: Arc<Moved>) -> Moving<S> {
        Moving { stream, moved }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Moving<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if polled.is_ready() {
            *self.moved.read.lock() = Instant::now();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Moving<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, data);
        if polled.is_ready() {
            *self.moved.written.lock() = Instant::now();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
