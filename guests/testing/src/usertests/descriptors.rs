//! Descriptors: copies, numbers, marks.

use wardian_abi::{self as abi, Errno, Limit, Resource, open_flags as o};

use crate::kit::*;

tests! {
    fn dup_takes_the_lowest_free_number() {
        let first = abi::dup(0, 0, false).expect("dup");
        let second = abi::dup(0, 0, false).expect("dup");
        assert_eq!(second, first + 1);
        close(first);
        assert_eq!(abi::dup(0, 0, false), Ok(first));
    }

    fn dup_from_a_number_up() {
        assert_eq!(abi::dup(0, 50, false), Ok(50));
        assert_eq!(abi::dup(0, 50, false), Ok(51));
        assert_eq!(abi::dup(0, 10, true), Ok(10));
        assert_eq!(abi::cloexec(10), Ok(true));
    }

    fn dup_refuses_what_cannot_be() {
        assert_eq!(abi::dup(99, 0, false), Err(Errno::BADF));
        assert_eq!(abi::dup(-1, 0, false), Err(Errno::BADF));
        assert_eq!(abi::dup(0, -1, false), Err(Errno::INVAL));
        let limit = abi::getrlimit(Resource::Descriptors).expect("getrlimit").soft;
        if let Ok(limit) = i32::try_from(limit) {
            assert_eq!(abi::dup(0, limit, false), Err(Errno::INVAL));
            assert_eq!(abi::dup2(0, limit, false), Err(Errno::BADF));
        }
    }

    fn dup2_replaces_and_closes() {
        let ends = pipe();
        make("file", b"x");
        let file = opened("file", o::RDONLY);
        // The only writer goes away, and the reader sees the end.
        abi::dup2(file, ends.write, false).expect("dup2");
        assert_eq!(read_all(ends.read), b"");
        assert_eq!(read_some(ends.write, 1), Ok(b"x".to_vec()));
    }

    fn dup2_to_itself_keeps_it_open() {
        make("file", b"x");
        let fd = opened("file", o::RDONLY);
        abi::dup2(fd, fd, false).expect("dup2");
        assert_eq!(read_some(fd, 1), Ok(b"x".to_vec()));
        assert_eq!(abi::dup2(99, 99, false), Err(Errno::BADF));
    }

    fn dup2_of_nothing_leaves_the_target() {
        make("file", b"x");
        let fd = opened("file", o::RDONLY);
        assert_eq!(abi::dup2(99, fd, false), Err(Errno::BADF));
        assert_eq!(abi::dup2(-1, fd, false), Err(Errno::BADF));
        assert_eq!(abi::dup2(fd, -1, false), Err(Errno::BADF));
        assert_eq!(read_some(fd, 1), Ok(b"x".to_vec()));
    }

    fn marks_belong_to_the_number() {
        let fd = abi::dup(0, 0, true).expect("dup");
        assert_eq!(abi::cloexec(fd), Ok(true));
        let copy = abi::dup(fd, 0, false).expect("dup");
        assert_eq!(abi::cloexec(copy), Ok(false), "a copy starts without");
        assert_eq!(abi::set_cloexec(fd, false), Ok(true));
        assert_eq!(abi::set_cloexec(fd, true), Ok(false));
        assert_eq!(abi::cloexec(copy), Ok(false));
        abi::dup2(fd, copy, true).expect("dup2");
        assert_eq!(abi::cloexec(copy), Ok(true));
        assert_eq!(abi::cloexec(99), Err(Errno::BADF));
        assert_eq!(abi::set_cloexec(99, true), Err(Errno::BADF));
        let ends = abi::pipe(true).expect("pipe");
        assert_eq!((abi::cloexec(ends.read), abi::cloexec(ends.write)), (Ok(true), Ok(true)));
        make("file", b"");
        assert_eq!(abi::cloexec(opened("file", o::RDONLY)), Ok(false));
        assert_eq!(abi::cloexec(opened("file", o::RDONLY | o::CLOEXEC)), Ok(true));
    }

    fn a_fork_keeps_marks() {
        let fd = abi::dup(0, 0, true).expect("dup");
        succeeded(child(|| assert_eq!(abi::cloexec(fd), Ok(true))));
    }

    fn close_works_once() {
        let fd = abi::dup(0, 0, false).expect("dup");
        assert_eq!(abi::close(fd), Ok(()));
        assert_eq!(abi::close(fd), Err(Errno::BADF));
        assert_eq!(abi::close(-1), Err(Errno::BADF));
        assert_eq!(abi::close(1 << 20), Err(Errno::BADF));
    }

    fn a_closed_descriptor_is_bad_for_everything() {
        let bad = 77;
        let mut byte = [0];
        assert_eq!(abi::read(bad, &mut byte), Err(Errno::BADF));
        assert_eq!(abi::write(bad, b"x"), Err(Errno::BADF));
        assert_eq!(abi::read(bad, &mut []), Err(Errno::BADF));
        assert_eq!(abi::write(bad, b""), Err(Errno::BADF));
        assert_eq!(abi::pread(bad, &mut byte, 0), Err(Errno::BADF));
        assert_eq!(abi::pwrite(bad, b"x", 0), Err(Errno::BADF));
        assert_eq!(abi::seek(bad, 0, abi::Whence::Start), Err(Errno::BADF));
        assert_eq!(abi::fstat(bad), Err(Errno::BADF));
        assert_eq!(abi::fchmod(bad, 0o600), Err(Errno::BADF));
        assert_eq!(abi::truncate(bad, 0), Err(Errno::BADF));
        assert_eq!(abi::allocate(bad, 0, 1), Err(Errno::BADF));
        assert_eq!(abi::sync(bad), Err(Errno::BADF));
        assert_eq!(abi::nonblocking(bad), Err(Errno::BADF));
        assert_eq!(abi::set_nonblocking(bad, true), Err(Errno::BADF));
        assert_eq!(abi::winsize(bad), Err(Errno::BADF));
        assert_eq!(abi::poll_read(bad, Some(MOMENT)), Err(Errno::BADF));
        assert_eq!(abi::chdir(abi::Dir(bad), b""), Err(Errno::BADF));
        assert_eq!(abi::open(abi::Dir(bad), b"x", o::RDONLY, 0), Err(Errno::BADF));
        assert_eq!(abi::stat(abi::Dir(bad), b"x", true), Err(Errno::BADF));
        assert!(!abi::isatty(bad));
    }

    fn copies_share_the_offset_openings_do_not() {
        make("file", b"abcdef");
        let fd = opened("file", o::RDONLY);
        let copy = abi::dup(fd, 0, false).expect("dup");
        let other = opened("file", o::RDONLY);
        assert_eq!(read_some(fd, 2), Ok(b"ab".to_vec()));
        assert_eq!(read_some(copy, 2), Ok(b"cd".to_vec()));
        assert_eq!(read_some(other, 2), Ok(b"ab".to_vec()));
        assert_eq!(abi::seek(copy, 0, abi::Whence::Start), Ok(0));
        assert_eq!(read_some(fd, 2), Ok(b"ab".to_vec()));
        close(fd);
        assert_eq!(read_some(copy, 2), Ok(b"cd".to_vec()));
    }

    fn the_table_fills_up() {
        let Limit { hard, .. } = abi::getrlimit(Resource::Descriptors).expect("getrlimit");
        abi::setrlimit(Resource::Descriptors, Limit { soft: 20, hard }).expect("setrlimit");
        let mut open = Vec::new();
        let refused = loop {
            match abi::dup(0, 0, false) {
                Ok(fd) => open.push(fd),
                Err(errno) => break errno,
            }
        };
        assert_eq!((refused, open.last()), (Errno::MFILE, Some(&19)));
        assert_eq!(open_any(), Err(Errno::MFILE));
        assert_eq!(abi::pipe(false), Err(Errno::MFILE));
        close(open[3]);
        assert_eq!(abi::pipe(false), Err(Errno::MFILE), "one is not enough, and none may leak");
        assert_eq!(open_any(), Ok(open[3]));
    }

    fn a_lower_limit_leaves_what_is_open() {
        let Limit { hard, .. } = abi::getrlimit(Resource::Descriptors).expect("getrlimit");
        make("file", b"x");
        abi::dup2(opened("file", o::RDONLY), 60, false).expect("dup2");
        abi::setrlimit(Resource::Descriptors, Limit { soft: 30, hard }).expect("setrlimit");
        assert_eq!(read_some(60, 1), Ok(b"x".to_vec()));
        assert_eq!(abi::dup2(0, 30, false), Err(Errno::BADF));
        assert_eq!(abi::dup2(0, 29, false), Ok(()));
        succeeded(child(|| {
            assert_eq!(abi::getrlimit(Resource::Descriptors).map(|limit| limit.soft), Ok(30));
            assert_eq!(abi::fstat(60).map(|stat| stat.size), Ok(1));
        }));
        close(60);
        assert_eq!(abi::dup2(0, 60, false), Err(Errno::BADF));
    }

    fn files_and_pipes_are_no_terminals() {
        make("file", b"");
        let file = opened("file", o::RDONLY);
        let ends = pipe();
        for fd in [file, ends.read, ends.write] {
            assert!(!abi::isatty(fd));
            assert_eq!(abi::winsize(fd), Err(Errno::NOTTY));
        }
    }
}

fn open_any() -> abi::Result<abi::Fd> {
    open("/dev/null", o::RDONLY)
}
