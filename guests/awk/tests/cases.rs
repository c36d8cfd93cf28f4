//! awk as an ordinary Linux program, on the cases recorded from gawk 5.2: see `tests/cases`.
//!
//! The sheets have the form of the shell's and are recorded by the same chore, on a machine whose `awk` is gawk:
//! `cargo xtask shell-record guests/awk/tests/cases`. `WARDIAN_CASES=WORD` runs those with the word in their names.

#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

use sheet::{Case, Outcome};

/// Runs a case in an empty directory, with our awk before the machine's.
fn run(bin: &Path, case: &Case) -> io::Result<Outcome> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let scratch = std::env::temp_dir().join(format!("wardian-awk-{}-{count}", std::process::id()));
    let work = scratch.join("work");
    fs::create_dir_all(&work)?;
    fs::write(scratch.join("case.sh"), &case.script)?;
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
fn cases_agree_with_gawk() {
    let wanted = std::env::var("WARDIAN_CASES").unwrap_or_default();
    let bin = std::env::temp_dir().join(format!("wardian-awk-bin-{}", std::process::id()));
    fs::create_dir_all(&bin).expect("a directory for a link");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_awk"), bin.join("awk")).expect("a link");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let (mut failures, mut total) = (Vec::new(), 0);
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for case in sheet::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            if !case.name.contains(&wanted) && !name.contains(&wanted) {
                continue;
            }
            total += 1;
            failures.extend(case.difference(&name, run(&bin, &case).map_err(|error| error.to_string())));
        }
    }
    fs::remove_dir_all(&bin).expect("the link goes again");
    assert!(total > 400 || !wanted.is_empty(), "only {total} cases");
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
