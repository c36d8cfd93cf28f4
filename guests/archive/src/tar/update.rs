//! Changes an archive that is there: members added at its end, other archives added, members taken away.

use super::create::Adder;
use super::header::BLOCK;
use super::list::quoted;
use super::options::{Act, Options, fatal};
use super::select::{Matching, Wanted};
use super::writer::Writer;
use super::{Report, Source, tell_missing};
use crate::stream::{CHUNK, Raw};
use std::collections::HashMap;
use std::io::{self, Write};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Whence, open_flags as flags};

/// Opens the archive to be changed, or makes a new one.
fn open(options: &Options) -> Result<Fd, i32> {
    if options.archive == b"-" {
        return Err(fatal("Cannot update an archive on standard output"));
    }
    abi::open(Dir::CWD, &options.archive, flags::RDWR | flags::CREAT | flags::CLOEXEC, 0o666)
        .map_err(|error| fatal(format_args!("{}: Cannot open: {error}", quoted(&options.archive))))
}

/// Reads an archive to its end: where that is, and the times of what is in it.
fn find_end(fd: Fd, options: &Options, report: &mut Report) -> Result<(u64, HashMap<Vec<u8>, i64>), i32> {
    let mut known = HashMap::new();
    if abi::fstat(fd).is_ok_and(|stat| stat.size == 0) {
        return Ok((0, known));
    }
    let mut source = Source::over(fd, None, options)?;
    if source.is_packed() {
        return Err(fatal("Cannot update compressed archives"));
    }
    while let Some(member) = source.next(report)? {
        known.insert(member.name, member.mtime);
    }
    Ok((source.reader.member_at, known))
}

/// Adds files: all, or with `-u` those that are newer than what the archive has.
pub fn append(options: &Options, report: &mut Report) -> Result<(), i32> {
    let fd = open(options)?;
    let (end, known) = find_end(fd, options, report)?;
    let known = if options.act == Act::Update { known } else { HashMap::new() };
    go_to(fd, end, options)?;
    let mut writer = Writer::new(Box::new(Raw(fd)), options.format, options.record);
    writer.written = end;
    let mut adder = Adder::new(options, report, writer, fd, known);
    adder.add_all()?;
    adder.finish(options)?;
    close(fd, options)
}

fn go_to(fd: Fd, at: u64, options: &Options) -> Result<(), i32> {
    let offset = i64::try_from(at).unwrap_or(i64::MAX);
    abi::seek(fd, offset, Whence::Start)
        .map(drop)
        .map_err(|error| fatal(format_args!("{}: Cannot seek: {error}", quoted(&options.archive))))
}

/// Whatever was longer before ends here now.
fn close(fd: Fd, options: &Options) -> Result<(), i32> {
    abi::seek(fd, 0, Whence::Current)
        .and_then(|end| abi::truncate(fd, end))
        .and_then(|()| abi::close(fd))
        .map_err(|error| fatal(format_args!("{}: Cannot close: {error}", quoted(&options.archive))))
}

/// Adds the members of other archives.
pub fn concatenate(options: &Options, report: &mut Report) -> Result<(), i32> {
    let fd = open(options)?;
    let (end, _) = find_end(fd, options, report)?;
    go_to(fd, end, options)?;
    let mut writer = Writer::new(Box::new(Raw(fd)), options.format, options.record);
    writer.written = end;
    let failed = |error: io::Error| {
        fatal(format_args!("{}: Cannot write: {}", quoted(&options.archive), Errno::from(error)))
    };
    for named in &options.names {
        let other = match crate::squeeze::Opened::read(&named.name) {
            Ok(other) => other,
            Err(error) => {
                report.fail(format_args!("{}: Cannot open: {error}", quoted(&named.name)));
                continue;
            }
        };
        let (end, _) = find_end(other.0, options, report)?;
        copy(other.0, 0, end, &mut writer).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    close(fd, options)
}

fn copy(fd: Fd, from: u64, to: u64, writer: &mut Writer) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut at = from;
    while at < to {
        let most = usize::try_from(to - at).unwrap_or(CHUNK).min(CHUNK);
        let count = abi::pread(fd, &mut buffer[..most], at)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        writer.put(&buffer[..count])?;
        at += count as u64;
    }
    Ok(())
}

/// Takes members out of the archive. The others move up in their place.
pub fn delete(options: &Options, matching: &Matching, report: &mut Report) -> Result<(), i32> {
    let fd = open(options)?;
    let mut wanted = Wanted::new(&options.names, matching);
    let mut kept: Vec<(u64, u64)> = Vec::new();
    let mut source = Source::over(fd, None, options)?;
    if source.is_packed() {
        return Err(fatal("Cannot update compressed archives"));
    }
    let mut before: Option<(u64, bool)> = None;
    loop {
        let member = source.next(report)?;
        let at = source.reader.member_at;
        if let Some((start, true)) = before {
            kept.push((start, at));
        }
        let Some(member) = member else { break };
        before = Some((at, wanted.find(&member.name).is_none() || options.names.is_empty()));
    }
    // Members are only moved towards the front, so none is overwritten before it was read.
    let mut writer = Writer::new(Box::new(AtStart { fd, at: 0 }), options.format, options.record);
    let failed = |error: io::Error| {
        fatal(format_args!("{}: Cannot write: {}", quoted(&options.archive), Errno::from(error)))
    };
    for (start, end) in kept {
        copy(fd, start, end, &mut writer).map_err(failed)?;
    }
    let length = (writer.written + 2 * BLOCK as u64).next_multiple_of(options.record);
    writer.finish().map_err(failed)?;
    go_to(fd, length, options)?;
    close(fd, options)?;
    tell_missing(&wanted, report);
    Ok(())
}

/// Writes from the start of a file, while it is read further on.
struct AtStart {
    fd: Fd,
    at: u64,
}

impl Write for AtStart {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = abi::pwrite(self.fd, bytes, self.at)?;
        self.at += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
