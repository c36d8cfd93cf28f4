//! HTTP/1.1 with a guest: one request after the other, each checked, re-emitted, and its response re-emitted.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::body::Decoder;
use crate::callback::{Decision, RequestInfo};
use crate::gateway::{ConnectError, Inner};
use crate::guest::{OnItsWay, Reader, Sending};
use crate::head::{BadRequest, Framing, RequestHead};
use crate::local::{self, Local};
use crate::name::Host;
use crate::outgoing::Origin;
use crate::pump::swallow;
use crate::rules::{Denied, short};
use crate::upstream::{Upstream, Wire};

/// A guest's connection that is parsed as HTTP.
pub(crate) struct Http {
    pub(crate) inner: Arc<Inner>,
    pub(crate) host: Host,
    pub(crate) port: u16,
    rule: String,
    pub(crate) tls: bool,
    verified: bool,
    http2: bool,
    wire: Option<Result<Box<dyn Wire>, ConnectError>>,
    pub(crate) upstream: Option<Upstream>,
    /// Requests that were sent to the server.
    pub(crate) sent: u64,
    pub(crate) sending: Arc<Sending>,
}

/// The record of a request. It is written before the guest has all of the response, so that what a guest knows is recorded,
/// and by dropping it at the latest: a guest that leaves early cannot keep its request out of the log.
pub(crate) struct Log {
    inner: Arc<Inner>,
    host: String,
    port: u16,
    tls: bool,
    written: bool,
    start: Instant,
    method: String,
    path: String,
    pub(crate) rule: String,
    pub(crate) status: Option<u16>,
    pub(crate) to_server: u64,
    pub(crate) to_guest: u64,
    pub(crate) error: Option<String>,
}

impl Http {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        inner: Arc<Inner>,
        host: Host,
        port: u16,
        rule: String,
        wire: Option<Result<Box<dyn Wire>, ConnectError>>,
        tls: bool,
        verified: bool,
        http2: bool,
        sending: Arc<Sending>,
    ) -> Http {
        Http { inner, host, port, rule, tls, verified, http2, wire, upstream: None, sent: 0, sending }
    }

    /// Serves requests until one of the sides is done.
    pub(crate) async fn serve<R, W>(mut self, reader: &mut Reader<R>, writer: &mut W) -> Result<(), String>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            let Some(bytes) = self.next_head(reader).await? else { return Ok(()) };
            let head = bytes.and_then(|bytes| {
                RequestHead::parse(&bytes, &self.host, self.port).map(|head| (head, bytes.len()))
            });
            let (head, length) = match head {
                Ok(head) => head,
                Err(bad) => {
                    self.inner.denied(&Denied::new(&self.host, "http", bad.why), Some(self.port));
                    let refused = Local::refusal(bad.status, "http", bad.why);
                    return refused.write(writer, false, false).await.map_err(|error| error.to_string());
                }
            };
            let mut log = Log::new(&self, &head);
            self.sending.set(OnItsWay::Something);
            // On the heap, since it is much larger than what a connection needs that waits for a request.
            let done = Box::pin(self.exchange(&head, length, reader, writer, &mut log)).await;
            if let Err(error) = &done {
                log.error.get_or_insert_with(|| error.clone());
            }
            log.write()?;
            if !done? {
                return Ok(());
            }
        }
    }

    /// Waits for the next request. `None`: there is none, or the server has closed.
    async fn next_head<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut Reader<R>,
    ) -> Result<Option<Result<bytes::Bytes, BadRequest>>, String> {
        let idle = self.inner.rules.idle_timeout();
        let ended = async {
            match &mut self.upstream {
                Some(upstream) => upstream.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            head = timeout(idle, reader.head()) => match head {
                Err(_) => Ok(None),
                Ok(Err(error)) => Err(error.to_string()),
                Ok(Ok(Err(bad))) => Ok(Some(Err(bad))),
                Ok(Ok(Ok(head))) => Ok(head.map(Ok)),
            },
            () = ended => Ok(None),
        }
    }

    /// Serves one request. False: the connection is not used again.
    async fn exchange<R, W>(
        &mut self,
        head: &RequestHead,
        length: usize,
        reader: &mut Reader<R>,
        writer: &mut W,
        log: &mut Log,
    ) -> Result<bool, String>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.inner.limits.take_request().await;
        if self.inner.limits.take(length, || ()).await.is_err() {
            return self
                .refuse(
                    Denied::new(&self.host, "totalBytes", "totalBytes is used up"),
                    head,
                    reader,
                    writer,
                    log,
                )
                .await;
        }
        let rules = &self.inner.rules;
        match rules.allow_request(&self.host, head.method.as_str(), &head.target, &head.headers) {
            Ok(Some(rule)) => log.rule = format!("{} httpRules[{rule}]", self.rule),
            Ok(None) => {}
            Err(denied) => return self.refuse(denied, head, reader, writer, log).await,
        }
        if let Framing::Length(length) = head.framing
            && length > self.inner.rules.policy.request_bytes
        {
            let denied = Denied::new(&self.host, "requestBytes", "the request is larger than requestBytes");
            return self.refuse_as(413, denied, head, reader, writer, log).await;
        }
        match self.ask_embedder(head).await {
            Decision::Allow => {}
            Decision::Deny(why) => {
                return self
                    .refuse(Denied::new(&self.host, "onRequest", short(&why)), head, reader, writer, log)
                    .await;
            }
            Decision::Answer(answer) => {
                log.rule = format!("{} onRequest", self.rule);
                return self.answer(Local::from(answer), head, reader, writer, log).await;
            }
        }
        if self.inner.cassette.as_ref().is_some_and(|cassette| cassette.replays()) {
            return self.replay(head, reader, writer, log).await;
        }
        if let Err(why) = self.ensure_upstream().await {
            return self.answer(Local::refusal(502, "upstream", &why), head, reader, writer, log).await;
        }
        self.forward(head, reader, writer, log).await
    }

    async fn ask_embedder(&mut self, head: &RequestHead) -> Decision {
        let Some(callback) = &self.inner.options.on_request else { return Decision::Allow };
        let info = RequestInfo {
            scheme: if self.tls { "https" } else { "http" },
            host: self.host.to_string(),
            port: self.port,
            method: head.method.to_string(),
            target: head.target.clone(),
            headers: head
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
                .collect(),
        };
        let decided = timeout(self.inner.rules.response_timeout(), callback.on_request(&info)).await;
        match decided {
            Err(_) => Decision::Deny("onRequest did not answer in time".into()),
            Ok(Decision::Answer(answer)) => answer.checked(self.inner.rules.policy.response_bytes),
            Ok(decision) => decision,
        }
    }

    async fn refuse<R, W>(
        &mut self,
        denied: Denied,
        head: &RequestHead,
        reader: &mut Reader<R>,
        writer: &mut W,
        log: &mut Log,
    ) -> Result<bool, String>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.refuse_as(403, denied, head, reader, writer, log).await
    }

    async fn refuse_as<R, W>(
        &mut self,
        status: u16,
        denied: Denied,
        head: &RequestHead,
        reader: &mut Reader<R>,
        writer: &mut W,
        log: &mut Log,
    ) -> Result<bool, String>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        self.inner.denied(&denied, Some(self.port));
        log.rule = denied.rule.to_owned();
        let why = self.inner.masked(&denied.to_string());
        self.answer(Local::refusal(status, denied.rule, &why), head, reader, writer, log).await
    }

    /// Answers a request without the server.
    pub(crate) async fn answer<R, W>(
        &mut self,
        answer: Local,
        head: &RequestHead,
        reader: &mut Reader<R>,
        writer: &mut W,
        log: &mut Log,
    ) -> Result<bool, String>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        log.status = Some(answer.status);
        log.to_guest = answer.body.len() as u64;
        log.write()?;
        let keep = head.framing == Framing::None && head.keep_alive && !head.old;
        answer
            .write(writer, keep, head.method == http::Method::HEAD)
            .await
            .map_err(|error| error.to_string())?;
        if head.framing != Framing::None && !head.expects {
            // The guest is still sending: what it sends is taken, so that it gets to read the answer.
            let mut decoder = Decoder::new(head.framing);
            let _ = swallow(reader, &mut decoder, &self.inner).await;
        }
        Ok(keep)
    }

    async fn replay<R, W>(
        &mut self,
        head: &RequestHead,
        reader: &mut Reader<R>,
        writer: &mut W,
        log: &mut Log,
    ) -> Result<bool, String>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        if head.expects {
            writer.write_all(local::CONTINUE).await.map_err(|error| error.to_string())?;
        }
        let mut decoder = Decoder::new(head.framing);
        let digest = swallow(reader, &mut decoder, &self.inner).await?;
        let url = self.url(head);
        let cassette = self.inner.cassette.clone();
        let found =
            cassette.as_ref().and_then(|cassette| cassette.replay(head.method.as_str(), &url, &digest));
        match found {
            Some(mut replay) => local::replay(&mut replay, head, &self.inner, writer, log)
                .await
                .map_err(|error| error.to_string()),
            None => {
                let why = format!("not in the cassette: {} {}", head.method, short(&url));
                self.inner.denied(&Denied::new(&self.host, "replay", &why), Some(self.port));
                log.rule = "replay".into();
                log.status = Some(502);
                let keep = head.keep_alive && !head.old;
                log.write()?;
                let answer = Local::refusal(502, "replay", &why);
                answer
                    .write(writer, keep, head.method == http::Method::HEAD)
                    .await
                    .map_err(|error| error.to_string())?;
                Ok(keep)
            }
        }
    }

    pub(crate) fn url(&self, head: &RequestHead) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.origin().authority(), head.target)
    }

    pub(crate) fn origin(&self) -> Origin<'_> {
        Origin {
            host: &self.host,
            port: self.port,
            tls: self.tls,
            verified: self.verified,
            http2: self.http2,
        }
    }

    async fn ensure_upstream(&mut self) -> Result<(), String> {
        if self.upstream.is_some() {
            return Ok(());
        }
        let wire = match self.wire.take() {
            Some(Ok(wire)) => wire,
            Some(Err(error)) => {
                let why = error.to_string();
                // Asked again with the next request.
                self.wire = Some(Err(error));
                return Err(why);
            }
            None => return Err("not connected".into()),
        };
        let patience = self.inner.rules.connect_timeout();
        let upstream = timeout(patience, Upstream::new(wire, self.http2)).await;
        let upstream = upstream.map_err(|_| "the server did not begin in time")?;
        self.upstream = Some(upstream.map_err(|error| error.to_string())?);
        Ok(())
    }
}

impl Log {
    fn new(http: &Http, head: &RequestHead) -> Log {
        Log {
            inner: http.inner.clone(),
            host: http.host.to_string(),
            port: http.port,
            tls: http.tls,
            written: false,
            start: Instant::now(),
            method: head.method.to_string(),
            // Without the query, where people put secrets.
            path: short(head.target.split('?').next().unwrap_or_default()),
            rule: http.rule.clone(),
            status: None,
            to_server: 0,
            to_guest: 0,
            error: None,
        }
    }

    /// Writes the record, if it is not written yet.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.written, true) {
            return Ok(());
        }
        self.inner.audit.record(
            "net.request",
            [
                ("host", self.host.as_str().into()),
                ("port", self.port.into()),
                ("tls", self.tls.into()),
                ("method", self.method.as_str().into()),
                ("path", self.inner.masked(&self.path).into()),
                ("status", self.status.map_or(Value::Null, Value::from)),
                ("requestBytes", self.to_server.into()),
                ("responseBytes", self.to_guest.into()),
                ("durationMs", (self.start.elapsed().as_millis() as u64).into()),
                ("rule", self.rule.as_str().into()),
                ("error", self.error.as_ref().map_or(Value::Null, |error| self.inner.masked(error).into())),
            ],
        )
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.error.get_or_insert_with(|| "given up before the end of the response".to_owned());
        // There is nobody left to refuse anything to.
        let _ = self.write();
    }
}

/// In hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
