//! `tail`: the end of files, and what comes after it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::program::duration;
use toolkit::{Arguments, complain, files, input, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Who};

const TOOL: Tool = Tool {
    name: "tail",
    short: "c:fFn:qs:vz",
    long: &[
        ("bytes=", 'c'),
        ("follow[=", 'W'),
        ("lines=", 'n'),
        ("max-unchanged-stats=", 'u'),
        ("pid=", 'p'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("retry", 'r'),
        ("sleep-interval=", 's'),
        // Files are looked at again and again, as by GNU's with this option, which its tests give.
        ("-disable-inotify", 'w'),
        ("verbose", 'v'),
        ("zero-terminated", 'z'),
    ],
    help: "\
Usage: tail [OPTION]... [FILE]...
Print the last 10 lines of each FILE to standard output.
With more than one FILE, precede each with a header giving the file name.

With no FILE, or when FILE is -, read standard input.

  -c, --bytes=[+]NUM       output the last NUM bytes; or use -c +NUM to
                             output starting with byte NUM of each file
  -f, --follow[={name|descriptor}]
                           output appended data as the file grows
  -F                       same as --follow=name --retry
  -n, --lines=[+]NUM       output the last NUM lines, instead of the last 10;
                             or use -n +NUM to skip NUM-1 lines at the start
      --pid=PID            with -f, terminate after process ID, PID dies
  -q, --quiet, --silent    never output headers giving file names
      --retry              keep trying to open a file if it is inaccessible
  -s, --sleep-interval=N   with -f, sleep for approximately N seconds
                             (default 1.0) between iterations
  -v, --verbose            always output headers giving file names
  -z, --zero-terminated    line delimiter is NUL, not newline
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq)]
enum Follow {
    No,
    Descriptor,
    Name,
}

/// Which part of a file is printed.
#[derive(Clone, Copy)]
struct Part {
    in_lines: bool,
    /// Counted from the start, not from the end.
    from_start: bool,
    count: u64,
}

struct Tail {
    part: Part,
    follow: Follow,
    retry: bool,
    pid: Option<i32>,
    pause: Duration,
    headers: bool,
    end: u8,
    out: Out,
    code: i32,
    /// The file whose output is the last that was printed.
    last: Option<usize>,
}

/// What is read at a time.
const BLOCK: usize = 64 * 1024;

/// Reads once; 0 is the end.
fn read(file: &mut File, block: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match file.read(block) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A file that is followed.
struct Followed {
    name: Vec<u8>,
    file: Option<File>,
    identity: Option<(u64, u64)>,
    place: u64,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(modern(arguments))?;
    let mut tail = Tail {
        part: Part { in_lines: true, from_start: false, count: 10 },
        follow: Follow::No,
        retry: false,
        pid: None,
        pause: Duration::from_secs(1),
        headers: parsed.operands.len() > 1,
        end: b'\n',
        out: Out::new("tail"),
        code: 0,
        last: None,
    };
    let mut headers = None;
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'c' | 'n' => tail.part = part(&text, letter == 'n')?,
            'f' => tail.follow = Follow::Descriptor,
            'F' => (tail.follow, tail.retry) = (Follow::Name, true),
            'W' => {
                tail.follow = match text.as_slice() {
                    b"" | b"descriptor" => Follow::Descriptor,
                    b"name" => Follow::Name,
                    _ => return Err(TOOL.wrong_choice("--follow", &text, &["descriptor", "name"])),
                }
            }
            'p' => tail.pid = Some(number(&text, "PID")?),
            'q' => headers = Some(false),
            'v' => headers = Some(true),
            'r' => tail.retry = true,
            's' => {
                let nanos = duration(&text).ok_or_else(|| {
                    complain("tail", format_args!("invalid number of seconds: {}", quote::word(&text)));
                    1
                })?;
                tail.pause = Duration::from_nanos(nanos.unsigned_abs());
            }
            'z' => tail.end = 0,
            _ => {}
        }
    }
    tail.headers = headers.unwrap_or(tail.headers);
    tail.run(&input::or_stdin(parsed.operands));
    Ok(tail.code)
}

/// `-5`, `+5`, `-5f` and `-c5` of old, written as today.
fn modern(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let Some(first) = words.first() else { return words };
    let is_old = matches!(first.as_slice(), [b'-' | b'+', digit, ..] if digit.is_ascii_digit());
    if !is_old {
        return words;
    }
    let sign: &[u8] = if first[0] == b'+' { b"+" } else { b"" };
    let digits = first[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (count, letters) = first[1..].split_at(digits);
    let option: &[u8] = if letters.starts_with(b"c") { b"-c" } else { b"-n" };
    let mut replaced = vec![[option, sign, count].concat()];
    if letters.ends_with(b"f") {
        replaced.push(b"-f".to_vec());
    }
    words.splice(..1, replaced);
    words
}

fn number(text: &[u8], what: &str) -> Result<i32, i32> {
    input::number(text).ok_or_else(|| {
        complain("tail", format_args!("invalid {what}: {}", quote::word(text)));
        1
    })
}

fn part(text: &[u8], in_lines: bool) -> Result<Part, i32> {
    let (from_start, digits) = match text {
        [b'+', digits @ ..] => (true, digits),
        [b'-', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let what = if in_lines { "lines" } else { "bytes" };
    let count = match toolkit::size::Scale::parse(digits) {
        Some(toolkit::size::Scale::Blocks(size, _)) => u64::try_from(size).ok(),
        _ => input::number(digits),
    };
    let count = count.filter(|_| digits.first().is_some_and(u8::is_ascii_digit)).ok_or_else(|| {
        complain("tail", format_args!("invalid number of {what}: {}", quote::word(text)));
        1
    })?;
    Ok(Part { in_lines, from_start, count })
}

impl Tail {
    fn run(&mut self, operands: &[Vec<u8>]) {
        let mut followed = Vec::new();
        for (at, operand) in operands.iter().enumerate() {
            let opened = self.show(at, operand);
            let is_pipe = operand == b"-" && abi::fstat(0).is_ok_and(|stat| stat.is_fifo());
            if self.follow != Follow::No && !is_pipe && (opened.file.is_some() || self.retry) {
                followed.push((at, opened));
            }
        }
        self.out.flush();
        if self.follow == Follow::No {
            return;
        }
        if followed.is_empty() {
            if self.code != 0 {
                complain("tail", "no files remaining");
            }
            return;
        }
        self.follow(&mut followed);
    }

    /// Prints the end of a file; answers it as it is then.
    fn show(&mut self, at: usize, operand: &[u8]) -> Followed {
        let mut opened = Followed { name: operand.to_vec(), file: None, identity: None, place: 0 };
        let place: &[u8] = if operand == b"-" { b"/dev/stdin" } else { operand };
        let mut file = match File::open(files::path(place)) {
            Ok(file) => file,
            Err(error) => {
                let why = Errno::from(error);
                self.fail(format_args!("cannot open {} for reading: {why}", quote::always(operand)));
                return opened;
            }
        };
        self.header(at, operand);
        let stat = abi::stat(Dir::CWD, place, true).ok();
        if stat.is_some_and(|stat| stat.is_dir()) {
            self.fail(format_args!("error reading {}: Is a directory", quote::always(operand)));
            return opened;
        }
        // Files of /proc say that they are empty: those are read like a pipe.
        let is_file = stat.is_some_and(|stat| stat.is_file() && stat.size > 0) && operand != b"-";
        if let Err(error) = self.show_part(&mut file, is_file) {
            let why = Errno::from(error);
            self.fail(format_args!("error reading {}: {why}", quote::always(operand)));
            return opened;
        }
        opened.place = file.stream_position().unwrap_or(0);
        opened.identity = stat.map(|stat| (stat.dev, stat.ino));
        opened.file = Some(file);
        opened
    }

    /// Prints the part of a file that is wanted. No more is held than may be a part of it.
    fn show_part(&mut self, file: &mut File, is_file: bool) -> std::io::Result<()> {
        if self.part.from_start {
            return self.show_from_start(file);
        }
        // What the kernel makes up as it is read has no length beforehand.
        let length = if is_file { file.seek(SeekFrom::End(0))? } else { 0 };
        if length > 0 {
            let start = match self.part.in_lines {
                true => self.find_lines(file, length)?,
                false => length.saturating_sub(self.part.count),
            };
            file.seek(SeekFrom::Start(start))?;
            return self.copy_rest(file).map(drop);
        }
        let kept = self.read_last(file)?;
        self.out.put(kept);
        Ok(())
    }

    fn show_from_start(&mut self, file: &mut File) -> std::io::Result<()> {
        let mut left = self.part.count.saturating_sub(1);
        let mut block = vec![0; BLOCK];
        while left > 0 {
            let read = read(file, &mut block)?;
            if read == 0 {
                return Ok(());
            }
            let here = usize::try_from(left).unwrap_or(usize::MAX);
            let skipped = match self.part.in_lines {
                false => here.min(read),
                true => memchr::memchr_iter(self.end, &block[..read]).nth(here - 1).map_or(read, |at| at + 1),
            };
            left -= match self.part.in_lines {
                false => skipped as u64,
                true => memchr::memchr_iter(self.end, &block[..skipped]).count() as u64,
            };
            self.out.put(&block[skipped..read]);
        }
        self.copy_rest(file).map(drop)
    }

    /// Prints what is left of a file; answers how much that was.
    fn copy_rest(&mut self, file: &mut File) -> std::io::Result<u64> {
        let (mut block, mut total) = (vec![0; BLOCK], 0);
        loop {
            match read(file, &mut block)? {
                0 => return Ok(total),
                n => {
                    self.out.put(&block[..n]);
                    total += n as u64;
                }
            }
        }
    }

    /// Where the last lines of a file begin, looked for from its end.
    fn find_lines(&self, file: &mut File, length: u64) -> std::io::Result<u64> {
        let (mut end, mut wanted) = (length, self.part.count);
        let mut block = vec![0; BLOCK];
        if wanted == 0 {
            return Ok(length);
        }
        while end > 0 {
            let start = end.saturating_sub(BLOCK as u64);
            let part = &mut block[..(end - start) as usize];
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(part)?;
            // The newline that ends the last line begins none.
            let body = if end == length { &part[..part.len() - 1] } else { &*part };
            for at in memchr::memrchr_iter(self.end, body) {
                wanted -= 1;
                if wanted == 0 {
                    return Ok(start + at as u64 + 1);
                }
            }
            end = start;
        }
        Ok(0)
    }

    /// Reads to the end of what cannot be read backwards, letting go of what cannot be wanted any more.
    fn read_last(&self, file: &mut File) -> std::io::Result<Vec<u8>> {
        let (mut kept, mut block) = (Vec::new(), vec![0; BLOCK]);
        let mut limit = 16 * BLOCK;
        loop {
            let n = read(file, &mut block)?;
            if n > 0 {
                kept.extend_from_slice(&block[..n]);
            }
            if n == 0 || kept.len() > limit {
                kept.drain(..self.start_of_part(&kept));
                // What stays is looked through again only when there is twice as much.
                limit = (kept.len() * 2).max(16 * BLOCK);
            }
            if n == 0 {
                return Ok(kept);
            }
        }
    }

    /// Where the wanted end of a text begins.
    fn start_of_part(&self, content: &[u8]) -> usize {
        let wanted = usize::try_from(self.part.count).unwrap_or(usize::MAX);
        if !self.part.in_lines {
            return content.len().saturating_sub(wanted);
        }
        if wanted == 0 {
            return content.len();
        }
        let body = content.strip_suffix(&[self.end]).unwrap_or(content);
        memchr::memrchr_iter(self.end, body).nth(wanted - 1).map_or(0, |at| at + 1)
    }

    fn header(&mut self, at: usize, operand: &[u8]) {
        if !self.headers || self.last == Some(at) {
            return;
        }
        let name = if operand == b"-" { "standard input".into() } else { String::from_utf8_lossy(operand) };
        let separator = if self.last.is_some() { "\n" } else { "" };
        self.out.put(format!("{separator}==> {name} <==\n"));
        self.last = Some(at);
    }

    /// Looks again and again, until the process it waits for is gone.
    fn follow(&mut self, followed: &mut [(usize, Followed)]) {
        loop {
            // What was written before the process ended is still printed.
            let is_over = self.pid.is_some_and(|pid| abi::kill(Who::Child(pid), 0) == Err(Errno::SRCH));
            for (at, file) in followed.iter_mut() {
                self.reopen(file);
                self.print_new(*at, file);
            }
            self.out.flush();
            if is_over {
                return;
            }
            std::thread::sleep(self.pause);
        }
    }

    /// By name, a file that was replaced is opened anew.
    fn reopen(&mut self, followed: &mut Followed) {
        if self.follow != Follow::Name && followed.file.is_some() || followed.name == b"-" {
            return;
        }
        let name = quote::always(&followed.name);
        let stat = abi::stat(Dir::CWD, &followed.name, true);
        match stat {
            Ok(stat) if followed.identity == Some((stat.dev, stat.ino)) => {}
            Ok(stat) => {
                let message = match followed.identity {
                    Some(_) => format!("{name} has been replaced;  following new file"),
                    None => format!("{name} has appeared;  following new file"),
                };
                followed.file = File::open(files::path(&followed.name)).ok();
                (followed.identity, followed.place) = (Some((stat.dev, stat.ino)), 0);
                self.say(message);
            }
            Err(error) if followed.identity.take().is_some() => {
                followed.file = None;
                self.say(format!("{name} has become inaccessible: {error}"));
            }
            Err(_) => {}
        }
    }

    fn print_new(&mut self, at: usize, followed: &mut Followed) {
        let Some(file) = &mut followed.file else { return };
        let length = file.metadata().map_or(followed.place, |data| data.len());
        if length < followed.place && followed.name != b"-" {
            followed.place = 0;
            let message = format!("{}: file truncated", quote::if_needed(&followed.name));
            let _ = file.seek(SeekFrom::Start(0));
            self.out.flush();
            complain("tail", message);
        }
        let mut block = vec![0; BLOCK];
        let Some(file) = &mut followed.file else { return };
        while let Ok(n) = read(file, &mut block)
            && n > 0
        {
            followed.place += n as u64;
            self.header(at, &followed.name);
            self.out.put(&block[..n]);
        }
    }

    fn say(&mut self, message: String) {
        self.out.flush();
        complain("tail", message);
    }

    fn fail(&mut self, message: impl std::fmt::Display) {
        self.out.flush();
        complain("tail", message);
        self.code = 1;
    }
}
