//! How requests reach a server: TLS by rustls, and every answer within a size and a time.
//!
//! `object_store` reads lists and error messages to their end before anybody can say that they are too long. So an answer
//! is read here, whole, against a cap: what the request's range asked for, or what a list can take. A server that sends
//! more, or that stops sending, is an error of this request and nothing else.

use std::sync::Arc;
use std::time::Duration;

use ::http::Method;
use ::http::header::RANGE;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};

/// How long a connection may take, and a request with its answer.
const CONNECT: Duration = Duration::from_secs(10);
pub(super) const REQUEST: Duration = Duration::from_secs(120);
/// The longest answer to anything but a read: a list of 1000 names of a kilobyte, with what XML puts around them.
const ANSWER: usize = 4 << 20;

/// Makes clients for `object_store`.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        for (key, name) in [
            (ClientConfigKey::ProxyUrl, "AWS_PROXY_URL"),
            (ClientConfigKey::ProxyCaCertificate, "AWS_PROXY_CA_CERTIFICATE"),
            (ClientConfigKey::ProxyExcludes, "AWS_PROXY_EXCLUDES"),
        ] {
            if options.get_config_value(&key).is_some() {
                return Err(refused(format!("{name} is set: proxies are not supported")));
            }
        }
        let is_set = |key| options.get_config_value(&key).as_deref() == Some("true");
        for (key, name) in [
            (ClientConfigKey::AllowInvalidCertificates, "AWS_ALLOW_INVALID_CERTIFICATES"),
            (ClientConfigKey::NoSystemCertificates, "AWS_NO_SYSTEM_CERTIFICATES"),
            (ClientConfigKey::Http2Only, "AWS_HTTP2_ONLY"),
        ] {
            if is_set(key) {
                return Err(refused(format!("{name} is set: it is not supported")));
            }
        }
        let mut tcp = Tcp::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls()?);
        let tls = if is_set(ClientConfigKey::AllowHttp) { tls.https_or_http() } else { tls.https_only() };
        let connector = tls.enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        Ok(HttpClient::new(Service(client)))
    }
}

fn refused(why: String) -> object_store::Error {
    object_store::Error::NotSupported { source: why.into() }
}

/// The roots are the system's, which `SSL_CERT_FILE` can replace.
fn tls() -> object_store::Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(format!("TLS: {error}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<Tcp>, HttpRequestBody>);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let most = cap_of(&request);
        tokio::time::timeout(REQUEST, self.exchange(request, most)).await.unwrap_or_else(|_| {
            let why = format!("no whole answer within {} s", REQUEST.as_secs());
            Err(HttpError::new_boxed(HttpErrorKind::Timeout, why.into()))
        })
    }
}

impl Service {
    async fn exchange(&self, request: HttpRequest, most: usize) -> Result<HttpResponse, HttpError> {
        let is_head = request.method() == Method::HEAD;
        let response = self.0.request(request).await.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, Chain(error))
        })?;
        let (parts, body) = response.into_parts();
        if is_head {
            return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(Bytes::new())));
        }
        let whole = Limited::new(body, most).collect().await.map_err(|error| {
            // What was too long is so the next time, too.
            let is_long = error.is::<http_body_util::LengthLimitError>();
            let kind = if is_long { HttpErrorKind::Decode } else { HttpErrorKind::Interrupted };
            let why =
                if is_long { format!("an answer of more than {most} bytes") } else { error.to_string() };
            HttpError::new_boxed(kind, why.into())
        })?;
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(whole.to_bytes())))
    }
}

/// Returns how long the answer may be.
fn cap_of(request: &HttpRequest) -> usize {
    let range = request.headers().get(RANGE).and_then(|range| range.to_str().ok());
    let range = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let length = range.and_then(|(from, to)| {
        let (from, to): (usize, usize) = (from.parse().ok()?, to.parse().ok()?);
        to.checked_sub(from)?.checked_add(1)
    });
    // An error message can come instead of a short range.
    length.map_or(ANSWER, |length| length.max(64 << 10))
}

/// hyper's errors say what went wrong only in their sources.
#[derive(Debug)]
struct Chain(hyper_util::client::legacy::Error);

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = std::error::Error::source(&self.0);
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl std::error::Error for Chain {}
