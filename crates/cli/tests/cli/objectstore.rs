//! Stores in an object store, over HTTP, with a server that speaks S3.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

use super::shown;

/// Runs a server in a thread of its own until the process ends.
fn serve(directory: &Path) -> SocketAddr {
    let service = S3ServiceBuilder::new(FileSystem::new(directory).expect("a directory")).build();
    let (sender, address) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            sender.send(listener.local_addr().expect("an address")).expect("sent");
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service.clone()));
            }
        });
    });
    address.recv().expect("an address")
}

struct Machine {
    endpoint: String,
    local: tempfile::TempDir,
}

impl Machine {
    fn new(endpoint: &str) -> Machine {
        Machine { endpoint: endpoint.to_owned(), local: tempfile::tempdir().expect("a directory") }
    }

    fn wardian(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wardian"));
        // Flags of the store come before the script that is to be run, if there is one.
        let (words, last) = words.split_at(words.len() - usize::from(words.contains(&"run")));
        command.args(words).args(["--store", "s3://bucket/team", "--store-local"]).arg(self.local.path());
        command.args(last).env("AWS_ENDPOINT", &self.endpoint).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_SKIP_SIGNATURE", "true").env("AWS_REGION", "us-east-1");
        shown(command.output().expect("it runs"))
    }

    fn expect(&self, words: &[&str]) -> String {
        let (code, out, errors) = self.wardian(words);
        assert_eq!((code, errors.as_str()), (0, ""), "{words:?}: {out}");
        out
    }
}

#[test]
fn a_sandbox_moves_to_another_machine() {
    let bucket = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(bucket.path().join("bucket")).expect("a bucket");
    let endpoint = format!("http://{}", serve(bucket.path()));
    let (one, two) = (Machine::new(&endpoint), Machine::new(&endpoint));
    one.expect(&[
        "run",
        "--name",
        "work",
        "x=1; echo hello > f; head -c 300000 /dev/urandom > big; md5sum big > sum",
    ]);
    assert_eq!(
        two.expect(&["sandbox", "run", "work", "echo $x; cat f; md5sum -c sum"]),
        "1\nhello\nbig: OK\n"
    );
    two.expect(&["sandbox", "run", "work", "x=2; echo more >> f"]);
    assert_eq!(one.expect(&["sandbox", "run", "work", "echo $x; cat f"]), "2\nhello\nmore\n");
    assert!(one.expect(&["store", "usage"]).contains("s3://bucket/team: 0 commits with 0 objects"));
    assert_eq!(one.expect(&["store", "flush"]), "s3://bucket/team: everything is uploaded\n");
    let script = bucket.path().join("setup.sh");
    std::fs::write(&script, "echo made > /tmp/made").expect("written");
    let script = script.to_str().expect("text");
    one.expect(&["image", "build", "-f", script, "--name", "py"]);
    assert!(two.expect(&["image", "list"]).contains("py"));
    assert_eq!(two.expect(&["run", "--image", "py", "cat /tmp/made"]), "made\n");
    // Without the server, nobody can take the lease, and the message says what to look at.
    let gone = Machine { endpoint: "http://127.0.0.1:9".to_owned(), ..one };
    let (code, _, errors) = gone.wardian(&["sandbox", "run", "work", "true"]);
    assert!(code != 0 && errors.contains("AWS_ENDPOINT"), "{code} {errors}");
}

#[test]
fn other_urls_are_refused_by_name() {
    for url in ["file:///tmp/x", "memory:///", "gs://bucket/x"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wardian"));
        let (code, _, errors) =
            shown(command.args(["sandbox", "ls", "--store", url]).output().expect("it runs"));
        assert!(code != 0 && errors.contains(url), "{url}: {errors}");
    }
}
