//! `-U`: matches that may span lines. The file is held in memory as a whole.

use super::options::{Mode, Options};
use super::print::Printer;
use crate::lines::{Position, Role, Sink, Verdict};
use memchr::{memchr, memchr_iter, memrchr};
use wardian_regex::{Regex, char_len};

/// Searches the text of a file; answers how many lines were selected.
pub fn search(options: &Options, regex: &Regex, mut text: Vec<u8>, printer: &mut Printer<'_>) -> u64 {
    match printer.look(&mut text, 0, 0) {
        Verdict::GoOn | Verdict::OnlyFirst => {}
        Verdict::EndAt(length) => text.truncate(length),
        Verdict::Forget => return 0,
    }
    let blocks = blocks_of(regex, &text, options.max_count);
    let blocks = if options.invert { between(&blocks, text.len()) } else { blocks };
    let selected: u64 = blocks.iter().map(|(from, to)| count_lines(&text[*from..*to])).sum();
    if matches!(options.mode, Mode::Matching | Mode::NotMatching | Mode::Quiet) {
        return selected;
    }
    let is_binary = printer.zero_offset().is_some() && !printer.stopped_at_zero;
    if !(is_binary && options.mode == Mode::Lines) {
        print(options, &text, &blocks, printer);
    }
    selected
}

/// The lines that matches lie in, those that touch as one.
fn blocks_of(regex: &Regex, text: &[u8], most: u64) -> Vec<(usize, usize)> {
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at < text.len()
        && let Some((from, to)) = regex.find_at(text, at)
        && from < text.len()
    {
        let start = memrchr(b'\n', &text[..from]).map_or(0, |before| before + 1);
        // A match that ends with a line ends in it.
        let last = if to > from { to - 1 } else { to };
        let end = memchr(b'\n', &text[last..]).map_or(text.len(), |after| last + after + 1);
        let count = blocks.len() as u64;
        match blocks.last_mut() {
            Some(block) if start < block.1 => block.1 = block.1.max(end),
            _ if count >= most => break,
            _ => blocks.push((start, end)),
        }
        at = if to > from { to } else { to + text.get(to..).map_or(1, char_len) };
    }
    blocks
}

/// What lies between blocks.
fn between(blocks: &[(usize, usize)], length: usize) -> Vec<(usize, usize)> {
    let mut others = Vec::new();
    let mut at = 0;
    for (from, to) in blocks {
        others.push((at, *from));
        at = *to;
    }
    others.push((at, length));
    others.retain(|(from, to)| from < to);
    others
}

fn count_lines(text: &[u8]) -> u64 {
    let ended = memchr_iter(b'\n', text).count() as u64;
    ended + u64::from(!text.is_empty() && !text.ends_with(b"\n"))
}

/// Prints the lines of blocks, and those around them.
fn print(options: &Options, text: &[u8], blocks: &[(usize, usize)], printer: &mut Printer<'_>) {
    let (before, after) = match options.passthru {
        true => (usize::MAX, usize::MAX),
        false => (options.before.unwrap_or(0), options.after.unwrap_or(0)),
    };
    let mut printed = 0;
    let mut number = 1;
    for (index, (from, to)) in blocks.iter().enumerate() {
        let start = lines_back(text, *from, before).max(printed);
        if start > printed || index == 0 {
            printer.gap();
        }
        number += count_lines(&text[printed..start]);
        let next = blocks.get(index + 1).map_or(text.len(), |block| block.0);
        let end = lines_on(text, *to, after).min(next);
        for (from, to, role) in
            [(start, *from, Role::Context), (*from, *to, Role::Selected), (*to, end, Role::Context)]
        {
            number = print_lines(text, from, to, number, role, printer);
        }
        printed = end;
    }
}

fn print_lines(
    text: &[u8],
    from: usize,
    to: usize,
    mut number: u64,
    role: Role,
    printer: &mut Printer<'_>,
) -> u64 {
    let mut at = from;
    while at < to {
        let end = memchr(b'\n', &text[at..to]).map_or(to, |length| at + length);
        printer.line(&text[at..end], Position { number, offset: at as u64 }, role);
        number += 1;
        at = end + 1;
    }
    number
}

fn lines_back(text: &[u8], from: usize, count: usize) -> usize {
    let mut at = from;
    for _ in 0..count {
        if at == 0 {
            break;
        }
        at = memrchr(b'\n', &text[..at - 1]).map_or(0, |before| before + 1);
    }
    at
}

fn lines_on(text: &[u8], to: usize, count: usize) -> usize {
    let mut at = to;
    for _ in 0..count {
        if at >= text.len() {
            break;
        }
        at = memchr(b'\n', &text[at..]).map_or(text.len(), |after| at + after + 1);
    }
    at
}
