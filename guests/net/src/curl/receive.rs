//! A transfer's response: its head, whether it leads elsewhere, and its body.

use super::Failure;
use super::connect::Connection;
use super::transfer::{Next, Transfer};
use crate::http::body::{self, Body, Framing};
use crate::http::decode::Decoder;
use crate::http::head::{self, Head};
use crate::http::url::Url;
use crate::http::{Error, date};
use std::time::{Duration, Instant};

impl Transfer<'_> {
    /// Reads heads until one is not provisional.
    pub(super) fn final_head(
        &mut self,
        connection: &mut Connection,
        url: &Url,
        spent: &mut usize,
    ) -> Result<Head, Failure> {
        loop {
            let head = self.read_head(connection, url, spent, true)?;
            if head.status / 100 != 1 {
                return Ok(head);
            }
            if head.status == 101 {
                return Err(Failure::new(8, "the server switched to another protocol"));
            }
        }
    }

    pub(super) fn read_head(
        &mut self,
        connection: &mut Connection,
        url: &Url,
        spent: &mut usize,
        is_last: bool,
    ) -> Result<Head, Failure> {
        let before = *spent;
        let (operation, session) = (self.operation, &mut *self.session);
        let mut lines = Vec::new();
        let read = head::read(&mut connection.wire, spent, |so_far, line| {
            session.trace_head_line(so_far, line, operation, url);
            lines.extend_from_slice(line);
        });
        let head = read.map_err(|error| self.failure(error, is_last && before == 0))?;
        self.stats.first = self.stats.elapsed();
        self.stats.size_header += lines.len() as u64;
        self.stats.headers = head.headers.len() as u64;
        let failed = operation.fail && head.status >= 400;
        if !failed && head.status != 100 {
            self.session.trace_line('<', b"");
        }
        if operation.include || operation.head {
            self.sink.write(&lines)?;
        }
        self.session.dump_headers(operation, &lines)?;
        Ok(head)
    }

    pub(super) fn take_response(
        &mut self,
        connection: &mut Connection,
        url: &Url,
        method: &str,
        head: Head,
    ) -> Result<(Next, bool), Failure> {
        let operation = self.operation;
        self.stats.redirect_url = None;
        let redirect = self.redirect(url, &head)?;
        self.stats.head = head.clone();
        let mut framing = body::framing(method, &head).map_err(|error| self.failure(error, false))?;
        if operation.head && method != "HEAD" {
            framing = Framing::None;
        }
        if operation.ignore_length && matches!(framing, Framing::Length(_)) {
            framing = Framing::Close;
        }
        if let Some(next) = redirect {
            self.session.info("Ignoring the response-body");
            let keep = self.skip(connection, framing)? && head.keeps_alive();
            return Ok((Next::Redirect(next), keep));
        }
        if operation.fail && head.status >= 400 {
            return Err(Failure::new(22, &format!("The requested URL returned error: {}", head.status)));
        }
        self.check_sizes(&head, framing)?;
        if operation.remote_header_name && self.target.remote_name {
            self.name_by_header(&head)?;
        }
        let ignored = self.is_old(&head) || self.resume > 0 && head.status == 416;
        let keep = match ignored {
            true => self.skip(connection, framing)?,
            false => self.body(connection, &head, framing)?,
        };
        self.session.save_etag(operation, &head)?;
        if operation.fail_with_body && head.status >= 400 {
            return Err(Failure::new(22, &format!("The requested URL returned error: {}", head.status)));
        }
        Ok((Next::Done, keep && head.keeps_alive()))
    }

    /// Returns where the response leads, if it is followed.
    fn redirect(&mut self, url: &Url, head: &Head) -> Result<Option<Url>, Failure> {
        let location = head.header("Location").filter(|_| head.status / 100 == 3);
        let Some(location) = location.filter(|location| !location.is_empty()) else { return Ok(None) };
        let joined = url.join(location);
        self.stats.redirect_url = joined.as_ref().ok().map(Url::text);
        if !self.operation.location {
            return Ok(None);
        }
        let next = joined.map_err(|_| Failure::malformed())?;
        let keep_post = match head.status {
            301 => self.operation.keep_post[0],
            302 => self.operation.keep_post[1],
            303 => self.operation.keep_post[2],
            _ => true,
        };
        let is_put = self.target.upload.is_some();
        if !keep_post && (!is_put || head.status == 303) {
            self.carries = false;
        }
        Ok(Some(next))
    }

    /// Whether a response is older than what was asked for.
    fn is_old(&self, head: &Head) -> bool {
        let Some((newer, moment)) = self.operation.time_cond.filter(|_| self.operation.range.is_none())
        else {
            return false;
        };
        let modified = head.header("Last-Modified").and_then(date::parse);
        modified.is_some_and(|modified| if newer { modified <= moment } else { modified > moment })
    }

    fn check_sizes(&mut self, head: &Head, framing: Framing) -> Result<(), Failure> {
        if let Framing::Length(length) = framing {
            self.meter.expected = Some(length);
            if self.operation.max_size.is_some_and(|max| length > max) {
                return Err(Failure::new(63, "Maximum file size exceeded"));
            }
        }
        let resumed = head.header("Content-Range").is_some_and(|range| {
            let digits: String = range.chars().filter(|letter| !letter.is_alphabetic()).collect();
            digits.trim().split('-').next().and_then(|start| start.trim().parse().ok()) == Some(self.resume)
        });
        if self.resume > 0 && head.status != 416 && !resumed {
            let words = "HTTP server doesn't seem to support byte ranges. Cannot resume.";
            return Err(Failure::new(33, words));
        }
        Ok(())
    }

    fn name_by_header(&mut self, head: &Head) -> Result<(), Failure> {
        let Some(name) = head.header("Content-Disposition").and_then(super::disposition_name) else {
            return Ok(());
        };
        let path = self.session.in_output_dir(self.operation, name.as_bytes());
        if wardian_abi::stat(wardian_abi::Dir::CWD, &path, false).is_ok() && !self.operation.no_clobber {
            return Err(Failure::new(23, "Failed writing header"));
        }
        self.sink.path = Some(path);
        self.sink.exclusive = true;
        Ok(())
    }

    /// Reads a body that nobody wants; whether the connection is of use afterwards.
    fn skip(&mut self, connection: &mut Connection, framing: Framing) -> Result<bool, Failure> {
        if framing == Framing::Close {
            return Ok(false);
        }
        let mut body = Body::new(framing);
        loop {
            let count = body.next(&mut connection.wire).map_err(|error| self.failure(error, false))?;
            self.session.trace_data('{', count);
            if count == 0 {
                // What comes after a response's end belongs to no request.
                return Ok(connection.wire.buffered().is_empty());
            }
            connection.wire.consume(count);
        }
    }

    fn body(&mut self, connection: &mut Connection, head: &Head, framing: Framing) -> Result<bool, Failure> {
        let encoding = head.header("Content-Encoding").filter(|_| self.operation.compressed);
        let decoder = Decoder::named(encoding.unwrap_or_default());
        let mut decoder = decoder.map_err(|error| self.failure(error, false))?;
        let mut body = Body::new(framing);
        self.window = (Instant::now(), 0);
        loop {
            let count = self.next_piece(connection, &mut body)?;
            self.session.trace_data('{', count);
            if count == 0 {
                break;
            }
            self.stats.size_download += count as u64;
            self.window.1 += count as u64;
            self.meter.down += count as u64;
            if self.operation.max_size.is_some_and(|max| self.stats.size_download > max) {
                return Err(Failure::new(63, "Maximum file size exceeded"));
            }
            let sink = &mut *self.sink;
            decoder.feed::<Failure>(&connection.wire.buffered()[..count], &mut |bytes| sink.write(bytes))?;
            connection.wire.consume(count);
            self.limit_rate(self.stats.size_download);
            self.meter.tick();
        }
        if !body.trailers.is_empty() && self.operation.include {
            self.sink.write(&body.trailers)?;
        }
        Ok(!body.ends_connection() && connection.wire.buffered().is_empty())
    }

    /// Reads on, no longer than the slowest speed allows.
    fn next_piece(&mut self, connection: &mut Connection, body: &mut Body) -> Result<usize, Failure> {
        loop {
            let limit = self
                .operation
                .speed_limit
                .or(self.operation.speed_time.map(|_| 1))
                .filter(|limit| *limit > 0);
            let Some(limit) = limit else {
                return body.next(&mut connection.wire).map_err(|error| self.failure(error, false));
            };
            let time = self.operation.speed_time.unwrap_or(30).max(1);
            let window_end = self.window.0 + Duration::from_secs(time);
            connection.wire.deadline =
                Some(self.deadline.map_or(window_end, |deadline| deadline.min(window_end)));
            let read = body.next(&mut connection.wire);
            if Instant::now() >= window_end {
                if self.window.1 < limit.saturating_mul(time) {
                    let words = format!(
                        "Operation too slow. Less than {limit} bytes/sec transferred the last {time} seconds"
                    );
                    return Err(Failure::new(28, &words));
                }
                self.window = (Instant::now(), 0);
                if read == Err(Error::Timeout) {
                    continue;
                }
            }
            connection.wire.deadline = self.deadline;
            return read.map_err(|error| self.failure(error, false));
        }
    }
}
