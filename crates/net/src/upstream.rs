//! The server's end of an HTTP connection: hyper, in the task of the guest's connection.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::allowance::Allowance;
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
    link: Link,
    /// What the server may send beside bodies.
    allowance: Arc<Allowance>,
    /// What HTTP/2 does beside that.
    beside: Beside,
}

enum Link {
    /// Between two requests of HTTP/1.1: the wire alone, since hyper's buffers are larger than all the rest of a connection.
    Resting(Box<dyn Wire>),
    Awake(Sender, Driver),
    Ended,
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
pub(crate) enum Driver {
    /// HTTP/1.1 that can be put to rest, and whether all that hyper has to write is written.
    One(Box<http1::Connection<TokioIo<Tracked>, GuestBody>>, Arc<AtomicBool>),
    /// HTTP/2, or HTTP/1.1 that may become something else.
    Other(BoxFuture<'static, ()>),
    Ended,
}

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

    /// Moves what can be moved; true at the end.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let ended = match self {
            Driver::One(connection, _) => Pin::new(connection).poll(context).map(log).is_ready(),
            Driver::Other(driver) => driver.as_mut().poll(context).is_ready(),
            Driver::Ended => true,
        };
        if ended {
            *self = Driver::Ended;
        }
        ended
    }
}

impl Upstream {
    pub(crate) async fn new(wire: Box<dyn Wire>, http2: bool) -> hyper::Result<Upstream> {
        let (beside, allowance) = (Beside::default(), Arc::new(Allowance::new()));
        if !http2 {
            return Ok(Upstream { link: Link::Resting(wire), allowance, beside });
        }
        let wire = Tracked::new(wire, &allowance);
        let mut builder = http2::Builder::new(beside.clone());
        builder
            .max_header_list_size(HEAD_BYTES as u32)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(1 << 20);
        let (sender, connection) = builder.handshake(TokioIo::new(wire)).await?;
        let driver = Driver::Other(Box::pin(async move { log(connection.await) }));
        Ok(Upstream { link: Link::Awake(Sender::Two(sender), driver), allowance, beside })
    }

    pub(crate) fn allowance(&self) -> Arc<Allowance> {
        self.allowance.clone()
    }

    pub(crate) fn is_http2(&self) -> bool {
        matches!(self.link, Link::Awake(Sender::Two(_), _))
    }

    /// Waits until a request can be sent, one that may upgrade the connection if `upgrades`. False: the server has closed it.
    pub(crate) async fn ready(&mut self, upgrades: bool) -> bool {
        if matches!(self.link, Link::Resting(_))
            && let Link::Resting(wire) = std::mem::replace(&mut self.link, Link::Ended)
        {
            match wake(wire, upgrades, &self.allowance).await {
                Ok((sender, driver)) => self.link = Link::Awake(Sender::One(sender), driver),
                Err(error) => log(Err(error)),
            }
        }
        let Link::Awake(sender, driver) = &mut self.link else { return false };
        let ready = async {
            match sender {
                Sender::One(sender) => sender.ready().await.is_ok(),
                Sender::Two(sender) => sender.ready().await.is_ok(),
            }
        };
        driver.drive(ready).await
    }

    /// Sends a request; only when it is ready. The future needs the [`Driver`] to get anywhere.
    pub(crate) fn send(
        &mut self,
        request: Request<GuestBody>,
    ) -> Option<(BoxFuture<'static, hyper::Result<Response<Incoming>>>, &mut Driver)> {
        let Link::Awake(sender, driver) = &mut self.link else { return None };
        self.allowance.renew();
        let response: BoxFuture<'static, _> = match sender {
            Sender::One(sender) => Box::pin(sender.send_request(request)),
            Sender::Two(sender) => Box::pin(sender.send_request(request)),
        };
        Some((response, driver))
    }

    /// Frees what only a request needs, if nothing is on its way.
    pub(crate) async fn rest(&mut self) {
        let Link::Awake(Sender::One(sender), driver) = &mut self.link else { return };
        // hyper may have to notice first that the response is complete.
        poll_fn(|context| Poll::Ready(driver.poll(context))).await;
        let rests = match driver {
            Driver::One(_, written) => sender.is_ready() && written.load(Ordering::Relaxed),
            Driver::Other(_) => false,
            Driver::Ended => true,
        };
        if rests
            && let Link::Awake(_, Driver::One(connection, _)) = std::mem::replace(&mut self.link, Link::Ended)
        {
            let parts = connection.into_parts();
            // What a server says unasked is no answer to anything.
            if parts.read_buf.is_empty() {
                self.link = Link::Resting(parts.io.into_inner().wire);
            }
        }
    }

    /// Waits for the end of the connection, between requests.
    pub(crate) async fn ended(&mut self) {
        poll_fn(|context| match &mut self.link {
            Link::Resting(wire) => {
                let mut byte = [0];
                // Whatever comes now ends it: a close, an error, or something that nobody asked for.
                Pin::new(wire).poll_read(context, &mut ReadBuf::new(&mut byte)).map(drop)
            }
            Link::Awake(_, driver) => match driver.poll(context) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            },
            Link::Ended => Poll::Ready(()),
        })
        .await
    }
}

/// Lets hyper speak HTTP/1.1 on a wire.
async fn wake(
    wire: Box<dyn Wire>,
    upgrades: bool,
    allowance: &Arc<Allowance>,
) -> hyper::Result<(http1::SendRequest<GuestBody>, Driver)> {
    let wire = Tracked::new(wire, allowance);
    let written = wire.written.clone();
    let mut builder = http1::Builder::new();
    builder.title_case_headers(true).max_headers(FIELDS).max_header_size(HEAD_BYTES);
    let (sender, connection) = builder.handshake(TokioIo::new(wire)).await?;
    let driver = match upgrades {
        true => Driver::Other(Box::pin(async move { log(connection.with_upgrades().await) })),
        false => Driver::One(Box::new(connection), written),
    };
    Ok((sender, driver))
}

/// A wire that knows whether its writer has written everything (hyper flushes only then), and ends when its allowance does.
pub(crate) struct Tracked {
    wire: Box<dyn Wire>,
    written: Arc<AtomicBool>,
    allowance: Arc<Allowance>,
}

impl Tracked {
    fn new(wire: Box<dyn Wire>, allowance: &Arc<Allowance>) -> Tracked {
        Tracked { wire, written: Arc::new(AtomicBool::new(true)), allowance: allowance.clone() }
    }
}

impl AsyncRead for Tracked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(context, into))?;
        Poll::Ready(self.allowance.spend(into.filled().len() - before))
    }
}

impl AsyncWrite for Tracked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.store(false, Ordering::Relaxed);
        Pin::new(&mut self.wire).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.wire).poll_flush(context);
        self.written.store(flushed.is_ready(), Ordering::Relaxed);
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.written.store(false, Ordering::Relaxed);
        Pin::new(&mut self.wire).poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }
}

fn log(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to a server ended");
    }
}
