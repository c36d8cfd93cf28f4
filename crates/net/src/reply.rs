//! Moves a response from the server to the guest.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode, Version};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;
use sha2::Digest;
use tokio::io::AsyncWrite;

use crate::allowance::Allowance;
use crate::cassette::{Head, Recording, to_texts};
use crate::exchange::{Log, hex};
use crate::gateway::Inner;
use crate::guest::{Activity, Framed, end_of_body, flush, response_head, write_data};
use crate::head::RequestHead;
use crate::mask::Mask;
use crate::name::Host;
use crate::outgoing::response_headers;
use crate::pump::Taken;

/// A response on its way.
pub(crate) struct Reply<'a> {
    inner: &'a Inner,
    host: &'a Host,
    head: &'a RequestHead,
    activity: &'a Activity,
    allowance: &'a Allowance,
    url: &'a str,
    /// What the pump took of the request's body.
    taken: &'a Mutex<Taken>,
    log: &'a mut Log,
    /// Bytes of the body that the guest has, or has before the next piece.
    passed: u64,
    recording: Option<Recording>,
    trailers: HeaderMap,
}

/// What became of a response.
pub(crate) enum Replied {
    /// The guest has it.
    Done {
        /// Whether the connection can be used again.
        keep: bool,
    },
    /// The guest has the head, and opaque bytes follow.
    Upgrade(OnUpgrade),
}

/// Why a guest did not get a response.
pub(crate) enum Failure {
    /// It has got nothing yet: it can be told, with this status and rule.
    Before(u16, &'static str, String),
    /// It has got a part.
    After(String),
    /// A limit was hit in the middle.
    Limit(&'static str, String),
}

fn after(error: std::io::Error) -> Failure {
    Failure::After(error.to_string())
}

impl<'a> Reply<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        host: &'a Host,
        head: &'a RequestHead,
        activity: &'a Activity,
        allowance: &'a Allowance,
        url: &'a str,
        taken: &'a Mutex<Taken>,
        log: &'a mut Log,
    ) -> Reply<'a> {
        Reply {
            inner,
            host,
            head,
            activity,
            allowance,
            url,
            taken,
            log,
            passed: 0,
            recording: None,
            trailers: HeaderMap::new(),
        }
    }

    pub(crate) async fn run(
        &mut self,
        response: hyper::Result<Response<Incoming>>,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Replied, Failure> {
        let response = response.map_err(|error| Failure::Before(502, "upstream", describe(&error)))?;
        let status = response.status();
        self.log.status = Some(status.as_u16());
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return self.upgrade(response, writer).await;
        }
        let (parts, body) = response.into_parts();
        let most = self.inner.rules.policy.response_bytes;
        let length = body.size_hint().exact();
        let empty = self.head.method == Method::HEAD
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        if !empty && body.size_hint().lower() > most {
            return Err(Failure::Before(
                502,
                "responseBytes",
                "the response is larger than responseBytes".into(),
            ));
        }
        let framed = self.framed(empty, length);
        let closes = parts.version == Version::HTTP_10 || has_close(&parts.headers);
        let keep = self.head.keep_alive && !self.head.old && !closes;
        let mut headers = parts.headers;
        response_headers(&mut headers, &self.inner.rules.secrets);
        if !empty && length.is_none() {
            // A server that gave one as well as chunks: the chunks count, also for a cassette.
            headers.remove(header::CONTENT_LENGTH);
        }
        let reason = self.reason(status, &parts.extensions);
        self.record(status, &reason, &headers)?;
        // It has no body, and no length, whatever the server says.
        if !empty || status == StatusCode::NO_CONTENT {
            headers.remove(header::CONTENT_LENGTH);
        }
        let mut before = response_head(status, &reason, &headers, framed, !keep);
        let charged = before.len();
        self.inner
            .limits
            .take(charged, || self.activity.touch())
            .await
            .map_err(|_| Failure::Limit("totalBytes", "totalBytes is used up".into()))?;
        self.body(body, parts.version, framed, &mut before, writer).await?;
        Ok(Replied::Done { keep })
    }

    fn framed(&self, empty: bool, length: Option<u64>) -> Framed {
        match length {
            _ if empty => Framed::Empty,
            Some(length) => Framed::Length(length),
            None if self.head.old => Framed::UntilEnd,
            None => Framed::Chunked,
        }
    }

    /// Returns what the server says about the status, without secrets.
    fn reason(&self, status: StatusCode, extensions: &http::Extensions) -> String {
        match extensions.get::<ReasonPhrase>() {
            Some(reason) => self.inner.masked(&String::from_utf8_lossy(reason.as_bytes())),
            None => status.canonical_reason().unwrap_or("").to_owned(),
        }
    }

    fn record(&mut self, status: StatusCode, reason: &str, headers: &HeaderMap) -> Result<(), Failure> {
        let Some(cassette) = &self.inner.cassette else { return Ok(()) };
        let head = Head {
            method: self.head.method.to_string(),
            url: self.url.to_owned(),
            status: status.as_u16(),
            reason: reason.to_owned(),
            headers: to_texts(headers),
        };
        let recording = cassette.record(head);
        self.recording = recording.map_err(|error| Failure::Before(502, "record", error.to_string()))?;
        Ok(())
    }

    async fn body(
        &mut self,
        mut body: Incoming,
        version: Version,
        framed: Framed,
        before: &mut Vec<u8>,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Failure> {
        let secrets = &self.inner.rules.secrets;
        let mut mask = secrets.mask(self.host);
        if matches!(framed, Framed::Empty | Framed::Length(0)) {
            self.finish()?;
        }
        loop {
            let frame = tokio::select! {
                biased;
                frame = body.frame() => frame,
                // Nothing of the body is there yet: the guest gets the head meanwhile.
                () = std::future::ready(()), if !before.is_empty() => {
                    flush(writer, before).await.map_err(after)?;
                    continue;
                }
            };
            let frame = match frame {
                None => break,
                Some(frame) => frame.map_err(|error| Failure::After(describe(&error)))?,
            };
            match frame.into_data() {
                Ok(data) => self.data(&data, &mut mask, framed, before, writer).await?,
                Err(frame) => {
                    if let Ok(mut trailers) = frame.into_trailers() {
                        response_headers(&mut trailers, secrets);
                        self.trailers = trailers;
                    }
                }
            }
        }
        // By HTTP/2, hyper takes some resets for an end.
        if version == Version::HTTP_2 && framed != Framed::Empty && !body.is_end_stream() {
            return Err(Failure::After("the server gave the response up".into()));
        }
        let rest = mask.finish();
        self.pass(&rest, framed, before, writer).await?;
        self.finish()?;
        end_of_body(before, &self.trailers, framed);
        flush(writer, before).await.map_err(after)
    }

    async fn data(
        &mut self,
        data: &[u8],
        mask: &mut Mask<'_>,
        framed: Framed,
        before: &mut Vec<u8>,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Failure> {
        if data.is_empty() {
            return Ok(());
        }
        self.log.to_guest += data.len() as u64;
        self.activity.touch();
        self.allowance.earn(data.len());
        if self.log.to_guest > self.inner.rules.policy.response_bytes {
            return Err(Failure::Limit("responseBytes", "the response is larger than responseBytes".into()));
        }
        let taken = self.inner.limits.take(data.len(), || self.activity.touch()).await;
        taken.map_err(|_| Failure::Limit("totalBytes", "totalBytes is used up".into()))?;
        let masked = mask.push(data);
        let data = masked.as_deref().unwrap_or(data);
        self.pass(data, framed, before, writer).await?;
        self.activity.touch();
        Ok(())
    }

    /// Records a piece and gives it to the guest.
    async fn pass(
        &mut self,
        data: &[u8],
        framed: Framed,
        before: &mut Vec<u8>,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Failure> {
        self.tape(data)?;
        self.passed += data.len() as u64;
        if framed == Framed::Length(self.passed) {
            self.finish()?;
        }
        write_data(writer, before, data, framed).await.map_err(after)
    }

    /// Ends what is recorded of the exchange, before the guest has the end of the response: it may leave then, and the program
    /// with it.
    fn finish(&mut self) -> Result<(), Failure> {
        let digest = {
            let taken = self.taken.lock();
            self.log.to_server = taken.bytes;
            taken.digest.clone()
        };
        if let Some(recording) = self.recording.take() {
            let ended = recording.end(hex(&digest.finalize()), &self.trailers);
            ended.map_err(|error| Failure::After(format!("record: {error}")))?;
        }
        self.log.write().map_err(Failure::After)
    }

    fn tape(&self, data: &[u8]) -> Result<(), Failure> {
        match &self.recording {
            Some(recording) => {
                recording.body(data).map_err(|error| Failure::After(format!("record: {error}")))
            }
            None => Ok(()),
        }
    }

    /// Passes on that the server speaks WebSocket from now on.
    async fn upgrade(
        &mut self,
        mut response: Response<Incoming>,
        writer: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Replied, Failure> {
        let websocket = response
            .headers()
            .get(header::UPGRADE)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if !(self.head.websocket && websocket) {
            return Err(Failure::Before(502, "upstream", "the server switched protocols, unasked".into()));
        }
        self.allowance.lift();
        let upgrade = hyper::upgrade::on(&mut response);
        let mut headers = std::mem::take(response.headers_mut());
        response_headers(&mut headers, &self.inner.rules.secrets);
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        let mut bytes = response_head(
            StatusCode::SWITCHING_PROTOCOLS,
            "Switching Protocols",
            &headers,
            Framed::Empty,
            false,
        );
        flush(writer, &mut bytes).await.map_err(after)?;
        Ok(Replied::Upgrade(upgrade))
    }
}

fn has_close(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case("close"))
}

/// Returns what went wrong with a server, with the causes.
fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text += &format!(": {inner}");
        cause = inner.source();
    }
    text
}
