//! `wget`, as version 1.21 of Debian 12: files over HTTP/1.1, with TLS by the sandbox's gateway.

// An `End` is what a try leads to, not an error that is passed far.
#![allow(clippy::result_large_err)]

mod connect;
mod fetch;
mod links;
mod log;
mod names;
mod options;
mod request;
mod robots;
mod save;

use crate::http::cookies::Jar;
use crate::http::url::Url;
use fetch::{Fetched, Session};
use log::Log;
use options::Options;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The exit codes of wget.
mod code {
    pub const GENERIC: i32 = 1;
    pub const FILE: i32 = 3;
    pub const NETWORK: i32 = 4;
    pub const TLS: i32 = 5;
    pub const LOGIN: i32 = 6;
    pub const PROTOCOL: i32 = 7;
    pub const SERVER: i32 = 8;
}

/// The most URLs that a recursion remembers.
const MOST: usize = 100_000;

/// The longest page that is searched for links.
const LONGEST_PAGE: u64 = 16 << 20;

pub fn main(arguments: toolkit::Arguments) -> i32 {
    let options = match options::parse(toolkit::args::bytes_of(arguments)) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let log = match Log::open(&options) {
        Ok(log) => log,
        Err(error) => {
            let name = options.log.as_ref().map(|(name, _)| String::from_utf8_lossy(name).into_owned());
            toolkit::complain(&name.unwrap_or_default(), wardian_abi::Errno::from(error));
            return code::GENERIC;
        }
    };
    let mut run = Run { session: Session::new(&options, &log), options: &options, log: &log, code: 0 };
    run.all();
    run.code
}

struct Run<'a> {
    session: Session<'a>,
    options: &'a Options,
    log: &'a Log,
    code: i32,
}

/// A URL to fetch in a recursion.
struct Task {
    url: Url,
    referer: Option<String>,
    depth: usize,
    inline: bool,
}

impl Run<'_> {
    /// The lesser code says more.
    fn failed(&mut self, code: i32) {
        if code != 0 && (self.code == 0 || code < self.code) {
            self.code = code;
        }
    }

    fn all(&mut self) {
        let started = Instant::now();
        let mut urls = self.options.urls.clone();
        for input in &self.options.inputs {
            urls.extend(self.input(input));
        }
        if let Some(file) = &self.options.load_cookies {
            self.load(file);
        }
        if self.options.spider {
            self.log.verbose("Spider mode enabled. Check if remote file exists.\n");
        }
        if !self.session.open_output() {
            self.code = code::GENERIC;
            return;
        }
        for (at, text) in urls.iter().enumerate() {
            if at > 0 {
                self.wait();
            }
            let url = match parse(text) {
                Ok(url) => url,
                Err(message) => {
                    self.log.always(&format!("{text}: {message}.\n"));
                    self.failed(code::GENERIC);
                    continue;
                }
            };
            match self.options.recursive || self.options.requisites {
                true => self.recurse(url),
                false => {
                    let fetched = self.session.fetch(&url, None);
                    self.failed(fetched.code);
                }
            }
        }
        let many = self.options.recursive || urls.len() > 1 || !self.options.inputs.is_empty();
        if many && self.session.bytes > 0 {
            self.log.always(&format!(
                "FINISHED --{}--\nTotal wall clock time: {:.3}s\nDownloaded: {} files, {} in {:.3}s ({})\n",
                log::now(),
                started.elapsed().as_secs_f64(),
                self.session.files,
                log::human(self.session.bytes),
                self.session.time,
                log::speed(self.session.bytes, self.session.time)
            ));
        }
        self.save_cookies();
    }

    fn wait(&self) {
        if self.options.wait > 0.0 {
            crate::http::wire::pause(Duration::from_secs_f64(self.options.wait.min(86_400.0)));
        }
    }

    /// Returns the URLs in a file.
    fn input(&mut self, file: &[u8]) -> Vec<String> {
        let name = String::from_utf8_lossy(file).into_owned();
        let content = match file {
            b"-" => toolkit::files::read_fd(0),
            file => std::fs::read(toolkit::files::path(file)).map_err(Into::into),
        };
        let content = content.unwrap_or_else(|errno| {
            self.log.always(&format!("{name}: {errno}\n"));
            Vec::new()
        });
        let content = String::from_utf8_lossy(&content).into_owned();
        let base = self.options.base.as_deref().and_then(|base| Url::parse(base, "http").ok());
        let lines = content.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let found: Vec<String> = lines
            .map(|line| match base.as_ref().map(|base| base.join(line)) {
                Some(Ok(url)) => url.text(),
                _ => line.to_owned(),
            })
            .collect();
        if found.is_empty() {
            self.log.always(&format!("No URLs found in {name}.\n"));
        }
        found
    }

    fn load(&mut self, file: &[u8]) {
        let nowhere = Url::parse("http://localhost/", "http");
        match (std::fs::read(toolkit::files::path(file)), nowhere) {
            (Ok(content), Ok(url)) => self.session.jar.read(&String::from_utf8_lossy(&content), &url, false),
            _ => self.log.always(&format!(
                "Cannot open cookies file ‘{}’: No such file or directory\n",
                String::from_utf8_lossy(file)
            )),
        }
    }

    fn save_cookies(&mut self) {
        let Some(file) = &self.options.save_cookies else { return };
        let mut cookies = std::mem::take(&mut self.session.jar.cookies);
        cookies.retain(|cookie| self.options.keep_session || cookie.expires != 0);
        cookies.reverse();
        let content = format!(
            "# HTTP Cookie File\n# Generated by Wget.\n# Edit at your own risk.\n\n{}",
            Jar { cookies }.lines()
        );
        if let Err(error) = std::fs::write(toolkit::files::path(file), content) {
            let name = String::from_utf8_lossy(file);
            self.log
                .always(&format!("Cannot open cookies file ‘{name}’: {}\n", wardian_abi::Errno::from(error)));
            self.failed(code::FILE);
        }
    }

    /// Fetches a page and what it links to, of the same host, breadth first.
    fn recurse(&mut self, start: Url) {
        let mut seen = HashSet::from([start.text()]);
        let mut tasks = std::collections::VecDeque::new();
        let mut rules = None;
        tasks.push_back(Task { url: start.clone(), referer: None, depth: 0, inline: false });
        let mut first = true;
        while let Some(task) = tasks.pop_front() {
            if !std::mem::take(&mut first) {
                self.wait();
            }
            let fetched = self.session.fetch(&task.url, task.referer.as_deref());
            self.failed(fetched.code);
            let deeper = self.options.level == 0 || task.depth < self.options.level;
            let requisites = self.options.requisites && !task.inline;
            if !(requisites || deeper && self.options.recursive) {
                continue;
            }
            let Some(page) = page_of(&fetched) else { continue };
            let rules = rules.get_or_insert_with(|| self.session.robots(&start));
            let links = self.links(&fetched, &page, &start);
            if let Some(file) = fetched.file.as_ref().filter(|_| !self.accepts(&task.url)) {
                // It was fetched for its links alone.
                let _ = std::fs::remove_file(toolkit::files::path(file));
            }
            for (url, inline) in links {
                let wanted = inline && requisites || deeper && self.options.recursive;
                let fits = wanted && rules.allow(&url.target()) && (seen.len() < MOST);
                if fits && seen.insert(url.text()) {
                    let referer = Some(fetched.url.text());
                    tasks.push_back(Task { url, referer, depth: task.depth + 1, inline });
                }
            }
        }
    }

    /// Returns where the links of a page lead, as far as they are to be followed.
    fn links(&self, fetched: &Fetched, page: &str, start: &Url) -> Vec<(Url, bool)> {
        let mut base = fetched.url.clone();
        let mut found = Vec::new();
        let directory = start.path.rfind('/').map_or("/", |at| &start.path[..=at]);
        for link in links::find(page) {
            let Ok(url) = base.join(&link.target) else { continue };
            if link.is_base {
                base = url;
                continue;
            }
            let same = url.host == start.host && url.port_or_default() == start.port_or_default();
            let web = ["http", "https"].contains(&url.scheme.as_str());
            let below = !self.options.no_parent
                || link.inline && self.options.requisites
                || url.path.starts_with(directory);
            let relative =
                !self.options.relative || !link.target.contains("://") && !link.target.starts_with('/');
            if same && web && below && relative && self.name_fits(&url) {
                found.push((url, link.inline));
            }
        }
        found
    }

    /// Whether a URL is fetched: pages lead on, whatever their names, and are removed when they have been searched.
    fn name_fits(&self, url: &Url) -> bool {
        let name = url.path.rsplit('/').next().unwrap_or_default();
        name.is_empty() || name.ends_with(".html") || name.ends_with(".htm") || self.accepts(url)
    }

    /// Whether the file of a URL is kept.
    fn accepts(&self, url: &Url) -> bool {
        let name = match url.path.rsplit('/').next().unwrap_or_default() {
            "" => "index.html",
            name => name,
        };
        let fits = |pattern: &String| match pattern.contains(['*', '?', '[']) {
            true => toolkit::glob::matches(pattern.as_bytes(), name.as_bytes(), false),
            false => name.ends_with(pattern.as_str()),
        };
        let accepted = self.options.accept.is_empty() || self.options.accept.iter().any(fits);
        accepted && !self.options.reject.iter().any(fits)
    }
}

fn page_of(fetched: &Fetched) -> Option<String> {
    let path = fetched.file.as_ref().filter(|_| fetched.is_page && fetched.code == 0)?;
    let size = std::fs::metadata(toolkit::files::path(path)).ok()?.len();
    if size > LONGEST_PAGE {
        return None;
    }
    std::fs::read(toolkit::files::path(path)).ok().map(|page| String::from_utf8_lossy(&page).into_owned())
}

fn parse(text: &str) -> Result<Url, String> {
    if let Some((scheme, _)) = text.split_once("://")
        && !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str())
    {
        return Err(format!("Unsupported scheme ‘{scheme}’"));
    }
    let encoded = text.replace(' ', "%20");
    let mut url = Url::parse(&encoded, "http").map_err(|_| "Invalid host name".to_owned())?;
    url.normalize();
    Ok(url)
}
