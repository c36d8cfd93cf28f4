//! Many sandboxes that each send a request now and then.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use wardian::Sandbox;

use super::{programs, seconds};
use crate::table::{Table, show};

/// Sandboxes that send requests at the same time, how many a second each, and for how long.
const CROWD: usize = 200;
const RATE: usize = 10;
const SECONDS: u64 = 10;
/// How long it takes until the last has started: more on a machine that has other things to do. And how long all wait for the
/// last request.
const STARTS: [Duration; 3] = [Duration::from_secs(15), Duration::from_secs(45), Duration::from_secs(90)];
const SLACK: Duration = Duration::from_secs(2);

/// What a crowd has measured.
struct Crowd {
    tail: Tail,
    /// From the time at which all print and exit to the end of the last one.
    end: Duration,
}

pub(super) async fn measure(table: &mut Table, sandbox: &Sandbox, port: u16) -> Result<()> {
    let mut starts = STARTS.into_iter();
    let ours = loop {
        let start = starts.next().context("the sandboxes did not start in time")?;
        if let Some(crowd) = in_sandboxes(sandbox, port, start).await? {
            break crowd;
        }
    };
    let mut natives = STARTS.into_iter().map(|start| natively(port, start));
    let native = natives.find_map(Result::transpose).context("the processes did not start in time")??;
    let ratio =
        |ours: Duration, native: Duration| format!("{:.2}x", ours.as_secs_f64() / native.as_secs_f64());
    let what = format!("{CROWD} sandboxes, or processes, {RATE} requests a second each: 99th percentile");
    let (tail, other) = (&ours.tail, &native.tail);
    table.push(&[&what, &tail.shown(), &other.shown(), &ratio(tail.last, other.last), "10 ms"]);
    let what = "their end: all print what they measured and exit at once, until the last is gone";
    table.push(&[what, &show(ours.end), &show(native.end), &ratio(ours.end, native.end), "–"]);
    Ok(())
}

/// When all begin and when they end, since 1970, and the arguments that say so.
fn plan(host: &str, port: u16, start: Duration) -> Result<(SystemTime, String)> {
    let begin = UNIX_EPOCH.elapsed()?.as_secs() + start.as_secs();
    let end = begin + SECONDS + SLACK.as_secs();
    Ok((UNIX_EPOCH + Duration::from_secs(end), format!("{host} {port} {begin} {RATE} {SECONDS} {end}")))
}

/// Nothing if one of them was not ready at the start.
async fn in_sandboxes(sandbox: &Sandbox, port: u16, start: Duration) -> Result<Option<Crowd>> {
    let forks = sandbox.fork_many(CROWD).await?;
    let (end, words) = plan("server.test", port, start)?;
    let run = |fork: Sandbox| {
        let line = format!("python3 /tmp/crowd.py {words}");
        tokio::spawn(async move { fork.run(line).await })
    };
    let tasks: Vec<_> = forks.into_iter().map(run).collect();
    let mut texts = Vec::new();
    for task in tasks {
        let result = task.await??;
        let errors = String::from_utf8_lossy(&result.stderr);
        ensure!(result.exit_code == 0 || errors.contains(programs::LATE), "a sandbox: {errors}");
        texts.push((result.exit_code == 0).then(|| String::from_utf8_lossy(&result.stdout).into_owned()));
    }
    Crowd::of(texts, end)
}

/// The same with as many processes of the machine's Python.
fn natively(port: u16, start: Duration) -> Result<Option<Crowd>> {
    let file = tempfile::Builder::new().suffix(".py").tempfile()?;
    std::fs::write(file.path(), programs::CROWD)?;
    let (end, words) = plan("127.0.0.1", port, start)?;
    // Not what a version manager puts before it, which takes longer to start than Python does.
    let python = super::natively("import sys; print(sys.executable)", "")?;
    let start = |_| {
        let mut command = Command::new(python.trim());
        command.arg(file.path()).args(words.split(' '));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let children = (0..CROWD).map(start).collect::<Result<Vec<_>, _>>()?;
    let mut texts = Vec::new();
    for child in children {
        let output = child.wait_with_output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() || errors.contains(programs::LATE), "natively: {errors}");
        texts.push(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    Crowd::of(texts, end)
}

impl Crowd {
    fn of(texts: Vec<Option<String>>, end: SystemTime) -> Result<Option<Crowd>> {
        let Some(texts) = texts.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
        Ok(Some(Crowd { end: end.elapsed()?, tail: Tail::of(&texts)? }))
    }
}

/// What the slowest of many requests took, and the middle one.
struct Tail {
    middle: Duration,
    last: Duration,
}

impl Tail {
    fn of(texts: &[String]) -> Result<Tail> {
        let mut all = Vec::new();
        for line in texts.iter().flat_map(|text| text.lines()) {
            all.push(seconds(line)?);
        }
        ensure!(all.len() == CROWD * RATE * SECONDS as usize, "only {} requests were answered", all.len());
        all.sort();
        Ok(Tail { middle: all[all.len() / 2], last: all[all.len() * 99 / 100] })
    }

    fn shown(&self) -> String {
        format!("{} (median {})", show(self.last), show(self.middle))
    }
}
