//! What the commands that show differences share: their options, and writing what they ask for.

use crate::change::Change;
use crate::diffstat::{self, Widths};
use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::lines::Space;
use crate::options::Parsed;
use crate::out;
use crate::patch::{self, Style};
use crate::quote;
use crate::rename;
use crate::repo::Repo;

/// The options that all of them take.
pub const OPTIONS: &str = "p|patch u s|no-patch U|unified= raw stat? numstat shortstat summary name-only name-status z \
    M|find-renames? C|find-copies? no-renames w|ignore-all-space b|ignore-space-change ignore-space-at-eol \
    ignore-cr-at-eol ignore-blank-lines a|text full-index abbrev? no-prefix src-prefix= dst-prefix= R diff-filter= \
    exit-code quiet W|function-context inter-hunk-context= minimal patience histogram diff-algorithm= S= G= pickaxe-regex \
    pickaxe-all patch-with-stat compact-summary! color? no-color ext-diff no-ext-diff textconv no-textconv \
    indent-heuristic relative? stat-width= stat-name-width= stat-graph-width= stat-count= B|break-rewrites?! dirstat?! \
    check! binary! word-diff?! color-words?! word-diff-regex=! submodule?! ignore-submodules? find-copies-harder! \
    output=! color-moved?! ita-invisible-in-index l= D|irreversible-delete!";

#[derive(Clone, Debug, Default)]
pub struct Formats {
    pub patch: bool,
    pub raw: bool,
    pub stat: bool,
    pub numstat: bool,
    pub shortstat: bool,
    pub summary: bool,
    pub name_only: bool,
    pub name_status: bool,
    /// `-s`: nothing.
    pub none: bool,
}

impl Formats {
    pub fn any(&self) -> bool {
        self.patch || self.raw || self.stat || self.numstat || self.shortstat || self.summary || self.names()
    }

    pub fn names(&self) -> bool {
        self.name_only || self.name_status
    }
}

#[derive(Clone, Debug)]
pub struct Diffing {
    pub formats: Formats,
    pub style: Style,
    pub widths: Widths,
    pub zero: bool,
    /// The least likeness of a rename, in percent.
    pub renames: Option<u32>,
    pub copies: bool,
    pub reverse: bool,
    pub filter: Option<String>,
    pub pickaxe: Option<(bool, Vec<u8>)>,
    pub pickaxe_regex: bool,
    pub exit_code: bool,
    pub quiet: bool,
}

impl Diffing {
    pub fn usual(repo: &Repo) -> Diffing {
        let renames =
            !matches!(repo.config.text("diff.renames").as_deref(), Some("false" | "no" | "off" | "0"));
        let mut style = Style::default();
        if let Some(context) = repo.config.number("diff.context").and_then(|n| usize::try_from(n).ok()) {
            style.context = context;
        }
        if repo.config.bool("diff.noprefix", false) {
            (style.old_prefix, style.new_prefix) = (Vec::new(), Vec::new());
        }
        Diffing {
            formats: Formats::default(),
            style,
            widths: Widths::default(),
            zero: false,
            renames: renames.then_some(50),
            copies: false,
            reverse: false,
            filter: None,
            pickaxe: None,
            pickaxe_regex: false,
            exit_code: false,
            quiet: false,
        }
    }

    pub fn from(repo: &Repo, parsed: &Parsed) -> Res<Diffing> {
        let mut diffing = Diffing::usual(repo);
        for (name, value) in &parsed.options {
            diffing.take(name, value.as_deref())?;
        }
        if diffing.reverse {
            std::mem::swap(&mut diffing.style.old_prefix, &mut diffing.style.new_prefix);
        }
        Ok(diffing)
    }

    fn take(&mut self, name: &str, value: Option<&[u8]>) -> Res<()> {
        let number = || value.map(text).and_then(|text| text.parse::<usize>().ok());
        let formats = &mut self.formats;
        let style = &mut self.style;
        match name {
            "patch" | "u" => formats.patch = true,
            "no-patch" => *formats = Formats { none: true, ..Formats::default() },
            "unified" => {
                formats.patch = true;
                let Some(context) = number() else { fatal!("option `unified' expects a numerical value") };
                style.context = context;
            }
            "raw" => formats.raw = true,
            "stat" => {
                formats.stat = true;
                let words = value.map(text).unwrap_or_default();
                let mut words = words.split(',').map(|word| word.parse().ok());
                self.widths.total = words.next().flatten().or(self.widths.total);
                self.widths.name = words.next().flatten().or(self.widths.name);
                self.widths.count = words.next().flatten().or(self.widths.count);
            }
            "stat-width" => (formats.stat, self.widths.total) = (true, number()),
            "stat-name-width" => (formats.stat, self.widths.name) = (true, number()),
            "stat-graph-width" => (formats.stat, self.widths.graph) = (true, number()),
            "stat-count" => (formats.stat, self.widths.count) = (true, number()),
            "patch-with-stat" => (formats.patch, formats.stat) = (true, true),
            "numstat" => formats.numstat = true,
            "shortstat" => formats.shortstat = true,
            "summary" => formats.summary = true,
            "name-only" => formats.name_only = true,
            "name-status" => formats.name_status = true,
            "z" => self.zero = true,
            "find-renames" => self.renames = Some(percent(value)),
            "find-copies" => (self.renames, self.copies) = (Some(percent(value)), true),
            "no-renames" | "no-find-renames" => self.renames = None,
            "ignore-all-space" => style.space = Space::None,
            "ignore-space-change" => style.space = Space::Change,
            "ignore-space-at-eol" => style.space = Space::AtEnd,
            "ignore-cr-at-eol" => style.space = Space::CarriageReturn,
            "ignore-blank-lines" => style.ignore_blank_lines = true,
            "text" => style.as_text = true,
            "full-index" => style.full_index = true,
            "abbrev" => style.abbrev = number().or(style.abbrev),
            "no-abbrev" => style.full_index = true,
            "no-prefix" => (style.old_prefix, style.new_prefix) = (Vec::new(), Vec::new()),
            "src-prefix" => style.old_prefix = value.unwrap_or_default().to_vec(),
            "dst-prefix" => style.new_prefix = value.unwrap_or_default().to_vec(),
            "R" => self.reverse = true,
            "diff-filter" => self.filter = value.map(text),
            "exit-code" => self.exit_code = true,
            "quiet" => (self.quiet, self.exit_code) = (true, true),
            "function-context" => style.function_context = true,
            "inter-hunk-context" => style.inter_hunk = number().unwrap_or(0),
            "minimal" | "patience" | "histogram" => style.algorithm = name.to_owned(),
            "diff-algorithm" => style.algorithm = value.map(text).unwrap_or_default(),
            "S" | "G" => self.pickaxe = value.map(|value| (name == "G", value.to_vec())),
            "pickaxe-regex" => self.pickaxe_regex = true,
            "color" if value.is_none_or(|value| value == b"always") => {
                return Err(Fail::Fatal("option '--color=always' is not supported here".to_owned()));
            }
            "relative" if value.is_some() => {
                return Err(Fail::Fatal("option '--relative=PATH' is not supported here".to_owned()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Renames, filters and searches, in git's order.
    pub fn arrange(&self, repo: &Repo, mut changes: Vec<Change>) -> Res<Vec<Change>> {
        if self.reverse {
            changes.iter_mut().for_each(Change::reverse);
        }
        if let Some(least) = self.renames {
            changes = rename::detect(repo, changes, least, self.copies)?;
        }
        if let Some((lines, what)) = &self.pickaxe {
            let mut kept = Vec::new();
            for change in changes {
                if self.picks(repo, &change, *lines, what)? {
                    kept.push(change);
                }
            }
            changes = kept;
        }
        if let Some(filter) = &self.filter {
            let listed = |status: u8| filter.contains(char::from(status));
            let unlisted = |status: u8| filter.contains(char::from(status.to_ascii_lowercase()));
            let only_negative = !filter.chars().any(|char| char.is_ascii_uppercase());
            changes.retain(|change| !unlisted(change.status) && (only_negative || listed(change.status)));
        }
        Ok(changes)
    }

    fn picks(&self, repo: &Repo, change: &Change, lines: bool, what: &[u8]) -> Res<bool> {
        let (old, new) = (change.old.content(repo)?, change.new.content(repo)?);
        if !lines && !self.pickaxe_regex {
            let count = |text: &[u8]| text.windows(what.len().max(1)).filter(|part| *part == what).count();
            return Ok(count(&old) != count(&new));
        }
        let regex = crate::grep::regex(what, wardian_regex::Syntax::Extended, false)?;
        if !lines {
            let count =
                |text: &[u8]| text.split(|&byte| byte == b'\n').filter(|line| regex.is_match(line)).count();
            return Ok(count(&old) != count(&new));
        }
        let (old, new) = (crate::lines::split(&old), crate::lines::split(&new));
        let found = |lines: &[&[u8]]| lines.iter().any(|line| regex.is_match(line.trim_ascii_end()));
        Ok(crate::lines::hunks(&old, &new, Space::All)
            .iter()
            .any(|hunk| found(&old[hunk.old.clone()]) || found(&new[hunk.new.clone()])))
    }

    /// Writes changes that were arranged, in all the formats asked for.
    pub fn write(&self, repo: &Repo, changes: &[Change]) -> Res<()> {
        let formats = &self.formats;
        if self.quiet || changes.is_empty() {
            return Ok(());
        }
        if formats.raw {
            changes.iter().for_each(|change| self.raw(repo, change));
        }
        if formats.names() {
            changes.iter().for_each(|change| self.name(change));
        }
        let counts = formats.stat || formats.numstat || formats.shortstat;
        let stat = if counts { diffstat::count(repo, changes, &self.style)? } else { Vec::new() };
        if formats.numstat {
            diffstat::numbers(&stat, changes, self.zero);
        }
        if formats.stat {
            diffstat::table(&stat, self.widths);
        }
        if formats.shortstat && !formats.stat {
            diffstat::summary(&stat);
        }
        if formats.summary {
            diffstat::events(changes);
        }
        if formats.patch {
            if formats.raw || formats.names() || counts || formats.summary {
                out::put(b"\n");
            }
            for change in changes {
                patch::write(repo, change, &self.style)?;
            }
        }
        Ok(())
    }

    fn raw(&self, repo: &Repo, change: &Change) {
        let show = |side: &crate::change::Side| {
            let oid = if side.mode == 0 { Default::default() } else { side.oid.unwrap_or_default() };
            if self.style.full_index { oid.hex() } else { repo.odb.abbreviate(&oid, self.style.abbrev) }
        };
        let (old, new) = (&change.old, &change.new);
        out::put(format!(":{:06o} {:06o} {} {} ", old.mode, new.mode, show(old), show(new)));
        self.status_and_name(change);
    }

    fn name(&self, change: &Change) {
        if self.formats.name_status {
            self.status_and_name(change);
            return;
        }
        let end: &[u8] = if self.zero { b"\0" } else { b"\n" };
        out::put([&self.quoted(change.path())[..], end].concat());
    }

    fn quoted(&self, path: &[u8]) -> Vec<u8> {
        if self.zero { path.to_vec() } else { quote::path(path) }
    }

    fn status_and_name(&self, change: &Change) {
        let (gap, end): (&[u8], &[u8]) = if self.zero { (b"\0", b"\0") } else { (b"\t", b"\n") };
        let mut line = vec![change.status];
        if matches!(change.status, b'R' | b'C') {
            line.extend_from_slice(format!("{:03}", change.score).as_bytes());
            line.extend_from_slice(gap);
            line.extend_from_slice(&self.quoted(&change.old.path));
        }
        out::put([&line[..], gap, &self.quoted(change.path()), end].concat());
    }

    /// The exit code where the caller asked for one that tells.
    pub fn code(&self, changes: &[Change]) -> i32 {
        i32::from(self.exit_code && !changes.is_empty())
    }
}

fn percent(value: Option<&[u8]>) -> u32 {
    let Some(value) = value else { return 50 };
    let value = text(value);
    match value.strip_suffix('%') {
        Some(number) => number.parse().unwrap_or(50),
        // Without a sign the digits are a fraction: 5 is a half.
        None => format!("0.{value}").parse::<f64>().map_or(50, |part| (part * 100.0) as u32),
    }
}
