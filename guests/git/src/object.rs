//! What objects say: commits, trees and tags, read and written.

use crate::fail::{Res, fatal};
use crate::hash::Oid;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Commit => "commit",
            Kind::Tree => "tree",
            Kind::Blob => "blob",
            Kind::Tag => "tag",
        }
    }

    pub fn named(name: &[u8]) -> Option<Kind> {
        [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }
}

/// An object as it is stored.
#[derive(Debug)]
pub struct Object {
    pub kind: Kind,
    pub data: Vec<u8>,
}

/// Modes of entries.
pub const DIRECTORY: u32 = 0o040_000;
pub const FILE: u32 = 0o100_644;
pub const PROGRAM: u32 = 0o100_755;
pub const LINK: u32 = 0o120_000;
pub const SUBMODULE: u32 = 0o160_000;

/// One entry of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub mode: u32,
    pub name: Vec<u8>,
    pub oid: Oid,
}

impl Entry {
    pub fn is_tree(&self) -> bool {
        self.mode & 0o170_000 == DIRECTORY
    }

    /// Trees sort as if their names ended with a slash.
    pub fn order(&self, other: &Entry) -> std::cmp::Ordering {
        let key = |entry: &Entry| {
            let mut key = entry.name.clone();
            key.extend(entry.is_tree().then_some(b'/'));
            key
        };
        key(self).cmp(&key(other))
    }
}

/// Reads a tree. Names that would leave the tree are refused here, so that nobody else needs to look.
pub fn read_tree(data: &[u8]) -> Res<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let Some((entry, after)) = read_entry(rest) else { fatal!("corrupt tree object") };
        entries.push(entry);
        rest = after;
    }
    Ok(entries)
}

fn read_entry(data: &[u8]) -> Option<(Entry, &[u8])> {
    let space = data.iter().position(|&byte| byte == b' ')?;
    let mode = u32::from_str_radix(std::str::from_utf8(&data[..space]).ok()?, 8).ok()?;
    let rest = &data[space + 1..];
    let end = rest.iter().position(|&byte| byte == 0)?;
    let name = rest[..end].to_vec();
    let oid = Oid::from_bytes(rest.get(end + 1..end + 21)?)?;
    let unsafe_name = name.is_empty()
        || name == b"."
        || name == b".."
        || name.contains(&b'/')
        || name.eq_ignore_ascii_case(b".git");
    (!unsafe_name).then_some((Entry { mode, name, oid }, &rest[end + 21..]))
}

/// Writes a tree from entries in any order.
pub fn write_tree(mut entries: Vec<Entry>) -> Vec<u8> {
    entries.sort_by(Entry::order);
    let mut data = Vec::new();
    for entry in entries {
        data.extend_from_slice(format!("{:o} ", entry.mode).as_bytes());
        data.extend_from_slice(&entry.name);
        data.push(0);
        data.extend_from_slice(&entry.oid.0);
    }
    data
}

/// Who did something, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    pub name: Vec<u8>,
    pub email: Vec<u8>,
    pub time: i64,
    /// As it is written: `+0100`.
    pub zone: i32,
}

impl Person {
    /// From `NAME <EMAIL> TIME ZONE`; what is missing stays empty.
    pub fn parse(line: &[u8]) -> Person {
        let mut person = Person::default();
        let Some(open) = line.iter().position(|&byte| byte == b'<') else {
            person.name = line.to_vec();
            return person;
        };
        person.name = line[..open].trim_ascii().to_vec();
        let rest = &line[open + 1..];
        let close = rest.iter().rposition(|&byte| byte == b'>').unwrap_or(rest.len());
        person.email = rest[..close].to_vec();
        let text = String::from_utf8_lossy(rest.get(close + 1..).unwrap_or(b"")).into_owned();
        let mut words = text.split_ascii_whitespace();
        person.time = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        person.zone = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        person
    }

    pub fn line(&self) -> Vec<u8> {
        let mut line = self.name.clone();
        line.extend_from_slice(b" <");
        line.extend_from_slice(&self.email);
        line.extend_from_slice(format!("> {} {}", self.time, zone_text(self.zone)).as_bytes());
        line
    }
}

/// `+0100` for 100.
pub fn zone_text(zone: i32) -> String {
    format!("{}{:04}", if zone < 0 { '-' } else { '+' }, zone.unsigned_abs())
}

#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub tree: Oid,
    pub parents: Vec<Oid>,
    pub author: Person,
    pub committer: Person,
    /// Other headers (`encoding`, `gpgsig`), each with its continuation lines and without the last line feed.
    pub extra: Vec<Vec<u8>>,
    pub message: Vec<u8>,
}

/// The header lines of a commit or tag, continuation lines joined, and the message.
fn headers(data: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut rest = data;
    loop {
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let (line, after) = (&rest[..end], rest.get(end + 1..).unwrap_or(b""));
        if line.is_empty() {
            return (lines, after.to_vec());
        }
        match lines.last_mut() {
            Some(last) if line[0] == b' ' => {
                last.push(b'\n');
                last.extend_from_slice(line);
            }
            _ => lines.push(line.to_vec()),
        }
        if after.is_empty() {
            return (lines, Vec::new());
        }
        rest = after;
    }
}

impl Commit {
    pub fn parse(data: &[u8]) -> Option<Commit> {
        let (lines, message) = headers(data);
        let mut commit = Commit { message, ..Commit::default() };
        let mut seen_tree = false;
        for line in lines {
            if let Some(hex) = line.strip_prefix(b"tree ") {
                commit.tree = Oid::from_hex(hex)?;
                seen_tree = true;
            } else if let Some(hex) = line.strip_prefix(b"parent ") {
                commit.parents.push(Oid::from_hex(hex)?);
            } else if let Some(person) = line.strip_prefix(b"author ") {
                commit.author = Person::parse(person);
            } else if let Some(person) = line.strip_prefix(b"committer ") {
                commit.committer = Person::parse(person);
            } else {
                commit.extra.push(line);
            }
        }
        seen_tree.then_some(commit)
    }

    pub fn write(&self) -> Vec<u8> {
        let mut data = format!("tree {}\n", self.tree).into_bytes();
        for parent in &self.parents {
            data.extend_from_slice(format!("parent {parent}\n").as_bytes());
        }
        data.extend_from_slice(b"author ");
        data.extend_from_slice(&self.author.line());
        data.extend_from_slice(b"\ncommitter ");
        data.extend_from_slice(&self.committer.line());
        data.push(b'\n');
        for line in &self.extra {
            data.extend_from_slice(line);
            data.push(b'\n');
        }
        data.push(b'\n');
        data.extend_from_slice(&self.message);
        data
    }

    /// The first paragraph as one line.
    pub fn subject(&self) -> Vec<u8> {
        subject(&self.message)
    }

    /// What follows the first paragraph.
    pub fn body(&self) -> &[u8] {
        let (_, body) = split_message(&self.message);
        body
    }
}

/// The first paragraph as one line.
pub fn subject(message: &[u8]) -> Vec<u8> {
    let (subject, _) = split_message(message);
    let lines: Vec<&[u8]> = subject.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
    lines.join(&b' ')
}

/// The first paragraph, without blank lines before it, and what follows the blank lines after it.
pub fn split_message(message: &[u8]) -> (&[u8], &[u8]) {
    let mut start = 0;
    let mut end = None;
    let mut at = 0;
    while at < message.len() {
        let line_end =
            message[at..].iter().position(|&byte| byte == b'\n').map_or(message.len(), |n| at + n + 1);
        let blank = message[at..line_end].trim_ascii().is_empty();
        match (blank, end) {
            (true, None) if start == at => start = line_end,
            (true, None) => end = Some(at),
            (false, Some(end)) => return (message[start..end].trim_ascii_end(), &message[at..]),
            _ => {}
        }
        at = line_end;
    }
    (message[start.min(message.len())..end.unwrap_or(message.len())].trim_ascii_end(), b"")
}

#[derive(Clone, Debug)]
pub struct Tag {
    pub target: Oid,
    pub kind: Kind,
    pub name: Vec<u8>,
    pub tagger: Option<Person>,
    pub message: Vec<u8>,
}

impl Tag {
    pub fn parse(data: &[u8]) -> Option<Tag> {
        let (lines, message) = headers(data);
        let field = |name: &[u8]| lines.iter().find_map(|line| line.strip_prefix(name));
        Some(Tag {
            target: Oid::from_hex(field(b"object ")?)?,
            kind: Kind::named(field(b"type ")?)?,
            name: field(b"tag ").unwrap_or(b"").to_vec(),
            tagger: field(b"tagger ").map(Person::parse),
            message,
        })
    }

    pub fn write(&self) -> Vec<u8> {
        let mut data = format!("object {}\ntype {}\ntag ", self.target, self.kind.name()).into_bytes();
        data.extend_from_slice(&self.name);
        if let Some(tagger) = &self.tagger {
            data.extend_from_slice(b"\ntagger ");
            data.extend_from_slice(&tagger.line());
        }
        data.extend_from_slice(b"\n\n");
        data.extend_from_slice(&self.message);
        data
    }
}
