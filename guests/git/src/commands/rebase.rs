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

use super::{checkout, commit, merge};

const READER: Reader = Reader {
    command: "rebase",
    usage: "git rebase [<options>] [--onto <newbase>] [<upstream> [<branch>]]",
    list: "onto= keep-base! no-verify q|quiet v|verbose n|no-stat stat signoff! committer-date-is-author-date! ignore-date! \
           C=! f|force-rebase no-ff whitespace=! continue skip abort quit edit-todo! show-current-patch! apply! m|merge \
           i|interactive! rerere-autoupdate empty=! autosquash! no-autosquash keep-empty S|gpg-sign?! autostash! no-autostash \
           x|exec=! r|rebase-merges?! fork-point! no-fork-point s|strategy= X|strategy-option= root! reapply-cherry-picks!",
    in_order: false,
};

pub fn rebase(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    let state = State { repo, quiet: options.has("quiet"), favour: favour(&options)? };
    let going = ["continue", "skip", "abort", "quit"].into_iter().find(|name| options.has(name));
    if let Some(what) = going {
        if !files::is_dir(&repo.own("rebase-merge")) {
            fatal!("No rebase in progress?");
        }
        return match what {
            "continue" => state.resume(),
            "skip" => state.skip(),
            "abort" => state.abort(),
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
    let upstream = match options.args.first() {
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
    let Some(base) = revision::find(repo, &upstream)? else {
        fatal!("invalid upstream '{}'", text(&upstream))
    };
    let base = repo.odb.peel(&base)?.0;
    let onto_name = options.value("onto").map_or(upstream, <[u8]>::to_vec);
    let Some(onto) = revision::find(repo, &onto_name)? else {
        fatal!("Does not point to a valid commit '{}'", text(&onto_name))
    };
    let onto = repo.odb.peel(&onto)?.0;
    refuse_changes(repo)?;
    if let Some(branch) = options.args.get(1) {
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
    let linear = walk::merge_bases(repo, &base, &head)?;
    let mut list = commits(repo, &base, &head)?;
    let merges = list.len() != walk::ahead_behind(repo, &head, &base)?.0;
    if base == onto && linear == [onto] && !merges && !options.has("force-rebase") && !options.has("no-ff") {
        if !state.quiet {
            let what = branch.map_or("HEAD".to_owned(), |_| format!("Current branch {shown}"));
            out::line(format_args!("{what} is up to date."));
        }
        return Ok(0);
    }
    drop_known(repo, &mut list, &commits(repo, &head, &base)?)?;
    let head_name = branch.map_or(b"detached HEAD".to_vec(), |branch| [b"refs/heads/", &branch[..]].concat());
    refs::set(repo, b"ORIG_HEAD", head, Expect::Anything, "")?;
    let mut index = Index::load(repo)?;
    switch::to_tree(repo, &mut index, &repo.head_tree()?, &repo.odb.commit(&onto)?.tree, "checkout")?;
    index.save(repo)?;
    refs::set(
        repo,
        b"HEAD",
        onto,
        Expect::Anything,
        &format!("rebase (start): checkout {}", text(&onto_name)),
    )?;
    files::make_dirs(&repo.own("rebase-merge"))?;
    state.put("head-name", &[&head_name[..], b"\n"].concat())?;
    state.put("onto", format!("{onto}\n").as_bytes())?;
    state.put("orig-head", format!("{head}\n").as_bytes())?;
    state.put("end", format!("{}\n", list.len()).as_bytes())?;
    state.put("interactive", b"")?;
    state.put("done", b"")?;
    state.walk(&list)
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
fn commits(repo: &Repo, base: &Oid, head: &Oid) -> Res<Vec<Oid>> {
    let mut walk = Walk::new(repo);
    walk.order = Order::Topo;
    walk.include(*head)?;
    walk.exclude(*base)?;
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

    fn line(&self, oid: &Oid) -> Res<String> {
        Ok(format!("pick {oid} {}\n", text(&self.repo.odb.commit(oid)?.subject())))
    }

    fn left(&self) -> Res<Vec<Oid>> {
        let todo = self.get("git-rebase-todo")?;
        let words =
            todo.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(' ').nth(1));
        words.map(|word| revision::commit(self.repo, word.as_bytes())).collect()
    }

    fn clear(&self) -> Res<()> {
        let place = self.repo.own("rebase-merge");
        files::remove_dir_all(&place).map_err(crate::fail::system("could not remove '.git/rebase-merge'"))?;
        commit::clear_state(self.repo)
    }

    fn walk(&self, list: &[Oid]) -> Res<i32> {
        let end: usize = self.get("end")?.parse().unwrap_or(list.len());
        let how = How { fast_forward: true, allow_empty: true, favour: self.favour, ..How::default() };
        for (at, oid) in list.iter().enumerate() {
            let number = end.saturating_sub(list.len()) + at + 1;
            let todo: String = list[at + 1..].iter().map(|oid| self.line(oid)).collect::<Res<_>>()?;
            self.put("git-rebase-todo", todo.as_bytes())?;
            self.put("done", format!("{}\n{}", self.get("done")?, self.line(oid)?).trim_start().as_bytes())?;
            self.put("msgnum", format!("{number}\n").as_bytes())?;
            if !self.quiet {
                out::say(format!("Rebasing ({number}/{end})\r").as_bytes());
            }
            match sequence::apply_as(self.repo, Action::Pick, oid, &how, "rebase (pick)")? {
                Outcome::Done(_) => {}
                Outcome::Empty => {
                    commit::clear_state(self.repo)?;
                    let subject = text(&self.repo.odb.commit(oid)?.subject());
                    out::complain(format!("dropping {oid} {subject} -- patch contents already upstream"));
                }
                Outcome::Conflict => return self.stopped(oid),
            }
        }
        self.finish()
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
            // The line that shows how far it is goes.
            let plain = crate::repo::env("TERM").is_none_or(|name| name == b"dumb");
            let gone = if plain { format!("\r{:80}\r", "") } else { "\r\x1b[K".to_owned() };
            out::say(format!("{gone}Successfully rebased and updated {name}.\n").as_bytes());
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
        if tree != self.repo.head_tree()? {
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
