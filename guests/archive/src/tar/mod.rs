//! `tar`: many files in one.

mod create;
mod diff;
mod extract;
mod header;
mod list;
mod options;
mod reader;
mod select;
mod transform;
mod update;
mod writer;

use crate::codec::{self, Decoded, Encode, Flaw};
use crate::squeeze::{Opened, say};
use crate::stream::{Input, Raw};
use list::complain;
use options::{Act, Options, Packing, fatal, shown};
use reader::{Broken, Next, Reader};
use select::{Matching, Wanted};
use std::cell::Cell;
use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::Instant;
use toolkit::Arguments;
use toolkit::args::bytes_of;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags as flags};

pub fn main(arguments: Arguments) -> i32 {
    let (options, matching) = match Options::parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut report = Report::default();
    let result = match options.act {
        Act::Create => create::create(&options, &mut report),
        Act::Append | Act::Update => update::append(&options, &mut report),
        Act::Concatenate => update::concatenate(&options, &mut report),
        Act::Delete => update::delete(&options, &matching, &mut report),
        Act::Extract => extract::extract(&options, &matching, &mut report),
        Act::List => list_members(&options, &matching, &mut report),
        Act::Diff => diff::diff(&options, &matching, &mut report),
    };
    let code = result.map_or_else(|code| code, |()| report.finish());
    list::flush();
    code
}

/// What went wrong on the way.
#[derive(Default)]
pub struct Report {
    code: i32,
    /// What was said of leading parts of names: once is enough.
    removed: HashSet<(Vec<u8>, &'static str)>,
}

impl Report {
    /// Says what went wrong; the rest goes on.
    pub fn fail(&mut self, message: impl std::fmt::Display) {
        complain(message);
        self.code = 2;
    }

    /// Says what is not quite as it should be.
    pub fn differ(&mut self, message: impl std::fmt::Display) {
        complain(message);
        self.code = self.code.max(1);
    }

    pub fn set_code(&mut self, code: i32) {
        self.code = self.code.max(code);
    }

    /// A name that stays where it is meant to be.
    pub fn safe_name(&mut self, name: &[u8], absolute: bool, what: &'static str) -> Vec<u8> {
        let prefix = if absolute { 0 } else { select::unsafe_prefix(name) };
        if prefix > 0 && self.removed.insert((name[..prefix].to_vec(), what)) {
            complain(format_args!("Removing leading `{}' from {what}", shown(&name[..prefix])));
        }
        match &name[prefix..] {
            [] if prefix > 0 => b".".to_vec(),
            rest => rest.to_vec(),
        }
    }

    fn finish(self) -> i32 {
        if self.code == 2 {
            complain("Exiting with failure status due to previous errors");
        }
        self.code
    }
}

/// An archive to read, and what to say when it cannot be.
pub struct Source {
    pub reader: Reader,
    packing: Option<codec::Format>,
    flaw: Rc<Cell<Option<Flaw>>>,
    /// Whether a header was seen: until then it may be no archive at all.
    started: bool,
    began: Instant,
    skipping: bool,
    _opened: Option<Opened>,
}

impl Source {
    pub fn open(options: &Options) -> Result<Source, i32> {
        let is_stdin = options.archive == b"-";
        if is_stdin && abi::isatty(0) {
            return Err(fatal("Refusing to read archive contents from terminal (missing -f option?)"));
        }
        let opened = if is_stdin {
            None
        } else {
            Some(Opened::read(&options.archive).map_err(|error| {
                fatal(format_args!("{}: Cannot open: {error}", list::quoted(&options.archive)))
            })?)
        };
        let fd = opened.as_ref().map_or(0, |opened| opened.0);
        if abi::fstat(fd).is_ok_and(|stat| stat.is_dir()) {
            let name = list::quoted(&options.archive);
            complain(format_args!(
                "{name}: Cannot read: Is a directory\ntar: At beginning of tape, quitting now"
            ));
            return Err(fatal_only());
        }
        Source::over(fd, opened, options)
    }

    /// `--totals`: the archive counts in whole records.
    pub fn tell_total(&self, options: &Options) {
        if options.totals {
            tell_total("read", self.reader.position.next_multiple_of(options.record), self.began);
        }
    }

    fn over(fd: Fd, opened: Option<Opened>, options: &Options) -> Result<Source, i32> {
        let mut input = Input::of(fd);
        let start = input.peek(header::BLOCK).map_err(|error| {
            fatal(format_args!("{}: Cannot read: {}", shown(&options.archive), Errno::from(error)))
        })?;
        let found = codec::Format::of(start).filter(|_| !is_tar(start));
        let packing = options.packing.map(|packing| packing.format).or(found);
        let flaw = Rc::new(Cell::new(None));
        let source: Box<dyn Read> = match packing {
            None => Box::new(input),
            Some(format) => Box::new(Decoded { input, decoder: format.decoder(), flaw: flaw.clone() }),
        };
        let mut reader = Reader::new(source);
        reader.ignores_zeros = options.ignore_zeros;
        Ok(Source {
            reader,
            packing,
            flaw,
            started: false,
            began: Instant::now(),
            skipping: false,
            _opened: opened,
        })
    }

    pub fn is_packed(&self) -> bool {
        self.packing.is_some()
    }

    /// The next member, past what is none. `None` at the end.
    pub fn next(&mut self, report: &mut Report) -> Result<Option<Box<header::Member>>, i32> {
        loop {
            match self.reader.next() {
                Ok(Next::Member(member)) => {
                    self.started = true;
                    self.skipping = false;
                    return Ok(Some(member));
                }
                Ok(Next::Nonsense) => {
                    if !self.started {
                        report.fail("This does not look like a tar archive");
                        self.started = true;
                    }
                    if !std::mem::replace(&mut self.skipping, true) {
                        report.fail("Skipping to next header");
                    }
                }
                Ok(Next::End { lone_zero_block }) => {
                    if lone_zero_block {
                        let block = self.reader.member_at / header::BLOCK as u64 + 1;
                        complain(format_args!("A lone zero block at {block}"));
                    }
                    if !self.started && self.reader.position < header::BLOCK as u64 {
                        report.fail("This does not look like a tar archive");
                    }
                    if self.packing.is_some() {
                        self.reader.drain();
                        self.check_end(report)?;
                    }
                    return Ok(None);
                }
                Err(broken) => return Err(self.give_up(broken)),
            }
        }
    }

    /// What a decompressor says after the archive's end counts, too.
    fn check_end(&self, report: &mut Report) -> Result<(), i32> {
        match self.flaw.get() {
            None => Ok(()),
            Some(flaw) => {
                self.say_flaw(flaw);
                report.fail("Child returned status 1");
                Err(fatal_only())
            }
        }
    }

    fn say_flaw(&self, flaw: Flaw) {
        let Some(format) = self.packing else { return };
        let program = format.program();
        let newline = if format == codec::Format::Gzip { "\n" } else { "" };
        let name = match format {
            codec::Format::Gzip => "stdin",
            codec::Format::Zstd => "/*stdin*\\",
            _ => "(stdin)",
        };
        let words = match (flaw, format) {
            (Flaw::Foreign, codec::Format::Gzip) => "not in gzip format".to_owned(),
            (Flaw::Foreign, codec::Format::Bzip2) => {
                return say(format!("bzip2: {name} is not a bzip2 file.\n"));
            }
            (Flaw::Foreign, codec::Format::Zstd) => "unsupported format".to_owned(),
            (Flaw::Foreign, _) => "File format not recognized".to_owned(),
            (Flaw::Cut, codec::Format::Gzip | codec::Format::Zstd) => "unexpected end of file".to_owned(),
            (Flaw::Cut, codec::Format::Bzip2) => "Compressed file ends unexpectedly".to_owned(),
            (Flaw::Cut, _) => "Unexpected end of input".to_owned(),
            (Flaw::Damaged(words) | Flaw::Unsupported(words), _) => words.to_owned(),
            (Flaw::TooLarge, _) => "not enough memory".to_owned(),
            (Flaw::Unreadable(error), _) => error.to_string(),
        };
        say(format!("{newline}{program}: {name}: {words}\n"));
    }

    /// Says why nothing more can be read; answers the exit code.
    pub fn give_up(&self, broken: Broken) -> i32 {
        match (broken, self.flaw.get()) {
            (Broken::Unreadable(_), Some(flaw)) => {
                self.say_flaw(flaw);
                if self.reader.position > 0 {
                    complain("Unexpected EOF in archive");
                }
                complain("Child returned status 1");
                fatal_only()
            }
            (Broken::Unreadable(error), None) => fatal(format_args!("Cannot read: {}", Errno::from(error))),
            (Broken::Cut, _) => fatal("Unexpected EOF in archive"),
        }
    }
}

fn is_tar(start: &[u8]) -> bool {
    start.first_chunk::<{ header::BLOCK }>().is_some_and(header::is_valid)
}

/// Says that it is over.
fn fatal_only() -> i32 {
    complain("Error is not recoverable: exiting now");
    2
}

/// Says which of the names on the command line were not found.
fn tell_missing(wanted: &Wanted, report: &mut Report) {
    if wanted.looks_like_patterns() {
        complain("Pattern matching characters used in file names");
        complain("Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning");
    }
    for name in wanted.missing() {
        report.fail(format_args!("{}: Not found in archive", list::quoted(name)));
    }
}

fn list_members(options: &Options, matching: &Matching, report: &mut Report) -> Result<(), i32> {
    let mut source = Source::open(options)?;
    let mut wanted = Wanted::new(&options.names, matching);
    let mut lister = list::Lister::new(options, 1);
    let mut started = options.start.is_none();
    loop {
        let member = match source.next(report) {
            Ok(Some(member)) => member,
            Ok(None) => break,
            Err(code) => {
                return Err(code);
            }
        };
        started |= options.start.as_ref() == Some(&member.name);
        if !started || is_excluded(options, &member.name) || wanted.find(&member.name).is_none() {
            continue;
        }
        report.safe_name(&member.name, options.absolute, "member names");
        let name = if options.show_transformed {
            options.transform.apply(&member.name, transform::Target::Name)
        } else {
            member.name.clone()
        };
        lister.show(&member, &name, lister.level() > 0);
    }
    source.tell_total(options);
    tell_missing(&wanted, report);
    Ok(())
}

fn is_excluded(options: &Options, name: &[u8]) -> bool {
    options.excludes.iter().any(|pattern| pattern.matches(name))
}

/// Where an archive is written to.
pub struct Sink {
    encoder: Rc<std::cell::RefCell<Option<Box<dyn Encode>>>>,
    fd: Fd,
}

/// What a [`Sink`]'s writer writes to.
struct SharedEncoder(Rc<std::cell::RefCell<Option<Box<dyn Encode>>>>);

impl Write for SharedEncoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.borrow_mut().as_mut() {
            Some(encoder) => encoder.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    pub fn create(options: &Options) -> Result<(Sink, writer::Writer), i32> {
        let is_stdout = options.archive == b"-";
        if is_stdout && abi::isatty(1) {
            return Err(fatal("Refusing to write archive contents to terminal (missing -f option?)"));
        }
        let name = list::quoted(&options.archive);
        let fd = match is_stdout {
            true => 1,
            false => {
                let how = flags::WRONLY | flags::CREAT | flags::TRUNC | flags::CLOEXEC;
                abi::open(Dir::CWD, &options.archive, how, 0o666)
                    .map_err(|error| fatal(format_args!("{name}: Cannot open: {error}")))?
            }
        };
        let encoder = match options.packing {
            None => None,
            Some(packing) => Some(
                encoder(packing, Box::new(Raw(fd)))
                    .map_err(|error| fatal(format_args!("{name}: Cannot write: {}", Errno::from(error))))?,
            ),
        };
        let is_packed = encoder.is_some();
        let encoder = Rc::new(std::cell::RefCell::new(encoder));
        let sink: Box<dyn Write> = match is_packed {
            true => Box::new(SharedEncoder(encoder.clone())),
            false => Box::new(Raw(fd)),
        };
        Ok((Sink { encoder, fd }, writer::Writer::new(sink, options.format, options.record)))
    }

    pub fn fd(&self) -> Fd {
        self.fd
    }

    /// Writes what a compressor still has.
    pub fn finish(self) -> io::Result<()> {
        if let Some(encoder) = self.encoder.borrow_mut().take() {
            encoder.finish()?;
        }
        if self.fd > 2 {
            abi::close(self.fd)?;
        }
        Ok(())
    }
}

fn encoder(packing: Packing, sink: Box<dyn Write>) -> io::Result<Box<dyn Encode>> {
    use codec::{Format, bzip2, gzip, xz, zstd};
    let Some(level) = packing.level else { return packing.format.encoder(sink) };
    let up_to_nine = level.clamp(1, 9) as u32;
    let xz_settings = xz::Settings { level: level.clamp(0, 9) as u32, ..xz::Settings::default() };
    Ok(match packing.format {
        Format::Gzip => Box::new(gzip::Encoder::new(sink, up_to_nine, &gzip::Header::default())?),
        Format::Bzip2 => Box::new(bzip2::Encoder::new(sink, up_to_nine)),
        Format::Xz => Box::new(xz::Encoder::new(sink, &xz_settings)?),
        Format::Lzma => Box::new(xz::LzmaEncoder::new(sink, &xz_settings)?),
        Format::Zstd => Box::new(zstd::Encoder::new(
            sink,
            &zstd::Settings { level: level.clamp(1, 19), ..zstd::Settings::default() },
        )?),
    })
}

/// Goes to a directory, meant from where the program was started, or says why not.
fn enter(directory: &[u8], start: &[u8]) -> Result<(), i32> {
    abi::chdir(Dir::CWD, &absolute(directory, start))
        .map_err(|error| fatal(format_args!("{}: Cannot open: {error}", list::quoted(directory))))
}

/// A directory seen from everywhere: meant from where the program was started.
fn absolute(directory: &[u8], start: &[u8]) -> Vec<u8> {
    if directory.starts_with(b"/") { directory.to_vec() } else { toolkit::files::join(start, directory) }
}

/// A moment that is told to people.
/// `--totals`: how much was read or written, and how fast.
fn tell_total(what: &str, bytes: u64, began: Instant) {
    list::flush();
    let seconds = began.elapsed().as_secs_f64();
    let rate = if seconds > 0.0 { amount((bytes as f64 / seconds) as u64) } else { "?".to_owned() };
    say(format!("Total bytes {what}: {bytes} ({}, {rate}/s)\n", amount(bytes)));
}

fn amount(bytes: u64) -> String {
    let human = toolkit::size::human(u128::from(bytes), 1024);
    if bytes < 1024 { format!("{bytes}B") } else { format!("{human}iB") }
}
