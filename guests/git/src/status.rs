//! How work tree, index and commit stand to each other, and the long text about it.

use crate::change::{self, Change};
use crate::fail::Res;
use crate::files::{self, text};
use crate::hash::Oid;
use crate::ignore::Ignore;
use crate::index::Index;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::reflog;
use crate::refs;
use crate::remote;
use crate::rename;
use crate::repo::Repo;
use crate::walk;
use crate::worktree::{self, Untracked};

pub struct Status {
    pub branch: Option<Vec<u8>>,
    pub head: Option<Oid>,
    pub staged: Vec<Change>,
    pub unstaged: Vec<Change>,
    /// Paths with the stages they have, as bits 1, 2 and 4.
    pub unmerged: Vec<(Vec<u8>, u8)>,
    pub untracked: Vec<Vec<u8>>,
    pub ignored: Vec<Vec<u8>>,
    /// Whether untracked files were looked for.
    pub looked: bool,
}

/// Who describes the state.
#[derive(Clone, Copy, PartialEq)]
pub enum For {
    Status,
    /// `git commit`, where there is nothing to commit.
    Commit,
    /// The comments in a message that is edited.
    Template,
}

impl Status {
    pub fn find(repo: &Repo, index: &Index, paths: &Pathspec, untracked: Option<Untracked>) -> Res<Status> {
        let staged = change::tree_and_index(repo, &repo.head_tree()?, index, paths)?;
        let staged = staged.into_iter().filter(|change| change.status != b'U').collect();
        let renames = repo.config.bool("status.renames", repo.config.bool("diff.renames", true));
        let staged = if renames { rename::detect(repo, staged, 50, false)? } else { staged };
        let mut unstaged = change::index_and_work(repo, index, paths)?;
        unstaged.retain(|change| change.status != b'U');
        let stages = |path: &[u8]| {
            index.stages(path).iter().fold(0, |mask, entry| mask | 1 << (entry.stage.max(1) - 1))
        };
        let unmerged = index.unmerged().into_iter().filter(|path| paths.matches(path));
        let unmerged = unmerged.map(|path| (path.clone(), stages(&path))).collect();
        let found = match untracked {
            Some(how) => worktree::untracked(repo, index, paths, how, &Ignore::new(repo))?,
            None => worktree::Found::default(),
        };
        Ok(Status {
            branch: refs::current_branch(repo)?,
            head: repo.head()?,
            staged,
            unstaged,
            unmerged,
            untracked: found.untracked,
            ignored: found.ignored,
            looked: untracked.is_some(),
        })
    }

    /// The long text.
    pub fn describe(&self, repo: &Repo, show_ignored: bool, whose: For) -> Res<Vec<u8>> {
        let in_commit = whose == For::Template;
        let mut page = Page { text: Vec::new(), repo, hints: repo.config.bool("advice.statushints", true) };
        page.head(self, whose)?;
        page.operation(self, in_commit)?;
        page.staged(self);
        page.unmerged(self);
        page.unstaged(self);
        page.list(
            "Untracked files",
            "  (use \"git add <file>...\" to include in what will be committed)",
            &self.untracked,
        );
        if show_ignored {
            page.list(
                "Ignored files",
                "  (use \"git add -f <file>...\" to include in what will be committed)",
                &self.ignored,
            );
        }
        if !self.looked && !in_commit {
            page.line(if page.hints {
                "Untracked files not listed (use -u option to show untracked files)"
            } else {
                "Untracked files not listed"
            });
        }
        if !in_commit {
            page.conclusion(self);
        }
        Ok(page.text)
    }
}

/// The words for the stages of a path.
pub fn unmerged_words(stages: u8) -> (&'static str, &'static str) {
    match stages {
        1 => ("both deleted:", "DD"),
        2 => ("added by us:", "AU"),
        3 => ("deleted by them:", "UD"),
        4 => ("added by them:", "UA"),
        5 => ("deleted by us:", "DU"),
        6 => ("both added:", "AA"),
        _ => ("both modified:", "UU"),
    }
}

/// A path as it is seen from where the command was started.
pub fn seen_from(repo: &Repo, path: &[u8]) -> Vec<u8> {
    if repo.prefix.is_empty() {
        return path.to_vec();
    }
    let shared = repo.prefix.iter().zip(path).take_while(|(a, b)| a == b).count();
    let shared = repo.prefix[..shared].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let ups = repo.prefix[shared..].iter().filter(|&&byte| byte == b'/').count();
    let rest = &path[shared..];
    let seen = [b"../".repeat(ups), rest.to_vec()].concat();
    if seen.is_empty() { b"./".to_vec() } else { seen }
}

struct Page<'a> {
    text: Vec<u8>,
    repo: &'a Repo,
    hints: bool,
}

impl Page<'_> {
    fn line(&mut self, line: impl AsRef<[u8]>) {
        self.text.extend_from_slice(line.as_ref());
        self.text.push(b'\n');
    }

    fn hint(&mut self, line: &str) {
        if self.hints {
            self.line(line);
        }
    }

    fn head(&mut self, status: &Status, whose: For) -> Res<()> {
        match &status.branch {
            Some(branch) => {
                self.line([b"On branch ", &branch[..]].concat());
                let tracking = tracking(self.repo, branch, self.hints)?;
                if !tracking.is_empty() {
                    self.line(&tracking);
                }
            }
            None if files::is_dir(&self.repo.own("rebase-merge")) => {
                let onto = files::read(&self.repo.own("rebase-merge/onto")).unwrap_or_default();
                let onto = Oid::from_hex(onto.trim_ascii()).unwrap_or_default();
                self.line(format!("interactive rebase in progress; onto {}", self.repo.short(&onto)));
            }
            None => {
                let line = detached(self.repo)?;
                self.line(line);
            }
        }
        if status.head.is_none() {
            self.line(if whose == For::Status { "\nNo commits yet\n" } else { "\nInitial commit\n" });
        }
        Ok(())
    }

    fn operation(&mut self, status: &Status, in_commit: bool) -> Res<()> {
        let there = |name: &str| files::exists(&self.repo.own(name));
        let conflicts = !status.unmerged.is_empty();
        if there("MERGE_HEAD") {
            if conflicts {
                self.line("You have unmerged paths.");
                self.hint("  (fix conflicts and run \"git commit\")");
                self.hint("  (use \"git merge --abort\" to abort the merge)");
            } else {
                self.line("All conflicts fixed but you are still merging.");
                if !in_commit {
                    self.hint("  (use \"git commit\" to conclude merge)");
                }
            }
            self.line("");
        } else if there("rebase-apply/applying") {
            self.line("You are in the middle of an am session.");
            self.hint("  (fix conflicts and then run \"git am --continue\")");
            self.hint("  (use \"git am --skip\" to skip this patch)");
            self.hint("  (use \"git am --abort\" to restore the original branch)");
            self.line("");
        } else if there("rebase-merge") {
            self.rebase(conflicts);
        } else {
            for (file, doing, command) in [
                ("CHERRY_PICK_HEAD", "cherry-picking", "cherry-pick"),
                ("REVERT_HEAD", "reverting", "revert"),
            ] {
                if let Ok(oid) = files::read(&self.repo.own(file)) {
                    let oid = Oid::from_hex(oid.trim_ascii()).unwrap_or_default();
                    self.line(format!("You are currently {doing} commit {}.", self.repo.short(&oid)));
                    if conflicts {
                        self.hint(&format!("  (fix conflicts and run \"git {command} --continue\")"));
                    } else {
                        self.hint(&format!("  (all conflicts fixed: run \"git {command} --continue\")"));
                    }
                    self.hint(&format!("  (use \"git {command} --skip\" to skip this patch)"));
                    self.hint(&format!(
                        "  (use \"git {command} --abort\" to cancel the {command} operation)"
                    ));
                    self.line("");
                }
            }
        }
        Ok(())
    }

    fn rebase(&mut self, conflicts: bool) {
        let read = |name: &str| text(files::read(&self.repo.own(name)).unwrap_or_default().trim_ascii());
        let branch = read("rebase-merge/head-name");
        let onto = Oid::from_hex(read("rebase-merge/onto").as_bytes()).unwrap_or_default();
        let branch = branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned();
        let short = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let (verb, oid, rest) = (words.next()?, words.next()?, words.next().unwrap_or_default());
            Some(format!("   {verb} {} {rest}", self.repo.short(&Oid::from_hex(oid.as_bytes())?)))
        };
        let (done, todo) = (read("rebase-merge/done"), read("rebase-merge/git-rebase-todo"));
        let done: Vec<String> = done.lines().filter_map(short).collect();
        let todo: Vec<String> = todo.lines().filter_map(short).collect();
        let many = |count: usize| if count == 1 { "" } else { "s" };
        if !done.is_empty() {
            let last = if done.len() == 1 { "command" } else { "commands" };
            self.line(format!("Last {last} done ({} command{} done):", done.len(), many(done.len())));
            done[done.len().saturating_sub(2)..].iter().for_each(|line| self.line(line));
            if done.len() > 2 {
                self.hint("  (see more in file .git/rebase-merge/done)");
            }
        }
        if todo.is_empty() {
            self.line("No commands remaining.");
        } else {
            let next = if todo.len() == 1 { "command" } else { "commands" };
            self.line(format!("Next {next} to do ({} remaining command{}):", todo.len(), many(todo.len())));
            todo.iter().take(2).for_each(|line| self.line(line));
            self.hint("  (use \"git rebase --edit-todo\" to view and edit)");
        }
        let editing = !conflicts && files::exists(&self.repo.own("rebase-merge/amend"));
        let doing = if editing { "editing a commit while rebasing" } else { "rebasing" };
        self.line(format!("You are currently {doing} branch '{branch}' on '{}'.", self.repo.short(&onto)));
        if editing {
            self.hint("  (use \"git commit --amend\" to amend the current commit)");
            self.hint("  (use \"git rebase --continue\" once you are satisfied with your changes)");
        } else if conflicts {
            self.hint("  (fix conflicts and then run \"git rebase --continue\")");
            self.hint("  (use \"git rebase --skip\" to skip this patch)");
            self.hint("  (use \"git rebase --abort\" to check out the original branch)");
        } else {
            self.hint("  (all conflicts fixed: run \"git rebase --continue\")");
        }
        self.line("");
    }

    /// Whether what is staged comes from another commit.
    fn is_joining(&self) -> bool {
        ["MERGE_HEAD", "CHERRY_PICK_HEAD"].iter().any(|name| files::exists(&self.repo.own(name)))
    }

    fn unstage_hint(&mut self, status: &Status) {
        match status.head {
            None => self.hint("  (use \"git rm --cached <file>...\" to unstage)"),
            Some(_) => self.hint("  (use \"git restore --staged <file>...\" to unstage)"),
        }
    }

    fn staged(&mut self, status: &Status) {
        if status.staged.is_empty() {
            return;
        }
        self.line("Changes to be committed:");
        if !self.is_joining() {
            self.unstage_hint(status);
        }
        status.staged.iter().for_each(|change| self.change(change));
        self.line("");
    }

    fn unstaged(&mut self, status: &Status) {
        if status.unstaged.is_empty() {
            return;
        }
        self.line("Changes not staged for commit:");
        let deleted = status.unstaged.iter().any(|change| change.status == b'D');
        let verb = if deleted { "add/rm" } else { "add" };
        self.hint(&format!("  (use \"git {verb} <file>...\" to update what will be committed)"));
        self.hint("  (use \"git restore <file>...\" to discard changes in working directory)");
        status.unstaged.iter().for_each(|change| self.change(change));
        self.line("");
    }

    fn change(&mut self, change: &Change) {
        let label = match change.status {
            b'A' => "new file:",
            b'C' => "copied:",
            b'D' => "deleted:",
            b'R' => "renamed:",
            b'T' => "typechange:",
            _ => "modified:",
        };
        let show = |path: &[u8]| quote::path(&seen_from(self.repo, path));
        let name = match change.status {
            b'R' | b'C' => [&show(&change.old.path)[..], b" -> ", &show(&change.new.path)].concat(),
            _ => show(change.path()),
        };
        self.line([format!("\t{label:<12}").as_bytes(), &name].concat());
    }

    fn unmerged(&mut self, status: &Status) {
        if status.unmerged.is_empty() {
            return;
        }
        self.line("Unmerged paths:");
        if !self.is_joining() {
            self.unstage_hint(status);
        }
        let has = |stages: &[u8]| status.unmerged.iter().any(|(_, mask)| stages.contains(mask));
        let hint = match () {
            () if has(&[1]) && !has(&[3, 5]) => "  (use \"git rm <file>...\" to mark resolution)",
            () if has(&[1, 3, 5]) => "  (use \"git add/rm <file>...\" as appropriate to mark resolution)",
            () => "  (use \"git add <file>...\" to mark resolution)",
        };
        self.hint(hint);
        for (path, stages) in &status.unmerged {
            let (label, _) = unmerged_words(*stages);
            let name = quote::path(&seen_from(self.repo, path));
            self.line([format!("\t{label:<17}").as_bytes(), &name].concat());
        }
        self.line("");
    }

    fn list(&mut self, title: &str, hint: &str, paths: &[Vec<u8>]) {
        if paths.is_empty() {
            return;
        }
        self.line(format!("{title}:"));
        self.hint(hint);
        for path in paths {
            let name = quote::path(&seen_from(self.repo, path));
            self.line([b"\t", &name[..]].concat());
        }
        self.line("");
    }

    fn conclusion(&mut self, status: &Status) {
        if !status.staged.is_empty() {
            return;
        }
        let plain = |with: &'static str, without: &'static str| if self.hints { with } else { without };
        let line = match () {
            () if !status.unstaged.is_empty() || !status.unmerged.is_empty() => plain(
                "no changes added to commit (use \"git add\" and/or \"git commit -a\")",
                "no changes added to commit",
            ),
            () if !status.untracked.is_empty() => plain(
                "nothing added to commit but untracked files present (use \"git add\" to track)",
                "nothing added to commit but untracked files present",
            ),
            () if status.head.is_none() => plain(
                "nothing to commit (create/copy files and use \"git add\" to track)",
                "nothing to commit",
            ),
            () if !status.looked => {
                plain("nothing to commit (use -u to show untracked files)", "nothing to commit")
            }
            () => "nothing to commit, working tree clean",
        };
        self.line(line);
    }
}

/// How a branch stands to the one it follows, in words.
pub fn tracking(repo: &Repo, branch: &[u8], hints: bool) -> Res<String> {
    let Some(upstream) = remote::upstream(repo, branch) else { return Ok(String::new()) };
    let name = text(refs::short(&upstream));
    let ours = refs::resolve(repo, &[b"refs/heads/", branch].concat())?;
    let Some(ours) = ours else { return Ok(String::new()) };
    let hint = |line: &str| if hints { format!("  ({line})\n") } else { String::new() };
    let Some(theirs) = refs::resolve(repo, &upstream)? else {
        let advice = hint("use \"git branch --unset-upstream\" to fixup");
        return Ok(format!("Your branch is based on '{name}', but the upstream is gone.\n{advice}"));
    };
    let many = |count: usize| if count == 1 { "" } else { "s" };
    Ok(match walk::ahead_behind(repo, &ours, &theirs)? {
        (0, 0) => format!("Your branch is up to date with '{name}'.\n"),
        (ahead, 0) => {
            let advice = hint("use \"git push\" to publish your local commits");
            format!("Your branch is ahead of '{name}' by {ahead} commit{}.\n{advice}", many(ahead))
        }
        (0, behind) => {
            let advice = hint("use \"git pull\" to update your local branch");
            format!(
                "Your branch is behind '{name}' by {behind} commit{}, and can be fast-forwarded.\n{advice}",
                many(behind)
            )
        }
        (ahead, behind) => {
            let advice = hint("use \"git pull\" to merge the remote branch into yours");
            format!(
                "Your branch and '{name}' have diverged,\nand have {ahead} and {behind} different commits each, respectively.\n{advice}"
            )
        }
    })
}

/// `HEAD detached at NAME`, by what was checked out last.
pub fn detached(repo: &Repo) -> Res<String> {
    let Some(head) = repo.head()? else { return Ok("Not currently on any branch.".to_owned()) };
    let log = reflog::read(repo, b"HEAD")?;
    let found = log.iter().rev().find_map(|line| {
        let rest = line.message.strip_prefix(b"checkout: moving from ")?;
        let at = rest.windows(4).position(|part| part == b" to ")?;
        Some((rest[at + 4..].to_vec(), line.new))
    });
    let Some((name, oid)) = found else { return Ok("Not currently on any branch.".to_owned()) };
    let is_name = crate::revision::full_name(repo, &name)?.is_some_and(|full| full != b"HEAD");
    let shown = if is_name { text(&name) } else { repo.short(&oid) };
    Ok(format!("HEAD detached {} {shown}", if oid == head { "at" } else { "from" }))
}
