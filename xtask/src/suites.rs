//! `cargo xtask bash-suite`: bash's own test scripts, from Debian's source package, with the bash of this machine and
//! with our shell as a Linux program; what the two print is compared, line by line. bench/results/bash-suite.md has
//! what came of it.
//!
//! The scripts are run where they were unpacked, under `guests/target`; nothing of them becomes part of this repository.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::toolchain::PrivateApt;

/// Debian's release and its package: the version that our cases are recorded from.
const SUITE: &str = "bookworm";
const PACKAGE: &str = "bash=5.2.15-2";

/// Scripts that run all others, or need a profiled bash.
const NOT_TESTS: [&str; 3] = ["all", "minimal", "gprof"];

/// How long a script may take, in seconds.
const PATIENCE: &str = "90";

/// What the programs beside the scripts want to know of the system.
const CONFIG: &str = "#define HAVE_UNISTD_H 1\n#define HAVE_STDLIB_H 1\n#define HAVE_STRING_H 1\n\
    #define HAVE_STDINT_H 1\n#define HAVE_LOCALE_H 1\n#define PROTOTYPES 1\n#define HAVE_STDARG_H 1\n";

/// In the place of `diff` at the end of a script's run: keeps what was printed instead of comparing it with what
/// another machine printed.
const KEEPER: &str = "#!/bin/sh
for operand; do
    case $operand in \"$BASH_TSTOUT\" | /tmp/*.check) cp \"$operand\" \"$SUITE_KEPT\"; exit 1 ;; esac
done
exec /usr/bin/diff \"$@\"
";

/// Who starts this must not matter to what a shell inherits.
const UNTOUCHED: &str = "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; exec /usr/bin/env --default-signal \"$@\"";

/// How one script went.
struct Score {
    lines: usize,
    missing: usize,
    extra: usize,
}

pub fn main(arguments: &[String]) -> Result<()> {
    let work = crate::root().join("guests/target/bash-suite");
    let source = fetch(&work)?;
    crate::run(
        Command::new("cargo").args(["build", "-p", "wardian-sh"]).current_dir(crate::root().join("guests")),
    )?;
    let ours = crate::root().join("guests/target/debug/sh");
    let names = names(&source, arguments)?;
    let mut scores = BTreeMap::new();
    for name in &names {
        let expected = outcome(&work, &source, Path::new("/bin/bash"), name)?;
        let again = outcome(&work, &source, Path::new("/bin/bash"), name)?;
        if expected != again {
            println!("{name}: bash itself prints something else each time");
            continue;
        }
        let score = compare(&work, name, &expected, &outcome(&work, &source, &ours, name)?)?;
        println!("{name}: {} lines, {} missing, {} extra", score.lines, score.missing, score.extra);
        scores.insert(name.clone(), score);
    }
    let report = report(&scores);
    print!("{report}");
    if arguments.is_empty() {
        fs::write(crate::root().join("bench/results/bash-suite.md"), report)?;
    }
    Ok(())
}

/// The sources of bash, unpacked, with the programs its scripts call.
fn fetch(work: &Path) -> Result<PathBuf> {
    let (source, done) = (work.join("bash"), work.join("version"));
    if fs::read_to_string(&done).is_ok_and(|is| is == PACKAGE) {
        return Ok(source);
    }
    let downloads = work.join("download");
    fs::create_dir_all(&downloads)?;
    PrivateApt::new(&work.join("apt"), SUITE, "deb-src")?
        .run(&downloads, &["source", "--download-only", PACKAGE])?;
    let archive = fs::read_dir(&downloads)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains(".orig.tar"))
        .context("apt has downloaded no sources")?;
    fs::create_dir_all(&source)?;
    crate::run(
        Command::new("tar").arg("xf").arg(archive).arg("-C").arg(&source).arg("--strip-components=1"),
    )?;
    let include = work.join("include");
    fs::create_dir_all(&include)?;
    fs::write(include.join("config.h"), CONFIG)?;
    for program in ["recho", "zecho", "printenv", "xcase"] {
        let mut compiler = Command::new("cc");
        compiler.args(["-w", "-DHAVE_CONFIG_H"]);
        for directory in [&include, &source, &source.join("include")] {
            compiler.arg("-I").arg(directory);
        }
        compiler.arg("-o").arg(source.join("tests").join(program));
        crate::run(compiler.arg(source.join("support").join(format!("{program}.c"))))?;
    }
    make_locales(work)?;
    fs::write(done, PACKAGE)?;
    Ok(source)
}

/// The locales that the scripts set, where the machine has what they are made from.
fn make_locales(work: &Path) -> Result<()> {
    let locales = work.join("locales");
    fs::create_dir_all(&locales)?;
    let mut command = Command::new("localedef");
    command.args(["--no-archive", "-i", "en_US", "-f", "UTF-8"]).arg(locales.join("en_US.UTF-8"));
    match command.status().is_ok_and(|status| status.success()) {
        true => {}
        false => println!("no locale en_US.UTF-8: what depends on it will differ"),
    }
    Ok(())
}

/// The tests that are asked for, or all.
fn names(source: &Path, wanted: &[String]) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(source.join("tests"))?
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("run-")?.to_owned()))
        .filter(|name| !NOT_TESTS.contains(&name.as_str()))
        .collect();
    names.sort();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        bail!("bash has no test called '{unknown}'");
    }
    names.retain(|name| wanted.is_empty() || wanted.contains(name));
    ensure!(!names.is_empty(), "there are no tests");
    Ok(names)
}

/// What a test prints with a shell, in a fresh copy of all of them.
fn outcome(work: &Path, source: &Path, shell: &Path, name: &str) -> Result<Vec<u8>> {
    // The same path for both shells, since they print it.
    let place = work.join("run");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let (bin, temporary, kept) = (place.join("bin"), place.join("tmp"), place.join("kept"));
    fs::create_dir_all(&bin)?;
    fs::create_dir_all(&temporary)?;
    crate::run(Command::new("cp").arg("-a").arg(source.join("tests")).arg(place.join("tests")))?;
    symlink(shell, bin.join("bash"))?;
    fs::write(bin.join("diff"), KEEPER)?;
    fs::set_permissions(bin.join("diff"), fs::Permissions::from_mode(0o755))?;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", UNTOUCHED, "sh", "timeout", "-k", "2", PATIENCE, "sh", &format!("run-{name}")])
        .current_dir(place.join("tests"))
        .env_clear()
        .env("PATH", format!("{}:.:/usr/bin:/bin", bin.display()))
        .env("THIS_SH", bin.join("bash"))
        .env("BUILD_DIR", source)
        .env("TMPDIR", &temporary)
        .env("BASH_TSTOUT", place.join("printed"))
        .env("SUITE_KEPT", &kept)
        .env("HOME", &place)
        .env("LANG", "C.UTF-8")
        .env("LOCPATH", work.join("locales"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Scripts end as they like: what they printed is what counts.
    let _ = command.status().with_context(|| format!("cannot run {name}"))?;
    let printed = fs::read(&kept).or_else(|_| fs::read(place.join("printed"))).unwrap_or_default();
    // Which locales the machine has is no matter of the shell.
    let lines = printed.split_inclusive(|&byte| byte == b'\n');
    let about_locales = |line: &&[u8]| String::from_utf8_lossy(line).contains("warning: setlocale:");
    Ok(lines.filter(|line| !about_locales(line)).collect::<Vec<_>>().concat())
}

/// How many lines of one text are not in the other, and the other way round, in order. Both stay in `printed`, to be
/// looked at.
fn compare(work: &Path, name: &str, expected: &[u8], found: &[u8]) -> Result<Score> {
    let printed = work.join("printed");
    fs::create_dir_all(&printed)?;
    let (left, right) = (printed.join(format!("{name}.bash")), printed.join(format!("{name}.ours")));
    fs::write(&left, expected)?;
    fs::write(&right, found)?;
    let difference = Command::new("diff").arg("-a").arg(&left).arg(&right).output()?.stdout;
    let marked =
        |mark: u8| difference.split(|&byte| byte == b'\n').filter(|line| line.first() == Some(&mark)).count();
    let lines = expected.split_inclusive(|&byte| byte == b'\n').count();
    Ok(Score { lines, missing: marked(b'<'), extra: marked(b'>') })
}

fn report(scores: &BTreeMap<String, Score>) -> String {
    let agrees = |score: &&Score| score.missing == 0 && score.extra == 0;
    let lines: usize = scores.values().map(|score| score.lines).sum();
    let missing: usize = scores.values().map(|score| score.missing).sum();
    let mut text = String::from(
        "# Bash's own test scripts\n\nWritten by `cargo xtask bash-suite`: the scripts of Debian's source package of bash 5.2, with \
         bash and with our shell\n(as a Linux program). A script agrees if both print the same, error messages and line numbers \
         included.\n\n",
    );
    let _ = writeln!(
        text,
        "{} of {} scripts agree, and {} of {} lines ({:.1} %).\n",
        scores.values().filter(agrees).count(),
        scores.len(),
        lines - missing,
        lines,
        (lines - missing) as f64 * 100.0 / lines.max(1) as f64
    );
    text += "| script | lines | missing | extra |\n|---|---:|---:|---:|\n";
    for (name, score) in scores.iter().filter(|(_, score)| !agrees(score)) {
        let _ = writeln!(text, "| {name} | {} | {} | {} |", score.lines, score.missing, score.extra);
    }
    text
}
