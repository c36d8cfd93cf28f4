//! `git commit`.

use crate::change;
use crate::date;
use crate::diffstat;
use crate::fail::{Fail, Res, error, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::ident;
use crate::index::Index;
use crate::message;
use crate::object::{Commit, Kind, Person};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::patch::Style;
use crate::pathspec::Pathspec;
use crate::refs::{self, Expect};
use crate::rename;
use crate::repo::Repo;
use crate::revision;
use crate::status::{For, Status};

use super::{add, program};

const READER: Reader = Reader {
    command: "commit",
    usage: "git commit [-a | --interactive | --patch] [-s] [-v] [-u<mode>] [--amend] [--dry-run] [<options>] [--] [<pathspec>...]",
    list: "a|all m|message= F|file= C|reuse-message= c|reedit-message= amend allow-empty allow-empty-message author= date= \
           s|signoff n|no-verify q|quiet v|verbose e|edit no-edit reset-author o|only i|include t|template=! cleanup= dry-run! \
           short! porcelain! long! z! branch! fixup= squash= p|patch! interactive! S|gpg-sign?! no-gpg-sign u|untracked-files? \
           no-status status trailer= post-rewrite no-post-rewrite pathspec-from-file=! pathspec-file-nul!",
    in_order: false,
};

pub fn commit(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    let mut index = Index::load(repo)?;
    let paths = Pathspec::new(repo, &options.args)?;
    if options.has("all") && !options.args.is_empty() {
        fatal!("paths '{} ...' with -a does not make sense", text(&options.args[0]));
    }
    let head = repo.head()?;
    let amended = match (options.has("amend"), head) {
        (false, _) => None,
        (true, Some(head)) => Some(repo.odb.commit(&head)?),
        (true, None) => fatal!("You have nothing to amend."),
    };
    let merging = files::read_if_there(&repo.own("MERGE_HEAD"))?;
    let picking = files::exists(&repo.own("CHERRY_PICK_HEAD"));
    if amended.is_some() && (merging.is_some() || picking) {
        fatal!(
            "You are in the middle of a {} -- cannot amend.",
            if picking { "cherry-pick" } else { "merge" }
        );
    }
    let mut rest = stage(repo, &mut index, &paths, &options, merging.is_some())?;
    refuse_unmerged(&index)?;
    if !options.has("no-verify") && program::hook(repo, "pre-commit", &[])? != 0 {
        return Ok(1);
    }
    let tree = index.write_tree(&repo.odb)?;
    let parents = parents(repo, head, amended.as_deref(), merging.as_deref())?;
    let allowed = options.has("allow-empty") || options.has("amend") || merging.is_some();
    if !allowed && is_empty(repo, &parents, &tree)? {
        return nothing(repo, &mut index, picking);
    }
    let author = author(repo, &options, amended.as_deref())?;
    let text_of_message = message_for(repo, &options, amended.as_deref(), &index)?;
    let committer = ident::committer(repo)?;
    let commit = Commit { tree, parents, author, committer, extra: Vec::new(), message: text_of_message };
    let oid = repo.odb.write(Kind::Commit, &commit.write())?;
    let action = match () {
        () if options.has("amend") => " (amend)",
        () if head.is_none() => " (initial)",
        () if merging.is_some() => " (merge)",
        () if picking => " (cherry-pick)",
        () => "",
    };
    rest.as_mut().unwrap_or(&mut index).save(repo)?;
    let why = format!("commit{action}: {}", text(&commit.subject()));
    let expect = head.map_or(Expect::Anything, Expect::Value);
    refs::update(repo, b"HEAD", oid, expect, &why)?;
    clear_state(repo)?;
    program::hook(repo, "post-commit", &[])?;
    if !options.has("quiet") {
        let dated = options.has("amend")
            || picking
            || options.value("date").is_some()
            || options.value("reuse-message").is_some();
        announce(repo, &oid, head.is_none(), dated)?;
    }
    Ok(0)
}

/// Brings what is to be committed into the index. With paths only those are committed: then the index that stays is another.
fn stage(
    repo: &Repo,
    index: &mut Index,
    paths: &Pathspec,
    options: &Parsed,
    merging: bool,
) -> Res<Option<Index>> {
    if options.has("all") {
        add::update_known(repo, index, paths)?;
        return Ok(None);
    }
    if paths.is_empty() {
        return Ok(None);
    }
    if merging && !options.has("include") {
        fatal!("cannot do a partial commit during a merge.");
    }
    let unmatched = paths.unmatched(|matches| index.entries.iter().any(|entry| matches(&entry.path)));
    if let Some(written) = unmatched {
        error!("pathspec '{}' did not match any file(s) known to git", text(&written));
    }
    add::update_known(repo, index, paths)?;
    if options.has("include") {
        return Ok(None);
    }
    let mut only = Index::default();
    for (path, (mode, oid)) in crate::index::flatten(&repo.odb, &repo.head_tree()?)? {
        if !paths.matches(&path) {
            only.entries.push(crate::index::Entry::new(&path, mode, oid));
        }
    }
    for entry in index.entries.iter().filter(|entry| paths.matches(&entry.path)) {
        only.put(entry.clone());
    }
    Ok(Some(std::mem::replace(index, only)))
}

fn refuse_unmerged(index: &Index) -> Res<()> {
    let unmerged = index.unmerged();
    if unmerged.is_empty() {
        return Ok(());
    }
    for path in &unmerged {
        out::bytes_line(&[b"U\t", &path[..]].concat());
    }
    out::complain(
        "error: Committing is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use \
         'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.",
    );
    Err(Fail::Fatal("Exiting because of an unresolved conflict.".to_owned()))
}

fn parents(
    repo: &Repo,
    head: Option<Oid>,
    amended: Option<&Commit>,
    merging: Option<&[u8]>,
) -> Res<Vec<Oid>> {
    if let Some(amended) = amended {
        return Ok(amended.parents.clone());
    }
    let mut parents: Vec<Oid> = head.into_iter().collect();
    for line in merging.unwrap_or(b"").split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        match Oid::from_hex(line) {
            Some(oid) if repo.odb.has(&oid) => parents.push(oid),
            _ => fatal!("Corrupt MERGE_HEAD file ({})", text(line)),
        }
    }
    Ok(parents)
}

fn is_empty(repo: &Repo, parents: &[Oid], tree: &Oid) -> Res<bool> {
    match parents {
        [] => Ok(*tree == crate::odb::EMPTY_TREE),
        [parent] => Ok(repo.odb.commit(parent)?.tree == *tree),
        _ => Ok(false),
    }
}

/// Says why there is nothing to commit.
pub fn nothing(repo: &Repo, index: &mut Index, picking: bool) -> Res<i32> {
    let status = Status::find(repo, index, &Pathspec::default(), Some(crate::worktree::Untracked::Normal))?;
    out::put(status.describe(repo, false, For::Commit)?);
    if picking {
        out::complain(
            "The previous cherry-pick is now empty, possibly due to conflict resolution.\nIf you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\nOtherwise, please use 'git cherry-pick --skip'",
        );
    }
    Ok(1)
}

fn author(repo: &Repo, options: &Parsed, amended: Option<&Commit>) -> Res<Person> {
    let reused = match options.value("reuse-message").or_else(|| options.value("reedit-message")) {
        Some(name) => Some(repo.odb.commit(&revision::commit(repo, name)?)?.author.clone()),
        None => None,
    };
    let picked =
        files::read(&repo.own("CHERRY_PICK_HEAD")).ok().and_then(|hex| Oid::from_hex(hex.trim_ascii()));
    let picked = picked.map(|oid| repo.odb.commit(&oid).map(|commit| commit.author.clone())).transpose()?;
    let old = reused
        .or_else(|| amended.map(|commit| commit.author.clone()))
        .or(picked)
        .filter(|_| !options.has("reset-author"));
    let mut person = match old {
        Some(old) => old,
        None => ident::author(repo)?,
    };
    if let Some(given) = options.value("author") {
        let parsed = Person::parse(given);
        if given.contains(&b'<') && given.contains(&b'>') {
            (person.name, person.email) = (parsed.name, parsed.email);
        } else {
            fatal!("--author '{}' is not 'Name <email>' and matches no existing author", text(given));
        }
    }
    if let Some(given) = options.text("date") {
        match date::parse(&given) {
            Some((time, zone)) => (person.time, person.zone) = (time, zone),
            None => fatal!("invalid date format: {given}"),
        }
    }
    Ok(person)
}

fn message_for(repo: &Repo, options: &Parsed, amended: Option<&Commit>, index: &Index) -> Res<Vec<u8>> {
    let texts: Vec<Vec<u8>> = options.values("message").map(<[u8]>::to_vec).collect();
    let mut start = message::given(&texts, options.value("file"))?;
    let mut edit = start.is_none();
    if let Some(name) = options.value("reuse-message").or_else(|| options.value("reedit-message")) {
        start = Some(repo.odb.commit(&revision::commit(repo, name)?)?.message.clone());
        edit = options.value("reedit-message").is_some();
    }
    if start.is_none() {
        start = amended.map(|commit| commit.message.clone());
    }
    if start.is_none() {
        start =
            files::read_if_there(&repo.own("MERGE_MSG"))?.or(files::read_if_there(&repo.own("SQUASH_MSG"))?);
    }
    if let Some(name) = options.value("fixup").or_else(|| options.value("squash")) {
        let about = options.value("fixup").is_some();
        if about && (name.starts_with(b"amend:") || name.starts_with(b"reword:")) {
            fatal!("git commit: '--fixup={}' is not supported here", text(name));
        }
        let subject = repo.odb.commit(&revision::commit(repo, name)?)?.subject();
        let head = [if about { &b"fixup! "[..] } else { b"squash! " }, &subject, b"\n"].concat();
        let given = message::given(&texts, options.value("file"))?;
        start = Some(given.map_or(head.clone(), |given| [&head[..], b"\n", &given].concat()));
        edit = edit && !about;
    }
    let edit = match options.state("edit").or(options.has("no-edit").then_some(false)) {
        Some(edit) => edit,
        None => edit,
    };
    let mut start = start.unwrap_or_default();
    if options.has("signoff") {
        sign_off(repo, &mut start)?;
    }
    for trailer in options.values("trailer") {
        add_trailer(&mut start, &text(trailer).replacen('=', ": ", 1));
    }
    let mut cleaned = if edit {
        let status =
            Status::find(repo, index, &Pathspec::default(), Some(crate::worktree::Untracked::Normal))?;
        let mut comments = b"Please enter the commit message for your changes. Lines starting\nwith '#' will be ignored, and an empty message aborts the commit.\n\n".to_vec();
        comments.extend_from_slice(&status.describe(repo, false, For::Template)?);
        message::edited(repo, "COMMIT_EDITMSG", &start, &comments)?
    } else {
        match options.text("cleanup").as_deref() {
            Some("verbatim") => start.clone(),
            Some("strip") => message::clean(&start, true),
            _ => message::clean(&start, false),
        }
    };
    let file = repo.own("COMMIT_EDITMSG");
    files::write(&file, &cleaned)?;
    if !options.has("no-verify") {
        if program::hook(repo, "commit-msg", &[&file])? != 0 {
            return Err(Fail::Code(1));
        }
        cleaned = files::read(&file).unwrap_or(cleaned);
    }
    if cleaned.trim_ascii().is_empty() && !options.has("allow-empty-message") {
        out::complain("Aborting commit due to empty commit message.");
        return Err(Fail::Code(1));
    }
    Ok(cleaned)
}

pub fn sign_off(repo: &Repo, message: &mut Vec<u8>) -> Res<()> {
    let who = ident::committer(repo)?;
    add_trailer(message, &format!("Signed-off-by: {} <{}>", text(&who.name), text(&who.email)));
    Ok(())
}

pub fn add_trailer(message: &mut Vec<u8>, line: &str) {
    *message = message::clean(message, false);
    let last = text(message).trim_end().rsplit("\n\n").next().unwrap_or("").to_owned();
    let is_trailer = |line: &str| line.split_once(": ").is_some_and(|(key, _)| !key.contains(' '));
    if last.lines().last() == Some(line) {
        return;
    }
    let has_block = text(message).trim_end().contains("\n\n") && last.lines().all(is_trailer);
    if !has_block {
        message.push(b'\n');
    }
    message.extend_from_slice(format!("{line}\n").as_bytes());
}

/// What an operation left behind is done with.
pub fn clear_state(repo: &Repo) -> Res<()> {
    ["MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE"]
        .iter()
        .try_for_each(|name| files::remove_if_there(&repo.own(name)))
}

/// `[main 1234567] subject`, and what changed.
pub fn announce(repo: &Repo, oid: &Oid, first: bool, dated: bool) -> Res<()> {
    let commit = repo.odb.commit(oid)?;
    let branch = refs::current_branch(repo)?.map_or("detached HEAD".to_owned(), |branch| text(&branch));
    let root = if first { " (root-commit)" } else { "" };
    out::line(format_args!("[{branch}{root} {}] {}", repo.short(oid), text(&commit.subject())));
    let (author, committer) = (&commit.author, &commit.committer);
    if (&author.name, &author.email) != (&committer.name, &committer.email) {
        out::line(format_args!(" Author: {} <{}>", text(&author.name), text(&author.email)));
    }
    if dated {
        out::line(format_args!(" Date: {}", date::show(author.time, author.zone, &date::Style::Default)));
    }
    if ident::is_guessed(&repo.config, "COMMITTER") {
        out::line(format_args!(
            " Committer: {} <{}>\nYour name and email address were configured automatically based\non your username and \
             hostname. Please check that they are accurate.\nYou can suppress this message by setting them explicitly:\n\n    \
             git config --global user.name \"Your Name\"\n    git config --global user.email you@example.com\n\nAfter doing \
             this, you may fix the identity used for this commit with:\n\n    git commit --amend --reset-author\n",
            text(&committer.name),
            text(&committer.email)
        ));
    }
    if commit.parents.len() > 1 {
        return Ok(());
    }
    let old =
        commit.parents.first().map(|parent| repo.odb.commit(parent).map(|parent| parent.tree)).transpose()?;
    let changes = change::trees(repo, old.as_ref(), Some(&commit.tree), &Pathspec::default())?;
    let changes = rename::detect(repo, changes, 50, false)?;
    if !changes.is_empty() {
        diffstat::summary(&diffstat::count(repo, &changes, &Style::default())?);
        diffstat::events(&changes);
    }
    Ok(())
}
