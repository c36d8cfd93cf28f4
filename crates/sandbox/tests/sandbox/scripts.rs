//! What agents type, through every layer.

use crate::support::{output, run, sandbox, text};

#[tokio::test]
async fn everyday_scripts() {
    let sandbox = sandbox().await;
    let cases = [
        ("echo hello | wc -c", "6\n"),
        (
            "x=1; (x=2; echo $x); echo $x; yes | head -3 | sort | uniq -c; exec 3>/tmp/log; echo hi >&3; cat /tmp/log",
            "2\n1\n      3 y\nhi\n",
        ),
        ("if true; then echo yes; else echo no; fi", "yes\n"),
        ("for f in a b c; do echo $f > /tmp/$f; done; cat /tmp/[ab]; ls /tmp", "a\nb\na\nb\nc\nlog\n"),
        ("i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done", "1\n2\n3\n"),
        ("false || echo or; true && echo and; ! false; echo $?", "or\nand\n0\n"),
        ("cat <<EOF | tr a-z A-Z\nhere $((6*7))\nEOF", "HERE 42\n"),
        ("echo 'a b' \"c  d\" e\\ f", "a b c  d e f\n"),
        ("printf '%s\\n' one two | grep -n two", "2:two\n"),
        ("echo abc | sed 's/b/X/'", "aXc\n"),
        ("x=$(echo sub; echo shell); echo \"$x\"", "sub\nshell\n"),
        ("cd /usr/bin && pwd; cd - > /dev/null; pwd", "/usr/bin\n/home/user\n"),
        ("(exit 3); echo $?; sh -c 'exit 4'; echo $?", "3\n4\n"),
    ];
    for (script, expected) in &cases {
        assert_eq!(output(&sandbox, script).await, *expected, "{script}");
    }
}

#[tokio::test]
async fn the_tools_see_the_same_directory_as_the_shell() {
    let sandbox = sandbox().await;
    let script =
        "mkdir -p d/e; cd d; echo x > e/f; ls; cat e/f ../d/e/f; cd e; ls -a; realpath .; cd ..; rm -r e; ls";
    let expected = "e\nx\nx\n.\n..\nf\n/home/user/d/e\n";
    assert_eq!(output(&sandbox, script).await, expected);
}

#[tokio::test]
async fn a_missing_command_is_reported_as_by_bash() {
    let sandbox = sandbox().await;
    let result = run(&sandbox, "nothing-like-it").await;
    assert_eq!(result.exit_code, 127);
    assert!(text(result.stderr).ends_with("nothing-like-it: command not found\n"));
    let result = run(&sandbox, "echo x > /tmp/plain; /tmp/plain").await;
    assert_eq!(result.exit_code, 126);
    assert!(text(result.stderr).contains("Permission denied"));
}

#[tokio::test]
async fn scripts_with_an_interpreter_line_run() {
    let sandbox = sandbox().await;
    let script = "cat > s <<'E'\n#!/bin/bash\necho \"$0 $#: $1\"\nE\nchmod +x s 2>/dev/null || true; bash s one; sh ./s two three";
    assert_eq!(output(&sandbox, script).await, "s 1: one\n./s 2: two\n");
}

#[tokio::test]
async fn every_tool_is_in_usr_bin_too() {
    let sandbox = sandbox().await;
    let script = "for f in /bin/*; do [ -x \"/usr/bin/${f##*/}\" ] || echo \"missing: $f\"; done\n\
        printf '#!/usr/bin/awk -f\\nBEGIN { print \"awk\" }\\n' > a; printf '#!/usr/bin/env -S bash -e\\necho $-\\n' > b\n\
        printf '#!/usr/bin/bash\\necho bash\\n' > c; chmod +x a b c; ./a; ./b | grep -o e; ./c; type -a bash\n";
    let expected = "awk\ne\nbash\nbash is /bin/bash\nbash is /usr/bin/bash\n";
    assert_eq!(output(&sandbox, script).await, expected);
}

#[tokio::test]
async fn broken_pipes_end_the_writer_quietly() {
    let sandbox = sandbox().await;
    assert_eq!(output(&sandbox, "yes | head -n 2; echo ${PIPESTATUS[0]}").await, "y\ny\n141\n");
}

#[tokio::test]
async fn devices_answer() {
    let sandbox = sandbox().await;
    assert_eq!(
        output(&sandbox, "head -c 100 /dev/zero | wc -c; head -c 9 /dev/urandom | wc -c").await,
        "100\n9\n"
    );
    assert_eq!(
        output(&sandbox, "echo x > /dev/stdout; cat /dev/stdin < /dev/null; cat /dev/null").await,
        "x\n"
    );
    assert_ne!(run(&sandbox, "echo x > /dev/full").await.exit_code, 0);
}
