//! What runs give and take.

use wardian_cell::message::{RunSpec, Stream};
use wardian_cell::{CellError, Event};

use crate::rig::{cell, command, run, sandbox};

#[tokio::test]
async fn both_outputs_come_in_order() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    let mut run = cell.run(sandbox, command("turns")).expect("a run");
    let mut seen = Vec::new();
    while let Event::Output(piece) = run.next().await {
        seen.push((piece.stream, String::from_utf8(piece.bytes).expect("text")));
    }
    let expected: Vec<_> = (0..100)
        .map(|turn| (if turn % 2 == 0 { Stream::Stdout } else { Stream::Stderr }, format!("{turn} ")))
        .collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn input_is_sent_as_it_is_asked_for() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    let mut run = cell.run(sandbox, RunSpec { input: true, ..command("cat") }).expect("a run");
    let (mut input, mut output) =
        (vec![b"one ".to_vec(), b"two".to_vec(), Vec::new()].into_iter(), Vec::new());
    loop {
        match run.next().await {
            Event::WantInput(most) => {
                assert_eq!(most, 1000);
                run.input(input.next().expect("no more is asked for"));
            }
            Event::Output(piece) => output.extend(piece.bytes),
            Event::Ended(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(output, b"one two");
}

#[tokio::test]
async fn sandboxes_are_created_forked_and_destroyed() {
    let cell = cell().await;
    let one = sandbox(&cell).await;
    let two = cell.fork(one).await.expect("a fork");
    assert_ne!(one, two);
    assert_eq!(run(&cell, two, "echo two").await, "two");
    cell.destroy(one).await.expect("destroyed");
    assert!(matches!(cell.run(one, command("echo")), Err(CellError::NotNow(_))));
    assert!(matches!(cell.fork(one).await, Err(CellError::NotNow(_))));
    assert!(matches!(cell.destroy(one).await, Err(CellError::NotNow(_))));
    let busy = cell.run(two, command("slowly")).expect("a run");
    assert!(matches!(cell.run(two, command("echo")), Err(CellError::NotNow(_))), "one at a time");
    assert_eq!(crate::rig::follow(busy).await.0, "done");
}
