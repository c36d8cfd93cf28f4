//! The programs as ordinary Linux programs, on the cases recorded from the real ones: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore: `cargo xtask tools-record
//! guests/archive/tests/cases`.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_the_real_programs() {
    let archive = Path::new(env!("CARGO_BIN_EXE_archive"));
    let programs: Vec<run::Named<'_>> =
        include_str!("../NAMES").lines().map(|name| (name, archive)).collect();
    agree::agree(env!("CARGO_MANIFEST_DIR"), &programs, 250, &[]);
}
