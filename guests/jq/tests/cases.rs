//! jq as an ordinary Linux program, on the cases recorded from jq 1.7.1: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by a chore that is told where that jq is:
//! `cargo xtask tools-record --with jq=PATH guests/jq/tests/cases`. `WARDIAN_CASES=WORD` runs those with the word in
//! their names.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_jq() {
    let jq = Path::new(env!("CARGO_BIN_EXE_jq"));
    agree::agree(env!("CARGO_MANIFEST_DIR"), &[("jq", jq)], 500, &[]);
}
