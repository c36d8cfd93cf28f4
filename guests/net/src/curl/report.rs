//! What `-w` reports about a transfer.

use super::operation::Operation;
use crate::http::head::Head;
use std::net::SocketAddr;
use std::time::Instant;

/// What is known about a transfer.
#[derive(Clone)]
pub struct Stats {
    pub url: String,
    pub effective: String,
    pub head: Head,
    pub headers: u64,
    pub size_header: u64,
    pub size_request: u64,
    pub size_upload: u64,
    pub size_download: u64,
    pub redirects: u64,
    pub connects: u64,
    pub redirect_url: Option<String>,
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    pub method: String,
    pub scheme: String,
    pub referer: Option<String>,
    pub file: Option<String>,
    pub number: u64,
    pub code: i32,
    pub error: Option<String>,
    start: Instant,
    look_up: f64,
    connect: f64,
    secure: f64,
    pub before: f64,
    pub first: f64,
    pub redirect: f64,
    total: f64,
}

impl Stats {
    pub fn new(url: &str, number: u64) -> Stats {
        Stats {
            url: url.to_owned(),
            effective: url.to_owned(),
            head: Head::default(),
            headers: 0,
            size_header: 0,
            size_request: 0,
            size_upload: 0,
            size_download: 0,
            redirects: 0,
            connects: 0,
            redirect_url: None,
            local: None,
            remote: None,
            method: "GET".to_owned(),
            scheme: String::new(),
            referer: None,
            file: None,
            number,
            code: 0,
            error: None,
            start: Instant::now(),
            look_up: 0.0,
            connect: 0.0,
            secure: 0.0,
            before: 0.0,
            first: 0.0,
            redirect: 0.0,
            total: 0.0,
        }
    }

    pub fn elapsed(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub fn looked_up(&mut self) {
        self.look_up = self.elapsed();
    }

    pub fn connected(&mut self) {
        self.connect = self.elapsed();
    }

    pub fn secured(&mut self) {
        self.secure = self.elapsed();
    }

    pub fn finish(&mut self) {
        self.total = self.elapsed();
    }

    fn speed(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.total.max(0.000_001)) as u64
    }

    fn http_version(&self) -> &'static str {
        match self.head.version {
            10 => "1",
            11 => "1.1",
            _ => "0",
        }
    }
}

/// A value of a variable.
enum Value {
    Text(Option<String>),
    Number(u64),
    Time(f64),
    /// A code of three digits.
    Code(u16),
}

const VARIABLES: &[&str] = &[
    "certs",
    "content_type",
    "errormsg",
    "exitcode",
    "filename_effective",
    "ftp_entry_path",
    "http_code",
    "http_connect",
    "http_version",
    "local_ip",
    "local_port",
    "method",
    "num_certs",
    "num_connects",
    "num_headers",
    "num_redirects",
    "proxy_ssl_verify_result",
    "redirect_url",
    "referer",
    "remote_ip",
    "remote_port",
    "response_code",
    "scheme",
    "size_download",
    "size_header",
    "size_request",
    "size_upload",
    "speed_download",
    "speed_upload",
    "ssl_verify_result",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_pretransfer",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "url",
    "url_effective",
    "urlnum",
];

fn value(stats: &Stats, name: &str) -> Option<Value> {
    let ip = |address: Option<SocketAddr>| Value::Text(address.map(|address| address.ip().to_string()));
    let port =
        |address: Option<SocketAddr>| Value::Number(address.map_or(0, |address| u64::from(address.port())));
    Some(match name {
        "certs" => Value::Text(Some(String::new())),
        "content_type" => Value::Text(stats.head.header("Content-Type").map(str::to_owned)),
        "errormsg" => Value::Text(stats.error.clone()),
        "exitcode" => Value::Number(stats.code.unsigned_abs().into()),
        "filename_effective" => Value::Text(stats.file.clone()),
        "ftp_entry_path" => Value::Text(None),
        "http_code" | "response_code" => Value::Code(stats.head.status),
        "http_connect" => Value::Code(0),
        "http_version" => Value::Text(Some(stats.http_version().to_owned())),
        "local_ip" => ip(stats.local),
        "local_port" => port(stats.local),
        "remote_ip" => ip(stats.remote),
        "remote_port" => port(stats.remote),
        "method" => Value::Text(Some(stats.method.clone())),
        "num_certs" | "proxy_ssl_verify_result" | "ssl_verify_result" => Value::Number(0),
        "num_connects" => Value::Number(stats.connects),
        "num_headers" => Value::Number(stats.headers),
        "num_redirects" => Value::Number(stats.redirects),
        "redirect_url" => Value::Text(stats.redirect_url.clone()),
        "referer" => Value::Text(stats.referer.clone()),
        "scheme" => Value::Text(Some(stats.scheme.to_ascii_uppercase()).filter(|scheme| !scheme.is_empty())),
        "size_download" => Value::Number(stats.size_download),
        "size_header" => Value::Number(stats.size_header),
        "size_request" => Value::Number(stats.size_request),
        "size_upload" => Value::Number(stats.size_upload),
        "speed_download" => Value::Number(stats.speed(stats.size_download)),
        "speed_upload" => Value::Number(stats.speed(stats.size_upload)),
        "time_appconnect" => Value::Time(stats.secure),
        "time_connect" => Value::Time(stats.connect),
        "time_namelookup" => Value::Time(stats.look_up),
        "time_pretransfer" => Value::Time(stats.before),
        "time_redirect" => Value::Time(stats.redirect),
        "time_starttransfer" => Value::Time(stats.first),
        "time_total" => Value::Time(stats.total),
        "url" => Value::Text(Some(stats.url.clone())),
        "url_effective" => Value::Text(Some(stats.effective.clone())),
        "urlnum" => Value::Number(stats.number),
        _ => return None,
    })
}

/// Two streams of text, in the order of a format.
#[derive(Default)]
pub struct Report {
    pub pieces: Vec<(i32, String)>,
    to: i32,
}

impl Report {
    fn put(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some((to, piece)) if *to == self.to => *piece += text,
            _ => self.pieces.push((self.to, text.to_owned())),
        }
    }
}

/// Fills a format in. A complaint about an unknown variable goes to standard error.
pub fn report(format: &str, stats: &Stats) -> Report {
    let mut report = Report { pieces: Vec::new(), to: 1 };
    let mut rest = format;
    while let Some(at) = rest.find(['%', '\\']) {
        report.put(&rest[..at]);
        let tail = &rest[at..];
        rest = if let Some(after) = tail.strip_prefix("%%") {
            report.put("%");
            after
        } else if let Some(after) = tail.strip_prefix("%{") {
            let Some((name, after)) = after.split_once('}') else {
                report.put("%{");
                rest = after;
                continue;
            };
            if !variable(&mut report, name, stats) {
                return report;
            }
            after
        } else if let Some(after) = tail.strip_prefix("%header{") {
            let Some((name, after)) = after.split_once('}') else {
                report.put("%header{");
                rest = after;
                continue;
            };
            report.put(stats.head.header(name).unwrap_or_default());
            after
        } else {
            escape(&mut report, tail)
        };
    }
    report.put(rest);
    report
}

/// Writes what an escape means; returns what follows it.
fn escape<'a>(report: &mut Report, tail: &'a str) -> &'a str {
    let mut letters = tail.chars();
    let first = letters.next().unwrap_or('%');
    if first == '%' {
        report.put("%");
        return letters.as_str();
    }
    match letters.next() {
        Some('r') => report.put("\r"),
        Some('n') => report.put("\n"),
        Some('t') => report.put("\t"),
        Some(other) => report.put(&format!("\\{other}")),
        None => report.put("\\"),
    }
    letters.as_str()
}

/// Writes a variable; `false` if the rest is only for failures and this is none.
fn variable(report: &mut Report, name: &str, stats: &Stats) -> bool {
    match name {
        "onerror" => return stats.code != 0,
        "stderr" => report.to = 2,
        "stdout" => report.to = 1,
        "json" => report.put(&json(stats)),
        "header_json" => report.put(&header_json(&stats.head)),
        name => match value(stats, name) {
            Some(Value::Text(text)) => report.put(&text.unwrap_or_default()),
            Some(Value::Number(number)) => report.put(&number.to_string()),
            Some(Value::Time(time)) => report.put(&format!("{time:.6}")),
            Some(Value::Code(code)) => report.put(&format!("{code:03}")),
            None => report.pieces.push((2, format!("curl: unknown --write-out variable: '{name}'\n"))),
        },
    }
    true
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            '\u{8}' => quoted += "\\b",
            '\u{c}' => quoted += "\\f",
            letter if letter < ' ' => quoted += &format!("\\u{:04x}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

fn json(stats: &Stats) -> String {
    let mut text = String::from("{");
    for name in VARIABLES {
        let shown = match value(stats, name) {
            Some(Value::Text(Some(text))) => quoted(&text),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Time(time)) => format!("{time:.6}"),
            Some(Value::Code(code)) => code.to_string(),
            Some(Value::Text(None)) | None => "null".to_owned(),
        };
        text += &format!("\"{name}\":{shown},");
    }
    text + &format!("\"curl_version\":{}}}", quoted(super::LIBRARY))
}

fn header_json(head: &Head) -> String {
    let mut done: Vec<String> = Vec::new();
    let mut entries = Vec::new();
    for (name, _) in &head.headers {
        let lower = name.to_ascii_lowercase();
        if !done.contains(&lower) {
            let values: Vec<String> = head.all(name).map(quoted).collect();
            entries.push(format!("{}:[{}]", quoted(&lower), values.join(",")));
            done.push(lower);
        }
    }
    format!("{{{}\n}}", entries.join(",\n"))
}

/// Prints what an operation wants to know about a transfer.
pub fn print(operation: &Operation, stats: &Stats) {
    let Some(format) = &operation.write_out else { return };
    for (to, text) in report(format, stats).pieces {
        // There is nowhere to say that this failed.
        let _ = wardian_abi::write_all(to, text.as_bytes());
    }
}
