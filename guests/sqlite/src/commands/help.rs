//! `.help`.

use super::{Outcome, Words};
use crate::shell::Shell;

/// Each command: how it is called, what it does, and more lines about it.
const ENTRIES: &[(&str, &str, &[&str])] = &[
    (".backup ?DB? FILE", "Copy DB (default \"main\") to FILE", &[]),
    (".bail on|off", "Stop after the first error (default off)", &[]),
    (".cd DIRECTORY", "Go to another directory", &[]),
    (".changes on|off", "Show how many rows each statement changed", &[]),
    (".clone NEWDB", "Copy the content of the database, table by table, into NEWDB", &[]),
    (".databases", "List the attached databases", &[]),
    (".dbconfig ?op? ?val?", "List or change the switches of the connection", &[]),
    (
        ".dump ?PATTERN?",
        "Write the database as SQL",
        &[
            "  --data-only             Only INSERT statements",
            "  --newlines              Leave line ends in texts as they are",
            "  --nosys                 Leave out system tables",
            "  --preserve-rowids       Keep the numbers of rows",
        ],
    ),
    (".echo on|off", "Write each command before it runs", &[]),
    (".eqp on|off|full|trigger", "Show each query's plan before it runs", &[]),
    (".exit ?CODE?", "End, with an exit code", &[]),
    (".explain ?on|off|auto?", "Whether EXPLAIN is shown in a way of its own", &[]),
    (".fullschema ?--indent?", "Show the schema and the planner's statistics", &[]),
    (".headers on|off", "Show the names of columns", &[]),
    (".help ?-all? ?PATTERN?", "Show this, or what there is to say about PATTERN", &[]),
    (
        ".import FILE TABLE",
        "Import data from FILE into TABLE",
        &[
            "  --ascii                 Columns end in \\037, rows in \\036",
            "  --csv                   Columns end in a comma, rows in a newline",
            "  --skip N                Leave out the first N rows",
            "  --schema S              The table is S.TABLE",
            "  -v                      Say more",
            "  A TABLE that is not there is made, with the first row as the names of its columns.",
        ],
    ),
    (".indexes ?TABLE?", "List indexes", &[]),
    (".limit ?LIMIT? ?VAL?", "Show or change limits of the library", &[]),
    (
        ".mode MODE ?OPTIONS?",
        "Set how rows look",
        &[
            "  MODE is one of ascii box column csv html insert json line list markdown qbox quote table tabs tcl",
            "  --wrap N                Break text after N characters (box, column, markdown, table)",
            "  --wordwrap B            Break between words, or not",
            "  --ww                    As --wordwrap 1",
            "  --quote, --noquote      Show text as SQL does, or not",
            "  TABLE                   The name that \"insert\" uses",
        ],
    ),
    (".nullvalue STRING", "Show STRING in place of NULL", &[]),
    (".once FILE", "Write the next result to FILE", &[]),
    (".open ?OPTIONS? ?FILE?", "Go to another database", &["  --new, --readonly"]),
    (".output ?FILE?", "Write results to FILE, or again to standard output", &[]),
    (
        ".parameter CMD ...",
        "Manage the values of SQL parameters",
        &[
            "  clear                   Forget all values",
            "  init                    Make the table that holds them",
            "  list                    List them",
            "  set PARAMETER VALUE     Give PARAMETER, which starts with $ : @ or ?, a value",
            "  unset PARAMETER         Forget one",
        ],
    ),
    (".print STRING...", "Write STRING", &[]),
    (".prompt MAIN CONTINUE", "Replace the prompts", &[]),
    (".quit", "End", &[]),
    (".read FILE", "Run the commands in FILE", &[]),
    (".restore ?DB? FILE", "Replace DB (default \"main\") by the content of FILE", &[]),
    (".save ?DB? FILE", "As .backup", &[]),
    (".schema ?PATTERN?", "Show CREATE statements", &["  --indent, --nosys"]),
    (".separator COL ?ROW?", "Set the separators of columns and rows", &[]),
    (".show", "Show the settings", &[]),
    (".stats ?ARG?", "Show statistics: on, off, stmt, vmstep, or now", &[]),
    (".tables ?TABLE?", "List tables and views", &[]),
    (".timeout MS", "Wait so long for a locked database", &[]),
    (".timer on|off", "Show how long each statement takes", &[]),
    (".version", "Show the version of SQLite", &[]),
    (".width NUM1 NUM2 ...", "Set the least width of columns; negative ones stand at the right", &[]),
];

pub fn run(shell: &mut Shell, words: &Words) -> Outcome {
    let everything = words.get(1).is_some_and(|word| word == b"-all" || word == b"--all");
    let pattern = words.get(1).filter(|_| !everything).map(|word| {
        let word = String::from_utf8_lossy(word).to_lowercase();
        word.trim_start_matches('.').to_owned()
    });
    let mut text = String::new();
    for (call, purpose, more) in ENTRIES {
        if pattern.as_ref().is_some_and(|pattern| !call[1..].starts_with(pattern.as_str())) {
            continue;
        }
        text += &format!("{call:<24} {purpose}\n");
        if everything || pattern.is_some() {
            more.iter().for_each(|line| text += &format!(" {line}\n"));
        }
    }
    if let Some(pattern) = pattern.filter(|_| text.is_empty()) {
        text = format!("Nothing matches '{pattern}'\n");
    }
    shell.out.put(text);
    Outcome::Done
}

/// What there is to say about one command.
pub fn of(command: &str) -> String {
    let entries = ENTRIES.iter().filter(|(call, ..)| call[1..].starts_with(command));
    let shown = |(call, purpose, more): &(&str, &str, &[&str])| {
        let more: String = more.iter().map(|line| format!(" {line}\n")).collect();
        format!("{call:<24} {purpose}\n{more}")
    };
    entries.map(shown).collect()
}
