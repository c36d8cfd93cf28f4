//! Commits as text.

use std::collections::HashMap;

use crate::date::{self, Style as Dates};
use crate::fail::Res;
use crate::files::text;
use crate::hash::Oid;
use crate::object::{Commit, Person};
use crate::refs;
use crate::repo::Repo;

#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    Oneline,
    Short,
    Medium,
    Full,
    Fuller,
    Reference,
    Email,
    Raw,
    /// With its text; the flag says that line feeds end commits and do not separate them.
    User(String, bool),
}

impl Format {
    pub fn named(name: &str, repo: &Repo) -> Option<Format> {
        Some(match name {
            "oneline" => Format::Oneline,
            "short" => Format::Short,
            "medium" => Format::Medium,
            "full" => Format::Full,
            "fuller" => Format::Fuller,
            "reference" => Format::Reference,
            "email" | "mboxrd" => Format::Email,
            "raw" => Format::Raw,
            _ => {
                if let Some(text) = name.strip_prefix("format:") {
                    return Some(Format::User(text.to_owned(), false));
                }
                if let Some(text) = name.strip_prefix("tformat:") {
                    return Some(Format::User(text.to_owned(), true));
                }
                if name.contains('%') {
                    return Some(Format::User(name.to_owned(), true));
                }
                let alias = repo.config.text(&format!("pretty.{name}"))?;
                return Format::named(&alias, repo).filter(|_| alias != name);
            }
        })
    }
}

/// How commits are written.
pub struct Pretty<'a> {
    pub repo: &'a Repo,
    pub format: Format,
    pub dates: Dates,
    pub abbrev: bool,
    pub abbrev_length: Option<usize>,
    pub decorate: Option<Decorations>,
}

/// The names of commits.
#[derive(Default)]
pub struct Decorations {
    names: HashMap<Oid, Vec<String>>,
}

impl Decorations {
    pub fn load(repo: &Repo, full: bool) -> Res<Decorations> {
        let mut names: HashMap<Oid, Vec<String>> = HashMap::new();
        let head = repo.head()?;
        let branch = refs::current_branch(repo)?.map(|branch| [&b"refs/heads/"[..], &branch].concat());
        let mut add = |oid: Oid, name: String| names.entry(oid).or_default().push(name);
        let show = |name: &[u8]| text(if full { name } else { refs::short(name) });
        if let Some(head) = head {
            match &branch {
                Some(branch) => add(head, format!("HEAD -> {}", show(branch))),
                None => add(head, "HEAD".to_owned()),
            }
        }
        let mut list = refs::list(repo, b"refs/")?;
        // The last name comes first: tags before what is elsewhere, and that before branches.
        list.reverse();
        for (name, oid) in list.iter().filter(|(name, _)| Some(name) != branch.as_ref()) {
            let shown = match name.starts_with(b"refs/tags/") {
                true => format!("tag: {}", show(name)),
                false => show(name),
            };
            let oid = repo.odb.peel(oid).map_or(*oid, |(oid, _)| oid);
            add(oid, shown);
        }
        Ok(Decorations { names })
    }

    pub fn of(&self, oid: &Oid) -> Option<String> {
        self.names.get(oid).map(|names| names.join(", "))
    }
}

fn indented(message: &[u8], text: &mut Vec<u8>) {
    let message = message.trim_ascii_end();
    let start = message.split(|&byte| byte == b'\n').take_while(|line| line.trim_ascii().is_empty()).count();
    for line in message.split(|&byte| byte == b'\n').skip(start) {
        let line = line.trim_ascii_end();
        text.extend_from_slice(b"    ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
}

impl Pretty<'_> {
    pub fn name(&self, oid: &Oid) -> String {
        if self.abbrev { self.short(oid) } else { oid.hex() }
    }

    fn short(&self, oid: &Oid) -> String {
        match self.abbrev_length {
            Some(length) => self.repo.odb.abbreviate(oid, Some(length)),
            None => self.repo.short(oid),
        }
    }

    fn decoration(&self, oid: &Oid) -> String {
        let names = self.decorate.as_ref().and_then(|names| names.of(oid));
        names.map_or(String::new(), |names| format!(" ({names})"))
    }

    /// A commit as text, its last line ended. `mark` stands before its name (`-`, `<`, `>`).
    pub fn show(&self, oid: &Oid, mark: &str) -> Res<Vec<u8>> {
        let commit = self.repo.odb.commit(oid)?;
        let mut text = Vec::new();
        match &self.format {
            Format::User(format, _) => {
                text = self.expand(format, oid, &commit)?;
                return Ok(text);
            }
            Format::Oneline => {
                text.extend_from_slice(
                    format!("{mark}{}{} ", self.name(oid), self.decoration(oid)).as_bytes(),
                );
                text.extend_from_slice(&commit.subject());
                text.push(b'\n');
                return Ok(text);
            }
            Format::Reference => {
                let day = date::show(commit.committer.time, commit.committer.zone, &self.reference_dates());
                text.extend_from_slice(format!("{} (", self.short(oid)).as_bytes());
                text.extend_from_slice(&commit.subject());
                text.extend_from_slice(format!(", {day})\n").as_bytes());
                return Ok(text);
            }
            Format::Email => return Ok(self.email(oid, &commit)),
            _ => {}
        }
        text.extend_from_slice(
            format!("commit {mark}{}{}\n", self.name(oid), self.decoration(oid)).as_bytes(),
        );
        if self.format == Format::Raw {
            let raw = commit.write();
            let end = raw.windows(2).position(|pair| pair == b"\n\n").map_or(raw.len(), |at| at + 1);
            text.extend_from_slice(&raw[..end]);
        } else {
            self.headers(&commit, &mut text);
        }
        text.push(b'\n');
        match self.format {
            Format::Short => indented(&commit.subject(), &mut text),
            _ => indented(&commit.message, &mut text),
        }
        if text.ends_with(b"    \n") && commit.message.trim_ascii().is_empty() {
            text.truncate(text.len() - 5);
        }
        Ok(text)
    }

    fn reference_dates(&self) -> Dates {
        if self.dates == Dates::Default { Dates::Short } else { self.dates.clone() }
    }

    fn headers(&self, commit: &Commit, text: &mut Vec<u8>) {
        if commit.parents.len() > 1 {
            let parents: Vec<String> = commit.parents.iter().map(|parent| self.short(parent)).collect();
            text.extend_from_slice(format!("Merge: {}\n", parents.join(" ")).as_bytes());
        }
        let who = |person: &Person| [&person.name[..], b" <", &person.email, b">\n"].concat();
        let when = |person: &Person| date::show(person.time, person.zone, &self.dates);
        let (author, committer) = (&commit.author, &commit.committer);
        match self.format {
            Format::Short => text.extend_from_slice(&[b"Author: ", &who(author)[..]].concat()),
            Format::Full => {
                text.extend_from_slice(
                    &[b"Author: ", &who(author)[..], b"Commit: ", &who(committer)].concat(),
                );
            }
            Format::Fuller => {
                text.extend_from_slice(&[b"Author:     ", &who(author)[..]].concat());
                text.extend_from_slice(format!("AuthorDate: {}\n", when(author)).as_bytes());
                text.extend_from_slice(&[b"Commit:     ", &who(committer)[..]].concat());
                text.extend_from_slice(format!("CommitDate: {}\n", when(committer)).as_bytes());
            }
            _ => {
                text.extend_from_slice(&[b"Author: ", &who(author)[..]].concat());
                text.extend_from_slice(format!("Date:   {}\n", when(author)).as_bytes());
            }
        }
    }

    fn email(&self, oid: &Oid, commit: &Commit) -> Vec<u8> {
        let mut text = format!("From {oid} Mon Sep 17 00:00:00 2001\nFrom: ").into_bytes();
        text.extend_from_slice(&[&commit.author.name[..], b" <", &commit.author.email, b">\n"].concat());
        let when = date::show(commit.author.time, commit.author.zone, &Dates::Rfc);
        text.extend_from_slice(format!("Date: {when}\nSubject: [PATCH] ").as_bytes());
        text.extend_from_slice(&commit.subject());
        text.extend_from_slice(b"\n\n");
        text.extend_from_slice(commit.body());
        text
    }

    /// A text with `%` places filled in.
    pub fn expand(&self, format: &str, oid: &Oid, commit: &Commit) -> Res<Vec<u8>> {
        let mut out = Vec::new();
        let mut rest = format;
        let mut pad: Option<Padding> = None;
        while let Some(at) = rest.find('%') {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            if let Some((padding, length)) = Padding::read(rest) {
                pad = Some(padding);
                rest = &rest[length..];
                continue;
            }
            let (sign, tail) = match rest.as_bytes().first() {
                Some(sign @ (b'+' | b'-' | b' ')) => (Some(*sign), &rest[1..]),
                _ => (None, rest),
            };
            match self.place(tail, oid, commit)? {
                Some((value, length)) => {
                    let value = pad.take().map_or(value.clone(), |pad| pad.apply(&value));
                    match sign {
                        Some(b'+') if !value.is_empty() => out.push(b'\n'),
                        Some(b' ') if !value.is_empty() => out.push(b' '),
                        Some(b'-') if value.is_empty() => {
                            while out.last() == Some(&b'\n') {
                                out.pop();
                            }
                        }
                        _ => {}
                    }
                    out.extend_from_slice(&value);
                    rest = &tail[length..];
                }
                None => out.push(b'%'),
            }
        }
        out.extend_from_slice(rest.as_bytes());
        Ok(out)
    }

    /// The value of one place, and how long its name is.
    fn place(&self, rest: &str, oid: &Oid, commit: &Commit) -> Res<Option<(Vec<u8>, usize)>> {
        let bytes = rest.as_bytes();
        let first = bytes.first().copied().unwrap_or(0);
        let hex = |oids: &[Oid]| oids.iter().map(Oid::hex).collect::<Vec<_>>().join(" ").into_bytes();
        let shorts =
            |oids: &[Oid]| oids.iter().map(|oid| self.short(oid)).collect::<Vec<_>>().join(" ").into_bytes();
        let value = match first {
            b'H' => oid.hex().into_bytes(),
            b'h' => self.short(oid).into_bytes(),
            b'T' => commit.tree.hex().into_bytes(),
            b't' => self.short(&commit.tree).into_bytes(),
            b'P' => hex(&commit.parents),
            b'p' => shorts(&commit.parents),
            b'n' => b"\n".to_vec(),
            b'%' => b"%".to_vec(),
            b's' => commit.subject(),
            b'b' => commit.body().to_vec(),
            b'B' => commit.message.clone(),
            b'f' => file_like(&commit.subject()),
            b'd' | b'D' => {
                let loaded;
                let names = match &self.decorate {
                    Some(names) => names,
                    None => {
                        loaded = Decorations::load(self.repo, false)?;
                        &loaded
                    }
                };
                let names = names.of(oid);
                match (first, names) {
                    (_, None) => Vec::new(),
                    (b'd', Some(names)) => format!(" ({names})").into_bytes(),
                    (_, Some(names)) => names.into_bytes(),
                }
            }
            b'e' | b'N' | b'm' | b'S' => {
                if first == b'm' {
                    b">".to_vec()
                } else {
                    Vec::new()
                }
            }
            b'a' | b'c' => {
                let person = if first == b'a' { &commit.author } else { &commit.committer };
                let Some(value) = bytes.get(1).and_then(|which| self.of_person(person, *which)) else {
                    return Ok(None);
                };
                return Ok(Some((value, 2)));
            }
            b'x' => {
                let Some(byte) = rest.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
                    return Ok(None);
                };
                return Ok(Some((vec![byte], 3)));
            }
            b'C' => return Ok(Some((Vec::new(), color_length(rest)))),
            b'g' => return Ok(Some((Vec::new(), 2.min(rest.len())))),
            b'(' => return Ok(self.trailers(rest, commit)),
            _ => return Ok(None),
        };
        Ok(Some((value, 1)))
    }

    fn of_person(&self, person: &Person, which: u8) -> Option<Vec<u8>> {
        let show = |style: &Dates| date::show(person.time, person.zone, style).into_bytes();
        Some(match which {
            b'n' | b'N' => person.name.clone(),
            b'e' | b'E' => person.email.clone(),
            b'l' | b'L' => person.email.split(|&byte| byte == b'@').next().unwrap_or(b"").to_vec(),
            b'd' => show(&self.dates),
            b'D' => show(&Dates::Rfc),
            b'r' => show(&Dates::Relative),
            b't' => show(&Dates::Unix),
            b'i' => show(&Dates::Iso),
            b'I' => show(&Dates::IsoStrict),
            b's' => show(&Dates::Short),
            b'h' => show(&Dates::Human),
            _ => return None,
        })
    }

    /// `%(trailers)` and `%(trailers:key=NAME,valueonly)`.
    fn trailers(&self, rest: &str, commit: &Commit) -> Option<(Vec<u8>, usize)> {
        let end = rest.find(')')?;
        let inner = rest[1..end].strip_prefix("trailers")?;
        let options = inner.strip_prefix(':').unwrap_or("");
        let body = text(commit.body());
        let last = body.trim_end().rsplit("\n\n").next().unwrap_or("").to_owned();
        let is_trailer = |line: &str| {
            line.split_once(": ").is_some_and(|(key, _)| {
                !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            })
        };
        let mut value = String::new();
        if last.lines().all(is_trailer) {
            for line in last.lines() {
                let (key, text) = line.split_once(": ").unwrap_or((line, ""));
                let wanted = options
                    .split(',')
                    .filter_map(|option| option.strip_prefix("key="))
                    .all(|name| name.trim_end_matches(':').eq_ignore_ascii_case(key));
                if wanted {
                    value += if options.split(',').any(|option| option == "valueonly") { text } else { line };
                    value.push('\n');
                }
            }
        }
        Some((value.into_bytes(), end + 1))
    }
}

fn color_length(rest: &str) -> usize {
    if rest.starts_with("C(") {
        return rest.find(')').map_or(1, |end| end + 1);
    }
    ["red", "green", "blue", "reset"]
        .iter()
        .find(|name| rest[1..].starts_with(**name))
        .map_or(1, |name| 1 + name.len())
}

/// A subject as a file name, for `%f`.
pub fn file_like(subject: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    for &byte in subject {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' && name.last() != Some(&b'.') {
            name.push(byte);
        } else if byte != b'.' && name.last() != Some(&b'-') && !name.is_empty() {
            name.push(b'-');
        }
    }
    while matches!(name.last(), Some(b'-' | b'.')) {
        name.pop();
    }
    name
}

/// `%<(20,trunc)` and its like.
struct Padding {
    width: usize,
    side: u8,
    cut: Option<&'static str>,
}

impl Padding {
    fn read(rest: &str) -> Option<(Padding, usize)> {
        let side = *rest.as_bytes().first()?;
        let (side, start) = match rest.as_bytes() {
            [b'>', b'<', b'(', ..] => (b'c', 3),
            [b'<' | b'>', b'(', ..] => (side, 2),
            _ => return None,
        };
        let end = rest.find(')')?;
        let mut words = rest[start..end].split(',');
        let width = words.next()?.trim().parse().ok()?;
        let cut = words
            .next()
            .and_then(|word| ["trunc", "ltrunc", "mtrunc"].into_iter().find(|known| *known == word.trim()));
        Some((Padding { width, side, cut }, end + 1))
    }

    fn apply(&self, value: &[u8]) -> Vec<u8> {
        let value: Vec<char> = text(value).chars().collect();
        let width = self.width.min(10_000);
        if value.len() > width {
            let cut: String = match self.cut {
                None => value.into_iter().collect(),
                Some("ltrunc") => ".."
                    .chars()
                    .chain(value[value.len() - width.saturating_sub(2)..].iter().copied())
                    .collect(),
                Some("mtrunc") => {
                    let half = width.saturating_sub(2) / 2;
                    let tail = width.saturating_sub(2) - half;
                    value[..half]
                        .iter()
                        .copied()
                        .chain("..".chars())
                        .chain(value[value.len() - tail..].iter().copied())
                        .collect()
                }
                Some(_) => value[..width.saturating_sub(2)].iter().copied().chain("..".chars()).collect(),
            };
            return cut.into_bytes();
        }
        let space = width - value.len();
        let left = match self.side {
            b'<' => 0,
            b'>' => space,
            _ => space / 2,
        };
        let text: String = value.into_iter().collect();
        format!("{}{text}{}", " ".repeat(left), " ".repeat(space - left)).into_bytes()
    }
}
