//! Named pipes.

use wardian_abi::{self as abi, Dir, Errno, open_flags as o};

use crate::kit::*;

fn fifo() {
    abi::mkfifo(Dir::CWD, b"fifo", 0o666).expect("mkfifo");
}

tests! {
    fn a_fifo_is_a_name() {
        abi::umask(0o027);
        fifo();
        let stat = stat("fifo").expect("stat");
        assert!(stat.is_fifo());
        assert_eq!((stat.mode & 0o777, stat.nlink, stat.size, stat.uid), (0o640, 1, 0, abi::getuid()));
        assert_eq!(abi::mkfifo(Dir::CWD, b"fifo", 0o666), Err(Errno::EXIST));
        assert_eq!(abi::mkfifo(Dir::CWD, b"no/fifo", 0o666), Err(Errno::NOENT));
        assert_eq!(abi::mkfifo(Dir::CWD, b"fifo/x", 0o666), Err(Errno::NOTDIR));
        assert_eq!(abi::mkfifo(Dir::CWD, b"", 0o666), Err(Errno::NOENT));
        unlink("fifo");
        assert_eq!(lstat("fifo"), Err(Errno::NOENT));
    }

    fn bytes_go_through() {
        fifo();
        let pid = child(|| {
            let fd = opened("fifo", o::WRONLY);
            abi::write_all(fd, &vec![3; 200_000]).expect("write");
        });
        let fd = opened("fifo", o::RDONLY);
        assert_eq!(read_all(fd).len(), 200_000);
        succeeded(pid);
    }

    fn a_reader_waits_for_a_writer() {
        fifo();
        let gate = Gate::new();
        let pid = child(|| {
            opened("fifo", o::RDONLY);
            gate.open();
        });
        assert!(!gate.is_open());
        let fd = opened("fifo", o::WRONLY);
        gate.pass();
        succeeded(pid);
        close(fd);
    }

    fn a_writer_waits_for_a_reader() {
        fifo();
        let gate = Gate::new();
        let pid = child(|| {
            opened("fifo", o::WRONLY);
            gate.open();
        });
        assert!(!gate.is_open());
        opened("fifo", o::RDONLY);
        gate.pass();
        succeeded(pid);
    }

    fn opening_without_waiting() {
        fifo();
        assert_eq!(open("fifo", o::WRONLY | o::NONBLOCK), Err(Errno::NXIO), "nobody reads");
        let reader = opened("fifo", o::RDONLY | o::NONBLOCK);
        assert_eq!(abi::nonblocking(reader), Ok(true));
        assert_eq!(read_some(reader, 1), Ok(vec![]), "no writer: the end");
        let writer = opened("fifo", o::WRONLY | o::NONBLOCK);
        assert_eq!(read_some(reader, 1), Err(Errno::AGAIN), "a writer: not yet");
        assert_eq!(abi::write(writer, b"x"), Ok(1));
        assert_eq!(read_some(reader, 1), Ok(b"x".to_vec()));
        assert_eq!(abi::write(writer, &[0; 100_000]), Ok(65_536));
        assert_eq!(abi::write(writer, b"x"), Err(Errno::AGAIN));
        close(reader);
        ignore(PIPE);
        assert_eq!(abi::write(writer, b"x"), Err(Errno::PIPE));
    }

    fn opening_both_ways_never_waits() {
        fifo();
        let fd = opened("fifo", o::RDWR);
        abi::write_all(fd, b"loop").expect("write");
        assert_eq!(read_some(fd, 10), Ok(b"loop".to_vec()));
        abi::set_nonblocking(fd, true).expect("nonblocking");
        assert_eq!(read_some(fd, 1), Err(Errno::AGAIN), "it is its own writer");
    }

    fn the_end_comes_with_every_last_writer() {
        fifo();
        let reader = opened("fifo", o::RDONLY | o::NONBLOCK);
        for round in [&b"one"[..], b"two"] {
            let writer = opened("fifo", o::WRONLY);
            abi::write_all(writer, round).expect("write");
            close(writer);
            assert_eq!(read_all(reader), round);
        }
    }

    fn what_nobody_read_is_lost() {
        fifo();
        let reader = opened("fifo", o::RDONLY | o::NONBLOCK);
        let writer = opened("fifo", o::WRONLY);
        abi::write_all(writer, b"lost").expect("write");
        close(reader);
        close(writer);
        let reader = opened("fifo", o::RDONLY | o::NONBLOCK);
        assert_eq!(read_some(reader, 10), Ok(vec![]));
    }

    fn two_names_are_one_pipe_and_two_fifos_are_two() {
        fifo();
        abi::hard_link(Dir::CWD, b"fifo", Dir::CWD, b"same").expect("link");
        symlink("fifo", "leads");
        abi::mkfifo(Dir::CWD, b"other", 0o666).expect("mkfifo");
        let (fd, other) = (opened("fifo", o::RDWR | o::NONBLOCK), opened("other", o::RDWR | o::NONBLOCK));
        abi::write_all(opened("same", o::WRONLY), b"x").expect("write");
        abi::write_all(opened("leads", o::WRONLY), b"y").expect("write");
        assert_eq!(read_some(fd, 10), Ok(b"xy".to_vec()));
        assert_eq!(read_some(other, 10), Err(Errno::AGAIN));
    }

    fn a_removed_fifo_lives_while_it_is_open() {
        fifo();
        let reader = opened("fifo", o::RDONLY | o::NONBLOCK);
        let writer = opened("fifo", o::WRONLY);
        unlink("fifo");
        fifo();
        let newer = opened("fifo", o::RDWR | o::NONBLOCK);
        abi::write_all(writer, b"old").expect("write");
        assert_eq!(read_some(newer, 10), Err(Errno::AGAIN));
        assert_eq!(read_some(reader, 10), Ok(b"old".to_vec()));
        assert_eq!(abi::fstat(reader).map(|stat| stat.nlink), Ok(0));
    }

    fn an_open_fifo_is_the_file_it_was_opened_as() {
        fifo();
        let named = stat("fifo").expect("stat");
        let fd = opened("fifo", o::RDWR);
        let open = abi::fstat(fd).expect("fstat");
        assert_eq!((open.ino, open.dev, open.mode), (named.ino, named.dev, named.mode));
        abi::fchmod(fd, 0o600).expect("fchmod");
        assert_eq!(stat("fifo").map(|stat| stat.mode & 0o777), Ok(0o600));
    }

    fn a_fifo_has_no_places() {
        fifo();
        let fd = opened("fifo", o::RDWR);
        assert_eq!(abi::seek(fd, 0, abi::Whence::Start), Err(Errno::SPIPE));
        assert_eq!(abi::pread(fd, &mut [0], 0), Err(Errno::SPIPE));
        assert_eq!(abi::pwrite(fd, b"x", 0), Err(Errno::SPIPE));
        assert_eq!(abi::truncate(fd, 0), Err(Errno::INVAL));
        assert_eq!(open("fifo", o::RDONLY | o::DIRECTORY), Err(Errno::NOTDIR));
    }

    fn permissions_count() {
        fifo();
        abi::chmod(Dir::CWD, b"fifo", true, 0o200).expect("chmod");
        assert_eq!(open("fifo", o::RDONLY | o::NONBLOCK), Err(Errno::ACCES));
        assert_eq!(open("fifo", o::RDWR), Err(Errno::ACCES));
    }

    fn a_flagged_signal_interrupts_the_opening() {
        fifo();
        flag(USR1);
        assert_eq!(interrupted_by(USR1, || open("fifo", o::RDONLY)), Err(Errno::INTR));
        assert_eq!(interrupted_by(USR1, || open("fifo", o::WRONLY)), Err(Errno::INTR));
        // Nothing of the attempts is left.
        assert_eq!(open("fifo", o::WRONLY | o::NONBLOCK), Err(Errno::NXIO));
    }

    fn a_waiting_opener_can_be_killed() {
        fifo();
        let pid = child(|| {
            let _ = open("fifo", o::RDONLY);
        });
        std::thread::sleep(MOMENT);
        finish(pid);
        eventually(|| open("fifo", o::WRONLY | o::NONBLOCK) == Err(Errno::NXIO));
    }
}
