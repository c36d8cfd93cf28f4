//! One URL: requests until a response is final, and its body.

use super::connect::Connection;
use super::meter::Meter;
use super::operation::{Operation, Target};
use super::report::Stats;
use super::request::Request;
use super::sink::Sink;
use super::upload::{Piece, Upload};
use super::values::text;
use super::{Failure, Session, form};
use crate::http::Error;
use crate::http::url::Url;
use std::time::{Duration, Instant};

/// How many redirects are followed if nothing is said.
const REDIRECTS: i64 = 50;

/// How long to wait for a server's consent.
const CONSENT: Duration = Duration::from_secs(1);

/// A transfer that is going on.
pub struct Transfer<'a> {
    pub session: &'a mut Session,
    pub operation: &'a Operation,
    pub target: &'a Target,
    pub sink: &'a mut Sink,
    pub stats: &'a mut Stats,
    pub meter: Meter,
    pub resume: u64,
    pub(super) started: Instant,
    pub(super) deadline: Option<Instant>,
    /// Whether a body still goes along.
    pub(super) carries: bool,
    /// Where the first request went: credentials stay there.
    home: (String, String, u16),
    referer: Option<Vec<u8>>,
    read_input: bool,
    pub(super) window: (Instant, u64),
}

/// What follows a response.
pub enum Next {
    Done,
    Redirect(Url),
}

impl<'a> Transfer<'a> {
    pub fn new(
        session: &'a mut Session,
        operation: &'a Operation,
        target: &'a Target,
        sink: &'a mut Sink,
        stats: &'a mut Stats,
        meter: Meter,
    ) -> Transfer<'a> {
        let started = Instant::now();
        let deadline = operation.max_time.map(|time| started + time);
        Transfer {
            session,
            operation,
            target,
            sink,
            stats,
            meter,
            resume: 0,
            started,
            deadline,
            carries: true,
            home: Default::default(),
            referer: operation.referer.clone(),
            read_input: false,
            window: (started, 0),
        }
    }

    /// Performs it.
    pub fn run(&mut self, mut url: Url) -> Result<(), Failure> {
        let place = |url: &Url| (url.scheme.clone(), url.host.clone(), url.port_or_default());
        self.home = place(&url);
        self.check_protocol(&url, self.operation.protocols.as_deref())?;
        loop {
            self.stats.effective = url.text();
            self.stats.scheme = url.scheme.clone();
            let trusted = self.operation.trusted || place(&url) == self.home;
            match self.exchange(&url, trusted)? {
                Next::Done => return Ok(()),
                Next::Redirect(next) => {
                    let limit = self.operation.max_redirs.unwrap_or(REDIRECTS);
                    if limit >= 0 && self.stats.redirects >= limit.unsigned_abs() {
                        return Err(Failure::new(47, &format!("Maximum ({limit}) redirects followed")));
                    }
                    self.stats.redirects += 1;
                    self.stats.redirect = self.stats.elapsed();
                    if self.operation.auto_referer {
                        self.referer = Some(url.text().into_bytes());
                    }
                    self.session.info(&format!("Issue another request to this URL: '{}'", next.text()));
                    let web = ["http".to_owned(), "https".to_owned()];
                    let allowed = self.operation.redirect_protocols.as_deref().unwrap_or(&web);
                    self.check_protocol(&next, Some(allowed))?;
                    url = next;
                }
            }
        }
    }

    fn check_protocol(&self, url: &Url, allowed: Option<&[String]>) -> Result<(), Failure> {
        let known = ["http", "https"].contains(&url.scheme.as_str());
        if !known || allowed.is_some_and(|allowed| !allowed.contains(&url.scheme)) {
            let words = "not supported or disabled in libcurl";
            return Err(Failure::new(1, &format!("Protocol \"{}\" {words}", url.scheme)));
        }
        Ok(())
    }

    fn method(&self) -> String {
        let operation = self.operation;
        let own = match () {
            () if operation.head => "HEAD",
            () if !self.carries => "GET",
            () if self.target.upload.is_some() => "PUT",
            () if !operation.form.is_empty() || operation.data.is_some() && !operation.get => "POST",
            () => "GET",
        };
        operation.method.clone().unwrap_or_else(|| own.to_owned())
    }

    fn upload(&mut self) -> Result<Option<Upload>, Failure> {
        let operation = self.operation;
        if !self.carries {
            return Ok(None);
        }
        let unreadable = |_| Failure::new(26, "Failed to open/read local data from file/application");
        if let Some(file) = &self.target.upload {
            let piece = match &file[..] {
                b"-" | b"." if self.read_input => {
                    return Err(Failure::new(65, "necessary data rewind wasn't possible"));
                }
                b"-" | b"." => {
                    self.read_input = true;
                    Piece::Stream(Box::new(std::io::stdin()))
                }
                file => Piece::file(file).map_err(unreadable)?,
            };
            return Ok(Some(Upload::of(vec![piece], None)));
        }
        if !operation.form.is_empty() {
            let boundary = self.session.boundary();
            return form::upload(&operation.form, &boundary).map(Some).map_err(unreadable);
        }
        match &operation.data {
            Some(data) if !operation.get => {
                let kind = Some("application/x-www-form-urlencoded".to_owned());
                Ok(Some(Upload::of(vec![Piece::Text(data.clone())], kind)))
            }
            _ => Ok(None),
        }
    }

    /// Sends a request and takes its response.
    fn exchange(&mut self, url: &Url, trusted: bool) -> Result<Next, Failure> {
        let mut fresh = false;
        loop {
            let found = self.session.connection(self.operation, url, self.deadline, self.stats, fresh);
            let mut connection = found.map_err(|failure| self.in_time(failure))?;
            self.stats.local = connection.wire.local;
            self.stats.remote = connection.wire.peer;
            let reused = connection.reused;
            match self.ask(&mut connection, url, trusted) {
                // A kept connection that the server has closed meanwhile: once more, on a new one.
                Err(Failure { dropped: true, .. }) if reused => {
                    self.session.info("Connection died, retrying a fresh connect");
                    fresh = true;
                }
                Err(failure) => {
                    let line = failure.message.lines().next().unwrap_or_default().to_owned();
                    self.session.info(&line);
                    self.session.info(&format!("Closing connection {}", connection.number));
                    return Err(failure);
                }
                Ok((next, keep)) => {
                    match keep {
                        true => self.session.keep(connection),
                        false => self.session.info(&format!("Closing connection {}", connection.number)),
                    }
                    return Ok(next);
                }
            }
        }
    }

    /// A connection that ran into the end of all time says so.
    fn in_time(&self, failure: Failure) -> Failure {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if failure.code == 28 && over { self.timed_out(None) } else { failure }
    }

    fn ask(
        &mut self,
        connection: &mut Connection,
        url: &Url,
        trusted: bool,
    ) -> Result<(Next, bool), Failure> {
        let method = self.method();
        let mut upload = self.upload()?;
        let range = match (&self.operation.range, self.resume) {
            (_, resume) if resume > 0 => Some(format!("{resume}-")),
            (range, _) => range.clone(),
        };
        let request = Request {
            operation: self.operation,
            url,
            method: &method,
            trusted,
            cookies: self.session.cookies(self.operation, url, trusted),
            referer: self.referer.clone(),
            range,
            upload: upload.as_ref(),
            is_put: self.target.upload.is_some(),
        };
        self.stats.method = method.clone();
        self.stats.referer = self.referer.as_deref().map(text);
        let (head, chunked, expects) = (request.head(), request.is_chunked(), request.expects());
        self.stats.before = self.stats.elapsed();
        self.session.trace_request(&head, self.operation, url, trusted);
        connection.wire.send(&head).map_err(|error| self.failure(error, true))?;
        self.stats.size_request += head.len() as u64;
        let mut spent = 0;
        let mut early = None;
        if expects && upload.is_some() {
            let patience = self.operation.expect_timeout.unwrap_or(CONSENT);
            if connection.wire.answers_within(patience) {
                let first = self.read_head(connection, url, &mut spent, false)?;
                early = (first.status != 100).then_some(first);
            }
        }
        if let Some(upload) = upload.as_mut().filter(|_| early.is_none()) {
            self.send_body(connection, upload, chunked)?;
            if expects {
                self.session.info("We are completely uploaded and fine");
            }
        }
        let refused = early.is_some();
        let head = match early {
            Some(head) => head,
            None => self.final_head(connection, url, &mut spent)?,
        };
        self.session.answered();
        let (next, keep) = self.take_response(connection, url, &method, head)?;
        Ok((next, keep && !refused && !self.operation.http10))
    }

    fn send_body(
        &mut self,
        connection: &mut Connection,
        upload: &mut Upload,
        chunked: bool,
    ) -> Result<(), Failure> {
        self.meter.up_expected = upload.length.unwrap_or(0);
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let unreadable = |_| Failure::new(26, "Failed to open/read local data from file/application");
            let count = upload.read(&mut buffer).map_err(unreadable)?;
            let sent = match (chunked, count) {
                (true, 0) => connection.wire.send(b"0\r\n\r\n"),
                (true, count) => {
                    let mut chunk = format!("{count:x}\r\n").into_bytes();
                    chunk.extend_from_slice(&buffer[..count]);
                    chunk.extend_from_slice(b"\r\n");
                    connection.wire.send(&chunk)
                }
                (false, count) => connection.wire.send(&buffer[..count]),
            };
            match sent {
                Ok(()) => {}
                // A server may answer before it has read everything: then its answer counts.
                Err(Error::Send(_)) if connection.wire.answers_within(Duration::ZERO) => return Ok(()),
                Err(error) => return Err(self.failure(error, true)),
            }
            self.stats.size_upload += count as u64;
            self.stats.size_request += count as u64;
            self.meter.up += count as u64;
            self.session.trace_data('}', count);
            if count == 0 {
                return Ok(());
            }
            self.limit_rate(self.stats.size_upload);
            self.meter.tick();
        }
    }

    /// Waits until so many bytes are not too many for the time that has passed.
    pub(super) fn limit_rate(&self, bytes: u64) {
        let Some(rate) = self.operation.limit_rate else { return };
        let due = Duration::from_secs_f64((bytes as f64 / rate as f64).min(86_400.0));
        let due =
            self.deadline.map_or(due, |deadline| due.min(deadline.saturating_duration_since(self.started)));
        crate::http::wire::pause(due.saturating_sub(self.started.elapsed()));
    }

    fn timed_out(&self, expected: Option<u64>) -> Failure {
        let spent = self.started.elapsed().as_millis();
        let got = self.stats.size_download;
        let of = expected.map(|expected| format!(" out of {expected}")).unwrap_or_default();
        Failure::new(
            28,
            &format!("Operation timed out after {spent} milliseconds with {got}{of} bytes received"),
        )
    }

    /// Says what an error means. One before any byte of a response may be due to a connection that was kept too long.
    pub(super) fn failure(&self, error: Error, before_response: bool) -> Failure {
        let mut failure = match error {
            Error::Timeout => self.timed_out(self.meter.expected),
            other => Failure::from(other),
        };
        failure.dropped = before_response && matches!(failure.code, 52 | 55 | 56);
        failure
    }
}
