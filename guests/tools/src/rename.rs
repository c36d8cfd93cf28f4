//! `rename`: other names for files, by a Perl substitution (Debian's `rename`) or by a piece of text (util-linux').

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files};
use wardian_abi as abi;
use wardian_abi::Dir;
use wardian_regex::{Fit, Groups, Modern, Regex};

const TOOL: Tool = Tool {
    name: "rename",
    short: "+de:fnvo",
    long: &[
        ("nofullpath", 'd'),
        ("nopath", 'd'),
        ("filename", 'd'),
        ("force", 'f'),
        ("nono", 'n'),
        ("no-act", 'n'),
        ("verbose", 'v'),
        ("no-overwrite", 'o'),
    ],
    help: "\
Usage: rename [OPTION]... PERLEXPR FILE...
  or:  rename [OPTION]... FROM TO FILE...
Rename FILEs. PERLEXPR is s/PATTERN/TEXT/ with the flags g and i, or
y/FROM/TO/, or several of them with ; between; FROM and TO are pieces of text.

  -d, --filename      change the last part of a path only
  -e PERLEXPR         the same as the first operand; may be given again
  -f, --force         overwrite files that exist
  -n, --no-act        only print what would be renamed
  -v, --verbose       print what was renamed
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 2,
};

/// A change of a name.
enum Change {
    Substitute { regex: Box<Regex>, text: Vec<u8>, all: bool },
    Translate { from: Vec<u8>, to: Vec<u8> },
    Piece { from: Vec<u8>, to: Vec<u8> },
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let mut operands = parsed.operands.clone();
    let mut changes = Vec::new();
    for (_, text) in parsed.options.iter().filter(|(letter, _)| *letter == 'e') {
        changes.extend(expression(text.as_deref().unwrap_or_default())?);
    }
    if changes.is_empty() {
        let is_perl = operands.first().is_some_and(|first| looks_like_perl(first));
        match operands.len() {
            1.. if is_perl => changes = expression(&operands.remove(0))?,
            3.. => {
                let (from, to) = (operands.remove(0), operands.remove(0));
                changes.push(Change::Piece { from, to });
            }
            _ => return Err(TOOL.wrong("not enough arguments")),
        }
    }
    let mut out = Out::new("rename");
    let mut code = 0;
    for old in operands {
        let new = changed(&changes, &old, has('d'));
        if new == old {
            continue;
        }
        let (shown, shown_new) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
        let exists = abi::stat(Dir::CWD, &new, false).is_ok();
        if exists && !has('f') {
            out.flush();
            complain(&format!("{shown} not renamed"), format_args!("{shown_new} already exists"));
        } else if has('n') {
            out.put(format!("rename({shown}, {shown_new})\n"));
        } else if let Err(error) = abi::rename(Dir::CWD, &old, Dir::CWD, &new) {
            out.complain(format_args!("Can't rename {shown} {shown_new}: {error}"));
            code = 1;
        } else if has('v') {
            out.put(format!("{shown} renamed as {shown_new}\n"));
        }
    }
    Ok(code)
}

fn looks_like_perl(text: &[u8]) -> bool {
    let rest = [&b"s"[..], b"y", b"tr"].iter().find_map(|name| text.strip_prefix(*name));
    rest.and_then(|rest| rest.first()).is_some_and(|sign| sign.is_ascii_punctuation())
}

/// Reads `s/…/…/flags` and `y/…/…/`, with `;` between them.
fn expression(text: &[u8]) -> Result<Vec<Change>, i32> {
    let wrong = || {
        let shown = String::from_utf8_lossy(text).into_owned();
        complain("rename", format_args!("{shown}: only s/PATTERN/TEXT/ and y/FROM/TO/ are supported"));
        2
    };
    let mut changes = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let is_substitution = rest.starts_with(b"s");
        let name = if rest.starts_with(b"tr") { 2 } else { 1 };
        if !looks_like_perl(rest) {
            return Err(wrong());
        }
        let slash = rest[name];
        let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
        let mut at = name + 1;
        while parts.len() < 3 {
            match rest.get(at..) {
                Some([b'\\', next, ..]) => {
                    let last = parts.len() - 1;
                    if *next != slash {
                        parts[last].push(b'\\');
                    }
                    parts[last].push(*next);
                    at += 2;
                }
                Some([byte, ..]) if *byte == slash => {
                    parts.push(Vec::new());
                    at += 1;
                }
                Some([byte, ..]) => {
                    let last = parts.len() - 1;
                    parts[last].push(*byte);
                    at += 1;
                }
                _ => return Err(wrong()),
            }
        }
        let flags = rest[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let letters = &rest[at..at + flags];
        let known: &[u8] = if is_substitution { b"gi" } else { b"" };
        if !letters.iter().all(|letter| known.contains(letter)) {
            return Err(wrong());
        }
        changes.push(if is_substitution {
            let options = Modern {
                ignore_case: letters.contains(&b'i'),
                perl: true,
                lines: None,
                multi_line: false,
                dot_all: false,
                fit: Fit::Anywhere,
                unicode: true,
            };
            let regex = Regex::modern(&String::from_utf8_lossy(&parts[0]), &options).map_err(|error| {
                complain("rename", error);
                2
            })?;
            Change::Substitute {
                regex: Box::new(regex),
                text: parts[1].clone(),
                all: letters.contains(&b'g'),
            }
        } else {
            Change::Translate { from: range(&parts[0]), to: range(&parts[1]) }
        });
        rest = rest[at + flags..].trim_ascii();
        rest = match rest {
            [] => rest,
            [b';', after @ ..] => after.trim_ascii(),
            _ => return Err(wrong()),
        };
    }
    Ok(changes)
}

/// The bytes that `a-z` stands for.
fn range(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match text[at..] {
            [from, b'-', to, ..] if from <= to => {
                bytes.extend(from..=to);
                at += 3;
            }
            [byte, ..] => {
                bytes.push(byte);
                at += 1;
            }
            [] => {}
        }
    }
    bytes
}

fn changed(changes: &[Change], path: &[u8], base_only: bool) -> Vec<u8> {
    // A piece of text is changed in the last part alone, as util-linux' does.
    let base_only = base_only || changes.iter().any(|change| matches!(change, Change::Piece { .. }));
    let split = if base_only { path.len() - files::base_name(path).len() } else { 0 };
    let mut name = path[split..].to_vec();
    for change in changes {
        name = match change {
            Change::Piece { from, .. } if from.is_empty() => name,
            Change::Piece { from, to } => match memchr::memmem::find(&name, from) {
                Some(at) => [&name[..at], to, &name[at + from.len()..]].concat(),
                None => name,
            },
            Change::Translate { from, to } => translated(&name, from, to),
            Change::Substitute { regex, text, all } => substituted(&name, regex, text, *all),
        };
    }
    [&path[..split], &name].concat()
}

fn translated(name: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let to = if to.is_empty() { from } else { to };
    let change = |byte: &u8| match from.iter().position(|known| known == byte) {
        Some(at) => to[at.min(to.len() - 1)],
        None => *byte,
    };
    name.iter().map(change).collect()
}

fn substituted(name: &[u8], regex: &Regex, text: &[u8], all: bool) -> Vec<u8> {
    let (mut result, mut copied, mut at) = (Vec::new(), 0, 0);
    let mut groups = Groups::new();
    while at <= name.len() && regex.captures_at(name, at, &mut groups) {
        let Some((from, to)) = groups.first().copied().flatten() else { break };
        result.extend_from_slice(&name[copied..from]);
        expand(text, name, &groups, &mut result);
        copied = to;
        at = if to > from { to } else { to + 1 };
        if !all {
            break;
        }
    }
    result.extend_from_slice(&name[copied.min(name.len())..]);
    result
}

/// The right side: `$1`, `${1}`, `\1` and `$&` are what was found; `\U`, `\L`, `\u`, `\l` and `\E` change case.
fn expand(text: &[u8], name: &[u8], groups: &Groups, out: &mut Vec<u8>) {
    let (mut case, mut next) = (b'E', 0);
    let mut at = 0;
    while at < text.len() {
        let (added, length): (Vec<u8>, usize) = match text[at..] {
            [b'\\', letter @ (b'U' | b'L' | b'E'), ..] => {
                case = letter;
                at += 2;
                continue;
            }
            [b'\\', letter @ (b'u' | b'l'), ..] => {
                next = letter;
                at += 2;
                continue;
            }
            [b'$' | b'\\', digit @ b'1'..=b'9', ..] => (group(name, groups, digit), 2),
            [b'$', b'{', digit @ b'1'..=b'9', b'}', ..] => (group(name, groups, digit), 4),
            [b'$', b'&', ..] => (group(name, groups, b'0'), 2),
            [b'\\', b't', ..] => (b"\t".to_vec(), 2),
            [b'\\', byte, ..] => (vec![byte], 2),
            [byte, ..] => (vec![byte], 1),
            [] => return,
        };
        at += length;
        let mut added = match case {
            b'U' => added.to_ascii_uppercase(),
            b'L' => added.to_ascii_lowercase(),
            _ => added,
        };
        if let (Some(first), b'u' | b'l') = (added.first_mut(), next) {
            *first = if next == b'u' { first.to_ascii_uppercase() } else { first.to_ascii_lowercase() };
            next = 0;
        }
        out.extend(added);
    }
}

fn group(name: &[u8], groups: &Groups, digit: u8) -> Vec<u8> {
    let found = groups.get(usize::from(digit - b'0')).copied().flatten();
    found.map_or(Vec::new(), |(from, to)| name[from..to].to_vec())
}
