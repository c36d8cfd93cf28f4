//! awk as an ordinary Linux program, on the cases recorded from gawk 5.2: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore, on a machine whose `awk` is gawk:
//! `cargo xtask tools-record guests/awk/tests/cases`. `WARDIAN_CASES=WORD` runs those with the word in their names.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_gawk() {
    let awk = Path::new(env!("CARGO_BIN_EXE_awk"));
    agree::agree(env!("CARGO_MANIFEST_DIR"), &[("awk", awk)], 400, &[]);
}
