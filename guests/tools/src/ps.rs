//! `ps`: the processes there are, as procps' shows them.

use std::collections::HashSet;
use toolkit::args::bytes_of;
use toolkit::clock::{self, Clock};
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::processes::{self, Process, TICKS};
use toolkit::table::Align;
use toolkit::{Arguments, complain};
use wardian_abi as abi;

const HELP: &str = "
Usage:
 ps [options]

Basic options:
 -A, -e               all processes
 -a                   all with tty, except session leaders
  a                   all with tty, including other users
 -d                   all except session leaders
 -N, --deselect       negate selection
  T                   all processes on this terminal
  x                   processes without controlling ttys

Selection by list:
 -C <command>         command name
 -p, p, --pid <PID>   process id
     --ppid <PID>     parent process id
 -g, --group <GID>    session or effective group name
 -u, U, --user <UID>  effective user id or name

Output formats:
 -f                   full-format, including command lines
 -F                   extra full
 -l, l                long format
 -j, j                jobs format
 -o, o, --format <format>
                      user-defined format
  u                   user-oriented format
     --no-headers     do not print header at all
     --sort <keys>    specify sort order as: [+|-]key[,[+|-]key[,...]]
 -w, w                unlimited output width
     --help           display this help and exit
     --version        output version information and exit

The processes of a sandbox are all of one user and on no terminal.
";

/// A column: the names it goes by in `-o`, its title, its width, its side.
struct Kind {
    names: &'static [&'static str],
    title: &'static str,
    width: usize,
    align: Align,
    value: fn(&Process, &Shown) -> String,
}

/// What values are made with.
struct Shown {
    users: Names,
    groups: Names,
    clock: Clock,
    /// Nanoseconds since 1970.
    now: i64,
    uptime: f64,
    /// KiB of memory there are.
    memory: u64,
}

impl Shown {
    fn new() -> Shown {
        Shown {
            users: Names::users(),
            groups: Names::groups(),
            clock: Clock::new(),
            now: clock::now(),
            uptime: processes::uptime(),
            memory: processes::memory("MemTotal"),
        }
    }

    /// Seconds a process has been there.
    fn age(&self, process: &Process) -> u64 {
        (self.uptime - process.started as f64 / TICKS as f64).max(0.0) as u64
    }

    fn started(&self, process: &Process) -> i64 {
        self.now - (self.age(process) as i64).saturating_mul(1_000_000_000)
    }

    /// The share of a processor a process had, in percent.
    fn cpu(&self, process: &Process) -> f64 {
        match self.age(process) {
            0 => 0.0,
            age => process.cpu as f64 / TICKS as f64 * 100.0 / age as f64,
        }
    }

    fn memory_share(&self, process: &Process) -> f64 {
        process.resident as f64 / 1024.0 * 100.0 / self.memory.max(1) as f64
    }
}

macro_rules! kinds {
    ($($names:expr, $title:literal, $width:literal, $align:ident, $value:expr;)*) => {
        &[$(Kind { names: &$names, title: $title, width: $width, align: Align::$align, value: $value }),*]
    };
}

const KINDS: &[Kind] = kinds! {
    ["pid", "tgid"], "PID", 5, Right, |p, _| p.pid.to_string();
    ["ppid"], "PPID", 5, Right, |p, _| p.parent.to_string();
    ["pgid", "pgrp"], "PGID", 5, Right, |p, _| p.group.to_string();
    ["sid", "sess", "session"], "SID", 5, Right, |p, _| p.session.to_string();
    ["tpgid"], "TPGID", 5, Right, |p, _| p.foreground.to_string();
    ["user", "uname", "euser"], "USER", 8, Left, |p, shown| p.user(&shown.users);
    ["ruser"], "RUSER", 8, Left, |p, shown| p.user(&shown.users);
    ["uid", "euid"], "UID", 5, Right, |p, _| p.uid.to_string();
    ["ruid"], "RUID", 5, Right, |p, _| p.uid.to_string();
    ["group", "egroup"], "GROUP", 8, Left, |p, shown| shown.groups.show(p.gid);
    ["rgroup"], "RGROUP", 8, Left, |p, shown| shown.groups.show(p.gid);
    ["gid", "egid"], "GID", 5, Right, |p, _| p.gid.to_string();
    ["rgid"], "RGID", 5, Right, |p, _| p.gid.to_string();
    ["tty", "tt"], "TT", 8, Left, |p, _| p.terminal_name();
    ["tname"], "TTY", 8, Left, |p, _| p.terminal_name();
    ["s", "state"], "S", 1, Left, |p, _| p.state.to_string();
    ["stat"], "STAT", 4, Left, |p, _| states(p);
    ["time", "cputime"], "TIME", 8, Right, |p, _| clock_time(p.cpu / TICKS);
    ["bsdtime"], "TIME", 6, Right, |p, _| format!("{}:{:02}", p.cpu / TICKS / 60, p.cpu / TICKS % 60);
    ["cputimes", "times"], "TIME", 8, Right, |p, _| (p.cpu / TICKS).to_string();
    ["etime"], "ELAPSED", 11, Right, |p, shown| elapsed(shown.age(p));
    ["etimes"], "ELAPSED", 7, Right, |p, shown| shown.age(p).to_string();
    ["start"], "STARTED", 8, Right, start;
    ["start_time", "bsdstart"], "START", 5, Right, start_of_day;
    ["stime"], "STIME", 5, Right, start_of_day;
    ["lstart"], "STARTED", 24, Right, |p, shown| shown.clock.format(shown.started(p), "%a %b %e %H:%M:%S %Y");
    ["pcpu", "%cpu"], "%CPU", 4, Right, |p, shown| tenths(shown.cpu(p));
    ["c"], "C", 2, Right, |p, shown| (shown.cpu(p) as u64).min(99).to_string();
    ["pmem", "%mem"], "%MEM", 4, Right, |p, shown| tenths(shown.memory_share(p));
    ["vsz", "vsize"], "VSZ", 6, Right, |p, _| (p.memory / 1024).to_string();
    ["rss", "rssize", "rsz"], "RSS", 5, Right, |p, _| (p.resident / 1024).to_string();
    ["sz"], "SZ", 5, Right, |p, _| (p.memory / 4096).to_string();
    ["size"], "SIZE", 5, Right, |p, _| (p.memory / 1024).to_string();
    ["ni", "nice"], "NI", 3, Right, |p, _| p.nice.to_string();
    ["pri"], "PRI", 3, Right, |p, _| (39 - p.priority).to_string();
    ["opri", "priority"], "PRI", 3, Right, |p, _| (60 + p.priority).to_string();
    ["nlwp", "thcount"], "NLWP", 4, Right, |p, _| p.threads.to_string();
    ["f", "flag", "flags"], "F", 1, Right, |p, _| format!("{:o}", (p.flags >> 6) & 7);
    ["psr"], "PSR", 3, Right, |_, _| "0".to_owned();
    ["wchan"], "WCHAN", 6, Left, |_, _| "-".to_owned();
    ["addr_1"], "ADDR", 1, Left, |_, _| "-".to_owned();
    ["addr"], "ADDR", 4, Left, |_, _| "-".to_owned();
    ["comm", "ucomm"], "COMMAND", 15, Left, |p, _| name(p);
    ["ucmd"], "CMD", 15, Left, |p, _| name(p);
    ["args", "command"], "COMMAND", 27, Left, |p, _| p.command_line();
    ["cmd"], "CMD", 27, Left, |p, _| p.command_line();
};

/// A percentage as procps prints it: cut, not rounded.
fn tenths(percent: f64) -> String {
    let tenths = (percent * 10.0) as u64;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn name(process: &Process) -> String {
    if process.state == 'Z' { format!("{} <defunct>", process.name) } else { process.name.clone() }
}

fn states(process: &Process) -> String {
    let mut text = String::from(process.state);
    if process.nice != 0 {
        text.push(if process.nice < 0 { '<' } else { 'N' });
    }
    if process.session == process.pid {
        text.push('s');
    }
    if process.threads > 1 {
        text.push('l');
    }
    if process.foreground == process.group {
        text.push('+');
    }
    text
}

/// `HH:MM:SS`, after the days if there are any.
fn clock_time(seconds: u64) -> String {
    let days = match seconds / 86_400 {
        0 => String::new(),
        days => format!("{days}-"),
    };
    format!("{days}{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// `MM:SS`, with what is longer before it.
fn elapsed(seconds: u64) -> String {
    match seconds {
        0..3600 => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        _ => clock_time(seconds),
    }
}

/// The time of day within a day, then the date.
fn start(process: &Process, shown: &Shown) -> String {
    let format = if shown.age(process) < 86_400 { "%H:%M:%S" } else { "  %b %d" };
    shown.clock.format(shown.started(process), format)
}

/// The time of day until midnight, then the date.
fn start_of_day(process: &Process, shown: &Shown) -> String {
    let (started, day) = (shown.started(process), |nanos| shown.clock.format(nanos, "%Y%j"));
    let format = if day(started) == day(shown.now) { "%H:%M" } else { "%b%d" };
    shown.clock.format(started, format)
}

struct Column {
    kind: &'static Kind,
    title: String,
}

impl Column {
    fn named(name: &str) -> Option<Column> {
        let kind = KINDS.iter().find(|kind| kind.names.contains(&name.to_ascii_lowercase().as_str()))?;
        let title = match name {
            "euser" => "EUSER",
            "euid" => "EUID",
            "egid" => "EGID",
            "egroup" => "EGROUP",
            "pgrp" => "PGRP",
            "sess" => "SESS",
            _ => kind.title,
        };
        Some(Column { kind, title: title.to_owned() })
    }

    fn titled(name: &str, title: &str) -> Column {
        Column { kind: Column::named(name).map_or(&KINDS[0], |column| column.kind), title: title.to_owned() }
    }

    fn width(&self) -> usize {
        // The long format lets the title of the one run into the next.
        if self.kind.names == ["addr_1"] { 1 } else { self.kind.width.max(self.title.len()) }
    }
}

/// Which processes are shown.
#[derive(Default)]
struct Selection {
    all: bool,
    /// `-a`, `a`: those with a terminal.
    with_terminal: bool,
    any_user: bool,
    no_leaders: bool,
    pids: Option<HashSet<i32>>,
    parents: Option<HashSet<i32>>,
    users: Option<HashSet<u32>>,
    groups: Option<HashSet<u32>>,
    sessions: Option<HashSet<i32>>,
    commands: Option<HashSet<String>>,
    negated: bool,
}

impl Selection {
    fn is_by_list(&self) -> bool {
        self.pids.is_some()
            || self.parents.is_some()
            || self.users.is_some()
            || self.groups.is_some()
            || self.sessions.is_some()
            || self.commands.is_some()
    }

    fn contains(&self, process: &Process, own: &Process) -> bool {
        let in_list = self.pids.as_ref().is_some_and(|set| set.contains(&process.pid))
            || self.parents.as_ref().is_some_and(|set| set.contains(&process.parent))
            || self.users.as_ref().is_some_and(|set| set.contains(&process.uid))
            || self.groups.as_ref().is_some_and(|set| set.contains(&process.gid))
            || self.sessions.as_ref().is_some_and(|set| set.contains(&process.session))
            || self.commands.as_ref().is_some_and(|set| set.contains(&process.name));
        let usual = || {
            let leads = process.pid == process.session;
            match () {
                () if self.all => true,
                () if self.no_leaders => !leads,
                () if self.with_terminal && self.any_user => process.terminal != 0,
                () if self.with_terminal => process.terminal != 0 && !leads,
                () if self.any_user => process.uid == own.uid,
                () => process.uid == own.uid && process.terminal == own.terminal,
            }
        };
        let broad = self.all || self.no_leaders || self.with_terminal;
        let selected = in_list || ((broad || !self.is_by_list()) && usual());
        selected != self.negated
    }
}

struct Command {
    selection: Selection,
    columns: Vec<Column>,
    sort: Vec<(bool, String)>,
    headers: bool,
    wide: bool,
    forest: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    match Command::parse(bytes_of(arguments)) {
        Ok(command) => command.run(),
        Err(Stop::Done(code)) => code,
        Err(Stop::Wrong(message)) => {
            complain("error", message);
            let usage = "\nUsage:\n ps [options]\n\n Try 'ps --help <simple|list|output|threads|misc|all>'\n  or 'ps --help <s|l|o|t|m|a>'\n for additional help text.\n\nFor more details see ps(1).\n";
            let _ = abi::write_all(2, usage.as_bytes());
            1
        }
    }
}

/// Why there is nothing to list.
enum Stop {
    Done(i32),
    Wrong(String),
}

/// What the options ask for, as they are read.
#[derive(Default)]
struct Wanted {
    selection: Selection,
    listed: Vec<Column>,
    style: Option<&'static str>,
    sort: Vec<(bool, String)>,
    no_headers: bool,
    wide: bool,
    forest: bool,
    /// `x`: also without a terminal. `a`: also of other users.
    bsd_x: bool,
    bsd_a: bool,
}

impl Command {
    fn parse(words: Vec<Vec<u8>>) -> Result<Command, Stop> {
        let mut wanted = Wanted::default();
        let mut rest = words.into_iter().map(|word| String::from_utf8_lossy(&word).into_owned());
        while let Some(word) = rest.next() {
            if let Some(long) = word.strip_prefix("--") {
                wanted.long(long, &mut rest)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                wanted.letters(letters, &mut rest)?;
            } else {
                wanted.bsd_letters(&word, &mut rest)?;
            }
        }
        Ok(wanted.finish())
    }

    fn run(&self) -> i32 {
        let shown = Shown::new();
        let all = processes::all();
        let own = processes::read(abi::getpid()).unwrap_or_default();
        let mut selected: Vec<&Process> =
            all.iter().filter(|process| self.selection.contains(process, &own)).collect();
        self.arrange(&mut selected, &shown);
        let mut out = Out::new("ps");
        let width = if self.wide || !abi::isatty(1) { usize::MAX } else { terminal_width() };
        let mut put = |line: String| {
            let cut: String = line.chars().take(width).collect();
            out.put(cut + "\n");
        };
        if self.headers && self.columns.iter().any(|column| !column.title.is_empty()) {
            put(self.line(|column| column.title.clone()));
        }
        for process in &selected {
            let depth = if self.forest { depth_of(process, &selected) } else { 0 };
            put(self.line(|column| {
                let value = (column.kind.value)(process, &shown);
                let is_command = ["CMD", "COMMAND"].contains(&column.kind.title);
                if depth > 0 && is_command {
                    return format!("{} \\_ {value}", "    ".repeat(depth - 1));
                }
                value
            }));
        }
        i32::from(selected.is_empty())
    }

    /// Cells side by side. What is too wide takes room from the blanks of those after it.
    fn line(&self, cell: impl Fn(&Column) -> String) -> String {
        let (mut line, mut end) = (String::new(), 0);
        for (at, column) in self.columns.iter().enumerate() {
            let text = cell(column);
            let is_last = at + 1 == self.columns.len();
            let (width, length) = (column.width(), text.chars().count());
            let written = line.chars().count();
            let start = if at == 0 { 0 } else { (written + 1).max(end + 1) };
            end = if at == 0 { width } else { end + 1 + width };
            let at_column = match column.kind.align {
                Align::Right => start.max(end.saturating_sub(length)),
                Align::Left => start,
            };
            line.extend(std::iter::repeat_n(' ', at_column - written));
            line += &shortened(&text, column, is_last);
            if column.kind.align == Align::Left && !is_last {
                let missing = end.saturating_sub(line.chars().count());
                line.extend(std::iter::repeat_n(' ', missing));
            }
        }
        line
    }

    fn arrange(&self, selected: &mut Vec<&Process>, shown: &Shown) {
        for (descending, key) in self.sort.iter().rev() {
            let Some(column) = Column::named(key) else { continue };
            let value = |process: &Process| match column.kind.title {
                "TIME" => process.cpu.to_string(),
                "START" | "STARTED" | "STIME" => process.started.to_string(),
                _ => (column.kind.value)(process, shown),
            };
            selected.sort_by(|left, right| {
                let (left, right) = (value(left), value(right));
                let numbers = left.parse::<f64>().ok().zip(right.parse::<f64>().ok());
                let order = match numbers {
                    Some((left, right)) => left.total_cmp(&right),
                    None => left.cmp(&right),
                };
                if *descending { order.reverse() } else { order }
            });
        }
        if self.forest {
            let mut ordered = Vec::new();
            let is_root = |process: &&Process| !selected.iter().any(|other| other.pid == process.parent);
            for root in selected.iter().copied().filter(is_root) {
                below(root, selected, &mut ordered);
            }
            *selected = ordered;
        }
    }
}

/// Names that are too long for their column are cut, commands at the end are not.
fn shortened(text: &str, column: &Column, is_last: bool) -> String {
    let is_name = column.kind.align == Align::Left && column.kind.width > 4;
    if !is_name || is_last || text.chars().count() <= column.width() {
        return text.to_owned();
    }
    let is_user = ["USER", "RUSER", "GROUP", "RGROUP"].contains(&column.kind.title);
    let keep = column.width() - usize::from(is_user);
    let cut: String = text.chars().take(keep).collect();
    if is_user { cut + "+" } else { cut }
}

fn below<'a>(process: &'a Process, all: &[&'a Process], ordered: &mut Vec<&'a Process>) {
    ordered.push(process);
    for child in all.iter().filter(|child| child.parent == process.pid && child.pid != process.pid) {
        below(child, all, ordered);
    }
}

fn depth_of(process: &Process, all: &[&Process]) -> usize {
    let mut depth = 0;
    let mut parent = process.parent;
    while let Some(above) = all.iter().find(|other| other.pid == parent).filter(|_| depth < all.len()) {
        (parent, depth) = (above.parent, depth + 1);
    }
    depth
}

fn terminal_width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.or_else(|| abi::winsize(1).ok().map(|(_, columns)| usize::from(columns))).unwrap_or(80)
}

type Rest<'a> = &'a mut dyn Iterator<Item = String>;

impl Wanted {
    fn long(&mut self, word: &str, rest: Rest<'_>) -> Result<(), Stop> {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        let mut argument = || {
            let found = attached.clone().or_else(|| rest.next());
            found.ok_or_else(|| Stop::Wrong("list of process IDs must follow --pid".replace("--pid", word)))
        };
        match name {
            "help" => return Err(print(HELP)),
            "version" => return Err(print(&format!("ps (Wardian) {}\n", env!("CARGO_PKG_VERSION")))),
            "pid" => add(&mut self.selection.pids, numbers(&argument()?)?),
            "ppid" => add(&mut self.selection.parents, numbers(&argument()?)?),
            "user" | "User" => add(&mut self.selection.users, ids(&argument()?, &Names::users(), "user")?),
            "Group" | "group" => {
                add(&mut self.selection.groups, ids(&argument()?, &Names::groups(), "group")?)
            }
            "sid" => add(&mut self.selection.sessions, numbers(&argument()?)?),
            "deselect" => self.selection.negated = true,
            "format" => self.columns(&argument()?)?,
            "sort" => self.sort_by(&argument()?)?,
            "no-headers" | "no-heading" | "noheaders" => self.no_headers = true,
            "headers" => {}
            "forest" => self.forest = true,
            "cols" | "columns" | "width" | "rows" | "lines" => drop(argument()?),
            _ => return Err(Stop::Wrong("unknown gnu long option".to_owned())),
        }
        Ok(())
    }

    fn letters(&mut self, letters: &str, rest: Rest<'_>) -> Result<(), Stop> {
        for (at, letter) in letters.char_indices() {
            let attached = &letters[at + letter.len_utf8()..];
            let selection = &mut self.selection;
            match letter {
                'A' | 'e' => selection.all = true,
                'a' => selection.with_terminal = true,
                'd' => selection.no_leaders = true,
                'N' => selection.negated = true,
                'f' | 'F' | 'l' | 'j' => self.style = Some(style_of(letter, self.style)),
                'w' => self.wide = true,
                'H' => self.forest = true,
                'L' | 'T' | 'm' | 'y' | 'c' | 'M' => {}
                'V' => return Err(print(&format!("ps (Wardian) {}\n", env!("CARGO_PKG_VERSION")))),
                'o' | 'O' | 'p' | 'q' | 'C' | 'u' | 'U' | 'g' | 'G' | 's' | 't' => {
                    let list = if attached.is_empty() { rest.next() } else { Some(attached.to_owned()) };
                    let list = list.ok_or_else(|| Stop::Wrong(must_follow(letter)))?;
                    return self.list(letter, &list);
                }
                // `ps -aux` is read as `ps aux` by everybody.
                'x' => return self.bsd_letters(letters, rest),
                _ => return Err(Stop::Wrong("unsupported SysV option".to_owned())),
            }
        }
        Ok(())
    }

    fn list(&mut self, letter: char, list: &str) -> Result<(), Stop> {
        let selection = &mut self.selection;
        match letter {
            'o' => self.columns(list)?,
            'O' => {
                self.columns("pid")?;
                self.columns(list)?;
                self.columns("state,tname,time,command")?;
            }
            'p' | 'q' => add(&mut selection.pids, numbers(list)?),
            'C' => add(&mut selection.commands, words(list).map(str::to_owned).collect()),
            'u' | 'U' if list == "x" => (self.bsd_x, self.style) = (true, Some("u")),
            'u' | 'U' => add(&mut selection.users, ids(list, &Names::users(), "user")?),
            'G' => add(&mut selection.groups, ids(list, &Names::groups(), "group")?),
            'g' | 's' => add(&mut selection.sessions, numbers(list)?),
            _ => selection.with_terminal = true,
        }
        Ok(())
    }

    fn bsd_letters(&mut self, letters: &str, rest: Rest<'_>) -> Result<(), Stop> {
        if letters.starts_with(|first: char| first.is_ascii_digit()) {
            add(&mut self.selection.pids, numbers(letters)?);
            return Ok(());
        }
        for (at, letter) in letters.char_indices() {
            let attached = &letters[at + letter.len_utf8()..];
            match letter {
                'a' => self.bsd_a = true,
                'x' => self.bsd_x = true,
                'u' => self.style = Some("u"),
                'l' => self.style = Some("bsd-l"),
                'j' => self.style = Some("bsd-j"),
                'f' => self.forest = true,
                'w' => self.wide = true,
                'h' => self.no_headers = true,
                'e' | 'c' | 'n' | 'r' | 'g' | 'T' | 'S' | 'm' | 'H' => {}
                'o' | 'p' | 'U' | 'k' => {
                    let list = if attached.is_empty() { rest.next() } else { Some(attached.to_owned()) };
                    let list = list.ok_or_else(|| Stop::Wrong(must_follow(letter)))?;
                    return if letter == 'k' { self.sort_by(&list) } else { self.list(letter, &list) };
                }
                _ => return Err(Stop::Wrong("unsupported option (BSD syntax)".to_owned())),
            }
        }
        Ok(())
    }

    /// Columns of `-o`: `pid,user` or `pid=TITLE`, where the title is all that follows.
    fn columns(&mut self, list: &str) -> Result<(), Stop> {
        let mut rest = list;
        while !rest.is_empty() {
            let end = rest.find([',', ' ', '=']).unwrap_or(rest.len());
            let name = &rest[..end];
            let (title, after) = match rest[end..].strip_prefix('=') {
                // An empty title may have others after it.
                Some(title) if title.starts_with(',') => (Some(""), &title[1..]),
                Some(title) => (Some(title), ""),
                None => (None, rest[end..].strip_prefix([',', ' ']).unwrap_or("")),
            };
            rest = after;
            if name.is_empty() {
                continue;
            }
            let mut column = Column::named(name)
                .ok_or_else(|| Stop::Wrong(format!("unknown user-defined format specifier \"{name}\"")))?;
            column.title = title.map_or(column.title, str::to_owned);
            self.listed.push(column);
        }
        Ok(())
    }

    fn sort_by(&mut self, list: &str) -> Result<(), Stop> {
        for key in list.split(',') {
            let name = key.trim_start_matches(['+', '-']);
            if Column::named(name).is_none() {
                return Err(Stop::Wrong("unknown sort specifier".to_owned()));
            }
            self.sort.push((key.starts_with('-'), name.to_owned()));
        }
        Ok(())
    }

    fn finish(mut self) -> Command {
        match (self.bsd_a, self.bsd_x) {
            (true, true) => self.selection.all = true,
            (true, false) => (self.selection.with_terminal, self.selection.any_user) = (true, true),
            (false, true) => self.selection.any_user = true,
            _ => {}
        }
        let columns = if self.listed.is_empty() { styled(self.style) } else { self.listed };
        Command {
            selection: self.selection,
            columns,
            sort: self.sort,
            headers: !self.no_headers,
            wide: self.wide,
            forest: self.forest,
        }
    }
}

fn must_follow(letter: char) -> String {
    match letter {
        'p' | 'q' => format!("list of process IDs must follow -{letter}"),
        'C' => "list of command names must follow -C".to_owned(),
        'u' | 'U' => format!("list of users must follow -{letter}"),
        _ => format!("format specification must follow -{letter}"),
    }
}

fn style_of(letter: char, before: Option<&str>) -> &'static str {
    match (letter, before) {
        ('l', Some("f")) | ('f', Some("l")) => "fl",
        ('j', Some("f")) | ('f', Some("j")) => "fj",
        ('f', _) => "f",
        ('F', _) => "F",
        ('l', _) => "l",
        _ => "j",
    }
}

/// The columns of a ready-made format.
fn styled(style: Option<&str>) -> Vec<Column> {
    let list = match style {
        None => "pid tname=TTY time ucmd=CMD",
        Some("u") => "user pid %cpu %mem vsz rss tname=TTY stat bsdstart=START bsdtime=TIME args=COMMAND",
        Some("f") => "user=UID pid ppid c stime tname=TTY time cmd",
        Some("F") => "user=UID pid ppid c sz rss psr stime tname=TTY time cmd",
        Some("l") => "f s uid pid ppid c opri ni addr_1 sz wchan tname=TTY time ucmd=CMD",
        Some("fl") => "f s user=UID pid ppid c opri ni addr_1 sz wchan stime tname=TTY time cmd",
        Some("fj") => "user=UID pid ppid pgid sid c stime tname=TTY time cmd",
        Some("bsd-l") => "f uid pid ppid pri ni vsz rss wchan stat tname=TTY bsdtime=TIME args=COMMAND",
        Some("bsd-j") => "ppid pid pgid sid tname=TTY tpgid stat uid bsdtime=TIME args=COMMAND",
        Some(_) => "pid pgid sid tname=TTY time ucmd=CMD",
    };
    let column = |word: &str| match word.split_once('=') {
        Some((name, title)) => Column::titled(name, title),
        None => Column::named(word).unwrap_or_else(|| Column::titled(word, word)),
    };
    list.split(' ').map(column).collect()
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ']).filter(|word| !word.is_empty())
}

fn numbers(list: &str) -> Result<HashSet<i32>, Stop> {
    let read = |word: &str| word.parse().map_err(|_| Stop::Wrong("process ID list syntax error".to_owned()));
    words(list).map(read).collect()
}

fn ids(list: &str, names: &Names, what: &str) -> Result<HashSet<u32>, Stop> {
    let read = |word: &str| {
        let known = word.parse().ok().or_else(|| names.find(word));
        known.ok_or_else(|| Stop::Wrong(format!("{what} name does not exist")))
    };
    words(list).map(read).collect()
}

fn add<T: Eq + std::hash::Hash>(set: &mut Option<HashSet<T>>, more: HashSet<T>) {
    set.get_or_insert_default().extend(more);
}

fn print(text: &str) -> Stop {
    Out::new("ps").put(text);
    Stop::Done(0)
}
