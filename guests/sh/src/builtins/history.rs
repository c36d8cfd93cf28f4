//! `history` and `fc`.

use super::{Options, fail, invalid_option, number, output};
use crate::shell::{Exec, Shell};
use wardian_abi as abi;

const HISTORY: &str = "history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]";
const FC: &str = "fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]";

pub fn history(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut clear, mut delete, mut file, mut store, mut expand) = (false, None, None, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'c' => clear = true,
            b'd' => match options.argument() {
                Some(argument) => delete = Some(argument.to_vec()),
                None => {
                    fail(shell, b"history", &[b"-d: option requires an argument"], 2);
                    return Ok(usage(b"history", HISTORY));
                }
            },
            b'a' | b'n' | b'r' | b'w' => {
                if file.is_some_and(|other| other != letter) {
                    return Ok(fail(shell, b"history", &[b"cannot use more than one of -anrw"], 1));
                }
                file = Some(letter);
            }
            b's' => store = true,
            b'p' => expand = true,
            other => return Ok(invalid_option(shell, b"history", &[b'-', other], HISTORY)),
        }
    }
    let operands = options.rest();
    if clear {
        shell.history.clear();
        if operands.is_empty() && file.is_none() && delete.is_none() && !store && !expand {
            return Ok(0);
        }
    }
    if store {
        if !operands.is_empty() {
            // What was typed gives way to what it says.
            forget_this_command(shell);
            shell.history.push(operands.join(&b' '));
        }
        return Ok(0);
    }
    if expand {
        return print_expansions(shell, operands);
    }
    if let Some(range) = delete {
        return Ok(delete_range(shell, &range));
    }
    match file {
        Some(how) => Ok(use_file(shell, how, operands.first())),
        None => list(shell, operands),
    }
}

fn usage(name: &[u8], usage: &str) -> i32 {
    let _ = abi::write_all(2, &[name, b": usage: ", usage.as_bytes(), b"\n"].concat());
    2
}

/// The command that speaks of the history is itself the last in it.
fn forget_this_command(shell: &mut Shell) {
    if shell.options.history && shell.recorded && shell.history.len() > 0 {
        shell.history.remove(shell.history.len() - 1);
        shell.recorded = false;
    }
}

fn print_expansions(shell: &mut Shell, operands: &[Vec<u8>]) -> Exec {
    forget_this_command(shell);
    let (mut text, mut status) = (Vec::new(), 0);
    for operand in operands {
        match shell.expand_history(b"", operand) {
            Ok(expanded) => {
                text.extend(expanded.map_or_else(|| operand.clone(), |expanded| expanded.text));
                text.push(b'\n');
            }
            Err(_) => status = fail(shell, b"history", &[operand, b": history expansion failed"], 1),
        }
    }
    Ok(status.max(output(shell, b"history", &text)))
}

/// `-d offset`, `-d first-last`; negative ones count from the end.
fn delete_range(shell: &mut Shell, range: &[u8]) -> i32 {
    let dash = range.iter().skip(1).position(|&byte| byte == b'-').map(|at| at + 1);
    let (first, last) = match dash {
        Some(at) => (&range[..at], &range[at + 1..]),
        None => (range, range),
    };
    let index = |shell: &Shell, text: &[u8]| {
        let number = number(text)?;
        if number < 0 {
            return usize::try_from(shell.history.len() as i64 + number).ok();
        }
        shell.history.index(number)
    };
    let (from, to) = (index(shell, first), index(shell, last));
    match (from, to) {
        (Some(from), Some(to)) if from <= to => {
            (from..=to).for_each(|_| shell.history.remove(from));
            0
        }
        _ => fail(
            shell,
            b"history",
            &[if from.is_none() { first } else { last }, b": history position out of range"],
            1,
        ),
    }
}

fn use_file(shell: &mut Shell, how: u8, name: Option<&Vec<u8>>) -> i32 {
    let file = match name {
        Some(name) => name.clone(),
        None => match shell.text(b"HISTFILE").map(|file| file.to_vec()) {
            Some(file) if !file.is_empty() => file,
            _ => return 1,
        },
    };
    let stamps = shell.text(b"HISTTIMEFORMAT").is_some();
    let done = match how {
        b'a' => shell.history.write_file(&file, true, stamps),
        b'w' => shell.history.write_file(&file, false, stamps),
        how => shell.history.read_file(&file, how == b'n'),
    };
    match done {
        Ok(()) => 0,
        Err(errno) => fail(shell, b"history", &[&file, b": cannot open: ", errno.message().as_bytes()], 1),
    }
}

fn list(shell: &mut Shell, operands: &[Vec<u8>]) -> Exec {
    if operands.len() > 1 {
        fail(shell, b"history", &[b"too many arguments"], 1);
        return Err(crate::shell::Flow::Discard(1));
    }
    let count = match operands.first() {
        None => usize::MAX,
        Some(text) => match number(text) {
            Some(count) => count.unsigned_abs() as usize,
            None => return Ok(fail(shell, b"history", &[text, b": numeric argument required"], 1)),
        },
    };
    let format = shell.text(b"HISTTIMEFORMAT").map(|text| text.to_vec()).filter(|text| !text.is_empty());
    let mut text = Vec::new();
    let skip = shell.history.len().saturating_sub(count);
    for (at, event) in shell.history.events().iter().enumerate().skip(skip) {
        text.extend_from_slice(format!("{:5}  ", shell.history.number(at)).as_bytes());
        if let Some(format) = &format {
            text.extend(shell.local_time(format, event.time));
        }
        text.extend_from_slice(&event.text);
        text.push(b'\n');
    }
    Ok(output(shell, b"history", &text))
}

pub fn fc(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let (mut listing, mut bare, mut reverse, mut again, mut editor) = (false, false, false, false, None);
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let letters = match arg.as_slice() {
            b"--" => {
                at += 1;
                break;
            }
            [b'-', first, ..] if !first.is_ascii_digit() => &arg[1..],
            _ => break,
        };
        at += 1;
        for (place, &letter) in letters.iter().enumerate() {
            match letter {
                b'l' => listing = true,
                b'n' => bare = true,
                b'r' => reverse = true,
                b's' => again = true,
                b'e' => {
                    let rest = &letters[place + 1..];
                    editor = Some(if rest.is_empty() {
                        at += 1;
                        args.get(at - 1).cloned().unwrap_or_default()
                    } else {
                        rest.to_vec()
                    });
                    break;
                }
                other => return Ok(invalid_option(shell, b"fc", &[b'-', other], FC)),
            }
        }
    }
    let operands = &args[at.min(args.len())..];
    if again || editor.as_deref() == Some(b"-") {
        return run_again(shell, operands);
    }
    let Some((mut first, mut last)) = range(shell, operands, listing) else {
        return Ok(fail(shell, b"fc", &[b"history specification out of range"], 1));
    };
    if first > last {
        std::mem::swap(&mut first, &mut last);
        reverse = !reverse;
    }
    if shell.history.len() == 0 {
        return Ok(0);
    }
    let mut chosen: Vec<usize> = (first..=last).collect();
    if reverse {
        chosen.reverse();
    }
    if listing { show(shell, &chosen, bare) } else { edit(shell, &chosen, editor) }
}

/// How many events are before the command that is running `fc`.
fn before_this(shell: &Shell) -> usize {
    shell.history.len() - usize::from(shell.options.history && shell.recorded && shell.history.len() > 0)
}

/// The events two operands name, by index.
fn range(shell: &Shell, operands: &[Vec<u8>], listing: bool) -> Option<(usize, usize)> {
    let count = before_this(shell);
    let newest = count.saturating_sub(1);
    match operands {
        [] if listing => Some((count.saturating_sub(16), newest)),
        [] => Some((newest, newest)),
        [first] => {
            let first = if listing { first_listed(shell, first)? } else { event(shell, first)? };
            Some((first, if listing { newest } else { first }))
        }
        [first, last, ..] if listing => Some((first_listed(shell, first)?, event(shell, last)?)),
        [first, last, ..] => Some((event(shell, first)?, event(shell, last)?)),
    }
}

/// Where a list begins: as in bash, a number beyond the last event means the very first.
fn first_listed(shell: &Shell, operand: &[u8]) -> Option<usize> {
    let beyond = number(operand).is_some_and(|wanted| {
        wanted > 0 && wanted - shell.history.number(0) as i64 >= before_this(shell) as i64
    });
    if beyond { Some(0) } else { event(shell, operand) }
}

/// The event an operand names: by number, from the end, or by how it begins.
fn event(shell: &Shell, operand: &[u8]) -> Option<usize> {
    let count = before_this(shell);
    match number(operand) {
        Some(0) => Some(count.saturating_sub(1)),
        Some(number) if number < 0 => Some((count as i64 + number).max(0) as usize),
        Some(number) => {
            let first = shell.history.number(0) as i64;
            Some(((number - first).max(0) as usize).min(count.saturating_sub(1)))
        }
        None => shell.history.events()[..count].iter().rposition(|event| event.text.starts_with(operand)),
    }
}

fn show(shell: &mut Shell, chosen: &[usize], bare: bool) -> Exec {
    let mut text = Vec::new();
    for &index in chosen {
        if let Some(command) = shell.history.text(index) {
            if !bare {
                text.extend_from_slice(shell.history.number(index).to_string().as_bytes());
            }
            text.extend([b"\t ", command, b"\n"].concat());
        }
    }
    Ok(output(shell, b"fc", &text))
}

/// `fc -s [old=new]… [command]`
fn run_again(shell: &mut Shell, operands: &[Vec<u8>]) -> Exec {
    let replaces = |word: &&Vec<u8>| word.contains(&b'=');
    let changes: Vec<&Vec<u8>> = operands.iter().take_while(replaces).collect();
    let wanted = operands.get(changes.len()).map_or(&b"-1"[..], Vec::as_slice);
    let found = event(shell, wanted).and_then(|index| shell.history.text(index)).map(<[u8]>::to_vec);
    let Some(mut text) = found else {
        return Ok(fail(shell, b"fc", &[b"no command found"], 1));
    };
    for change in changes {
        let cut = change.iter().position(|&byte| byte == b'=').unwrap_or(change.len());
        let (old, new) = (&change[..cut], &change[cut + 1..]);
        text = replace_all(&text, old, new);
    }
    let _ = abi::write_all(2, &[text.as_slice(), b"\n"].concat());
    forget_this_command(shell);
    shell.remember(&text);
    shell.run_text(text, 1)
}

fn replace_all(text: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some(found) = crate::pattern::find(rest, old).filter(|_| !old.is_empty()) {
        out.extend_from_slice(&rest[..found]);
        out.extend_from_slice(new);
        rest = &rest[found + old.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// `fc`: hands commands to an editor, and runs what it leaves.
fn edit(shell: &mut Shell, chosen: &[usize], editor: Option<Vec<u8>>) -> Exec {
    let variable = |name: &[u8]| shell.text(name).map(|text| text.to_vec()).filter(|text| !text.is_empty());
    let editor = editor
        .or_else(|| variable(b"FCEDIT"))
        .or_else(|| variable(b"EDITOR"))
        .unwrap_or_else(|| b"editor".to_vec());
    let path = format!("/tmp/bash-fc.{}.{}", abi::getpid(), shell.history.len()).into_bytes();
    let text: Vec<u8> = chosen
        .iter()
        .filter_map(|&index| shell.history.text(index))
        .flat_map(|command| [command, b"\n"].concat())
        .collect();
    use abi::open_flags::{CLOEXEC, CREAT, EXCL, RDONLY, WRONLY};
    let written = abi::open(abi::Dir::CWD, &path, WRONLY | CREAT | EXCL | CLOEXEC, 0o600).and_then(|fd| {
        let written = abi::write_all(fd, &text);
        let _ = abi::close(fd);
        written
    });
    if let Err(errno) = written {
        return Ok(fail(shell, b"fc", &[&path, b": ", errno.message().as_bytes()], 1));
    }
    let status = shell.run_text([editor.as_slice(), b" ", &path].concat(), 1)?;
    let edited = abi::open(abi::Dir::CWD, &path, RDONLY | CLOEXEC, 0).map(crate::builtins::read_file);
    let name = String::from_utf8_lossy(&path).into_owned();
    let _ = std::fs::remove_file(name);
    let Ok(edited) = edited else { return Ok(1) };
    if status != 0 {
        return Ok(1);
    }
    let _ = abi::write_all(2, &edited);
    forget_this_command(shell);
    shell.remember(edited.strip_suffix(b"\n").unwrap_or(&edited));
    shell.run_text(edited, 1)
}
