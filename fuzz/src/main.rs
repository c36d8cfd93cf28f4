//! Runs a fuzz target on random inputs, or on one that was found before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wardian_fuzz::{TARGETS, Target};

const USAGE: &str = "usage: wardian-fuzz TARGET [--seconds N] [--seed N] | TARGET FILE...";

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
    let (name, sample) = (target.name, (target.sample)());
    let start = Instant::now();
    let mut random = Random(seed);
    let mut count = 0u64;
    while start.elapsed() < time {
        let data = random.input(&sample);
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&data))).is_err() {
            let file = format!("artifacts/{name}-{:016x}", random.next());
            let written = std::fs::create_dir_all("artifacts").and_then(|()| std::fs::write(&file, &data));
            eprintln!("{name}: input {count} of seed {seed} panicked; kept as {file} ({written:?})");
            return ExitCode::FAILURE;
        }
        count += 1;
    }
    println!("{name}: {count} inputs in {} s, seed {seed}, nothing found", time.as_secs());
    ExitCode::SUCCESS
}

fn from_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

/// Numbers to go by (splitmix64), the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Noise, or a mutation of the target's own sample.
    fn input(&mut self, sample: &[u8]) -> Vec<u8> {
        if sample.is_empty() || self.below(20) == 0 {
            return (0..self.below(1600)).map(|_| self.next() as u8).collect();
        }
        let mut data = sample.to_vec();
        for _ in 0..=self.below(6) {
            self.mutate(&mut data);
        }
        data
    }

    fn mutate(&mut self, data: &mut Vec<u8>) {
        if data.is_empty() {
            return;
        }
        let at = self.below(data.len());
        let block = at / 512 * 512;
        let block_end = (block + 512).min(data.len());
        match self.below(8) {
            0 => data.truncate(at),
            1 => drop(data.drain(block..block_end)),
            2 => {
                let copy = data[block..block_end].to_vec();
                let to = self.below(data.len()) / 512 * 512;
                data.splice(to..to, copy);
            }
            3 => data[at] ^= 1 << self.below(8),
            // Interesting fields of a header: name, size, kind, link, sparse map.
            4 => {
                let in_name = block + self.below(20);
                self.overwrite(data, in_name, 4);
            }
            5 => self.overwrite(data, block + 124, 12),
            6 => {
                const KINDS: &[u8] = b"0123456789xgLKSZ";
                let kind = KINDS[self.below(KINDS.len())];
                if let Some(byte) = data.get_mut(block + 156) {
                    *byte = kind;
                }
            }
            _ => self.overwrite(data, block + 386, 100),
        }
    }

    fn overwrite(&mut self, data: &mut [u8], at: usize, len: usize) {
        const BYTES: &[u8] = b"0017/.\0\x80\xff x";
        for offset in 0..self.below(len) + 1 {
            let byte = BYTES[self.below(BYTES.len())];
            if let Some(place) = data.get_mut(at + offset) {
                *place = byte;
            }
        }
    }
}
