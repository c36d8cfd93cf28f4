//! The project's chores: `cargo xtask CHORE`. One file per chore; this one only picks.

mod bench;
mod caps;
mod conformance;
mod contract;
mod cpython;
mod e2b;
mod fuzz;
mod gnu_suite;
mod guests;
mod manifest;
mod npm;
mod pages;
mod promises;
mod python;
mod record;
mod soak;
mod state;
mod suites;
mod test;
mod toolchain;
mod torture;
mod wheel;
mod zip;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const HELP: &str = "\
cargo xtask CHORE

  guests [NAME…] [--force]   rebuild the guest programs whose sources changed, into guests/dist
  guests --check             fail if guests/dist does not belong to the sources
  cpython [--force|--check]  rebuild CPython for the sandbox, from Debian's source packages, into guests/dist
  python-conformance [MODULE…] [--list ci|all] [--without-skips]
                             run CPython's own test suite in sandboxes; all of it writes docs/cpython-conformance.md
  gnu-suite [PACKAGE…]       run GNU's own tests on the real programs and on the native builds of the guests
  pages [--check]            docs/commands.md and docs/differences.md, from the tables they are made of
  contract [--check]         the protocol's tables, schemas and types, from the types that the server reads
  caps                       the caps on users' programs, against clang as WebAssembly (from npm)
  test                       everything that must pass before a change goes in
  wheel                      the Python package with the program in it, into target/wheel
  python                     the Python package's tests, with the wheel in a fresh environment
  npm                        the TypeScript package, and one with the program in it, into target/npm
  node                       the TypeScript package's types, tests and examples
  e2b                        E2B's SDKs, as they are published, against the program
  bench [core|shell|sandbox|store|tools|userland|vfs]
                             measure, against native in the same run, into bench/results
  soak [vfs|apply|kernel|sandbox|returned]
                             the long versions of the property, crash and leak tests
  fuzz [TARGET…] [--seconds N]
                             the fuzz targets, one after the other
  torture [--minutes N] [--seed N] [--only ATTACK]
                             attack one server for a while and check that it is unharmed
  shell-record [PATH…]       record the shell's cases again from bash 5.2
  shell-record --check [PATH…]
                             show the cases where this machine's bash differs from the recording
  bash-suite [TEST…]         bash's own test scripts with bash and with our shell; all of them write
                             bench/results/bash-suite.md
  tools-record [--check] [PATH…]
                             the same for the cases of the other guests, from the programs of Debian 12
  tools-record --with NAME=PROGRAM PATH…
                             the same with a program in the place of the machine's own
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let chore = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let outcome = match chore.as_str() {
        "guests" => guests::main(&rest),
        "cpython" => cpython::main(&rest),
        "python-conformance" => conformance::main(&rest),
        "gnu-suite" => gnu_suite::main(&rest),
        "pages" => pages::main(&rest),
        "contract" => contract::main(&rest),
        "caps" => caps::main(&rest),
        "test" => test::main(&rest),
        "wheel" => wheel::main(&rest),
        "python" => python::main(&rest),
        "npm" => npm::main(&rest),
        "node" => npm::test(&rest),
        "e2b" => e2b::main(&rest),
        "bench" => bench::main(&rest),
        "soak" => soak::main(&rest),
        "fuzz" => fuzz::main(&rest),
        "torture" => torture::main(&rest),
        "bash-suite" => suites::main(&rest),
        "shell-record" => record::shell(&rest),
        "tools-record" => record::tools(&rest),
        "" | "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(anyhow::anyhow!("no chore is called '{other}'\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a directory of the repository").into()
}

/// Runs one step of a chore, written as one would type it, from the root of the repository.
fn step(line: &str, environment: &[(&str, &str)]) -> Result<()> {
    println!("==> {line}");
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("a step is not empty"));
    run(command.args(words).envs(environment.iter().copied()).current_dir(root()))
}

/// Runs a command to its end, with its output on ours; anything but success is an error that names it.
fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

/// A command's standard output, or an error that holds what it wrote to standard error.
fn output(command: &mut Command) -> Result<Vec<u8>> {
    let shown = shown(command);
    let done = command.output().with_context(|| format!("cannot start {shown}"))?;
    if !done.status.success() {
        bail!("{shown}: {}\n{}", done.status, String::from_utf8_lossy(&done.stderr).trim_end());
    }
    Ok(done.stdout)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
