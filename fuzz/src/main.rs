//! Runs a fuzz target on random inputs, or on one that was found before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wardian_fuzz::random::Random;
use wardian_fuzz::{TARGETS, Target};

const USAGE: &str = "usage: wardian-fuzz TARGET [--seconds N] [--seed N] | TARGET FILE...";

/// An input of a few kilobytes that takes longer than this has found something that grows too fast.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(target) = args.first().and_then(|name| TARGETS.iter().find(|target| target.name == name)) else {
        eprintln!("{USAGE}\ntargets: {}", TARGETS.map(|target| target.name).join(" "));
        return ExitCode::from(2);
    };
    let (mut seconds, mut seed, mut files) = (60, from_clock(), Vec::new());
    let mut rest = args[1..].iter();
    while let Some(arg) = rest.next() {
        let number = match arg.as_str() {
            "--seconds" => &mut seconds,
            "--seed" => &mut seed,
            _ => {
                files.push(arg);
                continue;
            }
        };
        match rest.next().and_then(|text| text.parse().ok()) {
            Some(given) => *number = given,
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    if files.is_empty() {
        return random(target, Duration::from_secs(seconds), seed);
    }
    for file in files {
        match std::fs::read(file) {
            Ok(data) => (target.run)(&data),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn random(target: &Target, time: Duration, seed: u64) -> ExitCode {
    let name = target.name;
    let start = Instant::now();
    let mut random = Random::new(seed);
    let mut count = 0u64;
    let (begin, inputs) = mpsc::channel();
    let watched = name.to_owned();
    std::thread::spawn(move || watch(&watched, &inputs));
    while start.elapsed() < time {
        let data = Arc::new((target.input)(&mut random));
        let _ = begin.send(Some(data.clone()));
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&data))).is_err() {
            keep(name, &data, &format!("input {count} of seed {seed} panicked"));
            return ExitCode::FAILURE;
        }
        let _ = begin.send(None);
        count += 1;
    }
    println!("{name}: {count} inputs in {} s, seed {seed}, nothing found", time.as_secs());
    ExitCode::SUCCESS
}

/// Ends the program when an input takes too long: it may never end by itself.
fn watch(name: &str, inputs: &mpsc::Receiver<Option<Arc<Vec<u8>>>>) {
    while let Ok(Some(data)) = inputs.recv() {
        if let Err(mpsc::RecvTimeoutError::Timeout) = inputs.recv_timeout(PATIENCE) {
            keep(name, &data, "an input takes too long");
            std::process::exit(1);
        }
    }
}

fn keep(name: &str, data: &[u8], what: &str) {
    let sum = data.iter().fold(0, |sum: u64, byte| sum.wrapping_mul(257).wrapping_add(u64::from(*byte)));
    let file = format!("artifacts/{name}-{sum:016x}");
    let written = std::fs::create_dir_all("artifacts").and_then(|()| std::fs::write(&file, data));
    eprintln!("{name}: {what}; kept as {file} ({written:?})");
}

fn from_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}
