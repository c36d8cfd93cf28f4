//! Cookies, and the files that keep them in Netscape's format.

use super::date;
use super::url::Url;

/// The most cookies that are kept, and the longest.
const MOST: usize = 3000;
const LONGEST: usize = 4096;

#[derive(Clone, Debug)]
pub struct Cookie {
    pub domain: String,
    /// Whether hosts below the domain have it too.
    pub tail: bool,
    pub path: String,
    pub secure: bool,
    pub http_only: bool,
    /// In seconds since 1970; 0 is the end of the session.
    pub expires: i64,
    pub name: String,
    pub value: String,
}

impl Cookie {
    /// Whether it takes the other's place.
    fn is(&self, other: &Cookie) -> bool {
        self.name == other.name
            && self.path == other.path
            && self.domain.trim_start_matches('.').eq_ignore_ascii_case(other.domain.trim_start_matches('.'))
            && self.tail == other.tail
    }
}

/// All cookies there are.
#[derive(Default)]
pub struct Jar {
    pub cookies: Vec<Cookie>,
}

impl Jar {
    /// Takes a `Set-Cookie` header of a response from a URL; returns the cookie if it is one that the host may set.
    pub fn set(&mut self, header: &str, url: &Url) -> Option<Cookie> {
        let cookie = parse(header, url)?;
        self.keep(cookie.clone());
        Some(cookie)
    }

    fn keep(&mut self, cookie: Cookie) {
        let same = |old: &Cookie| old.is(&cookie);
        let gone = cookie.expires != 0 && cookie.expires <= date::now();
        match self.cookies.iter().position(same) {
            Some(at) if gone => drop(self.cookies.remove(at)),
            Some(at) => self.cookies[at] = cookie,
            None if !gone && self.cookies.len() < MOST => self.cookies.push(cookie),
            None => {}
        }
    }

    /// Returns the value of the `Cookie` header for a URL, if there is any. As curl has it, this machine is as safe as
    /// TLS and newer cookies come first; wget sees neither so.
    pub fn header(&self, url: &Url, as_curl: bool) -> Option<String> {
        let now = date::now();
        let mut fitting: Vec<&Cookie> = self
            .cookies
            .iter()
            .filter(|cookie| {
                (cookie.expires == 0 || cookie.expires > now)
                    && (!cookie.secure || url.scheme == "https" || as_curl && is_local(&url.host))
                    && domain_fits(cookie, &url.host)
                    && path_fits(&cookie.path, &url.path)
            })
            .collect();
        if as_curl {
            fitting.reverse();
        }
        // The longest path first, then the longest domain, then the longest name, as curl has them.
        fitting.sort_by_key(|cookie| {
            std::cmp::Reverse((cookie.path.len(), cookie.domain.len(), cookie.name.len()))
        });
        let pairs: Vec<String> =
            fitting.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Reads a file: lines of Netscape's format, or headers. Cookies of a session are left out if asked.
    pub fn read(&mut self, text: &str, url: &Url, without_session: bool) {
        for line in text.lines() {
            let cookie = match line.strip_prefix("Set-Cookie:") {
                Some(header) => parse(header, url),
                None => parse_line(line),
            };
            if let Some(cookie) = cookie.filter(|cookie| !without_session || cookie.expires != 0) {
                self.keep(cookie);
            }
        }
    }

    /// Takes over what another process has made of this jar: the lines that it began with, and those that it has now.
    pub fn merge(&mut self, before: &str, now: &str) {
        let read = |text: &str| -> Vec<Cookie> { text.lines().rev().filter_map(parse_line).collect() };
        let (before, now) = (read(before), read(now));
        for gone in before.iter().filter(|old| !now.iter().any(|cookie| cookie.is(old))) {
            self.cookies.retain(|cookie| !cookie.is(gone));
        }
        for cookie in now {
            let same = |old: &&Cookie| old.is(&cookie);
            let changed = before.iter().find(same).is_none_or(|old| {
                (&old.value, old.expires, old.secure, old.http_only)
                    != (&cookie.value, cookie.expires, cookie.secure, cookie.http_only)
            });
            if changed {
                self.keep(cookie);
            }
        }
    }

    /// Writes the lines of a file.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        let flag = |value: bool| if value { "TRUE" } else { "FALSE" };
        let now = date::now();
        let live = self.cookies.iter().rev().filter(|cookie| cookie.expires == 0 || cookie.expires > now);
        for cookie in live {
            let dot = if cookie.tail && !cookie.domain.starts_with('.') { "." } else { "" };
            text += &format!(
                "{}{dot}{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                if cookie.http_only { "#HttpOnly_" } else { "" },
                cookie.domain,
                flag(cookie.tail),
                cookie.path,
                flag(cookie.secure),
                cookie.expires,
                cookie.name,
                cookie.value
            );
        }
        text
    }
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost") || host == "127.0.0.1" || host == "::1"
}

fn domain_fits(cookie: &Cookie, host: &str) -> bool {
    let domain = cookie.domain.trim_start_matches('.').to_ascii_lowercase();
    let below = host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'));
    host == domain || cookie.tail && below && host.parse::<std::net::IpAddr>().is_err()
}

fn path_fits(cookie: &str, path: &str) -> bool {
    let cookie = cookie.trim_end_matches('/');
    path.strip_prefix(cookie).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn parse(header: &str, url: &Url) -> Option<Cookie> {
    if header.len() > LONGEST * 2
        || header.contains(|letter: char| letter.is_ascii_control() && letter != '\t')
    {
        return None;
    }
    let mut parts = header.split(';').map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.trim(), value.trim())
    });
    let (name, value) = parts.next()?;
    if name.is_empty() || name.len() + value.len() > LONGEST {
        return None;
    }
    let directory = match url.path.rfind('/') {
        Some(at) if at > 0 => &url.path[..at],
        _ => "/",
    };
    let mut cookie = Cookie {
        domain: url.host.clone(),
        tail: false,
        path: directory.to_owned(),
        secure: false,
        http_only: false,
        expires: 0,
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let mut max_age = None;
    for (key, value) in parts {
        match key.to_ascii_lowercase().as_str() {
            "path" if value.starts_with('/') => cookie.path = trim_path(value),
            "secure" => cookie.secure = true,
            "httponly" => cookie.http_only = true,
            "domain" if !value.is_empty() => take_domain(&mut cookie, value, url)?,
            "expires" => cookie.expires = date::parse(value).map_or(0, |time| time.max(1)),
            "max-age" => max_age = value.trim_matches('"').parse::<i64>().ok(),
            _ => {}
        }
    }
    if let Some(age) = max_age {
        cookie.expires = if age <= 0 { 1 } else { date::now().saturating_add(age) };
    }
    if cookie.secure && url.scheme != "https" && !is_local(&url.host) {
        return None;
    }
    Some(cookie)
}

fn trim_path(path: &str) -> String {
    let path = path.trim_matches('"');
    if path.len() > 1 { path.trim_end_matches('/').to_owned() } else { path.to_owned() }
}

/// A host may set a cookie for itself and for a domain it is part of, but not for all of a top-level domain.
fn take_domain(cookie: &mut Cookie, value: &str, url: &Url) -> Option<()> {
    let domain = value.trim_start_matches('.').to_ascii_lowercase();
    let own = domain == url.host;
    if own && (url.host.parse::<std::net::IpAddr>().is_ok() || !domain.contains('.')) {
        return Some(());
    }
    cookie.domain = domain.clone();
    cookie.tail = true;
    (domain.contains('.') && domain_fits(cookie, &url.host)).then_some(())
}

fn parse_line(line: &str) -> Option<Cookie> {
    let (http_only, line) = match line.strip_prefix("#HttpOnly_") {
        Some(line) => (true, line),
        None if line.starts_with('#') => return None,
        None => (false, line),
    };
    let fields: Vec<&str> = line.trim_end_matches(['\r', '\n']).split('\t').collect();
    let (domain, tail, path, secure, expires, name, value) = match fields[..] {
        [domain, tail, path, secure, expires, name, value] => {
            (domain, tail, path, secure, expires, name, value)
        }
        [domain, tail, path, secure, expires, name] => (domain, tail, path, secure, expires, name, ""),
        _ => return None,
    };
    Some(Cookie {
        domain: domain.trim_start_matches('.').to_owned(),
        tail: tail == "TRUE",
        path: path.to_owned(),
        secure: secure == "TRUE",
        http_only,
        expires: expires.parse().ok()?,
        name: name.to_owned(),
        value: value.to_owned(),
    })
}
