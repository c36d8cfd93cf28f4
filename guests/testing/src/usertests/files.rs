//! Regular files.

use std::time::{Duration, SystemTime};

use wardian_abi::{self as abi, Dir, Errno, Whence, open_flags as o};

use crate::kit::*;

tests! {
    fn open_makes_files_with_the_umask() {
        abi::umask(0o027);
        let fd = abi::open(Dir::CWD, b"file", o::WRONLY | o::CREAT, 0o666).expect("open");
        let stat = abi::fstat(fd).expect("fstat");
        assert!(stat.is_file());
        assert_eq!((stat.mode & 0o7777, stat.nlink, stat.size), (0o640, 1, 0));
        assert_eq!((stat.uid, stat.gid), (abi::getuid(), abi::getgid()));
        // The mode is for new files only, and the flag in it does not bind who made it.
        assert_eq!(abi::open(Dir::CWD, b"file", o::WRONLY | o::CREAT, 0o111).map(close), Ok(()));
        assert_eq!(stat.mode, lstat("file").expect("stat").mode);
        let sealed = abi::open(Dir::CWD, b"sealed", o::RDWR | o::CREAT, 0).expect("open");
        assert_eq!(abi::write(sealed, b"x"), Ok(1));
        assert_eq!(open("sealed", o::RDONLY), Err(Errno::ACCES));
    }

    fn open_refuses_as_it_should() {
        mkdir("dir");
        make("file", b"");
        symlink("file", "link");
        symlink("nowhere", "dangling");
        symlink("loop", "loop");
        let (long_name, long_path) = ("n".repeat(256), "p/".repeat(2048));
        for (path, flags, errno) in [
            ("nothing", o::RDONLY, Errno::NOENT),
            ("", o::RDONLY, Errno::NOENT),
            ("", o::WRONLY | o::CREAT, Errno::NOENT),
            ("no/file", o::WRONLY | o::CREAT, Errno::NOENT),
            ("file/x", o::RDONLY, Errno::NOTDIR),
            ("file/", o::RDONLY, Errno::NOTDIR),
            ("file/.", o::RDONLY, Errno::NOTDIR),
            ("file/..", o::RDONLY, Errno::NOTDIR),
            ("new/", o::WRONLY | o::CREAT, Errno::ISDIR),
            ("file", o::WRONLY | o::CREAT | o::EXCL, Errno::EXIST),
            ("dir", o::WRONLY, Errno::ISDIR),
            ("dir", o::RDWR, Errno::ISDIR),
            ("dir", o::RDONLY | o::CREAT, Errno::ISDIR),
            ("file", o::RDONLY | o::DIRECTORY, Errno::NOTDIR),
            ("link", o::RDONLY | o::NOFOLLOW, Errno::LOOP),
            ("link", o::WRONLY | o::CREAT | o::EXCL, Errno::EXIST),
            ("dangling", o::RDONLY, Errno::NOENT),
            ("dangling", o::WRONLY | o::CREAT | o::EXCL, Errno::EXIST),
            ("loop", o::RDONLY, Errno::LOOP),
            ("loop/x", o::RDONLY, Errno::LOOP),
            (&long_name, o::RDONLY, Errno::NAMETOOLONG),
            (&long_name, o::WRONLY | o::CREAT, Errno::NAMETOOLONG),
            (&long_path, o::RDONLY, Errno::NAMETOOLONG),
        ] {
            assert_eq!(open(path, flags), Err(errno), "'{}' {flags:o}", &path[..path.len().min(20)]);
        }
        assert_eq!(open("dangling", o::WRONLY | o::CREAT).map(close), Ok(()), "made where the link leads");
        assert!(lstat("nowhere").is_ok());
        let longest = "n".repeat(255);
        assert_eq!(open(&longest, o::WRONLY | o::CREAT).map(close), Ok(()));
    }

    fn access_is_by_mode() {
        make("file", b"x");
        for (mode, may_read, may_write) in [(0o000, false, false), (0o400, true, false), (0o200, false, true),
            (0o077, false, false), (0o600, true, true)]
        {
            abi::chmod(Dir::CWD, b"file", true, mode).expect("chmod");
            let allowed = |may| if may { Ok(()) } else { Err(Errno::ACCES) };
            assert_eq!(open("file", o::RDONLY).map(close), allowed(may_read), "{mode:o}");
            assert_eq!(open("file", o::WRONLY).map(close), allowed(may_write), "{mode:o}");
            assert_eq!(open("file", o::RDWR).map(close), allowed(may_read && may_write), "{mode:o}");
            assert_eq!(abi::access(Dir::CWD, b"file", 4), allowed(may_read), "{mode:o}");
            assert_eq!(abi::access(Dir::CWD, b"file", 2), allowed(may_write), "{mode:o}");
            assert_eq!(abi::access(Dir::CWD, b"file", 1), allowed(false), "{mode:o}");
            assert_eq!(abi::access(Dir::CWD, b"file", 0), Ok(()), "{mode:o}");
        }
        abi::chmod(Dir::CWD, b"file", true, 0o100).expect("chmod");
        assert_eq!(abi::access(Dir::CWD, b"file", 1), Ok(()));
        assert_eq!(abi::access(Dir::CWD, b"file", 8), Err(Errno::INVAL));
        assert_eq!(abi::access(Dir::CWD, b"nothing", 0), Err(Errno::NOENT));
        assert_eq!(abi::access(Dir::CWD, b"", 0), Err(Errno::NOENT));
        assert_eq!(abi::access(Dir::CWD, b"/etc", 2), Err(Errno::ACCES), "root's");
    }

    fn each_way_of_opening_allows_its_own() {
        make("file", b"abc");
        let (reader, writer) = (opened("file", o::RDONLY), opened("file", o::WRONLY));
        assert_eq!(abi::write(reader, b"x"), Err(Errno::BADF));
        assert_eq!(abi::pwrite(reader, b"x", 0), Err(Errno::BADF));
        assert_eq!(abi::truncate(reader, 0), Err(Errno::INVAL));
        assert_eq!(abi::allocate(reader, 0, 10), Err(Errno::BADF));
        assert_eq!(read_some(writer, 1), Err(Errno::BADF));
        assert_eq!(abi::pread(writer, &mut [0], 0), Err(Errno::BADF));
        assert_eq!(content("file"), b"abc");
    }

    fn truncation_on_opening() {
        make("file", b"abc");
        let other = opened("file", o::RDONLY);
        close(opened("file", o::WRONLY | o::TRUNC));
        assert_eq!(abi::fstat(other).map(|stat| stat.size), Ok(0));
        assert_eq!(read_some(other, 1), Ok(vec![]));
    }

    fn writing_moves_the_offset_and_seeking_too() {
        let fd = opened("file", o::RDWR | o::CREAT);
        assert_eq!(abi::write(fd, b"abcdef"), Ok(6));
        assert_eq!(abi::seek(fd, 0, Whence::Current), Ok(6));
        assert_eq!(abi::seek(fd, -4, Whence::Current), Ok(2));
        assert_eq!(abi::write(fd, b"XY"), Ok(2));
        assert_eq!(abi::seek(fd, -1, Whence::End), Ok(5));
        assert_eq!(read_some(fd, 10), Ok(b"f".to_vec()));
        assert_eq!(abi::seek(fd, 1, Whence::Start), Ok(1));
        assert_eq!(read_some(fd, 10), Ok(b"bXYef".to_vec()));
        assert_eq!(abi::seek(fd, -1, Whence::Start), Err(Errno::INVAL));
        assert_eq!(abi::seek(fd, -7, Whence::End), Err(Errno::INVAL));
        assert_eq!(abi::seek(fd, 0, Whence::Current), Ok(6), "a failure leaves it");
        assert_eq!(abi::seek(fd, i64::MAX, Whence::Current), Err(Errno::INVAL));
    }

    fn a_hole_reads_as_zeros() {
        let fd = opened("file", o::RDWR | o::CREAT);
        assert_eq!(abi::seek(fd, 1 << 20, Whence::Start), Ok(1 << 20));
        assert_eq!(abi::fstat(fd).map(|stat| stat.size), Ok(0), "seeking makes nothing");
        assert_eq!(read_some(fd, 1), Ok(vec![]));
        assert_eq!(abi::write(fd, b"x"), Ok(1));
        let stat = abi::fstat(fd).expect("fstat");
        assert_eq!(stat.size, (1 << 20) + 1);
        assert!(stat.blocks * 512 < 1 << 19, "{} blocks", stat.blocks);
        let mut middle = [1; 100];
        assert_eq!(abi::pread(fd, &mut middle, 5000), Ok(100));
        assert_eq!(middle, [0; 100]);
    }

    fn reading_and_writing_at_a_place() {
        let fd = opened("file", o::RDWR | o::CREAT);
        assert_eq!(abi::pwrite(fd, b"world", 6), Ok(5));
        assert_eq!(abi::pwrite(fd, b"hello ", 0), Ok(6));
        assert_eq!(abi::seek(fd, 0, Whence::Current), Ok(0), "the offset stays");
        let mut some = [0; 5];
        assert_eq!(abi::pread(fd, &mut some, 6), Ok(5));
        assert_eq!(&some, b"world");
        assert_eq!(abi::pread(fd, &mut some, 9), Ok(2));
        assert_eq!(abi::pread(fd, &mut some, 11), Ok(0));
        assert_eq!(abi::pread(fd, &mut some, 1 << 40), Ok(0));
        assert_eq!(abi::pread(fd, &mut some, 1 << 63), Err(Errno::INVAL));
        assert_eq!(abi::pwrite(fd, b"x", 1 << 63), Err(Errno::INVAL));
        assert_eq!(abi::seek(fd, 0, Whence::Current), Ok(0));
    }

    fn appending_goes_to_the_end() {
        make("file", b"abc");
        let (one, two) = (opened("file", o::WRONLY | o::APPEND), opened("file", o::RDWR | o::APPEND));
        assert_eq!(abi::write(one, b"1"), Ok(1));
        assert_eq!(abi::write(two, b"2"), Ok(1));
        abi::seek(one, 0, Whence::Start).expect("seek");
        assert_eq!(abi::write(one, b"3"), Ok(1));
        assert_eq!(content("file"), b"abc123");
        assert_eq!(abi::seek(one, 0, Whence::Current), Ok(6));
        assert_eq!(abi::pwrite(two, b"4", 0), Ok(1), "as Linux has it, at the end too");
        assert_eq!(content("file"), b"abc1234");
        abi::seek(two, 1, Whence::Start).expect("seek");
        assert_eq!(read_some(two, 2), Ok(b"bc".to_vec()));
    }

    fn sizes_are_set() {
        let fd = opened("file", o::RDWR | o::CREAT);
        abi::write_all(fd, b"abcdef").expect("write");
        abi::truncate(fd, 2).expect("truncate");
        assert_eq!(abi::seek(fd, 0, Whence::Current), Ok(6), "the offset stays");
        abi::truncate(fd, 5).expect("truncate");
        assert_eq!(content("file"), b"ab\0\0\0");
        assert_eq!(abi::truncate(fd, 1 << 63), Err(Errno::INVAL));
        assert_eq!(abi::truncate(fd, u64::MAX), Err(Errno::INVAL));
        mkdir("dir");
        assert_eq!(abi::truncate(opened("dir", o::RDONLY), 0), Err(Errno::INVAL));
    }

    fn room_is_allocated() {
        let fd = opened("file", o::RDWR | o::CREAT);
        abi::write_all(fd, b"abc").expect("write");
        abi::allocate(fd, 0, 2).expect("allocate");
        assert_eq!(content("file"), b"abc");
        abi::allocate(fd, 2, 5).expect("allocate");
        assert_eq!(content("file"), b"abc\0\0\0\0");
        assert_eq!(abi::allocate(fd, 0, 0), Err(Errno::INVAL));
        assert_eq!(abi::allocate(fd, 1 << 63, 1), Err(Errno::INVAL));
        assert_eq!(abi::allocate(fd, 0, 1 << 63), Err(Errno::INVAL));
        assert_eq!(abi::allocate(fd, i64::MAX as u64, 1), Err(Errno::FBIG));
    }

    fn a_file_lives_while_it_is_open() {
        make("file", b"abc");
        let fd = opened("file", o::RDWR);
        unlink("file");
        assert_eq!(open("file", o::RDONLY), Err(Errno::NOENT));
        make("file", b"other");
        assert_eq!(read_all(fd), b"abc");
        abi::write_all(fd, b"def").expect("write");
        let stat = abi::fstat(fd).expect("fstat");
        assert_eq!((stat.nlink, stat.size), (0, 6));
        assert_eq!(content("file"), b"other");
        abi::fchmod(fd, 0o600).expect("fchmod");
    }

    #[cfg(target_os = "wasi")]
    fn the_room_of_an_unlinked_file_comes_back_with_its_last_descriptor() {
        let free = || abi::statfs(Dir::CWD, b".").expect("statfs");
        let before = free();
        let fd = opened("file", o::RDWR | o::CREAT);
        abi::write_all(fd, &vec![1; 1 << 20]).expect("write");
        unlink("file");
        let copy = abi::dup(fd, 0, false).expect("dup");
        close(fd);
        assert!(free().free_blocks < before.free_blocks);
        close(copy);
        assert_eq!(free(), before);
    }

    fn modes_are_set() {
        make("file", b"");
        for mode in [0, 0o777, 0o4755, 0o1644, 0o640] {
            abi::chmod(Dir::CWD, b"file", true, mode).expect("chmod");
            assert_eq!(stat("file").map(|stat| stat.mode & 0o7777), Ok(mode));
        }
        let fd = opened("file", o::RDONLY);
        abi::fchmod(fd, 0o444).expect("fchmod");
        assert_eq!(stat("file").map(|stat| stat.mode & 0o7777), Ok(0o444));
        assert_eq!(abi::chmod(Dir::CWD, b"nothing", true, 0o644), Err(Errno::NOENT));
        assert_eq!(abi::chmod(Dir::CWD, b"/etc/passwd", true, 0o644), Err(Errno::PERM));
        symlink("file", "link");
        abi::chmod(Dir::CWD, b"link", true, 0o600).expect("chmod");
        assert_eq!(stat("file").map(|stat| stat.mode & 0o7777), Ok(0o600));
    }

    fn owners_are_not_given_away() {
        make("file", b"");
        let (uid, gid) = (abi::getuid(), abi::getgid());
        assert_eq!(abi::chown(Dir::CWD, b"file", true, None, None), Ok(()));
        assert_eq!(abi::chown(Dir::CWD, b"file", true, Some(uid), Some(gid)), Ok(()));
        assert_eq!(abi::chown(Dir::CWD, b"file", true, Some(uid + 1), None), Err(Errno::PERM));
        assert_eq!(abi::chown(Dir::CWD, b"file", true, None, Some(gid + 12_345)), Err(Errno::PERM));
        assert_eq!(abi::chown(Dir::CWD, b"nothing", true, Some(uid), None), Err(Errno::NOENT));
    }

    fn times_move_with_what_is_done() {
        make("file", b"");
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let file = std::fs::OpenOptions::new().write(true).open("file").expect("open");
        file.set_times(std::fs::FileTimes::new().set_accessed(at(1_000)).set_modified(at(2_000))).expect("set_times");
        let set = stat("file").expect("stat");
        assert_eq!((set.atime, set.mtime), (1_000_000_000_000, 2_000_000_000_000));
        assert!(set.ctime > set.mtime, "the change itself is now");
        std::thread::sleep(MOMENT);
        abi::chmod(Dir::CWD, b"file", true, 0o600).expect("chmod");
        let changed = stat("file").expect("stat");
        assert_eq!((changed.atime, changed.mtime), (set.atime, set.mtime));
        assert!(changed.ctime > set.ctime);
        std::thread::sleep(MOMENT);
        let fd = opened("file", o::WRONLY);
        abi::write_all(fd, b"x").expect("write");
        let written = stat("file").expect("stat");
        assert!(written.mtime > set.mtime && written.ctime > changed.ctime);
        std::thread::sleep(MOMENT);
        abi::rename(Dir::CWD, b"file", Dir::CWD, b"new").expect("rename");
        assert_eq!(stat("new").map(|stat| stat.mtime), Ok(written.mtime));
    }

    fn every_kind_of_file_is_told_apart() {
        mkdir("dir");
        make("file", b"12345");
        symlink("file", "link");
        abi::mkfifo(Dir::CWD, b"fifo", 0o644).expect("mkfifo");
        let kind = |path: &str| lstat(path).expect(path).kind();
        assert_eq!([kind("file"), kind("dir"), kind("link"), kind("fifo"), kind("/dev/null")],
            [0o100_000, 0o040_000, 0o120_000, 0o010_000, 0o020_000]);
        let file = stat("file").expect("stat");
        assert_eq!((file.size, file.blocks > 0), (5, true));
        assert_eq!(lstat("link").map(|stat| (stat.size, stat.mode & 0o777)), Ok((4, 0o777)));
        assert_eq!(abi::stat(Dir::CWD, b"nothing", true), Err(Errno::NOENT));
        assert_eq!(abi::stat(Dir::CWD, b"file/", true), Err(Errno::NOTDIR));
        assert_eq!(abi::stat(Dir::CWD, b"", true), Err(Errno::NOENT));
        assert_eq!(abi::stat(Dir::ROOT, b"tmp", true).map(|stat| stat.mode & 0o1000), Ok(0o1000));
    }

    fn a_large_file_is_kept_whole() {
        let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 253) as u8).collect();
        make("file", &sent);
        assert!(content("file") == sent);
        let fd = opened("file", o::RDWR);
        abi::pwrite(fd, b"!", 1_500_000).expect("pwrite");
        let mut some = [0; 3];
        abi::pread(fd, &mut some, 1_499_999).expect("pread");
        assert_eq!(some, [sent[1_499_999], b'!', sent[1_500_001]]);
        assert_eq!(abi::sync(fd), Ok(()));
    }

    fn the_file_system_is_described() {
        let fs = abi::statfs(Dir::CWD, b".").expect("statfs");
        assert!(fs.block_size > 0 && fs.free_blocks <= fs.blocks && fs.free_files <= fs.files);
        assert_eq!(fs.name_length, 255);
        assert_eq!(abi::statfs(Dir::CWD, b"nothing"), Err(Errno::NOENT));
    }

    fn bytes_that_are_no_text_are_names() {
        let name = b"\xff\xfe name\n";
        let fd = abi::open(Dir::CWD, name, o::WRONLY | o::CREAT, 0o644).expect("open");
        close(fd);
        assert!(abi::stat(Dir::CWD, name, true).is_ok());
        assert_eq!(abi::unlink(Dir::CWD, name), Ok(()));
    }

    fn flags_stay_with_the_opening() {
        make("file", b"");
        let fd = opened("file", o::RDONLY | o::NONBLOCK);
        assert_eq!(abi::nonblocking(fd), Ok(true));
        abi::set_nonblocking(fd, false).expect("nonblocking");
        assert_eq!(abi::nonblocking(fd), Ok(false));
        assert_eq!(read_some(fd, 1), Ok(vec![]));
    }

    fn a_full_path_through_many_directories() {
        let deep = "d/".repeat(100);
        std::fs::create_dir_all(&deep).expect("mkdir");
        make(&format!("{deep}file"), b"deep");
        assert_eq!(content(&format!("./{deep}../d//./file")), b"deep");
    }
}
