//! `guests/testing/src/usertests`: every system call and its errors, asked from inside.

use wardian_kernel::{Limits, Start, Status};

use crate::support::{finish, machine_with, settled};

/// One file of tests in a machine of its own; `usertests --list` names the files.
async fn usertests(file: &str) {
    let machine = machine_with(Limits { processes: 48, memory_bytes: 128 << 20, open_files: 128 });
    let done = finish(&machine, Start::new("/bin/usertests", &[file])).await;
    let failed: Vec<&str> = done.stdout.lines().filter(|line| !line.ends_with(": ok")).collect();
    assert_eq!(done.status, Status::Exited(0), "{}\n{}", failed.join("\n"), done.stderr);
    settled(&machine).await;
    assert_eq!(machine.census().descriptors, 0);
    assert_eq!(machine.census().memory_charged, 0);
}

/// A test for each file, and one that no file is left out.
macro_rules! usertests {
    ($($file:ident)*) => {
        $(
            #[tokio::test]
            async fn $file() {
                usertests(stringify!($file)).await;
            }
        )*

        #[tokio::test]
        async fn every_file_of_tests_is_run() {
            let machine = machine_with(Limits::default());
            let listed = finish(&machine, Start::new("/bin/usertests", &["--list"])).await.stdout;
            let mut files: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
            files.dedup();
            assert_eq!(files, [$(stringify!($file)),*]);
        }
    };
}

usertests! {
    processes wait exec descriptors pipes fifos poll sockets signals stopping alarm groups
    files directories links locks times limits dev procfs wasi
}
