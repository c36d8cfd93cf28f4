//! fork, exit, and who is whose child.

use std::hint::black_box;
use std::time::Duration;

use wardian_abi::{self as abi, Dir, Errno, Who, open_flags as o};

use crate::kit::*;

/// 0 when every process below answered 0.
fn nest(depth: u32) -> i32 {
    if depth == 0 {
        return 0;
    }
    let answer = abi::fork(|| nest(depth - 1)).map(ended);
    i32::from(answer.is_ok_and(|status| status.code() == Some(0))) ^ 1
}

/// Forks below `depth` frames that each hold bytes the child must find.
#[inline(never)]
fn fork_below(depth: u32, sum: u32) -> abi::Pid {
    let frame = black_box([depth as u8; 1024]);
    if depth == 0 {
        return abi::fork(|| (sum % 251) as i32).expect("fork");
    }
    let pid = fork_below(depth - 1, sum + u32::from(frame[depth as usize % 1024]));
    assert_eq!(black_box(frame)[0], depth as u8);
    pid
}

tests! {
    fn a_child_has_a_copy_of_memory() {
        let mut here = vec![1, 2, 3];
        let pid = abi::fork(|| {
            here.push(4);
            here.len() as i32
        }).expect("fork");
        assert_eq!(ended(pid).code(), Some(4));
        assert_eq!(here, [1, 2, 3]);
    }

    fn the_heap_of_a_child_is_its_own() {
        let mut large = vec![7u8; 1 << 20];
        let pid = child(|| {
            assert!(large.iter().all(|&byte| byte == 7));
            large.fill(8);
            let more = vec![9u8; 1 << 20];
            assert!(black_box(more).iter().all(|&byte| byte == 9));
        });
        succeeded(pid);
        assert!(large.iter().all(|&byte| byte == 7));
        large[0] = 1;
        let pid = child(|| assert_eq!(large[0], 1));
        succeeded(pid);
    }

    fn forks_nest() {
        assert_eq!(nest(20), 0);
    }

    fn forks_work_from_deep_in_the_stack() {
        let frames: u32 = (1..=200u32).map(|depth| u32::from(depth as u8)).sum();
        assert_eq!(ended(fork_below(200, 0)).code(), Some((frames % 251) as i32));
    }

    fn thousands_of_forks_in_a_row_leave_nothing() {
        #[cfg(target_os = "wasi")]
        let before = free_memory();
        for i in 0..3000u32 {
            let pid = abi::fork(|| (i % 200) as i32).expect("fork");
            assert_eq!(ended(pid).code(), Some((i % 200) as i32));
        }
        #[cfg(target_os = "wasi")]
        eventually(|| free_memory() == before);
    }

    fn forks_work_while_siblings_run() {
        let siblings: Vec<_> = (0..8).map(|_| child(|| loop {
            black_box(vec![1u8; 4096]);
        })).collect();
        for i in 0..200 {
            let pid = abi::fork(|| i % 100).expect("fork");
            assert_eq!(ended(pid).code(), Some(i % 100));
        }
        siblings.into_iter().for_each(finish);
    }

    fn many_children_at_once() {
        let children: Vec<_> = (0..30).map(|i| (i, abi::fork(|| i).expect("fork"))).collect();
        for (i, pid) in children.into_iter().rev() {
            assert_eq!(ended(pid).code(), Some(i));
        }
    }

    fn exit_codes_have_eight_bits() {
        for (given, seen) in [(0, 0), (1, 1), (127, 127), (128, 128), (255, 255), (256, 0), (-1, 255), (511, 255)] {
            assert_eq!(ended(abi::fork(|| given).expect("fork")).code(), Some(seen), "{given}");
            assert_eq!(ended(child(|| abi::exit(given))).code(), Some(seen), "exit {given}");
        }
    }

    fn an_abort_is_a_signal() {
        let pid = child(|| std::process::abort());
        assert_eq!(ended(pid).signal(), Some(ABRT));
        assert_eq!(ended(child(|| std::process::abort())).shell_code(), 134);
    }

    fn a_child_knows_its_parent() {
        let me = abi::getpid();
        let ends = pipe();
        let pid = child(|| {
            assert_eq!(abi::getppid(), me);
            abi::write_all(ends.write, &abi::getpid().to_le_bytes()).expect("write");
        });
        assert_eq!(read_some(ends.read, 4), Ok(pid.to_le_bytes().to_vec()));
        assert_ne!(pid, me);
        succeeded(pid);
    }

    fn an_orphan_gets_another_parent() {
        let (gate, told, me) = (Gate::new(), pipe(), abi::getpid());
        let middle = child(|| {
            let middle = abi::getpid();
            child(|| {
                eventually(|| abi::getppid() != middle);
                assert_ne!(abi::getppid(), me);
                abi::write_all(told.write, b"adopted").expect("write");
                gate.pass();
            });
        });
        succeeded(middle);
        assert_eq!(read_some(told.read, 16), Ok(b"adopted".to_vec()));
        assert_eq!(abi::wait(Who::Any, Default::default()), Err(Errno::CHILD), "an orphan is nobody's");
        gate.open();
    }

    #[cfg(target_os = "wasi")]
    fn an_orphan_that_ends_is_gone() {
        let told = pipe();
        succeeded(child(|| {
            let orphan = child(|| ());
            abi::write_all(told.write, &orphan.to_le_bytes()).expect("write");
        }));
        let mut bytes = [0; 4];
        assert_eq!(abi::read(told.read, &mut bytes), Ok(4));
        let orphan = abi::Pid::from_le_bytes(bytes);
        eventually(|| abi::kill(Who::Child(orphan), 0) == Err(Errno::SRCH));
    }

    fn a_zombie_stays_until_it_is_waited_for() {
        let gate = Gate::new();
        let pid = child(|| close(gate.0.write));
        close(gate.0.write);
        // Its end of the pipe closes as it ends.
        assert_eq!(abi::read(gate.0.read, &mut [0]), Ok(0));
        assert_eq!(abi::kill(Who::Child(pid), 0), Ok(()));
        std::thread::sleep(MOMENT);
        assert_eq!(abi::kill(Who::Child(pid), 0), Ok(()), "a zombie can be signalled");
        succeeded(pid);
        assert_eq!(abi::kill(Who::Child(pid), 0), Err(Errno::SRCH));
    }

    fn a_child_shares_offsets_but_not_the_table() {
        make("file", b"abcdef");
        let fd = opened("file", o::RDONLY);
        let pid = child(|| {
            assert_eq!(read_some(fd, 2), Ok(b"ab".to_vec()));
            close(fd);
        });
        succeeded(pid);
        assert_eq!(read_some(fd, 2), Ok(b"cd".to_vec()));
    }

    fn a_child_has_its_own_place_and_umask() {
        mkdir("sub");
        let (before, mask) = (abi::getcwd().expect("getcwd"), abi::umask(0o027));
        let pid = child(|| {
            assert_eq!(abi::getcwd(), Ok(before.clone()));
            abi::chdir(Dir::CWD, b"sub").expect("chdir");
            assert_eq!(abi::umask(0o077), 0o027);
        });
        succeeded(pid);
        assert_eq!(abi::getcwd(), Ok(before));
        assert_eq!(abi::umask(mask), 0o027);
    }

    fn what_a_child_borrows_is_valid_there() {
        let words = ["one".to_owned(), "two".to_owned()];
        let slice = &words[1];
        let pid = child(|| assert_eq!(slice, "two"));
        succeeded(pid);
    }

    fn children_and_parent_run_at_the_same_time() {
        let (there, back) = (pipe(), pipe());
        let pid = child(|| {
            for i in 0..200u8 {
                assert_eq!(read_some(there.read, 1), Ok(vec![i]));
                assert_eq!(abi::write(back.write, &[i]), Ok(1));
            }
        });
        for i in 0..200u8 {
            assert_eq!(abi::write(there.write, &[i]), Ok(1));
            assert_eq!(read_some(back.read, 1), Ok(vec![i]));
        }
        succeeded(pid);
    }

    fn a_sleeping_child_is_killed() {
        let pid = child(|| std::thread::sleep(Duration::from_secs(3600)));
        finish(pid);
    }
}

/// What the sandbox's processes may still take.
#[cfg(target_os = "wasi")]
fn free_memory() -> u64 {
    let info = text("/proc/meminfo");
    let line = info.lines().find_map(|line| line.strip_prefix("MemFree:")).expect("MemFree");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
