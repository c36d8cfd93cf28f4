//! `cargo xtask torture`: attacks one server for a while and checks after each round that it is unharmed.
//!
//! ```text
//!   server (child process)  ◄── socket, HTTP ── attackers: hostile scripts, modules, forks, archives, floods
//!        ▲       ▲
//!        │       └───────────── socket ── neighbour: a client that only wants its `echo`, and on time
//!        └── /proc ──────────── watch: memory, descriptors, mappings
//! ```
//!
//! A round is a few attackers at once, chosen by a seed that can be given again. While it lasts, memory stays below what
//! the sandboxes' limits add up to, and the neighbour is served about as well as beside as many sandboxes that only
//! compute. After it, every request has been answered once, the files add up, and the process is where it was.

mod attacks;
mod client;
mod dice;
mod neighbour;
mod round;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;

use crate::dice::Dice;
use crate::round::Arena;

/// Attack one server for a while and check that it is unharmed.
#[derive(Parser)]
struct Arguments {
    /// How long to go on.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// What to choose attacks by; by default a new number, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// How many attackers there are in a round.
    #[arg(long, default_value_t = 6)]
    attackers: usize,
    /// Attack in this way only; the names are printed as rounds go by.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// The server's program; by default the one built beside this.
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
}

fn main() -> ExitCode {
    match torture(Arguments::parse()) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("torture: {} failures:", failures.len());
            failures.iter().for_each(|failure| eprintln!("  {failure}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("torture: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs rounds until the time is over; returns what was found wrong.
fn torture(arguments: Arguments) -> Result<Vec<String>> {
    let seed = arguments.seed.unwrap_or_else(dice::new_seed);
    println!("torture: seed {seed}, {} attackers, {} minutes", arguments.attackers, arguments.minutes);
    let program = match arguments.server {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("wardian"),
    };
    let attacks = attacks::named(arguments.only.as_deref())?;
    let mut dice = Dice::new(seed);
    let mut arena = Arena::open(&program, arguments.attackers)?;
    arena.warm_up(&attacks, &mut dice)?;
    let end = Instant::now() + Duration::from_secs_f64(arguments.minutes * 60.0);
    let mut failures = Vec::new();
    let mut rounds = 0;
    while Instant::now() < end && arena.is_alive() {
        rounds += 1;
        failures.extend(arena.round(rounds, &attacks, &mut dice)?);
    }
    failures.extend(arena.close()?);
    println!("torture: {rounds} rounds, seed {seed}, {} failures", failures.len());
    Ok(failures)
}
