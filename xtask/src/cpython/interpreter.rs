//! The interpreter: once for this machine, once for the sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{AR, Place, libraries, quietly, science, sysroot, version};

/// What both are configured with.
const COMMON: &[&str] =
    &["--disable-test-modules", "--without-ensurepip", "--without-readline", "--prefix=/usr"];

/// The CPython of this machine.
pub(super) fn native(place: &Place) -> PathBuf {
    place.work.join("build-native/python")
}

/// Builds it, from the sources without our patches.
pub(super) fn build_native(place: &Place) -> Result<()> {
    if native(place).exists() && stamp(&place.work.join("build-native"))? == source_stamp(place)? {
        return Ok(());
    }
    println!("cpython: building it for this machine");
    let directory = fresh(&place.work.join("build-native"))?;
    let mut configure = Command::new(place.cpython().join("configure"));
    configure.args(COMMON).arg("--with-openssl=/nonexistent");
    quietly(&mut configure, &directory, "configure.log")?;
    make(&directory, &["all"])?;
    fs::write(directory.join("stamp"), source_stamp(place)?)?;
    Ok(())
}

/// Builds the sandbox's and answers its WebAssembly.
pub(super) fn build(place: &Place) -> Result<Vec<u8>> {
    println!("cpython: building it for the sandbox");
    // The patches include it.
    fs::copy(place.guests.join("python/spawn.h"), place.patched().join("Modules/spawn.h"))?;
    let mut directory = place.work.join("build-wasm");
    let configured = configuration(place)?;
    if stamp(&directory)? != configured {
        directory = fresh(&directory)?;
        configure(place, &directory)?;
        fs::write(directory.join("stamp"), configured)?;
    }
    // Where the sources are ends up in the program.
    make(&directory, &[&format!("libpython{}.a", version()), "VPATH=../patched"])?;
    let science = science::build(place, &directory)?;
    link(place, &directory, &science)
}

/// What configure's answers depend on: while it stays the same, make alone finds out what changed.
fn configuration(place: &Place) -> Result<String> {
    let site =
        fs::read_to_string(place.guests.join("python/config.site")).context("cannot read config.site")?;
    Ok(format!("{}\n{COMMON:?}\n{:?}\n{site}", source_stamp(place)?, (super::FLAGS, super::MACROS)))
}

fn configure(place: &Place, directory: &Path) -> Result<()> {
    let compiler = sysroot::compiler(place);
    let (include, lib) =
        (libraries::directory(place).join("include"), libraries::directory(place).join("lib"));
    let mut command = Command::new(place.patched().join("configure"));
    command.args(COMMON).args(["--host=wasm32-unknown-linux-musl", "--build=x86_64-pc-linux-gnu"]);
    command.arg(format!("--with-build-python={}", native(place).display())).arg("--with-pymalloc");
    command.env("CC", &compiler).env("CPP", format!("{} -E", compiler.display())).env("CXX", "false");
    command
        .env("AR", AR)
        .env("RANLIB", "llvm-ranlib-22")
        .env("READELF", "true")
        .env("PKG_CONFIG", "/bin/false");
    command.env("CONFIG_SITE", place.guests.join("python/config.site"));
    command.env("OPT", "-DNDEBUG -O3").env("CFLAGS", "-fno-strict-overflow -w");
    for (variable, name) in [("ZLIB", "z"), ("BZIP2", "bz2"), ("LIBLZMA", "lzma"), ("LIBSQLITE3", "sqlite3")]
    {
        command.env(format!("{variable}_CFLAGS"), format!("-I{}", include.display()));
        command.env(format!("{variable}_LIBS"), format!("-L{} -l{name}", lib.display()));
    }
    quietly(&mut command, directory, "configure.log")
}

fn link(place: &Place, directory: &Path, science: &[String]) -> Result<Vec<u8>> {
    let output = directory.join("python3.wasm");
    let mut command = Command::new(sysroot::compiler(place));
    command.args(["-O2", "-I."]).arg(format!("-I{}", place.patched().join("Include").display()));
    command
        .args(["main.c", "kdf.c"].map(|file| place.guests.join("python").join(file)))
        .args(science)
        .arg(format!("libpython{}.a", version()));
    // What modules bring along: libmpdec, expat, the verified SHA-2.
    let mut modules = Vec::new();
    archives(&directory.join("Modules"), &mut modules)?;
    command.args(&modules).arg(format!("-L{}", libraries::directory(place).join("lib").display()));
    command.args(["-lsqlite3", "-lz", "-lbz2", "-llzma", "-o"]).arg(&output).current_dir(directory);
    crate::run(&mut command)?;
    fs::read(&output).with_context(|| format!("cannot read {}", output.display()))
}

fn archives(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            archives(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "a") {
            found.push(path);
        }
    }
    Ok(())
}

fn fresh(directory: &Path) -> Result<PathBuf> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory)?;
    Ok(directory.to_owned())
}

fn source_stamp(place: &Place) -> Result<String> {
    let path = place.work.join(format!("{}.version", super::sources::CPYTHON));
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn stamp(directory: &Path) -> Result<String> {
    Ok(fs::read_to_string(directory.join("stamp")).unwrap_or_default())
}

fn make(directory: &Path, targets: &[&str]) -> Result<()> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut make = Command::new("nice");
    make.args(["-n", "5", "make", &format!("-j{jobs}")]).args(targets);
    quietly(&mut make, directory, "make.log")
}
