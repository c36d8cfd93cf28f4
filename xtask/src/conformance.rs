//! `cargo xtask python-conformance`: runs CPython's own test suite with the sandbox's `python3`.
//!
//! The suite is part of CPython's source package, which is fetched as `cargo xtask cpython` fetches it and is not part of
//! this repository. Each module runs in a sandbox of its own; `guests/python/tests/conformance.py` runs it there and
//! reports each test. Tests that cannot pass are in `guests/python/tests/conformance.txt`, with the reason; any other
//! failure fails the chore.

mod report;
mod skips;
mod suite;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{fs, thread};

use anyhow::{Context, Result, bail};

use report::{Outcome, Report};
use skips::Skips;

/// What `--list ci` runs: fast modules, each from another part of the system.
const CI: &[&str] = &[
    "test_builtin",
    "test_csv",
    "test_dict",
    "test_hashlib",
    "test_pathlib",
    "test_select",
    "test_signal",
    "test_struct",
    "test_subprocess",
    "test_tempfile",
    "test_zlib",
];

/// A module that takes longer is ended. Single tests have a limit of their own, in `conformance.py`.
const TIMEOUT: &str = "900s";

/// The exit code of `wardian run` then. The module is not started again.
const TIMED_OUT: i32 = 124;

/// How often a module is started again after a test ended the interpreter.
const RESTARTS: usize = 12;

/// What the arguments ask for.
struct Options {
    modules: Vec<String>,
    /// The table is written if everything ran.
    everything: bool,
    /// What was run before counts, and is not run again.
    continues: bool,
    skips: Skips,
}

/// Runs the modules that are named, those of a list, or all.
pub fn main(arguments: &[String]) -> Result<()> {
    let suite = crate::cpython::test_suite()?;
    let options = read_options(arguments, &suite)?;
    crate::step("cargo build --release --workspace", &[])?;
    let reports = run_all(&suite, &options)?;
    if options.everything {
        fs::write(crate::root().join("docs/cpython-conformance.md"), report::page(&reports))?;
    }
    report::verdict(&reports)
}

/// Runs the short list, with the program that has been built. A machine that cannot fetch the suite says so.
pub fn check() -> Result<()> {
    println!("==> CPython's own tests: {}", CI.join(" "));
    let suite = match crate::cpython::test_suite() {
        Ok(suite) => suite,
        Err(error) => {
            println!("python-conformance: not run, CPython's source package cannot be fetched: {error:#}");
            return Ok(());
        }
    };
    let modules = CI.iter().map(|&name| name.to_owned()).collect();
    let skips = Skips::read(&skips_file())?;
    let options = Options { modules, everything: false, continues: false, skips };
    report::verdict(&run_all(&suite, &options)?)
}

fn skips_file() -> PathBuf {
    crate::root().join("guests/python/tests/conformance.txt")
}

fn read_options(arguments: &[String], suite: &Path) -> Result<Options> {
    const USAGE: &str =
        "cargo xtask python-conformance [MODULE…] [--list ci|all] [--continue] [--without-skips]";
    let mut continues = false;
    let (mut modules, mut list, mut skips) = (Vec::new(), None, Some(Skips::read(&skips_file())?));
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--list" => list = Some(words.next().context(USAGE)?),
            "--continue" => continues = true,
            "--without-skips" => skips = None,
            _ if word.starts_with('-') => bail!("{USAGE}"),
            name => modules.push(name.to_owned()),
        }
    }
    let known = suite::modules(suite)?;
    let list = list.or_else(|| modules.is_empty().then_some("all"));
    match list {
        Some("ci") => modules.extend(CI.iter().map(|&name| name.to_owned())),
        Some("all") => modules = known.clone(),
        Some(other) => bail!("no list is called '{other}'\n{USAGE}"),
        None => {}
    }
    if let Some(unknown) = modules.iter().find(|name| !suite::has(suite, name)) {
        bail!("the suite has no module {unknown}");
    }
    let everything = list == Some("all") && skips.is_some();
    Ok(Options { modules, everything, continues, skips: skips.unwrap_or_default() })
}

/// Runs the modules, as many at a time as there are processors.
fn run_all(suite: &Path, options: &Options) -> Result<Vec<Report>> {
    let place = crate::root().join("target/conformance");
    fs::create_dir_all(&place)?;
    let pending = Mutex::new(options.modules.iter());
    let reports = Mutex::new(Vec::new());
    let failure = Mutex::new(None);
    let work = || {
        loop {
            let Some(module) = pending.lock().expect("nobody panics with it").next() else { return };
            let kept = place.join(format!("{module}.tests"));
            let before = options.continues.then(|| fs::read_to_string(&kept).ok()).flatten();
            let run = match before {
                Some(before) => Ok(Report::stored(module, &before)),
                None => run_module(suite, &place, module, &options.skips)
                    .and_then(|report| Ok(fs::write(&kept, report.to_store()).map(|()| report)?)),
            };
            match run {
                Ok(report) => {
                    println!("{}", report.line());
                    reports.lock().expect("nobody panics with it").push(report);
                }
                Err(error) => {
                    failure.lock().expect("nobody panics with it").get_or_insert(error);
                    return;
                }
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    if let Some(error) = failure.into_inner().expect("nobody panics with it") {
        return Err(error);
    }
    let mut reports = reports.into_inner().expect("nobody panics with it");
    reports.sort_by(|a, b| a.module.cmp(&b.module));
    Ok(reports)
}

/// Runs one module. If a test ends the interpreter, the rest is run by another one.
fn run_module(suite: &Path, place: &Path, module: &str, skips: &Skips) -> Result<Report> {
    let mut report = Report::new(module);
    if let Some(reason) = skips.whole_module(module) {
        report.add(module, Outcome::Excluded, reason);
        return Ok(report);
    }
    let input = place.join(module);
    fs::create_dir_all(&input)?;
    fs::copy(crate::root().join("guests/python/tests/conformance.py"), input.join("conformance.py"))?;
    fs::write(input.join("skips"), skips.lines())?;
    let mut printed = Vec::new();
    for _ in 0..RESTARTS {
        fs::write(input.join("done"), report.names())?;
        let output = start(suite, &input, module)?;
        printed.extend_from_slice(&output.stderr);
        let is_done = report.read(&String::from_utf8_lossy(&output.stdout), output.status);
        if is_done || output.status.code() == Some(TIMED_OUT) {
            break;
        }
    }
    fs::remove_dir_all(&input)?;
    let log = [report.failures().as_bytes(), b"\n", &printed].concat();
    fs::write(place.join(format!("{module}.log")), log)?;
    Ok(report)
}

/// What a module's processes need together.
fn memory(module: &str) -> &'static str {
    if module.ends_with(".test_processes") { "4G" } else { "1G" }
}

fn start(suite: &Path, input: &Path, module: &str) -> Result<std::process::Output> {
    let mut command = Command::new(crate::root().join("target/release/wardian"));
    command.args(["run", "--memory", memory(module), "--disk", "1G", "--timeout", TIMEOUT]);
    command.arg("--mount").arg(format!("{}:/usr/lib/python3.13/test:overlay", suite.display()));
    command.arg("--mount").arg(format!("{}:/conformance:ro", input.display()));
    command.arg("cd /conformance; exec python3 conformance.py \"$0\" skips done").arg(module);
    command.stdin(Stdio::null()).output().context("cannot start target/release/wardian")
}
