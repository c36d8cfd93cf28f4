//! `.import`: a file of rows into a table.

use super::arguments::{number, option};
use super::{Outcome, Words, failed, help};
use crate::database::{Cell, Database, Failure, Statement};
use crate::output::complain;
use crate::render::Mode;
use crate::shell::Shell;
use toolkit::files;

/// What was asked for.
struct Request {
    file: Vec<u8>,
    table: Vec<u8>,
    schema: Option<Vec<u8>>,
    skip: usize,
    verbose: bool,
    format: Format,
}

/// How the file is divided.
#[derive(Clone, Copy)]
struct Format {
    column: u8,
    row: u8,
    /// Whether double quotes protect separators.
    has_quotes: bool,
}

/// A file being read field by field.
struct Reader<'a> {
    name: &'a [u8],
    text: &'a [u8],
    at: usize,
    line: usize,
    format: Format,
}

/// A field, and what ended it.
struct Field {
    text: Vec<u8>,
    ends_row: bool,
}

pub fn run(shell: &mut Shell, words: &Words) -> Outcome {
    let request = match parse(shell, words) {
        Ok(request) => request,
        Err(outcome) => return outcome,
    };
    if request.file.starts_with(b"|") {
        return failed(&[
            b"Error: .import starts no programs here; put the command's output into a file first",
        ]);
    }
    let read = match request.file.as_slice() {
        b"/dev/stdin" => files::read_fd(0).ok(),
        file => std::fs::read(files::path(file)).ok(),
    };
    let Some(content) = read else {
        return failed(&[b"Error: cannot open \"", &request.file, b"\""]);
    };
    shell.database();
    let Some(database) = shell.database.take() else { return Outcome::Failed };
    let mut reader = Reader { name: &request.file, text: &content, at: 0, line: 1, format: request.format };
    let result = import(shell, &database, &request, &mut reader);
    shell.database = Some(database);
    match result {
        Ok(()) => Outcome::Done,
        Err(Problem::Library(failure)) => failed(&[b"Error: ", &failure.message]),
        Err(Problem::Told) => Outcome::Failed,
    }
}

fn parse(shell: &mut Shell, words: &Words) -> Result<Request, Outcome> {
    let (mut operands, mut schema, mut skip, mut verbose, mut chosen) = (Vec::new(), None, 0, false, None);
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        match option(word) {
            None if operands.len() < 2 => operands.push(word.clone()),
            None => return Err(misused(&[b"ERROR: extra argument: \"", word, b"\". Usage:\n"])),
            Some(b"v") => verbose = true,
            Some(b"csv") => chosen = Some(Format { column: b',', row: b'\n', has_quotes: true }),
            Some(b"ascii") => chosen = Some(Format { column: 0x1f, row: 0x1e, has_quotes: false }),
            Some(b"skip") => skip = rest.next().map_or(0, |word| number(word).max(0) as usize),
            Some(b"schema") => schema = rest.next().cloned(),
            Some(_) => {
                let shown = if word.starts_with(b"--") { &word[1..] } else { word };
                return Err(misused(&[b"ERROR: unknown option: \"", shown, b"\".  Usage:\n"]));
            }
        }
    }
    let missing: &[u8] = if operands.is_empty() { b"FILE" } else { b"TABLE" };
    let [file, table] = <[Vec<u8>; 2]>::try_from(operands)
        .map_err(|_| misused(&[b"ERROR: missing ", missing, b" argument. Usage:\n"]))?;
    let format = match chosen {
        Some(format) => format,
        None => from_style(shell)?,
    };
    Ok(Request { file, table, schema, skip, verbose, format })
}

fn misused(message: &[&[u8]]) -> Outcome {
    let text = [message.concat(), help::of("import").into_bytes()].concat();
    complain(text);
    Outcome::Failed
}

/// The separators of the output are those of the input.
fn from_style(shell: &mut Shell) -> Result<Format, Outcome> {
    let style = &mut shell.style;
    if style.row_separator == b"\r\n" && style.mode == Mode::Csv {
        // A file may have the line ends of Unix; from here on the output has them, too.
        style.row_separator = b"\n".to_vec();
    }
    let problem: &[u8] = match (style.column_separator.as_slice(), style.row_separator.as_slice()) {
        ([], _) => b"Error: non-null column separator required for import",
        ([_, _, ..], _) => b"Error: multi-character column separators not allowed for import",
        (_, []) => b"Error: non-null row separator required for import",
        (_, [_, _, ..]) => b"Error: multi-character row separators not allowed for import",
        (&[column], &[row]) => return Ok(Format { column, row, has_quotes: style.mode != Mode::Ascii }),
    };
    Err(failed(&[problem]))
}

enum Problem {
    Library(Failure),
    /// It has been told already.
    Told,
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem::Library(failure)
    }
}

fn import(
    shell: &mut Shell,
    database: &Database,
    request: &Request,
    reader: &mut Reader<'_>,
) -> Result<(), Problem> {
    for _ in 0..request.skip {
        while reader.next().is_some_and(|field| !field.ends_row) {}
    }
    let table = qualified(request);
    let count = match columns(database, &table) {
        Some(count) => count,
        None => {
            create(shell, database, request, reader, &table)?;
            columns(database, &table).unwrap_or(0)
        }
    };
    if count == 0 {
        return Ok(());
    }
    let marks = vec![&b"?"[..]; count].join(&b","[..]);
    let insert = [b"INSERT INTO ", &table[..], b" VALUES(", &marks, b")"].concat();
    let (Some(mut statement), _) = database.prepare(&insert)? else { return Ok(()) };
    let is_own = database.is_autocommit();
    if is_own {
        database.run(b"BEGIN")?;
    }
    let (rows, errors) = insert_all(reader, &mut statement, count);
    drop(statement);
    if is_own {
        database.run(b"COMMIT")?;
    }
    if request.verbose {
        let lines = reader.line - 1;
        shell.out.put(format!("Added {rows} rows with {errors} errors using {lines} lines of input\n"));
    }
    Ok(())
}

fn qualified(request: &Request) -> Vec<u8> {
    let table = in_double_quotes(&request.table);
    match &request.schema {
        Some(schema) => [&in_double_quotes(schema)[..], b".", &table].concat(),
        None => table,
    }
}

fn in_double_quotes(name: &[u8]) -> Vec<u8> {
    let quoted = name.split(|&byte| byte == b'"').collect::<Vec<_>>().join(&b"\"\""[..]);
    [b"\"", &quoted[..], b"\""].concat()
}

/// How many columns a table has, if there is one.
fn columns(database: &Database, table: &[u8]) -> Option<usize> {
    let query = [b"SELECT * FROM ", table].concat();
    database.prepare(&query).ok()?.0.map(|statement| statement.column_count())
}

/// Makes a table whose columns have the names in the first row.
fn create(
    shell: &mut Shell,
    database: &Database,
    request: &Request,
    reader: &mut Reader<'_>,
    table: &[u8],
) -> Result<(), Problem> {
    let mut names = Vec::new();
    while let Some(field) = reader.next() {
        names.push(field.text);
        if field.ends_row {
            break;
        }
    }
    if names.is_empty() {
        failed(&[&request.file, b": empty file"]);
        return Err(Problem::Told);
    }
    let (names, renamed) = made_unique(names);
    if !renamed.is_empty() {
        let text = [b"Columns renamed during .import ", &request.file[..], b" due to duplicates:\n"].concat();
        complain([text, renamed.join(&b",\n"[..]), b"\n".to_vec()].concat());
    }
    let columns: Vec<Vec<u8>> =
        names.iter().map(|name| [&in_double_quotes(name)[..], b" TEXT"].concat()).collect();
    let create = [b"CREATE TABLE ", table, b"(\n", &columns.join(&b", "[..]), b")"].concat();
    if request.verbose {
        shell.out.put([&create[..], b"\n\n"].concat());
    }
    database.run(&create).map_err(|failure| {
        failed(&[&create, b" failed:\n", &failure.message]);
        Problem::Told
    })
}

/// Gives columns of one name a number each; answers what was done, too.
fn made_unique(names: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let named = |name: Vec<u8>| if name.is_empty() { b"?".to_vec() } else { name };
    let names: Vec<Vec<u8>> = names.into_iter().map(named).collect();
    let count = |name: &[u8]| names.iter().filter(|other| other.eq_ignore_ascii_case(name)).count();
    let digits = names.len().to_string().len();
    let mut renamed = Vec::new();
    let mut unique = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if count(name) < 2 {
            unique.push(name.clone());
            continue;
        }
        let new = [&name[..], format!("_{:0digits$}", index + 1).as_bytes()].concat();
        renamed.push([&in_double_quotes(name)[..], b" to ", &in_double_quotes(&new)].concat());
        unique.push(new);
    }
    (unique, renamed)
}

/// Reads the rest of the file into a table; answers how many rows went in and how many did not.
fn insert_all(reader: &mut Reader<'_>, statement: &mut Statement<'_>, count: usize) -> (usize, usize) {
    let (mut rows, mut errors) = (0, 0);
    loop {
        let start = reader.line;
        let Some(fields) = reader.row(count, start) else { return (rows, errors) };
        for (index, field) in fields.iter().enumerate() {
            let _ = statement.bind(index + 1, field);
        }
        match statement.step() {
            Ok(_) => rows += 1,
            Err(failure) => {
                errors += 1;
                let place = format!(":{start}: INSERT failed: ");
                failed(&[reader.name, place.as_bytes(), &failure.message]);
            }
        }
        statement.reset();
    }
}

impl Reader<'_> {
    /// The fields of the next row, as many as the table has columns.
    fn row(&mut self, count: usize, start: usize) -> Option<Vec<Cell>> {
        let mut cells = Vec::new();
        let mut found = 0;
        loop {
            let Some(field) = self.next() else {
                if found == 0 {
                    return None;
                }
                break;
            };
            // A line with nothing on it is no row of several columns, where lines are all there is.
            if found == 0 && field.ends_row && field.text.is_empty() && !self.format.has_quotes && count > 1 {
                return None;
            }
            found += 1;
            if cells.len() < count {
                cells.push(Cell::Text(field.text));
            }
            if field.ends_row {
                break;
            }
        }
        let place = format!(":{start}: expected {count} columns but found {found} - ");
        if found < count {
            failed(&[self.name, place.as_bytes(), b"filling the rest with NULL"]);
            cells.resize(count, Cell::Null);
        } else if found > count {
            failed(&[self.name, place.as_bytes(), b"extras ignored"]);
        }
        Some(cells)
    }

    fn next(&mut self) -> Option<Field> {
        let first = *self.text.get(self.at)?;
        if first == b'"' && self.format.has_quotes {
            return Some(self.quoted());
        }
        let rest = &self.text[self.at..];
        let is_separator = |&byte: &u8| byte == self.format.column || byte == self.format.row;
        let length = rest.iter().position(is_separator).unwrap_or(rest.len());
        let mut text = rest[..length].to_vec();
        let end = rest.get(length).copied();
        self.at += length + usize::from(end.is_some());
        let ends_row = end != Some(self.format.column);
        if end == Some(self.format.row) {
            self.line += 1;
            if self.format.row == b'\n' && text.last() == Some(&b'\r') {
                text.pop();
            }
        }
        Some(Field { text, ends_row })
    }

    /// A field between quotes, in which two of them stand for one.
    fn quoted(&mut self) -> Field {
        let (mut text, start) = (Vec::new(), self.line);
        let rest = &self.text[self.at + 1..];
        let mut at = 0;
        let ends_row = loop {
            let byte = |ahead: usize| rest.get(at + ahead).copied();
            let Some(here) = byte(0) else {
                let place = format!(":{start}: unterminated \"-quoted field");
                failed(&[self.name, place.as_bytes()]);
                break true;
            };
            if here == b'\n' {
                self.line += 1;
            }
            match (here, byte(1)) {
                (b'"', Some(b'"')) => {
                    text.push(b'"');
                    at += 2;
                    continue;
                }
                (b'"', Some(next)) if next == self.format.column => {
                    at += 2;
                    break false;
                }
                (b'"', Some(next)) if next == self.format.row => {
                    self.line += 1;
                    at += 2;
                    break true;
                }
                (b'"', Some(b'\r')) if byte(2) == Some(self.format.row) => {
                    self.line += 1;
                    at += 3;
                    break true;
                }
                (b'"', None) => {
                    at += 1;
                    break true;
                }
                (b'"', Some(_)) => {
                    let place = format!(":{}: unescaped \" character", self.line);
                    failed(&[self.name, place.as_bytes()]);
                }
                _ => {}
            }
            text.push(here);
            at += 1;
        };
        self.at += at + 1;
        Field { text, ends_row }
    }
}
