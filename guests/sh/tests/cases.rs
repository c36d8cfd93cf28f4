//! Runs every case under `tests/cases` and compares its output and exit code with what bash 5.2 gave.
//!
//! The cases are recorded from bash, never from this shell: `cargo xtask shell-record`. `tests/cases/sheet.rs` says
//! how they are written. `WARDIAN_CASES=compound cargo test …` runs those whose path holds that word.

#[path = "cases/nesting.rs"]
mod nesting;
#[path = "cases/run.rs"]
mod run;
#[path = "cases/sheet.rs"]
mod sheet;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use sheet::Case;

/// Every case that is asked for, with the name of its file.
fn cases() -> Vec<(String, Case)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let wanted = std::env::var("WARDIAN_CASES").unwrap_or_default();
    let mut cases = Vec::new();
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name =
            file.strip_prefix(&root).expect("it is below the root").with_extension("").display().to_string();
        if name.contains(&wanted) {
            let sheet = sheet::read(&file).unwrap_or_else(|error| panic!("{error}"));
            cases.extend(sheet.into_iter().map(|case| (name.clone(), case)));
        }
    }
    cases
}

#[test]
fn cases_agree_with_bash() {
    let all = cases();
    let shell = Path::new(env!("CARGO_BIN_EXE_sh"));
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut failures = Vec::new();
        while let Some((file, case)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            failures.extend(case.difference(file, run::run(shell, &[], case)));
        }
        failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    assert!(failures.is_empty(), "{}", sheet::report(&failures, all.len()));
}

#[test]
fn nesting_of_anything_ends_in_a_message() {
    let shell = Path::new(env!("CARGO_BIN_EXE_sh"));
    for (name, script) in nesting::scripts() {
        let script = format!("{script}\n").into_bytes();
        let case = Case { name: String::new(), script, stdin: Vec::new(), recorded: None };
        match run::run(shell, &[], &case) {
            Ok(outcome) => assert!(outcome.code < 128, "{name}: exit {}", outcome.code),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}
