//! `sleep`: waits.

use std::time::Duration;
use toolkit::args::{Tool, bytes_of};
use toolkit::program::duration;
use toolkit::{Arguments, complain, quote};

const TOOL: Tool = Tool {
    name: "sleep",
    short: "",
    long: &[],
    help: "\
Usage: sleep NUMBER[SUFFIX]...
  or:  sleep OPTION
Pause for NUMBER seconds.  SUFFIX may be 's' for seconds (the default),
'm' for minutes, 'h' for hours or 'd' for days.  NUMBER need not be an
integer.  Given two or more arguments, pause for the amount of time
specified by the sum of their values.

      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let operands = TOOL.parse(arguments)?.operands;
    if operands.is_empty() {
        return Err(TOOL.wrong("missing operand"));
    }
    let mut total: Option<i64> = Some(0);
    for operand in &operands {
        let nanos = duration(operand);
        if nanos.is_none() {
            complain("sleep", format_args!("invalid time interval {}", quote::word(operand)));
        }
        total = total.zip(nanos).map(|(total, nanos)| total.saturating_add(nanos));
    }
    let Some(nanos) = total else {
        toolkit::hint_at_help("sleep");
        return Ok(1);
    };
    std::thread::sleep(Duration::from_nanos(nanos.unsigned_abs()));
    Ok(0)
}
