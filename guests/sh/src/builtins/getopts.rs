//! `getopts`

use super::fail;
use crate::shell::{Exec, Shell};

pub fn getopts(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let usage = "getopts optstring name [arg ...]";
    if let Some(option) = args.get(1).filter(|arg| arg.len() > 1 && arg.starts_with(b"-") && *arg != b"--") {
        return Ok(super::invalid_option(shell, b"getopts", &option[..2], usage));
    }
    let args = if args.get(1).is_some_and(|arg| arg == b"--") { &args[1..] } else { args };
    let (Some(spec), Some(name)) = (args.get(1), args.get(2)) else {
        let _ = wardian_abi::write_all(2, b"getopts: usage: getopts optstring name [arg ...]\n");
        return Ok(2);
    };
    let words: Vec<Vec<u8>> = if args.len() > 3 { args[3..].to_vec() } else { shell.params.clone() };
    let optind = shell.text(b"OPTIND").and_then(|text| super::number(&text)).unwrap_or(1).max(1);
    if optind != shell.getopts_index {
        shell.getopts_at = 0;
    }
    let mut index = (optind - 1) as usize;
    let quiet = spec.starts_with(b":");
    let silent = quiet || shell.text(b"OPTERR").is_some_and(|text| text.as_ref() == b"0");
    let word = words.get(index).map(Vec::as_slice).unwrap_or_default();
    if shell.getopts_at > 0 && shell.getopts_at >= word.len() {
        // The words have changed, and there is nothing left where it was.
        shell.getopts_at = 0;
        return finish(shell, name, index, b"?", None, 1);
    }
    if shell.getopts_at == 0 {
        let is_option = word.len() > 1 && word[0] == b'-';
        if !is_option || word == b"--" {
            if word == b"--" {
                index += 1;
            }
            return finish(shell, name, index, b"?", None, 1);
        }
        shell.getopts_at = 1;
    }
    let letter = word.get(shell.getopts_at).copied().unwrap_or(b'?');
    shell.getopts_at += 1;
    let mut ended = shell.getopts_at >= word.len();
    let place = spec.iter().position(|&known| known == letter).filter(|_| letter != b':');
    let Some(place) = place else {
        if ended {
            index += 1;
            shell.getopts_at = 0;
        }
        if !silent {
            let text = [shell.name.as_slice(), b": illegal option -- ", &[letter], b"\n"].concat();
            let _ = wardian_abi::write_all(2, &text);
        }
        let found = quiet.then(|| vec![letter]);
        return finish(shell, name, index, b"?", found, 0);
    };
    let mut value = None;
    if spec.get(place + 1) == Some(&b':') {
        if !ended {
            value = Some(word[shell.getopts_at..].to_vec());
        } else {
            index += 1;
            match words.get(index) {
                Some(next) => value = Some(next.clone()),
                None => return missing_argument(shell, name, index, letter, quiet, silent),
            }
        }
        ended = true;
    }
    if ended {
        index += 1;
        shell.getopts_at = 0;
    }
    finish(shell, name, index, &[letter], value, 0)
}

fn missing_argument(
    shell: &mut Shell,
    name: &[u8],
    index: usize,
    letter: u8,
    quiet: bool,
    silent: bool,
) -> Exec {
    shell.getopts_at = 0;
    if !silent {
        let text = [shell.name.as_slice(), b": option requires an argument -- ", &[letter], b"\n"].concat();
        let _ = wardian_abi::write_all(2, &text);
    }
    let result: &[u8] = if quiet { b":" } else { b"?" };
    finish(shell, name, index, result, quiet.then(|| vec![letter]), 0)
}

fn finish(
    shell: &mut Shell,
    name: &[u8],
    index: usize,
    found: &[u8],
    value: Option<Vec<u8>>,
    status: i32,
) -> Exec {
    shell.getopts_index = index as i64 + 1;
    let at = shell.getopts_at;
    shell.assign(b"OPTIND", (index + 1).to_string().as_bytes())?;
    // That was no assignment of the script's, which would begin the word anew.
    shell.getopts_at = at;
    match value {
        // One that cannot be assigned does not keep the option from being found.
        Some(value) => drop(shell.assign(b"OPTARG", &value)),
        None => drop(shell.vars.remove(b"OPTARG")),
    }
    if !crate::parser::is_assignment_name(name) {
        return Ok(fail(shell, b"getopts", &[b"`", name, b"': not a valid identifier"], 1));
    }
    shell.assign(name, found)?;
    Ok(status)
}
