//! One operation of a command line: what an option sets.

use super::options::{MISUSED, NUMBER, UNKNOWN, Wrong};
use super::values::{number, protocols, seconds, size, text};
use super::{data, form};
use std::time::Duration;

/// A URL with what belongs to it.
#[derive(Clone, Default, Debug)]
pub struct Target {
    pub url: Option<String>,
    pub output: Option<Vec<u8>>,
    /// The output is named as the last part of the URL.
    pub remote_name: bool,
    pub upload: Option<Vec<u8>>,
}

/// What an operation asks for.
#[derive(Clone, Default)]
pub struct Operation {
    pub targets: Vec<Target>,
    pub method: Option<String>,
    pub headers: Vec<Vec<u8>>,
    pub data: Option<Vec<u8>>,
    pub json: bool,
    pub form: Vec<form::Field>,
    pub get: bool,
    pub head: bool,
    pub url_query: Option<Vec<u8>>,
    pub include: bool,
    pub dump_header: Option<Vec<u8>>,
    pub fail: bool,
    pub fail_with_body: bool,
    pub location: bool,
    pub trusted: bool,
    pub max_redirs: Option<i64>,
    pub keep_post: [bool; 3],
    pub user: Option<Vec<u8>>,
    pub bearer: Option<String>,
    pub agent: Option<Vec<u8>>,
    pub referer: Option<Vec<u8>>,
    pub auto_referer: bool,
    pub cookies: Vec<Vec<u8>>,
    pub cookie_files: Vec<Vec<u8>>,
    pub jar: Option<Vec<u8>>,
    pub junk_session: bool,
    pub write_out: Option<String>,
    pub insecure: bool,
    pub alpn_off: bool,
    pub tls13: bool,
    pub range: Option<String>,
    /// `-C`: `Some(None)` finds the offset by itself.
    pub resume: Option<Option<u64>>,
    pub compressed: bool,
    pub max_time: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    pub expect_timeout: Option<Duration>,
    pub retry: u64,
    pub retry_delay: Option<u64>,
    pub retry_max: Option<u64>,
    pub retry_all: bool,
    pub retry_refused: bool,
    pub http10: bool,
    pub globoff: bool,
    pub path_as_is: bool,
    pub request_target: Option<String>,
    pub remote_header_name: bool,
    pub remote_name_all: bool,
    pub remote_time: bool,
    pub remove_on_error: bool,
    pub no_clobber: bool,
    pub create_dirs: bool,
    pub output_dir: Option<Vec<u8>>,
    pub max_size: Option<u64>,
    pub limit_rate: Option<u64>,
    pub speed_limit: Option<u64>,
    pub speed_time: Option<u64>,
    pub time_cond: Option<(bool, i64)>,
    pub protocols: Option<Vec<String>>,
    pub redirect_protocols: Option<Vec<String>>,
    pub default_protocol: Option<String>,
    pub ignore_length: bool,
    pub ipv4: bool,
    pub ipv6: bool,
    pub unix_socket: Option<Vec<u8>>,
    pub etag_save: Option<Vec<u8>>,
    pub etag_compare: Option<Vec<u8>>,
    pub no_user_in_url: bool,
}

impl Operation {
    /// Whether cookies of servers are kept.
    pub fn keeps_cookies(&self) -> bool {
        self.jar.is_some() || !self.cookie_files.is_empty()
    }

    pub fn set(&mut self, name: &str, on: bool, value: Vec<u8>, shown: &str) -> Result<(), Wrong> {
        let wrong = |words: &'static str| Wrong::Option(shown.to_owned(), words);
        let count = |value: &[u8]| number(value).ok_or(wrong(NUMBER));
        match name {
            "request" => self.method = Some(text(&value)),
            "header" => self.take_header(value, shown)?,
            "get" => self.get = on,
            "head" => self.head = on,
            "include" => self.include = on,
            "dump-header" => self.dump_header = Some(value),
            "fail" | "fail-with-body" => {
                let other = if name == "fail" { self.fail_with_body } else { self.fail };
                if other && on {
                    let words = "You must select either --fail or --fail-with-body, not both.";
                    return Err(Wrong::Said(format!("{words}\ncurl: option {shown}: {MISUSED}"), 2));
                }
                *if name == "fail" { &mut self.fail } else { &mut self.fail_with_body } = on;
            }
            "location" => self.location = on,
            "location-trusted" => (self.location, self.trusted) = (on, on),
            "max-redirs" => self.max_redirs = Some(text(&value).parse().map_err(|_| wrong(NUMBER))?),
            "post301" => self.keep_post[0] = on,
            "post302" => self.keep_post[1] = on,
            "post303" => self.keep_post[2] = on,
            "user" => self.user = Some(value),
            "oauth2-bearer" => self.bearer = Some(text(&value)),
            "user-agent" => self.agent = Some(value),
            "referer" => {
                let plain = value.strip_suffix(b";auto");
                self.auto_referer = plain.is_some();
                let plain = plain.unwrap_or(&value);
                self.referer = (!plain.is_empty()).then(|| plain.to_vec());
            }
            "cookie" if value.contains(&b'=') => self.cookies.push(value),
            "cookie" => self.cookie_files.push(value),
            "cookie-jar" => self.jar = Some(value),
            "junk-session-cookies" => self.junk_session = on,
            "write-out" => self.write_out = Some(self.format(&value, shown)?),
            "insecure" => self.insecure = on,
            "alpn" => self.alpn_off = !on,
            "tlsv1.3" => self.tls13 = on,
            "range" => self.take_range(&value),
            "continue-at" => match &value[..] {
                b"-" => self.resume = Some(None),
                value => self.resume = Some(Some(count(value)?)),
            },
            "compressed" => self.compressed = on,
            "max-time" => self.max_time = seconds(&value).ok_or(wrong(NUMBER))?,
            "connect-timeout" => self.connect_timeout = seconds(&value).ok_or(wrong(NUMBER))?,
            "expect100-timeout" => self.expect_timeout = seconds(&value).ok_or(wrong(NUMBER))?,
            "retry" => self.retry = count(&value)?,
            "retry-delay" => self.retry_delay = Some(count(&value)?),
            "retry-max-time" => self.retry_max = Some(count(&value)?),
            "retry-all-errors" => self.retry_all = on,
            "retry-connrefused" => self.retry_refused = on,
            "http1.0" => self.http10 = on,
            "globoff" => self.globoff = on,
            "path-as-is" => self.path_as_is = on,
            "request-target" => self.request_target = Some(text(&value)),
            "remote-header-name" => self.remote_header_name = on,
            "remote-name-all" => self.remote_name_all = on,
            "remote-time" => self.remote_time = on,
            "remove-on-error" => self.remove_on_error = on,
            "clobber" => self.no_clobber = !on,
            "create-dirs" => self.create_dirs = on,
            "output-dir" => self.output_dir = Some(value),
            "max-filesize" => self.max_size = Some(size(&value).ok_or(wrong(MISUSED))?),
            "limit-rate" => {
                self.limit_rate = Some(size(&value).ok_or(wrong(MISUSED))?).filter(|rate| *rate > 0)
            }
            "speed-limit" => self.speed_limit = Some(count(&value)?),
            "speed-time" => self.speed_time = Some(count(&value)?),
            "time-cond" => self.time_cond = data::time_condition(&value),
            "proto" => self.protocols = Some(protocols(&text(&value)).ok_or(wrong(MISUSED))?),
            "proto-redir" => self.redirect_protocols = Some(protocols(&text(&value)).ok_or(wrong(MISUSED))?),
            "proto-default" => self.default_protocol = Some(text(&value).to_ascii_lowercase()),
            "ignore-content-length" => self.ignore_length = on,
            "ipv4" => (self.ipv4, self.ipv6) = (true, false),
            "ipv6" => (self.ipv4, self.ipv6) = (false, true),
            "unix-socket" => self.unix_socket = Some(value),
            "etag-save" => self.etag_save = Some(value),
            "etag-compare" => self.etag_compare = Some(value),
            "disallow-username-in-url" => self.no_user_in_url = on,
            _ => return Err(wrong(UNKNOWN)),
        }
        Ok(())
    }

    fn take_header(&mut self, value: Vec<u8>, shown: &str) -> Result<(), Wrong> {
        match value.strip_prefix(b"@") {
            Some(file) => {
                let lines = data::read_file(file).map_err(|_| {
                    let name = String::from_utf8_lossy(file);
                    Wrong::Said(format!("Failed to open {name}!\ncurl: option {shown}: error encountered when reading a file"), 26)
                })?;
                let lines =
                    lines.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
                self.headers.extend(lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
            }
            None => self.headers.push(value),
        }
        Ok(())
    }

    /// A format may come from a file.
    fn format(&self, value: &[u8], shown: &str) -> Result<String, Wrong> {
        let Some(file) = value.strip_prefix(b"@") else { return Ok(text(value)) };
        let read = data::read_file(file).map_err(|_| {
            let name = String::from_utf8_lossy(file);
            Wrong::Said(
                format!(
                    "Failed to open {name}!\ncurl: option {shown}: error encountered when reading a file"
                ),
                26,
            )
        })?;
        Ok(text(&read).replace(['\r', '\n'], ""))
    }

    /// A range without a dash is everything from there on.
    fn take_range(&mut self, value: &[u8]) {
        let range = text(value);
        self.range = Some(match range.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("{range}-"),
            false => range,
        });
    }
}
