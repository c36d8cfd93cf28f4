//! The commands, by name.

mod add;
mod commit;
mod config;
mod diff;
mod init;
mod log;
mod ls_files;
mod plumbing;
pub mod program;
mod remove;
mod status;

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
        "add" | "stage" => InRepo(add::add),
        "rm" => InRepo(remove::rm),
        "mv" => InRepo(remove::mv),
        "status" => InRepo(status::status),
        "commit" => InRepo(commit::commit),
        "log" => InRepo(log::log),
        "show" => InRepo(log::show),
        "diff" => InRepo(diff::diff),
        "cat-file" => InRepo(plumbing::cat_file),
        "hash-object" => Anywhere(plumbing::hash_object),
        "ls-files" => InRepo(ls_files::ls_files),
        "ls-tree" => InRepo(plumbing::ls_tree),
        "write-tree" => InRepo(plumbing::write_tree),
        "commit-tree" => InRepo(plumbing::commit_tree),
        _ => return None,
    })
}
