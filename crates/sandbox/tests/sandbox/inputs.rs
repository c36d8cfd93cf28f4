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
