//! `wardian run`.

use std::process::{Command, Stdio};

use crate::{shown, wardian, wardian_with};

#[test]
fn a_pipeline() {
    assert_eq!(shown(wardian(&["run", "echo hello | wc -c"])), (0, "6\n".into(), String::new()));
}

#[test]
fn subshells_pipelines_and_descriptors() {
    let script = "x=1; (x=2; echo $x); echo $x; yes | head -3 | sort | uniq -c; exec 3>/tmp/log; echo hi >&3; cat /tmp/log";
    assert_eq!(shown(wardian(&["run", script])), (0, "2\n1\n      3 y\nhi\n".into(), String::new()));
}

#[test]
fn a_timeout_is_124_and_says_so() {
    let (code, stdout, stderr) = shown(wardian(&["run", "--timeout", "200ms", "while :; do :; done"]));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (124, "", "wardian: timed out after 200 ms\n"));
}

#[test]
fn the_scripts_code_is_the_commands() {
    for code in [0, 1, 3, 126, 127, 255] {
        assert_eq!(shown(wardian(&["run", &format!("exit {code}")])).0, code);
    }
}

#[test]
fn standard_input_passes_through() {
    let output = wardian_with(&["run", "read a; echo $a; wc -l"], b"one\ntwo\nthree\n");
    assert_eq!(shown(output), (0, "one\n2\n".into(), String::new()));
}

#[test]
fn the_script_can_come_from_standard_input_or_a_file() {
    assert_eq!(shown(wardian_with(&["run", "-"], b"echo from stdin\n")).1, "from stdin\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "echo from file; cat").unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(shown(wardian_with(&["run", "--file", path], b"and input")).1, "from file\nand input");
    // The sandbox does not see it.
    let (code, _, stderr) = shown(wardian(&["run", path]));
    assert!(code == 127 && stderr.contains(&format!("use wardian run --file {path}")), "{stderr}");
}

#[test]
fn python_code_runs_as_with_python() {
    let code = "import sys; print(sys.argv, input()); sys.exit(3)";
    let output = wardian_with(&["run", "--python", code, "it's", "two words", "-n", ""], b"read\n");
    assert_eq!(shown(output), (3, "['-c', \"it's\", 'two words', '-n', ''] read\n".into(), String::new()));
    let (exit, _, stderr) = shown(wardian(&["run", "--python", "1", "--file", "x"]));
    assert!(exit == 2 && stderr.contains("cannot be used with"), "{stderr}");
}

#[test]
fn a_script_has_arguments_as_with_bash() {
    let show = r#"echo "$0|$#|$*"; for x in "$@"; do echo "<$x>"; done; exit 3"#;
    let words = ["hello", "it's", "two words", "-n", ""];
    let oracle = Command::new("bash").args(["-c", show]).args(words).output().expect("bash");
    let expected = (3, String::from_utf8(oracle.stdout).unwrap(), String::new());
    assert_eq!(shown(wardian(&[&["run", show], &words[..]].concat())), expected);

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("it's a script.sh");
    std::fs::write(&file, format!("{show}\nnever")).unwrap();
    let path = file.to_str().unwrap();
    let oracle = Command::new("bash").arg(path).args(words).output().expect("bash");
    let expected = (3, String::from_utf8(oracle.stdout).unwrap(), String::new());
    assert_eq!(shown(wardian(&[&["run", "--file", path], &words[..]].concat())), expected);

    // What goes through a process substitution is not lost.
    std::fs::write(&file, "exec > >(sed s/^/+/) 2>&1; echo one; ls /nofile; nosuch; echo last").unwrap();
    let (code, stdout, _) = shown(wardian(&["run", "--file", path]));
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!((code, lines.len(), lines[0], lines[3]), (0, 4, "+one", "+last"), "{stdout}");
    assert!(lines[2].ends_with("script.sh: line 1: nosuch: command not found"), "{stdout}");
    assert_eq!(shown(wardian(&["run", "echo $0 $1", "--", "-a", "-b"])).1, "-a -b\n");
}

#[test]
fn limits_and_the_directory_are_options() {
    let (_, stdout, stderr) =
        shown(wardian(&["run", "--cwd", "/tmp", "--disk", "64K", "pwd; head -c 200000 /dev/zero > f"]));
    assert_eq!(stdout, "/tmp\n");
    assert!(stderr.to_lowercase().contains("space"), "{stderr}");
    let (_, stdout, _) = shown(wardian(&[
        "run",
        "--json",
        "--processes",
        "3",
        "(sleep 9 & sleep 9 & sleep 9 & sleep 9) 2>&1",
    ]));
    assert!(stdout.contains(r#""limit":"processes""#), "{stdout}");
    let (_, stdout, _) =
        shown(wardian(&["run", "--json", "--memory", "16M", "x=x; while :; do x=$x$x; done"]));
    assert!(stdout.contains(r#""limit":"memoryBytes""#), "{stdout}");
    let (_, stdout, _) = shown(wardian(&["run", "--json", "--files", "2", "touch a b c d"]));
    assert!(stdout.contains(r#""limit":"fileCount""#), "{stdout}");
    // A limit that was hit is named in a line, once.
    let limits = [
        (["--disk", "64K"], "head -c 200000 /dev/zero > f", "wardian: fsLimitBytes limit of 65536 reached"),
        (["--files", "2"], "touch a b c d", "wardian: fileCount limit of 2 reached"),
        (
            ["--processes", "3"],
            "sleep 1 & sleep 1 & sleep 1 & sleep 1",
            "wardian: a process could not be started: processes limit of 3 reached",
        ),
    ];
    for (options, script, line) in limits {
        let (_, _, stderr) = shown(wardian(&[&["run"], &options[..], &[script]].concat()));
        assert_eq!(stderr.lines().last(), Some(line), "{stderr}");
        assert_eq!(stderr.matches("wardian: ").count(), 1, "{stderr}");
    }
    let refused = [
        (vec!["--memory", "1K"], "memoryBytes is 1024, which is too little for a shell: at least"),
        (vec!["--memory", "lots"], "not a size: 'lots'"),
        (vec!["--cwd", "here"], "cwd is not an absolute path"),
        (vec!["--mount", ".:/"], "cannot mount at /: it is the sandbox's root"),
        (vec!["--mount", ".:/src", "--tool", "gti"], "not listed in the policy (did you mean git?)"),
        (vec!["--timeuot", "1s"], "a similar argument exists: '--timeout'"),
    ];
    for (options, why) in refused {
        let (code, stdout, stderr) = shown(wardian(&[&["run"], &options[..], &["true"]].concat()));
        assert_eq!((code, stdout.as_str(), stderr.lines().count()), (2, "", 1), "{options:?}: {stderr}");
        assert!(stderr.contains(why), "{options:?}: {stderr}");
    }
    let (code, _, stderr) = shown(wardian(&["rnu", "true"]));
    assert!(code == 2 && stderr.contains("did you mean run?"), "{stderr}");
}

#[test]
fn programs_can_be_prepared_beforehand() {
    // On a machine that has not run them, this one says what it compiles.
    wardian(&["prepare"]);
    for _ in 0..2 {
        let (code, stdout, stderr) = shown(wardian(&["prepare"]));
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(stdout.starts_with("all ") && stdout.ends_with(" programs are ready\n"), "{stdout}");
    }
    // In a file or a pipe there is nothing that only a terminal understands.
    assert!(!wardian(&["prepare"]).stderr.contains(&b'\r'));
}

#[test]
fn json_is_the_result_object() {
    let (code, stdout, _) = shown(wardian(&["run", "--json", "echo hi; echo err >&2; exit 3"]));
    assert_eq!(code, 3);
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(object["exitCode"], 3);
    assert_eq!(object["stdout"], "hi\n");
    assert_eq!(object["stderr"], "err\n");
    assert!(object["executionTimeMs"].is_number());
    for absent in ["truncated", "errorClass", "limit"] {
        assert!(object.get(absent).is_none(), "{absent}");
    }
    let (_, stdout, _) = shown(wardian(&["run", "--json", "--timeout", "50ms", "sleep 100"]));
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&object["exitCode"], &object["errorClass"]), (&124.into(), &"TIMEOUT".into()));
    let (_, stdout, _) = shown(wardian(&["run", "--json", "yes | head -c 3000000"]));
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&object["truncated"]["stdout"], &object["limit"]), (&true.into(), &"stdoutBytes".into()));
}

#[test]
fn output_streams_as_it_comes() {
    use std::io::{BufRead, BufReader};
    let mut child = Command::new(env!("CARGO_BIN_EXE_wardian"))
        .args(["run", "echo first; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The script is still reading: what it wrote must be here all the same.
    assert_eq!(line, "first\n");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn bad_flags_are_one_clear_error_and_exit_2() {
    let cases: [&[&str]; 6] = [
        &["run"],
        &["run", "--nonsense", "true"],
        &["run", "--timeout", "soon", "true"],
        &["run", "--mount", "nowhere", "true"],
        &["run", "--file", "/nowhere/at/all"],
        &["run", "--env", "novalue", "true"],
    ];
    for words in cases {
        let (code, stdout, stderr) = shown(wardian(words));
        assert_eq!((code, stdout.as_str()), (2, ""), "{words:?}");
        assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
        assert!(stderr.starts_with("wardian: "), "{words:?}: {stderr}");
    }
}

/// On a machine that has compiled nothing yet.
#[test]
fn a_result_says_that_it_waited_for_a_program_to_be_compiled() {
    let cache = tempfile::tempdir().expect("a directory");
    let run = || {
        let mut wardian = std::process::Command::new(env!("CARGO_BIN_EXE_wardian"));
        wardian.args(["run", "--json", "--timeout", "20s", "jq -n '1 + 1'"]);
        let output = wardian.env("WARDIAN_CACHE_DIR", cache.path()).output().expect("it starts");
        let result = serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("JSON");
        (result, String::from_utf8(output.stderr).expect("text"))
    };
    let (first, told) = run();
    assert_eq!((&first["exitCode"], &first["stdout"]), (&0.into(), &"2\n".into()), "{first}");
    assert!(first["waitedMs"].as_f64().is_some_and(|waited| waited > 0.0), "{first}");
    // Whoever waits long is told what for, also if standard error is no terminal.
    let long = first["waitedMs"].as_f64().is_some_and(|waited| waited > 2_000.0);
    assert!(!long || told.contains("wardian: preparing jq for this machine"), "{told}");
    let (second, told) = run();
    assert_eq!(told, "");
    assert_eq!((&second["stdout"], second.get("waitedMs")), (&"2\n".into(), None), "{second}");
}
