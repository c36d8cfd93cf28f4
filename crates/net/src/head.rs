//! Reads the head of a guest's request, strictly.
//!
//! The gateway re-emits requests, so a server never sees the guest's bytes. What could still mean one thing here and another
//! to somebody behind the server is refused instead of being repaired: two lengths, folded lines, bare line ends, spaces before
//! a colon, two hosts.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::name::Host;

/// Most bytes of a head.
pub const HEAD_BYTES: usize = 64 << 10;

/// Most header fields.
pub const FIELDS: usize = 128;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct BadRequest {
    /// The status that says so: 400, 403, 405, 431, 501 or 505.
    pub status: u16,
    /// The reason.
    pub why: &'static str,
}

const fn bad(why: &'static str) -> BadRequest {
    BadRequest { status: 400, why }
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// In chunks.
    Chunked,
}

/// The head of a request.
#[derive(Debug)]
pub struct RequestHead {
    /// The method.
    pub method: http::Method,
    /// A path with its query, or `*`.
    pub target: String,
    /// Whether it is HTTP/1.0.
    pub old: bool,
    /// The headers as the guest sent them.
    pub headers: HeaderMap,
    /// The body.
    pub framing: Framing,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
    /// Whether the guest waits for a `100 Continue`.
    pub expects: bool,
    /// Whether it asks for a WebSocket.
    pub websocket: bool,
}

/// Returns the length of the head at the start of `bytes`, if it is complete.
pub fn head_length(bytes: &[u8]) -> Result<Option<usize>, BadRequest> {
    match memchr::memmem::find(bytes, b"\r\n\r\n") {
        Some(at) if at + 4 <= HEAD_BYTES => Ok(Some(at + 4)),
        None if bytes.len() < HEAD_BYTES => match bare_line_end(bytes) {
            // Waiting for the end of a head that is wrong already would look like a hang.
            true => Err(bad("a line does not end in CR LF")),
            false => Ok(None),
        },
        _ => Err(BadRequest { status: 431, why: "the head is too long" }),
    }
}

/// Tells whether there is a CR without LF or an LF without CR. A CR at the very end may still get its LF.
fn bare_line_end(bytes: &[u8]) -> bool {
    memchr::memchr2_iter(b'\r', b'\n', bytes).any(|at| match bytes[at] {
        b'\r' => bytes.get(at + 1).is_some_and(|next| *next != b'\n'),
        _ => at == 0 || bytes[at - 1] != b'\r',
    })
}

impl RequestHead {
    /// Reads a head, including the empty line, of a request to `host` and `port`.
    pub fn parse(bytes: &[u8], host: &Host, port: u16) -> Result<RequestHead, BadRequest> {
        if bare_line_end(bytes) {
            return Err(bad("a line does not end in CR LF"));
        }
        let text = bytes.strip_suffix(b"\r\n\r\n").ok_or(bad("the head is not complete"))?;
        let mut lines = Lines(Some(text));
        let (method, target, old) = request_line(lines.next().unwrap_or_default())?;
        let target = origin_form(&method, target, host, port)?;
        let headers = fields(lines)?;
        check_host(&headers, old, host, port)?;
        let connection = tokens(&headers, header::CONNECTION)?;
        if connection.iter().any(|name| KEPT.contains(&name.as_str())) {
            return Err(bad("the Connection header names a header that must stay"));
        }
        let has = |name: &str| connection.iter().any(|token| token == name);
        let framing = framing(&headers, old)?;
        let upgrade = tokens(&headers, header::UPGRADE)?;
        let websocket = has("upgrade") && upgrade.iter().any(|token| token == "websocket");
        if websocket && (method != http::Method::GET || framing != Framing::None || old) {
            return Err(bad("a WebSocket starts with a GET without a body"));
        }
        let expects = expects(&headers)? && framing != Framing::None && !old;
        let keep_alive = if old { has("keep-alive") } else { !has("close") };
        Ok(RequestHead { method, target, old, headers, framing, keep_alive, expects, websocket })
    }
}

/// Headers that `Connection` cannot make a matter of one hop: rules and framing depend on them.
const KEPT: [&str; 6] = ["host", "content-length", "transfer-encoding", "authorization", "cookie", "expect"];

/// The lines of a head without their ends.
struct Lines<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0?;
        match memchr::memmem::find(text, b"\r\n") {
            Some(at) => {
                self.0 = Some(&text[at + 2..]);
                Some(&text[..at])
            }
            None => self.0.take(),
        }
    }
}

fn request_line(line: &[u8]) -> Result<(http::Method, &str, bool), BadRequest> {
    let line = std::str::from_utf8(line)
        .ok()
        .filter(|line| line.is_ascii())
        .ok_or(bad("the request line is not ASCII"))?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the request line is not METHOD TARGET VERSION"));
    };
    let old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ => return Err(BadRequest { status: 505, why: "only HTTP/1.1 is spoken here" }),
    };
    match method {
        "CONNECT" => {
            return Err(BadRequest {
                status: 405,
                why: "CONNECT is not allowed: the gateway is not a proxy",
            });
        }
        "TRACE" => {
            return Err(BadRequest { status: 405, why: "TRACE is not allowed: it would echo secrets" });
        }
        _ if method.is_empty()
            || method.len() > 32
            || !method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-') =>
        {
            return Err(BadRequest { status: 501, why: "not a method: they are upper case letters" });
        }
        _ => {}
    }
    let method = http::Method::from_bytes(method.as_bytes()).map_err(|_| bad("not a method"))?;
    if target.is_empty()
        || !target.bytes().all(|byte| (0x21..0x7f).contains(&byte) && !b"#<>\"^`{|}\\".contains(&byte))
    {
        return Err(bad("the target has a character that must be encoded"));
    }
    Ok((method, target, old))
}

/// Returns the target without scheme and host, which must be those of the connection.
fn origin_form(method: &http::Method, target: &str, host: &Host, port: u16) -> Result<String, BadRequest> {
    if target.starts_with('/') || (target == "*" && *method == http::Method::OPTIONS) {
        return Ok(target.to_owned());
    }
    let rest = ["http://", "https://"].iter().find_map(|scheme| {
        let start = target.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &target[scheme.len()..])
    });
    let rest = rest.ok_or(bad("the target is not a path"))?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if !is_here(authority, host, port) {
        return Err(BadRequest { status: 403, why: "the target is another host than the connection's" });
    }
    Ok(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
}

/// Tells whether `HOST[:PORT]` is the connection's own.
fn is_here(authority: &str, host: &Host, port: u16) -> bool {
    let split = match authority.rfind(']') {
        Some(bracket) => authority[bracket..].find(':').map(|colon| bracket + colon),
        None => authority.rfind(':'),
    };
    let (name, named) = match split {
        Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
        None => (authority, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let port = named.is_none_or(|named| digits(named) && named.parse() == Ok(port));
    port && Host::parse(name).is_ok_and(|name| name == *host)
}

fn fields(lines: Lines<'_>) -> Result<HeaderMap, BadRequest> {
    let mut headers = HeaderMap::new();
    for (count, line) in lines.enumerate() {
        if count >= FIELDS {
            return Err(BadRequest { status: 431, why: "too many header fields" });
        }
        let (name, value) = field(line)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Reads one header field, or one trailer.
pub(crate) fn field(line: &[u8]) -> Result<(HeaderName, HeaderValue), BadRequest> {
    if line.first().is_some_and(|byte| *byte == b' ' || *byte == b'\t') {
        return Err(bad("a header is folded over two lines"));
    }
    let colon = memchr::memchr(b':', line).ok_or(bad("a header has no colon"))?;
    // A name is a token: this also refuses spaces before the colon.
    let name =
        HeaderName::from_bytes(&line[..colon]).map_err(|_| bad("the name of a header is malformed"))?;
    let value = HeaderValue::from_bytes(trim(&line[colon + 1..]))
        .map_err(|_| bad("the value of a header is malformed"))?;
    Ok((name, value))
}

/// Removes spaces and tabs at both ends, and nothing else.
fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

fn check_host(headers: &HeaderMap, old: bool, host: &Host, port: u16) -> Result<(), BadRequest> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let Some(first) = hosts.next() else {
        return if old { Ok(()) } else { Err(bad("the Host header is missing")) };
    };
    if hosts.next().is_some() {
        return Err(bad("there is more than one Host header"));
    }
    match std::str::from_utf8(first.as_bytes()).is_ok_and(|text| is_here(text, host, port)) {
        true => Ok(()),
        false => {
            Err(BadRequest { status: 403, why: "the Host header is another host than the connection's" })
        }
    }
}

/// Returns the elements of a list, in lower case.
fn tokens(headers: &HeaderMap, name: HeaderName) -> Result<Vec<String>, BadRequest> {
    let mut all = Vec::new();
    for value in headers.get_all(name) {
        let text = value.to_str().map_err(|_| bad("a list in a header is not ASCII"))?;
        all.extend(
            text.split(',').map(|token| token.trim().to_ascii_lowercase()).filter(|token| !token.is_empty()),
        );
    }
    Ok(all)
}

fn framing(headers: &HeaderMap, old: bool) -> Result<Framing, BadRequest> {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(Framing::None),
        (Some(_), Some(_)) => Err(bad("both Content-Length and Transfer-Encoding are given")),
        (None, Some(coding)) => {
            if old || codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
                return Err(bad("Transfer-Encoding is not exactly 'chunked'"));
            }
            Ok(Framing::Chunked)
        }
        (Some(length), None) => {
            if lengths.next().is_some() {
                return Err(bad("there is more than one Content-Length"));
            }
            let text = length.to_str().map_err(|_| bad("Content-Length is not a number"))?;
            if text.is_empty() || text.len() > 18 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(bad("Content-Length is not a number"));
            }
            text.parse().map(Framing::Length).map_err(|_| bad("Content-Length is not a number"))
        }
    }
}

fn expects(headers: &HeaderMap) -> Result<bool, BadRequest> {
    let expected = tokens(headers, header::EXPECT)?;
    match expected.iter().all(|token| token == "100-continue") {
        true => Ok(!expected.is_empty()),
        false => Err(BadRequest { status: 417, why: "the only expectation is 100-continue" }),
    }
}
