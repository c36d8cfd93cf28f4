//! jq as an ordinary Linux program, on the cases recorded from jq 1.7.1: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by a chore that is told where that jq is:
//! `cargo xtask tools-record --with jq=PATH guests/jq/tests/cases`. `WARDIAN_CASES=WORD` runs those with the word in
//! their names.

#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_jq() {
    let wanted = std::env::var("WARDIAN_CASES").unwrap_or_default();
    let (bash, jq) = (Path::new("/bin/bash"), Path::new(env!("CARGO_BIN_EXE_jq")));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut failures, mut total) = (Vec::new(), 0);
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for case in sheet::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            if !case.name.contains(&wanted) && !name.contains(&wanted) {
                continue;
            }
            total += 1;
            failures.extend(case.difference(&name, run::run(bash, &[("jq", jq)], &case)));
        }
    }
    assert!(total > 500 || !wanted.is_empty(), "only {total} cases");
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
