//! The shell as a language: loops, strings, arrays, functions; against native bash and against bashkit.
//!
//! Where a row starts a process here and in bash, bashkit does not: those rows say so. Bash needs minutes to replace every
//! `e` of a megabyte; nobody waits for that.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wardian::Sandbox;

use crate::peer::{self, PATIENCE};
use crate::table::{Table, faster, show};

/// Name, script, and whether a process is started for each round of its loop.
const SCRIPTS: &[(&str, &str, bool)] = &[
    ("`while ((i<100000))`", "i=0; while ((i<100000)); do ((i++)); done", false),
    ("`while [ $i -lt 100000 ]`", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", false),
    ("`for ((i=0;i<100000;i++))`", "for ((i=0;i<100000;i++)); do :; done", false),
    ("`for i in {1..100000}`", "for i in {1..100000}; do :; done; [ $i = 100000 ]", false),
    (
        "string building, 100,000 times `s+=`",
        "s=; for ((i=0;i<100000;i++)); do s+=\"x$i \"; done; : ${#s}",
        false,
    ),
    ("array fill, 100,000 elements", "a=(); for ((i=0;i<100000;i++)); do a[i]=$i; done; : ${#a[@]}", false),
    (
        "array append and walk, 100,000 elements",
        "a=(); for ((i=1;i<=100000;i++)); do a+=($i); done; n=0; for x in \"${a[@]}\"; do ((n+=x)); done; \
         for ((i=0;i<${#a[@]};i++)); do n=$((n-a[i])); done; [ $n = 0 ]",
        false,
    ),
    (
        "associative array, 20,000 keys",
        "declare -A m; for ((i=0;i<20000;i++)); do m[key$i]=$i; done; \
         n=0; for k in \"${!m[@]}\"; do ((n+=m[$k])); done; [ $n = 199990000 ]",
        false,
    ),
    (
        "function calls, 100,000",
        "f() { local x=$1; r=$((x+1)); }; r=0; for ((i=0;i<100000;i++)); do f $r; done; [ $r = 100000 ]",
        false,
    ),
    ("`$(echo x)`, 10,000", "for ((i=0;i<10000;i++)); do x=$(echo x); done; [ $x = x ]", true),
    ("`( : )`, 1,000", "for ((i=0;i<1000;i++)); do ( : ); done", true),
    ("external `true`, 1,000", "for ((i=0;i<1000;i++)); do /bin/true; done", true),
    (
        "`read` of a 100,000-line file",
        "n=0; while read -r line; do ((n+=${#line})); done < lines; [ $n = 1688895 ]",
        false,
    ),
    (
        "splitting 100,000 lines into fields",
        "n=0; while IFS=' ' read -r a b c; do ((n+=c)); done < lines; [ $n = 5000050000 ]",
        false,
    ),
    ("`${s//e/xy}` on 1 MB", "s=$(<text); t=${s//e/xy}; [ ${#t} -gt ${#s} ]", false),
    ("`${s//[aeiou]/-}` on 1 MB", "s=$(<text); t=${s//[aeiou]/-}; [ ${#t} = ${#s} ]", false),
    (
        "`${s//l*n /-}` on each line of 1 MB",
        "while read -r s; do t=${s//l*n /-}; done < text; [ -n \"$t\" ]",
        false,
    ),
    ("`case` and `[[ ]]`, 100,000", CHOOSE, false),
];

/// What the scripts read: 100,000 lines, and 1 MB of text in lines of 512 bytes.
const MAKE_FILES: &str = "for ((i=1;i<=100000;i++)); do echo \"line number $i\"; done > lines; \
    s='The quick brown fox jumps over the lazy dog, and then once more.'; s=\"$s $s $s $s $s $s $s $s\"; \
    for ((i=0;i<2048;i++)); do echo \"${s:0:511}\"; done > text";

const CHOOSE: &str = "n=0; for ((i=0;i<100000;i++)); do \
    case $i in *0) ((n++));; *[1-4]) if [[ $i == *3 && $i -gt 10 ]]; then ((n+=2)); fi;; esac; done; [ $n -gt 0 ]";

/// The best of several is the least disturbed by whatever else the machine does.
const ROUNDS: usize = 2;
const WARM: usize = 500;
pub(crate) async fn measure() -> Result<Table> {
    let columns = &["what", "ours", "native bash", "faster", "bashkit", "faster"];
    let mut table = Table::new("shell", columns);
    let files = Files::new()?;
    let sandbox = Sandbox::builder().timeout(None).build().await?;
    in_sandbox(&sandbox, MAKE_FILES).await?;
    for (what, script, starts) in SCRIPTS {
        let (mut ours, mut native) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            // As new as bash's process, without what an earlier script left in memory.
            let fresh = sandbox.fork().await?;
            ours = ours.min(in_sandbox(&fresh, script).await?);
            if native != PATIENCE {
                native = native.min(files.in_bash(script)?);
            }
        }
        let what = if *starts { format!("{what} (bashkit starts no process)") } else { (*what).to_owned() };
        row(&mut table, &what, ours, native, files.in_peer(script, ROUNDS).first().copied());
    }
    warm(&mut table, &sandbox, &files).await?;
    Ok(table)
}

/// The library's own answer: a command in a sandbox that is there.
async fn warm(table: &mut Table, sandbox: &Sandbox, files: &Files) -> Result<()> {
    let mut ours = Vec::new();
    for _ in 0..WARM {
        ours.push(in_sandbox(sandbox, "echo hi").await?);
    }
    ours.sort();
    let native = (0..ROUNDS).map(|_| files.in_bash("echo hi")).collect::<Result<Vec<_>>>()?;
    let native = native.into_iter().min().context("measured at least once")?;
    let peer = files.in_peer("echo hi", WARM);
    row(
        table,
        "warm `run(\"echo hi\")` from the library, median",
        ours[WARM / 2],
        native,
        peer.get(WARM / 2).copied(),
    );
    Ok(())
}

fn row(table: &mut Table, what: &str, ours: Duration, native: Duration, peer: Option<Duration>) {
    let cells = |other: Option<Duration>| {
        let at_least = if other == Some(PATIENCE) { "> " } else { "" };
        let shown = other.map_or_else(|| "–".to_owned(), show);
        (format!("{at_least}{shown}"), format!("{at_least}{}", faster(ours, other)))
    };
    let ((native, over_native), (peer, over_peer)) = (cells(Some(native)), cells(peer));
    table.push(&[what, &show(ours), &native, &over_native, &peer, &over_peer]);
}

async fn in_sandbox(sandbox: &Sandbox, script: &str) -> Result<Duration> {
    let start = Instant::now();
    let result = sandbox.run(script).await?;
    let elapsed = start.elapsed();
    ensure!(result.exit_code == 0, "{script}: {}", String::from_utf8_lossy(&result.stderr));
    Ok(elapsed)
}

/// A directory of the machine's with the files the scripts read, for native bash.
struct Files {
    directory: PathBuf,
}

impl Files {
    fn new() -> Result<Files> {
        let directory = std::env::temp_dir().join(format!("wardian-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let files = Files { directory };
        files.in_bash(MAKE_FILES)?;
        Ok(files)
    }

    /// How long bash takes; `PATIENCE` where it would take longer.
    fn in_bash(&self, script: &str) -> Result<Duration> {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(&self.directory).stdout(Stdio::null());
        let start = Instant::now();
        let mut bash = command.spawn()?;
        let status = loop {
            match bash.try_wait()? {
                Some(status) => break status,
                None if start.elapsed() > PATIENCE => {
                    bash.kill()?;
                    bash.wait()?;
                    return Ok(PATIENCE);
                }
                // A fiftieth of what it has taken so far: short scripts are not made longer by looking.
                None => std::thread::sleep((start.elapsed() / 50).min(Duration::from_millis(20))),
            }
        };
        let elapsed = start.elapsed();
        ensure!(status.success(), "bash: {script}: {status}");
        Ok(elapsed)
    }

    /// The times bashkit takes, shortest first; none where it cannot run the script, or is not built.
    fn in_peer(&self, script: &str, times: usize) -> Vec<Duration> {
        let mut words = vec!["run".into(), script.into(), times.to_string().into()];
        words.extend(["lines", "text"].map(|name| self.directory.join(name).into_os_string()));
        let seconds = peer::numbers(&words, PATIENCE * times.min(4) as u32).unwrap_or_default();
        seconds.into_iter().map(Duration::from_secs_f64).collect()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
