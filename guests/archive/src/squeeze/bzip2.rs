//! `bzip2`, `bunzip2` and `bzcat`.

use super::{Opened, Product, Trouble, pack, pour, say, shown, unpack};
use crate::codec::bzip2::{Decoder, Encoder};
use crate::codec::{Decode, Flaw};
use crate::stream::{Counted, Input, Raw};
use std::rc::Rc;
use toolkit::Arguments;
use toolkit::args::bytes_of;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat, open_flags as flags};

const USAGE: &str = "
   Usage: bzip2 [OPTION]... [FILE]...
   Packs each FILE into FILE.bz2 and removes it; bunzip2 unpacks it again,
   bzcat to standard output. Without a FILE it takes standard input.

   -1 .. -9            blocks of 100 to 900 kB (--fast, --best)
   -c --stdout         to standard output
   -d --decompress     unpack
   -f --force          also over existing files
   -k --keep           the file stays
   -q --quiet          fewer messages
   -s --small          accepted; there is one way to unpack
   -t --test           only see whether it can be unpacked
   -v --verbose        say what became of each file; twice for each block
   -z --compress       pack
   -h --help           this text
   -L -V --license --version
                       which version this is

";

const DAMAGE: &str = "
It is possible that the compressed file(s) have become corrupted.
You can use the -tvv option to test integrity of such files.

You can use the `bzip2recover' program to attempt to recover
data from undamaged sections of corrupted files.

";

const ENDINGS: [(&[u8], &[u8]); 4] = [(b".bz2", b""), (b".bz", b""), (b".tbz2", b".tar"), (b".tbz", b".tar")];

#[derive(PartialEq, Clone, Copy)]
enum Act {
    Compress,
    Decompress,
    Test,
}

struct Job {
    name: &'static str,
    act: Act,
    to_stdout: bool,
    force: bool,
    keep: bool,
    quiet: bool,
    verbose: bool,
    level: u32,
    /// The length of the longest name, for columns that line up.
    widest: usize,
    code: i32,
    test_failed: bool,
}

/// The program is to end at once, its code set.
struct Over;

pub fn main(arguments: Arguments) -> i32 {
    start("bzip2", bytes_of(arguments), Act::Compress, false)
}

pub fn bunzip2(arguments: Arguments) -> i32 {
    start("bunzip2", bytes_of(arguments), Act::Decompress, false)
}

pub fn bzcat(arguments: Arguments) -> i32 {
    start("bzcat", bytes_of(arguments), Act::Decompress, true)
}

fn start(name: &'static str, arguments: Vec<Vec<u8>>, act: Act, to_stdout: bool) -> i32 {
    let mut job = Job {
        name,
        act,
        to_stdout,
        force: false,
        keep: false,
        quiet: false,
        verbose: false,
        level: 9,
        widest: 0,
        code: 0,
        test_failed: false,
    };
    let files = match job.take_arguments(arguments) {
        Ok(files) => files,
        Err(code) => return code,
    };
    job.widest = files.iter().map(Vec::len).max().unwrap_or(0).max("(stdin)".len());
    let work = if files.is_empty() {
        job.treat_stdin()
    } else {
        files.iter().try_for_each(|file| if file == b"-" { job.treat_stdin() } else { job.treat(file) })
    };
    if work.is_ok() && job.test_failed {
        say(
            "\nYou can use the `bzip2recover' program to attempt to recover\ndata from undamaged sections of corrupted files.\n\n",
        );
    }
    job.code
}

impl Job {
    /// Takes the flags, which may stand anywhere before `--`; answers the files.
    fn take_arguments(&mut self, arguments: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, i32> {
        let mut files = Vec::new();
        let mut rest = arguments.into_iter();
        while let Some(word) = rest.next() {
            match word.as_slice() {
                b"--" => files.extend(rest.by_ref()),
                [b'-', b'-', ..] => self.take_long(&word)?,
                [b'-', letters @ .., _] if !letters.is_empty() || word.len() > 1 => {
                    for &letter in &word[1..] {
                        self.take_letter(letter, &word)?;
                    }
                }
                _ => files.push(word),
            }
        }
        Ok(files)
    }

    fn take_long(&mut self, word: &[u8]) -> Result<(), i32> {
        let letter = match word {
            b"--stdout" => b'c',
            b"--decompress" => b'd',
            b"--compress" => b'z',
            b"--force" => b'f',
            b"--test" => b't',
            b"--keep" => b'k',
            b"--small" => b's',
            b"--quiet" => b'q',
            b"--verbose" => b'v',
            b"--version" | b"--license" => b'V',
            b"--fast" => b'1',
            b"--best" => b'9',
            b"--help" => b'h',
            b"--exponential" | b"--repetitive-best" | b"--repetitive-fast" => return Ok(()),
            _ => return Err(self.wrong(word)),
        };
        self.take_letter(letter, word)
    }

    fn take_letter(&mut self, letter: u8, word: &[u8]) -> Result<(), i32> {
        match letter {
            b'c' => self.to_stdout = true,
            b'd' => self.act = Act::Decompress,
            b'z' => self.act = Act::Compress,
            b't' => self.act = Act::Test,
            b'f' => self.force = true,
            b'k' => self.keep = true,
            b'q' => self.quiet = true,
            b'v' => self.verbose = true,
            b's' => {}
            b'1'..=b'9' => self.level = u32::from(letter - b'0'),
            b'V' | b'L' => {
                say(format!("bzip2 (Wardian) {}\n", env!("CARGO_PKG_VERSION")));
                return Err(0);
            }
            b'h' => {
                say(banner() + USAGE);
                return Err(0);
            }
            _ => return Err(self.wrong(word)),
        }
        Ok(())
    }

    fn wrong(&self, word: &[u8]) -> i32 {
        say(format!("{}: Bad flag `{}'\n{}{USAGE}", self.name, shown(word), banner()));
        1
    }

    fn fail(&mut self, message: String) {
        self.fail_with(1, message);
    }

    fn fail_with(&mut self, code: i32, message: String) {
        say(format!("{}: {message}\n", self.name));
        self.code = self.code.max(code);
    }

    fn treat(&mut self, file: &[u8]) -> Result<(), Over> {
        let name = shown(file);
        let stat = match abi::stat(Dir::CWD, file, true) {
            Ok(stat) => stat,
            Err(error) => {
                self.fail(format!("Can't open input file {name}: {error}."));
                return Ok(());
            }
        };
        let target = self.target_name(file);
        if self.is_refused(file, &stat, target.as_deref()) {
            return Ok(());
        }
        let opened = match abi::open(Dir::CWD, file, flags::RDONLY | flags::CLOEXEC, 0) {
            Ok(fd) => Opened(fd),
            Err(error) => {
                self.fail(format!("Can't open input file {name}:{error}."));
                return Ok(());
            }
        };
        match target {
            None => self.convert(file, &opened, None, b"(stdout)"),
            Some(target) => self.replace(file, &opened, &stat, &target),
        }
    }

    /// What the result is called, unless there is no file to be made.
    fn target_name(&mut self, file: &[u8]) -> Option<Vec<u8>> {
        if self.to_stdout || self.act == Act::Test {
            return None;
        }
        if self.act == Act::Compress {
            return Some([file, b".bz2"].concat());
        }
        for (ending, replacement) in ENDINGS {
            if file.len() > ending.len() && file.ends_with(ending) {
                return Some([&file[..file.len() - ending.len()], replacement].concat());
            }
        }
        let target = [file, b".out"].concat();
        if !self.quiet {
            let (name, target) = (shown(file), shown(&target));
            say(format!("{}: Can't guess original name for {name} -- using {target}\n", self.name));
        }
        Some(target)
    }

    fn is_refused(&mut self, file: &[u8], stat: &Stat, target: Option<&[u8]>) -> bool {
        let name = shown(file);
        if self.act == Act::Compress
            && let Some((ending, _)) = ENDINGS.iter().find(|(ending, _)| file.ends_with(ending))
        {
            self.fail(format!("Input file {name} already has {} suffix.", shown(ending)));
            return true;
        }
        if stat.is_dir() {
            self.fail(format!("Input file {name} is a directory."));
            return true;
        }
        let Some(target) = target else { return false };
        let itself = abi::stat(Dir::CWD, file, false).unwrap_or(*stat);
        if !self.force && !itself.is_file() {
            self.fail(format!("Input file {name} is not a normal file."));
            return true;
        }
        if abi::stat(Dir::CWD, target, false).is_ok() {
            if !self.force {
                self.fail(format!("Output file {} already exists.", shown(target)));
                return true;
            }
            // What cannot be removed cannot be made anew, which will be said then.
            let _ = abi::unlink(Dir::CWD, target);
        }
        let others = stat.nlink.saturating_sub(1);
        if !self.force && others > 0 {
            let plural = if others > 1 { "s" } else { "" };
            self.fail(format!("Input file {name} has {others} other link{plural}."));
            return true;
        }
        false
    }

    fn replace(&mut self, file: &[u8], opened: &Opened, stat: &Stat, target: &[u8]) -> Result<(), Over> {
        let product = match Product::create(target) {
            Ok(product) => product,
            Err(error) => {
                self.fail(format!("Can't create output file {}: {error}.", shown(target)));
                return Ok(());
            }
        };
        let before = self.code;
        self.code = 0;
        let converted = self.convert(file, opened, Some(&product), target);
        let went_well = converted.is_ok() && self.code == 0;
        self.code = self.code.max(before);
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
        let (fd, what) = match self.act {
            Act::Compress => (1, "write compressed data to"),
            _ => (0, "read compressed data from"),
        };
        if abi::isatty(fd) && !self.force {
            let name = self.name;
            say(format!("{name}: I won't {what} a terminal.\n{name}: For help, type: `{name} --help'.\n"));
            self.code = 1;
            return Err(Over);
        }
        let stdin = std::mem::ManuallyDrop::new(Opened(0));
        self.convert(b"(stdin)", &stdin, None, b"(stdout)")
    }

    fn convert(
        &mut self,
        name: &[u8],
        opened: &Opened,
        product: Option<&Product>,
        target: &[u8],
    ) -> Result<(), Over> {
        if self.verbose {
            let fill = self.widest.saturating_sub(name.len());
            say(format!("  {}: {}", shown(name), " ".repeat(fill)));
        }
        let mut input = Input::of(opened.0);
        let mut sink = product.map_or(Raw(1), Product::writer);
        if self.act == Act::Compress {
            let count = Rc::new(std::cell::Cell::new(0));
            let counted = Box::new(Counted { inner: sink, count: count.clone() });
            return match pack(&mut input, Box::new(Encoder::new(counted, self.level))) {
                Ok(total) => {
                    self.tell_ratio(total, count.get());
                    Ok(())
                }
                Err(trouble) => self.report(name, target, trouble),
            };
        }
        let mut decoder = Decoder::new();
        let is_test = self.act == Act::Test;
        let result = unpack(&mut decoder, &mut input, (!is_test).then_some(&mut sink));
        let passes = self.force && self.to_stdout && !is_test;
        let result = match result {
            Err(Trouble::Input(Flaw::Foreign)) if passes => pour(&mut input, sink),
            result => result,
        };
        match result {
            Ok(_) => {
                if decoder.has_garbage() && !self.quiet {
                    let newline = if is_test { "" } else { "\n" };
                    say(format!(
                        "{newline}{}: {}: trailing garbage after EOF ignored\n",
                        self.name,
                        shown(name)
                    ));
                }
                if self.verbose {
                    say(if is_test { "ok\n" } else { "done\n" });
                }
                Ok(())
            }
            Err(trouble) => self.report(name, target, trouble),
        }
    }

    fn tell_ratio(&self, total: u64, packed: u64) {
        if !self.verbose {
            return;
        }
        if total == 0 {
            return say(" no data compressed.\n");
        }
        let (total_f, packed_f) = (total as f64, packed as f64);
        say(format!(
            "{:6.3}:1, {:6.3} bits/byte, {:5.2}% saved, {total} in, {packed} out.\n",
            total_f / packed_f,
            8.0 * packed_f / total_f,
            100.0 * (1.0 - packed_f / total_f)
        ));
    }

    fn report(&mut self, name: &[u8], target: &[u8], trouble: Trouble) -> Result<(), Over> {
        let (file, target) = (shown(name), shown(target));
        let is_test = self.act == Act::Test;
        let flaw = match trouble {
            Trouble::Output(Errno::PIPE) => {
                self.code = 1;
                return Err(Over);
            }
            Trouble::Output(error) => {
                self.fail(format!(
                    "I/O or other error, bailing out.  Possible reason follows.\n{}: {error}",
                    self.name
                ));
                return Err(Over);
            }
            Trouble::Input(flaw) => flaw,
        };
        if is_test {
            self.test_failed = true;
            let words = match flaw {
                Flaw::Cut => "file ends unexpectedly".to_owned(),
                Flaw::Foreign => "bad magic number (file not created by bzip2)".to_owned(),
                Flaw::Damaged(words) | Flaw::Unsupported(words) => words.to_owned(),
                Flaw::TooLarge => "couldn't allocate enough memory".to_owned(),
                Flaw::Unreadable(error) => error.to_string(),
            };
            match self.verbose {
                true => say(format!("{words}\n")),
                false => say(format!("{}: {file}: {words}\n", self.name)),
            }
            self.code = 2;
            return Ok(());
        }
        match flaw {
            Flaw::Foreign => {
                match self.verbose {
                    true => say("not a bzip2 file.\n"),
                    false => say(format!("{}: {file} is not a bzip2 file.\n", self.name)),
                }
                self.code = 2;
                return Ok(());
            }
            Flaw::Cut => {
                // The real one shows the error number that some earlier call left behind.
                let reason = match (file.as_str(), target.as_str()) {
                    ("(stdin)", _) => "Inappropriate ioctl for device",
                    (_, "(stdout)") => "Success",
                    _ => "No such file or directory",
                };
                say(format!(
                    "\n{0}: Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.\n{0}: {reason}\n\tInput file = {file}, output file = {target}\n{DAMAGE}",
                    self.name
                ));
            }
            Flaw::Unreadable(error) => {
                say(format!(
                    "\n{0}: I/O or other error, bailing out.  Possible reason follows.\n{0}: {error}\n\tInput file = {file}, output file = {target}\n",
                    self.name
                ));
            }
            Flaw::TooLarge => say(format!("\n{}: couldn't allocate enough memory\n", self.name)),
            Flaw::Damaged(_) | Flaw::Unsupported(_) => {
                say(format!(
                    "\n{}: Data integrity error when decompressing.\n\tInput file = {file}, output file = {target}\n{DAMAGE}",
                    self.name
                ));
            }
        }
        if target != "(stdout)" {
            say(format!("{}: Deleting output file {target}, if it exists.\n", self.name));
        }
        self.code = 2;
        Err(Over)
    }
}

fn banner() -> String {
    "bzip2, a block-sorting file compressor.  Version 1.0.8, 13-Jul-2019.\n".to_owned()
}
