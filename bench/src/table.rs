//! Rows of results: what was measured, ours, others', the ratios, the goal.

use std::fmt::Write;
use std::time::Duration;

/// All that one suite measured.
pub(crate) struct Table {
    suite: &'static str,
    about: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(suite: &'static str, columns: &'static [&'static str]) -> Table {
        let about = "\"faster\" is another's time divided by ours, in the same run.";
        Table { suite, about, columns, rows: Vec::new() }
    }

    /// What the figures are, where it is not durations beside another's.
    pub(crate) fn about(mut self, about: &'static str) -> Table {
        self.about = about;
        self
    }

    /// A duration beside native's; the ratio says how many times faster ours is.
    pub(crate) fn compare(&mut self, what: &str, ours: Duration, native: Duration, goal: &str) {
        self.push(&[what, &show(ours), &show(native), &faster(ours, Some(native)), goal]);
    }

    /// A figure that native has no counterpart for.
    pub(crate) fn note(&mut self, what: &str, ours: String, goal: &str) {
        self.push(&[what, &ours, "–", "–", goal]);
    }

    pub(crate) fn push(&mut self, cells: &[&str]) {
        eprintln!("{}", cells.join(" · "));
        self.rows.push(cells.iter().map(|cell| cell.replace('|', "\\|")).collect());
    }

    /// Prints the table, as Markdown.
    pub(crate) fn print(&self) {
        print!("{}", self.markdown());
    }

    fn markdown(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let mut text = format!(
            "# Benchmarks: {suite}\n\nWritten by `cargo xtask bench {suite}` on {cores} cores. {about}\n\n\
             | {} |\n|{}\n",
            self.columns.join(" | "),
            "---|".repeat(self.columns.len()),
            suite = self.suite,
            about = self.about,
        );
        for row in &self.rows {
            let _ = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }
}

/// How many times faster ours is, if there is something to compare with.
pub(crate) fn faster(ours: Duration, other: Option<Duration>) -> String {
    other.map_or_else(|| "–".to_owned(), |other| format!("{:.2}x", other.as_secs_f64() / ours.as_secs_f64()))
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
