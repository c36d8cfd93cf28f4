//! `curl -Z`: transfers happen at the same time. The server answers none of a group before all of it have asked, so that one
//! transfer after the other never ends well.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Long enough for anything that comes at all.
const EVER: Duration = Duration::from_secs(20);
/// How long a server looks whether somebody comes who must not.
const LOOK: Duration = Duration::from_millis(300);

#[derive(Default)]
struct State {
    asked: Vec<String>,
    waiting: usize,
    most: usize,
}

/// A server: `/group/N/…` is answered when N have been asked for, `/alone/…` after a look at who else comes, `/never` never.
struct Server {
    port: u16,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::<(Mutex<State>, Condvar)>::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Server { port, state }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// How many were asked for at the same time, at most.
    fn most(&self) -> usize {
        self.state.0.lock().expect("not poisoned").most
    }

    fn asked(&self) -> Vec<String> {
        self.state.0.lock().expect("not poisoned").asked.clone()
    }
}

fn serve(mut stream: TcpStream, (state, changed): &(Mutex<State>, Condvar)) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let cookies: Vec<String> = lines
            .by_ref()
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("Cookie"))
            .collect();
        let group = path.strip_prefix("/group/").and_then(|rest| rest.split('/').next()?.parse().ok());
        let mut now = state.lock().expect("not poisoned");
        now.asked.push(format!("{path} {}", cookies.join("")).trim().to_owned());
        now.waiting += 1;
        now.most = now.most.max(now.waiting);
        changed.notify_all();
        let mut status = if path.starts_with("/missing") { "404 Not Found" } else { "200 OK" };
        if let Some(group) = group {
            let (after, late) =
                changed.wait_timeout_while(now, EVER, |now| now.most < group).expect("not poisoned");
            now = after;
            status = if late.timed_out() { "500 Alone" } else { status };
        } else if path.starts_with("/alone") {
            now = changed.wait_timeout(now, LOOK).expect("not poisoned").0;
        } else if path.starts_with("/never") {
            drop(now);
            std::thread::sleep(EVER);
            return;
        }
        now.waiting -= 1;
        drop(now);
        let name = path.rsplit('/').next().unwrap_or_default();
        let answer = format!(
            "HTTP/1.1 {status}\r\nSet-Cookie: c{name}=1\r\nContent-Length: {}\r\n\r\n{path}\n",
            path.len() + 1
        );
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn curl(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_net"));
    command.args(["curl", "--no-progress-meter", "-Z"]).args(words).env("HOME", "/nonexistent");
    command.output().expect("it runs")
}

fn sorted(output: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(output).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn transfers_happen_at_the_same_time() {
    let (one, other) = (Server::start(), Server::start());
    let format = "%{http_code} %{urlnum}\n";
    let pair = [one.url("/group/2/a"), one.url("/group/2/b")];
    let done = curl(&["--parallel-immediate", "-w", format, &pair[0], &pair[1]]);
    let expected = ["/group/2/a", "/group/2/b", "200 0", "200 1"];
    assert_eq!((sorted(&done.stdout), done.status.code()), (expected.map(str::to_owned).to_vec(), Some(0)));
    // So do operations, and all that a pattern stands for.
    let pattern = other.url("/group/52/[1-50]");
    let rest = [other.url("/group/52/x"), other.url("/group/52/y")];
    let words =
        ["--parallel-immediate", "--parallel-max", "60", "-f", &pattern, "--next", "-f", &rest[0], &rest[1]];
    let done = curl(&words);
    assert_eq!((sorted(&done.stdout).len(), done.status.code()), (52, Some(0)));
}

/// curl 7.88 does the same: the first connection may turn out to take several requests.
#[test]
fn the_first_answer_of_a_server_is_waited_for_unless_told_otherwise() {
    let server = Server::start();
    let (first, second) = (server.url("/alone/a"), server.url("/alone/b"));
    assert_eq!(curl(&[&first, &second]).status.code(), Some(0));
    assert_eq!(server.asked()[0], "/alone/a");
    assert_eq!(server.most(), 1);
    // Another server does not wait for it, and those after the first answer do not wait for each other.
    let (one, other) = (Server::start(), Server::start());
    let urls = [one.url("/alone/a"), one.url("/group/3/b"), one.url("/group/3/c"), one.url("/group/3/d")];
    let far = other.url("/group/1/e");
    assert_eq!(curl(&["-f", &urls[0], &urls[1], &urls[2], &urls[3], &far]).status.code(), Some(0));
    assert_eq!((one.most(), other.most()), (3, 1));
}

#[test]
fn no_more_happen_at_once_than_were_asked_for() {
    let server = Server::start();
    let pattern = server.url("/alone/[1-6]");
    assert_eq!(curl(&["--parallel-immediate", "--parallel-max", "2", &pattern]).status.code(), Some(0));
    assert_eq!((server.asked().len(), server.most()), (6, 2));
    // Zero, and more than 300, are the default of 50.
    for most in ["0", "301"] {
        let server = Server::start();
        let pattern = server.url("/group/50/[1-50]");
        let words = ["-f", "--parallel-immediate", "--parallel-max", most, &pattern];
        assert_eq!(curl(&words).status.code(), Some(0), "{most}");
        assert_eq!(server.most(), 50);
    }
}

#[test]
fn failures_count_and_end_the_others_only_if_asked() {
    let server = Server::start();
    let (missing, fine, never) = (server.url("/missing"), server.url("/fine"), server.url("/never"));
    let done = curl(&["-f", &missing, &fine]);
    assert_eq!((sorted(&done.stdout), done.status.code()), (vec!["/fine".to_owned()], Some(22)));
    let format = "%{urlnum} %{exitcode}\n";
    let words = ["-f", "--parallel-immediate", "--fail-early", "-w", format, &never, &missing, &never];
    let done = curl(&words);
    let expected = ["0 42", "1 22", "2 42"].map(str::to_owned).to_vec();
    assert_eq!((sorted(&done.stdout), done.status.code()), (expected, Some(22)));
    let messages = String::from_utf8_lossy(&done.stderr);
    assert_eq!(
        messages.matches("(42) Transfer aborted due to critical error in another transfer").count(),
        2
    );
    // What was not begun is not.
    let late = server.url("/late");
    curl(&["-f", "--parallel-max", "1", "--fail-early", &missing, &late]);
    assert!(!server.asked().contains(&"/late".to_owned()));
}

#[test]
fn files_headers_and_cookies_of_all_are_kept() {
    let server = Server::start();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("parallel-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let pattern = server.url("/group/3/[1-3]");
    let (output, headers, jar) = (path("out#1"), path("headers"), path("jar"));
    let words = ["--parallel-immediate", "-o", &output, "-D", &headers, "-c", &jar, &pattern];
    assert_eq!(curl(&words).status.code(), Some(0));
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).expect("a file");
    for number in ["1", "2", "3"] {
        assert_eq!(read(&format!("out{number}")), format!("/group/3/{number}\n"));
        assert!(read("jar").contains(&format!("\tc{number}\t1\n")), "{}", read("jar"));
    }
    assert_eq!(read("headers").matches("HTTP/1.1 200").count(), 3);
    // What an earlier transfer was given, a later one sends.
    let one = server.url("/fine/[4-5]");
    assert_eq!(curl(&["--parallel-max", "1", "-b", &jar, &one]).status.code(), Some(0));
    let asked =
        server.asked().into_iter().find(|line| line.starts_with("/fine/5")).expect("it was asked for");
    assert!(asked.contains("c4=1"), "{asked}");
    std::fs::remove_dir_all(directory).expect("it is there");
}
