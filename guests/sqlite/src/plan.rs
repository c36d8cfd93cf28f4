//! What EXPLAIN shows: a query's plan as a tree, or its program as a listing.

use crate::database::{Cell, Database, Failure, Statement};
use crate::output::Output;
use crate::shell::{Shell, ShowPlan};
use rusqlite::ffi;

/// Shows how a statement would run, as `.eqp` asked for. A plan that cannot be had is none.
pub fn show_before(shell: &mut Shell, database: &Database, sql: &[u8]) {
    let explained = |how: &str| [how.as_bytes(), sql].concat();
    let before = database.switch(ffi::SQLITE_DBCONFIG_TRIGGER_EQP, -1);
    if matches!(shell.show_plan, ShowPlan::Trigger | ShowPlan::Full) {
        database.switch(ffi::SQLITE_DBCONFIG_TRIGGER_EQP, 1);
    }
    if let Ok((Some(mut statement), _)) = database.prepare(&explained("EXPLAIN QUERY PLAN ")) {
        let _ = show(&mut shell.out, &mut statement);
    }
    if shell.show_plan == ShowPlan::Full
        && let Ok((Some(mut statement), _)) = database.prepare(&explained("EXPLAIN "))
    {
        let _ = show_program(&mut shell.out, &mut statement);
    }
    database.switch(ffi::SQLITE_DBCONFIG_TRIGGER_EQP, before);
}

/// A step of a plan: its number, that of the step it is a part of, and what it does.
struct Step {
    id: i64,
    parent: i64,
    detail: Vec<u8>,
}

/// Shows the rows of an EXPLAIN QUERY PLAN as a tree.
pub fn show(out: &mut Output, statement: &mut Statement<'_>) -> Result<(), Failure> {
    let mut steps = Vec::new();
    while statement.step()? {
        let row = statement.row();
        let number = |column: usize| match row.get(column) {
            Some(Cell::Integer(number)) => *number,
            _ => 0,
        };
        let detail = row.get(3).and_then(Cell::text).unwrap_or_default();
        steps.push(Step { id: number(0), parent: number(1), detail });
    }
    if !steps.is_empty() {
        out.put("QUERY PLAN\n");
        put_parts(out, &steps, 0, "");
    }
    Ok(())
}

/// Puts the parts of a step below it. A part comes after the step it belongs to, so this ends.
fn put_parts(out: &mut Output, steps: &[Step], parent: i64, prefix: &str) {
    let mut parts = steps.iter().enumerate().filter(|(_, step)| step.parent == parent).peekable();
    while let Some((index, step)) = parts.next() {
        let (branch, below) = if parts.peek().is_some() { ("|--", "|  ") } else { ("`--", "   ") };
        out.put([prefix.as_bytes(), branch.as_bytes(), &step.detail, b"\n"].concat());
        put_parts(out, &steps[index + 1..], step.id, &format!("{prefix}{below}"));
    }
}

/// The widths of an EXPLAIN's columns.
const WIDTHS: [usize; 8] = [4, 13, 4, 4, 4, 13, 2, 13];

/// Shows the rows of an EXPLAIN as a listing in which the bodies of loops are indented.
pub fn show_program(out: &mut Output, statement: &mut Statement<'_>) -> Result<(), Failure> {
    let mut program: Vec<Vec<Vec<u8>>> = Vec::new();
    while statement.step()? {
        program.push(statement.row().iter().map(|cell| cell.text().unwrap_or_default()).collect());
    }
    let names = statement.column_names();
    let dashes: Vec<Vec<u8>> = WIDTHS.iter().map(|&width| vec![b'-'; width]).collect();
    out.put(line(&names, 0));
    out.put(line(&dashes[..names.len().min(WIDTHS.len())], 0));
    for (operation, indent) in program.iter().zip(indents(&program)) {
        out.put(line(operation, indent));
    }
    Ok(())
}

/// How far each operation is to the right.
fn indents(program: &[Vec<Vec<u8>>]) -> Vec<usize> {
    const BACK: [&[u8]; 5] = [b"Next", b"Prev", b"VPrev", b"VNext", b"SorterNext"];
    const STARTS: [&[u8]; 5] = [b"Yield", b"SeekLT", b"SeekGT", b"RowSetRead", b"Rewind"];
    let text = |at: usize, column: usize| program[at].get(column).map_or(&b""[..], Vec::as_slice);
    let number = |at: usize, column: usize| -> usize {
        String::from_utf8_lossy(text(at, column)).parse().unwrap_or(usize::MAX)
    };
    let mut indents = vec![0; program.len()];
    for at in 0..program.len() {
        let (operation, target) = (text(at, 1), number(at, 3));
        let is_loop = BACK.contains(&operation)
            || operation == b"Goto"
                && target < at
                && (STARTS.contains(&text(target, 1)) || number(at, 2) != 0);
        if is_loop && target < at {
            indents[target..at].iter_mut().for_each(|indent| *indent += 2);
        }
    }
    indents
}

fn line(texts: &[Vec<u8>], indent: usize) -> Vec<u8> {
    let mut line = Vec::new();
    for (column, text) in texts.iter().enumerate() {
        let width = WIDTHS.get(column).copied().unwrap_or(13);
        if column == 1 {
            line.extend(vec![b' '; indent]);
        }
        line.extend(text);
        line.extend(vec![b' '; width.saturating_sub(text.len())]);
        line.extend(if column + 1 == texts.len() { &b"\n"[..] } else { b"  " });
    }
    line
}
