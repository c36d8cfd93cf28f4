//! Responses that come from the gateway itself: refusals, the embedder's answers, and those of a cassette.

use std::io;

use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::callback::Answer;
use crate::cassette::{Part, Replay, to_headers};
use crate::exchange::Log;
use crate::gateway::Inner;
use crate::guest::{Framed, end_of_body, flush, response_head, strip_hop_by_hop, write_data};
use crate::head::RequestHead;

/// What a guest waits for that sent `Expect: 100-continue`.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The header that names the field of the policy that refused a request.
pub(crate) const DENIED: &str = "x-wardian-denied";

/// A response.
pub(crate) struct Local {
    pub(crate) status: u16,
    headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Local {
    /// Says why a request was not served. `X-Wardian-Denied` names the field of the policy.
    pub(crate) fn refusal(status: u16, rule: &'static str, why: &str) -> Local {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(DENIED, HeaderValue::from_static(rule));
        Local { status, headers, body: format!("wardian: {why}\n").into() }
    }

    /// Writes it. `head_only`: the request was a HEAD.
    pub(crate) async fn write(
        mut self,
        writer: &mut (impl AsyncWrite + Unpin),
        keep: bool,
        head_only: bool,
    ) -> io::Result<()> {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_GATEWAY);
        let empty = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
        self.headers.remove(header::CONTENT_LENGTH);
        let framed = if empty { Framed::Empty } else { Framed::Length(self.body.len() as u64) };
        let reason = status.canonical_reason().unwrap_or("Unknown");
        let mut bytes = response_head(status, reason, &self.headers, framed, !keep);
        if !(head_only || empty) {
            bytes.extend_from_slice(&self.body);
        }
        writer.write_all(&bytes).await?;
        writer.flush().await
    }
}

impl From<Answer> for Local {
    fn from(answer: Answer) -> Local {
        let mut headers = to_headers(&answer.headers);
        strip_hop_by_hop(&mut headers);
        Local { status: answer.status, headers, body: answer.body }
    }
}

/// Writes a response from a cassette. Returns whether the connection can be used again.
pub(crate) async fn replay(
    replay: &mut Replay,
    head: &RequestHead,
    inner: &Inner,
    writer: &mut (impl AsyncWrite + Unpin),
    log: &mut Log,
) -> io::Result<bool> {
    let Part::Head(recorded) = replay.next()? else { return Err(changed()) };
    let status = StatusCode::from_u16(recorded.status).map_err(|_| changed())?;
    // What nobody has recorded: a file may have been edited.
    let plain = |byte: u8| byte == b'\t' || byte >= 0x20 && byte != 0x7f;
    if !(200..600).contains(&recorded.status) || !recorded.reason.bytes().all(plain) {
        return Err(changed());
    }
    log.status = Some(recorded.status);
    let mut headers = to_headers(&recorded.headers);
    strip_hop_by_hop(&mut headers);
    headers.remove(DENIED);
    let empty = head.method == http::Method::HEAD
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let framed = match length {
        _ if empty => Framed::Empty,
        Some(length) => Framed::Length(length),
        None if head.old => Framed::UntilEnd,
        None => Framed::Chunked,
    };
    if !empty {
        headers.remove(header::CONTENT_LENGTH);
    }
    let keep = head.keep_alive && !head.old;
    let mut before = response_head(status, &recorded.reason, &headers, framed, !keep);
    loop {
        match replay.next()? {
            Part::Head(_) => return Err(changed()),
            Part::Body(data) => {
                log.to_guest += data.len() as u64;
                let fits = match framed {
                    Framed::Empty => false,
                    Framed::Length(length) => log.to_guest <= length,
                    Framed::Chunked | Framed::UntilEnd => true,
                };
                if !fits {
                    return Err(changed());
                }
                if log.to_guest > inner.rules.policy.response_bytes {
                    return Err(io::Error::other("the response is larger than responseBytes"));
                }
                let taken = inner.limits.take(data.len(), || ()).await;
                taken.map_err(|_| io::Error::other("totalBytes is used up"))?;
                if framed == Framed::Length(log.to_guest) {
                    log.write().map_err(io::Error::other)?;
                }
                write_data(writer, &mut before, &data, framed).await?;
            }
            Part::End(trailers) => {
                if matches!(framed, Framed::Length(length) if length != log.to_guest) {
                    return Err(changed());
                }
                log.write().map_err(io::Error::other)?;
                end_of_body(&mut before, &trailers, framed);
                flush(writer, &mut before).await?;
                return Ok(keep);
            }
        }
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the cassette has something that was not recorded")
}
