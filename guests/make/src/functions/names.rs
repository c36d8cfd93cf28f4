//! Functions of file names.

use wardian_abi::{self as abi, Dir};

use crate::text;
use crate::wildcard as pattern;

fn each(arguments: &[Vec<u8>], act: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    text::join(text::words(&arguments[0]).filter_map(act))
}

pub fn dir(arguments: &[Vec<u8>]) -> Vec<u8> {
    each(arguments, |word| match text::split_path(word).0 {
        b"" => Some(b"./".to_vec()),
        directory => Some(directory.to_vec()),
    })
}

pub fn notdir(arguments: &[Vec<u8>]) -> Vec<u8> {
    // A path that ends in a slash leaves an empty word.
    let words: Vec<&[u8]> = text::words(&arguments[0]).map(|word| text::split_path(word).1).collect();
    words.join(&b' ')
}

/// Where the suffix of a path begins.
fn suffix_at(path: &[u8]) -> Option<usize> {
    let (directory, file) = text::split_path(path);
    file.iter().rposition(|&byte| byte == b'.').map(|at| directory.len() + at)
}

pub fn suffix(arguments: &[Vec<u8>]) -> Vec<u8> {
    each(arguments, |word| suffix_at(word).map(|at| word[at..].to_vec()))
}

pub fn basename(arguments: &[Vec<u8>]) -> Vec<u8> {
    each(arguments, |word| Some(word[..suffix_at(word).unwrap_or(word.len())].to_vec()))
}

pub fn abspath(arguments: &[Vec<u8>]) -> Vec<u8> {
    each(arguments, |word| Some(absolute(word)))
}

/// A path from the root, without `.`, `..` and double slashes, whatever the files are.
fn absolute(path: &[u8]) -> Vec<u8> {
    let from = match path.starts_with(b"/") {
        true => Vec::new(),
        false => abi::getcwd().unwrap_or_default(),
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in from.split(|&byte| byte == b'/').chain(path.split(|&byte| byte == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    [b"/", &parts.join(&b'/')[..]].concat()
}

pub fn realpath(arguments: &[Vec<u8>]) -> Vec<u8> {
    each(arguments, |word| {
        abi::stat(Dir::CWD, word, true).ok()?;
        Some(toolkit::files::resolve(word))
    })
}

pub fn wildcard(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::join(text::words(&arguments[0]).flat_map(pattern::existing))
}
