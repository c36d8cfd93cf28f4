//! The calls of a sandbox other than `run`, one by one.

use std::time::Duration;

use wardian::internals::Inside;
use wardian::{Errno, Error, FileKind, Limits, MountMode, OverlayChangeKind as What, Run, Sandbox};

use crate::support::{output, run, sandbox, text};

fn errno<T>(result: Result<T, Error>) -> Errno {
    result.err().and_then(|error| error.errno()).expect("the sandbox says no")
}

#[tokio::test]
async fn files_from_outside_are_the_files_inside() {
    let sandbox = sandbox().await;
    sandbox.mkdir("/tmp/a/b/c").await.unwrap();
    sandbox.mkdir("/tmp/a/b/c").await.unwrap();
    sandbox.write_file("/tmp/a/f", "one\n").await.unwrap();
    sandbox.write_file("relative", "at home").await.unwrap();
    assert_eq!(
        output(&sandbox, "cat /tmp/a/f; cat ~/relative; ls -d /tmp/a/b/c").await,
        "one\nat home/tmp/a/b/c\n"
    );
    output(&sandbox, "echo two >> /tmp/a/f; ln -s f /tmp/a/link").await;
    assert_eq!(sandbox.read_file("/tmp/a/link").await.unwrap(), b"one\ntwo\n");
    let names: Vec<_> =
        sandbox.list("/tmp/a").await.unwrap().into_iter().map(|e| (text(e.name), e.kind, e.size)).collect();
    let expected =
        [("b", FileKind::Dir, None), ("f", FileKind::File, Some(8)), ("link", FileKind::Symlink, Some(1))];
    assert_eq!(names.len(), 3);
    for ((name, kind, size), (expected, is, bytes)) in names.iter().zip(expected) {
        assert_eq!((name.as_str(), *kind), (expected, is));
        assert!(bytes.is_none_or(|bytes| bytes == *size), "{name}: {size}");
    }
    sandbox.chmod("/tmp/a/f", 0o600).await.unwrap();
    let stat = sandbox.stat("/tmp/a/f").await.unwrap();
    assert_eq!((text(stat.name), stat.kind, stat.size, stat.mode), ("f".into(), FileKind::File, 8, 0o600));
    sandbox.rename("/tmp/a/f", "/tmp/a/g").await.unwrap();
    sandbox.symlink("g", "/tmp/a/s").await.unwrap();
    assert_eq!(output(&sandbox, "stat -c %a /tmp/a/g; cat /tmp/a/s").await, "600\none\ntwo\n");
    sandbox.rm("/tmp/a").await.unwrap();
    assert_eq!(output(&sandbox, "ls /tmp").await, "");
}

#[tokio::test]
async fn file_calls_answer_with_the_errno_and_the_path() {
    let sandbox = sandbox().await;
    assert_eq!(errno(sandbox.read_file("/nowhere").await), Errno::ENOENT);
    assert_eq!(errno(sandbox.read_file("/tmp").await), Errno::EISDIR);
    assert_eq!(errno(sandbox.read_file("/dev/zero").await), Errno::EINVAL);
    assert_eq!(errno(sandbox.read_file("").await), Errno::ENOENT);
    assert_eq!(errno(sandbox.write_file("/bin/ls", "mine").await), Errno::EACCES);
    assert_eq!(errno(sandbox.write_file("/no/parent", "").await), Errno::ENOENT);
    assert_eq!(errno(sandbox.mkdir("/etc/passwd/x").await), Errno::ENOTDIR);
    assert_eq!(errno(sandbox.rm("/etc/passwd").await), Errno::EACCES);
    assert_eq!(errno(sandbox.list("/etc/passwd").await), Errno::ENOTDIR);
    let message = sandbox.stat("/x/y").await.err().unwrap().to_string();
    assert_eq!(message, "ENOENT: no such file or directory: /x/y");
}

#[tokio::test]
async fn a_sparse_file_does_not_fill_its_readers_memory() {
    let dir = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::builder().mount(dir.path(), "/src", MountMode::Overlay).build().await.unwrap();
    output(&sandbox, "truncate -s 1T /tmp/f; truncate -s 1T /src/f").await;
    assert_eq!(errno(sandbox.read_file("/tmp/f").await), Errno::EFBIG);
    assert_eq!(errno(sandbox.file_changes("/src").await), Errno::EFBIG);
}

#[tokio::test]
async fn a_write_without_space_leaves_the_file_unchanged() {
    let limits = Limits { fs_bytes: 1000, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    sandbox.write_file("/tmp/f", "before").await.unwrap();
    assert_eq!(errno(sandbox.write_file("/tmp/f", vec![b'x'; 2000]).await), Errno::ENOSPC);
    assert_eq!(sandbox.read_file("/tmp/f").await.unwrap(), b"before");
    assert_eq!(sandbox.machine().tree().await.usage().bytes, 6);
}

#[tokio::test]
async fn files_can_be_used_while_a_command_runs() {
    let sandbox = sandbox().await;
    let running = sandbox.clone();
    let task =
        tokio::spawn(
            async move { running.run("until [ -e /tmp/go ]; do sleep 0.01; done; cat /tmp/go").await },
        );
    while !sandbox.is_running() {
        tokio::task::yield_now().await;
    }
    sandbox.write_file("/tmp/go", "gone\n").await.unwrap();
    assert_eq!(text(task.await.unwrap().unwrap().stdout), "gone\n");
    assert!(!sandbox.is_running());
}

#[tokio::test]
async fn environment_of_the_shell() {
    let sandbox = sandbox().await;
    sandbox.set_env("GREETING", "hello, it's me").await.unwrap();
    assert_eq!(output(&sandbox, "printenv GREETING").await, "hello, it's me\n");
    output(&sandbox, "plain=1; GREETING=changed; readonly fixed=1").await;
    assert_eq!(sandbox.get_env("GREETING").await.unwrap().unwrap(), b"changed");
    assert_eq!(sandbox.get_env("plain").await.unwrap().unwrap(), b"1");
    assert_eq!(sandbox.get_env("absent").await.unwrap(), None);
    assert_eq!(errno(sandbox.set_env("fixed", "2").await), Errno::EPERM);
    assert!(matches!(sandbox.set_env("A=B", "c").await, Err(Error::Option(_))));
    assert!(matches!(sandbox.set_env("A", "nul\0").await, Err(Error::Option(_))));
}

/// A name that stands for another, which takes forever to find out.
const ENDLESS_NAME: &str = "declare -n FOO='b[$(while :; do :; done)]'";

#[tokio::test]
async fn a_variable_takes_no_longer_than_a_command_may() {
    let short = Sandbox::builder().timeout(Some(Duration::from_millis(300))).build().await.unwrap();
    run(&short, ENDLESS_NAME).await;
    assert_eq!(errno(short.set_env("FOO", "1").await), Errno::ETIMEDOUT);
    assert_eq!(output(&short, "echo alive").await, "alive\n");
    let sandbox = sandbox().await;
    run(&sandbox, ENDLESS_NAME).await;
    let setting = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.set_env("FOO", "1").await })
    };
    while !sandbox.is_running() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(sandbox.cancel());
    assert_eq!(errno(setting.await.unwrap()), Errno::ECANCELED);
    assert!(!sandbox.is_running());
    assert_eq!(output(&sandbox, "echo alive").await, "alive\n");
}

#[tokio::test]
async fn variables_and_directory_for_one_command_alone() {
    let sandbox = sandbox().await;
    output(&sandbox, "A=kept; export B=old; mkdir /tmp/d").await;
    let script = "echo $A $B $C; pwd; printenv A; x=new; cd /";
    let with = Run::new(script).env("A", "it's").env("B", "new").env("C", "c").cwd("/tmp/d");
    assert_eq!(text(sandbox.run_with(with).await.unwrap().stdout), "it's new c\n/tmp/d\nit's\n");
    assert_eq!(
        output(&sandbox, "echo $A $B ${C-unset} $x; pwd; printenv B").await,
        "kept old unset new\n/home/user\nold\n"
    );
    assert_eq!(run(&sandbox, "printenv A").await.exit_code, 1, "it is not exported again");
    assert_eq!(output(&sandbox, "compgen -v __wardian || :").await, "");
    let failing = sandbox.run_with(Run::new("exit 3").env("A", "x")).await.unwrap();
    assert_eq!((failing.exit_code, output(&sandbox, "echo $A").await), (3, "kept\n".into()));
    assert_eq!(errno(sandbox.run_with(Run::new("pwd").cwd("/nowhere")).await), Errno::ENOENT);
}

#[tokio::test]
async fn history_is_kept_and_goes_along() {
    let sandbox = sandbox().await;
    run(&sandbox, "echo 1").await;
    run(&sandbox, "exit 2").await;
    let fork = sandbox.fork().await.unwrap();
    run(&fork, "echo 3").await;
    let commands = |sandbox: &Sandbox| -> Vec<(u64, String)> {
        sandbox.history().into_iter().map(|entry| (entry.index, text(entry.command))).collect()
    };
    assert_eq!(commands(&sandbox), [(1, "echo 1".to_owned()), (2, "exit 2".to_owned())]);
    assert_eq!(commands(&fork)[2], (3, "echo 3".to_owned()));
    sandbox.clear_history();
    assert!(sandbox.history().is_empty());
}

#[tokio::test]
async fn a_snapshot_can_be_restored_many_times() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=1; f() { echo f$x; }; echo one > /tmp/f; exec 3>>/tmp/f").await;
    let snapshot = sandbox.snapshot().await.unwrap();
    let usage = sandbox.machine().tree().await.usage();
    for _ in 0..3 {
        output(&sandbox, "x=2; unset -f f; rm /tmp/f; echo gone >&3; sleep 1000 & cd /").await;
        sandbox.restore(&snapshot).await.unwrap();
        assert_eq!(output(&sandbox, "f; cat /tmp/f; pwd; echo $x").await, "f1\none\n/home/user\n1\n");
        assert_eq!(sandbox.machine().census().processes, 1, "what ran in the background is gone");
        assert_eq!(sandbox.machine().tree().await.usage(), usage);
        assert_eq!(output(&sandbox, "echo two >&3; cat /tmp/f").await, "one\ntwo\n");
        sandbox.restore(&snapshot).await.unwrap();
    }
}

#[tokio::test]
async fn fork_snapshot_and_environment_wait_for_the_command() {
    let sandbox = sandbox().await;
    let running = sandbox.clone();
    let task = tokio::spawn(async move { running.run("sleep 0.2; x=done").await });
    while !sandbox.is_running() {
        tokio::task::yield_now().await;
    }
    let (fork, snapshot, value) = tokio::join!(sandbox.fork(), sandbox.snapshot(), sandbox.get_env("x"));
    assert_eq!(value.unwrap().unwrap(), b"done");
    assert_eq!(output(&fork.unwrap(), "echo $x").await, "done\n");
    sandbox.restore(&snapshot.unwrap()).await.unwrap();
    assert_eq!(output(&sandbox, "echo $x").await, "done\n");
    assert_eq!(task.await.unwrap().unwrap().exit_code, 0);
}

#[tokio::test]
async fn a_runs_clock_starts_when_it_does() {
    let sandbox = sandbox().await;
    let first = sandbox.run("sleep 0.5");
    let second = sandbox.run_with(Run::new("echo second").timeout(Some(Duration::from_millis(400))));
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.unwrap().exit_code, second.unwrap().exit_code), (0, 0));
}

#[tokio::test]
async fn many_tasks_use_one_sandbox_without_deadlock() {
    let sandbox = sandbox().await;
    let mut tasks = Vec::new();
    for number in 0..24 {
        let sandbox = sandbox.clone();
        tasks.push(tokio::spawn(async move {
            let path = format!("/tmp/{number}");
            match number % 6 {
                0 => drop(sandbox.run(format!("echo {number} > {path}")).await.unwrap()),
                1 => drop(sandbox.fork().await.unwrap()),
                2 => sandbox.write_file(&path, "x").await.unwrap(),
                3 => drop(sandbox.snapshot().await.unwrap()),
                4 => sandbox.set_env("N", &number.to_string()).await.unwrap(),
                _ => drop(sandbox.list("/tmp").await.unwrap()),
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(output(&sandbox, "ls /tmp | wc -l").await, "8\n");
}

#[tokio::test]
async fn a_suspended_sandbox_stands_still_and_so_does_its_clock() {
    let sandbox = sandbox().await;
    let running = sandbox.clone();
    let script = "while [ ! -e /tmp/stop ]; do n=$((n + 1)); echo $n > /tmp/n; done; echo done";
    let task = tokio::spawn(async move {
        running.run_with(Run::new(script).timeout(Some(Duration::from_millis(1500)))).await
    });
    while sandbox.read_file("/tmp/n").await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sandbox.suspend().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let before = sandbox.read_file("/tmp/n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(2000)).await;
    assert_eq!(sandbox.read_file("/tmp/n").await.unwrap(), before);
    assert!(sandbox.is_running(), "its time was not up");
    sandbox.write_file("/tmp/stop", "").await.unwrap();
    sandbox.resume().unwrap();
    assert_eq!(text(task.await.unwrap().unwrap().stdout), "done\n");
}

#[tokio::test]
async fn a_suspended_sandbox_can_be_cancelled() {
    let sandbox = sandbox().await;
    let running = sandbox.clone();
    let task = tokio::spawn(async move { running.run("while :; do :; done").await });
    while !sandbox.is_running() {
        tokio::task::yield_now().await;
    }
    sandbox.suspend().unwrap();
    assert!(sandbox.cancel());
    assert_eq!(task.await.unwrap().unwrap().exit_code, 125);
    sandbox.resume().unwrap();
    assert_eq!(output(&sandbox, "echo on").await, "on\n");
}

#[tokio::test]
async fn after_destroy_everything_is_gone_for_every_handle() {
    let sandbox = sandbox().await;
    output(&sandbox, "sleep 1000 & echo x > /tmp/f").await;
    let other = sandbox.clone();
    let running = tokio::spawn(async move { other.run("sleep 1000").await });
    while !sandbox.is_running() {
        tokio::task::yield_now().await;
    }
    sandbox.destroy().await;
    assert_eq!(running.await.unwrap().unwrap().exit_code, 125);
    assert!(matches!(sandbox.run("echo").await, Err(Error::Destroyed)));
    assert!(matches!(sandbox.read_file("/tmp/f").await, Err(Error::Destroyed)));
    assert!(matches!(sandbox.fork().await, Err(Error::Destroyed)));
    assert_eq!(sandbox.machine().census().processes, 0);
    assert_eq!(sandbox.machine().tree().await.usage().bytes, 0);
}

#[tokio::test]
async fn files_given_as_bytes_can_be_mounted() {
    let sandbox = Sandbox::builder()
        .mount_files("/data", [("a", "one\n"), ("sub/b", "two\n")], false)
        .build()
        .await
        .unwrap();
    assert_eq!(output(&sandbox, "cat /data/a /data/sub/b").await, "one\ntwo\n");
    for script in [
        "echo x > /data/a",
        "rm /data/a",
        "touch /data/new",
        "mv /data/a /data/c",
        "chmod 0 /data/a",
        "rm -r /data/sub",
    ] {
        let result = run(&sandbox, script).await;
        assert_ne!(result.exit_code, 0, "{script}");
        assert!(text(result.stderr).to_lowercase().contains("read-only"), "{script}");
    }
    sandbox.mount_files("/more", [("c", "three\n")], true).await.unwrap();
    assert_eq!(output(&sandbox, "echo four >> /more/c; cat /more/c").await, "three\nfour\n");
    sandbox.unmount("/more").await.unwrap();
    assert_ne!(run(&sandbox, "cat /more/c").await.exit_code, 0);
    assert_eq!(errno(sandbox.unmount("/proc").await), Errno::EPERM);
    assert!(sandbox.mount_files("/x", [("../../etc/passwd", "")], true).await.is_err());
    assert!(sandbox.mount_files("relative", [("a", "")], true).await.is_err());
}

fn host() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in [("kept", "kept\n"), ("changed", "old\n"), ("gone", "gone\n")] {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

#[tokio::test]
async fn an_overlays_changes_can_be_seen_and_applied() {
    let dir = host();
    let sandbox = Sandbox::builder().mount(dir.path(), "/w", MountMode::Overlay).build().await.unwrap();
    output(&sandbox, "cd /w; echo new > changed; rm gone; mkdir d; echo added > d/f").await;
    let shown = |changes: Vec<wardian::OverlayChange>| -> Vec<String> {
        let word = |what| match what {
            What::Added { .. } => "+",
            What::Deleted { .. } => "-",
            What::Modified => "*",
            What::Mode { .. } => "m",
        };
        changes.into_iter().map(|change| format!("{}{}", word(change.what), text(change.path))).collect()
    };
    let expected = ["*changed", "+d", "+d/f", "-gone"];
    assert_eq!(shown(sandbox.diff("/w").await.unwrap()), expected);
    assert!(text(sandbox.diff_text("/w").await.unwrap()).contains("-old\n+new\n"));
    assert_eq!(shown(sandbox.apply("/w", true).await.unwrap()), expected);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("changed")).unwrap(),
        "old\n",
        "a dry run does nothing"
    );
    assert_eq!(shown(sandbox.apply("/w", false).await.unwrap()), expected);
    assert_eq!(std::fs::read_to_string(dir.path().join("changed")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("d/f")).unwrap(), "added\n");
    assert!(!dir.path().join("gone").exists());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left of the work");
    assert!(sandbox.diff("/w").await.unwrap().is_empty());
}

#[tokio::test]
async fn what_the_host_changed_meanwhile_is_not_overwritten() {
    for (host_does, sandbox_does) in [
        ("echo theirs > changed", "echo ours > changed"),
        ("rm changed", "echo ours >> changed"),
        ("echo theirs > new", "echo ours > new"),
        ("echo theirs >> gone", "rm gone"),
        ("rm changed; mkdir changed", "echo ours > changed"),
    ] {
        let dir = host();
        let sandbox = Sandbox::builder().mount(dir.path(), "/w", MountMode::Overlay).build().await.unwrap();
        output(&sandbox, &format!("cd /w; {sandbox_does}; echo fine > other")).await;
        let status =
            std::process::Command::new("bash").args(["-c", host_does]).current_dir(dir.path()).status();
        assert!(status.unwrap().success());
        for dry_run in [true, false] {
            assert_eq!(
                errno(sandbox.apply("/w", dry_run).await),
                Errno::EBUSY,
                "{host_does} / {sandbox_does}"
            );
        }
        assert!(!dir.path().join("other").exists(), "all or nothing");
    }
}

#[tokio::test]
async fn a_nice_value_is_checked_and_honoured() {
    assert!(matches!(Sandbox::builder().nice(20).build().await, Err(Error::Option(_))));
    let nice = Sandbox::builder().nice(19).build().await.unwrap();
    assert_eq!(output(&nice, "for ((i = 0; i < 20000; i++)); do :; done; echo done").await, "done\n");
}

#[test]
fn without_a_runtime_there_is_a_blocking_facade() {
    let sandbox = wardian::blocking::Sandbox::new(Sandbox::builder()).unwrap();
    assert_eq!(sandbox.run("x=1; echo hello > /tmp/f; cat /tmp/f").unwrap().stdout, b"hello\n");
    let fork = sandbox.fork().unwrap();
    fork.set_env("x", "2").unwrap();
    assert_eq!(
        (sandbox.get_env("x").unwrap(), fork.get_env("x").unwrap()),
        (Some(b"1".to_vec()), Some(b"2".to_vec()))
    );
    assert_eq!(fork.read_file("/tmp/f").unwrap(), b"hello\n");
    let (sender, receiver) = std::sync::mpsc::channel();
    let run = Run::new("echo a; echo b").on_stdout_call(move |piece| sender.send(piece.to_vec()).unwrap());
    assert_eq!(sandbox.run_with(run).unwrap().exit_code, 0);
    assert_eq!(receiver.iter().flatten().collect::<Vec<u8>>(), b"a\nb\n");
    sandbox.destroy().unwrap();
    assert!(matches!(sandbox.run("echo"), Err(Error::Destroyed)));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert!(matches!(runtime.block_on(async { fork.run("echo") }), Err(Error::InsideRuntime)));
}

#[test]
fn everything_can_be_used_from_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Sandbox>();
    is_shared::<wardian::Snapshot>();
    is_shared::<wardian::AuditLog>();
    let _ = |sandbox: Sandbox, snapshot: wardian::Snapshot| {
        is_send(&sandbox.run("echo"));
        is_send(&sandbox.fork_many(2));
        is_send(&sandbox.restore(&snapshot));
        is_send(&sandbox.export());
        is_send(&sandbox.import(Vec::new()));
        is_send(&sandbox.apply("/", true));
        is_send(&sandbox.destroy());
    };
}
