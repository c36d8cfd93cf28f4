//! What remains of an operation that is interrupted at any step: killed, given up, or overtaken by somebody else.

use super::*;

/// A git that does something at its `at`-th call, before or after the real one.
fn git_that(user: &User, at: u32, before: &str, after: &str) -> PathBuf {
    let text = format!(
        "if [ $n = {at} ]; then {before}; fi\n/usr/bin/git \"$@\"; code=$?\n\
         if [ $n = {at} ]; then {after}; fi\nexit $code\n"
    );
    git_script(user, &text)
}

/// A git that is a script; its `$n` is the number of the call.
fn git_script(user: &User, text: &str) -> PathBuf {
    let script = user.root.path().join("git");
    let count = user.tree().join(".git/count");
    let _ = fs::remove_file(&count);
    let text = format!(
        "#!/bin/sh\nn=0; [ ! -e {0} ] || read -r n < {0}\nn=$((n + 1)); echo $n > {0}\n{text}",
        count.display()
    );
    write_program(&script, &text);
    script
}

/// What must hold whenever something was cut short.
fn is_sound(user: &User, state: &[String], index: &[u8], tips: &[Option<String>]) {
    assert_eq!(user.state(), state);
    assert_eq!(user.index(), index);
    user.git(&["fsck", "--strict", "--no-dangling"]);
    assert!(tips.contains(&user.tip()), "{:?}", user.tip());
    assert!(!user.tree().join(".git/wardian-sync").exists());
}

/// What comes over git at one of its steps, before its work or after it.
const INTERRUPTIONS: [(&str, &str); 3] = [("kill -9 $$", ":"), (":", "kill -9 $$"), ("exit 77", ":")];

/// Interrupts an operation at each of its steps in turn, in every way, until there are no more steps. Whatever was cut
/// short, `before_or_after` looks at what is left, and the same again then succeeds. Answers how many steps there were.
async fn interrupted_everywhere<T, F: Future<Output = Result<T, SyncError>>>(
    user: &User,
    pool: &WorkerPool,
    prepare: impl Fn(&str),
    operation: impl Fn(GitSync) -> F,
    before_or_after: impl Fn(&str),
) -> u32 {
    let mut steps = 0;
    for (before, after) in INTERRUPTIONS {
        for at in 1.. {
            let round = format!("{before} at {at} {after}");
            prepare(&round);
            let (state, index, old) = (user.state(), user.index(), user.tip());
            let program = git_that(user, at, before, after);
            let outcome = operation(user.sync_with(pool, &program)).await;
            let made: u32 = fs::read_to_string(user.tree().join(".git/count"))
                .expect("it was called")
                .trim()
                .parse()
                .expect("a number");
            let new = user.tip();
            if let Some(new) = new.as_ref().filter(|new| Some(*new) != old.as_ref()) {
                let parent = user.git(&["log", "-1", "--format=%P", new]);
                assert!(old.as_ref().is_none_or(|old| *old == parent), "{round}");
            }
            is_sound(user, &state, &index, &[old, new]);
            before_or_after(&round);
            if made < at {
                outcome.unwrap_or_else(|error| panic!("{round}: nothing was cut short, but {error}"));
                steps = steps.max(made);
                break;
            }
            operation(user.sync(pool)).await.unwrap_or_else(|error| panic!("again after {round}: {error}"));
        }
    }
    steps
}

#[tokio::test]
async fn a_snapshot_can_be_cut_short_at_any_step() {
    let user = User::new();
    let pool = user.place.pool();
    let steps = interrupted_everywhere(
        &user,
        &pool,
        |round| user.write("ignored", round),
        async |sync| sync.snapshot(&all(), "cut short").await.map(drop),
        |_| {},
    )
    .await;
    assert!(steps >= 10, "{steps}");
    let snapshot = user.sync(&pool).snapshot(&all(), "whole").await.expect("a snapshot");
    assert!(!snapshot.new, "the last try was whole");
}

#[tokio::test]
async fn a_commit_of_changes_can_be_cut_short_at_any_step() {
    let user = User::new();
    let pool = user.place.pool();
    let change = std::cell::RefCell::new(String::new());
    let steps = interrupted_everywhere(
        &user,
        &pool,
        |round| *change.borrow_mut() = round.to_owned(),
        async |sync| {
            let contents = change.borrow().clone().into_bytes();
            let changes = [
                FileChange::Write { path: "committed".into(), contents, executable: false },
                FileChange::Remove { path: ".gitignore".into() },
            ];
            sync.commit_changes("HEAD", &changes, "cut short").await.map(drop)
        },
        |round| {
            let Some(tip) = user.tip() else { return };
            // Both changes of one commit, or both of the one before.
            assert_eq!(user.git(&["ls-tree", "--name-only", &tip]), "committed", "{round}");
        },
    )
    .await;
    assert!(steps >= 10, "{steps}");
    let last = change.borrow().clone();
    assert_eq!(user.git(&["show", &format!("{BRANCH}:committed")]), last);
}

#[tokio::test]
async fn a_restore_can_be_cut_short_at_any_step() {
    let user = User::new();
    let pool = user.place.pool();
    let snapshot = user.sync(&pool).snapshot(&all(), "all").await.expect("a snapshot");
    let into = user.root.path().join("restored");
    let names = || {
        let mut names: Vec<_> = fs::read_dir(user.root.path()).expect("entries").flatten().collect();
        names.retain(|entry| !["git", "tree"].map(Into::into).contains(&entry.file_name()));
        names.iter().map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    let steps = interrupted_everywhere(
        &user,
        &pool,
        |_| drop(fs::remove_dir_all(&into)),
        async |sync| match sync.restore(&snapshot.commit, &into).await {
            // The one before had come to its end.
            Err(SyncError::NotEmpty(_)) => Ok(()),
            restored => restored,
        },
        |round| {
            // All, or nothing, and nothing beside it.
            assert!(names().is_empty() || names() == ["restored"], "{round}: {:?}", names());
            if into.exists() {
                let mut compare = Command::new("diff");
                compare.args(["-r", "--exclude=.git"]).args([user.tree(), into.clone()]);
                assert!(compare.status().expect("diff").success(), "{round}");
            }
        },
    )
    .await;
    assert!(steps >= 4, "{steps}");
    assert!(into.exists());
}

#[tokio::test]
async fn a_push_can_be_cut_short_at_any_step() {
    let user = User::new();
    let pool = user.place.pool();
    let remote = remote(&user, "remote.git");
    let address = remote.to_str().expect("a name");
    let before = std::cell::RefCell::new(None);
    let steps = interrupted_everywhere(
        &user,
        &pool,
        |round| {
            user.git(&["update-ref", &format!("refs/heads/{BRANCH}"), &fresh_commit(&user, round)]);
            before.replace(tip_of(&remote));
        },
        async |sync| sync.push(address).await.map(drop),
        |round| {
            let there = tip_of(&remote);
            assert!(there == user.tip() || there == *before.borrow(), "{round}: {there:?}");
            git_in(&remote, &["fsck", "--strict", "--no-dangling"]);
        },
    )
    .await;
    assert!(steps >= 3, "{steps}");
    assert_eq!(tip_of(&remote), user.tip());
}

/// A commit on top of the branch, made by somebody else.
fn fresh_commit(user: &User, message: &str) -> String {
    let tree = user.git(&["rev-parse", "HEAD^{tree}"]);
    let mut args = vec!["commit-tree", "-m", message, &tree];
    let tip = user.tip();
    args.extend(tip.iter().flat_map(|tip| ["-p", tip.as_str()]));
    user.git(&args)
}

/// A hook that kills the git that holds a lock, which then stays.
fn kill_who_holds_the_lock(git_directory: &Path) -> PathBuf {
    let hook = git_directory.join("hooks/reference-transaction");
    fs::create_dir_all(hook.parent().expect("a directory")).expect("hooks");
    write_program(&hook, "#!/bin/sh\n[ \"$1\" != prepared ] || kill -9 $PPID\n");
    hook
}

#[tokio::test]
async fn a_lock_left_by_a_killed_git_does_not_block() {
    let user = User::new();
    let pool = user.place.pool();
    // Git with hooks, which Wardian switches off with settings that come first.
    let with_hooks = git_script(&user, "while [ \"$1\" = -c ]; do shift 2; done\nexec /usr/bin/git \"$@\"\n");
    let lock = user.tree().join(".git/refs/heads").join(format!("{BRANCH}.lock"));
    let (state, index) = (user.state(), user.index());

    let hook = kill_who_holds_the_lock(&user.tree().join(".git"));
    let error = user.sync_with(&pool, &with_hooks).snapshot(&all(), "killed").await.expect_err("killed");
    assert!(matches!(error, SyncError::CutShort { step: "update-ref", .. }), "{error}");
    is_sound(&user, &state, &index, &[None]);
    assert!(!lock.exists());
    fs::remove_file(hook).expect("no hook any more");
    user.sync(&pool).snapshot(&all(), "again").await.expect("it works again");

    // A lock of an unknown process, of a host that was killed itself: it goes when it is old, and not before.
    user.write("committed", "three\n");
    fs::write(&lock, "").expect("a lock");
    let error = user.sync(&pool).snapshot(&all(), "locked").await.expect_err("locked");
    assert!(matches!(error, SyncError::Git { step: "update-ref", .. }), "{error}");
    assert!(lock.exists());
    assert!(
        Command::new("touch").args(["-d", "2 minutes ago"]).arg(&lock).status().expect("touch").success()
    );
    user.sync(&pool).snapshot(&all(), "at last").await.expect("nobody holds it");

    // The same in the remote.
    let remote = remote(&user, "remote.git");
    let address = remote.to_str().expect("a name");
    let hook = kill_who_holds_the_lock(&remote);
    user.sync(&pool).push(address).await.expect_err("killed there");
    fs::remove_file(hook).expect("no hook any more");
    assert_eq!(user.sync(&pool).push(address).await.expect("it works again"), Pushed::Created);
}

#[tokio::test]
async fn a_caller_that_gives_up_waiting_leaves_nothing_half_done() {
    let user = User::new();
    let pool = user.place.pool();
    let (state, index) = (user.state(), user.index());
    let reached = user.tree().join(".git/reached");
    for at in [1, 4, 7, 9] {
        let _ = fs::remove_file(&reached);
        let program = git_that(&user, at, &format!("touch {}; sleep 1000", reached.display()), ":");
        let sync = user.sync_with(&pool, &program);
        let call = tokio::spawn(async move { sync.snapshot(&all(), "given up").await.map(drop) });
        until("the step", || reached.exists()).await;
        call.abort();
        assert!(call.await.expect_err("given up").is_cancelled());
        until("the end of the program", || pool.stats().children == 0).await;
        is_sound(&user, &state, &index, &[None]);
    }
}

#[tokio::test]
async fn a_branch_that_moved_meanwhile_is_reported() {
    let user = User::new();
    let pool = user.place.pool();
    // Somebody moves it after it was read and before it is written.
    let program = git_that(&user, 6, &format!("/usr/bin/git update-ref refs/heads/{BRANCH} HEAD"), ":");
    let error = user.sync_with(&pool, &program).snapshot(&all(), "late").await.expect_err("it moved");
    assert!(matches!(error, SyncError::Moved(_)), "{error}");
    assert_eq!(user.tip(), Some(user.git(&["rev-parse", "HEAD"])));
}

#[tokio::test]
async fn what_a_dead_process_left_is_cleared_away() {
    let user = User::new();
    let pool = user.place.pool();
    let abandoned = user.tree().join(".git/wardian-sync/4194305-old");
    fs::create_dir_all(&abandoned).expect("a directory");
    let snapshot = user.sync(&pool).snapshot(&all(), "first").await.expect("a snapshot");
    assert!(!abandoned.exists());
    let abandoned = user.root.path().join(".restored.wardian-4194305-old");
    fs::create_dir(&abandoned).expect("a directory");
    fs::write(abandoned.join("half"), "").expect("a file");
    user.sync(&pool).restore(&snapshot.commit, &user.root.path().join("restored")).await.expect("restored");
    assert!(!abandoned.exists());
}
