//! `wardian audit`.

use ::wardian::{AuditLog, AuditRotation as Rotation, Sandbox, blocking};

use crate::{shown, wardian};

#[test]
fn a_whole_log_passes_and_a_changed_one_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    let sandbox = blocking::Sandbox::new(Sandbox::builder().audit(&log)).unwrap();
    sandbox.run("echo recorded").unwrap();
    sandbox.destroy().unwrap();
    let path = file.to_str().unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "verify", path]));
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.ends_with("intact; records: 4, files: 1\n"), "{stdout}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("echo recorded", "echo innocent")).unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "verify", path]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("line 2: was changed"), "{stderr}");
    assert_eq!(shown(wardian(&["audit", "verify", "/nowhere"])).0, 2);
}

#[test]
fn repair_completes_an_interrupted_write_and_refuses_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let path = file.to_str().unwrap();
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    for _ in 0..3 {
        log.record("", "test", Default::default()).unwrap();
    }
    let (code, stdout, _) = shown(wardian(&["audit", "repair", path]));
    assert_eq!((code, stdout.contains("nothing to repair")), (0, true), "{stdout}");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], b"{\"hash\":\"0"].concat()).unwrap();
    let (code, _, stderr) = shown(wardian(&["audit", "verify", path]));
    assert!(
        code == 1 && stderr.contains("interrupted") && stderr.contains("wardian audit repair"),
        "{stderr}"
    );
    let (code, stdout, stderr) = shown(wardian(&["audit", "repair", path]));
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(
        stdout.contains("audit.jsonl.torn-4") && stdout.ends_with("intact; records: 4, files: 1\n"),
        "{stdout}"
    );
    assert_eq!(shown(wardian(&["audit", "verify", path])).0, 0);

    std::fs::write(&file, &whole).unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "repair", path]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("ends with record 3, but should with 4"), "{stderr}");
    assert_eq!(shown(wardian(&["audit", "repair", "/nowhere"])).0, 2);
}
