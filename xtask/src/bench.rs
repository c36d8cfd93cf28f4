//! `cargo xtask bench`: the benchmarks, as tables on the screen and in `bench/results`.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// The suites, each a program of its own that prints a table: its name, where the table goes, how it is started.
const SUITES: &[(&str, &str, &str)] = &[
    ("core", "bench/results/core.md", "target/release/wardian-bench"),
    ("shell", "bench/results/shell.md", "target/release/wardian-bench shell"),
    ("sandbox", "bench/results/sandbox.md", "target/release/wardian-bench sandbox"),
    ("python", "bench/results/python.md", "target/release/wardian-bench python"),
    ("store", "bench/results/store.md", "target/release/wardian-bench store"),
    ("userland", "bench/results/userland.md", "target/release/wardian-bench userland"),
    ("net", "bench/results/net.md", "target/release/wardian-bench net"),
    ("tools", "bench/results/tools.md", "cargo bench --quiet --profile release --workspace --bench tools"),
    ("vfs", "bench/results/vfs.txt", "cargo bench --quiet --profile release --workspace --bench files"),
];

/// Other shells to compare with have a workspace and a directory of their own: nothing else waits for them to be built.
const PEERS: &str =
    "cargo build --release --quiet --manifest-path bench/peers/Cargo.toml --target-dir target/peers";

/// Other Pythons are installed where they can be, by the first of these that makes an environment; without them, their columns
/// are empty.
const PYTHONS: [&str; 2] = ["python3.13", "python3"];
const PYTHON_PEERS: &str = "target/peers/python/bin/python3 -m pip install --quiet pyeryx pydantic-monty";

/// Runs all suites, or those named.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.iter().find(|name| SUITES.iter().all(|(suite, ..)| suite != name)) {
        bail!("no benchmarks are called '{unknown}'");
    }
    // All of the workspace at once, here as everywhere: a part of it would be built with other features of shared crates,
    // and wasmtime compiled once more.
    crate::step("cargo build --release --workspace", &[])?;
    for (name, file, line) in SUITES {
        if arguments.is_empty() || arguments.iter().any(|wanted| wanted == name) {
            if matches!(*name, "shell" | "sandbox") {
                crate::step(PEERS, &[])?;
            }
            if *name == "python" && !crate::root().join("target/peers/python/bin/python3").exists() {
                install_pythons();
            }
            measure(file, line)?;
        }
    }
    Ok(())
}

fn install_pythons() {
    let makes = |python: &&str| {
        let line = format!("{python} -m venv --clear target/peers/python");
        crate::step(&line, &[]).is_ok()
    };
    if PYTHONS.iter().any(makes)
        && let Err(error) = crate::step(PYTHON_PEERS, &[])
    {
        println!("{PYTHON_PEERS}: {error:#}");
    }
}

fn measure(file: &str, line: &str) -> Result<()> {
    println!("==> {line}");
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a suite is not empty"));
    let table = crate::output(command.args(words).current_dir(crate::root()))?;
    print!("{}", String::from_utf8_lossy(&table));
    std::fs::write(crate::root().join(file), &table).with_context(|| format!("cannot write {file}"))
}
