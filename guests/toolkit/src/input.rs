//! Files that tools read whole, one after the other.

use super::{complain, files, quote};
use wardian_abi::Errno;

/// The content of an operand; `-` is standard input. A complaint and `None` when it cannot be read.
pub fn read(name: &str, operand: &[u8]) -> Option<Vec<u8>> {
    let content = match operand {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    content.map_err(|error| complain(name, format_args!("{}: {error}", quote::if_needed(operand)))).ok()
}

/// The operands, or standard input where there are none.
pub fn or_stdin(operands: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if operands.is_empty() { vec![b"-".to_vec()] } else { operands }
}

/// A number with nothing around it.
pub fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// As [`read`], in the words of util-linux.
pub fn read_to_open(name: &str, operand: &[u8]) -> Option<Vec<u8>> {
    let content = match operand {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    let named = String::from_utf8_lossy(operand);
    content.map_err(|error| complain(name, format_args!("cannot open {named}: {error}"))).ok()
}
