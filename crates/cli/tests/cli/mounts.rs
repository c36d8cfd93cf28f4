//! `wardian run --mount`.

use crate::{shown, wardian};

#[test]
fn a_read_only_mount_cannot_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let mount = format!("{}:/src:ro", dir.path().display());
    let (code, stdout, stderr) =
        shown(wardian(&["run", "--mount", &mount, "ls /src | head -3; rm -rf /src"]));
    assert_eq!(stdout, "a\nb\nc\n");
    assert_ne!(code, 0);
    assert!(stderr.to_lowercase().contains("read-only"), "{stderr}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
}

#[test]
fn an_unreadable_mount_is_one_line_and_exit_2() {
    let (code, stdout, stderr) = shown(wardian(&["run", "--mount", "/nowhere/at/all:/src", "true"]));
    assert_eq!((code, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{stderr}");
    assert!(stderr.contains("/nowhere/at/all"), "{stderr}");
}

#[test]
fn an_overlays_changes_are_shown_and_applied_only_when_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("text");
    std::fs::write(&file, "colour\n").expect("it can be written");
    let mount = format!("{}:/src:overlay", directory.path().display());
    let edit = "sed -i s/colour/color/ /src/text";
    let now = || std::fs::read_to_string(&file).expect("it is there");

    let (code, stdout, _) = shown(wardian(&["run", "--mount", &mount, "--diff", edit]));
    assert_eq!(code, 0);
    assert!(stdout.contains("--- a/text\n+++ b/text\n") && stdout.ends_with("-colour\n+color\n"), "{stdout}");
    assert_eq!(now(), "colour\n");

    let failing = format!("{edit}; exit 3");
    let (code, _, stderr) = shown(wardian(&["run", "--mount", &mount, "--apply", &failing]));
    assert_eq!(
        (code, stderr.as_str()),
        (3, "wardian: /src: nothing was applied, because the exit code is 3\n")
    );
    assert_eq!(now(), "colour\n", "what failed is not applied");

    let (code, _, stderr) = shown(wardian(&["run", "--mount", &mount, "--apply", edit]));
    assert_eq!((code, stderr.as_str()), (0, "wardian: /src: 1 change applied\n"));
    assert_eq!(now(), "color\n");

    let (code, _, stderr) = shown(wardian(&["run", "--apply", "true"]));
    assert!(code != 0 && stderr.contains("need an overlay"), "{stderr}");
}

#[test]
fn an_overlays_changes_are_committed_to_a_branch() {
    let directory = tempfile::tempdir().expect("a directory");
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-C"]).arg(directory.path());
        let output = git.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    git(&["init", "-q", "-b", "main"]);
    std::fs::create_dir(directory.path().join("src")).expect("a directory");
    for name in ["src/text", "src/gone", "src/turns"] {
        std::fs::write(directory.path().join(name), "colour\n").expect("it can be written");
    }
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    let mount = format!("{}:/src:overlay", directory.path().join("src").display());
    let script = "cd /src; sed -i s/colour/color/ text; chmod +x text; rm gone; ln -s text link; mkfifo pipe
        rm turns; mkdir turns; echo new > turns/new";
    let args = ["run", "--mount", &mount, "--commit", "agent/fix", "--message", "a fix", script];
    let (code, _, stderr) = shown(wardian(&args));
    assert_eq!(code, 0, "{stderr}");
    let tip = git(&["rev-parse", "agent/fix"]);
    assert!(stderr.contains(&format!("agent/fix is at {tip}")), "{stderr}");
    assert!(stderr.contains("pipe is not committed"), "{stderr}");
    assert_eq!(git(&["log", "-1", "--format=%s", "agent/fix"]), "a fix\n");
    assert_eq!(
        git(&["diff", "--no-renames", "--name-status", "main", "agent/fix"]),
        "D\tsrc/gone\nA\tsrc/link\nM\tsrc/text\nD\tsrc/turns\nA\tsrc/turns/new\n"
    );
    assert_eq!(git(&["show", "agent/fix:src/text"]), "color\n");
    let modes = git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "agent/fix"]);
    assert_eq!(modes, "120000 src/link\n100755 src/text\n100644 src/turns/new\n");
    assert_eq!(git(&["status", "--porcelain"]), "", "the user's own files are as they were");

    let (code, _, _) = shown(wardian(&["run", "--mount", &mount, "--commit", "agent/fix", "exit 3"]));
    assert_eq!((code, git(&["rev-parse", "agent/fix"])), (3, tip.clone()), "what failed is not committed");
    let (code, _, stderr) = shown(wardian(&["run", "--mount", &mount, "--commit", "main", "rm /src/text"]));
    assert!(code == 2 && stderr.contains("checked out"), "{stderr}");
}

/// Applies a change and crashes before the step after so many: what a test starts.
#[test]
#[ignore = "not a test: what the test of interrupted applies starts"]
fn crash() {
    use wardian_vfs::{Caller, HostAccess, Mount, OpenFlags, Quota, Tree, probe};
    let Ok(work) = std::env::var("WARDIAN_CLI_CRASH") else { return };
    let (steps, dir) = work.split_once(' ').expect("steps and a directory");
    let mut tree = Tree::new(Quota::NONE);
    tree.mount(b"/w", Mount::host(dir.as_ref(), HostAccess::Overlay).expect("a mount")).expect("mounted");
    let flags = OpenFlags::CREATE | OpenFlags::WRITE | OpenFlags::TRUNC;
    for name in ["/w/a", "/w/b", "/w/c"] {
        let mut file = tree.open(&Caller::ROOT, &tree.root(), name.as_bytes(), flags, 0o644).expect("a file");
        tree.write(&mut file, b"new\n").expect("written");
        tree.close(file);
    }
    probe::crash_after(steps.parse().expect("a number"));
    tree.apply(b"/w").expect("applied");
}

#[test]
fn an_interrupted_apply_is_reported_and_undone() {
    let (directory, state) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("another"));
    let at = |name: &str| directory.path().join(name);
    let contents = || ["a", "b", "c"].map(|name| std::fs::read_to_string(at(name)).expect("it is there"));
    let wardian = |mode: &str, script: &str| {
        let mount = format!("{}:/src:{mode}", directory.path().display());
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wardian"));
        command.args(["run", "--mount", &mount, script]).env("XDG_STATE_HOME", state.path());
        shown(command.output().expect("it runs"))
    };
    // The step at which one of three files is new, whichever it is.
    let halfway = (0..200).find(|steps| {
        ["a", "b", "c"].iter().for_each(|name| std::fs::write(at(name), "old\n").expect("written"));
        std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["mounts::crash", "--exact", "--ignored"])
            .env("WARDIAN_CLI_CRASH", format!("{steps} {}", directory.path().display()))
            .env("XDG_STATE_HOME", state.path())
            .output()
            .expect("it starts");
        let now = contents();
        let half = now.iter().any(|text| text == "new\n") && now.iter().any(|text| text == "old\n");
        // Those that crashed earlier have left nothing that matters.
        half || wardian("rw", "true").0 != 0
    });
    assert!(halfway.is_some_and(|steps| steps > 5), "{halfway:?}");
    let half = contents();
    let (code, stdout, stderr) = wardian("ro", "ls -A /src");
    assert_eq!((code, stdout.as_str()), (0, "a\nb\nc\n"), "{stderr}");
    assert!(stderr.starts_with("wardian: warning: ") && stderr.contains("interrupted"), "{stderr}");
    assert_eq!(contents(), half, "reading changes nothing");
    let (code, stdout, stderr) = wardian("overlay", "cat /src/?");
    assert_eq!((code, stdout.as_str()), (0, "old\nold\nold\n"), "{stderr}");
    assert!(stderr.contains("an interrupted apply was undone"), "{stderr}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 3);
    assert_eq!(wardian("ro", "true").2, "", "said once");
}
