//! Who makes commits.

use crate::config::Config;
use crate::date;
use crate::fail::{Res, fatal};
use crate::files::text;
use crate::object::Person;
use crate::repo::{Repo, env};

/// Names may not contain what separates them from the rest of their line.
pub fn clean(name: &[u8]) -> Vec<u8> {
    let inner: Vec<u8> = name.iter().copied().filter(|byte| !matches!(byte, b'<' | b'>' | b'\n')).collect();
    let crud = |byte: &u8| *byte <= b' ' || matches!(byte, b'.' | b',' | b':' | b';' | b'"' | b'\\' | b'\'');
    let start = inner.iter().position(|byte| !crud(byte)).unwrap_or(inner.len());
    let end = inner.iter().rposition(|byte| !crud(byte)).map_or(start, |at| at + 1);
    inner[start..end].to_vec()
}

fn user() -> Vec<u8> {
    env("USER").or_else(|| env("LOGNAME")).filter(|name| !name.is_empty()).unwrap_or_else(|| b"user".to_vec())
}

fn host() -> Vec<u8> {
    let name = crate::files::read(b"/etc/hostname").unwrap_or_default().trim_ascii().to_vec();
    if name.is_empty() { b"localhost".to_vec() } else { name }
}

/// Whether name and address are made up, since nobody said who they are.
pub fn is_guessed(config: &Config, role: &str) -> bool {
    let told = |what: &str| {
        env(&format!("GIT_{role}_{what}")).is_some()
            || config.get(&format!("user.{}", what.to_lowercase())).is_some()
            || config.get(&format!("{}.{}", role.to_lowercase(), what.to_lowercase())).is_some()
            || what == "EMAIL" && env("EMAIL").is_some()
    };
    !(told("NAME") && told("EMAIL"))
}

fn person(config: &Config, role: &str) -> Res<Person> {
    let low = role.to_lowercase();
    let from = |what: &str| {
        env(&format!("GIT_{role}_{}", what.to_uppercase()))
            .or_else(|| config.get(&format!("{low}.{what}")))
            .or_else(|| config.get(&format!("user.{what}")))
    };
    let name = clean(&from("name").unwrap_or_else(user));
    let email =
        from("email").or_else(|| env("EMAIL")).unwrap_or_else(|| [&user()[..], b"@", &host()].concat());
    let email = clean(&email);
    if name.is_empty() {
        fatal!("empty ident name (for <{}>) not allowed", text(&email));
    }
    let (time, zone) = match env(&format!("GIT_{role}_DATE")).filter(|date| !date.is_empty()) {
        Some(date) => match date::parse(&text(&date)) {
            Some(when) => when,
            None => fatal!("invalid date format: {}", text(&date)),
        },
        None => date::now(),
    };
    Ok(Person { name, email, time, zone })
}

pub fn author(repo: &Repo) -> Res<Person> {
    person(&repo.config, "AUTHOR")
}

pub fn committer(repo: &Repo) -> Res<Person> {
    person(&repo.config, "COMMITTER")
}

/// For logs, which are written whatever is wrong with the name.
pub fn committer_or_any(repo: &Repo) -> Person {
    committer(repo).unwrap_or_else(|_| {
        let (time, zone) = date::now();
        Person { name: user(), email: [&user()[..], b"@", &host()].concat(), time, zone }
    })
}
