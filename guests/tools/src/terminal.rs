//! `clear` and `tput`: what a terminal is told.

use toolkit::args::{answer_help, bytes_of};
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

pub fn tput(arguments: Arguments) -> i32 {
    let mut words = bytes_of(arguments);
    if let Some(code) = answer_help(
        "tput",
        "Usage: tput [-T TERM] NAME [NUMBER]...\nPrint what makes a terminal do NAME: bold, setaf 1, sgr0, cols and others.\n",
        &words,
    ) {
        return code;
    }
    let mut terminal = std::env::var("TERM").unwrap_or_default();
    while let Some(option) = words.first().and_then(|word| word.strip_prefix(b"-")).map(<[u8]>::to_vec) {
        words.remove(0);
        match option.strip_prefix(b"T") {
            Some(b"") if !words.is_empty() => {
                terminal = String::from_utf8_lossy(&words.remove(0)).into_owned()
            }
            Some(name) => terminal = String::from_utf8_lossy(name).into_owned(),
            None if option == b"V" => {
                Out::new("tput").put(format!("tput (Wardian) {}\n", env!("CARGO_PKG_VERSION")));
                return 0;
            }
            None => {}
        }
    }
    let Some(name) = words.first().map(|word| String::from_utf8_lossy(word).into_owned()) else {
        complain("usage", "tput [-V] [-S] [-T term] capname");
        return 2;
    };
    if terminal.is_empty() {
        complain("tput", "No value for $TERM and no -T specified");
        return 2;
    }
    let numbers: Vec<u32> = words[1..].iter().filter_map(|word| input::number(word)).collect();
    let mut out = Out::new("tput");
    match answer(&name, &numbers, &terminal) {
        Some(text) => out.put(text),
        None if ["am", "bce", "km"].contains(&name.as_str()) => return 0,
        None => {
            complain("tput", format_args!("unknown terminfo capability '{name}'"));
            return 4;
        }
    }
    0
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
