//! The shell: what it knows between two commands, and how it runs SQL.

use crate::database::{Database, Failure, Statement};
use crate::functions;
use crate::output::{Output, complain};
use crate::plan;
use crate::render::{Renderer, Style};
use crate::statistics;
use rusqlite::OpenFlags;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use wardian_abi as abi;

/// Whether, and how much, each statement's plan is shown before it runs.
#[derive(Clone, Copy, PartialEq)]
pub enum ShowPlan {
    Off,
    On,
    Trigger,
    Full,
}

/// Numbers shown after each statement.
#[derive(Clone, Copy, PartialEq)]
pub enum Stats {
    Off,
    On,
    Statement,
    Steps,
}

/// Everything that lasts from one command to the next.
pub struct Shell {
    pub file: Vec<u8>,
    pub database: Option<Database>,
    pub read_only: bool,
    pub vfs: Option<String>,
    pub style: Style,
    pub out: Output,
    /// How many commands more the file of `.once` is for.
    pub once: u8,
    pub bail: bool,
    pub echo: bool,
    pub safe: bool,
    pub show_changes: bool,
    pub timer: bool,
    pub show_plan: ShowPlan,
    /// Whether EXPLAIN is written in a way of its own.
    pub explain_mode: bool,
    pub stats: Stats,
    pub interactive: bool,
    pub prompts: [Vec<u8>; 2],
    /// How deep `.read` is in itself.
    pub depth: usize,
}

/// A statement that failed, as it is told: when, what, and where.
pub struct Error {
    pub code: i32,
    pub message: Vec<u8>,
}

/// What reading while another writes waits for. In the sandbox a lock has one holder, be it for reading, so two who
/// would not be in each other's way elsewhere have to take turns.
const PATIENCE: Duration = Duration::from_secs(if cfg!(target_os = "wasi") { 5 } else { 0 });

/// Steps of a statement between two looks for a signal.
const STEPS_PER_LOOK: i32 = 10_000;

impl Shell {
    pub fn new() -> Shell {
        Shell {
            file: b":memory:".to_vec(),
            database: None,
            read_only: false,
            vfs: None,
            style: Style::default(),
            out: Output::standard(),
            once: 0,
            bail: false,
            echo: false,
            safe: false,
            show_changes: false,
            timer: false,
            show_plan: ShowPlan::Off,
            explain_mode: true,
            stats: Stats::Off,
            interactive: abi::isatty(0),
            prompts: [b"sqlite> ".to_vec(), b"   ...> ".to_vec()],
            depth: 0,
        }
    }

    /// Ends the program if safe mode forbids what is about to be done.
    pub fn refuse_if_safe(&mut self, what: std::fmt::Arguments<'_>) {
        if self.safe {
            self.refuse(&what.to_string());
        }
    }

    fn refuse(&mut self, what: &str) -> ! {
        complain(format!("line {}: {what}\n", LINE.load(Ordering::Relaxed)));
        self.out.reset();
        abi::exit(1)
    }

    /// The database, opened when it is first needed.
    pub fn database(&mut self) -> &Database {
        if self.database.is_none() {
            match self.open() {
                Ok(database) => self.database = Some(database),
                Err(failure) => {
                    let parts: [&[u8]; 5] =
                        [b"Error: unable to open database \"", &self.file, b"\": ", &failure.message, b"\n"];
                    complain(parts.concat());
                    self.out.reset();
                    abi::exit(1);
                }
            }
        }
        self.database.as_ref().expect("just opened")
    }

    /// Opens the file that the shell is about.
    pub fn open(&self) -> Result<Database, Failure> {
        let access = if self.read_only {
            OpenFlags::SQLITE_OPEN_READ_ONLY
        } else {
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
        };
        let flags = access | OpenFlags::SQLITE_OPEN_URI;
        let mut database = Database::open(&self.file, flags, self.vfs.as_deref())?;
        crate::locks::prepare(&database, self.vfs.as_deref());
        // Neither can fail on a connection that is open.
        let _ = database.connection.busy_timeout(PATIENCE);
        let _ = functions::add(&mut database.connection, self.safe);
        if self.interactive {
            database.ask_while_running(STEPS_PER_LOOK, was_interrupted);
        }
        Ok(database)
    }

    /// Runs every statement of a text.
    pub fn execute(&mut self, sql: &[u8]) -> Result<(), Error> {
        self.database();
        let mut rest = sql.trim_ascii_start();
        while !rest.is_empty() {
            let database = self.database.take().expect("just opened");
            let result = self.execute_first(&database, rest);
            self.database = Some(database);
            rest = rest[result?..].trim_ascii_start();
        }
        Ok(())
    }

    /// Runs the first statement of a text; answers how long it is.
    fn execute_first(&mut self, database: &Database, sql: &[u8]) -> Result<usize, Error> {
        let prepared = database.prepare(sql);
        if let Some(what) = FORBIDDEN.get() {
            self.refuse(what);
        }
        let (statement, used) = prepared.map_err(|failure| Error::new("in prepare", &failure, sql))?;
        let Some(mut statement) = statement else { return Ok(used) };
        if self.show_plan != ShowPlan::Off && statement.explains() == 0 {
            plan::show_before(self, database, &statement.sql());
        }
        bind_parameters(database, &mut statement);
        let ran = self.show_rows(&mut statement);
        if self.stats != Stats::Off {
            let text = statistics::of(self.stats, database, &statement);
            self.out.put(text);
        }
        ran.map_err(|failure| Error::new("stepping", &failure, sql))?;
        Ok(used)
    }

    /// Runs a statement and writes its rows.
    fn show_rows(&mut self, statement: &mut Statement<'_>) -> Result<(), Failure> {
        match statement.explains() {
            1 if self.explain_mode => return plan::show_program(&mut self.out, statement),
            2 if self.explain_mode => return plan::show(&mut self.out, statement),
            _ => {}
        }
        let style = self.style.clone();
        let mut renderer = Renderer::new(&style, statement.column_names());
        loop {
            match statement.step() {
                Ok(true) if statement.column_count() > 0 => self.out.put(renderer.row(statement.row())),
                Ok(true) => {}
                Ok(false) => break self.out.put(renderer.end()),
                Err(failure) => {
                    self.out.put(renderer.end());
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Runs what was read up to a semicolon; answers whether it went well.
    pub fn run_read(&mut self, sql: &[u8], line: Option<usize>) -> bool {
        let (started, before) = (Instant::now(), abi::times());
        let result = self.execute(sql);
        if self.timer {
            let (real, after) = (started.elapsed().as_secs_f64(), abi::times());
            let seconds = |nanos: i64| nanos as f64 / 1e9;
            let user = seconds(after.user.saturating_sub(before.user));
            let system = seconds(after.system.saturating_sub(before.system));
            self.out.put(format!("Run Time: real {real:.3} user {user:.6} sys {system:.6}\n"));
        }
        match result {
            Ok(()) => {
                if self.show_changes {
                    let (changes, total) = self.database().changes();
                    self.out.put(format!("changes: {changes}   total_changes: {total}\n"));
                }
                true
            }
            Err(error) => {
                error.tell(line);
                false
            }
        }
    }
}

impl Error {
    fn new(phase: &str, failure: &Failure, sql: &[u8]) -> Error {
        let mut message = format!("{phase}, ").into_bytes();
        message.extend(&failure.message);
        if failure.code > 1 {
            message.extend(format!(" ({})", failure.code).bytes());
        }
        message.extend(context(sql, failure.offset));
        Error { code: failure.code, message }
    }

    /// Says what happened while reading: on which line, where those are counted.
    fn tell(&self, line: Option<usize>) {
        let kinds = [(&b"in prepare, "[..], "Parse error"), (b"stepping, ", "Runtime error")];
        let known = kinds.iter().find_map(|(phase, kind)| Some((*kind, self.message.strip_prefix(*phase)?)));
        let (kind, text) = known.unwrap_or(("Error", &self.message));
        let place = line.map_or_else(String::new, |line| format!(" near line {line}"));
        complain([format!("{kind}{place}: ").as_bytes(), text, b"\n"].concat());
    }
}

/// The part of a statement around the place where it is wrong, with a pointer to it.
fn context(sql: &[u8], offset: Option<usize>) -> Vec<u8> {
    let Some(offset) = offset.filter(|&offset| offset < sql.len()) else { return Vec::new() };
    let is_inside_character = |at: usize| sql.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let mut start = offset.saturating_sub(50);
    while is_inside_character(start) {
        start += 1;
    }
    let mut end = sql.len().min(start + 78);
    while end > start && is_inside_character(end) {
        end -= 1;
    }
    let blank = |byte: &u8| if byte.is_ascii_whitespace() { b' ' } else { *byte };
    let code: Vec<u8> = sql[start..end].iter().map(blank).collect();
    let column = offset - start;
    let pointer = if column < 25 {
        format!("{}^--- error here", " ".repeat(column))
    } else {
        format!("{}error here ---^", " ".repeat(column - 14))
    };
    [b"\n  ", &code[..], b"\n  ", pointer.as_bytes()].concat()
}

/// Gives a statement the values that `.parameter` keeps.
fn bind_parameters(database: &Database, statement: &mut Statement<'_>) {
    let parameters = statement.parameters();
    if parameters.is_empty() {
        return;
    }
    let query = "SELECT value FROM temp.sqlite_parameters WHERE key=?1";
    for (index, name) in parameters {
        let name = name.unwrap_or_else(|| format!("?{index}").into_bytes());
        // Without that table, or without that name in it, a parameter is NULL, as it is by nature.
        let found = database.rows(query, &[&name]).ok().and_then(|rows| rows.into_iter().next());
        if let Some(value) = found.as_ref().and_then(|row| row.first()) {
            let _ = statement.bind(index, value);
        }
    }
}

/// Whether somebody pressed Ctrl-C, and nobody acted on it yet.
pub fn was_interrupted() -> bool {
    const INTERRUPT: u64 = 1 << 2;
    abi::sigpending() & INTERRUPT != 0
}

/// The line that is being read, for those who cannot be told it.
pub static LINE: AtomicUsize = AtomicUsize::new(0);

/// What safe mode forbade a statement.
static FORBIDDEN: OnceLock<String> = OnceLock::new();

/// Keeps why a statement was denied what it wanted.
pub fn forbid(what: String) {
    // The first reason is the one that is told.
    let _ = FORBIDDEN.set(what);
}
