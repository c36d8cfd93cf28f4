//! Addresses of things on the web.

/// A URL, taken apart. Parts are as they were written, but for the scheme and the host, which are in small letters.
#[derive(Clone, Debug, PartialEq)]
pub struct Url {
    pub scheme: String,
    pub user: Option<String>,
    pub password: Option<String>,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: Option<u16>,
    /// Begins with `/`.
    pub path: String,
    pub query: Option<String>,
}

/// Why a text is no URL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Malformed;

impl Url {
    /// Reads a URL; one without a scheme has the given one.
    pub fn parse(text: &str, default_scheme: &str) -> Result<Url, Malformed> {
        if text.is_empty() || text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) || text.len() > 8_000_000
        {
            return Err(Malformed);
        }
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with('/') => {
                (scheme.to_ascii_lowercase(), rest.trim_start_matches('/'))
            }
            _ => (default_scheme.to_owned(), text.trim_start_matches('/')),
        };
        if scheme == "file" {
            return Url::parse_file(text);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (rest, None),
        };
        let path = if path.is_empty() { "/".to_owned() } else { path.to_owned() };
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place)?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => (Some(decode(user)), Some(decode(password))),
            None => (None, None),
        };
        Ok(Url { scheme, user, password, host: check_host(host)?, port, path, query })
    }

    fn parse_file(text: &str) -> Result<Url, Malformed> {
        let rest = text.split_once(':').map_or(text, |(_, rest)| rest);
        let path = match rest.strip_prefix("//") {
            Some(rest) => {
                let (host, path) = rest.split_at(rest.find('/').ok_or(Malformed)?);
                if !["", "localhost", "127.0.0.1"].contains(&host) {
                    return Err(Malformed);
                }
                path
            }
            None => rest,
        };
        let path = path.split('?').next().unwrap_or_default().to_owned();
        let none = String::new;
        Ok(Url {
            scheme: "file".to_owned(),
            user: None,
            password: None,
            host: none(),
            port: None,
            path,
            query: None,
        })
    }

    /// Returns the port to connect to.
    pub fn port_or_default(&self) -> u16 {
        self.port.unwrap_or(if self.scheme == "https" { 443 } else { 80 })
    }

    /// Returns the host as it stands in a URL or a header.
    pub fn host_in_brackets(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// Returns what goes into the `Host` header.
    pub fn authority(&self) -> String {
        let standard = if self.scheme == "https" { 443 } else { 80 };
        match self.port {
            Some(port) if port != standard => format!("{}:{port}", self.host_in_brackets()),
            _ => self.host_in_brackets(),
        }
    }

    /// Returns what stands in the first line of a request.
    pub fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// Returns the URL as text, without a login.
    pub fn text(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}{}", self.scheme, self.host_in_brackets(), self.target())
    }

    /// Takes `.` and `..` out of the path.
    pub fn normalize(&mut self) {
        self.path = without_dots(&self.path);
    }

    /// Returns where a link on this page leads.
    pub fn join(&self, link: &str) -> Result<Url, Malformed> {
        let link =
            encode_blanks(link.trim_matches(|letter: char| letter.is_ascii_control() || letter == ' '));
        let link = link.split('#').next().unwrap_or_default();
        if let Some((scheme, rest)) = link.split_once(':')
            && is_scheme(scheme)
        {
            // `http:path` means a path of this site to nobody any more; a scheme of another kind has no `//`.
            if !rest.starts_with('/') {
                let none = String::new;
                let scheme = scheme.to_ascii_lowercase();
                let path = rest.to_owned();
                return Ok(Url {
                    scheme,
                    user: None,
                    password: None,
                    host: none(),
                    port: None,
                    path,
                    query: None,
                });
            }
            let mut url = Url::parse(link, "http")?;
            url.normalize();
            return Ok(url);
        }
        let mut url = self.clone();
        if let Some(rest) = link.strip_prefix("//") {
            let mut url = Url::parse(&format!("{}://{rest}", self.scheme), "http")?;
            url.normalize();
            return Ok(url);
        }
        if link.is_empty() {
            return Ok(url);
        }
        let (path, query) = match link.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (link, None),
        };
        if path.starts_with('/') {
            url.path = path.to_owned();
        } else if !path.is_empty() {
            let directory = self.path.rfind('/').map_or("/", |at| &self.path[..=at]);
            url.path = format!("{directory}{path}");
        }
        url.query = query;
        url.normalize();
        Ok(url)
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.len() <= 40
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn split_port(place: &str) -> Result<(&str, Option<u16>), Malformed> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(Malformed)?;
            host.parse::<std::net::Ipv6Addr>().map_err(|_| Malformed)?;
            match rest {
                "" => (host, None),
                rest => (host, Some(rest.strip_prefix(':').ok_or(Malformed)?)),
            }
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    match port {
        None | Some("") => Ok((host, None)),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port: u16 = port.parse().map_err(|_| Malformed)?;
            Ok((host, Some(port)))
        }
        Some(_) => Err(Malformed),
    }
}

fn check_host(host: &str) -> Result<String, Malformed> {
    let host = decode(host);
    let bad = |letter: char| letter <= ' ' || "\"<>\\^`{|}[]/?#@%:".contains(letter) && letter != ':';
    if host.is_empty() || host.len() > 1024 || host.contains(bad) {
        return Err(Malformed);
    }
    Ok(old_address(&host).unwrap_or(host.to_ascii_lowercase()))
}

/// Reads the odd forms of an IPv4 address (`127.1`, `0x7f.1`, `017700000001`), as C's `inet_aton` does: what a policy
/// sees must be what is connected to.
fn old_address(host: &str) -> Option<String> {
    let number = |text: &str| match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => u32::from_str_radix(&text[2..], 16).ok(),
        [b'0', _, ..] => u32::from_str_radix(&text[1..], 8).ok(),
        [first, ..] if first.is_ascii_digit() => text.parse().ok(),
        _ => None,
    };
    let fields: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, bytes) = fields.split_last()?;
    if bytes.len() > 3 || bytes.iter().any(|&byte| byte > 255) {
        return None;
    }
    let room = 32 - 8 * bytes.len() as u32;
    if room < 32 && *last >> room != 0 {
        return None;
    }
    let high = bytes.iter().enumerate().fold(0, |sum, (at, byte)| sum | byte << (24 - 8 * at));
    Some(std::net::Ipv4Addr::from(high | last).to_string())
}

/// Takes `%XX` out of a text.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Writes what may not stand in a URL as `%XX`.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte))
            }
            _ => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// A link of a server may have blanks and other letters in it.
fn encode_blanks(link: &str) -> String {
    let mut text = String::new();
    let mut in_query = false;
    for byte in link.bytes() {
        in_query |= byte == b'?';
        match byte {
            b' ' if in_query => text.push('+'),
            0..=b' ' | 0x7f.. => text += &format!("%{byte:02x}"),
            _ => text.push(char::from(byte)),
        }
    }
    text
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').collect();
    let last = parts.len() - 1;
    for (at, part) in parts.iter().enumerate() {
        match *part {
            "." if at == last => kept.push(""),
            "." => {}
            ".." => {
                if kept.len() > 1 {
                    kept.pop();
                }
                if at == last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_addresses_are_what_they_mean() {
        for (text, host) in [
            ("http://127.1/", "127.0.0.1"),
            ("http://0x7f.0.0.1/", "127.0.0.1"),
            ("http://017700000001/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("HTTP://EXAMPLE.org", "example.org"),
            ("http://user:pa@ss@example.org/", "example.org"),
            ("http://[::1]:80/", "::1"),
        ] {
            assert_eq!(Url::parse(text, "http").map(|url| url.host), Ok(host.to_owned()), "{text}");
        }
    }

    #[test]
    fn links_lead_where_they_say() {
        let base = Url::parse("http://h/a/b?c", "http").expect("a URL");
        for (link, whole) in [
            ("d", "http://h/a/d"),
            ("/d", "http://h/d"),
            ("?q", "http://h/a/b?q"),
            ("../../x", "http://h/x"),
            ("//o/p", "http://o/p"),
            ("https://o/p/./q", "https://o/p/q"),
            ("d e?f g", "http://h/a/d%20e?f+g"),
        ] {
            assert_eq!(base.join(link).map(|url| url.text()), Ok(whole.to_owned()), "{link}");
        }
    }

    #[test]
    fn nothing_that_can_be_written_is_a_panic() {
        let base = Url::parse("http://h/", "http").expect("a URL");
        let words = [
            "http", ":", "/", "//", "@", "[", "]", "%", "%é", "é", "..", ".", "?", "#", "0x", "1", "99999",
            "",
        ];
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..6 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text += words[(seed >> 33) as usize % words.len()];
            }
            let _ = (Url::parse(&text, "http"), base.join(&text), decode(&text));
        }
    }
}
