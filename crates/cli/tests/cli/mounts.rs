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
    assert_eq!(shown(wardian(&["run", "--mount", &mount, "--apply", &failing])).0, 3);
    assert_eq!(now(), "colour\n", "what failed is not applied");

    let (code, _, stderr) = shown(wardian(&["run", "--mount", &mount, "--apply", edit]));
    assert_eq!((code, stderr.as_str()), (0, "wardian: /src: 1 change applied\n"));
    assert_eq!(now(), "color\n");

    let (code, _, stderr) = shown(wardian(&["run", "--apply", "true"]));
    assert!(code != 0 && stderr.contains("need an overlay"), "{stderr}");
}
