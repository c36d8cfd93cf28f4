//! Nothing is left of cells that are gone. In a process of its own: other tests start cells as well.

use std::process::Command;

use crate::rig::{cell, command, follow, run, sandbox};

/// Set in that process.
const ALONE: &str = "WARDIAN_CELL_LEAKS";

fn count(directory: &str) -> usize {
    std::fs::read_dir(directory).expect("a directory").count()
}

/// Its processes, also those that are dead and were not waited for.
fn children() -> usize {
    let of_thread = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children"));
    let threads = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    threads.filter_map(|thread| of_thread(thread).ok()).map(|list| list.split_whitespace().count()).sum()
}

#[test]
fn nothing_is_left_of_many_cells() {
    let this = std::env::current_exe().expect("this program");
    let mut alone = Command::new(this);
    alone.args(["--exact", "leaks::in_a_process_of_its_own", "--ignored", "--test-threads=1"]);
    let ended = alone.env(ALONE, "1").status().expect("it starts");
    assert!(ended.success());
}

#[tokio::test]
#[ignore = "the test above starts it"]
async fn in_a_process_of_its_own() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    many(2).await;
    let before = settled((0, 0, 0)).await;
    many(15).await;
    assert_eq!(settled(before).await, before, "descriptors, threads, processes");
    assert_eq!(before.2, 0);
}

/// Ends cells in each way there is.
async fn many(times: usize) {
    for time in 0..times {
        let cell = cell().await;
        let sandbox = sandbox(&cell).await;
        assert_eq!(run(&cell, sandbox, "echo x").await, "x");
        match time % 3 {
            0 => drop(cell),
            1 => drop(follow(cell.run(sandbox, command("die")).expect("a run")).await),
            _ => drop(cell.run(sandbox, command("hang")).expect("a run")),
        }
    }
}

/// Counts, once they are as expected or stay as they are: cells that nobody has end in their own time.
async fn settled(expected: (usize, usize, usize)) -> (usize, usize, usize) {
    let now = || (count("/proc/self/fd"), count("/proc/self/task"), children());
    let (mut last, mut same) = (now(), 0);
    while last != expected && same < 100 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let next = now();
        same = if next == last { same + 1 } else { 0 };
        last = next;
    }
    last
}
