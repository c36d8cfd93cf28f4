//! Prompts: `PS4` and `${x@P}`.

use crate::shell::Shell;

impl Shell {
    /// A prompt's backslash escapes, then its expansions.
    pub fn expand_prompt(&mut self, text: &[u8]) -> Vec<u8> {
        let decoded = if text.contains(&b'\\') { self.prompt_escapes(text) } else { text.to_vec() };
        if !self.shopt.get("promptvars") || !decoded.iter().any(|byte| matches!(byte, b'$' | b'`')) {
            return decoded;
        }
        // A prompt may speak of itself.
        self.depth += 20;
        let expanded = match crate::parser::parse_quoted(decoded.clone(), &self.dialect()) {
            Ok(_) if self.depth > crate::exec::MAX_DEPTH => {
                self.complain(b"maximum prompt nesting level exceeded");
                decoded
            }
            Ok(word) => self.expand_string(&word).unwrap_or(decoded),
            Err(_) => decoded,
        };
        self.depth -= 20;
        expanded
    }

    fn prompt_escapes(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        let variable = |name: &[u8]| self.text(name).map(|text| text.to_vec()).unwrap_or_default();
        let now = crate::dynamic::since_epoch().as_secs() as i64;
        while at < text.len() {
            if text[at] != b'\\' || at + 1 == text.len() {
                out.push(text[at]);
                at += 1;
                continue;
            }
            let kind = text[at + 1];
            at += 2;
            match kind {
                b'u' => out.extend(variable(b"USER")),
                b'h' => {
                    out.extend(variable(b"HOSTNAME").split(|&byte| byte == b'.').next().unwrap_or_default())
                }
                b'H' => out.extend(variable(b"HOSTNAME")),
                b'w' => out.extend(self.trimmed_directory()),
                b'W' => {
                    let path = self.short_directory();
                    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                    out.extend_from_slice(if path == b"/" { b"/" } else { last });
                }
                b'$' => out.push(if wardian_abi::getuid() == 0 { b'#' } else { b'$' }),
                b's' => out.extend_from_slice(if self.options.posix { b"sh" } else { b"bash" }),
                b'v' => out.extend_from_slice(b"5.2"),
                b'V' => out.extend_from_slice(b"5.2.15"),
                b'j' => out.extend_from_slice(self.jobs.list.len().to_string().as_bytes()),
                b't' => out.extend(self.local_time(b"%H:%M:%S", now)),
                b'T' => out.extend(self.local_time(b"%I:%M:%S", now)),
                b'@' => out.extend(self.local_time(b"%I:%M %p", now)),
                b'A' => out.extend(self.local_time(b"%H:%M", now)),
                b'd' => out.extend(self.local_time(b"%a %b %d", now)),
                b'D' => {
                    let rest = &text[at..];
                    if rest.first() == Some(&b'{')
                        && let Some(end) = rest.iter().position(|&byte| byte == b'}')
                    {
                        out.extend(self.local_time(&rest[1..end], now));
                        at += end + 1;
                    }
                }
                b'n' => out.push(b'\n'),
                b'r' => out.push(b'\r'),
                b'a' => out.push(7),
                b'e' => out.push(27),
                b'\\' => out.push(b'\\'),
                // The host's line editor must know what takes no room.
                b'[' if self.interactive => out.push(1),
                b']' if self.interactive => out.push(2),
                b'[' | b']' => {}
                b'!' => {
                    // The command being run has its number already.
                    let next = self.history.number(self.history.len()) - usize::from(self.recorded);
                    out.extend_from_slice(next.to_string().as_bytes());
                }
                b'#' => out.extend_from_slice((self.command_number + 1).to_string().as_bytes()),
                b'l' => out.extend_from_slice(b"tty"),
                b'0'..=b'7' => {
                    at -= 1;
                    let digits =
                        text[at..].iter().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                    let shown = std::str::from_utf8(&text[at..at + digits]).unwrap_or("0");
                    out.push(u32::from_str_radix(shown, 8).unwrap_or(0) as u8);
                    at += digits;
                }
                other => out.extend_from_slice(&[b'\\', other]),
            }
        }
        out
    }

    fn short_directory(&self) -> Vec<u8> {
        let path = self.text(b"PWD").map(|text| text.to_vec()).unwrap_or_default();
        match self.text(b"HOME") {
            Some(home) if !home.is_empty() && path.starts_with(&home) => [b"~", &path[home.len()..]].concat(),
            _ => path,
        }
    }

    /// The directory as `\w` shows it: with `PROMPT_DIRTRIM` only its last parts, if that is any shorter.
    fn trimmed_directory(&self) -> Vec<u8> {
        let path = self.short_directory();
        let kept = self
            .text(b"PROMPT_DIRTRIM")
            .and_then(|text| std::str::from_utf8(&text).ok()?.parse::<usize>().ok());
        let Some(kept) = kept.filter(|kept| *kept > 0) else { return path };
        let start = if path.starts_with(b"~") {
            path.iter().position(|&byte| byte == b'/').map_or(path.len(), |at| at + 1)
        } else {
            0
        };
        let slashes: Vec<usize> = (0..path.len()).filter(|&at| path[at] == b'/').collect();
        match slashes.len().checked_sub(kept).map(|at| slashes[at]) {
            Some(tail) if tail > start + 3 => [&path[..start], b"...", &path[tail..]].concat(),
            _ => path,
        }
    }
}
