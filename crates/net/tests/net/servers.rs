//! Servers on this machine: HTTP/1.1 and HTTP/2 by hyper, with and without TLS, and plain sockets for those that misbehave.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a server has seen: request lines and paths.
pub type Seen = Arc<Mutex<Vec<String>>>;

/// A server that is gone when this is.
pub struct Server {
    pub port: u16,
    pub seen: Seen,
    open: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves every connection with a function.
pub async fn raw<F, T>(serve: F) -> Server
where
    F: Fn(TcpStream) -> T + Send + Sync + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let open = Arc::new(AtomicUsize::new(0));
    let count = open.clone();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let (served, count) = (serve(stream), count.clone());
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                served.await;
                count.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    Server { port, seen: Seen::default(), open, task }
}

/// Reads a request's head, writes bytes, and closes.
pub async fn canned(answer: &'static [u8]) -> Server {
    raw(move |mut stream| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let _ = stream.write_all(answer).await;
    })
    .await
}

pub async fn http() -> Server {
    let seen = Seen::default();
    let log = seen.clone();
    let mut server = raw(move |stream| one(stream, log.clone())).await;
    server.seen = seen;
    server
}

async fn one(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, seen: Seen) {
    let service = service_fn(move |request| answer(request, seen.clone()));
    let mut builder = hyper::server::conn::http1::Builder::new();
    let _ = builder.half_close(true).serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

async fn two(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, seen: Seen) {
    let service = service_fn(move |request| answer(request, seen.clone()));
    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// An authority of the test's own.
pub struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority { pem: certificate.pem(), issuer: Issuer::new(params, key) }
    }

    /// A file with its certificate.
    pub fn file(&self) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &self.pem).expect("written");
        file
    }

    fn config(&self, names: &[&str], alpn: &[&str]) -> rustls::ServerConfig {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("a key");
        let certificate = CertificateParams::new(names)
            .expect("params")
            .signed_by(&key, &self.issuer)
            .expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let config = builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key);
        let mut config = config.expect("a configuration");
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    /// Takes connections by TLS, with a certificate for these names.
    pub fn acceptor(&self, names: &[&str], alpn: &[&str]) -> TlsAcceptor {
        TlsAcceptor::from(Arc::new(self.config(names, alpn)))
    }

    /// HTTPS with a certificate for these names.
    pub async fn https(&self, names: &[&str], alpn: &[&str]) -> Server {
        let acceptor = self.acceptor(names, alpn);
        let seen = Seen::default();
        let log = seen.clone();
        let mut server = raw(move |stream| {
            let (acceptor, log) = (acceptor.clone(), log.clone());
            async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                match stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    true => two(stream, log).await,
                    false => one(stream, log).await,
                }
            }
        })
        .await;
        server.seen = seen;
        server
    }
}

/// A body in parts, of a length that is announced or not.
struct Parts {
    parts: std::collections::VecDeque<Frame<Bytes>>,
    length: Option<u64>,
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.parts.pop_front().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or(SizeHint::new(), SizeHint::with_exact)
    }
}

fn whole(bytes: impl Into<Bytes>) -> Parts {
    let bytes = bytes.into();
    let length = Some(bytes.len() as u64);
    Parts { parts: [Frame::data(bytes)].into(), length }
}

/// `/echo` returns the request as text, `/bytes/N` so many, `/chunks/N` so many of unknown length, `/trailers` some trailers,
/// `/status/N`, `/ws` a stream that echoes in upper case, `/masked` what is in the header X-Say.
async fn answer(mut request: Request<Incoming>, seen: Seen) -> Result<Response<Parts>, Infallible> {
    let path = request.uri().path().to_owned();
    let target = request.uri().path_and_query().map_or(String::new(), ToString::to_string);
    seen.lock().push(format!("{} {target} {:?}", request.method(), request.version()));
    let (_, rest) = path[1..].split_once('/').unwrap_or_default();
    let number = rest.parse::<usize>().unwrap_or(0);
    Ok(match path.split('/').nth(1).unwrap_or_default() {
        "bytes" => Response::new(whole(vec![b'x'; number])),
        "chunks" => {
            let parts = (0..number.div_ceil(10_000))
                .map(|at| Frame::data(vec![b'y'; 10_000.min(number - at * 10_000)].into()));
            Response::new(Parts { parts: parts.collect(), length: None })
        }
        "trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "42".parse().expect("a value"));
            let parts = [Frame::data(Bytes::from("data")), Frame::trailers(trailers)].into();
            let mut response = Response::new(Parts { parts, length: None });
            response.headers_mut().insert("trailer", "x-sum".parse().expect("a value"));
            response
        }
        "status" => {
            let mut response = Response::new(whole(""));
            *response.status_mut() = (number as u16).try_into().expect("a status");
            response.headers_mut().insert("location", "http://169.254.169.254/".parse().expect("a value"));
            response
        }
        "never" => std::future::pending().await,
        "ws" => {
            let upgrade = hyper::upgrade::on(&mut request);
            tokio::spawn(async move {
                let Ok(upgraded) = upgrade.await else { return };
                let mut stream = TokioIo::new(upgraded);
                let mut buffer = [0; 1000];
                while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                    buffer[..length].make_ascii_uppercase();
                    let _ = stream.write_all(&buffer[..length]).await;
                }
            });
            let mut response = Response::new(whole(""));
            *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("connection", "upgrade".parse().expect("a value"));
            response.headers_mut().insert("upgrade", "websocket".parse().expect("a value"));
            response
        }
        _ => Response::new(whole(echo(request).await)),
    })
}

async fn echo(request: Request<Incoming>) -> String {
    let (parts, body) = request.into_parts();
    let mut text = format!("{} {} {:?}\n", parts.method, parts.uri, parts.version);
    for (name, value) in &parts.headers {
        text += &format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes()));
    }
    let Ok(body) = body.collect().await else { return text + "broken" };
    let trailers = body.trailers().cloned().unwrap_or_default();
    text += &format!("\n{}", String::from_utf8_lossy(&body.to_bytes()));
    for (name, value) in &trailers {
        text += &format!("\ntrailer {name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    text
}
