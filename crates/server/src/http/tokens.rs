//! Bearer tokens in a file: who may use the server over HTTP, for which tenant, how much, and until when.
//!
//! ```toml
//! origins = ["https://app.example.com"]     # pages that may use it from a browser; none by default
//!
//! [[token]]
//! name = "ci"                               # what the log calls it
//! sha256 = "…"                              # of the token; or: secret = "the token itself"
//! tenant = "acme"                           # tokens of one tenant share its sandboxes; by default the name
//! expires = 2030-01-01T00:00:00Z            # never by default
//! admin = false                             # whether it may use /metrics and /tools/run
//!
//! [tenant.acme]
//! sandboxes = 100
//! memory-bytes = 17179869184
//! runs-per-second = 20
//! ```
//! The file is read when the server starts and on SIGHUP. One that is not valid changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use toml::value::{Datetime, Offset};

use super::MIN_TOKEN;
use crate::e2b::is_same;
use crate::quota::{Most, Quota, Quotas};
use crate::tenant::hashed;

/// How long the file may be, and how many tokens and origins it may have: each request is compared with all of them.
const LONGEST_FILE: u64 = 1 << 20;
const TOKENS: usize = 4096;
const ORIGINS: usize = 256;
/// How long names may be.
const NAME: usize = 64;
/// The longest token that is looked at.
const LONGEST_TOKEN: usize = 1024;

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", .path.display())]
pub struct TokensError {
    path: PathBuf,
    what: String,
}

/// The tokens of a file. Clones are the same.
#[derive(Clone, Debug)]
pub struct Tokens(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    table: watch::Sender<Arc<Table>>,
    quotas: Quotas,
}

#[derive(Debug, Default)]
struct Table {
    origins: Vec<String>,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq)]
struct Token {
    name: String,
    tenant: String,
    hash: [u8; 32],
    expires: Option<SystemTime>,
    admin: bool,
}

/// A token that was shown, and is valid.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) tenant: String,
    pub(super) admin: bool,
    pub(super) quota: Option<Arc<Quota>>,
    hash: [u8; 32],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    origins: Vec<String>,
    #[serde(default)]
    token: Vec<Entry>,
    #[serde(default)]
    tenant: BTreeMap<String, Limits>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    name: String,
    sha256: Option<String>,
    secret: Option<String>,
    tenant: Option<String>,
    expires: Option<Datetime>,
    #[serde(default)]
    admin: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Limits {
    sandboxes: Option<usize>,
    memory_bytes: Option<u64>,
    runs_per_second: Option<f64>,
}

/// What stands for a tenant where sandboxes are told apart.
pub(super) fn owner(tenant: &str) -> String {
    // No token has a colon and a space, so none can pass for a tenant.
    format!("tenant: {tenant}")
}

impl Tokens {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Tokens, TokensError> {
        let inner =
            Inner { path: path.to_owned(), table: watch::Sender::default(), quotas: Quotas::default() };
        let tokens = Tokens(Arc::new(inner));
        tokens.reload()?;
        Ok(tokens)
    }

    /// Reads it again. If it is not valid, everything stays as it is.
    pub fn reload(&self) -> Result<(), TokensError> {
        let failed = |what| TokensError { path: self.0.path.clone(), what };
        let text = read(&self.0.path).map_err(failed)?;
        let (table, limits) = parse(&text).map_err(failed)?;
        let quotas = limits.into_iter().map(|(tenant, most)| (hashed(&owner(&tenant)), tenant, most));
        self.0.quotas.set(quotas, Instant::now());
        self.0.table.send_replace(Arc::new(table));
        Ok(())
    }

    pub(super) fn quotas(&self) -> Quotas {
        self.0.quotas.clone()
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.0.table.borrow().tokens.len()
    }

    /// Returns whether a page of this origin may use the server.
    pub(super) fn allows(&self, origin: &str) -> bool {
        self.0.table.borrow().origins.iter().any(|allowed| allowed == origin)
    }

    /// Returns what a token stands for, if it is known and has not expired.
    pub(super) fn known(&self, given: &str) -> Option<Known> {
        if given.len() > LONGEST_TOKEN {
            return None;
        }
        let hash = Sha256::digest(given.as_bytes());
        let table = self.0.table.borrow().clone();
        // All of them, however early one matches: the time tells nothing.
        let found = table
            .tokens
            .iter()
            .fold(None, |found, token| if is_same(&hash, &token.hash) { Some(token) } else { found })?;
        found.is_valid(SystemTime::now()).then(|| Known {
            name: found.name.clone(),
            tenant: found.tenant.clone(),
            admin: found.admin,
            quota: self.0.quotas.of(&hashed(&owner(&found.tenant))),
            hash: found.hash,
        })
    }

    /// Waits until a token is not valid any more: it has expired, or the file does not have it for this tenant.
    pub(super) async fn revoked(&self, known: Known) {
        let mut changes = self.0.table.subscribe();
        loop {
            let table = changes.borrow_and_update().clone();
            let now = SystemTime::now();
            let found = table.tokens.iter().find(|token| token.hash == known.hash);
            let Some(token) = found.filter(|token| token.tenant == known.tenant && token.is_valid(now))
            else {
                return;
            };
            // A clock may be set: so not for longer than this.
            let most = Duration::from_secs(60);
            let left = token
                .expires
                .and_then(|end| end.duration_since(now).ok())
                .map_or(most, |left| left.min(most));
            tokio::select! {
                // Its sender lives as long as this.
                _ = changes.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}

impl Token {
    fn is_valid(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|end| now < end)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let length = file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    match length as u64 > LONGEST_FILE {
        true => Err(format!("it has more than {LONGEST_FILE} bytes")),
        false => Ok(text),
    }
}

fn parse(text: &str) -> Result<(Table, BTreeMap<String, Most>), String> {
    // The parser's message shows the line, which may have a secret in it.
    let file: File = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: {}", error.message())
    })?;
    if file.token.len() > TOKENS || file.origins.len() > ORIGINS {
        return Err(format!("it may have {TOKENS} tokens and {ORIGINS} origins"));
    }
    for origin in &file.origins {
        check_origin(origin)?;
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(file.token.len());
    for entry in file.token {
        let token = token(entry)?;
        if tokens.iter().any(|other| other.name == token.name) {
            return Err(format!("two tokens are called {}", token.name));
        }
        if let Some(other) = tokens.iter().find(|other| other.hash == token.hash) {
            return Err(format!("{} and {} are the same token", other.name, token.name));
        }
        tokens.push(token);
    }
    let mut limits: BTreeMap<String, Most> =
        tokens.iter().map(|token| (token.tenant.clone(), Most::default())).collect();
    for (tenant, given) in file.tenant {
        let Some(most) = limits.get_mut(&tenant) else {
            return Err(format!("tenant.{}: no token has this tenant", shown(&tenant)));
        };
        if given.runs_per_second.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
            return Err(format!("tenant.{tenant}.runs-per-second must be more than 0"));
        }
        let Limits { sandboxes, memory_bytes, runs_per_second } = given;
        *most = Most { sandboxes, memory_bytes, runs_per_second };
    }
    Ok((Table { origins: file.origins, tokens }, limits))
}

fn token(entry: Entry) -> Result<Token, String> {
    let name = entry.name;
    let tenant = entry.tenant.unwrap_or_else(|| name.clone());
    for (what, text) in [("name", &name), ("tenant", &tenant)] {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if text.is_empty() || text.len() > NAME || !text.bytes().all(fits) {
            let shown = shown(text);
            return Err(format!(
                "{what} '{shown}' must have from 1 to {NAME} of letters, digits, '.', '_' and '-'"
            ));
        }
    }
    let hash = match (entry.sha256, entry.secret) {
        (Some(hex), None) => {
            from_hex(&hex).ok_or_else(|| format!("the sha256 of {name} must have 64 hexadecimal digits"))?
        }
        (None, Some(secret)) => {
            let is_sendable = secret.bytes().all(|byte| byte.is_ascii_graphic());
            if !(MIN_TOKEN..=LONGEST_TOKEN).contains(&secret.len()) || !is_sendable {
                return Err(format!(
                    "the secret of {name} must have from {MIN_TOKEN} to {LONGEST_TOKEN} printable characters"
                ));
            }
            Sha256::digest(secret.as_bytes()).into()
        }
        _ => return Err(format!("{name} must have either sha256 or secret")),
    };
    let expires = entry.expires.map(|date| {
        time(&date).ok_or_else(|| {
            format!("expires of {name} must be a date with time and zone, such as 2030-01-01T00:00:00Z")
        })
    });
    Ok(Token { name, tenant, hash, expires: expires.transpose()?, admin: entry.admin })
}

/// An origin is what a browser sends: a scheme, a host and maybe a port.
fn check_origin(origin: &str) -> Result<(), String> {
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte);
    match host {
        Some(host) if !host.is_empty() && host.bytes().all(fits) => Ok(()),
        _ => Err(format!(
            "origin '{}' must be as a browser sends it, such as https://app.example.com",
            shown(origin)
        )),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(NAME).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn from_hex(hex: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

/// Returns the time of a date that has everything.
fn time(date: &Datetime) -> Option<SystemTime> {
    let (day, clock) = (date.date?, date.time?);
    let minutes_east = match date.offset? {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    // Years begin in March here, so that a leap day is the last.
    let (year, month) = (i64::from(day.year), i64::from(day.month));
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + i64::from(day.day)
        - 719_469;
    let seconds = i64::from(clock.hour) * 3600 + i64::from(clock.minute) * 60 - minutes_east * 60;
    let seconds = days * 86_400 + seconds + i64::from(clock.second);
    UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn message(text: &str) -> String {
        parse(text).err().unwrap_or_else(|| "valid".to_owned())
    }

    #[test]
    fn what_is_wrong_is_said_without_showing_secrets() {
        let secret = format!("[[token]]\nname = 'a'\nsecret = '{SECRET}'\n");
        let cases = [
            (secret.clone(), "valid"),
            (String::new(), "valid"),
            (format!("[[token]]\nname = 'a'\nsecret = '{SECRET}\n"), "line 3: "),
            (format!("{secret}surprise = 1"), "line 4: unknown field `surprise`"),
            (format!("{secret}{secret}"), "two tokens are called a"),
            (format!("{secret}{}", secret.replace("'a'", "'b'")), "a and b are the same token"),
            (format!("{secret}[tenant.b]\nsandboxes = 1"), "tenant.b: no token has this tenant"),
            (
                format!("{secret}[tenant.a]\nruns-per-second = 0"),
                "tenant.a.runs-per-second must be more than 0",
            ),
            ("[[token]]\nname = 'a'\nsecret = 'short'".to_owned(), "the secret of a must have from 16"),
            (
                "[[token]]\nname = 'a'\nsha256 = 'ff'".to_owned(),
                "the sha256 of a must have 64 hexadecimal digits",
            ),
            ("[[token]]\nname = 'a'".to_owned(), "a must have either sha256 or secret"),
            (secret.replace("'a'", "'a b'"), "name 'a b' must have"),
            (format!("{secret}expires = 2030-01-01"), "expires of a must be a date with time and zone"),
            ("origins = ['*']".to_owned(), "origin '*' must be as a browser sends it"),
            ("origins = ['https://a.test/']".to_owned(), "origin 'https://a.test/' must be"),
        ];
        for (text, expected) in cases {
            let message = message(&text);
            assert!(message.starts_with(expected), "{text}\n{message}");
            assert!(!message.contains(SECRET), "{message}");
        }
    }

    #[test]
    fn dates_are_those_of_the_date_command() {
        // date -u -d DATE +%s
        let dates = [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2024-02-29T00:00:00+01:30", 1_709_159_400),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ];
        for (text, seconds) in dates {
            let date: Datetime = text.parse().expect("a date");
            assert_eq!(time(&date), Some(UNIX_EPOCH + Duration::from_secs(seconds)), "{text}");
        }
    }

    #[tokio::test]
    async fn a_token_is_known_until_it_is_taken_away_or_expires() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let write = |text: &str| fs::write(file.path(), text).expect("it is written");
        let entry =
            |tenant: &str| format!("[[token]]\nname = 'a'\nsecret = '{SECRET}'\ntenant = '{tenant}'\n");
        write(&entry("acme"));
        let tokens = Tokens::open(file.path()).expect("it is valid");
        let known = tokens.known(SECRET).expect("it is known");
        assert_eq!((known.name.as_str(), known.tenant.as_str(), known.admin), ("a", "acme", false));
        assert!(tokens.known("0123456789abcdeF").is_none() && tokens.known("").is_none());
        write("nonsense");
        assert!(tokens.reload().is_err() && tokens.known(SECRET).is_some(), "nothing has changed");
        write(&entry("other"));
        tokens.reload().expect("it is valid");
        tokens.revoked(known).await;
        let known = tokens.known(SECRET).expect("it is known");
        write(&format!("{}expires = 2001-01-01T00:00:00Z", entry("other")));
        tokens.reload().expect("it is valid");
        tokens.revoked(known).await;
        assert!(tokens.known(SECRET).is_none());
    }
}
