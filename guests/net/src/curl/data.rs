//! Data of requests from the command line.

use crate::http::{date, url};
use wardian_abi::Errno;

/// Reads a file whole, or standard input for `-`.
pub fn read_file(name: &[u8]) -> Result<Vec<u8>, Errno> {
    match name {
        b"-" => toolkit::files::read_fd(0),
        name => Ok(std::fs::read(toolkit::files::path(name))?),
    }
}

/// What an option of `-d` and its like means; the error is a warning.
pub fn read(option: &str, value: &[u8], reads_input: &mut bool) -> Result<Vec<u8>, String> {
    match option {
        "data-raw" => Ok(value.to_vec()),
        "data-urlencode" => urlencode(value, reads_input),
        "url-query" => match value.strip_prefix(b"+") {
            Some(plain) => Ok(plain.to_vec()),
            None => urlencode(value, reads_input),
        },
        _ => match value.strip_prefix(b"@") {
            Some(file) => {
                let mut content = content_of(file, reads_input)?;
                if matches!(option, "data" | "data-ascii") {
                    content.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                }
                Ok(content)
            }
            None => Ok(value.to_vec()),
        },
    }
}

fn content_of(file: &[u8], reads_input: &mut bool) -> Result<Vec<u8>, String> {
    *reads_input |= file == b"-";
    let name = String::from_utf8_lossy(file);
    read_file(file).map_err(|_| format!("Couldn't read data from file \"{name}\", this makes an empty POST."))
}

/// `content`, `=content`, `name=content`, `@file`, `name@file`, with the content encoded.
fn urlencode(value: &[u8], reads_input: &mut bool) -> Result<Vec<u8>, String> {
    let at = value.iter().position(|&byte| byte == b'=').or(value.iter().position(|&byte| byte == b'@'));
    let (name, content) = match at {
        Some(at) if value[at] == b'=' => (&value[..at], value[at + 1..].to_vec()),
        Some(at) => (&value[..at], content_of(&value[at + 1..], reads_input)?),
        None => (&value[..0], value.to_vec()),
    };
    let mut text = name.to_vec();
    if !name.is_empty() {
        text.push(b'=');
    }
    text.extend_from_slice(url::encode(&content).replace("%20", "+").as_bytes());
    Ok(text)
}

/// The moment of `-z`, and whether it is a file's or a date's newest (`true`) or oldest (`false`).
pub fn time_condition(value: &[u8]) -> Option<(bool, i64)> {
    let (newer, value) = match value {
        [b'+', rest @ ..] => (true, rest),
        [b'-', rest @ ..] => (false, rest),
        value => (true, value),
    };
    let moment = date::parse(&String::from_utf8_lossy(value)).or_else(|| {
        let stat = wardian_abi::stat(wardian_abi::Dir::CWD, value, true).ok()?;
        Some(stat.mtime / 1_000_000_000)
    })?;
    Some((newer, moment))
}
