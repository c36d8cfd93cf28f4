//! `.mode`: how rows look.

use super::arguments::{boolean, is_option, number};
use super::{Outcome, Words, failed};
use crate::render::{Mode, Style, Wrapping};
use crate::shell::Shell;

/// Every mode by the name it is asked for with; `qbox` is a box with quotes.
const MODES: &[(&str, Mode)] = &[
    ("lines", Mode::Line),
    ("columns", Mode::Column),
    ("list", Mode::List),
    ("html", Mode::Html),
    ("tcl", Mode::Tcl),
    ("csv", Mode::Csv),
    ("tabs", Mode::Tabs),
    ("insert", Mode::Insert),
    ("quote", Mode::Quote),
    ("ascii", Mode::Ascii),
    ("markdown", Mode::Markdown),
    ("table", Mode::Table),
    ("box", Mode::Box),
    ("json", Mode::Json),
];

pub fn run(shell: &mut Shell, words: &Words) -> Outcome {
    let mut wrapping = Wrapping::USUAL;
    let (mut name, mut table, mut is_wrapped) = (None, None, false);
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        if is_option(word, "wrap") {
            wrapping.width = rest.next().map_or(0, |word| number(word).clamp(0, 1_000_000) as i32);
        } else if is_option(word, "ww") {
            wrapping.at_words = true;
        } else if is_option(word, "wordwrap") {
            wrapping.at_words = rest.next().is_some_and(|word| boolean(word));
        } else if is_option(word, "quote") {
            wrapping.quotes = true;
        } else if is_option(word, "noquote") {
            wrapping.quotes = false;
        } else if word == b"qbox" && name.is_none() {
            (name, wrapping.quotes) = (Some(b"box".to_vec()), true);
        } else if name.is_none() {
            name = Some(word.clone());
        } else if table.is_none() && !word.starts_with(b"-") {
            table = Some(word.clone());
        } else if word.starts_with(b"-") {
            return unknown_option(word);
        } else {
            return failed(&[b"extra argument: \"", word, b"\""]);
        }
        is_wrapped = true;
    }
    let Some(name) = name.or_else(|| is_wrapped.then(|| shell.style.mode.name().into())) else {
        let text = format!("current output mode: {}\n", described(&shell.style));
        shell.out.put(text);
        return Outcome::Done;
    };
    let Some((_, mode)) = MODES.iter().find(|(known, _)| known.as_bytes().starts_with(&name)) else {
        return failed(&[b"Error: mode should be one of: ascii box column csv html insert json line list \
            markdown qbox quote table tabs tcl"]);
    };
    set(&mut shell.style, *mode, wrapping);
    if *mode == Mode::Insert {
        shell.style.table = table.unwrap_or_else(|| b"table".to_vec());
    }
    Outcome::Done
}

/// Goes to a mode, with what belongs to it.
pub fn set(style: &mut Style, mode: Mode, wrapping: Wrapping) {
    style.mode = mode;
    let separators: Option<(&[u8], &[u8])> = match mode {
        Mode::List => Some((b"|", b"\n")),
        Mode::Csv => Some((b",", b"\r\n")),
        Mode::Tabs => Some((b"\t", b"\n")),
        Mode::Tcl => Some((b" ", b"\n")),
        Mode::Quote => Some((b",", b"\n")),
        Mode::Ascii => Some((b"\x1f", b"\x1e")),
        Mode::Line => Some((&[], b"\n")),
        _ => None,
    };
    if let Some((column, row)) = separators {
        if mode != Mode::Line {
            style.column_separator = column.to_vec();
        }
        style.row_separator = row.to_vec();
    }
    if mode == Mode::Column && !style.headers_chosen {
        style.headers = true;
    }
    if mode.is_grid() {
        style.wrapping = wrapping;
    }
}

fn described(style: &Style) -> String {
    if !style.mode.is_grid() {
        return style.mode.name().to_owned();
    }
    let Wrapping { width, at_words, quotes } = style.wrapping;
    let (words, quote) = (if at_words { "on" } else { "off" }, if quotes { "" } else { "no" });
    format!("{} --wrap {width} --wordwrap {words} --{quote}quote", style.mode.name())
}

/// The same as `.show` has it, which knows only the usual wrapping.
pub fn described_in_show(style: &Style) -> String {
    described(&Style { wrapping: Wrapping::USUAL, ..style.clone() })
}

fn unknown_option(word: &[u8]) -> Outcome {
    failed(&[
        b"unknown option: ",
        word,
        b"\noptions:\n  --noquote\n  --quote\n  --wordwrap on/off\n  --wrap N\n  --ww",
    ])
}
