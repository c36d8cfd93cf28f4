//! `/dev`.

use wardian_abi::{self as abi, Errno, Whence, open_flags as o};

use crate::kit::*;

tests! {
    fn null_takes_everything_and_gives_nothing() {
        let fd = opened("/dev/null", o::RDWR | o::CREAT | o::TRUNC | o::APPEND);
        assert_eq!(abi::write(fd, &[1; 100_000]), Ok(100_000));
        assert_eq!(read_some(fd, 10), Ok(vec![]));
        assert_eq!(abi::pread(fd, &mut [0], 5), Ok(0));
        assert_eq!(abi::fstat(fd).map(|stat| stat.size), Ok(0));
    }

    fn zero_gives_zeros() {
        let fd = opened("/dev/zero", o::RDWR);
        let mut buffer = [1; 5000];
        assert_eq!(abi::read(fd, &mut buffer), Ok(5000));
        assert!(buffer.iter().all(|&byte| byte == 0));
        assert_eq!(abi::write(fd, b"x"), Ok(1));
    }

    fn full_is_full() {
        let fd = opened("/dev/full", o::RDWR);
        assert_eq!(abi::write(fd, b"x"), Err(Errno::NOSPC));
        assert_eq!(read_some(fd, 3), Ok(vec![0; 3]));
    }

    fn random_bytes_differ() {
        for path in ["/dev/random", "/dev/urandom"] {
            let fd = opened(path, o::RDONLY);
            let (one, other) = (read_some(fd, 32), read_some(fd, 32));
            assert_eq!(one.as_ref().map(Vec::len), Ok(32), "{path}");
            assert_ne!(one, other, "{path}");
        }
    }

    fn devices_are_devices() {
        for (path, major, minor) in [
            ("/dev/null", 1, 3), ("/dev/zero", 1, 5), ("/dev/full", 1, 7), ("/dev/random", 1, 8), ("/dev/urandom", 1, 9),
            ("/dev/tty", 5, 0),
        ] {
            let stat = stat(path).expect(path);
            assert!(stat.is_char(), "{path}");
            assert_eq!(stat.rdev, major << 8 | minor, "{path}");
            assert_eq!(stat.mode & 0o777, 0o666, "{path}");
        }
    }

    fn a_device_has_no_size_and_cannot_be_cut() {
        let fd = opened("/dev/null", o::RDWR);
        assert_eq!(abi::truncate(fd, 10), Err(Errno::INVAL));
        assert_eq!(abi::seek(fd, 100, Whence::Start), Ok(0));
        assert_eq!(abi::seek(fd, 0, Whence::End), Ok(0));
        assert_eq!(open("/dev/null/x", o::RDONLY), Err(Errno::NOTDIR));
        assert_eq!(open("/dev/null", o::RDONLY | o::DIRECTORY), Err(Errno::NOTDIR));
    }

    #[cfg(target_os = "wasi")]
    fn there_is_no_terminal() {
        assert_eq!(open("/dev/tty", o::RDWR), Err(Errno::NXIO));
    }

    fn the_standard_streams_have_names() {
        make("in", b"input");
        make("out", b"");
        succeeded(child(|| {
            abi::dup2(opened("in", o::RDONLY), 0, false).expect("dup2");
            abi::dup2(opened("out", o::WRONLY | o::APPEND), 1, false).expect("dup2");
            abi::dup2(1, 2, false).expect("dup2");
            assert_eq!(content("/dev/stdin"), b"input");
            abi::write_all(opened("/dev/stdout", o::WRONLY | o::APPEND), b"one ").expect("write");
            abi::write_all(opened("/dev/stderr", o::WRONLY | o::APPEND), b"two").expect("write");
        }));
        assert_eq!(content("out"), b"one two");
    }

    fn dev_fd_opens_the_file_anew() {
        make("file", b"abcdef");
        let fd = opened("file", o::RDONLY);
        assert_eq!(read_some(fd, 2), Ok(b"ab".to_vec()));
        let again = opened(&format!("/dev/fd/{fd}"), o::RDONLY);
        assert_eq!(read_some(again, 3), Ok(b"abc".to_vec()), "from the start");
        assert_eq!(read_some(fd, 2), Ok(b"cd".to_vec()), "each with its own offset");
        let writer = opened(&format!("/dev/fd/{fd}"), o::WRONLY | o::TRUNC);
        assert_eq!(read_some(fd, 2), Ok(vec![]), "emptied");
        abi::write_all(writer, b"new").expect("write");
        assert_eq!(content("file"), b"new");
        assert_eq!(abi::write(again, b"x"), Err(Errno::BADF), "opened for reading");
    }

    fn dev_fd_asks_for_permission_again() {
        make("file", b"abc");
        let fd = opened("file", o::RDWR);
        abi::fchmod(fd, 0o400).expect("fchmod");
        assert_eq!(open(&format!("/dev/fd/{fd}"), o::WRONLY), Err(Errno::ACCES));
        assert_eq!(content(&format!("/dev/fd/{fd}")), b"abc");
    }

    fn dev_fd_reaches_a_file_without_a_name() {
        make("file", b"abc");
        let fd = opened("file", o::RDONLY);
        unlink("file");
        assert_eq!(content(&format!("/dev/fd/{fd}")), b"abc");
        assert_eq!(stat(&format!("/dev/fd/{fd}")).map(|stat| stat.nlink), Ok(0));
    }

    fn dev_fd_of_a_directory_leads_there() {
        mkdir("dir");
        make("dir/file", b"x");
        let fd = opened("dir", o::RDONLY | o::DIRECTORY);
        assert_eq!(content(&format!("/dev/fd/{fd}/file")), b"x");
    }

    fn dev_fd_knows_what_is_open() {
        assert_eq!(open("/dev/fd/77", o::RDONLY), Err(Errno::NOENT));
        assert_eq!(open("/dev/fd/x", o::RDONLY), Err(Errno::NOENT));
        let fd = abi::dup(0, 30, false).expect("dup");
        let names: Vec<String> = std::fs::read_dir("/dev/fd").expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        assert!(names.contains(&fd.to_string()) && !names.contains(&"77".to_owned()), "{names:?}");
    }
}
