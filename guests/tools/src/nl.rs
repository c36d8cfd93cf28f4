//! `nl`: lines with their numbers.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use toolkit::{Arguments, complain, count, hint_at_help, input, quote};
use wardian_regex::{Options, Regex, Syntax, locale_is_utf8};

const TOOL: Tool = Tool {
    name: "nl",
    short: "h:b:f:v:i:pl:s:w:n:d:",
    long: &[
        ("header-numbering=", 'h'),
        ("body-numbering=", 'b'),
        ("footer-numbering=", 'f'),
        ("starting-line-number=", 'v'),
        ("line-increment=", 'i'),
        ("no-renumber", 'p'),
        ("join-blank-lines=", 'l'),
        ("number-separator=", 's'),
        ("number-width=", 'w'),
        ("number-format=", 'n'),
        ("section-delimiter=", 'd'),
    ],
    help: "\
Usage: nl [OPTION]... [FILE]...
Write each FILE, or standard input (also as -), with numbers before its lines.

  -b, --body-numbering=STYLE         which lines have numbers: those of a page's body,
  -f, --footer-numbering=STYLE         of its footer,
  -h, --header-numbering=STYLE         and of its header
  -d, --section-delimiter=CC         what three times, twice, or once begins a header, a body, or a footer
  -i, --line-increment=NUMBER        count in steps of NUMBER
  -l, --join-blank-lines=NUMBER      of NUMBER empty lines only the last one counts
  -n, --number-format=FORMAT         ln (left), rn (right), or rz (right, with zeros)
  -p, --no-renumber                  count on at the beginning of a section
  -s, --number-separator=STRING      write STRING after a number
  -v, --starting-line-number=NUMBER  begin each section with NUMBER
  -w, --number-width=NUMBER          numbers have NUMBER columns
      --help        display this help and exit
      --version     output version information and exit

As if told: -bt -d'\\:' -fn -hn -i1 -l1 -nrn -s<TAB> -v1 -w6. A STYLE is a (all lines), t (lines that are not empty), n (none),
or p and a basic regular expression (lines with a match).
",
    misuse: 1,
};

/// Which lines have numbers.
enum Style {
    All,
    Filled,
    None,
    Matching(Regex),
}

/// How a number is written.
#[derive(Clone, Copy)]
enum Format {
    Left,
    Right,
    Zeros,
}

/// The parts of a page, as they are stored.
const HEADER: usize = 0;
const BODY: usize = 1;
const FOOTER: usize = 2;
const PARTS: [&str; 3] = ["header", "body", "footer"];

struct Numbering {
    /// For the header, the body and the footer.
    styles: [Style; 3],
    start: i64,
    step: i64,
    restarts: bool,
    /// Of so many empty lines the last one counts.
    blanks: i64,
    separator: Vec<u8>,
    width: usize,
    format: Format,
    delimiter: Vec<u8>,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let numbering = Numbering::from_options(parsed.options)?;
    let start = numbering.start;
    let mut page = Page { numbering, part: BODY, next: Some(start), blanks: 0, out: Out::new("nl") };
    let mut code = 0;
    for operand in input::or_stdin(parsed.operands) {
        page.number_file(&operand, &mut code)?;
    }
    Ok(code)
}

impl Numbering {
    fn from_options(options: Vec<(char, Option<Vec<u8>>)>) -> Result<Numbering, i32> {
        let mut numbering = Numbering {
            styles: [Style::None, Style::Filled, Style::None],
            start: 1,
            step: 1,
            restarts: true,
            blanks: 1,
            separator: b"\t".to_vec(),
            width: 6,
            format: Format::Right,
            delimiter: b"\\:".to_vec(),
        };
        let mut is_fine = true;
        for (letter, argument) in options {
            let text = argument.unwrap_or_default();
            match letter {
                'h' => is_fine &= numbering.set_style(HEADER, &text)?,
                'b' => is_fine &= numbering.set_style(BODY, &text)?,
                'f' => is_fine &= numbering.set_style(FOOTER, &text)?,
                'n' => is_fine &= numbering.set_format(&text),
                'v' => numbering.start = number("starting line number", &text, i64::MIN)?,
                'i' => numbering.step = number("line number increment", &text, i64::MIN)?,
                'l' => numbering.blanks = number("line number of blank lines", &text, 1)?,
                'w' => numbering.width = width(&text)?,
                'p' => numbering.restarts = false,
                's' => numbering.separator = text,
                // One or two bytes stand in for the first of those there are.
                _ if matches!(text.len(), 1 | 2) => {
                    numbering.delimiter.iter_mut().zip(text).for_each(|(byte, given)| *byte = given);
                }
                _ => numbering.delimiter = text,
            }
        }
        if is_fine {
            return Ok(numbering);
        }
        hint_at_help("nl");
        Err(1)
    }

    /// Says whether it is a style.
    fn set_style(&mut self, part: usize, text: &[u8]) -> Result<bool, i32> {
        self.styles[part] = match text {
            [b'a', ..] => Style::All,
            [b't', ..] => Style::Filled,
            [b'n', ..] => Style::None,
            [b'p', pattern @ ..] => Style::Matching(compile(pattern)?),
            _ => {
                complain(
                    "nl",
                    format_args!("invalid {} numbering style: {}", PARTS[part], quote::word(text)),
                );
                return Ok(false);
            }
        };
        Ok(true)
    }

    fn set_format(&mut self, text: &[u8]) -> bool {
        self.format = match text {
            b"ln" => Format::Left,
            b"rn" => Format::Right,
            b"rz" => Format::Zeros,
            _ => {
                complain("nl", format_args!("invalid line numbering format: {}", quote::word(text)));
                return false;
            }
        };
        true
    }

    /// The part of a page that begins with a line.
    fn part_of(&self, line: &[u8]) -> Option<usize> {
        let length = self.delimiter.len();
        if length < 2 || line.len() > 3 * length || !line.starts_with(&self.delimiter) {
            return None;
        }
        let times = line.chunks(length).take_while(|chunk| *chunk == self.delimiter).count();
        if times * length == line.len() { Some(3 - times) } else { None }
    }
}

fn compile(pattern: &[u8]) -> Result<Regex, i32> {
    let options = Options { loose_brackets: true, bytes: !locale_is_utf8(), ..Options::new(Syntax::Basic) };
    Regex::new(pattern, &options).map_err(fail)
}

fn number(what: &str, text: &[u8], least: i64) -> Result<i64, i32> {
    count::signed(&format!("invalid {what}"), text, least..=i64::MAX).map_err(fail)
}

fn width(text: &[u8]) -> Result<usize, i32> {
    let width = count::signed("invalid line number field width", text, 1..=i64::from(i32::MAX));
    width.map(|width| width as usize).map_err(fail)
}

fn fail(message: String) -> i32 {
    complain("nl", message);
    1
}

/// Where the numbering stands.
struct Page {
    numbering: Numbering,
    /// The part of the page.
    part: usize,
    /// The next number; none after the last that there is.
    next: Option<i64>,
    /// How many empty lines there were since one counted.
    blanks: i64,
    out: Out,
}

impl Page {
    fn number_file(&mut self, operand: &[u8], code: &mut i32) -> Result<(), i32> {
        let mut line = Vec::new();
        let failed = match Records::open(operand, b'\n') {
            Err(error) => Some(error),
            Ok(mut records) => loop {
                line.clear();
                match records.next_into(&mut line) {
                    Ok(true) => self.line(line.strip_suffix(b"\n").unwrap_or(&line))?,
                    Ok(false) => break None,
                    Err(error) => break Some(error),
                }
            },
        };
        if let Some(error) = failed {
            self.out.complain(format_args!("{}: {error}", quote::if_needed(operand)));
            *code = 1;
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), i32> {
        if let Some(part) = self.numbering.part_of(line) {
            self.part = part;
            if self.numbering.restarts {
                self.next = Some(self.numbering.start);
            }
            self.out.put(b"\n");
            return Ok(());
        }
        if self.has_number(line) {
            self.put_number()?;
        } else {
            self.out.put_many(b' ', self.numbering.width + self.numbering.separator.len());
        }
        self.out.put(line);
        self.out.put(b"\n");
        Ok(())
    }

    fn has_number(&mut self, line: &[u8]) -> bool {
        match &self.numbering.styles[self.part] {
            Style::None => false,
            Style::Filled => !line.is_empty(),
            Style::Matching(regex) => regex.is_match(line),
            Style::All => {
                // A line that is not empty ends a row of empty ones.
                self.blanks = if line.is_empty() { self.blanks + 1 } else { self.numbering.blanks };
                let counts = self.blanks >= self.numbering.blanks;
                if counts {
                    self.blanks = 0;
                }
                counts
            }
        }
    }

    fn put_number(&mut self) -> Result<(), i32> {
        let Some(number) = self.next else {
            self.out.complain("line number overflow");
            return Err(1);
        };
        let digits = number.unsigned_abs().to_string();
        let sign = if number < 0 { "-" } else { "" };
        let room = self.numbering.width.saturating_sub(sign.len() + digits.len());
        match self.numbering.format {
            Format::Left => {
                self.out.put(format!("{sign}{digits}"));
                self.out.put_many(b' ', room);
            }
            Format::Right => {
                self.out.put_many(b' ', room);
                self.out.put(format!("{sign}{digits}"));
            }
            Format::Zeros => {
                self.out.put(sign);
                self.out.put_many(b'0', room);
                self.out.put(digits);
            }
        }
        self.out.put(&self.numbering.separator);
        self.next = number.checked_add(self.numbering.step);
        Ok(())
    }
}
