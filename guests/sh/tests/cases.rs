//! Runs every script under `tests/cases` and compares its output and exit code with what bash 5.2 gave.
//!
//! A case is `NAME.sh`, with `NAME.out` (standard output, byte for byte) and `NAME.rc` (the exit code) recorded
//! from bash, never from this shell: `WARDIAN_RECORD=1 cargo test -p wardian-sh --test cases` runs the machine's
//! bash and writes them anew. Without that variable nothing but the recording is needed.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

/// What a script did.
#[derive(PartialEq)]
struct Outcome {
    out: Vec<u8>,
    code: i32,
}

fn scripts(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            scripts(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "sh") {
            found.push(path);
        }
    }
    Ok(())
}

/// Runs a script with a shell, in an empty directory, where `bash` and `sh` are that shell too.
fn run(shell: &Path, script: &Path) -> io::Result<Outcome> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let unique = format!("wardian-sh-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let scratch = std::env::temp_dir().join(unique);
    let (work, bin) = (scratch.join("work"), scratch.join("bin"));
    fs::create_dir_all(&work)?;
    fs::create_dir_all(&bin)?;
    for name in ["bash", "sh"] {
        std::os::unix::fs::symlink(shell, bin.join(name))?;
    }
    let copy = scratch.join("case.sh");
    fs::copy(script, &copy)?;
    let output = Command::new(bin.join("bash"))
        .arg0("bash")
        .arg(&copy)
        .current_dir(&work)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", &work)
        .env("USER", "user")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    fs::remove_dir_all(&scratch)?;
    let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
    Ok(Outcome { out: output.stdout, code })
}

fn record(script: &Path) -> io::Result<()> {
    let outcome = run(Path::new("/bin/bash"), script)?;
    fs::write(script.with_extension("out"), &outcome.out)?;
    fs::write(script.with_extension("rc"), format!("{}\n", outcome.code))
}

fn recorded(script: &Path) -> io::Result<Outcome> {
    let code = fs::read_to_string(script.with_extension("rc"))?;
    Ok(Outcome { out: fs::read(script.with_extension("out"))?, code: code.trim().parse().unwrap_or(-1) })
}

/// A failure, or nothing.
fn check(script: &Path) -> Option<String> {
    let expected = match recorded(script) {
        Ok(expected) => expected,
        Err(error) => return Some(format!("{}: no recording: {error}", script.display())),
    };
    let actual = match run(Path::new(env!("CARGO_BIN_EXE_sh")), script) {
        Ok(actual) => actual,
        Err(error) => return Some(format!("{}: {error}", script.display())),
    };
    (actual != expected).then(|| {
        format!(
            "{}\n--- bash ({})\n{}--- this shell ({})\n{}",
            script.display(),
            expected.code,
            String::from_utf8_lossy(&expected.out),
            actual.code,
            String::from_utf8_lossy(&actual.out)
        )
    })
}

#[test]
fn cases_agree_with_bash() {
    let mut all = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    scripts(&root, &mut all).expect("the cases can be listed");
    all.sort();
    if std::env::var_os("WARDIAN_RECORD").is_some() {
        for script in &all {
            record(script).expect("bash runs and the recording can be written");
        }
        return;
    }
    let next = AtomicUsize::new(0);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let worker = || {
            let mut failures = Vec::new();
            while let Some(script) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                failures.extend(check(script));
            }
            failures
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    assert!(
        failures.is_empty(),
        "{} of {} cases differ:\n{}",
        failures.len(),
        all.len(),
        failures.join("\n")
    );
}
