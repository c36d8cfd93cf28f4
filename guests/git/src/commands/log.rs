//! `git log` and `git show`.

use std::collections::{HashMap, HashSet};

use crate::change::{self, Change};
use crate::combined;
use crate::date::{self, Style as Dates};
use crate::diffing::{self, Diffing, Formats};
use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::graph::Graph;
use crate::hash::Oid;
use crate::object::{Commit, Kind};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::pretty::{Decorations, Format, Pretty};
use crate::repo::Repo;
use crate::revision;
use crate::walk::{self, Order, Walk};

pub const OPTIONS: &str = "NUM n|max-count= skip= since= after= until= before= author= committer= grep= i|regexp-ignore-case \
    E|extended-regexp F|fixed-strings P|perl-regexp! invert-grep all-match oneline format= pretty? abbrev-commit date= \
    decorate? graph all branches? tags? remotes? reverse merges no-merges first-parent topo-order date-order \
    author-date-order follow m c cc root no-walk? left-right cherry-pick! cherry-mark! cherry! g|walk-reflogs! source! \
    parents children! boundary! full-history simplify-merges! dense sparse! ancestry-path?! L=! min-parents= max-parents= \
    relative-date log-size! notes?! show-signature! clear-decorations decorate-refs=! exclude=! glob=! diff-merges=! \
    encoding= no-expand-tabs expand-tabs? mailmap use-mailmap count show-pulls! not!";

const USAGE: &str = "git log [<options>] [<revision-range>] [[--] <path>...]";

pub fn read(command: &str, usage: &str, arguments: &[Vec<u8>]) -> Res<Parsed> {
    let list = format!("{OPTIONS} {}", diffing::OPTIONS);
    Reader { command, usage, list: &list, in_order: false }.read(arguments)
}

pub fn log(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = read("log", USAGE, arguments)?;
    let mut walk = Walk::new(repo);
    let written = start(repo, &mut walk, &options)?;
    let paths = Pathspec::new(repo, &written)?;
    let mut show = Show::new(repo, &options, &paths)?;
    let graph = options.has("graph");
    if graph && options.has("reverse") {
        fatal!("options '--graph' and '--reverse' cannot be used together");
    }
    let chosen = chosen(repo, &mut walk, &options, &paths)?;
    if graph {
        show.draw(&mut walk, &options)?;
    }
    for oid in chosen {
        show.commit(&oid)?;
    }
    Ok(0)
}

/// Where a walk starts; answers the paths.
pub fn start<'a>(repo: &'a Repo, walk: &mut Walk<'a>, options: &Parsed) -> Res<Vec<Vec<u8>>> {
    let written = walk::split_arguments(repo, walk, options)?;
    for (name, prefix) in
        [("all", "refs/"), ("branches", "refs/heads/"), ("tags", "refs/tags/"), ("remotes", "refs/remotes/")]
    {
        if options.has(name) {
            if name == "all"
                && let Some(head) = repo.head()?
            {
                walk.include(head)?;
            }
            walk.include_refs(prefix.as_bytes())?;
        }
    }
    let nothing = walk.include.is_empty()
        && !["all", "branches", "tags", "remotes"].iter().any(|name| options.has(name));
    let named = options.sides().0.iter().any(|argument| !written.contains(argument));
    if nothing && !(named && walk.exclude.is_empty()) {
        match repo.head()? {
            Some(head) => walk.include(head)?,
            None => {
                let branch = crate::refs::current_branch(repo)?.unwrap_or_default();
                fatal!("your current branch '{}' does not have any commits yet", text(&branch))
            }
        }
    }
    walk.first_parent = options.has("first-parent");
    walk.order = match () {
        () if options.has("topo-order") => Order::Topo,
        () if options.has("graph") && !options.has("date-order") => Order::Topo,
        () if options.has("date-order") || options.has("author-date-order") => Order::DateTopo,
        () => Order::Date,
    };
    Ok(written)
}

/// The commits of a walk that all conditions hold for, in order.
pub fn chosen(repo: &Repo, walk: &mut Walk<'_>, options: &Parsed, paths: &Pathspec) -> Res<Vec<Oid>> {
    let mut chosen = Vec::new();
    let filter = Filter::new(options)?;
    let follow = options.has("follow");
    if options.has("no-walk") {
        return Ok(walk.include.clone());
    }
    if !follow {
        walk.paths = paths.clone();
    }
    let mut followed = if follow { Some(Follow::new(repo, paths)?) } else { None };
    let most = filter.most.unwrap_or(usize::MAX);
    let mut skip = filter.skip;
    for oid in walk.run()? {
        if chosen.len() >= most {
            break;
        }
        let commit = repo.odb.commit(&oid)?;
        if !filter.fits(&commit) || !follow && !walk.is_interesting(&oid)? {
            continue;
        }
        if let Some(follow) = &mut followed
            && !follow.touches(&commit)?
        {
            continue;
        }
        if skip > 0 {
            skip -= 1;
            continue;
        }
        chosen.push(oid);
    }
    if options.has("reverse") {
        chosen.reverse();
    }
    Ok(chosen)
}

/// One file, through its renames.
struct Follow<'a> {
    repo: &'a Repo,
    path: Vec<u8>,
}

impl<'a> Follow<'a> {
    fn new(repo: &'a Repo, paths: &Pathspec) -> Res<Follow<'a>> {
        match paths.only() {
            Some(path) => Ok(Follow { repo, path }),
            None => fatal!("--follow requires exactly one pathspec"),
        }
    }

    fn touches(&mut self, commit: &Commit) -> Res<bool> {
        if commit.parents.len() > 1 {
            return Ok(false);
        }
        let old = commit
            .parents
            .first()
            .map(|parent| self.repo.odb.commit(parent).map(|parent| parent.tree))
            .transpose()?;
        let here = change::trees(
            self.repo,
            old.as_ref(),
            Some(&commit.tree),
            &Pathspec::exactly(std::slice::from_ref(&self.path)),
        )?;
        if here.is_empty() {
            return Ok(false);
        }
        if here[0].status == b'A' {
            let all = change::trees(self.repo, old.as_ref(), Some(&commit.tree), &Pathspec::default())?;
            let all = crate::rename::detect(self.repo, all, 50, false)?;
            if let Some(renamed) =
                all.iter().find(|change| change.status == b'R' && change.new.path == self.path)
            {
                self.path.clone_from(&renamed.old.path);
            }
        }
        Ok(true)
    }
}

struct Filter {
    most: Option<usize>,
    skip: usize,
    since: Option<i64>,
    until: Option<i64>,
    authors: Vec<wardian_regex::Regex>,
    committers: Vec<wardian_regex::Regex>,
    words: Vec<wardian_regex::Regex>,
    all_match: bool,
    invert: bool,
    parents: (usize, usize),
}

impl Filter {
    fn new(options: &Parsed) -> Res<Filter> {
        let limit = |names: [&str; 2]| -> Res<Option<i64>> {
            match names.iter().find_map(|name| options.text(name)) {
                None => Ok(None),
                Some(written) => match date::parse_limit(&written) {
                    Some(limit) => Ok(Some(limit)),
                    None => Ok(Some(date::now().0)),
                },
            }
        };
        let syntax = match () {
            () if options.has("fixed-strings") => wardian_regex::Syntax::Fixed,
            () if options.has("extended-regexp") => wardian_regex::Syntax::Extended,
            () => wardian_regex::Syntax::Basic,
        };
        let fold = options.has("regexp-ignore-case");
        let regexes = |name: &str| -> Res<Vec<wardian_regex::Regex>> {
            options.values(name).map(|pattern| crate::grep::regex(pattern, syntax, fold)).collect()
        };
        let most = match options.number("max-count")? {
            Some(number) => usize::try_from(number).ok(),
            None => options.number("NUM")?.and_then(|number| usize::try_from(number).ok()),
        };
        let count = |name: &str| {
            options.number(name).map(|number| number.and_then(|number| usize::try_from(number).ok()))
        };
        let mut parents = (count("min-parents")?.unwrap_or(0), count("max-parents")?.unwrap_or(usize::MAX));
        if options.has("merges") {
            parents.0 = 2;
        } else if options.has("no-merges") {
            parents.1 = 1;
        }
        Ok(Filter {
            most,
            skip: count("skip")?.unwrap_or(0),
            since: limit(["since", "after"])?,
            until: limit(["until", "before"])?,
            authors: regexes("author")?,
            committers: regexes("committer")?,
            words: regexes("grep")?,
            all_match: options.has("all-match"),
            invert: options.has("invert-grep"),
            parents,
        })
    }

    fn fits(&self, commit: &Commit) -> bool {
        let who = |person: &crate::object::Person| [&person.name[..], b" <", &person.email, b">"].concat();
        let time = commit.committer.time;
        let of = |list: &[wardian_regex::Regex], text: &[u8]| {
            list.is_empty() || list.iter().any(|regex| regex.is_match(text))
        };
        let in_message = |regex: &wardian_regex::Regex| {
            commit.message.split(|&byte| byte == b'\n').any(|line| regex.is_match(line))
        };
        let words = match self.all_match {
            true => self.words.iter().all(in_message),
            false => self.words.iter().any(in_message),
        };
        self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time <= until)
            && (self.parents.0..=self.parents.1).contains(&commit.parents.len())
            && of(&self.authors, &who(&commit.author))
            && of(&self.committers, &who(&commit.committer))
            && (self.words.is_empty() || words != self.invert)
    }
}

/// Writes commits one after the other.
pub struct Show<'a> {
    repo: &'a Repo,
    pub pretty: Pretty<'a>,
    pub diffing: Diffing,
    paths: &'a Pathspec,
    /// Merges are shown against each parent.
    each_parent: bool,
    first_parent: bool,
    /// Of merges what differs from all parents is shown; how much changed is counted against the first.
    combined: bool,
    /// Of merges what differs from all parents is shown; true leaves out what is as one of them has it.
    merges: Option<bool>,
    with_parents: bool,
    started: bool,
    drawing: Option<Drawing>,
}

/// The drawing beside the commits, and which parents it leads to.
struct Drawing {
    graph: Graph,
    parents: HashMap<Oid, Vec<Oid>>,
    /// Whether the last commit's text had no line feed at its end.
    open: bool,
}

impl<'a> Show<'a> {
    pub fn new(repo: &'a Repo, options: &Parsed, paths: &'a Pathspec) -> Res<Show<'a>> {
        let pretty = pretty(repo, options)?;
        let mut diffing = Diffing::from(repo, options)?;
        let merges = match () {
            () if options.has("m") => None,
            () if options.has("cc") => Some(true),
            () if options.has("c") => Some(false),
            () => None,
        };
        if merges.is_some() && !diffing.formats.any() && !diffing.formats.none {
            diffing.formats.patch = true;
        }
        let first_parent = options.has("first-parent");
        Ok(Show {
            repo,
            pretty,
            diffing,
            paths,
            each_parent: options.has("m"),
            first_parent,
            combined: false,
            merges,
            with_parents: options.has("parents"),
            started: false,
            drawing: None,
        })
    }

    /// From now on with a drawing of what this walk finds.
    fn draw(&mut self, walk: &mut Walk<'_>, options: &Parsed) -> Res<()> {
        let filter = Filter::new(options)?;
        let list = walk.run()?;
        let mut shown = HashSet::new();
        for oid in &list {
            if filter.fits(&*self.repo.odb.commit(oid)?) && walk.is_interesting(oid)? {
                shown.insert(*oid);
            }
        }
        let known: HashSet<Oid> = list.iter().copied().collect();
        let mut parents = HashMap::new();
        for oid in &shown {
            let mut own = Vec::new();
            for parent in walk.parents(oid)? {
                // With paths a line goes on to the next commit that counts.
                let mut at = Some(parent);
                while let Some(next) = at.filter(|next| !walk.paths.is_empty() && !shown.contains(next)) {
                    at = walk.parents(&next)?.first().copied().filter(|next| known.contains(next));
                }
                if let Some(at) = at.filter(|at| shown.contains(at) && !own.contains(at)) {
                    own.push(at);
                }
            }
            parents.insert(*oid, own);
        }
        self.drawing = Some(Drawing { graph: Graph::default(), parents, open: false });
        Ok(())
    }

    /// What a commit changed.
    fn changes(&self, commit: &Commit, parent: Option<&Oid>) -> Res<Vec<Change>> {
        let old = parent.map(|parent| self.repo.odb.commit(parent).map(|parent| parent.tree)).transpose()?;
        let changes = change::trees(self.repo, old.as_ref(), Some(&commit.tree), self.paths)?;
        self.diffing.arrange(self.repo, changes)
    }

    pub fn commit(&mut self, oid: &Oid) -> Res<()> {
        if self.drawing.is_some() {
            return self.drawn(oid);
        }
        let commit = self.repo.odb.commit(oid)?;
        if let Some(dense) = self.merges.filter(|_| commit.parents.len() > 1 && !self.first_parent) {
            return self.merged(oid, &commit, dense);
        }
        let wanted = self.diffing.formats.any();
        let searching = self.diffing.pickaxe.is_some() || self.diffing.filter.is_some();
        let single = commit.parents.len() < 2 || self.first_parent || self.combined && !self.each_parent;
        if !wanted && !searching || !single && !self.each_parent {
            return if searching { Ok(()) } else { self.header(oid) };
        }
        let parents: Vec<Option<&Oid>> = match commit.parents.as_slice() {
            [] => vec![None],
            [first, ..] if single => vec![Some(first)],
            all => all.iter().map(Some).collect(),
        };
        for parent in parents {
            let changes = self.changes(&commit, parent)?;
            if (searching || !single) && changes.is_empty() {
                continue;
            }
            self.header(oid)?;
            if wanted && !changes.is_empty() {
                let user = matches!(&self.pretty.format, Format::User(text, _) if !text.is_empty());
                if user && !matches!(self.pretty.format, Format::User(_, true)) {
                    out::put(b"\n");
                }
                if user || !matches!(self.pretty.format, Format::Oneline | Format::User(..)) {
                    out::put(b"\n");
                }
                self.diffing.write(self.repo, &changes)?;
            }
        }
        Ok(())
    }

    /// A merge, and what it has from none of its parents.
    fn merged(&mut self, oid: &Oid, commit: &Commit, dense: bool) -> Res<()> {
        let repo = self.repo;
        let mut lists = Vec::new();
        for parent in &commit.parents {
            let old = repo.odb.commit(parent)?.tree;
            lists.push(change::trees(repo, Some(&old), Some(&commit.tree), self.paths)?);
        }
        let rows = combined::paths(&lists);
        let formats = self.diffing.formats.clone();
        let mut counting = self.diffing.clone();
        counting.formats =
            Formats { patch: false, raw: false, name_only: false, name_status: false, ..formats };
        let (done, counts) = out::capture(|| -> Res<()> {
            let changes = self.changes(commit, commit.parents.first())?;
            counting.write(repo, &changes)
        });
        done?;
        let (done, text) = out::capture(|| -> Res<()> {
            for row in &rows {
                let path = crate::quote::path(row[0].path());
                if formats.names() {
                    if formats.name_status {
                        out::put(row.iter().map(|change| change.status).collect::<Vec<u8>>());
                        out::put(b"\t");
                    }
                    out::bytes_line(&path);
                }
                if formats.patch {
                    let (parents, result) = combined::versions(repo, row)?;
                    combined::write(repo, row[0].path(), &parents, &result, &self.diffing.style, dense)?;
                }
            }
            Ok(())
        });
        done?;
        self.header(oid)?;
        let blank = !matches!(self.pretty.format, Format::Oneline);
        if !matches!(&self.pretty.format, Format::User(format, _) if format.is_empty()) {
            let open = matches!(&self.pretty.format, Format::User(format, false) if !format.is_empty());
            out::put(if open {
                "\n\n"
            } else if blank {
                "\n"
            } else {
                ""
            });
        }
        let gap: &[u8] = if !counts.is_empty() && !text.is_empty() { b"\n" } else { b"" };
        out::put([&counts[..], gap, &text].concat());
        Ok(())
    }

    /// A commit with what it changed, beside the drawing.
    fn drawn(&mut self, oid: &Oid) -> Res<()> {
        let Some(mut drawing) = self.drawing.take() else { return Ok(()) };
        let ended = self.is_ended();
        drawing.graph.next_commit(*oid, drawing.parents.remove(oid).unwrap_or_default(), b'*');
        if self.started && !ended {
            if !drawing.open {
                out::put(drawing.graph.padding());
            }
            out::put(b"\n");
        }
        self.started = false;
        let (done, head) = out::capture(|| self.header(oid));
        done?;
        self.started = false;
        let (done, all) = out::capture(|| self.commit(oid));
        done?;
        self.started = true;
        let ends = ended && !matches!(&self.pretty.format, Format::User(text, true) if text.is_empty());
        let own = head.strip_suffix(b"\n").filter(|_| ends).unwrap_or(&head);
        drawing.open = !own.ends_with(b"\n");
        out::put(drawing.graph.up_to_commit());
        out::put(drawing.graph.beside(own));
        if ends {
            if !drawing.open {
                out::put(drawing.graph.padding());
            }
            out::put(b"\n");
        }
        for line in all.get(head.len()..).unwrap_or(b"").split_inclusive(|&byte| byte == b'\n') {
            let beside = drawing.graph.padding();
            out::put([&beside[..], line].concat());
        }
        self.drawing = Some(drawing);
        Ok(())
    }

    /// Whether a line feed ends each commit rather than separate them.
    fn is_ended(&self) -> bool {
        matches!(self.pretty.format, Format::Oneline | Format::User(_, true) | Format::Reference)
    }

    fn header(&mut self, oid: &Oid) -> Res<()> {
        if self.started && !self.is_ended() {
            out::put(b"\n");
        }
        self.started = true;
        let mut text = self.pretty.show(oid, "")?;
        if self.with_parents {
            let parents: String = self
                .repo
                .odb
                .commit(oid)?
                .parents
                .iter()
                .map(|parent| format!(" {}", self.pretty.name(parent)))
                .collect();
            let name = self.pretty.name(oid);
            if let Some(at) = text.windows(name.len()).position(|part| part == name.as_bytes()) {
                let end = at + name.len();
                text.splice(end..end, parents.into_bytes());
            }
        }
        out::put(&text);
        if matches!(&self.pretty.format, Format::User(format, true) if !format.is_empty()) {
            out::put(b"\n");
        }
        Ok(())
    }
}

/// How commits are to be shown.
pub fn pretty<'a>(repo: &'a Repo, options: &Parsed) -> Res<Pretty<'a>> {
    let given = options
        .options
        .iter()
        .rev()
        .find(|(name, _)| matches!(name.as_str(), "oneline" | "format" | "pretty"));
    let name = match given {
        Some((name, _)) if name == "oneline" => Some("oneline".to_owned()),
        Some((_, value)) => value.as_deref().map(text),
        None => repo.config.text("format.pretty"),
    };
    let format = match name {
        None => Format::Medium,
        Some(name) if name.is_empty() => Format::User(String::new(), true),
        Some(name) => match Format::named(&name, repo) {
            Some(format) => format,
            None => return Err(Fail::Fatal(format!("invalid --pretty format: {name}"))),
        },
    };
    let dates = match options.text("date").or_else(|| repo.config.text("log.date")) {
        _ if options.has("relative-date") => Dates::Relative,
        None => Dates::Default,
        Some(name) => match Dates::named(&name) {
            Some(style) => style,
            None => return Err(Fail::Fatal(format!("unknown date format {name}"))),
        },
    };
    let abbrev = options
        .state("abbrev-commit")
        .unwrap_or(options.has("oneline") || repo.config.bool("log.abbrevcommit", false));
    let decorate = match (options.state("decorate"), options.text("decorate").as_deref()) {
        (Some(true), Some("full")) => Some(Decorations::load(repo, true)?),
        (Some(true), Some("no")) => None,
        (Some(true), Some("auto")) if !wardian_abi::isatty(1) => None,
        (Some(true), _) => Some(Decorations::load(repo, false)?),
        (None, _) if wardian_abi::isatty(1) => Some(Decorations::load(repo, false)?),
        _ => None,
    };
    let abbrev_length = options.number("abbrev")?.and_then(|n| usize::try_from(n).ok());
    Ok(Pretty { repo, format, dates, abbrev, abbrev_length, decorate })
}

const SHOW_USAGE: &str = "git show [<options>] <object>...";

pub fn show(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = read("show", SHOW_USAGE, arguments)?;
    let (before, after) = options.sides();
    let paths = Pathspec::new(repo, after.unwrap_or(&[]))?;
    let names = if before.is_empty() { vec![b"HEAD".to_vec()] } else { before.to_vec() };
    let mut show = Show::new(repo, &options, &paths)?;
    if !show.diffing.formats.any() && !show.diffing.formats.none {
        show.diffing.formats.patch = true;
    }
    show.combined = !show.diffing.formats.patch;
    if !options.has("m") && show.merges.is_none() && !show.combined {
        show.merges = Some(true);
    }
    for name in &names {
        if name.windows(2).any(|pair| pair == b"..") {
            let mut walk = Walk::new(repo);
            walk.take(name)?;
            for oid in walk.run()? {
                show.commit(&oid)?;
            }
            continue;
        }
        let oid = revision::get(repo, name)?;
        object(repo, &mut show, oid, name, 0)?;
    }
    Ok(0)
}

fn object(repo: &Repo, show: &mut Show<'_>, oid: Oid, name: &[u8], depth: usize) -> Res<()> {
    let Some(object) = repo.odb.find(&oid)? else { fatal!("bad object {}", text(name)) };
    match object.kind {
        Kind::Commit => show.commit(&oid),
        Kind::Blob => {
            out::put(&object.data);
            Ok(())
        }
        Kind::Tree => {
            out::put([b"tree ", name, b"\n\n"].concat());
            for entry in repo.odb.tree(&oid)? {
                out::put(&entry.name);
                out::put(if entry.is_tree() { "/\n" } else { "\n" });
            }
            Ok(())
        }
        Kind::Tag => {
            let tag = repo.odb.tag(&oid)?;
            out::put([b"tag ", &tag.name[..], b"\n"].concat());
            if let Some(tagger) = &tag.tagger {
                let when = date::show(tagger.time, tagger.zone, &show.pretty.dates);
                out::put([b"Tagger: ", &tagger.name[..], b" <", &tagger.email, b">\n"].concat());
                out::line(format_args!("Date:   {when}"));
            }
            out::put([b"\n", &tag.message[..], b"\n"].concat());
            if depth > 64 {
                fatal!("tag {oid} is too deeply nested");
            }
            self::object(repo, show, tag.target, name, depth + 1)
        }
    }
}
