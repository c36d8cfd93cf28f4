//! `cargo xtask e2b`: E2B's SDKs, as they are published, against `wardian serve --http`.

use std::process::Command;

use anyhow::{Result, bail};

/// Builds the program, and tests it with both SDKs.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("e2b takes no arguments, got '{extra}'");
    }
    crate::wheel::build()?;
    check()
}

/// Tests the program that was built last.
pub fn check() -> Result<()> {
    let root = crate::root();
    let (place, tests) = (root.join("target/e2b"), root.join("sdk/e2b"));
    let binary = root.join("target/release/wardian");
    println!("==> E2B's SDK for Python");
    let venv = place.join("venv");
    crate::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let program = |name: &str| {
        let mut command = Command::new(venv.join("bin").join(name));
        command.current_dir(&tests).env_remove("PYTHONPATH").env("WARDIAN_BIN", &binary);
        command
    };
    crate::run(program("pip").args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        "requirements.txt",
    ]))?;
    crate::run(program("python").args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]))?;
    println!("==> E2B's SDK for JavaScript");
    std::fs::create_dir_all(&place)?;
    for file in ["package.json", "package-lock.json", "tests.mjs"] {
        std::fs::copy(tests.join("javascript").join(file), place.join(file))?;
    }
    let node = |command: &mut Command| crate::run(command.current_dir(&place).env("WARDIAN_BIN", &binary));
    node(Command::new("npm").args(["ci", "--silent", "--no-audit", "--no-fund"]))?;
    node(Command::new("node").args(["--test", "tests.mjs"]))
}
