//! SQL functions that the shell adds to the library's.

use crate::shell::forbid;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Result};
use std::sync::Arc;
use toolkit::files;
use wardian_regex::small::{Manner, Regex, Style};

/// Adds them all. In safe mode a statement with one that reaches files ends the program.
pub fn add(connection: &mut Connection, safe: bool) -> Result<()> {
    rusqlite::vtab::series::load_module(connection)?;
    let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("regexp", 2, pure, regexp)?;
    connection.create_scalar_function("sha3", 1, pure, sha3)?;
    connection.create_scalar_function("sha3", 2, pure, sha3)?;
    let direct = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    for count in [1, 2] {
        connection.create_scalar_function("edit", count, direct, |_| -> Result<Value> {
            Err(said("edit() is not supported"))
        })?;
    }
    connection.create_scalar_function("readfile", 1, direct, readfile)?;
    connection.create_scalar_function("writefile", -1, direct, writefile)?;
    if safe { connection.authorizer(Some(guard)) } else { Ok(()) }
}

/// Denies what would reach beyond the database; that the statement failed for it is the end.
fn guard(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Attach { .. } => forbid("cannot run ATTACH in safe mode".into()),
        AuthAction::Function { function_name: name @ ("readfile" | "writefile" | "edit") } => {
            forbid(format!("cannot use the {name}() function in safe mode"))
        }
        _ => return Authorization::Allow,
    }
    Authorization::Deny
}

fn said(message: &str) -> Error {
    Error::UserFunctionError(message.into())
}

/// The text or the bytes of an argument; nothing for NULL.
fn bytes(context: &Context<'_>, index: usize) -> Option<Vec<u8>> {
    match context.get_raw(index) {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes.to_vec()),
        ValueRef::Integer(number) => Some(number.to_string().into_bytes()),
        ValueRef::Real(number) => Some(number.to_string().into_bytes()),
    }
}

/// `X REGEXP Y` is `regexp(Y, X)`.
fn regexp(context: &Context<'_>) -> Result<Option<bool>> {
    let (Some(pattern), Some(text)) = (bytes(context, 0), bytes(context, 1)) else { return Ok(None) };
    let regex: Arc<Regex> = context.get_or_create_aux(0, |_| {
        let manner = Manner { style: Style::Sql, fold: false, utf8: true };
        Regex::new(&pattern, manner).ok_or_else(|| said("invalid regular expression"))
    })?;
    Ok(Some(regex.is_match(&text)))
}

/// The content of a file as a blob; NULL if it cannot be read.
fn readfile(context: &Context<'_>) -> Result<Option<Vec<u8>>> {
    let Some(name) = bytes(context, 0) else { return Ok(None) };
    Ok(std::fs::read(files::path(&name)).ok())
}

/// Writes a blob to a file: answers how many bytes, or NULL if it could not.
fn writefile(context: &Context<'_>) -> Result<Option<i64>> {
    if !(2..=4).contains(&context.len()) {
        return Err(said("wrong number of arguments to function writefile()"));
    }
    let Some(name) = bytes(context, 0) else { return Ok(None) };
    let content = bytes(context, 1).unwrap_or_default();
    if std::fs::write(files::path(&name), &content).is_err() {
        return Err(said(&format!("failed to write file: {}", String::from_utf8_lossy(&name))));
    }
    if let (Some(ValueRef::Integer(mode)), here) =
        ((context.len() > 2).then(|| context.get_raw(2)), wardian_abi::Dir::CWD)
        && let Err(error) = wardian_abi::chmod(here, &name, true, mode as u32 & 0o7777)
    {
        return Err(said(&format!("failed to write file: {error}")));
    }
    Ok(Some(content.len() as i64))
}

fn sha3(context: &Context<'_>) -> Result<ToSqlOutput<'static>> {
    let size = if context.len() == 2 { context.get::<i64>(1)? } else { 256 };
    if ![224, 256, 384, 512].contains(&size) {
        return Err(said("SHA3 size should be one of: 224 256 384 512"));
    }
    let hash = bytes(context, 0).map(|content| crate::sha3::hash(&content, size as usize));
    Ok(ToSqlOutput::Owned(hash.map_or(Value::Null, Value::Blob)))
}
