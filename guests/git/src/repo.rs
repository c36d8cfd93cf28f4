//! Which repository a command is about, and where in its work tree it was started.

use toolkit::files::resolve;
use wardian_abi as abi;

use crate::config::Config;
use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};
use crate::hash::Oid;
use crate::odb::Odb;
use crate::refs;

pub struct Repo {
    pub git_dir: Vec<u8>,
    /// What several work trees share.
    pub common_dir: Vec<u8>,
    /// None in a bare repository.
    pub work_tree: Option<Vec<u8>>,
    /// Where in the work tree the command was started: empty, or ends with a slash.
    pub prefix: Vec<u8>,
    pub config: Config,
    pub odb: Odb,
}

/// What was said on the command line before the command.
#[derive(Clone, Default)]
pub struct Global {
    pub git_dir: Option<Vec<u8>>,
    pub work_tree: Option<Vec<u8>>,
    pub settings: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub bare: bool,
    pub literal_pathspecs: bool,
}

pub fn env(name: &str) -> Option<Vec<u8>> {
    std::env::var_os(name).map(|value| value.into_encoded_bytes())
}

/// The settings that hold without a repository.
pub fn outer_config(global: &Global, with_command: bool) -> Res<Config> {
    let mut config = Config::default();
    if env("GIT_CONFIG_NOSYSTEM").is_none() {
        config.add_file(&env("GIT_CONFIG_SYSTEM").unwrap_or(b"/etc/gitconfig".to_vec()), "system", 0)?;
    }
    for file in global_files() {
        config.add_file(&file, "global", 0)?;
    }
    if with_command {
        add_command_settings(&mut config, global)?;
    }
    Ok(config)
}

/// The files of a user's own settings, the one that is written last.
pub fn global_files() -> Vec<Vec<u8>> {
    if let Some(file) = env("GIT_CONFIG_GLOBAL") {
        return vec![file];
    }
    let home = env("HOME");
    let xdg = env("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    let xdg = xdg.or_else(|| home.as_ref().map(|home| join(home, b".config")));
    let mut files: Vec<Vec<u8>> = xdg.iter().map(|xdg| join(xdg, b"git/config")).collect();
    files.extend(home.iter().map(|home| join(home, b".gitconfig")));
    files
}

fn add_command_settings(config: &mut Config, global: &Global) -> Res<()> {
    let count = env("GIT_CONFIG_COUNT").map_or(0, |count| text(&count).parse().unwrap_or(0));
    for at in 0..count.min(10_000) {
        let (key, value) = (env(&format!("GIT_CONFIG_KEY_{at}")), env(&format!("GIT_CONFIG_VALUE_{at}")));
        let (Some(key), Some(value)) = (key, value) else { fatal!("missing config key GIT_CONFIG_KEY_{at}") };
        config.add(&key, Some(&value))?;
    }
    global.settings.iter().try_for_each(|(name, value)| config.add(name, value.as_deref()))
}

pub fn cwd() -> Res<Vec<u8>> {
    abi::getcwd().map_err(|error| {
        Fail::Fatal(format!("Unable to read current working directory: {}", error.message()))
    })
}

/// Whether a directory is a repository's own.
pub fn is_git_dir(directory: &[u8]) -> bool {
    let common = common_dir(directory);
    files::exists(&join(directory, b"HEAD"))
        && files::is_dir(&join(&common, b"objects"))
        && files::is_dir(&join(&common, b"refs"))
}

fn common_dir(git_dir: &[u8]) -> Vec<u8> {
    match files::read(&join(git_dir, b"commondir")) {
        Ok(path) if path.starts_with(b"/") => path.trim_ascii_end().to_vec(),
        Ok(path) => resolve(&join(git_dir, path.trim_ascii_end())),
        Err(_) => git_dir.to_vec(),
    }
}

/// What a `.git` stands for: itself, or the directory that the file names.
fn at_dot_git(place: &[u8]) -> Option<Vec<u8>> {
    if files::is_dir(place) {
        return is_git_dir(place).then(|| place.to_vec());
    }
    let content = files::read(place).ok()?;
    let target = content.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    let target = if target.starts_with(b"/") { target.to_vec() } else { join(&files::parent(place), target) };
    is_git_dir(&target).then(|| resolve(&target))
}

/// The repository around the working directory, if there is one: its directory, and its work tree.
fn discover(start: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let mut directory = start.to_vec();
    loop {
        if let Some(git_dir) = at_dot_git(&join(&directory, b".git")) {
            return Some((git_dir, Some(directory)));
        }
        if is_git_dir(&directory) {
            return Some((directory, None));
        }
        if directory == b"/" {
            return None;
        }
        directory = files::parent(&directory);
    }
}

impl Repo {
    pub fn find(global: &Global) -> Res<Option<Repo>> {
        let here = cwd()?;
        let given = global.git_dir.clone().or_else(|| env("GIT_DIR"));
        let (git_dir, found_tree) = match given {
            Some(place) => {
                let place = if place.starts_with(b"/") { place } else { join(&here, &place) };
                match at_dot_git(&place) {
                    Some(git_dir) => (resolve(&git_dir), Some(here.clone())),
                    None => fatal!(
                        "not a git repository: '{}'",
                        text(&global.git_dir.clone().or_else(|| env("GIT_DIR")).unwrap_or_default())
                    ),
                }
            }
            None => match discover(&here) {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        Repo::open(git_dir, found_tree, global).map(Some)
    }

    fn open(git_dir: Vec<u8>, found_tree: Option<Vec<u8>>, global: &Global) -> Res<Repo> {
        let common_dir = common_dir(&git_dir);
        let mut config = outer_config(global, false)?;
        config.add_file(&join(&common_dir, b"config"), "local", 0)?;
        add_command_settings(&mut config, global)?;
        check_format(&config)?;
        let here = cwd()?;
        let absolute = |path: Vec<u8>, from: &[u8]| {
            resolve(&if path.starts_with(b"/") { path } else { join(from, &path) })
        };
        let named = global.work_tree.clone().or_else(|| env("GIT_WORK_TREE"));
        let work_tree = match (named, config.get("core.worktree")) {
            (Some(tree), _) => Some(absolute(tree, &here)),
            (None, Some(tree)) => Some(absolute(tree, &git_dir)),
            (None, None) if global.bare || config.bool("core.bare", false) => None,
            (None, None) => found_tree,
        };
        let prefix = work_tree.as_ref().map_or(Vec::new(), |tree| prefix_of(tree, &here));
        let objects = env("GIT_OBJECT_DIRECTORY").unwrap_or_else(|| join(&common_dir, b"objects"));
        Ok(Repo { odb: Odb::open(&objects), git_dir, common_dir, work_tree, prefix, config })
    }

    /// A repository by the path of its work tree or its own directory.
    pub fn at(place: &[u8]) -> Res<Option<Repo>> {
        let place = resolve(place);
        let global = Global::default();
        if let Some(git_dir) = at_dot_git(&join(&place, b".git")) {
            return Repo::open(git_dir, Some(place), &global).map(Some);
        }
        for candidate in [place.clone(), [&place[..], b".git"].concat()] {
            if is_git_dir(&candidate) {
                let mut repo = Repo::open(candidate, None, &global)?;
                repo.work_tree = None;
                return Ok(Some(repo));
            }
        }
        Ok(None)
    }

    pub fn is_bare(&self) -> bool {
        self.work_tree.is_none()
    }

    pub fn work_tree(&self) -> Res<&[u8]> {
        match &self.work_tree {
            Some(tree) => Ok(tree),
            None => fatal!("this operation must be run in a work tree"),
        }
    }

    /// A file of the repository's own directory.
    pub fn own(&self, name: &str) -> Vec<u8> {
        join(&self.git_dir, name.as_bytes())
    }

    /// A path of the work tree as the system knows it.
    pub fn in_tree(&self, path: &[u8]) -> Vec<u8> {
        join(self.work_tree.as_deref().unwrap_or(b""), path)
    }

    pub fn head(&self) -> Res<Option<Oid>> {
        refs::resolve(self, b"HEAD")
    }

    /// The tree of the current commit; the empty one before the first.
    pub fn head_tree(&self) -> Res<Oid> {
        match self.head()? {
            Some(head) => Ok(self.odb.commit(&head)?.tree),
            None => Ok(crate::odb::EMPTY_TREE),
        }
    }

    pub fn short(&self, oid: &Oid) -> String {
        let least = self.config.number("core.abbrev").and_then(|n| usize::try_from(n).ok());
        self.odb.abbreviate(oid, least)
    }
}

fn prefix_of(tree: &[u8], here: &[u8]) -> Vec<u8> {
    let tree = if tree == b"/" { b"" } else { tree };
    match here.strip_prefix(tree).and_then(|rest| rest.strip_prefix(b"/")) {
        Some(rest) if !rest.is_empty() => [rest, b"/"].concat(),
        _ => Vec::new(),
    }
}

/// Repositories of a kind that is not read here say so at once.
fn check_format(config: &Config) -> Res<()> {
    if let Some(format) = config.text("extensions.objectformat").filter(|format| format != "sha1") {
        fatal!("repositories with object format '{format}' are not supported here");
    }
    if let Some(storage) = config.text("extensions.refstorage").filter(|storage| storage != "files") {
        fatal!("repositories with ref storage '{storage}' are not supported here");
    }
    match config.number("core.repositoryformatversion") {
        Some(version) if version > 1 => fatal!("Expected git repo version <= 1, found {version}"),
        _ => Ok(()),
    }
}
