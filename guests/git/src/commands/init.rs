//! `git init`, `git version`.

use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};
use crate::options::Reader;
use crate::out;
use crate::refs;
use crate::repo::{self, Global};

const READER: Reader = Reader {
    command: "init",
    usage: "git init [-q | --quiet] [--bare] [-b <branch-name>] [<directory>]",
    list: "q|quiet bare template= b|initial-branch= shared?! separate-git-dir=! object-format= ref-format=!",
    in_order: false,
};

pub fn init(global: &Global, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    if options.args.len() > 1 {
        return Err(READER.bad("fatal: too many arguments"));
    }
    if let Some(format) = options.text("object-format").filter(|format| format != "sha1") {
        fatal!("object format '{format}' is not supported here");
    }
    let config = repo::outer_config(global, true)?;
    let here = repo::cwd()?;
    let place = match options.args.first() {
        Some(place) if place.starts_with(b"/") => place.clone(),
        Some(place) => join(&here, place),
        None => here,
    };
    let bare = options.has("bare") || global.bare;
    files::make_dirs(&place)?;
    let place = toolkit::files::resolve(&place);
    let given =
        global.git_dir.clone().or_else(|| repo::env("GIT_DIR")).map(|path| toolkit::files::resolve(&path));
    let git_dir = given.unwrap_or_else(|| if bare { place.clone() } else { join(&place, b".git") });
    let branch =
        options.value("initial-branch").map(<[u8]>::to_vec).or_else(|| config.get("init.defaultbranch"));
    let again = create(&git_dir, bare, branch.as_deref())?;
    if !options.has("quiet") {
        let verb = if again { "Reinitialized existing" } else { "Initialized empty" };
        out::line(format_args!("{verb} Git repository in {}/", text(&git_dir)));
    }
    Ok(0)
}

/// Makes a repository; answers whether it was there already.
pub fn create(git_dir: &[u8], bare: bool, branch: Option<&[u8]>) -> Res<bool> {
    let again = repo::is_git_dir(git_dir);
    let branch = branch.unwrap_or(b"master");
    let head = [b"refs/heads/", branch].concat();
    if !refs::is_valid(&head) {
        return Err(Fail::Fatal(format!("invalid initial branch name: '{}'", text(branch))));
    }
    for directory in ["", "objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks", "info"] {
        files::make_dirs(&join(git_dir, directory.as_bytes()))?;
    }
    let fresh = |name: &str, content: &[u8]| {
        let file = join(git_dir, name.as_bytes());
        if files::exists(&file) { Ok(()) } else { files::write(&file, content) }
    };
    let logs = if bare { "" } else { "\tlogallrefupdates = true\n" };
    let config = format!("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = {bare}\n{logs}");
    fresh("config", config.as_bytes())?;
    fresh("description", b"Unnamed repository; edit this file 'description' to name the repository.\n")?;
    let exclude = "# git ls-files --others --exclude-from=.git/info/exclude\n# Lines that start with '#' are comments.\n";
    fresh("info/exclude", exclude.as_bytes())?;
    fresh("HEAD", &[b"ref: ", &head[..], b"\n"].concat())?;
    Ok(again)
}

pub fn version(_: &Global, _: &[Vec<u8>]) -> Res<i32> {
    out::line(format_args!("git version {}", crate::run::VERSION));
    Ok(0)
}
