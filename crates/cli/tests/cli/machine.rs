//! `wardian doctor` and `wardian man`: for people who install Wardian.

use crate::{shown, wardian};

#[test]
fn a_doctor_tries_what_users_do() {
    let (code, stdout, stderr) = shown(wardian(&["doctor", "--json"]));
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("a list");
    let outcome = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no {name} in {report}"))["outcome"].as_str().expect("text")
    };
    for tried in ["sandbox", "timeout", "fork", "python", "own programs"] {
        assert_eq!(outcome(tried), "ok", "{report}");
    }
    assert!(["ok", "limited"].contains(&outcome("host tools: landlock")), "{report}");
    assert_eq!((code, stderr.as_str()), (0, ""));
}

/// What a machine lacks is told by its name, and is the exit code.
#[test]
fn a_doctor_says_what_is_broken() {
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 400000; exec \"$0\" doctor", env!("CARGO_BIN_EXE_wardian")])
        .output()
        .expect("a shell");
    let (code, stdout, _) = shown(output);
    assert_eq!(code, 1, "{stdout}");
    let broken: Vec<&str> =
        stdout.lines().filter(|line| line.split_whitespace().any(|word| word == "broken")).collect();
    assert!(!broken.is_empty(), "{stdout}");
}

#[test]
fn every_command_has_a_manual_page_that_man_reads() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("text");
    assert_eq!(shown(wardian(&["man", "--dir", path])), (0, String::new(), String::new()));
    let help = shown(wardian(&["--help"])).1;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let mut pages = 0;
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let page = std::fs::read_to_string(directory.path().join(format!("wardian-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{command}: {page}");
        pages += 1;
    }
    assert!(pages > 10, "{help}");
    assert!(shown(wardian(&["man"])).1.contains(".SH SUBCOMMANDS"));
}
