//! Options of curl and wget that do not work here: each is refused by name, with the reason, before anything is connected.

use std::net::TcpListener;
use std::process::Command;

/// Runs a program with these words and the URL of a server at the end; returns its code and its messages.
fn run(words: &[&str]) -> (Option<i32>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let output = Command::new(env!("CARGO_BIN_EXE_net"))
        .args(words)
        .arg(url)
        .env("HOME", "/nonexistent")
        .output()
        .expect("it runs");
    assert!(listener.accept().is_err(), "{words:?} connected");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn options_of_curl_that_do_not_work_are_refused_by_name() {
    for (words, option, reason) in [
        (&["-x", "http://proxy.test:3128"][..], "-x", "proxies are a matter of the sandbox's gateway"),
        (&["-xproxy.test"], "-x", "proxies are a matter of the sandbox's gateway"),
        (&["-sx", "proxy.test"], "-x", "proxies are a matter of the sandbox's gateway"),
        (&["--proxy", "proxy.test"], "--proxy", "proxies are a matter of the sandbox's gateway"),
        (&["--socks5", "proxy.test"], "--socks5", "proxies are a matter of the sandbox's gateway"),
        (&["--resolve", "x.test:80:127.0.0.1"], "--resolve", "names are resolved by the sandbox's gateway"),
        (&["--connect-to", "::127.0.0.1:1"], "--connect-to", "names are resolved by the sandbox's gateway"),
        (&["--doh-url", "https://x.test/"], "--doh-url", "names are resolved by the sandbox's gateway"),
        (&["--cacert", "file"], "--cacert", "TLS is a matter of the sandbox's gateway"),
        (&["-E", "file"], "-E", "TLS is a matter of the sandbox's gateway"),
        (&["--digest"], "--digest", "only Basic and Bearer authentication are supported"),
        (&["-n"], "-n", "logins are not read from files; use --user"),
        (&["--http2"], "--http2", "only HTTP/1.1 and HTTP/1.0 are supported"),
        (&["--interface", "eth0"], "--interface", "there is one network interface, without settings"),
        (&["--trace", "-"], "--trace", "not supported"),
        (&["--raw"], "--raw", "not supported"),
    ] {
        let (code, said) = run(&[&["curl"], words].concat());
        assert_eq!(code, Some(2), "{words:?}: {said}");
        let expected = format!("curl: option {option}: not available in this sandbox: {reason}\n");
        assert!(said.starts_with(&expected), "{words:?}: {said}");
    }
}

#[test]
fn options_of_wget_that_do_not_work_are_refused_by_name() {
    for option in
        ["-N", "-m", "-k", "-H", "-b", "-E", "--mirror", "--convert-links", "--span-hosts", "--background"]
    {
        let (code, said) = run(&["wget", "-q", option]);
        assert_eq!(code, Some(2), "{option}: {said}");
        assert!(said.contains(option) && said.contains("not available in this sandbox"), "{option}: {said}");
    }
}
