//! File names from patterns.

use super::sink::{Field, is_special};
use crate::pattern::{Pattern, Style};
use crate::shell::{Exec, Flow, Shell};
use wardian_abi as abi;

impl Shell {
    /// The files a field names, or the field itself.
    pub(super) fn expand_pathname(&mut self, field: Field, out: &mut Vec<Vec<u8>>) -> Exec<()> {
        if self.options.noglob || !self.may_match(&field) {
            out.push(field.text);
            return Ok(());
        }
        let pattern = as_pattern(&field);
        let mut found = self.glob(&pattern);
        self.leave_out_ignored(&mut found);
        if found.is_empty() {
            if self.shopt.get("failglob") {
                self.complain_parts(&[b"no match: ", &field.text]);
                return Err(Flow::Discard(1));
            }
            if !self.shopt.get("nullglob") {
                out.push(field.text);
            }
            return Ok(());
        }
        out.append(&mut found);
        Ok(())
    }

    /// Drops what `GLOBIGNORE` names.
    fn leave_out_ignored(&self, found: &mut Vec<Vec<u8>>) {
        let Some(ignored) = self.vars.text(b"GLOBIGNORE").filter(|text| !text.is_empty()) else { return };
        let style = self.glob_style();
        let parts = |text: &[u8]| -> Vec<Pattern> {
            text.split(|&byte| byte == b'/').map(|part| Pattern::new(part, style)).collect()
        };
        let patterns: Vec<_> = split_patterns(ignored).into_iter().map(parts).collect();
        found.retain(|path| !patterns.iter().any(|pattern| matches_parts(pattern, path)));
    }

    fn may_match(&self, field: &Field) -> bool {
        // A backslash that came out of an expansion takes the meaning of what follows it.
        let escaped = |at: &usize| *at > 0 && field.text[at - 1] == b'\\' && field.active.contains(&(at - 1));
        let byte = |at: &usize| if escaped(at) { 0 } else { field.text.get(*at).copied().unwrap_or(0) };
        // Brackets never match a slash, so those with one inside are no pattern.
        let mut active = field.active.iter();
        let closed = |open: &usize| {
            let close = field.active.iter().find(|at| *at > open && byte(at) == b']')?;
            (!field.text[*open..*close].contains(&b'/')).then_some(())
        };
        let opens = active.any(|at| byte(at) == b'[' && closed(at).is_some());
        opens
            || field.active.iter().any(|at| {
                matches!(byte(at), b'*' | b'?')
                    || (byte(at) == b'(' && *at > 0 && matches!(field.text[at - 1], b'@' | b'!' | b'+'))
            })
    }

    fn glob_style(&self) -> Style {
        Style { extended: self.shopt.get("extglob"), fold: self.shopt.get("nocaseglob"), utf8: self.utf8() }
    }

    /// Paths that match, in order.
    pub fn glob(&self, pattern: &[u8]) -> Vec<Vec<u8>> {
        let walk = Walk {
            style: self.glob_style(),
            dots: self.shopt.get("dotglob")
                || self.vars.text(b"GLOBIGNORE").is_some_and(|text| !text.is_empty()),
            stars: self.shopt.get("globstar"),
            skip_dots: self.shopt.get("globskipdots"),
        };
        let mut components: Vec<&[u8]> = pattern.split(|&byte| byte == b'/').collect();
        // A second `**` finds nothing that the first does not.
        let count = components.len();
        components.dedup_by(|next, last| walk.stars && *next == b"**" && *last == b"**");
        let mut out = Vec::new();
        walk.step(Vec::new(), &components, components.len() < count, &mut out);
        out.sort_unstable();
        out
    }
}

/// Patterns between colons, except for those in `[:alpha:]`.
fn split_patterns(text: &[u8]) -> Vec<&[u8]> {
    let (mut patterns, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'[' if text[at + 1..].first() == Some(&b':') => {
                let close = crate::pattern::find(&text[at + 2..], b":]");
                at += close.map_or(0, |offset| offset + 3);
            }
            b':' => {
                patterns.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    patterns.push(&text[start..]);
    patterns
}

/// Whether the parts of a path match one by one: a star does not reach over a slash.
fn matches_parts(patterns: &[Pattern], path: &[u8]) -> bool {
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    parts.len() == patterns.len() && patterns.iter().zip(parts).all(|(pattern, part)| pattern.matches(part))
}

/// A field as a pattern: its characters that are not special are escaped.
fn as_pattern(field: &Field) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(field.text.len());
    let mut active = field.active.iter().peekable();
    for (at, &byte) in field.text.iter().enumerate() {
        let is_active = active.next_if(|next| **next == at).is_some();
        if !is_active && is_special(byte) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern
}

struct Walk {
    style: Style,
    dots: bool,
    stars: bool,
    /// `.` and `..` are never found.
    skip_dots: bool,
}

impl Walk {
    /// Goes on below `base` with the components left; `found` says that a pattern led there.
    fn step(&self, base: Vec<u8>, components: &[&[u8]], found: bool, out: &mut Vec<Vec<u8>>) {
        let Some((&first, rest)) = components.split_first() else {
            out.push(base);
            return;
        };
        if first == b"**" && self.stars {
            return self.all_below(&base, rest, found, out);
        }
        if !has_special(first) {
            let mut path = base;
            let plain = unescape(first);
            // A backslash before the slash means no more than the slash.
            let escapes =
                !rest.is_empty() && first.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
            path.extend_from_slice(if escapes { &plain[..plain.len() - 1] } else { &plain });
            return self.descend(path, rest, found, true, out);
        }
        let pattern = Pattern::new(first, self.style);
        let mut names = list_directory(&base);
        if !self.skip_dots {
            names.extend([b".".to_vec(), b"..".to_vec()]);
        }
        for name in names {
            // What begins with a dot is found by one that is written, unless all is wanted.
            let needs_dot = !self.dots && name.starts_with(b".") || matches!(name.as_slice(), b"." | b"..");
            let matches = if needs_dot { pattern.matches_dotted(&name) } else { pattern.matches(&name) };
            if !matches {
                continue;
            }
            let mut path = base.clone();
            path.extend_from_slice(&name);
            self.descend(path, rest, true, false, out);
        }
    }

    /// A component is done; with more to come it must be a directory. `check`: a plain name may not exist.
    fn descend(&self, mut path: Vec<u8>, rest: &[&[u8]], found: bool, check: bool, out: &mut Vec<Vec<u8>>) {
        if rest.is_empty() {
            if !check || path.ends_with(b"/") || exists(&path) {
                out.push(path);
            }
            return;
        }
        let root = path.is_empty();
        if !root && !is_directory(&path) {
            return;
        }
        path.push(b'/');
        self.step(path, rest, found, out);
    }

    /// `**`: this directory and all below it.
    fn all_below(&self, base: &[u8], rest: &[&[u8]], found: bool, out: &mut Vec<Vec<u8>>) {
        if !rest.is_empty() {
            self.step(base.to_vec(), rest, true, out);
        } else if !base.is_empty() {
            // As bash has it, a directory that a pattern found stands without its slash.
            out.push(if found { base.strip_suffix(b"/").unwrap_or(base) } else { base }.to_vec());
        }
        for name in list_directory(base) {
            if name.starts_with(b".") && !self.dots {
                continue;
            }
            let path = [base, &name].concat();
            let plain = abi::stat(abi::Dir::CWD, &path, false);
            let directory = plain.is_ok_and(|stat| stat.is_dir());
            if rest.is_empty() {
                out.push(path.clone());
            }
            // A link to a directory is one, but what is below it is not looked at.
            if !directory && rest == [b"".as_slice()] && is_directory(&path) {
                out.push([path.as_slice(), b"/"].concat());
            }
            if directory {
                let below = [path.as_slice(), b"/"].concat();
                if rest.is_empty() {
                    self.entries_below(&below, out)
                } else {
                    self.all_below(&below, rest, true, out)
                }
            }
        }
    }

    fn entries_below(&self, base: &[u8], out: &mut Vec<Vec<u8>>) {
        for name in list_directory(base) {
            if name.starts_with(b".") && !self.dots {
                continue;
            }
            let path = [base, &name].concat();
            let directory = abi::stat(abi::Dir::CWD, &path, false).is_ok_and(|stat| stat.is_dir());
            out.push(path.clone());
            if directory {
                self.entries_below(&[path.as_slice(), b"/"].concat(), out);
            }
        }
    }
}

fn has_special(component: &[u8]) -> bool {
    let mut at = 0;
    while at < component.len() {
        match component[at] {
            b'\\' => at += 1,
            b'*' | b'?' | b'[' => return true,
            b'(' if at > 0 && matches!(component[at - 1], b'@' | b'!' | b'+') => return true,
            _ => {}
        }
        at += 1;
    }
    false
}

fn unescape(component: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(component.len());
    let mut bytes = component.iter();
    while let Some(&byte) = bytes.next() {
        out.push(if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte });
    }
    out
}

fn exists(path: &[u8]) -> bool {
    abi::stat(abi::Dir::CWD, path, false).is_ok()
}

fn is_directory(path: &[u8]) -> bool {
    abi::stat(abi::Dir::CWD, path, true).is_ok_and(|stat| stat.is_dir())
}

/// The names in a directory, without `.` and `..`; empty stands for the working directory.
pub fn list_directory(path: &[u8]) -> Vec<Vec<u8>> {
    #[cfg(unix)]
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    #[cfg(target_os = "wasi")]
    use std::os::wasi::ffi::{OsStrExt, OsStringExt};
    let path = std::ffi::OsStr::from_bytes(if path.is_empty() { b"." } else { path });
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().into_vec()).collect()
}
