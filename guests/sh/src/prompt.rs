//! Prompts: `PS4` and `${x@P}`.

use crate::shell::Shell;

impl Shell {
    /// A prompt's backslash escapes, then its expansions.
    pub fn expand_prompt(&mut self, text: &[u8]) -> Vec<u8> {
        let decoded = if text.contains(&b'\\') { self.prompt_escapes(text) } else { text.to_vec() };
        if !decoded.iter().any(|byte| matches!(byte, b'$' | b'`')) {
            return decoded;
        }
        match crate::parser::parse_quoted(decoded.clone(), &self.dialect()) {
            Ok(word) => self.expand_string(&word).unwrap_or(decoded),
            Err(_) => decoded,
        }
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
                b'w' => out.extend(self.short_directory()),
                b'W' => {
                    let path = self.short_directory();
                    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                    out.extend_from_slice(if path == b"/" { b"/" } else { last });
                }
                b'$' => out.push(if wardian_abi::getuid() == 0 { b'#' } else { b'$' }),
                b's' => {
                    out.extend_from_slice(self.name.rsplit(|&byte| byte == b'/').next().unwrap_or_default())
                }
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
                b'[' | b']' => {}
                b'!' | b'#' => out.extend_from_slice((self.history.len() + 1).to_string().as_bytes()),
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
}
