//! Directories.

use std::collections::BTreeSet;

use wardian_abi::{self as abi, Dir, Errno, open_flags as o};

use crate::kit::*;

fn listed(path: &str) -> BTreeSet<String> {
    std::fs::read_dir(path)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect()
}

tests! {
    fn mkdir_makes_with_the_umask() {
        abi::umask(0o027);
        abi::mkdir(Dir::CWD, b"dir", 0o777).expect("mkdir");
        let stat = stat("dir").expect("stat");
        assert!(stat.is_dir());
        assert_eq!(stat.mode & 0o777, 0o750);
        assert_eq!(stat.nlink, 2);
        mkdir("dir/sub");
        assert_eq!(lstat("dir").map(|stat| stat.nlink), Ok(3));
    }

    fn mkdir_refuses_as_it_should() {
        make("file", b"");
        mkdir("dir");
        symlink("nowhere", "dangling");
        for (path, errno) in [
            ("dir", Errno::EXIST), ("dir/", Errno::EXIST), ("file", Errno::EXIST), ("dangling", Errno::EXIST), (".", Errno::EXIST), ("/", Errno::EXIST),
            ("no/dir", Errno::NOENT), ("", Errno::NOENT), ("file/dir", Errno::NOTDIR),
        ] {
            assert_eq!(abi::mkdir(Dir::CWD, path.as_bytes(), 0o755), Err(errno), "'{path}'");
        }
        assert_eq!(abi::mkdir(Dir::CWD, "n".repeat(256).as_bytes(), 0o755), Err(Errno::NAMETOOLONG));
        assert_eq!(abi::mkdir(Dir::CWD, b"/bin/usertests.new", 0o755), Err(Errno::ACCES));
        assert_eq!(abi::mkdir(Dir::CWD, b"slash/", 0o755), Ok(()));
    }

    fn rmdir_removes_empty_directories_only() {
        make("file", b"");
        mkdir("dir");
        make("dir/file", b"");
        symlink("dir", "link");
        for (path, errno) in [
            ("dir", Errno::NOTEMPTY), ("file", Errno::NOTDIR), ("link", Errno::NOTDIR), ("nothing", Errno::NOENT),
            ("", Errno::NOENT), (".", Errno::INVAL), ("dir/.", Errno::INVAL), ("dir/..", Errno::NOTEMPTY), ("/", Errno::BUSY),
        ] {
            assert_eq!(abi::rmdir(Dir::CWD, path.as_bytes()), Err(errno), "'{path}'");
        }
        assert_eq!(abi::unlink(Dir::CWD, b"dir"), Err(Errno::ISDIR));
        unlink("dir/file");
        assert_eq!(abi::rmdir(Dir::CWD, b"dir/"), Ok(()));
        assert_eq!(lstat("dir"), Err(Errno::NOENT));
    }

    fn unlink_removes_names() {
        make("file", b"");
        for (path, errno) in [("nothing", Errno::NOENT), ("", Errno::NOENT), ("file/", Errno::NOTDIR), ("file/x", Errno::NOTDIR)] {
            assert_eq!(abi::unlink(Dir::CWD, path.as_bytes()), Err(errno), "'{path}'");
        }
        unlink("file");
        assert_eq!(abi::unlink(Dir::CWD, b"file"), Err(Errno::NOENT));
        assert_eq!(abi::unlink(Dir::CWD, b"/etc/passwd"), Err(Errno::ACCES));
    }

    fn a_directory_without_permission_is_closed() {
        mkdir("dir");
        make("dir/file", b"x");
        abi::chmod(Dir::CWD, b"dir", true, 0o600).expect("chmod");
        assert_eq!(open("dir/file", o::RDONLY), Err(Errno::ACCES), "no search");
        assert_eq!(abi::chdir(Dir::CWD, b"dir"), Err(Errno::ACCES));
        assert_eq!(listed("dir").len(), 1);
        abi::chmod(Dir::CWD, b"dir", true, 0o100).expect("chmod");
        assert_eq!(content("dir/file"), b"x");
        assert_eq!(open("dir", o::RDONLY), Err(Errno::ACCES), "no listing");
        assert_eq!(open("dir/new", o::WRONLY | o::CREAT), Err(Errno::ACCES), "no change");
        assert_eq!(abi::unlink(Dir::CWD, b"dir/file"), Err(Errno::ACCES));
        assert_eq!(abi::rename(Dir::CWD, b"dir/file", Dir::CWD, b"out"), Err(Errno::ACCES));
        abi::chmod(Dir::CWD, b"dir", true, 0o700).expect("chmod");
    }

    fn a_listing_has_every_name_once() {
        let names: BTreeSet<String> = (0..500).map(|i| format!("a rather long name to fill buffers {i}")).collect();
        names.iter().for_each(|name| make(name, b""));
        let all: Vec<String> = std::fs::read_dir(".").expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        assert_eq!(all.len(), 500);
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), names);
    }

    fn a_listing_survives_changes() {
        (0..300).for_each(|i| make(&format!("{i}"), b""));
        let mut seen = BTreeSet::new();
        for (at, entry) in std::fs::read_dir(".").expect("a directory").enumerate() {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            if at % 3 == 0 {
                unlink(&name);
            }
            make(&format!("new{at}"), b"");
            assert!(seen.insert(name), "a name came twice");
            assert!(at < 2000, "no end in sight");
        }
        // Each of those that were there all the time was seen.
        for i in 0..300 {
            let name = i.to_string();
            assert!(seen.contains(&name), "{name} was left out");
        }
    }

    fn entries_know_their_kind() {
        mkdir("dir");
        make("file", b"");
        symlink("file", "link");
        for entry in std::fs::read_dir(".").expect("a directory") {
            let entry = entry.expect("an entry");
            let kind = entry.file_type().expect("a kind");
            let name = entry.file_name();
            let told = (kind.is_dir(), kind.is_file(), kind.is_symlink());
            assert_eq!(told, (name == "dir", name == "file", name == "link"), "{name:?}");
        }
    }

    fn a_directory_is_not_read_like_a_file() {
        let fd = opened(".", o::RDONLY);
        assert_eq!(read_some(fd, 10), Err(Errno::ISDIR));
        assert_eq!(abi::write(fd, b"x"), Err(Errno::BADF));
        assert_eq!(abi::pread(fd, &mut [0], 0), Err(Errno::ISDIR));
    }

    fn the_working_directory_moves() {
        mkdir("dir");
        make("dir/file", b"x");
        let start = abi::getcwd().expect("getcwd");
        abi::chdir(Dir::CWD, b"dir").expect("chdir");
        assert_eq!(abi::getcwd(), Ok([&start[..], b"/dir"].concat()));
        assert_eq!(content("file"), b"x");
        assert_eq!(content("../dir/./file"), b"x");
        abi::chdir(Dir::CWD, b"..").expect("chdir");
        assert_eq!(abi::getcwd(), Ok(start.clone()));
        abi::chdir(Dir(opened("dir", o::RDONLY)), b"").expect("fchdir");
        assert_eq!(abi::getcwd(), Ok([&start[..], b"/dir"].concat()));
        abi::chdir(Dir::ROOT, b"").expect("chdir");
        assert_eq!(abi::getcwd(), Ok(b"/".to_vec()));
        abi::chdir(Dir::CWD, b"..").expect("the root is its own parent");
        assert_eq!(abi::getcwd(), Ok(b"/".to_vec()));
    }

    fn a_link_to_a_directory_is_entered_for_real() {
        mkdir("dir");
        symlink("dir", "link");
        abi::chdir(Dir::CWD, b"link").expect("chdir");
        assert!(abi::getcwd().expect("getcwd").ends_with(b"/dir"));
    }

    fn chdir_refuses_as_it_should() {
        make("file", b"");
        symlink("loop", "loop");
        for (path, errno) in [("file", Errno::NOTDIR), ("nothing", Errno::NOENT), ("loop", Errno::LOOP), ("file/x", Errno::NOTDIR)] {
            assert_eq!(abi::chdir(Dir::CWD, path.as_bytes()), Err(errno), "{path}");
        }
        assert_eq!(abi::chdir(Dir(opened("file", o::RDONLY)), b""), Err(Errno::NOTDIR));
        assert_eq!(std::env::set_current_dir("").map_err(Errno::from), Err(Errno::NOENT));
    }

    fn a_removed_directory_is_nowhere() {
        mkdir("dir");
        abi::chdir(Dir::CWD, b"dir").expect("chdir");
        abi::rmdir(Dir::CWD, b"../dir").expect("rmdir");
        assert_eq!(abi::getcwd(), Err(Errno::NOENT));
        assert_eq!(open("new", o::WRONLY | o::CREAT), Err(Errno::NOENT));
        assert_eq!(abi::mkdir(Dir::CWD, b"new", 0o755), Err(Errno::NOENT));
        assert_eq!(abi::stat(Dir::CWD, b".", true).map(|stat| stat.nlink), Ok(0));
        assert_eq!(listed("."), BTreeSet::new());
        abi::chdir(Dir::CWD, b"..").expect("its parent is still known");
    }

    fn a_working_directory_follows_a_rename() {
        mkdir("old");
        let start = abi::getcwd().expect("getcwd");
        abi::chdir(Dir::CWD, b"old").expect("chdir");
        abi::rename(Dir::CWD, b"../old", Dir::CWD, b"../new").expect("rename");
        assert_eq!(abi::getcwd(), Ok([&start[..], b"/new"].concat()));
    }

    fn paths_start_at_descriptors() {
        mkdir("dir");
        let dir = Dir(opened("dir", o::RDONLY | o::DIRECTORY));
        close(abi::open(dir, b"file", o::WRONLY | o::CREAT, 0o644).expect("open"));
        assert!(lstat("dir/file").is_ok());
        abi::mkdir(dir, b"sub", 0o755).expect("mkdir");
        abi::mkfifo(dir, b"fifo", 0o644).expect("mkfifo");
        abi::symlink(b"file", dir, b"link").expect("symlink");
        assert_eq!(abi::readlink(dir, b"link"), Ok(b"file".to_vec()));
        abi::hard_link(dir, b"file", dir, b"hard").expect("link");
        abi::chmod(dir, b"file", true, 0o600).expect("chmod");
        assert_eq!(abi::stat(dir, b"hard", true).map(|stat| (stat.nlink, stat.mode & 0o777)), Ok((2, 0o600)));
        assert_eq!(abi::access(dir, b"file", 4), Ok(()));
        abi::rename(dir, b"hard", Dir::CWD, b"moved").expect("rename");
        assert!(lstat("moved").is_ok());
        abi::unlink(dir, b"fifo").expect("unlink");
        abi::rmdir(dir, b"sub").expect("rmdir");
        assert_eq!(listed("dir"), BTreeSet::from(["file".to_owned(), "link".to_owned()]));
        // An absolute path starts at the root whatever the directory is.
        assert!(abi::stat(dir, b"/tmp", true).is_ok());
        assert!(abi::stat(dir, b"../moved", true).is_ok());
        abi::rename(Dir::CWD, b"dir", Dir::CWD, b"renamed").expect("rename");
        assert!(abi::stat(dir, b"file", true).is_ok(), "the descriptor follows");
    }

    fn a_file_is_no_directory_to_start_from() {
        make("file", b"");
        let dir = Dir(opened("file", o::RDONLY));
        assert_eq!(abi::open(dir, b"x", o::RDONLY, 0), Err(Errno::NOTDIR));
        assert_eq!(abi::stat(dir, b"x", true), Err(Errno::NOTDIR));
        assert_eq!(abi::mkdir(dir, b"x", 0o755), Err(Errno::NOTDIR));
        assert_eq!(abi::unlink(dir, b"x"), Err(Errno::NOTDIR));
        assert!(abi::stat(dir, b"/tmp", true).is_ok());
    }

    fn renaming_directories() {
        mkdir("a");
        mkdir("a/sub");
        mkdir("full");
        make("full/file", b"");
        mkdir("empty");
        make("file", b"");
        let rename = |from: &str, to: &str| abi::rename(Dir::CWD, from.as_bytes(), Dir::CWD, to.as_bytes());
        for (from, to, errno) in [
            ("a", "a/sub/b", Errno::INVAL), ("a", "full", Errno::NOTEMPTY), ("a", "file", Errno::NOTDIR),
            ("file", "a", Errno::ISDIR), ("nothing", "x", Errno::NOENT), ("a", "no/x", Errno::NOENT),
            ("a/.", "x", Errno::BUSY), ("a", ".", Errno::BUSY), ("file", "x/", Errno::NOTDIR), ("a/sub", "a", Errno::NOTEMPTY),
        ] {
            assert_eq!(rename(from, to), Err(errno), "{from} to {to}");
        }
        assert_eq!(rename("a", "a"), Ok(()));
        assert_eq!(rename("a", "empty"), Ok(()), "over an empty one");
        assert_eq!(listed("."), ["empty", "file", "full"].map(str::to_owned).into());
        assert!(lstat("empty/sub").is_ok());
        assert_eq!(rename("empty/sub", "full/sub/"), Ok(()));
        assert_eq!(lstat("full").map(|stat| stat.nlink), Ok(3));
    }
}
