//! Messages of commits and tags: cleaned, given or edited.

use crate::commands::program;
use crate::fail::{Res, fatal, system};
use crate::files::{self, text};
use crate::repo::Repo;

/// Removes spaces at line ends, blank lines around and doubled blank lines within; lines of comment too if asked to.
pub fn clean(message: &[u8], comments: bool) -> Vec<u8> {
    let mut clean: Vec<u8> = Vec::new();
    let mut blank = false;
    for line in message.split(|&byte| byte == b'\n') {
        if comments && line.first() == Some(&b'#') {
            continue;
        }
        let line = line.trim_ascii_end();
        if line.is_empty() {
            blank = true;
            continue;
        }
        if blank && !clean.is_empty() {
            clean.push(b'\n');
        }
        blank = false;
        clean.extend_from_slice(line);
        clean.push(b'\n');
    }
    clean
}

/// The message by `-m` and `-F`: several become paragraphs.
pub fn given(texts: &[Vec<u8>], file: Option<&[u8]>) -> Res<Option<Vec<u8>>> {
    if let Some(file) = file {
        let content = match file {
            b"-" => toolkit::files::read_fd(0).map_err(|error| {
                crate::fail::Fail::Fatal(format!(
                    "could not read log from standard input: {}",
                    error.message()
                ))
            })?,
            file => {
                files::read(file).map_err(system(format_args!("could not read log file '{}'", text(file))))?
            }
        };
        return Ok(Some(content));
    }
    if texts.is_empty() {
        return Ok(None);
    }
    let mut message = Vec::new();
    for text in texts {
        if !message.is_empty() {
            message.push(b'\n');
        }
        message.extend_from_slice(text);
        if !text.ends_with(b"\n") {
            message.push(b'\n');
        }
    }
    Ok(Some(message))
}

/// Lets the user edit a message; answers what is left of it.
pub fn edited(repo: &Repo, file: &str, start: &[u8], comments: &[u8]) -> Res<Vec<u8>> {
    let name = repo.own(file);
    let mut content = start.to_vec();
    if !content.is_empty() && !content.ends_with(b"\n") {
        content.push(b'\n');
    }
    content.push(b'\n');
    for line in comments.strip_suffix(b"\n").unwrap_or(comments).split(|&byte| byte == b'\n') {
        let gap: &[u8] = if line.is_empty() || line.starts_with(b"\t") { b"" } else { b" " };
        content.extend_from_slice(&[b"#", gap, line, b"\n"].concat());
    }
    files::write(&name, &content)?;
    program::edit(repo, &name)?;
    match files::read(&name) {
        Ok(content) => Ok(clean(&content, true)),
        Err(_) => fatal!("could not read commit message: No such file or directory"),
    }
}
