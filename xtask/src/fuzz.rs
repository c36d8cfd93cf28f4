//! `cargo xtask fuzz`: the fuzz targets, coverage-guided where cargo-fuzz is installed, else with random inputs.

use std::process::{Command, Stdio};

use anyhow::{Context, Result};

const TARGETS: &[&str] = &["shell_parse", "shell_cases", "vfs_operations", "vfs_tar"];

/// Random scripts, which this shell and bash 5.2 run and must agree on: a test of the guests' workspace, run longer.
const SHELL_RANDOM: &str = "shell_random";

/// Random programs, which our awk and gawk 5.2 run and must agree on; only where gawk is installed, so not by default.
const AWK_RANDOM: &str = "awk_random";

/// Archives of sandboxes that lie, imported and used: a test of this workspace, run longer.
const ARCHIVE: &str = "archive";

/// Lines to the server, from noise to nearly right: tests of this workspace, run longer.
const SERVER_LINES: &str = "server_lines";

/// Fuzzes the named targets, or all, each for so many seconds (`--seconds N`, 60 by default).
pub fn main(arguments: &[String]) -> Result<()> {
    let mut seconds = 60;
    let mut named = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => {
                let text = rest.next().context("--seconds needs a number")?;
                seconds = text.parse::<u64>().with_context(|| format!("not a number: '{text}'"))?;
            }
            target => named.push(target),
        }
    }
    let targets =
        if named.is_empty() { [TARGETS, &[SHELL_RANDOM, ARCHIVE, SERVER_LINES]].concat() } else { named };
    for target in targets {
        match target {
            SHELL_RANDOM => shell_random(seconds)?,
            AWK_RANDOM => awk_random(seconds)?,
            ARCHIVE => archive(seconds)?,
            SERVER_LINES => server_lines(seconds)?,
            _ => fuzz(target, seconds)?,
        }
    }
    Ok(())
}

fn shell_random(seconds: u64) -> Result<()> {
    let run = "cargo test --quiet --manifest-path guests/Cargo.toml --package wardian-sh --test random -- --nocapture";
    crate::step(run, &[("WARDIAN_RANDOM_SECONDS", &seconds.to_string())])
}

fn awk_random(seconds: u64) -> Result<()> {
    let run = "cargo test --quiet --manifest-path guests/Cargo.toml --package wardian-awk --test random -- --ignored --nocapture";
    crate::step(run, &[("WARDIAN_SECONDS", &seconds.to_string())])
}

fn archive(seconds: u64) -> Result<()> {
    let run = "cargo test --release --workspace --test sandbox archives::archives_that_lie";
    crate::step(run, &[("WARDIAN_FUZZ_SECONDS", &seconds.to_string())])
}

fn server_lines(seconds: u64) -> Result<()> {
    let run = "cargo test --release --workspace --test server lines::";
    crate::step(run, &[("WARDIAN_FUZZ_SECONDS", &seconds.to_string())])
}

fn fuzz(target: &str, seconds: u64) -> Result<()> {
    if has_cargo_fuzz() {
        let run = format!("cargo fuzz run --features libfuzzer {target} -- -max_total_time={seconds}");
        // libFuzzer's instrumentation is behind unstable flags.
        return crate::step(&run, &[("RUSTC_BOOTSTRAP", "1")]);
    }
    println!("cargo-fuzz is not installed (cargo install cargo-fuzz): random inputs instead");
    let run = "cargo run --release --quiet --manifest-path fuzz/Cargo.toml --bin wardian-fuzz --";
    crate::step(&format!("{run} {target} --seconds {seconds}"), &[])
}

fn has_cargo_fuzz() -> bool {
    let asked = Command::new("cargo")
        .args(["fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}
