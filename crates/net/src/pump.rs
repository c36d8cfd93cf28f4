//! Moves the body of a request from the guest to the server.

use http_body::Frame;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::io::AsyncRead;
use tokio::time::timeout;

use crate::allowance::Allowance;
use crate::body::{Decoder, Step};
use crate::exchange::hex;
use crate::gateway::Inner;
use crate::guest::{Activity, Reader};
use crate::name::Host;
use crate::upstream::BodySender;

/// Why a body was not sent to its end: a status, the field of the policy or `http`, and the reason.
pub(crate) struct Stopped {
    pub(crate) status: u16,
    pub(crate) rule: &'static str,
    pub(crate) why: String,
}

impl Stopped {
    fn malformed(why: impl ToString) -> Stopped {
        Stopped { status: 400, rule: "http", why: why.to_string() }
    }

    fn limit(status: u16, rule: &'static str, why: &str) -> Stopped {
        Stopped { status, rule, why: why.to_owned() }
    }
}

/// What of a body was taken from the guest.
#[derive(Default)]
pub(crate) struct Taken {
    /// Only kept for cassettes.
    pub(crate) digest: Sha256,
    pub(crate) bytes: u64,
}

/// What is needed in addition to the two ends.
pub(crate) struct Pump<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) host: &'a Host,
    pub(crate) activity: &'a Activity,
    pub(crate) allowance: &'a Allowance,
    pub(crate) taken: &'a Mutex<Taken>,
}

impl Pump<'_> {
    /// Moves a body to its end. The server sees an error, never the end of a body that is not complete.
    pub(crate) async fn run<R: AsyncRead + Unpin>(
        &self,
        reader: &mut Reader<R>,
        decoder: &mut Decoder,
        sender: Option<BodySender>,
    ) -> Result<(), Stopped> {
        let Some(sender) = sender else { return Ok(()) };
        let moved = self.parts(reader, decoder, &sender).await;
        if let Err(stopped) = &moved {
            let _ = sender.send(Err(std::io::Error::other(stopped.why.clone()))).await;
        }
        moved
    }

    async fn parts<R: AsyncRead + Unpin>(
        &self,
        reader: &mut Reader<R>,
        decoder: &mut Decoder,
        sender: &BodySender,
    ) -> Result<(), Stopped> {
        loop {
            let frame = match decoder.next(&mut reader.buffer).map_err(|bad| Stopped::malformed(bad.why))? {
                Step::Done => return Ok(()),
                Step::More => match reader.more().await.map_err(Stopped::malformed)? {
                    true => continue,
                    false => return Err(Stopped::malformed("the request's body is not complete")),
                },
                Step::Data(data) => {
                    let moved = {
                        let mut taken = self.taken.lock();
                        taken.bytes += data.len() as u64;
                        if self.inner.cassette.is_some() {
                            taken.digest.update(&data);
                        }
                        taken.bytes
                    };
                    // By HTTP/2, a server says again and again how much more it takes.
                    self.allowance.earn(data.len());
                    if moved > self.inner.rules.policy.request_bytes {
                        let why = "the request is larger than requestBytes";
                        return Err(Stopped::limit(413, "requestBytes", why));
                    }
                    let taken = self.inner.limits.take(data.len(), || self.activity.touch()).await;
                    taken.map_err(|_| Stopped::limit(403, "totalBytes", "totalBytes is used up"))?;
                    Frame::data(data)
                }
                Step::Trailers(mut trailers) => {
                    let own: Vec<_> = trailers
                        .keys()
                        .filter(|name| self.inner.rules.secrets.owns_header(self.host, name.as_str()))
                        .cloned()
                        .collect();
                    for name in own {
                        trailers.remove(name);
                    }
                    Frame::trailers(trailers)
                }
            };
            if sender.send(Ok(frame)).await.is_err() {
                // The server does not want more of it; its answer says why.
                std::future::pending::<()>().await;
            }
            self.activity.touch();
        }
    }
}

/// Takes a body that goes nowhere, and returns its SHA-256.
pub(crate) async fn swallow<R: AsyncRead + Unpin>(
    reader: &mut Reader<R>,
    decoder: &mut Decoder,
    inner: &Inner,
) -> Result<String, String> {
    let (mut digest, mut length) = (Sha256::new(), 0);
    loop {
        match decoder.next(&mut reader.buffer).map_err(|bad| bad.why.to_owned())? {
            Step::Done => return Ok(hex(&digest.finalize())),
            Step::Trailers(_) => {}
            Step::Data(data) => {
                length += data.len() as u64;
                if length > inner.rules.policy.request_bytes {
                    return Err("the request is larger than requestBytes".into());
                }
                inner.limits.take(data.len(), || ()).await.map_err(|_| "totalBytes is used up")?;
                digest.update(&data);
            }
            Step::More => match timeout(inner.rules.idle_timeout(), reader.more()).await {
                Ok(Ok(true)) => {}
                _ => return Err("the request's body is not complete".into()),
            },
        }
    }
}
