//! Settings: the files they are in, read and changed.

use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};

/// Files that include each other end here.
const DEEPEST: usize = 10;

/// One setting. The name is `section.key` or `section.sub.key`, section and key in lower case.
#[derive(Clone, Debug)]
pub struct Setting {
    pub name: Vec<u8>,
    /// None for a key without `=`, which means true.
    pub value: Option<Vec<u8>>,
    /// `file:PATH` or `command line:`.
    pub origin: String,
    pub scope: &'static str,
}

#[derive(Clone, Default, Debug)]
pub struct Config {
    pub settings: Vec<Setting>,
}

/// Where in a file a setting stands.
#[derive(Clone, Debug)]
struct Item {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
    /// The lines it takes.
    from: usize,
    to: usize,
}

/// A file as lines, with what stands in them.
struct Parsed {
    lines: Vec<Vec<u8>>,
    items: Vec<Item>,
    /// Sections with the line of their header.
    sections: Vec<(Vec<u8>, usize)>,
}

impl Config {
    /// Adds the settings of a file, and of those it includes.
    pub fn add_file(&mut self, name: &[u8], scope: &'static str, depth: usize) -> Res<()> {
        let Some(content) = files::read_if_there(name)? else { return Ok(()) };
        if depth > DEEPEST {
            fatal!("exceeded maximum include depth ({DEEPEST}) while including\n\t{}", text(name));
        }
        let parsed = parse(&content, name)?;
        for item in parsed.items {
            let included = (item.name == b"include.path").then(|| item.value.clone()).flatten();
            let origin = format!("file:{}", text(name));
            self.settings.push(Setting { name: item.name, value: item.value, origin, scope });
            if let Some(path) = included {
                let path = expand_home(&path);
                let path = if path.starts_with(b"/") { path } else { join(&files::parent(name), &path) };
                self.add_file(&path, scope, depth + 1)?;
            }
        }
        Ok(())
    }

    pub fn add(&mut self, name: &[u8], value: Option<&[u8]>) -> Res<()> {
        let name = canonical(name).map_err(|_| Fail::Fatal(format!("bad config key '{}'", text(name))))?;
        let origin = "command line:".to_owned();
        self.settings.push(Setting { name, value: value.map(<[u8]>::to_vec), origin, scope: "command" });
        Ok(())
    }

    /// The last setting of a name counts.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let found = self.settings.iter().rev().find(|setting| setting.name == name.as_bytes())?;
        Some(found.value.clone().unwrap_or_else(|| b"true".to_vec()))
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|value| text(&value))
    }

    pub fn all(&self, name: &[u8]) -> Vec<Vec<u8>> {
        let of_name = self.settings.iter().filter(|setting| setting.name == name);
        of_name.map(|setting| setting.value.clone().unwrap_or_else(|| b"true".to_vec())).collect()
    }

    pub fn bool(&self, name: &str, otherwise: bool) -> bool {
        self.get(name).and_then(|value| as_bool(&value)).unwrap_or(otherwise)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(|value| as_number(&value))
    }
}

pub fn as_bool(value: &[u8]) -> Option<bool> {
    match value.to_ascii_lowercase().as_slice() {
        b"true" | b"yes" | b"on" => Some(true),
        b"false" | b"no" | b"off" | b"" => Some(false),
        _ => as_number(value).map(|number| number != 0),
    }
}

pub fn as_number(value: &[u8]) -> Option<i64> {
    let value = std::str::from_utf8(value).ok()?;
    let (digits, factor) = match value.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&value[..value.len() - 1], 1 << 10),
        b'm' => (&value[..value.len() - 1], 1 << 20),
        b'g' => (&value[..value.len() - 1], 1 << 30),
        _ => (value, 1),
    };
    digits.parse::<i64>().ok()?.checked_mul(factor)
}

pub fn expand_home(path: &[u8]) -> Vec<u8> {
    match (path.strip_prefix(b"~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => join(home.as_encoded_bytes(), rest),
        _ => path.to_vec(),
    }
}

/// A name with section and key in lower case; an error says what is wrong with it.
pub fn canonical(name: &[u8]) -> Result<Vec<u8>, String> {
    let shown = text(name);
    let last = name.iter().rposition(|&byte| byte == b'.').filter(|at| *at > 0);
    let Some(last) = last else { return Err(format!("key does not contain a section: {shown}")) };
    let first = name.iter().position(|&byte| byte == b'.').unwrap_or(last);
    let key = &name[last + 1..];
    if key.is_empty() {
        return Err(format!("key does not contain variable name: {shown}"));
    }
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    if !key.iter().all(good) || !key[0].is_ascii_alphabetic() || !name[..first].iter().all(good) {
        return Err(format!("invalid key: {shown}"));
    }
    if name[first..last].contains(&b'\n') {
        return Err(format!("invalid key (newline): {shown}"));
    }
    Ok([&name[..first].to_ascii_lowercase(), &name[first..last], b".", &key.to_ascii_lowercase()].concat())
}

fn parse(content: &[u8], file: &[u8]) -> Res<Parsed> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut lines: Vec<Vec<u8>> = content.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    let (mut items, mut sections) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < lines.len() {
        let from = at;
        let bad = || Fail::Fatal(format!("bad config line {} in file {}", from + 1, text(file)));
        let mut line = lines[at].trim_ascii().to_vec();
        at += 1;
        if line.starts_with(b"[") {
            let (section, rest) = header(&line).ok_or_else(bad)?;
            sections.push((section, from));
            line = rest.trim_ascii().to_vec();
        }
        if line.is_empty() || line[0] == b'#' || line[0] == b';' {
            continue;
        }
        let Some((section, _)) = sections.last() else { return Err(bad()) };
        let end =
            line.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').unwrap_or(line.len());
        let key = line[..end].to_ascii_lowercase();
        let rest = line[end..].trim_ascii_start().to_vec();
        if key.is_empty() || !(rest.is_empty() || matches!(rest[0], b'=' | b'#' | b';')) {
            return Err(bad());
        }
        let value = match rest.strip_prefix(b"=") {
            Some(first) => Some(value(first.to_vec(), &lines, &mut at).ok_or_else(bad)?),
            None => None,
        };
        items.push(Item { name: [section.as_slice(), b".", &key].concat(), value, from, to: at });
    }
    Ok(Parsed { lines, items, sections })
}

/// `[section "sub"]` as `section.sub`, and what follows it on the line.
fn header(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let end = line.iter().position(|&byte| matches!(byte, b']' | b' ' | b'\t'))?;
    let name = line[1..end].to_ascii_lowercase();
    let rest = line[end..].trim_ascii_start();
    if let Some(after) = rest.strip_prefix(b"]") {
        return Some((name, after.to_vec()));
    }
    let mut rest = rest.strip_prefix(b"\"")?;
    let mut sub = Vec::new();
    loop {
        match rest {
            [b'"', b']', after @ ..] => {
                return Some(([&name, b".".as_slice(), &sub].concat(), after.to_vec()));
            }
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                sub.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// The value that starts on a line and goes on after backslashes at line ends.
fn value(first: Vec<u8>, lines: &[Vec<u8>], at: &mut usize) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut quoted = false;
    let mut solid = 0;
    let mut line = first.trim_ascii_start().to_vec();
    loop {
        let mut bytes = line.iter();
        let mut goes_on = false;
        while let Some(&byte) = bytes.next() {
            match byte {
                b'"' => quoted = !quoted,
                b'#' | b';' if !quoted => break,
                b'\\' => match bytes.next() {
                    None => goes_on = true,
                    Some(b'n') => value.push(b'\n'),
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(&byte @ (b'\\' | b'"')) => value.push(byte),
                    Some(_) => return None,
                },
                byte => value.push(byte),
            }
            if quoted || !byte.is_ascii_whitespace() {
                solid = value.len();
            }
        }
        if !goes_on {
            value.truncate(solid);
            return (!quoted).then_some(value);
        }
        line = lines.get(*at)?.clone();
        *at += 1;
    }
}

/// Changes a file: the settings of a name that `chosen` accepts are replaced by the first of `values`, or removed if there is
/// none; `append` adds without replacing. Answers how many there were.
pub fn change(
    file: &[u8],
    name: &[u8],
    value: Option<&[u8]>,
    append: bool,
    chosen: &dyn Fn(&[u8]) -> bool,
) -> Res<usize> {
    let mut parsed = parse(&files::read_if_there(file)?.unwrap_or_default(), file)?;
    let plain = canonical(name).map_err(Fail::Fatal)?;
    let wanted = |item: &&Item| item.name == plain && chosen(item.value.as_deref().unwrap_or(b"true"));
    let found: Vec<Item> =
        if append { Vec::new() } else { parsed.items.iter().filter(wanted).cloned().collect() };
    let last = name.iter().rposition(|&byte| byte == b'.').unwrap_or(0);
    let (section, key) = (&name[..last], &name[last + 1..]);
    let new_line = value.map(|value| [b"\t", key, b" = ", &quoted(value)].concat());
    for item in found.iter().rev() {
        let is_last = item.from == found[found.len() - 1].from;
        let replacement = new_line.iter().filter(|_| is_last).cloned();
        let header_there = parsed.sections.iter().any(|(_, line)| *line == item.from);
        let kept = header_there.then(|| {
            let line = &parsed.lines[item.from];
            line[..=line.iter().position(|&byte| byte == b']').unwrap_or(0)].to_vec()
        });
        parsed.lines.splice(item.from..item.to, kept.into_iter().chain(replacement));
    }
    if found.is_empty()
        && let Some(line) = new_line
    {
        insert(&mut parsed, (&plain[..last], section), line);
    }
    if value.is_none() && !found.is_empty() {
        drop_empty_section(&mut parsed, &plain[..last], file)?;
    }
    write_lines(file, &parsed.lines)?;
    Ok(found.len())
}

fn write_lines(file: &[u8], lines: &[Vec<u8>]) -> Res<()> {
    let mut content = lines.join(&b'\n');
    if !content.is_empty() {
        content.push(b'\n');
    }
    files::replace(file, &content)
}

/// Puts a line at the end of its section, which is made if need be, as the user spelt it.
fn insert(parsed: &mut Parsed, (section, written): (&[u8], &[u8]), line: Vec<u8>) {
    let place = parsed.sections.iter().rposition(|(name, _)| name == section);
    match place {
        Some(at) => {
            let until = parsed.sections.get(at + 1).map_or(parsed.lines.len(), |(_, line)| *line);
            let last =
                parsed.items.iter().rev().find(|item| item.to <= until && item.from >= parsed.sections[at].1);
            let after = last.map_or(parsed.sections[at].1 + 1, |item| item.to);
            parsed.lines.insert(after, line);
        }
        None => {
            parsed.lines.push(section_header(written));
            parsed.lines.push(line);
        }
    }
}

fn section_header(section: &[u8]) -> Vec<u8> {
    match section.iter().position(|&byte| byte == b'.') {
        None => [b"[", section, b"]"].concat(),
        Some(dot) => {
            let mut sub = Vec::new();
            for &byte in &section[dot + 1..] {
                sub.extend((byte == b'"' || byte == b'\\').then_some(b'\\'));
                sub.push(byte);
            }
            [b"[", &section[..dot], b" \"", &sub, b"\"]"].concat()
        }
    }
}

/// A section that lost its last setting goes too, unless someone wrote a comment in it.
fn drop_empty_section(parsed: &mut Parsed, section: &[u8], file: &[u8]) -> Res<()> {
    let again = parse(&parsed.lines.join(&b'\n'), file)?;
    let Some(at) = again.sections.iter().rposition(|(name, _)| name == section) else { return Ok(()) };
    let from = again.sections[at].1;
    let to = again.sections.get(at + 1).map_or(again.lines.len(), |(_, line)| *line);
    let only_header = again.lines[from].trim_ascii().ends_with(b"]");
    if only_header && again.lines[from + 1..to].iter().all(|line| line.trim_ascii().is_empty()) {
        parsed.lines.drain(from..to);
    }
    Ok(())
}

/// Removes sections, or gives them another name. Answers whether there was one.
pub fn change_section(file: &[u8], old: &[u8], new: Option<&[u8]>) -> Res<bool> {
    let mut parsed = parse(&files::read_if_there(file)?.unwrap_or_default(), file)?;
    let mut found = false;
    for at in (0..parsed.sections.len()).rev() {
        // Here the upper case of a section's name counts.
        let base = old.split(|&byte| byte == b'.').next().unwrap_or(old);
        let written = parsed.lines[parsed.sections[at].1].trim_ascii_start();
        if parsed.sections[at].0 != old
            || !written.strip_prefix(b"[").is_some_and(|name| name.starts_with(base))
        {
            continue;
        }
        found = true;
        let from = parsed.sections[at].1;
        let to = parsed.sections.get(at + 1).map_or(parsed.lines.len(), |(_, line)| *line);
        match new {
            Some(new) => parsed.lines[from] = section_header(new),
            None => drop(parsed.lines.drain(from..to)),
        }
    }
    if found {
        write_lines(file, &parsed.lines)?;
    }
    Ok(found)
}

/// A value as it is written in a file.
fn quoted(value: &[u8]) -> Vec<u8> {
    let quotes = value.first() == Some(&b' ')
        || value.last() == Some(&b' ')
        || value.iter().any(|byte| matches!(byte, b'#' | b';' | b'\r'));
    let mut text = Vec::new();
    text.extend(quotes.then_some(b'"'));
    for &byte in value {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\t' => text.extend_from_slice(b"\\t"),
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
            byte => text.push(byte),
        }
    }
    text.extend(quotes.then_some(b'"'));
    text
}
