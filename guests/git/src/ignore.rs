//! Which files are ignored: `.gitignore` in every directory, `info/exclude`, and the user's own list.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::config::expand_home;
use crate::files::{self, join};
use crate::pattern;
use crate::repo::{Repo, env};

#[derive(Debug)]
pub struct Rule {
    pattern: Vec<u8>,
    negated: bool,
    only_directories: bool,
    /// It has a slash: it is about the path from its own directory, else about the name alone.
    anchored: bool,
    pub line: usize,
    pub text: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct List {
    pub source: Vec<u8>,
    rules: Vec<Rule>,
}

impl List {
    pub fn parse(content: &[u8], source: &[u8]) -> List {
        let mut rules = Vec::new();
        for (at, line) in content.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.first() == Some(&b'#') {
                continue;
            }
            rules.extend(rule(line, at + 1));
        }
        List { source: source.to_vec(), rules }
    }
}

fn rule(line: &[u8], number: usize) -> Option<Rule> {
    let mut text = line.to_vec();
    while text.last() == Some(&b' ') && !text.ends_with(b"\\ ") {
        text.pop();
    }
    let shown = text.clone();
    let negated = text.first() == Some(&b'!');
    let mut body = &text[usize::from(negated)..];
    let only_directories = body.last() == Some(&b'/');
    if only_directories {
        body = &body[..body.len() - 1];
    }
    let anchored = body.contains(&b'/');
    let body = body.strip_prefix(b"/").unwrap_or(body).to_vec();
    (!body.is_empty()).then_some(Rule {
        pattern: body,
        negated,
        only_directories,
        anchored,
        line: number,
        text: shown,
    })
}

/// The lists of a repository, read as directories are visited.
pub struct Ignore<'a> {
    repo: &'a Repo,
    /// What holds everywhere, the weakest first.
    general: Vec<Rc<List>>,
    by_directory: RefCell<HashMap<Vec<u8>, Rc<List>>>,
    fold: bool,
}

impl<'a> Ignore<'a> {
    pub fn new(repo: &'a Repo) -> Ignore<'a> {
        let mut general = Vec::new();
        let home = env("XDG_CONFIG_HOME").or_else(|| env("HOME").map(|home| join(&home, b".config")));
        let usual = home.map(|home| join(&home, b"git/ignore"));
        let own = repo.config.get("core.excludesfile").map(|path| expand_home(&path)).or(usual);
        for file in own.into_iter().chain([join(&repo.common_dir, b"info/exclude")]) {
            if let Ok(content) = files::read(&file) {
                general.push(Rc::new(List::parse(&content, &file)));
            }
        }
        Ignore {
            repo,
            general,
            by_directory: RefCell::default(),
            fold: repo.config.bool("core.ignorecase", false),
        }
    }

    /// Adds rules that are stronger than those that hold everywhere, as `-e` gives them.
    pub fn add(&mut self, list: List) {
        self.general.push(Rc::new(list));
    }

    fn of_directory(&self, directory: &[u8]) -> Rc<List> {
        if let Some(known) = self.by_directory.borrow().get(directory) {
            return known.clone();
        }
        let source =
            if directory.is_empty() { b".gitignore".to_vec() } else { join(directory, b".gitignore") };
        let content = files::read(&self.repo.in_tree(&source)).unwrap_or_default();
        let list = Rc::new(List::parse(&content, &source));
        self.by_directory.borrow_mut().insert(directory.to_vec(), list.clone());
        list
    }

    /// The rule that decides about a path itself, whatever holds for the directories above it.
    fn decide(&self, path: &[u8], is_dir: bool) -> Option<(Rc<List>, usize)> {
        let mut directory = path;
        while let Some(slash) = directory.iter().rposition(|&byte| byte == b'/') {
            directory = &path[..slash];
            let list = self.of_directory(directory);
            if let Some(at) = self.last_match(&list, &path[slash + 1..], is_dir) {
                return Some((list, at));
            }
        }
        let root = self.of_directory(b"");
        std::iter::once(&root)
            .chain(self.general.iter().rev())
            .find_map(|list| self.last_match(list, path, is_dir).map(|at| (list.clone(), at)))
    }

    fn last_match(&self, list: &List, path: &[u8], is_dir: bool) -> Option<usize> {
        list.rules.iter().rposition(|rule| {
            let subject = match rule.anchored {
                true => path,
                false => path.rsplit(|&byte| byte == b'/').next().unwrap_or(path),
            };
            (is_dir || !rule.only_directories) && pattern::matches(&rule.pattern, subject, true, self.fold)
        })
    }

    /// Whether a path is ignored, looking at the directories above it first.
    pub fn is_ignored(&self, path: &[u8], is_dir: bool) -> bool {
        self.deciding(path, is_dir).is_some_and(|(list, at)| !list.rules[at].negated)
    }

    /// Whether a path is ignored if the directory it is in is not: for those who walk from above.
    pub fn is_ignored_here(&self, path: &[u8], is_dir: bool) -> bool {
        self.decide(path, is_dir).is_some_and(|(list, at)| !list.rules[at].negated)
    }

    fn deciding(&self, path: &[u8], is_dir: bool) -> Option<(Rc<List>, usize)> {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            if let Some((list, rule)) =
                self.decide(&path[..at], true).filter(|(list, rule)| !list.rules[*rule].negated)
            {
                return Some((list, rule));
            }
        }
        self.decide(path, is_dir)
    }

    /// The rule that decides about a path: its source, line and text.
    pub fn explain(&self, path: &[u8], is_dir: bool) -> Option<(Vec<u8>, usize, Vec<u8>, bool)> {
        let (list, at) = self.deciding(path, is_dir)?;
        let rule = &list.rules[at];
        Some((list.source.clone(), rule.line, rule.text.clone(), rule.negated))
    }
}
