//! All operations with all their URLs, one after the other unless `-Z` is given.

use super::meter::Meter;
use super::operation::{Operation, Target};
use super::options::{Global, Parsed};
use super::report::{self, Stats};
use super::sink::Sink;
use super::transfer::Transfer;
use super::urls::Urls;
use super::values::text;
use super::{Failure, Session, file, hint, parallel, set_time, warn, worker};
use crate::http::url::{self, Url};
use std::time::{Duration, Instant};

/// Performs everything; returns the exit code.
pub fn all(parsed: &Parsed) -> i32 {
    let global = &parsed.global;
    if global.parallel {
        return parallel::all(parsed).unwrap_or_else(|failed| failed);
    }
    let mut session = Session::new(global.verbose);
    let mut code = 0;
    let mut number = 0;
    for operation in &parsed.operations {
        let done =
            ready(operation, global).and_then(|operation| run(&operation, global, &mut session, &mut number));
        match done {
            Ok(last) => code = last,
            Err(last) => return last,
        }
    }
    code
}

/// Returns an operation with all that it needs. The error is an exit code that ends everything.
pub(super) fn ready(operation: &Operation, global: &Global) -> Result<Operation, i32> {
    check(operation, global)?;
    let mut operation = operation.clone();
    complete(&mut operation).map_err(|failed| {
        say(global, &failed);
        failed.code
    })?;
    Ok(operation)
}

/// Refuses what contradicts itself.
fn check(operation: &Operation, global: &Global) -> Result<(), i32> {
    if operation.targets.iter().all(|target| target.url.is_none()) {
        toolkit::complain("curl", "no URL specified!");
        return Err(hint(2));
    }
    let methods = [
        (operation.data.is_some() && !operation.get, "POST (-d, --data)"),
        (!operation.form.is_empty(), "multipart formpost (-F, --form)"),
        (operation.head, "HEAD (-I, --head)"),
        (operation.targets.iter().any(|target| target.upload.is_some()), "PUT (-T, --upload-file)"),
    ];
    let mut asked = methods.iter().filter(|(asked, _)| *asked).map(|(_, name)| *name);
    if let (Some(first), Some(second)) = (asked.next(), asked.next()) {
        if !global.silent {
            let words = "You can only select one HTTP request method! You asked for both";
            warn(&format!("{words} {first} and {second}."));
        }
        return Err(2);
    }
    if (operation.include || operation.head) && operation.remote_header_name {
        toolkit::complain("curl", "showing headers and --remote-header-name cannot be combined");
        return Err(hint(2));
    }
    if operation.resume.is_some() && (operation.range.is_some() || asked_upload(operation)) {
        let other = if operation.range.is_some() { "--range" } else { "--upload-file" };
        toolkit::complain("curl", format_args!("--continue-at and {other} cannot be combined"));
        return Err(hint(2));
    }
    Ok(())
}

fn asked_upload(operation: &Operation) -> bool {
    operation.targets.iter().any(|target| target.upload.is_some())
}

/// Adds what an operation needs from elsewhere: a password, an etag.
fn complete(operation: &mut Operation) -> Result<(), Failure> {
    if let Some(login) = operation.user.as_mut().filter(|login| !login.contains(&b':')) {
        let prompt = format!("Enter host password for user '{}':", text(login));
        let _ = wardian_abi::write_all(2, prompt.as_bytes());
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        let _ = wardian_abi::write_all(2, b"\n");
        read.map_err(|_| Failure::new(26, "Failed to open/read local data from file/application"))?;
        login.push(b':');
        login.extend_from_slice(line.trim_end_matches(['\r', '\n']).as_bytes());
    }
    if let Some(file) = &operation.etag_compare {
        let etag = std::fs::read_to_string(toolkit::files::path(file)).unwrap_or_default();
        let etag = etag.lines().next().unwrap_or_default().trim();
        let header = format!("If-None-Match: {}", if etag.is_empty() { "\"\"" } else { etag });
        operation.headers.push(header.into_bytes());
    }
    Ok(())
}

/// Performs an operation. The error is an exit code that ends everything.
fn run(operation: &Operation, global: &Global, session: &mut Session, number: &mut u64) -> Result<i32, i32> {
    let mut code = 0;
    let mut loaded = false;
    for found in Urls::of(operation) {
        let (target, url) = found.map_err(|failure| {
            say(global, &failure);
            failure.code
        })?;
        let job = Job { operation, global, target: &target, url: &url, number: *number };
        code = job.run(session, &mut loaded);
        *number += 1;
        if code != 0 && global.fail_early {
            break;
        }
    }
    save_cookies(session, operation);
    match code != 0 && global.fail_early {
        true => Err(code),
        false => Ok(code),
    }
}

/// Writes the cookies of an operation, or warns.
pub(super) fn save_cookies(session: &Session, operation: &Operation) {
    if session.save_cookies(operation).is_err() {
        let jar = operation.jar.as_deref().map(text).unwrap_or_default();
        warn(&format!("failed to save cookies in {jar}"));
    }
}

pub(super) fn say(global: &Global, failure: &Failure) {
    if !global.silent || global.show_error {
        toolkit::complain("curl", format_args!("({}) {}", failure.code, failure.message));
    }
}

/// A URL of an operation.
pub(super) struct Job<'a> {
    pub(super) operation: &'a Operation,
    pub(super) global: &'a Global,
    pub(super) target: &'a Target,
    pub(super) url: &'a str,
    pub(super) number: u64,
}

impl Job<'_> {
    pub(super) fn run(&self, session: &mut Session, loaded: &mut bool) -> i32 {
        let mut stats = Stats::new(self.url, self.number);
        let prepared = self.prepare(session, loaded);
        let (url, mut sink) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => {
                (stats.code, stats.error) = (failure.code, Some(failure.message.clone()));
                say(self.global, &failure);
                report::print(self.operation, &stats);
                return failure.code;
            }
        };
        let started = Instant::now();
        let mut left = self.operation.retry;
        let mut wait = 1;
        loop {
            let first = left == self.operation.retry;
            let done = self.attempt(session, &mut sink, &mut stats, url.clone(), first);
            stats.finish();
            stats.file = sink.path.as_deref().map(text);
            let failure = done.err().map(|failure| worker::aborted().unwrap_or(failure));
            (stats.code, stats.error) = (
                failure.as_ref().map_or(0, |failure| failure.code),
                failure.as_ref().map(|f| f.message.clone()),
            );
            let reason = self.retry_reason(failure.as_ref(), &stats);
            let pause = self.operation.retry_delay.filter(|delay| *delay > 0).unwrap_or(wait);
            let in_time =
                self.operation.retry_max.is_none_or(|max| started.elapsed().as_secs() + pause <= max);
            match reason.filter(|_| left > 0 && in_time) {
                Some(reason) => {
                    if let Some(failure) = &failure {
                        say(self.global, failure);
                    }
                    self.pause(reason, pause, left);
                    wait = (wait * 2).min(600);
                    left -= 1;
                    sink.reset();
                    stats = Stats::new(self.url, self.number);
                }
                None => return self.finish(failure, &mut sink, &stats),
            }
        }
    }

    fn pause(&self, reason: &str, pause: u64, left: u64) {
        if !self.global.silent {
            warn(&format!("Problem : {reason}. Will retry in {pause} seconds. {left} retries left."));
        }
        crate::http::wire::pause(Duration::from_secs(pause));
    }

    /// Returns why another attempt makes sense, if it does.
    fn retry_reason(&self, failure: Option<&Failure>, stats: &Stats) -> Option<&'static str> {
        let transient = [408, 429, 500, 502, 503, 504].contains(&stats.head.status);
        match failure {
            Some(failure) if failure.code == worker::ABORTED => None,
            Some(failure) if failure.code == 28 || failure.code == 6 => Some("timeout")
                .filter(|_| failure.code == 28)
                .or(Some("(retrying all errors)").filter(|_| self.operation.retry_all)),
            Some(failure) if failure.refused && self.operation.retry_refused => Some("connection refused"),
            Some(failure) if failure.code == 22 && transient => Some("HTTP error"),
            Some(_) if self.operation.retry_all => Some("(retrying all errors)"),
            None if transient => Some("HTTP error"),
            _ => None,
        }
    }

    fn finish(&self, failure: Option<Failure>, sink: &mut Sink, stats: &Stats) -> i32 {
        let Some(failure) = failure else {
            if let Some(path) = sink.path.as_ref().filter(|_| self.operation.remote_time) {
                set_time(path, &stats.head);
            }
            report::print(self.operation, stats);
            return 0;
        };
        if let Some(path) = sink.path.as_ref().filter(|_| self.operation.remove_on_error && sink.written > 0)
        {
            // What is left of it is of no use, but no worse for staying.
            let _ = std::fs::remove_file(toolkit::files::path(path));
        }
        say(self.global, &failure);
        report::print(self.operation, stats);
        failure.code
    }

    /// Reads the URL and finds out where its content goes.
    fn prepare(&self, session: &mut Session, loaded: &mut bool) -> Result<(Url, Sink), Failure> {
        let operation = self.operation;
        let default = operation.default_protocol.as_deref().unwrap_or("http");
        let mut url = Url::parse(self.url, default).map_err(|_| Failure::malformed())?;
        if operation.no_user_in_url && url.user.is_some() {
            return Err(Failure::new(67, "Login denied"));
        }
        if !operation.path_as_is && url.scheme != "file" {
            url.normalize();
        }
        if let Some(upload) = self.target.upload.as_deref().filter(|name| !matches!(*name, b"-" | b"."))
            && !self.readable(upload)
        {
            return Err(Failure::new(26, "Failed to open/read local data from file/application"));
        }
        self.complete(&mut url);
        if !std::mem::replace(loaded, true) {
            session.load_cookies(operation, &url);
        }
        let path = match (&self.target.output, self.target.remote_name) {
            (Some(name), _) if name == b"-" => Some(name.clone()),
            (Some(name), _) => Some(session.in_output_dir(operation, name)),
            (None, true) => Some(session.in_output_dir(operation, self.remote_name(&url)?.as_bytes())),
            (None, false) => None,
        };
        let mut sink = Sink::new(path);
        sink.create_dirs = operation.create_dirs;
        sink.no_clobber = operation.no_clobber;
        sink.append = operation.resume.is_some();
        Ok((url, sink))
    }

    fn readable(&self, file: &[u8]) -> bool {
        let opened = std::fs::File::open(toolkit::files::path(file)).is_ok();
        if !opened {
            toolkit::complain("curl", format_args!("Can't open '{}'!", text(file)));
            hint(26);
        }
        opened
    }

    /// Adds what options say about a URL: data in its query, the name of an upload.
    fn complete(&self, url: &mut Url) {
        let operation = self.operation;
        let data = operation.data.as_deref().filter(|_| operation.get);
        for more in [operation.url_query.as_deref(), data].into_iter().flatten() {
            let more = text(more);
            url.query = Some(match url.query.take().filter(|query| !query.is_empty()) {
                Some(query) => format!("{query}&{more}"),
                None => more,
            });
        }
        if let Some(upload) = self.target.upload.as_deref().filter(|name| !matches!(*name, b"-" | b"."))
            && url.path.ends_with('/')
            && url.query.is_none()
        {
            url.path += &url::encode(toolkit::files::base_name(upload));
        }
    }

    fn remote_name(&self, url: &Url) -> Result<String, Failure> {
        let name = url.path.rsplit('/').next().unwrap_or_default();
        if name.is_empty() && !self.operation.remote_header_name {
            if !self.global.silent {
                toolkit::complain("curl", "Remote file name has no length!");
            }
            return Err(Failure::new(23, "Failed writing received data to disk/application"));
        }
        Ok(if name.is_empty() { "curl_response".to_owned() } else { name.to_owned() })
    }

    fn attempt(
        &self,
        session: &mut Session,
        sink: &mut Sink,
        stats: &mut Stats,
        url: Url,
        first: bool,
    ) -> Result<(), Failure> {
        let operation = self.operation;
        let resume = match operation.resume {
            Some(Some(offset)) => offset,
            Some(None) => sink.path.as_deref().map_or(0, |path| {
                wardian_abi::stat(wardian_abi::Dir::CWD, path, true).map_or(0, |stat| stat.size)
            }),
            None => 0,
        };
        let shown = !self.global.silent && !self.global.no_meter && !sink.is_terminal() && !operation.head;
        let meter = Meter::new(shown, self.global.bar, first).telling(session.teller);
        if url.scheme == "file" {
            let mut meter = meter;
            stats.scheme = "file".to_owned();
            let allowed = operation.protocols.as_ref().is_none_or(|allowed| allowed.contains(&url.scheme));
            if !allowed {
                let words = "Protocol \"file\" not supported or disabled in libcurl";
                return Err(Failure::new(1, words));
            }
            let done = file::copy(&url.path, operation, sink, &mut meter, resume);
            meter.finish();
            stats.size_download = done?;
            return sink.open();
        }
        let mut transfer = Transfer::new(session, operation, self.target, sink, stats, meter);
        transfer.resume = resume;
        let done = transfer.run(url);
        transfer.meter.finish();
        done?;
        sink.open()
    }
}
