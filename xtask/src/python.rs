//! `cargo xtask python`: the Python SDK as its users get it: the wheel, installed into a fresh environment, and tested there.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

/// Builds the program, and tests the package around it.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("python takes no arguments, got '{extra}'");
    }
    crate::wheel::build()?;
    check()
}

/// Packs the wheel around the program that was built last, installs it with the test tools, and runs formatting,
/// lints, types, tests and examples.
pub fn check() -> Result<()> {
    let wheel = crate::wheel::pack()?;
    let venv = wheel.with_file_name("venv");
    println!("==> the wheel in a fresh environment");
    crate::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let sdk = crate::root().join("sdk/python");
    let run = |program: &str, arguments: &[&Path]| {
        // What the environment says about Python or the program must not stand in for what the wheel brings.
        let mut command = Command::new(venv.join("bin").join(program));
        command.args(arguments).current_dir(&sdk);
        crate::run(command.env_remove("PYTHONPATH").env_remove("WARDIAN_BINARY"))
    };
    let words = |line: &'static str| line.split(' ').map(Path::new).collect::<Vec<_>>();
    run(
        "pip",
        &[&words("install --quiet --disable-pip-version-check -r tests/requirements.txt")[..], &[&wheel]]
            .concat(),
    )?;
    run("ruff", &words("format --no-cache --check --quiet src tests examples"))?;
    run("ruff", &words("check --no-cache --quiet src tests examples"))?;
    run("mypy", &words("--strict --no-incremental src tests examples"))?;
    run("python", &words("-B -m pytest -q"))
}
