//! The shell lives from run to run, and survives what happens to a command.

use std::time::Duration;

use wardian::internals::Inside;
use wardian::{ErrorClass, Input, Run, Sandbox};

use crate::support::{output, run, sandbox, text};

#[tokio::test]
async fn variables_functions_directory_and_descriptors_live_from_run_to_run() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=1; f() { echo \"f $1 $x\"; }; cd /tmp; exec 3>log; export E=exported").await;
    assert_eq!(output(&sandbox, "x=2; f a; pwd").await, "f a 2\n/tmp\n");
    output(&sandbox, "echo first >&3").await;
    output(&sandbox, "echo second >&3").await;
    assert_eq!(output(&sandbox, "cat /tmp/log; printenv E").await, "first\nsecond\nexported\n");
}

#[tokio::test]
async fn after_a_timeout_the_shell_is_as_before() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=before; cd /tmp; exec 4>kept; f() { echo f; }").await;
    let script = "x=after; cd /; unset -f f; exec 4>&-; exec 5>/tmp/new; echo written > /tmp/file; while :; do :; done";
    let result = sandbox.run_with(Run::new(script).timeout(Some(Duration::from_millis(100)))).await.unwrap();
    assert_eq!(result.exit_code, 124);
    assert_eq!(result.error_class, Some(ErrorClass::Timeout));
    assert_eq!(text(result.stderr), "wardian: timed out after 100 ms\n");
    assert_eq!(
        output(&sandbox, "echo $x; pwd; f; echo on >&4; cat /tmp/kept").await,
        "before\n/tmp\nf\non\n"
    );
    assert_eq!(output(&sandbox, "cat /tmp/file").await, "written\n", "completed writes are kept");
    assert_ne!(run(&sandbox, "echo x >&5").await.exit_code, 0);
}

#[tokio::test]
async fn every_kind_of_hanging_script_is_ended() {
    let scripts = [
        "while :; do :; done",
        "sleep 1000",
        "cat <(sleep 1000)",
        "yes > /dev/null",
        "yes | cat | cat > /dev/null",
        "while :; do /bin/true; done",
        "while :; do ( : ); done",
        "sleep 1000 & wait",
        "read x < /dev/zero",
    ];
    let sandbox = sandbox().await;
    for script in scripts {
        let run_it = Run::new(script).timeout(Some(Duration::from_millis(60)));
        let result = sandbox.run_with(run_it).await.unwrap();
        assert_eq!(result.exit_code, 124, "{script}: {}", String::from_utf8_lossy(&result.stderr));
        assert_eq!(output(&sandbox, "echo alive").await, "alive\n", "after {script}");
    }
    // Only the shell itself is left.
    assert_eq!(sandbox.machine().census().processes, 1);
}

#[tokio::test]
async fn cancel_ends_the_running_command_only() {
    let sandbox = sandbox().await;
    assert!(!sandbox.cancel());
    let running = sandbox.clone();
    let task = tokio::spawn(async move { running.run("echo begun; sleep 1000").await });
    while !sandbox.cancel() {
        tokio::task::yield_now().await;
    }
    let result = task.await.unwrap().unwrap();
    assert_eq!((result.exit_code, result.error_class), (125, Some(ErrorClass::Cancelled)));
    assert!(text(result.stderr).ends_with("wardian: cancelled\n"));
    assert_eq!(output(&sandbox, "echo next").await, "next\n");
}

#[tokio::test]
async fn a_run_that_nobody_waits_for_is_ended() {
    let sandbox = sandbox().await;
    let hanging = sandbox.run_with(Run::new("sleep 1000; x=never").timeout(None));
    assert!(tokio::time::timeout(Duration::from_millis(30), hanging).await.is_err());
    assert_eq!(output(&sandbox, "echo ${x-unset}").await, "unset\n");
    assert_eq!(sandbox.machine().census().processes, 1);
}

#[tokio::test]
async fn exit_ends_the_run_and_not_the_session() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=kept").await;
    assert_eq!(run(&sandbox, "exit 7; echo no").await.exit_code, 7);
    assert_eq!(output(&sandbox, "echo $x").await, "kept\n");
}

#[tokio::test]
async fn a_syntax_error_is_status_two_and_the_session_goes_on() {
    let sandbox = sandbox().await;
    let result = run(&sandbox, "if then; fi").await;
    assert_eq!(result.exit_code, 2);
    assert!(text(result.stderr).contains("syntax error"));
    assert_eq!(output(&sandbox, "echo on").await, "on\n");
}

#[tokio::test]
async fn a_background_job_outlives_its_command_and_can_be_waited_for() {
    let sandbox = sandbox().await;
    output(&sandbox, "{ sleep 0.1; echo done > /tmp/flag; } & job=$!").await;
    assert_eq!(output(&sandbox, "wait $job; cat /tmp/flag").await, "done\n");
}

#[tokio::test]
async fn standard_input_reaches_the_command_and_no_other() {
    let sandbox = sandbox().await;
    let with_input =
        Run::new("read a; echo \"<$a>\"; wc -l").stdin(Input::bytes(b"one\ntwo\nthree\n".to_vec()));
    assert_eq!(text(sandbox.run_with(with_input).await.unwrap().stdout), "<one>\n2\n");
    assert_eq!(output(&sandbox, "cat").await, "");
}

#[tokio::test]
async fn killing_the_shell_ends_the_command_and_not_the_session() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=kept").await;
    assert_eq!(run(&sandbox, "kill -9 $$; echo no").await.exit_code, 137);
    assert_eq!(output(&sandbox, "echo $x").await, "kept\n");
}

#[tokio::test]
async fn a_signal_between_commands_ends_none() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=kept; { sleep 0.05; kill -9 $$; echo sent > /tmp/flag; } & ").await;
    while sandbox.machine().census().processes > sandbox.machine().census().zombies + 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(output(&sandbox, "echo $x; cat /tmp/flag").await, "kept\nsent\n");
}

#[tokio::test]
async fn output_is_streamed_in_order() {
    let sandbox = sandbox().await;
    let (listener, mut pieces) = tokio::sync::mpsc::channel(1);
    let task = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Some(piece) = pieces.recv().await {
            all.extend(piece);
        }
        all
    });
    let result =
        sandbox.run_with(Run::new("for i in $(seq 500); do echo $i; done").on_stdout(listener)).await;
    assert_eq!(result.unwrap().exit_code, 0);
    let expected: String = (1..=500).map(|i| format!("{i}\n")).collect();
    assert_eq!(text(task.await.unwrap()), expected);
}

#[tokio::test]
async fn environment_and_directory_are_what_the_builder_said() {
    let sandbox = Sandbox::builder().env("A", "b c").env("HOME", "/tmp").cwd("/tmp").build().await.unwrap();
    assert_eq!(
        output(&sandbox, "echo \"$A\" $HOME $PATH $USER; pwd").await,
        "b c /tmp /bin:/usr/bin:/home/user/.local/bin user\n/tmp\n"
    );
    assert!(Sandbox::builder().env("A=B", "c").build().await.is_err());
    assert!(Sandbox::builder().cwd("/nowhere").build().await.is_err());
}

#[tokio::test]
async fn a_removed_directory_remains_for_processes_in_it() {
    let sandbox = sandbox().await;
    output(&sandbox, "mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d").await;
    let look = "ls -A; echo $?; stat -c '%F %h' .; touch x 2>/dev/null; echo $?";
    let as_on_linux = "0\ndirectory 0\n1\n";
    assert_eq!(output(&sandbox, look).await, as_on_linux);
    assert_eq!(
        sandbox
            .run_with(Run::new("while :; do :; done").timeout(Some(Duration::from_millis(50))))
            .await
            .unwrap()
            .exit_code,
        124
    );
    assert_eq!(output(&sandbox, look).await, as_on_linux);
    assert_eq!(output(&sandbox.fork().await.unwrap(), look).await, as_on_linux);
    let left = "cd .. 2>/dev/null; pwd; ls -A /tmp | wc -l";
    assert_eq!(output(&sandbox, left).await, "/tmp\n0\n");
}

/// What one command sets must not decide how the next one runs, where the caller wants that.
#[tokio::test]
async fn options_and_traps_of_a_contained_command_end_with_it() {
    let sandbox = Sandbox::builder().build().await.expect("a sandbox");
    let contained = |script: &'static str| {
        let sandbox = sandbox.clone();
        async move {
            let run = wardian::Run::new(script).contained(true);
            let result = sandbox.run_with(run).await.expect("it runs");
            (result.exit_code, String::from_utf8(result.stdout).expect("text"))
        }
    };
    let first = contained(
        "x=1; f() { echo f; }; cd /tmp; set -eu; shopt -s nullglob; trap 'echo bye' EXIT; false; x=2",
    );
    assert_eq!(first.await.0, 1);
    let second = "false; echo $x $(f) $PWD [${none-unset}] none* ; trap; shopt -q nullglob || echo off";
    assert_eq!(contained(second).await, (0, "1 f /tmp [unset] none*\noff\n".to_owned()));
    // Without it they stay, as in any shell.
    assert_eq!(sandbox.run("set -o pipefail").await.expect("it runs").exit_code, 0);
    assert_eq!(contained("false | true").await.0, 1);
}
