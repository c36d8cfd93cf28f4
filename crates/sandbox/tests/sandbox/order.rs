//! What is written comes out in the order in which it is written, and all of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use wardian::internals::Inside;
use wardian::{
    Limits, OutputPart as Part, OutputPiece as Piece, OutputStream as Stream, Run, RunResult, Sandbox,
};

use crate::support::{output, run, sandbox, text};

const TURNS: &str = "for i in 1 2 3; do echo out$i; echo err$i >&2; bash -c 'echo sub >&2'; done";
const TURNS_SAID: &str = "out1\nerr1\nsub\nout2\nerr2\nsub\nout3\nerr3\nsub\n";

fn both(result: &RunResult) -> String {
    text(result.output())
}

#[tokio::test]
async fn a_result_has_both_streams_in_the_order_of_their_writes() {
    let sandbox = sandbox().await;
    for _ in 0..5 {
        let result = run(&sandbox, TURNS).await;
        assert_eq!(both(&result), TURNS_SAID);
        assert_eq!(text(result.stdout), "out1\nout2\nout3\n", "and each by itself");
    }
    assert_eq!(both(&run(&sandbox, "printf 'a\\xc3' ; echo x >&2; printf '\\xa9b'").await), "ax\néb");
    assert_eq!(
        both(&run(&sandbox, "exec 3>&1; echo a >&2; echo b >&3; echo c >&2; exec 3>&-").await),
        "a\nb\nc\n"
    );
}

#[tokio::test]
async fn listeners_get_both_streams_in_the_order_of_their_writes() {
    let sandbox = sandbox().await;
    for _ in 0..5 {
        let (listener, mut pieces) = mpsc::channel(1);
        let hear = async {
            let mut heard = Vec::new();
            while let Some(Piece { stream, bytes, .. }) = pieces.recv().await {
                assert_eq!(stream == Stream::Stdout, bytes.starts_with(b"out"));
                heard.extend(bytes);
            }
            heard
        };
        let (result, heard) = tokio::join!(sandbox.run_with(Run::new(TURNS).on_output(listener)), hear);
        assert_eq!(text(heard), TURNS_SAID);
        assert_eq!(result.unwrap().output(), b"");

        let heard = Arc::new(Mutex::new(Vec::new()));
        let (out, err, any) = (heard.clone(), heard.clone(), heard.clone());
        let run = Run::new(TURNS)
            .on_stdout_call(move |piece| out.lock().unwrap().extend_from_slice(piece))
            .on_stderr_call(move |piece| err.lock().unwrap().extend_from_slice(piece));
        sandbox.run_with(run).await.unwrap();
        let run =
            Run::new(TURNS).on_output_call(move |_, piece| any.lock().unwrap().extend_from_slice(piece));
        sandbox.run_with(run).await.unwrap();
        assert_eq!(text(heard.lock().unwrap().clone()), TURNS_SAID.repeat(2));
    }
}

#[tokio::test]
async fn each_stream_has_its_own_cap_and_the_place_of_the_cut_is_marked() {
    let limits = Limits { stdout_bytes: 6, stderr_bytes: 100, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    let script = "echo abc; echo one >&2; echo def; echo two >&2; echo ghi; echo three >&2";
    let result = run(&sandbox, script).await;
    assert_eq!((&result.stdout[..], &result.stderr[..]), (&b"abc\nde"[..], &b"one\ntwo\nthree\n"[..]));
    let mark = "[wardian: stdout is longer than its limit and was cut here]\n";
    assert_eq!(both(&result), format!("abc\none\nde\n{mark}two\nthree\n"));
    assert_eq!(result.parts().filter(|part| *part == Part::Cut(Stream::Stdout)).count(), 1);
}

#[tokio::test]
async fn single_bytes_by_turns_stay_in_order_and_cost_no_more_than_they_are() {
    let sandbox = sandbox().await;
    let awk = "awk 'BEGIN { for (i = 0; i < 100000; i++) { printf \"o\"; fflush(); \
               printf \"e\" > \"/dev/stderr\"; fflush(\"/dev/stderr\") } }'";
    let result = run(&sandbox, awk).await;
    assert_eq!(result.parts().count(), 200_000);
    assert!(result.output() == "oe".repeat(100_000).as_bytes());
}

/// A listener of one stream alone does not depend on the other, however much is written to it.
#[tokio::test]
async fn a_flooded_stream_does_not_block_the_other() {
    let sandbox = sandbox().await;
    let script = "yes | head -c 3000000; for i in $(seq 100); do echo $i >&2; done";
    let lines: String = (1..=100).map(|i| format!("{i}\n")).collect();
    // Nobody listens to the flood: its beginning is kept.
    let (listener, mut pieces) = mpsc::channel(1);
    let hear = async {
        let mut heard = Vec::new();
        while let Some(piece) = pieces.recv().await {
            heard.extend(piece);
        }
        text(heard)
    };
    let (result, heard) = tokio::join!(sandbox.run_with(Run::new(script).on_stderr(listener)), hear);
    let result = result.unwrap();
    assert_eq!(heard, lines);
    assert_eq!((result.stdout.len(), result.truncated.stdout), (1 << 20, true));
    // Somebody does, but never looks: those who write to it wait, the others do not.
    let (never, _unread) = mpsc::channel(1);
    let (listener, mut pieces) = mpsc::channel(1);
    let script = "yes & for i in $(seq 100); do echo $i >&2; done; kill -9 $!";
    let hear = async {
        let mut heard = Vec::new();
        while let Some(piece) = pieces.recv().await {
            heard.extend(piece);
        }
        text(heard)
    };
    let run = Run::new(script).on_stdout(never).on_stderr(listener);
    let (result, heard) = tokio::join!(sandbox.run_with(run), hear);
    assert_eq!((result.unwrap().exit_code, heard), (0, lines));
}

const TEE: &str = "exec > >(tee log) 2>&1; echo one; ls /nofile; echo last";
const TEE_SAID: &str = "one\nls: cannot access '/nofile': No such file or directory\nlast\n";

#[tokio::test]
async fn a_run_ends_when_its_output_is_drained() {
    let base = sandbox().await;
    let cases = [
        (TEE, TEE_SAID),
        ("echo hi > >(cat)", "hi\n"),
        ("echo hi > >(sleep 0.1; cat)", "hi\n"),
        ("seq 3 > >(while read -r line; do sleep 0.02; echo \"<$line>\"; done)", "<1>\n<2>\n<3>\n"),
        ("exec > >(while read -r line; do sleep 0.02; echo \"<$line>\"; done); seq 3", "<1>\n<2>\n<3>\n"),
        ("exec > >(tee log | tee copy | cat); echo one; echo two", "one\ntwo\n"),
        ("printf 'b\\na\\n' > >(sort)", "a\nb\n"),
        ("echo data | tee >(tr a-z A-Z) > /dev/null", "DATA\n"),
        ("exec > >(cat); echo before; exit 0", "before\n"),
        ("exec > >(cat); exec echo replaced", "replaced\n"),
        (": > >(echo from inside)", "from inside\n"),
    ];
    for (script, said) in cases {
        for _ in 0..5 {
            let sandbox = base.fork().await.unwrap();
            assert_eq!(both(&run(&sandbox, script).await), said, "{script}");
        }
    }
}

#[tokio::test]
async fn a_redirection_into_a_process_lasts_from_run_to_run_or_ends_with_the_last() {
    let sandbox = sandbox().await;
    assert_eq!(both(&run(&sandbox, "exec > >(tee log)").await), "");
    for word in ["one", "two"] {
        assert_eq!(both(&run(&sandbox, &format!("echo {word}")).await), format!("{word}\n"));
    }
    assert_eq!(both(&run(&sandbox, "cat log >&2").await), "one\ntwo\n");
    let sandbox = crate::support::sandbox().await;
    // What is kept back until the end comes when the shell lets go.
    let result = sandbox.run_with(Run::new("exec > >(sort); echo b; echo a").last()).await.unwrap();
    assert_eq!(both(&result), "a\nb\n");
    assert_eq!(output(&sandbox, "echo and on").await, "and on\n");
}

#[tokio::test]
async fn background_jobs_do_not_keep_a_run_open() {
    let sandbox = sandbox().await;
    for script in [
        "sleep 1000 &",
        "yes > >(cat > /dev/null) &",
        "exec 5> >(cat > /dev/null); yes >&5 &",
        "yes | sleep 1000 &",
        "coproc sleep 1000",
        "echo config | { cat > /dev/null; sleep 1000; } &",
    ] {
        let result = sandbox.run_with(Run::new(script).timeout(Some(Duration::from_secs(60)))).await.unwrap();
        assert_eq!((result.exit_code, result.error_class), (0, None), "{script}");
    }
    // What never reads what it is given does: there is no telling what it will do with it.
    let stuck = Run::new("echo hi > >(sleep 1000)").timeout(Some(Duration::from_millis(300)));
    assert_eq!(sandbox.run_with(stuck).await.unwrap().exit_code, 124);
    // And nothing is left of it in the runs after.
    run(&sandbox, "exec 5> >(sleep 1000)").await;
    let stuck = Run::new("echo hi >&5").timeout(Some(Duration::from_millis(300)));
    assert_eq!(sandbox.run_with(stuck).await.unwrap().exit_code, 124);
    assert_eq!(output(&sandbox, "echo on; exec 5>&-").await, "on\n");
    run(
        &sandbox,
        "{ until [ -e /tmp/go ]; do sleep 0.01; done; echo hi; } > >(cat > /tmp/got; sleep 1000) &",
    )
    .await;
    let next = "touch /tmp/go; until [ -s /tmp/got ]; do sleep 0.01; done; cat /tmp/got";
    assert_eq!(output(&sandbox, next).await, "hi\n");
    assert_eq!(output(&sandbox, "kill -9 $(jobs -p) 2> /dev/null; wait 2> /dev/null; echo on").await, "on\n");
}

/// Waits until nothing is left in the background.
async fn quiet(sandbox: &Sandbox) {
    while sandbox.machine().census().processes > sandbox.machine().census().zombies + 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn later_output_of_a_background_job_goes_to_the_current_run() {
    let sandbox = sandbox().await;
    let job = "{ until [ -e /tmp/go ]; do sleep 0.01; done; echo late; echo late too >&2; } & job=$!";
    assert_eq!(both(&run(&sandbox, job).await), "");
    assert_eq!(
        both(&run(&sandbox, "echo now; touch /tmp/go; wait $job; echo then").await),
        "now\nlate\nlate too\nthen\n"
    );
}

#[tokio::test]
async fn output_between_runs_is_kept_for_the_next_and_the_rest_is_reported() {
    let sandbox = sandbox().await;
    run(&sandbox, "{ sleep 0.05; echo late; echo late too >&2; } &").await;
    quiet(&sandbox).await;
    // Calls that run no command of the user's do not take it.
    assert_eq!(sandbox.get_env("HOME").await.unwrap().as_deref(), Some(&b"/home/user"[..]));
    assert_eq!(both(&run(&sandbox, "echo now").await), "late\nlate too\nnow\n");
    assert_eq!(both(&run(&sandbox, "echo now").await), "now\n", "once");

    run(&sandbox, "{ sleep 0.05; yes | head -c 200000; } &").await;
    quiet(&sandbox).await;
    let result = run(&sandbox, "echo now").await;
    assert_eq!((result.stdout.len(), result.truncated.stdout), (65536 + 4, false));
    assert_eq!(
        text(result.stderr),
        "wardian: 134464 bytes that were written between commands are not kept\n"
    );
    // A fork has the value, and not what others wrote.
    run(&sandbox, "{ sleep 0.05; echo late; } &").await;
    quiet(&sandbox).await;
    assert_eq!(output(&sandbox.fork().await.unwrap(), "echo fork").await, "fork\n");
    assert_eq!(output(&sandbox, "echo own").await, "late\nown\n");
}
