//! The shell as an ordinary Linux program, on the cases recorded from Debian 12's sqlite3 3.40: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore: `cargo xtask shell-record
//! guests/sqlite/tests/cases`. `WARDIAN_CASES=WORD` runs those with the word in their names.

#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_the_original() {
    let wanted = std::env::var("WARDIAN_CASES").unwrap_or_default();
    let (bash, sqlite) = (Path::new("/bin/bash"), Path::new(env!("CARGO_BIN_EXE_sqlite3")));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut failures, mut total) = (Vec::new(), 0);
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for case in sheet::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            if !case.name.contains(&wanted) && !name.contains(&wanted) {
                continue;
            }
            total += 1;
            failures.extend(case.difference(&name, run::run(bash, &[("sqlite3", sqlite)], &case)));
        }
    }
    assert!(total > 120 || !wanted.is_empty(), "only {total} cases");
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
