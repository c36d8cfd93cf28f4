//! What a run says.

use std::time::Duration;

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// The script's exit code; 124 after a timeout, 125 when cancelled.
    pub exit_code: u8,
    /// What it wrote to standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, up to the limit, and what we had to say.
    pub stderr: Vec<u8>,
    /// How long it took.
    pub duration: Duration,
    /// Which outputs are longer than what was kept.
    pub truncated: Truncated,
    /// What kept it from running to its own end.
    pub error_class: Option<ErrorClass>,
    /// The first limit that was hit, by its name in the protocol.
    pub limit: Option<&'static str>,
    /// What it used.
    pub usage: Usage,
}

/// Which outputs were cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncated {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// Why a run did not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Its time was up.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit was passed and we had to end it, or it never ran.
    LimitExceeded,
    /// Something it may not do.
    CapabilityDenied,
}

impl ErrorClass {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Timeout => "TIMEOUT",
            ErrorClass::Cancelled => "CANCELLED",
            ErrorClass::LimitExceeded => "LIMIT_EXCEEDED",
            ErrorClass::CapabilityDenied => "CAPABILITY_DENIED",
        }
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Milliseconds on a processor.
    pub cpu_ms: u64,
    /// The most memory the sandbox's processes had at once, ever.
    pub peak_memory_bytes: u64,
    /// Processes started.
    pub processes: u64,
    /// Bytes through `read` calls.
    pub bytes_read: u64,
    /// Bytes through `write` calls.
    pub bytes_written: u64,
}

/// Cuts a text back to the end of its last whole character, if it ends inside one.
pub(crate) fn cut_at_character(bytes: &mut Vec<u8>) {
    let tail = bytes.iter().rev().take(4).position(|&b| b & 0xc0 != 0x80);
    let Some(back) = tail else { return };
    let start = bytes.len() - 1 - back;
    let needed = match bytes[start] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if back + 1 < needed {
        bytes.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::cut_at_character;

    #[test]
    fn only_half_a_character_is_cut() {
        let text = "aé€😀";
        for end in 0..=text.len() {
            let mut cut = text.as_bytes()[..end].to_vec();
            cut_at_character(&mut cut);
            let whole = (0..=end).rev().find(|&i| text.is_char_boundary(i)).unwrap();
            assert_eq!(cut, &text.as_bytes()[..whole], "cut at {end}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_left_alone() {
        let mut bytes = vec![0x80; 9];
        cut_at_character(&mut bytes);
        assert_eq!(bytes, vec![0x80; 9]);
    }
}
