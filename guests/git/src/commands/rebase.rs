//! `git rebase`, of commits one after the other.

use crate::change;
use crate::fail::{Fail, Res, error, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::index::Index;
use crate::merge::Favour;
use crate::message;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::revision;
use crate::sequence::{self, Action, How, Outcome};
use crate::switch;
use crate::walk::{self, Order, Walk};

use super::todo::{self, Item, Verb};
use super::{checkout, commit, merge, program};

const READER: Reader = Reader {
    command: "rebase",
    usage: "git rebase [<options>] [--onto <newbase>] [<upstream> [<branch>]]",
    list: "onto= keep-base! no-verify q|quiet v|verbose n|no-stat stat signoff! committer-date-is-author-date! ignore-date! \
           C=! f|force-rebase no-ff whitespace=! continue skip abort quit edit-todo show-current-patch apply! m|merge \
           i|interactive rerere-autoupdate empty=! autosquash no-autosquash keep-empty S|gpg-sign?! autostash! no-autostash \
           x|exec= r|rebase-merges?! fork-point! no-fork-point s|strategy= X|strategy-option= root reapply-cherry-picks!",
    in_order: false,
};

pub fn rebase(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    let state = State { repo, quiet: options.has("quiet"), favour: favour(&options)? };
    let going = ["continue", "skip", "abort", "quit", "edit-todo", "show-current-patch"]
        .into_iter()
        .find(|name| options.has(name));
    if let Some(what) = going {
        if !files::is_dir(&repo.own("rebase-merge")) {
            fatal!("No rebase in progress?");
        }
        return match what {
            "continue" => state.resume(),
            "skip" => state.skip(),
            "abort" => state.abort(),
            "edit-todo" => state.edit_todo(),
            "show-current-patch" => super::log::show(repo, &[b"REBASE_HEAD".to_vec()]),
            _ => state.clear().map(|()| 0),
        };
    }
    if files::is_dir(&repo.own("rebase-merge")) {
        fatal!(
            "It seems that there is already a rebase-merge directory, and\nI wonder if you are in the middle of another rebase.  If that is the\ncase, please try\n\tgit rebase (--continue | --abort | --skip)\nIf that is not the case, please\n\trm -fr \"{0}\"\nand run me again.  I am stopping in case you still have something\nvaluable there.\n",
            ".git/rebase-merge"
        );
    }
    start(repo, &options, &state)
}

fn favour(options: &Parsed) -> Res<Favour> {
    Ok(match options.text("strategy-option").as_deref() {
        None => Favour::None,
        Some("ours") => Favour::Ours,
        Some("theirs") => Favour::Theirs,
        Some(option) => fatal!("merge strategy option '{option}' is not supported here"),
    })
}

fn start(repo: &Repo, options: &Parsed, state: &State<'_>) -> Res<i32> {
    let root = options.has("root");
    let upstream = match options.args.first() {
        _ if root => Vec::new(),
        Some(name) => name.clone(),
        None => match refs::current_branch(repo)? {
            Some(branch) if crate::remote::upstream(repo, &branch).is_some() => b"@{u}".to_vec(),
            branch => {
                let branch = branch.map_or("<branch>".to_owned(), |branch| text(&branch));
                let known = super::remote::names(repo);
                let remote = if let [only] = known.as_slice() { only } else { "<remote>" };
                out::complain(format!(
                    "There is no tracking information for the current branch.\nPlease specify which branch you want to rebase against.\nSee git-rebase(1) for details.\n\n    git rebase '<branch>'\n\nIf you wish to set tracking information for this branch you can do so with:\n\n    git branch --set-upstream-to={remote}/<branch> {branch}\n",
                ));
                return Ok(1);
            }
        },
    };
    if root && !options.has("onto") {
        return from_root(repo, options, state);
    }
    let base = match revision::find(repo, &upstream)? {
        _ if root => None,
        Some(base) => Some(repo.odb.peel(&base)?.0),
        None => fatal!("invalid upstream '{}'", text(&upstream)),
    };
    let onto_name = options.value("onto").map_or(upstream, <[u8]>::to_vec);
    let Some(onto) = revision::find(repo, &onto_name)? else {
        fatal!("Does not point to a valid commit '{}'", text(&onto_name))
    };
    let onto = repo.odb.peel(&onto)?.0;
    refuse_changes(repo)?;
    if let Some(branch) = options.args.get(usize::from(!root)) {
        if revision::find(repo, branch)?.is_none() {
            fatal!("no such branch/commit '{}'", text(branch));
        }
        let code = checkout::checkout(repo, &[b"-q".to_vec(), branch.clone()])?;
        if code != 0 {
            return Ok(code);
        }
    }
    let Some(head) = repo.head()? else { fatal!("You do not have the initial commit yet") };
    let branch = refs::current_branch(repo)?;
    let shown = branch.as_ref().map_or(String::new(), |branch| text(branch));
    let against = base.unwrap_or(onto);
    let linear = walk::merge_bases(repo, &against, &head)?;
    let mut list = commits(repo, base.as_ref(), &head)?;
    let merges = list.len() != walk::ahead_behind(repo, &head, &against)?.0;
    let asked = options.has("interactive") || options.has("exec") || options.has("autosquash");
    if !asked
        && base == Some(onto)
        && linear == [onto]
        && !merges
        && !options.has("force-rebase")
        && !options.has("no-ff")
    {
        if !state.quiet {
            let what = branch.map_or("HEAD".to_owned(), |_| format!("Current branch {shown}"));
            out::line(format_args!("{what} is up to date."));
        }
        return Ok(0);
    }
    drop_known(repo, &mut list, &commits(repo, Some(&head), &against)?)?;
    let head_name = branch.map_or(b"detached HEAD".to_vec(), |branch| [b"refs/heads/", &branch[..]].concat());
    let mut items: Vec<Item> = list.iter().map(|oid| Item::of(repo, Verb::Pick, oid)).collect::<Res<_>>()?;
    if options.state("autosquash").unwrap_or(repo.config.bool("rebase.autosquash", false) && asked)
        && !options.has("no-autosquash")
    {
        items = todo::autosquash(items);
    }
    let commands: Vec<String> = options.values("exec").map(text).collect();
    if !commands.is_empty() {
        let execs = || commands.iter().map(|command| Item::exec(command));
        items = items.into_iter().flat_map(|item| std::iter::once(item).chain(execs())).collect();
    }
    files::make_dirs(&repo.own("rebase-merge"))?;
    if options.has("interactive") {
        let range =
            base.map_or(repo.short(&head), |base| format!("{}..{}", repo.short(&base), repo.short(&head)));
        let count = items.len();
        let s = if count == 1 { "" } else { "s" };
        let about = format!("# Rebase {range} onto {} ({count} command{s})\n", repo.short(&onto));
        let list = if items.is_empty() { "noop\n".to_owned() } else { todo::shown(repo, &items) };
        let read = match todo::edit(repo, list, &about) {
            Ok(list) if list.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) => {
                Err(Fail::Error("nothing to do".to_owned()))
            }
            read => read,
        };
        let list = match read {
            Ok(list) => list,
            Err(fail) => {
                state.clear()?;
                return Err(fail);
            }
        };
        state.begin(&head_name, &onto, &head)?;
        checkout_onto(repo, &onto, &onto_name, &head)?;
        state.put("git-rebase-todo", list.as_bytes())?;
        items = todo::read(repo, &list)?;
    } else {
        state.begin(&head_name, &onto, &head)?;
        checkout_onto(repo, &onto, &onto_name, &head)?;
    }
    state.put("end", format!("{}\n", items.len()).as_bytes())?;
    state.walk(&items)
}

/// Goes to where the commits are put.
fn checkout_onto(repo: &Repo, onto: &Oid, name: &[u8], head: &Oid) -> Res<()> {
    refs::set(repo, b"ORIG_HEAD", *head, Expect::Anything, "")?;
    let mut index = Index::load(repo)?;
    switch::to_tree(repo, &mut index, &repo.head_tree()?, &repo.odb.commit(onto)?.tree, "checkout")?;
    index.save(repo)?;
    let why = format!("rebase (start): checkout {}", text(name));
    refs::set(repo, b"HEAD", *onto, Expect::Anything, &why)
}

/// `--root` alone: where nothing is asked to change nothing does.
fn from_root(repo: &Repo, options: &Parsed, state: &State<'_>) -> Res<i32> {
    if options.has("interactive") || options.has("exec") {
        fatal!("git rebase: '--root' needs '--onto' here where commits are changed");
    }
    refuse_changes(repo)?;
    if !state.quiet {
        let name = refs::current_branch(repo)?
            .map_or("detached HEAD".to_owned(), |name| format!("refs/heads/{}", text(&name)));
        out::say(format!("Successfully rebased and updated {name}.\n").as_bytes());
    }
    Ok(0)
}

fn refuse_changes(repo: &Repo) -> Res<()> {
    let index = Index::load(repo)?;
    let unstaged = !change::index_and_work(repo, &index, &Pathspec::default())?.is_empty();
    let staged = !change::tree_and_index(repo, &repo.head_tree()?, &index, &Pathspec::default())?.is_empty();
    if !unstaged && !staged {
        return Ok(());
    }
    if unstaged {
        out::complain("error: cannot rebase: You have unstaged changes.");
    }
    match (unstaged, staged) {
        (true, true) => out::complain("error: additionally, your index contains uncommitted changes."),
        (false, true) => out::complain("error: cannot rebase: Your index contains uncommitted changes."),
        _ => {}
    }
    error!("Please commit or stash them.")
}

/// What one has and the other lacks, the oldest first, without merges.
fn commits(repo: &Repo, base: Option<&Oid>, head: &Oid) -> Res<Vec<Oid>> {
    let mut walk = Walk::new(repo);
    walk.order = Order::Topo;
    walk.include(*head)?;
    if let Some(base) = base {
        walk.exclude(*base)?;
    }
    let mut list = Vec::new();
    for oid in walk.run()? {
        if repo.odb.commit(&oid)?.parents.len() < 2 {
            list.push(oid);
        }
    }
    list.reverse();
    Ok(list)
}

/// Commits whose changes the other side has already are left out.
fn drop_known(repo: &Repo, list: &mut Vec<Oid>, there: &[Oid]) -> Res<()> {
    let known: Vec<Oid> = there.iter().map(|oid| patch_id(repo, oid)).collect::<Res<_>>()?;
    let mut kept = Vec::new();
    for oid in list.iter() {
        if known.contains(&patch_id(repo, oid)?) {
            out::complain(format!("warning: skipped previously applied commit {}", repo.short(oid)));
        } else {
            kept.push(*oid);
        }
    }
    if kept.len() < list.len() {
        out::complain(
            "hint: use --reapply-cherry-picks to include skipped commits\nhint: Disable this message with \"git config advice.skippedCherryPicks false\"",
        );
    }
    *list = kept;
    Ok(())
}

/// A hash of what a commit changes, wherever in the files that is.
fn patch_id(repo: &Repo, oid: &Oid) -> Res<Oid> {
    let commit = repo.odb.commit(oid)?;
    let old =
        commit.parents.first().map(|parent| repo.odb.commit(parent).map(|parent| parent.tree)).transpose()?;
    let changes = change::trees(repo, old.as_ref(), Some(&commit.tree), &Pathspec::default())?;
    let mut all = Vec::new();
    if changes.is_empty() {
        // Empty commits are not like each other.
        all.extend_from_slice(oid.hex().as_bytes());
    }
    for change in changes {
        let (before, after) = (change.old.content(repo)?, change.new.content(repo)?);
        all.extend_from_slice(format!("{:o} {:o} ", change.old.mode, change.new.mode).as_bytes());
        all.extend_from_slice(change.path());
        let body = crate::patch::body(&before, &after, &Default::default());
        let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"@@"));
        lines.for_each(|line| all.extend_from_slice(&[b"\n", line].concat()));
    }
    Ok(crate::hash::sha1(&[&all]))
}

/// What takes the line away that shows how far it is.
fn erased() -> String {
    let plain = crate::repo::env("TERM").is_none_or(|name| name == b"dumb");
    if plain { format!("\r{:80}\r", "") } else { "\r\x1b[K".to_owned() }
}

struct State<'a> {
    repo: &'a Repo,
    quiet: bool,
    favour: Favour,
}

impl State<'_> {
    fn put(&self, name: &str, content: &[u8]) -> Res<()> {
        files::write(&self.repo.own(&format!("rebase-merge/{name}")), content)
    }

    fn get(&self, name: &str) -> Res<String> {
        let content = files::read_if_there(&self.repo.own(&format!("rebase-merge/{name}")))?;
        Ok(text(content.unwrap_or_default().trim_ascii()))
    }

    fn oid(&self, name: &str) -> Res<Oid> {
        match Oid::from_hex(self.get(name)?.as_bytes()) {
            Some(oid) => Ok(oid),
            None => fatal!("could not read '.git/rebase-merge/{name}'."),
        }
    }

    fn left(&self) -> Res<Vec<Item>> {
        todo::read(self.repo, &self.get("git-rebase-todo")?)
    }

    fn begin(&self, head_name: &[u8], onto: &Oid, head: &Oid) -> Res<()> {
        self.put("head-name", &[head_name, b"\n"].concat())?;
        self.put("onto", format!("{onto}\n").as_bytes())?;
        self.put("orig-head", format!("{head}\n").as_bytes())?;
        self.put("interactive", b"")?;
        self.put("done", b"")
    }

    fn clear(&self) -> Res<()> {
        let place = self.repo.own("rebase-merge");
        files::remove_dir_all(&place).map_err(crate::fail::system("could not remove '.git/rebase-merge'"))?;
        commit::clear_state(self.repo)
    }

    fn walk(&self, list: &[Item]) -> Res<i32> {
        let end: usize = self.get("end")?.parse().unwrap_or(list.len()).max(list.len());
        // The commits at the start that stay as they are count as done.
        let mut leading = end == list.len();
        for (at, item) in list.iter().enumerate() {
            let number = end - list.len() + at + 1;
            let todo: String = list[at + 1..].iter().map(Item::line).collect();
            self.put("git-rebase-todo", todo.as_bytes())?;
            self.put("done", format!("{}\n{}", self.get("done")?, item.line()).trim_start().as_bytes())?;
            self.put("msgnum", format!("{number}\n").as_bytes())?;
            leading = leading
                && item.verb == Verb::Pick
                && self.repo.odb.commit(&item.oid)?.parents.first().copied() == self.repo.head()?;
            if !self.quiet && !leading && item.verb != Verb::Nothing {
                out::say(format!("Rebasing ({number}/{end})\r").as_bytes());
            }
            let next = list.get(at + 1).map(|next| next.verb);
            let code = match item.verb {
                Verb::Nothing | Verb::Drop => None,
                Verb::Break => Some(self.take_break()?),
                Verb::Exec => self.exec(&item.rest)?,
                verb => self.commit(verb, &item.oid, next)?,
            };
            if let Some(code) = code {
                return Ok(code);
            }
        }
        self.finish()
    }

    /// Applies a commit; answers an exit code where it stops.
    fn commit(&self, verb: Verb, oid: &Oid, next: Option<Verb>) -> Res<Option<i32>> {
        let repo = self.repo;
        let joins = matches!(verb, Verb::Squash | Verb::Fixup);
        let how = How { fast_forward: !joins, allow_empty: true, favour: self.favour, ..How::default() };
        let before = repo.head()?;
        match sequence::apply_as(repo, Action::Pick, oid, &how, "rebase (pick)")? {
            Outcome::Done(_) => {}
            Outcome::Empty if joins => {
                commit::clear_state(repo)?;
                return Ok(None);
            }
            Outcome::Empty => {
                commit::clear_state(repo)?;
                let subject = text(&repo.odb.commit(oid)?.subject());
                out::complain(format!("dropping {oid} {subject} -- patch contents already upstream"));
                return Ok(None);
            }
            Outcome::Conflict => {
                refs::set(repo, b"REBASE_HEAD", *oid, Expect::Anything, "")?;
                if joins {
                    self.put("amend", before.map_or(String::new(), |oid| oid.hex()).as_bytes())?;
                }
                return self.stopped(oid).map(Some);
            }
        }
        match verb {
            Verb::Reword => {
                let code = commit::commit(repo, &[b"--amend".to_vec(), b"-q".to_vec()])?;
                Ok((code != 0).then_some(code))
            }
            Verb::Edit => self.stop_for_editing(oid).map(Some),
            Verb::Squash | Verb::Fixup => {
                let more = matches!(next, Some(Verb::Squash | Verb::Fixup));
                self.join(verb, oid, more).map(|()| None)
            }
            _ => Ok(None),
        }
    }

    /// Makes one commit of the last two.
    fn join(&self, verb: Verb, oid: &Oid, more: bool) -> Res<()> {
        let repo = self.repo;
        let Some(head) = repo.head()? else { fatal!("could not resolve HEAD") };
        let top = repo.odb.commit(&head)?;
        let Some(below) = top.parents.first() else { fatal!("there is no commit before {oid}") };
        let base = repo.odb.commit(below)?;
        let message = &repo.odb.commit(oid)?.message;
        let count: usize = self.get("joined")?.parse().unwrap_or(1) + 1;
        let texts = match files::read_if_there(&repo.own("rebase-merge/message-squash"))? {
            Some(texts) => texts,
            None => [b"# This is the 1st commit message:\n\n", &base.message[..]].concat(),
        };
        let added = match verb {
            Verb::Squash => format!("\n# This is the commit message #{count}:\n\n{}", text(message)),
            _ => {
                let lines: String = text(message).lines().map(|line| format!("# {line}\n")).collect();
                format!("\n# The commit message #{count} will be skipped:\n\n{lines}")
            }
        };
        let texts = [&texts[..], added.as_bytes()].concat();
        let squashes = verb == Verb::Squash || self.get("squashes")? == "yes";
        let mut new = crate::object::Commit {
            tree: top.tree,
            parents: base.parents.clone(),
            author: base.author.clone(),
            committer: crate::ident::committer(repo)?,
            extra: Vec::new(),
            message: message::clean(&texts, true),
        };
        if !squashes {
            new.message.clone_from(&base.message);
        } else if !more {
            let start =
                [format!("# This is a combination of {count} commits.\n").as_bytes(), &texts].concat();
            let comments = b"Please enter the commit message for your changes. Lines starting\nwith '#' will be ignored, and an empty message aborts the commit.\n";
            new.message = message::edited(repo, "COMMIT_EDITMSG", &start, comments)?;
        }
        let made = repo.odb.write(crate::object::Kind::Commit, &new.write())?;
        let name = if verb == Verb::Squash { "squash" } else { "fixup" };
        let why = format!("rebase ({name}): {}", text(&new.subject()));
        refs::update(repo, b"HEAD", made, Expect::Anything, &why)?;
        for (name, content) in [
            ("joined", count.to_string().into_bytes()),
            ("squashes", if squashes { b"yes".to_vec() } else { Vec::new() }),
            ("message-squash", texts),
        ] {
            match more {
                true => self.put(name, &content)?,
                false => files::remove_if_there(&repo.own(&format!("rebase-merge/{name}")))?,
            }
        }
        if squashes && !more && !self.quiet {
            commit::announce(repo, &made, false, true)?;
            out::flush();
        }
        Ok(())
    }

    fn erase_progress(&self) {
        if !self.quiet {
            out::say(erased().as_bytes());
        }
    }

    fn stop_for_editing(&self, oid: &Oid) -> Res<i32> {
        let repo = self.repo;
        let head = repo.head()?.map_or(String::new(), |oid| oid.hex());
        self.put("amend", format!("{head}\n").as_bytes())?;
        self.put("stopped-sha", format!("{oid}\n").as_bytes())?;
        refs::set(repo, b"REBASE_HEAD", *oid, Expect::Anything, "")?;
        self.erase_progress();
        let subject = text(&repo.odb.commit(oid)?.subject());
        out::complain(format!(
            "Stopped at {}...  {subject}\nYou can amend the commit now, with\n\n  git commit --amend \n\nOnce you are satisfied with your changes, run\n\n  git rebase --continue",
            repo.short(oid)
        ));
        Ok(0)
    }

    fn take_break(&self) -> Res<i32> {
        self.erase_progress();
        let Some(head) = self.repo.head()? else { fatal!("could not resolve HEAD") };
        let subject = text(&self.repo.odb.commit(&head)?.subject());
        out::complain(format!("Stopped at {} ({subject})", self.repo.short(&head)));
        Ok(0)
    }

    fn exec(&self, command: &str) -> Res<Option<i32>> {
        self.erase_progress();
        if !self.quiet {
            out::complain(format!("Executing: {command}"));
        }
        let words = [b"sh".to_vec(), b"-c".to_vec(), command.as_bytes().to_vec()];
        let code = program::run(&words)?;
        if code == 0 {
            return Ok(None);
        }
        out::complain(format!(
            "warning: execution failed: {command}\nYou can fix the problem, and then run\n\n  git rebase --continue\n\n"
        ));
        Ok(Some(1))
    }

    fn edit_todo(&self) -> Res<i32> {
        let items = self.left()?;
        let list = todo::edit(self.repo, todo::shown(self.repo, &items), "")?;
        let items = todo::read(self.repo, &list)?;
        let done = self.get("msgnum")?.parse::<usize>().unwrap_or(0);
        self.put("end", format!("{}\n", done + items.len()).as_bytes())?;
        self.put("git-rebase-todo", items.iter().map(Item::line).collect::<String>().as_bytes())?;
        Ok(0)
    }

    fn stopped(&self, oid: &Oid) -> Res<i32> {
        files::remove_if_there(&self.repo.own("CHERRY_PICK_HEAD"))?;
        self.put("stopped-sha", format!("{oid}\n").as_bytes())?;
        let name = format!("{}... {}", self.repo.short(oid), text(&self.repo.odb.commit(oid)?.subject()));
        out::complain(format!(
            "error: could not apply {name}\nhint: Resolve all conflicts manually, mark them as resolved with\nhint: \"git add/rm <conflicted_files>\", then run \"git rebase --continue\".\nhint: You can instead skip this commit: run \"git rebase --skip\".\nhint: To abort and get back to the state before \"git rebase\", run \"git rebase --abort\".\nCould not apply {name}"
        ));
        Ok(1)
    }

    fn finish(&self) -> Res<i32> {
        let (name, onto, old) = (self.get("head-name")?, self.oid("onto")?, self.oid("orig-head")?);
        let Some(head) = self.repo.head()? else { fatal!("could not resolve HEAD") };
        if name.starts_with("refs/") {
            let why = format!("rebase (finish): {name} onto {onto}");
            refs::set(self.repo, name.as_bytes(), head, Expect::Value(old), &why)?;
            let why = format!("rebase (finish): returning to {name}");
            refs::set_symbolic(self.repo, b"HEAD", name.as_bytes(), Some(&why))?;
        }
        self.clear()?;
        if !self.quiet {
            let name = if name.starts_with("refs/") { name } else { "detached HEAD".to_owned() };
            out::say(format!("{}Successfully rebased and updated {name}.\n", erased()).as_bytes());
        }
        Ok(0)
    }

    fn resume(&self) -> Res<i32> {
        let index = Index::load(self.repo)?;
        let unmerged = index.unmerged();
        if !unmerged.is_empty() {
            unmerged.iter().for_each(|path| out::line(format_args!("{}: needs merge", text(path))));
            out::line("You must edit all merge conflicts and then\nmark them as resolved using git add");
            return Ok(1);
        }
        let tree = index.write_tree(&self.repo.odb)?;
        let amended = Oid::from_hex(self.get("amend")?.as_bytes());
        files::remove_if_there(&self.repo.own("rebase-merge/amend"))?;
        if tree != self.repo.head_tree()? && amended.is_some() && amended == self.repo.head()? {
            let code = commit::commit(self.repo, &[b"--amend".to_vec(), b"-q".to_vec()])?;
            if code != 0 {
                return Ok(code);
            }
        } else if tree != self.repo.head_tree()? {
            let stopped = self.repo.odb.commit(&self.oid("stopped-sha")?)?;
            let prepared = files::read_if_there(&self.repo.own("MERGE_MSG"))?;
            let start = message::clean(&prepared.unwrap_or_else(|| stopped.message.clone()), true);
            let comments = b"Please enter the commit message for your changes. Lines starting\nwith '#' will be ignored, and an empty message aborts the commit.\n";
            let edited = message::edited(self.repo, "COMMIT_EDITMSG", &start, comments).map_err(|fail| {
                fail.report();
                Fail::Error("could not commit staged changes.".to_owned())
            })?;
            let new = sequence::write(self.repo, tree, stopped.author.clone(), &edited, "rebase (continue)")?;
            commit::announce(self.repo, &new, false, false)?;
            out::flush();
        }
        commit::clear_state(self.repo)?;
        self.walk(&self.left()?)
    }

    fn skip(&self) -> Res<i32> {
        let mut index = Index::load(self.repo)?;
        merge::undo(self.repo, &mut index)?;
        index.save(self.repo)?;
        commit::clear_state(self.repo)?;
        self.walk(&self.left()?)
    }

    fn abort(&self) -> Res<i32> {
        let (name, old) = (self.get("head-name")?, self.oid("orig-head")?);
        let mut index = Index::load(self.repo)?;
        switch::force(self.repo, &mut index, &self.repo.odb.commit(&old)?.tree)?;
        index.save(self.repo)?;
        let back = if name.starts_with("refs/") { name.clone() } else { old.hex() };
        let why = format!("rebase (abort): returning to {back}");
        if name.starts_with("refs/") {
            refs::set_symbolic(self.repo, b"HEAD", name.as_bytes(), Some(&why))?;
        } else {
            refs::set(self.repo, b"HEAD", old, Expect::Anything, &why)?;
        }
        self.clear().map(|()| 0)
    }
}
