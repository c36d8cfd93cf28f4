//! git as an ordinary Linux program, on the cases recorded from native git: see `tests/cases`.
//!
//! `WARDIAN_CASES=WORD` runs those with the word in their names.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_git() {
    let git = Path::new(env!("CARGO_BIN_EXE_git"));
    agree::agree(env!("CARGO_MANIFEST_DIR"), &[("git", git)], 500, &[]);
}
