//! Files made by one sqlite3 are read by the other, and writers do not get into each other's way.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const OURS: &str = env!("CARGO_BIN_EXE_sqlite3");
const ORIGINAL: &str = "/usr/bin/sqlite3";

/// An empty directory that is gone after the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("wardian-sqlite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory can be made");
        Scratch(path)
    }

    fn run(&self, program: &str, arguments: &[&str], input: &[u8]) -> Output {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        // Who does not read its input is not to blame.
        child.stdin.take().expect("piped").write_all(input).ok();
        child.wait_with_output().expect("it ends")
    }

    /// What a run wrote that went well.
    fn output(&self, program: &str, arguments: &[&str], input: &[u8]) -> String {
        let output = self.run(program, arguments, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{program} {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

const CONTENT: &str = "
    CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d BLOB);
    INSERT INTO t VALUES(1,'it''s',0.1,x'00ff'),(2,NULL,-19.99,NULL),(3,'l1'||char(10)||'l2',1e300,x'');
    WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i+1 FROM n WHERE i<3000)
        INSERT INTO t SELECT i, printf('%d bottles',i), i/7.0, CAST(i AS BLOB) FROM n;
    CREATE INDEX tb ON t(b);
    CREATE VIEW v AS SELECT a, b FROM t WHERE a < 10;
    CREATE VIRTUAL TABLE ft USING fts5(body);
    INSERT INTO ft SELECT b FROM t WHERE b IS NOT NULL;
    CREATE TABLE w(k PRIMARY KEY, v) WITHOUT ROWID;
    INSERT INTO w VALUES('x',1),('y',2);
";

const QUESTIONS: &str = "
    SELECT count(*), sum(a), round(sum(c)/1e300,5), group_concat(DISTINCT typeof(d)) FROM t;
    SELECT * FROM v;
    SELECT count(*) FROM ft WHERE ft MATCH 'bottles';
    SELECT quote(b), quote(d) FROM t WHERE a IN (1,2,3,2999);
    SELECT * FROM w;
    PRAGMA integrity_check;
";

#[test]
fn files_and_dumps_go_both_ways() {
    if !Path::new(ORIGINAL).exists() {
        eprintln!("SKIPPED: there is no {ORIGINAL} to exchange files with");
        return;
    }
    let scratch = Scratch::new("exchange");
    for (maker, reader, file) in [(OURS, ORIGINAL, "ours.db"), (ORIGINAL, OURS, "theirs.db")] {
        scratch.output(maker, &[file], CONTENT.as_bytes());
        let here = scratch.output(maker, &[file], QUESTIONS.as_bytes());
        let there = scratch.output(reader, &[file], QUESTIONS.as_bytes());
        assert!(here.contains("2997|") || here.contains("3000|"), "{here}");
        assert_eq!(here, there, "{file}");

        let dump = scratch.output(maker, &[file, ".dump"], b"");
        assert_eq!(dump, scratch.output(reader, &[file, ".dump"], b""), "{file}");
        let copy = format!("copy-of-{file}");
        scratch.output(reader, &[&copy], dump.as_bytes());
        assert_eq!(dump, scratch.output(maker, &[&copy, ".dump"], b""), "{file}");
    }
}

/// As in a sandbox, where a lock is a directory.
const DOTFILE: [&str; 2] = ["-vfs", "unix-dotfile"];

#[test]
fn two_writers_take_turns() {
    let scratch = Scratch::new("writers");
    let [option, vfs] = DOTFILE;
    scratch.output(OURS, &[option, vfs, "x.db", "CREATE TABLE t(who, n)"], b"");
    let script = |who: &str| {
        let insert = |n: usize| format!("BEGIN IMMEDIATE; INSERT INTO t VALUES('{who}',{n}); COMMIT;\n");
        format!(".timeout 60000\n{}", (0..100).map(insert).collect::<String>())
    };
    std::thread::scope(|scope| {
        for who in ["one", "two", "three"] {
            let scratch = &scratch;
            scope.spawn(move || scratch.output(OURS, &[option, vfs, "x.db"], script(who).as_bytes()));
        }
    });
    let query = "SELECT who, count(*), sum(n) FROM t GROUP BY who ORDER BY who; PRAGMA integrity_check";
    let found = scratch.output(OURS, &[option, vfs, "x.db", query], b"");
    assert_eq!(found, "one|100|4950\nthree|100|4950\ntwo|100|4950\nok\n");
    assert!(!scratch.0.join("x.db.lock").exists());
}

#[test]
fn a_writer_that_is_killed_locks_nobody_out() {
    let scratch = Scratch::new("killed");
    let [option, vfs] = DOTFILE;
    scratch.output(OURS, &[option, vfs, "x.db", "CREATE TABLE t(n); INSERT INTO t VALUES(1)"], b"");
    let mut writer = Command::new(OURS)
        .args([option, vfs, "x.db"])
        .current_dir(&scratch.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut script = writer.stdin.take().expect("piped");
    script.write_all(b"BEGIN EXCLUSIVE; INSERT INTO t VALUES(2); SELECT 'locked';\n").expect("it reads");
    let mut answer = [0; 7];
    std::io::Read::read_exact(writer.stdout.as_mut().expect("piped"), &mut answer).expect("it answers");
    assert!(scratch.0.join("x.db.lock").exists());

    // While it lives it is waited for, in vain.
    let busy = scratch.run(OURS, &[option, vfs, "x.db", "SELECT count(*) FROM t"], b"");
    assert_eq!(String::from_utf8_lossy(&busy.stderr), "Error: in prepare, database is locked (5)\n");
    writer.kill().expect("it can be killed");
    writer.wait().expect("it ends");
    let found = scratch.output(OURS, &[option, vfs, "x.db", "SELECT count(*) FROM t"], b"");
    assert_eq!(found, "1\n");
}

#[test]
fn a_write_ahead_log_is_for_one_at_a_time_where_locks_are_directories() {
    let scratch = Scratch::new("wal");
    let [option, vfs] = DOTFILE;
    let make = "PRAGMA journal_mode=wal; CREATE TABLE t(n); INSERT INTO t VALUES(5)";
    assert_eq!(scratch.output(OURS, &["x.db", make], b""), "wal\n");
    // It is read and written all the same.
    let change = "INSERT INTO t VALUES(6); SELECT sum(n) FROM t; PRAGMA journal_mode";
    assert_eq!(scratch.output(OURS, &[option, vfs, "x.db", change], b""), "11\nwal\n");
    // A new file keeps its rollback journal.
    assert_eq!(scratch.output(OURS, &[option, vfs, "y.db", "PRAGMA journal_mode=wal"], b""), "delete\n");
}
