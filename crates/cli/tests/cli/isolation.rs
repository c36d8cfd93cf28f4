//! `wardian run --isolation process`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{shown, wardian, wardian_with};

/// Whether this machine can hold a cell; else there is nothing to try.
fn can() -> bool {
    let (code, _, stderr) = shown(wardian(&["run", "--isolation", "process", "true"]));
    let lacks = code == 2 && stderr.contains("which this machine does not have");
    assert!(lacks || code == 0, "{code} {stderr}");
    !lacks
}

/// The same in both ways, with the same input.
fn same(words: &[&str], input: &[u8]) {
    let run = |how: &str| {
        let mut all = vec!["run", "--isolation", how];
        all.extend(words);
        shown(wardian_with(&all, input))
    };
    assert_eq!(run("process"), run("thread"), "{words:?}");
}

#[test]
fn a_script_in_a_process_is_as_in_a_thread() {
    if !can() {
        return;
    }
    same(&["echo hello | wc -c"], b"");
    same(&["read a; echo $a; wc -l; exit 3"], b"one\ntwo\nthree\n");
    same(&["cat | md5sum"], &vec![b'x'; 1_000_000]);
    same(&["--env", "X=1", "--cwd", "/tmp", "echo $X; pwd; echo >&2 both"], b"");
    same(&["echo $0: $@", "hello", "a", "b"], b"");
    same(&["for i in 1 2 3; do (echo $i; exit $i); done; kill -9 $$"], b"");
    same(&["--memory", "8M", "x=$(seq 3000000); echo $x | wc -c"], b"");
    same(&["--disk", "1M", "head -c 2000000 /dev/zero > big"], b"");
    same(&["--processes", "3", "sleep 0 | sleep 0 | sleep 0 | sleep 0 | sleep 0"], b"");
    same(&["seq 300000 | tail -1"], b"");
    same(&["seq 300000"], b"");
    same(&["no-such-command"], b"");
    same(&["--cwd", "/nowhere", "true"], b"");
}

#[test]
fn outputs_come_in_order() {
    if !can() {
        return;
    }
    let script = "for i in 1 2 3 4 5; do echo $i; echo $i >&2; done";
    let line = format!("{} run --isolation process '{script}' 2>&1", env!("CARGO_BIN_EXE_wardian"));
    let output = Command::new("sh").args(["-c", &line]).output().expect("it ends");
    assert_eq!(shown(output).1, "1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n");
}

#[test]
fn a_timeout_in_a_process_is_124() {
    if !can() {
        return;
    }
    same(&["--timeout", "200ms", "while :; do :; done"], b"");
    // How much it writes until then is not always the same.
    let words = ["run", "--isolation", "process", "--timeout", "200ms", "yes"];
    let (code, stdout, stderr) = shown(wardian(&words));
    assert_eq!((code, stderr.as_str()), (124, "wardian: timed out after 200 ms\n"));
    assert!(stdout.starts_with("y\ny\n"));
}

#[test]
fn a_result_of_a_process_is_an_object() {
    if !can() {
        return;
    }
    let (code, stdout, _) = shown(wardian(&[
        "run",
        "--isolation",
        "process",
        "--json",
        "echo out; echo err >&2; seq 1000000; exit 4",
    ]));
    let result: serde_json::Value = serde_json::from_str(&stdout).expect("an object");
    assert_eq!((code, &result["exitCode"]), (4, &4.into()));
    assert_eq!(result["truncated"]["stdout"], true);
    assert_eq!((&result["stderr"], &result["limit"]), (&"err\n".into(), &"stdoutBytes".into()));
    assert_eq!(result["stdout"].as_str().map(str::len), Some(1 << 20));
}

#[test]
fn a_killed_process_is_an_ordinary_end() {
    if !can() {
        return;
    }
    let mut run = Command::new(env!("CARGO_BIN_EXE_wardian"))
        .args(["run", "--isolation", "process", "--json", "cat > /dev/null; sleep 60"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    // More than a pipe holds: when it is written, the script has read of it.
    let mut input = run.stdin.take().expect("a pipe");
    input.write_all(&vec![0; 1_000_000]).expect("it is read");
    let tasks = std::fs::read_dir(format!("/proc/{}/task", run.id())).expect("it runs");
    let children =
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let cell: i32 = children.collect::<String>().trim().parse().expect("one child: the cell");
    let cell = rustix::process::Pid::from_raw(cell).expect("a process");
    rustix::process::kill_process(cell, rustix::process::Signal::KILL).expect("it is there");
    let ended = run.wait_with_output().expect("it ends");
    let result: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("an object");
    assert_eq!((ended.status.code(), &result["exitCode"]), (Some(137), &137.into()));
    assert_eq!(result["errorClass"], "WORKER_CRASHED");
    assert!(result["stderr"].as_str().is_some_and(|said| said.contains("signal: 9")), "{result}");
}

#[test]
fn what_a_process_cannot_have_yet_is_refused_by_name() {
    let refused: [&[&str]; 9] = [
        &["--mount", ".:/src"],
        &["--allow-host", "example.com"],
        &["--network", "full"],
        &["--replay", "x"],
        &["--name", "x"],
        &["--image", "x"],
        &["--audit", "x"],
        &["--diff"],
        &["--commit", "x"],
    ];
    for options in refused {
        let words = [&["run", "--isolation", "process"], options, &["true"]].concat();
        let (code, _, stderr) = shown(wardian(&words));
        let named = format!("{} is not supported with --isolation process yet", options[0]);
        assert!(code == 2 && stderr.contains(&named), "{code} {stderr}");
    }
    let (code, _, stderr) = shown(wardian(&["run", "--isolation", "other", "true"]));
    assert!(code == 2 && stderr.contains("--isolation"), "{stderr}");
}
