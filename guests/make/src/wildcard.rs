//! File names with `*`, `?` and `[…]`.

use toolkit::{files, glob};
use wardian_abi::{self as abi, Dir};

/// Whether a word is a pattern of file names.
pub fn is_pattern(word: &[u8]) -> bool {
    word.iter().any(|byte| b"*?[".contains(byte))
}

/// The files that a word means and that exist, sorted.
pub fn existing(word: &[u8]) -> Vec<Vec<u8>> {
    let word = home(word);
    if !is_pattern(&word) {
        let there = abi::stat(Dir::CWD, &word, false).is_ok();
        return if there { vec![word] } else { Vec::new() };
    }
    let (start, rest) = match word.iter().position(|&byte| byte != b'/') {
        Some(0) | None => (Vec::new(), &word[..]),
        Some(at) => (word[..at].to_vec(), &word[at..]),
    };
    let parts: Vec<&[u8]> = rest.split(|&byte| byte == b'/').collect();
    let mut found = Vec::new();
    walk(&start, &parts, &mut found);
    found.sort_unstable();
    found
}

/// The files that a word of a rule means: itself if there are none.
pub fn or_itself(word: &[u8]) -> Vec<Vec<u8>> {
    if !is_pattern(word) {
        return vec![home(word)];
    }
    let found = existing(word);
    if found.is_empty() { vec![word.to_vec()] } else { found }
}

fn walk(above: &[u8], parts: &[&[u8]], found: &mut Vec<Vec<u8>>) {
    let Some((part, rest)) = parts.split_first() else {
        found.push(above.to_vec());
        return;
    };
    let below = |name: &[u8]| {
        let slash: &[u8] = if above.is_empty() || above.ends_with(b"/") { b"" } else { b"/" };
        [above, slash, name].concat()
    };
    if part.is_empty() && rest.is_empty() {
        // A pattern that ends in a slash means directories.
        if abi::stat(Dir::CWD, above, true).is_ok_and(|stat| stat.is_dir()) {
            found.push([above, b"/"].concat());
        }
    } else if !is_pattern(part) {
        let path = below(part);
        if abi::stat(Dir::CWD, &path, false).is_ok() {
            walk(&path, rest, found);
        }
    } else {
        let directory: &[u8] = if above.is_empty() { b"." } else { above };
        for name in files::names_in(directory).unwrap_or_default() {
            let hidden = name.starts_with(b".") && !part.starts_with(b".");
            if !hidden && glob::matches(part, &name, false) {
                walk(&below(&name), rest, found);
            }
        }
    }
}

/// A leading `~` as the user's directory.
fn home(word: &[u8]) -> Vec<u8> {
    match word.strip_prefix(b"~") {
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => {
            let home = std::env::var_os("HOME").unwrap_or_default();
            [home.as_encoded_bytes(), rest].concat()
        }
        _ => word.to_vec(),
    }
}
