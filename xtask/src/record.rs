//! `cargo xtask shell-record` and `tools-record`: what bash 5.2, and the programs of Debian, make of the cases, written
//! where the tests look for it.

#[path = "../../guests/sh/tests/cases/run.rs"]
mod run;
#[path = "../../guests/sh/tests/cases/sheet.rs"]
mod sheet;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow, bail, ensure};
use sheet::{Case, Outcome};

const BASH: &str = "/bin/bash";

/// Records the shell's cases.
pub fn shell(arguments: &[String]) -> Result<()> {
    record_all(arguments, || Ok(vec![crate::root().join("guests/sh/tests/cases")]))
}

/// Records the cases of all other guests.
pub fn tools(arguments: &[String]) -> Result<()> {
    require("ls --version", "ls (GNU coreutils) 9.1")?;
    record_all(arguments, || {
        let guests = fs::read_dir(crate::root().join("guests"))?;
        let mut paths: Vec<PathBuf> = guests.map(|guest| Ok(guest?.path())).collect::<Result<_>>()?;
        // jq's come from a later Debian, and those of the network tools need their server: they are recorded by their
        // paths, and `--with` that jq or server.
        paths.retain(|guest| !["sh", "jq", "net"].iter().any(|name| guest.ends_with(name)));
        paths.iter_mut().for_each(|guest| guest.push("tests/cases"));
        paths.retain(|cases| cases.is_dir());
        paths.sort();
        Ok(paths)
    })
}

/// Records every case below the given paths (or those that all cases lie below, if none is given), or shows with
/// `--check` what would change. `--with NAME=PROGRAM` puts a program before the machine's own, where that is not the
/// version to record from.
fn record_all(arguments: &[String], everything: impl FnOnce() -> Result<Vec<PathBuf>>) -> Result<()> {
    require(&format!("{BASH} --version"), "GNU bash, version 5.2.")?;
    let (mut check, mut paths, mut programs) = (false, Vec::new(), Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check" => check = true,
            "--with" => {
                let pair = arguments.next().and_then(|pair| pair.split_once('='));
                let (name, program) = pair.context("--with takes NAME=PROGRAM")?;
                programs.push((name, Path::new(program)));
            }
            path => paths.push(PathBuf::from(path)),
        }
    }
    if paths.is_empty() {
        paths = everything()?;
    }
    let (mut total, mut drifted, mut unsteady) = (0, Vec::new(), Vec::new());
    for path in paths {
        for file in sheet::files(&path).with_context(|| format!("cannot list {}", path.display()))? {
            let mut cases = sheet::read(&file).map_err(|error| anyhow!(error))?;
            total += cases.len();
            let drift = record(&file, &mut cases, &programs, &mut unsteady);
            if !check && !drift.is_empty() {
                write(&file, &cases)?;
                println!("recorded {} in {}", drift.len(), file.display());
            }
            drifted.extend(drift);
        }
    }
    ensure!(
        unsteady.is_empty(),
        "no cases, for bash ends them differently each time or not at all:\n{}",
        unsteady.join("\n")
    );
    ensure!(!check || drifted.is_empty(), "{}", sheet::report(&drifted, total));
    println!("{total} cases, {} recorded again", drifted.len());
    Ok(())
}

/// Only one version is the specification: a command must say that it is that.
fn require(command: &str, version: &str) -> Result<()> {
    let mut words = command.split(' ');
    let said = crate::output(Command::new(words.next().unwrap_or_default()).args(words))?;
    let said = String::from_utf8_lossy(&said);
    let first = said.lines().next().unwrap_or_default();
    ensure!(
        first.starts_with(version),
        "the cases are recorded from '{version}'; this machine has '{first}'"
    );
    Ok(())
}

/// Runs the cases of a file and keeps what bash made of them. The listings of those where that is new.
fn record(
    file: &Path,
    cases: &mut [Case],
    programs: &[run::Named<'_>],
    unsteady: &mut Vec<String>,
) -> Vec<String> {
    let name = file.display().to_string();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut changed = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index) else { return changed };
            if let Some(outcome) = outcome(case, programs).transpose() {
                changed.push((index, outcome));
            }
        }
    };
    let mut changed = std::thread::scope(|scope| {
        let (first, second) = (scope.spawn(worker), scope.spawn(worker));
        let mut changed = first.join().expect("a worker does not panic");
        changed.extend(second.join().expect("a worker does not panic"));
        changed
    });
    changed.sort_by_key(|(index, _)| *index);
    let mut listings = Vec::new();
    for (index, outcome) in changed {
        let case = &mut cases[index];
        match outcome {
            Ok(outcome) => {
                listings.extend(case.difference(&name, Ok(outcome.clone())));
                case.recorded = Some(outcome);
            }
            Err(error) => unsteady.push(format!("{name}: {}: {error}", case.name)),
        }
    }
    listings
}

/// What bash makes of a case, if that is not what is recorded. It must do so twice: what depends on the time or on
/// who comes first is no case.
fn outcome(case: &Case, programs: &[run::Named<'_>]) -> Result<Option<Outcome>, String> {
    let outcome = run::run(Path::new(BASH), programs, case)?;
    if case.recorded.as_ref() == Some(&outcome) {
        return Ok(None);
    }
    if run::run(Path::new(BASH), programs, case)? != outcome {
        return Err("it does not do the same twice".into());
    }
    Ok(Some(outcome))
}

/// Writes a file of cases with what is recorded now.
fn write(file: &Path, cases: &[Case]) -> Result<()> {
    if file.extension().is_some_and(|extension| extension == "sheet") {
        let old = fs::read(file)?;
        let (preamble, _) = sheet::cut(&old, b"#### ");
        let text = text(preamble, cases).with_context(|| format!("cannot write {}", file.display()))?;
        return Ok(fs::write(file, text)?);
    }
    for outcome in cases.iter().filter_map(|case| case.recorded.as_ref()) {
        fs::write(file.with_extension("out"), &outcome.out)?;
        fs::write(file.with_extension("rc"), format!("{}\n", outcome.code))?;
    }
    Ok(())
}

/// The text of a sheet.
fn text(preamble: &[u8], cases: &[Case]) -> Result<Vec<u8>> {
    let mut text = preamble.to_vec();
    for case in cases {
        text.extend(format!("#### {}\n", case.name).bytes());
        text.extend(&case.script);
        if !case.stdin.is_empty() {
            text.extend(b".... stdin\n");
            text.extend(&case.stdin);
        }
        let Some(Outcome { out, code }) = &case.recorded else {
            text.extend(b"---- ?\n");
            continue;
        };
        let ends_within_a_line = out.last().is_some_and(|&last| last != b'\n');
        text.extend(format!("---- {code}{}\n", if ends_within_a_line { " no newline" } else { "" }).bytes());
        text.extend(out);
        if ends_within_a_line {
            text.push(b'\n');
        }
    }
    let again = sheet::parse(&text).map_err(|error| anyhow!(error))?;
    if !again.iter().map(|case| &case.recorded).eq(cases.iter().map(|case| &case.recorded)) {
        bail!("an output has a line that begins like a line of a sheet; make that case a file of its own");
    }
    Ok(text)
}
