//! `cargo xtask bench`: the benchmarks, as tables on the screen and in `bench/results`.

use anyhow::{Result, bail};

/// The suites, each a program of its own: where its table goes and how it is started.
const SUITES: &[(&str, &str)] = &[
    ("core", "target/release/wardian-bench bench/results/core.md"),
    ("vfs", "cargo bench --profile release --workspace --bench files"),
];

/// Runs all suites, or those named.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.iter().find(|name| SUITES.iter().all(|(suite, _)| suite != name)) {
        bail!("no benchmarks are called '{unknown}'");
    }
    // All of the workspace at once, here as everywhere: a part of it would be built with other features of shared crates,
    // and wasmtime compiled once more.
    crate::step("cargo build --release --workspace", &[])?;
    for (name, step) in SUITES {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            crate::step(step, &[])?;
        }
    }
    Ok(())
}
