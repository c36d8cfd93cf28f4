//! `pgrep` and `pkill`: processes by what they are called.

use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::processes::{self, Process};
use toolkit::program::signal_number;
use toolkit::{Arguments, complain, input, quote};
use wardian_abi as abi;
use wardian_abi::Who;
use wardian_regex::{Fit, Options, Regex, Syntax};

const HELP: &str = "
Usage:
 pgrep [options] <pattern>
 pkill [options] <pattern>

Options:
 -<sig>, --signal <sig>    signal to send (either number or name)
 -d, --delimiter <string>  specify output delimiter
 -l, --list-name           list PID and process name
 -a, --list-full           list PID and full command line
 -v, --inverse             negates the matching
 -c, --count               count of matching processes
 -e, --echo                display what is killed
 -f, --full                use full process name to match
 -g, --pgroup <PGID,...>   match listed process group IDs
 -i, --ignore-case         match case insensitively
 -n, --newest              select most recently started
 -o, --oldest              select least recently started
 -P, --parent <PPID,...>   match only child processes of the given parent
 -s, --session <SID,...>   match session IDs
 -u, --euid <ID,...>       match by effective IDs
 -U, --uid <ID,...>        match by real IDs
 -x, --exact               match exactly with the command name
     --help     display this help and exit
     --version  output version information and exit
";

const LONG: &[(&str, char)] = &[
    ("signal=", 'S'),
    ("delimiter=", 'd'),
    ("list-name", 'l'),
    ("list-full", 'a'),
    ("inverse", 'v'),
    ("count", 'c'),
    ("echo", 'e'),
    ("full", 'f'),
    ("pgroup=", 'g'),
    ("ignore-case", 'i'),
    ("newest", 'n'),
    ("oldest", 'o'),
    ("parent=", 'P'),
    ("session=", 's'),
    ("euid=", 'u'),
    ("uid=", 'U'),
    ("exact", 'x'),
];

const SHORT: &str = "d:lavcefg:inoP:s:u:U:xF:t:wqHh";

const PGREP: Tool = Tool { name: "pgrep", short: SHORT, long: LONG, help: HELP, misuse: 2 };
const PKILL: Tool = Tool { name: "pkill", short: SHORT, long: LONG, help: HELP, misuse: 2 };

pub fn main(arguments: Arguments) -> i32 {
    run(&PGREP, bytes_of(arguments)).unwrap_or_else(|code| code)
}

pub fn pkill(arguments: Arguments) -> i32 {
    run(&PKILL, bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(tool: &Tool, mut words: Vec<Vec<u8>>) -> Result<i32, i32> {
    let kills = tool.name == "pkill";
    let mut signal = if kills { take_signal(&mut words).unwrap_or(15) } else { 15 };
    let parsed = tool.parse(words)?;
    if let Some((_, Some(text))) = parsed.options.iter().find(|(letter, _)| *letter == 'S') {
        signal = signal_number(text).ok_or_else(|| {
            complain(tool.name, format_args!("unknown signal {}", quote::word(text)));
            2
        })?;
    }
    let filter = Filter::from(tool, &parsed)?;
    let found = filter.select();
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let mut out = Out::new(tool.name);
    if kills {
        let mut code = i32::from(found.is_empty());
        for process in &found {
            match abi::kill(Who::Child(process.pid), signal) {
                Ok(()) if has('e') => out.put(format!("{} killed (pid {})\n", process.name, process.pid)),
                Ok(()) => {}
                Err(error) => {
                    complain(tool.name, format_args!("killing pid {} failed: {error}", process.pid));
                    code = 1;
                }
            }
        }
        if has('c') {
            out.put(format!("{}\n", found.len()));
        }
        return Ok(code);
    }
    if has('c') {
        out.put(format!("{}\n", found.len()));
        return Ok(i32::from(found.is_empty()));
    }
    let delimiter = parsed.options.iter().rev().find(|(letter, _)| *letter == 'd');
    let delimiter = delimiter.and_then(|(_, text)| text.clone()).unwrap_or_else(|| b"\n".to_vec());
    let shown: Vec<Vec<u8>> = found
        .iter()
        .map(|process| match (has('a'), has('l')) {
            (true, _) => format!("{} {}", process.pid, process.command_line()).into_bytes(),
            (_, true) => format!("{} {}", process.pid, process.name).into_bytes(),
            _ => process.pid.to_string().into_bytes(),
        })
        .collect();
    if !shown.is_empty() {
        out.put(shown.join(&delimiter[..]));
        out.put("\n");
    }
    Ok(i32::from(found.is_empty()))
}

/// Takes `-9`, `-KILL` or `-SIGKILL` off the arguments.
fn take_signal(words: &mut Vec<Vec<u8>>) -> Option<i32> {
    let is_signal = |word: &Vec<u8>| {
        let name = word.strip_prefix(b"-")?;
        let first = name.first()?;
        (first.is_ascii_digit() || first.is_ascii_uppercase() && name.len() > 2)
            .then(|| signal_number(name))
            .flatten()
    };
    let at = words.iter().position(|word| is_signal(word).is_some())?;
    is_signal(&words.remove(at))
}

struct Filter {
    pattern: Option<Regex>,
    full: bool,
    inverse: bool,
    newest: bool,
    oldest: bool,
    parents: Option<Vec<i32>>,
    groups: Option<Vec<i32>>,
    sessions: Option<Vec<i32>>,
    users: Option<Vec<u32>>,
}

impl Filter {
    fn from(tool: &Tool, parsed: &Parsed) -> Result<Filter, i32> {
        let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
        let value = |letters: &[char]| {
            let found = parsed.options.iter().rev().find(|(given, _)| letters.contains(given));
            found.and_then(|(_, text)| text.clone())
        };
        let numbers = |list: Vec<u8>| -> Vec<i32> {
            list.split(|&byte| byte == b',').filter_map(input::number).collect()
        };
        let users = value(&['u', 'U']).map(|list| {
            let names = Names::users();
            let id = |word: &[u8]| input::number(word).or_else(|| names.find(&String::from_utf8_lossy(word)));
            list.split(|&byte| byte == b',').filter_map(id).collect()
        });
        let filter = Filter {
            pattern: match parsed.operands.first() {
                Some(text) => Some(pattern(tool, text, has('i'), has('x'))?),
                None => None,
            },
            full: has('f'),
            inverse: has('v'),
            newest: has('n'),
            oldest: has('o'),
            parents: value(&['P']).map(numbers),
            groups: value(&['g']).map(numbers),
            sessions: value(&['s']).map(numbers),
            users,
        };
        if parsed.operands.len() > 1 {
            return Err(tool.wrong("only one pattern can be provided"));
        }
        let narrows = filter.parents.is_some()
            || filter.groups.is_some()
            || filter.sessions.is_some()
            || filter.users.is_some();
        if filter.pattern.is_none() && !narrows && !has('n') && !has('o') {
            return Err(tool.wrong("no matching criteria specified"));
        }
        Ok(filter)
    }

    fn select(&self) -> Vec<Process> {
        let own = abi::getpid();
        let mut found: Vec<Process> = processes::all()
            .into_iter()
            .filter(|process| process.pid != own && self.matches(process) != self.inverse)
            .collect();
        if self.newest || self.oldest {
            let key = |process: &Process| (process.started, process.pid);
            found.sort_by_key(key);
            if self.newest {
                found.reverse();
            }
            found.truncate(1);
        }
        found
    }

    fn matches(&self, process: &Process) -> bool {
        let is_among =
            |list: &Option<Vec<i32>>, number: i32| list.as_ref().is_none_or(|list| list.contains(&number));
        let text = if self.full && !process.arguments.is_empty() {
            process.arguments.join(" ")
        } else {
            process.name.clone()
        };
        self.pattern.as_ref().is_none_or(|regex| regex.is_match(text.as_bytes()))
            && is_among(&self.parents, process.parent)
            && is_among(&self.groups, process.group)
            && is_among(&self.sessions, process.session)
            && self.users.as_ref().is_none_or(|users| users.contains(&process.uid))
    }
}

fn pattern(tool: &Tool, text: &[u8], fold: bool, exact: bool) -> Result<Regex, i32> {
    let fit = if exact { Fit::Line } else { Fit::Anywhere };
    let options = Options { ignore_case: fold, fit, ..Options::new(Syntax::Extended) };
    Regex::new(text, &options).map_err(|error| {
        complain(tool.name, error);
        2
    })
}
