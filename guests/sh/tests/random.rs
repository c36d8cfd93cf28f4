//! Random scripts, run by this shell and by bash 5.2: both must write the same and exit with the same status.
//!
//! The suite runs a fixed few, always the same. `cargo xtask fuzz shell_random --seconds N` runs new ones for as long
//! as asked; a disagreement is shrunk to the least script that still shows it, and printed as a case for a sheet.

#[path = "random/generate.rs"]
mod generate;
#[path = "cases/run.rs"]
mod run;
#[path = "cases/sheet.rs"]
#[allow(dead_code)]
mod sheet;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use generate::{Random, Statement};
use sheet::{Case, Outcome};

/// How many scripts the suite runs.
const SCRIPTS: u64 = 300;

fn outcome(shell: &str, script: &str) -> Result<Outcome, String> {
    let script = script.as_bytes().to_vec();
    run::run(Path::new(shell), &[], &Case { name: String::new(), script, stdin: Vec::new(), recorded: None })
}

/// What both shells made of a script, if that is not the same. What even bash does not finish says nothing.
fn disagreement(script: &str) -> Option<(Outcome, Result<Outcome, String>)> {
    let bash = outcome("/bin/bash", script).ok()?;
    let ours = outcome(env!("CARGO_BIN_EXE_sh"), script);
    (ours.as_ref() != Ok(&bash)).then_some((bash, ours))
}

/// Leaves out statements, and takes blocks for what is in them, while the shells still disagree.
fn shrink(mut script: Vec<Statement>) -> Vec<Statement> {
    while let Some(smaller) =
        smaller(&script).into_iter().find(|it| disagreement(&generate::text(it)).is_some())
    {
        script = smaller;
    }
    script
}

/// Every script that is this one with something left out, the most first.
fn smaller(script: &[Statement]) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    let half = script.len() / 2;
    if half > 1 {
        all.push(script[half..].to_vec());
        all.push(script[..half].to_vec());
    }
    for at in 0..script.len() {
        let with = |instead: Vec<Statement>| [&script[..at], &instead, &script[at + 1..]].concat();
        all.push(with(Vec::new()));
        if let Statement::Block(before, inside, after) = &script[at] {
            all.push(with(inside.clone()));
            let shrunk = smaller(inside).into_iter();
            all.extend(
                shrunk.map(|inside| with(vec![Statement::Block(before.clone(), inside, after.clone())])),
            );
        }
    }
    all
}

/// A disagreement as a case for a sheet, with what this shell made of it beside.
fn report(seed: u64) -> Option<String> {
    let script = Random::new(seed).script();
    let _ = disagreement(&generate::text(&script))?;
    let text = generate::text(&shrink(script));
    let (bash, ours) = disagreement(&text)?;
    let shown = |out: &[u8]| String::from_utf8_lossy(out).into_owned();
    let ours = ours.map_or_else(|error| error, |ours| format!("{}\n{}", ours.code, shown(&ours.out)));
    Some(format!("#### seed {seed}\n{text}---- {}\n{}==== this shell: {ours}", bash.code, shown(&bash.out)))
}

/// Runs seeds until there are none or time is over; answers the disagreements.
fn search(seeds: std::ops::Range<u64>, until: Option<Instant>) -> Vec<String> {
    let next = AtomicU64::new(seeds.start);
    let over = || until.is_some_and(|until| Instant::now() >= until);
    let worker = || {
        let mut found = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || over() {
                return found;
            }
            if let Some(report) = report(seed) {
                if until.is_some() {
                    println!("{report}");
                }
                found.push(report);
            }
        }
    };
    let workers = if until.is_some() { 1 } else { 2 };
    let found = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    println!("{} scripts", next.into_inner().min(seeds.end) - seeds.start);
    found
}

/// Whether `/bin/bash` is the version the shell is held to.
fn has_bash() -> bool {
    let asked = Command::new("/bin/bash").args(["-c", "echo $BASH_VERSION"]).output();
    asked.is_ok_and(|asked| asked.stdout.starts_with(b"5.2."))
}

#[test]
fn random_scripts_agree_with_bash() {
    if !has_bash() {
        println!("skipped: /bin/bash is not bash 5.2, which random scripts are compared with");
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let found = match number("WARDIAN_RANDOM_SECONDS") {
        None => search(0..SCRIPTS, None),
        Some(seconds) => {
            let clock =
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
            let seed = number("WARDIAN_RANDOM_SEED").unwrap_or(clock);
            search(seed..u64::MAX, Some(Instant::now() + Duration::from_secs(seconds)))
        }
    };
    assert!(found.is_empty(), "{} disagreements:\n{}", found.len(), found.join("\n"));
}
