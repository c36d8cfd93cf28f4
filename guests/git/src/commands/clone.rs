//! `git clone`.

use crate::config;
use crate::fail::{Res, fatal};
use crate::files::{self, join, text};
use crate::hash::Oid;
use crate::index::Index;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::refs::{self, Expect, Value};
use crate::repo::{Global, Repo};
use crate::switch;
use crate::transport;

use super::{init, remote};

const READER: Reader = Reader {
    command: "clone",
    usage: "git clone [<options>] [--] <repo> [<dir>]",
    list: "v|verbose q|quiet progress no-progress n|no-checkout bare mirror! l|local no-local no-hardlinks s|shared! \
           recurse-submodules?! recursive?! j|jobs= template=! reference=! o|origin= b|branch= u|upload-pack=! depth= \
           shallow-since=! single-branch! no-single-branch no-tags tags separate-git-dir=! c|config= sparse! filter=!",
    in_order: false,
};

pub fn clone(_: &Global, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let (source, place) = match options.args.as_slice() {
        [source] => (source, default_place(source, options.has("bare"))),
        [source, place] => (source, place.clone()),
        [] => return Err(READER.bad("fatal: You must specify a repository to clone.\n")),
        _ => return Err(READER.bad("fatal: Too many arguments.\n")),
    };
    let Some(from) = transport::open(source)? else { fatal!("repository '{}' does not exist", text(source)) };
    if options.value("depth").is_some() && crate::http::is_address(source) {
        out::complain("warning: --depth is not supported here: all of the history is fetched");
    } else if options.value("depth").is_some() && !source.starts_with(b"file://") {
        out::complain("warning: --depth is ignored in local clones; use file:// instead.");
    }
    let filled = files::names_in(&place).is_ok_and(|names| !names.is_empty());
    if filled || files::exists(&place) && !files::is_dir(&place) {
        fatal!("destination path '{}' already exists and is not an empty directory.", text(&place));
    }
    let bare = options.has("bare");
    if !options.has("quiet") {
        let kind = if bare { "bare repository " } else { "" };
        out::complain(format!("Cloning into {kind}'{}'...", text(&place)));
    }
    let fresh = !files::exists(&place);
    let done = fill(&from, &transport::absolute(source), &place, &options);
    if done.is_err() {
        // What was begun is of no use. If it cannot be removed it stays: the failure itself is reported.
        let _ =
            if fresh { files::remove_dir_all(&place) } else { files::remove_dir_all(&join(&place, b".git")) };
    }
    done
}

/// `…/name.git` and `…/name/.git` become `name`.
fn default_place(source: &[u8], bare: bool) -> Vec<u8> {
    let name = text(source);
    let name = name.trim_end_matches('/');
    let name = name.strip_suffix("/.git").unwrap_or(name);
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.strip_suffix(".git").unwrap_or(name);
    if bare { format!("{name}.git").into_bytes() } else { name.as_bytes().to_vec() }
}

fn fill(from: &Repo, address: &[u8], place: &[u8], options: &Parsed) -> Res<i32> {
    let bare = options.has("bare");
    let head = match refs::read(from, b"HEAD")? {
        Some(Value::Symbolic(name)) => name.strip_prefix(b"refs/heads/").map(<[u8]>::to_vec),
        _ => None,
    };
    files::make_dirs(place)?;
    let place = toolkit::files::resolve(&transport::absolute(place));
    let git_dir = if bare { place.clone() } else { join(&place, b".git") };
    init::create(&git_dir, bare, head.as_deref())?;
    let Some(repo) = Repo::at(&place)? else { fatal!("cannot open the new repository") };
    let origin = options.text("origin").unwrap_or_else(|| "origin".to_owned());
    let branches = refs::list(from, b"refs/heads/")?;
    let tags = if options.has("no-tags") { Vec::new() } else { refs::list(from, b"refs/tags/")? };
    let mut tips: Vec<Oid> = branches.iter().chain(&tags).map(|(_, oid)| *oid).collect();
    tips.extend(from.head()?);
    transport::copy(from, &repo, &tips)?;
    let why = format!("clone: from {}", text(address));
    if bare {
        let setting = format!("remote.{origin}.url");
        config::change(&join(&git_dir, b"config"), setting.as_bytes(), Some(address), false, &|_| true)?;
    } else {
        remote::add(&repo, &origin, address)?;
    }
    for pair in options.values("config") {
        let pair = text(pair);
        let (name, value) = pair.split_once('=').unwrap_or((&pair, "true"));
        config::change(&join(&git_dir, b"config"), name.as_bytes(), Some(value.as_bytes()), true, &|_| true)?;
    }
    for (name, oid) in &branches {
        let short = name.strip_prefix(b"refs/heads/").unwrap_or(name);
        let full =
            if bare { name.clone() } else { [format!("refs/remotes/{origin}/").as_bytes(), short].concat() };
        put_quietly(&repo, &full, *oid)?;
    }
    for (name, oid) in &tags {
        put_quietly(&repo, name, *oid)?;
    }
    if !bare {
        check_out(&repo, from, &origin, head, options, &why)?;
    }
    if tips.is_empty() {
        out::complain("warning: You appear to have cloned an empty repository.");
    }
    if !options.has("quiet") {
        out::complain("done.");
    }
    Ok(0)
}

/// Names that were copied have no history of their own here.
fn put_quietly(repo: &Repo, name: &[u8], oid: Oid) -> Res<()> {
    let file = refs::file_of(repo, name);
    files::make_dirs(&files::parent(&file))?;
    files::write(&file, format!("{oid}\n").as_bytes())
}

fn check_out(
    repo: &Repo,
    from: &Repo,
    origin: &str,
    head: Option<Vec<u8>>,
    options: &Parsed,
    why: &str,
) -> Res<()> {
    if let Some(head) = &head
        && refs::resolve(from, b"HEAD")?.is_some()
    {
        let place = format!("refs/remotes/{origin}/");
        let target = [place.as_bytes(), head].concat();
        refs::set_symbolic(repo, format!("{place}HEAD").as_bytes(), &target, None)?;
    }
    let wanted = options.value("branch").map(<[u8]>::to_vec).or(head);
    let at_branch = match &wanted {
        Some(name) => refs::resolve(from, &[b"refs/heads/", &name[..]].concat())?,
        None => None,
    };
    let oid = match (&wanted, at_branch) {
        (Some(name), Some(oid)) => {
            let full = [b"refs/heads/", &name[..]].concat();
            let shown = text(name);
            let file = join(&repo.common_dir, b"config");
            let remote = format!("branch.{shown}.remote");
            config::change(&file, remote.as_bytes(), Some(origin.as_bytes()), false, &|_| true)?;
            config::change(&file, format!("branch.{shown}.merge").as_bytes(), Some(&full), false, &|_| true)?;
            refs::set_symbolic(repo, b"HEAD", &full, None)?;
            refs::update(repo, b"HEAD", oid, Expect::Anything, why)?;
            oid
        }
        (Some(name), None) if options.value("branch").is_some() => {
            let Some(tag) = refs::resolve(from, &[b"refs/tags/", &name[..]].concat())? else {
                fatal!("Remote branch {} not found in upstream {origin}", text(name))
            };
            let oid = repo.odb.peel(&tag)?.0;
            refs::set(repo, b"HEAD", oid, Expect::Anything, why)?;
            oid
        }
        _ => match from.head()? {
            Some(oid) => {
                refs::set(repo, b"HEAD", oid, Expect::Anything, why)?;
                oid
            }
            None => return Ok(()),
        },
    };
    if options.has("no-checkout") {
        return Ok(());
    }
    let mut index = Index::default();
    switch::force(repo, &mut index, &repo.odb.commit(&oid)?.tree)?;
    index.save(repo)
}
