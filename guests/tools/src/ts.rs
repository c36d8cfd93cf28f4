//! `ts`: the time before each line.

use toolkit::args::{Tool, bytes_of};
use toolkit::clock::{self, Clock};
use toolkit::records::Records;
use toolkit::{Arguments, complain};
use wardian_abi as abi;

const TOOL: Tool =
    Tool { name: "ts", short: "rism", long: &[], help: "usage: ts [-i | -s] [-m] [format]\n", misuse: 255 };

const SECOND: i64 = 1_000_000_000;

/// Since when time is told.
#[derive(Clone, Copy, PartialEq)]
enum Since {
    /// The time of day.
    Always,
    Start,
    LastLine,
}

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut since = Since::Always;
    for (letter, _) in &parsed.options {
        match letter {
            'i' => since = Since::LastLine,
            's' => since = Since::Start,
            'r' => {
                complain("ts", "-r is not supported: times in the input are left as they are");
                return 1;
            }
            // The clock never goes back here.
            _ => {}
        }
    }
    let default = if since == Since::Always { "%b %d %H:%M:%S" } else { "%H:%M:%S" };
    let format = parsed.operands.first().map(|text| String::from_utf8_lossy(text).into_owned());
    run(since, &format.unwrap_or_else(|| default.to_owned()))
}

fn run(since: Since, format: &str) -> i32 {
    let clock = if since == Since::Always { Clock::new() } else { Clock::utc() };
    let mut last = clock::now();
    let mut lines = Records::new(0, b'\n');
    loop {
        let mut line = Vec::new();
        match lines.next_into(&mut line) {
            Ok(true) => {}
            Ok(false) => return 0,
            Err(error) => {
                complain("ts", error);
                return 1;
            }
        }
        let now = clock::now();
        let told = if since == Since::Always { now } else { now - last };
        if since == Since::LastLine {
            last = now;
        }
        let stamp = clock.format(told, &with_fractions(format, told));
        if abi::write_all(1, &[stamp.as_bytes(), b" ", &line].concat()).is_err() {
            return 1;
        }
    }
}

/// `%.S`, `%.s` and `%.T` have microseconds.
fn with_fractions(format: &str, nanos: i64) -> String {
    let micros = nanos.rem_euclid(SECOND) / 1000;
    ["S", "s", "T"].iter().fold(format.to_owned(), |text, letter| {
        text.replace(&format!("%.{letter}"), &format!("%{letter}.{micros:06}"))
    })
}
