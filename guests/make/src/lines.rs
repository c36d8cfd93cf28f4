//! A makefile cut into logical lines: a backslash at the end of one continues it.

use crate::text;

/// The lines of a text.
pub struct Lines<'a> {
    text: &'a [u8],
    /// The number of the next line.
    next: usize,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a [u8], first: usize) -> Lines<'a> {
        Lines { text, next: first }
    }

    /// The number of the line that comes next.
    pub fn number(&self) -> usize {
        self.next
    }

    /// The next logical line, with the breaks inside it, and the number of its first line.
    pub fn next(&mut self) -> Option<(&'a [u8], usize)> {
        if self.text.is_empty() {
            return None;
        }
        let (number, mut end) = (self.next, 0);
        loop {
            let stop = self.text[end..].iter().position(|&byte| byte == b'\n');
            let line_end = stop.map_or(self.text.len(), |at| end + at);
            self.next += 1;
            let line = &self.text[..line_end];
            let backslashes = line.iter().rev().take_while(|&&byte| byte == b'\\').count();
            if stop.is_none() {
                self.text = b"";
                return Some((line, number));
            }
            if backslashes % 2 == 0 || line_end + 1 == self.text.len() {
                self.text = &self.text[line_end + 1..];
                return Some((line, number));
            }
            end = line_end + 1;
        }
    }
}

/// A logical line in one piece: each break with the blanks around it is one blank.
pub fn collapse(line: &[u8]) -> Vec<u8> {
    if !line.contains(&b'\n') {
        return line.to_vec();
    }
    let mut result: Vec<u8> = Vec::with_capacity(line.len());
    for (number, part) in line.split(|&byte| byte == b'\n').enumerate() {
        let part = if number == 0 { part } else { text::trim_start(part) };
        let continued = part.iter().rev().take_while(|&&byte| byte == b'\\').count();
        // Two backslashes before the last are one of the text.
        let kept = &part[..part.len() - continued];
        if number > 0 {
            result.push(b' ');
        }
        match continued % 2 {
            1 => {
                result.extend_from_slice(text::trim_end(kept));
                result.extend(std::iter::repeat_n(b'\\', continued / 2));
            }
            _ => result.extend_from_slice(part),
        }
    }
    result
}

/// A line without its comment; `\#` stands for `#`.
pub fn without_comment(line: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'#' => break,
            b'\\' => {
                let count = line[at..].iter().take_while(|&&byte| byte == b'\\').count();
                at += count;
                if line.get(at) != Some(&b'#') {
                    result.extend(std::iter::repeat_n(b'\\', count));
                    continue;
                }
                result.extend(std::iter::repeat_n(b'\\', count / 2));
                if count % 2 == 0 {
                    break;
                }
                result.push(b'#');
                at += 1;
            }
            b'$' => {
                let length = 1 + text::reference_length(&line[at + 1..]).unwrap_or(line.len() - at - 1);
                let end = (at + length).min(line.len());
                // A single character after `$` may well be a comment's.
                let end = if line.get(at + 1) == Some(&b'#') { at + 1 } else { end };
                result.extend_from_slice(&line[at..end]);
                at = end;
            }
            byte => {
                result.push(byte);
                at += 1;
            }
        }
    }
    result
}
