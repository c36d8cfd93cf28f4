//! `gzip`, `gunzip` and `zcat`.

use super::{Opened, Product, Trouble, pack, pour, say, shown, unpack};
use crate::codec::gzip::{Decoder, Encoder, Header};
use crate::codec::{Decode, Flaw};
use crate::stream::{Counted, Input, Raw};
use std::rc::Rc;
use toolkit::args::{Tool, bytes_of};
use toolkit::clock::Clock;
use toolkit::out::Out;
use toolkit::{Arguments, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat, open_flags as flags};

const TOOL: Tool = Tool {
    name: "gzip",
    short: "acdfhklLnNqrS:tvV123456789",
    long: &[
        ("ascii", 'a'),
        ("best", '9'),
        ("decompress", 'd'),
        ("fast", '1'),
        ("force", 'f'),
        ("keep", 'k'),
        ("license", 'L'),
        ("list", 'l'),
        ("name", 'N'),
        ("no-name", 'n'),
        ("quiet", 'q'),
        ("recursive", 'r'),
        ("rsyncable", 'R'),
        ("silent", 'q'),
        ("stdout", 'c'),
        ("suffix=", 'S'),
        ("synchronous", 'y'),
        ("test", 't'),
        ("to-stdout", 'c'),
        ("uncompress", 'd'),
        ("verbose", 'v'),
    ],
    help: "\
Usage: gzip [OPTION]... [FILE]...
Packs each FILE into FILE.gz and removes it, or unpacks it again; without a
FILE, or for -, from standard input to standard output.

  -1 .. -9          how hard to try, from quick (--fast) to small (--best)
  -c, --stdout      to standard output; the file stays
  -d, --decompress  unpack
  -f, --force       also over existing files, through links, and to a terminal
  -k, --keep        the file stays
  -l, --list        sizes, ratio and name, with -v also method, sum and time
  -n, --no-name     neither keep nor bring back name and time
  -N, --name        keep them, bring them back
  -q, --quiet       no warnings
  -r, --recursive   all files below directories
  -S, --suffix=SUF  SUF in place of .gz
  -t, --test        only see whether it can be unpacked
  -v, --verbose     say what became of each file
  -h, --help        this text
  -V, --version     which version this is
",
    misuse: 1,
};

const FAILED: i32 = 1;
const WARNED: i32 = 2;

#[derive(PartialEq, Clone, Copy)]
enum Act {
    Compress,
    Decompress,
    Test,
    List,
}

struct Job {
    act: Act,
    to_stdout: bool,
    force: bool,
    keep: bool,
    quiet: bool,
    verbose: bool,
    recursive: bool,
    /// Whether names and times are kept; by default only when compressing.
    names: Option<bool>,
    suffix: Vec<u8>,
    level: u32,
    code: i32,
    listed: Listed,
}

/// Sums over the files listed.
#[derive(Default)]
struct Listed {
    files: u32,
    packed: u64,
    unpacked: u64,
    overhead: u64,
    /// Lines come last, after what went wrong on the way.
    lines: Vec<u8>,
}

/// The program is to end at once, its code set.
struct Over;

pub fn main(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Compress, false)
}

pub fn gunzip(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Decompress, false)
}

pub fn zcat(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Decompress, true)
}

fn start(arguments: Vec<Vec<u8>>, act: Act, to_stdout: bool) -> i32 {
    let parsed = match TOOL.parse(arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut job = Job {
        act,
        to_stdout,
        force: false,
        keep: false,
        quiet: false,
        verbose: false,
        recursive: false,
        names: None,
        suffix: b".gz".to_vec(),
        level: 6,
        code: 0,
        listed: Listed::default(),
    };
    for (letter, text) in parsed.options {
        match letter {
            'h' => return TOOL.parse(vec![b"--help".to_vec()]).err().unwrap_or_default(),
            'V' | 'L' => return TOOL.parse(vec![b"--version".to_vec()]).err().unwrap_or_default(),
            'c' => job.to_stdout = true,
            'd' => job.act = Act::Decompress,
            'l' => job.act = Act::List,
            't' => job.act = Act::Test,
            'f' => job.force = true,
            'k' => job.keep = true,
            'n' => job.names = Some(false),
            'N' => job.names = Some(true),
            'q' => (job.quiet, job.verbose) = (true, false),
            'v' => (job.quiet, job.verbose) = (false, true),
            'r' => job.recursive = true,
            'S' => job.suffix = text.unwrap_or_default(),
            '1'..='9' => job.level = u32::from(letter) - u32::from('0'),
            _ => {}
        }
    }
    if job.suffix.is_empty() && job.act == Act::Compress
        || job.suffix.len() > 30
        || job.suffix.contains(&b'/')
    {
        return job.fail(format!("invalid suffix '{}'", shown(&job.suffix))).code;
    }
    let files = if parsed.operands.is_empty() { vec![b"-".to_vec()] } else { parsed.operands };
    for file in &files {
        if job.treat(file).is_err() {
            break;
        }
    }
    job.list_totals();
    job.code
}

impl Job {
    fn fail(&mut self, message: String) -> &mut Job {
        say(format!("gzip: {message}\n"));
        self.code = FAILED;
        self
    }

    /// Says what is wrong with a stream's content: on a line of its own, for a name may stand before it.
    fn fail_inside(&mut self, message: String) {
        say("\n");
        self.fail(message);
    }

    fn warn(&mut self, message: String) {
        if !self.quiet {
            say(format!("gzip: {message}\n"));
        }
        if self.code == 0 {
            self.code = WARNED;
        }
    }

    fn treat(&mut self, file: &[u8]) -> Result<(), Over> {
        if file == b"-" {
            return self.treat_stdin();
        }
        let (name, opened) = match self.open(file) {
            Ok(opened) => opened,
            Err((name, error)) => {
                self.fail(format!("{}: {error}", shown(&name)));
                return Ok(());
            }
        };
        let Ok(stat) = abi::fstat(opened.0) else { return Ok(()) };
        if stat.is_dir() {
            return self.treat_directory(&name);
        }
        if !self.may_replace(&name, &stat) {
            return Ok(());
        }
        match self.act {
            Act::Test | Act::List => self.look_into(&name, &opened, &stat),
            _ if self.to_stdout => self.convert(&name, &opened, &stat, None),
            _ => {
                let Some(target) = self.target_name(&name) else { return Ok(()) };
                self.replace(&name, &opened, &stat, target)
            }
        }
    }

    /// Opens a file; to decompress also one whose suffix was left out.
    fn open(&self, file: &[u8]) -> Result<(Vec<u8>, Opened), (Vec<u8>, Errno)> {
        let follow = if self.to_stdout || self.force || self.act == Act::Test || self.act == Act::List {
            0
        } else {
            flags::NOFOLLOW
        };
        let open = |name: &[u8]| {
            abi::open(Dir::CWD, name, flags::RDONLY | flags::NONBLOCK | flags::CLOEXEC | follow, 0)
                .map(Opened)
        };
        let first = open(file);
        let error = match first {
            Ok(opened) => return Ok((file.to_vec(), opened)),
            Err(error) => error,
        };
        if self.act == Act::Compress || error != Errno::NOENT || self.suffix_of(file).is_some() {
            return Err((file.to_vec(), error));
        }
        let mut suffixes = vec![self.suffix.as_slice()];
        suffixes.extend([b".gz".as_slice(), b".z", b"-z", b".Z"]);
        for suffix in suffixes {
            let name = [file, suffix].concat();
            if let Ok(opened) = open(&name) {
                return Ok((name, opened));
            }
        }
        Err(([file, &self.suffix].concat(), error))
    }

    /// Whether a file may be replaced by another, or need not be.
    fn may_replace(&mut self, name: &[u8], stat: &Stat) -> bool {
        if self.to_stdout || matches!(self.act, Act::Test | Act::List) {
            return true;
        }
        let name = shown(name);
        if !stat.is_file() {
            self.warn(format!("{name} is not a directory or a regular file - ignored"));
            return false;
        }
        let others = stat.nlink.saturating_sub(1);
        let obstacle = match stat.mode {
            _ if self.force => return true,
            mode if mode & 0o4000 != 0 => format!("{name} is set-user-ID on execution - ignored"),
            mode if mode & 0o2000 != 0 => format!("{name} is set-group-ID on execution - ignored"),
            mode if mode & 0o1000 != 0 => format!("{name} has the sticky bit set - file ignored"),
            _ if others > 0 => {
                let plural = if others > 1 { "s" } else { "" };
                format!("{name} has {others} other link{plural} -- file ignored")
            }
            _ => return true,
        };
        self.warn(obstacle);
        false
    }

    /// The suffix a compressed file's name ends with, if it does.
    fn suffix_of(&self, name: &[u8]) -> Option<usize> {
        let base = files::base_name(name);
        let known = [b".gz".as_slice(), b".z", b".taz", b".tgz", b"-gz", b"-z", b"_z", b".Z"];
        let own = [self.suffix.as_slice()];
        own.iter()
            .chain(known.iter())
            .find(|suffix| {
                let matches = base.len() > suffix.len()
                    && base[base.len() - suffix.len()..].eq_ignore_ascii_case(suffix);
                matches && !suffix.is_empty()
            })
            .map(|suffix| suffix.len())
    }

    /// What the result is called; nothing, with a word about it, where that cannot be said.
    fn target_name(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let suffix = self.suffix_of(name);
        let says = self.verbose || !self.recursive && !self.quiet;
        if self.act == Act::Compress {
            if let Some(length) = suffix {
                let suffix = shown(&name[name.len() - length..]);
                if says {
                    say(format!("gzip: {} already has {suffix} suffix -- unchanged\n", shown(name)));
                }
                return None;
            }
            return Some([name, &self.suffix].concat());
        }
        let Some(length) = suffix else {
            if says {
                self.warn(format!("{}: unknown suffix -- ignored", shown(name)));
            }
            return None;
        };
        let (stem, suffix) = name.split_at(name.len() - length);
        let is_tar = suffix.eq_ignore_ascii_case(b".tgz") || suffix.eq_ignore_ascii_case(b".taz");
        Some(if is_tar { [stem, b".tar"].concat() } else { stem.to_vec() })
    }

    fn treat_directory(&mut self, name: &[u8]) -> Result<(), Over> {
        if !self.recursive {
            self.warn(format!("{} is a directory -- ignored", shown(name)));
            return Ok(());
        }
        let mut names = match files::names_in(name) {
            Ok(names) => names,
            Err(error) => {
                self.fail(format!("{}: {error}", shown(name)));
                return Ok(());
            }
        };
        names.sort();
        for entry in names {
            self.treat(&files::join(name, &entry))?;
        }
        Ok(())
    }

    /// The header a compressed file is given.
    fn header(&self, name: &[u8], stat: &Stat) -> Header {
        if self.names == Some(false) {
            return Header::default();
        }
        let seconds = stat.mtime.div_euclid(1_000_000_000);
        let time = if stat.is_file() { u32::try_from(seconds).unwrap_or(0) } else { 0 };
        Header { name: (name != b"stdin").then(|| files::base_name(name).to_vec()), time }
    }

    fn treat_stdin(&mut self) -> Result<(), Over> {
        let is_terminal = abi::isatty(if self.act == Act::Compress { 1 } else { 0 });
        if is_terminal && !self.force && !matches!(self.act, Act::Test | Act::List) {
            let (what, which) = match self.act {
                Act::Compress => ("written to", "compression"),
                _ => ("read from", "decompression"),
            };
            say(format!(
                "gzip: compressed data not {what} a terminal. Use -f to force {which}.\nFor help, type: gzip -h\n"
            ));
            self.code = FAILED;
            return Err(Over);
        }
        let stat = abi::fstat(0).unwrap_or_default();
        let stdin = std::mem::ManuallyDrop::new(Opened(0));
        match self.act {
            Act::Test | Act::List => self.look_into(b"stdin", &stdin, &stat),
            _ => self.convert(b"stdin", &stdin, &stat, None),
        }
    }

    /// Replaces a file by its compressed form or back.
    fn replace(&mut self, name: &[u8], opened: &Opened, stat: &Stat, target: Vec<u8>) -> Result<(), Over> {
        let mut target = target;
        let mut time = stat.mtime;
        if self.act == Act::Decompress && self.names == Some(true) {
            let header = peek_header(opened);
            if let Some(stored) = header.name.filter(|stored| !files::base_name(stored).is_empty()) {
                let base = files::base_name(&stored).to_vec();
                target = match name.iter().rposition(|&byte| byte == b'/') {
                    Some(at) => [&name[..=at], &base].concat(),
                    None => base,
                };
            }
            if header.time != 0 {
                time = i64::from(header.time) * 1_000_000_000;
            }
        }
        let Some(product) = self.create(&target) else { return Ok(()) };
        let before = std::mem::take(&mut self.code);
        let converted = self.convert(name, opened, stat, Some((&target, &product)));
        let failed = converted.is_err() || self.code == FAILED;
        self.code = if before == FAILED || self.code == 0 { before } else { self.code };
        if failed {
            return converted;
        }
        if let Err(error) = product.finish(stat, time) {
            self.fail(format!("{}: {error}", shown(&target)));
            return Ok(());
        }
        if !self.keep
            && let Err(error) = abi::unlink(Dir::CWD, name)
        {
            self.fail(format!("{}: {error}", shown(name)));
        }
        Ok(())
    }

    fn create(&mut self, target: &[u8]) -> Option<Product> {
        if abi::stat(Dir::CWD, target, false).is_ok() {
            if !self.force && !self.asks_to_overwrite(target) {
                return None;
            }
            if let Err(error) = abi::unlink(Dir::CWD, target) {
                self.fail(format!("{}: {error}", shown(target)));
                return None;
            }
        }
        match Product::create(target) {
            Ok(product) => Some(product),
            Err(error) => {
                self.fail(format!("{}: {error}", shown(target)));
                None
            }
        }
    }

    fn asks_to_overwrite(&mut self, target: &[u8]) -> bool {
        say(format!("gzip: {} already exists;", shown(target)));
        if abi::isatty(0) {
            say(" do you wish to overwrite (y or n)? ");
            let mut answer = String::new();
            if std::io::stdin().read_line(&mut answer).is_ok() && answer.starts_with(['y', 'Y']) {
                return true;
            }
        }
        say("\tnot overwritten\n");
        if self.code == 0 {
            self.code = WARNED;
        }
        false
    }

    /// Converts one stream, into a new file or to standard output.
    fn convert(
        &mut self,
        name: &[u8],
        opened: &Opened,
        stat: &Stat,
        target: Option<(&[u8], &Product)>,
    ) -> Result<(), Over> {
        if self.verbose && name != b"stdin" {
            say(format!("{}:\t", shown(name)));
        }
        let mut input = Input::of(opened.0);
        let mut sink = target.map_or(Raw(1), |(_, product)| product.writer());
        let ratio = if self.act == Act::Compress {
            self.compress(&mut input, sink, &self.header(name, stat))
        } else {
            let mut decoder = Decoder::new();
            let result = unpack(&mut decoder, &mut input, Some(&mut sink));
            if matches!(result, Err(Trouble::Input(Flaw::Foreign))) && self.force && self.to_stdout {
                pour(&mut input, sink).map(|_| 0.0)
            } else {
                result.map(|total| self.ratio_of(&decoder, &input, total, name))
            }
        };
        let ratio = match ratio {
            Ok(ratio) => ratio,
            Err(trouble) => return self.report(name, trouble),
        };
        if self.verbose && name != b"stdin" {
            say(format!("{:5.1}%", ratio * 100.0));
            if let Some((target, _)) = target {
                let verb = if self.keep { "created" } else { "replaced with" };
                say(format!(" -- {verb} {}", shown(target)));
            }
            say("\n");
        }
        Ok(())
    }

    /// Compresses a stream; answers how much smaller it became.
    fn compress(&self, input: &mut Input, sink: Raw, header: &Header) -> Result<f64, Trouble> {
        let count = Rc::new(std::cell::Cell::new(0));
        let sink = Box::new(Counted { inner: sink, count: count.clone() });
        let encoder =
            Encoder::new(sink, self.level, header).map_err(|error| Trouble::Output(error.into()))?;
        let total = pack(input, Box::new(encoder))?;
        Ok(saved(total, count.get() - overhead(header)))
    }

    fn ratio_of(&mut self, decoder: &Decoder, input: &Input, total: u64, name: &[u8]) -> f64 {
        if decoder.has_garbage() {
            if !self.quiet {
                say("\n");
            }
            self.warn(format!("{}: decompression OK, trailing garbage ignored", shown(name)));
        }
        saved(total, input.taken().saturating_sub(overhead(&decoder.header)))
    }

    /// Says what went wrong with a stream. Some things end the program.
    fn report(&mut self, name: &[u8], trouble: Trouble) -> Result<(), Over> {
        let name = shown(name);
        match trouble {
            Trouble::Output(Errno::PIPE) => self.code = FAILED,
            Trouble::Output(error) => self.fail_inside(format!("stdout: {error}")),
            Trouble::Input(Flaw::Foreign) => {
                self.fail_inside(format!("{name}: not in gzip format"));
                return Ok(());
            }
            Trouble::Input(Flaw::Cut) => self.fail_inside(format!("{name}: unexpected end of file")),
            Trouble::Input(Flaw::Damaged(words)) => {
                self.fail_inside(format!("{name}: {words}"));
                if !words.ends_with("violated") {
                    return Ok(());
                }
            }
            Trouble::Input(Flaw::Unsupported(words)) => {
                self.fail_inside(format!("{name}: {words}"));
                return Ok(());
            }
            Trouble::Input(Flaw::TooLarge) => self.fail_inside("memory exhausted".to_owned()),
            Trouble::Input(Flaw::Unreadable(error)) => self.fail_inside(format!("{name}: {error}")),
        }
        Err(Over)
    }

    /// Tests or lists a file.
    fn look_into(&mut self, name: &[u8], opened: &Opened, stat: &Stat) -> Result<(), Over> {
        if self.verbose && self.act == Act::Test {
            say(format!("{}:\t", shown(name)));
        }
        let mut input = Input::of(opened.0);
        let mut decoder = Decoder::new();
        let total = match unpack(&mut decoder, &mut input, None) {
            Ok(total) => total,
            Err(trouble) => return self.report(name, trouble),
        };
        if decoder.has_garbage() {
            self.ratio_of(&decoder, &input, total, name);
        }
        if self.act == Act::List {
            self.list(name, stat, &decoder, (input.taken(), total));
        } else if self.verbose {
            say(" OK\n");
        }
        Ok(())
    }

    fn list(&mut self, name: &[u8], stat: &Stat, decoder: &Decoder, (packed, unpacked): (u64, u64)) {
        let mut line = String::new();
        if self.listed.files == 0 && !self.quiet {
            if self.verbose {
                line += "method  crc     date  time  ";
            }
            line += "         compressed        uncompressed  ratio uncompressed_name\n";
        }
        if self.verbose {
            let seconds = i64::from(decoder.header.time) * 1_000_000_000;
            let time = if seconds == 0 { stat.mtime } else { seconds };
            line += &format!("defla {:08x} {} ", decoder.trailer.0, Clock::new().format(time, "%b %e %H:%M"));
        }
        let stored = decoder.header.name.clone().filter(|_| self.names == Some(true));
        let shown_name = match (stored, self.suffix_of(name)) {
            (Some(stored), _) => stored,
            (None, _) if name == b"stdin" => b"stdout".to_vec(),
            (None, Some(length)) => {
                let (stem, suffix) = name.split_at(name.len() - length);
                let is_tar = matches!(suffix, b".tgz" | b".taz");
                if is_tar { [stem, b".tar"].concat() } else { stem.to_vec() }
            }
            (None, None) => name.to_vec(),
        };
        let overhead = overhead(&decoder.header);
        let ratio = saved(unpacked, packed.saturating_sub(overhead)) * 100.0;
        line += &format!("{packed:19} {unpacked:19} {ratio:5.1}% ");
        self.listed.lines.extend(line.bytes());
        self.listed.lines.extend(shown_name);
        self.listed.lines.push(b'\n');
        self.listed.files += 1;
        self.listed.packed += packed;
        self.listed.unpacked += unpacked;
        self.listed.overhead += overhead;
    }

    fn list_totals(&self) {
        let Listed { files, packed, unpacked, overhead, lines } = &self.listed;
        let mut out = Out::new("gzip");
        out.put(lines);
        if *files < 2 || *unpacked == 0 || self.quiet {
            return;
        }
        if self.verbose {
            out.put("                            ");
        }
        let ratio = saved(*unpacked, packed.saturating_sub(*overhead)) * 100.0;
        out.put(format!("{packed:19} {unpacked:19} {ratio:5.1}% (totals)\n"));
    }
}

/// What a member has besides the compressed bytes.
fn overhead(header: &Header) -> u64 {
    18 + header.name.as_ref().map_or(0, |name| name.len() as u64 + 1)
}

/// The part by which something became smaller.
fn saved(unpacked: u64, packed: u64) -> f64 {
    if unpacked == 0 { 0.0 } else { (unpacked as f64 - packed as f64) / unpacked as f64 }
}

/// The header of a file that is yet to be read.
fn peek_header(opened: &Opened) -> Header {
    let mut decoder = Decoder::new();
    // What is wrong with it will be said when it is read.
    let _ = decoder.start(&mut Input::of(opened.0));
    let _ = abi::seek(opened.0, 0, abi::Whence::Start);
    decoder.header
}
