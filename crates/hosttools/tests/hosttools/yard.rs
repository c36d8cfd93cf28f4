//! A jail with a repository in it, a canary outside that nobody may see or touch, and a gateway between them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use wardian_audit::{AuditLog, AuditRecord};
use wardian_hosttools::{Config, Finished, Policy, PoolConfig, Request, ToolError, ToolSandbox};

/// What the file outside holds; no command line has it.
pub const SONG: &str = "the canary sings 7351";
/// Another file outside, whose name is in no command line.
pub const UNSEEN: &str = "unseen-8642";

pub struct Yard {
    root: TempDir,
    records: Arc<Mutex<Vec<AuditRecord>>>,
}

impl Yard {
    /// ```text
    /// outside/{canary,unseen-8642}
    /// jail/{file,words,sub/{inner,up -> ..},out -> ../outside,song -> ../outside/canary,abs -> /…/outside}
    /// ```
    pub fn new() -> Yard {
        let root = tempfile::Builder::new().prefix("yard").tempdir().unwrap();
        let yard = Yard { root, records: Arc::default() };
        let (jail, outside) = (yard.jail(), yard.outside());
        fs::create_dir_all(jail.join("sub")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(yard.canary(), format!("{SONG}\n")).unwrap();
        fs::write(outside.join(UNSEEN), format!("{SONG}\n")).unwrap();
        fs::write(jail.join("file"), "one\ntwo\nthree\n").unwrap();
        fs::write(jail.join("words"), "apple\nbanana\n/api/users\n").unwrap();
        fs::write(jail.join("sub/inner"), "inside\n").unwrap();
        symlink("..", jail.join("sub/up")).unwrap();
        symlink("../outside", jail.join("out")).unwrap();
        symlink("../outside/canary", jail.join("song")).unwrap();
        symlink(&outside, jail.join("abs")).unwrap();
        yard
    }

    /// The same, and the jail is a repository with two commits.
    pub fn with_repository() -> Yard {
        let yard = Yard::new();
        yard.git(&["init", "-q", "-b", "main"]);
        yard.git(&["add", "file", "words", "sub"]);
        yard.git(&["commit", "-q", "-m", "first"]);
        fs::write(yard.jail().join("file"), "one\ntwo\nthree\nfour\n").unwrap();
        yard.git(&["commit", "-q", "-a", "-m", "second"]);
        yard
    }

    /// Git as its owner uses it, to set things up and to compare with.
    pub fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false"]);
        git.args(args).current_dir(self.jail()).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_PAGER", "cat");
        let output = git.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub fn jail(&self) -> PathBuf {
        self.root().join("jail")
    }

    pub fn outside(&self) -> PathBuf {
        self.root().join("outside")
    }

    pub fn canary(&self) -> PathBuf {
        self.outside().join("canary")
    }

    /// Nothing outside has changed.
    pub fn assert_untouched(&self, what: &dyn std::fmt::Debug) {
        let mut names: Vec<_> =
            fs::read_dir(self.outside()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["canary", UNSEEN], "{what:?}");
        for name in names {
            assert_eq!(
                fs::read_to_string(self.outside().join(name)).unwrap(),
                format!("{SONG}\n"),
                "{what:?}"
            );
        }
    }

    pub fn config(&self) -> Config {
        Config {
            enabled: true,
            jail: Some(self.jail()),
            pool: PoolConfig {
                worker: vec![env!("CARGO_BIN_EXE_wardian-worker").into()],
                interactive: Some(2),
                kill_grace_ms: 200,
                ..PoolConfig::default()
            },
            ..Config::default()
        }
    }

    /// A gateway with the policy that comes with us, whose records are kept here.
    pub fn door(&self) -> ToolSandbox {
        self.door_with(self.config(), Policy::standard())
    }

    pub fn door_with(&self, config: Config, policy: Policy) -> ToolSandbox {
        let records = self.records.clone();
        let log = AuditLog::to_callback(move |record| records.lock().unwrap().push(record.clone()));
        ToolSandbox::with(config, policy, log).unwrap()
    }

    pub fn records(&self) -> Vec<AuditRecord> {
        self.records.lock().unwrap().clone()
    }

    pub fn events(&self) -> Vec<&'static str> {
        self.records().iter().map(|record| record.event).collect()
    }
}

/// Runs a line, which must be let through.
pub async fn run(door: &ToolSandbox, line: &str) -> Finished {
    door.run(Request::line(line)).await.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// What a line that is let through writes to standard output.
pub async fn output(door: &ToolSandbox, line: &str) -> String {
    String::from_utf8(run(door, line).await.stdout).unwrap()
}

/// The code a line is refused with.
pub async fn refusal(door: &ToolSandbox, line: &str) -> &'static str {
    match door.run(Request::line(line)).await {
        Err(error) => error.code(),
        Ok(finished) => panic!("{line} was run: {finished:?}"),
    }
}

/// A policy with one program, whose file is a shell script put beside the jail.
pub fn scripted(yard: &Yard, name: &str, script: &str, rules: &str) -> Policy {
    let path = yard.root().join(name);
    crate::rig::write_program(&path, &format!("#!/bin/sh\n{script}\n"));
    Policy::parse(&format!("[programs.{name}]\npath = {path:?}\nchildren = true\n{rules}\n")).unwrap()
}

/// A file that was refused, for messages.
pub fn code(result: Result<Finished, ToolError>) -> Result<i32, &'static str> {
    result.map(|finished| finished.status.code()).map_err(|error| error.code())
}

pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
