//! Running git on a user's repository: confined, in the system lane, without hooks and with no configuration but the
//! repository's own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use super::{GitOptions, SyncError};
use crate::pool::WorkerPool;
use crate::spec::{Confinement, Ended, ExecSpec, HeldDirectory, Lane, Required};

/// Lists of files may be long; they are read into memory.
const MAX_OUTPUT: usize = 256 << 20;

/// No prompts, no pager, no configuration but the repository's own.
const ENVIRONMENT: [(&str, &str); 12] = [
    ("PATH", "/usr/bin:/bin"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // No remote that is a program, or a descriptor.
    ("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"),
    // Over programs the repository's configuration names for the same.
    ("GIT_SSH_COMMAND", "ssh -o BatchMode=yes"),
    ("GIT_PROXY_COMMAND", ""),
];

/// Settings by which a repository's own configuration could make git run programs.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "push.gpgSign=false",
    "credential.helper=",
    "core.alternateRefsCommand=/bin/false",
    "gpg.program=/bin/false",
    "gpg.ssh.defaultKeyCommand=/bin/false",
];

/// Where a repository is.
pub(super) struct Repository {
    work_tree: HeldDirectory,
    /// The directory that all work trees share: objects, branches, configuration.
    pub common: PathBuf,
    /// This work tree's own part of it.
    own: PathBuf,
}

impl Repository {
    pub fn open(work_tree: &Path) -> Result<Repository, SyncError> {
        let not_one = |why: &dyn std::fmt::Display| SyncError::NotARepository {
            path: work_tree.to_owned(),
            why: why.to_string(),
        };
        let path = work_tree.canonicalize().map_err(|error| not_one(&error))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = open(&path, flags, Mode::empty()).map_err(|error| not_one(&error))?;
        let dot_git = path.join(".git");
        // A work tree beside the first has a file that says where its part is, and there one that says where the rest.
        let own = match fs::read_to_string(&dot_git) {
            Ok(link) => path.join(link.trim_end().strip_prefix("gitdir: ").unwrap_or_default()),
            Err(_) => dot_git,
        };
        let common = match fs::read_to_string(own.join("commondir")) {
            Ok(common) => own.join(common.trim_end()),
            Err(_) => own.clone(),
        };
        let own = own.canonicalize().map_err(|error| not_one(&error))?;
        let common = common.canonicalize().map_err(|error| not_one(&error))?;
        if !common.join("objects").is_dir() {
            return Err(not_one(&"it has no objects"));
        }
        Ok(Repository { work_tree: HeldDirectory::new(path, held), common, own })
    }
}

/// The destination of a push.
pub(super) struct Destination {
    /// Its URLs.
    pub addresses: Vec<String>,
    /// Those of them that are repositories on this machine.
    pub repositories: Vec<RemoteRepository>,
    /// Whether there are others.
    pub network: bool,
}

/// A repository to push to, on this machine.
pub(super) struct RemoteRepository {
    pub path: PathBuf,
    pub git_directory: PathBuf,
}

impl RemoteRepository {
    /// Returns what a URL leads to, if it is a path to a repository: git may write there, and nowhere else.
    fn find(work_tree: &Path, address: &str) -> Option<RemoteRepository> {
        let path = match address.strip_prefix("file://") {
            Some(path) => path,
            // HOST:PATH is not on this machine.
            None if address.split('/').next().is_some_and(|first| first.contains(':')) => return None,
            None => address,
        };
        let path = work_tree.join(path).canonicalize().ok()?;
        let is_one = |directory: &PathBuf| {
            directory.join("HEAD").is_file()
                && ["objects", "refs"].iter().all(|name| directory.join(name).is_dir())
        };
        let git_directory = [path.join(".git"), path.clone()].into_iter().find(is_one)?;
        Some(RemoteRepository { path, git_directory })
    }
}

/// Git, for one repository.
pub(super) struct Git {
    pool: WorkerPool,
    pub repository: Repository,
    pub options: GitOptions,
}

/// Options of one command.
#[derive(Default)]
pub(super) struct Special<'a> {
    /// More variables, overriding the usual ones.
    pub env: Vec<(&'a str, OsString)>,
    /// A directory to work in, and to write to, instead of the work tree.
    pub inside: Option<&'a Path>,
    /// More directories to write to.
    pub writable: Vec<&'a Path>,
    pub network: bool,
    /// Whether it needs other programs: a push does, to reach the remote.
    pub children: bool,
}

/// What a command wrote and how it ended.
pub(super) struct Said {
    pub ended: Ended,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Git {
    pub fn new(pool: WorkerPool, repository: Repository, options: GitOptions) -> Git {
        Git { pool, repository, options }
    }

    pub fn work_tree(&self) -> &Path {
        self.repository.work_tree.path()
    }

    /// A command on the user's repository.
    pub async fn run(&self, step: &'static str, args: &[&str]) -> Result<String, SyncError> {
        let said = self.say(step, args, Special::default()).await?;
        Ok(String::from_utf8_lossy(&said.succeeded(step)?).into_owned())
    }

    /// Returns what a name refers to, if anything.
    pub async fn look_up(&self, name: &str) -> Result<Option<String>, SyncError> {
        let said = self
            .say("rev-parse", &["--verify", "--quiet", "--end-of-options", name], Special::default())
            .await?;
        match said.ended {
            Ended::Exit(0) => Ok(Some(String::from_utf8_lossy(&said.stdout).trim().to_owned())),
            Ended::Exit(1) => Ok(None),
            // A path in a tree that is not there.
            Ended::Exit(128) if name.contains(':') => Ok(None),
            _ => said.succeeded("rev-parse").map(|_| None),
        }
    }

    /// Returns where a remote is.
    pub async fn destination(&self, remote: &str) -> Result<Destination, SyncError> {
        let said =
            self.say("remote", &["get-url", "--push", "--all", "--", remote], Special::default()).await?;
        let addresses: Vec<String> = match said.ended {
            // Not the name of one, so an address itself.
            Ended::Exit(1..) => vec![remote.to_owned()],
            _ => String::from_utf8_lossy(&said.succeeded("remote")?).lines().map(str::to_owned).collect(),
        };
        let local = |address: &String| RemoteRepository::find(self.work_tree(), address);
        let repositories: Vec<_> = addresses.iter().filter_map(local).collect();
        // Its hooks and the programs its configuration names would be run, and anyone who can write here could have written them.
        if repositories.iter().any(|repository| repository.path.starts_with(self.work_tree())) {
            let why = format!("{remote} is a repository inside the work tree");
            return Err(SyncError::Git { step: "push", why });
        }
        Ok(Destination { network: repositories.len() < addresses.len(), addresses, repositories })
    }

    /// Returns the repository's settings for HTTP, such as a proxy and certificates: names and values.
    pub async fn http_settings(&self) -> Result<Vec<(String, String)>, SyncError> {
        let said = self.say("config", &["--null", "--get-regexp", r"^http\."], Special::default()).await?;
        let listed = match said.ended {
            Ended::Exit(1) => Vec::new(),
            _ => said.succeeded("config")?,
        };
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let settings = listed.split_terminator('\0').map(|setting| match setting.split_once('\n') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            // One without a value is true.
            None => (setting.to_owned(), "true".to_owned()),
        });
        Ok(settings.collect())
    }

    pub async fn say(
        &self,
        step: &'static str,
        args: &[impl AsRef<OsStr>],
        special: Special<'_>,
    ) -> Result<Said, SyncError> {
        let mut all: Vec<OsString> =
            SETTINGS.iter().flat_map(|setting| ["-c", setting]).map(Into::into).collect();
        all.push(step.into());
        all.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        let spec = self.spec(all, special)?;
        let finished = self.pool.run(spec, Lane::System, "git-sync", None).await?;
        if finished.timed_out {
            let why = format!("it took longer than {:?}", self.options.timeout);
            return Err(SyncError::CutShort { step, why });
        }
        if finished.truncated {
            return Err(SyncError::Git { step, why: "said more than can be kept".to_owned() });
        }
        let stderr = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
        Ok(Said { ended: finished.status, stdout: finished.stdout, stderr })
    }

    fn spec(&self, args: Vec<OsString>, special: Special<'_>) -> Result<ExecSpec, SyncError> {
        let cwd = match special.inside {
            None => self.repository.work_tree.clone(),
            Some(path) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let held = open(path, flags, Mode::empty()).map_err(std::io::Error::from)?;
                HeldDirectory::new(path.to_owned(), held)
            }
        };
        let mut env: Vec<(OsString, OsString)> =
            ENVIRONMENT.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let (name, address) = &self.options.author;
        for role in ["AUTHOR", "COMMITTER"] {
            env.push((format!("GIT_{role}_NAME").into(), name.into()));
            env.push((format!("GIT_{role}_EMAIL").into(), address.into()));
        }
        env.extend(special.env.into_iter().map(|(name, value)| (name.into(), value)));
        let writable = [&self.repository.common, &self.repository.own].into_iter().map(PathBuf::as_path);
        let writable = writable.chain(special.inside).chain(special.writable).map(Path::to_owned);
        Ok(ExecSpec {
            program: self.options.program.canonicalize()?,
            name: "git".into(),
            args,
            cwd,
            env,
            timeout: self.options.timeout,
            max_output: MAX_OUTPUT,
            confinement: Confinement {
                jail: self.repository.work_tree.clone(),
                readable: vec![],
                writable: writable.collect(),
                write: true,
                attributes: false,
                network: special.network,
                children: special.children || self.options.children,
                memory: 8 << 30,
                files: 1024,
                processes: 256,
                file_size: 16 << 30,
                required: Required::default(),
            },
        })
    }
}

impl Said {
    /// Returns what it wrote, if it succeeded.
    pub fn succeeded(self, step: &'static str) -> Result<Vec<u8>, SyncError> {
        match self.ended {
            Ended::Exit(0) => Ok(self.stdout),
            Ended::Exit(code) if self.stderr.is_empty() => {
                Err(SyncError::Git { step, why: format!("exit code {code}") })
            }
            Ended::Exit(_) => Err(SyncError::Git { step, why: self.stderr }),
            Ended::Signal(signal) => Err(SyncError::CutShort { step, why: format!("signal {signal}") }),
        }
    }
}
