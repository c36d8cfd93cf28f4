//! `git merge`.

use crate::change;
use crate::diffstat;
use crate::fail::{Res, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::ident;
use crate::index::Index;
use crate::merge::{self, Favour, Labels};
use crate::message;
use crate::object::{Commit, Kind};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::refs::{self, Expect};
use crate::rename;
use crate::repo::Repo;
use crate::revision;
use crate::switch;
use crate::walk;

const READER: Reader = Reader {
    command: "merge",
    usage: "git merge [<options>] [<commit>...]",
    list: "n stat no-stat summary log?! squash commit no-commit e|edit no-edit cleanup=! ff no-ff ff-only rerere-autoupdate! \
           verify-signatures! s|strategy= X|strategy-option= m|message= F|file= v|verbose q|quiet abort quit continue \
           allow-unrelated-histories progress no-progress S|gpg-sign?! autostash! overwrite-ignore signoff no-verify into-name=!",
    in_order: false,
};

pub fn merge(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    merge_as(repo, arguments, None)
}

/// Merges for `git pull`: what the log says was done, and what the message says was merged.
pub fn merge_as(repo: &Repo, arguments: &[Vec<u8>], pulled: Option<(&str, &str)>) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    if options.has("abort") {
        return abort(repo);
    }
    if options.has("continue") {
        if !files::exists(&repo.own("MERGE_HEAD")) {
            fatal!("There is no merge in progress (MERGE_HEAD missing).");
        }
        return super::commit::commit(repo, &[]);
    }
    if options.has("quit") {
        super::commit::clear_state(repo)?;
        return Ok(0);
    }
    if let Some(strategy) =
        options.text("strategy").filter(|name| !matches!(name.as_str(), "ort" | "recursive" | "resolve"))
    {
        fatal!("merge strategy '{strategy}' is not supported here");
    }
    refuse_unfinished(repo)?;
    let name = match options.args.as_slice() {
        [name] => name.clone(),
        [] => b"@{u}".to_vec(),
        _ => fatal!("merging more than one commit at a time is not supported here"),
    };
    let done = pulled.map_or_else(|| format!("merge {}", text(&name)), |(done, _)| done.to_owned());
    let Some(found) = revision::find(repo, &name)? else {
        out::complain(format!("merge: {} - not something we can merge", text(&name)));
        return Ok(1);
    };
    let theirs = repo.odb.peel(&found)?.0;
    let Some(ours) = repo.head()? else {
        let mut index = Index::load(repo)?;
        switch::to_tree(
            repo,
            &mut index,
            &crate::odb::EMPTY_TREE,
            &revision::tree_of(repo, &theirs)?,
            "merge",
        )?;
        index.save(repo)?;
        refs::update(repo, b"HEAD", theirs, Expect::Anything, "initial pull")?;
        return Ok(0);
    };
    let bases = walk::merge_bases(repo, &ours, &theirs)?;
    if bases.is_empty() && !options.has("allow-unrelated-histories") {
        fatal!("refusing to merge unrelated histories");
    }
    if bases.contains(&theirs) {
        if !options.has("quiet") {
            out::line(if options.has("squash") {
                "Already up to date. (nothing to squash)"
            } else {
                "Already up to date."
            });
        }
        return Ok(0);
    }
    refs::set(repo, b"ORIG_HEAD", ours, Expect::Anything, "")?;
    let no_ff =
        options.state("ff").map_or(repo.config.text("merge.ff").as_deref() == Some("false"), |ff| !ff);
    if bases.contains(&ours) && !no_ff {
        return forward(repo, &options, &done, ours, theirs);
    }
    if options.has("ff-only") || repo.config.text("merge.ff").as_deref() == Some("only") {
        fatal!("Not possible to fast-forward, aborting.");
    }
    join(repo, &options, (&name, &done, pulled.map(|(_, what)| what)), (ours, theirs))
}

pub fn refuse_unfinished(repo: &Repo) -> Res<()> {
    if !Index::load(repo)?.unmerged().is_empty() {
        out::complain(
            "error: Merging is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.",
        );
        fatal!("Exiting because of an unresolved conflict.");
    }
    if files::exists(&repo.own("MERGE_HEAD")) {
        fatal!(
            "You have not concluded your merge (MERGE_HEAD exists).\nPlease, commit your changes before you merge."
        );
    }
    if files::exists(&repo.own("CHERRY_PICK_HEAD")) {
        fatal!(
            "You have not concluded your cherry-pick (CHERRY_PICK_HEAD exists).\nPlease, commit your changes before you merge."
        );
    }
    Ok(())
}

fn abort(repo: &Repo) -> Res<i32> {
    if !files::exists(&repo.own("MERGE_HEAD")) {
        fatal!("There is no merge to abort (MERGE_HEAD missing).");
    }
    let mut index = Index::load(repo)?;
    undo(repo, &mut index)?;
    index.save(repo)?;
    super::commit::clear_state(repo)?;
    Ok(0)
}

/// Back to the current commit, but files that were changed before the merge and not by it stay as they are.
pub fn undo(repo: &Repo, index: &mut Index) -> Res<()> {
    let tree = repo.head_tree()?;
    let head = crate::index::flatten(&repo.odb, &tree)?;
    let mut kept = Vec::new();
    for entry in index
        .entries
        .iter()
        .filter(|entry| entry.stage == 0 && head.get(&entry.path) == Some(&(entry.mode, entry.oid)))
    {
        if crate::worktree::state(repo, index, entry)? != crate::worktree::State::Same
            && let Some(stat) = crate::worktree::stat(repo, &entry.path)
        {
            let name = repo.in_tree(&entry.path);
            kept.push((entry.clone(), crate::index::mode_of(&stat), crate::worktree::content(&name, &stat)?));
        }
    }
    switch::force(repo, index, &tree)?;
    for (entry, mode, content) in kept {
        crate::worktree::put(repo, &entry.path, mode, &content)?;
    }
    Ok(())
}

fn stat(repo: &Repo, old: &Oid, new: &Oid) -> Res<()> {
    let trees = (repo.odb.commit(old)?.tree, repo.odb.commit(new)?.tree);
    let changes = change::trees(repo, Some(&trees.0), Some(&trees.1), &Pathspec::default())?;
    let changes = rename::detect(repo, changes, 50, false)?;
    if !changes.is_empty() {
        diffstat::table(&diffstat::count(repo, &changes, &Default::default())?, Default::default());
        diffstat::events(&changes);
    }
    Ok(())
}

fn forward(repo: &Repo, options: &Parsed, done: &str, ours: Oid, theirs: Oid) -> Res<i32> {
    let quiet = options.has("quiet");
    if !quiet {
        out::line(format_args!("Updating {}..{}", repo.short(&ours), repo.short(&theirs)));
    }
    let mut index = Index::load(repo)?;
    switch::to_tree(repo, &mut index, &repo.head_tree()?, &repo.odb.commit(&theirs)?.tree, "merge")?;
    index.save(repo)?;
    if !quiet {
        out::line("Fast-forward");
    }
    if options.has("squash") {
        out::line("Squash commit -- not updating HEAD");
        squash_message(repo, &ours, &theirs)?;
    } else {
        refs::update(repo, b"HEAD", theirs, Expect::Value(ours), &format!("{done}: Fast-forward"))?;
    }
    if !quiet && options.state("stat") != Some(false) && !options.has("n") {
        stat(repo, &ours, &theirs)?;
    }
    Ok(0)
}

/// `names`: what was written, what the log says was done, and what the message says was merged, if that is something else.
fn join(repo: &Repo, options: &Parsed, names: (&[u8], &str, Option<&str>), sides: (Oid, Oid)) -> Res<i32> {
    let ((name, done, what), (ours, theirs)) = (names, sides);
    let (base, base_name) = merge::base_tree(repo, &ours, &theirs, 0)?;
    let mut labels = Labels::new(repo, "HEAD", &base_name, &text(name));
    labels.favour = match options.text("strategy-option").as_deref() {
        None => Favour::None,
        Some("ours") => Favour::Ours,
        Some("theirs") => Favour::Theirs,
        Some(option) => fatal!("merge strategy option '{option}' is not supported here"),
    };
    let trees = (repo.odb.commit(&ours)?.tree, repo.odb.commit(&theirs)?.tree);
    let mut index = Index::load(repo)?;
    let staged = change::tree_and_index(repo, &trees.0, &index, &Pathspec::default())?;
    if !staged.is_empty() {
        let list: String =
            staged.iter().map(|change| format!("  {}", text(change.path()))).collect::<Vec<_>>().join("\n");
        out::complain(format!(
            "error: Your local changes to the following files would be overwritten by merge:\n{list}"
        ));
        return Ok(2);
    }
    let merged = merge::trees(repo, &base, &trees.0, &trees.1, &labels)?;
    if let Err(fail) = switch::to_merged(repo, &mut index, &trees.0, &merged, "merge") {
        out::complain("Merge with strategy ort failed.");
        fail.report();
        return Ok(2);
    }
    merged.messages.iter().for_each(out::line);
    index.save(repo)?;
    let message = merge_message(repo, options, name, what)?;
    if options.has("squash") {
        squash_message(repo, &ours, &theirs)?;
        if merged.is_clean() {
            out::flush();
            out::line("Squash commit -- not updating HEAD");
            out::complain("Automatic merge went well; stopped before committing as requested");
            return Ok(0);
        }
    } else {
        files::write(&repo.own("MERGE_HEAD"), format!("{theirs}\n").as_bytes())?;
        files::write(
            &repo.own("MERGE_MODE"),
            if options.state("ff") == Some(false) { b"no-ff" } else { b"" },
        )?;
    }
    if !merged.is_clean() {
        let mut text = message;
        text.extend_from_slice(b"\n# Conflicts:\n");
        index.unmerged().iter().for_each(|path| text.extend_from_slice(&[b"#\t", &path[..], b"\n"].concat()));
        files::write(&repo.own("MERGE_MSG"), &text)?;
        out::line("Automatic merge failed; fix conflicts and then commit the result.");
        return Ok(1);
    }
    files::write(&repo.own("MERGE_MSG"), &message)?;
    if options.state("commit") == Some(false) {
        out::flush();
        out::complain("Automatic merge went well; stopped before committing as requested");
        return Ok(0);
    }
    conclude(repo, options, done, message, &index, (ours, theirs))
}

fn conclude(
    repo: &Repo,
    options: &Parsed,
    done: &str,
    text_of: Vec<u8>,
    index: &Index,
    sides: (Oid, Oid),
) -> Res<i32> {
    let mut message = text_of;
    if options.has("edit") {
        message = message::edited(repo, "MERGE_MSG", &message, b"Please enter a commit message to explain why this merge is necessary,\nespecially if it merges an updated upstream into a topic branch.\n\nLines starting with '#' will be ignored, and an empty message aborts\nthe commit.\n")?;
    }
    let tree = index.write_tree(&repo.odb)?;
    let (author, committer) = (ident::author(repo)?, ident::committer(repo)?);
    let commit = Commit {
        tree,
        parents: vec![sides.0, sides.1],
        author,
        committer,
        extra: Vec::new(),
        message: message::clean(&message, false),
    };
    let oid = repo.odb.write(Kind::Commit, &commit.write())?;
    refs::update(
        repo,
        b"HEAD",
        oid,
        Expect::Value(sides.0),
        &format!("{done}: Merge made by the 'ort' strategy."),
    )?;
    super::commit::clear_state(repo)?;
    if !options.has("quiet") {
        out::line("Merge made by the 'ort' strategy.");
        if options.state("stat") != Some(false) && !options.has("n") {
            stat(repo, &sides.0, &oid)?;
        }
    }
    Ok(0)
}

fn merge_message(repo: &Repo, options: &Parsed, name: &[u8], pulled: Option<&str>) -> Res<Vec<u8>> {
    let texts: Vec<Vec<u8>> = options.values("message").map(<[u8]>::to_vec).collect();
    if let Some(message) = message::given(&texts, options.value("file"))? {
        return Ok(message);
    }
    let full = revision::full_name(repo, name)?;
    let what = match &full {
        _ if pulled.is_some() => pulled.unwrap_or_default().to_owned(),
        Some(full) if full.starts_with(b"refs/heads/") => format!("branch '{}'", text(name)),
        Some(full) if full.starts_with(b"refs/remotes/") => {
            format!("remote-tracking branch '{}'", text(refs::short(full)))
        }
        Some(full) if full.starts_with(b"refs/tags/") => format!("tag '{}'", text(name)),
        _ => format!("commit '{}'", text(name)),
    };
    let into = match refs::current_branch(repo)? {
        Some(branch) if branch == b"master" || branch == b"main" => String::new(),
        Some(branch) => format!(" into {}", text(&branch)),
        None => " into HEAD".to_owned(),
    };
    Ok(format!("Merge {what}{into}\n").into_bytes())
}

fn squash_message(repo: &Repo, ours: &Oid, theirs: &Oid) -> Res<()> {
    let mut walk = walk::Walk::new(repo);
    walk.include(*theirs)?;
    walk.exclude(*ours)?;
    let pretty = crate::pretty::Pretty {
        repo,
        format: crate::pretty::Format::Medium,
        dates: Default::default(),
        abbrev: false,
        abbrev_length: None,
        decorate: None,
    };
    let mut message = b"Squashed commit of the following:\n".to_vec();
    for oid in walk.run()? {
        message.push(b'\n');
        message.extend_from_slice(&pretty.show(&oid, "")?);
    }
    files::write(&repo.own("SQUASH_MSG"), &message)
}
