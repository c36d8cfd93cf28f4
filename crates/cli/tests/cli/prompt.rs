//! The prompt of `python3` on a terminal: the same keys in `wardian shell` and, where this machine has the same version, natively.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tmux::{Tmux, state};

/// What is done, and the last line of the screen then.
const KEYS: &[(Do, &str)] = &[
    (Do::Type("1 + 1"), ">>> 1 + 1"),
    (Do::Press("Enter"), ">>>"),
    // Editing in the line.
    (Do::Type("print('abd')"), ">>> print('abd')"),
    (Do::Press("Left"), ">>> print('abd')"),
    (Do::Press("Left"), ">>> print('abd')"),
    (Do::Press("BSpace"), ">>> print('ab')"),
    (Do::Type("c"), ">>> print('abc')"),
    (Do::Press("Enter"), ">>>"),
    // Ctrl-C gives a line up, which is then not in the history.
    (Do::Type("unfinished = ["), ">>> unfinished = ["),
    (Do::Press("C-c"), ">>>"),
    (Do::Press("Up"), ">>> print('abc')"),
    (Do::Press("Up"), ">>> 1 + 1"),
    (Do::Press("Enter"), ">>>"),
    // Ctrl-C interrupts code that computes.
    (
        Do::Type(r"exec('print(\'computing\')\nwhile True: pass')"),
        r">>> exec('print(\'computing\')\nwhile True: pass')",
    ),
    (Do::Press("Enter"), "computing"),
    (Do::Press("C-c"), ">>>"),
    // Several lines, indented by the prompt.
    (Do::Type("def f(x):"), ">>> def f(x):"),
    (Do::Press("Enter"), "..."),
    (Do::Type("return x + 1"), "...     return x + 1"),
    (Do::Press("Enter"), "..."),
    (Do::Press("Enter"), ">>>"),
    (Do::Type("f(41)"), ">>> f(41)"),
    (Do::Press("Enter"), ">>>"),
    (Do::Type("exit()"), ">>> exit()"),
    (Do::Press("Enter"), SHELL),
    (Do::Start, ">>>"),
    // The history of the earlier start.
    (Do::Press("Up"), ">>> exit()"),
    (Do::Press("Up"), ">>> f(41)"),
    (Do::Press("Enter"), ">>>"),
    (Do::Press("C-d"), SHELL),
];

enum Do {
    Type(&'static str),
    Press(&'static str),
    /// Starts the interpreter once more.
    Start,
}

/// Stands for the prompt of the shell that starts the interpreter.
const SHELL: &str = "the shell";

/// What CPython 3.13 shows for these keys, without the two lines that it begins with.
const SHOWN: &str = r#">>> 1 + 1
2
>>> print('abc')
abc
>>> unfinished = [
KeyboardInterrupt
>>> 1 + 1
2
>>> exec('print(\'computing\')\nwhile True: pass')
computing
^CTraceback (most recent call last):
  File "<python-input-3>", line 1, in <module>
    exec('print(\'computing\')\nwhile True: pass')
    ~~~~^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "<string>", line 2, in <module>
KeyboardInterrupt
>>> def f(x):
...     return x + 1
...
>>> f(41)
42
>>> exit()
>>> f(41)
Traceback (most recent call last):
  File "<python-input-0>", line 1, in <module>
    f(41)
    ^
NameError: name 'f' is not defined
>>>"#;

/// Presses the keys in an interpreter that a shell with this prompt starts, and answers what it showed.
fn session(tmux: &Tmux, prompt: &str, python: &str) -> String {
    tmux.wait_for_last(prompt);
    tmux.line(python);
    tmux.wait_for_last(">>>");
    for (what, last) in KEYS {
        match what {
            Do::Type(text) => drop(tmux.command(&["send-keys", "-l", text])),
            Do::Press(key) => tmux.keys(&[key]),
            Do::Start => tmux.line(python),
        }
        tmux.wait_for_last(if *last == SHELL { prompt } else { last });
    }
    let of_python = |line: &&str| {
        let is_greeting = line.starts_with("Python 3.") || line.starts_with("Type \"help\"");
        !line.is_empty() && !line.starts_with(prompt) && !is_greeting
    };
    let screen = tmux.screen();
    screen.lines().map(str::trim_end).filter(of_python).collect::<Vec<_>>().join("\n")
}

/// CPython of the same minor version, if this machine has one.
fn native() -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/target/python/build-native/python");
    [built, PathBuf::from("python3.13"), PathBuf::from("python3")].into_iter().find_map(|python| {
        let asked = ["-c", "import sys; print(sys.version_info[:2] == (3, 13) and sys.executable)"];
        let output = Command::new(python).args(asked).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        path.starts_with('/').then(|| PathBuf::from(path))
    })
}

#[test]
fn the_prompt_of_python_edits_remembers_and_is_interrupted_as_natively() {
    let tmux = Tmux::start(state(), "");
    assert_eq!(session(&tmux, "user@wardian:~$", "python3"), SHOWN);
}

/// What is expected above is what CPython does, on machines that have the same version of it.
#[test]
fn the_prompt_of_native_python_shows_what_is_expected_of_it() {
    let Some(python) = native() else { return };
    let state = state();
    let shell = format!("env HOME={} PS1='native$ ' TERM=xterm bash --norc", state.path().display());
    std::os::unix::fs::symlink(python, state.path().join("python3")).expect("a link");
    let shell = format!("cd {}; {shell}", state.path().display());
    let tmux = Tmux::start_program(state, &shell);
    assert_eq!(session(&tmux, "native$", "./python3"), SHOWN);
}
