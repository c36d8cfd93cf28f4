//! What `-v` shows.

use super::Session;
use super::operation::Operation;
use crate::http::head::Head;
use crate::http::url::Url;
use wardian_abi as abi;

fn put(text: &str) {
    let _ = abi::write_all(2, text.as_bytes());
}

impl Session {
    /// Says something about the connection.
    pub fn info(&self, text: &str) {
        if self.verbose {
            put(&format!("* {text}\n"));
            self.traced_data.set(false);
        }
    }

    /// Shows a line of a head.
    pub fn trace_line(&self, sign: char, line: &[u8]) {
        if self.verbose {
            let line = String::from_utf8_lossy(line);
            put(&format!("{sign} {}\r\n", line.trim_end_matches(['\r', '\n'])));
            self.traced_data.set(false);
        }
    }

    /// Says that data went one way or the other, once for a run of it.
    pub fn trace_data(&self, sign: char, count: usize) {
        if self.verbose && count > 0 && !self.traced_data.replace(true) && !abi::isatty(1) {
            put(&format!("{sign} [{count} bytes data]\n"));
        }
    }

    /// Shows the head of a request.
    pub fn trace_request(&self, head: &[u8], operation: &Operation, url: &Url, trusted: bool) {
        let user = match (&operation.user, &url.user) {
            (_, Some(user)) => Some(user.clone()),
            (Some(login), None) => {
                Some(String::from_utf8_lossy(login).split(':').next().unwrap_or_default().to_owned())
            }
            _ => None,
        };
        if let Some(user) = user.filter(|_| trusted) {
            self.info(&format!("Server auth using Basic with user '{user}'"));
        }
        for line in head.split_inclusive(|&byte| byte == b'\n') {
            self.trace_line('>', line);
        }
    }

    /// Takes note of a line of a response's head, and shows it. The empty line at its end is shown by whoever knows
    /// what becomes of the response.
    pub fn trace_head_line(&mut self, head: &Head, line: &[u8], operation: &Operation, url: &Url) {
        let shown = String::from_utf8_lossy(line);
        let shown = shown.trim_end_matches(['\r', '\n']);
        if shown.is_empty() {
            let framed =
                head.header("Content-Length").is_some() || head.header("Transfer-Encoding").is_some();
            let has_body = !(operation.head || head.status / 100 == 1 || [204, 304].contains(&head.status));
            if head.version == 11 && has_body && !framed && !head.lists("Connection", "close") {
                self.info("no chunk, no close, no size. Assume close to signal end");
            }
            return;
        }
        if head.headers.is_empty() && head.version == 10 && shown.starts_with("HTTP/") {
            self.info("HTTP 1.0, assume close after body");
        }
        if let Some((name, value)) = shown.split_once(':')
            && name.eq_ignore_ascii_case("Set-Cookie")
            && self.keeps_cookies
        {
            let before = self.jar.cookies.len();
            match self.jar.set(value, url) {
                Some(cookie) => {
                    let replaced = self.jar.cookies.len() == before && cookie.expires != 1;
                    self.info(&format!(
                        "{} cookie {}=\"{}\" for domain {}, path {}, expire {}",
                        if replaced { "Replaced" } else { "Added" },
                        cookie.name,
                        cookie.value,
                        cookie.domain,
                        cookie.path,
                        cookie.expires
                    ));
                }
                None => self.info("skipped cookie that the host may not set"),
            }
        }
        self.trace_line('<', line);
    }
}
