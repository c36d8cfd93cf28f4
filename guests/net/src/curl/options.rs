//! The command line: operations, each with its URLs.

use super::table::{self, Known, Takes};
use super::{config, data, form};
use std::time::Duration;

/// What counts for all operations.
#[derive(Clone, Default)]
pub struct Global {
    pub silent: bool,
    pub show_error: bool,
    pub no_meter: bool,
    pub bar: bool,
    pub verbose: bool,
    pub parallel: bool,
    pub fail_early: bool,
    pub stderr: Option<Vec<u8>>,
}

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

/// What is wrong with a command line.
pub enum Wrong {
    /// An option and the words about it.
    Option(String, &'static str),
    /// An option of curl that is not supported, and why.
    Refused(String, &'static str),
    /// The words have been said, with this code.
    Said(String, i32),
    Help,
    Version,
}

/// A command line, taken apart.
pub struct Parsed {
    pub global: Global,
    pub operations: Vec<Operation>,
    pub warnings: Vec<String>,
    /// How deep configuration files name each other.
    pub depth: usize,
    reads_standard_input: bool,
}

const UNKNOWN: &str = "is unknown";
const NUMBER: &str = "expected a proper numerical parameter";
const MISUSED: &str = "is badly used here";
const DEEPEST: usize = 10;

impl Parsed {
    pub fn new() -> Parsed {
        Parsed {
            global: Global::default(),
            operations: vec![Operation::default()],
            warnings: Vec::new(),
            depth: 0,
            reads_standard_input: false,
        }
    }

    /// Takes the words of a command line.
    pub fn arguments(&mut self, words: Vec<Vec<u8>>) -> Result<(), Wrong> {
        let mut words = words.into_iter();
        let mut options = true;
        while let Some(word) = words.next() {
            if !options || word.first() != Some(&b'-') || word == b"-" {
                self.url(text(&word));
            } else if word == b"--" {
                options = false;
            } else if word.starts_with(b"--") {
                let name = text(&word[2..]);
                let shown = text(&word);
                let known = self.find(&name, &shown)?;
                let (known, on) = known;
                let value = match known.takes {
                    Takes::Value => words.next().ok_or(Wrong::Option(shown.clone(), "requires parameter"))?,
                    Takes::Nothing => Vec::new(),
                };
                self.apply(known.name, on, value, &shown)?;
            } else {
                self.letters(&text(&word), &word, &mut words)?;
            }
        }
        Ok(())
    }

    fn letters(
        &mut self,
        word: &str,
        bytes: &[u8],
        words: &mut std::vec::IntoIter<Vec<u8>>,
    ) -> Result<(), Wrong> {
        for (at, letter) in word.char_indices().skip(1) {
            let shown = format!("-{letter}");
            let known = table::by_letter(letter).ok_or(Wrong::Option(shown.clone(), UNKNOWN))?;
            if let Some(reason) = known.refused {
                return Err(Wrong::Refused(shown, reason));
            }
            if known.takes == Takes::Nothing {
                self.apply(known.name, letter != 'N', Vec::new(), &shown)?;
                continue;
            }
            let rest = &bytes[(at + 1).min(bytes.len())..];
            let value = match rest {
                [] => words.next().ok_or(Wrong::Option(shown.clone(), "requires parameter"))?,
                rest => rest.to_vec(),
            };
            return self.apply(known.name, true, value, &shown);
        }
        Ok(())
    }

    /// Finds a long option; whether it is switched on or, with `no-`, off.
    pub fn find(&self, name: &str, shown: &str) -> Result<(Known, bool), Wrong> {
        let ambiguous = |()| Wrong::Option(shown.to_owned(), "is ambiguous");
        let (found, on) = match name.strip_prefix("no-") {
            Some(rest) => (table::by_name(rest).map_err(ambiguous)?, false),
            None => (table::by_name(name).map_err(ambiguous)?, true),
        };
        let known = found.ok_or(Wrong::Option(shown.to_owned(), UNKNOWN))?;
        if let Some(reason) = known.refused {
            return Err(Wrong::Refused(shown.to_owned(), reason));
        }
        if !on && known.takes == Takes::Value {
            let words = "used '--no-' for option that isn't a boolean";
            return Err(Wrong::Option(shown.to_owned(), words));
        }
        Ok((known, on))
    }

    fn operation(&mut self) -> &mut Operation {
        if self.operations.is_empty() {
            self.operations.push(Operation::default());
        }
        let last = self.operations.len() - 1;
        &mut self.operations[last]
    }

    fn url(&mut self, url: String) {
        let operation = self.operation();
        let remote_name = operation.remote_name_all;
        let targets = &mut operation.targets;
        match targets.iter_mut().find(|target| target.url.is_none()) {
            Some(target) => target.url = Some(url),
            None => targets.push(Target { url: Some(url), ..Target::default() }),
        }
        if remote_name && let Some(target) = targets.last_mut().filter(|target| target.output.is_none()) {
            target.remote_name = true;
        }
    }

    fn output(&mut self, output: Option<Vec<u8>>) {
        let targets = &mut self.operation().targets;
        let free = targets.iter().position(|target| target.output.is_none() && !target.remote_name);
        let at = free.unwrap_or_else(|| {
            targets.push(Target::default());
            targets.len() - 1
        });
        targets[at].remote_name = output.is_none();
        targets[at].output = output;
    }

    fn upload(&mut self, file: Vec<u8>) {
        let targets = &mut self.operation().targets;
        match targets.iter_mut().find(|target| target.upload.is_none()) {
            Some(target) => target.upload = Some(file),
            None => targets.push(Target { upload: Some(file), ..Target::default() }),
        }
    }

    /// Applies an option of this name.
    pub fn apply(&mut self, name: &str, on: bool, value: Vec<u8>, shown: &str) -> Result<(), Wrong> {
        match name {
            "url" => self.url(text(&value)),
            "output" => self.output(Some(value)),
            "remote-name" => {
                if on {
                    self.output(None);
                }
            }
            "upload-file" => self.upload(value),
            "next" => {
                if self.operation().targets.iter().any(|target| target.url.is_some()) {
                    self.operations.push(Operation::default());
                }
            }
            "config" => {
                if self.depth >= DEEPEST {
                    return Err(Wrong::Option(shown.to_owned(), MISUSED));
                }
                config::read(self, &value, shown)?;
            }
            "help" => return Err(Wrong::Help),
            "version" => return Err(Wrong::Version),
            "silent" => self.global.silent = on,
            "show-error" => self.global.show_error = on,
            "progress-meter" => self.global.no_meter = !on,
            "progress-bar" => self.global.bar = on,
            "verbose" => self.global.verbose = on,
            "parallel" => self.global.parallel = on,
            "fail-early" => self.global.fail_early = on,
            "stderr" => self.global.stderr = Some(value),
            "styled-output" if on => return Err(Wrong::Refused(shown.to_owned(), "not supported")),
            // As things are anyway: nothing is buffered, no keepalive probes, no old TLS, no proxy to go around.
            "buffer"
            | "keepalive"
            | "npn"
            | "sessionid"
            | "tcp-nodelay"
            | "noproxy"
            | "disable"
            | "styled-output"
            | "basic"
            | "http1.1"
            | "tlsv1"
            | "tlsv1.0"
            | "tlsv1.1"
            | "tlsv1.2"
            | "parallel-immediate"
            | "suppress-connect-headers" => {}
            "parallel-max" => drop(number(&value).ok_or(Wrong::Option(shown.to_owned(), NUMBER))?),
            "data" | "data-ascii" | "data-binary" | "data-raw" | "data-urlencode" | "json" | "url-query" => {
                self.take_data(name, &value);
            }
            "form" | "form-string" => {
                let field = form::parse(&value, name == "form-string");
                let field = field.ok_or(Wrong::Option(shown.to_owned(), MISUSED))?;
                self.operation().form.push(field);
            }
            _ => return self.operation().set(name, on, value, shown),
        }
        Ok(())
    }

    fn take_data(&mut self, name: &str, value: &[u8]) {
        let made = data::read(name, value, &mut self.reads_standard_input);
        // A file that is not there is empty data, with a warning.
        let more = made.unwrap_or_else(|warning| {
            if !self.global.silent {
                self.warnings.push(warning);
            }
            Vec::new()
        });
        let json = name == "json";
        let operation = self.operation();
        let place = if name == "url-query" { &mut operation.url_query } else { &mut operation.data };
        match place {
            Some(before) => {
                if !json {
                    before.push(b'&');
                }
                before.extend_from_slice(&more);
            }
            None => *place = Some(more),
        }
        operation.json |= json;
    }
}

impl Operation {
    fn set(&mut self, name: &str, on: bool, value: Vec<u8>, shown: &str) -> Result<(), Wrong> {
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

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok())
}

/// A time in seconds, with a fraction; none for 0.
fn seconds(bytes: &[u8]) -> Option<Option<Duration>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    Some((number > 0.0 && number < 1e9).then(|| Duration::from_secs_f64(number)))
}

/// A size with a unit: `10`, `4k`, `2M`.
fn size(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "b" | "B" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The protocols that are left of all by `=http,https`, `-ftp` and the like.
fn protocols(text: &str) -> Option<Vec<String>> {
    const ALL: [&str; 3] = ["file", "http", "https"];
    let mut left: Vec<String> = ALL.map(str::to_owned).to_vec();
    for (at, word) in text.split(',').enumerate() {
        let (sign, name) = match word.split_at_checked(1) {
            Some((sign @ ("=" | "+" | "-"), name)) => (sign, name),
            _ => ("+", word),
        };
        let named = |item: &str| name.eq_ignore_ascii_case("all") || name.eq_ignore_ascii_case(item);
        let fitting = ALL.iter().filter(|item| named(item)).map(|item| (*item).to_owned());
        match sign {
            "=" if at == 0 || sign == "=" => left = fitting.collect(),
            "-" => left.retain(|item| !named(item)),
            _ => {
                let more: Vec<String> = fitting.filter(|item| !left.contains(item)).collect();
                left.extend(more);
            }
        }
    }
    Some(left)
}
