//! A host's stream as a command's input: a real pipe, whose readers in the sandbox come and go.

use std::io::{PipeReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use wardian::{Input, InputRead as SourceRead, InputSource as Source, Run, Terminal};

use crate::support::sandbox;

struct Pipe(Arc<PipeReader>);

impl Source for Pipe {
    fn read(&self, max: usize) -> SourceRead<'_> {
        let pipe = self.0.clone();
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                let mut bytes = vec![0; max];
                let n = (&*pipe).read(&mut bytes)?;
                bytes.truncate(n);
                Ok(bytes)
            });
            reading.await.map_err(std::io::Error::other)?
        })
    }
}

/// What a run shows, up to the line `--`.
async fn shown_until_mark(pieces: &mut mpsc::Receiver<Vec<u8>>) -> String {
    let mut shown = Vec::new();
    while !shown.ends_with(b"--\n") {
        shown.extend(pieces.recv().await.expect("a mark"));
    }
    String::from_utf8(shown).unwrap()
}

#[tokio::test]
async fn a_read_that_is_killed_or_times_out_takes_nothing_along() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let input = Input::source(Pipe(Arc::new(reader)));
    let sandbox = sandbox().await;
    let (sender, mut shown) = mpsc::channel(10);
    let script =
        "timeout 0.1 cat; read -t 0.1 x; echo $?; echo --; read x; echo $x; timeout 0.1 cat; echo --";
    let run = Run::new(script).stdin(input.clone()).on_stdout(sender).timeout(None);
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.run_with(run).await }
    });
    assert_eq!(shown_until_mark(&mut shown).await, "142\n--\n");
    writer.write_all(b"one\n").unwrap();
    assert_eq!(shown_until_mark(&mut shown).await, "one\n--\n");
    running.await.unwrap().unwrap();

    // The last cat was killed while it waited, and so is a whole run: the next one gets what they waited for.
    let cut = Run::new("cat").stdin(input.clone()).timeout(Some(Duration::from_millis(50)));
    assert_eq!(sandbox.run_with(cut).await.unwrap().exit_code, 124);
    writer.write_all(b"two\n").unwrap();
    drop(writer);
    let rest = sandbox.run_with(Run::new("cat").stdin(input)).await.unwrap();
    assert_eq!(rest.stdout, b"two\n");
}

#[tokio::test]
async fn a_read_of_a_raw_terminal_that_is_killed_takes_nothing_along() {
    let terminal = Terminal::new(24, 80);
    let mut mode = terminal.mode();
    // Neither lines nor echo, and a read waits for four bytes.
    mode.local &= !(0o2 | 0o10);
    mode.chars[6] = 4;
    terminal.set_mode(mode, false);
    terminal.type_now(b"ab");
    let cut = Run::new("cat").terminal(terminal.clone()).timeout(Some(Duration::from_millis(200)));
    assert_eq!(sandbox().await.run_with(cut).await.unwrap().exit_code, 124);
    assert_eq!(terminal.take_typed(), b"ab");
}

/// Python code that has the run's own streams.
fn python(code: &str) -> Run {
    Run::new(format!("python3 -c \"$(cat <<'END'\n{code}\nEND\n)\""))
}

#[tokio::test]
async fn asyncio_reads_the_input_of_its_own_run() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let input = Input::source(Pipe(Arc::new(reader)));
    let sandbox = sandbox().await;
    let code = "
import asyncio, os, sys
os.set_blocking(0, False)
try: os.read(0, 9)
except BlockingIOError as e: print(e.errno, os.get_blocking(0))
print('--', flush=True)
async def main():
    reader = asyncio.StreamReader()
    protocol = lambda: asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(protocol, sys.stdin)
    while line := await asyncio.wait_for(reader.readline(), 60):
        print(line, '--', sep='\\n', flush=True)
asyncio.run(main())
print('end')";
    let (sender, mut shown) = mpsc::channel(10);
    let run = python(code).stdin(input).on_stdout(sender).timeout(None);
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.run_with(run).await }
    });
    assert_eq!(shown_until_mark(&mut shown).await, "11 False\n--\n");
    for line in ["one", "two"] {
        writer.write_all(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(shown_until_mark(&mut shown).await, format!("b'{line}\\n'\n--\n"));
    }
    drop(writer);
    assert_eq!(shown.recv().await.as_deref(), Some(&b"end\n"[..]));
    assert_eq!(running.await.unwrap().unwrap().exit_code, 0);
    // The next run's streams wait.
    let next = sandbox
        .run_with(python("import os; print(os.get_blocking(0), input())").stdin(Input::bytes(b"x".to_vec())));
    assert_eq!(next.await.unwrap().stdout, b"True x\n");
}

#[tokio::test]
async fn a_full_output_refuses_a_write_that_must_not_wait_and_poll_says_when_there_is_room() {
    let code = "
import os, select
os.set_blocking(1, False)
written = 0
try:
    while True: written += os.write(1, b'x' * 1000)
except BlockingIOError: pass
poll = select.poll()
poll.register(1, select.POLLOUT)
os.write(2, b'%d %d' % (len(poll.poll(0)), written))
os.write(2, b'%d' % len(poll.poll()))
os.write(1, b'last')";
    let (out, mut pieces) = mpsc::channel(2);
    let (err, mut notes) = mpsc::channel(10);
    let run = python(code).on_stdout(out).on_stderr(err).timeout(None);
    let sandbox = sandbox().await;
    let running = tokio::spawn(async move { sandbox.run_with(run).await });
    assert_eq!(notes.recv().await.as_deref(), Some(&b"0 2000"[..]));
    assert_eq!(pieces.recv().await.map(|piece| piece.len()), Some(1000));
    assert_eq!(notes.recv().await.as_deref(), Some(&b"1"[..]));
    assert_eq!(pieces.recv().await.map(|piece| piece.len()), Some(1000));
    assert_eq!(pieces.recv().await.as_deref(), Some(&b"last"[..]));
    assert_eq!(running.await.unwrap().unwrap().exit_code, 0);
}

#[tokio::test]
async fn a_nonblocking_terminal_reports_when_there_is_input() {
    let code = "
import os, select
os.set_blocking(0, False)
try: os.read(0, 9)
except BlockingIOError as e: print('none', e.errno)
select.select([0], [], [])
print(os.read(0, 9), len(select.select([], [1], [], 0)[1]))";
    let terminal = Terminal::new(24, 80);
    let sandbox = sandbox().await;
    let run = python(code).terminal(terminal.clone()).timeout(None);
    let running = tokio::spawn(async move { sandbox.run_with(run).await });
    let mut shown = Vec::new();
    while !shown.ends_with(b"none 11\r\n") {
        shown.extend(terminal.shown().await.expect("it goes on"));
    }
    terminal.type_now(b"typed\n");
    while !shown.ends_with(b"b'typed\\n' 1\r\n") {
        shown.extend(terminal.shown().await.expect("it goes on"));
    }
    assert_eq!(running.await.unwrap().unwrap().exit_code, 0);
}
