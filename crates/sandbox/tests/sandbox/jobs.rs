//! What the shell does with processes, in a session: jobs, waits, traps across forks, broken pipes.

#[path = "../../../../guests/sh/tests/cases/nesting.rs"]
mod nesting;

use wardian::{Input, Run, Sandbox};

use crate::support::{output, run, sandbox, text};

/// Scripts and what they print. Each runs in a session of its own.
async fn all(cases: &[(&str, &str)]) {
    let base = sandbox().await;
    for (script, expected) in cases {
        let sandbox: Sandbox = base.fork().await.expect("a fork");
        assert_eq!(output(&sandbox, script).await, *expected, "{script}");
    }
}

#[tokio::test]
async fn waits_answer_for_the_child_they_name() {
    all(&[
        ("(exit 3) & wait $!; echo $?; wait; echo $?", "3\n0\n"),
        ("(exit 1) & a=$!; (exit 2) & b=$!; wait $b; echo $?; wait $a; echo $?; wait $a; echo $?", "2\n1\n1\n"),
        ("(sleep 0.2; exit 5) & (exit 6) & wait -n; echo $?; wait -n; echo $?; wait -n; echo $?", "6\n5\n127\n"),
        ("(exit 7) & wait -n -p who; echo $?; [ $who = $! ] && echo same", "7\nsame\n"),
        ("sleep 9 & kill $!; wait $!; echo $?", "143\n"),
        ("wait 99999 2>/dev/null; echo $?", "127\n"),
        ("true & (wait $! 2>/dev/null; echo $?); wait", "127\n"),
        ("for i in {1..40}; do (exit $((i % 2))) & p[i]=$!; done; n=0; for q in ${p[@]}; do wait $q || ((n++)); done; echo $n", "20\n"),
    ])
    .await;
}

#[tokio::test]
async fn jobs_outlive_the_run_that_started_them() {
    let sandbox = sandbox().await;
    output(&sandbox, "( until [ -e /tmp/go ]; do sleep 0.02; done; echo late > /tmp/out ) & p=$!").await;
    assert_eq!(output(&sandbox, "jobs -p | grep -cx $p; kill -0 $p && echo alive").await, "1\nalive\n");
    assert_eq!(output(&sandbox, "touch /tmp/go; wait $p; echo $?; cat /tmp/out; jobs").await, "0\nlate\n");
}

#[tokio::test]
async fn traps_are_the_shells_own_and_not_its_childrens() {
    all(&[
        (
            "trap 'echo caught' USR1; kill -USR1 $$; { (kill -USR1 $BASHPID; echo never); } 2>/dev/null; echo $?",
            "caught\n138\n",
        ),
        (
            "trap '' USR1; (kill -USR1 $BASHPID; echo ignored); bash -c 'kill -USR1 $$; echo too'",
            "ignored\ntoo\n",
        ),
        ("(trap 'echo mine; exit 4' TERM; kill $BASHPID; echo never); echo $?; trap -p", "mine\n4\n"),
        ("trap 'echo parent' EXIT; (echo child); trap - EXIT", "child\n"),
        ("{ (trap 'echo bye' EXIT; kill $BASHPID; sleep 9); } 2>/dev/null; echo $?", "bye\n143\n"),
        ("trap 'n=$((n+1))' USR1; for i in 1 2 3; do kill -USR1 $$; done; echo $n", "3\n"),
        (
            "f() { trap 'echo from f' USR1; }; f; kill -USR1 $$; x=$(kill -USR1 $$; echo sub); echo $x",
            "from f\nfrom f\nsub\n",
        ),
        (
            "trap 'echo t' USR1; sleep 5 & p=$!; (sleep 0.1; kill -USR1 $$) & wait $p; echo $?; kill $p",
            "t\n138\n",
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_signal_finds_the_one_process_of_a_background_subshell() {
    let script = "( trap 'echo stopped > /tmp/log; exit 3' TERM; echo up > /tmp/up; while :; do sleep 0.02; done ) & \
                  until [ -s /tmp/up ]; do sleep 0.02; done; kill $!; wait $!; echo $?; cat /tmp/log";
    all(&[(script, "3\nstopped\n")]).await;
}

#[tokio::test]
async fn a_writer_whose_reader_is_gone_ends() {
    all(&[
        ("yes | head -1; echo ${PIPESTATUS[0]}", "y\n141\n"),
        ("while echo x; do :; done | head -1; echo ${PIPESTATUS[0]}", "x\n141\n"),
        ("{ trap '' PIPE; while echo x 2>/dev/null; do :; done; echo told >&2; } 2>/tmp/e | head -1; cat /tmp/e", "x\ntold\n"),
        ("set -o pipefail; yes | head -1 > /dev/null; echo $?", "141\n"),
    ])
    .await;
}

#[tokio::test]
async fn coprocesses_and_process_substitutions_are_children_like_others() {
    all(&[
        ("coproc cat; echo hi >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x; exec {COPROC[1]}>&-; wait; echo $?", "hi\n0\n"),
        ("cat <(echo a) <(echo b); wait $!; echo $?", "a\nb\n0\n"),
        ("echo data | tee >(cat > /tmp/copy) > /dev/null; until [ -s /tmp/copy ]; do sleep 0.02; done; cat /tmp/copy", "data\n"),
    ])
    .await;
}

/// Ten thousand levels of anything are an error or an answer; never the end of the session.
#[tokio::test]
async fn nesting_of_anything_ends_in_a_message() {
    let sandbox = sandbox().await;
    output(&sandbox, "kept=yes").await;
    for (name, script) in nesting::scripts() {
        // A shell that has nested deeply keeps the memory it needed: the next one gets another.
        answers(&sandbox.fork().await.expect("a fork"), &name, &script).await;
    }
}

/// Runs something in a session, which must still be there afterwards with what it knew.
async fn answers(sandbox: &Sandbox, name: &str, script: &str) {
    // Longer than a command may be, so it comes as a file.
    let write = Run::new("cat > /tmp/deep").stdin(Input::bytes(script.as_bytes().to_vec()));
    sandbox.run_with(write).await.expect("a result");
    let result = run(sandbox, "cd /tmp; . /tmp/deep").await;
    let stderr = text(result.stderr);
    assert_eq!(result.error_class, None, "{name}: {stderr}");
    assert!(result.exit_code < 128, "{name}: exit {}: {stderr}", result.exit_code);
    assert!(!stderr.contains("wasm trap") && !stderr.contains("unreachable"), "{name}: {stderr}");
    assert_eq!(output(sandbox, "echo $kept").await, "yes\n", "{name}");
}
