//! How differences are printed.

use super::compare::Hunk;
use super::text::Text;
use toolkit::out::Out;
use wardian_regex::Regex;

/// The form of the output.
#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Normal,
    Unified(usize),
    Context(usize),
    SideBySide,
    Ed,
    Rcs,
    /// Both files in one, for the C preprocessor to choose from.
    Ifdef,
}

/// The two files, as their headings name them, and their lines.
pub struct Pair<'a> {
    pub old: &'a Text,
    pub new: &'a Text,
    pub old_heading: String,
    pub new_heading: String,
    pub style: &'a Style,
}

/// How lines are dressed.
#[derive(Default)]
pub struct Style {
    /// `-t`: tabs become blanks.
    pub expands_tabs: bool,
    /// `-T`: a tab stands before each line, so that those in it are where they were.
    pub initial_tab: bool,
    pub colors: bool,
    /// `-p`, `-F`: the last line before a hunk that matches one of these is shown with it.
    pub functions: Vec<Regex>,
    /// Nothing stands before a line of context that is empty.
    pub bare_empty_lines: bool,
    /// `-D`: the name that chooses between old and new.
    pub macro_name: Vec<u8>,
    /// What `--palette` changed, by the names of its capabilities.
    pub palette: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What colours mean, as terminals know them.
#[derive(Clone, Copy)]
enum Color {
    Heading,
    Old,
    New,
    Place,
    None,
}

impl Style {
    /// A text in a colour.
    fn paint(&self, color: Color, text: &[u8]) -> Vec<u8> {
        let (name, code): (&[u8], &[u8]) = match color {
            Color::Heading => (b"hd", b"1"),
            Color::Old => (b"de", b"31"),
            Color::New => (b"ad", b"32"),
            Color::Place => (b"ln", b"36"),
            Color::None => return text.to_vec(),
        };
        if !self.colors {
            return text.to_vec();
        }
        let chosen =
            |name: &[u8]| self.palette.iter().find(|(known, _)| known == name).map(|(_, code)| &code[..]);
        let reset = chosen(b"rs").unwrap_or(b"0");
        [b"\x1b[", chosen(name).unwrap_or(code), b"m", text, b"\x1b[", reset, b"m"].concat()
    }

    /// Takes `--palette`: `rs=0:hd=1:ad=32:de=31:ln=36`.
    pub fn set_palette(&mut self, text: &[u8]) {
        for capability in text.split(|&byte| byte == b':').filter(|capability| !capability.is_empty()) {
            let at = capability.iter().position(|&byte| byte == b'=').unwrap_or(capability.len());
            let (name, code) = capability.split_at(at);
            let code = code.strip_prefix(b"=").unwrap_or_default();
            if ![b"rs", b"hd", b"ad", b"de", b"ln"].contains(&<&[u8; 2]>::try_from(name).unwrap_or(b"??"))
                || !code.iter().all(|byte| byte.is_ascii_digit() || *byte == b';')
            {
                toolkit::complain("diff", "unparsable value for --palette");
                self.palette.clear();
                self.colors = false;
                return;
            }
            self.palette.insert(0, (name.to_vec(), code.to_vec()));
        }
    }

    /// A line behind its mark; says so where it lacks its newline.
    fn put(&self, text: &Text, at: usize, mark: &[u8], color: Color, out: &mut Out) {
        let line = &text.lines[at];
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        let mark = match (mark, self.initial_tab) {
            (b" ", true) => b"\t".to_vec(),
            ([sign] | [sign, b' '], true) => vec![*sign, b'\t'],
            (mark, _) => mark.to_vec(),
        };
        let is_context = mark.iter().all(|byte| matches!(byte, b' ' | b'\t'));
        let mark = if self.bare_empty_lines && bare.is_empty() && is_context { Vec::new() } else { mark };
        let bare = if self.expands_tabs { super::text::expand(bare) } else { bare.to_vec() };
        out.put(self.paint(color, &[mark, bare].concat()));
        out.put(if line.ends_with(b"\n") { "\n" } else { "\n\\ No newline at end of file\n" });
    }
}

/// What `-y` is told.
#[derive(Clone, Copy)]
pub struct Sides {
    pub width: usize,
    pub left_only: bool,
    pub without_common: bool,
}

impl Pair<'_> {
    pub fn show(&self, hunks: &[Hunk], format: Format, sides: Sides, out: &mut Out) {
        match format {
            Format::Normal => hunks.iter().for_each(|hunk| self.normal(hunk, out)),
            Format::Ed => hunks.iter().rev().for_each(|hunk| self.ed(hunk, out)),
            Format::Rcs => hunks.iter().for_each(|hunk| self.rcs(hunk, out)),
            Format::Unified(context) => {
                self.headings(["---", "+++"], out);
                grouped(hunks, context).for_each(|group| self.unified(group, context, out));
            }
            Format::Context(context) => {
                self.headings(["***", "---"], out);
                grouped(hunks, context).for_each(|group| self.context(group, context, out));
            }
            Format::SideBySide => self.side_by_side(hunks, sides, out),
            Format::Ifdef => self.ifdef(hunks, out),
        }
    }

    /// `-D`: lines in common as they are, others between directives.
    fn ifdef(&self, hunks: &[Hunk], out: &mut Out) {
        let name = String::from_utf8_lossy(&self.style.macro_name).into_owned();
        let put = |text: &Text, from: usize, to: usize, out: &mut Out| {
            (from..to).for_each(|at| out.put(&text.lines[at]));
        };
        let mut at = 0;
        for hunk in hunks {
            put(self.new, at, hunk.new.0, out);
            let (has_old, has_new) = (hunk.old.0 < hunk.old.1, hunk.new.0 < hunk.new.1);
            if has_old {
                out.put(format!("#ifndef {name}\n"));
                put(self.old, hunk.old.0, hunk.old.1, out);
            }
            if has_new {
                out.put(if has_old { format!("#else /* {name} */\n") } else { format!("#ifdef {name}\n") });
                put(self.new, hunk.new.0, hunk.new.1, out);
            }
            let not = if has_new { "" } else { "! " };
            out.put(format!("#endif /* {not}{name} */\n"));
            at = hunk.new.1;
        }
        put(self.new, at, self.new.lines.len(), out);
    }

    fn headings(&self, marks: [&str; 2], out: &mut Out) {
        for (mark, heading) in marks.iter().zip([&self.old_heading, &self.new_heading]) {
            out.put(self.style.paint(Color::Heading, format!("{mark} {heading}").as_bytes()));
            out.put("\n");
        }
    }

    /// The line that says where a hunk is.
    fn place(&self, text: String, out: &mut Out) {
        out.put(self.style.paint(Color::Place, text.as_bytes()));
    }

    /// The function that a line is in: the last line before it that looks like one, after a blank.
    fn function(&self, before: usize) -> Vec<u8> {
        let is_function = |at: &usize| {
            let line = self.old.line(*at);
            self.style.functions.iter().any(|regex| regex.find_at(line, 0).is_some())
        };
        if self.style.functions.is_empty() {
            return Vec::new();
        }
        let Some(at) = (0..before).rev().find(is_function) else { return Vec::new() };
        let line = self.old.line(at).trim_ascii_start();
        [b" ", line[..line.len().min(40)].trim_ascii_end()].concat()
    }

    fn normal(&self, hunk: &Hunk, out: &mut Out) {
        let letter = match (hunk.old.0 == hunk.old.1, hunk.new.0 == hunk.new.1) {
            (true, _) => 'a',
            (_, true) => 'd',
            _ => 'c',
        };
        self.place(format!("{}{letter}{}", span(hunk.old), span(hunk.new)), out);
        out.put("\n");
        (hunk.old.0..hunk.old.1).for_each(|at| self.style.put(self.old, at, b"< ", Color::Old, out));
        if letter == 'c' {
            out.put("---\n");
        }
        (hunk.new.0..hunk.new.1).for_each(|at| self.style.put(self.new, at, b"> ", Color::New, out));
    }

    fn ed(&self, hunk: &Hunk, out: &mut Out) {
        let (letter, has_text) = match (hunk.old.0 == hunk.old.1, hunk.new.0 == hunk.new.1) {
            (true, _) => ('a', true),
            (_, true) => ('d', false),
            _ => ('c', true),
        };
        out.put(format!("{}{letter}\n", span(hunk.old)));
        if has_text {
            (hunk.new.0..hunk.new.1).for_each(|at| out.put([self.new.line(at), b"\n"].concat()));
            out.put(".\n");
        }
    }

    /// The script of `-n`: what is deleted and added, by line and count.
    fn rcs(&self, hunk: &Hunk, out: &mut Out) {
        let (deleted, added) = (hunk.old.1 - hunk.old.0, hunk.new.1 - hunk.new.0);
        if deleted > 0 {
            out.put(format!("d{} {deleted}\n", hunk.old.0 + 1));
        }
        if added > 0 {
            out.put(format!("a{} {added}\n", hunk.old.1));
            (hunk.new.0..hunk.new.1).for_each(|at| out.put([self.new.line(at), b"\n"].concat()));
        }
    }

    /// The lines around a group of hunks, in both files.
    fn around(&self, group: &[Hunk], context: usize) -> Hunk {
        let (first, last) = (group[0], group[group.len() - 1]);
        let before = first.old.0.min(context);
        let after = (self.old.lines.len() - last.old.1).min(context);
        Hunk {
            old: (first.old.0 - before, last.old.1 + after),
            new: (first.new.0 - before, last.new.1 + after),
        }
    }

    fn unified(&self, group: &[Hunk], context: usize, out: &mut Out) {
        let around = self.around(group, context);
        self.place(format!("@@ -{} +{} @@", counted(around.old), counted(around.new)), out);
        out.put(self.function(around.old.0));
        out.put("\n");
        let mut at = around.old.0;
        for hunk in group {
            (at..hunk.old.0).for_each(|at| self.style.put(self.old, at, b" ", Color::None, out));
            (hunk.old.0..hunk.old.1).for_each(|at| self.style.put(self.old, at, b"-", Color::Old, out));
            (hunk.new.0..hunk.new.1).for_each(|at| self.style.put(self.new, at, b"+", Color::New, out));
            at = hunk.old.1;
        }
        (at..around.old.1).for_each(|at| self.style.put(self.old, at, b" ", Color::None, out));
    }

    fn context(&self, group: &[Hunk], context: usize, out: &mut Out) {
        let around = self.around(group, context);
        out.put("***************");
        out.put(self.function(around.old.0));
        out.put("\n");
        self.place(format!("*** {} ****", lines_of(around.old)), out);
        out.put("\n");
        let is_change = |hunk: &Hunk| hunk.old.0 < hunk.old.1 && hunk.new.0 < hunk.new.1;
        if group.iter().any(|hunk| hunk.old.0 < hunk.old.1) {
            let mut at = around.old.0;
            for hunk in group {
                (at..hunk.old.0).for_each(|at| self.style.put(self.old, at, b"  ", Color::Old, out));
                let mark: &[u8] = if is_change(hunk) { b"! " } else { b"- " };
                (hunk.old.0..hunk.old.1).for_each(|at| self.style.put(self.old, at, mark, Color::Old, out));
                at = hunk.old.1;
            }
            (at..around.old.1).for_each(|at| self.style.put(self.old, at, b"  ", Color::Old, out));
        }
        self.place(format!("--- {} ----", lines_of(around.new)), out);
        out.put("\n");
        if group.iter().any(|hunk| hunk.new.0 < hunk.new.1) {
            let mut at = around.new.0;
            for hunk in group {
                (at..hunk.new.0).for_each(|at| self.style.put(self.new, at, b"  ", Color::New, out));
                let mark: &[u8] = if is_change(hunk) { b"! " } else { b"+ " };
                (hunk.new.0..hunk.new.1).for_each(|at| self.style.put(self.new, at, mark, Color::New, out));
                at = hunk.new.1;
            }
            (at..around.new.1).for_each(|at| self.style.put(self.new, at, b"  ", Color::New, out));
        }
    }

    fn side_by_side(&self, hunks: &[Hunk], sides: Sides, out: &mut Out) {
        let layout = Columns::new(sides.width, self.style);
        let (mut x, mut y) = (0, 0);
        let end = Hunk {
            old: (self.old.lines.len(), self.old.lines.len()),
            new: (self.new.lines.len(), self.new.lines.len()),
        };
        for hunk in hunks.iter().chain([&end]) {
            while x < hunk.old.0 {
                if !sides.without_common {
                    let (old, new) = (&self.old.lines[x][..], &self.new.lines[y][..]);
                    match sides.left_only {
                        true => layout.put(Some(old), b'(', None, out),
                        false => layout.put(Some(old), b' ', Some(new), out),
                    }
                }
                (x, y) = (x + 1, y + 1);
            }
            while x < hunk.old.1 || y < hunk.new.1 {
                let old = (x < hunk.old.1).then(|| &self.old.lines[x][..]);
                let new = (y < hunk.new.1).then(|| &self.new.lines[y][..]);
                let is_whole = |line: &[u8]| line.ends_with(b"\n");
                let mark = match (old, new) {
                    (Some(old), Some(new)) if is_whole(old) && !is_whole(new) => b'/',
                    (Some(old), Some(new)) if !is_whole(old) && is_whole(new) => b'\\',
                    (Some(_), Some(_)) => b'|',
                    (Some(_), None) => b'<',
                    _ => b'>',
                };
                layout.put(old, mark, new, out);
                (x, y) = (x + usize::from(old.is_some()), y + usize::from(new.is_some()));
            }
        }
    }
}

/// Hunks whose lines around them touch go together.
fn grouped(hunks: &[Hunk], context: usize) -> impl Iterator<Item = &[Hunk]> {
    hunks.chunk_by(move |left, right| right.old.0 - left.old.1 <= 2 * context)
}

/// Lines as a normal diff counts them: `3`, `3,5`, or the one before for none.
fn span((start, end): (usize, usize)) -> String {
    match end - start {
        0 => start.to_string(),
        1 => end.to_string(),
        _ => format!("{},{end}", start + 1),
    }
}

/// Lines as a unified diff counts them: the first and how many.
fn counted((start, end): (usize, usize)) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => end.to_string(),
        count => format!("{},{count}", start + 1),
    }
}

/// Lines as a context diff counts them: the first and the last.
fn lines_of((start, end): (usize, usize)) -> String {
    if end - start <= 1 { end.to_string() } else { format!("{},{end}", start + 1) }
}

/// Where the two halves of a line stand.
struct Columns<'a> {
    half: usize,
    second: usize,
    style: &'a Style,
}

impl Columns<'_> {
    fn new(width: usize, style: &Style) -> Columns<'_> {
        // The second column starts at a tab stop, with three columns between.
        let width = width as isize;
        let tab = if style.expands_tabs { 1 } else { 8 };
        let offset = ((width + tab + 3) / (2 * tab) * tab).max(0);
        let half = (offset - 3).min(width - offset).max(0) as usize;
        Columns { half, second: if half == 0 { width as usize } else { offset as usize }, style }
    }

    /// Prints two lines side by side, with a newline if one of them has it.
    fn put(&self, old: Option<&[u8]>, mark: u8, new: Option<&[u8]>, out: &mut Out) {
        let is_whole = [old, new].iter().flatten().any(|line| line.ends_with(b"\n"));
        let without = |line: &'_ [u8]| line.strip_suffix(b"\n").map_or(line.len(), <[u8]>::len);
        let (old, new) = (old.map(|line| &line[..without(line)]), new.map(|line| &line[..without(line)]));
        let mut line = Vec::new();
        let mut column = old.map_or(0, |old| fill(old, self.half, 0, self.style.expands_tabs, &mut line));
        if mark != b' ' || new.is_some_and(|new| !new.is_empty()) {
            let at = if mark == b' ' { self.second } else { (self.half + self.second - 1) / 2 };
            column = self.pad(column, at, &mut line);
            if mark != b' ' {
                line.push(mark);
                column += 1;
            }
        }
        if let Some(new) = new.filter(|new| !new.is_empty()) {
            self.pad(column, self.second, &mut line);
            fill(new, self.half, self.second, self.style.expands_tabs, &mut line);
        }
        let color = match mark {
            b'<' => Color::Old,
            b'>' => Color::New,
            _ => Color::None,
        };
        if is_whole {
            line.push(b'\n');
        }
        out.put(self.style.paint(color, &line));
    }

    /// Goes on to a column, by tabs as far as they go.
    fn pad(&self, mut column: usize, to: usize, line: &mut Vec<u8>) -> usize {
        while !self.style.expands_tabs && (column / 8 + 1) * 8 <= to {
            line.push(b'\t');
            column = (column / 8 + 1) * 8;
        }
        line.resize(line.len() + to.saturating_sub(column), b' ');
        to.max(column)
    }
}

/// As much of a line as fits; answers the column it ends at.
fn fill(text: &[u8], width: usize, start: usize, expands_tabs: bool, line: &mut Vec<u8>) -> usize {
    let mut column = 0;
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            let next = (column / 8 + 1) * 8;
            if char == '\t' && expands_tabs {
                line.resize(line.len() + next.min(width) - column, b' ');
                column = next.min(width);
            } else if char == '\t' && next < width {
                line.push(b'\t');
                column = next;
            } else if char != '\t' && column < width {
                line.extend(char.encode_utf8(&mut [0; 4]).bytes());
                column += 1;
            } else {
                return start + column;
            }
        }
        line.extend_from_slice(chunk.invalid());
        column += chunk.invalid().len();
    }
    start + column
}
