//! `xz`, `unxz`, `xzcat`, and `lzma`, `unlzma`, `lzcat`.

use super::{Opened, Product, Trouble, pack, pour, say, shown, unpack};
use crate::codec::xz::{Encoder, LzmaEncoder, Settings};
use crate::codec::{Decode, Encode, Flaw, Format};
use crate::stream::{Counted, Input, Raw};
use lzma_rust2::CheckType;
use std::rc::Rc;
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat, open_flags as flags};

mod list;

const HELP: &str = "\
Usage: xz [OPTION]... [FILE]...
Packs each FILE into FILE.xz and removes it, or unpacks it again; without a
FILE, or for -, from standard input to standard output.

  -0 .. -9            how hard to try (6 without it); what is looked back on
                      is at most 8 MiB
  -e, --extreme       try harder still
  -c, --stdout        to standard output; the file stays
  -C, --check=CHECK   none, crc32, crc64 (without it) or sha256
  -d, --decompress    unpack
  -f, --force         also over existing files and through links
  -F, --format=FMT    auto (without it), xz or lzma
  -k, --keep          the file stays
  -l, --list          streams, blocks, sizes and ratio of .xz files
  -q, --quiet         no warnings; twice, no errors either
  -Q, --no-warn       warnings leave the exit status alone
  -S, --suffix=.SUF   .SUF in place of .xz
  -t, --test          only see whether it can be unpacked
  -T, --threads=NUM   accepted; there is one thread
  -v, --verbose       say what became of each file
  -z, --compress      pack
  -h, --help          this text
  -V, --version       which version this is
";

const TOOL: Tool = Tool {
    name: "xz",
    short: "0123456789cC:deF:fhHklM:qQrS:tT:vVz",
    long: &[
        ("best", '9'),
        ("check=", 'C'),
        ("compress", 'z'),
        ("decompress", 'd'),
        ("extreme", 'e'),
        ("fast", '0'),
        ("files[=", 'n'),
        ("files0[=", 'N'),
        ("force", 'f'),
        ("format=", 'F'),
        ("ignore-check", 'i'),
        ("keep", 'k'),
        ("list", 'l'),
        ("long-help", 'h'),
        ("memlimit=", 'M'),
        ("memlimit-compress=", 'M'),
        ("memlimit-decompress=", 'M'),
        ("memory=", 'M'),
        ("no-adjust", 'a'),
        ("no-sparse", 's'),
        ("no-warn", 'Q'),
        ("quiet", 'q'),
        ("robot", 'R'),
        ("single-stream", 'x'),
        ("stdout", 'c'),
        ("suffix=", 'S'),
        ("test", 't'),
        ("threads=", 'T'),
        ("to-stdout", 'c'),
        ("uncompress", 'd'),
        ("verbose", 'v'),
    ],
    help: HELP,
    misuse: 1,
};

#[derive(PartialEq, Clone, Copy)]
enum Act {
    Compress,
    Decompress,
    Test,
    List,
}

struct Job {
    name: &'static str,
    act: Act,
    /// `None` for whichever a file is in.
    format: Option<Format>,
    to_stdout: bool,
    force: bool,
    keep: bool,
    quiet: u32,
    verbose: bool,
    no_warn: bool,
    suffix: Option<Vec<u8>>,
    settings: Settings,
    code: i32,
    totals: list::Totals,
    robot: bool,
}

/// The program is to end at once, its code set.
struct Over;

macro_rules! programs {
    ($($function:ident $name:literal $act:ident $format:expr, $stdout:literal;)*) => {
        $(pub fn $function(arguments: Arguments) -> i32 {
            start($name, bytes_of(arguments), Act::$act, $format, $stdout)
        })*
    };
}

programs! {
    main "xz" Compress None, false;
    unxz "unxz" Decompress None, false;
    xzcat "xzcat" Decompress None, true;
    lzma "lzma" Compress Some(Format::Lzma), false;
    unlzma "unlzma" Decompress Some(Format::Lzma), false;
    lzcat "lzcat" Decompress Some(Format::Lzma), true;
}

fn start(
    name: &'static str,
    arguments: Vec<Vec<u8>>,
    act: Act,
    format: Option<Format>,
    to_stdout: bool,
) -> i32 {
    let tool = Tool { name, ..TOOL };
    let mut job = Job {
        name,
        act,
        format,
        to_stdout,
        force: false,
        keep: false,
        quiet: 0,
        verbose: false,
        no_warn: false,
        suffix: None,
        settings: Settings::default(),
        code: 0,
        totals: list::Totals::default(),
        robot: false,
    };
    let parsed = match tool.parse(arguments) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut files = parsed.operands;
    for (letter, text) in parsed.options {
        match letter {
            'n' | 'N' => match job.names_from(text, if letter == 'n' { b'\n' } else { 0 }) {
                Ok(names) => files.extend(names),
                Err(code) => return code,
            },
            'h' | 'H' => return tool.parse(vec![b"--help".to_vec()]).err().unwrap_or_default(),
            'V' => return tool.parse(vec![b"--version".to_vec()]).err().unwrap_or_default(),
            letter => {
                if let Err(code) = job.set(letter, text.unwrap_or_default()) {
                    return code;
                }
            }
        }
    }
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    job.run(&files)
}

impl Job {
    fn set(&mut self, letter: char, text: Vec<u8>) -> Result<(), i32> {
        match letter {
            '0'..='9' => self.settings.level = u32::from(letter) - u32::from('0'),
            'e' => self.settings.extreme = true,
            'c' => self.to_stdout = true,
            'd' => self.act = Act::Decompress,
            'z' => self.act = Act::Compress,
            't' => self.act = Act::Test,
            'l' => self.act = Act::List,
            'f' => self.force = true,
            'k' => self.keep = true,
            'q' => self.quiet += 1,
            'Q' => self.no_warn = true,
            'v' => self.verbose = true,
            'S' if text.is_empty() || text.contains(&b'/') => {
                return Err(self.wrong(format!("{}: Invalid filename suffix", shown(&text))));
            }
            'S' => self.suffix = Some(text),
            'F' => {
                self.format = match text.as_slice() {
                    b"auto" => None,
                    b"xz" => Some(Format::Xz),
                    b"lzma" | b"alone" => Some(Format::Lzma),
                    _ => return Err(self.wrong(format!("{}: Unknown file format type", shown(&text)))),
                }
            }
            'C' => {
                self.settings.check = match text.as_slice() {
                    b"none" => CheckType::None,
                    b"crc32" => CheckType::Crc32,
                    b"crc64" => CheckType::Crc64,
                    b"sha256" => CheckType::Sha256,
                    _ => {
                        return Err(self.wrong(format!("{}: Unsupported integrity check type", shown(&text))));
                    }
                }
            }
            'M' => return self.limit_memory(&text),
            'i' => return Err(self.wrong("--ignore-check: not supported here".to_owned())),
            'x' => return Err(self.wrong("--single-stream: not supported here".to_owned())),
            'R' => self.robot = true,
            'T' if toolkit::input::number::<u32>(&text).is_none() => {
                return Err(
                    self.wrong(format!("{}: Value is not a non-negative decimal integer", shown(&text)))
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a limit that never matters: none at all, or one that all settings stay below.
    fn limit_memory(&self, text: &[u8]) -> Result<(), i32> {
        const ENOUGH: u64 = 700 << 20;
        let is_share =
            text.strip_suffix(b"%").is_some_and(|share| toolkit::input::number::<u8>(share).is_some());
        if matches!(text, b"0" | b"max") || is_share {
            return Ok(());
        }
        match toolkit::count::parse(text, 1..=u64::MAX, "KMGkmg0") {
            Ok(limit) if limit >= ENOUGH => Ok(()),
            Ok(_) => Err(self.wrong(format!("{}: memory limit is too low", shown(text)))),
            Err(_) => {
                Err(self.wrong(format!("{}: Value is not a non-negative decimal integer", shown(text))))
            }
        }
    }

    fn wrong(&self, message: String) -> i32 {
        say(format!("{}: {message}\n", self.name));
        1
    }

    fn names_from(&self, file: Option<Vec<u8>>, end: u8) -> Result<Vec<Vec<u8>>, i32> {
        let text = match &file {
            None => files::read_fd(0),
            Some(file) => std::fs::read(files::path(file)).map_err(Errno::from),
        };
        let text =
            text.map_err(|error| self.wrong(format!("{}: {error}", shown(&file.unwrap_or_default()))))?;
        Ok(text.split(|&byte| byte == end).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    fn run(&mut self, files: &[Vec<u8>]) -> i32 {
        match self.act {
            _ if !self.robot => {}
            Act::List => return self.wrong("--robot: not supported here with --list".to_owned()),
            _ => {
                let message = "Compression and decompression with --robot are not supported yet.";
                return self.wrong(message.to_owned());
            }
        }
        for file in files {
            let over = if file == b"-" { self.treat_stdin() } else { self.treat(file, files.len()) };
            if over.is_err() {
                break;
            }
        }
        if self.act == Act::List && files.len() > 1 {
            self.totals.print(self.verbose);
        }
        if self.code == 2 && self.no_warn { 0 } else { self.code }
    }

    fn fail(&mut self, message: String) {
        if self.quiet < 2 {
            say(format!("{}: {message}\n", self.name));
        }
        self.code = 1;
    }

    fn warn(&mut self, message: String) {
        if self.quiet < 1 {
            say(format!("{}: {message}\n", self.name));
        }
        if self.code == 0 {
            self.code = 2;
        }
    }

    fn treat(&mut self, file: &[u8], count: usize) -> Result<(), Over> {
        let name = shown(file);
        let changes_files = !self.to_stdout && matches!(self.act, Act::Compress | Act::Decompress);
        let itself = match abi::stat(Dir::CWD, file, !changes_files || self.force) {
            Ok(stat) => stat,
            Err(error) => {
                self.fail(format!("{name}: {error}"));
                return Ok(());
            }
        };
        if itself.is_symlink() {
            self.warn(format!("{name}: Is a symbolic link, skipping"));
            return Ok(());
        }
        if itself.is_dir() {
            self.warn(format!("{name}: Is a directory, skipping"));
            return Ok(());
        }
        if changes_files && !self.may_replace(&name, &itself) {
            return Ok(());
        }
        let opened = match abi::open(Dir::CWD, file, flags::RDONLY | flags::CLOEXEC, 0) {
            Ok(fd) => Opened(fd),
            Err(error) => {
                self.fail(format!("{name}: {error}"));
                return Ok(());
            }
        };
        if self.act == Act::List {
            if let Err(message) = self.totals.list(file, &opened, count, self.verbose) {
                self.fail(format!("{name}: {message}"));
            }
            return Ok(());
        }
        if !changes_files {
            return self.convert(file, &opened, &itself, None);
        }
        match self.target_name(file) {
            Ok(target) => self.replace(file, &opened, &itself, &target),
            // What is in a file that has the wrong name is told first.
            Err(_) if self.act == Act::Decompress && self.is_foreign(&opened) => {
                self.report(file, Trouble::Input(Flaw::Foreign))
            }
            Err(message) => {
                self.warn(format!("{name}: {message}, skipping"));
                Ok(())
            }
        }
    }

    fn is_foreign(&self, opened: &Opened) -> bool {
        let mut input = Input::of(opened.0);
        let found = input.peek(13).ok().and_then(Format::of);
        match self.format {
            Some(format) => found != Some(format),
            None => !matches!(found, Some(Format::Xz | Format::Lzma)),
        }
    }

    fn may_replace(&mut self, name: &str, stat: &Stat) -> bool {
        let obstacle = match stat.mode {
            _ if !stat.is_file() => "Not a regular file",
            _ if self.force || self.keep => return true,
            mode if mode & 0o6000 != 0 => "File has setuid or setgid bit set",
            mode if mode & 0o1000 != 0 => "File has sticky bit set",
            _ if stat.nlink > 1 => "Input file has more than one hard link",
            _ => return true,
        };
        self.warn(format!("{name}: {obstacle}, skipping"));
        false
    }

    fn target_name(&self, file: &[u8]) -> Result<Vec<u8>, String> {
        let base = files::base_name(file).len();
        let ends = |ending: &[u8]| file.ends_with(ending) && base > ending.len();
        let endings: &[(&[u8], &[u8])] = match self.format {
            Some(Format::Lzma) => &[(b".lzma", b""), (b".tlz", b".tar")],
            Some(_) => &[(b".xz", b""), (b".txz", b".tar")],
            None => &[(b".xz", b""), (b".txz", b".tar"), (b".lzma", b""), (b".tlz", b".tar")],
        };
        if self.act == Act::Compress {
            let is_lzma = self.format == Some(Format::Lzma);
            let own = if is_lzma {
                &endings[..2]
            } else {
                &[(b".xz".as_slice(), b"".as_slice()), (b".txz", b".tar")]
            };
            let custom = self.suffix.as_deref().filter(|suffix| ends(suffix));
            let found = own.iter().map(|(ending, _)| *ending).find(|ending| ends(ending)).or(custom);
            return match (found, &self.suffix) {
                (Some(ending), _) => Err(format!("File already has `{}' suffix", shown(ending))),
                (None, Some(suffix)) => Ok([file, suffix].concat()),
                (None, None) => Ok([file, own[0].0].concat()),
            };
        }
        if let Some(suffix) = &self.suffix
            && ends(suffix)
        {
            return Ok(file[..file.len() - suffix.len()].to_vec());
        }
        let found = endings.iter().find(|(ending, _)| ends(ending));
        let (ending, replacement) = found.ok_or("Filename has an unknown suffix")?;
        Ok([&file[..file.len() - ending.len()], replacement].concat())
    }

    fn replace(&mut self, file: &[u8], opened: &Opened, stat: &Stat, target: &[u8]) -> Result<(), Over> {
        if self.force {
            // What cannot be removed cannot be made anew, which will be said then.
            let _ = abi::unlink(Dir::CWD, target);
        }
        let product = match Product::create(target) {
            Ok(product) => product,
            Err(error) => {
                self.fail(format!("{}: {error}", shown(target)));
                return Ok(());
            }
        };
        let before = std::mem::take(&mut self.code);
        let converted = self.convert(file, opened, stat, Some(&product));
        let went_well = self.code == 0;
        self.code = if before == 1 || self.code == 0 { before } else { self.code };
        if !went_well {
            return converted;
        }
        if let Err(error) = product.finish(stat, stat.mtime) {
            self.fail(format!("{}: {error}", shown(target)));
            return Ok(());
        }
        if !self.keep
            && let Err(error) = abi::unlink(Dir::CWD, file)
        {
            self.fail(format!("{}: {error}", shown(file)));
        }
        Ok(())
    }

    fn treat_stdin(&mut self) -> Result<(), Over> {
        if self.act == Act::List {
            self.fail("--list does not support reading from standard input".to_owned());
            return Ok(());
        }
        let (fd, what) = match self.act {
            Act::Compress => (1, "written to"),
            _ => (0, "read from"),
        };
        if abi::isatty(fd) {
            self.fail(format!("Compressed data cannot be {what} a terminal"));
            say(format!("{0}: Try `{0} --help' for more information.\n", self.name));
            return Err(Over);
        }
        let stat = abi::fstat(0).unwrap_or_default();
        let stdin = std::mem::ManuallyDrop::new(Opened(0));
        self.convert(b"-", &stdin, &stat, None)
    }

    fn convert(
        &mut self,
        file: &[u8],
        opened: &Opened,
        stat: &Stat,
        product: Option<&Product>,
    ) -> Result<(), Over> {
        let mut input = Input::of(opened.0);
        let count = Rc::new(std::cell::Cell::new(0));
        let inner = product.map_or(Raw(1), Product::writer);
        let mut sink = Counted { inner, count: count.clone() };
        let result = if self.act == Act::Compress {
            self.settings.size = (stat.is_file() && file != b"-").then_some(stat.size);
            self.encoder(sink).and_then(|encoder| pack(&mut input, encoder)).map(|total| (count.get(), total))
        } else {
            self.decompress(&mut input, &mut sink).map(|total| (input.taken(), total))
        };
        match result {
            Ok((packed, total)) => {
                if self.verbose {
                    list::tell_sizes(file, packed, total);
                }
                Ok(())
            }
            Err(trouble) => self.report(file, trouble),
        }
    }

    fn encoder(&self, sink: Counted<Raw>) -> Result<Box<dyn Encode>, Trouble> {
        let sink = Box::new(sink);
        let encoder: std::io::Result<Box<dyn Encode>> = match self.format {
            Some(Format::Lzma) => LzmaEncoder::new(sink, &self.settings).map(|it| Box::new(it) as _),
            _ => Encoder::new(sink, &self.settings).map(|it| Box::new(it) as _),
        };
        encoder.map_err(|error| Trouble::Output(error.into()))
    }

    fn decompress(&self, input: &mut Input, sink: &mut Counted<Raw>) -> Result<u64, Trouble> {
        let start = input.peek(13).map_err(Flaw::from)?;
        let found = Format::of(start).filter(|format| matches!(format, Format::Xz | Format::Lzma));
        // Each format's own decoder says what is wrong with it.
        let format = match (self.format, found) {
            (Some(wanted), _) => wanted,
            (None, Some(found)) => found,
            (None, None) => Format::Xz,
        };
        let is_foreign = found != Some(format);
        if is_foreign && self.force && self.to_stdout && self.act == Act::Decompress && self.format.is_none()
        {
            return pour(input, sink);
        }
        let mut decoder: Box<dyn Decode> = format.decoder();
        unpack(decoder.as_mut(), input, (self.act != Act::Test).then_some(sink))
    }

    fn report(&mut self, file: &[u8], trouble: Trouble) -> Result<(), Over> {
        let name = shown_stream(file);
        let words = match trouble {
            Trouble::Output(Errno::PIPE) => {
                self.code = 1;
                return Err(Over);
            }
            Trouble::Output(error) => {
                self.fail(format!("(stdout): Write error: {error}"));
                return Err(Over);
            }
            Trouble::Input(Flaw::Foreign) => "File format not recognized",
            Trouble::Input(Flaw::Cut) => "Unexpected end of input",
            Trouble::Input(Flaw::Damaged(words) | Flaw::Unsupported(words)) => words,
            Trouble::Input(Flaw::TooLarge) => "Memory usage limit reached",
            Trouble::Input(Flaw::Unreadable(error)) => {
                self.fail(format!("{name}: Read error: {error}"));
                return Ok(());
            }
        };
        self.fail(format!("{name}: {words}"));
        Ok(())
    }
}

fn shown_stream(file: &[u8]) -> String {
    if file == b"-" { "(stdin)".to_owned() } else { shown(file) }
}
