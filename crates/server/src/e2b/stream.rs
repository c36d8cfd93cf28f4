//! A response whose body comes piece by piece from a task, and what it holds until it is over.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// How many pieces may wait for a client that reads slowly.
const PIECES: usize = 4;

/// The task's side: sending fails once the client is gone.
pub(crate) type Pieces = mpsc::Sender<Bytes>;

struct Streamed<H> {
    pieces: mpsc::Receiver<Bytes>,
    _holds: H,
}

impl<H: Unpin> hyper::body::Body for Streamed<H> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Returns a body, and where its pieces are put. It `holds` something until the client has everything, or is gone.
pub(crate) fn streamed<H: Unpin + Send + 'static>(holds: H) -> (Pieces, Body) {
    let (sender, pieces) = mpsc::channel(PIECES);
    (sender, Body::new(Streamed { pieces, _holds: holds }))
}
