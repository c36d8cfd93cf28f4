//! Limits: what they are, and what happens at them.

use wardian_abi::{self as abi, Errno, Limit, Resource, open_flags as o};

use crate::kit::*;

tests! {
    fn limits_are_told() {
        for resource in [Resource::Descriptors, Resource::Processes, Resource::Memory, Resource::FileSize] {
            let Limit { soft, hard } = abi::getrlimit(resource).expect("getrlimit");
            assert!(soft as u64 <= hard as u64, "{resource:?}");
        }
    }

    fn a_limit_cannot_be_raised_above_the_hard_one() {
        for resource in [Resource::Descriptors, Resource::FileSize] {
            abi::setrlimit(resource, Limit { soft: 40, hard: 50 }).expect("setrlimit");
            assert_eq!(abi::getrlimit(resource), Ok(Limit { soft: 40, hard: 50 }));
            assert_eq!(abi::setrlimit(resource, Limit { soft: 50, hard: 50 }), Ok(()));
            assert_eq!(abi::setrlimit(resource, Limit { soft: 51, hard: 50 }), Err(Errno::INVAL));
            assert_eq!(abi::setrlimit(resource, Limit { soft: 50, hard: 51 }), Err(Errno::PERM));
            assert_eq!(abi::getrlimit(resource), Ok(Limit { soft: 50, hard: 50 }));
        }
    }

    fn children_inherit_limits() {
        abi::setrlimit(Resource::Descriptors, Limit { soft: 30, hard: 40 }).expect("setrlimit");
        abi::setrlimit(Resource::FileSize, Limit { soft: 300, hard: 400 }).expect("setrlimit");
        succeeded(child(|| {
            assert_eq!(abi::getrlimit(Resource::Descriptors), Ok(Limit { soft: 30, hard: 40 }));
            assert_eq!(abi::getrlimit(Resource::FileSize), Ok(Limit { soft: 300, hard: 400 }));
            abi::setrlimit(Resource::Descriptors, Limit { soft: 20, hard: 20 }).expect("setrlimit");
        }));
        assert_eq!(abi::getrlimit(Resource::Descriptors), Ok(Limit { soft: 30, hard: 40 }));
    }

    fn a_file_grows_up_to_its_limit() {
        const XFSZ: i32 = 25;
        make("file", b"");
        abi::setrlimit(Resource::FileSize, Limit { soft: 1000, hard: -1 }).expect("setrlimit");
        let pid = child(|| {
            let fd = opened("file", o::WRONLY);
            assert_eq!(abi::write(fd, &[1; 1500]), Ok(1000), "what fits");
            let _ = abi::write(fd, b"x");
            abi::exit(1);
        });
        assert_eq!(ended(pid).signal(), Some(XFSZ));
        ignore(XFSZ);
        let fd = opened("file", o::WRONLY);
        assert_eq!(abi::pwrite(fd, b"x", 1000), Err(Errno::FBIG));
        assert_eq!(abi::truncate(fd, 1001), Err(Errno::FBIG));
        assert_eq!(abi::allocate(fd, 0, 1001), Err(Errno::FBIG));
        assert_eq!(abi::truncate(fd, 10), Ok(()));
        assert_eq!(abi::write(fd, b"x"), Ok(1));
        assert_eq!(abi::fstat(fd).map(|stat| stat.size), Ok(10));
        // Pipes and devices are no files that grow.
        let ends = pipe();
        assert_eq!(abi::write(ends.write, &[1; 2000]), Ok(2000));
        assert_eq!(abi::write(opened("/dev/null", o::WRONLY), &[1; 2000]), Ok(2000));
    }

    #[cfg(target_os = "wasi")]
    fn the_sandboxs_own_limits_stay() {
        for resource in [Resource::Processes, Resource::Memory] {
            let limit = abi::getrlimit(resource).expect("getrlimit");
            assert!(limit.soft > 0 && limit.soft == limit.hard);
            assert_eq!(abi::setrlimit(resource, Limit { soft: 1, hard: 1 }), Err(Errno::PERM));
        }
    }

    #[cfg(target_os = "wasi")]
    fn there_are_so_many_processes_and_no_more() {
        let limit = abi::getrlimit(Resource::Processes).expect("getrlimit").soft;
        let mut children = Vec::new();
        let refused = loop {
            match abi::fork(|| sleep_for_ever()) {
                Ok(pid) => children.push(pid),
                Err(errno) => break errno,
            }
        };
        assert_eq!(refused, Errno::AGAIN);
        assert!((children.len() as i64) < limit && children.len() as i64 > limit - 8, "{}", children.len());
        let (program, argv) = (crate::programs::path(), b"usertests\0--sleep\0");
        assert_eq!(abi::spawn(&abi::Spawn { path: &program, argv, ..Default::default() }), Err(Errno::AGAIN));
        // A zombie counts until it is waited for.
        let first = children.remove(0);
        kill(first, KILL);
        std::thread::sleep(MOMENT);
        assert_eq!(abi::fork(|| 0), Err(Errno::AGAIN));
        ended(first);
        succeeded(child(|| ()));
        children.into_iter().for_each(finish);
    }

    #[cfg(target_os = "wasi")]
    fn memory_is_refused_and_given_back() {
        let limit = abi::getrlimit(Resource::Memory).expect("getrlimit").soft as usize;
        for _ in 0..3 {
            succeeded(child(|| {
                let mut held: Vec<Vec<u8>> = Vec::new();
                loop {
                    let mut more = Vec::new();
                    if abi::fallible(|| more.try_reserve_exact(4 << 20)).is_err() {
                        break;
                    }
                    more.resize(4 << 20, 1u8);
                    held.push(more);
                }
                let got = held.len() * (4 << 20);
                assert!(got < limit && got > limit / 4, "{got} of {limit}");
            }));
        }
    }

    #[cfg(target_os = "wasi")]
    fn a_full_disk_takes_what_fits() {
        let fd = opened("file", o::WRONLY | o::CREAT);
        let block = vec![1; 1 << 20];
        let mut size = 0;
        let errno = loop {
            match abi::write(fd, &block) {
                Ok(n) => size += n as u64,
                Err(errno) => break errno,
            }
        };
        assert_eq!(errno, Errno::NOSPC);
        assert_eq!(abi::fstat(fd).map(|stat| stat.size), Ok(size));
        assert_eq!(abi::statfs(abi::Dir::CWD, b".").map(|fs| fs.free_blocks), Ok(0));
        assert_eq!(abi::truncate(fd, size + (1 << 30)).and(abi::allocate(fd, 0, size + (1 << 30))), Err(Errno::NOSPC));
        abi::truncate(fd, 0).expect("truncate");
        assert_eq!(abi::write(fd, b"x"), Ok(1));
    }

    #[cfg(target_os = "wasi")]
    fn there_are_so_many_files_and_no_more() {
        let free = abi::statfs(abi::Dir::CWD, b".").expect("statfs").free_files;
        let mut made = 0;
        let errno = loop {
            match open(&format!("f{made}"), o::WRONLY | o::CREAT) {
                Ok(fd) => close(fd),
                Err(errno) => break errno,
            }
            made += 1;
        };
        assert_eq!((errno, made), (Errno::NOSPC, free));
        assert_eq!(abi::mkdir(abi::Dir::CWD, b"d", 0o755), Err(Errno::NOSPC));
        assert_eq!(abi::symlink(b"x", abi::Dir::CWD, b"l"), Err(Errno::NOSPC));
        assert_eq!(abi::mkfifo(abi::Dir::CWD, b"p", 0o644), Err(Errno::NOSPC));
        abi::hard_link(abi::Dir::CWD, b"f0", abi::Dir::CWD, b"another").expect("a name is no file");
        unlink("f1");
        make("f1", b"");
    }
}
