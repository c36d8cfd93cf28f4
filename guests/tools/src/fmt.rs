//! `fmt`: fills paragraphs, so that their lines are of about the same length.
//!
//! Where lines are broken is a matter of costs, as with GNU's: a line costs something, more so the further it is from
//! the goal and from the line after it; a break at the end of a sentence or behind a comma costs less, one that leaves
//! a word of a sentence alone costs more. The breaks with the least cost are found from the end of a paragraph to its
//! beginning.

use toolkit::args::{Parsed, Refusal, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::{Bytes, Source};
use toolkit::{Arguments, complain, count, input, quote};

const TOOL: Tool = Tool {
    name: "fmt",
    short: "0123456789cstuw:p:g:",
    long: &[
        ("crown-margin", 'c'),
        ("prefix=", 'p'),
        ("split-only", 's'),
        ("tagged-paragraph", 't'),
        ("uniform-spacing", 'u'),
        ("width=", 'w'),
        ("goal=", 'g'),
    ],
    help: "\
Usage: fmt [-WIDTH] [OPTION]... [FILE]...
Fill the paragraphs of the FILEs, or of standard input (also as -).

  -c, --crown-margin        keep the indents of the first two lines of a paragraph
  -p, --prefix=STRING       only lines that begin with STRING, which the filled ones keep
  -s, --split-only          break long lines, but do not join short ones
  -t, --tagged-paragraph    as -c, but the two indents must differ
  -u, --uniform-spacing     one space between words, two behind a sentence
  -w, --width=WIDTH         the longest a line may be, 75 columns
  -g, --goal=WIDTH          how long lines should be, 93% of that
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// No line may be longer than half of what is formatted at a time.
const LONGEST: u64 = MOST_BYTES as u64 / 2;
/// A paragraph that has more than this is formatted in parts.
const MOST_BYTES: usize = 5000;
const MOST_WORDS: usize = 1000;

/// How wide a tab is.
const TAB: usize = 8;
/// The second indent of a tagged paragraph of one line without an indent.
const HANGING: usize = 3;

type Cost = i64;

const NO_END: Cost = Cost::MAX;
const LINE: Cost = 70 * 70;
const NO_BREAK: Cost = 600 * 600;
const SENTENCE: Cost = 50 * 50;
const PUNCTUATION: Cost = 40 * 40;
const PARENTHESIS: Cost = 40 * 40;
/// What later breaks are allowed more, where a long paragraph is cut into parts.
const LATER: Cost = 3 * 3;

/// Of a line so much shorter or longer than the goal.
fn off_goal(columns: Cost) -> Cost {
    (columns * 10) * (columns * 10)
}

/// Of two lines whose lengths differ so much.
fn ragged(columns: Cost) -> Cost {
    off_goal(columns) / 2
}

/// Of the last word of a sentence at the beginning of a line.
fn widow(length: usize) -> Cost {
    200 * 200 / (length as Cost + 2)
}

/// Of the first word of a sentence at the end of a line.
fn orphan(length: usize) -> Cost {
    150 * 150 / (length as Cost + 2)
}

#[derive(Clone, Copy, PartialEq)]
enum Margins {
    Same,
    Crown,
    Tagged,
    /// Each line is a paragraph.
    Split,
}

struct Style {
    margins: Margins,
    uniform: bool,
    prefix: Prefix,
    width: usize,
    goal: usize,
}

/// What lines begin with, without the blanks around it.
#[derive(Default)]
struct Prefix {
    text: Vec<u8>,
    blanks_before: usize,
    /// Its length with the blanks behind it.
    full_length: usize,
}

pub fn main(arguments: Arguments) -> i32 {
    match parse(bytes_of(arguments)).and_then(|parsed| Ok((read_options(&parsed)?, parsed.operands))) {
        Ok((style, operands)) => format_all(&style, &input::or_stdin(operands)),
        Err(code) => code,
    }
}

/// Takes the command line apart; `-WIDTH` may be its first word.
fn parse(mut words: Vec<Vec<u8>>) -> Result<Parsed, i32> {
    if let Some([b'-', width @ ..]) = words.first().map(Vec::as_slice)
        && width.first().is_some_and(u8::is_ascii_digit)
    {
        words[0] = [b"-w", width].concat();
    }
    match TOOL.try_parse(words) {
        Ok(parsed) => Ok(parsed),
        Err(Refusal::Wrong(message)) => Err(TOOL.wrong(message)),
        Err(refusal) => Err(TOOL.answer(refusal)),
    }
}

fn read_options(parsed: &Parsed) -> Result<Style, i32> {
    let (mut split, mut crown, mut tagged) = (false, false, false);
    let (mut uniform, mut width, mut goal) = (false, None, None);
    let mut prefix = Prefix::default();
    for (letter, argument) in &parsed.options {
        let argument = argument.as_deref().unwrap_or_default();
        match letter {
            'c' => crown = true,
            's' => split = true,
            't' => tagged = true,
            'u' => uniform = true,
            'w' => width = Some(argument),
            'g' => goal = Some(argument),
            'p' => prefix = Prefix::of(argument),
            digit => {
                return Err(TOOL.wrong(format_args!(
                    "invalid option -- {digit}; -WIDTH is recognized only when it is the first\n\
                     option; use -w N instead"
                )));
            }
        }
    }
    let read = |text: &[u8], most: u64| {
        count::or_complaint("invalid width", text, 0..=most, "").map_err(|message| {
            complain("fmt", message);
            1
        })
    };
    let given = width.map(|text| read(text, LONGEST)).transpose()?;
    let goal = goal.map(|text| read(text, given.unwrap_or(75))).transpose()?;
    let width = given.unwrap_or(goal.map_or(75, |goal| goal + 10));
    // By itself the goal is 93.5% of the width.
    let goal = goal.unwrap_or(width * 187 / 200);
    let margins = match (split, crown, tagged) {
        (true, _, _) => Margins::Split,
        (_, true, _) => Margins::Crown,
        (_, _, true) => Margins::Tagged,
        _ => Margins::Same,
    };
    Ok(Style { margins, uniform, prefix, width: width as usize, goal: goal as usize })
}

impl Prefix {
    fn of(text: &[u8]) -> Prefix {
        let blanks_before = text.iter().take_while(|byte| **byte == b' ').count();
        let full = &text[blanks_before..];
        let blanks_behind = full.iter().rev().take_while(|byte| **byte == b' ').count();
        let text = full[..full.len() - blanks_behind].to_vec();
        Prefix { text, blanks_before, full_length: full.len() }
    }
}

fn format_all(style: &Style, operands: &[Vec<u8>]) -> i32 {
    let mut out = Out::new("fmt");
    let mut code = 0;
    for operand in operands {
        let source = match Source::open(operand) {
            Ok(source) => source,
            Err(error) => {
                out.complain(format_args!("cannot open {} for reading: {error}", quote::always(operand)));
                code = 1;
                continue;
            }
        };
        let mut formatter = Formatter::new(style, source, &mut out);
        formatter.run();
        if formatter.input.error.is_some() {
            out.complain("read error");
            code = 1;
        }
    }
    code
}

/// A word and what follows it.
#[derive(Clone, Default)]
struct Word {
    text: Vec<u8>,
    /// How many blanks follow it.
    space: usize,
    opens: bool,
    has_period: bool,
    has_punctuation: bool,
    ends_sentence: bool,
    /// Of a line that begins here: how long it is at best, what it and all after it cost, which word begins the next.
    line_length: usize,
    cost: Cost,
    next: usize,
}

impl Word {
    /// Looks at the signs at either end.
    fn judge(&mut self) {
        let text = &self.text;
        self.opens = text.first().is_some_and(|byte| b"(['`\"".contains(byte));
        self.has_punctuation = text.last().is_some_and(u8::is_ascii_punctuation);
        let closing = text.iter().skip(1).rev().take_while(|byte| b")]'\"".contains(byte)).count();
        self.has_period = text.get(text.len() - closing - 1).is_some_and(|byte| b".?!".contains(byte));
    }
}

struct Formatter<'a> {
    style: &'a Style,
    input: Bytes,
    out: &'a mut Out,
    /// Whether the file has tabs, and so may the output.
    tabs: bool,
    /// What comes next: a byte, the column it is in, and the blanks before the prefix of its line.
    next: Option<u8>,
    in_column: usize,
    next_prefix_indent: usize,
    out_column: usize,
    /// Of the paragraph.
    prefix_indent: usize,
    first_indent: usize,
    other_indent: usize,
    words: Vec<Word>,
    bytes: usize,
    last_line_length: usize,
}

impl<'a> Formatter<'a> {
    fn new(style: &'a Style, source: Source, out: &'a mut Out) -> Formatter<'a> {
        Formatter {
            style,
            input: Bytes::new(source),
            out,
            tabs: false,
            next: None,
            in_column: 0,
            next_prefix_indent: 0,
            out_column: 0,
            prefix_indent: 0,
            first_indent: 0,
            other_indent: 0,
            words: Vec::new(),
            bytes: 0,
            last_line_length: 0,
        }
    }

    fn run(&mut self) {
        self.begin_line();
        while self.read_paragraph() {
            self.find_breaks();
            self.put_lines(self.words.len());
        }
    }

    /// Reads a paragraph, and copies what is before it; says whether there was one.
    fn read_paragraph(&mut self) -> bool {
        self.last_line_length = 0;
        while !self.begins_paragraph() {
            self.copy_line();
            if self.next.is_none() {
                return false;
            }
            self.out.put("\n");
            self.begin_line();
        }
        self.prefix_indent = self.next_prefix_indent;
        self.first_indent = self.in_column;
        self.words.clear();
        self.bytes = 0;
        self.read_line();
        let goes_on = self.goes_on();
        self.choose_indent(goes_on);
        let takes_second = match self.style.margins {
            Margins::Split => false,
            Margins::Crown => goes_on,
            Margins::Tagged => goes_on && self.in_column != self.first_indent,
            Margins::Same => goes_on && self.in_column == self.other_indent,
        };
        if takes_second {
            self.read_line();
            while self.goes_on() && self.in_column == self.other_indent {
                self.read_line();
            }
        }
        if let Some(last) = self.words.last_mut() {
            last.has_period = true;
            last.ends_sentence = true;
        }
        true
    }

    /// Whether what comes next is text of a line with the prefix.
    fn begins_paragraph(&self) -> bool {
        !matches!(self.next, None | Some(b'\n'))
            && self.next_prefix_indent >= self.style.prefix.blanks_before
            && self.in_column >= self.next_prefix_indent + self.style.prefix.full_length
    }

    /// Whether the line that begins belongs to the paragraph, but for its indent.
    fn goes_on(&self) -> bool {
        self.next_prefix_indent == self.prefix_indent
            && self.in_column >= self.next_prefix_indent + self.style.prefix.full_length
            && !matches!(self.next, None | Some(b'\n'))
    }

    /// Sets the indent of all lines but the first.
    fn choose_indent(&mut self, goes_on: bool) {
        self.other_indent = match self.style.margins {
            Margins::Crown if goes_on => self.in_column,
            Margins::Tagged if goes_on && self.in_column != self.first_indent => self.in_column,
            Margins::Tagged if self.other_indent != self.first_indent => self.other_indent,
            Margins::Tagged if self.first_indent == 0 => HANGING,
            Margins::Tagged => 0,
            _ => self.first_indent,
        };
    }

    /// Copies the rest of a line as it is.
    fn copy_line(&mut self) {
        self.out_column = 0;
        let prefix = &self.style.prefix.text;
        let has_text = !matches!(self.next, None | Some(b'\n'));
        if self.in_column > self.next_prefix_indent || has_text {
            self.put_space(self.next_prefix_indent);
            let shown = prefix.len().min(self.in_column.saturating_sub(self.out_column));
            self.out.put(&prefix[..shown]);
            self.out_column += shown;
            if has_text {
                self.put_space(self.in_column.saturating_sub(self.out_column));
            }
            if self.next.is_none() && self.in_column >= self.next_prefix_indent + prefix.len() {
                self.out.put("\n");
            }
        }
        while let Some(byte) = self.next.filter(|byte| *byte != b'\n') {
            self.out.put([byte]);
            self.next = self.input.next_byte();
        }
    }

    /// Reads the words of a line, and the beginning of the next.
    fn read_line(&mut self) {
        while !matches!(self.next, None | Some(b'\n')) {
            let mut word = self.read_word();
            self.in_column += word.text.len();
            word.judge();
            let start = self.in_column;
            self.skip_blanks();
            word.space = self.in_column - start;
            let is_last = matches!(self.next, None | Some(b'\n'));
            word.ends_sentence =
                self.next.is_none() || word.has_period && (self.next == Some(b'\n') || word.space > 1);
            if is_last || self.style.uniform {
                word.space = if word.ends_sentence { 2 } else { 1 };
            }
            if self.words.len() == MOST_WORDS - 2 {
                self.choose_indent(true);
                self.put_beginning(&mut word);
            }
            self.words.push(word);
        }
        self.begin_line();
    }

    /// Reads a word; what it begins with belongs to it whatever it is.
    fn read_word(&mut self) -> Word {
        let mut word = Word::default();
        let mut is_begun = false;
        while let Some(byte) = self.next.filter(|byte| !is_begun || !matches!(byte, b' ' | b'\t'..=b'\r')) {
            if self.bytes == MOST_BYTES {
                self.choose_indent(true);
                self.put_beginning(&mut word);
            }
            word.text.push(byte);
            self.bytes += 1;
            is_begun = true;
            self.next = self.input.next_byte();
        }
        word
    }

    /// Reads what comes before the text of a line.
    fn begin_line(&mut self) {
        self.in_column = 0;
        self.next = self.input.next_byte();
        self.skip_blanks();
        let prefix = &self.style.prefix;
        if prefix.text.is_empty() {
            self.next_prefix_indent = prefix.blanks_before.min(self.in_column);
            return;
        }
        self.next_prefix_indent = self.in_column;
        for byte in &prefix.text {
            if self.next != Some(*byte) {
                return;
            }
            self.in_column += 1;
            self.next = self.input.next_byte();
        }
        self.skip_blanks();
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.next {
                Some(b' ') => self.in_column += 1,
                Some(b'\t') => {
                    self.tabs = true;
                    self.in_column = (self.in_column / TAB + 1) * TAB;
                }
                _ => return,
            }
            self.next = self.input.next_byte();
        }
    }

    /// Prints the beginning of a paragraph that is too long, up to where a break is cheap. The word that is being read
    /// is not yet among the others.
    fn put_beginning(&mut self, word: &mut Word) {
        if self.words.is_empty() {
            self.out.put(&word.text);
            word.text.clear();
            self.bytes = 0;
            return;
        }
        self.find_breaks();
        let end = self.words.len();
        let (mut split, mut least) = (end, NO_END);
        let mut at = self.words[0].next;
        while at != end {
            let next = self.words[at].next;
            let cost = self.words[at].cost - self.words.get(next).map_or(0, |word| word.cost);
            if cost < least {
                (split, least) = (at, cost);
            }
            least = least.saturating_add(LATER);
            at = next;
        }
        self.put_lines(split);
        let put: usize = self.words.drain(..split).map(|word| word.text.len()).sum();
        self.bytes -= put;
    }

    /// Finds for each word the best line that begins with it, the last word first.
    fn find_breaks(&mut self) {
        let end = self.words.len();
        for start in (0..end).rev() {
            let mut best = NO_END;
            let indent = if start == 0 { self.first_indent } else { self.other_indent };
            // At least one word, however long.
            let mut length = indent + self.words[start].text.len();
            let mut next = start + 1;
            loop {
                let mut cost =
                    self.line_cost(next, length) + self.words.get(next).map_or(0, |word| word.cost);
                if start == 0 && self.last_line_length > 0 {
                    cost += ragged(length as Cost - self.last_line_length as Cost);
                }
                if cost < best {
                    best = cost;
                    self.words[start].next = next;
                    self.words[start].line_length = length;
                }
                let Some(word) = self.words.get(next) else { break };
                length += self.words[next - 1].space + word.text.len();
                if length >= self.style.width {
                    break;
                }
                next += 1;
            }
            self.words[start].cost = best + self.break_cost(start);
        }
    }

    /// What a line of a length costs, if a word begins the next.
    fn line_cost(&self, next: usize, length: usize) -> Cost {
        let Some(word) = self.words.get(next) else { return 0 };
        let length = length as Cost;
        let cost = off_goal(self.style.goal as Cost - length);
        match word.next == self.words.len() {
            true => cost,
            false => cost + ragged(length - word.line_length as Cost),
        }
    }

    /// What a break before a word costs.
    fn break_cost(&self, at: usize) -> Cost {
        let (before, word) = self.words.split_at(at);
        let word = &word[0];
        let mut cost = LINE;
        match before {
            [.., last] if last.has_period && last.ends_sentence => cost -= SENTENCE,
            [.., last] if last.has_period => cost += NO_BREAK,
            [.., last] if last.has_punctuation => cost -= PUNCTUATION,
            [.., end, last] if end.ends_sentence => cost += widow(last.text.len()),
            _ => {}
        }
        if word.opens {
            cost -= PARENTHESIS;
        } else if word.ends_sentence {
            cost += orphan(word.text.len());
        }
        cost
    }

    /// Prints the lines before a word that begins one.
    fn put_lines(&mut self, end: usize) {
        let words = std::mem::take(&mut self.words);
        let (mut at, mut indent) = (0, self.first_indent);
        while at != end {
            let next = words[at].next;
            self.put_line(&words[at..next], indent);
            indent = self.other_indent;
            at = next;
        }
        self.words = words;
    }

    fn put_line(&mut self, words: &[Word], indent: usize) {
        self.out_column = 0;
        self.put_space(self.prefix_indent);
        self.out.put(&self.style.prefix.text);
        self.out_column += self.style.prefix.text.len();
        self.put_space(indent.saturating_sub(self.out_column));
        for (at, word) in words.iter().enumerate() {
            self.out.put(&word.text);
            self.out_column += word.text.len();
            if at + 1 < words.len() {
                self.put_space(word.space);
            }
        }
        self.last_line_length = self.out_column;
        self.out.put("\n");
    }

    /// Goes on by so many columns, with tabs where the file has some.
    fn put_space(&mut self, columns: usize) {
        let target = self.out_column + columns;
        let last_tab = target / TAB * TAB;
        if self.tabs && self.out_column + 1 < last_tab {
            while self.out_column < last_tab {
                self.out.put("\t");
                self.out_column = (self.out_column / TAB + 1) * TAB;
            }
        }
        while self.out_column < target {
            self.out.put(" ");
            self.out_column += 1;
        }
    }
}
