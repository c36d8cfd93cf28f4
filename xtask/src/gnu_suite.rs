//! `cargo xtask gnu-suite`: the test suites of GNU's tools, on the real programs and on Wardian's, side by side.
//!
//! Debian's source packages are fetched, built and run below `target/gnu-suite`; nothing of them is kept elsewhere. Each suite
//! runs twice: as it was built, and with the native builds of the guests in place of its programs. What counts is how
//! many of the tests that the real programs pass are passed by Wardian's too. The tools that are uutils' exist in a
//! sandbox only and are left as they were built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::toolchain::PrivateApt;

/// The release whose programs are the specification.
const DEBIAN: &str = "bookworm";

/// A source package with tests.
struct Suite {
    package: &'static str,
    /// Where `make check` runs.
    tests: &'static str,
    /// Where the programs are that the tests use.
    programs: &'static [&'static str],
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// automake's: a file for each test says how it went.
    Automake,
    /// gawk's: what differs is left behind as `_NAME`.
    Gawk,
}

const SUITES: &[Suite] = &[
    Suite { package: "coreutils", tests: ".", programs: &["src"], kind: Kind::Automake },
    Suite { package: "diffutils", tests: "tests", programs: &["src"], kind: Kind::Automake },
    Suite { package: "findutils", tests: ".", programs: &["find", "xargs"], kind: Kind::Automake },
    Suite { package: "gawk", tests: "test", programs: &["."], kind: Kind::Gawk },
    Suite { package: "grep", tests: "tests", programs: &["src"], kind: Kind::Automake },
    Suite { package: "sed", tests: ".", programs: &["sed"], kind: Kind::Automake },
];

/// The tools that would make what is there already.
const WITHOUT: &[&str] = &["AUTOMAKE=:", "ACLOCAL=:", "AUTOCONF=:", "AUTOHEADER=:", "MAKEINFO=true"];

/// The longest that a suite may take.
const SECONDS: &str = "1800";

pub fn main(arguments: &[String]) -> Result<()> {
    let root = crate::root();
    let work = root.join("target/gnu-suite");
    fs::create_dir_all(&work)?;
    let known: Vec<&str> = SUITES.iter().map(|suite| suite.package).collect();
    for name in arguments {
        ensure!(known.contains(&name.as_str()), "no suite is called {name}; there are: {}", known.join(" "));
    }
    crate::run(Command::new("cargo").current_dir(root.join("guests")).args([
        "build",
        "--package",
        "tools",
        "--package",
        "wardian-awk",
    ]))?;
    let built = root.join("guests/target/debug");
    let wanted = |suite: &&Suite| arguments.is_empty() || arguments.iter().any(|name| name == suite.package);
    let mut summary = Vec::new();
    for suite in SUITES.iter().filter(wanted) {
        let tree = suite.prepare(&work)?;
        let native = suite.run(&work, &tree, "native", None)?;
        let ours = suite.run(&work, &tree, "ours", Some(&built))?;
        summary.push(suite.compare(&native, &ours));
    }
    println!("{}", summary.join("\n"));
    Ok(())
}

impl Suite {
    /// Fetches and builds the package, unless that was done; its directory.
    fn prepare(&self, work: &Path) -> Result<PathBuf> {
        let place = work.join(self.package);
        let done = place.join("built");
        if !done.exists() {
            println!("gnu-suite: fetching and building {}", self.package);
            fs::create_dir_all(&place)?;
            let apt = PrivateApt::new(&work.join("apt"), DEBIAN, "deb-src")?;
            apt.run(&place, &["source", self.package])?;
            build(&tree_in(&place, self.package)?)?;
            fs::write(&done, "")?;
        }
        tree_in(&place, self.package)
    }

    /// Runs the tests in a copy of the tree; which tests passed, and which did not.
    fn run(
        &self,
        work: &Path,
        tree: &Path,
        name: &str,
        ours: Option<&Path>,
    ) -> Result<BTreeMap<String, bool>> {
        println!("gnu-suite: {} ({name})", self.package);
        let copy = work.join(format!("{}-{name}", self.package));
        if copy.exists() {
            fs::remove_dir_all(&copy)?;
        }
        crate::run(Command::new("cp").arg("-a").arg(tree).arg(&copy))?;
        if let Some(built) = ours {
            self.replace_programs(&copy, built)?;
        }
        let log = fs::File::create(work.join(format!("{}-{name}.log", self.package)))?;
        let mut make = unprivileged(&copy)?;
        make.args(["timeout", SECONDS, "make", "--keep-going", "--jobs=2"]).args(WITHOUT);
        make.args(["SUBDIRS=.", "VERBOSE=no", "check"]);
        make.current_dir(copy.join(self.tests)).stdin(Stdio::null());
        make.stdout(log.try_clone()?).stderr(log);
        // That tests fail is what this is about; the files say which.
        make.status().context("cannot start make")?;
        match self.kind {
            Kind::Automake => automake_results(&copy.join(self.tests)),
            Kind::Gawk => gawk_results(&copy.join(self.tests)),
        }
    }

    /// Puts Wardian's programs where the package's own were built.
    fn replace_programs(&self, copy: &Path, built: &Path) -> Result<()> {
        if self.kind == Kind::Gawk {
            fs::copy(built.join("awk"), copy.join("gawk"))?;
            return Ok(());
        }
        let tools = built.join("tools");
        let names = fs::read_to_string(crate::root().join("guests/tools/NAMES"))?;
        for name in names.lines().filter(|name| *name != "[") {
            let mut answer = Command::new(&tools);
            answer.args([name, "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let is_ours = answer.status()?.code() != Some(127);
            for place in self.programs.iter().filter(|_| is_ours) {
                let program = copy.join(place).join(name);
                if program.is_file() {
                    fs::remove_file(&program)?;
                    fs::copy(&tools, &program)?;
                }
            }
        }
        Ok(())
    }

    /// Says which tests only the real programs pass; answers the line for the summary.
    fn compare(&self, native: &BTreeMap<String, bool>, ours: &BTreeMap<String, bool>) -> String {
        let passed: BTreeSet<&String> =
            native.iter().filter(|(_, passed)| **passed).map(|(name, _)| name).collect();
        let missed: Vec<&str> =
            passed.iter().filter(|name| ours.get(**name) != Some(&true)).map(|name| name.as_str()).collect();
        if !missed.is_empty() {
            println!("gnu-suite: {} misses {}", self.package, missed.join(" "));
        }
        format!(
            "{}: {} of {} tests that pass natively",
            self.package,
            passed.len() - missed.len(),
            passed.len()
        )
    }
}

/// The unpacked package in a directory: `NAME-VERSION`.
fn tree_in(place: &Path, package: &str) -> Result<PathBuf> {
    let is_tree = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        path.is_dir() && name.starts_with(&format!("{package}-"))
    };
    let found = fs::read_dir(place)?.flatten().map(|entry| entry.path()).find(is_tree);
    found.with_context(|| format!("apt has unpacked no {package} in {}", place.display()))
}

fn build(tree: &Path) -> Result<()> {
    // Files that others are made from look older than what is made: nothing is made again.
    let script = "\
        find . -name '*.am' -exec touch -d '2 days ago' {} + && \
        find . -name '*.m4' -exec touch -d '2 days ago' {} + && \
        find . -name '*.texi' -exec touch -d '2 days ago' {} + && \
        touch -d '2 days ago' configure.ac && sleep 1 && touch aclocal.m4 && sleep 1 && \
        find . -name '*.in' -exec touch {} + && touch configure && sleep 1 && \
        ./configure -q --disable-nls --disable-dependency-tracking CFLAGS=-O1";
    crate::run(Command::new("sh").args(["-c", script]).current_dir(tree).env("FORCE_UNSAFE_CONFIGURE", "1"))?;
    let mut make = Command::new("make");
    make.args(["--silent", "--keep-going", "--jobs=2"]).args(WITHOUT).current_dir(tree);
    // Manuals that cannot be made are not missed; the tests would say if a program was.
    make.stdout(Stdio::null()).stderr(Stdio::null()).status().context("cannot start make")?;
    Ok(())
}

/// A command that runs as nobody, if this is root: many tests are skipped for root.
fn unprivileged(copy: &Path) -> Result<Command> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(Command::new("env"));
    }
    crate::run(Command::new("chown").args(["-R", "nobody"]).arg(copy))?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "env", "HOME=/tmp"]);
    Ok(command)
}

fn automake_results(directory: &Path) -> Result<BTreeMap<String, bool>> {
    let mut results = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(place) = left.pop() {
        for entry in fs::read_dir(&place)?.flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() && !path.ends_with("gnulib-tests") {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "trs") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let name = path.strip_prefix(directory)?.with_extension("").display().to_string();
                let result = text.lines().find_map(|line| line.strip_prefix(":test-result: "));
                match result.map(|line| line.split(' ').next().unwrap_or_default()) {
                    Some("PASS") => drop(results.insert(name, true)),
                    Some("FAIL" | "ERROR") => drop(results.insert(name, false)),
                    _ => {}
                }
            }
        }
    }
    if results.is_empty() {
        bail!("no test ran in {}", directory.display());
    }
    Ok(results)
}

/// The tests are those with an expected output.
fn gawk_results(directory: &Path) -> Result<BTreeMap<String, bool>> {
    let names = fs::read_dir(directory)?.flatten().map(|entry| entry.path());
    let tests = names.filter(|path| path.extension().is_some_and(|extension| extension == "ok"));
    let result = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let passed = !directory.join(format!("_{name}")).exists();
        (name, passed)
    };
    Ok(tests.map(result).collect())
}
