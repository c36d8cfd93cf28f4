//! `expand` and `unexpand`: tabs to blanks, and back.

pub mod expand;
mod stops;
pub mod unexpand;

/// A line that is being read. It goes on from one file into the next where the first lacks its end.
struct Line {
    column: u64,
    /// Which of the stops on the list comes next.
    next_stop: usize,
    /// Blanks are still converted: with some options only up to the first that is none.
    converts: bool,
}

impl Line {
    fn new() -> Line {
        Line { column: 0, next_stop: 0, converts: true }
    }

    /// A backspace: one column back, and perhaps one stop.
    fn step_back(&mut self) {
        self.column = self.column.saturating_sub(1);
        self.next_stop = self.next_stop.saturating_sub(1);
    }
}

/// A column that cannot be counted.
struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("input line is too long")
    }
}
