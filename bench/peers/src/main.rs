//! Runs a script with another sandboxed shell, so often, and prints how many seconds each time took.
//!
//! `wardian-bench-peers SCRIPT TIMES [FILE]...`: the files are put into its home directory, where the script runs.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use bashkit::{Bash, ExecutionLimits, MemoryLimits, SessionLimits};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [script, times, files @ ..] = arguments.as_slice() else {
        return Err("usage: wardian-bench-peers SCRIPT TIMES [FILE]...".into());
    };
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
    for _ in 0..times.parse()? {
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
