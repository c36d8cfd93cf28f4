//! The body of a guest's response, which never looks complete when it was cut off.
//!
//! Where the connection to the guest is dropped in the middle, a body simply ends: for the client that would be a complete one,
//! if its length was not announced. So its end is an error unless the guest itself ended it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::entry::Entry;

/// Whether a connection was ended by this server, or with its sandbox.
#[derive(Clone)]
pub(super) struct Cut {
    by_us: Arc<AtomicBool>,
    entry: Arc<Entry>,
}

impl Cut {
    pub(super) fn not_yet(entry: Arc<Entry>) -> Cut {
        Cut { by_us: Arc::default(), entry }
    }

    /// To be called before the connection is dropped.
    pub(super) fn now(&self) {
        self.by_us.store(true, Ordering::SeqCst);
    }

    fn happened(&self) -> bool {
        self.by_us.load(Ordering::SeqCst) || self.entry.has_ended()
    }
}

pub(super) struct Whole {
    pub(super) body: Incoming,
    pub(super) cut: Cut,
}

impl Body for Whole {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            None if self.cut.happened() => Poll::Ready(Some(Err("the response was cut off".into()))),
            frame => Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
