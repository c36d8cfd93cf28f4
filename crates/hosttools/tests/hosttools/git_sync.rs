//! Git sync with real repositories and a real remote, beside a user who works in the same tree.

mod interrupted;
mod pushes;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;
use wardian_hosttools::WorkerPool;
use wardian_hosttools::git_sync::{FileChange, GitOptions, GitSync, Pushed, SyncError, can_be_committed};

use crate::rig::{Place, until, write_program};

const BRANCH: &str = "wardian/archive";

/// A repository with a user's work in it: a commit, something staged, something not, something ignored.
struct User {
    place: Place,
    root: TempDir,
}

impl User {
    fn new() -> User {
        let user = User::without_commits(&[]);
        user.write("committed", "one\n");
        user.write(".gitignore", "ignored\n");
        user.git(&["add", "-A"]);
        user.git(&["commit", "-qm", "first"]);
        user.write("committed", "two\n");
        user.write("staged", "staged\n");
        user.git(&["add", "staged"]);
        user.write("ignored", "ignored\n");
        user.write("dir/deep/file", "deep\n");
        user
    }

    fn without_commits(init: &[&str]) -> User {
        let root = tempfile::Builder::new().prefix("git-sync").tempdir().expect("a directory");
        let user = User { place: Place::new(), root };
        fs::create_dir(user.tree()).expect("a tree");
        user.git(&[&["init", "-q", "-b", "main"], init].concat());
        user
    }

    fn tree(&self) -> PathBuf {
        self.root.path().join("tree")
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, contents).expect("a file");
    }

    /// Git as the user has it, which is the oracle.
    fn git(&self, args: &[&str]) -> String {
        git_in(&self.tree(), args)
    }

    fn sync(&self, pool: &WorkerPool) -> GitSync {
        self.sync_with(pool, Path::new("/usr/bin/git"))
    }

    fn sync_with(&self, pool: &WorkerPool, program: &Path) -> GitSync {
        let options = GitOptions { program: program.to_owned(), children: true, ..GitOptions::default() };
        GitSync::new(pool.clone(), &self.tree(), BRANCH, options).expect("a repository")
    }

    fn sync_on(&self, pool: &WorkerPool, branch: &str) -> GitSync {
        GitSync::new(pool.clone(), &self.tree(), branch, GitOptions::default()).expect("a repository")
    }

    /// Everything of the user's that must stay as it is.
    fn state(&self) -> Vec<String> {
        let read = |name: &str| format!("{:?}", fs::read(self.tree().join(".git").join(name)).ok());
        let status = self.git(&["status", "--porcelain", "--ignored", "--no-renames"]);
        let branches = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let others = branches.lines().filter(|line| !line.contains(BRANCH)).collect::<Vec<_>>().join("\n");
        vec![status, others, read("HEAD"), read("logs/HEAD"), read("config"), read("ORIG_HEAD")]
    }

    fn index(&self) -> Vec<u8> {
        fs::read(self.tree().join(".git/index")).expect("an index")
    }

    fn tip(&self) -> Option<String> {
        let shown = self.git(&["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{BRANCH}")]);
        (!shown.is_empty()).then_some(shown)
    }
}

fn git_in(directory: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=User", "-c", "user.email=user@example.org", "-c", "safe.directory=*"])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
}

fn all() -> Vec<&'static Path> {
    vec![Path::new(".")]
}

#[tokio::test]
async fn a_snapshot_holds_the_chosen_files_and_touches_nothing_of_the_users() {
    let user = User::new();
    let pool = user.place.pool();
    let (state, index) = (user.state(), user.index());
    let paths = ["committed", "ignored", "dir", "not-there"].map(Path::new);
    let snapshot = user.sync(&pool).snapshot(&paths, "a message").await.expect("a snapshot");

    assert!(snapshot.new);
    assert_eq!((user.state(), user.index()), (state, index));
    assert_eq!(user.tip().as_ref(), Some(&snapshot.commit));
    let files = user.git(&["ls-tree", "-r", "--name-only", &snapshot.commit]);
    assert_eq!(files, "files/committed\nfiles/dir/deep/file\nfiles/ignored\nmanifest.json");
    assert_eq!(user.git(&["show", &format!("{}:files/committed", snapshot.commit)]), "two");
    assert_eq!(
        user.git(&["log", "-1", "--format=%B%an", &snapshot.commit]).replace('\n', " ").trim(),
        "a message Wardian"
    );

    let manifest = user.git(&["show", &format!("{}:manifest.json", snapshot.commit)]);
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["head"], user.git(&["rev-parse", "HEAD"]));
    assert_eq!(manifest["files"][0]["path"], "committed");
    assert_eq!(manifest["files"][0]["size"], 4);
    assert_eq!(manifest["files"][0]["object"], user.git(&["hash-object", "committed"]));
    assert_eq!(snapshot.manifest.files.len(), 3);
    assert!(!user.tree().join(".git/wardian-sync").exists());
}

#[tokio::test]
async fn snapshots_follow_each_other_and_none_is_made_for_nothing() {
    let user = User::new();
    let pool = user.place.pool();
    let sync = user.sync(&pool);
    let first = sync.snapshot(&all(), "first").await.expect("a snapshot");
    let again = sync.snapshot(&all(), "again").await.expect("a snapshot");
    assert_eq!((again.new, &again.commit), (false, &first.commit));
    user.write("committed", "three\n");
    let second = sync.snapshot(&all(), "second").await.expect("a snapshot");
    assert_eq!(user.git(&["rev-parse", &format!("{}^", second.commit)]), first.commit);
}

#[tokio::test]
async fn what_is_restored_is_what_was_there_to_the_byte() {
    let user = User::new();
    let pool = user.place.pool();
    // Attributes that would change every file on its way in and out.
    user.write(".gitattributes", "* text=auto eol=crlf ident filter=evil working-tree-encoding=UTF-16\n");
    user.git(&["config", "filter.evil.clean", "echo cleaned"]);
    user.git(&["config", "core.autocrlf", "true"]);
    user.write("lines", "unix\ndos\r\n$Id$\n");
    user.write("bytes", (0..=255u8).collect::<Vec<_>>());
    user.write("-strange \n na*me", "strange");
    user.write("program", "#!/bin/sh\n");
    fs::set_permissions(user.tree().join("program"), fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink("../outside", user.tree().join("link")).expect("a link");

    let sync = user.sync(&pool);
    symlink(".", user.tree().join("round")).expect("a link");
    let snapshot = sync.snapshot(&all(), "all").await.expect("a snapshot");
    let behind = sync.snapshot(&[Path::new("round/lines")], "behind a link").await.expect("a snapshot");
    assert_eq!(behind.manifest.files, []);
    let into = user.root.path().join("restored");
    fs::create_dir(&into).expect("an empty directory");
    sync.restore(&snapshot.commit, &into).await.expect("it is restored");

    let mut compare = Command::new("diff");
    compare.args(["-r", "--no-dereference", "--exclude=.git"]).args([user.tree(), into.clone()]);
    let out = compare.output().expect("diff");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    let executable =
        |name: &str| fs::metadata(into.join(name)).expect("it is there").permissions().mode() & 0o111 != 0;
    assert_eq!((executable("program"), executable("lines")), (true, false));

    let error = sync.restore(&snapshot.commit, &into).await.expect_err("there is something");
    assert!(matches!(error, SyncError::NotEmpty(_)), "{error}");
    for nonsense in ["main", "nothing", "--all", "HEAD"] {
        let error = sync.restore(nonsense, &user.root.path().join("new")).await.expect_err("no snapshot");
        assert!(matches!(error, SyncError::NoSuchSnapshot(_)), "{error}");
    }
    let left: Vec<_> =
        fs::read_dir(user.root.path()).expect("entries").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test]
async fn a_push_goes_forward_only() {
    let user = User::new();
    let pool = user.place.pool();
    let sync = user.sync(&pool);
    let remote = user.root.path().join("remote.git");
    fs::create_dir(&remote).expect("a directory");
    git_in(&remote, &["init", "-q", "--bare"]);
    let address = remote.to_str().expect("a name");
    let there = || git_in(&remote, &["rev-parse", BRANCH]);

    let first = sync.snapshot(&all(), "first").await.expect("a snapshot");
    assert_eq!(sync.push(address).await.expect("it is pushed"), Pushed::Created);
    assert_eq!(sync.push(address).await.expect("it is pushed"), Pushed::UpToDate);
    user.write("committed", "three\n");
    let second = sync.snapshot(&all(), "second").await.expect("a snapshot");
    assert_eq!(there(), first.commit);
    assert_eq!(sync.push(address).await.expect("it is pushed"), Pushed::FastForward);
    assert_eq!(there(), second.commit);

    // Someone else pushes to the same branch.
    let other = user.root.path().join("other");
    git_in(user.root.path(), &["clone", "-q", "-b", BRANCH, address, "other"]);
    git_in(&other, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    git_in(&other, &["push", "-q", "origin", BRANCH]);
    let theirs = there();
    user.write("committed", "four\n");
    sync.snapshot(&all(), "third").await.expect("a snapshot");
    let error = sync.push(address).await.expect_err("it has diverged");
    assert!(matches!(error, SyncError::Diverged { .. }), "{error}");
    assert_eq!(there(), theirs);

    let error = sync.push("/nowhere").await.expect_err("there is none");
    assert!(matches!(error, SyncError::Git { step: "push", .. }), "{error}");
    let error = sync.push("--receive-pack=touch evil").await.expect_err("that is no remote");
    assert!(matches!(error, SyncError::Git { step: "push", .. }), "{error}");
}

#[tokio::test]
async fn a_branch_someone_works_on_is_left_alone() {
    let user = User::new();
    let pool = user.place.pool();
    let other = user.root.path().join("other");
    user.git(&["branch", BRANCH]);
    user.git(&["worktree", "add", "-q", other.to_str().expect("a name"), BRANCH]);
    let before = user.tip();
    let error = user.sync(&pool).snapshot(&all(), "no").await.expect_err("it is in use");
    assert!(matches!(error, SyncError::CheckedOut(_)), "{error}");
    assert_eq!(user.tip(), before);
}

#[tokio::test]
async fn a_work_tree_beside_the_first_can_be_archived_too() {
    let user = User::new();
    let pool = user.place.pool();
    let other = user.root.path().join("other");
    user.git(&["worktree", "add", "-q", "-b", "topic", other.to_str().expect("a name")]);
    fs::write(other.join("theirs"), "theirs").expect("a file");
    let sync = GitSync::new(pool, &other, BRANCH, GitOptions::default()).expect("a repository");
    let snapshot = sync.snapshot(&[Path::new("theirs")], "theirs").await.expect("a snapshot");
    assert_eq!(user.git(&["show", &format!("{}:files/theirs", snapshot.commit)]), "theirs");
}

#[tokio::test]
async fn a_new_repository_other_hashes_and_repositories_inside() {
    let user = User::without_commits(&["--object-format=sha256"]);
    let pool = user.place.pool();
    user.write("file", "contents");
    user.write("inner/file", "of a repository inside");
    git_in(&user.tree().join("inner"), &["init", "-q"]);
    assert!(Command::new("mkfifo").arg(user.tree().join("pipe")).status().expect("mkfifo").success());
    let snapshot = user.sync(&pool).snapshot(&all(), "first").await.expect("a snapshot");
    assert_eq!(snapshot.commit.len(), 64);
    assert_eq!(snapshot.manifest.head, None);
    let files: Vec<_> = snapshot.manifest.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((files, snapshot.manifest.skipped), (vec!["file", "inner/file"], vec!["pipe".to_owned()]));
    let empty = user.sync(&pool).snapshot(&[], "nothing").await.expect("a snapshot");
    assert_eq!(empty.manifest.files, []);
    let into = user.root.path().join("restored");
    user.sync(&pool).restore(&empty.commit, &into).await.expect("it is restored");
    assert_eq!(fs::read_dir(into).expect("a directory").count(), 0);
}

#[tokio::test]
async fn nothing_the_repository_configures_is_run() {
    let user = User::new();
    let pool = user.place.pool();
    let evil = user.tree().join("evil.sh");
    user.write("evil.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\ncat\n");
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).expect("a mode");
    let evil = evil.to_str().expect("a name");
    for setting in
        ["core.fsmonitor", "filter.evil.clean", "filter.evil.process", "filter.evil.smudge", "gpg.program"]
    {
        user.git(&["config", setting, evil]);
    }
    user.git(&["config", "commit.gpgSign", "true"]);
    for hook in ["reference-transaction", "pre-push", "post-index-change", "post-checkout"] {
        fs::copy(evil, user.tree().join(".git/hooks").join(hook)).expect("a hook");
    }
    user.write(".gitattributes", "* filter=evil\n");
    let _ = fs::remove_file(user.tree().join("ran"));
    let _ = fs::remove_file(user.tree().join(".git/hooks/ran"));

    let sync = user.sync(&pool);
    let snapshot = sync.snapshot(&all(), "all").await.expect("a snapshot");
    sync.restore(&snapshot.commit, &user.root.path().join("restored")).await.expect("it is restored");
    let remote = user.root.path().join("remote.git");
    git_in(user.root.path(), &["init", "-q", "--bare", "remote.git"]);
    sync.push(remote.to_str().expect("a name")).await.expect("it is pushed");
    assert!(!user.tree().join("ran").exists() && !user.tree().join(".git/hooks/ran").exists());
}

#[tokio::test]
async fn changes_become_a_commit_on_a_branch() {
    let user = User::new();
    let pool = user.place.pool();
    user.write("old/a", "a");
    user.write("old/b", "b");
    user.write("turns", "a file");
    user.git(&["add", "old", "turns"]);
    user.git(&["commit", "-qm", "second"]);
    let (state, index) = (user.state(), user.index());
    let sync = user.sync(&pool);
    let write = |path: &str, contents: &str| FileChange::Write {
        path: path.into(),
        contents: contents.into(),
        executable: path.ends_with(".sh"),
    };
    let changes = [
        write("committed", "by the sandbox\n"),
        write("new/run.sh", "#!/bin/sh\n"),
        write("turns/into", "a directory"),
        FileChange::Link { path: "new/link".into(), target: "run.sh".into() },
        FileChange::Remove { path: "old".into() },
    ];
    let first = sync.commit_changes("HEAD", &changes, "of a sandbox").await.expect("a commit");
    assert_eq!((user.state(), user.index()), (state, index));
    assert_eq!(user.git(&["rev-parse", &format!("{first}^")]), user.git(&["rev-parse", "HEAD"]));
    let shown = user.git(&["diff", "--no-renames", "--raw", "--abbrev=1", "HEAD", &first]);
    let shown: Vec<_> =
        shown.lines().map(|line| (&line[8..14], line.rsplit('\t').next().expect("a path"))).collect();
    let expected = [
        ("100644", "committed"),
        ("120000", "new/link"),
        ("100755", "new/run.sh"),
        ("000000", "old/a"),
        ("000000", "old/b"),
        ("000000", "turns"),
        ("100644", "turns/into"),
    ];
    assert_eq!(shown, expected);
    // Many more than one command line takes of us, on top of the branch by now.
    let many: Vec<_> = (0..1100).map(|number| write(&format!("many/{number}"), "x")).collect();
    let second = sync.commit_changes("HEAD", &many, "many").await.expect("a commit");
    assert_eq!(user.git(&["rev-parse", &format!("{second}^")]), first);
    assert_eq!(user.git(&["ls-tree", "-r", "--name-only", &second, "many/"]).lines().count(), 1100);
}

#[tokio::test]
async fn names_that_lead_elsewhere_are_refused() {
    let user = User::new();
    let pool = user.place.pool();
    let sync = user.sync(&pool);
    for path in ["/etc/passwd", "../outside", "a/../../b", ".git/config", "sub/.GIT/hooks/x"] {
        let error = sync.snapshot(&[Path::new(path)], "no").await.expect_err("no such path");
        assert!(matches!(error, SyncError::BadPath(_)), "{error}");
        let change = FileChange::Remove { path: path.into() };
        let error = sync.commit_changes("HEAD", &[change], "no").await.expect_err("no such path");
        assert!(matches!(error, SyncError::BadPath(_)), "{error}");
    }
    for branch in ["", "-f", "a..b", "a b", "x/", "/x", ".x", "a.lock", "a@{1}", "HEAD", "a:b"] {
        let sync = GitSync::new(pool.clone(), &user.tree(), branch, GitOptions::default());
        assert!(matches!(sync, Err(SyncError::BadBranch(_))), "{branch}");
    }
    let nowhere = GitSync::new(pool.clone(), user.root.path(), BRANCH, GitOptions::default());
    assert!(matches!(nowhere, Err(SyncError::NotARepository { .. })));
    assert_eq!(user.tip(), None);
}

/// A bare repository beside the tree.
fn remote(user: &User, name: &str) -> PathBuf {
    git_in(user.root.path(), &["init", "-q", "--bare", name]);
    user.root.path().join(name)
}

fn tip_of(remote: &Path) -> Option<String> {
    let shown = git_in(remote, &["for-each-ref", "--format=%(objectname)", &format!("refs/heads/{BRANCH}")]);
    (!shown.is_empty()).then_some(shown)
}

/// Anyone who can write to the tree may put links where this process, which nothing confines, makes and removes files.
#[tokio::test]
async fn links_in_our_way_lead_nowhere() {
    let user = User::new();
    let pool = user.place.pool();
    let precious = user.root.path().join("precious");
    fs::create_dir_all(precious.join("4194305-photos")).expect("a directory");
    fs::write(precious.join("4194305-photos/one"), "precious").expect("a file");
    symlink(&precious, user.tree().join(".git/wardian-sync")).expect("a trap");
    user.sync(&pool).snapshot(&all(), "trapped").await.expect_err("that is not a directory of Wardian");
    assert_eq!(fs::read_dir(&precious).expect("it is there").count(), 1);
    assert_eq!(fs::read_to_string(precious.join("4194305-photos/one")).expect("it is there"), "precious");

    fs::remove_file(user.tree().join(".git/wardian-sync")).expect("no trap any more");
    fs::create_dir(user.tree().join(".git/wardian-sync")).expect("a directory");
    symlink(precious.join("4194305-photos"), user.tree().join(".git/wardian-sync/4194305-x"))
        .expect("a trap");
    user.sync(&pool).snapshot(&all(), "not trapped").await.expect("a snapshot");
    assert_eq!(fs::read_to_string(precious.join("4194305-photos/one")).expect("it is there"), "precious");
}

#[tokio::test]
async fn what_git_does_not_take_is_named_and_stops_nothing() {
    let user = User::new();
    let pool = user.place.pool();
    let not_taken = ["GIT~1", ".git ", ".git.", ".git:x", ".Git. .", "a\\.git", "git~1\\x"];
    let taken = ["git~2", ".git...x", "git~1.x", "x:y", ".gitx", "a\\b"];
    for name in not_taken.iter().chain(&taken) {
        user.write(&format!("names/{name}"), name);
    }
    // Deeper than a path can say.
    let mut deep = fs::File::open(user.tree().join("names")).expect("a directory").into();
    for name in [c"deep"].into_iter().chain([c"0123456789"; 500]) {
        rustix::fs::mkdirat(&deep, name, Mode::RWXU).expect("a directory");
        deep = rustix::fs::openat(&deep, name, OFlags::DIRECTORY, Mode::empty()).expect("a directory");
    }
    let sync = user.sync(&pool);
    let snapshot = sync.snapshot(&[Path::new("names")], "names").await.expect("a snapshot");
    let mut kept: Vec<_> = snapshot.manifest.files.iter().map(|file| file.path.clone()).collect();
    let mut expected = taken.map(|name| format!("names/{name}"));
    kept.sort();
    expected.sort();
    assert_eq!(kept, expected);
    let (deep, named): (Vec<_>, Vec<_>) =
        snapshot.manifest.skipped.iter().partition(|path| path.starts_with("names/deep"));
    assert_eq!((deep.len(), named.len()), (1, not_taken.len()), "{named:?}");

    for name in not_taken {
        let change = FileChange::Write { path: name.into(), contents: vec![], executable: false };
        let error = sync.commit_changes("HEAD", &[change], "no").await.expect_err("no such name");
        assert!(matches!(error, SyncError::BadPath(_)), "{name}: {error}");
    }
    let changes =
        taken.map(|name| FileChange::Write { path: name.into(), contents: vec![], executable: false });
    sync.commit_changes("HEAD", &changes, "names").await.expect("these can be committed");
}

#[tokio::test]
async fn paths_are_taken_in_their_plain_form_and_nothing_changed_is_no_commit() {
    let user = User::new();
    let pool = user.place.pool();
    let sync = user.sync(&pool);
    let write =
        |path: &str| FileChange::Write { path: path.into(), contents: b"x".into(), executable: false };
    let changes = [write("./new//file"), FileChange::Remove { path: "./committed/".into() }];
    let message = "long ".repeat(50_000);
    let first = sync.commit_changes("HEAD", &changes, &message).await.expect("a commit");
    assert_eq!(user.git(&["ls-tree", "-r", "--name-only", &first]), ".gitignore\nnew/file");
    assert_eq!(user.git(&["log", "-1", "--format=%B", &first]).trim_end(), message.trim_end());
    assert_eq!(sync.commit_changes("HEAD", &changes, "again").await.expect("nothing to do"), first);
    let error = user.sync_on(&pool, "other").commit_changes("nothing", &changes, "no").await;
    assert!(matches!(error, Err(SyncError::NoBase(_))), "{error:?}");
    for empty in ["", ".", "./"] {
        let error = sync.commit_changes("HEAD", &[write(empty)], "no").await.expect_err("no path");
        assert!(matches!(error, SyncError::BadPath(_)), "{error}");
    }
}

#[tokio::test]
async fn changes_in_a_directory_of_a_tree_are_committed_there() {
    let user = User::new();
    let pool = user.place.pool();
    let (sync, below) =
        GitSync::around(pool.clone(), &user.tree().join("dir/deep"), BRANCH, GitOptions::default())
            .expect("a repository above it");
    assert_eq!(below, Path::new("dir/deep"));
    let change = FileChange::Write { path: "file".into(), contents: b"x".into(), executable: true };
    let commit = sync.commit_changes("HEAD", &[change.below(&below)], "below").await.expect("a commit");
    assert_eq!(user.git(&["ls-tree", "-r", "--name-only", &commit, "dir"]), "dir/deep/file");
    let none = GitSync::around(pool, user.root.path(), BRANCH, GitOptions::default());
    assert!(matches!(none, Err(SyncError::NotARepository { .. })));
    for (path, can) in [("a/b", true), ("./a", true), ("", false), ("../a", false), ("a/.git/x", false)] {
        assert_eq!(can_be_committed(Path::new(path)), can, "{path}");
    }
}

#[tokio::test]
async fn a_remote_can_be_a_name_a_path_or_several() {
    let user = User::new();
    let pool = user.place.pool();
    let sync = user.sync(&pool);
    let [one, two] = ["one.git", "two.git"].map(|name| remote(&user, name));
    let first = sync.snapshot(&all(), "first").await.expect("a snapshot");
    user.git(&["remote", "add", "origin", one.to_str().expect("a name")]);
    assert_eq!(sync.push("origin").await.expect("by its name"), Pushed::Created);
    let url = format!("file://{}", two.display());
    assert_eq!(sync.push(&url).await.expect("by its address"), Pushed::Created);
    assert_eq!(sync.push("../two.git").await.expect("as seen from the tree"), Pushed::UpToDate);
    assert_eq!([&one, &two].map(|remote| tip_of(remote)), [Some(first.commit.clone()), Some(first.commit)]);

    // Two addresses, and the second has gone another way.
    user.git(&["remote", "set-url", "--add", "origin", two.to_str().expect("a name")]);
    git_in(
        &two,
        &["update-ref", &format!("refs/heads/{BRANCH}"), &{
            let tree = git_in(&two, &["rev-parse", &format!("{BRANCH}^{{tree}}")]);
            git_in(&two, &["commit-tree", "-m", "theirs", &tree])
        }],
    );
    user.write("committed", "three\n");
    sync.snapshot(&all(), "second").await.expect("a snapshot");
    let error = sync.push("origin").await.expect_err("one of them has diverged");
    assert!(matches!(error, SyncError::Diverged { .. }), "{error}");
    assert_eq!(tip_of(&one), user.tip());

    let error = user.sync_on(&pool, "none").push("origin").await.expect_err("there is nothing to push");
    assert!(matches!(error, SyncError::NoSuchSnapshot(_)), "{error}");
}

/// What a configuration could have git run on its way to a remote.
#[tokio::test]
async fn nothing_the_repository_configures_is_run_by_a_push() {
    let user = User::new();
    let pool = user.place.pool();
    let sync = user.sync(&pool);
    sync.snapshot(&all(), "first").await.expect("a snapshot");
    let ran = user.tree().join("ran");
    let evil = format!("echo $0 >> {}; false", ran.display());
    for setting in ["core.sshCommand", "core.gitProxy", "remote.disk.receivepack", "core.askPass"] {
        user.git(&["config", setting, &evil]);
    }
    user.git(&["config", "credential.helper", &format!("!{evil}")]);
    user.git(&["config", "remote.disk.url", remote(&user, "remote.git").to_str().expect("a name")]);
    for address in [
        "ssh://user@127.0.0.1:1/x",
        "127.0.0.1:x",
        "git://127.0.0.1:1/x",
        "http://127.0.0.1:1/x",
        "ext::sh -c true",
        "fd::7",
    ] {
        sync.push(address).await.expect_err("nobody answers");
        assert!(!ran.exists(), "{address}: {:?}", fs::read_to_string(&ran));
    }
    sync.push("disk").await.expect("by git's own program");
    assert!(!ran.exists());
}
