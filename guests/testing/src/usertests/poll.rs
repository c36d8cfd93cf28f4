//! Waiting for descriptors.

use std::time::{Duration, Instant};

use wardian_abi::{self as abi, Errno, open_flags as o};

use crate::kit::*;

const NOW: Option<Duration> = Some(Duration::ZERO);

tests! {
    fn a_pipe_is_readable_when_it_holds_something() {
        let ends = pipe();
        assert_eq!(abi::poll_read(ends.read, NOW), Ok(false));
        assert_eq!(abi::poll_read(ends.read, Some(MOMENT)), Ok(false));
        abi::write_all(ends.write, b"x").expect("write");
        assert_eq!(abi::poll_read(ends.read, NOW), Ok(true));
        assert_eq!(abi::poll_read(ends.read, None), Ok(true));
        read_some(ends.read, 1).expect("read");
        assert_eq!(abi::poll_read(ends.read, NOW), Ok(false));
    }

    fn the_end_of_a_pipe_is_readable() {
        let ends = pipe();
        close(ends.write);
        assert_eq!(abi::poll_read(ends.read, None), Ok(true));
        assert_eq!(read_some(ends.read, 1), Ok(vec![]));
    }

    fn a_pipe_is_writable_until_it_is_full() {
        let ends = pipe();
        assert_eq!(abi::poll_write(ends.write, NOW), Ok(true));
        abi::write_all(ends.write, &vec![0; 65_536]).expect("write");
        assert_eq!(abi::poll_write(ends.write, NOW), Ok(false));
        assert_eq!(abi::poll_write(ends.write, Some(MOMENT)), Ok(false));
        read_some(ends.read, 4096).expect("read");
        assert_eq!(abi::poll_write(ends.write, NOW), Ok(true));
    }

    fn a_broken_pipe_is_writable_to_find_out() {
        let ends = pipe();
        abi::write_all(ends.write, &vec![0; 65_536]).expect("write");
        close(ends.read);
        assert_eq!(abi::poll_write(ends.write, None), Ok(true));
    }

    fn a_waiter_wakes() {
        let ends = pipe();
        let pid = child(|| {
            std::thread::sleep(MOMENT);
            abi::write_all(ends.write, b"x").expect("write");
        });
        assert_eq!(abi::poll_read(ends.read, None), Ok(true));
        succeeded(pid);
        let full = pipe();
        abi::write_all(full.write, &vec![0; 65_536]).expect("write");
        let pid = child(|| {
            std::thread::sleep(MOMENT);
            assert_eq!(read_some(full.read, 65_536).map(|bytes| bytes.len()), Ok(65_536));
        });
        assert_eq!(abi::poll_write(full.write, None), Ok(true));
        succeeded(pid);
    }

    fn a_waiter_wakes_when_the_other_end_goes() {
        let ends = pipe();
        let pid = child(|| {
            close(ends.read);
            std::thread::sleep(MOMENT);
        });
        close(ends.write);
        assert_eq!(abi::poll_read(ends.read, None), Ok(true));
        succeeded(pid);
    }

    fn a_timeout_is_kept() {
        let ends = pipe();
        let start = Instant::now();
        assert_eq!(abi::poll_read(ends.read, Some(Duration::from_millis(30))), Ok(false));
        assert!(start.elapsed() >= Duration::from_millis(30));
    }

    fn files_are_always_ready() {
        make("file", b"");
        let fd = opened("file", o::RDWR);
        assert_eq!(abi::poll_read(fd, NOW), Ok(true));
        assert_eq!(abi::poll_write(fd, NOW), Ok(true));
        let null = opened("/dev/null", o::RDWR);
        assert_eq!(abi::poll_read(null, NOW), Ok(true));
    }

    fn a_flagged_signal_interrupts() {
        flag(USR1);
        let ends = pipe();
        assert_eq!(interrupted_by(USR1, || abi::poll_read(ends.read, None)), Err(Errno::INTR));
        assert_eq!(taken(), [USR1]);
    }

    fn a_fifo_is_polled_like_a_pipe() {
        abi::mkfifo(abi::Dir::CWD, b"fifo", 0o600).expect("mkfifo");
        let fd = opened("fifo", o::RDWR);
        assert_eq!(abi::poll_read(fd, NOW), Ok(false));
        assert_eq!(abi::poll_write(fd, NOW), Ok(true));
        abi::write_all(fd, b"x").expect("write");
        assert_eq!(abi::poll_read(fd, NOW), Ok(true));
    }
}
