//! `cargo xtask soak`: the long versions of tests that the test run holds short.

use anyhow::{Result, bail};

/// What can be soaked: the variable that sets how long, how long, and the tests.
const SOAKS: &[(&str, &str, &str, &str)] = &[
    ("vfs", "WARDIAN_SOAK_SEQUENCES", "20000", "cargo test --release --workspace --test vfs"),
    (
        "apply",
        "WARDIAN_SOAK_KILLS",
        "1000",
        "cargo test --release --workspace --test vfs crashes::a_kill_at_any_moment -- --nocapture",
    ),
    (
        "kernel",
        "WARDIAN_SOAK_CYCLES",
        "20000",
        "cargo test --release --workspace --test kernel leaks -- --ignored",
    ),
    (
        "sandbox",
        "WARDIAN_SOAK_RUNS",
        "50000",
        "cargo test --release --workspace --test sandbox soak -- --ignored",
    ),
    (
        "returned",
        "WARDIAN_SOAK_RETURNS",
        "20",
        "cargo test --release --workspace --test sandbox returned::destroyed -- --ignored --nocapture",
    ),
];

/// Runs all soaks, or those named.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.iter().find(|name| SOAKS.iter().all(|(soak, ..)| soak != name)) {
        bail!("nothing to soak is called '{unknown}'");
    }
    for (name, variable, value, step) in SOAKS {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            crate::step(step, &[(variable, value)])?;
        }
    }
    Ok(())
}
