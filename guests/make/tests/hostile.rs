//! Makefiles that nobody means well: each ends with a message, never with a crash.

use std::io::Write;
use std::process::{Command, Stdio};

/// Runs make on a makefile from its standard input; answers its exit code, or none if a signal ended it.
fn code_of(makefile: &[u8]) -> Option<i32> {
    let directory = std::env::temp_dir().join(format!("wardian-make-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut make = Command::new(env!("CARGO_BIN_EXE_make"))
        .args(["-f", "-"])
        .current_dir(&directory)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("make starts");
    make.stdin.take().expect("piped").write_all(makefile).expect("make reads it");
    make.wait().expect("make ends").code()
}

#[test]
fn what_is_nested_or_endless_ends_with_a_message() {
    let deep = |open: &str, close: &str, count: usize| {
        let text = format!("X = {}{}{}\nall:;@: $(X)\n", open.repeat(count), "y", close.repeat(count));
        text.into_bytes()
    };
    let conditions = format!("{}{}", "ifdef X\n".repeat(2_000), "endif\n".repeat(2_000));
    let chain: String = (0..5_000).map(|n| format!("V{n} = $(V{})\n", n + 1)).collect();
    let files: String = (0..3_000).map(|n| format!("t{n}: t{}\n", n + 1)).collect();
    let cases: &[(&str, Vec<u8>, i32)] = &[
        ("references", deep("$(", ")", 5_000), 2),
        ("open references", deep("$(", "", 3_000), 2),
        ("functions", deep("$(if x,", ")", 5_000), 2),
        ("a variable of itself", b"f = $(call f)\nall:;@: $(f)\n".to_vec(), 2),
        ("eval of itself", b"e = $(eval $(value e))\n$(e)\nall:;@:\n".to_vec(), 2),
        ("conditions", conditions.into_bytes(), 2),
        ("a chain of variables", format!("{chain}all:;@: $(V0)\n").into_bytes(), 2),
        ("a chain of files", format!("{files}t3000:;@:\n").into_bytes(), 0),
        ("a circle", b"a: b\nb: c\nc: a\n".to_vec(), 0),
        ("bytes", b"\xff\xfe: \x80\n\t@:\n\x80:\n".to_vec(), 0),
        ("no colon before the end", b"a\\".to_vec(), 2),
        ("only a dollar", b"$".to_vec(), 2),
        (
            "wild words",
            b"$(word 99999999999999999999,a)$(wordlist 1,99999999999999999999,a):;@:\n".to_vec(),
            0,
        ),
    ];
    for (name, makefile, expected) in cases {
        assert_eq!(code_of(makefile), Some(*expected), "{name}");
    }
}
