//! `git push`.

use crate::fail::{Res, error, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::http;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::refs::{self, Expect};
use crate::remote::Refspec;
use crate::repo::Repo;
use crate::revision;
use crate::transport;
use crate::walk;

use super::branch;

const READER: Reader = Reader {
    command: "push",
    usage: "git push [<options>] [<repository> [<refspec>...]]",
    list: "v|verbose q|quiet repo=! all branches mirror! d|delete tags n|dry-run! porcelain! f|force force-with-lease?! \
           force-if-includes! u|set-upstream progress no-progress prune! no-verify follow-tags! atomic! o|push-option=!",
    in_order: false,
};

/// One name to be changed there.
struct Update {
    /// As it is shown.
    from: String,
    /// Nothing: the name there goes.
    oid: Option<Oid>,
    /// The full name here, if it is one.
    source: Option<Vec<u8>>,
    to: Vec<u8>,
    force: bool,
}

enum Pushed {
    Same,
    Done(String),
    /// What is shown, and the advice.
    Refused(String, &'static str),
}

pub fn push(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let branch = refs::current_branch(repo)?;
    let name = match options.args.first() {
        Some(name) => text(name),
        None => transport::usual_remote(repo)?,
    };
    let address =
        repo.config.get(&format!("remote.{name}.pushurl")).or_else(|| transport::address(repo, &name));
    let known = address.is_some();
    if !known && options.args.is_empty() {
        fatal!(
            "No configured push destination.\nEither specify the URL from the command-line or configure a remote repository using\n\n    git remote add <name> <url>\n\nand then push using the remote name\n\n    git push <name>\n"
        );
    }
    let address = address.unwrap_or_else(|| name.as_bytes().to_vec());
    let updates = updates(repo, &options, &name, branch.as_deref())?;
    let remote = match http::is_address(&address) {
        true => Some(http::receive(&address, repo)?),
        false => None,
    };
    let local = if remote.is_some() { None } else { Some(transport::must_open(&address, Some(repo))?) };
    let Some(to) = remote.as_ref().map(|remote| &remote.repo).or(local.as_ref()) else {
        fatal!("'{}' cannot be opened", text(&address))
    };
    let updates = match updates {
        Ok(list) => list,
        Err(missing) => {
            out::complain(format!("error: src refspec {missing} does not match any"));
            error!("failed to push some refs to '{}'", text(&address));
        }
    };
    let mut lines = Vec::new();
    let mut advice = None;
    let mut done = Vec::new();
    for update in &updates {
        done.push((update, apply(repo, to, update, options.has("force"))?));
    }
    let refused = remote.as_ref().map(|remote| remote.send(repo)).transpose()?.unwrap_or_default();
    for (update, pushed) in done {
        match (pushed, refused.get(&update.to)) {
            (Pushed::Same, _) => {}
            (Pushed::Done(_), Some(why)) => {
                let to = text(refs::short(&update.to));
                lines.push(format!(" ! {:<17} {} -> {to} ({why})", "[remote rejected]", update.from));
                advice = advice.or(Some(""));
                continue;
            }
            (Pushed::Done(line), None) => lines.push(line),
            (Pushed::Refused(line, why), _) => {
                lines.push(line);
                advice = advice.or(Some(why));
            }
        }
        let refused = advice.is_some();
        if known && !refused {
            track(repo, &name, update)?;
        }
    }
    if lines.is_empty() && !options.has("quiet") {
        out::complain("Everything up-to-date");
    }
    if !lines.is_empty() && (!options.has("quiet") || advice.is_some()) {
        out::complain(format!("To {}", text(&address)));
        lines.iter().for_each(out::complain);
    }
    if let Some(advice) = advice {
        out::complain(format!("error: failed to push some refs to '{}'", text(&address)));
        if !advice.is_empty() {
            out::complain(advice);
        }
        return Ok(1);
    }
    if options.has("set-upstream") && known {
        for update in &updates {
            let source = update.source.as_deref().and_then(|name| name.strip_prefix(b"refs/heads/"));
            let target = update.to.strip_prefix(b"refs/heads/");
            if let (Some(source), Some(target)) = (source, target) {
                let upstream = [format!("refs/remotes/{name}/").as_bytes(), target].concat();
                branch::set_upstream(repo, source, &upstream, options.has("quiet"))?;
            }
        }
    }
    Ok(0)
}

/// What is to be pushed; an error names what there is nothing of.
fn updates(
    repo: &Repo,
    options: &Parsed,
    remote: &str,
    branch: Option<&[u8]>,
) -> Res<std::result::Result<Vec<Update>, String>> {
    let mut list = Vec::new();
    let same = |name: Vec<u8>, oid: Oid| Update {
        from: text(refs::short(&name)),
        oid: Some(oid),
        source: Some(name.clone()),
        to: name,
        force: false,
    };
    let prefix: Option<&[u8]> =
        if options.has("all") || options.has("branches") { Some(b"refs/heads/") } else { None };
    for prefix in prefix.into_iter().chain(options.has("tags").then_some(b"refs/tags/".as_slice())) {
        list.extend(refs::list(repo, prefix)?.into_iter().map(|(name, oid)| same(name, oid)));
    }
    let specs = options.args.get(1..).unwrap_or(&[]);
    if specs.is_empty() && list.is_empty() && !options.has("tags") {
        let Some(branch) = branch else {
            fatal!(
                "You are not currently on a branch.\nTo push the history leading to the current (detached HEAD)\nstate now, use\n\n    git push {remote} HEAD:<name-of-remote-branch>\n"
            );
        };
        let shown = text(branch);
        let full = [b"refs/heads/", branch].concat();
        let Some(oid) = refs::resolve(repo, &full)? else { return Ok(Err(text(&full))) };
        let merges = repo.config.get(&format!("branch.{shown}.merge"));
        let default = repo.config.text("push.default");
        let current = default.as_deref() == Some("current")
            || repo.config.bool("push.autosetupremote", false)
            || options.has("set-upstream") && !options.args.is_empty()
            || repo.config.text(&format!("branch.{shown}.remote")).is_none_or(|own| own != remote)
                && transport::usual_remote(repo)? != remote;
        let to = match merges {
            None if !current => {
                fatal!(
                    "The current branch {shown} has no upstream branch.\nTo push the current branch and set the remote as upstream, use\n\n    git push --set-upstream {remote} {shown}\n\nTo have this happen automatically for branches without a tracking\nupstream, see 'push.autoSetupRemote' in 'git help config'.\n"
                );
            }
            Some(merge) if !current && default.as_deref() == Some("upstream") => merge,
            Some(merge) if !current && merge != full => {
                fatal!(
                    "The upstream branch of your current branch does not match\nthe name of your current branch.  To push to the upstream branch\non the remote, use\n\n    git push {remote} HEAD:{0}\n\nTo push to the branch of the same name on the remote, use\n\n    git push {remote} HEAD\n\nTo choose either option permanently, see push.default in 'git help config'.\n\nTo avoid automatically configuring an upstream branch when its name\nwon't match the local branch, see option 'simple' of branch.autoSetupMerge\nin 'git help config'.\n",
                    text(refs::short(&merge))
                );
            }
            _ => full.clone(),
        };
        list.push(Update { from: shown, oid: Some(oid), source: Some(full), to, force: false });
    }
    for written in specs {
        match one(repo, written, options.has("delete"))? {
            Some(update) => list.push(update),
            None => {
                return Ok(Err(text(written)
                    .split(':')
                    .next()
                    .unwrap_or_default()
                    .trim_start_matches('+')
                    .to_owned()));
            }
        }
    }
    Ok(Ok(list))
}

fn one(repo: &Repo, written: &[u8], delete: bool) -> Res<Option<Update>> {
    let Some(mut spec) = Refspec::parse(written) else { return Ok(None) };
    if delete {
        (spec.to, spec.from) = (spec.from, Vec::new());
    }
    let full_to = |to: &[u8], like: Option<&[u8]>| match like {
        _ if to.starts_with(b"refs/") => to.to_vec(),
        Some(like) if like.starts_with(b"refs/tags/") => [b"refs/tags/", to].concat(),
        _ => [b"refs/heads/", to].concat(),
    };
    if spec.from.is_empty() {
        let to = full_to(&spec.to, None);
        return Ok(Some(Update { from: String::new(), oid: None, source: None, to, force: true }));
    }
    let Some(oid) = revision::find(repo, &spec.from)? else { return Ok(None) };
    let name = match revision::full_name(repo, &spec.from)? {
        Some(name) => Some(refs::follow(repo, &name)?),
        None => None,
    };
    let to = match (&spec.to, &name) {
        (to, name) if !to.is_empty() => full_to(to, name.as_deref()),
        (_, Some(name)) if name.starts_with(b"refs/") => name.clone(),
        _ => fatal!(
            "The destination you provided is not a full refname (i.e.,\nstarting with \"refs/\"): {}",
            text(&spec.from)
        ),
    };
    let from = text(refs::short(&spec.from));
    Ok(Some(Update { from, oid: Some(oid), source: name, to, force: spec.force }))
}

fn apply(repo: &Repo, to: &Repo, update: &Update, force: bool) -> Res<Pushed> {
    let old = refs::resolve(to, &update.to)?;
    let shown = text(refs::short(&update.to));
    let from = &update.from;
    let line = |sign: &str, what: &str, why: &str| format!(" {sign} {what:<17} {from} -> {shown}{why}");
    let Some(new) = update.oid else {
        let Some(_) = old else {
            out::complain(format!("error: unable to delete '{shown}': remote ref does not exist"));
            return Ok(Pushed::Refused(format!(" ! {:<17} {shown}", "[rejected]"), ""));
        };
        refs::delete(to, &update.to, Expect::Anything)?;
        return Ok(Pushed::Done(format!(" - {:<17} {shown}", "[deleted]")));
    };
    if old == Some(new) {
        return Ok(Pushed::Same);
    }
    let checked_out = !to.is_bare()
        && refs::current_branch(to)?
            .is_some_and(|branch| [b"refs/heads/", &branch[..]].concat() == update.to)
        && !matches!(
            to.config.text("receive.denycurrentbranch").as_deref(),
            Some("ignore" | "warn" | "false")
        );
    if checked_out && old.is_some() {
        let why = " (branch is currently checked out)";
        return Ok(Pushed::Refused(line("!", "[remote rejected]", why), ""));
    }
    let force = force || update.force;
    let mut sign = (" ", String::new());
    if let Some(old) = old {
        let known = repo.odb.has(&old);
        if update.to.starts_with(b"refs/tags/") && !force {
            return Ok(Pushed::Refused(line("!", "[rejected]", " (already exists)"), EXISTS));
        }
        if !known && !force {
            return Ok(Pushed::Refused(line("!", "[rejected]", " (fetch first)"), FETCH_FIRST));
        }
        let forward = known && walk::is_ancestor(repo, &old, &new)?;
        if !forward && !force {
            let current = repo.head()? == Some(new);
            let advice = if current { BEHIND } else { OTHER_BEHIND };
            return Ok(Pushed::Refused(line("!", "[rejected]", " (non-fast-forward)"), advice));
        }
        let (before, after) = (repo.short(&old), repo.short(&new));
        sign =
            if forward { (" ", format!("{before}..{after}")) } else { ("+", format!("{before}...{after}")) };
    }
    transport::copy(repo, to, &[new])?;
    refs::update(to, &update.to, new, old.map_or(Expect::Nothing, Expect::Value), "push")?;
    Ok(Pushed::Done(match (old, sign.0) {
        (None, _) if update.to.starts_with(b"refs/tags/") => line("*", "[new tag]", ""),
        (None, _) if update.to.starts_with(b"refs/heads/") => line("*", "[new branch]", ""),
        (None, _) => line("*", "[new reference]", ""),
        (_, "+") => line("+", &sign.1, " (forced update)"),
        _ => line(" ", &sign.1, ""),
    }))
}

/// What is known here of the names there.
fn track(repo: &Repo, remote: &str, update: &Update) -> Res<()> {
    let specs = repo.config.all(format!("remote.{remote}.fetch").as_bytes());
    let here = specs.iter().find_map(|spec| Refspec::parse(spec)?.map(&update.to));
    let Some(here) = here else { return Ok(()) };
    match update.oid {
        Some(oid) if refs::resolve(repo, &here)? == Some(oid) => Ok(()),
        Some(oid) => refs::set(repo, &here, oid, Expect::Anything, "update by push"),
        None if refs::resolve(repo, &here)?.is_some() => refs::delete(repo, &here, Expect::Anything),
        None => Ok(()),
    }
}

const FETCH_FIRST: &str = "hint: Updates were rejected because the remote contains work that you do
hint: not have locally. This is usually caused by another repository pushing
hint: to the same ref. You may want to first integrate the remote changes
hint: (e.g., 'git pull ...') before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.";

const BEHIND: &str = "hint: Updates were rejected because the tip of your current branch is behind
hint: its remote counterpart. Integrate the remote changes (e.g.
hint: 'git pull ...') before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.";

const OTHER_BEHIND: &str = "hint: Updates were rejected because a pushed branch tip is behind its remote
hint: counterpart. Check out this branch and integrate the remote changes
hint: (e.g. 'git pull ...') before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.";

const EXISTS: &str = "hint: Updates were rejected because the tag already exists in the remote.";
