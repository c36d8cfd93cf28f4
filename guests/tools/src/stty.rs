//! `stty`: the mode of a terminal.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Fd, TerminalMode, open_flags};

const TOOL: Tool = Tool {
    name: "stty",
    short: "+agF:",
    long: &[("all", 'a'), ("save", 'g'), ("file=", 'F')],
    help: "\
Usage: stty [-F DEVICE | --file=DEVICE] [SETTING]...
  or:  stty [-F DEVICE | --file=DEVICE] [-a|--all]
  or:  stty [-F DEVICE | --file=DEVICE] [-g|--save]
Print or change terminal characteristics.

  -a, --all          print all current settings in human-readable form
  -g, --save         print all current settings in a stty-readable form
  -F, --file=DEVICE  open and use the specified DEVICE instead of stdin
      --help        display this help and exit
      --version     output version information and exit

SETTING is a flag such as echo or icanon, with - before it to switch it off;
a character such as intr or eof and what it is to be (^C, undef); min N,
time N, rows N, cols N; size, speed; sane, raw, -raw, cooked, cbreak, -cbreak;
or what -g printed.
",
    misuse: 1,
};

/// The four words of a terminal's mode.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Control,
    Input,
    Output,
    Local,
}

/// The flags, as `-a` lists them: word, bit, whether it is on in a sane terminal.
const FLAGS: &[(&str, Word, u32, Option<bool>)] = &[
    ("parenb", Word::Control, 0o400, None),
    ("parodd", Word::Control, 0o1000, None),
    ("cmspar", Word::Control, 0o10_000_000_000, None),
    ("cs8", Word::Control, 0o60, None),
    ("hupcl", Word::Control, 0o2000, None),
    ("cstopb", Word::Control, 0o100, None),
    ("cread", Word::Control, 0o200, Some(true)),
    ("clocal", Word::Control, 0o4000, None),
    ("crtscts", Word::Control, 0o20_000_000_000, None),
    ("ignbrk", Word::Input, 0o1, Some(false)),
    ("brkint", Word::Input, 0o2, Some(true)),
    ("ignpar", Word::Input, 0o4, None),
    ("parmrk", Word::Input, 0o10, None),
    ("inpck", Word::Input, 0o20, None),
    ("istrip", Word::Input, 0o40, None),
    ("inlcr", Word::Input, 0o100, Some(false)),
    ("igncr", Word::Input, 0o200, Some(false)),
    ("icrnl", Word::Input, 0o400, Some(true)),
    ("ixon", Word::Input, 0o2000, Some(true)),
    ("ixoff", Word::Input, 0o10000, Some(false)),
    ("iuclc", Word::Input, 0o1000, Some(false)),
    ("ixany", Word::Input, 0o4000, Some(false)),
    ("imaxbel", Word::Input, 0o20000, Some(true)),
    ("iutf8", Word::Input, 0o40000, Some(false)),
    ("opost", Word::Output, 0o1, Some(true)),
    ("olcuc", Word::Output, 0o2, Some(false)),
    ("ocrnl", Word::Output, 0o10, Some(false)),
    ("onlcr", Word::Output, 0o4, Some(true)),
    ("onocr", Word::Output, 0o20, Some(false)),
    ("onlret", Word::Output, 0o40, Some(false)),
    ("ofill", Word::Output, 0o100, Some(false)),
    ("ofdel", Word::Output, 0o200, Some(false)),
    ("isig", Word::Local, 0o1, Some(true)),
    ("icanon", Word::Local, 0o2, Some(true)),
    ("iexten", Word::Local, 0o100_000, Some(true)),
    ("echo", Word::Local, 0o10, Some(true)),
    ("echoe", Word::Local, 0o20, Some(true)),
    ("echok", Word::Local, 0o40, Some(true)),
    ("echonl", Word::Local, 0o100, Some(false)),
    ("noflsh", Word::Local, 0o200, Some(false)),
    ("xcase", Word::Local, 0o4, Some(false)),
    ("tostop", Word::Local, 0o400, Some(false)),
    ("echoprt", Word::Local, 0o2000, Some(false)),
    ("echoctl", Word::Local, 0o1000, Some(true)),
    ("echoke", Word::Local, 0o4000, Some(true)),
    ("flusho", Word::Local, 0o10000, None),
    ("extproc", Word::Local, 0o200_000, Some(false)),
];

/// The characters: their places, and what they are in a sane terminal.
const CHARACTERS: &[(&str, usize, u8)] = &[
    ("intr", 0, 3),
    ("quit", 1, 28),
    ("erase", 2, 127),
    ("kill", 3, 21),
    ("eof", 4, 4),
    ("eol", 11, 0),
    ("eol2", 16, 0),
    ("swtch", 7, 0),
    ("start", 8, 17),
    ("stop", 9, 19),
    ("susp", 10, 26),
    ("rprnt", 12, 18),
    ("werase", 14, 23),
    ("lnext", 15, 22),
    ("discard", 13, 15),
];

const TIME: usize = 5;
const MIN: usize = 6;

struct Terminal {
    fd: Fd,
    mode: TerminalMode,
    changed: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    // Options may stand among settings, and settings begin with a dash too.
    let (mut options, mut settings, mut rest) = (Vec::new(), Vec::new(), arguments.into_iter());
    while let Some(word) = rest.next() {
        match word.as_slice() {
            b"-F" | b"--file" => options.extend([word, rest.next().unwrap_or_default()]),
            b"-a" | b"-g" | b"-ag" | b"-ga" => options.push(word),
            other if other.starts_with(b"--") || other.starts_with(b"-F") => options.push(word),
            _ => settings.push(word),
        }
    }
    let parsed = TOOL.parse(options)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    if has('a') && has('g') {
        complain("stty", "the options for verbose and stty-readable output styles are\nmutually exclusive");
        return Err(1);
    }
    if (has('a') || has('g')) && !settings.is_empty() {
        complain("stty", "when specifying an output style, modes may not be set");
        return Err(1);
    }
    let file = parsed.options.iter().rev().find(|(letter, _)| *letter == 'F');
    let file = file.and_then(|(_, file)| file.clone());
    let (name, fd) = match &file {
        None => ("'standard input'".to_owned(), 0),
        Some(path) => {
            let opened = abi::open(Dir::CWD, path, open_flags::RDONLY | open_flags::NONBLOCK, 0);
            (quote::if_needed(path), opened.map_err(|error| fail(&quote::if_needed(path), error))?)
        }
    };
    let mode = abi::tcgetattr(fd).map_err(|error| fail(&name, error))?;
    let mut terminal = Terminal { fd, mode, changed: false };
    let mut out = Out::new("stty");
    if has('g') {
        out.put(terminal.saved());
    } else if settings.is_empty() {
        out.put(terminal.shown(has('a')));
    }
    let mut rest = settings.into_iter();
    while let Some(setting) = rest.next() {
        terminal.set(&String::from_utf8_lossy(&setting), &mut rest, &mut out)?;
    }
    if terminal.changed {
        abi::tcsetattr(terminal.fd, &terminal.mode, false).map_err(|error| fail(&name, error))?;
    }
    Ok(0)
}

fn fail(name: &str, error: abi::Errno) -> i32 {
    complain("stty", format_args!("{name}: {error}"));
    1
}

/// A character as it is shown: `^C`, `<undef>`, `M-x`.
fn visible(byte: u8) -> String {
    match byte {
        0 => "<undef>".to_owned(),
        127 => "^?".to_owned(),
        1..=31 => format!("^{}", char::from(byte + 64)),
        128.. => format!("M-{}", visible(byte - 128).replace("<undef>", "^@")),
        _ => char::from(byte).to_string(),
    }
}

impl Terminal {
    fn word(&mut self, word: Word) -> &mut u32 {
        match word {
            Word::Control => &mut self.mode.control,
            Word::Input => &mut self.mode.input,
            Word::Output => &mut self.mode.output,
            Word::Local => &mut self.mode.local,
        }
    }

    fn is_on(&self, word: Word, bits: u32) -> bool {
        let value = match word {
            Word::Control => self.mode.control,
            Word::Input => self.mode.input,
            Word::Output => self.mode.output,
            Word::Local => self.mode.local,
        };
        value & bits == bits
    }

    fn saved(&self) -> String {
        let mode = &self.mode;
        let mut parts: Vec<String> = [mode.input, mode.output, mode.control, mode.local]
            .iter()
            .map(|word| format!("{word:x}"))
            .collect();
        parts.extend(mode.chars.iter().map(|char| format!("{char:x}")));
        parts.join(":") + "\n"
    }

    /// What `stty` prints: with `all` everything, else what differs from a sane terminal.
    fn shown(&self, all: bool) -> String {
        let mut first = format!("speed {} baud;", self.speed());
        if all && let Ok((rows, columns)) = abi::winsize(self.fd) {
            first += &format!(" rows {rows}; columns {columns};");
        }
        let mut words = vec![format!("{first} line = 0;\n")];
        let mut group = Vec::new();
        for (name, at, sane) in CHARACTERS {
            if all || self.mode.chars[*at] != *sane {
                group.push(format!("{name} = {};", visible(self.mode.chars[*at])));
            }
        }
        if all || !self.is_on(Word::Local, 2) {
            group.push(format!("min = {}; time = {};", self.mode.chars[MIN], self.mode.chars[TIME]));
        }
        words.push(wrapped(&std::mem::take(&mut group)));
        for word in [Word::Control, Word::Input, Word::Output, Word::Local] {
            for (name, _, bits, sane) in FLAGS.iter().filter(|(_, of, ..)| *of == word) {
                let on = self.is_on(word, *bits);
                if all || sane.is_some_and(|sane| sane != on) {
                    group.push(if on { (*name).to_owned() } else { format!("-{name}") });
                }
            }
            words.push(wrapped(&std::mem::take(&mut group)));
        }
        words.concat()
    }

    fn speed(&self) -> u32 {
        const SPEEDS: [u32; 16] =
            [0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400];
        const MORE: [u32; 4] = [57600, 115_200, 230_400, 460_800];
        let code = self.mode.control & 0o10017;
        match code & 0o10000 {
            0 => SPEEDS[code as usize & 15],
            _ => MORE.get((code as usize & 15).wrapping_sub(1)).copied().unwrap_or(38400),
        }
    }

    fn set(
        &mut self,
        setting: &str,
        rest: &mut impl Iterator<Item = Vec<u8>>,
        out: &mut Out,
    ) -> Result<(), i32> {
        let (name, on) = setting.strip_prefix('-').map_or((setting, true), |name| (name, false));
        if let Some((_, word, bits, _)) = FLAGS.iter().find(|(known, ..)| *known == name) {
            let place = self.word(*word);
            *place = if on { *place | bits } else { *place & !bits };
            self.changed = true;
            return Ok(());
        }
        if let Some((_, at, _)) = CHARACTERS.iter().find(|(known, ..)| *known == setting) {
            self.mode.chars[*at] = character(setting, rest.next())?;
            self.changed = true;
            return Ok(());
        }
        let mut number = || -> Result<u16, i32> {
            let text =
                rest.next().ok_or_else(|| TOOL.wrong(format_args!("missing argument to '{setting}'")))?;
            input::number(&text)
                .ok_or_else(|| TOOL.wrong(format_args!("invalid integer argument: {}", quote::word(&text))))
        };
        self.changed = true;
        match setting {
            "min" => self.mode.chars[MIN] = number()?.min(255) as u8,
            "time" => self.mode.chars[TIME] = number()?.min(255) as u8,
            "rows" | "cols" | "columns" => {
                let value = number()?;
                let (rows, columns) = abi::winsize(self.fd).unwrap_or_default();
                let (rows, columns) = if setting == "rows" { (value, columns) } else { (rows, value) };
                abi::set_winsize(self.fd, rows, columns).map_err(|error| fail("'standard input'", error))?;
            }
            "size" => {
                let (rows, columns) =
                    abi::winsize(self.fd).map_err(|error| fail("'standard input'", error))?;
                out.put(format!("{rows} {columns}\n"));
            }
            "speed" => out.put(format!("{}\n", self.speed())),
            "sane" => self.make_sane(),
            "raw" | "-cooked" => self.make_raw(),
            "cooked" | "-raw" => {
                self.mode.input |= 0o2 | 0o4 | 0o40 | 0o400 | 0o2000;
                self.mode.output |= 1;
                self.mode.local |= 0o1 | 0o2;
            }
            "cbreak" | "-icanon" => self.mode.local &= !0o2,
            "-cbreak" => self.mode.local |= 0o2,
            "crterase" | "-crterase" | "crtkill" | "ek" => {
                return Err(TOOL.wrong(format_args!("setting '{setting}' is not supported")));
            }
            "nl" => {
                self.mode.input &= !0o400;
                self.mode.output &= !0o4;
            }
            "-nl" => {
                self.mode.input = self.mode.input & !0o300 | 0o400;
                self.mode.output = self.mode.output & !0o50 | 0o4;
            }
            saved if saved.contains(':') => self.restore(saved)?,
            _ => return Err(TOOL.wrong(format_args!("invalid argument {}", quote::word(setting.as_bytes())))),
        }
        Ok(())
    }

    fn make_sane(&mut self) {
        for (_, word, bits, sane) in FLAGS {
            match sane {
                Some(true) => *self.word(*word) |= bits,
                Some(false) => *self.word(*word) &= !bits,
                None => {}
            }
        }
        CHARACTERS.iter().for_each(|(_, at, sane)| self.mode.chars[*at] = *sane);
    }

    fn make_raw(&mut self) {
        // All of the input's flags but IUTF8 and IMAXBEL's neighbours that mean nothing here.
        self.mode.input &= 0o40000;
        self.mode.output &= !1;
        self.mode.local &= !(0o1 | 0o2 | 0o4);
        (self.mode.chars[MIN], self.mode.chars[TIME]) = (1, 0);
    }

    /// Takes over what `-g` printed.
    fn restore(&mut self, text: &str) -> Result<(), i32> {
        let numbers: Option<Vec<u32>> =
            text.split(':').map(|part| u32::from_str_radix(part, 16).ok()).collect();
        let count = 4 + self.mode.chars.len();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() == count) else {
            return Err(TOOL.wrong(format_args!("invalid argument {}", quote::word(text.as_bytes()))));
        };
        self.mode.input = numbers[0];
        self.mode.output = numbers[1];
        self.mode.control = numbers[2];
        self.mode.local = numbers[3];
        self.mode.chars.iter_mut().zip(&numbers[4..]).for_each(|(to, from)| *to = *from as u8);
        Ok(())
    }
}

/// A character by the way it is written: `^C`, `undef`, `0x1b`, or itself.
fn character(setting: &str, text: Option<Vec<u8>>) -> Result<u8, i32> {
    let Some(text) = text else {
        return Err(TOOL.wrong(format_args!("missing argument to '{setting}'")));
    };
    match text.as_slice() {
        b"^-" | b"undef" => Ok(0),
        b"^?" => Ok(127),
        [b'^', letter] => Ok(letter & 0x1f),
        [one] if !one.is_ascii_digit() => Ok(*one),
        other => {
            let text = String::from_utf8_lossy(other);
            let number = match text.strip_prefix("0x") {
                Some(hexadecimal) => u8::from_str_radix(hexadecimal, 16).ok(),
                None if text.starts_with('0') && text.len() > 1 => u8::from_str_radix(&text, 8).ok(),
                None => text.parse().ok(),
            };
            number.ok_or_else(|| TOOL.wrong(format_args!("invalid integer argument: {}", quote::word(other))))
        }
    }
}

/// Words in lines of at most 80 columns.
fn wrapped(words: &[String]) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words {
        if column > 0 && column + 1 + word.len() > 80 {
            text.push('\n');
            column = 0;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += word.len();
    }
    if text.is_empty() { text } else { text + "\n" }
}
