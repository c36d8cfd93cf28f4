//! Measures another sandboxed shell, and prints a number a line.
//!
//! ```text
//! wardian-bench-peers run SCRIPT TIMES [FILE]...   seconds each time takes; the files are in the directory it runs in
//! wardian-bench-peers create TIMES                 seconds to make a shell and run `echo hi` in it, each time
//! wardian-bench-peers idle COUNT                   kibibytes that many shells take that have run `echo hi`
//! ```

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use bashkit::{Bash, ExecutionLimits, MemoryLimits, SessionLimits};

type Done<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", script, times, files @ ..] => run(script, times.parse()?, files).await,
        ["create", times] => create(times.parse()?).await,
        ["idle", count] => idle(count.parse()?).await,
        _ => Err("usage: wardian-bench-peers run SCRIPT TIMES [FILE]... | create TIMES | idle COUNT".into()),
    }
}

async fn run(script: &str, times: usize, files: &[&str]) -> Done {
    let mut bash = Bash::builder()
        .limits(boundless())
        .session_limits(SessionLimits::unlimited())
        .memory_limits(MemoryLimits::unlimited())
        .build();
    for file in files {
        let name = Path::new(file).file_name().ok_or("a file has a name")?;
        bash.fs().write_file(&Path::new("/home/user").join(name), &std::fs::read(file)?).await?;
    }
    bash.exec("cd /home/user").await?;
    for _ in 0..times {
        let start = Instant::now();
        let result = bash.exec(script).await?;
        let elapsed = start.elapsed();
        if result.exit_code != 0 {
            return Err(format!("exit {}: {}", result.exit_code, result.stderr).into());
        }
        eprint!("{}", result.stdout);
        println!("{}", elapsed.as_secs_f64());
    }
    Ok(())
}

async fn create(times: usize) -> Done {
    for _ in 0..times {
        let start = Instant::now();
        drop(greeting().await?);
        println!("{}", start.elapsed().as_secs_f64());
    }
    Ok(())
}

async fn idle(count: usize) -> Done {
    let before = resident()?;
    let mut shells = Vec::with_capacity(count);
    for _ in 0..count {
        shells.push(greeting().await?);
    }
    println!("{}", resident()? - before);
    Ok(())
}

/// A new shell that has said something.
async fn greeting() -> Done<Bash> {
    let mut bash = Bash::new();
    let result = bash.exec("echo hi").await?;
    match &result.stdout[..] {
        "hi\n" => Ok(bash),
        other => Err(format!("printed {other:?}").into()),
    }
}

/// Kibibytes of this process that are in memory.
fn resident() -> Done<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Limits that no benchmark reaches: what is measured is the shell, not where it stops.
fn boundless() -> ExecutionLimits {
    ExecutionLimits {
        max_work_units: u64::MAX,
        max_aggregate_input_bytes: u64::MAX,
        max_live_intermediate_bytes: u64::MAX,
        max_word_split_fields: usize::MAX,
        max_word_split_bytes: usize::MAX,
        ..ExecutionLimits::cli()
    }
    .max_commands(usize::MAX)
    .max_loop_iterations(usize::MAX)
    .max_total_loop_iterations(usize::MAX)
    .timeout(Duration::from_secs(3600))
}
