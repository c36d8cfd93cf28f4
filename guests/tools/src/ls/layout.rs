//! How the files of a listing are put on lines.

use super::colors::Colors;
use super::entry::Entry;
use super::options::{Format, Indicator, Options, Quoting};
use toolkit::clock::{self, Clock};
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::size::device;
use toolkit::{mode, quote};
use wardian_abi::Stat;

pub struct Layout<'a> {
    options: &'a Options,
    colors: Option<Colors>,
    /// Whether a colour was used, before which the terminal is reset once.
    used_color: bool,
    clock: Clock,
    now: i64,
    users: Names,
    groups: Names,
}

/// A file as it will be printed: what comes before its name, the name, and how wide both are.
struct Cell {
    before: String,
    name: Vec<u8>,
    width: usize,
}

impl<'a> Layout<'a> {
    pub fn new(options: &'a Options) -> Self {
        let colors = options.color.then(Colors::new);
        // Numbers need no names.
        let known = options.format == Format::Long && !options.numeric;
        let (users, groups) =
            if known { (Names::users(), Names::groups()) } else { (Names::none(), Names::none()) };
        Layout { options, colors, used_color: false, clock: Clock::new(), now: clock::now(), users, groups }
    }

    /// The name of a directory above its files.
    pub fn header(&self, path: &[u8]) -> Vec<u8> {
        match self.options.quoting {
            Quoting::ShellEscape if path.contains(&b':') => quote::always(path).into_bytes(),
            _ => self.quoted(path),
        }
    }

    pub fn print(&mut self, entries: &[Entry], out: &mut Out) {
        let cells = self.cells(entries);
        match self.options.format {
            Format::Long | Format::OnePerLine => {
                for cell in cells {
                    out.put([cell.before.as_bytes(), &cell.name, &[self.options.end]].concat());
                }
            }
            Format::Columns => self.columns(&cells, out, true),
            Format::Across => self.columns(&cells, out, false),
            Format::Commas => self.commas(&cells, out),
        }
    }

    fn cells(&mut self, entries: &[Entry]) -> Vec<Cell> {
        let before = self.fields(entries);
        let quoted: Vec<Vec<u8>> = entries.iter().map(|entry| self.quoted(&entry.name)).collect();
        let aligns = self.options.quoting == Quoting::ShellEscape
            && !matches!(self.options.format, Format::OnePerLine | Format::Commas)
            && quoted.iter().any(|name| matches!(name.first(), Some(b'\'' | b'"')));
        let mut cells = Vec::with_capacity(entries.len());
        for ((entry, before), name) in entries.iter().zip(before).zip(quoted) {
            let padding = if aligns && !matches!(name.first(), Some(b'\'' | b'"')) { " " } else { "" };
            let indicator = self.indicator(entry.stat.as_ref());
            let width = before.len() + padding.len() + shown_width(&name) + indicator.len();
            let color = self.colors.as_ref().and_then(|colors| colors.of(entry)).map(str::to_owned);
            let mut text = padding.as_bytes().to_vec();
            text.extend(self.painted(&name, color.as_deref()));
            text.extend(self.behind(entry, indicator));
            cells.push(Cell { before, name: text, width });
        }
        cells
    }

    /// What follows a name: in a long listing of a link, where it points.
    fn behind(&mut self, entry: &Entry, indicator: &'static str) -> Vec<u8> {
        let Some(target) = entry.target.as_ref().filter(|_| self.options.format == Format::Long) else {
            return indicator.as_bytes().to_vec();
        };
        let color = self.colors.as_ref().and_then(|colors| colors.of_target(entry)).map(str::to_owned);
        let name = self.quoted(&target.name);
        let mut text = b" -> ".to_vec();
        text.extend(self.painted(&name, color.as_deref()));
        if target.stat.is_some() {
            text.extend(self.indicator(target.stat.as_ref()).bytes());
        }
        text
    }

    fn painted(&mut self, name: &[u8], color: Option<&str>) -> Vec<u8> {
        let Some(color) = color else { return name.to_vec() };
        let reset = if std::mem::replace(&mut self.used_color, true) { "" } else { "\x1b[0m" };
        [format!("{reset}\x1b[{color}m").as_bytes(), name, b"\x1b[0m".as_slice()].concat()
    }

    fn quoted(&self, name: &[u8]) -> Vec<u8> {
        match self.options.quoting {
            Quoting::Literal if self.options.question_marks => without_controls(name),
            Quoting::Literal => name.to_vec(),
            Quoting::ShellEscape => quote::for_shell(name).into_bytes(),
            Quoting::ShellEscapeAlways => quote::always(name).into_bytes(),
            Quoting::C => quote::in_c(name, true).into_bytes(),
            Quoting::Escape => quote::in_c(name, false).into_bytes(),
        }
    }

    fn indicator(&self, stat: Option<&Stat>) -> &'static str {
        let (Some(stat), wanted) = (stat, self.options.indicator) else { return "" };
        match stat.kind() {
            _ if wanted == Indicator::None => "",
            0o040_000 => "/",
            _ if wanted == Indicator::Slash => "",
            0o120_000 => "@",
            0o010_000 => "|",
            0o140_000 => "=",
            0o100_000 if wanted == Indicator::Classify && stat.mode & 0o111 != 0 => "*",
            _ => "",
        }
    }

    /// What stands before each name, aligned.
    fn fields(&self, entries: &[Entry]) -> Vec<String> {
        let devices =
            entries.iter().filter_map(|entry| entry.stat).filter(|stat| stat.is_char() || stat.is_block());
        let minor_width = devices.map(|stat| device(stat.rdev).1.to_string().len()).max().unwrap_or(0);
        let rows: Vec<Vec<Field>> = entries.iter().map(|entry| self.row(entry, minor_width)).collect();
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let aligned = self.options.format != Format::Commas;
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(Field::width).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..count).map(|column| if aligned { width(column) } else { 0 }).collect();
        rows.iter()
            .map(|row| row.iter().zip(&widths).map(|(field, width)| field.padded(*width)).collect())
            .collect()
    }

    fn row(&self, entry: &Entry, minor_width: usize) -> Vec<Field> {
        let options = self.options;
        let mut row = Vec::new();
        let known =
            |value: &dyn Fn(&Stat) -> String| entry.stat.as_ref().map_or_else(|| "?".to_owned(), value);
        if options.inode {
            row.push(Field::Right(known(&|stat| stat.ino.to_string())));
        }
        if options.blocks {
            row.push(Field::Right(known(&|stat| options.block_scale.show(u128::from(stat.blocks) * 512))));
        }
        if options.format != Format::Long {
            return row;
        }
        row.push(Field::Left(known(&|stat| mode::letters(stat.mode))));
        row.push(Field::Right(known(&|stat| stat.nlink.to_string())));
        if options.owner {
            row.push(self.who(known(&|stat| self.users.show(stat.uid))));
        }
        if options.group {
            row.push(self.who(known(&|stat| self.groups.show(stat.gid))));
        }
        if options.author {
            row.push(self.who(known(&|stat| self.users.show(stat.uid))));
        }
        row.push(Field::Right(known(&|stat| self.size(stat, minor_width))));
        row.push(Field::Right(known(&|_| self.time(entry.time))));
        row
    }

    /// Names stand to the left, numbers to the right.
    fn who(&self, text: String) -> Field {
        if self.options.numeric { Field::Right(text) } else { Field::Left(text) }
    }

    fn size(&self, stat: &Stat, minor_width: usize) -> String {
        if stat.is_char() || stat.is_block() {
            let (major, minor) = device(stat.rdev);
            return format!("{major}, {minor:>minor_width$}");
        }
        self.options.size_scale.show(u128::from(stat.size))
    }

    fn time(&self, nanos: i64) -> String {
        let recent = nanos <= self.now && self.now.saturating_sub(nanos) < clock::HALF_YEAR;
        match self.options.time_style.trim_start_matches("posix-") {
            "full-iso" => self.clock.full(nanos),
            "long-iso" => self.clock.format(nanos, "%Y-%m-%d %H:%M"),
            "iso" => self.clock.format(nanos, if recent { "%m-%d %H:%M" } else { "%Y-%m-%d " }),
            style => match style.strip_prefix('+') {
                Some(format) => {
                    let (old, new) = format.split_once('\n').unwrap_or((format, format));
                    self.clock.format(nanos, if recent { new } else { old })
                }
                None => self.clock.short(nanos, self.now),
            },
        }
    }

    /// As many columns as the width allows, downwards or across.
    fn columns(&self, cells: &[Cell], out: &mut Out, downwards: bool) {
        let (rows, widths) = fit(cells, self.options.width, downwards);
        let columns = widths.len().max(1);
        for row in 0..rows {
            let mut position = 0;
            for (column, width) in widths.iter().enumerate() {
                let at = if downwards { column * rows + row } else { row * columns + column };
                let Some(cell) = cells.get(at) else { break };
                let next = if downwards {
                    at + rows
                } else if column + 1 < columns {
                    at + 1
                } else {
                    usize::MAX
                };
                out.put(&cell.before);
                out.put(&cell.name);
                if next < cells.len() {
                    self.indent(position + cell.width, position + width, out);
                }
                position += width;
            }
            out.put([self.options.end]);
        }
    }

    fn indent(&self, mut from: usize, to: usize, out: &mut Out) {
        // A tab after a colour would be painted by some terminals.
        let tab = if self.options.color { 0 } else { self.options.tab };
        while from < to {
            if tab != 0 && to / tab > (from + 1) / tab {
                out.put("\t");
                from += tab - from % tab;
            } else {
                out.put(" ");
                from += 1;
            }
        }
    }

    fn commas(&self, cells: &[Cell], out: &mut Out) {
        let limit = if self.options.width == 0 { usize::MAX } else { self.options.width };
        let mut position = 0;
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                let fits = position + cell.width + 2 < limit;
                out.put(if fits { ", " } else { ",\n" });
                position = if fits { position + 2 } else { 0 };
            }
            out.put(&cell.before);
            out.put(&cell.name);
            position += cell.width;
        }
        if !cells.is_empty() {
            out.put([self.options.end]);
        }
    }
}

enum Field {
    Left(String),
    Right(String),
}

impl Field {
    fn width(&self) -> usize {
        let (Field::Left(text) | Field::Right(text)) = self;
        text.chars().count()
    }

    fn padded(&self, width: usize) -> String {
        match self {
            Field::Left(text) => format!("{text:<width$} "),
            Field::Right(text) => format!("{text:>width$} "),
        }
    }
}

/// The most columns that fit: the number of rows, and the width of each column with the space behind it.
fn fit(cells: &[Cell], limit: usize, downwards: bool) -> (usize, Vec<usize>) {
    let most = if limit == 0 { cells.len() } else { limit.div_ceil(3).max(1).min(cells.len()) };
    for columns in (1..=most).rev() {
        let rows = cells.len().div_ceil(columns);
        let mut widths = vec![3; columns];
        let mut fits = true;
        for (at, cell) in cells.iter().enumerate() {
            let column = if downwards { at / rows } else { at % columns };
            let space = if column + 1 == columns { 0 } else { 2 };
            // Columns as narrow as can be always fit: GNU looks again only where one grows.
            if widths[column] < cell.width + space {
                widths[column] = cell.width + space;
                fits = widths.iter().sum::<usize>() < limit;
            }
        }
        if columns == 1 || limit == 0 || fits {
            return (rows, widths);
        }
    }
    (0, Vec::new())
}

/// Characters, which are all taken to be one cell wide.
fn shown_width(name: &[u8]) -> usize {
    String::from_utf8_lossy(name).chars().count()
}

fn without_controls(name: &[u8]) -> Vec<u8> {
    let shown = |char: char| if char.is_control() || char == '\u{fffd}' { '?' } else { char };
    String::from_utf8_lossy(name).chars().map(shown).collect::<String>().into_bytes()
}
