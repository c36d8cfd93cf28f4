//! Hard and symbolic links, and renaming.

use wardian_abi::{self as abi, Dir, Errno, open_flags as o};

use crate::kit::*;

fn link(from: &str, to: &str) -> abi::Result<()> {
    abi::hard_link(Dir::CWD, from.as_bytes(), Dir::CWD, to.as_bytes())
}

fn rename(from: &str, to: &str) -> abi::Result<()> {
    abi::rename(Dir::CWD, from.as_bytes(), Dir::CWD, to.as_bytes())
}

tests! {
    fn a_hard_link_is_another_name() {
        make("one", b"abc");
        link("one", "two").expect("link");
        let (one, two) = (stat("one").expect("stat"), stat("two").expect("stat"));
        assert_eq!((one.ino, one.nlink), (two.ino, 2));
        make("two", b"changed");
        assert_eq!(content("one"), b"changed");
        unlink("one");
        assert_eq!(stat("two").map(|stat| stat.nlink), Ok(1));
        assert_eq!(content("two"), b"changed");
    }

    fn link_refuses_as_it_should() {
        make("file", b"");
        mkdir("dir");
        for (from, to, errno) in [
            ("dir", "x", Errno::PERM), ("nothing", "x", Errno::NOENT), ("file", "file", Errno::EXIST),
            ("file", "dir", Errno::EXIST), ("file", "no/x", Errno::NOENT), ("file/x", "y", Errno::NOTDIR),
            ("file", "", Errno::NOENT), ("", "x", Errno::NOENT), ("file", "x/", Errno::NOENT),
        ] {
            assert_eq!(link(from, to), Err(errno), "{from} to {to}");
        }
        assert_eq!(link("/proc/uptime", "x"), Err(Errno::XDEV));
    }

    fn a_symbolic_link_is_followed() {
        make("file", b"abc");
        symlink("file", "link");
        assert_eq!(content("link"), b"abc");
        assert_eq!(abi::readlink(Dir::CWD, b"link"), Ok(b"file".to_vec()));
        assert!(lstat("link").expect("lstat").is_symlink());
        assert!(stat("link").expect("stat").is_file());
        make("link", b"through");
        assert_eq!(content("file"), b"through");
        unlink("link");
        assert_eq!(content("file"), b"through");
    }

    fn a_symbolic_link_starts_where_it_is() {
        mkdir("dir");
        make("dir/file", b"inner");
        make("file", b"outer");
        symlink("file", "dir/link");
        symlink("../file", "dir/up");
        assert_eq!(content("dir/link"), b"inner");
        assert_eq!(content("dir/up"), b"outer");
    }

    fn a_link_to_a_directory_is_gone_through() {
        mkdir("dir");
        make("dir/file", b"x");
        symlink("dir", "link");
        assert_eq!(content("link/file"), b"x");
        assert!(lstat("link").expect("lstat").is_symlink());
        assert!(lstat("link/").expect("lstat").is_dir(), "a slash goes through");
        assert!(lstat("link/.").expect("lstat").is_dir());
        assert_eq!(open("link", o::RDONLY | o::DIRECTORY | o::NOFOLLOW), Err(Errno::NOTDIR));
    }

    fn symlink_refuses_as_it_should() {
        make("file", b"");
        let make_link = |target: &[u8], path: &[u8]| abi::symlink(target, Dir::CWD, path);
        assert_eq!(make_link(b"x", b"file"), Err(Errno::EXIST));
        assert_eq!(make_link(b"", b"empty"), Err(Errno::NOENT));
        assert_eq!(make_link(b"x", b"no/link"), Err(Errno::NOENT));
        assert_eq!(make_link(b"x", b"file/link"), Err(Errno::NOTDIR));
        assert_eq!(make_link(b"x", b""), Err(Errno::NOENT));
        assert_eq!(make_link(&[b'x'; 5000], b"long"), Err(Errno::NAMETOOLONG));
        assert_eq!(make_link(b"anything at all", b"fine"), Ok(()));
    }

    fn readlink_reads_links_only() {
        make("file", b"");
        assert_eq!(abi::readlink(Dir::CWD, b"file"), Err(Errno::INVAL));
        assert_eq!(abi::readlink(Dir::CWD, b"."), Err(Errno::INVAL));
        assert_eq!(abi::readlink(Dir::CWD, b"nothing"), Err(Errno::NOENT));
        let target = [b't'; 4000];
        abi::symlink(&target, Dir::CWD, b"long").expect("symlink");
        assert_eq!(abi::readlink(Dir::CWD, b"long"), Ok(target.to_vec()));
    }

    fn links_end_somewhere() {
        symlink("b", "a");
        symlink("a", "b");
        assert_eq!(stat("a"), Err(Errno::LOOP));
        assert_eq!(open("a", o::WRONLY | o::CREAT), Err(Errno::LOOP));
        assert!(lstat("a").is_ok());
        make("end", b"x");
        symlink("end", "l0");
        (1..45).for_each(|i| symlink(&format!("l{}", i - 1), &format!("l{i}")));
        assert_eq!(content("l39"), b"x", "forty links");
        assert_eq!(stat("l40"), Err(Errno::LOOP), "one more");
    }

    fn a_link_is_linked_itself() {
        make("file", b"");
        symlink("file", "link");
        link("link", "same").expect("link");
        assert!(lstat("same").expect("lstat").is_symlink());
        assert_eq!(lstat("link").map(|stat| stat.nlink), Ok(2));
    }

    fn renaming_replaces() {
        make("one", b"1");
        make("two", b"2");
        let fd = opened("two", o::RDONLY);
        let ino = stat("one").expect("stat").ino;
        rename("one", "two").expect("rename");
        assert_eq!(stat("two").map(|stat| stat.ino), Ok(ino));
        assert_eq!(lstat("one"), Err(Errno::NOENT));
        assert_eq!(read_all(fd), b"2", "who had it open still does");
        assert_eq!(abi::fstat(fd).map(|stat| stat.nlink), Ok(0));
    }

    fn renaming_one_name_to_another_of_the_same_file_does_nothing() {
        make("one", b"1");
        link("one", "two").expect("link");
        rename("one", "two").expect("rename");
        assert!(lstat("one").is_ok() && lstat("two").is_ok());
    }

    fn renaming_moves_links_themselves() {
        make("file", b"x");
        symlink("file", "link");
        make("other", b"y");
        rename("link", "moved").expect("rename");
        assert!(lstat("moved").expect("lstat").is_symlink());
        rename("other", "moved").expect("rename");
        assert!(lstat("moved").expect("lstat").is_file(), "the link is replaced, not where it leads");
        assert_eq!(content("file"), b"x");
    }

    fn renaming_refuses_as_it_should() {
        make("file", b"");
        for (from, to, errno) in [
            ("nothing", "x", Errno::NOENT), ("file", "", Errno::NOENT), ("", "x", Errno::NOENT), ("file", "no/x", Errno::NOENT),
            ("file/x", "y", Errno::NOTDIR), ("file", "file/x", Errno::NOTDIR), ("file", "/proc/x", Errno::XDEV),
        ] {
            assert_eq!(rename(from, to), Err(errno), "{from} to {to}");
        }
        assert_eq!(rename("file", &"n".repeat(256)), Err(Errno::NAMETOOLONG));
    }
}
