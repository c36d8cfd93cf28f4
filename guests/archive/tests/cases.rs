//! The programs as ordinary Linux programs, on the cases recorded from the real ones: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore: `cargo xtask shell-record
//! guests/archive/tests/cases`.

#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_the_real_programs() {
    let (bash, archive) = (Path::new("/bin/bash"), Path::new(env!("CARGO_BIN_EXE_archive")));
    let programs: Vec<run::Named<'_>> =
        include_str!("../NAMES").lines().map(|name| (name, archive)).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut failures, mut total) = (Vec::new(), 0);
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for case in sheet::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            total += 1;
            failures.extend(case.difference(&name, run::run(bash, &programs, &case)));
        }
    }
    assert!(total > 250, "only {total} cases");
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
