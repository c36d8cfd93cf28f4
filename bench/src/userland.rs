//! The tools on 100 MB each, beside the machine's own: processor time and memory of the same command line.
//!
//! Both read the same files, ours from the sandbox's memory, the machine's from its page cache, and throw away what they
//! write. What ours take is measured from outside, over all threads of this process: the guest's code, the kernel's
//! calls, and whatever the run leaves to be cleared away.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeValLike;
use tempfile::TempDir;
use wardian::{Limits, MountMode, Run, Sandbox};

use crate::inputs;
use crate::table::{Table, show};

/// Rounds of which the middle one counts.
const ROUNDS: usize = 3;
/// Of processor time, ours to native's.
const GOAL: &str = "1.5x";

/// One line to run on both sides.
struct Job {
    line: &'static str,
    /// The program that stands for the first word natively, where it is not the same.
    native: Option<&'static str>,
    /// What makes the output comparable: a wrong answer is quickly given.
    digest: &'static str,
}

const fn job(line: &'static str) -> Job {
    Job { line, native: None, digest: "sha256sum" }
}

const fn digested(line: &'static str, digest: &'static str) -> Job {
    Job { line, native: None, digest }
}

const fn against(native: &'static str, line: &'static str) -> Job {
    Job { line, native: Some(native), digest: "sha256sum" }
}

/// GNU's grep and tar look whether they write to /dev/null, and then do next to nothing: those write to `cat`.
const JOBS: &[Job] = &[
    job("wc log"),
    job("wc -l log"),
    job("sort words"),
    job("sort -n numbers"),
    job("sort -t, -k3,3 -k4,4nr csv"),
    job("uniq -c words"),
    job("grep -F 'status=503' log | cat"),
    job("grep -c -i 'TIMEOUT' log | cat"),
    job("grep -E 'user=[0-9]+7 .*(GET|PUT) /api/v[12]' log | cat"),
    job("grep -v INFO log | cat"),
    job("sed 's/user=/account:/g' log"),
    job("sed -E 's/([0-9]+)ms/\\1 ms/g' log"),
    job("sed -n '/status=503/p' log"),
    job("cut -d, -f2,4 csv"),
    job("cut -c1-20 log"),
    job("tr a-z A-Z < log"),
    job("tr -d '[:punct:]' < log"),
    against("gawk", "awk -F, '{ sum += $4 } END { print sum }' csv"),
    against("mawk", "awk -F, '{ sum += $4 } END { print sum }' csv"),
    job("jq -c 'select(.status == 503) | {id, user: .user.name}' lines.json"),
    job("jq '[.[] | .bytes] | add' one.json"),
    job("sha256sum log"),
    job("md5sum log"),
    job("base64 log"),
    digested("gzip -c log", "gzip -dc | sha256sum"),
    job("gzip -dc log.gz"),
    digested("tar -cf - tree | cat", "tar -tf - | sed 's:/$::' | sort | sha256sum"),
    digested("find tree -name '*7.txt'", "sort | sha256sum"),
    digested("find tree -type f -size +1", "sort | sha256sum"),
];

pub(crate) async fn measure() -> Result<Table> {
    let columns = &["what", "ours", "native", "ours to native", "goal", "our memory", "native's"];
    let mut table = Table::new("userland", columns).about(
        "Processor time on 100 MB, the middle of three rounds, and the most memory: ours as the limit counts it, over \
         all processes; natively that of the largest. Files in the sandbox's memory and in the page cache, output thrown \
         away, LC_ALL=C.UTF-8 on both sides.",
    );
    let inputs = place()?;
    inputs::make(inputs.path())?;
    let sandbox = furnished(inputs.path()).await?;
    let wanted = std::env::args().nth(2).unwrap_or_default();
    for job in JOBS.iter().filter(|job| job.line.contains(&wanted)) {
        compare(&mut table, &sandbox, inputs.path(), job).await?;
    }
    Ok(table)
}

/// A directory for the inputs, which goes away with it: in memory where there is room, since what is measured is no disk.
fn place() -> Result<TempDir> {
    const ROOM: u64 = 4 << 30;
    let memory = Path::new("/dev/shm");
    let room = statvfs(memory).map_or(0, |system| system.blocks_available() * system.fragment_size());
    let made = if room > ROOM { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.context("cannot make a directory for the inputs")
}

/// A sandbox with the inputs in its own file system.
async fn furnished(inputs: &Path) -> Result<Sandbox> {
    let limits = Limits { fs_bytes: 4 << 30, memory_bytes: 3 << 30, ..Limits::default() };
    let builder = Sandbox::builder().limits(limits).timeout(None).env("LC_ALL", "C.UTF-8");
    let sandbox = builder.mount(inputs, "/mnt", MountMode::ReadOnly).build().await?;
    let line =
        "mkdir /tmp/inputs && cd /tmp/inputs && cp $(find /mnt -maxdepth 1 -type f) . && tar -xf tree.tar";
    let copied = sandbox.run(line).await?;
    ensure!(copied.exit_code == 0, "cannot copy the inputs: {}", String::from_utf8_lossy(&copied.stderr));
    Ok(sandbox)
}

async fn compare(table: &mut Table, sandbox: &Sandbox, inputs: &Path, job: &Job) -> Result<()> {
    let theirs = job.native_line();
    let expected = native(inputs, &format!("{theirs} | {}", job.digest))?;
    let digest = sandbox.run(format!("{} | {}", job.line, job.digest)).await?;
    if let Some(expected) = &expected {
        let (ours, theirs) = (String::from_utf8_lossy(&digest.stdout), &expected.output);
        ensure!(ours == theirs.as_str(), "'{}' gives something else: {ours}, natively {theirs}", job.line);
    }
    let (mut ours, mut natives) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(inside(sandbox, job.line).await?);
        natives.extend(native(inputs, &format!("{theirs} > /dev/null"))?);
    }
    let ours = middle(ours).context("no round was measured")?;
    let (time, ratio, memory) = match middle(natives) {
        Some(native) => (
            show(native.cpu),
            format!("{:.2}x", ours.cpu.as_secs_f64() / native.cpu.as_secs_f64()),
            mebibytes(native.memory),
        ),
        None => ("absent".to_owned(), "–".to_owned(), "–".to_owned()),
    };
    let what = job.native.map_or_else(|| job.line.to_owned(), |native| format!("{} ({native})", job.line));
    let what = format!("`{what}`");
    table.push(&[&what, &show(ours.cpu), &time, &ratio, GOAL, &mebibytes(ours.memory), &memory]);
    Ok(())
}

impl Job {
    fn native_line(&self) -> String {
        match (self.native, self.line.split_once(' ')) {
            (Some(program), Some((_, rest))) => format!("{program} {rest}"),
            _ => self.line.to_owned(),
        }
    }
}

/// What a line took, and, where it was kept, what it wrote.
struct Taken {
    cpu: Duration,
    memory: u64,
    output: String,
}

fn middle(mut rounds: Vec<Taken>) -> Option<Taken> {
    rounds.sort_by_key(|taken| taken.cpu);
    let middle = rounds.len() / 2;
    rounds.into_iter().nth(middle)
}

async fn inside(sandbox: &Sandbox, line: &str) -> Result<Taken> {
    let before = cpu(UsageWho::RUSAGE_SELF)?;
    let result = sandbox.run_with(Run::new(format!("{line} > /dev/null"))).await?;
    let cpu = cpu(UsageWho::RUSAGE_SELF)?.saturating_sub(before);
    ensure!(result.exit_code == 0, "'{line}' failed: {}", String::from_utf8_lossy(&result.stderr));
    Ok(Taken { cpu, memory: result.usage.peak_memory_bytes, output: String::new() })
}

/// Runs a line natively, by way of a small process of our own: a child begins with its parent's memory, which counts as its
/// peak. `None` where the machine does not have the program.
fn native(inputs: &Path, line: &str) -> Result<Option<Taken>> {
    let own = std::env::current_exe().context("this program cannot be found again")?;
    let output = Command::new(own).args([NATIVE, line]).current_dir(inputs).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("command not found") {
        return Ok(None);
    }
    ensure!(output.status.success(), "'{line}' failed natively: {error}");
    let (micros, kibibytes) = error.trim().split_once(' ').context("no figures of a native run")?;
    Ok(Some(Taken {
        cpu: Duration::from_micros(micros.parse()?),
        memory: kibibytes.parse::<u64>()? << 10,
        output: String::from_utf8_lossy(&output.stdout).into_owned(),
    }))
}

/// What this program is asked to do in the process that `native` starts.
pub(crate) const NATIVE: &str = "__native";

/// Runs a line with bash and writes what it took to standard error, in microseconds and kibibytes.
pub(crate) fn run_native(line: &str) -> Result<()> {
    let status = Command::new("bash").args(["-c", line]).env("LC_ALL", "C.UTF-8").status()?;
    ensure!(status.success(), "{status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    eprintln!("{} {}", cpu(UsageWho::RUSAGE_CHILDREN)?.as_micros(), usage.max_rss());
    Ok(())
}

fn cpu(who: UsageWho) -> Result<Duration> {
    let usage = getrusage(who)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.unsigned_abs()))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}
