//! Clone, fetch and push against the real `git http-backend`, on loopback.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const OURS: &str = env!("CARGO_BIN_EXE_git");
const NATIVE: &str = "git";

/// A server of `srv/x.git` in a directory that goes when the test ends.
struct Server {
    place: PathBuf,
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

fn run(program: &str, place: &Path, words: &[&str]) -> Output {
    Command::new(program)
        .args(words)
        .current_dir(place)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8"), ("GIT_CONFIG_NOSYSTEM", "1"), ("TZ", "UTC")])
        .env("HOME", place)
        .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@x")])
        .envs([("GIT_COMMITTER_NAME", "Carl"), ("GIT_COMMITTER_EMAIL", "c@x")])
        .output()
        .unwrap()
}

fn well(program: &str, place: &Path, words: &[&str]) -> String {
    let output = run(program, place, words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn commit(program: &str, place: &Path, name: &str) {
    let lines: String = (0..300).map(|line| format!("{name} {}\n", line * line % 97)).collect();
    std::fs::write(place.join(name), lines).unwrap();
    well(program, place, &["add", "."]);
    well(program, place, &["commit", "-qm", name]);
}

fn server(name: &str) -> Server {
    let place = std::env::temp_dir().join(format!("wardian-git-http-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(place.join("srv")).unwrap();
    let bare = place.join("srv/x.git");
    well(NATIVE, &place, &["init", "-q", "-b", "main", "w"]);
    for name in ["one", "two", "three"] {
        commit(NATIVE, &place.join("w"), name);
        commit(NATIVE, &place.join("w"), "same");
        std::fs::write(place.join("w/same"), name).unwrap();
    }
    well(NATIVE, &place.join("w"), &["tag", "-a", "v1", "-m", "v1"]);
    well(NATIVE, &place, &["clone", "-q", "--bare", "w", bare.to_str().unwrap()]);
    well(NATIVE, &bare, &["config", "http.receivepack", "true"]);
    // Packed, so that differences are sent.
    well(NATIVE, &bare, &["repack", "-adfq"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/backend.py");
    let mut child = Command::new("python3")
        .arg(script)
        .arg(place.join("srv"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let address = format!("http://127.0.0.1:{}/x.git", port.trim());
    Server { place, child, address }
}

#[test]
fn a_clone_is_what_native_git_has() {
    let server = server("clone");
    well(OURS, &server.place, &["clone", "-q", &server.address, "c"]);
    let clone = server.place.join("c");
    well(NATIVE, &clone, &["fsck", "--strict"]);
    assert_eq!(well(OURS, &clone, &["status", "--porcelain"]), "");
    let log = ["log", "--format=%H %s", "--all"];
    assert_eq!(well(OURS, &clone, &log), well(NATIVE, &server.place.join("w"), &log));
    assert_eq!(well(OURS, &clone, &["tag"]), "v1\n");
    assert_eq!(well(OURS, &clone, &["ls-remote"]), well(NATIVE, &clone, &["ls-remote"]));
    let moved = server.address.replace("/x.git", "/moved/x.git");
    well(OURS, &server.place, &["clone", "-q", &moved, "moved"]);
    assert_eq!(well(OURS, &server.place.join("moved"), &log), well(OURS, &clone, &log));
}

#[test]
fn commits_go_both_ways() {
    let server = server("both");
    let bare = server.place.join("srv/x.git");
    well(OURS, &server.place, &["clone", "-q", &server.address, "ours"]);
    well(NATIVE, &server.place, &["clone", "-q", &server.address, "theirs"]);
    let (ours, theirs) = (server.place.join("ours"), server.place.join("theirs"));
    commit(OURS, &ours, "mine");
    well(OURS, &ours, &["push", "-q"]);
    well(NATIVE, &bare, &["fsck", "--strict"]);
    well(NATIVE, &theirs, &["pull", "-q"]);
    commit(NATIVE, &theirs, "yours");
    well(NATIVE, &theirs, &["push", "-q"]);
    well(OURS, &ours, &["pull", "-q"]);
    well(NATIVE, &ours, &["fsck", "--strict"]);
    let head = ["rev-parse", "HEAD", "origin/main"];
    assert_eq!(well(OURS, &ours, &head), well(NATIVE, &theirs, &head));

    well(OURS, &ours, &["push", "-q", "origin", "HEAD:refs/heads/side"]);
    assert!(well(NATIVE, &bare, &["branch"]).contains("side"));
    well(OURS, &ours, &["push", "-q", "origin", ":side"]);
    assert!(!well(NATIVE, &bare, &["branch"]).contains("side"));
}

#[test]
fn what_cannot_be_is_said() {
    let server = server("refused");
    let said = |words: &[&str]| {
        let output = run(OURS, &server.place, words);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let nothing = server.address.replace("x.git", "nothing.git");
    let (code, text) = said(&["clone", "-q", &nothing, "c"]);
    assert_eq!((code, text.contains("not found")), (Some(128), true), "{text}");
    assert!(!server.place.join("c").exists());
    let (code, text) = said(&["clone", "-q", "git@example.org:x", "c"]);
    assert_eq!((code, text.contains("ssh is not supported here")), (Some(128), true), "{text}");

    // Somebody else was faster: the server's refusal is passed on, and nothing is lost.
    well(OURS, &server.place, &["clone", "-q", &server.address, "slow"]);
    well(NATIVE, &server.place, &["clone", "-q", &server.address, "fast"]);
    commit(NATIVE, &server.place.join("fast"), "fast");
    well(NATIVE, &server.place.join("fast"), &["push", "-q"]);
    commit(OURS, &server.place.join("slow"), "slow");
    let pushed = run(OURS, &server.place.join("slow"), &["push"]);
    let text = String::from_utf8_lossy(&pushed.stderr);
    assert_eq!((pushed.status.code(), text.contains("[rejected]")), (Some(1), true), "{text}");
    assert!(text.contains("fetch first"), "{text}");

    // A hook there says no.
    let bare = server.place.join("srv/x.git");
    well(NATIVE, &bare, &["config", "receive.denyDeletes", "true"]);
    let deleted = run(OURS, &server.place.join("slow"), &["push", "origin", ":refs/heads/main"]);
    let text = String::from_utf8_lossy(&deleted.stderr);
    assert_eq!((deleted.status.code(), text.contains("[remote rejected]")), (Some(1), true), "{text}");
    assert!(well(NATIVE, &bare, &["branch"]).contains("main"));
}
