//! `git fetch` and `git pull`, from repositories on the same machine.

use crate::fail::{Fail, Res, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::refs::{self, Expect};
use crate::remote::Refspec;
use crate::repo::Repo;
use crate::transport;
use crate::walk;

use super::{merge, remote};

const FETCH: Reader = Reader {
    command: "fetch",
    usage: "git fetch [<options>] [<repository> [<refspec>...]]",
    list: "v|verbose q|quiet all a|append f|force m|multiple! t|tags n|no-tags p|prune no-prune P|prune-tags! dry-run! k|keep! \
           u|update-head-ok depth=! unshallow! progress no-progress j|jobs= recurse-submodules?! no-recurse-submodules",
    in_order: false,
};

pub fn fetch(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = FETCH.read(arguments)?;
    if options.has("all") {
        let mut code = 0;
        for name in remote::names(repo) {
            if !options.has("quiet") {
                out::line(format_args!("Fetching {name}"));
                out::flush();
            }
            code = code.max(Fetch::new(repo, name.as_bytes(), &[], &options)?.run()?);
        }
        return Ok(code);
    }
    match options.args.split_first() {
        Some((name, specs)) => Fetch::new(repo, name, specs, &options)?.run(),
        None => {
            let name = transport::usual_remote(repo)?;
            if transport::address(repo, &name).is_none() && remote::names(repo).is_empty() {
                return Ok(0);
            }
            Fetch::new(repo, name.as_bytes(), &[], &options)?.run()
        }
    }
}

struct Fetch<'a> {
    repo: &'a Repo,
    from: Repo,
    address: Vec<u8>,
    /// The remote's name, if it has one.
    name: Option<String>,
    given: Vec<Refspec>,
    usual: Vec<Refspec>,
    options: &'a Parsed,
}

/// A name there that is wanted here.
struct Wanted {
    there: Vec<u8>,
    oid: Oid,
    here: Option<Vec<u8>>,
    force: bool,
    merges: bool,
}

impl<'a> Fetch<'a> {
    fn new(repo: &'a Repo, name: &[u8], specs: &[Vec<u8>], options: &'a Parsed) -> Res<Fetch<'a>> {
        let known = transport::address(repo, &text(name));
        let name_of = known.is_some().then(|| text(name));
        let address = known.unwrap_or_else(|| name.to_vec());
        let from = transport::must_open(&address, Some(repo))?;
        let usual = match &name_of {
            Some(name) => repo.config.all(format!("remote.{name}.fetch").as_bytes()),
            None => Vec::new(),
        };
        let parse =
            |list: &[Vec<u8>]| list.iter().filter_map(|spec| Refspec::parse(spec)).collect::<Vec<_>>();
        Ok(Fetch { repo, from, address, name: name_of, given: parse(specs), usual: parse(&usual), options })
    }

    fn run(&self) -> Res<i32> {
        let wanted = self.wanted()?;
        let tips: Vec<Oid> = wanted.iter().map(|want| want.oid).collect();
        transport::copy(&self.from, self.repo, &tips)?;
        let mut lines = Vec::new();
        let mut code = 0;
        for want in &wanted {
            lines.extend(self.store(want, &mut code)?);
        }
        self.write_fetch_head(&wanted)?;
        if self.options.state("prune").unwrap_or(self.repo.config.bool("fetch.prune", false)) {
            lines.splice(0..0, self.prune()?);
        }
        if !lines.is_empty() && !self.options.has("quiet") {
            let width = lines.iter().map(|line| line.2.len()).max().unwrap_or(0).max(10);
            out::complain(format!("From {}", transport::shown(&self.address)));
            for (sign, what, there, here, why) in lines {
                out::complain(format!(" {sign} {what:<17} {there:<width$} -> {here}{why}"));
            }
        }
        Ok(code)
    }

    fn wanted(&self) -> Res<Vec<Wanted>> {
        let all = refs::list(&self.from, b"refs/")?;
        let mut wanted: Vec<Wanted> = Vec::new();
        let branch = refs::current_branch(self.repo)?.map(|branch| text(&branch)).unwrap_or_default();
        let followed =
            self.repo.config.text(&format!("branch.{branch}.remote")) == self.name && self.name.is_some();
        let merged = self.repo.config.get(&format!("branch.{branch}.merge")).filter(|_| followed);
        if self.given.is_empty() && self.usual.is_empty() {
            let Some(oid) = self.from.head()? else { fatal!("couldn't find remote ref HEAD") };
            wanted.push(Wanted { there: b"HEAD".to_vec(), oid, here: None, force: false, merges: true });
        } else if self.given.is_empty() {
            for spec in &self.usual {
                for (name, oid) in &all {
                    if let Some(here) = spec.map(name) {
                        let merges = merged.as_ref() == Some(name);
                        wanted.push(Wanted {
                            there: name.clone(),
                            oid: *oid,
                            here: Some(here),
                            force: spec.force,
                            merges,
                        });
                    }
                }
            }
        }
        for spec in &self.given {
            self.given_one(spec, &all, &mut wanted)?;
        }
        // What is merged comes first in FETCH_HEAD.
        wanted.sort_by_key(|want| !want.merges);
        self.add_tags(&all, &mut wanted)?;
        Ok(wanted)
    }

    fn given_one(&self, spec: &Refspec, all: &[(Vec<u8>, Oid)], wanted: &mut Vec<Wanted>) -> Res<()> {
        if spec.from.contains(&b'*') {
            for (name, oid) in all {
                if let Some(here) = spec.map(name) {
                    let here = Some(here).filter(|here| !here.is_empty());
                    wanted.push(Wanted {
                        there: name.clone(),
                        oid: *oid,
                        here,
                        force: spec.force,
                        merges: true,
                    });
                }
            }
            return Ok(());
        }
        let name = if spec.from.is_empty() { b"HEAD".to_vec() } else { spec.from.clone() };
        let full = crate::revision::full_name(&self.from, &name)?;
        let Some(full) = full else { fatal!("couldn't find remote ref {}", text(&name)) };
        let Some(oid) = refs::resolve(&self.from, &full)? else {
            fatal!("couldn't find remote ref {}", text(&name))
        };
        let here = match spec.to.as_slice() {
            b"" => None,
            to if to.starts_with(b"refs/") => Some(to.to_vec()),
            to if full.starts_with(b"refs/tags/") => Some([b"refs/tags/", to].concat()),
            to => Some([b"refs/heads/", to].concat()),
        };
        let plain = here.is_none();
        wanted.push(Wanted { there: full.clone(), oid, here, force: spec.force, merges: true });
        if plain && let Some((spec, here)) = self.usual.iter().find_map(|spec| Some((spec, spec.map(&full)?)))
        {
            wanted.push(Wanted { there: full, oid, here: Some(here), force: spec.force, merges: false });
        }
        Ok(())
    }

    /// Tags come along if what they name does.
    fn add_tags(&self, all: &[(Vec<u8>, Oid)], wanted: &mut Vec<Wanted>) -> Res<()> {
        if self.options.has("no-tags") || self.options.state("tags") == Some(false) {
            return Ok(());
        }
        let tips: Vec<Oid> = wanted.iter().map(|want| want.oid).collect();
        let follows = self.options.has("tags") || wanted.iter().any(|want| want.here.is_some());
        let mut reached = None;
        for (name, oid) in all.iter().filter(|(name, _)| follows && name.starts_with(b"refs/tags/")) {
            if refs::resolve(self.repo, name)?.is_some() && !self.options.has("tags") {
                continue;
            }
            if reached.is_none() {
                reached = Some(walk::ancestors(&self.from, &tips)?);
            }
            let target = self.from.odb.peel(oid)?.0;
            let near = reached.as_ref().is_some_and(|reached| reached.contains(&target))
                || self.repo.odb.has(&target);
            if self.options.has("tags") || near {
                let here = Some(name.clone());
                wanted.push(Wanted { there: name.clone(), oid: *oid, here, force: false, merges: false });
            }
        }
        Ok(())
    }

    /// Sets the name here, and answers the line to show: sign, what happened, there, here, why.
    fn store(&self, want: &Wanted, code: &mut i32) -> Res<Option<Line>> {
        let there = text(refs::short(&want.there));
        let there = if want.there.starts_with(b"refs/remotes/") { text(&want.there) } else { there };
        let Some(here) = &want.here else {
            let kind = match () {
                () if want.there.starts_with(b"refs/heads/") => "branch",
                () if want.there.starts_with(b"refs/tags/") => "tag",
                () => "branch",
            };
            return Ok(Some(("*", kind.to_owned(), there, "FETCH_HEAD".to_owned(), String::new())));
        };
        let repo = self.repo;
        let shown = text(refs::short(here));
        let old = refs::resolve(repo, here)?;
        let verb = match self.options.args.is_empty() {
            true => "fetch".to_owned(),
            false => format!("fetch {}", text(&self.options.args.join(&b' '))),
        };
        let set = |why: &str| refs::set(repo, here, want.oid, Expect::Anything, &format!("{verb}: {why}"));
        let Some(old) = old else {
            let (kind, why) = match () {
                () if want.there.starts_with(b"refs/tags/") => ("[new tag]", "storing tag"),
                () if want.there.starts_with(b"refs/heads/") => ("[new branch]", "storing head"),
                () => ("[new ref]", "storing ref"),
            };
            set(why)?;
            return Ok(Some(("*", kind.to_owned(), there, shown, String::new())));
        };
        if old == want.oid {
            return Ok(None);
        }
        let (before, after) = (repo.short(&old), repo.short(&want.oid));
        if here.starts_with(b"refs/tags/") {
            if !want.force && !self.options.has("force") {
                *code = 1;
                let why = "  (would clobber existing tag)".to_owned();
                return Ok(Some(("!", "[rejected]".to_owned(), there, shown, why)));
            }
            set("updating tag")?;
            return Ok(Some(("t", "[tag update]".to_owned(), there, shown, String::new())));
        }
        if refs::current_branch(repo)?.is_some_and(|branch| [b"refs/heads/", &branch[..]].concat() == *here)
            && !repo.is_bare()
            && !self.options.has("update-head-ok")
        {
            fatal!(
                "refusing to fetch into branch '{}' checked out at '{}'",
                text(here),
                text(repo.work_tree()?)
            );
        }
        if walk::is_ancestor(repo, &old, &want.oid)? {
            set("fast-forward")?;
            return Ok(Some((" ", format!("{before}..{after}"), there, shown, String::new())));
        }
        if want.force || self.options.has("force") {
            set("forced-update")?;
            let why = "  (forced update)".to_owned();
            return Ok(Some(("+", format!("{before}...{after}"), there, shown, why)));
        }
        *code = 1;
        Ok(Some(("!", "[rejected]".to_owned(), there, shown, "  (non-fast-forward)".to_owned())))
    }

    fn write_fetch_head(&self, wanted: &[Wanted]) -> Res<()> {
        let mut content = String::new();
        let place = transport::shown(&self.address);
        let given = !self.given.is_empty();
        for want in wanted.iter().filter(|want| !given || want.here.is_none() || want.merges) {
            let short = text(refs::short(&want.there));
            let what = match () {
                () if want.there == b"HEAD" => place.clone(),
                () if want.there.starts_with(b"refs/tags/") => format!("tag '{short}' of {place}"),
                () => format!("branch '{short}' of {place}"),
            };
            let mark = if want.merges { "" } else { "not-for-merge" };
            content += &format!("{}\t{mark}\t{what}\n", want.oid);
        }
        files::write(&self.repo.own("FETCH_HEAD"), content.as_bytes())
    }

    /// Names here of what is gone there go too.
    fn prune(&self) -> Res<Vec<Line>> {
        let mut lines = Vec::new();
        let all = refs::list(&self.from, b"refs/")?;
        for spec in self.usual.iter().filter(|_| self.given.is_empty()) {
            let Some(star) = spec.to.iter().position(|&byte| byte == b'*') else { continue };
            for (name, _) in refs::list(self.repo, &spec.to[..star])? {
                let alive = all.iter().any(|(there, _)| spec.map(there).as_ref() == Some(&name));
                let symbolic = matches!(refs::read(self.repo, &name)?, Some(refs::Value::Symbolic(_)));
                if !alive && !symbolic {
                    refs::delete(self.repo, &name, Expect::Anything)?;
                    let here = text(refs::short(&name));
                    lines.push(("-", "[deleted]".to_owned(), "(none)".to_owned(), here, String::new()));
                }
            }
        }
        Ok(lines)
    }
}

type Line = (&'static str, String, String, String, String);

const PULL: Reader = Reader {
    command: "pull",
    usage: "git pull [<options>] [<repository> [<refspec>...]]",
    list: "v|verbose q|quiet progress no-progress r|rebase? no-rebase n stat no-stat log?! signoff! squash commit no-commit e|edit \
           no-edit cleanup=! ff no-ff ff-only verify! no-verify autostash! s|strategy= X|strategy-option= \
           allow-unrelated-histories all! a|append! f|force t|tags p|prune j|jobs= depth=!",
    in_order: false,
};

pub fn pull(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = PULL.read(arguments)?;
    repo.work_tree()?;
    merge::refuse_unfinished(repo)?;
    let mut fetching: Vec<Vec<u8>> = Vec::new();
    for name in ["quiet", "force", "tags", "prune"].into_iter().filter(|name| options.has(name)) {
        fetching.push(format!("--{name}").into_bytes());
    }
    fetching.push(b"--update-head-ok".to_vec());
    fetching.extend(options.args.iter().cloned());
    let code = fetch(repo, &fetching)?;
    if code != 0 {
        return Ok(code);
    }
    let content = files::read_if_there(&repo.own("FETCH_HEAD"))?.unwrap_or_default();
    let lines = text(&content);
    let merged: Vec<&str> = lines.lines().filter(|line| !line.contains("\tnot-for-merge\t")).collect();
    let [line] = merged.as_slice() else { return nothing_to_merge(repo, &merged) };
    let mut parts = line.splitn(3, '\t');
    let Some(theirs) = parts.next().and_then(|hex| Oid::from_hex(hex.as_bytes())) else {
        return Err(Fail::Fatal("the file FETCH_HEAD is corrupt".to_owned()));
    };
    let what = parts.nth(1).unwrap_or_default();
    let ff = repo.config.text("pull.ff");
    if let Some(head) = repo.head()?
        && !walk::is_ancestor(repo, &head, &theirs)?
        && !walk::is_ancestor(repo, &theirs, &head)?
        && options.state("rebase").is_none()
        && repo.config.text("pull.rebase").is_none()
        && options.state("ff").is_none()
        && ff.is_none()
        && !options.has("ff-only")
        && !options.has("squash")
    {
        out::complain(DIVERGENT);
        fatal!("Need to specify how to reconcile divergent branches.");
    }
    let configured = repo.config.text("pull.rebase").is_some_and(|value| value != "false");
    let rebases =
        options.state("rebase").unwrap_or(configured) && options.text("rebase").as_deref() != Some("false");
    let forward = match repo.head()? {
        Some(head) => walk::is_ancestor(repo, &head, &theirs)?,
        None => true,
    };
    if rebases && !forward {
        let mut words = vec![theirs.hex().into_bytes()];
        words.extend(options.has("quiet").then(|| b"--quiet".to_vec()));
        return super::rebase::rebase(repo, &words);
    }
    let mut merging: Vec<Vec<u8>> = Vec::new();
    for name in ["quiet", "squash", "allow-unrelated-histories", "ff-only"]
        .into_iter()
        .filter(|name| options.has(name))
    {
        merging.push(format!("--{name}").into_bytes());
    }
    for name in ["ff", "commit", "edit", "stat"] {
        match options.state(name) {
            Some(true) => merging.push(format!("--{name}").into_bytes()),
            Some(false) => merging.push(format!("--no-{name}").into_bytes()),
            None => {}
        }
    }
    if let Some(option) = options.text("strategy-option") {
        merging.push(format!("-X{option}").into_bytes());
    }
    merging.push(theirs.hex().into_bytes());
    merge::merge_as(repo, &merging, Some((&format!("pull{}", words(&options)), what)))
}

fn words(options: &Parsed) -> String {
    options.args.iter().map(|word| format!(" {}", text(word))).collect()
}

fn nothing_to_merge(repo: &Repo, merged: &[&str]) -> Res<i32> {
    if !merged.is_empty() {
        fatal!("merging more than one commit at a time is not supported here");
    }
    let Some(branch) = refs::current_branch(repo)? else {
        out::complain(
            "You are not currently on a branch.\nPlease specify which branch you want to merge with.\nSee git-pull(1) for details.\n\n    git pull <remote> <branch>\n",
        );
        return Ok(1);
    };
    let known = remote::names(repo);
    let remote = if let [only] = known.as_slice() { only.clone() } else { "<remote>".to_owned() };
    out::complain(format!(
        "There is no tracking information for the current branch.\nPlease specify which branch you want to merge with.\nSee git-pull(1) for details.\n\n    git pull <remote> <branch>\n\nIf you wish to set tracking information for this branch you can do so with:\n\n    git branch --set-upstream-to={remote}/<branch> {}\n",
        text(&branch)
    ));
    Ok(1)
}

const DIVERGENT: &str = "hint: You have divergent branches and need to specify how to reconcile them.
hint: You can do so by running one of the following commands sometime before
hint: your next pull:
hint: 
hint:   git config pull.rebase false  # merge
hint:   git config pull.rebase true   # rebase
hint:   git config pull.ff only       # fast-forward only
hint: 
hint: You can replace \"git config\" with \"git config --global\" to set a default
hint: preference for all repositories. You can also pass --rebase, --no-rebase,
hint: or --ff-only on the command line to override the configured default per
hint: invocation.";
