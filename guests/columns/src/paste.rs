//! `paste`: lines of several files side by side, or those of one behind each other.

use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use toolkit::{Arguments, complain, input, quote};
use wardian_abi::Errno;

const TOOL: Tool = Tool {
    name: "paste",
    short: "d:sz",
    long: &[("delimiters=", 'd'), ("serial", 's'), ("zero-terminated", 'z')],
    help: "\
Usage: paste [OPTION]... [FILE]...
Print the lines of the FILEs side by side; - is standard input, as is no FILE.

  -d, --delimiters=LIST   put the characters of LIST between them in turn, not tabs
  -s, --serial            put the lines of each FILE behind each other instead
  -z, --zero-terminated   lines end with NUL, not newline
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// How lines are put together.
struct Style {
    /// What is put between two, in turn; `\0` on the list is nothing at all.
    delimiters: Vec<Option<u8>>,
    line_end: u8,
}

pub fn main(arguments: Arguments) -> i32 {
    match TOOL.parse(bytes_of(arguments)).and_then(run) {
        Ok(code) | Err(code) => code,
    }
}

fn run(parsed: Parsed) -> Result<i32, i32> {
    let mut style = Style { delimiters: vec![Some(b'\t')], line_end: b'\n' };
    let mut serial = false;
    for (letter, argument) in &parsed.options {
        match letter {
            'd' => style.delimiters = read_delimiters(argument.as_deref().unwrap_or_default())?,
            's' => serial = true,
            _ => style.line_end = 0,
        }
    }
    let operands = input::or_stdin(parsed.operands);
    let mut out = Out::new("paste");
    match serial {
        true => Ok(style.behind_each_other(&operands, &mut out)),
        false => style.side_by_side(&operands, &mut out),
    }
}

fn read_delimiters(text: &[u8]) -> Result<Vec<Option<u8>>, i32> {
    let mut delimiters = Vec::new();
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        let delimiter = match byte {
            b'\\' => match rest.next() {
                Some(b'0') => None,
                Some(b'b') => Some(0x08),
                Some(b'f') => Some(0x0c),
                Some(b'n') => Some(b'\n'),
                Some(b'r') => Some(b'\r'),
                Some(b't') => Some(b'\t'),
                Some(b'v') => Some(0x0b),
                Some(other) => Some(*other),
                None => {
                    let list = String::from_utf8_lossy(text);
                    let message = format!("delimiter list ends with an unescaped backslash: {list}");
                    complain("paste", message);
                    return Err(1);
                }
            },
            byte => Some(*byte),
        };
        delimiters.push(delimiter);
    }
    if delimiters.is_empty() {
        delimiters.push(None);
    }
    Ok(delimiters)
}

/// A file of a row.
struct Column<'a> {
    name: &'a [u8],
    /// Which of the open files it is: standard input may be several columns.
    file: usize,
}

impl Style {
    fn side_by_side(&self, operands: &[Vec<u8>], out: &mut Out) -> Result<i32, i32> {
        let (mut files, mut columns) = (Vec::new(), Vec::<Column<'_>>::new());
        for name in operands {
            let stdin = columns.iter().find(|column| column.name == b"-" && name == b"-");
            let file = match stdin {
                Some(column) => column.file,
                None => {
                    let lines = Records::open(name, self.line_end).map_err(|error| {
                        complain("paste", format_args!("{}: {error}", quote::if_needed(name)));
                        1
                    })?;
                    files.push(Some(lines));
                    files.len() - 1
                }
            };
            columns.push(Column { name, file });
        }
        let mut code = 0;
        while self.put_row(&columns, &mut files, &mut code, out) {}
        Ok(code)
    }

    /// Prints the next line of each file; says whether there was one.
    fn put_row(
        &self,
        columns: &[Column<'_>],
        files: &mut [Option<Records>],
        code: &mut i32,
        out: &mut Out,
    ) -> bool {
        let mut before = out.buffer().len();
        let mut is_there = false;
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.buffer().extend(self.delimiters[(at - 1) % self.delimiters.len()]);
            }
            let line = files[column.file].as_mut().map_or(Ok(false), |lines| self.add_line(lines, out));
            match line {
                Ok(true) => is_there = true,
                Ok(false) => files[column.file] = None,
                Err(error) => {
                    // Delimiters are not there before something follows them.
                    let row = if is_there { Vec::new() } else { out.buffer().split_off(before) };
                    out.complain(format_args!("{}: {error}", quote::if_needed(column.name)));
                    before = 0;
                    out.buffer().extend(row);
                    files[column.file] = None;
                    *code = 1;
                }
            }
        }
        match is_there {
            true => out.put([self.line_end]),
            false => out.buffer().truncate(before),
        }
        is_there
    }

    /// Puts the next line behind what is to be written, without what ends it; says whether there was one.
    fn add_line(&self, lines: &mut Records, out: &mut Out) -> Result<bool, Errno> {
        let is_there = lines.next_into(out.buffer())?;
        if is_there && out.buffer().last() == Some(&self.line_end) {
            out.buffer().pop();
        }
        Ok(is_there)
    }

    fn behind_each_other(&self, operands: &[Vec<u8>], out: &mut Out) -> i32 {
        let mut code = 0;
        for operand in operands {
            let joined = Records::open(operand, self.line_end).and_then(|mut lines| {
                let joined = self.join(&mut lines, out);
                out.put([self.line_end]);
                joined
            });
            if let Err(error) = joined {
                out.complain(format_args!("{}: {error}", quote::if_needed(operand)));
                code = 1;
            }
        }
        code
    }

    /// Puts all lines behind each other.
    fn join(&self, lines: &mut Records, out: &mut Out) -> Result<(), Errno> {
        if !self.add_line(lines, out)? {
            return Ok(());
        }
        for delimiter in self.delimiters.iter().cycle() {
            out.settle();
            out.buffer().extend(delimiter);
            if !self.add_line(lines, out)? {
                // None follows: it was too much.
                let length = out.buffer().len() - usize::from(delimiter.is_some());
                out.buffer().truncate(length);
                break;
            }
        }
        Ok(())
    }
}
