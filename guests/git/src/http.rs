//! Repositories behind HTTP and HTTPS: git's "smart" protocol, version 0.
//!
//! What a server has becomes a repository of this machine for as long as the command runs: its names, and below them the
//! objects that were asked for, borrowing from the repository that asks. All else is done as with a repository that lies
//! beside it. After a push what changed among the names is sent back.
//!
//! TLS is the gateway's: see `wardian_http::tls`. So are credentials, unless the address has some.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wardian_http::body::{Body, framing};
use wardian_http::head;
use wardian_http::tls::{self, Refused};
use wardian_http::url::{self, Url};
use wardian_http::wire::{Wire, addresses};
use wardian_http::{Error, base64};

use crate::commands::init;
use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};
use crate::hash::{self, Oid};
use crate::object::Kind;
use crate::pack;
use crate::refs;
use crate::repo::Repo;
use crate::transport;

/// How long a server may keep still.
const PATIENCE: Duration = Duration::from_secs(300);
const CONNECTING: Duration = Duration::from_secs(30);
/// The most redirections.
const MOST_HOPS: usize = 5;
/// The most bytes that a list of names may have.
const MOST_NAMES: usize = 256 << 20;
/// The most bytes of one answer, which is held in memory until it is unpacked.
const MOST: usize = 1 << 30;

thread_local! {
    /// Directories that go when the command ends.
    static SCRATCH: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Removes what was made for this command alone.
pub fn clean_up() {
    for place in SCRATCH.take() {
        // It lies among the temporary files, and nobody looks for it.
        let _ = files::remove_dir_all(&place);
    }
}

/// What a server says first.
pub struct Remote {
    pub repo: Repo,
    url: Url,
    names: Vec<(Vec<u8>, Oid)>,
    features: String,
}

pub fn is_address(address: &[u8]) -> bool {
    address.starts_with(b"http://") || address.starts_with(b"https://")
}

fn bad(url: &Url, why: impl std::fmt::Display) -> Fail {
    Fail::Fatal(format!("unable to access '{}/': {why}", url.text()))
}

fn words(error: &Error) -> String {
    match error {
        Error::Timeout => "the server did not answer in time".to_owned(),
        Error::Receive(errno) | Error::Send(errno) => errno.message().to_owned(),
        Error::Empty => "Empty reply from server".to_owned(),
        Error::NotHttp => "the answer is not HTTP".to_owned(),
        Error::Short(_) | Error::ShortChunk => "the connection ended before the answer did".to_owned(),
        other => format!("the answer is damaged ({other:?})"),
    }
}

struct Answer {
    status: u16,
    location: Option<String>,
    kind: String,
    body: Vec<u8>,
}

fn connect(url: &Url) -> Res<Wire> {
    let found = addresses(&url.host);
    if found.is_empty() {
        return Err(bad(url, format_args!("Could not resolve host: {}", url.host)));
    }
    let mut failure = None;
    for address in found {
        match Wire::connect(&SocketAddr::new(address, url.port_or_default()), Some(CONNECTING)) {
            Ok(mut wire) => {
                wire.deadline = Some(Instant::now() + PATIENCE);
                if url.scheme == "https" {
                    secure(&mut wire, url)?;
                }
                return Ok(wire);
            }
            Err(errno) => failure = Some(errno),
        }
    }
    let why = failure.map_or("no address", |errno| errno.message());
    Err(bad(url, format_args!("Failed to connect to {} port {}: {why}", url.host, url.port_or_default())))
}

fn secure(wire: &mut Wire, url: &Url) -> Res<()> {
    tls::start(wire, &url.host, true, true).map_err(|refused| match refused {
        Refused::Wire(error) => bad(url, words(&error)),
        Refused::NoGateway => bad(url, "there is no gateway here that speaks TLS"),
        Refused::Answer(code, message) if message.is_empty() => bad(url, code),
        Refused::Answer(_, message) => bad(url, message),
    })
}

/// One request on a connection of its own. `body` has a content type.
fn request(url: &Url, accept: &str, body: Option<(&str, &[u8])>, most: usize) -> Res<Answer> {
    let mut wire = connect(url)?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut head = format!(
        "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: git/{}\r\nAccept: {accept}\r\nConnection: close\r\n",
        url.target(),
        url.authority(),
        crate::run::VERSION
    );
    if let Some(user) = &url.user {
        let login =
            format!("{}:{}", url::decode(user), url::decode(url.password.as_deref().unwrap_or_default()));
        head += &format!("Authorization: Basic {}\r\n", base64::encode(login.as_bytes()));
    }
    if let Some((kind, content)) = body {
        head += &format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", content.len());
    }
    head += "\r\n";
    let fail = |error: Error| bad(url, words(&error));
    wire.send(head.as_bytes()).map_err(fail)?;
    if let Some((_, content)) = body {
        wire.send(content).map_err(fail)?;
    }
    let mut spent = 0;
    let answer = loop {
        let answer = head::read(&mut wire, &mut spent, |_, _| {}).map_err(fail)?;
        if answer.status / 100 != 1 {
            break answer;
        }
    };
    let mut reader = Body::new(framing(method, &answer).map_err(fail)?);
    let mut content = Vec::new();
    loop {
        wire.deadline = Some(Instant::now() + PATIENCE);
        let count = reader.next(&mut wire).map_err(fail)?;
        if count == 0 {
            break;
        }
        if content.len() + count > most {
            return Err(bad(url, format_args!("the answer is larger than {} MiB", most >> 20)));
        }
        content.extend_from_slice(&wire.buffered()[..count]);
        wire.consume(count);
    }
    Ok(Answer {
        status: answer.status,
        location: answer.header("Location").map(str::to_owned),
        kind: answer.header("Content-Type").unwrap_or_default().to_owned(),
        body: content,
    })
}

/// The lines of git's protocol; a flush is an empty one. `None` where the lengths do not fit.
fn packets(mut rest: &[u8]) -> Option<Vec<&[u8]>> {
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let digits = std::str::from_utf8(rest.get(..4)?).ok()?;
        match usize::from_str_radix(digits, 16).ok()? {
            length @ 0..=3 => {
                lines.push(&rest[..0]);
                rest = &rest[4.min(rest.len())..];
                if length != 0 {
                    return None;
                }
            }
            length => {
                lines.push(rest.get(4..length)?);
                rest = &rest[length..];
            }
        }
    }
    Some(lines)
}

fn packet(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(format!("{:04x}", line.len() + 4).as_bytes());
    out.extend_from_slice(line);
}

/// Asks a server what it has.
pub fn discover(address: &[u8], service: &str, borrower: Option<&Repo>) -> Res<Remote> {
    let written = text(address);
    let Ok(mut base) = Url::parse(written.trim_end_matches('/'), "https") else {
        fatal!("'{written}' is not an address")
    };
    let wanted = format!("application/x-{service}-advertisement");
    for _ in 0..=MOST_HOPS {
        let mut url = base.clone();
        url.path = format!("{}/info/refs", base.path.trim_end_matches('/'));
        url.query = Some(format!("service={service}"));
        let answer = request(&url, "*/*", None, MOST_NAMES)?;
        match answer.status {
            200 if answer.kind == wanted => return understand(base, &answer.body, borrower),
            200 => return Err(bad(&base, "the server does not speak git's smart protocol")),
            301 | 302 | 303 | 307 | 308 => {
                let next = answer.location.and_then(|link| url.join(&link).ok());
                let Some(next) = next.filter(|next| next.path.ends_with("/info/refs")) else {
                    return Err(bad(&base, "the server redirects to somewhere else"));
                };
                if base.scheme == "https" && next.scheme != "https" {
                    return Err(bad(&base, "the server redirects from https to http"));
                }
                let same = (&next.host, next.port_or_default()) == (&base.host, base.port_or_default());
                let login = if same { (base.user.clone(), base.password.clone()) } else { (None, None) };
                base = next;
                (base.user, base.password) = login;
                base.query = None;
                base.path.truncate(base.path.len() - "/info/refs".len());
            }
            401 => fatal!("Authentication failed for '{}/'", base.text()),
            404 => fatal!("repository '{}/' not found", base.text()),
            status => return Err(bad(&base, format_args!("The requested URL returned error: {status}"))),
        }
    }
    Err(bad(&base, "too many redirections"))
}

fn understand(url: Url, content: &[u8], borrower: Option<&Repo>) -> Res<Remote> {
    let damaged = || bad(&url, "the list of names is damaged");
    let lines = packets(content).ok_or_else(damaged)?;
    let mut names = Vec::new();
    let mut features = String::new();
    for line in lines.iter().filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
        if let Some(why) = line.strip_prefix(b"ERR ") {
            fatal!("remote error: {}", text(why.trim_ascii()));
        }
        let nul = line.iter().position(|&byte| byte == 0);
        if let Some(nul) = nul {
            features = text(line[nul + 1..].trim_ascii());
        }
        let line = line[..nul.unwrap_or(line.len())].trim_ascii_end();
        let oid = line.get(..40).and_then(Oid::from_hex).ok_or_else(damaged)?;
        let name = line.get(41..).ok_or_else(damaged)?;
        let plain = name.strip_suffix(b"^{}").unwrap_or(name);
        let fine = name == b"HEAD" || name.starts_with(b"refs/") && refs::is_valid(plain);
        if !oid.is_null() && fine {
            names.push((name.to_vec(), oid));
        }
    }
    if features.split(' ').any(|feature| feature == "object-format=sha256") {
        fatal!("repositories with SHA-256 are not supported here");
    }
    let repo = scratch(&names, &features, borrower)?;
    Ok(Remote { repo, url, names, features })
}

/// A repository with a server's names and the objects of the one that asks.
fn scratch(names: &[(Vec<u8>, Oid)], features: &str, borrower: Option<&Repo>) -> Res<Repo> {
    let temporary = crate::repo::env("TMPDIR").unwrap_or_else(|| b"/tmp".to_vec());
    let count = SCRATCH.with_borrow(Vec::len);
    let place = join(&temporary, format!("git-remote-{}-{count}", wardian_abi::getpid()).as_bytes());
    if files::exists(&place) {
        fatal!("'{}' exists already", text(&place));
    }
    SCRATCH.with_borrow_mut(|all| all.push(place.clone()));
    let head = features.split(' ').find_map(|feature| feature.strip_prefix("symref=HEAD:refs/heads/"));
    init::create(&place, true, head.map(str::as_bytes))?;
    if let Some(repo) = borrower {
        let line = [repo.odb.directory(), b"\n"].concat();
        files::write(&join(&place, b"objects/info/alternates"), &line)?;
    }
    let mut packed = String::from("# pack-refs with: sorted\n");
    let mut sorted: Vec<_> =
        names.iter().filter(|(name, _)| name != b"HEAD" && !name.ends_with(b"^{}")).collect();
    sorted.sort();
    for (name, oid) in sorted {
        packed += &format!("{oid} {}\n", text(name));
    }
    files::write(&join(&place, b"packed-refs"), packed.as_bytes())?;
    if head.is_none()
        && let Some((_, oid)) = names.iter().find(|(name, _)| name == b"HEAD")
    {
        files::write(&join(&place, b"HEAD"), format!("{oid}\n").as_bytes())?;
    }
    match Repo::at(&place)? {
        Some(repo) => Ok(repo),
        None => fatal!("cannot open '{}'", text(&place)),
    }
}

/// A repository to fetch from: everything that its names lead to is here.
pub fn fetch(address: &[u8], borrower: Option<&Repo>) -> Res<Repo> {
    let remote = discover(address, "git-upload-pack", borrower)?;
    let mut wants: Vec<Oid> = Vec::new();
    for (name, oid) in &remote.names {
        // What a tag is about is named too, but cannot be asked for.
        if !name.ends_with(b"^{}") && !wants.contains(oid) && !remote.repo.odb.has(oid) {
            wants.push(*oid);
        }
    }
    if wants.is_empty() {
        return Ok(remote.repo);
    }
    let mut body = Vec::new();
    for (at, want) in wants.iter().enumerate() {
        let features = if at == 0 { " ofs-delta no-progress agent=git/2.39.5" } else { "" };
        packet(&mut body, format!("want {want}{features}\n").as_bytes());
    }
    body.extend_from_slice(b"0000");
    for have in borrower.map(haves).transpose()?.unwrap_or_default() {
        packet(&mut body, format!("have {have}\n").as_bytes());
    }
    packet(&mut body, b"done\n");
    let mut url = remote.url.clone();
    url.path = format!("{}/git-upload-pack", url.path.trim_end_matches('/'));
    let kind = "application/x-git-upload-pack-request";
    let answer = request(&url, "application/x-git-upload-pack-result", Some((kind, &body)), MOST)?;
    if answer.status != 200 {
        return Err(bad(&url, format_args!("The requested URL returned error: {}", answer.status)));
    }
    let content = after_answers(&answer.body).ok_or_else(|| bad(&url, "the server sent no pack"))?;
    pack::unpack(content, &remote.repo.odb)?;
    // What was looked up before is looked up again, now that it is there.
    match Repo::at(&remote.repo.git_dir)? {
        Some(repo) => Ok(repo),
        None => fatal!("cannot open '{}'", text(&remote.repo.git_dir)),
    }
}

/// The pack behind the lines that say which commits both have.
fn after_answers(mut rest: &[u8]) -> Option<&[u8]> {
    while !rest.starts_with(b"PACK") {
        let length = usize::from_str_radix(std::str::from_utf8(rest.get(..4)?).ok()?, 16).ok()?;
        rest = rest.get(length.max(4)..)?;
    }
    Some(rest)
}

/// Commits that are here: what every name leads to, and some of what lies before.
fn haves(repo: &Repo) -> Res<Vec<Oid>> {
    let mut walk = crate::walk::Walk::new(repo);
    walk.include_refs(b"refs/")?;
    if let Some(head) = repo.head()? {
        walk.include(head)?;
    }
    let mut list = walk.include.clone();
    let near = walk.run()?;
    list.extend(near.into_iter().take(256).filter(|oid| !walk.include.contains(oid)));
    list.truncate(1024);
    Ok(list)
}

/// A repository to push to, without its objects.
pub fn receive(address: &[u8], borrower: &Repo) -> Res<Remote> {
    discover(address, "git-receive-pack", Some(borrower))
}

impl Remote {
    /// The names as the server has them.
    pub fn into_names(self) -> Vec<(Vec<u8>, Oid)> {
        self.names
    }

    /// Sends what changed among the names; answers those that the server refused, and why.
    pub fn send(&self, from: &Repo) -> Res<HashMap<Vec<u8>, String>> {
        let before: HashMap<Vec<u8>, Oid> = self
            .names
            .iter()
            .filter(|(name, _)| name != b"HEAD" && !name.ends_with(b"^{}"))
            .cloned()
            .collect();
        let after: HashMap<Vec<u8>, Oid> = refs::list(&self.repo, b"refs/")?.into_iter().collect();
        let mut changed: Vec<(&Vec<u8>, Oid, Oid)> = Vec::new();
        for (name, new) in &after {
            let old = before.get(name).copied().unwrap_or(Oid::NULL);
            changed.extend((old != *new).then_some((name, old, *new)));
        }
        let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
        changed.extend(gone.map(|(name, old)| (name, *old, Oid::NULL)));
        changed.sort();
        if changed.is_empty() {
            return Ok(HashMap::new());
        }
        let mut body = Vec::new();
        for (at, (name, old, new)) in changed.iter().enumerate() {
            let mut line = format!("{old} {new} ").into_bytes();
            line.extend_from_slice(name);
            if at == 0 {
                line.extend_from_slice(b"\0 report-status agent=git/2.39.5");
                line.extend_from_slice(if self.has("delete-refs") { b" delete-refs" } else { b"" });
            }
            packet(&mut body, &line);
        }
        body.extend_from_slice(b"0000");
        let tips: Vec<Oid> = changed.iter().map(|(.., new)| *new).filter(|new| !new.is_null()).collect();
        if !tips.is_empty() {
            let known: Vec<Oid> = before.values().copied().filter(|oid| from.odb.has(oid)).collect();
            pack::write(from, &transport::missing(from, &tips, &known)?, &mut body)?;
        }
        let mut url = self.url.clone();
        url.path = format!("{}/git-receive-pack", url.path.trim_end_matches('/'));
        let kind = "application/x-git-receive-pack-request";
        let answer = request(&url, "application/x-git-receive-pack-result", Some((kind, &body)), MOST_NAMES)?;
        match answer.status {
            200 => self.report(&answer.body),
            401 | 403 => fatal!("Authentication failed for '{}/'", self.url.text()),
            status => Err(bad(&self.url, format_args!("The requested URL returned error: {status}"))),
        }
    }

    fn has(&self, feature: &str) -> bool {
        self.features.split(' ').any(|own| own == feature)
    }

    fn report(&self, content: &[u8]) -> Res<HashMap<Vec<u8>, String>> {
        let mut refused = HashMap::new();
        let lines = packets(content).ok_or_else(|| bad(&self.url, "the server's report is damaged"))?;
        for line in lines {
            let line = line.trim_ascii_end();
            if let Some(why) = line.strip_prefix(b"unpack ").filter(|why| *why != b"ok") {
                fatal!("the server could not read the pack: {}", text(why));
            }
            if let Some(rest) = line.strip_prefix(b"ng ") {
                let space = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
                refused.insert(rest[..space].to_vec(), text(rest.get(space + 1..).unwrap_or(b"")));
            }
        }
        Ok(refused)
    }
}

/// What an object is called in a pack.
pub fn number_of(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

/// The hash that ends a pack.
pub fn seal(content: &[u8]) -> Oid {
    hash::sha1(&[content])
}
