//! `.parameter`: values for the `:names` in statements, kept in a table of their own.

use super::{Outcome, Words, failed, help};
use crate::database::{Cell, Database};
use crate::output::complain;
use crate::render::sql_text;
use crate::shell::Shell;

const INIT: &[u8] = b"CREATE TABLE IF NOT EXISTS temp.sqlite_parameters(\
    key TEXT PRIMARY KEY, value) WITHOUT ROWID;";

pub fn run(shell: &mut Shell, words: &Words) -> Outcome {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match words[1..] {
        [b"init"] => init(shell.database()),
        [b"list"] => {
            let text = listed(shell.database());
            shell.out.put(text);
        }
        [b"set", key, value] => return set(shell.database(), key, value),
        // Before the first value there is no table, and nothing to take out of it.
        [b"unset", key] => {
            let delete: [&[u8]; 2] = [b"DELETE FROM temp.sqlite_parameters WHERE key=", &sql_text(key)];
            let _ = shell.database().run(&delete.concat());
        }
        [b"clear"] => {
            let _ = shell.database().run(b"DROP TABLE IF EXISTS temp.sqlite_parameters");
        }
        _ => {
            complain(help::of("parameter"));
            return Outcome::Failed;
        }
    }
    Outcome::Done
}

/// Names that begin with `sqlite_` are for those who may write the schema.
fn init(database: &Database) {
    let is_writable = database.switch(rusqlite::ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA, -1);
    let is_defensive = database.switch(rusqlite::ffi::SQLITE_DBCONFIG_DEFENSIVE, -1);
    database.switch(rusqlite::ffi::SQLITE_DBCONFIG_DEFENSIVE, 0);
    database.switch(rusqlite::ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1);
    // If it fails, `set` says so.
    let _ = database.run(INIT);
    database.switch(rusqlite::ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA, is_writable);
    database.switch(rusqlite::ffi::SQLITE_DBCONFIG_DEFENSIVE, is_defensive);
}

fn listed(database: &Database) -> Vec<u8> {
    let query = "SELECT key, quote(value) FROM temp.sqlite_parameters";
    let rows = database.rows(query, &[]).unwrap_or_default();
    let part = |row: &[Cell], column: usize| row[column].text().unwrap_or_default();
    let width = rows.iter().map(|row| part(row, 0).len()).max().unwrap_or(0);
    let mut text = Vec::new();
    for row in &rows {
        let key = part(row, 0);
        let blanks = vec![b' '; width - key.len() + 1];
        text.extend([key, blanks, part(row, 1), b"\n".to_vec()].concat());
    }
    text
}

/// A value is an expression of SQL if it can be one, and else a text.
fn set(database: &Database, key: &[u8], value: &[u8]) -> Outcome {
    init(database);
    let key = sql_text(key);
    let replace = |value: &[u8]| {
        [b"REPLACE INTO temp.sqlite_parameters(key,value)VALUES(", &key[..], b",", value, b");"].concat()
    };
    let outcome = database.run(&replace(value)).or_else(|_| database.run(&replace(&sql_text(value))));
    match outcome {
        Ok(()) => Outcome::Done,
        Err(failure) => failed(&[b"Error: ", &failure.message]),
    }
}
