//! `curl`, as version 7.88 of Debian 12: HTTP/1.1 and files, with TLS by the sandbox's gateway.

mod config;
mod connect;
mod data;
mod file;
mod form;
mod glob;
mod help;
mod meter;
mod operation;
mod options;
mod overview;
mod parallel;
mod receive;
mod report;
mod request;
mod run;
mod sink;
mod table;
mod trace;
mod transfer;
mod upload;
mod urls;
mod values;
mod worker;

use crate::http::cookies::Jar;
use crate::http::head::Head;
use crate::http::url::Url;
use crate::http::{Error, date};
use operation::Operation;
use options::{Parsed, Wrong};
use std::cell::Cell;
use values::text;
use wardian_abi as abi;

/// What curl calls itself to servers.
const AGENT: &str = "curl/7.88.1";
const LIBRARY: &str = "libcurl/7.88.1 (Wardian)";

/// Why a transfer failed: curl's code and words.
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: i32,
    pub message: String,
    /// The connection ended before a response.
    dropped: bool,
    /// Nobody listens.
    refused: bool,
}

impl Failure {
    fn new(code: i32, message: &str) -> Failure {
        Failure { code, message: message.to_owned(), dropped: false, refused: false }
    }

    fn refused(message: &str) -> Failure {
        Failure { refused: true, ..Failure::new(7, message) }
    }

    fn malformed() -> Failure {
        Failure::new(3, "URL using bad/illegal format or missing URL")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Timeout => Failure::new(28, "Timeout was reached"),
            Error::Receive(errno) => Failure::new(56, &format!("Recv failure: {errno}")),
            Error::Send(errno) => Failure::new(55, &format!("Send failure: {errno}")),
            Error::Empty => Failure::new(52, "Empty reply from server"),
            Error::NotHttp => Failure::new(1, "Received HTTP/0.9 when not allowed"),
            Error::HeadTooLarge(size) => {
                Failure::new(56, &format!("Too large response headers: {size} > {}", 300 * 1024))
            }
            Error::LineTooLong => Failure::new(27, "Out of memory"),
            Error::BadLength => Failure::new(8, "Invalid Content-Length: value"),
            Error::BadFraming => Failure::new(8, "Invalid Content-Length: value"),
            Error::Short(left) => {
                Failure::new(18, &format!("transfer closed with {left} bytes remaining to read"))
            }
            Error::ShortChunk => Failure::new(18, "transfer closed with outstanding read data remaining"),
            Error::Chunk(words) => Failure::new(56, &format!("{words} in chunked-encoding")),
            Error::Decode(words) => {
                Failure::new(61, &format!("Error while processing content unencoding: {words}"))
            }
            Error::Encoding => {
                let known = "libcurl understands deflate, gzip content encodings.";
                Failure::new(61, &format!("Unrecognized content encoding type. {known}"))
            }
        }
    }
}

/// What lasts from transfer to transfer.
pub struct Session {
    pool: Vec<connect::Connection>,
    jar: Jar,
    /// Whether cookies of servers are kept.
    keeps_cookies: bool,
    connections: usize,
    verbose: bool,
    /// Whether the last line of a trace spoke of data.
    traced_data: Cell<bool>,
    /// Files for headers that have been written to already.
    dumped: Vec<Vec<u8>>,
    boundaries: u64,
    /// The way to the process that shows how all transfers go.
    teller: Option<worker::Teller>,
}

pub fn main(arguments: toolkit::Arguments) -> i32 {
    let words = toolkit::args::bytes_of(arguments);
    if words.is_empty() {
        return hint(2);
    }
    let mut parsed = Parsed::new();
    let default = match words[0].as_slice() {
        b"-q" | b"--disable" => Ok(()),
        _ => config::read_default(&mut parsed),
    };
    let taken = default.and_then(|()| parsed.arguments(words));
    for warning in &parsed.warnings {
        warn(warning);
    }
    if let Err(wrong) = taken {
        return refuse(wrong);
    }
    if let Some(file) = &parsed.global.stderr
        && let Err(error) = redirect_errors(file)
    {
        toolkit::complain("curl", format_args!("cannot write errors to '{}': {error}", text(file)));
        return 2;
    }
    run::all(&parsed)
}

/// Says what is wrong with the command line.
fn refuse(wrong: Wrong) -> i32 {
    match wrong {
        Wrong::Option(option, words) => toolkit::complain("curl", format_args!("option {option}: {words}")),
        Wrong::Refused(option, reason) => {
            toolkit::complain(
                "curl",
                format_args!("option {option}: not available in this sandbox: {reason}"),
            );
        }
        Wrong::Said(words, code) => {
            toolkit::complain("curl", words);
            return hint(code);
        }
        Wrong::Help => return help::help(),
        Wrong::Version => return help::version(),
    }
    hint(2)
}

fn hint(code: i32) -> i32 {
    toolkit::complain("curl", "try 'curl --help' or 'curl --manual' for more information");
    code
}

/// Says a warning, in lines of at most 79 letters.
fn warn(text: &str) {
    const WIDTH: usize = 79 - "Warning: ".len();
    let mut rest = text;
    let mut lines = String::new();
    while rest.len() >= WIDTH {
        let cut =
            rest.char_indices().take_while(|(at, _)| *at < WIDTH).filter(|(_, letter)| *letter == ' ').last();
        let cut = cut.map_or_else(|| rest.ceil_char_boundary_at(WIDTH), |(at, _)| at + 1);
        lines += &format!("Warning: {}\n", &rest[..cut]);
        rest = &rest[cut..];
    }
    lines += &format!("Warning: {rest}\n");
    let _ = abi::write_all(2, lines.as_bytes());
}

/// Finds where a text can be cut.
trait Boundary {
    fn ceil_char_boundary_at(&self, at: usize) -> usize;
}

impl Boundary for str {
    fn ceil_char_boundary_at(&self, at: usize) -> usize {
        (at..=self.len()).find(|at| self.is_char_boundary(*at)).unwrap_or(self.len())
    }
}

fn redirect_errors(file: &[u8]) -> Result<(), abi::Errno> {
    if file == b"-" {
        return abi::dup2(1, 2, false);
    }
    let file = std::fs::File::create(toolkit::files::path(file))?;
    abi::dup2(std::os::fd::AsRawFd::as_raw_fd(&file), 2, false)
}

impl Session {
    fn new(verbose: bool) -> Session {
        Session {
            pool: Vec::new(),
            jar: Jar::default(),
            keeps_cookies: false,
            connections: 0,
            verbose,
            traced_data: Cell::new(false),
            dumped: Vec::new(),
            boundaries: 0,
            teller: None,
        }
    }

    /// Prepares the cookies of an operation.
    fn load_cookies(&mut self, operation: &Operation, url: &Url) {
        self.keeps_cookies = operation.keeps_cookies();
        for file in &operation.cookie_files {
            // A file that is not there is an empty one: naming it switches cookies on.
            if let Ok(content) = data::read_file(file) {
                self.jar.read(&text(&content), url, operation.junk_session);
            }
        }
    }

    /// Writes the cookies of an operation.
    fn save_cookies(&self, operation: &Operation) -> Result<(), abi::Errno> {
        let Some(file) = &operation.jar else { return Ok(()) };
        let content = format!(
            "# Netscape HTTP Cookie File\n# https://curl.se/docs/http-cookies.html\n\
             # This file was generated by libcurl! Edit at your own risk.\n\n{}",
            self.jar.lines()
        );
        if file == b"-" {
            return abi::write_all(1, content.as_bytes());
        }
        // First whole, then in its place.
        let mut temporary = file.clone();
        temporary.extend_from_slice(format!(".{}.tmp", abi::getpid()).as_bytes());
        std::fs::write(toolkit::files::path(&temporary), content)?;
        Ok(std::fs::rename(toolkit::files::path(&temporary), toolkit::files::path(file))?)
    }

    fn cookies(&self, operation: &Operation, url: &Url, trusted: bool) -> Option<String> {
        let mut all: Vec<String> =
            self.jar.header(url, true).into_iter().filter(|_| self.keeps_cookies).collect();
        if trusted && !operation.cookies.is_empty() {
            let given: Vec<String> = operation.cookies.iter().map(|cookie| text(cookie)).collect();
            all.push(given.join(";"));
        }
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns a boundary for a form.
    fn boundary(&mut self) -> String {
        self.boundaries += 1;
        let mut seed = [0; 8];
        // Where there is no randomness, time and a number do.
        if std::fs::File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut seed))
            .is_err()
        {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            seed = (now.as_nanos() as u64 ^ self.boundaries << 32 ^ abi::getpid() as u64).to_ne_bytes();
        }
        format!("{}{:016x}", "-".repeat(24), u64::from_ne_bytes(seed))
    }

    /// Writes headers to the file that is named for them.
    fn dump_headers(&mut self, operation: &Operation, lines: &[u8]) -> Result<(), Failure> {
        let Some(file) = &operation.dump_header else { return Ok(()) };
        let failed = |_| Failure::new(23, "Failed writing header");
        if file == b"-" {
            return abi::write_all(1, lines).map_err(|_| Failure::new(23, "Failed writing header"));
        }
        let first = !self.dumped.contains(file);
        if first {
            self.dumped.push(file.clone());
        }
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(!first).write(true).truncate(first);
        let mut opened = options.open(toolkit::files::path(file)).map_err(failed)?;
        std::io::Write::write_all(&mut opened, lines).map_err(failed)
    }

    /// Empties the file for headers, before several processes add to it.
    fn start_headers(&mut self, operation: &Operation) {
        let Some(file) = operation.dump_header.as_ref().filter(|file| *file != b"-") else { return };
        // One that cannot be made is an error of the transfers.
        if !self.dumped.contains(file) && std::fs::File::create(toolkit::files::path(file)).is_ok() {
            self.dumped.push(file.clone());
        }
    }

    fn save_etag(&self, operation: &Operation, head: &Head) -> Result<(), Failure> {
        let (Some(file), Some(etag)) = (&operation.etag_save, head.header("ETag")) else { return Ok(()) };
        std::fs::write(toolkit::files::path(file), format!("{etag}\n"))
            .map_err(|_| Failure::new(23, "Failed writing header"))
    }

    /// Returns a path below the directory for outputs.
    fn in_output_dir(&self, operation: &Operation, name: &[u8]) -> Vec<u8> {
        match &operation.output_dir {
            Some(directory) => toolkit::files::join(directory, name),
            None => name.to_vec(),
        }
    }
}

/// Returns the file name of a `Content-Disposition`: its last part, so that no server chooses a directory.
pub fn disposition_name(value: &str) -> Option<String> {
    let at = value.to_ascii_lowercase().find("filename=")?;
    let rest = value[at + "filename=".len()..].trim_start();
    let name: String = match rest.strip_prefix(['"', '\'']) {
        Some(inner) => {
            let quote = rest.chars().next()?;
            inner.split(quote).next()?.to_owned()
        }
        None => rest.split(';').next()?.trim().to_owned(),
    };
    let name = name.rsplit(['/', '\\']).next()?.to_owned();
    let bad =
        name.is_empty() || name == "." || name == ".." || name.contains(|letter: char| letter.is_control());
    (!bad).then_some(name)
}

/// Sets the time of a file to that of the response.
fn set_time(path: &[u8], head: &Head) {
    if let Some(moment) = head.header("Last-Modified").and_then(date::parse) {
        let nanos = moment.saturating_mul(1_000_000_000);
        // The content is there; a time that cannot be set is no failure.
        let _ = abi::set_times(abi::Dir::CWD, path, true, None, Some(nanos));
    }
}
