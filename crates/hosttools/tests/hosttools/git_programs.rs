//! Every configuration key by which a repository can name a program, each set to one that leaves a mark, with every flag
//! the policy lets through. The keys are those the installed gits name themselves: one that nobody has looked at fails.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use wardian_hosttools::git_sync::{FileChange, GitOptions, GitSync};
use wardian_hosttools::{ExecSpec, Policy, Request, ToolSandbox};

use crate::yard::Yard;

/// What is known about each key; the file says how.
const KEYS: &str = include_str!("git_keys.txt");
/// What no setting can switch off, since the repository chooses the key's name: only that git can start nothing holds it.
const NO_SWITCH: [&str; 3] = ["filter.x.clean", "filter.x.process", "hook.x.command"];
const SUBCOMMANDS: [&str; 8] = ["blame", "branch", "diff", "log", "ls-files", "rev-parse", "show", "status"];

/// The gits of this machine.
fn gits() -> Vec<PathBuf> {
    let places = ["/usr/local/bin/git", "/usr/bin/git"].map(PathBuf::from);
    let found: BTreeSet<PathBuf> = places.iter().filter_map(|git| git.canonicalize().ok()).collect();
    assert!(!found.is_empty(), "there is no git");
    found.into_iter().collect()
}

fn said(git: &Path, directory: &Path, args: &[&str]) -> String {
    let mut git = Command::new(git);
    git.args(args).current_dir(directory).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_PAGER", "cat");
    String::from_utf8_lossy(&git.stdin(Stdio::null()).output().expect("git").stdout).into_owned()
}

#[test]
fn every_key_the_installed_gits_know_was_looked_at() {
    let known: BTreeSet<&str> = KEYS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.strip_prefix("program ").unwrap_or(line))
        .collect();
    for git in gits() {
        let listed = said(&git, Path::new("/"), &["help", "--config"]);
        let keys: Vec<&str> =
            listed.lines().filter(|line| line.contains('.') && !line.contains(' ')).collect();
        assert!(keys.len() > 500, "{}: {listed}", git.display());
        let new: Vec<&&str> = keys.iter().filter(|key| !known.contains(**key)).collect();
        assert!(new.is_empty(), "{}: keys that git_keys.txt does not have: {new:?}", git.display());
    }
}

/// Keys that name programs, with a value that runs one: the file `mark` in the jail says which.
fn traps(jail: &Path) -> Vec<(String, String)> {
    let keys = KEYS.lines().filter_map(|line| line.strip_prefix("program "));
    keys.flat_map(concrete).map(|key| (key.clone(), value(jail, &key))).collect()
}

/// The keys a pattern stands for here.
fn concrete(pattern: &str) -> Vec<String> {
    match pattern {
        "alias.*" => SUBCOMMANDS.iter().map(|command| format!("alias.{command}")).collect(),
        "pager.<cmd>" => SUBCOMMANDS.iter().map(|command| format!("pager.{command}")).collect(),
        "gpg.<format>.program" => vec![],
        "credential.<url>.*" => vec!["credential.https://example.org.helper".to_owned()],
        "sendemail.<identity>.*" => vec!["sendemail.x.smtpServer".to_owned()],
        _ => {
            let open = pattern.find('<');
            let name = open.map(|open| {
                format!("{}x{}", &pattern[..open], &pattern[pattern.find('>').expect("a pair") + 1..])
            });
            vec![name.unwrap_or_else(|| pattern.to_owned())]
        }
    }
}

fn value(jail: &Path, key: &str) -> String {
    let script = trap(jail, key);
    let script = script.to_str().expect("a name");
    match key {
        "core.hooksPath" => "traps/hooks".to_owned(),
        "core.attributesFile" => jail.join("traps/attributes").to_str().expect("a name").to_owned(),
        "diff.x.cachetextconv" | "log.showSignature" | "merge.verifySignatures" | "remote.x.promisor" => {
            "true".to_owned()
        }
        "commit.gpgSign" | "tag.gpgSign" | "push.gpgSign" | "submodule.recurse" => "true".to_owned(),
        "filter.x.required" | "status.submoduleSummary" => "true".to_owned(),
        "diff.ignoreSubmodules" | "submodule.x.ignore" => "none".to_owned(),
        "diff.submodule" => "diff".to_owned(),
        "log.diffMerges" => "remerge".to_owned(),
        "help.autoCorrect" => "immediate".to_owned(),
        "help.format" => "man".to_owned(),
        "hook.x.event" => "post-index-change".to_owned(),
        "extensions.partialClone" => "x".to_owned(),
        "protocol.ext.allow" => "always".to_owned(),
        "remote.x.vcs" => "ext".to_owned(),
        "remote.x.url" | "remote.x.pushurl" | "submodule.x.url" => format!("ext::{script}"),
        "diff.tool" | "diff.guitool" | "merge.tool" | "merge.guitool" | "man.viewer" | "help.browser" => {
            "x".to_owned()
        }
        "web.browser" | "instaweb.browser" => "x".to_owned(),
        key if key.starts_with("alias.") || key.starts_with("credential.") => format!("!{script}"),
        "submodule.x.update" => format!("!{script}"),
        _ => script.to_owned(),
    }
}

/// A program that leaves its key's name, for git to run.
fn trap(jail: &Path, key: &str) -> PathBuf {
    let path = jail.join("traps").join(key.replace('/', "_"));
    let marks = jail.join("marks");
    let script =
        format!("#!/bin/sh\necho '{key}' >> {}\ncat 2>/dev/null < /dev/null\nexit 1\n", marks.display());
    fs::write(&path, script).expect("a trap");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

/// A repository in which everything is there that makes git use those keys: files with drivers and filters, another
/// repository whose objects it borrows, signed commits, a merge, a submodule.
struct Trapped {
    yard: Yard,
}

impl Trapped {
    fn new() -> Trapped {
        let yard = Yard::with_repository();
        let jail = yard.jail();
        fs::create_dir_all(jail.join("traps/hooks")).expect("a directory");
        yard.git(&["init", "-q", "--bare", "traps/lender"]);
        fs::write(jail.join(".git/objects/info/alternates"), "../../traps/lender/objects\n")
            .expect("a lender");
        fs::write(jail.join("traps/attributes"), "* diff=x filter=x merge=x\n").expect("attributes");
        yard.git(&[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            "--name",
            "x",
            "./.git",
            "part",
        ]);
        yard.git(&["commit", "-qm", "a submodule"]);
        fs::write(jail.join("part/file"), "changed\n").expect("a file");
        let trapped = Trapped { yard };
        for (number, kind) in ["PGP SIGNATURE", "SSH SIGNATURE", "SIGNED MESSAGE"].iter().enumerate() {
            trapped.signed_commit(number, kind);
        }
        for hook in [
            "post-index-change",
            "fsmonitor-watchman",
            "post-checkout",
            "reference-transaction",
            "pre-commit",
        ] {
            let script = trap(&jail, "core.hooksPath");
            fs::copy(script, jail.join("traps/hooks").join(hook)).expect("a hook");
        }
        fs::write(jail.join(".gitattributes"), "* diff=x filter=x merge=x\n").expect("attributes");
        fs::write(jail.join("file"), "changed\n").expect("a file");
        trapped
    }

    fn signed_commit(&self, number: usize, kind: &str) {
        let plain = self.yard.git(&["cat-file", "commit", "HEAD"]);
        let (head, message) = plain.split_once("\n\n").expect("a commit");
        let parent = self.yard.git(&["rev-parse", "HEAD"]);
        let head: Vec<&str> = head
            .lines()
            .filter(|line| {
                !line.starts_with("parent") && !line.starts_with("gpgsig") && !line.starts_with(' ')
            })
            .collect();
        let (tree, rest) = head.split_first().expect("a tree");
        let signature = format!("gpgsig -----BEGIN {kind}-----\n \n U1NIU0lH\n -----END {kind}-----");
        let signed =
            format!("{tree}\nparent {}\n{}\n{signature}\n\n{message}", parent.trim(), rest.join("\n"));
        let file = self.yard.jail().join(".git").join(format!("signed{number}"));
        fs::write(&file, signed).expect("a file");
        let commit = self.yard.git(&["hash-object", "-t", "commit", "-w", file.to_str().expect("a name")]);
        self.yard.git(&["update-ref", "HEAD", commit.trim()]);
    }

    /// Sets these keys in a configuration without others.
    fn set(&self, plain: &str, traps: &[(String, String)]) {
        let mut text = plain.to_owned();
        for (key, value) in traps {
            let (section, name) = key.rsplit_once('.').expect("a key");
            let header = match section.split_once('.') {
                Some((section, rest)) => format!("[{section} \"{rest}\"]"),
                None => format!("[{section}]"),
            };
            text += &format!("{header}\n\t{name} = \"{}\"\n", value.replace('"', "\\\""));
        }
        fs::write(self.yard.jail().join(".git/config"), text).expect("a configuration");
        // So that files are looked at again, whatever the index says about them.
        fs::File::open(self.yard.jail().join("file"))
            .and_then(|file| file.set_modified(std::time::SystemTime::now()))
            .expect("a time");
    }

    fn plain(&self) -> String {
        fs::read_to_string(self.yard.jail().join(".git/config")).expect("a configuration")
    }

    /// Which traps have snapped since this was last asked.
    fn snapped(&self) -> BTreeSet<String> {
        let marks = self.yard.jail().join("marks");
        let text = fs::read_to_string(&marks).unwrap_or_default();
        let _ = fs::remove_file(marks);
        text.lines().map(str::to_owned).collect()
    }

    /// A gateway with the standard policy for one git, in which traps could leave their marks if they were run.
    fn door(&self, git: &Path) -> ToolSandbox {
        let rules = format!("[programs.git]\npath = {git:?}\nwrite = true\n");
        let policy = Policy::standard().text().replace("[programs.git]\n", &rules);
        self.yard.door_with(self.yard.config(), Policy::parse(&policy).expect("a policy"))
    }
}

/// What makes git use what a repository configures, as far as it can be asked for; with those beside it that come close.
const LINES: [&str; 30] = [
    "git status",
    "git status --porcelain=v2 --branch --show-stash --ignored",
    "git diff",
    "git diff --stat --cached",
    "git diff HEAD~1 --word-diff",
    "git diff --color-words --check",
    "git log -p",
    "git log --alternate-refs",
    "git log --format=%G?%GG%GS%GK%GF%GP%GT",
    "git log --format=%(trailers)%(describe)%N",
    "git log --all --graph --decorate=full --follow -p -- file",
    "git log -Sfour -p",
    "git log -L1,2:file",
    "git log -p -m --first-parent",
    "git log -c -p",
    "git log --cc",
    "git show",
    "git show HEAD:file",
    "git show --stat --format=fuller",
    "git blame file",
    "git blame -C -M HEAD -- file",
    "git branch -avv",
    "git branch --format=%(refname)%(contents:signature)%(signature)",
    "git branch --sort=signature --format=%(signature:grade)%(describe)",
    "git ls-files -m",
    "git ls-files --eol -s -o -t --debug",
    "git rev-parse HEAD --all",
    "git rev-parse --alternate-refs",
    "git --no-pager log -1 --show-notes",
    "git diff -p --raw --binary --full-index HEAD~2 HEAD",
];

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Runs what the gateway would run, but held by nothing except what it gives git.
fn unconfined(spec: &ExecSpec) {
    let mut command = Command::new(&spec.program);
    command.args(&spec.args).env_clear().envs(spec.env.iter().cloned()).current_dir(spec.cwd.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("git");
}

/// Each of these, on all processors.
fn all_unconfined(specs: Vec<ExecSpec>) {
    let specs = Mutex::new(specs.into_iter());
    let next = || specs.lock().expect("no thread has died").next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(spec) = next() {
                    unconfined(&spec);
                }
            });
        }
    });
}

/// Long flags: those whose text is in the program, and those it completes.
fn long_flags(git: &Path, jail: &Path) -> BTreeSet<String> {
    let program = fs::read(git).expect("the program");
    let is_flag = |text: &str| {
        text.len() > 3
            && text.starts_with("--")
            && text[2..]
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-=".contains(&byte))
    };
    let texts = program.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    let mut flags: BTreeSet<String> = texts.filter(|text| is_flag(text)).map(str::to_owned).collect();
    for subcommand in SUBCOMMANDS {
        let completed = said(git, jail, &[subcommand, "--git-completion-helper-all"]);
        flags.extend(completed.split_whitespace().filter(|text| is_flag(text)).map(str::to_owned));
    }
    assert!(
        flags.len() > 400 && flags.contains("--alternate-refs") && flags.contains("--ext-diff"),
        "{flags:?}"
    );
    flags
}

/// All flags of all subcommands that the policy lets through.
fn all_calls(door: &ToolSandbox, git: &Path, jail: &Path) -> Vec<ExecSpec> {
    let letters = ('a'..='z').chain('A'..='Z').chain('0'..='9').map(|letter| format!("-{letter}"));
    let flags: Vec<String> = long_flags(git, jail).into_iter().chain(letters).collect();
    let mut specs = Vec::new();
    for subcommand in SUBCOMMANDS {
        for flag in &flags {
            let flag = if flag.ends_with('=') { format!("{flag}1") } else { flag.clone() };
            let mut words = vec!["git", subcommand, &flag];
            words.extend((subcommand == "blame").then_some("file"));
            words.extend(["log", "show"].contains(&subcommand).then_some("-p"));
            specs.extend(door.check(&Request::words(words)).ok());
        }
    }
    assert!(specs.len() > 2000, "{}", specs.len());
    specs
}

/// What the gateway sets switches off everything that has a switch, also where nothing is confined.
#[tokio::test]
async fn settings_switch_off_every_program_that_has_a_switch() {
    let trapped = Trapped::new();
    let jail = trapped.yard.jail();
    let (plain, traps) = (trapped.plain(), traps(&jail));
    let allowed: BTreeSet<String> = NO_SWITCH.iter().map(|key| (*key).to_owned()).collect();
    let sections: BTreeSet<&str> = traps.iter().filter_map(|(key, _)| key.split('.').next()).collect();
    for git in gits() {
        let door = trapped.door(&git);
        // All flags, with all traps but one that would keep others from snapping.
        let calls = all_calls(&door, &git, &jail);
        let some: Vec<_> = traps.iter().filter(|(key, _)| key != "diff.external").cloned().collect();
        trapped.set(&plain, &some);
        all_unconfined(calls);
        let snapped = trapped.snapped();
        assert!(snapped.is_subset(&allowed), "{}: {snapped:?}", git.display());
        // Part by part, with what is likely to make them snap.
        for section in &sections {
            let some: Vec<_> =
                traps.iter().filter(|(key, _)| key.split('.').next() == Some(section)).cloned().collect();
            trapped.set(&plain, &some);
            all_unconfined(
                LINES.iter().filter_map(|line| door.check(&Request::words(words(line))).ok()).collect(),
            );
            let snapped = trapped.snapped();
            assert!(snapped.is_subset(&allowed), "{}: {section} {snapped:?}", git.display());
        }
        trapped.set(&plain, &[]);
    }
}

/// Nothing at all runs through the gateway, whether there is a switch for it or not.
#[tokio::test]
async fn no_program_a_repository_names_is_run() {
    let trapped = Trapped::new();
    let jail = trapped.yard.jail();
    let (plain, traps) = (trapped.plain(), traps(&jail));
    for git in gits() {
        let door = trapped.door(&git);
        for without in ["", "diff.external", "filter.x.process", "filter.x.required"] {
            let some: Vec<_> = traps.iter().filter(|(key, _)| key != without).cloned().collect();
            trapped.set(&plain, &some);
            for line in LINES {
                let _ = door.run(Request::words(words(line))).await;
                let snapped = trapped.snapped();
                assert!(snapped.is_empty(), "{} {line}: {snapped:?}", git.display());
            }
        }
    }
}

/// The traps work: git, asked the same without the gateway, runs them.
#[test]
fn the_traps_snap_without_the_door() {
    let trapped = Trapped::new();
    let jail = trapped.yard.jail();
    let (plain, traps) = (trapped.plain(), traps(&jail));
    for git in gits() {
        for (key, args) in [
            ("core.alternateRefsCommand", &["log", "--alternate-refs"][..]),
            ("core.fsmonitor", &["status"]),
            ("core.hooksPath", &["status"]),
            ("diff.external", &["diff"]),
            ("diff.x.command", &["diff"]),
            ("diff.x.textconv", &["log", "-p"]),
            ("filter.x.clean", &["diff"]),
            ("filter.x.process", &["diff"]),
            ("gpg.program", &["log", "--format=%G?"]),
            ("gpg.x509.program", &["log", "--format=%G?"]),
        ] {
            trapped.snapped();
            let some: Vec<_> = traps.iter().filter(|(name, _)| name == key).cloned().collect();
            assert_eq!(some.len(), 1, "{key}");
            trapped.set(&plain, &some);
            said(&git, &jail, args);
            assert_eq!(trapped.snapped(), BTreeSet::from([key.to_owned()]), "{} {args:?}", git.display());
        }
    }
}

/// Git sync, too, runs none of them, also where it pushes and so must let git start programs.
#[tokio::test]
async fn git_sync_runs_no_program_a_repository_names() {
    for git in gits() {
        let trapped = Trapped::new();
        let jail = trapped.yard.jail();
        let (plain, traps) = (trapped.plain(), traps(&jail));
        let door = trapped.door(&git);
        let pool = door.pool().expect("it is open").clone();
        let options = GitOptions { program: git.clone(), ..GitOptions::default() };
        let remote = trapped.yard.root().join("remote.git");
        trapped.yard.git(&["init", "-q", "--bare", remote.to_str().expect("a name")]);
        let sync = GitSync::new(pool, &jail, "kept", options).expect("a repository");
        // The remote of the configuration, by the name that the traps are for.
        let of_remote =
            |key: &str| key == "remote.x.url" || key == "remote.x.pushurl" || key == "remote.x.vcs";
        let mut some: Vec<_> = traps.iter().filter(|(key, _)| !of_remote(key)).cloned().collect();
        // A repository that lacks objects would not do for a snapshot.
        some.retain(|(key, _)| !key.starts_with("extensions."));
        some.push(("remote.x.url".to_owned(), remote.to_str().expect("a name").to_owned()));
        trapped.set(&plain, &some);
        let none = |what: &str| {
            let snapped = trapped.snapped();
            assert!(snapped.is_empty(), "{} {what}: {snapped:?}", git.display());
        };
        let snapshot = sync.snapshot(&[Path::new(".")], "all").await.expect("a snapshot");
        none("snapshot");
        sync.restore(&snapshot.commit, &trapped.yard.root().join("restored")).await.expect("it is restored");
        none("restore");
        sync.push("x").await.expect("it is pushed");
        none("push");
        let change = FileChange::Write { path: "new".into(), contents: b"new".to_vec(), executable: false };
        sync.commit_changes("HEAD", &[change], "changes").await.expect("a commit");
        none("commit");
        for address in ["ext::sh -c true", "x::y"] {
            sync.push(address).await.expect_err("no such way");
            none(address);
        }
        // By their own names, which lead to a program.
        trapped.set(&plain, &traps);
        let _ = sync.push("x").await;
        none("push to a program");
        // A repository the agent could have made, with hooks of its own.
        trapped.set(&plain, &[]);
        let error = sync.push("./traps/lender").await.expect_err("it is inside");
        assert!(error.to_string().contains("inside the work tree"), "{error}");
    }
}
