//! One URL: attempts, redirects, logins, and the file it becomes.

use super::code;
use super::log::{self, Log};
use super::names;
use super::options::{Options, Talk};
use super::request::Request;
use super::robots::Rules;
use super::save::length_line;
use crate::http::Error;
use crate::http::body::{self, Body, Framing};
use crate::http::cookies::Jar;
use crate::http::head::{self, Head};
use crate::http::url::Url;
use crate::http::wire::{self, Wire};
use std::fs::File;
use std::time::{Duration, Instant};
use wardian_abi as abi;

/// What lasts from URL to URL.
pub struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) log: &'a Log,
    pub jar: Jar,
    /// An open connection and where it leads.
    pub(super) kept: Option<(String, Wire)>,
    pub(super) output: Option<File>,
    pub files: u64,
    pub bytes: u64,
    pub time: f64,
    /// Whether a server has asked for the login.
    pub(super) challenged: Option<String>,
}

/// What became of a URL.
pub struct Fetched {
    pub code: i32,
    pub url: Url,
    pub file: Option<Vec<u8>>,
    pub is_page: bool,
}

/// How an attempt ended.
pub enum End {
    Done(Fetched),
    Redirect(Url, u16),
    /// The server wants a login.
    Login,
    /// Another attempt may help.
    Again(String),
    Failed(i32),
}

impl<'a> Session<'a> {
    pub fn new(options: &'a Options, log: &'a Log) -> Session<'a> {
        Session {
            options,
            log,
            jar: Jar::default(),
            kept: None,
            output: None,
            files: 0,
            bytes: 0,
            time: 0.0,
            challenged: None,
        }
    }

    /// Opens the one file for everything, if there is one.
    pub fn open_output(&mut self) -> bool {
        let Some(name) = self.options.output.as_ref().filter(|name| *name != b"-") else { return true };
        let mut how = std::fs::OpenOptions::new();
        how.create(true).write(true).append(self.options.resume).truncate(!self.options.resume);
        match how.open(toolkit::files::path(name)) {
            Ok(file) => {
                self.output = Some(file);
                true
            }
            Err(error) => {
                let errno = abi::Errno::from(error);
                self.log.raw(&format!("{}: {errno}\n", String::from_utf8_lossy(name)));
                false
            }
        }
    }

    /// Fetches the rules of a site for programs.
    pub fn robots(&mut self, start: &Url) -> Rules {
        let Ok(url) = start.join("/robots.txt") else { return Rules::default() };
        let quiet = Options { recursive: false, output: None, spider: false, ..self.options.clone() };
        let prefix = toolkit::files::join(b"/tmp", format!("wget-robots-{}", abi::getpid()).as_bytes());
        let options =
            Options { prefix: prefix.clone(), force_directories: false, requisites: false, ..quiet };
        let mut session = Session::new(&options, self.log);
        session.kept = self.kept.take();
        let fetched = session.fetch(&url, None);
        self.kept = session.kept.take();
        let text = fetched.file.as_ref().and_then(|file| std::fs::read(toolkit::files::path(file)).ok());
        // What is left of it there does no harm.
        let _ = std::fs::remove_dir_all(toolkit::files::path(&prefix));
        text.map(|text| Rules::parse(&String::from_utf8_lossy(&text))).unwrap_or_default()
    }

    /// Fetches a URL, following redirects and trying again as the options say.
    pub fn fetch(&mut self, url: &Url, referer: Option<&str>) -> Fetched {
        let mut url = url.clone();
        let mut method = self.options.method.clone();
        let mut body = self.options.body.clone();
        let (mut redirects, mut attempt, mut logged_in) = (0, 1, false);
        let failed = |code: i32, url: &Url| Fetched { code, url: url.clone(), file: None, is_page: false };
        if let Some(fetched) = self.already_there(&url) {
            return fetched;
        }
        loop {
            let try_text = if attempt > 1 { format!("(try:{attempt:2})  ") } else { String::new() };
            if !logged_in || attempt > 1 {
                self.log.verbose(&format!("--{}--  {try_text}{}\n", log::now(), url.text()));
            }
            let request = Request { url: &url, referer, method: method.as_deref(), body: body.as_ref() };
            match self.attempt(&request, logged_in) {
                End::Done(fetched) => return fetched,
                End::Failed(code) => return failed(code, &url),
                End::Login if logged_in => {
                    self.log.verbose("\nUsername/Password Authentication Failed.\n");
                    return failed(code::LOGIN, &url);
                }
                End::Login => logged_in = true,
                End::Redirect(next, status) => {
                    redirects += 1;
                    if redirects > self.options.max_redirect {
                        self.log.always(&format!("{} redirections exceeded.\n", self.options.max_redirect));
                        return failed(code::SERVER, &url);
                    }
                    if ![307, 308].contains(&status) {
                        body = None;
                        method = method.filter(|method| method == "HEAD");
                    }
                    (url, attempt) = (next, 1);
                }
                End::Again(words) => {
                    self.kept = None;
                    if self.options.tries > 0 && attempt >= self.options.tries {
                        self.log.verbose(&format!("{words}Giving up.\n\n"));
                        return failed(code::NETWORK, &url);
                    }
                    self.log.verbose(&format!("{words}Retrying.\n\n"));
                    wire::pause(Duration::from_secs(attempt.min(self.options.wait_retry)));
                    attempt += 1;
                }
            }
        }
    }

    /// A file that is there already is not fetched if the options say so.
    fn already_there(&self, url: &Url) -> Option<Fetched> {
        if !self.options.no_clobber || self.options.spider {
            return None;
        }
        let path = self.options.output.clone().unwrap_or_else(|| names::path_for(url, self.options, None));
        abi::stat(abi::Dir::CWD, &path, true).ok()?;
        let name = String::from_utf8_lossy(&path);
        self.log.verbose(&format!("File ‘{name}’ already there; not retrieving.\n\n"));
        let is_page = [".html", ".htm"].iter().any(|end| name.ends_with(end));
        Some(Fetched { code: 0, url: url.clone(), file: Some(path), is_page })
    }

    fn attempt(&mut self, request: &Request<'_>, logged_in: bool) -> End {
        let url = request.url;
        let key = format!("{}://{}:{}", url.scheme, url.host, url.port_or_default());
        let place = format!("{}:{}", url.host_in_brackets(), url.port_or_default());
        let kept = self.kept.take().filter(|(old, _)| *old == key);
        let reused = kept.is_some();
        let mut wire = match kept {
            Some((_, wire)) => {
                self.log.verbose(&format!("Reusing existing connection to {place}.\n"));
                wire
            }
            None => match self.connect(url, &place) {
                Ok(wire) => wire,
                Err(end) => return end,
            },
        };
        wire.deadline = self.options.read_timeout.map(|time| Instant::now() + time);
        let resume = self.resume_from(url);
        let (method, bytes) = match self.request(request, logged_in, resume) {
            Ok(made) => made,
            Err(end) => return end,
        };
        self.log.verbose("HTTP request sent, awaiting response... ");
        let sent = wire.send(&bytes).and_then(|()| self.send_body(&mut wire, request));
        let mut spent = 0;
        let read = sent.and_then(|()| {
            loop {
                let head = head::read(&mut wire, &mut spent, |_, _| {})?;
                if head.status / 100 != 1 {
                    break Ok(head);
                }
            }
        });
        let head = match read {
            Ok(head) => head,
            // A kept connection that is gone is no attempt.
            Err(Error::Empty | Error::Receive(_) | Error::Send(_)) if reused => {
                self.log.verbose("No data received.\n");
                return self.attempt(request, logged_in);
            }
            Err(error) => return self.no_head(&error),
        };
        self.show_head(&head);
        self.response(request, wire, &key, &head, &method, resume)
    }

    fn no_head(&self, error: &Error) -> End {
        match error {
            Error::Empty => End::Again("No data received.\n".to_owned()),
            Error::Timeout => End::Again("Read error (Connection timed out) in headers.\n".to_owned()),
            Error::Receive(errno) => End::Again(format!("Read error ({errno}) in headers.\n")),
            Error::Send(errno) => End::Again(format!("Failed writing HTTP request: {errno}.\n")),
            Error::NotHttp => {
                self.log.verbose("200 No headers, assuming HTTP/0.9\n");
                self.log.always("The answer is not HTTP/1; HTTP/0.9 is not available in this sandbox.\n");
                End::Failed(code::PROTOCOL)
            }
            _ => {
                self.log.always("The answer's headers are too large.\n");
                End::Failed(code::PROTOCOL)
            }
        }
    }

    fn show_head(&self, head: &Head) {
        if !self.options.server_response {
            self.log.verbose(&format!("{} {}\n", head.status, head.reason));
            return;
        }
        if self.log.talk == Talk::Much {
            self.log.raw("\n");
        }
        let version = if head.version == 10 { "1.0" } else { "1.1" };
        let mut text = format!("  HTTP/{version} {} {}\n", head.status, head.reason);
        for (name, value) in &head.headers {
            text += &format!("  {name}: {value}\n");
        }
        self.log.raw(&text);
    }

    fn response(
        &mut self,
        request: &Request<'_>,
        mut wire: Wire,
        key: &str,
        head: &Head,
        method: &str,
        resume: u64,
    ) -> End {
        let url = request.url;
        if !self.options.no_cookies {
            for header in head.all("Set-Cookie") {
                self.jar.set(header, url);
            }
        }
        let framing = match body::framing(method, head) {
            Ok(framing) => framing,
            Err(_) => {
                self.log.always("The answer's length is invalid.\n");
                return End::Failed(code::PROTOCOL);
            }
        };
        let location =
            head.header("Location").filter(|_| [300, 301, 302, 303, 307, 308].contains(&head.status));
        if let Some(location) = location {
            let next = url.join(location).ok().filter(|url| ["http", "https"].contains(&url.scheme.as_str()));
            let Some(next) = next else {
                self.log.always(&format!("{location}: Unsupported scheme.\n"));
                return End::Failed(code::GENERIC);
            };
            self.log.verbose(&format!("Location: {location} [following]\n"));
            self.skip(wire, key, head, framing);
            return End::Redirect(next, head.status);
        }
        if head.status == 401 && self.login(url).is_some() && head.all("WWW-Authenticate").any(is_basic) {
            let realm = head.all("WWW-Authenticate").find(|value| is_basic(value)).unwrap_or_default();
            self.log.verbose(&format!("Authentication selected: {realm}\n"));
            self.challenged = Some(url.authority());
            self.skip(wire, key, head, framing);
            return End::Login;
        }
        if self.options.spider {
            return self.spider(url, head);
        }
        let complete =
            resume > 0 && (head.status == 416 || head.status == 200 && framing == Framing::Length(resume));
        if complete {
            self.log.verbose("\n    The file is already fully retrieved; nothing to do.\n\n");
            return End::Done(Fetched { code: 0, url: url.clone(), file: None, is_page: false });
        }
        if head.status >= 400 && !self.options.content_on_error || head.status / 100 == 3 {
            return self.refused(url, head, wire, key, framing);
        }
        let offset = if head.status == 206 { resume } else { 0 };
        let started = Instant::now();
        let end = self.save(url, &mut wire, head, framing, offset);
        self.time += started.elapsed().as_secs_f64();
        if head.keeps_alive() && framing != Framing::Close && matches!(end, End::Done(_)) {
            self.kept = Some((key.to_owned(), wire));
        }
        match end {
            End::Done(fetched) if head.status >= 400 => End::Done(Fetched { code: code::SERVER, ..fetched }),
            end => end,
        }
    }

    fn refused(&mut self, url: &Url, head: &Head, wire: Wire, key: &str, framing: Framing) -> End {
        if head.status == 401 {
            self.log.verbose("\nUsername/Password Authentication Failed.\n");
            self.log.brief(&format!("{}:\n{} ERROR 401: {}.\n", url.text(), log::now(), head.reason));
            return End::Failed(code::LOGIN);
        }
        if self.options.retry_statuses.contains(&head.status) {
            return End::Again(String::new());
        }
        self.log.brief(&format!("{}:\n", url.text()));
        self.log.always(&format!("{} ERROR {}: {}.\n", log::now(), head.status, head.reason));
        self.log.verbose("\n");
        self.skip(wire, key, head, framing);
        End::Failed(code::SERVER)
    }

    fn spider(&mut self, url: &Url, head: &Head) -> End {
        if head.status >= 400 {
            self.log.verbose("Remote file does not exist -- broken link!!!\n\n");
            self.log.brief(&format!("{}:\nRemote file does not exist -- broken link!!!\n", url.text()));
            return End::Failed(code::SERVER);
        }
        let length = head.header("Content-Length").and_then(|text| text.parse().ok());
        self.log.verbose(&length_line(length, 0, head));
        self.log.verbose("Remote file exists.\n\n");
        self.log.brief(&format!("{} URL: {} {} OK\n", log::now(), url.text(), head.status));
        End::Done(Fetched { code: 0, url: url.clone(), file: None, is_page: false })
    }

    /// Reads a body that nobody wants, if it is short; else the connection goes with it.
    fn skip(&mut self, mut wire: Wire, key: &str, head: &Head, framing: Framing) {
        let short = !matches!(framing, Framing::Close)
            && !matches!(framing, Framing::Length(length) if length > 65_536);
        let mut body = Body::new(framing);
        let mut left = 65_536_usize;
        while short && head.keeps_alive() && left > 0 {
            match body.next(&mut wire) {
                Ok(0) => {
                    self.kept = Some((key.to_owned(), wire));
                    return;
                }
                Ok(count) => {
                    wire.consume(count);
                    left = left.saturating_sub(count);
                }
                Err(_) => return,
            }
        }
    }
}

fn is_basic(value: &str) -> bool {
    value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("basic"))
}
