//! Our own tools as ordinary Linux programs, on the cases recorded from GNU's: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by `cargo xtask tools-record
//! guests/tools/tests/cases`. In a sandbox every case runs; here those that need none of uutils' tools make the same
//! outcome of the machine's. `WARDIAN_CASES=WORD` runs those with the word in their names or their sheets'.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;
use std::process::{Command, Stdio};

/// The names in a file of `NAME`s whose tool is ours: the others say so and answer 127.
fn own_tools() -> Vec<&'static str> {
    let is_ours = |name: &&str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tools"));
        command
            .current_dir(std::env::temp_dir())
            .args([*name, "--version"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().expect("the tools run").code() != Some(127)
    };
    include_str!("../NAMES").lines().filter(is_ours).collect()
}

#[test]
fn cases_agree_with_gnu() {
    let tools = Path::new(env!("CARGO_BIN_EXE_tools"));
    let programs: Vec<run::Named<'_>> = own_tools().into_iter().map(|name| (name, tools)).collect();
    // In that sheet every tool's file has its own name.
    agree::agree(env!("CARGO_MANIFEST_DIR"), &programs, 20, &["sandbox.sheet"]);
}

#[test]
fn every_tool_says_what_it_does_and_which_it_is() {
    // The standard gives that one no options: whatever it is told is an expression.
    for name in own_tools().into_iter().filter(|name| *name != "test") {
        for option in ["--help", "--version"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tools"));
            let output = command.args([name, option]).stdin(Stdio::null()).output().expect("the tools run");
            assert!(output.status.success(), "{name} {option}: {}", output.status);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(!text.trim().is_empty(), "{name} {option} says nothing");
        }
    }
}
