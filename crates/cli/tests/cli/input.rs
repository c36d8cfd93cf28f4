//! Standard input of `wardian run`: real pipes, written step by step.

use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A run whose input is a pipe that stays open.
struct Talk {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// A script that waits for what never comes is ended, and the test fails on what it printed.
fn command(script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wardian"));
    command.args(["run", "--timeout", "30s", script]).stdout(Stdio::piped());
    command
}

fn talk(script: &str) -> Talk {
    let mut child = command(script).stdin(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    Talk { child, stdin, stdout }
}

impl Talk {
    fn send(&mut self, text: &str) {
        self.stdin.write_all(text.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Ends the input; returns the rest of the output.
    fn end(mut self) -> String {
        drop(self.stdin);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap();
        rest
    }
}

#[test]
fn a_reader_that_is_killed_takes_nothing_along() {
    let mut run = talk("timeout 0.3 cat; echo --; cat");
    run.send("one\n");
    assert_eq!(run.line(), "one\n");
    // The first cat is gone, and what it was waiting for has not come yet.
    assert_eq!(run.line(), "--\n");
    run.send("two\n");
    assert_eq!(run.end(), "two\n");
}

#[test]
fn input_goes_to_the_current_reader_however_many_were_killed_before() {
    let mut run =
        talk("for i in 1 2 3 4 5; do timeout 0.1 cat; done; echo --; read a; read b; echo $b $a; cat");
    assert_eq!(run.line(), "--\n");
    run.send("1\n2\n3\n");
    assert_eq!(run.line(), "2 1\n");
    assert_eq!(run.end(), "3\n");
}

#[test]
fn read_with_a_timeout_ends_where_nothing_comes_and_loses_nothing() {
    let mut run =
        talk("read -t 0.2 x; echo $?; read -t 0; echo $?; read y; echo \"$y\"; read -t 20 z; echo $z");
    assert_eq!(run.line(), "142\n");
    assert_eq!(run.line(), "1\n");
    run.send("late\n");
    assert_eq!(run.line(), "late\n");
    run.send("later\n");
    assert_eq!(run.line(), "later\n");
    assert_eq!(run.end(), "");
}

/// A pipe that holds this and has no writer any more.
fn holding(text: &str) -> PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    reader
}

fn shown(script: &str, input: &PipeReader) -> String {
    let output = command(script).stdin(input.try_clone().unwrap()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_a_script_does_not_read_is_left_for_the_next_reader() {
    let input = holding("a\nb\nc\nd\n");
    assert_eq!(shown("true", &input), "");
    assert_eq!(shown("read x; echo $x", &input), "a\n");
    assert_eq!(shown("read -t 20 x; echo $x", &input), "b\n");
    assert_eq!(shown("read -t 0; echo $?", &input), "0\n");
    assert_eq!(shown("head -c 2", &input), "c\n");
    assert_eq!(shown("cat; read -t 0; echo $?", &input), "d\n0\n");
}
