//! Commands that copy whole databases: `.backup`, `.save`, `.restore`, `.clone`.

use super::arguments::option;
use super::{Outcome, Words, failed, usage};
use crate::database::{Cell, Database, Failure};
use crate::render::quoted_name;
use crate::shell::Shell;
use rusqlite::OpenFlags;
use std::path::Path;
use toolkit::files;

fn open(file: &[u8], vfs: Option<&str>) -> Result<Database, Outcome> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    Database::open(file, flags, vfs).map_err(|_| failed(&[b"Error: cannot open \"", file, b"\""]))
}

fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn backup(shell: &mut Shell, words: &Words) -> Outcome {
    let mut operands = Vec::new();
    for word in &words[1..] {
        match option(word) {
            Some(b"append" | b"async") => {}
            Some(_) => return failed(&[b"unknown option: ", word]),
            None => operands.push(word.clone()),
        }
    }
    let (source, file) = match operands.as_slice() {
        [] => return failed(&[b"missing FILENAME argument on .backup"]),
        [file] => (b"main".to_vec(), file.clone()),
        [source, file] => (source.clone(), file.clone()),
        _ => return usage(".backup ?DB? ?OPTIONS? FILENAME"),
    };
    let target = match open(&file, shell.vfs.as_deref()) {
        Ok(target) => target,
        Err(outcome) => return outcome,
    };
    match Database::copy(shell.database(), &name(&source), &target, "main") {
        Ok(()) => Outcome::Done,
        Err(failure) => failed(&[b"Error: ", &failure.message]),
    }
}

pub fn restore(shell: &mut Shell, words: &Words) -> Outcome {
    let (target, file) = match words.as_slice() {
        [_, file] => (b"main".to_vec(), file),
        [_, target, file] => (target.clone(), file),
        _ => return usage(".restore ?DB? FILE"),
    };
    let source = match open(file, shell.vfs.as_deref()) {
        Ok(source) => source,
        Err(outcome) => return outcome,
    };
    match Database::copy(&source, "main", shell.database(), &name(&target)) {
        Ok(()) => Outcome::Done,
        Err(failure) if matches!(failure.code, 5 | 6) => failed(&[b"Error: source database is busy"]),
        Err(failure) => failed(&[b"Error: ", &failure.message]),
    }
}

/// Copies table by table into a new database, which so is free of what was wrong with the old one.
pub fn clone(shell: &mut Shell, words: &Words) -> Outcome {
    let [_, file] = words.as_slice() else { return usage(".clone FILENAME") };
    if Path::exists(files::path(file)) {
        failed(&[b"File \"", file, b"\" already exists."]);
        return Outcome::Done;
    }
    let target = match open(file, shell.vfs.as_deref()) {
        Ok(target) => target,
        Err(_) => return Outcome::Failed,
    };
    shell.database();
    let Some(source) = shell.database.take() else { return Outcome::Failed };
    let result = clone_into(shell, &source, &target);
    shell.database = Some(source);
    match result {
        Ok(()) => Outcome::Done,
        Err(failure) => failed(&[b"Error: ", &failure.message]),
    }
}

fn clone_into(shell: &mut Shell, source: &Database, target: &Database) -> Result<(), Failure> {
    target.run(b"PRAGMA writable_schema=ON; BEGIN EXCLUSIVE")?;
    for condition in ["type='table'", "type!='table'"] {
        let query = format!("SELECT name, sql, type FROM sqlite_schema WHERE {condition}");
        for row in source.rows(&query, &[])? {
            let (Some(name), Some(sql)) = (row[0].text(), row[1].text()) else { continue };
            if name.starts_with(b"sqlite_") {
                continue;
            }
            shell.out.put([&name[..], b"... "].concat());
            target.run(&sql)?;
            if row[2] == Cell::Text(b"table".to_vec()) {
                copy_rows(source, target, &name)?;
            }
            shell.out.put("done\n");
        }
    }
    target.run(b"COMMIT; PRAGMA writable_schema=OFF")
}

fn copy_rows(source: &Database, target: &Database, table: &[u8]) -> Result<(), Failure> {
    let table = quoted_name(table);
    let (Some(mut from), _) = source.prepare(&[b"SELECT * FROM ", &table[..]].concat())? else {
        return Ok(());
    };
    let marks = vec![&b"?"[..]; from.column_count()].join(&b","[..]);
    let insert = [b"INSERT OR IGNORE INTO ", &table[..], b" VALUES(", &marks, b")"].concat();
    let (Some(mut into), _) = target.prepare(&insert)? else { return Ok(()) };
    while from.step()? {
        for (index, cell) in from.row().iter().enumerate() {
            into.bind(index + 1, cell)?;
        }
        into.step()?;
        into.reset();
    }
    Ok(())
}
