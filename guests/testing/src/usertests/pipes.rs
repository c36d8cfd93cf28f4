//! Pipes: 64 KiB, backpressure, whole small writes, and what happens when an end is gone.

use wardian_abi::{self as abi, Errno};

use crate::kit::*;

const CAPACITY: usize = 64 * 1024;
const ATOMIC: usize = 4096;

/// A pipe whose writer never waits, filled to the brim.
fn full() -> abi::Pipe {
    let ends = pipe();
    abi::set_nonblocking(ends.write, true).expect("nonblocking");
    assert_eq!(abi::write(ends.write, &[7; CAPACITY]), Ok(CAPACITY));
    ends
}

tests! {
    fn bytes_arrive_in_order() {
        let ends = pipe();
        assert_eq!(abi::write(ends.write, b"abc"), Ok(3));
        assert_eq!(abi::write(ends.write, b"def"), Ok(3));
        assert_eq!(read_some(ends.read, 4), Ok(b"abcd".to_vec()));
        assert_eq!(read_some(ends.read, 100), Ok(b"ef".to_vec()), "what there is, without waiting for more");
    }

    fn the_end_comes_when_the_last_writer_closes() {
        let ends = pipe();
        let copy = abi::dup(ends.write, 0, false).expect("dup");
        assert_eq!(abi::write(ends.write, b"last"), Ok(4));
        close(ends.write);
        assert_eq!(read_some(ends.read, 10), Ok(b"last".to_vec()));
        abi::set_nonblocking(ends.read, true).expect("nonblocking");
        assert_eq!(read_some(ends.read, 10), Err(Errno::AGAIN), "a copy is still open");
        close(copy);
        assert_eq!(read_some(ends.read, 10), Ok(vec![]));
        assert_eq!(read_some(ends.read, 10), Ok(vec![]), "and again");
    }

    fn the_end_comes_when_the_writing_process_ends() {
        let ends = pipe();
        let pid = sleeper();
        close(ends.write);
        abi::set_nonblocking(ends.read, true).expect("nonblocking");
        assert_eq!(read_some(ends.read, 1), Err(Errno::AGAIN));
        abi::set_nonblocking(ends.read, false).expect("nonblocking");
        kill(pid, KILL);
        assert_eq!(read_some(ends.read, 1), Ok(vec![]));
        ended(pid);
    }

    fn a_pipe_without_readers_is_broken() {
        ignore(PIPE);
        let ends = pipe();
        close(ends.read);
        assert_eq!(abi::write(ends.write, b"x"), Err(Errno::PIPE));
        assert_eq!(abi::write(ends.write, b""), Ok(0), "nothing is always written");
    }

    fn a_broken_pipe_kills() {
        let ends = pipe();
        close(ends.read);
        let pid = child(|| {
            let _ = abi::write(ends.write, b"x");
            abi::exit(1);
        });
        let status = ended(pid);
        assert_eq!((status.signal(), status.shell_code()), (Some(PIPE), 141));
    }

    fn a_broken_pipe_can_be_flagged() {
        flag(PIPE);
        let ends = pipe();
        close(ends.read);
        assert_eq!(abi::write(ends.write, b"x"), Err(Errno::PIPE));
        assert_eq!(taken(), [PIPE]);
    }

    fn a_waiting_writer_hears_that_the_reader_is_gone() {
        let ends = full();
        abi::set_nonblocking(ends.write, false).expect("nonblocking");
        let waiting = child(|| {
            close(ends.read);
            let _ = abi::write(ends.write, b"x");
            abi::exit(1);
        });
        std::thread::sleep(MOMENT);
        close(ends.read);
        assert_eq!(ended(waiting).signal(), Some(PIPE));
    }

    fn a_pipe_holds_64_kib() {
        let ends = pipe();
        abi::set_nonblocking(ends.write, true).expect("nonblocking");
        let mut held = 0;
        let refused = loop {
            match abi::write(ends.write, &[1; ATOMIC]) {
                Ok(n) => held += n,
                Err(errno) => break errno,
            }
        };
        assert_eq!((refused, held), (Errno::AGAIN, CAPACITY));
    }

    fn a_large_write_without_waiting_is_cut_where_the_pipe_is_full() {
        let ends = pipe();
        abi::set_nonblocking(ends.write, true).expect("nonblocking");
        assert_eq!(abi::write(ends.write, &vec![1; CAPACITY + 5000]), Ok(CAPACITY));
        assert_eq!(abi::write(ends.write, &vec![1; CAPACITY]), Err(Errno::AGAIN));
        assert_eq!(read_some(ends.read, ATOMIC).map(|bytes| bytes.len()), Ok(ATOMIC));
        assert_eq!(abi::write(ends.write, &vec![1; CAPACITY]), Ok(ATOMIC));
    }

    fn a_small_write_without_waiting_is_whole_or_not_at_all() {
        let ends = full();
        assert_eq!(abi::write(ends.write, b"x"), Err(Errno::AGAIN));
        assert_eq!(read_some(ends.read, 100).map(|bytes| bytes.len()), Ok(100));
        assert_eq!(abi::write(ends.write, &[8; 200]), Err(Errno::AGAIN), "room for a part only");
        close(ends.write);
        let rest = read_all(ends.read);
        assert_eq!((rest.len(), rest.contains(&8)), (CAPACITY - 100, false));
    }

    fn reading_without_waiting() {
        let ends = pipe();
        abi::set_nonblocking(ends.read, true).expect("nonblocking");
        assert_eq!(read_some(ends.read, 10), Err(Errno::AGAIN));
        abi::write_all(ends.write, b"x").expect("write");
        assert_eq!(read_some(ends.read, 10), Ok(b"x".to_vec()));
        assert_eq!(read_some(ends.read, 10), Err(Errno::AGAIN));
        close(ends.write);
        assert_eq!(read_some(ends.read, 10), Ok(vec![]));
    }

    fn not_waiting_is_a_property_of_the_opening() {
        let ends = pipe();
        let copy = abi::dup(ends.read, 0, false).expect("dup");
        assert_eq!(abi::nonblocking(ends.read), Ok(false));
        abi::set_nonblocking(ends.read, true).expect("nonblocking");
        assert_eq!(abi::nonblocking(copy), Ok(true), "copies share it");
        assert_eq!(abi::nonblocking(ends.write), Ok(false), "the other end has its own");
        succeeded(child(|| abi::set_nonblocking(copy, false).expect("nonblocking")));
        assert_eq!(abi::nonblocking(ends.read), Ok(false), "and so does a child");
    }

    fn writers_wait_for_readers() {
        let ends = pipe();
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        let pid = child(|| {
            close(ends.read);
            abi::write_all(ends.write, &sent).expect("write");
        });
        close(ends.write);
        assert!(read_all(ends.read) == sent);
        succeeded(pid);
    }

    fn one_write_waits_until_all_of_it_is_taken() {
        let ends = pipe();
        let pid = child(|| {
            close(ends.read);
            assert_eq!(abi::write(ends.write, &vec![5; 300_000]), Ok(300_000));
        });
        close(ends.write);
        assert_eq!(read_all(ends.read).len(), 300_000);
        succeeded(pid);
    }

    fn small_writes_of_several_writers_stay_whole() {
        const RECORDS: usize = 100;
        let ends = pipe();
        let writers: Vec<_> = (b'a'..=b'd').map(|letter| child(|| {
            close(ends.read);
            for _ in 0..RECORDS {
                assert_eq!(abi::write(ends.write, &[letter; ATOMIC]), Ok(ATOMIC));
            }
        })).collect();
        close(ends.write);
        let all = read_all(ends.read);
        assert_eq!(all.len(), 4 * RECORDS * ATOMIC);
        for record in all.chunks(ATOMIC) {
            assert!(record.iter().all(|&byte| byte == record[0]), "a record was torn");
        }
        writers.into_iter().for_each(succeeded);
    }

    fn several_readers_share_what_comes() {
        let (ends, counts) = (pipe(), pipe());
        let readers: Vec<_> = (0..4).map(|_| child(|| {
            close(ends.write);
            let mut count = 0u32;
            while let Ok(bytes) = read_some(ends.read, 777) {
                if bytes.is_empty() {
                    break;
                }
                count += bytes.len() as u32;
            }
            abi::write_all(counts.write, &count.to_le_bytes()).expect("write");
        })).collect();
        abi::write_all(ends.write, &vec![1; 500_000]).expect("write");
        close(ends.write);
        readers.into_iter().for_each(succeeded);
        close(counts.write);
        let counts = read_all(counts.read);
        let total: u32 = counts.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("four"))).sum();
        assert_eq!(total, 500_000);
    }

    fn an_empty_read_or_write_never_waits() {
        let ends = pipe();
        assert_eq!(abi::read(ends.read, &mut []), Ok(0));
        assert_eq!(abi::write(ends.write, b""), Ok(0));
        let ends = full();
        abi::set_nonblocking(ends.write, false).expect("nonblocking");
        assert_eq!(abi::write(ends.write, b""), Ok(0));
    }

    fn each_end_goes_one_way() {
        let ends = pipe();
        assert_eq!(abi::write(ends.read, b"x"), Err(Errno::BADF));
        assert_eq!(read_some(ends.write, 1), Err(Errno::BADF));
    }

    fn a_pipe_has_no_places() {
        let ends = pipe();
        assert_eq!(abi::seek(ends.read, 0, abi::Whence::Current), Err(Errno::SPIPE));
        assert_eq!(abi::pread(ends.read, &mut [0], 0), Err(Errno::SPIPE));
        assert_eq!(abi::pwrite(ends.write, b"x", 0), Err(Errno::SPIPE));
        assert_eq!(abi::truncate(ends.write, 0), Err(Errno::INVAL));
        assert_eq!(abi::allocate(ends.write, 0, 10), Err(Errno::SPIPE));
        assert_eq!(abi::sync(ends.write), Err(Errno::INVAL));
        assert_eq!(abi::chdir(abi::Dir(ends.read), b""), Err(Errno::NOTDIR));
        assert_eq!(abi::open(abi::Dir(ends.read), b"x", 0, 0), Err(Errno::NOTDIR));
    }

    fn each_pipe_is_one_file_with_two_ends() {
        let (one, other) = (pipe(), pipe());
        let stat = |fd| abi::fstat(fd).expect("fstat");
        assert!(stat(one.read).is_fifo() && stat(one.write).is_fifo());
        assert_eq!(stat(one.read).ino, stat(one.write).ino);
        assert_ne!(stat(one.read).ino, stat(other.read).ino);
        assert_eq!(stat(one.read).mode & 0o777, 0o600);
        assert_eq!(stat(one.read).uid, abi::getuid());
    }

    fn a_flagged_signal_interrupts_a_read() {
        flag(USR1);
        let ends = pipe();
        assert_eq!(interrupted_by(USR1, || read_some(ends.read, 1)), Err(Errno::INTR));
        assert_eq!(taken(), [USR1]);
    }

    fn a_flagged_signal_interrupts_a_write_that_has_not_begun() {
        flag(USR1);
        let ends = full();
        abi::set_nonblocking(ends.write, false).expect("nonblocking");
        assert_eq!(interrupted_by(USR1, || abi::write(ends.write, b"x")), Err(Errno::INTR));
        close(ends.write);
        assert_eq!(read_all(ends.read).len(), CAPACITY);
    }

    fn an_interrupted_write_tells_how_much_it_wrote() {
        flag(USR1);
        let ends = pipe();
        assert_eq!(interrupted_by(USR1, || abi::write(ends.write, &vec![1; CAPACITY + 5000])), Ok(CAPACITY));
        close(ends.write);
        assert_eq!(read_all(ends.read).len(), CAPACITY);
    }

    fn what_is_there_is_read_even_with_a_signal_waiting() {
        flag(USR1);
        let ends = pipe();
        abi::write_all(ends.write, b"x").expect("write");
        kill(abi::getpid(), USR1);
        assert_eq!(read_some(ends.read, 1), Ok(b"x".to_vec()));
        assert_eq!(taken(), [USR1]);
    }

    fn ends_go_through_dev_fd() {
        let ends = pipe();
        let writer = opened(&format!("/dev/fd/{}", ends.write), abi::open_flags::WRONLY);
        let reader = opened(&format!("/dev/fd/{}", ends.read), abi::open_flags::RDONLY);
        abi::write_all(writer, b"x").expect("write");
        assert_eq!(read_some(reader, 1), Ok(b"x".to_vec()));
        close(ends.write);
        abi::set_nonblocking(reader, true).expect("nonblocking");
        assert_eq!(abi::nonblocking(ends.read), Ok(false), "another opening");
        assert_eq!(read_some(reader, 1), Err(Errno::AGAIN));
        close(writer);
        assert_eq!(read_some(reader, 1), Ok(vec![]));
        // The read end's name opens the pipe, so also for writing.
        let again = opened(&format!("/dev/fd/{}", ends.read), abi::open_flags::WRONLY);
        abi::write_all(again, b"y").expect("write");
        assert_eq!(read_some(ends.read, 1), Ok(b"y".to_vec()));
    }
}
