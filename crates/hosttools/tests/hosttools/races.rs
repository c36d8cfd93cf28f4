//! A directory that is swapped for a link outside while a program is on its way to it.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use wardian_hosttools::Request;

use crate::yard::{SONG, Yard};

const CALLS: usize = 200;
/// A busy machine may take turns so evenly that one side is met late: calls go on until both were.
const MOST_CALLS: usize = 20 * CALLS;

/// `jail/place` is, by turns, a directory with a file of the test's and a link to the one outside.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<usize>>,
}

impl Swapping {
    fn start(yard: &Yard) -> Swapping {
        let (place, other) = (yard.jail().join("place"), yard.jail().join("other"));
        fs::create_dir(&place).unwrap();
        fs::write(place.join("canary"), "ours\n").unwrap();
        symlink("../outside", &other).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut swaps = 0;
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &place, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            swaps
        });
        Swapping { stop, thread: Some(thread) }
    }

    fn stop(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

#[tokio::test]
async fn a_path_that_is_swapped_after_the_check_leads_nowhere() {
    let yard = Yard::new();
    let door = yard.door();
    let swapping = Swapping::start(&yard);
    let (mut ours, mut refused, mut stopped) = (0, 0, 0);
    for call in 0..MOST_CALLS {
        if call >= CALLS && ours > 0 && refused > 0 {
            break;
        }
        match door.run(Request::line("cat place/canary")).await {
            Ok(finished) if finished.stdout == b"ours\n" => ours += 1,
            Ok(finished) => {
                assert!(finished.stdout.is_empty(), "{}", String::from_utf8_lossy(&finished.stdout));
                stopped += 1;
            }
            Err(error) => {
                assert_eq!(error.code(), "PATH_DENIED");
                refused += 1;
            }
        }
    }
    let swaps = swapping.stop();
    // The check met both of them: the race was on.
    assert!(ours > 0 && refused > 0, "{swaps} swaps: {ours} {refused} {stopped}");
    yard.assert_untouched(&"race");
}

#[tokio::test]
async fn a_working_directory_that_is_swapped_after_the_check_is_the_one_that_was_checked() {
    let yard = Yard::new();
    let door = yard.door();
    let swapping = Swapping::start(&yard);
    let mut ours = 0;
    for call in 0..MOST_CALLS {
        if call >= CALLS && ours > 0 {
            break;
        }
        match door.run(Request::line("cat canary").cwd("place")).await {
            Ok(finished) => {
                let text = String::from_utf8_lossy(&finished.stdout).into_owned();
                assert!(!text.contains(SONG));
                // Nothing in between: what was opened at the check is where it runs.
                assert_eq!(text, "ours\n", "{}", String::from_utf8_lossy(&finished.stderr));
                ours += 1;
            }
            Err(error) => assert_eq!(error.code(), "PATH_DENIED"),
        }
    }
    swapping.stop();
    assert!(ours > 0);
    yard.assert_untouched(&"race");
}
