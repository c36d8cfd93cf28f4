//! Programmable completion: specifications are kept, words are generated on request.

use super::{Options, fail, output};
use crate::shell::{Exec, Shell};

pub fn complete(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let first_word = args.iter().skip(1).rposition(|arg| arg.starts_with(b"-")).map_or(1, |at| at + 2);
    if args.get(1).is_none_or(|arg| arg == b"-p") {
        let mut names: Vec<_> = shell.completions.iter().collect();
        names.sort_unstable();
        let text: Vec<u8> =
            names.into_iter().flat_map(|(_, spec)| [spec.as_slice(), b"\n"].concat()).collect();
        return Ok(output(shell, b"complete", &text));
    }
    if args[1] == b"-r" {
        for name in &args[2..] {
            shell.completions.remove(name);
        }
        if args.len() == 2 {
            shell.completions.clear();
        }
        return Ok(0);
    }
    let Some(name) = args.last().filter(|_| args.len() > first_word) else { return Ok(2) };
    shell.completions.insert(name.clone(), args.join(&b' '));
    Ok(0)
}

pub fn compopt(shell: &mut Shell, _: &[Vec<u8>]) -> Exec {
    Ok(fail(shell, b"compopt", &[b"not currently executing completion function"], 1))
}

pub fn bind(shell: &mut Shell, _: &[Vec<u8>]) -> Exec {
    shell.complain(b"bind: warning: line editing not enabled");
    Ok(0)
}

pub fn compgen(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let mut words: Vec<Vec<u8>> = Vec::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut wanted: Vec<u8> = Vec::new();
    while let Some(letter) = options.next() {
        match letter {
            b'W' => {
                let text = options.argument().unwrap_or_default().to_vec();
                let ifs = shell.ifs();
                words.extend(
                    text.split(|byte| ifs.contains(byte)).filter(|word| !word.is_empty()).map(<[u8]>::to_vec),
                );
            }
            b'A' => match options.argument().unwrap_or_default() {
                b"function" => wanted.push(b'F'),
                b"builtin" => wanted.push(b'b'),
                b"variable" => wanted.push(b'v'),
                b"alias" => wanted.push(b'a'),
                b"keyword" => wanted.push(b'k'),
                b"command" => wanted.push(b'c'),
                b"file" => wanted.push(b'f'),
                b"directory" => wanted.push(b'd'),
                b"export" => wanted.push(b'e'),
                _ => {}
            },
            b'P' => before = options.argument().unwrap_or_default().to_vec(),
            b'S' => after = options.argument().unwrap_or_default().to_vec(),
            b'o' | b'F' | b'C' | b'X' | b'G' => drop(options.argument()),
            letter => wanted.push(letter),
        }
    }
    let prefix = options.rest().first().cloned().unwrap_or_default();
    for kind in wanted {
        words.extend(generate(shell, kind, &prefix));
    }
    let mut text = Vec::new();
    for word in words.iter().filter(|word| word.starts_with(&prefix)) {
        text.extend([before.as_slice(), word, &after, b"\n"].concat());
    }
    let status = i32::from(text.is_empty());
    output(shell, b"compgen", &text);
    Ok(status)
}

fn generate(shell: &Shell, kind: u8, prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = match kind {
        b'F' => shell.functions.keys().cloned().collect(),
        b'b' => super::names().map(|name| name.as_bytes().to_vec()).collect(),
        b'v' => shell.vars.names().into_iter().cloned().collect(),
        b'a' => shell.aliases.keys().cloned().collect(),
        b'e' => {
            let exported =
                |(_, var): &(&Vec<u8>, &crate::vars::Var)| var.attrs.has(crate::vars::Attrs::EXPORT);
            shell.vars.iter().filter(exported).map(|(name, _)| name.clone()).collect()
        }
        b'f' | b'd' => {
            let pattern = [prefix, b"*"].concat();
            let is_directory = |path: &Vec<u8>| {
                wardian_abi::stat(wardian_abi::Dir::CWD, path, true).is_ok_and(|stat| stat.is_dir())
            };
            shell.glob(&pattern).into_iter().filter(|path| kind == b'f' || is_directory(path)).collect()
        }
        b'c' => {
            let mut names: Vec<Vec<u8>> = super::names().map(|name| name.as_bytes().to_vec()).collect();
            names.extend(shell.functions.keys().cloned());
            let path = shell.vars.text(b"PATH").cloned().unwrap_or_default();
            for directory in path.split(|&byte| byte == b':').filter(|directory| !directory.is_empty()) {
                names.extend(crate::expand::list_directory(directory));
            }
            names
        }
        _ => Vec::new(),
    };
    words.sort_unstable();
    words
}
