//! A git directory of our own, for the time of one operation: it has the user's objects, but no branch, index, hook,
//! filter or setting of theirs. It lies inside the user's git directory, where no work tree shows it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::git::{Git, Special};
use super::{FileChange, SyncError};

/// Where workshops are, in the user's git directory.
const SHED: &str = "wardian-sync";
/// A command line is not longer than this many words of ours.
const WORDS: usize = 500;

pub(super) struct Workshop<'a> {
    git: &'a Git,
    path: PathBuf,
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
        let shed = git.repository.common.join(SHED);
        clear_abandoned(&shed);
        let path = shed.join(format!("{}-{}", std::process::id(), Uuid::new_v4()));
        for directory in ["refs", "info", "objects", "files"] {
            fs::create_dir_all(path.join(directory))?;
        }
        let workshop = Workshop { git, path };
        let config = match format.trim() {
            "sha1" => "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n".to_owned(),
            other => format!(
                "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = {other}\n"
            ),
        };
        fs::write(workshop.path.join("config"), config)?;
        fs::write(workshop.path.join("HEAD"), "ref: refs/heads/none\n")?;
        // Over the attributes in the work tree: files are taken and given back byte by byte.
        fs::write(
            workshop.path.join("info/attributes"),
            "* -text -eol -ident -filter -working-tree-encoding\n",
        )?;
        Ok(workshop)
    }

    /// Takes files into the index as they are. One that has gone meanwhile is not taken.
    pub async fn add(&self, paths: &[PathBuf]) -> Result<(), SyncError> {
        for some in paths.chunks(WORDS) {
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

    /// Makes changes in the index.
    pub async fn apply(&self, changes: &[FileChange]) -> Result<(), SyncError> {
        let gone: Vec<&OsStr> = changes
            .iter()
            .filter_map(|change| match change {
                FileChange::Remove { path } => Some(path.as_os_str()),
                _ => None,
            })
            .collect();
        for some in gone.chunks(WORDS) {
            let mut args = ["-r", "-f", "-q", "--cached", "--ignore-unmatch", "--"].map(OsStr::new).to_vec();
            args.extend(some);
            self.run("rm", &args).await?;
        }
        for some in changes.chunks(WORDS) {
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
            let file = self.path.join("files").join(stored.len().to_string());
            fs::write(&file, contents)?;
            stored.push(file.into_os_string());
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
        let mut args = vec!["--no-gpg-sign", "-m", message];
        args.extend(parent.into_iter().flat_map(|parent| ["-p", parent]));
        args.push(tree);
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
        let _ = fs::remove_dir_all(&self.path);
        // The shed goes with the last of them.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// What processes have left that are no more.
fn clear_abandoned(shed: &Path) {
    for entry in fs::read_dir(shed).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.split('-').next()?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
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
