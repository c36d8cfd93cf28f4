//! Turns a guest's request into the one that a server gets.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Uri};

use crate::guest::strip_hop_by_hop;
use crate::head::{Framing, RequestHead};
use crate::local::DENIED;
use crate::name::Host;
use crate::secrets::Secrets;
use crate::upstream::GuestBody;

/// Where a request goes.
pub(crate) struct Origin<'a> {
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    /// Whether it goes over TLS.
    pub(crate) tls: bool,
    /// Whether the server is who it claims to be.
    pub(crate) verified: bool,
    pub(crate) http2: bool,
}

impl Origin<'_> {
    /// Returns `HOST[:PORT]`, without the port that is usual.
    pub(crate) fn authority(&self) -> String {
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => self.host.to_string(),
            _ => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Builds the request, with secrets in it. `None`: it cannot be expressed.
pub(crate) fn request(
    head: &RequestHead,
    origin: &Origin<'_>,
    secrets: &Secrets,
    body: GuestBody,
) -> Option<Request<GuestBody>> {
    let mut headers = head.headers.clone();
    let trailer: Vec<HeaderValue> = headers.get_all(header::TRAILER).iter().cloned().collect();
    let wants_trailers =
        headers.get_all(header::TE).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    strip_hop_by_hop(&mut headers);
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT] {
        headers.remove(name);
    }
    if secrets.any_for(origin.host) {
        // A compressed response could carry a secret past the mask.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let mut target = head.target.clone();
    secrets.apply(origin.host, origin.verified, &mut headers, &mut target);
    if wants_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if let Framing::Length(length) = head.framing {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    if !origin.http2 {
        one_only(head, origin, trailer, &mut headers)?;
    }
    let uri = match origin.http2 {
        true => {
            let scheme = if origin.tls { "https" } else { "http" };
            let path = if target == "*" { "" } else { &target };
            format!("{scheme}://{}{path}", origin.authority()).parse::<Uri>().ok()?
        }
        false => target.parse::<Uri>().ok()?,
    };
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Some(request)
}

/// Sets what only HTTP/1.1 has.
fn one_only(
    head: &RequestHead,
    origin: &Origin<'_>,
    trailer: Vec<HeaderValue>,
    headers: &mut HeaderMap,
) -> Option<()> {
    headers.insert(header::HOST, HeaderValue::from_str(&origin.authority()).ok()?);
    if head.expects {
        headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
    }
    if head.framing == Framing::Chunked {
        headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        for names in trailer {
            headers.append(header::TRAILER, names);
        }
    }
    if head.websocket {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        return Some(());
    }
    if !head.keep_alive {
        headers.append(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if headers.contains_key(header::TE) {
        headers.append(header::CONNECTION, HeaderValue::from_static("TE"));
    }
    Some(())
}

/// Removes from a response what is about one connection, and masks secrets in the rest.
pub(crate) fn response_headers(headers: &mut HeaderMap, secrets: &Secrets) {
    strip_hop_by_hop(headers);
    // The gateway's own word: a server must not be able to say that the policy refused something.
    headers.remove(DENIED);
    let masked: Vec<(HeaderName, HeaderValue)> = headers
        .iter()
        .filter_map(|(name, value)| {
            let text = secrets.mask_whole(value.as_bytes());
            Some((
                name.clone(),
                if text == value.as_bytes() { value.clone() } else { HeaderValue::from_bytes(&text).ok()? },
            ))
        })
        .collect();
    headers.clear();
    for (name, value) in masked {
        headers.append(name, value);
    }
}
