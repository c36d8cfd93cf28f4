//! The head of a response: its status line and headers.

use super::wire::Wire;
use super::{Error, Result};

/// The most bytes of all heads of one response, and of one line.
const MOST: usize = 300 * 1024;
const LONGEST_LINE: usize = 100 * 1024;

/// The head of a response.
#[derive(Clone, Default, Debug)]
pub struct Head {
    /// 10 for HTTP/1.0, 11 for HTTP/1.1.
    pub version: u8,
    pub status: u16,
    pub reason: String,
    /// Names and values without blanks around them, in order.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Returns the value of the first header of a name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the values of all headers of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether a header with a list has a word in it.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name).any(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
    }

    /// Whether the connection can be used for another request.
    pub fn keeps_alive(&self) -> bool {
        if self.version == 10 {
            self.lists("Connection", "keep-alive")
        } else {
            !self.lists("Connection", "close")
        }
    }
}

/// Reads a head, giving each line as it came to `each`. `spent` counts the bytes of all heads of a response.
pub fn read(wire: &mut Wire, spent: &mut usize, mut each: impl FnMut(&Head, &[u8])) -> Result<Head> {
    let mut head = Head::default();
    let mut line = Vec::new();
    let first = *spent == 0;
    let whole = match wire.read_line(&mut line, LONGEST_LINE) {
        // A line without end that does not begin as HTTP does is no head that is too long.
        Err(Error::LineTooLong) if !wire_starts_http(&line) => return Err(Error::NotHttp),
        other => other?,
    };
    if !whole && line.is_empty() && first {
        return Err(Error::Empty);
    }
    parse_status(&line, &mut head)?;
    loop {
        *spent += line.len();
        if *spent > MOST {
            return Err(Error::HeadTooLarge(*spent));
        }
        each(&head, &line);
        if line.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
            return Ok(head);
        }
        if !wire.read_line(&mut line, LONGEST_LINE)? {
            // Headers that just end are those that came; a response cut within a line ends with the connection.
            return if line.is_empty() {
                Ok(head)
            } else {
                Err(Error::Receive(wardian_abi::Errno::CONNRESET))
            };
        }
        take_header(&line, &mut head);
    }
}

fn wire_starts_http(line: &[u8]) -> bool {
    line.starts_with(b"HTTP/")
}

fn parse_status(line: &[u8], head: &mut Head) -> Result<()> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\r', '\n']);
    let rest = text.strip_prefix("HTTP/1.").ok_or(Error::NotHttp)?;
    let (minor, rest) = rest.split_once(' ').ok_or(Error::NotHttp)?;
    head.version = match minor {
        "0" => 10,
        "1" => 11,
        _ => return Err(Error::NotHttp),
    };
    let rest = rest.trim_start();
    let digits = rest.get(..3).ok_or(Error::NotHttp)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::NotHttp);
    }
    head.status = digits.parse().map_err(|_| Error::NotHttp)?;
    head.reason = rest[3..].trim().to_owned();
    Ok(())
}

fn take_header(line: &[u8], head: &mut Head) {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\r', '\n']);
    if text.starts_with([' ', '\t']) {
        // A header that goes on in the next line, as older servers write them.
        if let Some((_, value)) = head.headers.last_mut() {
            value.push(' ');
            value.push_str(text.trim());
        }
        return;
    }
    if let Some((name, value)) = text.split_once(':') {
        head.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
}
