//! Crashes while changes are applied: whenever they come, the directory is old or new after the next use.

use crate::overlays::{change, lower, overlay, snapshot};
use crate::support::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wardian_vfs::probe::Did;
use wardian_vfs::*;

const WORK: &str = "WARDIAN_VFS_CRASH";
/// More steps than there are: no crash.
const NEVER: u64 = 1 << 40;

/// Starts this program once more, to apply the changes to `dir` or to recover it, and to crash before a step.
fn start(what: &str, dir: &Path, steps: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["crashes::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(WORK, format!("{what}\n{steps}\n{}", dir.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits for a child that crashes, or ends. How many steps it took, if it got to the end.
fn ended(child: Child) -> Option<u64> {
    let output = child.wait_with_output().unwrap();
    if output.status.signal() == Some(libc::SIGKILL) {
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let taken = text.lines().find_map(|line| line.strip_prefix("taken ")).unwrap_or_else(|| panic!("{text}"));
    Some(taken.parse().unwrap())
}

#[test]
#[ignore = "not a test: what the tests of crashes start"]
fn child() {
    let Ok(work) = std::env::var(WORK) else { return };
    let mut work = work.splitn(3, '\n');
    let (what, steps, dir) = (work.next().unwrap(), work.next().unwrap(), work.next().unwrap());
    let steps: u64 = steps.parse().unwrap();
    let mut tree = None;
    if what == "apply" {
        let mut changed = overlay(Path::new(dir));
        change(&mut changed);
        tree = Some(changed);
    }
    probe::crash_after(steps);
    println!("\nready");
    match tree {
        Some(mut tree) => drop(tree.apply(b"/w").unwrap()),
        None => drop(host_mount(Path::new(dir), HostAccess::ReadWrite)),
    }
    println!("\ntaken {}", steps - probe::steps_left());
}

type Snapshot = BTreeMap<String, String>;

/// How the directory is before and after.
fn old_and_new() -> (Snapshot, Snapshot) {
    let dir = lower();
    let old = snapshot(dir.path());
    let mut tree = overlay(dir.path());
    change(&mut tree);
    tree.apply(b"/w").unwrap();
    (old, snapshot(dir.path()))
}

fn journals() -> Vec<PathBuf> {
    let all = fs::read_dir(state().join("apply")).into_iter().flatten().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_none()).collect()
}

fn key(dir: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(dir).unwrap();
    format!("{:x}-{:x}", found.dev(), found.ino())
}

fn recovery(dir: &Path, access: HostAccess) -> Recovery {
    match host_mount(dir, access) {
        Mount::Host(mount) => mount.recovery().clone(),
        _ => Recovery::None,
    }
}

/// After a crash: reading only, one sees no trace of the stage and is told; any other use repairs.
fn check_recovers(dir: &Path, old: &Snapshot, new: &Snapshot, when: &str) -> bool {
    let left = fs::read_dir(dir).unwrap().count();
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/r", host_mount(dir, HostAccess::ReadOnly)).unwrap();
    let names = ls(&mut tree, "/r");
    assert!(names.iter().all(|name| !name.contains("wardian")), "{when}: a guest sees {names:?}");
    let unfinished = recovery(dir, HostAccess::ReadOnly) == Recovery::Unfinished;
    assert!(unfinished || left == names.len(), "{when}: a stage is left and no journal");
    let recovered = recovery(dir, HostAccess::Overlay);
    let now = snapshot(dir);
    assert!(now == *old || now == *new, "{when}: neither old nor new: {now:#?}");
    match recovered {
        Recovery::None => assert!(!unfinished || now == *old, "{when}"),
        Recovery::Finished => assert_eq!(now, *new, "{when}"),
        Recovery::RolledBack { kept } => assert_eq!((kept, &now), (None, old), "{when}"),
        Recovery::Unfinished => panic!("{when}: still unfinished"),
    }
    assert_eq!(recovery(dir, HostAccess::ReadOnly), Recovery::None, "{when}: it is done only once");
    assert!(!state().join("apply").join(key(dir)).exists(), "{when}: the journal is left");
    now == *new
}

#[test]
fn a_crash_before_any_single_step_leaves_old_or_new() {
    let (old, new) = old_and_new();
    let total = ended(start("apply", lower().path(), NEVER)).expect("without a crash it ends");
    assert!(total > 40, "only {total} steps");
    let mut outcomes = [0, 0];
    for step in 0..total {
        let dir = lower();
        assert_eq!(ended(start("apply", dir.path(), step)), None, "no crash at step {step}");
        let is_new = check_recovers(dir.path(), &old, &new, &format!("step {step} of {total}"));
        outcomes[usize::from(is_new)] += 1;
        assert!(!is_new || step > total / 2, "new after step {step} of {total}");
    }
    assert!(outcomes[0] > 20 && outcomes[1] > 2, "{outcomes:?}");
}

#[test]
fn a_crash_while_recovering_leaves_old_or_new() {
    let (old, new) = old_and_new();
    let total = ended(start("apply", lower().path(), NEVER)).expect("without a crash it ends");
    for step in (0..total).step_by(5) {
        for again in 0.. {
            let dir = lower();
            ended(start("apply", dir.path(), step));
            let whole = ended(start("recover", dir.path(), again * 3)).is_some();
            check_recovers(dir.path(), &old, &new, &format!("step {step}, then {again}"));
            if whole {
                break;
            }
        }
    }
}

/// How long applying took, or that it was killed on the way.
enum Applied {
    In(Duration),
    Killed,
}

/// Applies the changes to `dir` in another process, and kills that at a random moment before `longest` is over, if given.
fn applied(dir: &Path, longest: Option<Duration>) -> Applied {
    let mut child = start("apply", dir, NEVER);
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap() == "ready"));
    let since = Instant::now();
    if let Some(longest) = longest {
        let mut random = [0; 8];
        getrandom::fill(&mut random).unwrap();
        std::thread::sleep(longest.mul_f64(u64::from_le_bytes(random) as f64 / u64::MAX as f64));
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    if longest.is_some() && status.signal() == Some(libc::SIGKILL) {
        return Applied::Killed;
    }
    assert!(status.success(), "{status}");
    Applied::In(since.elapsed())
}

/// `cargo xtask soak apply` kills a thousand.
#[test]
fn a_kill_at_any_moment_leaves_old_or_new() {
    let wanted = std::env::var("WARDIAN_SOAK_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let (old, new) = old_and_new();
    let mut longest = Duration::ZERO;
    let (mut kills, mut outcomes, mut repaired) = (0, [0, 0], 0);
    for number in 0.. {
        assert!(number < 20 * wanted, "only {kills} of {number} were killed before they ended");
        let dir = lower();
        // Every now and then one that is not killed says how long it takes.
        match applied(dir.path(), (number % 10 != 0).then_some(longest)) {
            Applied::Killed => kills += 1,
            Applied::In(time) => longest = longest.max(time),
        }
        let half = !matches!(snapshot(dir.path()), now if now == old || now == new);
        let is_new = check_recovers(dir.path(), &old, &new, &format!("process {number}"));
        outcomes[usize::from(is_new)] += 1;
        repaired += usize::from(half);
        if kills == wanted {
            break;
        }
    }
    let [old, new] = outcomes;
    println!(
        "{kills} kills, {} ended: {old} old, {new} new; {repaired} had to be repaired",
        old + new - kills
    );
}

#[test]
fn files_created_meanwhile_are_not_overwritten() {
    let total = ended(start("apply", lower().path(), NEVER)).unwrap();
    let mut met = 0;
    for step in 0..total {
        let dir = lower();
        ended(start("apply", dir.path(), step));
        let gone = dir.path().join("sub/a");
        if gone.exists() || recovery(dir.path(), HostAccess::ReadOnly) == Recovery::None {
            continue;
        }
        // `sub/a` has been moved away, and somebody makes another.
        fs::create_dir_all(dir.path().join("sub")).unwrap();
        fs::write(&gone, "theirs").unwrap();
        match recovery(dir.path(), HostAccess::ReadWrite) {
            Recovery::RolledBack { kept: Some(stage) } => {
                let stage = dir.path().join(String::from_utf8(stage).unwrap());
                let kept: Vec<_> = fs::read_dir(&stage).unwrap().map(|entry| entry.unwrap().path()).collect();
                assert_eq!(kept.len(), 1, "{kept:?}");
                assert_eq!(fs::read_to_string(&kept[0]).unwrap(), "a\n");
                met += 1;
            }
            Recovery::Finished => {}
            other => panic!("step {step}: {other:?}"),
        }
        assert_eq!(fs::read_to_string(&gone).unwrap(), "theirs");
    }
    assert!(met > 3, "{met}");
}

#[test]
fn simultaneous_applies_take_turns() {
    let dir = lower();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = dir.path();
            scope.spawn(move || {
                let mut tree = overlay(path);
                for file in 0..20 {
                    write(&mut tree, &format!("/w/of-{number}-{file}"), b"x");
                }
                tree.apply_unless_changed(b"/w").unwrap().unwrap();
            });
        }
    });
    let made = fs::read_dir(dir.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("of-"));
    assert_eq!(made.count(), 160);
    // Of two that change the same file the second is told, and changes nothing.
    let (mut first, mut second) = (overlay(dir.path()), overlay(dir.path()));
    write(&mut first, "/w/text", b"first");
    write(&mut second, "/w/text", b"second");
    write(&mut second, "/w/other", b"second");
    first.apply_unless_changed(b"/w").unwrap().unwrap();
    assert_eq!(second.apply_unless_changed(b"/w").unwrap().unwrap_err(), b"/w/text");
    assert_eq!(fs::read_to_string(dir.path().join("text")).unwrap(), "first");
    assert!(!dir.path().join("other").exists());
}

#[test]
fn a_guest_can_neither_see_nor_create_a_staging_directory() {
    let dir = lower();
    let name = ".wardian-apply-0123456789abcdef0123456789abcdef";
    fs::create_dir_all(dir.path().join("sub").join(name)).unwrap();
    fs::write(dir.path().join("sub").join(name).join("new-0"), "secret").unwrap();
    for access in [HostAccess::ReadOnly, HostAccess::ReadWrite, HostAccess::Overlay] {
        let mut tree = user_tree(Quota::NONE);
        tree.mount(b"/w", host_mount(dir.path(), access)).unwrap();
        let root = tree.root();
        assert_eq!(ls(&mut tree, "/w/sub"), ["a", "deep"]);
        for path in [format!("/w/sub/{name}"), format!("/w/sub/{name}/new-0")] {
            assert_eq!(tree.stat(&USER, &root, path.as_bytes(), true).unwrap_err(), Errno::ENOENT);
            assert_eq!(try_read(&mut tree, &path), Err(Errno::ENOENT));
        }
        if access == HostAccess::ReadWrite {
            let path = format!("/w/{name}").into_bytes();
            assert_eq!(tree.mkdir(&USER, &root, &path, 0o755), Err(Errno::EPERM));
            assert_eq!(tree.symlink(&USER, b"sub", &root, &path), Err(Errno::EPERM));
            assert_eq!(tree.rename(&USER, &root, b"/w/sub/a", &root, &path), Err(Errno::EPERM));
            assert_eq!(tree.link(&USER, &root, b"/w/sub/a", true, &root, &path), Err(Errno::EPERM));
            let flags = OpenFlags::CREATE | OpenFlags::WRITE;
            assert_eq!(tree.open(&USER, &root, &path, flags, 0o644).unwrap_err(), Errno::EPERM);
        }
        assert_eq!(tree.diff(b"/w").unwrap_or_default(), []);
    }
    assert!(dir.path().join("sub/a").exists() && dir.path().join("sub").join(name).join("new-0").exists());
}

#[test]
fn only_a_journal_of_ones_own_is_believed() {
    let (dir, kept) = (lower(), tempfile::tempdir().unwrap());
    let state = kept.path().join("state");
    let mount = |access| Mount::host_with_state(dir.path(), access, Some(state.clone()));
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/w", mount(HostAccess::Overlay).unwrap()).unwrap();
    write(&mut tree, "/w/text", b"new");
    tree.apply(b"/w").unwrap();
    let journals = state.join("apply");
    assert_eq!(fs::metadata(&journals).unwrap().permissions().mode() & 0o777, 0o700);
    // A directory that others can write to, a link, or a journal that others could have written.
    let bad = |mode| fs::set_permissions(&journals, fs::Permissions::from_mode(mode)).unwrap();
    bad(0o770);
    write(&mut tree, "/w/text", b"newer");
    assert_eq!(tree.apply(b"/w").unwrap_err(), Errno::EPERM);
    bad(0o700);
    let journal = journals.join(key(dir.path()));
    fs::write(&journal, "WARDAPL1").unwrap();
    assert_eq!(mount(HostAccess::ReadWrite).err(), Some(Errno::EPERM), "written by others, it seems");
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(mount(HostAccess::ReadWrite).err(), Some(Errno::EIO), "it says nothing that makes sense");
    fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &journal).unwrap();
    assert!(mount(HostAccess::ReadWrite).is_err());
    fs::remove_file(&journal).unwrap();
    tree.apply(b"/w").unwrap();
    // Without a place for journals there is nothing to recover from, and nothing can be applied.
    let nowhere = Mount::host_with_state(dir.path(), HostAccess::Overlay, None).unwrap();
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/w", nowhere).unwrap();
    write(&mut tree, "/w/text", b"newest");
    assert_eq!(tree.apply(b"/w").unwrap_err(), Errno::ENOENT);
    assert_eq!(fs::read_to_string(dir.path().join("text")).unwrap(), "newer");
}

/// After a power failure only what was synced is there for sure.
fn in_order(done: &[(Did, Vec<u8>)]) {
    let at = |did: Did| done.iter().enumerate().filter(move |(_, (what, _))| *what == did);
    let journals: Vec<usize> = at(Did::WriteJournal).map(|(at, _)| at).collect();
    let said = *journals.last().expect("a journal");
    let synced_between = |path: &[u8], from: usize, to: usize| {
        done[from..to]
            .iter()
            .any(|(what, which)| *what == Did::SyncAll || *what == Did::Sync && which == path)
    };
    for (chmod, (_, path)) in at(Did::Chmod).filter(|(at, _)| *at < said) {
        let told = String::from_utf8_lossy(path);
        let gone = done[chmod..said].contains(&(Did::RemoveDir, path.clone()));
        assert!(gone || synced_between(path, chmod, said), "the mode of {told} is not synced: {done:?}");
    }
    let (gone, (_, stage)) = at(Did::RemoveDir).next_back().expect("the stage is removed");
    assert!(stage.starts_with(b".wardian-apply-"), "{done:?}");
    let (removed, _) = at(Did::RemoveJournal).next_back().expect("the journal is removed");
    assert!(said < gone && synced_between(b"", gone, removed), "the stage's end is not synced: {done:?}");
}

#[test]
fn the_journal_says_nothing_that_is_not_synced() {
    let dir = lower();
    let mut tree = overlay(dir.path());
    change(&mut tree);
    probe::record();
    tree.apply(b"/w").unwrap();
    let done = probe::recorded();
    assert!(done.iter().any(|(did, _)| *did == Did::Chmod), "{done:?}");
    in_order(&done);
    // The same for what is undone.
    let total = ended(start("apply", lower().path(), NEVER)).unwrap();
    let (mut undone, mut modes) = (0, 0);
    for step in (0..total).step_by(3) {
        let dir = lower();
        assert_eq!(ended(start("apply", dir.path(), step)), None);
        probe::record();
        let recovered = recovery(dir.path(), HostAccess::ReadWrite);
        let done = probe::recorded();
        if matches!(recovered, Recovery::RolledBack { .. }) {
            in_order(&done);
            undone += 1;
            modes += usize::from(done.iter().any(|(did, _)| *did == Did::Chmod));
        }
    }
    assert!(undone > 5 && modes > 0, "{undone} {modes}");
}

#[test]
fn syncing_a_host_file_syncs_it() {
    let dir = lower();
    let mut tree = user_tree(Quota::NONE);
    tree.mount(b"/w", host_mount(dir.path(), HostAccess::ReadWrite)).unwrap();
    let file = open(&mut tree, "/w/text", OpenFlags::WRITE).unwrap();
    let sub = open(&mut tree, "/w/sub", OpenFlags::READ | OpenFlags::DIRECTORY).unwrap();
    write(&mut tree, "/mine", b"x");
    let mine = open(&mut tree, "/mine", OpenFlags::WRITE).unwrap();
    let before = probe::synced();
    tree.sync(&mine, false).unwrap();
    assert_eq!(probe::synced(), before, "what is in memory has nothing to wait for");
    for (number, (handle, data_only)) in [(&file, false), (&file, true), (&sub, false)].iter().enumerate() {
        tree.sync(handle, *data_only).unwrap();
        assert_eq!(probe::synced(), before + number as u64 + 1);
    }
    assert!(journals().iter().all(|journal| !journal.ends_with(key(dir.path()))));
}
