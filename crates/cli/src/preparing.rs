//! Compiling the programs: what is said about it, and `wardian prepare`, which does it beforehand.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;

use crate::out::{self, remark, say};

/// How long a program may be compiled before standard error says what the caller waits for.
const SILENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(200);

/// Says what takes so long, until it is dropped: to people and programs alike, since neither should wait without a word.
pub(crate) struct Explaining(tokio::task::JoinHandle<()>);

/// Begins to look at what is being compiled.
pub(crate) fn explain() -> Explaining {
    // At a raw terminal a new line is two characters.
    let end = if std::io::stderr().is_terminal() { "\r\n" } else { "\n" };
    Explaining(tokio::spawn(async move {
        let mut told = String::new();
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some((name, since)) = wardian::preparing()
                && name != told
                && since.elapsed() > SILENCE
            {
                let line =
                    format!("wardian: preparing {name} for this machine (once; see wardian prepare){end}");
                out::write_remark(line.as_bytes());
                told = name;
            }
        }
    }))
}

/// Shows what a new sandbox reports, except what [`explain`] shows when it takes long.
pub(crate) fn tell(step: &str) {
    if !step.starts_with("preparing ") {
        remark!("wardian: {step}");
    }
}

impl Drop for Explaining {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Compile all programs for this machine now, so that no command has to wait for it.
#[derive(clap::Args)]
#[command(after_help = "\
Compiled programs are kept in $WARDIAN_CACHE_DIR, else in wardian in $XDG_CACHE_HOME or ~/.cache. Run this after
installing or updating, for example when building an image.

Example:
  wardian prepare && wardian run 'echo ready'")]
pub(crate) struct Arguments {}

/// How many have been begun.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Compiles everything; returns the exit code.
pub(crate) fn main(_: Arguments) -> Result<u8> {
    let total = wardian::program_names().len();
    let terminal = std::io::stderr().is_terminal();
    wardian::prepare(|step| {
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        if terminal {
            out::write_remark(bar(number, total, step).as_bytes());
        } else {
            remark!("wardian: {step}");
        }
    })?;
    if terminal && BEGUN.load(Ordering::Relaxed) > 0 {
        out::write_remark(bar(total, total, "done").as_bytes());
        remark!("");
    }
    say!("all {total} programs are ready")?;
    Ok(0)
}

/// Returns what draws a bar over the last one.
fn bar(done: usize, total: usize, step: &str) -> String {
    const WIDTH: usize = 24;
    let filled = (done.min(total) * WIDTH).checked_div(total).unwrap_or(WIDTH);
    let (full, empty) = ("#".repeat(filled), "-".repeat(WIDTH - filled));
    format!("\r\x1b[K[{full}{empty}] {}/{total} {step}", done.min(total))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bar_fills_as_programs_are_done() {
        let shown = |done, total| super::bar(done, total, "sh").replace("\r\x1b[K", "");
        assert_eq!(shown(0, 12), "[------------------------] 0/12 sh");
        assert_eq!(shown(3, 12), "[######------------------] 3/12 sh");
        assert_eq!(shown(12, 12), "[########################] 12/12 sh");
        assert_eq!(shown(13, 12), "[########################] 12/12 sh");
        assert_eq!(shown(0, 0), "[########################] 0/0 sh");
    }
}
