//! Configuration files: an option in each line.

use super::options::{Parsed, Wrong};
use super::table::Takes;
use super::values::text;
use super::{data, table};

/// Reads a configuration file; `-` is standard input.
pub fn read(parsed: &mut Parsed, file: &[u8], shown: &str) -> Result<(), Wrong> {
    let content = data::read_file(file).map_err(|_| {
        let name = text(file);
        Wrong::Said(
            format!("cannot read config from '{name}'\ncurl: option {shown}: error encountered when reading a file"),
            26,
        )
    })?;
    let name = if file == b"-" { "<stdin>".to_owned() } else { text(file) };
    take(parsed, &text(&content), &name)
}

fn take(parsed: &mut Parsed, content: &str, name: &str) -> Result<(), Wrong> {
    parsed.depth += 1;
    for (at, line) in content.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let end = line.find(|letter: char| letter.is_whitespace() || letter == '=' || letter == ':');
        // `-:` is an option and no separator.
        let end = if line.starts_with("-:") { Some(2) } else { end };
        let (option, rest) = line.split_at(end.unwrap_or(line.len()));
        let rest = rest.trim_start();
        let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start();
        option_line(parsed, option, &unquoted(rest), &format!("{name}:{}", at + 1))?;
    }
    parsed.depth -= 1;
    Ok(())
}

fn option_line(parsed: &mut Parsed, option: &str, value: &str, place: &str) -> Result<(), Wrong> {
    let warn = |parsed: &mut Parsed, words: &str| {
        parsed.warnings.push(format!("{place}: warning: '{option}' {words}"));
    };
    if let Some(letters) = option.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
        let mut words = vec![format!("-{letters}").into_bytes()];
        let takes = letters
            .chars()
            .next()
            .and_then(table::by_letter)
            .is_some_and(|known| known.takes == Takes::Value);
        if takes && !value.is_empty() {
            words.push(value.as_bytes().to_vec());
        }
        return parsed.arguments(words);
    }
    let bare = option.strip_prefix("--").unwrap_or(option);
    match parsed.find(bare, &format!("--{bare}")) {
        Ok((known, on)) => {
            if known.takes == Takes::Value && value.is_empty() {
                warn(parsed, "requires parameter");
                return Ok(());
            }
            parsed.apply(known.name, on, value.as_bytes().to_vec(), &format!("--{bare}"))
        }
        Err(Wrong::Option(_, words)) => {
            warn(parsed, words);
            Ok(())
        }
        Err(wrong) => Err(wrong),
    }
}

/// A value, which may stand in quotes with escapes, else ends at a blank.
fn unquoted(text: &str) -> String {
    let Some(inner) = text.strip_prefix('"') else {
        return text.split_whitespace().next().unwrap_or_default().to_owned();
    };
    let mut value = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next() {
                Some('t') => value.push('\t'),
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('v') => value.push('\u{b}'),
                Some(other) => value.push(other),
                None => {}
            },
            letter => value.push(letter),
        }
    }
    value
}

/// Reads the user's own file, if there is one.
pub fn read_default(parsed: &mut Parsed) -> Result<(), Wrong> {
    let Some(home) = std::env::var_os("HOME") else { return Ok(()) };
    let path = toolkit::files::join(home.as_encoded_bytes(), b".curlrc");
    match data::read_file(&path) {
        Ok(content) => take(parsed, &text(&content), &text(&path)),
        Err(_) => Ok(()),
    }
}
