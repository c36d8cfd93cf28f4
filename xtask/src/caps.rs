//! `cargo xtask caps`: checks the caps on users' programs against a real, large one.

use std::fs;
use std::process::Command;

use anyhow::{Result, bail};

/// LLVM's clang and lld as WebAssembly.
const PACKAGE: &str = "@yowasp/clang@22.0.0-git20542-10";
/// The program in it.
const PROGRAM: &str = "package/gen/llvm.core.wasm";
const TEST: &str = "cargo test --release --workspace --lib admit::large -- --ignored --nocapture";

/// Fetches the program into `target/caps`, once, and counts what is in it.
pub fn main(arguments: &[String]) -> Result<()> {
    if let Some(extra) = arguments.first() {
        bail!("caps takes no arguments, got '{extra}'");
    }
    let directory = crate::wheel::target().join("caps");
    let program = directory.join(PROGRAM);
    if !program.exists() {
        fs::create_dir_all(&directory)?;
        let mut npm = Command::new("npm");
        let packed = crate::output(npm.args(["pack", "--silent", PACKAGE]).current_dir(&directory))?;
        let archive = String::from_utf8_lossy(&packed).trim().to_owned();
        crate::run(Command::new("tar").args(["-xzf", &archive, PROGRAM]).current_dir(&directory))?;
    }
    let program = program.to_string_lossy();
    crate::step(TEST, &[("WARDIAN_LARGE_PROGRAM", &program)])
}
