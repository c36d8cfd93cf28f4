//! `cargo xtask test`: everything that must pass, from a fresh clone, in the order in which it is cheapest to fail.

use anyhow::{Result, bail};

/// The steps, as a shell would read them. All compile in the one release profile, so that wasmtime is built once.
const STEPS: &[&str] = &[
    "cargo fmt --all --check",
    "cargo fmt --all --check --manifest-path guests/Cargo.toml",
    "cargo clippy --release --workspace --all-targets -- -D warnings",
    "cargo clippy --release --manifest-path guests/Cargo.toml --package archive --package columns --package git --package wardian-abi --package wardian-awk --package wardian-clock --package wardian-regex --package jq --package js --package make --package net --package wardian-sh --package sqlite --package testing --package toolkit --package tools --all-targets -- -D warnings",
    "cargo test --release --workspace",
    // The shell, our own tools and the tests of system calls as ordinary Linux programs: the same cases, without a sandbox around them.
    // Linking them as they are linked to be shipped takes most of that time and tests nothing more.
    "cargo test --release --config profile.release.lto=false --config profile.release.codegen-units=16 --manifest-path guests/Cargo.toml --package archive --package columns --package git --package wardian-abi --package wardian-awk --package wardian-clock --package wardian-regex --package jq --package js --package make --package net --package wardian-sh --package sqlite --package testing --package toolkit --package tools",
    // These look at the whole process, so nothing else may run in it.
    "cargo test --release --workspace --test kernel -- --ignored --test-threads 1",
    "cargo test --release --workspace --test sandbox -- --ignored --test-threads 1",
];

/// Runs every step and stops at the first that fails.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("test takes no arguments, got '{extra}'");
    }
    for step in STEPS {
        crate::step(step, &[])?;
    }
    // The tests above have built the program.
    crate::conformance::check()?;
    crate::torture::check()?;
    crate::python::check()?;
    crate::npm::check()?;
    crate::e2b::check()?;
    println!("==> all passed");
    Ok(())
}
