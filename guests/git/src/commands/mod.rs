//! The commands, by name.

mod add;
mod apply;
mod blame;
mod branch;
mod check_ignore;
mod checkout;
mod clean;
mod clone;
pub mod commit;
mod config;
mod diff;
mod fetch;
mod for_each_ref;
pub mod fsck;
mod grep;
pub mod init;
mod log;
mod ls_files;
mod ls_remote;
mod mail;
mod merge;
mod pick;
mod plumbing;
pub mod program;
mod push;
mod rebase;
mod remote;
mod remove;
mod reset;
mod rev;
mod shortlog;
mod stash;
mod status;
mod todo;

use crate::fail::Res;
use crate::repo::{Global, Repo};

pub enum Command {
    /// Works without a repository.
    Anywhere(fn(&Global, &[Vec<u8>]) -> Res<i32>),
    InRepo(fn(&Repo, &[Vec<u8>]) -> Res<i32>),
}

pub fn find(name: &str) -> Option<Command> {
    use Command::{Anywhere, InRepo};
    Some(match name {
        "init" | "init-db" => Anywhere(init::init),
        "version" => Anywhere(init::version),
        "config" => Anywhere(config::config),
        "apply" => Anywhere(apply::apply),
        "format-patch" => InRepo(mail::format_patch),
        "am" => InRepo(mail::am),
        "add" | "stage" => InRepo(add::add),
        "rm" => InRepo(remove::rm),
        "mv" => InRepo(remove::mv),
        "status" => InRepo(status::status),
        "commit" => InRepo(commit::commit),
        "log" => InRepo(log::log),
        "show" => InRepo(log::show),
        "diff" => InRepo(diff::diff),
        "check-ignore" => InRepo(check_ignore::check_ignore),
        "stash" => InRepo(stash::stash),
        "cherry-pick" => InRepo(pick::cherry_pick),
        "revert" => InRepo(pick::revert),
        "clone" => Anywhere(clone::clone),
        "remote" => InRepo(remote::remote),
        "ls-remote" => Anywhere(ls_remote::ls_remote),
        "fetch" => InRepo(fetch::fetch),
        "pull" => InRepo(fetch::pull),
        "push" => InRepo(push::push),
        "clean" => InRepo(clean::clean),
        "blame" => InRepo(blame::blame),
        "shortlog" => InRepo(shortlog::shortlog),
        "describe" => InRepo(shortlog::describe),
        "grep" => InRepo(grep::grep),
        "rebase" => InRepo(rebase::rebase),
        "fsck" => InRepo(fsck::fsck),
        "cat-file" => InRepo(plumbing::cat_file),
        "hash-object" => Anywhere(plumbing::hash_object),
        "ls-files" => InRepo(ls_files::ls_files),
        "ls-tree" => InRepo(plumbing::ls_tree),
        "write-tree" => InRepo(plumbing::write_tree),
        "commit-tree" => InRepo(plumbing::commit_tree),
        "branch" => InRepo(branch::branch),
        "tag" => InRepo(branch::tag),
        "checkout" => InRepo(checkout::checkout),
        "switch" => InRepo(checkout::switch),
        "restore" => InRepo(checkout::restore),
        "reset" => InRepo(reset::reset),
        "reflog" => InRepo(reset::reflog),
        "merge" => InRepo(merge::merge),
        "rev-parse" => InRepo(rev::rev_parse),
        "rev-list" => InRepo(rev::rev_list),
        "merge-base" => InRepo(rev::merge_base),
        "for-each-ref" => InRepo(for_each_ref::for_each_ref),
        "show-ref" => InRepo(for_each_ref::show_ref),
        "update-ref" => InRepo(for_each_ref::update_ref),
        "symbolic-ref" => InRepo(for_each_ref::symbolic_ref),
        _ => return None,
    })
}

/// Renews what the index remembers of files that did not change.
pub fn refresh(repo: &Repo, index: &mut crate::index::Index) -> Res<()> {
    if !repo.is_bare() {
        add::refresh(repo, index)?;
    }
    Ok(())
}
