//! One connection of a guest: what its first bytes ask for, TLS if they do, and then HTTP or opaque bytes.

use std::sync::Arc;

use bytes::Buf;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::exchange::Http;
use crate::gateway::{ConnectError, Gateway, Permit};
use crate::guest::{Reader, Sending};
use crate::name::Host;
use crate::record::{HEADER, MAGIC, TlsAnswer, TlsErrorCode, TlsRequest, body_length};
use crate::relay::{Terms, relay};
use crate::rules::{Denied, Kind};
use crate::secrets::Secrets;
use crate::tls;
use crate::upstream::Wire;

/// An alert that ends a TLS handshake: what a guest is told that speaks TLS itself.
const HANDSHAKE_FAILURE: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// A connection that the policy allows.
pub struct Connection {
    pub(crate) gateway: Gateway,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) kind: Kind,
    /// The server; `None` in a replay.
    pub(crate) stream: Option<Result<TcpStream, ConnectError>>,
    /// What allowed it.
    pub(crate) rule: String,
    pub(crate) _permit: Permit,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Both sides were done.
    Closed,
    /// It was given up before that, and what the guest got may be incomplete: it should see a reset.
    Reset(String),
}

/// A server as the guest has it: over TLS or not.
struct Server {
    wire: Option<Result<Box<dyn Wire>, ConnectError>>,
    tls: bool,
    verified: bool,
    http2: bool,
}

type Guest<G> = (Reader<ReadHalf<G>>, WriteHalf<G>);

impl Connection {
    /// Returns the host, in the spelling that rules compare.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Serves the guest until both sides are done. Dropping the future closes everything at once.
    pub async fn serve(self, guest: impl AsyncRead + AsyncWrite + Send + Unpin) -> Ending {
        self.serve_while(guest, std::future::pending()).await
    }

    /// Does the same, but gives up once `deserted` says that the guest can receive nothing any more, and what it has sent is
    /// with the server: no response is waited for that nobody reads.
    pub async fn serve_while(
        self,
        guest: impl AsyncRead + AsyncWrite + Send + Unpin,
        deserted: impl Future<Output = ()> + Send,
    ) -> Ending {
        let sending = Arc::new(Sending::new());
        let given_up = async {
            deserted.await;
            sending.done().await;
        };
        tokio::select! {
            biased;
            ending = self.serve_guest(guest, sending.clone()) => ending,
            () = given_up => Ending::Reset("the guest has closed the connection".into()),
        }
    }

    async fn serve_guest(
        self,
        guest: impl AsyncRead + AsyncWrite + Send + Unpin,
        sending: Arc<Sending>,
    ) -> Ending {
        let (reader, writer) = tokio::io::split(guest);
        let mut guest = (Reader::new(reader), writer);
        match self.run(&mut guest, sending).await {
            Ok(()) => {
                let _ = guest.1.shutdown().await;
                Ending::Closed
            }
            // Not the end of what was sent.
            Err(why) => Ending::Reset(why),
        }
    }

    async fn run<G: AsyncRead + AsyncWrite + Send + Unpin>(
        mut self,
        guest: &mut Guest<G>,
        sending: Arc<Sending>,
    ) -> Result<(), String> {
        let inner = self.gateway.0.clone();
        let first = match self.first_byte(guest).await? {
            None => return Ok(()),
            Some(first) => first,
        };
        let server = match first {
            // On the heap, since it is much larger than what a connection needs later.
            First::Record => match Box::pin(self.shake_hands(guest)).await? {
                Some(server) => server,
                None => return Ok(()),
            },
            First::ClientHello if self.kind != Kind::Raw => {
                let why =
                    "TLS is the gateway's: ask for it with a control record, or have the host granted as raw";
                inner.denied(&Denied::new(&self.host, "rawHosts", why), Some(self.port));
                let _ = guest.1.write_all(&HANDSHAKE_FAILURE).await;
                return Err(why.to_owned());
            }
            _ => {
                let wire =
                    self.stream.take().map(|stream| stream.map(|stream| Box::new(stream) as Box<dyn Wire>));
                Server { wire, tls: false, verified: false, http2: false }
            }
        };
        if self.kind == Kind::Http {
            let Server { wire, tls, verified, http2 } = server;
            let http = Http::new(inner, self.host, self.port, self.rule, wire, tls, verified, http2, sending);
            return http.serve(&mut guest.0, &mut guest.1).await;
        }
        let Some(Ok(wire)) = server.wire else { return Err("not connected".into()) };
        // No host with secrets is reached this way, so there is nothing to mask.
        let none = Secrets::default();
        let terms = Terms { limits: &inner.limits, idle: inner.rules.idle_timeout(), sending: &sending };
        let moved = relay(&mut guest.0, &mut guest.1, wire, none.mask(&self.host), terms).await;
        match moved.error {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// Waits for the guest's first byte, or, on an opaque connection, for the server's. `None`: there is none.
    async fn first_byte<G: AsyncRead + AsyncWrite + Send + Unpin>(
        &mut self,
        guest: &mut Guest<G>,
    ) -> Result<Option<First>, String> {
        let idle = self.gateway.0.rules.idle_timeout();
        let opaque = self.kind != Kind::Http;
        let server = match (&self.stream, opaque) {
            (Some(Ok(stream)), true) => Some(stream),
            _ => None,
        };
        let speaks = async {
            match server {
                Some(stream) => drop(stream.readable().await),
                None => std::future::pending().await,
            }
        };
        let first = tokio::select! {
            bytes = guest.0.peek(1) => Some(bytes.map_err(|error| error.to_string())?.first().copied()),
            () = speaks => None,
            () = tokio::time::sleep(idle) => return Err("the guest sent nothing".into()),
        };
        Ok(match first {
            Some(Some(byte)) if byte == MAGIC[0] => match timeout(idle, is_record(&mut guest.0)).await {
                Ok(Ok(true)) => Some(First::Record),
                _ => Some(First::Other),
            },
            Some(Some(0x16)) => Some(First::ClientHello),
            Some(None) if !opaque => None,
            _ => Some(First::Other),
        })
    }

    /// Reads the guest's record and shakes hands with the server. `None`: the guest was told that it failed.
    async fn shake_hands<G: AsyncRead + AsyncWrite + Send + Unpin>(
        &mut self,
        guest: &mut Guest<G>,
    ) -> Result<Option<Server>, String> {
        let patience = self.gateway.0.rules.connect_timeout();
        let asked = timeout(patience, read_record(&mut guest.0))
            .await
            .map_err(|_| "the TLS record is not complete")?;
        let shaken = match asked.map_err(|error| error.to_string())? {
            Ok(asked) => match timeout(patience, self.tls(&asked)).await {
                Ok(shaken) => shaken,
                Err(_) => Err((TlsErrorCode::Handshake, "the handshake timed out".into())),
            },
            Err(why) => Err((TlsErrorCode::BadRequest, why.to_owned())),
        };
        let (server, answer) = match shaken {
            Ok((server, answer)) => (Some(server), answer),
            Err((code, message)) => {
                if code == TlsErrorCode::Denied {
                    self.gateway.0.denied(&Denied::new(&self.host, "tls", &message), Some(self.port));
                }
                (None, TlsAnswer::Error(code, message))
            }
        };
        guest.1.write_all(&answer.to_bytes()).await.map_err(|error| error.to_string())?;
        guest.1.flush().await.map_err(|error| error.to_string())?;
        Ok(server)
    }

    async fn tls(&mut self, asked: &TlsRequest) -> Result<(Server, TlsAnswer), (TlsErrorCode, String)> {
        let inner = &self.gateway.0;
        match Host::parse(&asked.server_name) {
            Ok(name) if name == self.host => {}
            Ok(_) => return Err((TlsErrorCode::Name, format!("the connection is to {}", self.host))),
            Err(error) => return Err((TlsErrorCode::BadRequest, error.to_string())),
        }
        if !asked.verify && !inner.rules.policy.allow_unverified_tls {
            return Err((TlsErrorCode::Denied, "the policy does not allow TLS without verification".into()));
        }
        let is_http = self.kind == Kind::Http;
        // The guest speaks HTTP/1.1 with the gateway, whatever the gateway speaks with the server.
        let spoken = asked.alpn.iter().any(|name| name == "http/1.1").then(|| "http/1.1".to_owned());
        if is_http && spoken.is_none() && !asked.alpn.is_empty() {
            return Err((TlsErrorCode::Handshake, "the gateway speaks http/1.1 alone".into()));
        }
        let alpn: Vec<Vec<u8>> = match is_http {
            true if inner.rules.policy.http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            true => vec![b"http/1.1".to_vec()],
            false => asked.alpn.iter().map(|name| name.as_bytes().to_vec()).collect(),
        };
        let stream = match self.stream.take() {
            Some(Ok(stream)) => stream,
            // A replay, or a host that only the callback may answer for.
            failed => {
                let cipher = "TLS_AES_256_GCM_SHA384".to_owned();
                let answer =
                    TlsAnswer::Ok { version: "TLSv1.3", cipher, alpn: spoken, certificates: Vec::new() };
                let wire = failed.map(|failed| failed.map(|stream| Box::new(stream) as Box<dyn Wire>));
                return Ok((Server { wire, tls: true, verified: asked.verify, http2: false }, answer));
            }
        };
        let shaken = inner.tls.connect(stream, &self.host, asked.verify, &alpn).await;
        let shaken = shaken
            .unwrap_or_else(|| Err((TlsErrorCode::Denied, "TLS without verification is not allowed".into())));
        let stream = shaken.map_err(|(code, why)| (code, inner.masked(&why)))?;
        let agreed =
            stream.get_ref().1.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
        let http2 = is_http && agreed.as_deref() == Some("h2");
        let answer = tls::describe(&stream, if is_http { spoken } else { agreed });
        Ok((Server { wire: Some(Ok(Box::new(stream))), tls: true, verified: asked.verify, http2 }, answer))
    }
}

enum First {
    Record,
    ClientHello,
    Other,
}

/// Tells whether a record begins. Other protocols start with a zero as well, and may wait for an answer after a few bytes.
async fn is_record<R: AsyncRead + Unpin>(guest: &mut Reader<R>) -> std::io::Result<bool> {
    while guest.buffer.len() < MAGIC.len() && MAGIC.starts_with(&guest.buffer) {
        let before = guest.buffer.len();
        if guest.peek(before + 1).await?.len() == before {
            return Ok(false);
        }
    }
    Ok(guest.buffer.starts_with(&MAGIC))
}

async fn read_record<R: AsyncRead + Unpin>(
    guest: &mut Reader<R>,
) -> std::io::Result<Result<TlsRequest, &'static str>> {
    let short = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    let header = guest.peek(HEADER).await?.first_chunk::<HEADER>().copied();
    let length = match body_length(&header.ok_or_else(short)?) {
        Ok(length) => length,
        Err(why) => return Ok(Err(why)),
    };
    if guest.peek(HEADER + length).await?.len() < HEADER + length {
        return Err(short());
    }
    guest.buffer.advance(HEADER);
    let body = guest.buffer.split_to(length);
    Ok(TlsRequest::parse(&body))
}
