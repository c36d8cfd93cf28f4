//! `file`: what a file is, by its first bytes.

use std::io::Read;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, files, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "file",
    short: "bhiLf:F:kprsz0",
    long: &[
        ("brief", 'b'),
        ("mime", 'i'),
        ("mime-type", 'm'),
        ("mime-encoding", 'e'),
        ("dereference", 'L'),
        ("no-dereference", 'h'),
        ("files-from=", 'f'),
        ("separator=", 'F'),
    ],
    help: "\
Usage: file [OPTION...] [FILE...]
Determine type of FILEs.

      --help                 display this help and exit
      --version              output version information and exit
  -b, --brief                do not prepend filenames to output lines
  -f, --files-from FILE      read the filenames to be examined from FILE
  -F, --separator STRING     use string as separator instead of `:'
  -i, --mime                 output MIME type strings (--mime-type and
                               --mime-encoding)
      --mime-type            output the MIME type
      --mime-encoding        output the MIME encoding
  -L, --dereference          follow symlinks
  -h, --no-dereference       don't follow symlinks (default)
",
    misuse: 1,
};

/// What a file is: in words, its type and its encoding as MIME has them.
struct Kind {
    words: String,
    mime: &'static str,
    encoding: &'static str,
}

/// Files known by what they begin with.
const BEGINNINGS: &[(&[u8], &str, &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "PNG image data", "image/png"),
    (b"\xff\xd8\xff", "JPEG image data", "image/jpeg"),
    (b"GIF89a", "GIF image data, version 89a", "image/gif"),
    (b"GIF87a", "GIF image data, version 87a", "image/gif"),
    (b"%PDF-", "PDF document", "application/pdf"),
    (b"PK\x03\x04", "Zip archive data", "application/zip"),
    (b"PK\x05\x06", "Zip archive data (empty)", "application/zip"),
    (b"\x1f\x8b", "gzip compressed data", "application/gzip"),
    (b"BZh", "bzip2 compressed data", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "XZ compressed data", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "Zstandard compressed data", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "7-zip archive data", "application/x-7z-compressed"),
    (b"SQLite format 3\0", "SQLite 3.x database", "application/vnd.sqlite3"),
    (b"\0asm\x01\0\0\0", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"),
    (b"\x7fELF\x02\x01", "ELF 64-bit LSB", "application/x-executable"),
    (b"\x7fELF\x01\x01", "ELF 32-bit LSB", "application/x-executable"),
    (b"RIFF", "RIFF (little-endian) data", "application/octet-stream"),
    (b"OggS", "Ogg data", "application/ogg"),
    (b"ID3", "Audio file with ID3", "audio/mpeg"),
    (b"!<arch>\n", "current ar archive", "application/x-archive"),
];

/// Interpreters of scripts by name, with what `file` calls them.
const SCRIPTS: &[(&str, &str, &str)] = &[
    ("bash", "Bourne-Again shell script", "text/x-shellscript"),
    ("sh", "POSIX shell script", "text/x-shellscript"),
    ("dash", "POSIX shell script", "text/x-shellscript"),
    ("zsh", "Paul Falstad's zsh script", "text/x-shellscript"),
    ("python", "Python script", "text/x-script.python"),
    ("python3", "Python script", "text/x-script.python"),
    ("perl", "Perl script text executable", "text/x-perl"),
    ("node", "Node.js script", "application/javascript"),
    ("ruby", "Ruby script", "text/x-ruby"),
    ("awk", "awk script", "text/x-awk"),
];

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let mut operands = parsed.operands.clone();
    let mut separator = b":".to_vec();
    for (letter, text) in &parsed.options {
        let text = text.clone().unwrap_or_default();
        match letter {
            'f' => {
                let list = input::read("file", &text).ok_or(1)?;
                let names = list.split(|&byte| byte == b'\n').filter(|name| !name.is_empty());
                operands.splice(0..0, names.map(<[u8]>::to_vec));
            }
            'F' => separator = text,
            _ => {}
        }
    }
    if operands.is_empty() {
        return Err(TOOL.wrong("missing file operand"));
    }
    let widest = operands.iter().map(|name| String::from_utf8_lossy(name).chars().count()).max().unwrap_or(0);
    let mut out = Out::new("file");
    for name in &operands {
        let kind = kind_of(name, has('L'));
        let shown = match (has('i'), has('m'), has('e')) {
            _ if kind.mime == CANNOT_OPEN => kind.words,
            (true, _, _) => format!("{}; charset={}", kind.mime, kind.encoding),
            (_, true, _) => kind.mime.to_owned(),
            (_, _, true) => kind.encoding.to_owned(),
            _ => kind.words,
        };
        if !has('b') {
            let length = String::from_utf8_lossy(name).chars().count();
            out.put([&name[..], &separator, &vec![b' '; widest - length + 1]].concat());
        }
        out.put(shown + "\n");
    }
    Ok(0)
}

/// What stands for the type of a file that cannot be read.
const CANNOT_OPEN: &str = "cannot open";

fn kind_of(name: &[u8], follow: bool) -> Kind {
    let plain = |words: String, mime| Kind { words, mime, encoding: "binary" };
    let cannot = |error: Errno| {
        let name = String::from_utf8_lossy(name);
        plain(format!("cannot open `{name}' ({error})"), CANNOT_OPEN)
    };
    if name == b"-" {
        return content_kind(&files::read_fd(0).unwrap_or_default());
    }
    let stat = match abi::stat(Dir::CWD, name, follow) {
        Ok(stat) => stat,
        Err(error) => return cannot(error),
    };
    match stat.kind() {
        0o040_000 => plain("directory".to_owned(), "inode/directory"),
        0o010_000 => plain("fifo (named pipe)".to_owned(), "inode/fifo"),
        0o140_000 => plain("socket".to_owned(), "inode/socket"),
        0o020_000 => {
            let (major, minor) = toolkit::size::device(stat.rdev);
            plain(format!("character special ({major}/{minor})"), "inode/chardevice")
        }
        0o120_000 => {
            let target = files::link_target(name).unwrap_or_default();
            let broken = abi::stat(Dir::CWD, name, true).is_err();
            let what = if broken { "broken symbolic link to" } else { "symbolic link to" };
            plain(format!("{what} {}", String::from_utf8_lossy(&target)), "inode/symlink")
        }
        _ => {
            let mut content = Vec::new();
            let opened = std::fs::File::open(files::path(name));
            match opened.and_then(|file| file.take(1 << 20).read_to_end(&mut content)) {
                Ok(_) => content_kind(&content),
                Err(error) => cannot(Errno::from(error)),
            }
        }
    }
}

fn content_kind(content: &[u8]) -> Kind {
    if content.is_empty() {
        return Kind { words: "empty".to_owned(), mime: "inode/x-empty", encoding: "binary" };
    }
    if let Some((_, words, mime)) = BEGINNINGS.iter().find(|(start, _, _)| content.starts_with(start)) {
        return Kind { words: (*words).to_owned(), mime, encoding: "binary" };
    }
    if content.get(257..262) == Some(b"ustar") {
        let gnu = content.get(262..264) == Some(b"  ");
        let words = if gnu { "POSIX tar archive (GNU)" } else { "POSIX tar archive" };
        return Kind { words: words.to_owned(), mime: "application/x-tar", encoding: "binary" };
    }
    text_kind(content).unwrap_or(Kind {
        words: "data".to_owned(),
        mime: "application/octet-stream",
        encoding: "binary",
    })
}

/// Text, if there is nothing in it that no text has.
fn text_kind(content: &[u8]) -> Option<Kind> {
    let is_text = |byte: &u8| *byte >= 0x20 && *byte != 0x7f || matches!(byte, 7..=13 | 0x1b);
    if !content.iter().all(is_text) {
        return None;
    }
    let (name, encoding) = match (content.is_ascii(), std::str::from_utf8(content)) {
        (true, _) => ("ASCII text", "us-ascii"),
        (_, Ok(_)) if content.starts_with("\u{feff}".as_bytes()) => {
            ("Unicode text, UTF-8 (with BOM) text", "utf-8")
        }
        (_, Ok(_)) => ("Unicode text, UTF-8 text", "utf-8"),
        _ => ("ISO-8859 text", "iso-8859-1"),
    };
    let details = details_of(content);
    let first = content.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if let Some(line) = first.strip_prefix(b"#!") {
        let (what, mime) = script_kind(line);
        let words = match what.ends_with("executable") {
            true => what,
            false => format!("{what}, {name} executable{details}"),
        };
        return Some(Kind { words, mime, encoding });
    }
    let start = content.trim_ascii_start();
    if looks_like_json(start, content) {
        return Some(Kind { words: "JSON text data".to_owned(), mime: "application/json", encoding });
    }
    if start.starts_with(b"<?xml ") {
        return Some(Kind {
            words: format!("XML 1.0 document, {name}{details}"),
            mime: "text/xml",
            encoding,
        });
    }
    let lower = start[..start.len().min(64)].to_ascii_lowercase();
    if lower.starts_with(b"<!doctype html") || lower.starts_with(b"<html") {
        return Some(Kind { words: format!("HTML document, {name}{details}"), mime: "text/html", encoding });
    }
    Some(Kind { words: format!("{name}{details}"), mime: "text/plain", encoding })
}

fn details_of(content: &[u8]) -> String {
    let lines: Vec<&[u8]> = content.split_inclusive(|&byte| byte == b'\n').collect();
    let crlf = lines.iter().filter(|line| line.ends_with(b"\r\n")).count();
    let lf = lines.iter().filter(|line| line.ends_with(b"\n")).count() - crlf;
    let mut details = String::new();
    let longest = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    if longest > 300 {
        details += &format!(", with very long lines ({})", longest - 1);
    }
    details += match (crlf, lf) {
        (0, 0) => ", with no line terminators",
        (0, _) => "",
        (_, 0) => ", with CRLF line terminators",
        _ => ", with CRLF, LF line terminators",
    };
    details
}

fn script_kind(line: &[u8]) -> (String, &'static str) {
    let text = String::from_utf8_lossy(line).trim().to_owned();
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = match base(program).as_str() {
        "env" => words.find(|word| !word.starts_with('-')).map(base).unwrap_or_default(),
        name => name.to_owned(),
    };
    match SCRIPTS.iter().find(|(known, _, _)| *known == name) {
        Some((_, what, mime)) => ((*what).to_owned(), mime),
        None => (format!("a {text} script"), "text/plain"),
    }
}

/// Brackets that belong together around something that has what JSON has.
fn looks_like_json(start: &[u8], content: &[u8]) -> bool {
    let end = content.trim_ascii_end().last();
    match start {
        [b'{', rest @ ..] => {
            let inner = rest.trim_ascii_start().first();
            end == Some(&b'}')
                && matches!(inner, Some(b'"' | b'}'))
                && (rest.contains(&b':') || rest.len() < 4)
        }
        [b'[', rest @ ..] => {
            let inner = rest.trim_ascii_start().first();
            end == Some(&b']') && inner.is_some_and(|byte| b"{[\"]-0123456789tfn".contains(byte))
        }
        _ => false,
    }
}
