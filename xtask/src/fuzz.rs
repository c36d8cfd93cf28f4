//! `cargo xtask fuzz`: the fuzz targets, guided by coverage where libFuzzer can be built, else with random inputs.

use std::fs;

use anyhow::{Context, Result};

const TARGETS: &[&str] =
    &["net_http", "server_wire", "shell_parse", "shell_cases", "vfs_operations", "vfs_tar"];

/// Random scripts, which this shell and bash 5.2 run and must agree on: a test of the guests' workspace, run longer.
const SHELL_RANDOM: &str = "shell_random";

/// Random programs, which our awk and gawk 5.2 run and must agree on; only where gawk is installed, so not by default.
const AWK_RANDOM: &str = "awk_random";

/// Archives of sandboxes that lie, imported and used: a test of this workspace, run longer.
const ARCHIVE: &str = "archive";

/// Lines to the server, from noise to nearly right: tests of this workspace, run longer.
const SERVER_LINES: &str = "server_lines";

/// What supervisor and cell send each other, from noise to nearly right: tests of this workspace, run longer.
const CELL_MESSAGES: &str = "cell_messages";

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
    let targets = if named.is_empty() {
        [TARGETS, &[SHELL_RANDOM, ARCHIVE, SERVER_LINES, CELL_MESSAGES]].concat()
    } else {
        named
    };
    for target in targets {
        match target {
            SHELL_RANDOM => shell_random(seconds)?,
            AWK_RANDOM => awk_random(seconds)?,
            ARCHIVE => archive(seconds)?,
            SERVER_LINES => server_lines(seconds)?,
            CELL_MESSAGES => cell_messages(seconds)?,
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

fn cell_messages(seconds: u64) -> Result<()> {
    // About so many of each property's cases take a second.
    let cases = (seconds * 2_000).to_string();
    let run = "cargo test --release --workspace --test cell messages::";
    crate::step(run, &[("PROPTEST_CASES", &cases)])
}

/// Has the compiler count every branch taken, which is what guides libFuzzer. No unstable flag is needed for that.
const COUNTED: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

fn fuzz(target: &str, seconds: u64) -> Result<()> {
    // For a target of its own, so that build scripts are not counted.
    let with =
        format!("--manifest-path fuzz/Cargo.toml --features libfuzzer --bin {target} --target host-tuple");
    let counted = [("RUSTFLAGS", COUNTED)];
    if crate::step(&format!("cargo build --release --quiet {with}"), &counted).is_err() {
        println!("libFuzzer cannot be built here (it needs a C++ compiler): random inputs instead");
        let run = "cargo run --release --quiet --manifest-path fuzz/Cargo.toml --bin wardian-fuzz --";
        return crate::step(&format!("{run} {target} --seconds {seconds}"), &[]);
    }
    let corpus = format!("fuzz/corpus/{target}");
    for kept in [&corpus, "fuzz/artifacts"] {
        let path = crate::root().join(kept);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    // The recorded cases are where the parser's corpus grows from.
    let seeds = if target == "shell_parse" { " guests/sh/tests/cases" } else { "" };
    let limits = format!("-max_total_time={seconds} -timeout=20 -artifact_prefix=fuzz/artifacts/{target}-");
    crate::step(&format!("cargo run --release --quiet {with} -- {limits} {corpus}{seeds}"), &counted)
}
