//! `watch`: runs a command again and again.

use std::time::Duration;
use toolkit::args::{Tool, bytes_of};
use toolkit::clock::{self, Clock};
use toolkit::{Arguments, complain, files, input, program};
use wardian_abi as abi;
use wardian_abi::{FdMap, Spawn};

const TOOL: Tool = Tool {
    name: "watch",
    short: "+bcden:gptxh",
    long: &[
        ("beep", 'b'),
        ("color", 'c'),
        ("differences", 'd'),
        ("errexit", 'e'),
        ("chgexit", 'g'),
        ("interval=", 'n'),
        ("precise", 'p'),
        ("no-title", 't'),
        ("exec", 'x'),
    ],
    help: "
Usage:
 watch [options] command

Options:
  -e, --errexit          exit if command has a non-zero exit
  -g, --chgexit          exit when output from command changes
  -n, --interval <secs>  seconds to wait between updates
  -t, --no-title         turn off header
  -x, --exec             pass command to exec instead of \"sh -c\"
      --help     display this help and exit
      --version  output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let mut interval = 2.0_f64;
    for (_, text) in parsed.options.iter().filter(|(letter, _)| *letter == 'n') {
        let text = text.as_deref().unwrap_or_default();
        interval = input::number::<f64>(text).filter(|seconds| seconds.is_finite()).ok_or_else(|| {
            complain("watch", format_args!("failed to parse argument: '{}'", String::from_utf8_lossy(text)));
            1
        })?;
    }
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("no command given"));
    }
    let line = parsed.operands.join(&b' ');
    let command = match has('x') {
        true => parsed.operands.clone(),
        false => vec![b"sh".to_vec(), b"-c".to_vec(), line.clone()],
    };
    let mut before: Option<Vec<u8>> = None;
    loop {
        let (output, code) = output_of(&command)?;
        let mut screen = b"\x1b[H\x1b[2J\x1b[3J".to_vec();
        if !has('t') {
            let time = Clock::new().format(clock::now(), "%a %b %e %H:%M:%S %Y");
            let shown = String::from_utf8_lossy(&line);
            screen.extend(format!("Every {interval:.1}s: {shown}  {time}\n\n").into_bytes());
        }
        screen.extend_from_slice(&output);
        abi::write_all(1, &screen).map_err(|_| 1)?;
        if has('e') && code != 0 {
            return Ok(8);
        }
        if has('g') && before.as_ref().is_some_and(|before| *before != output) {
            return Ok(0);
        }
        before = Some(output);
        std::thread::sleep(Duration::from_secs_f64(interval.clamp(0.1, 1e9)));
    }
}

/// Runs a command to its end; what it wrote, and its exit code.
fn output_of(command: &[Vec<u8>]) -> Result<(Vec<u8>, i32), i32> {
    let failed = |error: abi::Errno| {
        complain("watch", format_args!("unable to run the command: {error}"));
        1
    };
    let pipe = abi::pipe(true).map_err(failed)?;
    let fds = [FdMap { to: 1, from: pipe.write }, FdMap { to: 2, from: pipe.write }];
    let child = program::spawn(command, &abi::environ(), Spawn { fds: &fds, ..Spawn::default() });
    let _ = abi::close(pipe.write);
    let child = child.map_err(failed)?;
    let output = files::read_fd(pipe.read).map_err(failed)?;
    let _ = abi::close(pipe.read);
    Ok((output, program::wait_for(child).shell_code()))
}
