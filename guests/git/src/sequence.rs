//! Applying commits once more, or backwards, one after the other: what `cherry-pick`, `revert` and `rebase` share.

use crate::change;
use crate::commands::commit as committing;
use crate::fail::{Fail, Res, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::ident;
use crate::index::Index;
use crate::merge::{self, Favour, Labels};
use crate::message;
use crate::object::{Commit, Kind, Person};
use crate::out;
use crate::pathspec::Pathspec;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::switch;

/// What is done with a commit.
#[derive(Clone, Copy, PartialEq)]
pub enum Action {
    Pick,
    Revert,
}

impl Action {
    pub fn command(self) -> &'static str {
        match self {
            Action::Pick => "cherry-pick",
            Action::Revert => "revert",
        }
    }

    /// The file that names the commit while it has conflicts.
    pub fn head(self) -> &'static str {
        match self {
            Action::Pick => "CHERRY_PICK_HEAD",
            Action::Revert => "REVERT_HEAD",
        }
    }
}

/// How it is done.
#[derive(Clone, Default)]
pub struct How {
    /// Against which parent, from 1.
    pub mainline: Option<usize>,
    pub no_commit: bool,
    /// Say where the commit came from.
    pub origin: bool,
    pub sign_off: bool,
    pub edit: bool,
    pub allow_empty: bool,
    pub keep_redundant: bool,
    pub fast_forward: bool,
    pub favour: Favour,
}

pub enum Outcome {
    /// A new commit, or nothing to commit as was asked for.
    Done(Option<Oid>),
    Conflict,
    /// Nothing is left of the commit.
    Empty,
}

/// The commit's name and title, as conflict markers show them.
fn label(repo: &Repo, oid: &Oid, commit: &Commit) -> String {
    format!("{} ({})", repo.short(oid), text(&commit.subject()))
}

fn parent_of(oid: &Oid, commit: &Commit, how: &How, action: Action) -> Res<Option<Oid>> {
    match (commit.parents.len(), how.mainline) {
        (0, _) => Ok(None),
        (1, None | Some(1)) => Ok(Some(commit.parents[0])),
        (1, Some(_)) => {
            fatal_error(format!("commit {oid} does not have parent {}", how.mainline.unwrap_or(0)), action)
        }
        (_, None) => fatal_error(format!("commit {oid} is a merge but no -m option was given."), action),
        (count, Some(at)) if at >= 1 && at <= count => Ok(Some(commit.parents[at - 1])),
        (_, Some(at)) => fatal_error(format!("commit {oid} does not have parent {at}"), action),
    }
}

fn fatal_error<T>(why: String, action: Action) -> Res<T> {
    out::complain(format!("error: {why}"));
    fatal!("{} failed", action.command())
}

fn message_for(
    repo: &Repo,
    action: Action,
    oid: &Oid,
    commit: &Commit,
    parent: Option<&Oid>,
    how: &How,
) -> Res<Vec<u8>> {
    let mut message = match action {
        Action::Pick => commit.message.clone(),
        Action::Revert => {
            let subject = text(&commit.subject());
            let merged = match parent {
                Some(parent) if commit.parents.len() > 1 => format!(", reversing\nchanges made to {parent}"),
                _ => String::new(),
            };
            format!("Revert \"{subject}\"\n\nThis reverts commit {oid}{merged}.\n").into_bytes()
        }
    };
    if how.origin {
        committing::add_trailer(&mut message, &format!("(cherry picked from commit {oid})"));
    }
    if how.sign_off {
        committing::sign_off(repo, &mut message)?;
    }
    Ok(message)
}

/// Applies one commit to the index and the files, and commits the result.
pub fn apply(repo: &Repo, action: Action, oid: &Oid, how: &How) -> Res<Outcome> {
    apply_as(repo, action, oid, how, action.command())
}

/// The same; the log calls it `done`.
pub fn apply_as(repo: &Repo, action: Action, oid: &Oid, how: &How, done: &str) -> Res<Outcome> {
    let commit = repo.odb.commit(oid)?;
    let parent = parent_of(oid, &commit, how, action)?;
    let head = repo.head()?;
    let mut index = Index::load(repo)?;
    let ours = if how.no_commit { index.write_tree(&repo.odb)? } else { repo.head_tree()? };
    if !how.no_commit {
        let staged = change::tree_and_index(repo, &ours, &index, &Pathspec::default())?;
        if !staged.is_empty() {
            out::complain(format!(
                "error: your local changes would be overwritten by {}.\nhint: commit your changes or stash them to proceed.",
                action.command()
            ));
            fatal!("{} failed", action.command());
        }
    }
    if how.fast_forward && head.is_some() && parent == head && !how.no_commit {
        switch::to_tree(repo, &mut index, &ours, &commit.tree, "merge")?;
        index.save(repo)?;
        let why = match done.starts_with("rebase") {
            true => format!("{done}: {}", text(&commit.subject())),
            false => format!("{done}: fast-forward"),
        };
        refs::update(repo, b"HEAD", *oid, Expect::Anything, &why)?;
        return Ok(Outcome::Done(Some(*oid)));
    }
    let parent_tree = match &parent {
        Some(parent) => repo.odb.commit(parent)?.tree,
        None => crate::odb::EMPTY_TREE,
    };
    let this = label(repo, oid, &commit);
    let before = format!("parent of {this}");
    let mut labels = match action {
        Action::Pick => Labels::new(repo, "HEAD", &before, &this),
        Action::Revert => Labels::new(repo, "HEAD", &this, &before),
    };
    labels.favour = how.favour;
    let merged = match action {
        Action::Pick => merge::trees(repo, &parent_tree, &ours, &commit.tree, &labels)?,
        Action::Revert => merge::trees(repo, &commit.tree, &ours, &parent_tree, &labels)?,
    };
    if let Err(fail) = switch::to_merged(repo, &mut index, &ours, &merged, "merge") {
        fail.report();
        fatal!("{} failed", action.command());
    }
    merged.messages.iter().for_each(out::line);
    index.save(repo)?;
    out::flush();
    let mut text_of = message_for(repo, action, oid, &commit, parent.as_ref(), how)?;
    if !merged.is_clean() {
        text_of.extend_from_slice(b"\n# Conflicts:\n");
        index
            .unmerged()
            .iter()
            .for_each(|path| text_of.extend_from_slice(&[b"#\t", &path[..], b"\n"].concat()));
        files::write(&repo.own("MERGE_MSG"), &text_of)?;
        if !how.no_commit {
            files::write(&repo.own(action.head()), format!("{oid}\n").as_bytes())?;
        }
        return Ok(Outcome::Conflict);
    }
    if how.no_commit {
        files::write(&repo.own("MERGE_MSG"), &text_of)?;
        if action == Action::Revert {
            files::write(&repo.own(action.head()), format!("{oid}\n").as_bytes())?;
        }
        return Ok(Outcome::Done(None));
    }
    let tree = index.write_tree(&repo.odb)?;
    if tree == ours {
        let was_empty = commit.tree == parent_tree;
        if !(was_empty && how.allow_empty || how.keep_redundant) {
            if action == Action::Pick {
                files::write(&repo.own("MERGE_MSG"), &text_of)?;
                files::write(&repo.own(action.head()), format!("{oid}\n").as_bytes())?;
            }
            return Ok(Outcome::Empty);
        }
    }
    let author = match action {
        Action::Pick => commit.author.clone(),
        Action::Revert => ident::author(repo)?,
    };
    if how.edit {
        text_of = message::edited(repo, "COMMIT_EDITMSG", &text_of, b"Please enter the commit message for your changes. Lines starting\nwith '#' will be ignored, and an empty message aborts the commit.\n")?;
    }
    let new = write(repo, tree, author, &text_of, done)?;
    Ok(Outcome::Done(Some(new)))
}

/// Commits a tree on top of `HEAD`.
pub fn write(repo: &Repo, tree: Oid, author: Person, message: &[u8], command: &str) -> Res<Oid> {
    let commit = Commit {
        tree,
        parents: repo.head()?.into_iter().collect(),
        author,
        committer: ident::committer(repo)?,
        extra: Vec::new(),
        message: message::clean(message, false),
    };
    if commit.message.is_empty() {
        out::complain("Aborting commit due to empty commit message.");
        return Err(Fail::Code(1));
    }
    let oid = repo.odb.write(Kind::Commit, &commit.write())?;
    let why = format!("{command}: {}", text(&commit.subject()));
    refs::update(repo, b"HEAD", oid, Expect::Anything, &why)?;
    Ok(oid)
}
