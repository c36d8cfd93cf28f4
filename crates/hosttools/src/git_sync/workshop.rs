//! A temporary git directory for one operation: it has the user's objects, but no branch, index, hook, filter or setting
//! of theirs. It is inside the user's git directory, where no work tree shows it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use uuid::Uuid;

use super::git::{Destination, Git, Special};
use super::held::Held;
use super::{FileChange, SyncError};
use crate::spec::Ended;

/// Where workshops are, in the user's git directory.
const SHED: &str = "wardian-sync";
/// The maximum number of arguments that Wardian adds to a command line,
const WORDS: usize = 500;
/// and their maximum bytes: Linux allows two million, with the environment.
const BYTES: usize = 1 << 20;

pub(super) struct Workshop<'a> {
    git: &'a Git,
    /// Options for git.
    path: PathBuf,
    name: String,
    /// The user's git directory, the directory of workshops in it, and this one's files.
    common: Held,
    shed: Held,
    here: Held,
    files: Held,
    next_file: AtomicUsize,
}

/// One file of a tree.
pub(super) struct Entry {
    pub mode: String,
    pub object: String,
    pub size: u64,
    pub path: Vec<u8>,
}

impl<'a> Workshop<'a> {
    pub async fn new(git: &'a Git) -> Result<Workshop<'a>, SyncError> {
        let format = git.run("rev-parse", &["--show-object-format"]).await?;
        let common = Held::open(&git.repository.common)?;
        let shed = common.make(SHED)?;
        clear_abandoned(&shed);
        let name = format!("{}-{}", std::process::id(), Uuid::new_v4());
        let here = shed.make(&name)?;
        let files = here.make("files")?;
        let path = git.repository.common.join(SHED).join(&name);
        let workshop =
            Workshop { git, path, name, common, shed, here, files, next_file: AtomicUsize::new(0) };
        workshop.furnish(format.trim())?;
        Ok(workshop)
    }

    /// Creates what makes a directory a git directory.
    fn furnish(&self, format: &str) -> Result<(), SyncError> {
        let config = match format {
            "sha1" => "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n".to_owned(),
            other => format!(
                "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = {other}\n"
            ),
        };
        self.here.write_new("config", config.as_bytes())?;
        self.here.write_new("HEAD", b"ref: refs/heads/none\n")?;
        self.here.make("refs")?;
        self.here.make("objects")?;
        // Over the attributes in the work tree: files are taken and given back byte by byte.
        let attributes = b"* -text -eol -ident -filter -working-tree-encoding\n";
        Ok(self.here.make("info")?.write_new("attributes", attributes)?)
    }

    /// Writes contents to a file for git to read; returns its path.
    fn keep(&self, contents: &[u8]) -> Result<OsString, SyncError> {
        let name = self.next_file.fetch_add(1, Ordering::Relaxed).to_string();
        self.files.write_new(&name, contents)?;
        Ok(self.path.join("files").join(name).into_os_string())
    }

    /// Adds files to the index as they are. One that has disappeared meanwhile is skipped.
    pub async fn add(&self, paths: &[&PathBuf]) -> Result<(), SyncError> {
        for some in in_portions(paths, |path| path.as_os_str().len()) {
            let mut args = vec![OsStr::new("--add"), OsStr::new("--remove"), OsStr::new("--")];
            args.extend(some.iter().map(|path| path.as_os_str()));
            self.run("update-index", &args).await?;
        }
        Ok(())
    }

    pub async fn empty_index(&self) -> Result<(), SyncError> {
        self.run("read-tree", &["--empty"]).await.map(drop)
    }

    /// Adds a tree to the index, as it is or in a directory.
    pub async fn read_tree(&self, tree: &str, directory: Option<&str>) -> Result<(), SyncError> {
        let prefix = directory.map(|directory| format!("--prefix={directory}/"));
        let args: Vec<&str> = prefix.as_deref().into_iter().chain([tree]).collect();
        self.run("read-tree", &args).await.map(drop)
    }

    pub async fn write_tree(&self) -> Result<String, SyncError> {
        Ok(line(&self.run("write-tree", &[] as &[&str]).await?))
    }

    /// The files of a tree.
    pub async fn list(&self, tree: &str) -> Result<Vec<Entry>, SyncError> {
        let listed = self.run("ls-tree", &["-r", "-l", "-z", tree]).await?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        let strange = || SyncError::Git { step: "ls-tree", why: "said something strange".to_owned() };
        entries.map(|entry| Entry::parse(entry).ok_or_else(strange)).collect()
    }

    /// Applies changes to the index.
    pub async fn apply(&self, changes: &[FileChange]) -> Result<(), SyncError> {
        let gone: Vec<&OsStr> = changes
            .iter()
            .filter_map(|change| match change {
                FileChange::Remove { path } => Some(path.as_os_str()),
                _ => None,
            })
            .collect();
        for some in in_portions(&gone, |path| path.len()) {
            let mut args = ["-r", "-f", "-q", "--cached", "--ignore-unmatch", "--"].map(OsStr::new).to_vec();
            args.extend(some);
            self.run("rm", &args).await?;
        }
        for some in in_portions(changes, |change| change.path().as_os_str().len()) {
            self.apply_writes(some).await?;
        }
        Ok(())
    }

    async fn apply_writes(&self, changes: &[FileChange]) -> Result<(), SyncError> {
        let (mut stored, mut entries) = (Vec::new(), Vec::new());
        for change in changes {
            let (mode, contents, path) = match change {
                FileChange::Write { path, contents, executable: true } => {
                    ("100755", contents.as_slice(), path)
                }
                FileChange::Write { path, contents, executable: false } => {
                    ("100644", contents.as_slice(), path)
                }
                FileChange::Link { path, target } => ("120000", target.as_os_str().as_bytes(), path),
                FileChange::Remove { .. } => continue,
            };
            stored.push(self.keep(contents)?);
            entries.push((mode, path));
        }
        if stored.is_empty() {
            return Ok(());
        }
        let mut args = ["-w", "--no-filters", "--"].map(OsString::from).to_vec();
        args.extend(stored);
        let objects = self.run("hash-object", &args).await?;
        let objects = String::from_utf8_lossy(&objects).into_owned();
        // What was a directory may become a file, and the other way round.
        let mut args = vec![OsString::from("--add"), OsString::from("--replace")];
        for ((mode, path), object) in entries.into_iter().zip(objects.lines()) {
            let mut entry = format!("{mode},{object},").into_bytes();
            entry.extend_from_slice(path.as_os_str().as_bytes());
            args.extend(["--cacheinfo".into(), OsString::from_vec(entry)]);
        }
        self.run("update-index", &args).await.map(drop)
    }

    pub async fn commit(&self, tree: &str, parent: Option<&str>, message: &str) -> Result<String, SyncError> {
        // In a file: it may be longer than a word can be.
        let message = self.keep(format!("{}\n", message.trim_end_matches('\n')).as_bytes())?;
        let mut args = vec![OsStr::new("--no-gpg-sign"), OsStr::new("-F"), &message];
        args.extend(parent.into_iter().flat_map(|parent| ["-p", parent]).map(OsStr::new));
        args.push(OsStr::new(tree));
        Ok(line(&self.run("commit-tree", &args).await?))
    }

    /// Writes the files of the index to a directory.
    pub async fn check_out(&self, into: &Path) -> Result<(), SyncError> {
        let special = Special { env: self.environment(into), inside: Some(into), ..Special::default() };
        self.git
            .say("checkout-index", &["--all", "--quiet"], special)
            .await?
            .succeeded("checkout-index")
            .map(drop)
    }

    /// Pushes a commit to a branch without forcing; returns git's table. A push must be able to start programs, and a
    /// configuration can name some that no setting switches off (`hook.NAME.command`): so it has that of the workshop, where
    /// the remote is, and of the user's what is about HTTP.
    pub async fn push(&self, commit: &str, to: &Destination, branch: &str) -> Result<String, SyncError> {
        let urls = to.addresses.iter().map(|address| ("remote.destination.url".to_owned(), address.clone()));
        let settings: Vec<_> = urls.chain(self.git.http_settings().await?).collect();
        let names: Vec<_> = (0..settings.len())
            .map(|number| (format!("GIT_CONFIG_KEY_{number}"), format!("GIT_CONFIG_VALUE_{number}")))
            .collect();
        let mut env = self.environment(self.git.work_tree());
        env.push(("GIT_CONFIG_COUNT", settings.len().to_string().into()));
        for ((name, value), setting) in names.iter().zip(settings) {
            env.extend([(name.as_str(), setting.0.into()), (value.as_str(), setting.1.into())]);
        }
        let shallow = self.git.repository.common.join("shallow");
        if shallow.exists() {
            env.push(("GIT_SHALLOW_FILE", shallow.into()));
        }
        let writable = to.repositories.iter().map(|repository| repository.path.as_path()).collect();
        let special = Special { env, network: to.network, children: true, writable, ..Special::default() };
        let refspec = format!("{commit}:refs/heads/{branch}");
        let args = [
            "--porcelain",
            "--no-verify",
            "--no-recurse-submodules",
            "--no-follow-tags",
            "--receive-pack=git-receive-pack",
            "--end-of-options",
            "destination",
            &refspec,
        ];
        let said = self.git.say("push", &args, special).await?;
        match (said.ended, String::from_utf8_lossy(&said.stdout).into_owned()) {
            // Refused: the table says why.
            (Ended::Exit(1), table) if table.contains("\n!\t") => Ok(table),
            _ => Ok(String::from_utf8_lossy(&said.succeeded("push")?).into_owned()),
        }
    }

    async fn run(&self, step: &'static str, args: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, SyncError> {
        let special = Special { env: self.environment(self.git.work_tree()), ..Special::default() };
        self.git.say(step, args, special).await?.succeeded(step)
    }

    fn environment(&self, work_tree: &Path) -> Vec<(&'static str, OsString)> {
        vec![
            ("GIT_DIR", self.path.clone().into()),
            ("GIT_WORK_TREE", work_tree.into()),
            ("GIT_INDEX_FILE", self.path.join("index").into()),
            ("GIT_OBJECT_DIRECTORY", self.git.repository.common.join("objects").into()),
            // Paths are names, not patterns.
            ("GIT_LITERAL_PATHSPECS", "1".into()),
        ]
    }
}

impl Drop for Workshop<'_> {
    fn drop(&mut self) {
        self.shed.remove(Path::new(&self.name));
        // The shed goes with the last of them.
        self.common.remove_empty(SHED);
    }
}

/// Removes what dead processes have left.
fn clear_abandoned(shed: &Held) {
    for name in shed.names().unwrap_or_default() {
        if is_of_a_dead_process(&name) {
            shed.remove(Path::new(&name));
        }
    }
}

/// Returns whether a name begins with the number of a dead process and a dash.
pub(super) fn is_of_a_dead_process(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
    number.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
}

/// Splits a list into pieces that each fit into a command line.
fn in_portions<T>(all: &[T], length: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut portions, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, item) in all.iter().enumerate() {
        bytes += length(item);
        if at > start && (at - start == WORDS || bytes > BYTES) {
            portions.push(&all[start..at]);
            (start, bytes) = (at, length(item));
        }
    }
    portions.extend((start < all.len()).then(|| &all[start..]));
    portions
}

fn line(said: &[u8]) -> String {
    String::from_utf8_lossy(said).trim().to_owned()
}

impl Entry {
    /// `mode SP type SP object SP+ size TAB path`
    fn parse(entry: &[u8]) -> Option<Entry> {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(&entry[..tab]).ok()?.split_ascii_whitespace();
        let (mode, _kind, object, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Entry {
            mode: mode.to_owned(),
            object: object.to_owned(),
            size: size.parse().ok()?,
            path: entry[tab + 1..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_all_there_is_and_none_is_too_large() {
        let lengths: Vec<usize> =
            (0..3000).map(|number| if number % 7 == 0 { 9000 } else { number % 50 }).collect();
        let portions = in_portions(&lengths, |length| *length);
        assert_eq!(portions.concat(), lengths);
        assert!(portions.iter().all(|some| some.len() <= WORDS && some.iter().sum::<usize>() <= BYTES));
        assert!(portions.len() <= 8, "{}", portions.len());
        assert_eq!(in_portions(&[BYTES * 2, 1], |length| *length), [&[BYTES * 2][..], &[1]]);
        assert!(in_portions(&[] as &[usize], |length| *length).is_empty());
    }
}
