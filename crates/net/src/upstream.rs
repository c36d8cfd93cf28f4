//! The server's end of an HTTP connection: hyper, in the task of the guest's connection.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::head::{FIELDS, Framing, HEAD_BYTES};
use crate::resolve::BoxFuture;

/// A stream to a server, plain or TLS.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Where the parts of a body are put.
pub(crate) type BodySender = mpsc::Sender<Result<Frame<Bytes>, std::io::Error>>;

/// The body of a request on its way.
pub(crate) struct GuestBody {
    parts: Option<mpsc::Receiver<Result<Frame<Bytes>, std::io::Error>>>,
    length: Option<u64>,
}

impl GuestBody {
    /// Creates a body, and the end into which it is put, if there is anything to put.
    pub(crate) fn new(framing: Framing) -> (GuestBody, Option<BodySender>) {
        let length = match framing {
            Framing::None | Framing::Length(0) => return (GuestBody { parts: None, length: Some(0) }, None),
            Framing::Length(length) => Some(length),
            Framing::Chunked => None,
        };
        let (sender, parts) = mpsc::channel(1);
        (GuestBody { parts: Some(parts), length }, Some(sender))
    }
}

impl Body for GuestBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match &mut self.parts {
            Some(parts) => parts.poll_recv(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.parts.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or(SizeHint::new(), SizeHint::with_exact)
    }
}

/// A connection to a server.
pub(crate) struct Upstream {
    sender: Sender,
    /// Reads and writes; `None` when the connection is at its end.
    driver: Driver,
    /// What HTTP/2 does beside that.
    beside: Beside,
}

/// Tasks of a connection, which must not outlive it: the one that reads and writes would wait for the server to let it go.
#[derive(Clone, Default)]
struct Beside(Arc<Mutex<JoinSet<()>>>);

impl<F> hyper::rt::Executor<F> for Beside
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, work: F) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { drop(work.await) });
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // The tasks have this set themselves, so it would not go by itself.
        self.beside.0.lock().abort_all();
    }
}

enum Sender {
    One(http1::SendRequest<GuestBody>),
    Two(http2::SendRequest<GuestBody>),
}

/// What moves the bytes of a connection while something else is waited for.
pub(crate) struct Driver(Option<BoxFuture<'static, ()>>);

impl Driver {
    /// Waits for `other` and moves bytes meanwhile.
    pub(crate) async fn drive<F: Future>(&mut self, other: F) -> F::Output {
        let mut other = pin!(other);
        poll_fn(|context| {
            if let Poll::Ready(output) = other.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            self.poll(context);
            Poll::Pending
        })
        .await
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&mut self) {
        poll_fn(|context| if self.poll(context) { Poll::Ready(()) } else { Poll::Pending }).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(driver) = &mut self.0
            && driver.as_mut().poll(context).is_ready()
        {
            self.0 = None;
        }
        self.0.is_none()
    }
}

impl Upstream {
    pub(crate) async fn new(wire: Box<dyn Wire>, http2: bool) -> hyper::Result<Upstream> {
        let (io, beside) = (TokioIo::new(wire), Beside::default());
        if http2 {
            let mut builder = http2::Builder::new(beside.clone());
            builder
                .max_header_list_size(HEAD_BYTES as u32)
                .initial_stream_window_size(1 << 20)
                .initial_connection_window_size(1 << 20);
            let (sender, connection) = builder.handshake(io).await?;
            let driver: BoxFuture<'static, ()> = Box::pin(async move { log(connection.await) });
            return Ok(Upstream { sender: Sender::Two(sender), driver: Driver(Some(driver)), beside });
        }
        let mut builder = http1::Builder::new();
        builder.title_case_headers(true).max_headers(FIELDS).max_header_size(HEAD_BYTES);
        let (sender, connection) = builder.handshake(io).await?;
        let driver: BoxFuture<'static, ()> = Box::pin(async move { log(connection.with_upgrades().await) });
        Ok(Upstream { sender: Sender::One(sender), driver: Driver(Some(driver)), beside })
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Two(_))
    }

    pub(crate) fn driver(&mut self) -> &mut Driver {
        &mut self.driver
    }

    /// Waits until a request can be sent. False: the server has closed the connection.
    pub(crate) async fn ready(&mut self) -> bool {
        let Upstream { sender, driver, .. } = self;
        let ready = async {
            match sender {
                Sender::One(sender) => sender.ready().await.is_ok(),
                Sender::Two(sender) => sender.ready().await.is_ok(),
            }
        };
        driver.drive(ready).await
    }

    /// Sends a request. The future needs the [`Driver`] to get anywhere.
    pub(crate) fn send(
        &mut self,
        request: Request<GuestBody>,
    ) -> BoxFuture<'static, hyper::Result<Response<Incoming>>> {
        match &mut self.sender {
            Sender::One(sender) => Box::pin(sender.send_request(request)),
            Sender::Two(sender) => Box::pin(sender.send_request(request)),
        }
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to a server ended");
    }
}
