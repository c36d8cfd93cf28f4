//! Processes beside the shell.

use std::time::Duration;

use wardian::{ErrorClass, Limits, Process, ProcessEnd, ProcessOptions, ProcessStream, Sandbox};

async fn sandbox() -> Sandbox {
    Sandbox::builder().build().await.unwrap()
}

/// Takes everything a process writes, and its end.
async fn finish(process: &Process) -> (String, String, ProcessEnd) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(piece) = process.next_output().await {
        match piece.stream {
            ProcessStream::Stderr => err.extend(piece.bytes),
            ProcessStream::Stdout | ProcessStream::Pty => out.extend(piece.bytes),
        }
    }
    (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), process.wait().await)
}

/// Takes what a process writes until it has written `wanted`.
async fn until(process: &Process, wanted: &str) -> String {
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(wanted) {
        match process.next_output().await {
            Some(piece) => seen.extend(piece.bytes),
            None => panic!("ended before {wanted:?}: {:?}", String::from_utf8_lossy(&seen)),
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn a_process_has_its_own_streams_environment_and_directory() {
    let sandbox = Sandbox::builder().env("A", "of the sandbox").build().await.unwrap();
    sandbox.run("export A=of-the-shell B=of-the-shell; cd /tmp").await.unwrap();
    let options = ProcessOptions::command("echo \"$A|$B|$C|$PWD\"; echo oops >&2; exit 3")
        .env("C", "its own")
        .cwd("/etc");
    let (out, err, end) = finish(&sandbox.start_process(options).await.unwrap()).await;
    assert_eq!((&out[..], &err[..], end.exit_code), ("of the sandbox||its own|/etc\n", "oops\n", 3));
    let program = ProcessOptions::program(["printf", "%s-", "a b", "c"]);
    assert_eq!(finish(&sandbox.start_process(program).await.unwrap()).await.0, "a b-c-");
    for (options, errno) in [
        (ProcessOptions::program(["no-such-program"]), "ENOENT"),
        (ProcessOptions::program(["/etc/passwd"]), "EACCES"),
        (ProcessOptions::command("true").cwd("/nowhere"), "ENOENT"),
        // They would be copied for each directory of PATH.
        (ProcessOptions::program(["x".repeat(1 << 20)]).env("PATH", ":".repeat(300)), "ENAMETOOLONG"),
        (
            ProcessOptions::program(["x"]).env("PATH", ":".repeat(300)).cwd("/x".repeat(1 << 19)),
            "ENAMETOOLONG",
        ),
    ] {
        let error = sandbox.start_process(options).await.unwrap_err();
        assert_eq!(error.errno().unwrap().name(), errno, "{error}");
    }
}

#[tokio::test]
async fn several_run_at_once_and_beside_a_command_of_the_shell() {
    let sandbox = sandbox().await;
    let busy = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.run("mkfifo /tmp/f; cat /tmp/f").await })
    };
    let echo = "while read line; do echo \"$0: $line\"; done";
    let mut both = Vec::new();
    for name in ["one", "two"] {
        let options = ProcessOptions::program(["bash", "-c", echo, name]).stdin(true);
        both.push(sandbox.start_process(options).await.unwrap());
    }
    for round in ["a\n", "b\n"] {
        for (process, name) in both.iter().zip(["one", "two"]) {
            process.write(round.as_bytes()).await.unwrap();
            assert_eq!(until(process, "\n").await, format!("{name}: {round}"));
        }
    }
    for process in &both {
        process.close_stdin().await.unwrap();
        assert_eq!(finish(process).await.2.exit_code, 0);
        assert_eq!(process.write(b"x").await.unwrap_err().errno().unwrap().name(), "EPIPE");
    }
    // Only now is the shell's command let go, by a process beside it.
    let release = ProcessOptions::command("until [ -p /tmp/f ]; do sleep 0.01; done; echo released > /tmp/f");
    assert_eq!(finish(&sandbox.start_process(release).await.unwrap()).await.2.exit_code, 0);
    assert_eq!(busy.await.unwrap().unwrap().stdout, b"released\n");
}

#[tokio::test]
async fn signals_timeouts_and_handles_that_are_dropped_end_it_with_what_it_started() {
    let sandbox = sandbox().await;
    let loops = "sleep 1000 & echo ready; wait";
    let process = sandbox.start_process(ProcessOptions::command(loops)).await.unwrap();
    until(&process, "ready").await;
    process.signal(15).unwrap();
    let end = finish(&process).await.2;
    assert_eq!((end.exit_code, end.signal), (143, Some(15)));
    let trap = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let process = sandbox.start_process(ProcessOptions::command(trap)).await.unwrap();
    until(&process, "ready").await;
    process.signal(15).unwrap();
    let (out, _, end) = finish(&process).await;
    assert_eq!((&out[..], end.exit_code, end.signal), ("caught\n", 7, None));
    assert_eq!(process.signal(0).unwrap_err().errno().unwrap().name(), "EINVAL");
    let options =
        ProcessOptions::command("echo started; while :; do :; done").timeout(Some(Duration::from_millis(50)));
    let (out, _, end) = finish(&sandbox.start_process(options).await.unwrap()).await;
    assert_eq!((&out[..], end.exit_code, end.error_class), ("started\n", 124, Some(ErrorClass::Timeout)));
    let dropped = sandbox.start_process(ProcessOptions::command(loops)).await.unwrap();
    until(&dropped, "ready").await;
    drop(dropped);
    while sandbox.usage_now().processes > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn background_children_outlive_a_process_but_not_the_sandbox() {
    let sandbox = sandbox().await;
    let leaves = "(until [ -e /tmp/go ]; do sleep 0.01; done; echo late > /tmp/late) > /dev/null & echo $!";
    let (out, _, end) = finish(&sandbox.start_process(ProcessOptions::command(leaves)).await.unwrap()).await;
    assert_eq!(end.exit_code, 0, "{out}");
    assert!(sandbox.usage_now().processes > 1, "nothing was left");
    sandbox.run("touch /tmp/go; until [ -s /tmp/late ]; do sleep 0.01; done").await.unwrap();
    let process = sandbox.start_process(ProcessOptions::command("echo ready; sleep 1000")).await.unwrap();
    until(&process, "ready").await;
    sandbox.destroy().await;
    let end = finish(&process).await.2;
    assert_eq!(end.signal, Some(9));
    assert!(sandbox.start_process(ProcessOptions::command("true")).await.is_err());
}

#[tokio::test]
async fn processes_count_against_the_limits_and_wait_while_nobody_takes_their_output() {
    // Enough for the shell, the three processes of the pipeline below and the one that waits meanwhile.
    let limits = Limits { processes: 6, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(sandbox.start_process(ProcessOptions::program(["sleep", "1000"])).await.unwrap());
    }
    let refused = sandbox.start_process(ProcessOptions::program(["sleep", "1000"])).await.unwrap_err();
    assert_eq!(refused.errno().unwrap().name(), "EAGAIN");
    held.clear();
    while sandbox.usage_now().processes > 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let writes = "head -c 50000000 /dev/zero | tr '\\0' x; echo done > /tmp/done";
    let process = sandbox.start_process(ProcessOptions::command(writes)).await.unwrap();
    assert_eq!(sandbox.run("sleep 0.2").await.unwrap().exit_code, 0);
    assert!(sandbox.stat("/tmp/done").await.is_err(), "somebody took fifty megabytes");
    let mut bytes = 0;
    while let Some(piece) = process.next_output().await {
        bytes += piece.bytes.len();
    }
    assert_eq!((bytes, process.wait().await.exit_code), (50_000_000, 0));
}

#[tokio::test]
async fn a_terminal_echoes_has_a_size_and_sends_signals() {
    let sandbox = sandbox().await;
    let script = "size() { python3 -c 'import os; print(*os.get_terminal_size(0))'; }; size; trap size WINCH; echo ready; while :; do read -r line && echo \"got $line\"; done";
    let process = sandbox.start_process(ProcessOptions::command(script).pty(24, 80)).await.unwrap();
    assert!(until(&process, "ready").await.contains("80 24\r\n"));
    process.write(b"hello\r").await.unwrap();
    assert!(until(&process, "got hello").await.contains("hello\r\n"), "no echo");
    process.resize(30, 100).unwrap();
    until(&process, "100 30").await;
    process.write(&[3]).await.unwrap();
    let end = finish(&process).await.2;
    assert_eq!(end.signal, Some(2));
    let plain = sandbox.start_process(ProcessOptions::command("[ -t 0 ] || echo no terminal")).await.unwrap();
    assert_eq!(plain.resize(1, 1).unwrap_err().errno().unwrap().name(), "ENOTTY");
    assert_eq!(finish(&plain).await.0, "no terminal\n");
}

#[tokio::test]
async fn an_interactive_shell_at_a_terminal_prompts_and_runs_what_is_typed() {
    let sandbox = sandbox().await;
    let shell = ProcessOptions::program(["/bin/bash", "-i"]).env("PS1", "prompt> ").pty(24, 80);
    let process = sandbox.start_process(shell).await.unwrap();
    process.write(b"PS1='prompt'\"> \"; x=42\r").await.unwrap();
    until(&process, "prompt> ").await;
    process.write(b"echo x is $x\r").await.unwrap();
    until(&process, "x is 42").await;
    process.write(b"exit 5\r").await.unwrap();
    assert_eq!(finish(&process).await.2.exit_code, 5);
}

#[tokio::test]
async fn root_may_change_what_the_user_may_not_and_nothing_more() {
    let sandbox = sandbox().await;
    let changes = || ProcessOptions::command("echo root-was-here > /etc/motd; stat -c %u /etc/motd");
    let refused = finish(&sandbox.start_process(changes()).await.unwrap()).await;
    assert_ne!(refused.2.exit_code, 0);
    let done = finish(&sandbox.start_process(changes().root(true)).await.unwrap()).await;
    assert_eq!((&done.0[..], done.2.exit_code), ("0\n", 0), "{}", done.1);
    let read = sandbox.run("cat /etc/motd; echo mine > /etc/motd").await.unwrap();
    assert_eq!((&read.stdout[..], read.exit_code), (&b"root-was-here\n"[..], 1));
}
