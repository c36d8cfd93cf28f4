//! Rows of results: what was measured, ours, native's, the ratio, the goal.

use std::fmt::Write;
use std::time::Duration;

/// One measured thing.
struct Row {
    what: String,
    ours: String,
    native: String,
    ratio: String,
    goal: String,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// A duration beside native's; the ratio says how many times faster ours is.
    pub(crate) fn compare(&mut self, what: &str, ours: Duration, native: Duration, goal: &str) {
        let ratio = native.as_secs_f64() / ours.as_secs_f64();
        self.push(what, show(ours), show(native), format!("{ratio:.2}x"), goal);
    }

    /// A figure that native has no counterpart for.
    pub(crate) fn note(&mut self, what: &str, ours: String, goal: &str) {
        self.push(what, ours, "–".to_owned(), "–".to_owned(), goal);
    }

    fn push(&mut self, what: &str, ours: String, native: String, ratio: String, goal: &str) {
        eprintln!("{what}: {ours} (native {native}, {ratio})");
        self.rows.push(Row { what: what.to_owned(), ours, native, ratio, goal: goal.to_owned() });
    }

    /// Prints the table, as Markdown.
    pub(crate) fn print(&self) {
        print!("{}", self.markdown());
    }

    fn markdown(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let mut text = format!(
            "# Benchmarks\n\nWritten by `cargo xtask bench` on {cores} cores. \"faster\" is native's time divided by \
             ours, in the same run.\n\n| what | ours | native bash | faster | goal |\n|---|---|---|---|---|\n"
        );
        for row in &self.rows {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                row.what.replace('|', "\\|"),
                row.ours,
                row.native,
                row.ratio,
                row.goal
            );
        }
        text
    }
}

/// A duration with three figures and a fitting unit.
pub(crate) fn show(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        m if m < 1e3 => format!("{m:.1} µs"),
        m if m < 1e6 => format!("{:.2} ms", m / 1e3),
        m => format!("{:.2} s", m / 1e6),
    }
}
