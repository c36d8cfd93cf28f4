//! `-printf` and `-ls`.

use super::File;
use super::test::{Finder, kind};
use toolkit::clock;
use toolkit::size::device;
use toolkit::{files, mode, quote};
use wardian_abi as abi;
use wardian_abi::Dir;

/// A part of a format.
pub enum Piece {
    Text(Vec<u8>),
    Field { left: bool, zero: bool, width: usize, precision: Option<usize>, letter: u8, time: u8 },
}

impl Piece {
    /// Whether it needs more of a file than its name and kind.
    pub fn takes_a_look(&self) -> bool {
        matches!(self, Piece::Field { letter, .. } if !b"pfhPHdyYl".contains(letter))
    }
}

/// Takes a format apart. What is no directive stands for itself.
pub fn parse(format: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = format;
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'\\' if rest.first() == Some(&b'c') => break,
            b'\\' => text.extend(escape(&mut rest)),
            b'%' if rest.first() == Some(&b'%') => {
                text.push(b'%');
                rest = &rest[1..];
            }
            b'%' => match field(&mut rest) {
                Some(field) => pieces.extend([Piece::Text(std::mem::take(&mut text)), field]),
                None => text.push(b'%'),
            },
            byte => text.push(*byte),
        }
    }
    pieces.push(Piece::Text(text));
    pieces
}

fn escape(rest: &mut &[u8]) -> Vec<u8> {
    let digits = rest.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(*byte)).count();
    if digits > 0 {
        let value = rest[..digits].iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
        *rest = &rest[digits..];
        return vec![value as u8];
    }
    let Some((&letter, after)) = rest.split_first() else { return b"\\".to_vec() };
    *rest = after;
    match letter {
        b'a' => vec![0x07],
        b'b' => vec![0x08],
        b'f' => vec![0x0c],
        b'n' => vec![b'\n'],
        b'r' => vec![b'\r'],
        b't' => vec![b'\t'],
        b'v' => vec![0x0b],
        b'\\' => vec![b'\\'],
        other => vec![b'\\', other],
    }
}

fn field(rest: &mut &[u8]) -> Option<Piece> {
    let mut at = 0;
    let (mut left, mut zero, mut width, mut precision) = (false, false, 0_usize, None);
    while let Some(flag) = rest.get(at).filter(|byte| b"-+ #0".contains(byte)) {
        left |= *flag == b'-';
        zero |= *flag == b'0';
        at += 1;
    }
    while let Some(digit) = rest.get(at).filter(|byte| byte.is_ascii_digit()) {
        width = (width * 10 + usize::from(digit - b'0')).min(4096);
        at += 1;
    }
    if rest.get(at) == Some(&b'.') {
        at += 1;
        let mut digits = 0_usize;
        while let Some(digit) = rest.get(at).filter(|byte| byte.is_ascii_digit()) {
            digits = (digits * 10 + usize::from(digit - b'0')).min(4096);
            at += 1;
        }
        precision = Some(digits);
    }
    let letter = *rest.get(at).filter(|letter| b"pfhPHdsmMyYlniuUgGtacTACBkbDFSZ".contains(letter))?;
    at += 1;
    let mut time = 0;
    if b"TAC".contains(&letter) {
        time = *rest.get(at)?;
        at += 1;
    }
    *rest = &rest[at..];
    Some(Piece::Field { left, zero, width, precision, letter, time })
}

pub fn render(pieces: &[Piece], file: &File<'_>, finder: &Finder) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text),
            Piece::Field { left, zero, width, precision, letter, time } => {
                let mut value = value(*letter, *time, file, finder);
                if let Some(most) = precision {
                    value.truncate(*most);
                }
                let missing = width.saturating_sub(value.len());
                let filler = if *zero && b"sdmnibkUG".contains(letter) { b'0' } else { b' ' };
                if *left {
                    out.extend(value);
                    out.resize(out.len() + missing, b' ');
                } else {
                    out.resize(out.len() + missing, filler);
                    out.extend(value);
                }
            }
        }
    }
    out
}

fn value(letter: u8, time: u8, file: &File<'_>, finder: &Finder) -> Vec<u8> {
    let stat = &file.stat();
    match letter {
        b'p' => file.path.to_vec(),
        b'f' if file.path.len() > 1 && file.path.ends_with(b"/") => {
            files::join(files::base_name(file.path), b"")
        }
        b'f' => files::base_name(file.path).to_vec(),
        b'h' => files::parent(file.path),
        b'P' => {
            let below = file.path.strip_prefix(file.start).unwrap_or(file.path);
            below.strip_prefix(b"/").unwrap_or(below).to_vec()
        }
        b'H' => file.start.to_vec(),
        b'd' => file.depth.to_string().into(),
        b's' => stat.size.to_string().into(),
        b'm' => format!("{:o}", stat.mode & 0o7777).into(),
        b'M' => mode::letters(stat.mode).into(),
        b'y' => vec![kind(stat)],
        b'Y' => match abi::stat(Dir::CWD, file.path, true) {
            Ok(target) => vec![kind(&target)],
            Err(abi::Errno::LOOP) => b"L".to_vec(),
            Err(_) => b"N".to_vec(),
        },
        b'l' if stat.is_symlink() => files::link_target(file.path).unwrap_or_default(),
        b'l' => Vec::new(),
        b'n' => stat.nlink.to_string().into(),
        b'i' => stat.ino.to_string().into(),
        b'u' => finder.users.show(stat.uid).into(),
        b'U' => stat.uid.to_string().into(),
        b'g' => finder.groups.show(stat.gid).into(),
        b'G' => stat.gid.to_string().into(),
        b'b' => stat.blocks.to_string().into(),
        b'k' => stat.blocks.div_ceil(2).to_string().into(),
        b'D' => stat.dev.to_string().into(),
        b'F' => b"tmpfs".to_vec(),
        b'S' => format!("{:.6}", (stat.blocks * 512) as f64 / stat.size.max(1) as f64).into(),
        b't' => finder.clock.format(stat.mtime, "%a %b %e %H:%M:%S.%N0 %Y").into(),
        b'a' => finder.clock.format(stat.atime, "%a %b %e %H:%M:%S.%N0 %Y").into(),
        b'c' => finder.clock.format(stat.ctime, "%a %b %e %H:%M:%S.%N0 %Y").into(),
        b'T' => moment(stat.mtime, time, finder),
        b'A' => moment(stat.atime, time, finder),
        b'C' => moment(stat.ctime, time, finder),
        _ => Vec::new(),
    }
}

/// One part of a time, with the fraction of a second where there are seconds.
fn moment(nanos: i64, letter: u8, finder: &Finder) -> Vec<u8> {
    let format = match letter {
        b'@' => {
            return format!("{}.{:09}0", nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
                .into();
        }
        b'+' => "%Y-%m-%d+%H:%M:%S.%N0".to_owned(),
        b'S' => "%S.%N0".to_owned(),
        b'T' | b'X' => "%H:%M:%S.%N0".to_owned(),
        b'r' => "%I:%M:%S.%N0 %p".to_owned(),
        b'c' => "%a %b %e %H:%M:%S %Y".to_owned(),
        b'x' | b'D' => "%m/%d/%y".to_owned(),
        letter => format!("%{}", char::from(letter)),
    };
    finder.clock.format(nanos, &format).into()
}

/// The line of `-ls`.
pub fn ls_line(file: &File<'_>, finder: &Finder) -> String {
    let stat = &file.stat();
    let size = if stat.is_char() || stat.is_block() {
        let (major, minor) = device(stat.rdev);
        format!("{major:3}, {minor:3}")
    } else {
        format!("{:8}", stat.size)
    };
    let mut name = quote::in_c(file.path, false);
    if stat.is_symlink() {
        name += &format!(" -> {}", quote::in_c(&files::link_target(file.path).unwrap_or_default(), false));
    }
    format!(
        "{:9} {:6} {} {:3} {:<8} {:<8} {size} {} {name}\n",
        stat.ino,
        stat.blocks.div_ceil(2),
        mode::letters(stat.mode),
        stat.nlink,
        finder.users.show(stat.uid),
        finder.groups.show(stat.gid),
        finder.clock.short(stat.mtime, clock::now()),
    )
}
