//! What a push takes from the user's repository: its objects, where its remotes are, what it says about HTTP, and nothing more.

use std::fs;
use std::path::Path;

use wardian_hosttools::git_sync::Pushed;

use super::{BRANCH, User, all, git_in, remote, tip_of};
use crate::rig::write_program;

/// A push may start programs, and what git 2.54 and later run of a configuration (`hook.NAME.command`) no setting switches
/// off: so it must not see it. A script in the place of git notes what is seen.
#[tokio::test]
async fn a_push_reads_nothing_of_the_repository_that_names_a_program() {
    let user = User::new();
    let pool = user.place.pool();
    let seen = user.tree().join(".git/seen");
    let script = user.root.path().join("git");
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" push \"*) /usr/bin/git config --list >> {} ;; esac\nexec /usr/bin/git \"$@\"\n",
        seen.display()
    );
    write_program(&script, &text);
    let (one, two) = (remote(&user, "one.git"), remote(&user, "two.git"));
    for (key, value) in [
        ("hook.canary.command", "touch canary"),
        ("hook.canary.event", "reference-transaction"),
        ("include.path", "canary"),
        ("remote.both.vcs", "canary"),
        ("remote.both.url", one.to_str().expect("a name")),
        ("http.proxy", "http://proxy.example:3128"),
        ("http.https://example.org/.extraHeader", "a: \"b\""),
    ] {
        user.git(&["config", key, value]);
    }
    user.git(&["config", "--add", "remote.both.url", two.to_str().expect("a name")]);
    fs::write(user.tree().join(".git/canary"), "[pager]\n\tpush = touch canary\n").expect("a file");

    let sync = user.sync_with(&pool, &script);
    let snapshot = sync.snapshot(&all(), "all").await.expect("a snapshot");
    assert_eq!(sync.push("both").await.expect("it is pushed"), Pushed::Created);
    assert_eq!([tip_of(&one), tip_of(&two)], [Some(snapshot.commit.clone()), Some(snapshot.commit)]);
    let seen = fs::read_to_string(seen).expect("what it saw");
    assert!(seen.contains("http.proxy=http://proxy.example:3128"), "{seen}");
    assert!(seen.contains("http.https://example.org/.extraheader=a: \"b\""), "{seen}");
    assert!(!seen.contains("canary"), "{seen}");
    assert!(!user.tree().join(".git/wardian-sync").exists());
}

/// History that is not there is not missed.
#[tokio::test]
async fn a_shallow_repository_can_be_pushed() {
    let user = User::new();
    let pool = user.place.pool();
    user.git(&["add", "-A"]);
    user.git(&["commit", "-qm", "second"]);
    let remote = remote(&user, "remote.git");
    user.git(&["push", "-q", remote.to_str().expect("a name"), "main"]);
    let from = format!("file://{}", remote.display());
    git_in(user.root.path(), &["clone", "-q", "-b", "main", "--depth=1", &from, "shallow"]);
    let tree = user.root.path().join("shallow");
    assert!(tree.join(".git/shallow").exists());
    let options = wardian_hosttools::git_sync::GitOptions::default();
    let sync = super::GitSync::new(pool, &tree, BRANCH, options).expect("a repository");
    let change = super::FileChange::Remove { path: Path::new("committed").into() };
    let commit = sync.commit_changes("HEAD", &[change], "changes").await.expect("a commit");
    assert_eq!(sync.push("origin").await.expect("it is pushed"), Pushed::Created);
    assert_eq!(tip_of(&remote), Some(commit));
}
