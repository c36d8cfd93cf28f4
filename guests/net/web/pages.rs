//! What each path answers.

use super::Request;
use std::io::Write as _;

/// What happens to the connection after an answer.
pub(crate) enum Then {
    Keep,
    Close,
    Hang,
    /// The same bytes for ever.
    Repeat(&'static [u8]),
}

pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

fn plain(status: &str, headers: &str, body: &[u8], request: &Request) -> Reply {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(body);
    }
    Reply { bytes, then: Then::Keep }
}

fn raw(text: &str, then: Then) -> Reply {
    Reply { bytes: text.as_bytes().to_vec(), then }
}

fn deflated(kind: &str, body: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    let done = match kind {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        _ => {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
    };
    done.unwrap_or_default()
}

const TEXT: &str = "Content-Type: text/plain\r\n";
const HTML: &str = "Content-Type: text/html\r\n";
const DIGITS: &[u8] = b"0123456789abcdefghij";

/// Returns how often `/flaky/N` was asked before. It is kept in a file: connections may be processes.
fn times_asked(log: &str) -> usize {
    let file = format!("{log}.flaky");
    let before = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let _ = std::fs::write(file, format!("{}", before + 1));
    before
}

/// Answers a request by its path.
pub(crate) fn answer(request: &Request, port: u16, log: &str) -> Reply {
    let target = request.target.as_str();
    let path = target.split('?').next().unwrap_or_default();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let page = |status: &str, headers: &str, body: &[u8]| plain(status, headers, body, request);
    match parts[..] {
        ["" | "ok" | "hello.txt"] => page("200 OK", TEXT, b"hello\n"),
        ["named", ..] => page("200 OK", TEXT, format!("{target}\n").as_bytes()),
        ["empty-body"] => page("200 OK", TEXT, b""),
        ["echo"] => page("200 OK", TEXT, &request.body),
        ["no-continue"] => page("200 OK", TEXT, b"did not wait\n"),
        ["status", code] => page(&format!("{code} Reason"), TEXT, format!("status {code}\n").as_bytes()),
        ["redirect", code] => page(&format!("{code} Moved"), &format!("Location: {query}\r\n"), b"moved\n"),
        ["redirect-host", host] => {
            page("302 Moved", &format!("Location: http://{host}:{port}{query}\r\n"), b"moved\n")
        }
        ["loop"] => page("302 Found", "Location: /loop\r\n", b""),
        ["auth"] => match request.header("Authorization") {
            Some("Basic dXNlcjpwYXNz") => page("200 OK", TEXT, b"welcome\n"),
            _ => page("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", b"no\n"),
        },
        ["cookies"] => page(
            "200 OK",
            "Set-Cookie: a=1\r\nSet-Cookie: b=two; Path=/; HttpOnly\r\nSet-Cookie: c=3; Path=/sub\r\n\
             Set-Cookie: d=4; Expires=Fri, 01 Jan 2100 00:00:00 GMT; path=/\r\n\
             Set-Cookie: e=5; Max-Age=0\r\nSet-Cookie: f=6; Domain=other.example\r\nSet-Cookie: g=7; Secure; Path=/\r\n",
            b"cookies\n",
        ),
        ["cookie-redirect"] => page("302 Found", "Set-Cookie: r=1; Path=/\r\nLocation: /ok\r\n", b""),
        ["cookie-gone"] => page("200 OK", "Set-Cookie: b=; Max-Age=0; Path=/\r\n", b"gone\n"),
        ["chunked"] => raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello\n\r\n6;x=y\r\nworld\n\r\n0\r\nTrailer: yes\r\n\r\n",
            Then::Keep,
        ),
        ["chunked-bad"] => {
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", Then::Close)
        }
        ["chunked-huge"] => raw(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            Then::Close,
        ),
        ["chunked-cut"] => {
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello\n", Then::Close)
        }
        ["close"] => raw("HTTP/1.1 200 OK\r\n\r\nuntil the end\n", Then::Close),
        ["short"] => raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this\n", Then::Close),
        ["nothing"] => raw("", Then::Close),
        ["garbage"] => raw("this is not HTTP\n", Then::Close),
        ["old"] => raw("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nold\n", Then::Close),
        ["bad-length"] => raw("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nx\n", Then::Close),
        ["huge-length"] => {
            raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nx\n", Then::Close)
        }
        ["hang"] => raw("", Then::Hang),
        ["hang-body"] => raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome\n", Then::Hang),
        ["endless-headers"] => {
            Reply { bytes: b"HTTP/1.1 200 OK\r\n".to_vec(), then: Then::Repeat(b"X-Filler: 0123456789\r\n") }
        }
        ["endless-line"] => {
            Reply { bytes: b"HTTP/1.1 200 OK\r\nX: ".to_vec(), then: Then::Repeat(b"0123456789") }
        }
        ["headers"] => page(
            "200 Fine",
            "Content-Type: text/x-test\r\nX-One: 1\r\nX-Two:  two  words \r\nx-one: again\r\nETag: \"abc\"\r\n\
             Last-Modified: Tue, 15 Nov 2022 12:45:26 GMT\r\n",
            b"body\n",
        ),
        ["dated"] => page("200 OK", "Last-Modified: Tue, 15 Nov 2022 12:45:26 GMT\r\n", b"dated\n"),
        ["disposition"] => page(
            "200 OK",
            &format!("Content-Disposition: attachment; filename={}\r\n", query.replace("%22", "\"")),
            b"named by the server\n",
        ),
        ["gzip" | "deflate" | "raw-deflate"] => {
            let label = if parts[0] == "gzip" { "gzip" } else { "deflate" };
            let body = deflated(parts[0], "squeezed ".repeat(200).as_bytes());
            page("200 OK", &format!("Content-Encoding: {label}\r\n"), &body)
        }
        ["gzip-bad"] => page("200 OK", "Content-Encoding: gzip\r\n", b"this is not gzip at all\n"),
        ["gzip-cut"] => {
            let body = deflated("gzip", "squeezed ".repeat(200).as_bytes());
            page("200 OK", "Content-Encoding: gzip\r\n", &body[..body.len() / 2])
        }
        ["strange-encoding"] => page("200 OK", "Content-Encoding: rot13\r\n", b"uryyb\n"),
        ["range"] => range(request),
        ["no-range"] => page("200 OK", TEXT, DIGITS),
        ["flaky", count] => match times_asked(log) < count.parse().unwrap_or(0) {
            true => page("503 Busy", "", b"busy\n"),
            false => page("200 OK", "", b"at last\n"),
        },
        ["big", size] => {
            let size = size.parse::<usize>().unwrap_or(0).min(8 << 20);
            let body: Vec<u8> = (0..size).map(|at| b"0123456789\n"[at % 11]).collect();
            page("200 OK", TEXT, &body)
        }
        ["modified"] => match request.header("If-Modified-Since").or(request.header("If-None-Match")) {
            Some(_) => raw("HTTP/1.1 304 Not Modified\r\n\r\n", Then::Keep),
            None => page("200 OK", "ETag: \"abc\"\r\n", b"new\n"),
        },
        ["slow"] => {
            super::pause(300);
            page("200 OK", TEXT, b"slow\n")
        }
        ["method"] => page("200 OK", TEXT, format!("{}\n", request.method).as_bytes()),
        ["raw", name] if !name.contains("..") => {
            Reply { bytes: std::fs::read(name).unwrap_or_default(), then: Then::Close }
        }
        ["site", ..] => site(path, request),
        _ => page("404 Not Found", HTML, b"not here\n"),
    }
}

fn range(request: &Request) -> Reply {
    let page = |status: &str, headers: &str, body: &[u8]| plain(status, headers, body, request);
    let Some(spec) = request.header("Range").and_then(|value| value.strip_prefix("bytes=")) else {
        return page("200 OK", "Accept-Ranges: bytes\r\n", DIGITS);
    };
    let (from, to) = spec.split_once('-').unwrap_or((spec, ""));
    let last = DIGITS.len() - 1;
    let (from, to) = match (from.parse::<usize>(), to.parse::<usize>()) {
        (Ok(from), Ok(to)) => (from, to.min(last)),
        (Ok(from), Err(_)) => (from, last),
        (Err(_), Ok(count)) => (DIGITS.len().saturating_sub(count), last),
        _ => return page("200 OK", "", DIGITS),
    };
    if from > to || from > last {
        return page("416 Range Not Satisfiable", "Content-Range: bytes */20\r\n", b"");
    }
    page("206 Partial Content", &format!("Content-Range: bytes {from}-{to}/20\r\n"), &DIGITS[from..=to])
}

/// A small site for recursive downloads.
fn site(path: &str, request: &Request) -> Reply {
    let page = |status: &str, headers: &str, body: &[u8]| plain(status, headers, body, request);
    match path {
        "/site/" | "/site/index.html" => page(
            "200 OK",
            HTML,
            b"<html><body><a href=\"a.html\">a</a> <A HREF='sub/'>sub</A> <img src=pic.png>\n\
              <a href=\"../up.html\">up</a> <a href=\"http://localhost:1/away\">away</a>\n\
              <!-- <a href=\"hidden.html\"> --> <a href=\"a.html#part\">again</a> <a href=\"missing.html\">x</a>\n\
              </body></html>\n",
        ),
        "/site/a.html" => page("200 OK", HTML, b"<a href=\"deep/1.html\">1</a>\n"),
        "/site/deep/1.html" => page("200 OK", HTML, b"<a href=\"2.html\">2</a>\n"),
        "/site/deep/2.html" => page("200 OK", HTML, b"<a href=\"3.html\">3</a>\n"),
        "/site/deep/3.html" => page("200 OK", HTML, b"the end\n"),
        "/site/sub/" => page("200 OK", HTML, b"<link rel=stylesheet href=\"style.css\"> <a href=\"?q=1\">q</a>\n"),
        "/site/sub/style.css" => page("200 OK", "Content-Type: text/css\r\n", b"body {}\n"),
        "/site/pic.png" => page("200 OK", "Content-Type: image/png\r\n", b"PNG\n"),
        "/site/up.html" => page("200 OK", HTML, b"up\n"),
        "/robots.txt" => page("404 Not Found", HTML, b"none\n"),
        _ => page("404 Not Found", HTML, b"not here\n"),
    }
}
