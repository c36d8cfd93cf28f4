//! git and node over the gateway's TLS, with servers and an authority of the test's own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wardian::net::NetworkPolicy;
use wardian::{RunResult, Sandbox};

use crate::network::Here;
use crate::python_packages::built;
use crate::tls_server::{Asked, Authority, Pages};

async fn sandbox(policy: NetworkPolicy) -> Sandbox {
    built(Sandbox::builder().network(policy).resolver(Here)).await
}

async fn run(sandbox: &Sandbox, script: &str) -> (String, u8) {
    let RunResult { stdout, exit_code, .. } = sandbox.run(script).await.expect("it runs");
    (String::from_utf8_lossy(&stdout).into_owned(), exit_code)
}

/// This machine's git, without anybody's settings.
fn git(place: &Path, words: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(words).current_dir(place).env("HOME", place).env("GIT_CONFIG_NOSYSTEM", "1");
    git.envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@x")]);
    git.envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@x")]);
    git
}

fn well(place: &Path, words: &[&str]) -> String {
    let output = git(place, words).output().expect("git runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The program that serves repositories, if this machine has it.
fn backend() -> Option<PathBuf> {
    let output = Command::new("git").arg("--exec-path").output().ok()?;
    let place = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let found = [place, PathBuf::from("/usr/lib/git-core")].map(|place| place.join("git-http-backend"));
    found.into_iter().find(|program| program.exists())
}

/// Has the program answer a request, as a web server does.
fn by_backend(program: &Path, root: &Path, asked: &Asked) -> Vec<u8> {
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let header = |name: &str| asked.headers.get(name).map_or("", String::as_str);
    let mut child = Command::new(program)
        .env("GIT_PROJECT_ROOT", root)
        .env("HOME", root)
        .envs([("GIT_HTTP_EXPORT_ALL", "1"), ("GIT_CONFIG_NOSYSTEM", "1"), ("REQUEST_METHOD", &asked.method)])
        .envs([("PATH_INFO", path), ("QUERY_STRING", query), ("CONTENT_TYPE", header("content-type"))])
        .envs([
            ("HTTP_CONTENT_ENCODING", header("content-encoding")),
            ("GIT_PROTOCOL", header("git-protocol")),
        ])
        .env("CONTENT_LENGTH", asked.body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let body = asked.body.clone();
    let writing = std::thread::spawn(move || drop(input.write_all(&body)));
    let output = child.wait_with_output().expect("it ends").stdout;
    writing.join().expect("no panic");
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let fields: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status: ")).collect();
    let body = &output[end + 4..];
    let head =
        format!("HTTP/1.1 {status}\r\n{}\r\nContent-Length: {}\r\n\r\n", fields.join("\r\n"), body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn git_clones_and_pushes_over_https() {
    let Some(program) = backend() else {
        eprintln!("skipped: this machine has no git http-backend");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().to_owned();
    well(&root, &["init", "-q", "-b", "main", "w"]);
    let lines: String = (0..5000).map(|line| format!("line {}\n", line * line % 97)).collect();
    std::fs::write(root.join("w/file"), &lines).expect("written");
    well(&root.join("w"), &["add", "."]);
    well(&root.join("w"), &["commit", "-qm", "first"]);
    well(&root, &["clone", "-q", "--bare", "w", "x.git"]);
    well(&root.join("x.git"), &["config", "http.receivepack", "true"]);
    let authority = Authority::new("one");
    let served = root.clone();
    let port = authority.answer("server.test", move |asked| by_backend(&program, &served, &asked)).await;
    let sandbox = sandbox(authority.policy(port)).await;
    let script = format!(
        "cd /tmp; git clone -q https://server.test:{port}/x.git w 2>&1 && cd w || exit
        git log --format=%s; wc -l < file
        git config user.name Bob; git config user.email bob@x
        for i in $(seq 20000); do echo $i $((i * i % 97)); done > more
        git add more; git commit -qm second; git push -q origin HEAD:main 2>&1; echo $?"
    );
    assert_eq!(run(&sandbox, &script).await, ("first\n5000\n0\n".to_owned(), 0));
    let log = well(&root.join("x.git"), &["log", "--format=%an %s", "main"]);
    assert_eq!(log, "Bob second\nAnn first\n");
    well(&root.join("x.git"), &["fsck", "--strict"]);
    assert!(well(&root.join("x.git"), &["show", "main:more"]).ends_with("20000 33\n"));
}

#[tokio::test]
async fn git_refuses_a_certificate_that_cannot_be_verified() {
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    for port in
        [other.serve("server.test", Pages::new()).await, authority.serve("another.test", Pages::new()).await]
    {
        let sandbox = sandbox(authority.policy(port)).await;
        let script = format!("cd /tmp; git clone -q https://server.test:{port}/x.git w 2>&1");
        let (said, code) = run(&sandbox, &script).await;
        assert_eq!(code, 128, "{said}");
        assert!(said.starts_with("fatal: ") && said.contains("certificate"), "{said}");
        assert_eq!(run(&sandbox, "ls /tmp/w").await.1, 2);
    }
}

#[tokio::test]
async fn node_fetches_over_https_and_reports_a_bad_certificate() {
    const CODE: &str = "
const url = process.argv[2];
fetch(url).then(async (answer) => console.log(answer.status, await answer.text()))
  .catch((error) => console.log(error.name, error.message, error.cause?.code))
  .then(() => require('https').get(url, (answer) => {
    console.log(answer.statusCode, answer.socket.authorized, answer.socket.getProtocol());
    answer.resume();
  }).on('error', (error) => console.log(error.code)));
";
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let hello = || Pages::from([("/".to_owned(), b"hello".to_vec())]);
    for (port, expected) in [
        (authority.serve("server.test", hello()).await, "200 hello\n200 true TLSv1.3\n"),
        (
            other.serve("server.test", hello()).await,
            "TypeError fetch failed UNABLE_TO_VERIFY_LEAF_SIGNATURE\nUNABLE_TO_VERIFY_LEAF_SIGNATURE\n",
        ),
        (
            authority.serve("another.test", hello()).await,
            "TypeError fetch failed ERR_TLS_CERT_ALTNAME_INVALID\nERR_TLS_CERT_ALTNAME_INVALID\n",
        ),
    ] {
        let sandbox = sandbox(authority.policy(port)).await;
        sandbox.write_file("/tmp/code.js", CODE).await.expect("there is room");
        let script = format!("node /tmp/code.js https://server.test:{port}/ 2>&1");
        assert_eq!(run(&sandbox, &script).await, (expected.to_owned(), 0));
    }
}

#[tokio::test]
async fn node_shows_the_servers_certificate() {
    const CODE: &str = "
require('https').get(process.argv[2], (answer) => {
  const shown = answer.socket.getPeerCertificate(), sha256 = require('crypto').createHash('sha256');
  const print = sha256.update(shown.raw).digest('hex').toUpperCase().match(/../g).join(':');
  console.log(shown.raw.toString('latin1').includes('server.test'), shown.fingerprint256 === print, shown.fingerprint.length);
  answer.resume();
});
";
    let authority = Authority::new("one");
    let port = authority.serve("server.test", Pages::from([("/".to_owned(), b"hello".to_vec())])).await;
    let sandbox = sandbox(authority.policy(port)).await;
    sandbox.write_file("/tmp/code.js", CODE).await.expect("there is room");
    let script = format!("node /tmp/code.js https://server.test:{port}/ 2>&1");
    assert_eq!(run(&sandbox, &script).await, ("true true 59\n".to_owned(), 0));
}
