//! node as an ordinary Linux program, on the cases recorded from Node 20: see `tests/cases`.
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
fn cases_agree_with_node() {
    let node = Path::new(env!("CARGO_BIN_EXE_node"));
    agree::agree(env!("CARGO_MANIFEST_DIR"), &[("node", node)], 150, &[]);
}
