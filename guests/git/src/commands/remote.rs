//! `git remote`.

use crate::config;
use crate::fail::{Res, fatal};
use crate::files::{join, text};
use crate::options::Reader;
use crate::out;
use crate::refs::{self, Expect};
use crate::repo::Repo;

const READER: Reader = Reader {
    command: "remote",
    usage: "git remote [-v | --verbose] [add | rename | remove | get-url | set-url]",
    list: "v|verbose f|fetch t|track=! m|master=! push all! add! delete! tags! no-tags! mirror?!",
    in_order: false,
};

pub fn names(repo: &Repo) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for setting in &repo.config.settings {
        let name = text(&setting.name);
        if let Some(middle) = name.strip_prefix("remote.").and_then(|rest| rest.strip_suffix(".url"))
            && !names.iter().any(|known| known == middle)
        {
            names.push(middle.to_owned());
        }
    }
    names.sort();
    names
}

fn file(repo: &Repo) -> Vec<u8> {
    join(&repo.common_dir, b"config")
}

pub fn remote(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let words: Vec<String> = options.args.iter().map(|word| text(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let known = names(repo);
    let there = |name: &str| known.iter().any(|known| known == name);
    match words.as_slice() {
        [] => {
            for name in &known {
                if options.has("verbose") {
                    let url = repo.config.text(&format!("remote.{name}.url")).unwrap_or_default();
                    let push = repo.config.text(&format!("remote.{name}.pushurl")).unwrap_or(url.clone());
                    out::line(format_args!("{name}\t{url} (fetch)\n{name}\t{push} (push)"));
                } else {
                    out::line(name);
                }
            }
        }
        ["add", name, url] => {
            if there(name) {
                out::complain(format!("error: remote {name} already exists."));
                return Ok(3);
            }
            if !refs::is_valid(format!("refs/remotes/{name}/x").as_bytes()) {
                fatal!("'{name}' is not a valid remote name");
            }
            add(repo, name, url.as_bytes())?;
            if options.has("fetch") {
                let repo = Repo::at(&repo.git_dir)?.map_or_else(
                    || Repo::at(repo.work_tree.as_deref().unwrap_or(b".")),
                    |repo| Ok(Some(repo)),
                )?;
                if let Some(repo) = repo {
                    return super::fetch::fetch(&repo, &[name.as_bytes().to_vec()]);
                }
            }
        }
        ["remove" | "rm", name] if !there(name) => return none(&format!("No such remote: '{name}'")),
        ["remove" | "rm", name] => remove(repo, name)?,
        ["rename", old, _] if !there(old) => return none(&format!("No such remote: '{old}'")),
        ["rename", _, new] if there(new) => {
            out::complain(format!("error: remote {new} already exists."));
            return Ok(3);
        }
        ["rename", old, new] => rename(repo, old, new)?,
        ["get-url" | "set-url", name, ..] if !there(name) => {
            return none(&format!("No such remote '{name}'"));
        }
        ["get-url", name] => {
            let url = repo.config.text(&format!("remote.{name}.url")).unwrap_or_default();
            let push =
                options.has("push").then(|| repo.config.text(&format!("remote.{name}.pushurl"))).flatten();
            out::line(push.unwrap_or(url));
        }
        ["set-url", name, url] => {
            let key = if options.has("push") { "pushurl" } else { "url" };
            let setting = format!("remote.{name}.{key}");
            config::change(&file(repo), setting.as_bytes(), Some(url.as_bytes()), false, &|_| true)?;
        }
        [word @ ("show" | "prune" | "update" | "set-head" | "set-branches"), ..] => {
            fatal!("git remote {word}: not supported here");
        }
        ["add" | "remove" | "rm" | "rename" | "get-url" | "set-url", ..] => return Err(READER.bad("")),
        [word, ..] => return Err(READER.bad(format!("error: unknown subcommand: `{word}'"))),
    }
    Ok(0)
}

fn none(why: &str) -> Res<i32> {
    out::complain(format!("error: {why}"));
    Ok(2)
}

pub fn add(repo: &Repo, name: &str, url: &[u8]) -> Res<()> {
    let file = file(repo);
    config::change(&file, format!("remote.{name}.url").as_bytes(), Some(url), false, &|_| true)?;
    let fetch = format!("+refs/heads/*:refs/remotes/{name}/*");
    config::change(&file, format!("remote.{name}.fetch").as_bytes(), Some(fetch.as_bytes()), false, &|_| {
        true
    })?;
    Ok(())
}

/// The branches that follow a remote.
fn followers(repo: &Repo, remote: &str) -> Vec<String> {
    let settings =
        repo.config.settings.iter().filter(|setting| setting.value.as_deref() == Some(remote.as_bytes()));
    let names = settings.map(|setting| text(&setting.name));
    names.filter_map(|name| Some(name.strip_prefix("branch.")?.strip_suffix(".remote")?.to_owned())).collect()
}

fn remove(repo: &Repo, name: &str) -> Res<()> {
    for branch in followers(repo, name) {
        for key in ["remote", "merge"] {
            let setting = format!("branch.{branch}.{key}");
            config::change(&file(repo), setting.as_bytes(), None, false, &|_| true)?;
        }
    }
    for (full, _) in refs::list(repo, format!("refs/remotes/{name}/").as_bytes())? {
        refs::delete(repo, &full, Expect::Anything)?;
    }
    let head = format!("refs/remotes/{name}/HEAD");
    crate::files::remove_if_there(&refs::file_of(repo, head.as_bytes()))?;
    config::change_section(&file(repo), format!("remote.{name}").as_bytes(), None)?;
    Ok(())
}

fn rename(repo: &Repo, old: &str, new: &str) -> Res<()> {
    let file = file(repo);
    config::change_section(
        &file,
        format!("remote.{old}").as_bytes(),
        Some(format!("remote.{new}").as_bytes()),
    )?;
    for spec in repo.config.all(format!("remote.{old}.fetch").as_bytes()) {
        let spec = text(&spec).replace(&format!(":refs/remotes/{old}/"), &format!(":refs/remotes/{new}/"));
        let setting = format!("remote.{new}.fetch");
        config::change(&file, setting.as_bytes(), Some(spec.as_bytes()), false, &|_| true)?;
    }
    for branch in followers(repo, old) {
        let setting = format!("branch.{branch}.remote");
        config::change(&file, setting.as_bytes(), Some(new.as_bytes()), false, &|_| true)?;
    }
    let prefix = format!("refs/remotes/{old}/");
    let head = format!("{prefix}HEAD");
    if let Some(refs::Value::Symbolic(target)) = refs::read(repo, head.as_bytes())? {
        let target = text(&target).replace(&prefix, &format!("refs/remotes/{new}/"));
        crate::files::remove_if_there(&refs::file_of(repo, head.as_bytes()))?;
        refs::set_symbolic(repo, format!("refs/remotes/{new}/HEAD").as_bytes(), target.as_bytes(), None)?;
    }
    for (full, oid) in refs::list(repo, prefix.as_bytes())? {
        let to = text(&full).replace(&prefix, &format!("refs/remotes/{new}/"));
        let why = format!("remote: renamed {} to {to}", text(&full));
        refs::set(repo, to.as_bytes(), oid, Expect::Anything, &why)?;
        refs::delete(repo, &full, Expect::Anything)?;
    }
    Ok(())
}
