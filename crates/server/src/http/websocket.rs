//! `/rpc`: the protocol over a WebSocket. Each text message is one line, in both directions; everything else is as for a client of
//! the socket.
//!
//! ```text
//!  frames ─► unmasked as they arrive ─► lines (their length and memory are limited there) ─► connection::serve
//!         ◄─ a frame for each piece of a line ◄────────────────────────────────────────────┘
//! ```
//! Nothing is collected here: a message that never ends is a line that never ends.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, split};
use tokio::sync::mpsc;

use super::connections::Seat;
use super::frames::{Decoder, Event, header_of};
use super::guard::Caller;
use super::{Site, forward, refusal};
use crate::connection;
use crate::tenant::Tenant;

/// What a server adds to a client's key to show that it understood.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// How much is read, and sent, at once.
const PIECE: usize = 16 << 10;
/// How many answers to pings may wait; a client that sends more gets no more.
const PONGS: usize = 4;
/// How long a client may take to read the last of what it was sent.
const FAREWELL: Duration = Duration::from_secs(5);

/// Opens a connection.
pub(super) async fn rpc(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Extension(caller): Extension<Caller>,
    mut request: Request,
) -> Response {
    let accept = match accept(request.method(), request.headers()) {
        Ok(accept) => accept,
        Err(message) => {
            let mut response = refusal(StatusCode::UPGRADE_REQUIRED, "UPGRADE_REQUIRED", message);
            response.headers_mut().insert(header::UPGRADE, header::HeaderValue::from_static("websocket"));
            return response;
        }
    };
    let (Some(place), Some(kept)) = (site.clients.take(caller.tenant()), seat.keep_owned()) else {
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_CONNECTIONS", "too many clients");
    };
    let upgrade = hyper::upgrade::on(&mut request);
    let mut stopping = site.stopped.subscribe();
    let shared = site.shared.clone();
    // With one token for all, nobody is known by it: as on the socket, a `stateToken` says who it is.
    let member = if caller.known.is_some() { caller.member() } else { Tenant::Nobody.into() };
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let stop = async move {
                tokio::select! {
                    () = async { drop(stopping.wait_for(|stopping| *stopping).await) } => {}
                    () = site.revoked(&caller) => {}
                }
            };
            serve(TokioIo::new(upgraded), |input, output| {
                connection::serve(shared, member, input, output, stop)
            })
            .await;
        }
        drop((place, kept));
    });
    let headers = [
        (header::CONNECTION, "Upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response()
}

/// Returns the answer to a client's key, if it asks for a WebSocket as it should.
fn accept(method: &Method, headers: &HeaderMap) -> Result<String, &'static str> {
    let field = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if *method != Method::GET || !forward::wants_websocket(headers) {
        return Err("this page is for WebSockets");
    }
    if field(header::SEC_WEBSOCKET_VERSION) != Some("13") {
        return Err("Sec-WebSocket-Version must be 13");
    }
    let key = field(header::SEC_WEBSOCKET_KEY).unwrap_or_default();
    if !STANDARD.decode(key).is_ok_and(|key| key.len() == 16) {
        return Err("Sec-WebSocket-Key must be 16 bytes in base64");
    }
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    Ok(STANDARD.encode(digest))
}

/// What is sent beside lines.
enum Control {
    Pong(Vec<u8>),
    Close(u16),
}

/// Lets `serve` serve lines, which travel as messages.
async fn serve<F: Future<Output = ()>>(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    serve: impl FnOnce(tokio::io::DuplexStream, tokio::io::DuplexStream) -> F,
) {
    let (reader, writer) = split(socket);
    let (lines_in, input) = duplex(PIECE);
    let (output, lines_out) = duplex(PIECE);
    let (controls, control) = mpsc::channel(PONGS);
    let served = serve(input, output);
    let reading = async {
        let code = read(reader, lines_in, &controls).await;
        // Its input has ended, so everything that waits is answered as cancelled; then it is over.
        let _ = controls.send(Control::Close(code)).await;
        std::future::pending::<()>().await;
    };
    let mut writing = pin!(write(writer, lines_out, control));
    let mut served = pin!(served);
    let is_served = {
        let reading = pin!(reading);
        tokio::select! {
            () = &mut served => true,
            _ = &mut writing => false,
            () = reading => false,
        }
    };
    // Nothing is read any more, so its input has ended.
    if is_served {
        // The last of what was written, if it is read.
        let _ = tokio::time::timeout(FAREWELL, writing).await;
    } else {
        // Nothing can be told any more, or nothing will be asked: it ends by that, and takes its sandboxes along.
        served.await;
    }
}

/// Passes messages on as lines; returns the code to close with.
async fn read(
    mut reader: impl AsyncRead + Unpin,
    mut lines: impl AsyncWrite + Unpin,
    controls: &mpsc::Sender<Control>,
) -> u16 {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; PIECE];
    loop {
        let count = match reader.read(&mut buffer).await {
            Ok(0) | Err(_) => return 1006,
            Ok(count) => count,
        };
        let mut piece = &mut buffer[..count];
        loop {
            let (event, rest) = match decoder.next(piece) {
                Ok(found) => found,
                Err(code) => return code,
            };
            let written = match event {
                Event::More => break,
                Event::Text(text) => lines.write_all(text).await,
                Event::End => lines.write_all(b"\n").await,
                Event::Ping(content) => {
                    // One that floods us with pings need not hear of each.
                    let _ = controls.try_send(Control::Pong(content));
                    Ok(())
                }
                Event::Close => return 1000,
            };
            if written.is_err() {
                return 1000;
            }
            piece = rest;
        }
    }
}

/// Sends lines as messages, a frame for each piece.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: impl AsyncRead + Unpin,
    mut controls: mpsc::Receiver<Control>,
) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    let mut in_message = false;
    loop {
        let count = tokio::select! {
            Some(control) = controls.recv() => match control {
                Control::Pong(content) => {
                    writer.write_all(&header_of(0x8a, content.len())).await?;
                    writer.write_all(&content).await?;
                    writer.flush().await?;
                    continue;
                }
                Control::Close(code) => return close(writer, code).await,
            },
            count = lines.read(&mut buffer) => count?,
        };
        if count == 0 {
            // If the lines ended because of what the client sent, that is the reason.
            let why = std::iter::from_fn(|| controls.try_recv().ok()).find_map(|control| match control {
                Control::Close(code) => Some(code),
                Control::Pong(_) => None,
            });
            return close(writer, why.unwrap_or(1001)).await;
        }
        for part in buffer[..count].split_inclusive(|&byte| byte == b'\n') {
            let (text, last) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            let opcode = if in_message { 0 } else { 1 };
            writer.write_all(&header_of(opcode | if last { 0x80 } else { 0 }, text.len())).await?;
            writer.write_all(text).await?;
            in_message = !last;
        }
        writer.flush().await?;
    }
}

/// Ends with this code; 1006 is never sent.
async fn close(mut writer: impl AsyncWrite + Unpin, code: u16) -> io::Result<()> {
    if code != 1006 {
        writer.write_all(&header_of(0x88, 2)).await?;
        writer.write_all(&code.to_be_bytes()).await?;
        writer.flush().await?;
    }
    writer.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_answered_as_in_the_standard() {
        let mut headers = HeaderMap::new();
        let fields = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (name, value) in fields {
            headers.insert(name, value.parse().expect("a value"));
        }
        // The example of RFC 6455.
        assert_eq!(accept(&Method::GET, &headers).as_deref(), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        headers.insert("sec-websocket-key", "c2hvcnQ=".parse().expect("a value"));
        assert!(accept(&Method::GET, &headers).is_err());
    }
}
