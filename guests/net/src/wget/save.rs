//! The file that a response becomes.

use super::code;
use super::fetch::{End, Fetched, Session};
use super::log;
use super::names;
use crate::http::body::{Body, Framing};
use crate::http::head::Head;
use crate::http::url::Url;
use crate::http::wire::{self, Wire};
use crate::http::{Error, date};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use wardian_abi as abi;

impl Session<'_> {
    pub(super) fn save(
        &mut self,
        url: &Url,
        wire: &mut Wire,
        head: &Head,
        framing: Framing,
        offset: u64,
    ) -> End {
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

pub fn length_line(total: Option<u64>, offset: u64, head: &Head) -> String {
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
