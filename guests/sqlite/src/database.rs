//! The library as the shell needs it: SQL as bytes, one statement at a time, and errors with the place they are at.
//!
//! This is the one file that talks to C.

use rusqlite::{Connection, OpenFlags, ffi};
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use toolkit::files;

/// An open database.
pub struct Database {
    pub connection: Connection,
}

/// What went wrong in the library.
pub struct Failure {
    pub code: i32,
    pub message: Vec<u8>,
    /// Where in the statement, in bytes.
    pub offset: Option<usize>,
}

/// A statement, ready to run.
pub struct Statement<'d> {
    raw: *mut ffi::sqlite3_stmt,
    database: &'d Database,
}

/// A value in a row. All but `Null` have a text, which is what the library makes of them.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64, Vec<u8>),
    Text(Vec<u8>),
    Blob(Vec<u8>),
}

/// The digits that SQLite shows of a number by itself, up to the version that the shell is modelled on.
const DIGITS: c_int = 15;

impl Database {
    pub fn open(file: &[u8], flags: OpenFlags, vfs: Option<&str>) -> Result<Database, Failure> {
        let opened = match vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(files::path(file), flags, vfs),
            None => Connection::open_with_flags(files::path(file), flags),
        };
        let database = Database { connection: opened.map_err(failure)? };
        // SAFETY: the handle is open, and the option takes an int and a place for one or none.
        unsafe {
            let handle = database.handle();
            ffi::sqlite3_db_config(handle, ffi::SQLITE_DBCONFIG_FP_DIGITS, DIGITS, ptr::null_mut::<c_int>());
            ffi::sqlite3_db_config(
                handle,
                ffi::SQLITE_DBCONFIG_ENABLE_FKEY,
                0 as c_int,
                ptr::null_mut::<c_int>(),
            );
            ffi::sqlite3_extended_result_codes(handle, 0);
        }
        Ok(database)
    }

    fn handle(&self) -> *mut ffi::sqlite3 {
        // SAFETY: it is used within this file, while the connection lives.
        unsafe { self.connection.handle() }
    }

    /// The first statement of a text, if there is one, and how many bytes it takes.
    pub fn prepare<'d>(&'d self, sql: &[u8]) -> Result<(Option<Statement<'d>>, usize), Failure> {
        let (mut raw, mut tail) = (ptr::null_mut(), ptr::null());
        let start = sql.as_ptr().cast::<c_char>();
        let length = c_int::try_from(sql.len()).unwrap_or(c_int::MAX);
        // SAFETY: the text has that length, and both places outlive the call.
        let code = unsafe { ffi::sqlite3_prepare_v2(self.handle(), start, length, &mut raw, &mut tail) };
        if code != ffi::SQLITE_OK {
            return Err(self.failure());
        }
        // SAFETY: the library answers a place within the text or at its end.
        let used = if tail.is_null() { sql.len() } else { unsafe { tail.offset_from(start) as usize } };
        let statement = (!raw.is_null()).then_some(Statement { raw, database: self });
        Ok((statement, used))
    }

    /// The error of the last call.
    fn failure(&self) -> Failure {
        // SAFETY: the handle is open; the message is copied before the next call.
        unsafe {
            let offset = ffi::sqlite3_error_offset(self.handle());
            Failure {
                code: ffi::sqlite3_errcode(self.handle()) & 0xff,
                message: bytes_of(ffi::sqlite3_errmsg(self.handle())),
                offset: usize::try_from(offset).ok(),
            }
        }
    }

    /// Every row of a query, which must be right.
    pub fn rows(&self, sql: &str, parameters: &[&[u8]]) -> Result<Vec<Vec<Cell>>, Failure> {
        let (statement, _) = self.prepare(sql.as_bytes())?;
        let Some(mut statement) = statement else { return Ok(Vec::new()) };
        for (index, parameter) in parameters.iter().enumerate() {
            statement.bind(index + 1, &Cell::Text(parameter.to_vec()))?;
        }
        let mut rows = Vec::new();
        while statement.step()? {
            rows.push(statement.row());
        }
        Ok(rows)
    }

    /// The first column of a query's rows, as text.
    pub fn texts(&self, sql: &str, parameters: &[&[u8]]) -> Result<Vec<Vec<u8>>, Failure> {
        let rows = self.rows(sql, parameters)?;
        Ok(rows.iter().map(|row| row.first().and_then(Cell::text).unwrap_or_default()).collect())
    }

    /// Runs statements of ours whose rows nobody wants.
    pub fn run(&self, sql: &[u8]) -> Result<(), Failure> {
        let mut rest = sql;
        while !rest.is_empty() {
            let (statement, used) = self.prepare(rest)?;
            if let Some(mut statement) = statement {
                while statement.step()? {}
            }
            rest = &rest[used..];
        }
        Ok(())
    }

    pub fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    pub fn changes(&self) -> (i64, i64) {
        // SAFETY: the handle is open.
        unsafe { (ffi::sqlite3_changes64(self.handle()), ffi::sqlite3_total_changes64(self.handle())) }
    }

    /// Sets one of the library's limits and answers what it was; a negative number leaves it.
    pub fn limit(&self, which: i32, value: i32) -> i32 {
        // SAFETY: the handle is open; an unknown limit is answered with -1.
        unsafe { ffi::sqlite3_limit(self.handle(), which, value) }
    }

    /// Reads, and with 0 or 1 sets, one of the switches of a connection.
    pub fn switch(&self, which: i32, value: i32) -> i32 {
        let mut now: c_int = 0;
        // SAFETY: the handle is open, and the switches take an int and a place for one.
        unsafe { ffi::sqlite3_db_config(self.handle(), which, value as c_int, &mut now) };
        now
    }

    /// A number that the connection counts, and its highest value.
    pub fn status(&self, which: i32) -> (i32, i32) {
        let (mut now, mut highest) = (0, 0);
        // SAFETY: the handle is open, and both places outlive the call.
        unsafe { ffi::sqlite3_db_status(self.handle(), which, &mut now, &mut highest, 0) };
        (now, highest)
    }

    /// Copies one database of a connection into one of another's.
    pub fn copy(from: &Database, from_name: &str, to: &Database, to_name: &str) -> Result<(), Failure> {
        let (Ok(from_name), Ok(to_name)) = (CString::new(from_name), CString::new(to_name)) else {
            return Err(Failure { code: 1, message: b"a name with a NUL byte".to_vec(), offset: None });
        };
        // SAFETY: both handles are open and the names end in NUL; the backup is finished before this returns.
        unsafe {
            let backup =
                ffi::sqlite3_backup_init(to.handle(), to_name.as_ptr(), from.handle(), from_name.as_ptr());
            if backup.is_null() {
                return Err(to.failure());
            }
            while ffi::sqlite3_backup_step(backup, 100) == ffi::SQLITE_OK {}
            match ffi::sqlite3_backup_finish(backup) {
                ffi::SQLITE_OK => Ok(()),
                _ => Err(to.failure()),
            }
        }
    }

    /// Lets a function be asked, every so many steps, whether a statement shall end.
    pub fn ask_while_running(&self, steps: i32, stop: fn() -> bool) {
        unsafe extern "C" fn ask(stop: *mut std::ffi::c_void) -> c_int {
            // SAFETY: the pointer is the function given below.
            let stop: fn() -> bool = unsafe { std::mem::transmute(stop) };
            c_int::from(stop())
        }
        // SAFETY: a function lives for ever, and the library gives it back as it is.
        unsafe {
            ffi::sqlite3_progress_handler(self.handle(), steps, Some(ask), stop as *mut std::ffi::c_void)
        }
    }
}

impl Statement<'_> {
    /// Goes on to the next row, if there is one.
    pub fn step(&mut self) -> Result<bool, Failure> {
        // SAFETY: the statement is not finalized before it is dropped; so in all that follows.
        match unsafe { ffi::sqlite3_step(self.raw) } {
            ffi::SQLITE_ROW => Ok(true),
            ffi::SQLITE_DONE => Ok(false),
            _ => Err(self.database.failure()),
        }
    }

    pub fn column_count(&self) -> usize {
        // SAFETY: as for `step`.
        unsafe { ffi::sqlite3_column_count(self.raw) as usize }
    }

    pub fn column_names(&self) -> Vec<Vec<u8>> {
        // SAFETY: the column exists; a name that there is no memory for is null, which is no bytes.
        let name = |column| unsafe { bytes_of(ffi::sqlite3_column_name(self.raw, column as c_int)) };
        (0..self.column_count()).map(name).collect()
    }

    /// The values of the row that `step` found.
    pub fn row(&self) -> Vec<Cell> {
        (0..self.column_count()).map(|column| self.cell(column as c_int)).collect()
    }

    fn cell(&self, column: c_int) -> Cell {
        // SAFETY: the column exists, and what it points to is copied before the next call. The length is asked for
        // after the text, as the library wants it.
        unsafe {
            match ffi::sqlite3_column_type(self.raw, column) {
                ffi::SQLITE_INTEGER => Cell::Integer(ffi::sqlite3_column_int64(self.raw, column)),
                ffi::SQLITE_FLOAT => {
                    let number = ffi::sqlite3_column_double(self.raw, column);
                    Cell::Real(number, self.bytes(ffi::sqlite3_column_text(self.raw, column), column))
                }
                ffi::SQLITE_TEXT => {
                    Cell::Text(self.bytes(ffi::sqlite3_column_text(self.raw, column), column))
                }
                ffi::SQLITE_BLOB => {
                    Cell::Blob(self.bytes(ffi::sqlite3_column_blob(self.raw, column).cast(), column))
                }
                _ => Cell::Null,
            }
        }
    }

    /// # Safety
    /// `start` is what the library just answered for this column.
    unsafe fn bytes(&self, start: *const u8, column: c_int) -> Vec<u8> {
        if start.is_null() {
            return Vec::new();
        }
        // SAFETY: the library says how long what it answered is.
        unsafe {
            let length = ffi::sqlite3_column_bytes(self.raw, column) as usize;
            std::slice::from_raw_parts(start, length).to_vec()
        }
    }

    /// The names of the parameters, without those that have only a number.
    pub fn parameters(&self) -> Vec<(usize, Option<Vec<u8>>)> {
        // SAFETY: as for `step`; a parameter without a name is null.
        let name = |index: usize| unsafe {
            let name = ffi::sqlite3_bind_parameter_name(self.raw, index as c_int);
            (!name.is_null()).then(|| bytes_of(name))
        };
        // SAFETY: as for `step`.
        let count = unsafe { ffi::sqlite3_bind_parameter_count(self.raw) as usize };
        (1..=count).map(|index| (index, name(index))).collect()
    }

    pub fn bind(&mut self, index: usize, cell: &Cell) -> Result<(), Failure> {
        let (raw, index) = (self.raw, index as c_int);
        let copied = ffi::SQLITE_TRANSIENT();
        // SAFETY: as for `step`; the library copies the bytes, which have the length given.
        let code = unsafe {
            match cell {
                Cell::Null => ffi::sqlite3_bind_null(raw, index),
                Cell::Integer(number) => ffi::sqlite3_bind_int64(raw, index, *number),
                Cell::Real(number, _) => ffi::sqlite3_bind_double(raw, index, *number),
                Cell::Text(text) => {
                    let length = text.len() as c_int;
                    ffi::sqlite3_bind_text(raw, index, text.as_ptr().cast(), length, copied)
                }
                Cell::Blob(bytes) => {
                    let length = bytes.len() as c_int;
                    ffi::sqlite3_bind_blob(raw, index, bytes.as_ptr().cast(), length, copied)
                }
            }
        };
        if code == ffi::SQLITE_OK { Ok(()) } else { Err(self.database.failure()) }
    }

    /// Makes it ready to run once more.
    pub fn reset(&mut self) {
        // SAFETY: as for `step`.
        unsafe { ffi::sqlite3_reset(self.raw) };
    }

    /// 1 for an EXPLAIN, 2 for an EXPLAIN QUERY PLAN.
    pub fn explains(&self) -> i32 {
        // SAFETY: as for `step`.
        unsafe { ffi::sqlite3_stmt_isexplain(self.raw) }
    }

    /// The text it was made from.
    pub fn sql(&self) -> Vec<u8> {
        // SAFETY: as for `step`; the text is the statement's own.
        unsafe { bytes_of(ffi::sqlite3_sql(self.raw)) }
    }

    /// A number that the statement counts.
    pub fn status(&self, which: i32) -> i32 {
        // SAFETY: as for `step`.
        unsafe { ffi::sqlite3_stmt_status(self.raw, which, 0) }
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: it is finalized here alone. Its error has been told by `step`.
        unsafe { ffi::sqlite3_finalize(self.raw) };
    }
}

impl Cell {
    /// The value as the library writes it; nothing for NULL.
    pub fn text(&self) -> Option<Vec<u8>> {
        Some(match self {
            Cell::Null => return None,
            Cell::Integer(number) => number.to_string().into_bytes(),
            Cell::Real(_, text) | Cell::Text(text) | Cell::Blob(text) => text.clone(),
        })
    }
}

/// Whether a text ends in a whole statement.
pub fn is_complete(sql: &[u8]) -> bool {
    let Ok(text) = CString::new(sql) else { return true };
    // SAFETY: the text ends in NUL.
    unsafe { ffi::sqlite3_complete(text.as_ptr()) != 0 }
}

/// The library's version and the sources it is from.
pub fn version() -> (String, String) {
    // SAFETY: both texts are static.
    let source = unsafe { bytes_of(ffi::sqlite3_sourceid()) };
    (rusqlite::version().to_owned(), String::from_utf8_lossy(&source).into_owned())
}

/// Memory that the library has in use, and its highest value.
pub fn memory_in_use(which: i32) -> (i64, i64) {
    let (mut now, mut highest) = (0, 0);
    // SAFETY: both places outlive the call.
    unsafe { ffi::sqlite3_status64(which, &mut now, &mut highest, 0) };
    (now, highest)
}

/// Whether a word cannot be a name without quotes.
pub fn is_keyword(word: &[u8]) -> bool {
    // SAFETY: the word has that length.
    unsafe { ffi::sqlite3_keyword_check(word.as_ptr().cast(), word.len() as c_int) != 0 }
}

/// # Safety
/// `text` is null or ends in NUL.
unsafe fn bytes_of(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(text).to_bytes().to_vec() }
}

/// The error of a database that would not open.
fn failure(error: rusqlite::Error) -> Failure {
    match error {
        rusqlite::Error::SqliteFailure(error, message) => Failure {
            code: error.extended_code & 0xff,
            message: message.map_or_else(|| error.to_string().into_bytes(), |text| opening_failed(&text)),
            offset: None,
        },
        other => Failure { code: 1, message: other.to_string().into_bytes(), offset: None },
    }
}

/// Rusqlite adds the name of the file, which the shell has said already.
fn opening_failed(text: &str) -> Vec<u8> {
    text.split(": ").next().unwrap_or(text).as_bytes().to_vec()
}
