//! Other programs: editors, hooks, aliases.

use wardian_abi as abi;
use wardian_abi::Spawn;

use crate::fail::{Fail, Res};
use crate::files::{self, join, text};
use crate::out;
use crate::repo::{Repo, env};

/// Runs a program and answers its exit code.
pub fn run(command: &[Vec<u8>]) -> Res<i32> {
    run_in(command, &[], b"")
}

fn run_in(command: &[Vec<u8>], extra: &[(&str, &[u8])], cwd: &[u8]) -> Res<i32> {
    out::flush();
    let mut environment = abi::environ();
    for (name, value) in extra {
        let prefix = format!("{name}=").into_bytes();
        environment.retain(|pair| !pair.starts_with(&prefix));
        environment.push([&prefix[..], value].concat());
    }
    let started = toolkit::program::spawn(command, &environment, Spawn { cwd, ..Spawn::default() });
    match started {
        Ok(child) => Ok(toolkit::program::wait_for(child).shell_code()),
        Err(error) => {
            let name = command.first().map_or(String::new(), |name| text(name));
            Err(Fail::Fatal(format!("cannot run {name}: {}", error.message())))
        }
    }
}

/// Lets the user edit a file.
pub fn edit(repo: &Repo, file: &[u8]) -> Res<()> {
    edit_with(repo, file, "GIT_EDITOR", "core.editor")
}

/// Whether the terminal can only show line after line.
pub fn dumb_terminal() -> bool {
    env("TERM").is_none_or(|name| name == b"dumb")
}

pub fn edit_with(repo: &Repo, file: &[u8], variable: &str, setting: &str) -> Res<()> {
    let on_a_screen = |editor: fn() -> Option<Vec<u8>>| if dumb_terminal() { None } else { editor() };
    let general = || {
        env("GIT_EDITOR")
            .or_else(|| repo.config.get("core.editor"))
            .or_else(|| on_a_screen(|| env("VISUAL")))
            .or_else(|| env("EDITOR"))
            .or_else(|| on_a_screen(|| Some(b"editor".to_vec())))
    };
    let editor = env(variable).or_else(|| repo.config.get(setting)).or_else(general);
    let Some(editor) = editor else {
        out::complain("error: Terminal is dumb, but EDITOR unset");
        return Err(Fail::Error("Please supply the message using either -m or -F option.".to_owned()));
    };
    if editor == b":" {
        return Ok(());
    }
    let script = [&editor[..], b" \"$@\""].concat();
    let command = vec![b"sh".to_vec(), b"-c".to_vec(), script, editor.clone(), file.to_vec()];
    match run(&command)? {
        0 => Ok(()),
        _ => {
            out::complain(format!("error: There was a problem with the editor '{}'.", text(&editor)));
            Err(Fail::Error("Please supply the message using either -m or -F option.".to_owned()))
        }
    }
}

/// Runs a hook, if there is one; answers its exit code.
pub fn hook(repo: &Repo, name: &str, arguments: &[&[u8]]) -> Res<i32> {
    let directory = match repo.config.get("core.hookspath") {
        Some(path) => crate::config::expand_home(&path),
        None => join(&repo.common_dir, b"hooks"),
    };
    let file = toolkit::files::resolve(&join(&directory, name.as_bytes()));
    let runs = files::is_file(&file) && abi::access(abi::Dir::CWD, &file, 1).is_ok();
    if !runs {
        return Ok(0);
    }
    let mut command = vec![file];
    command.extend(arguments.iter().map(|argument| argument.to_vec()));
    let index = crate::index::file_of(repo);
    let cwd = repo.work_tree.clone().unwrap_or_else(|| repo.git_dir.clone());
    run_in(&command, &[("GIT_DIR", &repo.git_dir), ("GIT_INDEX_FILE", &index)], &cwd)
}
