//! `pr`: files as pages, with a heading on each, in columns if wanted.

mod column;
mod heading;
mod layout;
mod pages;
mod pen;

use layout::{Layout, Shown};
use pages::Pages;
use toolkit::args::{OPERAND, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, hint_at_help, input, quote};

const TOOL: Tool = Tool {
    name: "pr",
    short: "-0123456789abcdD:e::fFh:i::Jl:mn::N:o:rs::S::tTvw:W:",
    long: &[
        ("pages=", 'P'),
        ("columns=", 'C'),
        ("across", 'a'),
        ("show-control-chars", 'c'),
        ("double-space", 'd'),
        ("date-format=", 'D'),
        ("expand-tabs[=", 'e'),
        ("form-feed", 'f'),
        ("header=", 'h'),
        ("output-tabs[=", 'i'),
        ("join-lines", 'J'),
        ("length=", 'l'),
        ("merge", 'm'),
        ("number-lines[=", 'n'),
        ("first-line-number=", 'N'),
        ("indent=", 'o'),
        ("no-file-warnings", 'r'),
        ("separator[=", 's'),
        ("sep-string[=", 'S'),
        ("omit-header", 't'),
        ("omit-pagination", 'T'),
        ("show-nonprinting", 'v'),
        ("width=", 'w'),
        ("page-width=", 'W'),
    ],
    help: "\
Usage: pr [OPTION]... [FILE]...
Print the FILEs, or standard input (also as -), as pages of 66 lines with a heading.

  +FIRST[:LAST], --pages=FIRST[:LAST]   only these pages
  -COLUMN, --columns=COLUMN   in so many columns, filled downwards
  -a, --across                fill columns from left to right, with -COLUMN
  -c, --show-control-chars    show what does not print as ^G or \\ooo
  -d, --double-space          an empty line behind each
  -D, --date-format=FORMAT    how the date of the heading is written
  -e[CHAR[WIDTH]], --expand-tabs[=CHAR[WIDTH]]   make blanks of CHARs (tabs), up to each WIDTH (8)
  -F, -f, --form-feed         end pages with a form feed, not with empty lines
  -h, --header=HEADER         HEADER in place of the name of the file
  -i[CHAR[WIDTH]], --output-tabs[=CHAR[WIDTH]]   make CHARs (tabs) of blanks
  -J, --join-lines            columns are not aligned, and lines not cut
  -l, --length=LINES          so many lines a page; no heading if 10 or less
  -m, --merge                 all FILEs side by side, one in each column
  -n[SEP[DIGITS]], --number-lines[=SEP[DIGITS]]  number the lines, with SEP (a tab) behind the number
  -N, --first-line-number=NUMBER   begin with this number
  -o, --indent=MARGIN         begin each line with so many blanks
  -r, --no-file-warnings      say nothing of a file that cannot be opened
  -s[CHAR], --separator[=CHAR]     CHAR (a tab) between columns, which are not aligned
  -S[STRING], --sep-string[=STRING]   STRING between columns
  -t, --omit-header           no heading, no empty lines at the end of a page
  -T, --omit-pagination       nor what form feeds in the FILEs do
  -v, --show-nonprinting      show what does not print as \\ooo
  -w, --width=WIDTH           so many characters (72) a line, if there are columns
  -W, --page-width=WIDTH      so many characters a line, always; longer lines are cut
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// What the options say, before it is known how many files there are.
struct Options {
    layout: Layout,
    /// `-s` and `-w` of old, which mean something else together with other options.
    old_separator: bool,
    old_width: bool,
    has_columns: bool,
    quiet: bool,
    first_page: u64,
    last_page: u64,
    files: Vec<Vec<u8>>,
}

pub fn main(arguments: Arguments) -> i32 {
    match read_options(bytes_of(arguments)) {
        Ok(options) => print_all(options),
        Err(code) => code,
    }
}

fn read_options(words: Vec<Vec<u8>>) -> Result<Options, i32> {
    let parsed = TOOL.parse(words)?;
    let mut options = Options {
        layout: Layout::default(),
        old_separator: false,
        old_width: false,
        has_columns: false,
        quiet: false,
        first_page: 0,
        last_page: u64::MAX,
        files: Vec::new(),
    };
    let mut digits = String::new();
    for (letter, argument) in parsed.options {
        if letter.is_ascii_digit() {
            digits.push(letter);
            options.set_columns(digits.as_bytes())?;
            continue;
        }
        digits.clear();
        options.set(letter, argument)?;
    }
    options.files.extend(parsed.operands);
    options.first_page = options.first_page.max(1);
    options.settle()?;
    Ok(options)
}

impl Options {
    fn set(&mut self, letter: char, argument: Option<Vec<u8>>) -> Result<(), i32> {
        let text = argument.as_deref().unwrap_or_default();
        match letter {
            OPERAND => {
                let pages = text.strip_prefix(b"+").filter(|_| self.first_page == 0);
                let is_taken = pages.map_or(Ok(false), |pages| self.set_pages(pages, "+"))?;
                if !is_taken {
                    self.files.push(text.to_vec());
                }
            }
            'P' => {
                if !self.set_pages(text, "--pages")? {
                    complain("pr", format_args!("invalid page range {}", quote::word(text)));
                    return Err(1);
                }
            }
            'C' => self.set_columns(text)?,
            'r' => self.quiet = true,
            'h' => self.layout.header = Some(text.to_vec()),
            'D' => self.layout.date_format = text.to_vec(),
            's' | 'S' | 'w' | 'W' => self.set_width(letter, argument.as_deref())?,
            letter => self.layout.set(letter, text)?,
        }
        Ok(())
    }

    /// What is between columns and how wide they are: of each the old option and the new.
    fn set_width(&mut self, letter: char, argument: Option<&[u8]>) -> Result<(), i32> {
        let text = argument.unwrap_or_default();
        let layout = &mut self.layout;
        match letter {
            's' => {
                self.old_separator = true;
                if !layout.has_separator && argument.is_some() {
                    layout.separator = text.to_vec();
                }
            }
            'S' => {
                self.old_separator = false;
                layout.has_separator = true;
                layout.separator = text.to_vec();
            }
            'w' => {
                self.old_width = true;
                let width = number(text, 1, "'-w PAGE_WIDTH' invalid number of characters")?;
                if !layout.truncate {
                    layout.width = width;
                }
            }
            _ => {
                self.old_width = false;
                layout.truncate = true;
                layout.width = number(text, 1, "'-W PAGE_WIDTH' invalid number of characters")?;
            }
        }
        Ok(())
    }

    fn set_columns(&mut self, text: &[u8]) -> Result<(), i32> {
        self.layout.columns = number(text, 1, "invalid number of columns")? as usize;
        self.has_columns = true;
        Ok(())
    }

    /// `FIRST[:LAST]`; says whether it is that. What does not even begin as a number is an error.
    fn set_pages(&mut self, text: &[u8], option: &str) -> Result<bool, i32> {
        let wrong = |reason: &str| {
            complain("pr", format_args!("{reason}{option} argument {}", quote::word(text)));
            Err(1)
        };
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (first, rest) = text.split_at(digits(text));
        if first.is_empty() {
            return wrong("invalid ");
        }
        let (mut last, mut behind) = (None, rest);
        if let Some(rest) = rest.strip_prefix(b":") {
            let (number, after) = rest.split_at(digits(rest));
            match (number.is_empty(), after.is_empty()) {
                (true, _) => return wrong("invalid "),
                (_, false) => return wrong("invalid suffix in "),
                _ => (last, behind) = (Some(number), after),
            }
        }
        let first = input::number::<u64>(first);
        let last = last.map_or(Some(u64::MAX), input::number::<u64>);
        let (Some(first), Some(last)) = (first, last) else {
            complain("pr", format_args!("{option} argument {} too large", quote::word(text)));
            return Err(1);
        };
        if first == 0 || last < first || !behind.is_empty() {
            return Ok(false);
        }
        (self.first_page, self.last_page) = (first, last);
        Ok(true)
    }

    /// What the options mean together.
    fn settle(&mut self) -> Result<(), i32> {
        let layout = &mut self.layout;
        let wrong = |message: &str| {
            complain("pr", message);
            Err(1)
        };
        if layout.parallel && self.has_columns {
            return wrong("cannot specify number of columns when printing in parallel");
        }
        if layout.parallel && layout.across {
            return wrong("cannot specify both printing across and printing in parallel");
        }
        let has_columns = layout.parallel || self.has_columns;
        if self.old_width {
            match has_columns {
                true => {
                    layout.truncate = true;
                    layout.has_separator |= self.old_separator;
                }
                false => layout.join = true,
            }
        } else if self.old_separator && !layout.has_separator && has_columns {
            layout.has_separator = layout.truncate || !layout.separator.is_empty();
            layout.join |= !layout.truncate;
        }
        Ok(())
    }
}

impl Layout {
    /// What concerns nothing else.
    fn set(&mut self, letter: char, text: &[u8]) -> Result<(), i32> {
        match letter {
            'a' => (self.across, self.storing) = (true, false),
            'v' => self.shown = Shown::Octal,
            'c' if self.shown != Shown::Octal => self.shown = Shown::Hat,
            'd' => self.double_space = true,
            'e' => {
                self.untabify = true;
                read_sign('e', text, &mut self.input_tab)?;
            }
            'f' | 'F' => self.form_feed = true,
            'i' => {
                self.tabify = true;
                read_sign('i', text, &mut self.output_tab)?;
            }
            'J' => self.join = true,
            'l' => self.page_lines = number(text, 1, "'-l PAGE_LENGTH' invalid number of lines")?,
            'm' => (self.parallel, self.storing) = (true, false),
            'n' => {
                self.numbered = true;
                read_sign('n', text, &mut self.number)?;
            }
            'N' => {
                self.counts_skipped = false;
                let what = "'-N NUMBER' invalid starting line number";
                self.first_number = number(text, i64::from(i32::MIN), what)?;
            }
            'o' => self.margin = number(text, 0, "'-o MARGIN' invalid line offset")?,
            't' => (self.extremities, self.keeps_feeds) = (false, true),
            'T' => (self.extremities, self.keeps_feeds) = (false, false),
            _ => {}
        }
        Ok(())
    }
}

/// A number as large as C's `int` may be.
fn number(text: &[u8], least: i64, what: &str) -> Result<i64, i32> {
    let shown = text.trim_ascii_start();
    let parsed = std::str::from_utf8(shown).ok().and_then(|text| text.parse::<i128>().ok());
    let reason = match parsed {
        Some(number) if number >= i128::from(least) && number <= i128::from(i32::MAX) => {
            return Ok(number as i64);
        }
        Some(number) if number > i128::from(i32::MAX / 2) || number < i128::from(i32::MIN / 2) => {
            ": Value too large for defined data type"
        }
        Some(_) => ": Numerical result out of range",
        None => "",
    };
    complain("pr", format_args!("{what}: {}{reason}", quote::word(text)));
    Err(1)
}

/// `[CHAR[WIDTH]]`
fn read_sign(letter: char, text: &[u8], (sign, width): &mut (u8, i64)) -> Result<(), i32> {
    let digits = match text {
        [] => return Ok(()),
        [b'0'..=b'9', ..] => text,
        [other, digits @ ..] => {
            *sign = *other;
            digits
        }
    };
    if digits.is_empty() {
        return Ok(());
    }
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i32>().ok());
    let Some(number @ 1..) = number else {
        let digits = quote::word(digits);
        let message = format!("'-{letter}' extra characters or invalid number in the argument: {digits}");
        complain("pr", message);
        hint_at_help("pr");
        return Err(1);
    };
    *width = i64::from(number);
    Ok(())
}

fn print_all(options: Options) -> i32 {
    let Options { layout, quiet, first_page, last_page, files, .. } = options;
    let mut out = Out::new("pr");
    let mut code = 0;
    let sets: Vec<&[Vec<u8>]> = match layout.parallel || files.is_empty() {
        true => vec![&files],
        false => files.chunks(1).collect(),
    };
    for files in sets {
        let mut layout = layout.clone();
        let pages = Pages::open(&mut layout, files, quiet, &mut code, &mut out);
        let printed = pages.map_or(Ok(()), |pages| pages.print(first_page, last_page));
        if let Err(message) = printed {
            out.complain(message);
            return 1;
        }
    }
    code
}
