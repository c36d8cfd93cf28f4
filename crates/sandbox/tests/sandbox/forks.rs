//! A fork is a value: everything is there, nothing is shared.

use std::time::Duration;

use wardian::internals::Inside;
use wardian::{Limits, Run, Sandbox};

use crate::support::{output, run, sandbox};

#[tokio::test]
async fn a_fork_has_everything_and_shares_nothing() {
    let parent = sandbox().await;
    output(&parent, "x=1; a=(p q); f() { echo f$x; }; cd /tmp; echo file > file; exec 3>log; echo one >&3")
        .await;
    let child = parent.fork().await.unwrap();
    assert_eq!(output(&child, "f; echo ${a[1]}; pwd; cat file").await, "f1\nq\n/tmp\nfile\n");
    output(&child, "x=2; rm file; echo child >&3").await;
    output(&parent, "echo parent >&3; touch only-here").await;
    assert_eq!(output(&parent, "f; cat file log").await, "f1\nfile\none\nparent\n");
    assert_eq!(output(&child, "f; cat log").await, "f2\none\nchild\n");
    assert_ne!(run(&child, "test -e only-here").await.exit_code, 0);
}

#[tokio::test]
async fn forks_of_forks() {
    let mut sandbox = sandbox().await;
    for depth in 0..20 {
        output(&sandbox, &format!("x=${{x}}{depth}.; echo $x > /tmp/f")).await;
        sandbox = sandbox.fork().await.unwrap();
    }
    let expected: String = (0..20).map(|depth| format!("{depth}.")).collect();
    assert_eq!(output(&sandbox, "cat /tmp/f; echo $x").await, format!("{expected}\n{expected}\n"));
}

#[tokio::test]
async fn a_file_that_only_a_background_job_holds_is_not_charged_to_the_fork() {
    let parent = sandbox().await;
    let before = parent.machine().tree().await.usage();
    let script = "head -c 100000 /dev/zero > /tmp/held; sleep 1000 < /tmp/held & rm /tmp/held";
    output(&parent, script).await;
    assert_eq!(parent.machine().tree().await.usage().bytes, before.bytes + 100_000);
    let child = parent.fork().await.unwrap();
    assert_eq!(child.machine().tree().await.usage(), before);
}

#[tokio::test]
async fn a_background_job_stays_with_the_original() {
    let parent = sandbox().await;
    output(&parent, "sleep 1000 &").await;
    let child = parent.fork().await.unwrap();
    assert_eq!(parent.machine().census().processes, 2);
    assert_eq!(child.machine().census().processes, 1);
}

#[tokio::test]
async fn a_shell_with_megabytes_of_variables_forks_and_survives_kills_as_a_small_one_does() {
    let parent = sandbox().await;
    output(&parent, "printf -v big '%4000000s' x; printf -v more '%2000000s' y; n=1").await;
    let check = "echo ${#big} ${#more} ${big: -1}${more: -1} $n $(echo ${#big})";
    assert_eq!(output(&parent, check).await, "4000000 2000000 xy 1 4000000\n");
    let child = parent.fork().await.unwrap();
    output(&child, "big=${big/x/z}; n=2").await;
    let killed = parent
        .run_with(Run::new("big=gone; n=3; while :; do :; done").timeout(Some(Duration::from_millis(50))));
    assert_eq!(killed.await.unwrap().exit_code, 124);
    assert_eq!(output(&parent, check).await, "4000000 2000000 xy 1 4000000\n");
    assert_eq!(output(&child, check).await, "4000000 2000000 zy 2 4000000\n");
    drop(parent);
    let grandchild = child.fork().await.unwrap();
    output(&child, "more=; n=4").await;
    assert_eq!(output(&grandchild, check).await, "4000000 2000000 zy 2 4000000\n");
}

#[tokio::test]
async fn a_shell_with_thousands_of_open_files_forks_with_all_of_them() {
    let limits = Limits { open_files: 4096, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    let script = "printf '%s\\n' one two three > /tmp/f; for i in {1..3000}; do exec {fd}</tmp/f; done; \
                  read -r x <&$fd; exec {copy}<&$fd";
    output(&sandbox, script).await;
    let charged = sandbox.usage_now().memory_bytes;
    let (fork, snapshot) = (sandbox.fork().await.unwrap(), sandbox.snapshot().await.unwrap());
    // They count in the fork as they do in the original.
    let copied = fork.usage_now().memory_bytes;
    assert!(copied >= 3000 * 512 && copied <= charged, "{copied} and {charged}");
    // Each has an offset of its own, but for the copy; and the original knows nothing of it.
    let look = "read -r x <&$fd; read -r y <&$copy; read -r z <&$((fd - 1)); echo $x $y $z";
    assert_eq!(output(&fork, look).await, "two three one\n");
    assert_eq!(output(&sandbox, look).await, "two three one\n");
    sandbox.restore(&snapshot).await.unwrap();
    assert_eq!(output(&sandbox, look).await, "two three one\n");
}
