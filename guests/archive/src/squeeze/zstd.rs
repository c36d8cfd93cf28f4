//! `zstd`, `unzstd` and `zstdcat`.

use super::{Opened, Product, Trouble, pack, pour, say, shown, umask, unpack};
use crate::codec::zstd::{Decoder, Encoder, Settings};
use crate::codec::{Decode, Encode, Flaw, Format};
use crate::stream::{Counted, Input, Raw};
use std::rc::Rc;
use toolkit::args::bytes_of;
use toolkit::{Arguments, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, open_flags as flags};

mod list;

const HELP: &str = "\
Usage: zstd [OPTION]... [FILE]... [-o OUTPUT]
Packs each FILE into FILE.zst, or unpacks it; the file stays. Without a FILE,
or for -, from standard input to standard output.

  -1 .. -19          how hard to try (3 without it); up to 22 with --ultra
  -c, --stdout       to standard output
  -d, --decompress   unpack
  -f, --force        also over existing files, through links, to a terminal;
                     with -dc, whatever is not packed goes through as it is
  -k, --keep         the file stays, as it does anyway
      --rm           the file goes when all went well
  -l, --list         sizes and ratio of packed files
  -o OUTPUT          everything into this one file
  -q, --quiet        fewer messages
  -r                 all files below directories
  -t, --test         only see whether it can be unpacked
  -v, --verbose      more messages
  -h, -H, --help     this text
  -V, --version      which version this is

";

const SUFFIXES: [(&[u8], &[u8]); 7] = [
    (b".zst", b""),
    (b".tzst", b".tar"),
    (b".gz", b""),
    (b".tgz", b".tar"),
    (b".lzma", b""),
    (b".xz", b""),
    (b".txz", b".tar"),
];

#[derive(PartialEq, Clone, Copy)]
enum Act {
    Compress,
    Decompress,
    Test,
    List,
}

struct Job {
    act: Act,
    format: Format,
    to_stdout: bool,
    output: Option<Vec<u8>>,
    force: bool,
    remove: bool,
    recursive: bool,
    ultra: bool,
    /// 2 unless told otherwise: results are told, at 1 errors, at 0 nothing.
    verbosity: i32,
    settings: Settings,
    passes_through: bool,
    code: i32,
    totals: (u64, u64),
}

pub fn main(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Compress, false)
}

pub fn unzstd(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Decompress, false)
}

pub fn zstdcat(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Decompress, true)
}

fn start(arguments: Vec<Vec<u8>>, act: Act, is_cat: bool) -> i32 {
    let mut job = Job {
        act,
        format: Format::Zstd,
        to_stdout: is_cat,
        output: None,
        force: is_cat,
        remove: false,
        recursive: false,
        ultra: false,
        verbosity: if is_cat { 1 } else { 2 },
        settings: Settings::default(),
        passes_through: is_cat,
        code: 0,
        totals: (0, 0),
    };
    let files = match job.take_arguments(arguments) {
        Ok(files) => files,
        Err(code) => return code,
    };
    let most = if job.ultra { 22 } else { 19 };
    if job.settings.level > most && job.act == Act::Compress {
        job.tell(2, format!("Warning : compression level higher than max, reduced to {most} \n"));
        job.settings.level = most;
    }
    // Who reads what is written does not want to read of it.
    let writes_to_stdout = job.to_stdout || job.output.is_none() && files.iter().all(|file| file == b"-");
    if writes_to_stdout && job.act != Act::Test && job.verbosity == 2 {
        job.verbosity = 1;
    }
    if job.verbosity > 2 {
        say("*** Zstandard CLI (64-bit) v1.5.7, by Yann Collet ***\n");
    }
    let files = if job.recursive { files.iter().flat_map(|file| below(file)).collect() } else { files };
    let files = if files.is_empty() && !job.recursive { vec![b"-".to_vec()] } else { files };
    job.run(files)
}

/// The files at or below a path.
fn below(path: &[u8]) -> Vec<Vec<u8>> {
    if !abi::stat(Dir::CWD, path, false).is_ok_and(|stat| stat.is_dir()) {
        return vec![path.to_vec()];
    }
    let mut names = files::names_in(path).unwrap_or_default();
    names.sort();
    names.iter().flat_map(|name| below(&files::join(path, name))).collect()
}

impl Job {
    fn take_arguments(&mut self, arguments: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, i32> {
        let mut files = Vec::new();
        let mut rest = arguments.into_iter();
        while let Some(word) = rest.next() {
            match word.as_slice() {
                b"--" => files.extend(rest.by_ref()),
                [b'-', b'-', long @ ..] => self.take_long(long, &mut rest)?,
                [b'-', _, ..] => self.take_letters(&word[1..], &mut rest)?,
                _ => files.push(word),
            }
        }
        Ok(files)
    }

    fn take_long(&mut self, long: &[u8], rest: &mut impl Iterator<Item = Vec<u8>>) -> Result<(), i32> {
        let text = String::from_utf8_lossy(long).into_owned();
        let (name, value) =
            text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("decompress" | "uncompress", None) => self.act = Act::Decompress,
            ("compress", None) => self.act = Act::Compress,
            ("test", None) => self.act = Act::Test,
            ("list", None) => self.act = Act::List,
            ("stdout", None) => self.to_stdout = true,
            ("force", None) => self.force = true,
            ("keep", None) => self.remove = false,
            ("rm", None) => self.remove = true,
            ("ultra", None) => self.ultra = true,
            ("quiet", None) => self.verbosity -= 1,
            ("verbose", None) => self.verbosity += 1,
            ("check", None) => self.settings.check = true,
            ("no-check", None) => self.settings.check = false,
            ("pass-through", None) => self.passes_through = true,
            ("no-pass-through", None) => self.passes_through = false,
            ("fast", level) => {
                let level =
                    level.map_or(Some(1), |level| level.parse::<i32>().ok()).filter(|level| *level > 0);
                self.settings.level = -level.ok_or_else(|| self.wrong())?.min(100_000);
            }
            ("max", None) => (self.ultra, self.settings.level) = (true, 22),
            ("long", log) => {
                let log = log.map_or(Some(27), |log| log.parse::<u32>().ok());
                self.settings.long =
                    Some(log.filter(|log| (10..=27).contains(log)).ok_or_else(|| self.wrong())?);
            }
            ("format", Some(format)) => {
                self.format = match format {
                    "zstd" => Format::Zstd,
                    "gzip" => Format::Gzip,
                    "xz" => Format::Xz,
                    "lzma" => Format::Lzma,
                    _ => return Err(self.wrong()),
                }
            }
            ("help", None) => return Err(print(HELP)),
            ("version", None) => return Err(print(&version())),
            // These tell of speed and shows, and have nothing to do where there is one thread and no terminal.
            (
                "progress"
                | "no-progress"
                | "sparse"
                | "no-sparse"
                | "asyncio"
                | "no-asyncio"
                | "content-size"
                | "no-content-size"
                | "single-thread"
                | "rsyncable"
                | "adapt"
                | "mmap-dict"
                | "no-mmap-dict"
                | "compress-literals"
                | "no-compress-literals"
                | "no-row-match-finder"
                | "row-match-finder"
                | "exclude-compressed"
                | "no-dictID",
                _,
            ) => {}
            (
                "threads" | "memory" | "memlimit" | "block-size" | "auto-threads" | "size-hint"
                | "stream-size",
                value,
            ) => {
                if value.is_none() && rest.next().is_none() {
                    return Err(self.wrong());
                }
            }
            _ => return Err(self.wrong()),
        }
        Ok(())
    }

    fn take_letters(&mut self, letters: &[u8], rest: &mut impl Iterator<Item = Vec<u8>>) -> Result<(), i32> {
        let mut at = 0;
        let digits = |from: usize| letters[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        while let Some(&letter) = letters.get(at) {
            at += 1;
            match letter {
                b'0'..=b'9' => {
                    let end = at + digits(at);
                    let level = toolkit::input::number::<i32>(&letters[at - 1..end]).unwrap_or(i32::MAX);
                    self.settings.level = if level == 0 { 3 } else { level };
                    at = end;
                }
                b'd' => self.act = Act::Decompress,
                b'z' => self.act = Act::Compress,
                b't' => self.act = Act::Test,
                b'l' => self.act = Act::List,
                b'c' => self.to_stdout = true,
                b'f' => self.force = true,
                b'k' => self.remove = false,
                b'r' => self.recursive = true,
                b'q' => self.verbosity -= 1,
                b'v' => self.verbosity += 1,
                b'C' => self.settings.check = true,
                b'T' | b'M' => {
                    at += digits(at);
                    // A size may have a unit.
                    at += letters[at..].iter().take_while(|byte| b"KMGiB".contains(byte)).count();
                }
                b'o' => {
                    let attached = letters[at..].to_vec();
                    let name = if attached.is_empty() { rest.next() } else { Some(attached) };
                    self.output = Some(name.ok_or_else(|| {
                        say("error: missing command argument \n");
                        1
                    })?);
                    return Ok(());
                }
                b'D' => {
                    say("zstd: dictionaries are not supported here \n");
                    return Err(1);
                }
                b'h' | b'H' => return Err(print(HELP)),
                b'V' => return Err(print(&version())),
                _ => return Err(self.wrong()),
            }
        }
        Ok(())
    }

    fn wrong(&self) -> i32 {
        say(format!("Incorrect parameters \n{HELP}"));
        1
    }

    fn tell(&self, level: i32, text: String) {
        if self.verbosity >= level {
            say(text);
        }
    }

    fn fail(&mut self, text: String) {
        self.tell(1, format!("zstd: {text} \n"));
        self.code = 1;
    }

    fn run(&mut self, files: Vec<Vec<u8>>) -> i32 {
        if self.act == Act::List {
            return list::all(&files, self.verbosity > 2);
        }
        let shared = match self.open_output(files.len()) {
            Ok(shared) => shared,
            Err(code) => return code,
        };
        let many = files.len() > 1;
        let mut done = 0;
        for file in &files {
            if self.treat(file, shared.as_ref(), many) {
                done += 1;
            }
        }
        if let Some(shared) = shared
            && let Err(error) = shared.finish(self.code == 0 || many)
        {
            self.fail(format!("{error}"));
        }
        if many && done > 0 {
            let (from, to) = self.totals;
            match self.act {
                Act::Compress => self.tell(
                    2,
                    format!(
                        "{done:3} files compressed : {} ({} => {})\n",
                        percent(from, to),
                        size(from),
                        size(to)
                    ),
                ),
                _ => self.tell(2, format!("{done} files decompressed : {to:6} bytes total \n")),
            }
        }
        self.code
    }

    /// The one file that everything goes to, if there is one.
    fn open_output(&mut self, count: usize) -> Result<Option<Shared>, i32> {
        if self.to_stdout || self.act == Act::Test {
            return Ok(None);
        }
        let Some(name) = self.output.clone() else { return Ok(None) };
        if count > 1 {
            self.tell(
                1,
                format!(
                    "zstd: WARNING: all input files will be processed and concatenated into a single output file: {} \nThe concatenated output CANNOT regenerate original file names nor directory structure. \n",
                    shown(&name)
                ),
            );
            if !self.force && !asks("Proceed? (y/n): ", "Aborting...") {
                return Err(1);
            }
        }
        if abi::stat(Dir::CWD, &name, true).is_ok_and(|stat| stat.is_file()) {
            if !self.force && !self.may_overwrite(&name) {
                return Err(1);
            }
            let _ = abi::unlink(Dir::CWD, &name);
        } else if abi::stat(Dir::CWD, &name, true).is_ok() {
            let opened = abi::open(Dir::CWD, &name, flags::WRONLY | flags::CLOEXEC, 0);
            return opened.map(|fd| Some(Shared::Stream(fd))).map_err(|error| {
                self.fail(format!("{}: {error}", shown(&name)));
                1
            });
        }
        match Product::create(&name) {
            Ok(product) => Ok(Some(Shared::File(product))),
            Err(error) => {
                self.fail(format!("{}: {error}", shown(&name)));
                Err(1)
            }
        }
    }

    fn may_overwrite(&mut self, name: &[u8]) -> bool {
        if self.verbosity <= 1 {
            say(format!("zstd: {} already exists; not overwritten  \n", shown(name)));
            self.code = 1;
            return false;
        }
        let question = format!("zstd: {} already exists; overwrite (y/n) ? ", shown(name));
        let agreed = asks(&question, "Not overwritten  ");
        if !agreed {
            self.code = 1;
        }
        agreed
    }

    /// Converts a file; answers whether that went well.
    fn treat(&mut self, file: &[u8], shared: Option<&Shared>, many: bool) -> bool {
        if file == b"-" {
            let stdin = std::mem::ManuallyDrop::new(Opened(0));
            let stat = abi::fstat(0).unwrap_or_default();
            let sink = shared.map_or(1, Shared::fd);
            let name = self.output.clone().unwrap_or_else(|| b"/*stdout*\\".to_vec());
            return self.convert(b"/*stdin*\\", &stdin, &stat, sink, &name, many);
        }
        let Some(stat) = self.check(file) else { return false };
        let target = match (self.act, shared) {
            (Act::Test, _) => None,
            (_, Some(_)) => None,
            _ if self.to_stdout => None,
            _ => match self.target_name(file) {
                None => return false,
                target => target,
            },
        };
        let opened = match Opened::read(file) {
            Ok(opened) => opened,
            Err(error) => {
                self.fail(format!("can't open {}: {error}", shown(file)));
                return false;
            }
        };
        let Some(target) = target else {
            let name = self.output.clone().unwrap_or_else(|| b"/*stdout*\\".to_vec());
            let went_well = self.convert(file, &opened, &stat, shared.map_or(1, Shared::fd), &name, many);
            if went_well && self.remove && shared.is_some() {
                let _ = abi::unlink(Dir::CWD, file);
            }
            return went_well;
        };
        self.replace(file, &opened, &stat, &target, many)
    }

    fn check(&mut self, file: &[u8]) -> Option<Stat> {
        let name = shown(file);
        let stat = match abi::stat(Dir::CWD, file, true) {
            Ok(stat) => stat,
            Err(error) => {
                self.fail(format!("can't stat {name} : {error} -- ignored"));
                return None;
            }
        };
        if stat.is_dir() {
            self.fail(format!("{name} is a directory -- ignored"));
            return None;
        }
        let is_link = abi::stat(Dir::CWD, file, false).is_ok_and(|stat| stat.is_symlink());
        if is_link && !self.force && !self.to_stdout {
            self.tell(1, format!("Warning : {name} is a symbolic link, ignoring \n"));
            self.code = 1;
            return None;
        }
        Some(stat)
    }

    fn target_name(&mut self, file: &[u8]) -> Option<Vec<u8>> {
        if self.act == Act::Compress {
            let suffix: &[u8] = match self.format {
                Format::Gzip => b".gz",
                Format::Xz => b".xz",
                Format::Lzma => b".lzma",
                _ => b".zst",
            };
            return Some([file, suffix].concat());
        }
        let found = SUFFIXES.iter().find(|(suffix, _)| file.ends_with(suffix) && file.len() > suffix.len());
        match found {
            Some((suffix, replacement)) => Some([&file[..file.len() - suffix.len()], replacement].concat()),
            None => {
                self.tell(1, format!("zstd: {}: unknown suffix (.zst/.tzst/.gz/.tgz/.lzma/.xz/.txz/.lz4/.tlz4 expected). Can't derive the output file name. Specify it with -o dstFileName. Ignoring.\n", shown(file)));
                self.code = 1;
                None
            }
        }
    }

    fn replace(&mut self, file: &[u8], opened: &Opened, stat: &Stat, target: &[u8], many: bool) -> bool {
        if abi::stat(Dir::CWD, target, true).is_ok() {
            if !self.force && !self.may_overwrite(target) {
                return false;
            }
            let _ = abi::unlink(Dir::CWD, target);
        }
        let product = match Product::create(target) {
            Ok(product) => product,
            Err(error) => {
                self.fail(format!("{}: {error}", shown(target)));
                return false;
            }
        };
        if !self.convert(file, opened, stat, product.writer().0, target, many) {
            return false;
        }
        if let Err(error) = product.finish(stat, stat.mtime) {
            self.fail(format!("{}: {error}", shown(target)));
            return false;
        }
        if self.remove
            && let Err(error) = abi::unlink(Dir::CWD, file)
        {
            self.fail(format!("{}: {error}", shown(file)));
            return false;
        }
        true
    }

    fn convert(
        &mut self,
        file: &[u8],
        opened: &Opened,
        stat: &Stat,
        sink: Fd,
        target: &[u8],
        many: bool,
    ) -> bool {
        let mut input = Input::of(opened.0);
        let count = Rc::new(std::cell::Cell::new(0));
        let mut sink = Counted { inner: Raw(sink), count: count.clone() };
        let is_named = stat.is_file() && file != b"/*stdin*\\";
        self.settings.size = is_named.then_some(stat.size);
        let result = if self.act == Act::Compress {
            self.encoder(sink).and_then(|encoder| pack(&mut input, encoder)).map(|total| (total, count.get()))
        } else {
            self.decompress(&mut input, &mut sink).map(|total| (input.taken(), total))
        };
        let (from, to) = match result {
            Ok(sizes) => sizes,
            Err(trouble) => {
                self.report(file, trouble);
                return false;
            }
        };
        self.totals = (self.totals.0 + from, self.totals.1 + to);
        let level = if many { 3 } else { 2 };
        match self.act {
            Act::Compress => {
                let (ratio, name) = (percent(from, to), shown(target));
                let text =
                    format!("{:<20} :{ratio}   ({} => {}, {name}) \n", shown(file), size(from), size(to));
                let empty = format!("{:<20} :  ({} => {}, {name}) \n", shown(file), size(from), size(to));
                self.tell(level, if from == 0 { empty } else { text });
            }
            _ => self.tell(level, format!("{:<20}: {to} bytes \n", shown(file))),
        }
        true
    }

    fn encoder(&self, sink: Counted<Raw>) -> Result<Box<dyn Encode>, Trouble> {
        let sink = Box::new(sink);
        let encoder = match self.format {
            Format::Zstd => Encoder::new(sink, &self.settings).map(|it| Box::new(it) as Box<dyn Encode>),
            other => other.encoder(sink),
        };
        encoder.map_err(|error| Trouble::Output(error.into()))
    }

    fn decompress(&self, input: &mut Input, sink: &mut Counted<Raw>) -> Result<u64, Trouble> {
        let start = input.peek(13).map_err(Flaw::from)?;
        let format = Format::of(start).filter(|format| *format != Format::Bzip2);
        let mut decoder: Box<dyn Decode> = match format {
            Some(format) if format != Format::Zstd => format.decoder(),
            _ => Box::new(self.settings.long.map_or_else(Decoder::new, Decoder::with_window)),
        };
        let is_test = self.act == Act::Test;
        let result = unpack(decoder.as_mut(), input, (!is_test).then_some(&mut *sink));
        // What follows the frames of a file that is only shown is shown, too.
        let passes = self.to_stdout && (self.force || self.passes_through) && !is_test;
        match result {
            Err(Trouble::Input(Flaw::Foreign)) if passes => pour(input, sink),
            result => result,
        }
    }

    fn report(&mut self, file: &[u8], trouble: Trouble) {
        let name = shown(file);
        match trouble {
            Trouble::Output(Errno::PIPE) => self.code = 1,
            Trouble::Output(error) => {
                self.fail(format!("error 70 : Write error : cannot write block : {error}"))
            }
            Trouble::Input(Flaw::Foreign) => self.fail(format!("{name}: unsupported format")),
            Trouble::Input(Flaw::Cut) => self.fail_cut(&name),
            Trouble::Input(Flaw::Damaged(words) | Flaw::Unsupported(words)) => {
                self.tell(1, format!("{name} : Decoding error (36) : {words} \n"));
                self.code = 1;
            }
            Trouble::Input(Flaw::TooLarge) => self.fail(format!("{name}: not enough memory")),
            Trouble::Input(Flaw::Unreadable(error)) => self.fail(format!("{name}: Read error: {error}")),
        }
    }

    fn fail_cut(&mut self, name: &str) {
        self.fail(format!("{name}: unexpected end of file"));
    }
}

/// The one file or stream that all output goes to.
enum Shared {
    File(Product),
    Stream(Fd),
}

impl Shared {
    fn fd(&self) -> Fd {
        match self {
            Shared::File(product) => product.writer().0,
            Shared::Stream(fd) => *fd,
        }
    }

    fn finish(self, keep: bool) -> Result<(), Errno> {
        match self {
            Shared::File(product) if keep => product.finish_plainly(0o666 & !umask()),
            Shared::File(_) => Ok(()),
            Shared::Stream(fd) => abi::close(fd),
        }
    }
}

fn asks(question: &str, refusal: &str) -> bool {
    say(question);
    let mut answer = String::new();
    let agreed = std::io::stdin().read_line(&mut answer).is_ok() && answer.starts_with(['y', 'Y']);
    if !agreed {
        say(format!("{refusal}{}", if refusal.ends_with("  ") { "\n \n" } else { " \n" }));
    }
    agreed
}

fn print(text: &str) -> i32 {
    i32::from(abi::write_all(1, text.as_bytes()).is_err())
}

fn version() -> String {
    format!("zstd (Wardian) {}\n", env!("CARGO_PKG_VERSION"))
}

fn percent(from: u64, to: u64) -> String {
    format!("{:6.2}%", to as f64 / from.max(1) as f64 * 100.0)
}

/// A size in the width that messages have for it.
fn size(bytes: u64) -> String {
    let (number, unit) = list::human(bytes);
    format!("{number:>6}{unit}")
}
