//! Runs one case with a shell of this machine: ours, or the bash it is recorded from.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, io, thread};

use super::sheet::{Case, Outcome};

/// How long a case may take before it is taken for one that never ends.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program, and what a case calls it.
pub type Named<'a> = (&'a str, &'a Path);

/// Runs a case in an empty directory, where `bash` and `sh` are the given shell too, and the programs named come before
/// the machine's own.
pub fn run(shell: &Path, programs: &[Named<'_>], case: &Case) -> Result<Outcome, String> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let unique = format!("wardian-case-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let scratch = std::env::temp_dir().join(unique);
    let outcome = start(shell, programs, case, &scratch)
        .map_err(|error| error.to_string())
        .and_then(|child| finish(child, case.stdin.clone()));
    // Whatever a case left behind (a directory without permissions, say) must not fail it.
    fs::remove_dir_all(&scratch).ok();
    outcome
}

/// Makes a shell independent of who started the tests: `nohup`, a background job and a lock leave ignored signals and
/// open descriptors behind, which a shell hands on.
const UNTOUCHED: &str =
    "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; exec /usr/bin/env --default-signal bash ../case.sh";

/// Starts a case, in a process group of its own. It knows itself as `../case.sh` wherever it runs.
fn start(shell: &Path, programs: &[Named<'_>], case: &Case, scratch: &Path) -> io::Result<Child> {
    let (work, bin): (PathBuf, PathBuf) = (scratch.join("work"), scratch.join("bin"));
    fs::create_dir_all(&work)?;
    fs::create_dir_all(&bin)?;
    for (name, program) in [("bash", shell), ("sh", shell)].iter().chain(programs) {
        std::os::unix::fs::symlink(program, bin.join(name))?;
    }
    fs::write(scratch.join("case.sh"), &case.script)?;
    Command::new("/bin/sh")
        .args(["-c", UNTOUCHED])
        .current_dir(&work)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", &work)
        .env("USER", "user")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Feeds a case and waits for it and for all who hold its output; ends it when it takes too long.
fn finish(mut child: Child, input: Vec<u8>) -> Result<Outcome, String> {
    let (mut stdin, mut stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    // A script need not read what it is given.
    thread::spawn(move || stdin.write_all(&input).ok());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut out = Vec::new();
        stdout.read_to_end(&mut out).ok();
        sender.send(out).ok();
    });
    let out = receiver.recv_timeout(PATIENCE);
    if out.is_err() {
        let group = format!("-{}", child.id());
        Command::new("kill").args(["-KILL", "--", &group]).status().map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let out = out.map_err(|_| format!("it took over {} s", PATIENCE.as_secs()))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(Outcome { out, code })
}
