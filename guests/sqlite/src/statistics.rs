//! What `.stats` shows.

use crate::database::{Database, Statement, memory_in_use};
use crate::shell::Stats;
use rusqlite::ffi;

/// The numbers of a statement that has run, and of the library.
pub fn of(which: Stats, database: &Database, statement: &Statement<'_>) -> String {
    let mut text = String::new();
    if which == Stats::Steps {
        return format!("VM-steps: {}\n", statement.status(ffi::SQLITE_STMTSTATUS_VM_STEP));
    }
    if which == Stats::Statement {
        let names = statement.column_names();
        text += &format!("{:<36} {}\n", "Number of output columns:", names.len());
        for (index, name) in names.iter().enumerate() {
            let label = format!("Column {index} name:");
            text += &format!("{label:<36} {}\n", String::from_utf8_lossy(name));
        }
    }
    text += &of_connection(database);
    for (label, which) in [
        ("Fullscan Steps:", ffi::SQLITE_STMTSTATUS_FULLSCAN_STEP),
        ("Sort Operations:", ffi::SQLITE_STMTSTATUS_SORT),
        ("Autoindex Inserts:", ffi::SQLITE_STMTSTATUS_AUTOINDEX),
        ("Virtual Machine Steps:", ffi::SQLITE_STMTSTATUS_VM_STEP),
        ("Reprepare operations:", ffi::SQLITE_STMTSTATUS_REPREPARE),
        ("Number of times run:", ffi::SQLITE_STMTSTATUS_RUN),
        ("Memory used by prepared stmt:", ffi::SQLITE_STMTSTATUS_MEMUSED),
    ] {
        text += &format!("{label:<36} {}\n", statement.status(which));
    }
    text
}

/// The numbers of the library and of a connection.
pub fn of_connection(database: &Database) -> String {
    let (used, most) = memory_in_use(ffi::SQLITE_STATUS_MEMORY_USED);
    let (count, most_count) = memory_in_use(ffi::SQLITE_STATUS_MALLOC_COUNT);
    let (_, largest) = memory_in_use(ffi::SQLITE_STATUS_MALLOC_SIZE);
    let mut text = format!("{:<36} {used} (max {most}) bytes\n", "Memory Used:");
    text += &format!("{:<36} {count} (max {most_count})\n", "Number of Outstanding Allocations:");
    text += &format!("{:<36} {largest} bytes\n", "Largest Allocation:");
    for (label, which, unit) in [
        ("Pager Heap Usage:", ffi::SQLITE_DBSTATUS_CACHE_USED, " bytes"),
        ("Page cache hits:", ffi::SQLITE_DBSTATUS_CACHE_HIT, ""),
        ("Page cache misses:", ffi::SQLITE_DBSTATUS_CACHE_MISS, ""),
        ("Page cache writes:", ffi::SQLITE_DBSTATUS_CACHE_WRITE, ""),
        ("Page cache spills:", ffi::SQLITE_DBSTATUS_CACHE_SPILL, ""),
        ("Schema Heap Usage:", ffi::SQLITE_DBSTATUS_SCHEMA_USED, " bytes"),
        ("Statement Heap/Lookaside Usage:", ffi::SQLITE_DBSTATUS_STMT_USED, " bytes"),
    ] {
        text += &format!("{label:<36} {}{unit}\n", database.status(which).0);
    }
    text
}
