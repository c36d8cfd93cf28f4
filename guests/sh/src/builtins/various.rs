//! `let`, `umask`, `ulimit`, `times`, `help`.

use super::{Options, fail, invalid_option, number, output};
use crate::arith::ArithError;
use crate::shell::{Exec, Shell};
use wardian_abi as abi;

pub fn let_(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut words = &args[1..];
    if words.first().is_some_and(|word| word == b"--") {
        words = &words[1..];
    }
    if words.is_empty() {
        return Ok(fail(shell, b"let", &[b"expression expected"], 1));
    }
    let mut value = 0;
    for word in words {
        match shell.arith_text(word) {
            Ok(result) => value = result,
            Err(ArithError::Flow(flow)) => return Err(flow),
            Err(error) => {
                shell.complain_arith(b"let: ", &error);
                return Ok(1);
            }
        }
    }
    Ok(i32::from(value == 0))
}

pub fn umask(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut symbolic, mut reusable) = (false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'S' => symbolic = true,
            b'p' => reusable = true,
            other => return Ok(invalid_option(shell, b"umask", &[b'-', other], "umask [-p] [-S] [mode]")),
        }
    }
    let current = abi::umask(0);
    abi::umask(current);
    let Some(text) = options.rest().first() else {
        let shown = if symbolic { symbolic_mask(current) } else { format!("{current:04o}") };
        let prefix = match (reusable, symbolic) {
            (true, true) => "umask -S ",
            (true, false) => "umask ",
            _ => "",
        };
        return Ok(output(shell, b"umask", format!("{prefix}{shown}\n").as_bytes()));
    };
    if text.first().is_some_and(u8::is_ascii_digit) {
        let parsed = std::str::from_utf8(text).ok().and_then(|text| u32::from_str_radix(text, 8).ok());
        return match parsed.filter(|mask| *mask <= 0o777) {
            Some(mask) => {
                abi::umask(mask);
                Ok(0)
            }
            None => Ok(fail(shell, b"umask", &[text, b": octal number out of range"], 1)),
        };
    }
    match parse_symbolic(text, current) {
        Ok(mask) => {
            abi::umask(mask);
            let shown = format!("{}\n", symbolic_mask(mask));
            Ok(if symbolic { output(shell, b"umask", shown.as_bytes()) } else { 0 })
        }
        Err((wrong, what)) => {
            let text = format!("`{}': invalid symbolic mode {what}", wrong as char);
            Ok(fail(shell, b"umask", &[text.as_bytes()], 1))
        }
    }
}

fn symbolic_mask(mask: u32) -> String {
    let part = |who: char, shift: u32| {
        let allowed = !mask >> shift & 7;
        let letters: String = [(4, 'r'), (2, 'w'), (1, 'x')]
            .iter()
            .filter(|(bit, _)| allowed & bit != 0)
            .map(|(_, c)| *c)
            .collect();
        format!("{who}={letters}")
    };
    format!("{},{},{}", part('u', 6), part('g', 3), part('o', 0))
}

/// The mask that `u=rwx,g+w` and the like make of another, or the character that is wrong and what it was taken for.
fn parse_symbolic(text: &[u8], mask: u32) -> Result<u32, (u8, &'static str)> {
    let mut allowed = !mask & 0o777;
    for clause in text.split(|&byte| byte == b',') {
        let at = clause.iter().take_while(|byte| b"ugoa".contains(byte)).count();
        match clause.get(at) {
            Some(b'+' | b'-' | b'=') => {}
            wrong => return Err((wrong.copied().unwrap_or(b' '), "operator")),
        }
        let mut who = 0;
        for letter in &clause[..at] {
            who |= match letter {
                b'u' => 0o700,
                b'g' => 0o070,
                b'o' => 0o007,
                _ => 0o777,
            };
        }
        if who == 0 {
            who = 0o777;
        }
        let mut bits = 0;
        for letter in &clause[at + 1..] {
            bits |= match letter {
                b'r' => 0o444,
                b'w' => 0o222,
                b'x' => 0o111,
                wrong => return Err((*wrong, "character")),
            };
        }
        match clause[at] {
            b'+' => allowed |= bits & who,
            b'-' => allowed &= !(bits & who),
            _ => allowed = allowed & !who | bits & who,
        }
    }
    Ok(!allowed & 0o777)
}

/// What `ulimit` knows: its letter, what it is, the unit it counts in, and the limit behind it if there is one.
const LIMITS: &[(u8, &str, &str, i64, Option<abi::Resource>)] = &[
    (b'R', "real-time non-blocking time", "(microseconds, -R)", 1, None),
    (b'c', "core file size", "(blocks, -c)", 1024, None),
    (b'd', "data seg size", "(kbytes, -d)", 1024, None),
    (b'e', "scheduling priority", "(-e)", 1, None),
    (b'f', "file size", "(blocks, -f)", 1024, Some(abi::Resource::FileSize)),
    (b'i', "pending signals", "(-i)", 1, None),
    (b'l', "max locked memory", "(kbytes, -l)", 1024, None),
    (b'm', "max memory size", "(kbytes, -m)", 1024, None),
    (b'n', "open files", "(-n)", 1, Some(abi::Resource::Descriptors)),
    (b'p', "pipe size", "(512 bytes, -p)", 512, None),
    (b'q', "POSIX message queues", "(bytes, -q)", 1, None),
    (b'r', "real-time priority", "(-r)", 1, None),
    (b's', "stack size", "(kbytes, -s)", 1024, None),
    (b't', "cpu time", "(seconds, -t)", 1, None),
    (b'u', "max user processes", "(-u)", 1, Some(abi::Resource::Processes)),
    (b'v', "virtual memory", "(kbytes, -v)", 1024, Some(abi::Resource::Memory)),
    (b'x', "file locks", "(-x)", 1, None),
];

pub fn ulimit(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut hard, mut soft, mut all, mut which) = (false, false, false, b'f');
    while let Some(letter) = options.next() {
        match letter {
            b'H' => hard = true,
            b'S' => soft = true,
            b'a' => all = true,
            letter if LIMITS.iter().any(|(known, ..)| *known == letter) => which = letter,
            other => {
                return Ok(invalid_option(
                    shell,
                    b"ulimit",
                    &[b'-', other],
                    "ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]",
                ));
            }
        }
    }
    let core = shell.core_limit;
    let show = |letter: u8, unit: i64, resource: Option<abi::Resource>| {
        let limit = match resource {
            Some(resource) => abi::getrlimit(resource).ok().map(|limit| (limit.soft, limit.hard)),
            None => (letter == b'c').then_some(core),
        };
        match limit.map(|(soft, most)| if hard { most } else { soft }) {
            Some(value) if value >= 0 => (value / unit).to_string(),
            _ => "unlimited".to_string(),
        }
    };
    if all {
        let mut text = String::new();
        for (letter, name, unit_text, unit, resource) in LIMITS {
            text += &format!("{name:<20} {unit_text:>20} {}\n", show(*letter, *unit, *resource));
        }
        return Ok(output(shell, b"ulimit", text.as_bytes()));
    }
    let Some((_, _, _, unit, resource)) = LIMITS.iter().find(|(letter, ..)| *letter == which) else {
        return Ok(1);
    };
    let Some(text) = options.rest().first() else {
        let line = format!("{}\n", show(which, *unit, *resource));
        return Ok(output(shell, b"ulimit", line.as_bytes()));
    };
    if which == b'c' {
        return Ok(limit_core(shell, text, *unit, hard, soft));
    }
    let Some(resource) = *resource else {
        return Ok(if text == b"unlimited" {
            0
        } else {
            fail(shell, b"ulimit", &[b"cannot modify limit: Operation not permitted"], 1)
        });
    };
    let value = match text.as_slice() {
        b"unlimited" => -1,
        b"hard" => abi::getrlimit(resource).map_or(-1, |limit| limit.hard),
        b"soft" => abi::getrlimit(resource).map_or(-1, |limit| limit.soft),
        _ => match number(text) {
            Some(value) if value >= 0 => value.saturating_mul(*unit),
            _ => return Ok(fail(shell, b"ulimit", &[text, b": invalid number"], 1)),
        },
    };
    let Ok(mut limit) = abi::getrlimit(resource) else { return Ok(1) };
    if !hard || soft {
        limit.soft = value;
    }
    if !soft || hard {
        limit.hard = value;
    }
    match abi::setrlimit(resource, limit) {
        Ok(()) => Ok(0),
        Err(errno) => Ok(fail(shell, b"ulimit", &[b"cannot modify limit: ", errno.message().as_bytes()], 1)),
    }
}

/// `ulimit -c N`: the hard limit can only be lowered, and the soft one is below it.
fn limit_core(shell: &mut Shell, text: &[u8], unit: i64, hard: bool, soft: bool) -> i32 {
    let (mut now, mut most) = shell.core_limit;
    let value = match text {
        b"unlimited" => -1,
        b"hard" => most,
        b"soft" => now,
        _ => match number(text) {
            Some(value) if value >= 0 => value.saturating_mul(unit),
            _ => return fail(shell, b"ulimit", &[text, b": invalid number"], 1),
        },
    };
    if most >= 0 && (value < 0 || value > most) {
        let message = b"core file size: cannot modify limit: Operation not permitted";
        return fail(shell, b"ulimit", &[message], 1);
    }
    if !hard || soft {
        now = value;
    }
    if !soft || hard {
        most = value;
    }
    shell.core_limit = (now, most);
    0
}

pub fn times(shell: &mut Shell, _: &[Vec<u8>]) -> Exec {
    let times = abi::times();
    let show = |nanos: i64| {
        let millis = nanos / 1_000_000;
        format!("{}m{}.{:03}s", millis / 60_000, millis / 1000 % 60, millis % 1000)
    };
    let text = format!(
        "{} {}\n{} {}\n",
        show(times.user),
        show(times.system),
        show(times.child_user),
        show(times.child_system)
    );
    Ok(output(shell, b"times", text.as_bytes()))
}
