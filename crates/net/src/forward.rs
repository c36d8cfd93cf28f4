//! Sends a request to the server and its response to the guest, both at once.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::body::Decoder;
use crate::exchange::{Http, Log};
use crate::gateway::Inner;
use crate::guest::{Activity, OnItsWay, Reader, Sending};
use crate::head::RequestHead;
use crate::local::{self, Local};
use crate::name::Host;
use crate::outgoing;
use crate::pump::Pump;
use crate::relay::{Terms, relay};
use crate::reply::{Failure, Replied, Reply};
use crate::resolve::BoxFuture;
use crate::rules::Denied;
use crate::upstream::{BodySender, Driver, GuestBody};

/// How long a server may take to say `100 Continue` before the guest is told so anyway.
const CONTINUE: Duration = Duration::from_secs(1);

type Answer = hyper::Result<Response<Incoming>>;

impl Http {
    /// Serves one request by the server. False: the connection is not used again.
    pub(crate) async fn forward<R, W>(
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
        let (mut request, sender) = match self.prepare(head).await? {
            Ok(prepared) => prepared,
            Err(refusal) => return self.answer(refusal, head, reader, writer, log).await,
        };
        let (url, inner, host, reused) =
            (self.url(head), self.inner.clone(), self.host.clone(), self.sent > 0);
        let Some(upstream) = &mut self.upstream else { return Err("not connected".into()) };
        let allowance = upstream.allowance();
        self.sent += 1;
        let told = watch_for_continue(&mut request, head.expects && !upstream.is_http2());
        let Some((mut response, driver)) = upstream.send(request) else { return Err("not connected".into()) };
        let mut early = None;
        if head.expects {
            early = wait_for_continue(&mut response, &told, driver, writer).await?;
        }
        let mut decoder = Decoder::new(head.framing);
        let (idle, patience) = (inner.rules.idle_timeout(), inner.rules.response_timeout());
        let activity = Activity::new(if decoder.is_done() { patience } else { idle });
        let taken = Mutex::default();
        let pump =
            Pump { inner: &inner, host: &host, activity: &activity, allowance: &allowance, taken: &taken };
        let reply = Reply::new(&inner, &host, head, &activity, &allowance, &url, &taken, log);
        let sending = self.sending.clone();
        let mut both = Both { pump, reply, activity: &activity, idle, patience, sending: &sending };
        let work = both.run(reader, &mut decoder, sender, early, response, writer);
        let outcome = driver.drive(work).await;
        log.to_server = taken.lock().bytes;
        match outcome {
            Ok(Replied::Done { keep }) => {
                let keep = keep && decoder.is_done();
                if keep && let Some(upstream) = &mut self.upstream {
                    upstream.rest().await;
                }
                Ok(keep)
            }
            Ok(Replied::Upgrade(upgrade)) => {
                let stream = driver.drive(upgrade).await.map_err(|error| error.to_string())?;
                upgraded(TokioIo::new(stream), reader, writer, &inner, &host, &sending, log).await
            }
            // As without a gateway: a server may close a connection that was kept, and the client tries again.
            Err(Failure::Before(_, "upstream", why)) if reused => Err(inner.masked(&why)),
            Err(failure) => self.failed(failure, head, writer, log).await,
        }
    }

    /// Builds the request. `Err`: what the guest gets instead.
    async fn prepare(
        &mut self,
        head: &RequestHead,
    ) -> Result<Result<(Request<GuestBody>, Option<BodySender>), Local>, String> {
        let Some(upstream) = &mut self.upstream else { return Err("not connected".into()) };
        if head.websocket && upstream.is_http2() {
            return Ok(Err(Local::refusal(501, "http2", "a WebSocket needs HTTP/1.1, and http2 is on")));
        }
        // A server that has not read the last request yet may never do so.
        let ready = timeout(self.inner.rules.response_timeout(), upstream.ready(head.websocket)).await;
        if !ready.unwrap_or(false) {
            return match self.sent > 0 {
                true => Err("the server takes no more requests on this connection".into()),
                false => Ok(Err(Local::refusal(502, "upstream", "the server closed the connection"))),
            };
        }
        let (body, sender) = GuestBody::new(head.framing);
        let request = outgoing::request(head, &self.origin(), &self.inner.rules.secrets, body);
        Ok(match request {
            Some(request) => Ok((request, sender)),
            None => Err(Local::refusal(400, "http", "the target is malformed")),
        })
    }

    /// Tells the guest, if it can still be told.
    async fn failed(
        &mut self,
        failure: Failure,
        head: &RequestHead,
        writer: &mut (impl AsyncWrite + Unpin),
        log: &mut Log,
    ) -> Result<bool, String> {
        match failure {
            Failure::Before(status, rule, why) => {
                let why = self.inner.masked(&why);
                if rule != "upstream" {
                    self.inner.denied(&Denied::new(&self.host, rule, &why), Some(self.port));
                }
                (log.status, log.error) = (Some(status), Some(why.clone()));
                log.write()?;
                let answer = Local::refusal(status, rule, &why);
                let written = answer.write(writer, false, head.method == http::Method::HEAD).await;
                written.map_err(|error| error.to_string())?;
                Ok(false)
            }
            Failure::Limit(rule, why) => {
                self.inner.denied(&Denied::new(&self.host, rule, &why), Some(self.port));
                Err(why)
            }
            Failure::After(why) => Err(self.inner.masked(&why)),
        }
    }
}

/// A request and its response, under way.
struct Both<'a> {
    pump: Pump<'a>,
    reply: Reply<'a>,
    activity: &'a Activity,
    idle: Duration,
    patience: Duration,
    sending: &'a Sending,
}

impl Both<'_> {
    /// Moves both until the guest has the response.
    async fn run<R, W>(
        &mut self,
        reader: &mut Reader<R>,
        decoder: &mut Decoder,
        sender: Option<BodySender>,
        early: Option<Answer>,
        response: BoxFuture<'static, Answer>,
        writer: &mut W,
    ) -> Result<Replied, Failure>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let answered = AtomicBool::new(false);
        let (activity, idle, patience, sending) = (self.activity, self.idle, self.patience, self.sending);
        // A server that answers early does not want the body.
        let mut pumped = decoder.is_done() || early.is_some();
        sending.set(if pumped { OnItsWay::Nothing } else { OnItsWay::Something });
        let mut pumping = pin!(self.pump.run(reader, decoder, sender));
        let mut responding = pin!(async {
            let response = match early {
                Some(response) => response,
                None => response.await,
            };
            answered.store(true, Ordering::Relaxed);
            activity.expect(idle);
            self.reply.run(response, writer).await
        });
        let failure = |status, rule, why: String| match answered.load(Ordering::Relaxed) {
            true => Failure::After(why),
            false => Failure::Before(status, rule, why),
        };
        loop {
            tokio::select! {
                biased;
                replied = &mut responding => return replied,
                sent = &mut pumping, if !pumped => {
                    pumped = true;
                    sending.set(OnItsWay::Perhaps);
                    sent.map_err(|stopped| failure(stopped.status, stopped.rule, stopped.why))?;
                    if !answered.load(Ordering::Relaxed) {
                        activity.expect(patience);
                    }
                }
                () = activity.silence() => {
                    return Err(failure(504, "responseTimeoutMs", "the server did not answer in time".into()));
                }
            }
        }
    }
}

/// Returns what is notified when the guest may send its body; at once if the server is not asked.
fn watch_for_continue(request: &mut Request<GuestBody>, ask: bool) -> Arc<Notify> {
    let told = Arc::new(Notify::new());
    if !ask {
        told.notify_one();
        return told;
    }
    let telling = told.clone();
    hyper::ext::on_informational(request, move |response| {
        if response.status() == StatusCode::CONTINUE {
            telling.notify_one();
        }
    });
    told
}

/// Waits for the server to want the body, and tells the guest. Returns a response that came instead.
async fn wait_for_continue(
    response: &mut BoxFuture<'static, Answer>,
    told: &Notify,
    driver: &mut Driver,
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<Option<Answer>, String> {
    let wait = async {
        tokio::select! {
            biased;
            response = response => Some(response),
            () = told.notified() => None,
            () = tokio::time::sleep(CONTINUE) => None,
        }
    };
    let early = driver.drive(wait).await;
    if early.is_none() {
        writer.write_all(local::CONTINUE).await.map_err(|error| error.to_string())?;
        writer.flush().await.map_err(|error| error.to_string())?;
    }
    Ok(early)
}

/// Moves opaque bytes after an upgrade.
async fn upgraded<R, W>(
    server: TokioIo<Upgraded>,
    reader: &mut Reader<R>,
    writer: &mut W,
    inner: &Inner,
    host: &Host,
    sending: &Sending,
    log: &mut Log,
) -> Result<bool, String>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let terms = Terms { limits: &inner.limits, idle: inner.rules.idle_timeout(), sending };
    let moved = relay(reader, writer, server, inner.rules.secrets.mask(host), terms).await;
    log.to_server += moved.to_server;
    log.to_guest += moved.to_guest;
    moved.error.map_or(Ok(false), Err)
}
