//! `.limit` and `.dbconfig`: the library's own settings.

use super::arguments::{boolean, number};
use super::{Outcome, Words, failed, usage};
use crate::shell::Shell;
use rusqlite::ffi;

const LIMITS: &[(&str, i32)] = &[
    ("length", ffi::SQLITE_LIMIT_LENGTH),
    ("sql_length", ffi::SQLITE_LIMIT_SQL_LENGTH),
    ("column", ffi::SQLITE_LIMIT_COLUMN),
    ("expr_depth", ffi::SQLITE_LIMIT_EXPR_DEPTH),
    ("compound_select", ffi::SQLITE_LIMIT_COMPOUND_SELECT),
    ("vdbe_op", ffi::SQLITE_LIMIT_VDBE_OP),
    ("function_arg", ffi::SQLITE_LIMIT_FUNCTION_ARG),
    ("attached", ffi::SQLITE_LIMIT_ATTACHED),
    ("like_pattern_length", ffi::SQLITE_LIMIT_LIKE_PATTERN_LENGTH),
    ("variable_number", ffi::SQLITE_LIMIT_VARIABLE_NUMBER),
    ("trigger_depth", ffi::SQLITE_LIMIT_TRIGGER_DEPTH),
    ("worker_threads", ffi::SQLITE_LIMIT_WORKER_THREADS),
];

const SWITCHES: &[(&str, i32)] = &[
    ("defensive", ffi::SQLITE_DBCONFIG_DEFENSIVE),
    ("dqs_ddl", ffi::SQLITE_DBCONFIG_DQS_DDL),
    ("dqs_dml", ffi::SQLITE_DBCONFIG_DQS_DML),
    ("enable_fkey", ffi::SQLITE_DBCONFIG_ENABLE_FKEY),
    ("enable_qpsg", ffi::SQLITE_DBCONFIG_ENABLE_QPSG),
    ("enable_trigger", ffi::SQLITE_DBCONFIG_ENABLE_TRIGGER),
    ("enable_view", ffi::SQLITE_DBCONFIG_ENABLE_VIEW),
    ("fts3_tokenizer", ffi::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER),
    ("legacy_alter_table", ffi::SQLITE_DBCONFIG_LEGACY_ALTER_TABLE),
    ("legacy_file_format", ffi::SQLITE_DBCONFIG_LEGACY_FILE_FORMAT),
    ("load_extension", ffi::SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION),
    ("no_ckpt_on_close", ffi::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE),
    ("reset_database", ffi::SQLITE_DBCONFIG_RESET_DATABASE),
    ("trigger_eqp", ffi::SQLITE_DBCONFIG_TRIGGER_EQP),
    ("trusted_schema", ffi::SQLITE_DBCONFIG_TRUSTED_SCHEMA),
    ("writable_schema", ffi::SQLITE_DBCONFIG_WRITABLE_SCHEMA),
];

pub fn limit(shell: &mut Shell, words: &Words) -> Outcome {
    let database = shell.database();
    let shown = |(name, which): &(&str, i32)| format!("{name:>20} {}\n", database.limit(*which, -1));
    let Some(wanted) = words.get(1) else {
        let text: String = LIMITS.iter().map(shown).collect();
        shell.out.put(text);
        return Outcome::Done;
    };
    if words.len() > 3 {
        return usage(".limit NAME ?NEW-VALUE?");
    }
    let wanted_name = wanted.to_ascii_lowercase();
    let fitting: Vec<&(&str, i32)> =
        LIMITS.iter().filter(|(name, _)| name.as_bytes().starts_with(&wanted_name)).collect();
    let found = match fitting.as_slice() {
        [] => {
            return failed(&[
                b"unknown limit: \"",
                wanted,
                b"\"\nenter \".limits\" with no arguments for a list.",
            ]);
        }
        [found] => *found,
        _ => return failed(&[b"ambiguous limit: \"", wanted, b"\""]),
    };
    if let Some(value) = words.get(2) {
        database.limit(found.1, number(value).clamp(-1, i64::from(i32::MAX)) as i32);
    }
    let text = shown(found);
    shell.out.put(text);
    Outcome::Done
}

pub fn dbconfig(shell: &mut Shell, words: &Words) -> Outcome {
    let database = shell.database();
    let mut text = String::new();
    for (name, which) in SWITCHES {
        if words.get(1).is_some_and(|wanted| wanted != name.as_bytes()) {
            continue;
        }
        let value = words.get(2).map_or(-1, |word| i32::from(boolean(word)));
        let is_on = database.switch(*which, value) != 0;
        text += &format!("{name:>19} {}\n", if is_on { "on" } else { "off" });
    }
    if let Some(wanted) = words.get(1).filter(|_| text.is_empty()) {
        failed(&[
            b"Error: unknown dbconfig \"",
            wanted,
            b"\"\nEnter \".dbconfig\" with no arguments for a list",
        ]);
    }
    shell.out.put(text);
    Outcome::Done
}
