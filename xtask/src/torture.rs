//! `cargo xtask torture`: attacks one server for a while and checks that it is unharmed (`torture/src/main.rs`).

use anyhow::Result;

/// Builds the server and those who attack it, and passes the options on.
pub fn main(arguments: &[String]) -> Result<()> {
    // All of the workspace, here as everywhere: a part of it would be built with other features of shared crates.
    crate::step("cargo build --release --workspace", &[])?;
    attack(&arguments.iter().map(|word| format!(" {word}")).collect::<String>())
}

/// Does the same for two minutes, after all tests were built: with their features, so that only the attackers are left to build.
pub fn check() -> Result<()> {
    crate::step("cargo build --release --workspace --bins --tests", &[])?;
    attack(" --minutes 2")
}

fn attack(words: &str) -> Result<()> {
    crate::step(&format!("target/release/wardian-torture{words}"), &[])
}
