//! `wardian audit verify`.

use ::wardian::{AuditLog, Rotation, Sandbox, blocking};

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
    assert!(stdout.ends_with("whole; records: 4, files: 1\n"), "{stdout}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("echo recorded", "echo innocent")).unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "verify", path]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("line 2: was changed"), "{stderr}");
    assert_eq!(shown(wardian(&["audit", "verify", "/nowhere"])).0, 2);
}
