//! Sandboxes in a store: what is saved is the whole value, and what is read is what was saved.

use std::path::Path;
use std::time::Duration;

use wardian::{
    Durability, Error, FileChangeKind, Limits, MountMode, PersistenceMode, Sandbox, Store, StoreError,
    StoreKey, StoreOptions, StoreRetention,
};

fn open(directory: &Path) -> Store {
    // Without waiting for the disk: the store's own tests crash it.
    Store::open_with(directory, StoreOptions { sync: false, ..StoreOptions::default() }).expect("a store")
}

async fn create(store: &Store, name: &str) -> Sandbox {
    Sandbox::builder().persist(store, name).build().await.expect("a sandbox")
}

async fn sh(sandbox: &Sandbox, script: &str) -> String {
    let result = sandbox.run(script).await.expect("it runs");
    assert_eq!(result.exit_code, 0, "{script}: {}", String::from_utf8_lossy(&result.stderr));
    String::from_utf8_lossy(&result.stdout).into_owned()
}

/// Waits until nobody has a name any more: letting go happens in the background.
async fn resume(store: &Store, name: &str) -> Sandbox {
    loop {
        match store.resume(name).await {
            Err(Error::Store(StoreError::Busy { .. })) => tokio::time::sleep(Duration::from_millis(5)).await,
            other => return other.expect("resumed"),
        }
    }
}

const EVERYTHING: &str = r#"
mkdir -p d/e; printf 'hello\n' > d/f; chmod 640 d/f; ln d/f d/hard; ln -s f d/soft; ln -s /nowhere dangling
mkfifo pipe; : > empty; truncate -s 300000 sparse; printf end >> sparse; printf x | dd of=sparse bs=1 seek=150000 conv=notrunc 2>/dev/null
head -c 200000 /dev/urandom > random; touch -d '2001-02-03 04:05:06.789' old; chmod 4755 random; chmod 1777 d/e
rm -f d/gone; mkdir deep; (cd deep; for i in 1 2 3 4 5 6 7 8; do mkdir n$i; cd n$i; done; echo bottom > file)
f() { echo "function $1"; }; alias ll='ls -l'; export EXPORTED='a b'; local_variable=(1 2 'three four')
umask 027; set -o noclobber; trap 'echo trapped' USR1; cd d
"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_is_what_was_saved() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "team/all").await;
    sh(&sandbox, EVERYTHING).await;
    let before = sandbox.export().await.expect("an archive");
    sandbox.close().await.expect("closed");
    drop(sandbox);
    let store = open(directory.path());
    let sandbox = resume(&store, "team/all").await;
    let after = sandbox.export().await.expect("an archive");
    assert!(before == after, "{} and {} bytes", before.len(), after.len());
    let script = "f x; alias ll; echo $EXPORTED ${local_variable[2]}; pwd; umask; stat -c '%a %h' f; stat -c %Y ~/old; \
                  set -o | grep noclobber; trap -p USR1";
    let out = sh(&sandbox, script).await;
    assert_eq!(
        out,
        "function x\nalias ll='ls -l'\na b three four\n/home/user/d\n0027\n640 2\n981173106\n\
         noclobber      \ton\ntrap -- 'echo trapped' SIGUSR1\n"
    );
    assert_eq!(sandbox.history().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_files_are_open_again_where_they_were() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "files").await;
    sh(&sandbox, "printf 'hello\n' > f; exec 7>>log; echo one >&7; exec 8<f; read -r -n 2 -u 8 two").await;
    // A removed file that is still open belongs to the process that has it open.
    sh(&sandbox, "exec 9<>orphan; echo still here >&9; rm orphan; mkdir gone; cd gone").await;
    sandbox.close().await.expect("closed");
    drop(sandbox);
    let store = open(directory.path());
    let sandbox = resume(&store, "files").await;
    let out =
        sh(&sandbox, "pwd; echo two >&7; cat ../log; echo $two; cat <&8; cat /proc/self/fd/9; ls ..").await;
    assert_eq!(out, "/home/user/gone\none\ntwo\nhe\nllo\nstill here\nf\ngone\nlog\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interpreter_is_saved_with_its_variables() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "py").await;
    sandbox.python("import json; table = {n: n * n for n in range(200_000)}").await.expect("it runs");
    sandbox.python("def f(x): return table[x] + 1").await.expect("it runs");
    let before = sandbox.export().await.expect("an archive");
    sandbox.close().await.expect("closed");
    drop(sandbox);
    let store = open(directory.path());
    let sandbox = resume(&store, "py").await;
    assert!(before == sandbox.export().await.expect("an archive"));
    let answer = sandbox.python("f(1000)").await.expect("it runs");
    assert_eq!(answer.value.map(|value| value.repr).as_deref(), Some("1000001"));
    // The next commit starts from what was read.
    sandbox.python("table[3] = 'three'").await.expect("it runs");
    sandbox.close().await.expect("closed");
    drop(sandbox);
    let sandbox = resume(&store, "py").await;
    let answer = sandbox.python("table[3], len(table)").await.expect("it runs");
    assert_eq!(answer.value.map(|value| value.repr).as_deref(), Some("('three', 200000)"));
    assert!(store.verify().expect("verified").is_whole());
}

/// Random changes, saved after each command, read in between: always the value itself.
#[tokio::test(flavor = "multi_thread")]
async fn any_sequence_of_changes_is_saved() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let mut sandbox = create(&store, "random").await;
    let mut seed = 42u64;
    let mut next = move |end: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % end
    };
    for round in 0..60 {
        let (a, b) = (next(8), next(8));
        let script = match next(12) {
            0 => format!("mkdir -p d{a}/e; echo {round} > d{a}/e/f{b}"),
            1 => format!("rm -rf d{a}"),
            2 => format!("echo {round} >> f{a}"),
            3 => format!("head -c {} /dev/urandom > f{a}", next(300_000)),
            4 => format!("mv f{a} f{b} 2>/dev/null; mv d{a} d{b} 2>/dev/null; true"),
            5 => format!("ln -f f{a} hard{b} 2>/dev/null; ln -sf f{a} soft{b}; true"),
            6 => format!("truncate -s {} f{a}", next(500_000)),
            7 => format!("printf x | dd of=f{a} bs=1 seek={} conv=notrunc 2>/dev/null", next(400_000)),
            8 => format!(
                "chmod {:o} f{a} 2>/dev/null; touch -d @{} f{b}",
                0o600 + next(64),
                next(2_000_000_000)
            ),
            9 => format!("v{a}=$(head -c {} /dev/urandom | base64)", next(60_000)),
            10 => format!("for i in $(seq {}); do echo $i > many$i; done", next(200)),
            _ => format!("cd ~; f{b}() {{ echo {round}; }}"),
        };
        sh(&sandbox, &script).await;
        if round % 10 == 9 {
            let before = sandbox.export().await.expect("an archive");
            sandbox.close().await.expect("closed");
            drop(sandbox);
            sandbox = resume(&store, "random").await;
            let after = sandbox.export().await.expect("an archive");
            assert!(before == after, "round {round}");
        }
    }
    assert!(store.verify().expect("verified").is_whole());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_calls_are_commits_and_cost_what_they_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "log").await;
    sh(&sandbox, "for i in $(seq 300); do head -c 3000 /dev/urandom > f$i; done").await;
    let large = store.log("log", None, 1).expect("a log")[0].bytes;
    assert!(large > 900_000, "{large}");
    sh(&sandbox, "echo x >> f7").await;
    sandbox.write_file("g", "content").await.expect("written");
    sandbox.set_env("V", "w").await.expect("set");
    assert_eq!(sandbox.run("false").await.expect("it runs").exit_code, 1);
    let log = store.log("log", None, 10).expect("a log");
    let commands: Vec<String> =
        log.iter().take(4).map(|commit| String::from_utf8_lossy(&commit.note.command).into_owned()).collect();
    assert_eq!(commands, ["false", "set V", "write g", "echo x >> f7"]);
    assert_eq!(log[0].note.exit_code, Some(1));
    assert_eq!(log[1].note.exit_code, None);
    assert!(log[3].bytes < 400_000, "{} bytes for one line", log[3].bytes);
    // Without being closed: as if the process had been killed.
    std::mem::drop(sandbox);
    let sandbox = resume(&store, "log").await;
    assert_eq!(sh(&sandbox, "cat g; echo $V").await, "contentw\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_at_a_time_but_anyone_may_look() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, other) = (open(directory.path()), open(directory.path()));
    let sandbox = create(&store, "one").await;
    sh(&sandbox, "echo first > f").await;
    match other.resume("one").await {
        Err(Error::Store(StoreError::Busy { name, holder })) => {
            assert_eq!((name.as_str(), holder.as_str()), ("default/one", "this process"));
        }
        other => panic!("{other:?}"),
    }
    let view = other.view("one", None).await.expect("a view");
    assert_eq!(sh(&view, "cat f; echo changed > f; cat f").await, "first\nchanged\n");
    assert_eq!(sh(&sandbox, "cat f").await, "first\n");
    assert!(view.name().is_none());
    let exists = Sandbox::builder().persist(&other, "one").build().await;
    assert!(matches!(exists, Err(Error::Store(StoreError::Exists(_)))));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_travel() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "t").await;
    sh(&sandbox, "mkdir d; echo 1 > d/a; echo 1 > b; v=1").await;
    let first = store.log("t", None, 1).expect("a log")[0].id;
    store.tag("t", "good", first).expect("tagged");
    sh(&sandbox, "echo 2 > d/a; rm b; echo 2 > c; v=2").await;
    let changes = store.diff("t", "good", None).expect("a diff");
    let changes: Vec<(String, FileChangeKind)> = changes
        .into_iter()
        .map(|change| (String::from_utf8_lossy(&change.path).into_owned(), change.what))
        .collect();
    assert_eq!(
        changes,
        [
            ("/home/user/b".to_owned(), FileChangeKind::Removed),
            ("/home/user/c".to_owned(), FileChangeKind::Added),
            ("/home/user/d/a".to_owned(), FileChangeKind::Changed),
        ]
    );
    store.branch("t", Some("good"), "branch").expect("branched");
    let branch = resume(&store, "branch").await;
    assert_eq!(sh(&branch, "cat d/a b; echo $v").await, "1\n1\n1\n");
    sh(&branch, "echo branch > d/a").await;
    // The sandbox itself goes back, and its log goes on.
    sandbox.checkout("good").await.expect("back");
    assert_eq!(sh(&sandbox, "cat d/a b; echo $v; ls").await, "1\n1\n1\nb\nd\n");
    assert_eq!(store.log("t", None, 100).expect("a log").len(), 5);
    sandbox.close().await.expect("closed");
    drop(sandbox);
    store.collect(StoreRetention { last: 1, days: 0 }).expect("collected");
    assert!(store.verify().expect("verified").is_whole());
    let sandbox = resume(&store, "t").await;
    assert_eq!(sh(&sandbox, "cat d/a").await, "1\n");
    assert_eq!(store.find_first(&sandbox), Some(first));
}

/// Finds the oldest commit that is left.
trait First {
    fn find_first(&self, sandbox: &Sandbox) -> Option<i64>;
}

impl First for Store {
    fn find_first(&self, sandbox: &Sandbox) -> Option<i64> {
        Some(self.log(&sandbox.name()?, None, 100).ok()?.last()?.id)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sandboxes_start_from_images() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let setup = Sandbox::builder().build().await.expect("a sandbox");
    sh(&setup, "mkdir lib; echo 'value = 41' > lib/mine.py; greeting=hello").await;
    setup.python("import sys; sys.path.append('/home/user/lib'); import mine").await.expect("it runs");
    store.save_image(&setup, "base", "the script", None).await.expect("an image");
    assert_eq!(store.image("base").expect("an image").script, "the script");
    for _ in 0..2 {
        let sandbox = Sandbox::builder().image(&store, "base").build().await.expect("a sandbox");
        assert_eq!(sh(&sandbox, "echo $greeting").await, "hello\n");
        let answer = sandbox.python("mine.value + 1").await.expect("it runs");
        assert_eq!(answer.value.map(|value| value.repr).as_deref(), Some("42"));
        sh(&sandbox, "rm -r lib").await;
    }
    let named = Sandbox::builder().image(&store, "base").persist(&store, "from-image").build().await;
    sh(&named.expect("a sandbox"), "cat lib/mine.py").await;
    assert!(matches!(store.resume("base").await, Err(Error::Option(_))));
    let missing = Sandbox::builder().image(&store, "nothing").build().await;
    assert!(matches!(missing, Err(Error::Store(StoreError::Missing(_)))));
    store.remove_image("base").expect("removed");
    assert!(store.images().expect("images").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn mounts_are_mounted_again_and_overlays_keep_their_changes() {
    let (directory, host) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    std::fs::write(host.path().join("a"), "from the host\n").expect("written");
    std::fs::write(host.path().join("b"), "from the host\n").expect("written");
    let store = open(directory.path());
    let sandbox = Sandbox::builder()
        .mount(host.path(), "/over", MountMode::Overlay)
        .mount(host.path(), "/ro", MountMode::ReadOnly)
        .mount_files("/given", [("file", "given\n")], true)
        .persist(&store, "m")
        .build()
        .await
        .expect("a sandbox");
    sh(&sandbox, "echo changed > /over/a; rm /over/b; echo new > /over/c; echo more >> /given/file").await;
    let changes = sandbox.diff("/over").await.expect("changes");
    sandbox.close().await.expect("closed");
    drop(sandbox);
    let sandbox = resume(&store, "m").await;
    let out = sh(&sandbox, "ls /over; cat /over/a /over/c /ro/a /given/file; ls /ro").await;
    assert_eq!(out, "a\nc\nchanged\nnew\nfrom the host\ngiven\nmore\na\nb\n");
    assert_eq!(sandbox.diff("/over").await.expect("changes"), changes);
    assert_eq!(std::fs::read_to_string(host.path().join("a")).expect("read"), "from the host\n");
    sandbox.close().await.expect("closed");
    drop(sandbox);
    // A directory that is gone is an error that names it.
    drop(host);
    loop {
        match store.resume("m").await {
            Err(Error::Store(StoreError::Busy { .. })) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(Error::Option(message)) => break assert!(message.contains("cannot mount"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_store_keeps_everything() {
    let directory = tempfile::tempdir().expect("a directory");
    let key = StoreKey::from_bytes(&[3; 32]).expect("a key");
    let options = StoreOptions { key: Some(key), sync: false };
    let store = Store::open_with(directory.path(), options.clone()).expect("a store");
    let sandbox = create(&store, "secret").await;
    sh(&sandbox, "echo 'PLAINTEXT-IN-A-FILE' > f; v=$(seq 200000)").await;
    let before = sandbox.export().await.expect("an archive");
    sandbox.close().await.expect("closed");
    drop(sandbox);
    assert_eq!(std::fs::read_dir(directory.path().join("pages")).expect("a directory").count(), 0);
    let sandbox = resume(&store, "secret").await;
    assert!(before == sandbox.export().await.expect("an archive"));
    assert!(matches!(Store::open(directory.path()), Err(Error::Store(StoreError::Key(_)))));
}

#[tokio::test(flavor = "multi_thread")]
async fn session_mode_is_saved_when_asked_and_intervals_after_a_while() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = Sandbox::builder()
        .persist(&store, "session")
        .persistence_mode(PersistenceMode::Session)
        .build()
        .await
        .expect("a sandbox");
    sh(&sandbox, "echo 1 > f").await;
    assert_eq!(store.log("session", None, 10).expect("a log").len(), 1);
    sandbox.save().await.expect("saved");
    assert_eq!(store.log("session", None, 10).expect("a log").len(), 2);
    let other = Sandbox::builder()
        .persist(&store, "interval")
        .durability(Durability::Interval(Duration::from_millis(50)))
        .build()
        .await
        .expect("a sandbox");
    sh(&other, "echo 1 > f").await;
    sh(&other, "echo 2 > f").await;
    while store.log("interval", None, 10).expect("a log").len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    other.close().await.expect("closed");
    drop(other);
    let other = resume(&store, "interval").await;
    assert_eq!(sh(&other, "cat f").await, "2\n");
}

/// A call while a command runs is saved at once: the files as they are, the shell as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_written_while_a_command_runs_is_saved_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "busy").await;
    sh(&sandbox, "v=before").await;
    let running = {
        let sandbox = sandbox.clone();
        tokio::spawn(
            async move { sandbox.run("v=after; until [ -e go ]; do sleep 0.01; done; echo done").await },
        )
    };
    while !sandbox.is_running() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sandbox.write_file("note", "written").await.expect("written");
    let view = store.view("busy", None).await.expect("a view");
    assert_eq!(sh(&view, "cat note; echo \" $v\"").await, "written before\n");
    sandbox.write_file("go", "").await.expect("written");
    let result = running.await.expect("it runs").expect("it runs");
    assert_eq!(result.stdout, b"done\n");
    let view = store.view("busy", None).await.expect("a view");
    assert_eq!(sh(&view, "echo $v").await, "after\n");
}

/// A disk that cannot be written is an error of the call; the sandbox goes on, and nothing saved is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_an_error_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "f").await;
    sh(&sandbox, "echo 1 > f").await;
    // Somebody else takes the name over, as after an expired lease.
    let database = directory.path().join("store.db");
    let connection = rusqlite::Connection::open(database).expect("a database");
    connection.execute("UPDATE lease SET token = token + 1", []).expect("updated");
    let failed = sandbox.run("echo 2 > f").await;
    assert!(matches!(failed, Err(Error::Store(StoreError::Lost(_)))), "{failed:?}");
    connection.execute("UPDATE lease SET token = token - 1", []).expect("updated");
    assert_eq!(sh(&store.view("f", None).await.expect("a view"), "cat f").await, "1\n");
    // What was not saved is saved with the next commit.
    assert_eq!(sh(&sandbox, "cat f").await, "2\n");
    assert_eq!(sh(&store.view("f", None).await.expect("a view"), "cat f").await, "2\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_sleeps_keeps_its_name_its_id_and_its_value() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path());
    let sandbox = create(&store, "sleeper").await;
    sh(&sandbox, EVERYTHING).await;
    let (id, before) = (sandbox.id().to_owned(), sandbox.export().await.expect("an archive"));
    let dormant = sandbox.hibernate().await.expect("it is saved").expect("it can");
    assert!(matches!(sandbox.run("true").await, Err(Error::Destroyed)));
    drop(sandbox);
    assert!(matches!(store.resume("sleeper").await, Err(Error::Store(StoreError::Busy { .. }))));
    // Given up half-way, it still sleeps.
    drop(Box::pin(store.wake(&dormant, Sandbox::builder())));
    let sandbox = store.wake(&dormant, Sandbox::builder()).await.expect("it wakes");
    drop(dormant);
    assert_eq!(sandbox.id(), id);
    assert!(before == sandbox.export().await.expect("an archive"));
    // What is not changed is not saved again, though it was read.
    let commits = || store.log("sleeper", None, 1000).expect("a log").len();
    let (at_first, mut sandbox) = (commits(), sandbox);
    for _ in 0..3 {
        sandbox.read_file("/etc/passwd").await.expect("a file");
        let dormant = sandbox.hibernate().await.expect("it is saved").expect("it can");
        sandbox = store.wake(&dormant, Sandbox::builder()).await.expect("it wakes");
    }
    assert_eq!(commits(), at_first);
    sandbox.clear_history();
    let dormant = sandbox.hibernate().await.expect("it is saved").expect("it can");
    let sandbox = store.wake(&dormant, Sandbox::builder()).await.expect("it wakes");
    assert_eq!(sandbox.history(), []);
    assert_eq!(commits(), at_first + 1);
    // The name is free once nothing is left that stands for it.
    drop(dormant);
    let dormant = sandbox.hibernate().await.expect("it is saved").expect("it can");
    drop((sandbox, dormant));
    resume(&store, "sleeper").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_found_again_keeps_a_sandbox_awake() {
    let directory = tempfile::tempdir().expect("a directory");
    let host = tempfile::tempdir().expect("a directory");
    std::fs::write(host.path().join("f"), "host").expect("written");
    let store = open(directory.path());
    let setups = [
        ("removed", "exec 5>gone; rm gone", "exec 5>&-"),
        ("pipe", "exec 5< <(true)", "exec 5<&-; wait"),
        ("computed", "exec 5</proc/uptime", "exec 5<&-"),
        ("process", "sleep 1000 & p=$!", "kill $p; wait 2>/dev/null; true"),
        ("forbidden", "exec 5>f; chmod 0 f", "exec 5>&-"),
        ("unreachable", "mkdir -p a/b; cd a/b; chmod 0 ~/a", "chmod 700 ~/a"),
        ("directory", "mkdir d; cd d; rmdir ../d", "cd"),
        ("host", "exec 5</host/f", "exec 5<&-"),
    ];
    for (name, setup, undo) in setups {
        let mounted = Sandbox::builder().persist(&store, name);
        let sandbox =
            mounted.mount(host.path(), "/host", MountMode::ReadOnly).build().await.expect("a sandbox");
        sh(&sandbox, setup).await;
        assert!(sandbox.hibernate().await.expect("no error").is_none(), "{name}");
        sh(&sandbox, undo).await;
        while sandbox.usage_now().processes > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(sandbox.hibernate().await.expect("no error").is_some(), "{name}, undone");
    }
    let setups = [
        ("lock", "import fcntl; f = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)", "f.close()"),
        (
            "socket",
            "import socket; s = socket.socket(); s.bind(('127.0.0.1', 8000)); s.listen()",
            "s.close()",
        ),
        ("alarm", "import signal; left = signal.alarm(1000)", "left = signal.alarm(0)"),
    ];
    for (name, setup, undo) in setups {
        let sandbox = create(&store, name).await;
        let python = async |code: &str| {
            let done = sandbox.python(code).await.expect("it runs");
            assert_eq!(done.run.exit_code, 0, "{code}: {}", String::from_utf8_lossy(&done.run.stderr));
        };
        python(setup).await;
        assert!(sandbox.hibernate().await.expect("no error").is_none(), "{name}");
        python(undo).await;
        assert!(sandbox.hibernate().await.expect("no error").is_some(), "{name}, undone");
    }
    let sandbox = create(&store, "late").await;
    sh(&sandbox, "( (sleep 0.05; echo late) & )").await;
    while sandbox.usage_now().processes > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(sandbox.hibernate().await.expect("no error").is_none(), "what is written later is kept");
    assert_eq!(sh(&sandbox, "true").await, "late\n");
    assert!(sandbox.hibernate().await.expect("no error").is_some(), "it was handed on");
    let nameless = Sandbox::builder().build().await.expect("a sandbox");
    assert!(nameless.hibernate().await.expect("no error").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_sandboxes_are_taken_to_another_store() {
    let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let key = StoreKey::from_bytes(&[7; 32]).expect("a key");
    let from = open(directories[0].path());
    // Hashes of an encrypted store mean nothing to others, so none may be in the file.
    let to = StoreOptions { key: Some(key), sync: false };
    let to = Store::open_with(directories[1].path(), to).expect("a store");
    let setup = create(&from, "setup").await;
    sh(&setup, EVERYTHING).await;
    // An archive gives nobody set-user-id bits.
    sh(&setup, "chmod u-s ~/random").await;
    from.save_image(&setup, "base", "the script", None).await.expect("an image");
    let exported = from.export_image("base", Limits::default()).await.expect("a file");
    let name = to.import_image(exported.clone(), None, Sandbox::builder()).await.expect("an image");
    assert_eq!(name, "default/base");
    assert_eq!(to.image("base").expect("an image").script, "the script");
    let sandbox = Sandbox::builder().image(&to, "base").build().await.expect("a sandbox");
    assert!(setup.export().await.expect("an archive") == sandbox.export().await.expect("an archive"));
    assert_eq!(sh(&sandbox, "f x; echo ${local_variable[2]}").await, "function x\nthree four\n");

    sh(&setup, "echo later > ~/later").await;
    let exported_sandbox = from.export_sandbox("setup", None).await.expect("a file");
    let taken = to.import_sandbox(exported_sandbox.clone(), Some("taken"), Sandbox::builder()).await;
    let taken = taken.expect("a sandbox");
    assert!(setup.export().await.expect("an archive") == taken.export().await.expect("an archive"));
    taken.close().await.expect("closed");
    assert_eq!(sh(&resume(&to, "taken").await, "cat ~/later").await, "later\n");

    // Nothing of a file that is damaged gets a name, wherever the damage is.
    for (number, file) in [exported, exported_sandbox].iter().enumerate() {
        for step in 0..40 {
            let mut bad = file.clone();
            let at = bad.len() * step / 40;
            bad[at] ^= 0x20;
            let imported = to.import_image(bad, Some("bad"), Sandbox::builder()).await;
            assert!(matches!(imported, Err(Error::Archive(_))), "file {number}, byte {at}: {imported:?}");
            let cut = file[..at].to_vec();
            let imported = to.import_image(cut, Some("bad"), Sandbox::builder()).await;
            assert!(matches!(imported, Err(Error::Archive(_))), "file {number}, cut at {at}: {imported:?}");
        }
    }
    assert!(to.image("bad").is_err());
}
