//! `git cherry-pick` and `git revert`.

use crate::fail::{Fail, Res, error, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::index::Index;
use crate::merge::Favour;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::revision;
use crate::sequence::{self, Action, How, Outcome};
use crate::walk::Walk;

use super::{commit, merge};

const PICK: Reader = Reader {
    command: "cherry-pick",
    usage: "git cherry-pick [--edit] [-n] [-m <parent-number>] [-s] [-x] [--ff] <commit>...",
    list: "e|edit no-edit cleanup=! x m|mainline= n|no-commit s|signoff S|gpg-sign?! ff allow-empty allow-empty-message \
           keep-redundant-commits strategy= X|strategy-option= continue skip quit abort r rerere-autoupdate",
    in_order: false,
};

const REVERT: Reader = Reader {
    command: "revert",
    usage: "git revert [--[no-]edit] [-n] [-m <parent-number>] [-s] <commit>...",
    list: "e|edit no-edit cleanup=! m|mainline= n|no-commit s|signoff S|gpg-sign?! strategy= X|strategy-option= continue skip \
           quit abort rerere-autoupdate reference!",
    in_order: false,
};

pub fn cherry_pick(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    run(repo, &PICK, Action::Pick, arguments)
}

pub fn revert(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    run(repo, &REVERT, Action::Revert, arguments)
}

fn run(repo: &Repo, reader: &Reader, action: Action, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = reader.read(arguments)?;
    repo.work_tree()?;
    let how = how(&options, action)?;
    let state = State { repo, action };
    match () {
        () if options.has("abort") => return state.abort(),
        () if options.has("quit") => return state.clear().map(|()| 0),
        () if options.has("skip") => return state.skip(&how),
        () if options.has("continue") => return state.resume(&how),
        () => {}
    }
    if options.args.is_empty() {
        return Err(reader.bad(""));
    }
    let list = commits(repo, &options.args, action)?;
    let single = list.len() == 1 && !options.args.iter().any(|name| is_range(name));
    if !single && files::exists(&repo.own("sequencer/todo")) {
        out::complain(format!(
            "error: {0} is already in progress\nhint: try \"git {0} (--continue | --skip | --abort | --quit)\"",
            action.command()
        ));
        fatal!("{} failed", action.command());
    }
    if !single {
        state.start()?;
    }
    if !Index::load(repo)?.unmerged().is_empty() {
        out::complain(format!(
            "error: {} is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.",
            if action == Action::Pick { "Cherry-picking" } else { "Reverting" }
        ));
        fatal!("{} failed", action.command());
    }
    state.walk(&list, &how)
}

fn how(options: &Parsed, action: Action) -> Res<How> {
    let favour = match options.text("strategy-option").as_deref() {
        None => Favour::None,
        Some("ours") => Favour::Ours,
        Some("theirs") => Favour::Theirs,
        Some(option) => fatal!("merge strategy option '{option}' is not supported here"),
    };
    let by_hand = action == Action::Revert && wardian_abi::isatty(0);
    Ok(How {
        mainline: options.number("mainline")?.map(|number| usize::try_from(number).unwrap_or(0)),
        no_commit: options.has("no-commit"),
        origin: options.has("x"),
        sign_off: options.has("signoff"),
        edit: options.state("edit").unwrap_or(by_hand),
        allow_empty: options.has("allow-empty"),
        keep_redundant: options.has("keep-redundant-commits"),
        fast_forward: options.has("ff"),
        favour,
    })
}

fn is_range(name: &[u8]) -> bool {
    name.windows(2).any(|pair| pair == b"..") || name.starts_with(b"^")
}

/// The commits named, in the order in which they are applied: of a range the oldest first, but backwards the newest.
fn commits(repo: &Repo, written: &[Vec<u8>], action: Action) -> Res<Vec<Oid>> {
    if !written.iter().any(|name| is_range(name)) {
        return written
            .iter()
            .map(|name| match revision::find(repo, name)? {
                Some(found) => Ok(repo.odb.peel(&found)?.0),
                None => Err(Fail::Fatal(format!("bad revision '{}'", text(name)))),
            })
            .collect();
    }
    let mut walk = Walk::new(repo);
    for name in written {
        if !walk.take(name)? {
            fatal!("bad revision '{}'", text(name));
        }
    }
    let mut list = walk.run()?;
    if list.is_empty() {
        error!("empty commit set passed");
    }
    if action == Action::Pick {
        list.reverse();
    }
    Ok(list)
}

/// An operation that takes more than one command.
struct State<'a> {
    repo: &'a Repo,
    action: Action,
}

impl State<'_> {
    fn start(&self) -> Res<()> {
        files::make_dirs(&self.repo.own("sequencer"))?;
        let head = self.repo.head()?.unwrap_or_default();
        files::write(&self.repo.own("sequencer/head"), format!("{head}\n").as_bytes())
    }

    /// What is left to do, the present commit included.
    fn save(&self, left: &[Oid]) -> Res<()> {
        if !files::exists(&self.repo.own("sequencer/head")) {
            return Ok(());
        }
        let verb = if self.action == Action::Pick { "pick" } else { "revert" };
        let mut todo = String::new();
        for oid in left {
            let subject = text(&self.repo.odb.commit(oid)?.subject());
            todo += &format!("{verb} {oid} {subject}\n");
        }
        files::write(&self.repo.own("sequencer/todo"), todo.as_bytes())
    }

    fn left(&self) -> Res<Vec<Oid>> {
        let todo = files::read_if_there(&self.repo.own("sequencer/todo"))?.unwrap_or_default();
        let lines = todo.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#');
        lines
            .map(|line| {
                let word = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
                revision::commit(self.repo, word)
            })
            .collect()
    }

    fn clear(&self) -> Res<()> {
        self.clear_list()?;
        ["CHERRY_PICK_HEAD", "REVERT_HEAD"]
            .iter()
            .try_for_each(|name| files::remove_if_there(&self.repo.own(name)))
    }

    fn clear_list(&self) -> Res<()> {
        for name in ["sequencer/todo", "sequencer/head", "sequencer/opts", "sequencer/abort-safety"] {
            files::remove_if_there(&self.repo.own(name))?;
        }
        // The directory may not be there at all.
        let _ = files::rmdir(&self.repo.own("sequencer"));
        Ok(())
    }

    fn walk(&self, list: &[Oid], how: &How) -> Res<i32> {
        let (repo, action) = (self.repo, self.action);
        for (at, oid) in list.iter().enumerate() {
            self.save(&list[at..])?;
            match sequence::apply(repo, action, oid, how)? {
                Outcome::Done(Some(new)) if new != *oid => commit::announce(repo, &new, false, true)?,
                Outcome::Done(_) => {}
                Outcome::Conflict => {
                    self.stopped(oid)?;
                    return Ok(1);
                }
                Outcome::Empty => {
                    if action == Action::Pick {
                        commit::nothing(repo, &mut Index::load(repo)?, true)?;
                    } else {
                        commit::nothing(repo, &mut Index::load(repo)?, false)?;
                    }
                    return Ok(1);
                }
            }
        }
        self.clear_list()?;
        Ok(0)
    }

    fn stopped(&self, oid: &Oid) -> Res<()> {
        let command = self.action.command();
        let verb = if self.action == Action::Pick { "apply" } else { "revert" };
        let subject = text(&self.repo.odb.commit(oid)?.subject());
        out::complain(format!("error: could not {verb} {}... {subject}", self.repo.short(oid)));
        if !files::exists(&self.repo.own(self.action.head())) {
            out::complain(
                "hint: after resolving the conflicts, mark the corrected paths\nhint: with 'git add <paths>' or 'git rm <paths>'",
            );
            return Ok(());
        }
        out::complain(format!(
            "hint: After resolving the conflicts, mark them with\nhint: \"git add/rm <pathspec>\", then run\nhint: \"git {command} --continue\".\nhint: You can instead skip this commit with \"git {command} --skip\".\nhint: To abort and get back to the state before \"git {command}\",\nhint: run \"git {command} --abort\"."
        ));
        Ok(())
    }

    fn under_way(&self) -> bool {
        files::exists(&self.repo.own(self.action.head())) || files::exists(&self.repo.own("sequencer/todo"))
    }

    fn none(&self) -> Res<i32> {
        out::complain("error: no cherry-pick or revert in progress");
        fatal!("{} failed", self.action.command());
    }

    fn abort(&self) -> Res<i32> {
        if !self.under_way() {
            return self.none();
        }
        let started = files::read_if_there(&self.repo.own("sequencer/head"))?;
        let mut index = Index::load(self.repo)?;
        merge::undo(self.repo, &mut index)?;
        if let Some(start) = started.and_then(|hex| Oid::from_hex(hex.trim_ascii())) {
            let tree = self.repo.odb.commit(&start)?.tree;
            switch_to(self.repo, &mut index, &tree)?;
            refs::update(self.repo, b"HEAD", start, Expect::Anything, &format!("reset: moving to {start}"))?;
        }
        index.save(self.repo)?;
        commit::clear_state(self.repo)?;
        self.clear().map(|()| 0)
    }

    fn skip(&self, how: &How) -> Res<i32> {
        if !self.under_way() {
            out::complain(format!("error: no {} in progress", self.action.command()));
            fatal!("{} failed", self.action.command());
        }
        let mut index = Index::load(self.repo)?;
        merge::undo(self.repo, &mut index)?;
        index.save(self.repo)?;
        commit::clear_state(self.repo)?;
        let left = self.left()?;
        self.walk(left.get(1..).unwrap_or(&[]), how)
    }

    fn resume(&self, how: &How) -> Res<i32> {
        if !self.under_way() {
            return self.none();
        }
        if files::exists(&self.repo.own(self.action.head())) {
            let code = commit::commit(self.repo, &[b"--no-edit".to_vec(), b"--cleanup=strip".to_vec()])?;
            if code != 0 {
                return Ok(code);
            }
        }
        let left = self.left()?;
        self.walk(left.get(1..).unwrap_or(&[]), how)
    }
}

fn switch_to(repo: &Repo, index: &mut Index, tree: &Oid) -> Res<()> {
    crate::switch::to_tree(repo, index, &repo.head_tree()?, tree, "reset")
}
