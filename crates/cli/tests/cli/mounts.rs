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
