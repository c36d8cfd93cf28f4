//! The embedder's own say in each request.

use bytes::Bytes;

use crate::cassette::to_headers;
use crate::resolve::BoxFuture;

/// A request that the policy allows, as the guest sent it: without secrets and without its body.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestInfo {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The method.
    pub method: String,
    /// The path and query.
    pub target: String,
    /// The headers.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// What to do with a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// It goes out.
    Allow,
    /// The guest gets a 403 with this reason.
    Deny(String),
    /// The guest gets this, and nothing goes out.
    Answer(Answer),
}

/// A response by the embedder.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, from 200 to 599.
    pub status: u16,
    /// Headers. Those about framing are the gateway's own.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Returns it if it can be sent to a guest; else the request is denied.
    pub(crate) fn checked(self, most: u64) -> Decision {
        let why = if self.body.len() as u64 > most {
            "onRequest's answer is larger than responseBytes"
        } else if !(200..600).contains(&self.status) {
            "onRequest's answer has no status from 200 to 599"
        } else if to_headers(&self.headers).len() != self.headers.len() {
            "onRequest's answer has a malformed header"
        } else {
            return Decision::Answer(self);
        };
        Decision::Deny(why.into())
    }
}

/// Decides about requests. An answer must come within `responseTimeoutMs`; if none does, the request is denied.
pub trait OnRequest: Send + Sync {
    /// Decides about one.
    fn on_request<'a>(&'a self, request: &'a RequestInfo) -> BoxFuture<'a, Decision>;
}

impl<F: Fn(&RequestInfo) -> Decision + Send + Sync> OnRequest for F {
    fn on_request<'a>(&'a self, request: &'a RequestInfo) -> BoxFuture<'a, Decision> {
        let decision = self(request);
        Box::pin(async move { decision })
    }
}
