//! `file:` URLs.

use super::operation::Operation;
use super::sink::Sink;
use super::{Failure, meter::Meter};
use crate::http::{date, url};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Copies a file, or the part of it that is asked for.
pub fn copy(
    path: &str,
    operation: &Operation,
    sink: &mut Sink,
    meter: &mut Meter,
    resume: u64,
) -> Result<u64, Failure> {
    let path = url::decode(path);
    let missing = || Failure::new(37, &format!("Couldn't open file {path}"));
    let mut file = File::open(&path).map_err(|_| missing())?;
    let metadata = file.metadata().map_err(|_| missing())?;
    let size = metadata.len();
    if operation.include || operation.head {
        let modified =
            metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(0));
        let mut head = format!(
            "Content-Length: {size}\r\nAccept-ranges: bytes\r\nLast-Modified: {}\r\n",
            date::format(modified)
        );
        if !operation.head {
            head += "\r\n";
        }
        sink.write(head.as_bytes())?;
    }
    if operation.head || metadata.is_dir() {
        return Ok(0);
    }
    let (from, to) = match &operation.range {
        Some(range) => span(range, size)?,
        None if resume > size => return Err(Failure::new(36, "Offset was beyond file size")),
        None => (resume, size),
    };
    meter.expected = Some(to - from);
    let unreadable = |_| Failure::new(26, "Failed to open/read local data from file/application");
    file.seek(SeekFrom::Start(from)).map_err(unreadable)?;
    let mut part = file.take(if operation.range.is_some() { to - from } else { u64::MAX });
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = part.read(&mut buffer).map_err(unreadable)?;
        if count == 0 {
            return Ok(meter.down);
        }
        meter.down += count as u64;
        if operation.max_size.is_some_and(|max| meter.down > max) {
            return Err(Failure::new(63, "Maximum file size exceeded"));
        }
        sink.write(&buffer[..count])?;
        meter.tick();
    }
}

/// The bytes that a range means in a file of a size.
fn span(range: &str, size: u64) -> Result<(u64, u64), Failure> {
    let bad = || Failure::new(33, "Requested range was not delivered by the server");
    let (from, to) = range.split_once('-').ok_or_else(bad)?;
    match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) if from <= to => Ok((from.min(size), to.saturating_add(1).min(size))),
        (Ok(from), Err(_)) if to.is_empty() => Ok((from.min(size), size)),
        (Err(_), Ok(count)) if from.is_empty() => Ok((size.saturating_sub(count), size)),
        _ => Err(bad()),
    }
}
