//! The head of a request.

use super::operation::Operation;
use super::upload::Upload;
use super::values::text;
use crate::http::url::Url;
use crate::http::{base64, date};

/// What a request is made of.
pub struct Request<'a> {
    pub operation: &'a Operation,
    pub url: &'a Url,
    pub method: &'a str,
    /// Whether credentials may go to this host.
    pub trusted: bool,
    pub cookies: Option<String>,
    pub referer: Option<Vec<u8>>,
    pub range: Option<String>,
    pub upload: Option<&'a Upload>,
    /// The body goes as a file (`-T`) and not as a form.
    pub is_put: bool,
}

/// A body above this size waits for the server's consent.
const LARGE: u64 = 1024 * 1024;

/// A custom header, taken apart: its name, and its value or `None` if it only removes one of curl's.
fn custom(header: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let at = header.iter().position(|byte| matches!(byte, b':' | b';'))?;
    let value = header[at + 1..].trim_ascii();
    match header[at] {
        b':' if value.is_empty() => Some((&header[..at], None)),
        b':' => Some((&header[..at], Some(value))),
        _ if value.is_empty() => Some((&header[..at], Some(b""))),
        _ => None,
    }
}

impl Request<'_> {
    /// Whether a custom header sets or removes one of curl's.
    fn overrides(&self, name: &str) -> bool {
        self.custom(name).is_some()
    }

    fn custom(&self, name: &str) -> Option<Option<&[u8]>> {
        let mut found = self.operation.headers.iter().filter_map(|header| custom(header));
        found.find(|(key, _)| key.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Whether the body goes in chunks.
    pub fn is_chunked(&self) -> bool {
        let asked = self.custom("Transfer-Encoding").flatten();
        let asked = asked.is_some_and(|value| value.eq_ignore_ascii_case(b"chunked"));
        asked
            || self.upload.is_some_and(|upload| upload.length.is_none()) && !self.overrides("Content-Length")
    }

    /// Whether to wait for the server's consent before the body.
    pub fn expects(&self) -> bool {
        if let Some(value) = self.custom("Expect") {
            return value.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"));
        }
        self.adds_expect()
    }

    fn adds_expect(&self) -> bool {
        let Some(upload) = self.upload.filter(|_| !self.operation.http10 && !self.overrides("Expect")) else {
            return false;
        };
        self.is_put && upload.length != Some(0) || upload.length.is_some_and(|length| length > LARGE)
    }

    /// Writes the head.
    pub fn head(&self) -> Vec<u8> {
        let operation = self.operation;
        let target = operation.request_target.clone().unwrap_or_else(|| self.url.target());
        let version = if operation.http10 { "1.0" } else { "1.1" };
        let mut head = format!("{} {target} HTTP/{version}\r\n", self.method).into_bytes();
        let mut put = |name: &str, value: &[u8]| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(if value.is_empty() { b":" } else { b": " });
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        };
        match self.custom("Host").filter(|_| self.trusted) {
            Some(Some(host)) => put("Host", host),
            Some(None) => {}
            None => put("Host", self.url.authority().as_bytes()),
        }
        if let Some(login) = self.authorization() {
            put("Authorization", login.as_bytes());
        }
        if let Some(range) = self.range.as_ref().filter(|_| !self.overrides("Range")) {
            put("Range", format!("bytes={range}").as_bytes());
        }
        match &operation.agent {
            _ if self.overrides("User-Agent") => {}
            Some(agent) if agent.is_empty() => {}
            Some(agent) => put("User-Agent", agent),
            None => put("User-Agent", super::AGENT.as_bytes()),
        }
        if !self.overrides("Accept") && !operation.json {
            put("Accept", b"*/*");
        }
        if operation.compressed && !self.overrides("Accept-Encoding") {
            put("Accept-Encoding", b"deflate, gzip");
        }
        if let Some(referer) = self.referer.as_ref().filter(|_| !self.overrides("Referer")) {
            put("Referer", referer);
        }
        if self.upload.is_some() && self.is_chunked() && !self.overrides("Transfer-Encoding") {
            put("Transfer-Encoding", b"chunked");
        }
        if let Some(cookies) = &self.cookies {
            put("Cookie", cookies.as_bytes());
        }
        if let Some((newer, moment)) = operation.time_cond {
            let name = if newer { "If-Modified-Since" } else { "If-Unmodified-Since" };
            if !self.overrides(name) {
                put(name, date::format(moment).as_bytes());
            }
        }
        self.put_custom(&mut put);
        self.put_body(&mut put);
        head.extend_from_slice(b"\r\n");
        head
    }

    fn put_custom(&self, put: &mut dyn FnMut(&str, &[u8])) {
        for (name, value) in self.operation.headers.iter().filter_map(|header| custom(header)) {
            let secret = name.eq_ignore_ascii_case(b"Authorization") || name.eq_ignore_ascii_case(b"Cookie");
            let elsewhere = name.eq_ignore_ascii_case(b"Host");
            // A body that is gone takes its description along.
            let of_body = name.eq_ignore_ascii_case(b"Content-Length") && self.is_chunked();
            let Some(value) = value.filter(|_| !elsewhere && !of_body && (self.trusted || !secret)) else {
                continue;
            };
            put(&text(name), value);
        }
        if self.operation.json {
            for (name, value) in [("Content-Type", "application/json"), ("Accept", "application/json")] {
                if !self.overrides(name) {
                    put(name, value.as_bytes());
                }
            }
        }
    }

    fn put_body(&self, put: &mut dyn FnMut(&str, &[u8])) {
        let Some(upload) = self.upload else { return };
        if !self.is_chunked() && !self.overrides("Content-Length") {
            let length = upload.length.unwrap_or(0);
            put("Content-Length", length.to_string().as_bytes());
        }
        if let Some(kind) = upload.content_type.as_ref().filter(|_| !self.operation.json)
            && !self.overrides("Content-Type")
        {
            put("Content-Type", kind.as_bytes());
        }
        if self.adds_expect() {
            put("Expect", b"100-continue");
        }
    }

    fn authorization(&self) -> Option<String> {
        if !self.trusted || self.overrides("Authorization") {
            return None;
        }
        if let Some(bearer) = &self.operation.bearer {
            return Some(format!("Bearer {bearer}"));
        }
        let login = match (&self.operation.user, &self.url.user) {
            (_, Some(user)) => {
                format!("{user}:{}", self.url.password.as_deref().unwrap_or_default()).into_bytes()
            }
            (Some(login), None) => login.clone(),
            (None, None) => return None,
        };
        Some(format!("Basic {}", base64::encode(&login)))
    }
}
