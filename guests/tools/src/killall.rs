//! `killall`: a signal for all processes of a name.

use toolkit::args::{Tool, bytes_of};
use toolkit::names::Names;
use toolkit::processes::{self, Process};
use toolkit::program::signal_number;
use toolkit::{Arguments, complain};
use wardian_abi as abi;
use wardian_abi::Who;
use wardian_regex::{Options, Regex, Syntax};

const TOOL: Tool = Tool {
    name: "killall",
    short: "eIgils:qru:vwV",
    long: &[
        ("exact", 'e'),
        ("ignore-case", 'I'),
        ("process-group", 'g'),
        ("interactive", 'i'),
        ("list", 'l'),
        ("quiet", 'q'),
        ("regexp", 'r'),
        ("signal=", 's'),
        ("user=", 'u'),
        ("verbose", 'v'),
        ("wait", 'w'),
    ],
    help: "\
Usage: killall [OPTION]... [--] NAME...
       killall -l, --list

  -e,--exact          require exact match for very long names
  -I,--ignore-case    case insensitive process name match
  -g,--process-group  kill process group instead of process
  -l,--list           list all known signal names
  -q,--quiet          don't print complaints
  -r,--regexp         interpret NAME as an extended regular expression
  -s,--signal SIGNAL  send this signal instead of SIGTERM
  -u,--user USER      kill only process(es) running as USER
  -v,--verbose        report if the signal was successfully sent
  -w,--wait           wait for processes to die
     --help           display this help and exit
     --version        output version information and exit
",
    misuse: 1,
};

const TERM: i32 = 15;

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(mut words: Vec<Vec<u8>>) -> Result<i32, i32> {
    let mut signal = TERM;
    // `-9`, `-KILL` and `-SIGKILL` are not options.
    let is_signal = |word: &Vec<u8>| {
        let name = word.strip_prefix(b"-")?;
        let first = name.first()?;
        (first.is_ascii_digit() || first.is_ascii_uppercase() && name.len() > 2)
            .then(|| signal_number(name))
            .flatten()
    };
    if let Some(at) = words.iter().position(|word| is_signal(word).is_some()) {
        signal = is_signal(&words.remove(at)).unwrap_or(TERM);
    }
    let parsed = TOOL.parse(words)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let value = |letter: char| {
        let found = parsed.options.iter().rev().find(|(given, _)| *given == letter);
        found.and_then(|(_, text)| text.clone())
    };
    if has('l') {
        let names: Vec<&str> = abi::SIGNALS.iter().map(|(_, name)| *name).collect();
        toolkit::out::Out::new("killall").put(names.join(" ") + "\n");
        return Ok(0);
    }
    if has('i') {
        complain("killall", "--interactive is not supported");
        return Err(1);
    }
    if let Some(text) = value('s') {
        signal = signal_number(&text).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&text).into_owned();
            complain(&shown, "unknown signal; killall -l lists signals.");
            1
        })?;
    }
    let user = match value('u') {
        None => None,
        Some(name) => {
            let name = String::from_utf8_lossy(&name).into_owned();
            let found = Names::users().find(&name).ok_or_else(|| {
                complain("killall", format_args!("Cannot find user {name}"));
                1
            })?;
            Some(found)
        }
    };
    if parsed.operands.is_empty() && user.is_none() {
        let _ = abi::write_all(2, TOOL.help.as_bytes());
        return Err(1);
    }
    let own = abi::getpid();
    let all: Vec<Process> = processes::all()
        .into_iter()
        .filter(|process| process.pid != own && user.is_none_or(|user| process.uid == user))
        .collect();
    let (mut code, mut sent) = (0, Vec::new());
    let every = [b".*".to_vec()];
    let (names, by_pattern) = match parsed.operands.is_empty() {
        true => (&every[..], true),
        false => (&parsed.operands[..], has('r')),
    };
    for name in names {
        let fits = matcher(name, by_pattern, has('I'))?;
        let mut found = false;
        for process in all.iter().filter(|process| fits(process)) {
            let who = if has('g') { Who::Group(process.group) } else { Who::Child(process.pid) };
            match abi::kill(who, signal) {
                Ok(()) => {
                    found = true;
                    sent.push(process.pid);
                    if has('v') {
                        complain(
                            "Killed",
                            format_args!("{}({}) with signal {signal}", process.name, process.pid),
                        );
                    }
                }
                Err(error) => {
                    complain(&format!("{}({})", process.name, process.pid), error);
                    code = 1;
                }
            }
        }
        if !found {
            if !has('q') {
                complain(&String::from_utf8_lossy(name), "no process found");
            }
            code = 1;
        }
    }
    if has('w') {
        while sent.iter().any(|pid| processes::read(*pid).is_some_and(|process| process.state != 'Z')) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    Ok(code)
}

type Fits = Box<dyn Fn(&Process) -> bool>;

/// Whether a process has a name. A name with a slash is the program's own path.
fn matcher(name: &[u8], by_pattern: bool, ignore_case: bool) -> Result<Fits, i32> {
    if by_pattern {
        let options = Options { ignore_case, ..Options::new(Syntax::Extended) };
        let regex = Regex::new(name, &options).map_err(|error| {
            complain(
                "killall",
                format_args!("Bad regular expression: {}: {error}", String::from_utf8_lossy(name)),
            );
            1
        })?;
        return Ok(Box::new(move |process| regex.is_match(process.name.as_bytes())));
    }
    let name = String::from_utf8_lossy(name).into_owned();
    // A process knows 15 bytes of its name; of a longer one its first argument knows the rest.
    Ok(Box::new(move |process| {
        let first = process.arguments.first().map_or("", String::as_str);
        let whole = first.rsplit('/').next().unwrap_or(first);
        let known = if name.contains('/') {
            first
        } else if process.name.len() >= 15 && whole.starts_with(&process.name) {
            whole
        } else {
            &process.name
        };
        if ignore_case { known.eq_ignore_ascii_case(&name) } else { known == name }
    }))
}
