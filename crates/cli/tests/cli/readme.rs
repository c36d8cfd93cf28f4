//! What the README tells people to type works when it is typed.

use std::path::Path;
use std::process::Command;

/// The lines of the block under a heading.
fn block(heading: &str) -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("a README");
    let section = readme.split(heading).nth(1).expect("the section is there");
    let block = section.split("```sh\n").nth(1).expect("it has a block");
    block.split("```").next().expect("which ends").lines().map(str::to_owned).collect()
}

#[test]
fn the_terminal_quick_start_does_what_it_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = [("build.sh", "read -r first; echo \"building $first\"\n"), ("input.txt", "all of it\n")];
    for (name, content) in files {
        std::fs::write(directory.path().join(name), content).expect("it can be written");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_wardian")).parent().expect("it lies somewhere");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a PATH"));
    let lines = block("## At a terminal");
    assert!(lines.len() >= 5, "{lines:?}");
    for line in lines {
        let (command, comment) = line.split_once("  # ").unwrap_or((&line, ""));
        let done = Command::new("bash")
            .args(["-c", command])
            .env("PATH", &path)
            .current_dir(directory.path())
            .output()
            .expect("bash runs");
        let printed = String::from_utf8(done.stdout).expect("text");
        let last = printed.lines().last().unwrap_or_default();
        let expected = match comment {
            number if number.parse::<u32>().is_ok() => number,
            "refused; your files are untouched" => "input.txt",
            "the result as one JSON object" => {
                assert!(last.starts_with('{') && last.ends_with('}') && last.contains("\"hi\\n\""), "{last}");
                last
            }
            "script got b" => "script got b",
            _ => "building all of it",
        };
        assert_eq!(last, expected, "{command}: {}", String::from_utf8_lossy(&done.stderr));
        for (name, content) in files {
            let now = std::fs::read_to_string(directory.path().join(name)).expect("it is still there");
            assert_eq!(now, content, "{command}");
        }
    }
}
