//! Kill keeps its word: what is left of a command that was ended.

use std::time::Duration;

use wardian::internals::Inside;
use wardian::{Limit, Limits, OnKill, Run, Sandbox};

use crate::support::{output, run, sandbox, text};

fn short(script: &str) -> Run {
    Run::new(script).timeout(Some(Duration::from_millis(150)))
}

#[tokio::test]
async fn the_shell_is_as_it_was_before_the_command() {
    let sandbox = sandbox().await;
    let setup = "x=1; declare -A m=([k]=v); a=(p q); f() { echo f; }; alias ll='echo ll'; shopt -s expand_aliases extglob; \
                 set -u; trap 'echo t' USR1; cd /tmp; umask 027; exec 3>log";
    output(&sandbox, setup).await;
    let look = "declare -p x m a; declare -f f; alias; shopt extglob; set +o | grep nounset; trap -p; pwd; umask; ls -l /proc/self/fd | wc -l";
    let before = output(&sandbox, look).await;
    let script = "x=2; m[k]=w; m[n]=1; a+=(r); f() { echo g; }; unalias ll; shopt -u extglob; set +u; trap - USR1; cd /; \
                  umask 0; exec 3>&- 4>/tmp/four; while :; do :; done";
    for _ in 0..3 {
        assert_eq!(sandbox.run_with(short(script)).await.unwrap().exit_code, 124);
        assert_eq!(output(&sandbox, look).await, before);
    }
}

#[tokio::test]
async fn completed_writes_are_kept_and_none_is_half_done() {
    let sandbox = sandbox().await;
    // Each write is a block of one digit: after a kill there must be whole blocks only.
    let script = "i=0; while :; do printf '%01000d' $((i = (i + 1) % 10)) >> /tmp/blocks; done";
    for _ in 0..5 {
        assert_eq!(sandbox.run_with(short(script)).await.unwrap().exit_code, 124);
        let written = sandbox.read_file("/tmp/blocks").await.unwrap();
        assert!(!written.is_empty());
        assert_eq!(written.len() % 1000, 0);
    }
    assert_eq!(sandbox.machine().tree().await.fsck(), Ok(()));
}

#[tokio::test]
async fn rollback_returns_the_files_to_what_they_were() {
    let sandbox = Sandbox::builder().on_kill(OnKill::Rollback).build().await.unwrap();
    output(&sandbox, "cd /tmp; echo kept > f; mkdir d; echo x > d/x; exec 3>>f").await;
    let usage = sandbox.machine().tree().await.usage();
    let ruin =
        "rm -r d; echo more >&3; echo y > new; mv f g; exec 4<g; rm g; yes > big & while :; do :; done";
    for _ in 0..3 {
        assert_eq!(sandbox.run_with(short(ruin)).await.unwrap().exit_code, 124);
        assert_eq!(output(&sandbox, "ls -R; cat f d/x").await, ".:\nd\nf\n\n./d:\nx\nkept\nx\n");
        let tree = sandbox.machine().tree().await;
        assert_eq!((tree.usage(), tree.fsck()), (usage, Ok(())));
    }
    assert_eq!(output(&sandbox, "echo on >&3; cat f").await, "kept\non\n");
    // What ends by itself is never rolled back, however it ends.
    assert_eq!(run(&sandbox, "echo z > stays; exit 9").await.exit_code, 9);
    assert_eq!(output(&sandbox, "cat stays").await, "z\n");
}

#[tokio::test]
async fn older_background_jobs_survive_a_timeout_up_to_their_own_deadline() {
    let sandbox =
        Sandbox::builder().background_timeout(Some(Duration::from_millis(1500))).build().await.unwrap();
    output(&sandbox, "sleep 1000 & old=$!").await;
    assert_eq!(sandbox.run_with(short("sleep 1000 & sleep 1000")).await.unwrap().exit_code, 124);
    assert_eq!(output(&sandbox, "kill -0 $old && echo alive").await, "alive\n");
    while sandbox.machine().census().processes - sandbox.machine().census().zombies > 1 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_ne!(run(&sandbox, "wait $old").await.exit_code, 0);
}

#[tokio::test]
async fn nothing_is_left_of_a_hundred_killed_commands() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=kept").await;
    let before = (sandbox.machine().census(), sandbox.machine().tree().await.usage());
    let scripts = [
        "(sleep 1000) | cat",
        "yes | head -c 1G | wc -c",
        "exec 5>/tmp/x; rm /tmp/x; yes >&5",
        "f() { f & f; }; f",
        "cat <(yes) > /dev/null",
    ];
    for number in 0..100 {
        let run = Run::new(scripts[number % scripts.len()])
            .timeout(Some(Duration::from_millis(5 + number as u64 % 20)));
        assert_eq!(sandbox.run_with(run).await.unwrap().exit_code, 124);
    }
    assert_eq!(output(&sandbox, "echo $x; rm -f /tmp/x").await, "kept\n");
    let census = sandbox.machine().census();
    assert_eq!(
        (census.processes, census.zombies, census.descriptors),
        (before.0.processes, 0, before.0.descriptors)
    );
    assert_eq!(sandbox.machine().tree().await.usage(), before.1);
}

#[tokio::test]
async fn streaming_waits_for_a_slow_listener_and_loses_nothing() {
    let limits = Limits { stdout_bytes: usize::MAX, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    let (sender, mut pieces) = tokio::sync::mpsc::channel(1);
    let running = sandbox.clone();
    let script = "for i in $(seq 2000); do printf 'é€😀%d\\n' $i; done";
    let task = tokio::spawn(async move { running.run_with(Run::new(script).on_stdout(sender)).await });
    let mut all = Vec::new();
    while let Some(piece) = pieces.recv().await {
        assert!(std::str::from_utf8(&piece).is_ok(), "no character is split");
        all.extend(piece);
        if all.len() % 7 == 0 {
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
    }
    let expected: String = (1..=2000).map(|i| format!("é€😀{i}\n")).collect();
    assert_eq!(text(all), expected);
    let result = task.await.unwrap().unwrap();
    assert!(result.stdout.is_empty() && !result.truncated.stdout);
}

#[tokio::test]
async fn characters_written_a_byte_at_a_time_arrive_whole() {
    let sandbox = sandbox().await;
    let pieces = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = pieces.clone();
    let script =
        "for i in 1 2 3; do printf '\\xe2'; printf '\\x82'; printf '\\xac'; done; printf '\\xf0\\x9f'";
    let run = Run::new(script).on_stdout_call(move |piece| kept.lock().unwrap().push(piece.to_vec()));
    sandbox.run_with(run).await.unwrap();
    assert_eq!(*pieces.lock().unwrap(), ["€".as_bytes(), "€".as_bytes(), "€".as_bytes(), b"\xf0\x9f"]);
}

#[tokio::test]
async fn a_streams_cap_is_kept_and_said() {
    let limits = Limits { stdout_bytes: 10, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    let kept = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let pieces = kept.clone();
    let run = Run::new("printf €€€€; echo end >&2")
        .on_stdout_call(move |piece| pieces.lock().unwrap().extend(piece));
    let result = sandbox.run_with(run).await.unwrap();
    assert_eq!(text(kept.lock().unwrap().clone()), "€€€");
    assert!(result.truncated.stdout);
    assert_eq!((result.limit, text(result.stderr)), (Some(Limit::StdoutBytes), "end\n".to_owned()));
}

#[tokio::test]
async fn usage_is_counted() {
    let sandbox = sandbox().await;
    let result = run(&sandbox, "echo 12345 > /tmp/f; cat /tmp/f; while ((i++ < 100000)); do :; done").await;
    assert!(result.usage.cpu_ms > 0 && result.usage.processes == 1, "{:?}", result.usage);
    assert!(result.usage.bytes_read >= 6 && result.usage.bytes_written >= 12, "{:?}", result.usage);
    let large = run(&sandbox, "x=$(head -c 20000000 /dev/zero | tr '\\0' x)").await.usage.peak_memory_bytes;
    let small = run(&sandbox, "unset x; :").await.usage.peak_memory_bytes;
    assert!(large > 20_000_000, "{large}");
    assert!(small <= large);
}
