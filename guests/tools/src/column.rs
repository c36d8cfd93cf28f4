//! `column`: lines side by side, or as a table.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input};
use wardian_abi as abi;

const TOOL: Tool = Tool {
    name: "column",
    short: "c:eo:s:tR:N:n:JxLhV",
    long: &[
        ("output-width=", 'c'),
        ("columns=", 'c'),
        ("table", 't'),
        ("separator=", 's'),
        ("output-separator=", 'o'),
        ("table-right=", 'R'),
        ("table-name=", 'n'),
        ("json", 'J'),
        ("table-columns=", 'N'),
        ("fillrows", 'x'),
        ("keep-empty-lines", 'L'),
    ],
    help: "
Usage:
 column [options] [<file>...]

Columnate lists.

Options:
 -t, --table                      create a table
 -N, --table-columns <names>      comma separated columns names
 -J, --json                       use JSON output format for table
 -n, --table-name <name>          table name for JSON output
 -R, --table-right <columns>      right align text in these columns
 -L, --keep-empty-lines           don't ignore empty lines
 -c, --output-width <width>       width of output in number of characters
 -o, --output-separator <string>  columns separator for table output
                                    (default is two spaces)
 -s, --separator <string>         possible table delimiters
 -x, --fillrows                   fill rows before columns
     --help                       display this help
     --version                    display version
",
    misuse: 1,
};

struct Options {
    table: bool,
    separators: Option<String>,
    between: String,
    width: usize,
    right: Vec<String>,
    names: Vec<String>,
    json: bool,
    title: String,
    by_rows: bool,
    keeps_empty: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let window = || abi::winsize(1).ok().map(|(_, columns)| usize::from(columns));
    let variable = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let mut options = Options {
        table: false,
        separators: None,
        between: "  ".to_owned(),
        width: variable.or_else(window).filter(|width| *width > 0).unwrap_or(80),
        right: Vec::new(),
        names: Vec::new(),
        json: false,
        title: "table".to_owned(),
        by_rows: false,
        keeps_empty: false,
    };
    for (letter, text) in parsed.options {
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let list = || text.split(',').map(str::to_owned).collect::<Vec<_>>();
        match letter {
            't' => options.table = true,
            's' => options.separators = Some(text),
            'o' => options.between = text,
            'R' => options.right = list(),
            'N' => (options.names, options.table) = (list(), true),
            'J' => (options.json, options.table) = (true, true),
            'n' => options.title = text,
            'x' => options.by_rows = true,
            'L' => options.keeps_empty = true,
            'c' => {
                options.width = text.parse().map_err(|_| {
                    complain("column", format_args!("invalid columns argument: '{text}'"));
                    1
                })?;
            }
            _ => {}
        }
    }
    let mut lines = Vec::new();
    let mut code = 0;
    for operand in input::or_stdin(parsed.operands) {
        match input::read("column", &operand) {
            Some(content) => {
                let text = String::from_utf8_lossy(&content).into_owned();
                lines.extend(text.lines().map(str::to_owned));
            }
            None => code = 1,
        }
    }
    if !options.keeps_empty {
        lines.retain(|line| !line.trim().is_empty());
    }
    if options.json && options.names.is_empty() {
        complain("column", "option --table-columns required for --json");
        return Err(1);
    }
    let mut out = Out::new("column");
    if options.json {
        options.as_json(&lines, &mut out)
    } else if options.table {
        options.as_table(&lines, &mut out)
    } else {
        options.as_columns(&lines, &mut out)
    }
    Ok(code)
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// A text between quotes, as JSON has it.
fn json_string(text: &str) -> String {
    let mut shown = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => shown.extend(['\\', char]),
            '\t' => shown.push_str("\\t"),
            control if control < ' ' => shown.push_str(&format!("\\u{:04x}", u32::from(control))),
            char => shown.push(char),
        }
    }
    shown + "\""
}

impl Options {
    fn cells(&self, line: &str) -> Vec<String> {
        match &self.separators {
            // Each separator ends a cell, also an empty one.
            Some(separators) => line.split(|char| separators.contains(char)).map(str::to_owned).collect(),
            None => line.split_whitespace().map(str::to_owned).collect(),
        }
    }

    fn as_json(&self, lines: &[String], out: &mut Out) {
        let row = |line: &String| {
            let cells = self.cells(line);
            let members = self.names.iter().enumerate().map(|(at, name)| {
                let value = cells.get(at).filter(|cell| !cell.is_empty());
                let value = value.map_or("null".to_owned(), |cell| json_string(cell));
                format!("         {}: {value}", json_string(&name.to_lowercase()))
            });
            members.collect::<Vec<_>>().join(",\n")
        };
        let rows: Vec<String> = lines.iter().map(row).collect();
        let title = json_string(&self.title);
        out.put(format!("{{\n   {title}: [\n      {{\n{}\n      }}\n   ]\n}}\n", rows.join("\n      },{\n")));
    }

    fn as_table(&self, lines: &[String], out: &mut Out) {
        let cells = |line: &String| self.cells(line);
        let head = (!self.names.is_empty()).then(|| self.names.clone());
        let rows: Vec<Vec<String>> = head.into_iter().chain(lines.iter().map(cells)).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0))
            .collect();
        let is_right = |at: usize| {
            let name = self.names.get(at);
            self.right.iter().any(|right| *right == (at + 1).to_string() || Some(right) == name)
        };
        for row in &rows {
            let mut line = String::new();
            for (at, &room) in widths.iter().enumerate() {
                let cell = row.get(at).map_or("", String::as_str);
                let missing = " ".repeat(room - width(cell));
                let is_last = at + 1 == columns;
                match is_right(at) {
                    true => line.extend([&missing, cell]),
                    false if is_last => line += cell,
                    false => line.extend([cell, &missing]),
                }
                if !is_last {
                    line += &self.between;
                }
            }
            out.put(line + "\n");
        }
    }

    /// As many columns as fit, at tab stops.
    fn as_columns(&self, lines: &[String], out: &mut Out) {
        let longest = lines.iter().map(|line| width(line)).max().unwrap_or(0);
        let step = (longest / 8 + 1) * 8;
        if step >= self.width || lines.len() < 2 {
            lines.iter().for_each(|line| out.put(line.clone() + "\n"));
            return;
        }
        let columns = (self.width / step).max(1);
        let rows = lines.len().div_ceil(columns);
        for row in 0..rows {
            let place =
                |column: usize| if self.by_rows { row * columns + column } else { column * rows + row };
            let cells: Vec<&String> = (0..columns).filter_map(|column| lines.get(place(column))).collect();
            let mut line = String::new();
            for (at, cell) in cells.iter().enumerate() {
                line += cell;
                if at + 1 < cells.len() {
                    let tabs = (step - width(cell)).div_ceil(8);
                    line.extend(std::iter::repeat_n('\t', tabs));
                }
            }
            out.put(line + "\n");
        }
    }
}
