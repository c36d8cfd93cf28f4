//! `cargo xtask wheel`: the Python package and the program, guests included, in one file that pip installs.
//!
//! A wheel is a zip with three files about itself (METADATA, WHEEL, RECORD). Everything here that Python has to run is
//! plain source, so nothing is built: the files are packed beside the program, which pip puts where scripts go.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use sha2::{Digest, Sha256};

use crate::zip::Zip;

/// The package's version: the workspace has one for all.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where a wheel describes itself.
const INFO: &str = concat!("wardian-", env!("CARGO_PKG_VERSION"), ".dist-info");

/// Builds the program, packs the wheel and says where it is.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("wheel takes no arguments, got '{extra}'");
    }
    build()?;
    println!("{}", pack()?.display());
    Ok(())
}

/// Builds the program.
pub fn build() -> Result<()> {
    crate::step("cargo build --release --workspace --bin wardian", &[])
}

/// Packs the wheel around the program that was built last, into `target/wheel`.
pub fn pack() -> Result<PathBuf> {
    let target = target();
    let output = target.join("wheel");
    // One wheel at a time, so that its name need not be known.
    let _ = fs::remove_dir_all(&output);
    fs::create_dir_all(&output)?;
    let program = stripped(&target.join("release/wardian"), &output.join("wardian"))?;
    let tag = format!("py3-none-{}", platform(&program));
    let path = output.join(format!("wardian-{VERSION}-{tag}.whl"));
    let wheel = contents(&tag, &program)?.finish(&format!("{INFO}/RECORD"))?;
    fs::write(&path, wheel).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}

/// The program without its symbols, which are more than half of it.
pub fn stripped(program: &Path, copy: &Path) -> Result<Vec<u8>> {
    crate::run(Command::new("strip").arg("-o").arg(copy).arg(program))?;
    let bytes = fs::read(copy)?;
    fs::remove_file(copy)?;
    Ok(bytes)
}

/// Where the program runs, as pip has it: from the newest glibc whose symbols it asks for.
fn platform(program: &[u8]) -> String {
    let machine = std::env::consts::ARCH;
    match newest_glibc(program) {
        Some(minor) => format!("manylinux_2_{minor}_{machine}"),
        None => format!("linux_{machine}"),
    }
}

/// The highest N among the program's `GLIBC_2.N`.
fn newest_glibc(program: &[u8]) -> Option<u32> {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let places = (0..program.len()).filter(|&at| program[at..].starts_with(PREFIX));
    let minors = places.filter_map(|at| {
        let rest = &program[at + PREFIX.len()..];
        let digits = rest.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
    });
    minors.max()
}

/// Everything in the wheel but RECORD.
fn contents(tag: &str, program: &[u8]) -> Result<Wheel> {
    let mut wheel = Wheel::default();
    for (name, content) in modules(&crate::root().join("sdk/python/src/wardian"))? {
        wheel.add(&format!("wardian/{name}"), &content, 0o644)?;
    }
    wheel.add(&format!("wardian-{VERSION}.data/scripts/wardian"), program, 0o755)?;
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        wheel.add(&format!("{INFO}/{licence}"), &fs::read(crate::root().join(licence))?, 0o644)?;
    }
    wheel.add(&format!("{INFO}/METADATA"), metadata()?.as_bytes(), 0o644)?;
    let about =
        format!("Wheel-Version: 1.0\nGenerator: xtask {VERSION}\nRoot-Is-Purelib: false\nTag: {tag}\n");
    wheel.add(&format!("{INFO}/WHEEL"), about.as_bytes(), 0o644)?;
    Ok(wheel)
}

/// A wheel that is being written, and what RECORD will say of it.
#[derive(Default)]
struct Wheel {
    zip: Zip,
    record: String,
}

impl Wheel {
    fn add(&mut self, name: &str, content: &[u8], mode: u32) -> Result<()> {
        self.zip.add(name, content, mode)?;
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(content));
        writeln!(self.record, "{name},sha256={hash},{}", content.len())?;
        Ok(())
    }

    /// RECORD names itself, but cannot have its own hash.
    fn finish(mut self, name: &str) -> Result<Vec<u8>> {
        writeln!(self.record, "{name},,")?;
        self.zip.add(name, self.record.as_bytes(), 0o644)?;
        self.zip.finish()
    }
}

/// The package's files, sorted by name. It has no packages in it.
fn modules(package: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(package).with_context(|| format!("cannot read {}", package.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".py") || name == "py.typed" {
            found.push((name, fs::read(entry.path())?));
        }
    }
    found.sort();
    Ok(found)
}

/// What pip and the package index show, from `pyproject.toml` and the package's README.
fn metadata() -> Result<String> {
    let sdk = crate::root().join("sdk/python");
    let project = fs::read_to_string(sdk.join("pyproject.toml"))?;
    if field(&project, "version")? != VERSION {
        bail!("sdk/python/pyproject.toml must have the workspace's version, {VERSION}");
    }
    let mut text = format!("Metadata-Version: 2.1\nName: wardian\nVersion: {VERSION}\n");
    writeln!(text, "Summary: {}", field(&project, "description")?)?;
    writeln!(text, "Requires-Python: {}", field(&project, "requires-python")?)?;
    writeln!(text, "License: MIT OR Apache-2.0")?;
    writeln!(text, "Classifier: Typing :: Typed")?;
    writeln!(text, "Description-Content-Type: text/markdown")?;
    writeln!(text, "\n{}", fs::read_to_string(sdk.join("README.md"))?)?;
    Ok(text)
}

/// The value of a line `name = "value"`.
fn field<'a>(project: &'a str, name: &str) -> Result<&'a str> {
    let value = project.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
    let value = value.with_context(|| format!("sdk/python/pyproject.toml has no '{name}'"))?;
    Ok(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_asked_for_decides() {
        assert_eq!(newest_glibc(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0"), Some(34));
        assert_eq!(newest_glibc(b"no libc at all, GLIBC_2."), None);
    }

    #[test]
    fn the_package_describes_itself() {
        let text = metadata().expect("the package's files");
        assert!(text.contains(&format!("\nVersion: {VERSION}\n")), "{text}");
        assert!(text.contains("\nRequires-Python: >=3.9\n"), "{text}");
        let (head, description) = text.split_once("\n\n").expect("a description");
        assert!(!head.contains('"') && description.starts_with("# wardian"), "{text}");
    }

    #[test]
    fn the_package_says_the_workspaces_version() {
        let source = fs::read_to_string(crate::root().join("sdk/python/src/wardian/__init__.py"));
        assert!(source.expect("the package").contains(&format!("__version__ = \"{VERSION}\"")));
    }
}
