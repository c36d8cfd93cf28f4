//! `cargo xtask bench`: the benchmarks, as tables on the screen and in `bench/results`.

use std::process::Command;

use anyhow::{Result, bail};

/// The suites, each a program of its own: where its table goes and how it is started.
const SUITES: &[(&str, &str)] = &[
    ("core", "cargo run --release --package wardian-bench -- bench/results/core.md"),
    ("vfs", "cargo bench --profile release --package wardian-vfs"),
];

/// Runs all suites, or those named.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.iter().find(|name| SUITES.iter().all(|(suite, _)| suite != name)) {
        bail!("no benchmarks are called '{unknown}'");
    }
    // The start-up benchmark runs the command itself.
    crate::run(Command::new("cargo").args(["build", "--release"]).current_dir(crate::root()))?;
    for (name, step) in SUITES {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            crate::step(step, &[])?;
        }
    }
    Ok(())
}
