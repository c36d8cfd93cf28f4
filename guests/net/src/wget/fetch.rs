//! One URL: attempts, redirects, logins, and the file it becomes.

// An `End` is what a try leads to, not an error that is passed far.
#![allow(clippy::result_large_err)]

use super::code;
use super::log::{self, Log};
use super::names;
use super::options::{Body as Upload, Options, Talk};
use super::robots::Rules;
use crate::http::body::{self, Body, Framing};
use crate::http::cookies::Jar;
use crate::http::head::{self, Head};
use crate::http::tls;
use crate::http::url::Url;
use crate::http::wire::{self, Wire};
use crate::http::{Error, base64, date};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use wardian_abi as abi;

/// What lasts from URL to URL.
pub struct Session<'a> {
    options: &'a Options,
    log: &'a Log,
    pub jar: Jar,
    /// An open connection and where it leads.
    kept: Option<(String, Wire)>,
    output: Option<File>,
    pub files: u64,
    pub bytes: u64,
    pub time: f64,
    /// Whether a server has asked for the login.
    challenged: Option<String>,
}

/// What became of a URL.
pub struct Fetched {
    pub code: i32,
    pub url: Url,
    pub file: Option<Vec<u8>>,
    pub is_page: bool,
}

/// How an attempt ended.
enum End {
    Done(Fetched),
    Redirect(Url, u16),
    /// The server wants a login.
    Login,
    /// Another attempt may help.
    Again(String),
    Failed(i32),
}

/// How long TLS may take where nothing is said.
const PATIENCE: Duration = Duration::from_secs(300);

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

    fn connect(&self, url: &Url, place: &str) -> Result<Wire, End> {
        let literal = url.host.parse::<std::net::IpAddr>().is_ok();
        if !literal {
            self.log.verbose(&format!("Resolving {0} ({0})... ", url.host));
        }
        let mut addresses = wire::addresses(&url.host);
        addresses.retain(|address| {
            !(self.options.ipv4 && address.is_ipv6() || self.options.ipv6 && address.is_ipv4())
        });
        if addresses.is_empty() {
            self.log.verbose("failed: Name or service not known.\n");
            self.log.always(&format!("wget: unable to resolve host address ‘{}’\n", url.host));
            return Err(End::Failed(code::NETWORK));
        }
        if !literal {
            let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            self.log.verbose(&format!("{}\n", shown.join(", ")));
        }
        let mut refused = true;
        for address in addresses {
            let shown = match literal {
                true => place.to_owned(),
                false => format!("{} ({})|{address}|:{}", url.host, url.host, url.port_or_default()),
            };
            self.log.verbose(&format!("Connecting to {shown}... "));
            let target = SocketAddr::new(address, url.port_or_default());
            match Wire::connect(&target, self.options.connect_timeout) {
                Ok(wire) => {
                    self.log.verbose("connected.\n");
                    return self.secure(url, wire);
                }
                Err(errno) => {
                    refused &= errno == abi::Errno::CONNREFUSED;
                    self.log.verbose(&format!("failed: {errno}.\n"));
                }
            }
        }
        match refused && !self.options.retry_refused {
            true => Err(End::Failed(code::NETWORK)),
            false => Err(End::Again(String::new())),
        }
    }

    fn secure(&self, url: &Url, mut wire: Wire) -> Result<Wire, End> {
        if url.scheme != "https" {
            return Ok(wire);
        }
        let patience = self.options.read_timeout.unwrap_or(PATIENCE);
        wire.deadline = Some(Instant::now() + patience);
        match tls::start(&mut wire, &url.host, !self.options.insecure, true) {
            Ok(()) => Ok(wire),
            Err(tls::Refused::Answer(kind, message)) if kind == "certificate" || kind == "name" => {
                self.log.always(&format!(
                    "ERROR: cannot verify {0}'s certificate: {message}\nTo connect to {0} insecurely, use \
                     `--no-check-certificate'.\n",
                    url.host
                ));
                Err(End::Failed(code::TLS))
            }
            Err(tls::Refused::Answer(_, message)) => {
                self.log.always(&format!("Unable to establish SSL connection: {message}\n"));
                Err(End::Failed(code::NETWORK))
            }
            Err(_) => {
                self.log.verbose("Unable to establish SSL connection.\n");
                Err(End::Failed(code::NETWORK))
            }
        }
    }

    /// Returns how much of a file is there, for `-c`.
    fn resume_from(&self, url: &Url) -> u64 {
        if !self.options.resume || self.options.spider {
            return 0;
        }
        let path = self.options.output.clone().unwrap_or_else(|| names::path_for(url, self.options, None));
        abi::stat(abi::Dir::CWD, &path, true).map_or(0, |stat| stat.size)
    }

    fn request(
        &mut self,
        request: &Request<'_>,
        logged_in: bool,
        resume: u64,
    ) -> Result<(String, Vec<u8>), End> {
        let (url, options) = (request.url, self.options);
        let own = match (request.body.is_some(), options.spider) {
            (true, _) => "POST",
            (false, true) => "HEAD",
            _ => "GET",
        };
        let method = request.method.unwrap_or(own).to_owned();
        let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
        let mut put = |name: &str, value: &[u8]| headers.push((name.to_owned(), value.to_vec()));
        put("Host", url.authority().as_bytes());
        if let Some(referer) = options.referer.as_deref().or(request.referer.map(str::as_bytes)) {
            put("Referer", referer);
        }
        if options.no_cache {
            put("Cache-Control", b"no-cache");
            put("Pragma", b"no-cache");
        }
        if resume > 0 {
            put("Range", format!("bytes={resume}-").as_bytes());
        }
        match &options.agent {
            Some(agent) if agent.is_empty() => {}
            Some(agent) => put("User-Agent", agent),
            None => put("User-Agent", b"Wget/1.21.3"),
        }
        put("Accept", b"*/*");
        put("Accept-Encoding", b"identity");
        let login =
            options.auth_at_once || logged_in || self.challenged.as_deref() == Some(url.authority().as_str());
        if let Some(login) = self.login(url).filter(|_| login) {
            put("Authorization", format!("Basic {}", base64::encode(login.as_bytes())).as_bytes());
        }
        put("Connection", if options.no_keep_alive { b"Close" } else { b"Keep-Alive" });
        if let Some(cookies) = self.jar.header(url, false).filter(|_| !options.no_cookies) {
            put("Cookie", cookies.as_bytes());
        }
        if let Some(length) = self.body_length(request)? {
            put("Content-Type", b"application/x-www-form-urlencoded");
            put("Content-Length", length.to_string().as_bytes());
        }
        for header in &options.headers {
            let at = header.iter().position(|&byte| byte == b':').unwrap_or(header.len());
            let (name, value) =
                (String::from_utf8_lossy(&header[..at]), header.get(at + 1..).unwrap_or_default());
            match headers.iter_mut().find(|(key, _)| key.eq_ignore_ascii_case(&name)) {
                Some((_, old)) => *old = value.trim_ascii().to_vec(),
                None => headers.push((name.into_owned(), value.trim_ascii().to_vec())),
            }
        }
        // A login that a server asked for goes last, as wget has it.
        headers.sort_by_key(|(name, _)| name == "Authorization" && !options.auth_at_once);
        let mut bytes = format!("{method} {} HTTP/1.1\r\n", url.target()).into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: ").as_bytes());
            bytes.extend_from_slice(&value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        Ok((method, bytes))
    }

    fn login(&self, url: &Url) -> Option<String> {
        let user = url.user.clone().or(self.options.user.clone())?;
        let password = url.password.clone().filter(|text| !text.is_empty()).or(self.options.password.clone());
        Some(format!("{user}:{}", password.unwrap_or_default()))
    }

    fn body_length(&self, request: &Request<'_>) -> Result<Option<u64>, End> {
        match request.body {
            None => Ok(None),
            Some(Upload::Data(data)) => Ok(Some(data.len() as u64)),
            Some(Upload::File(file)) => match std::fs::metadata(toolkit::files::path(file)) {
                Ok(metadata) => Ok(Some(metadata.len())),
                Err(error) => {
                    let name = String::from_utf8_lossy(file);
                    self.log
                        .always(&format!("BODY data file ‘{name}’ missing: {}\n", abi::Errno::from(error)));
                    Err(End::Failed(code::FILE))
                }
            },
        }
    }

    fn send_body(&self, wire: &mut Wire, request: &Request<'_>) -> Result<(), Error> {
        match request.body {
            None => Ok(()),
            Some(Upload::Data(data)) => wire.send(data),
            Some(Upload::File(file)) => {
                let unreadable = |error: std::io::Error| Error::Send(abi::Errno::from(error));
                let mut file = File::open(toolkit::files::path(file)).map_err(unreadable)?;
                let mut buffer = vec![0; 16 * 1024];
                loop {
                    match std::io::Read::read(&mut file, &mut buffer).map_err(unreadable)? {
                        0 => return Ok(()),
                        count => wire.send(&buffer[..count])?,
                    }
                }
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

    fn save(&mut self, url: &Url, wire: &mut Wire, head: &Head, framing: Framing, offset: u64) -> End {
        let left = match framing {
            Framing::Length(length) => Some(length),
            _ => None,
        };
        let total = left.map(|left| left + offset);
        let given = head.header("Content-Disposition").filter(|_| self.options.content_disposition);
        let given = given.and_then(crate::curl::disposition_name);
        let (path, mut out) = match self.target(url, given.as_deref(), offset) {
            Ok(target) => target,
            Err((name, errno)) => {
                self.log.always(&format!("{name}: {errno}\n\nCannot write to ‘{name}’ ({errno}).\n"));
                return End::Failed(code::FILE);
            }
        };
        let shown = match &path {
            None => "STDOUT".to_owned(),
            Some(path) => String::from_utf8_lossy(path).into_owned(),
        };
        self.log.verbose(&length_line(total, offset, head));
        self.log.verbose(&format!("Saving to: ‘{shown}’\n"));
        let started = Instant::now();
        let mut dots = self.log.progress(offset, total);
        let mut body = Body::new(framing);
        let mut got = 0;
        let ended = loop {
            wire.deadline = self.options.read_timeout.map(|time| Instant::now() + time);
            let count = match body.next(wire) {
                Ok(0) => break Ok(()),
                Ok(count) => count,
                Err(error) => break Err(error),
            };
            let written = match &mut out {
                Out::Stdout => abi::write_all(1, &wire.buffered()[..count]),
                Out::Shared(fd) => abi::write_all(*fd, &wire.buffered()[..count]),
                Out::File(file) => file.write_all(&wire.buffered()[..count]).map_err(Into::into),
            };
            if let Err(errno) = written {
                self.log.always(&format!("\n\nCannot write to ‘{shown}’ ({errno}).\n"));
                return End::Failed(code::FILE);
            }
            wire.consume(count);
            got += count as u64;
            dots.reach(offset + got, count as u64);
            if let Some(rate) = self.options.limit_rate {
                let due = Duration::from_secs_f64((got as f64 / rate as f64).min(86_400.0));
                wire::pause(due.saturating_sub(started.elapsed()));
            }
        };
        dots.finish(offset + got);
        let speed = log::speed(got, started.elapsed().as_secs_f64());
        if let Err(error) = ended {
            return self.cut(&error, offset + got, &speed);
        }
        self.files += 1;
        self.bytes += got;
        let sizes =
            total.map_or(format!("[{}]", offset + got), |total| format!("[{}/{total}]", offset + got));
        match &path {
            None => self.log.verbose(&format!("{} ({speed}) - written to stdout {sizes}\n\n", log::now())),
            Some(_) => self.log.verbose(&format!("{} ({speed}) - ‘{shown}’ saved {sizes}\n\n", log::now())),
        }
        let name = if path.is_none() { "-" } else { &shown };
        self.log.brief(&format!("{} URL:{} {sizes} -> \"{name}\" [1]\n", log::now(), url.text()));
        drop(out);
        if let Some(path) = &path {
            self.set_time(path, head);
        }
        let kind = head.header("Content-Type").unwrap_or_default().to_ascii_lowercase();
        let is_page = kind.starts_with("text/html") || kind.starts_with("application/xhtml+xml");
        End::Done(Fetched { code: 0, url: url.clone(), file: path, is_page })
    }

    fn cut(&self, error: &Error, position: u64, speed: &str) -> End {
        let words = match error {
            Error::Short(_) | Error::ShortChunk => format!("Connection closed at byte {position}. "),
            Error::Timeout => format!("Read error at byte {position} (Connection timed out)."),
            Error::Receive(errno) => format!("Read error at byte {position} ({errno})."),
            _ => format!("Read error at byte {position} (invalid chunk)."),
        };
        End::Again(format!("{} ({speed}) - {words}", log::now()))
    }

    /// Opens what a document is written to.
    fn target(&self, url: &Url, given: Option<&str>, offset: u64) -> Result<Opened, (String, abi::Errno)> {
        if let Some(name) = &self.options.output {
            return match &self.output {
                Some(file) => {
                    // The same place in the same file, for one document after the other.
                    let failed = |errno| (String::from_utf8_lossy(name).into_owned(), errno);
                    let fd = abi::dup(file.as_raw_fd(), 3, true).map_err(failed)?;
                    Ok((Some(name.clone()), Out::Shared(fd)))
                }
                None => Ok((None, Out::Stdout)),
            };
        }
        let mut path = names::path_for(url, self.options, given);
        let tree = self.options.recursive || self.options.requisites;
        if offset == 0 && (self.options.no_directories || !tree) && !self.options.resume {
            path = names::unused(path);
        }
        let shown = String::from_utf8_lossy(&path).into_owned();
        let failed = |error: std::io::Error| (shown.clone(), abi::Errno::from(error));
        let parent = toolkit::files::parent(&path);
        if !parent.is_empty() {
            std::fs::create_dir_all(toolkit::files::path(&parent)).map_err(failed)?;
        }
        let mut how = std::fs::OpenOptions::new();
        how.create(true).write(true).append(offset > 0).truncate(offset == 0);
        let file = how.open(toolkit::files::path(&path)).map_err(failed)?;
        Ok((Some(path), Out::File(file)))
    }

    fn set_time(&self, path: &[u8], head: &Head) {
        let moment =
            head.header("Last-Modified").and_then(date::parse).filter(|_| !self.options.no_timestamps);
        if let Some(moment) = moment {
            // The content is there; a time that cannot be set is no failure.
            let _ =
                abi::set_times(abi::Dir::CWD, path, true, None, Some(moment.saturating_mul(1_000_000_000)));
        }
    }
}

/// A request in the making.
pub struct Request<'a> {
    url: &'a Url,
    referer: Option<&'a str>,
    method: Option<&'a str>,
    body: Option<&'a Upload>,
}

enum Out {
    Stdout,
    File(File),
    /// A copy of the descriptor of the one file for everything.
    Shared(abi::Fd),
}

impl Drop for Out {
    fn drop(&mut self) {
        if let Out::Shared(fd) = self {
            let _ = abi::close(*fd);
        }
    }
}

fn is_basic(value: &str) -> bool {
    value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("basic"))
}

fn length_line(total: Option<u64>, offset: u64, head: &Head) -> String {
    let kind = head.header("Content-Type").map(|kind| kind.split(';').next().unwrap_or_default().trim());
    let kind = kind.map(|kind| format!(" [{kind}]")).unwrap_or_default();
    match total {
        Some(total) => {
            let human = if total >= 1024 { format!(" ({})", log::human(total)) } else { String::new() };
            let rest = if offset > 0 { format!(", {} remaining", total - offset) } else { String::new() };
            format!("Length: {total}{human}{rest}{kind}\n")
        }
        None => format!("Length: unspecified{kind}\n"),
    }
}

/// What is there already of a file, if it is needed, and where the rest goes.
type Opened = (Option<Vec<u8>>, Out);
