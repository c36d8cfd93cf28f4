//! `cargo xtask test`: everything that must pass, from a fresh clone, in the order in which it is cheapest to fail.

use std::process::Command;

use anyhow::{Result, bail};

/// The steps, as a shell would read them. All compile in the one release profile, so that wasmtime is built once.
const STEPS: &[&str] = &[
    "cargo fmt --all --check",
    "cargo fmt --all --check --manifest-path guests/Cargo.toml",
    "cargo clippy --release --workspace --all-targets -- -D warnings",
    "cargo test --release --workspace",
];

/// Runs every step and stops at the first that fails.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("test takes no arguments, got '{extra}'");
    }
    for step in STEPS {
        println!("==> {step}");
        let mut words = step.split(' ');
        let mut command = Command::new(words.next().expect("a step is not empty"));
        crate::run(command.args(words).current_dir(crate::root()))?;
    }
    println!("==> all passed");
    Ok(())
}
