//! `time`: runs a command and says how long it took.

use std::time::{Duration, Instant};
use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files, program};
use wardian_abi as abi;
use wardian_abi::{Spawn, Status};

const TOOL: Tool = Tool {
    name: "time",
    short: "+apqvf:o:V",
    long: &[
        ("append", 'a'),
        ("portability", 'p'),
        ("quiet", 'q'),
        ("verbose", 'v'),
        ("format=", 'f'),
        ("output=", 'o'),
    ],
    help: "\
Usage: time [OPTIONS] COMMAND [ARG]...
Run COMMAND, then print system resource usage.

  -a, --append             with -o FILE, append instead of overwriting
  -f, --format=FORMAT      use the specified FORMAT instead of the default
  -o, --output=FILE        write to FILE instead of STDERR
  -p, --portability        print POSIX standard 1003.2 conformant string:
                             real %e
                             user %U
                             sys %S
  -q, --quiet              do not print information about abnormal program
                           termination (non-zero exit codes or signals)
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 125,
};

const DEFAULT: &str = "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps";
const VERBOSE: &str = "\tCommand being timed: \"%C\"\n\tUser time (seconds): %U\n\tSystem time (seconds): %S\n\tPercent of CPU this job got: %P\n\tElapsed (wall clock) time (h:mm:ss or m:ss): %E\n\tMaximum resident set size (kbytes): %M\n\tExit status: %x";

/// What was measured.
struct Report<'a> {
    command: &'a [Vec<u8>],
    status: Status,
    real: Duration,
    user: f64,
    system: f64,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut format = std::env::var("TIME").unwrap_or_else(|_| DEFAULT.to_owned());
    let (mut quiet, mut append, mut output) = (false, false, None);
    for (letter, text) in parsed.options {
        match (letter, text) {
            ('p', _) => {
                format = "real %e\nuser %U\nsys %S".to_owned();
                quiet = true;
            }
            ('v', _) => format = VERBOSE.to_owned(),
            ('f', Some(text)) => format = String::from_utf8_lossy(&text).into_owned(),
            ('o', text) => output = text,
            ('a', _) => append = true,
            ('q', _) => quiet = true,
            _ => {}
        }
    }
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing program to run"));
    }
    let (code, report) = measure(&parsed.operands);
    let mut text = if quiet { String::new() } else { abnormal_end(report.status) };
    text += &report.format(&format);
    write(&text, output.as_deref(), append)?;
    Ok(code)
}

fn measure(command: &[Vec<u8>]) -> (i32, Report<'_>) {
    let start = Instant::now();
    let (code, status) = match program::spawn(command, &abi::environ(), Spawn::default()) {
        Ok(child) => {
            let status = program::wait_for(child);
            (status.shell_code(), status)
        }
        Err(error) => {
            complain("time", format_args!("cannot run {}: {error}", String::from_utf8_lossy(&command[0])));
            let code = program::code_for(error);
            (code, Status(code << 8))
        }
    };
    let times = abi::times();
    let seconds = |nanos: i64| nanos as f64 / 1e9;
    let (user, system) = (seconds(times.child_user), seconds(times.child_system));
    (code, Report { command, status, real: start.elapsed(), user, system })
}

fn abnormal_end(status: Status) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => String::new(),
        (Some(code), _) => format!("Command exited with non-zero status {code}\n"),
        (_, Some(signal)) => format!("Command terminated by signal {signal}\n"),
        _ => String::new(),
    }
}

impl Report<'_> {
    fn format(&self, format: &str) -> String {
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(char) = rest.next() {
            match (char, char == '%' || char == '\\') {
                ('%', _) => text += &self.field(rest.next()),
                ('\\', _) => match rest.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('\\') => text.push('\\'),
                    other => text.extend(['?', '\\'].into_iter().chain(other)),
                },
                (char, _) => text.push(char),
            }
        }
        text + "\n"
    }

    fn field(&self, letter: Option<char>) -> String {
        let real = self.real.as_secs_f64();
        match letter {
            Some('%') => "%".to_owned(),
            Some('C') => String::from_utf8_lossy(&self.command.join(&b' ')).into_owned(),
            Some('e') => format!("{real:.2}"),
            Some('E') => elapsed(self.real),
            Some('U') => format!("{:.2}", self.user),
            Some('S') => format!("{:.2}", self.system),
            Some('P') if real > 0.0 => format!("{}%", ((self.user + self.system) * 100.0 / real) as u64),
            Some('P') => "?%".to_owned(),
            Some('x') => self.status.code().unwrap_or(0).to_string(),
            // What the kernel does not count.
            Some(
                'X' | 'D' | 'M' | 'I' | 'O' | 'F' | 'R' | 'W' | 'K' | 'c' | 'w' | 'k' | 'r' | 's' | 't' | 'p',
            ) => "0".to_owned(),
            Some('Z') => "4096".to_owned(),
            other => ['?'].into_iter().chain(other).collect(),
        }
    }
}

/// `0:01.50`, or with hours `1:00:05`.
fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}.{:02}", seconds / 60, seconds % 60, time.subsec_millis() / 10),
        hours => format!("{hours}:{:02}:{:02}", seconds % 3600 / 60, seconds % 60),
    }
}

fn write(text: &str, output: Option<&[u8]>, append: bool) -> Result<(), i32> {
    use std::io::Write;
    let Some(output) = output else {
        let _ = abi::write_all(2, text.as_bytes());
        return Ok(());
    };
    let mut options = std::fs::OpenOptions::new();
    let options = options.create(true).write(true).append(append).truncate(!append);
    options.open(files::path(output)).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        complain("time", format_args!("{}: {}", String::from_utf8_lossy(output), abi::Errno::from(error)));
        125
    })
}
