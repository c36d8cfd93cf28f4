//! `sort`: puts lines in order.
//!
//! `key.rs` cuts keys out of lines, `order.rs` compares them, `lines.rs` holds the lines and sorts them; this file reads
//! the options and does what they ask for.

mod debug;
mod key;
mod lines;
mod order;
mod spill;

use key::{How, Key, Letters};
use lines::{Lines, Rules};
use spill::{Failure, Room, Sink, Store};
use toolkit::args::{Tool, bytes_of};
use toolkit::records::Records;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, open_flags};

const TOOL: Tool = Tool {
    name: "sort",
    short: "bcCdfghik:mMno:rRsS:t:T:uVy::z",
    long: &[
        ("ignore-leading-blanks", 'b'),
        ("check[=", '1'),
        ("compress-program=", '2'),
        ("debug", '3'),
        ("dictionary-order", 'd'),
        ("ignore-case", 'f'),
        ("files0-from=", '4'),
        ("general-numeric-sort", 'g'),
        ("human-numeric-sort", 'h'),
        ("ignore-nonprinting", 'i'),
        ("key=", 'k'),
        ("merge", 'm'),
        ("month-sort", 'M'),
        ("numeric-sort", 'n'),
        ("version-sort", 'V'),
        ("random-sort", 'R'),
        ("random-source=", '5'),
        ("sort=", '6'),
        ("output=", 'o'),
        ("reverse", 'r'),
        ("stable", 's'),
        ("batch-size=", '7'),
        ("buffer-size=", 'S'),
        ("field-separator=", 't'),
        ("temporary-directory=", 'T'),
        ("unique", 'u'),
        ("zero-terminated", 'z'),
        ("parallel=", '8'),
    ],
    help: "\
Usage: sort [OPTION]... [FILE]...
  or:  sort [OPTION]... --files0-from=F
Write the lines of all FILEs, sorted, to standard output.
With no FILE, or when FILE is -, read standard input.

How lines are compared:
  -b, --ignore-leading-blanks  ignore leading blanks
  -d, --dictionary-order       only blanks, letters and digits count
  -f, --ignore-case            small letters count as capitals
  -g, --general-numeric-sort   by numbers such as 1.5e3
  -h, --human-numeric-sort     by numbers such as 2K and 1G
  -i, --ignore-nonprinting     only printable characters count
  -M, --month-sort             by months: unknown < 'JAN' < ... < 'DEC'
  -n, --numeric-sort           by numbers
  -R, --random-sort            at random, but equal keys together
      --random-source=FILE     take random bytes from FILE
  -r, --reverse                the other way round
      --sort=WORD              general-numeric -g, human-numeric -h, month -M,
                                 numeric -n, random -R, version -V
  -V, --version-sort           by versions inside the text

Other options:
      --batch-size=NMERGE      merge at most NMERGE temporary files at once
  -c, --check, --check=diagnose-first  check whether the input is sorted
  -C, --check=quiet, --check=silent    the same, without a message
      --compress-program=PROG  accepted, and ignored
      --debug                  underline the parts of lines that are compared
      --files0-from=F          read the files whose names, each with a NUL after
                                 it, are in F
  -k, --key=KEYDEF             by a key: F[.C][OPTS][,F[.C][OPTS]], from one
                                 field and character to another, counted from 1
  -m, --merge                  merge files that are sorted already
  -o, --output=FILE            write to FILE
  -s, --stable                 keep the order of lines whose keys are equal
  -S, --buffer-size=SIZE       use SIZE for lines in memory; the rest goes to
                                 temporary files
  -t, --field-separator=SEP    SEP stands between fields, instead of blanks
  -T, --temporary-directory=DIR  put temporary files into DIR, not $TMPDIR or /tmp
      --parallel=N             accepted, and ignored
  -u, --unique                 only the first of lines that are equal
  -z, --zero-terminated        lines end in NUL
      --help                   display this help and exit
      --version                output version information and exit
",
    misuse: 2,
};

#[derive(Clone, Copy, PartialEq)]
enum Check {
    Loud,
    Quiet,
}

#[derive(Default)]
struct Options {
    letters: Letters,
    keys: Vec<Key>,
    separator: Option<u8>,
    check: Option<Check>,
    merge: bool,
    stable: bool,
    unique: bool,
    zero: bool,
    debug: bool,
    output: Option<Vec<u8>>,
    names: Option<Vec<u8>>,
    random: Option<Vec<u8>>,
    memory: Option<usize>,
    batch: Option<usize>,
    directory: Option<Vec<u8>>,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(modern(arguments))?;
    let options = Options::new(parsed.options)?;
    let operands = options.inputs(parsed.operands)?;
    let rules = options.rules()?;
    if options.debug {
        debug::warn(&options.keys, &rules);
    }
    if let Some(check) = options.check {
        return check_order(&operands[0], check, &rules);
    }
    if !(options.debug || options.merge && options.output.is_some()) {
        return sort(&operands, &options, &rules);
    }
    // What is merged may be written to one of the files it comes from: all of it is read first.
    let mut lines = Lines::default();
    for operand in &operands {
        lines.add(read(operand)?, rules.end);
    }
    let order = if options.merge { lines.merged(&rules) } else { lines.sorted(&rules) };
    if options.debug {
        let text = debug::show(&order, &options.keys, &rules);
        return write(&options.output, std::iter::once(text.as_slice()), None);
    }
    write(&options.output, order.into_iter(), Some(rules.end))
}

/// Sorts or merges the files, through temporary ones where memory does not hold them.
fn sort(operands: &[Vec<u8>], options: &Options, rules: &Rules<'_>) -> Result<i32, i32> {
    let fail = |operand: &[u8], failure: Failure| match failure {
        Failure::Input(error) => refuse(format_args!("read failed: {}: {error}", quote::if_needed(operand))),
        Failure::Output(error) => write_failed(&options.output, error),
        Failure::Temporary(directory, error) => {
            refuse(format_args!("cannot create temporary file in {}: {error}", quote::always(&directory)))
        }
    };
    let out = || Ok(Sink::new(open_output(&options.output)?, Some(rules.end)));
    if options.merge {
        let inputs = operands.iter().map(|operand| open(operand)).collect::<Result<Vec<_>, i32>>()?;
        let mut sink = out()?;
        let merged = spill::merge(&inputs, rules, &mut sink);
        return merged
            .and_then(|()| sink.flush().map_err(Failure::Output))
            .map(|()| 0)
            .map_err(|failure| fail(b"-", failure));
    }
    let mut store = Store::new(rules, options.room());
    for operand in operands {
        let fd = open(operand)?;
        let read = store.read(fd);
        if fd > 2 {
            let _ = abi::close(fd);
        }
        read.map_err(|failure| fail(operand, failure))?;
    }
    store.finish(out)?.map(|()| 0).map_err(|failure| fail(b"-", failure))
}

/// Keys of old, `+1 -2`, in today's words: they count fields from 0, and the second names the first field left out.
fn modern(arguments: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut modern: Vec<Vec<u8>> = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter().peekable();
    while let Some(word) = rest.next() {
        let is_old = word.len() > 1 && word[0] == b'+' && word[1].is_ascii_digit();
        if word == b"--" || !is_old {
            let ends = word == b"--";
            modern.push(word);
            if ends {
                modern.extend(rest);
                break;
            }
            continue;
        }
        let is_end = |next: &Vec<u8>| next.len() > 1 && next[0] == b'-' && next[1].is_ascii_digit();
        let end = rest.next_if(is_end).map(|end| old_place(&end[1..], true));
        let mut key = b"-k".to_vec();
        key.extend(old_place(&word[1..], false));
        if let Some(end) = end {
            key.push(b',');
            key.extend(end);
        }
        modern.push(key);
    }
    modern
}

fn old_place(text: &[u8], is_end: bool) -> Vec<u8> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let field: usize = toolkit::input::number(&text[..digits]).unwrap_or(usize::MAX - 1);
    let (char, letters) = match &text[digits..] {
        [b'.', rest @ ..] => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (toolkit::input::number(&rest[..digits]).unwrap_or(0), &rest[digits..])
        }
        rest => (0, rest),
    };
    let place = match (is_end, char) {
        (true, 0) => format!("{field}"),
        (true, char) => format!("{}.{char}", field + 1),
        (false, char) => format!("{}.{}", field + 1, char + 1),
    };
    [place.as_bytes(), letters].concat()
}

fn refuse(message: impl std::fmt::Display) -> i32 {
    complain("sort", message);
    2
}

impl Options {
    fn new(given: Vec<(char, Option<Vec<u8>>)>) -> Result<Options, i32> {
        let mut options = Options::default();
        for (letter, argument) in given {
            let text = argument.clone().unwrap_or_default();
            match letter {
                'k' => options.keys.push(Key::parse(&text).map_err(refuse)?),
                't' => options.set_separator(&text)?,
                'o' => {
                    if options.output.as_ref().is_some_and(|output| *output != text) {
                        return Err(refuse("multiple output files specified"));
                    }
                    options.output = argument;
                }
                'c' => options.set_check(Check::Loud)?,
                'C' => options.set_check(Check::Quiet)?,
                '1' => options.set_check(check_word(argument.as_deref())?)?,
                'm' => options.merge = true,
                's' => options.stable = true,
                'u' => options.unique = true,
                'z' => options.zero = true,
                '3' => options.debug = true,
                '4' => options.names = argument,
                '5' => options.random = argument,
                '6' => options.letters.0.push(order_word(&text)?),
                '7' => options.batch = Some(check_size(letter, &text)?),
                'S' => options.memory = memory_size(&text, check_size(letter, &text)?),
                '8' => drop(check_size(letter, &text)?),
                'T' => options.directory = argument,
                '2' | 'y' => {}
                letter => options.letters.0.push(letter as u8),
            }
        }
        let all = std::iter::once(&options.letters).chain(options.keys.iter().map(|key| &key.letters));
        for letters in all {
            if let Some(conflict) = letters.conflict() {
                return Err(refuse(conflict));
            }
        }
        if options.check.is_some() && options.output.is_some() {
            let letter = if options.check == Some(Check::Loud) { 'c' } else { 'C' };
            return Err(refuse(format_args!("options '-{letter}o' are incompatible")));
        }
        for key in &mut options.keys {
            key.inherit(&options.letters);
        }
        Ok(options)
    }

    /// Where lines go that memory does not hold.
    fn room(&self) -> Room {
        let usual = Room::default();
        Room {
            directory: self.directory.clone().unwrap_or(usual.directory),
            memory: self.memory.unwrap_or(usual.memory),
            batch: self.batch.unwrap_or(usual.batch),
        }
    }

    fn set_separator(&mut self, text: &[u8]) -> Result<(), i32> {
        let separator = match text {
            [] => return Err(refuse("empty tab")),
            [byte] => *byte,
            b"\\0" => 0,
            _ => return Err(refuse(format_args!("multi-character tab {}", quote::word(text)))),
        };
        if self.separator.replace(separator).is_some_and(|old| old != separator) {
            return Err(refuse("incompatible tabs"));
        }
        Ok(())
    }

    fn set_check(&mut self, check: Check) -> Result<(), i32> {
        if self.check.replace(check).is_some_and(|old| old != check) {
            return Err(refuse("options '-cC' are incompatible"));
        }
        Ok(())
    }

    /// The files to be read.
    fn inputs(&self, operands: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, i32> {
        let Some(list) = &self.names else {
            if let (Some(check), Some(extra)) = (self.check, operands.get(1)) {
                let letter = if check == Check::Loud { 'c' } else { 'C' };
                let extra = quote::always(extra);
                return Err(refuse(format_args!("extra operand {extra} not allowed with -{letter}")));
            }
            return Ok(toolkit::input::or_stdin(operands));
        };
        if let Some(extra) = operands.first() {
            let extra = quote::always(extra);
            let message =
                format!("extra operand {extra}\nfile operands cannot be combined with --files0-from");
            return Err(TOOL.wrong(message));
        }
        let names = read(list)?;
        let names: Vec<Vec<u8>> =
            names.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
        if names.is_empty() {
            return Err(refuse(format_args!("no input from {}", quote::always(list))));
        }
        Ok(names)
    }

    fn rules(&self) -> Result<Rules<'_>, i32> {
        let how = self.letters.how();
        let whole = Key::parse(b"1").ok().map(|mut key| {
            key.inherit(&self.letters);
            key
        });
        // What is said for the whole line is a key from its start.
        let needs_key = self.keys.is_empty() && self.letters.0.iter().any(|letter| *letter != b'r');
        let keys = match whole {
            Some(whole) if needs_key => std::borrow::Cow::Owned(vec![whole]),
            _ => std::borrow::Cow::Borrowed(self.keys.as_slice()),
        };
        let random = keys.iter().any(|key| key.how.order == order::Order::Random);
        Ok(Rules {
            keys,
            separator: self.separator,
            last: How { reverse: how.reverse, ..How::PLAIN },
            stable: self.stable,
            unique: self.unique,
            salt: if random { self.salt()? } else { 0 },
            end: if self.zero { 0 } else { b'\n' },
        })
    }

    /// Eight random bytes, from where they are to come from.
    fn salt(&self) -> Result<u64, i32> {
        use std::io::Read;
        let source = self.random.as_deref().unwrap_or(b"/dev/urandom");
        let mut bytes = [0; 8];
        let read = std::fs::File::open(files::path(source)).and_then(|mut file| file.read_exact(&mut bytes));
        match read {
            Ok(()) => Ok(u64::from_le_bytes(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(refuse(format_args!("{}: end of file", quote::if_needed(source))))
            }
            Err(error) => {
                Err(refuse(format_args!("open failed: {}: {}", quote::if_needed(source), Errno::from(error))))
            }
        }
    }
}

fn check_word(word: Option<&[u8]>) -> Result<Check, i32> {
    const WORDS: [(&str, Check); 3] =
        [("quiet", Check::Quiet), ("silent", Check::Quiet), ("diagnose-first", Check::Loud)];
    word.map_or(Ok(Check::Loud), |word| TOOL.choose("--check", word, &WORDS))
}

fn order_word(word: &[u8]) -> Result<u8, i32> {
    const WORDS: [(&str, u8); 6] = [
        ("general-numeric", b'g'),
        ("human-numeric", b'h'),
        ("month", b'M'),
        ("numeric", b'n'),
        ("random", b'R'),
        ("version", b'V'),
    ];
    TOOL.choose("--sort", word, &WORDS)
}

/// The bytes that `-S` names. A share of memory is left to us.
fn memory_size(text: &[u8], number: usize) -> Option<usize> {
    let shift = match text.last() {
        Some(b'%') => return None,
        Some(b'b') => 0,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(last) if last.is_ascii_digit() || matches!(last, b'k' | b'K') => 10,
        _ => 40,
    };
    let bytes = u64::try_from(number).ok()?.saturating_mul(1 << shift);
    // Less than a block could not even be read.
    Some(usize::try_from(bytes).unwrap_or(usize::MAX).max(128 * 1024))
}

/// Checks a size or count; answers its number without the unit.
fn check_size(letter: char, text: &[u8]) -> Result<usize, i32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let option = match letter {
        '7' => "--batch-size",
        '8' => "--parallel",
        _ => "-S",
    };
    let unit = &text[digits..];
    let is_unit = letter == 'S'
        && matches!(unit, [] | [b'%' | b'b' | b'k' | b'K' | b'M' | b'G' | b'T' | b'P' | b'E'..=b'Z']);
    let number: u64 = toolkit::input::number(&text[..digits]).unwrap_or(u64::from(digits > 0));
    let shown = quote::word(text);
    match () {
        () if digits == 0 || !(unit.is_empty() || is_unit) => {
            Err(refuse(format_args!("invalid {option} argument {shown}")))
        }
        () if letter == '7' && number < 2 => {
            complain("sort", format_args!("invalid --batch-size argument {shown}"));
            Err(refuse("minimum --batch-size argument is '2'"))
        }
        () if letter == '8' && number == 0 => Err(refuse("number in parallel must be nonzero")),
        () => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
    }
}

/// Opens a file; `-` is standard input.
fn open(operand: &[u8]) -> Result<abi::Fd, i32> {
    if operand == b"-" {
        return Ok(0);
    }
    abi::open(Dir::CWD, operand, open_flags::RDONLY | open_flags::CLOEXEC, 0)
        .map_err(|error| refuse(format_args!("cannot read: {}: {error}", quote::if_needed(operand))))
}

/// Everything in a file; `-` is standard input.
fn read(operand: &[u8]) -> Result<Vec<u8>, i32> {
    let fd = open(operand)?;
    let content = files::read_fd(fd);
    if fd > 2 {
        let _ = abi::close(fd);
    }
    content.map_err(|error| refuse(format_args!("read failed: {}: {error}", quote::if_needed(operand))))
}

/// Whether a file is in order; names the first line that is not.
fn check_order(operand: &[u8], check: Check, rules: &Rules<'_>) -> Result<i32, i32> {
    let fd = open(operand)?;
    let mut records = Records::new(fd, rules.end);
    let found = lines::first_disorder(&mut records, rules);
    if fd > 2 {
        let _ = abi::close(fd);
    }
    let found =
        found.map_err(|error| refuse(format_args!("read failed: {}: {error}", quote::if_needed(operand))))?;
    let Some((number, line)) = found else { return Ok(0) };
    if check == Check::Loud {
        let mut message = format!("sort: {}:{number}: disorder: ", quote::if_needed(operand)).into_bytes();
        message.extend_from_slice(&line);
        message.push(b'\n');
        let _ = abi::write_all(2, &message);
    }
    Ok(1)
}

/// Writes the texts, each with its end, to a file or standard output.
fn write<'a>(
    output: &Option<Vec<u8>>,
    texts: impl Iterator<Item = &'a [u8]>,
    end: Option<u8>,
) -> Result<i32, i32> {
    let mut sink = Sink::new(open_output(output)?, end);
    let written = texts.into_iter().try_for_each(|text| sink.put(text));
    written.and_then(|()| sink.flush()).map(|()| 0).map_err(|error| write_failed(output, error))
}

/// Opens the file that is written; without a name it is standard output.
fn open_output(output: &Option<Vec<u8>>) -> Result<abi::Fd, i32> {
    let Some(path) = output else { return Ok(1) };
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC | open_flags::CLOEXEC;
    abi::open(Dir::CWD, path, flags, 0o666)
        .map_err(|error| refuse(format_args!("open failed: {}: {error}", quote::if_needed(path))))
}

fn write_failed(output: &Option<Vec<u8>>, error: Errno) -> i32 {
    let name = output.as_deref().map_or("'standard output'".to_owned(), quote::if_needed);
    refuse(format_args!("fflush failed: {name}: {error}"));
    refuse("write error")
}
