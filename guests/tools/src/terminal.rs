//! `clear` and `tput`: what a terminal is told.

use toolkit::args::{Refusal, Tool, answer_help, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input};
use wardian_abi as abi;

pub fn clear(arguments: Arguments) -> i32 {
    let help = "Usage: clear\nClear the terminal.\n";
    if let Some(code) = answer_help("clear", help, &bytes_of(arguments)) {
        return code;
    }
    if std::env::var_os("TERM").is_none_or(|name| name.is_empty()) {
        let _ = abi::write_all(2, b"TERM environment variable not set.\n");
        return 1;
    }
    Out::new("clear").put("\x1b[H\x1b[2J\x1b[3J");
    0
}

/// The capabilities scripts ask for, as every terminal of today has them; `%d` is the argument.
const CAPABILITIES: &[(&str, &str)] = &[
    ("bel", "\x07"),
    ("blink", "\x1b[5m"),
    ("bold", "\x1b[1m"),
    ("civis", "\x1b[?25l"),
    ("clear", "\x1b[H\x1b[2J\x1b[3J"),
    ("cnorm", "\x1b[?25h"),
    ("cr", "\r"),
    ("cub1", "\x08"),
    ("cud1", "\n"),
    ("cuf1", "\x1b[C"),
    ("cuu1", "\x1b[A"),
    ("dim", "\x1b[2m"),
    ("ed", "\x1b[J"),
    ("el", "\x1b[K"),
    ("el1", "\x1b[1K"),
    ("home", "\x1b[H"),
    ("op", "\x1b[39;49m"),
    ("rc", "\x1b8"),
    ("rev", "\x1b[7m"),
    ("ritm", "\x1b[23m"),
    ("rmcup", "\x1b[?1049l"),
    ("rmso", "\x1b[27m"),
    ("rmul", "\x1b[24m"),
    ("sc", "\x1b7"),
    ("sgr0", "\x1b(B\x1b[m"),
    ("sitm", "\x1b[3m"),
    ("smcup", "\x1b[?1049h"),
    ("smso", "\x1b[7m"),
    ("smul", "\x1b[4m"),
];

const TPUT: Tool = Tool { name: "tput", short: "ST:Vx", long: &[], help: USAGE, misuse: 2 };

const USAGE: &str = "\
Usage: tput [options] [command]

Options:
  -S <<       read commands from standard input
  -T TERM     use this instead of $TERM
  -V          print curses-version
  -x          do not try to clear scrollback

Commands:
  clear       clear the screen
  init        initialize the terminal
  reset       reinitialize the terminal
  capname     unlike clear/init/reset, print value for capability \"capname\"
";

pub fn tput(arguments: Arguments) -> i32 {
    let parsed = match TPUT.try_parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(Refusal::Wrong(message)) => return misused(Some(&message)),
        Err(refusal) => return TPUT.answer(refusal),
    };
    let mut terminal = std::env::var("TERM").unwrap_or_default();
    let (mut from_input, mut keep_scrollback) = (false, false);
    for (letter, argument) in parsed.options {
        match letter {
            'S' => from_input = true,
            'T' => terminal = String::from_utf8_lossy(&argument.unwrap_or_default()).into_owned(),
            'V' => {
                Out::new("tput").put(format!("tput (Wardian) {}\n", env!("CARGO_PKG_VERSION")));
                return 0;
            }
            _ => keep_scrollback = true,
        }
    }
    let mut words: Vec<String> =
        parsed.operands.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    if words.is_empty() && !from_input {
        return misused(None);
    }
    if terminal.is_empty() {
        complain("tput", "No value for $TERM and no -T specified");
        return 2;
    }
    if from_input {
        let Some(text) = input::read("tput", b"-") else { return 1 };
        words = String::from_utf8_lossy(&text).split_whitespace().map(str::to_owned).collect();
    }
    print_all(words.into_iter(), &terminal, keep_scrollback)
}

/// Says what is wrong, if something is, and how the tool is called.
fn misused(wrong: Option<&str>) -> i32 {
    if let Some(message) = wrong {
        complain("tput", message);
    }
    let _ = abi::write_all(2, USAGE.as_bytes());
    2
}

/// Prints one capability after the other, each with the numbers that follow it, up to the first that does not exist.
fn print_all(words: impl Iterator<Item = String>, terminal: &str, keep_scrollback: bool) -> i32 {
    let (mut words, mut out) = (words.peekable(), Out::new("tput"));
    while let Some(name) = words.next() {
        let mut numbers = Vec::new();
        while numbers.len() < parameters(&name)
            && let Some(number) = words.peek().and_then(|word| input::number(word.as_bytes()))
        {
            numbers.push(number);
            words.next();
        }
        match answer(&name, &numbers, terminal) {
            Some(_) if name == "clear" && keep_scrollback => out.put("\x1b[H\x1b[2J"),
            Some(text) => out.put(text),
            None if ["am", "bce", "km"].contains(&name.as_str()) => {}
            None => {
                // What was printed before comes after it: ncurses' tput writes all at its end.
                complain("tput", format_args!("unknown terminfo capability '{name}'"));
                return 4;
            }
        }
    }
    0
}

/// How many numbers a capability takes.
fn parameters(name: &str) -> usize {
    match name {
        "cup" => 2,
        "setaf" | "setab" | "cuu" | "cud" | "cuf" | "cub" | "hpa" => 1,
        _ => 0,
    }
}

fn answer(name: &str, numbers: &[u32], terminal: &str) -> Option<String> {
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    let window = || [1, 2, 0].into_iter().find_map(|fd| abi::winsize(fd).ok());
    let variable = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u16>().ok());
    if terminal == "dumb" && !["cols", "lines", "colors", "bel", "cr", "cud1"].contains(&name) {
        return if name == "longname" { Some("80-column dumb tty".to_owned()) } else { None };
    }
    Some(match name {
        "cols" => variable("COLUMNS").or_else(|| Some(window()?.1)).unwrap_or(80).to_string() + "\n",
        "lines" => variable("LINES").or_else(|| Some(window()?.0)).unwrap_or(24).to_string() + "\n",
        "colors" if terminal == "dumb" => "-1\n".to_owned(),
        "colors" if terminal.contains("256") => "256\n".to_owned(),
        "colors" => "8\n".to_owned(),
        "longname" => terminal.to_owned(),
        "setaf" => color(3, number(0)),
        "setab" => color(4, number(0)),
        "cup" => format!("\x1b[{};{}H", number(0) + 1, number(1) + 1),
        "cuu" => format!("\x1b[{}A", number(0)),
        "cud" => format!("\x1b[{}B", number(0)),
        "cuf" => format!("\x1b[{}C", number(0)),
        "cub" => format!("\x1b[{}D", number(0)),
        "hpa" => format!("\x1b[{}G", number(0) + 1),
        "init" | "reset" => "\x1b[!p\x1b[?3;4l\x1b[4l\x1b>".to_owned(),
        name => CAPABILITIES.iter().find(|(known, _)| *known == name)?.1.to_owned(),
    })
}

/// The sequence for a color: 3 for letters, 4 for what is behind them.
fn color(layer: u32, number: u32) -> String {
    match number {
        0..8 => format!("\x1b[{layer}{number}m"),
        8..16 => format!("\x1b[{}{}m", layer + 6, number - 8),
        _ => format!("\x1b[{layer}8;5;{number}m"),
    }
}
