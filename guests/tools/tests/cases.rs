//! Our own tools as ordinary Linux programs, on the cases recorded from GNU's: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore: `cargo xtask shell-record
//! guests/tools/tests/cases`. In a sandbox every case runs; here those that need none of uutils' tools make the same
//! outcome of the machine's.

#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

use sheet::{Case, Outcome};

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

/// Runs a case in an empty directory, with our tools before the machine's.
fn run(bin: &Path, case: &Case) -> io::Result<Outcome> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let scratch = std::env::temp_dir().join(format!("wardian-tools-{}-{count}", std::process::id()));
    let work = scratch.join("work");
    fs::create_dir_all(&work)?;
    let script = scratch.join("case.sh");
    fs::write(&script, &case.script)?;
    let mut child = Command::new("/bin/bash")
        .arg0("bash")
        .arg("../case.sh")
        .current_dir(&work)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", &work)
        .env("USER", "user")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    // A script need not read what it is given.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(&case.stdin));
    let output = child.wait_with_output()?;
    fs::remove_dir_all(&scratch)?;
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
    Ok(Outcome { out: output.stdout, code })
}

#[test]
fn cases_agree_with_gnu() {
    let bin = std::env::temp_dir().join(format!("wardian-tools-bin-{}", std::process::id()));
    fs::create_dir_all(&bin).expect("a directory for links");
    for name in own_tools() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tools"), bin.join(name)).expect("a link");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut failures, mut total) = (Vec::new(), 0);
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // There every tool's file has its own name.
        if name == "sandbox.sheet" {
            continue;
        }
        for case in sheet::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            total += 1;
            failures.extend(case.difference(&name, run(&bin, &case).map_err(|error| error.to_string())));
        }
    }
    fs::remove_dir_all(&bin).expect("the links go again");
    assert!(total > 20, "only {total} cases");
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
