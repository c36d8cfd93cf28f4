//! Every command with an output that is full, that is closed or that nobody reads: an error or a quiet end, never a panic, never a success.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use ::wardian::{AuditLog, AuditRotation as Rotation};

/// Something to do for every command. `FILE` is a log, `DIR` a directory with a file in it.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["help", "run"],
    &["run", "--help"],
    &["run", "echo hi"],
    &["run", "seq 100000"],
    &["run", "--json", "echo hi"],
    &["run", "--mount", "DIR:/src:overlay", "--diff", "echo more >> /src/file"],
    &["prepare"],
    &["serve", "--stdio"],
    &["tools", "run", "--jail", "DIR", "--", "cat", "file"],
    &["tools", "check", "--jail", "DIR", "--", "cat", "file"],
    &["tools", "check", "--jail", "DIR", "--", "no-such-tool"],
    &["tools", "policy", "show"],
    &["tools", "doctor", "--jail", "DIR"],
    &["completions", "bash"],
    &["doctor"],
    &["man"],
    &["completions", "zsh"],
    &["audit", "verify", "FILE"],
    &["audit", "repair", "FILE"],
    &["sandbox", "--help"],
    &["run", "--name", "one", "seq 100000"],
    &["sandbox", "ls"],
    &["sandbox", "log", "one"],
    &["sandbox", "diff", "one", "1"],
    &["sandbox", "run", "one", "echo hi"],
    &["sandbox", "restore", "one", "2"],
    &["image", "--help"],
    &["image", "list"],
    &["image", "inspect", "data"],
    &["store", "usage"],
    &["store", "verify"],
    &["store", "repair"],
    &["store", "gc"],
];
/// Commands that have nothing to say where they succeed, and those that only make what others then show.
const SILENT: &[&[&str]] = &[
    &["sandbox", "new"],
    &["sandbox", "shell"],
    &["sandbox", "branch"],
    &["sandbox", "tag"],
    &["sandbox", "rm"],
    &["sandbox", "export"],
    &["sandbox", "import"],
    &["image", "build"],
    &["image", "rm"],
    &["image", "export"],
    &["image", "import"],
    // It needs an object store.
    &["store", "flush"],
    // The shell needs a terminal; an MCP server writes only what its client asks for.
    &["shell"],
    &["mcp"],
];

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("dir")).unwrap();
    fs::write(place.path().join("dir/file"), "text\n").unwrap();
    let log = AuditLog::to_file(place.path().join("log"), Rotation::default()).unwrap();
    log.record("", "test", Default::default()).unwrap();
    let script = place.path().join("script");
    fs::write(&script, "echo data > data\n").unwrap();
    for words in [
        &["run", "--name", "one", "echo text > file"][..],
        &["image", "build", "-f", script.to_str().unwrap(), "--name", "data"],
    ] {
        let (code, stderr) = run(words, place.path(), Stdio::null());
        assert_eq!(code, 0, "{words:?}: {stderr}");
    }
    place
}

/// The exit code and standard error of a command whose standard output is `stdout`.
fn run(words: &[&str], place: &Path, stdout: Stdio) -> (i32, String) {
    run_redirected(words, place, stdout, "")
}

/// The same, behind a redirection as a shell makes it.
fn run_redirected(words: &[&str], place: &Path, stdout: Stdio, redirection: &str) -> (i32, String) {
    let request = place.join("request");
    fs::write(&request, "{\"id\":1,\"method\":\"create\"}\n{\"id\":2,\"method\":\"run\",\"params\":{\"command\":\"seq 9\"}}\n").unwrap();
    let (dir, log) = (place.join("dir").display().to_string(), place.join("log").display().to_string());
    let words = words.iter().map(|word| word.replace("DIR", &dir).replace("FILE", &log));
    let output = Command::new("sh")
        .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}"), env!("CARGO_BIN_EXE_wardian")])
        .args(words)
        .env("XDG_STATE_HOME", place)
        .env_remove("WARDIAN_TOOLS_ENABLED")
        .stdin(fs::File::open(request).unwrap())
        .stdout(stdout)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap_or_else(|| panic!("ended by a signal: {stderr}")), stderr)
}

fn without_progress(stderr: &str) -> String {
    stderr
        .lines()
        .filter(|line| !line.starts_with("wardian: preparing"))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn every_command_says_that_the_disk_is_full() {
    let place = place();
    for words in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, stderr) = run(words, place.path(), full.into());
        let stderr = without_progress(&stderr);
        assert_eq!(code, 2, "{words:?}: {stderr}");
        let message = "wardian: cannot write standard output: No space left on device (os error 28)\n";
        assert!(stderr.ends_with(message), "{words:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{words:?}: {stderr}");
    }
}

/// Closed, or open for reading only: as for `cat`, an error.
#[test]
fn every_command_says_that_its_output_is_closed() {
    let place = place();
    for words in COMMANDS {
        for redirection in [">&-", "1</dev/null", ">&- <&-"] {
            let (code, stderr) = run_redirected(words, place.path(), Stdio::null(), redirection);
            let stderr = without_progress(&stderr);
            assert_eq!(code, 2, "{words:?} {redirection}: {stderr}");
            let message = "wardian: cannot write standard output: Bad file descriptor (os error 9)\n";
            assert!(stderr.ends_with(message), "{words:?} {redirection}: {stderr}");
            assert!(!stderr.contains("panicked"), "{words:?} {redirection}: {stderr}");
        }
    }
}

/// Nothing written is nothing lost.
#[test]
fn a_closed_output_that_nobody_writes_to_is_no_error() {
    let (code, stderr) =
        run_redirected(&["run", "echo more > /dev/null"], place().path(), Stdio::null(), ">&-");
    assert_eq!((code, without_progress(&stderr).as_str()), (0, ""));
}

#[test]
fn closed_standard_error_and_input_change_nothing_else() {
    let place = place();
    for (words, code, expected) in [
        (&["run", "cat; echo out; echo err >&2; exit 3"][..], 3, "out\n"),
        (&["run", "-"], 0, ""),
        (&["run", "--nonsense"], 2, ""),
        (&["serve", "--stdio"], 0, ""),
        (&["tools", "run", "--jail", "DIR", "--", "cat", "file"], 0, "text\n"),
        (&["tools", "run", "--jail", "DIR", "--", "cat"], 0, ""),
        (&["audit", "verify", "/nowhere"], 2, ""),
    ] {
        let dir = place.path().join("dir").display().to_string();
        let output = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 2>&- <&-", env!("CARGO_BIN_EXE_wardian")])
            .args(words.iter().map(|word| word.replace("DIR", &dir)))
            .env("XDG_STATE_HOME", place.path())
            .env("WARDIAN_LOG", "debug")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{words:?}");
    }
}

#[test]
fn every_command_ends_quietly_where_nobody_reads() {
    let place = place();
    for words in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, stderr) = run(words, place.path(), writer.into());
        // A server whose client is gone has done what it was there for.
        let expected = if words[0] == "serve" { 0 } else { 141 };
        assert_eq!((code, without_progress(&stderr).as_str()), (expected, ""), "{words:?}");
    }
}

/// The commands that a help page lists.
fn listed(words: &[&str]) -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_wardian")).args(words).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn no_command_is_forgotten_above() {
    let tried = |words: &[&str]| COMMANDS.iter().chain(SILENT).any(|tried| tried.starts_with(words));
    for command in listed(&[]) {
        assert!(tried(&[&command]), "{command} is not tried");
        for verb in listed(&[&command]) {
            assert!(tried(&[&command, &verb]), "{command} {verb} is not tried");
        }
    }
}

#[test]
fn a_full_standard_error_is_no_panic() {
    let place = place();
    for words in
        [&["run", "echo out; echo err >&2"][..], &["run", "--nonsense"], &["audit", "verify", "/nowhere"]]
    {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut wardian = Command::new(env!("CARGO_BIN_EXE_wardian"));
        wardian.args(words).env("XDG_STATE_HOME", place.path()).env("WARDIAN_LOG", "debug").stderr(full);
        assert_eq!(wardian.output().unwrap().status.code(), Some(2), "{words:?}");
    }
}

#[test]
fn a_script_whose_output_is_gone_gets_an_error_and_changes_nothing() {
    let place = place();
    for (redirection, expected) in [("> /dev/full", 2), (">&-", 2), ("", 141)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        // It would write for ever, if nobody told it.
        let script = "echo changed > /src/file; yes; echo more > /src/more";
        let words = ["run", "--timeout", "0", "--mount", "DIR:/src:overlay", "--apply", script];
        let (code, stderr) = run_redirected(&words, place.path(), writer.into(), redirection);
        assert_eq!(code, expected, "{stderr}");
        assert_eq!(fs::read_to_string(place.path().join("dir/file")).unwrap(), "text\n");
    }
}

/// What a script writes where both streams are one pipe, or each its own.
fn written(script: &str, one: bool) -> (String, String) {
    let (mut read, write) = std::io::pipe().unwrap();
    let (mut read_stderr, own) = std::io::pipe().unwrap();
    let stderr = if one { write.try_clone().unwrap() } else { own.try_clone().unwrap() };
    drop(own);
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardian"));
    let mut child =
        command.args(["run", script]).stdin(Stdio::null()).stdout(write).stderr(stderr).spawn().unwrap();
    drop(command);
    let text = |read: &mut std::io::PipeReader| {
        let mut text = String::new();
        std::io::Read::read_to_string(read, &mut text).unwrap();
        without_progress(&text)
    };
    // The other way round than it is written, as far as a pipe has room.
    let stderr = text(&mut read_stderr);
    let stdout = text(&mut read);
    assert!(child.wait().unwrap().success());
    (stdout, stderr)
}

#[test]
fn two_streams_that_are_one_outside_come_in_the_order_of_their_writes() {
    let script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done";
    for _ in 0..5 {
        assert_eq!(written(script, true).0, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
        assert_eq!(written(script, false), ("out1\nout2\nout3\n".into(), "err1\nerr2\nerr3\n".into()));
    }
    let file = tempfile::tempfile().unwrap();
    let (stdout, stderr) = (file.try_clone().unwrap(), file.try_clone().unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardian"));
    assert!(command.args(["run", script]).stdout(stdout).stderr(stderr).status().unwrap().success());
    let mut text = String::new();
    std::io::Seek::rewind(&mut &file).unwrap();
    std::io::Read::read_to_string(&mut &file, &mut text).unwrap();
    assert_eq!(without_progress(&text), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
}

#[test]
fn output_through_a_process_substitution_is_not_lost() {
    let script = "exec > >(tee log) 2>&1; echo one; ls /nofile; echo last";
    for _ in 0..5 {
        assert_eq!(
            written(script, true).0,
            "one\nls: cannot access '/nofile': No such file or directory\nlast\n"
        );
    }
    assert_eq!(written("exec > >(sort); echo b; echo a", true).0, "a\nb\n");
}
