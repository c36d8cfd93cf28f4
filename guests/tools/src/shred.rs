//! `shred`: overwrites files, and removes them if asked to.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, count, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Whence, open_flags};

const TOOL: Tool = Tool {
    name: "shred",
    short: "fn:s:uvxz",
    long: &[
        ("exact", 'x'),
        ("force", 'f'),
        ("iterations=", 'n'),
        ("size=", 's'),
        ("random-source=", 'r'),
        ("remove[=", 'u'),
        ("verbose", 'v'),
        ("zero", 'z'),
    ],
    help: "\
Usage: shred [OPTION]... FILE...
Overwrite each FILE several times, so that what was in it is gone. When FILE is
-, shred standard output.

  -f, --force                change permissions to allow writing if needed
  -n, --iterations=N         overwrite N times, not 3
      --random-source=FILE   take random bytes from FILE
  -s, --size=N               overwrite so many bytes (suffixes like K, M, G)
  -u                         remove the file after overwriting it
      --remove[=HOW]         the same; HOW is unlink, wipe or wipesync (default)
  -v, --verbose              say what is being done
  -x, --exact                do not round sizes up to whole blocks
  -z, --zero                 end with zeros, to hide the shredding
      --help                 display this help and exit
      --version              output version information and exit
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq)]
enum Remove {
    Unlink,
    /// After its name was overwritten, too.
    Wipe,
}

struct Shred {
    force: bool,
    passes: u64,
    size: Option<u64>,
    remove: Option<Remove>,
    is_verbose: bool,
    is_exact: bool,
    zero: bool,
    random: Fd,
}

/// What is overwritten at a time; and what sizes are rounded up to.
const CHUNK: usize = 64 * 1024;
const BLOCK: u64 = 4096;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut shred = Shred {
        force: false,
        passes: 3,
        size: None,
        remove: None,
        is_verbose: false,
        is_exact: false,
        zero: false,
        random: -1,
    };
    let mut source: Option<Vec<u8>> = None;
    for (letter, text) in parsed.options {
        let given = text.as_deref().unwrap_or_default();
        match letter {
            'f' => shred.force = true,
            'n' => shred.passes = number("invalid number of passes", given, u64::MAX / 8, "")?,
            's' => shred.size = Some(number("invalid file size", given, i64::MAX as u64, "cbBkKMGTPEZY0")?),
            'u' => shred.remove = Some(remove_of(text.as_deref())?),
            'v' => shred.is_verbose = true,
            'x' => shred.is_exact = true,
            'z' => shred.zero = true,
            _ if source.as_ref().is_some_and(|other| other != given) => {
                complain("shred", "multiple random sources specified");
                return Err(1);
            }
            _ => source = text,
        }
    }
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing file operand"));
    }
    let source = source.unwrap_or_else(|| b"/dev/urandom".to_vec());
    shred.random =
        abi::open(Dir::CWD, &source, open_flags::RDONLY | open_flags::CLOEXEC, 0).map_err(|error| {
            complain("shred", format_args!("{}: {error}", quote::if_needed(&source)));
            1
        })?;
    let done = parsed.operands.iter().filter(|name| shred.shred(name)).count();
    Ok(i32::from(done < parsed.operands.len()))
}

fn number(what: &str, text: &[u8], most: u64, suffixes: &str) -> Result<u64, i32> {
    count::or_complaint(what, text, 0..=most, suffixes).map_err(|message| {
        complain("shred", message);
        1
    })
}

fn remove_of(how: Option<&[u8]>) -> Result<Remove, i32> {
    let Some(how) = how else { return Ok(Remove::Wipe) };
    let choices = [("unlink", 'u'), ("wipe", 'w'), ("wipesync", 's')];
    let chosen = TOOL.choose("--remove", how, &choices)?;
    Ok(if chosen == 'u' { Remove::Unlink } else { Remove::Wipe })
}

impl Shred {
    fn shred(&self, name: &[u8]) -> bool {
        let shown = quote::if_needed(name);
        if name == b"-" {
            return self.overwrite(1, &shown).is_ok();
        }
        let open = || abi::open(Dir::CWD, name, open_flags::WRONLY | open_flags::CLOEXEC, 0);
        let opened = match open() {
            Err(Errno::ACCES) if self.force => {
                let _ = abi::chmod(Dir::CWD, name, true, 0o200);
                open()
            }
            opened => opened,
        };
        let fd = match opened {
            Ok(fd) => fd,
            Err(error) => {
                complain("shred", format_args!("{shown}: failed to open for writing: {error}"));
                return false;
            }
        };
        let overwritten = self.overwrite(fd, &shown);
        let _ = abi::close(fd);
        overwritten.is_ok() && self.remove.is_none_or(|how| self.remove(name, how))
    }

    fn overwrite(&self, fd: Fd, shown: &str) -> Result<(), ()> {
        let refuse = |message: String| complain("shred", format_args!("{shown}: {message}"));
        let stat = abi::fstat(fd).map_err(|error| refuse(format!("fstat failed: {error}")))?;
        if abi::isatty(fd) || stat.is_fifo() || stat.is_socket() {
            refuse("invalid file type".into());
            return Err(());
        }
        let size = match self.size {
            Some(size) => size,
            None if self.is_exact || !stat.is_file() => stat.size,
            None => stat.size.next_multiple_of(BLOCK),
        };
        let total = self.passes + u64::from(self.zero);
        for pass in 1..=total {
            if size == 0 {
                break;
            }
            let zeros = self.zero && pass == total;
            let name = if zeros { "000000" } else { "random" };
            if self.is_verbose {
                refuse(format!("pass {pass}/{total} ({name})..."));
            }
            self.pass(fd, size, zeros).map_err(|error| refuse(format!("error writing: {error}")))?;
        }
        // A file that was rounded up is as long as its blocks now; what is removed is emptied first.
        if self.remove.is_some() && stat.is_file() {
            abi::truncate(fd, 0).map_err(|error| refuse(format!("error truncating: {error}")))?;
        }
        Ok(())
    }

    fn pass(&self, fd: Fd, size: u64, zeros: bool) -> Result<(), Errno> {
        abi::seek(fd, 0, Whence::Start)?;
        let (mut chunk, mut left) = (vec![0; CHUNK], size);
        while left > 0 {
            let part = &mut chunk[..usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
            if !zeros {
                self.fill(part)?;
            }
            abi::write_all(fd, part)?;
            left -= part.len() as u64;
        }
        abi::sync(fd).or(Ok(()))
    }

    fn fill(&self, mut part: &mut [u8]) -> Result<(), Errno> {
        while !part.is_empty() {
            let read = toolkit::source::read(self.random, part)?;
            if read == 0 {
                return Err(Errno::IO);
            }
            part = &mut part[read..];
        }
        Ok(())
    }

    fn remove(&self, name: &[u8], how: Remove) -> bool {
        let shown = quote::if_needed(name);
        if self.is_verbose {
            complain("shred", format_args!("{shown}: removing"));
        }
        let mut current = name.to_vec();
        if how == Remove::Wipe {
            self.wipe_name(&mut current);
        }
        if let Err(error) = abi::unlink(Dir::CWD, &current) {
            complain("shred", format_args!("{shown}: failed to remove: {error}"));
            return false;
        }
        if self.is_verbose {
            complain("shred", format_args!("{shown}: removed"));
        }
        true
    }

    /// Renames a file to ever shorter names that tell nothing.
    fn wipe_name(&self, current: &mut Vec<u8>) {
        let directory = files::parent(current);
        let bare = !current.contains(&b'/');
        for length in (1..=files::base_name(current).len()).rev() {
            let path = |name: Vec<u8>| if bare { name } else { files::join(&directory, &name) };
            let free = names_of(length).map(path).find(|path| abi::stat(Dir::CWD, path, false).is_err());
            let Some(next) = free else { continue };
            if abi::rename(Dir::CWD, current, Dir::CWD, &next).is_err() {
                continue;
            }
            if self.is_verbose {
                let (from, to) = (quote::if_needed(current), quote::if_needed(&next));
                complain("shred", format_args!("{from}: renamed to {to}"));
            }
            *current = next;
        }
    }
}

/// The names of a length, from all zeros on.
fn names_of(length: usize) -> impl Iterator<Item = Vec<u8>> {
    const CHARACTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    let mut next = Some(vec![0; length]);
    std::iter::from_fn(move || {
        let digits = next.take()?;
        let mut after = digits.clone();
        for digit in after.iter_mut().rev() {
            *digit += 1;
            if *digit < CHARACTERS.len() {
                next = Some(after);
                break;
            }
            *digit = 0;
        }
        Some(digits.into_iter().map(|digit| CHARACTERS[digit]).collect())
    })
}
