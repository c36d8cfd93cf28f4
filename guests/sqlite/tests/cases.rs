//! The shell as an ordinary Linux program, on the cases recorded from Debian 12's sqlite3 3.40: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore: `cargo xtask tools-record
//! guests/sqlite/tests/cases`. `WARDIAN_CASES=WORD` runs those with the word in their names.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_the_original() {
    let sqlite = Path::new(env!("CARGO_BIN_EXE_sqlite3"));
    agree::agree(env!("CARGO_MANIFEST_DIR"), &[("sqlite3", sqlite)], 120, &[]);
}
