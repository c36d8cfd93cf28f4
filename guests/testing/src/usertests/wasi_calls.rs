//! WASI preview 1 itself: what `std` and the wrappers do not reach.

use std::collections::BTreeSet;
use std::time::Duration;

use wardian_abi::{self as abi, Dir, open_flags as o};
use wasi as w;

use crate::kit::*;

/// The working directory, where WASI wants a descriptor.
const HERE: w::Fd = Dir::CWD.0 as u32;

/// Calls WASI with pointers into live values.
macro_rules! call {
    ($function:ident($($argument:expr),*)) => {
        // SAFETY: the pointers are those of live slices and variables.
        unsafe { w::$function($($argument),*) }
    };
}

fn file(path: &str, flags: u32) -> w::Fd {
    opened(path, flags) as u32
}

fn clock(nanos: u64, flags: w::Subclockflags) -> w::Subscription {
    let clock = w::SubscriptionClock { id: w::CLOCKID_MONOTONIC, timeout: nanos, precision: 0, flags };
    let u = w::SubscriptionU { tag: w::EVENTTYPE_CLOCK.raw(), u: w::SubscriptionUU { clock } };
    w::Subscription { userdata: nanos, u }
}

fn readable(fd: w::Fd, userdata: u64) -> w::Subscription {
    let fd_read = w::SubscriptionFdReadwrite { file_descriptor: fd };
    let u = w::SubscriptionU { tag: w::EVENTTYPE_FD_READ.raw(), u: w::SubscriptionUU { fd_read } };
    w::Subscription { userdata, u }
}

fn writable(fd: w::Fd, userdata: u64) -> w::Subscription {
    let fd_write = w::SubscriptionFdReadwrite { file_descriptor: fd };
    let u = w::SubscriptionU { tag: w::EVENTTYPE_FD_WRITE.raw(), u: w::SubscriptionUU { fd_write } };
    w::Subscription { userdata, u }
}

fn poll(wanted: &[w::Subscription]) -> Result<Vec<w::Event>, w::Errno> {
    let mut events = Vec::with_capacity(wanted.len());
    let count = call!(poll_oneoff(wanted.as_ptr(), events.as_mut_ptr(), wanted.len()))?;
    assert!(count <= wanted.len());
    // SAFETY: the call wrote so many.
    unsafe { events.set_len(count) };
    Ok(events)
}

/// The whole entries in a buffer of `size` bytes from a cookie on, and whether the buffer was filled.
fn entries(fd: w::Fd, size: usize, cookie: u64) -> (Vec<(String, u64)>, bool) {
    let mut buffer = vec![0u8; size];
    let used = call!(fd_readdir(fd, buffer.as_mut_ptr(), size, cookie)).expect("fd_readdir");
    let (mut rest, mut found) = (&buffer[..used], Vec::new());
    while rest.len() >= 24 {
        let next = u64::from_le_bytes(rest[..8].try_into().expect("eight"));
        let length = u32::from_le_bytes(rest[16..20].try_into().expect("four")) as usize;
        let Some(name) = rest.get(24..24 + length) else { break };
        found.push((String::from_utf8_lossy(name).into_owned(), next));
        rest = &rest[24 + length..];
    }
    (found, used == size)
}

tests! {
    fn arguments_and_environment_are_counted() {
        let (count, size) = call!(args_sizes_get()).expect("sizes");
        let words = abi::args();
        assert_eq!((count, size), (words.len(), words.iter().map(|word| word.len() + 1).sum()));
        let (count, size) = call!(environ_sizes_get()).expect("sizes");
        let pairs = abi::environ();
        assert_eq!((count, size), (pairs.len(), pairs.iter().map(|pair| pair.len() + 1).sum()));
    }

    fn there_are_four_clocks() {
        for id in [w::CLOCKID_REALTIME, w::CLOCKID_MONOTONIC, w::CLOCKID_PROCESS_CPUTIME_ID, w::CLOCKID_THREAD_CPUTIME_ID] {
            assert!(call!(clock_res_get(id)).expect("resolution") > 0);
            let before = call!(clock_time_get(id, 0)).expect("time");
            assert!(call!(clock_time_get(id, 0)).expect("time") >= before);
        }
    }

    fn random_bytes_come_in_any_number() {
        let (mut one, mut other) = ([0u8; 300], [0u8; 300]);
        call!(random_get(one.as_mut_ptr(), 300)).expect("random");
        call!(random_get(other.as_mut_ptr(), 300)).expect("random");
        assert_ne!(one, other);
        call!(random_get(one.as_mut_ptr(), 0)).expect("none");
    }

    fn yielding_lets_others_run() {
        let ends = pipe();
        let pid = child(|| abi::write_all(ends.write, b"x").expect("write"));
        abi::set_nonblocking(ends.read, true).expect("nonblocking");
        while read_some(ends.read, 1).is_err() {
            call!(sched_yield()).expect("yield");
        }
        succeeded(pid);
    }

    fn parts_are_read_and_written_together() {
        let fd = file("file", o::RDWR | o::CREAT);
        let parts = [&b"ab"[..], b"", b"cde"].map(|part| w::Ciovec { buf: part.as_ptr(), buf_len: part.len() });
        assert_eq!(call!(fd_write(fd, &parts)), Ok(5));
        assert_eq!(call!(fd_pwrite(fd, &parts, 5)), Ok(5));
        assert_eq!(content("file"), b"abcdeabcde");
        let (mut one, mut two) = ([0u8; 4], [0u8; 10]);
        let parts = [w::Iovec { buf: one.as_mut_ptr(), buf_len: 4 }, w::Iovec { buf: two.as_mut_ptr(), buf_len: 10 }];
        assert_eq!(call!(fd_pread(fd, &parts, 1)), Ok(9));
        assert_eq!((&one, &two[..5]), (b"bcde", &b"abcde"[..]));
        call!(fd_seek(fd, 0, w::WHENCE_SET)).expect("seek");
        assert_eq!(call!(fd_read(fd, &parts)), Ok(10));
        assert_eq!((&one, &two[..6]), (b"abcd", &b"eabcde"[..]));
        let ends = pipe();
        abi::write_all(ends.write, b"123456").expect("write");
        assert_eq!(call!(fd_read(ends.read as u32, &parts)), Ok(6), "and no more than there is");
        assert_eq!((&one, &two[..2]), (b"1234", &b"56"[..]));
        assert_eq!(call!(fd_read(fd, &[])), Ok(0));
        assert_eq!(call!(fd_write(fd, &[])), Ok(0));
    }

    fn tell_is_where_one_is() {
        make("file", b"abcdef");
        let fd = file("file", o::RDONLY);
        call!(fd_seek(fd, 4, w::WHENCE_SET)).expect("seek");
        assert_eq!(call!(fd_tell(fd)), Ok(4));
        assert_eq!(call!(fd_tell(pipe().read as u32)), Err(w::ERRNO_SPIPE));
        assert_eq!(call!(fd_tell(99)), Err(w::ERRNO_BADF));
    }

    fn renumbering_moves() {
        make("file", b"x");
        let (from, to) = (file("file", o::RDONLY), pipe());
        assert_eq!(call!(fd_renumber(99, from)), Err(w::ERRNO_BADF));
        assert_eq!(call!(fd_renumber(from, 99)), Err(w::ERRNO_BADF));
        call!(fd_renumber(from, from)).expect("to itself");
        call!(fd_renumber(from, to.write as u32)).expect("renumber");
        assert_eq!(abi::fstat(from as i32), Err(abi::Errno::BADF), "the old number is free");
        assert_eq!(read_some(to.write, 1), Ok(b"x".to_vec()));
        assert_eq!(read_all(to.read), b"", "what was there is closed");
    }

    fn no_directory_is_preopened() {
        for fd in [0, 3, 99, HERE] {
            assert_eq!(call!(fd_prestat_get(fd)).err(), Some(w::ERRNO_BADF));
            assert_eq!(call!(fd_prestat_dir_name(fd, [0u8; 9].as_mut_ptr(), 9)), Err(w::ERRNO_BADF));
        }
    }

    fn a_listing_resumes_where_a_buffer_ended() {
        let names: BTreeSet<String> = (0..100).map(|i| format!("{i:0width$}", width = 1 + i % 40)).collect();
        names.iter().for_each(|name| make(name, b""));
        let fd = file(".", o::RDONLY);
        for size in [64, 65, 100, 1000, 100_000] {
            let (mut seen, mut cookie) = (Vec::new(), 0);
            loop {
                let (found, filled) = entries(fd, size, cookie);
                let Some((_, next)) = found.last() else { break };
                cookie = *next;
                seen.extend(found.into_iter().map(|(name, _)| name));
                if !filled {
                    break;
                }
            }
            assert_eq!(seen.len(), 102, "{size}: every name, '.' and '..'");
            assert!(names.iter().all(|name| seen.contains(name)), "{size}");
        }
    }

    fn a_cookie_holds_while_names_come_and_go() {
        (0..50).for_each(|i| make(&format!("{i:02}"), b""));
        let fd = file(".", o::RDONLY);
        let (first, _) = entries(fd, 600, 0);
        let cookie = first.last().expect("entries").1;
        let seen: BTreeSet<String> = first.iter().map(|(name, _)| name.clone()).collect();
        // What was seen goes, and so does something not seen yet.
        seen.iter().filter(|name| !name.starts_with('.')).for_each(|name| unlink(name));
        let unseen: Vec<String> = (0..50).map(|i| format!("{i:02}")).filter(|name| !seen.contains(name)).collect();
        unlink(&unseen[0]);
        make("new", b"");
        let (rest, _) = entries(fd, 10_000, cookie);
        let rest: Vec<String> = rest.into_iter().map(|(name, _)| name).filter(|name| name != "new").collect();
        assert_eq!(rest.len(), unseen.len() - 1);
        assert!(unseen[1..].iter().all(|name| rest.contains(name)));
        let (again, _) = entries(fd, 10_000, 0);
        assert_eq!(again.len(), unseen.len() - 1 + 3, "from the start it is as it is now");
    }

    fn listing_needs_a_directory() {
        make("file", b"");
        let mut buffer = [0u8; 64];
        assert_eq!(call!(fd_readdir(file("file", o::RDONLY), buffer.as_mut_ptr(), 64, 0)), Err(w::ERRNO_NOTDIR));
        assert_eq!(call!(fd_readdir(pipe().read as u32, buffer.as_mut_ptr(), 64, 0)), Err(w::ERRNO_NOTDIR));
        assert_eq!(call!(fd_readdir(99, buffer.as_mut_ptr(), 64, 0)), Err(w::ERRNO_BADF));
        assert_eq!(call!(fd_readdir(file(".", o::RDONLY), buffer.as_mut_ptr(), 0, 0)), Ok(0));
        assert_eq!(call!(fd_readdir(file(".", o::RDONLY), buffer.as_mut_ptr(), 64, u64::MAX)), Ok(0), "past the end");
    }

    fn a_descriptor_tells_what_it_is() {
        make("file", b"");
        let told = |fd| call!(fd_fdstat_get(fd)).expect("fdstat");
        for (flags, reads, writes) in [(o::RDONLY, true, false), (o::WRONLY, false, true), (o::RDWR, true, true)] {
            let stat = told(file("file", flags));
            assert_eq!(stat.fs_filetype, w::FILETYPE_REGULAR_FILE);
            assert_eq!(stat.fs_rights_base & w::RIGHTS_FD_READ != 0, reads);
            assert_eq!(stat.fs_rights_base & w::RIGHTS_FD_WRITE != 0, writes);
            assert_eq!(stat.fs_flags, 0);
        }
        assert_eq!(told(file("file", o::WRONLY | o::APPEND)).fs_flags, w::FDFLAGS_APPEND);
        assert_eq!(told(file(".", o::RDONLY)).fs_filetype, w::FILETYPE_DIRECTORY);
        assert_eq!(told(file("/dev/null", o::RDONLY)).fs_filetype, w::FILETYPE_CHARACTER_DEVICE);
        let ends = pipe();
        let (read, write) = (told(ends.read as u32), told(ends.write as u32));
        assert_eq!(read.fs_rights_base & (w::RIGHTS_FD_READ | w::RIGHTS_FD_WRITE | w::RIGHTS_FD_SEEK), w::RIGHTS_FD_READ);
        assert_eq!(write.fs_rights_base & (w::RIGHTS_FD_READ | w::RIGHTS_FD_WRITE | w::RIGHTS_FD_SEEK), w::RIGHTS_FD_WRITE);
        assert_eq!(call!(fd_fdstat_get(99)).err(), Some(w::ERRNO_BADF));
    }

    fn flags_of_a_descriptor_are_set() {
        make("file", b"abc");
        let fd = file("file", o::WRONLY);
        call!(fd_fdstat_set_flags(fd, w::FDFLAGS_APPEND)).expect("set");
        abi::write_all(fd as i32, b"d").expect("write");
        assert_eq!(content("file"), b"abcd");
        call!(fd_fdstat_set_flags(fd, 0)).expect("set");
        abi::pwrite(fd as i32, b"A", 0).expect("write");
        assert_eq!(content("file"), b"Abcd");
        assert_eq!(call!(fd_fdstat_set_flags(99, 0)), Err(w::ERRNO_BADF));
        assert_eq!(call!(fd_fdstat_set_flags(fd, 1 << 15)), Err(w::ERRNO_INVAL));
    }

    fn rights_are_never_widened() {
        make("file", b"");
        let fd = file("file", o::RDONLY);
        let own = call!(fd_fdstat_get(fd)).expect("fdstat");
        call!(fd_fdstat_set_rights(fd, own.fs_rights_base, own.fs_rights_inheriting)).expect("as they are");
        let more = own.fs_rights_base | w::RIGHTS_FD_WRITE;
        assert_eq!(call!(fd_fdstat_set_rights(fd, more, own.fs_rights_inheriting)), Err(w::ERRNO_NOTCAPABLE));
        assert_eq!(call!(fd_fdstat_set_rights(99, 0, 0)), Err(w::ERRNO_BADF));
        // Narrower ones are not kept, which is said and not pretended.
        assert_eq!(call!(fd_fdstat_set_rights(fd, 0, 0)), Err(w::ERRNO_NOTSUP));
    }

    fn opening_follows_rights_and_flags() {
        make("file", b"abc");
        let open = |oflags, rights, fdflags| call!(path_open(HERE, 1, "file", oflags, rights, 0, fdflags));
        let reader = open(0, w::RIGHTS_FD_READ, 0).expect("open");
        assert_eq!(abi::write(reader as i32, b"x"), Err(abi::Errno::BADF));
        let writer = open(0, w::RIGHTS_FD_WRITE, w::FDFLAGS_APPEND).expect("open");
        assert_eq!(abi::write(writer as i32, b"d"), Ok(1));
        assert_eq!(content("file"), b"abcd");
        open(w::OFLAGS_TRUNC, w::RIGHTS_FD_WRITE, 0).expect("open");
        assert_eq!(content("file"), b"");
        assert_eq!(open(w::OFLAGS_CREAT | w::OFLAGS_EXCL, w::RIGHTS_FD_WRITE, 0), Err(w::ERRNO_EXIST));
        assert_eq!(open(w::OFLAGS_DIRECTORY, w::RIGHTS_FD_READ, 0), Err(w::ERRNO_NOTDIR));
        symlink("file", "link");
        assert_eq!(call!(path_open(HERE, 0, "link", 0, w::RIGHTS_FD_READ, 0, 0)), Err(w::ERRNO_LOOP));
        assert!(call!(path_open(HERE, 1, "link", 0, w::RIGHTS_FD_READ, 0, 0)).is_ok());
    }

    fn advice_is_taken() {
        make("file", b"");
        let fd = file("file", o::RDONLY);
        for advice in [w::ADVICE_NORMAL, w::ADVICE_SEQUENTIAL, w::ADVICE_RANDOM, w::ADVICE_WILLNEED,
            w::ADVICE_DONTNEED, w::ADVICE_NOREUSE]
        {
            call!(fd_advise(fd, 0, 10, advice)).expect("advice");
        }
        assert_eq!(call!(fd_advise(99, 0, 10, w::ADVICE_NORMAL)), Err(w::ERRNO_BADF));
        assert_eq!(call!(fd_advise(pipe().read as u32, 0, 10, w::ADVICE_NORMAL)), Err(w::ERRNO_SPIPE));
    }

    fn syncing_is_for_what_is_kept() {
        make("file", b"");
        let fd = file("file", o::RDONLY);
        assert_eq!((call!(fd_sync(fd)), call!(fd_datasync(fd))), (Ok(()), Ok(())));
        let end = pipe().write as u32;
        assert_eq!((call!(fd_sync(end)), call!(fd_datasync(end))), (Err(w::ERRNO_INVAL), Err(w::ERRNO_INVAL)));
        assert_eq!((call!(fd_sync(99)), call!(fd_datasync(99))), (Err(w::ERRNO_BADF), Err(w::ERRNO_BADF)));
    }

    fn times_are_set_or_left() {
        make("file", b"");
        symlink("file", "link");
        let fd = file("file", o::RDONLY);
        let times = || stat("file").map(|stat| (stat.atime, stat.mtime)).expect("stat");
        call!(fd_filestat_set_times(fd, 11, 22, w::FSTFLAGS_ATIM | w::FSTFLAGS_MTIM)).expect("set");
        assert_eq!(times(), (11, 22));
        call!(fd_filestat_set_times(fd, 33, 44, w::FSTFLAGS_MTIM)).expect("set");
        assert_eq!(times(), (11, 44));
        call!(path_filestat_set_times(HERE, 1, "link", 55, 66, w::FSTFLAGS_ATIM)).expect("set");
        assert_eq!(times(), (55, 44), "through the link");
        call!(path_filestat_set_times(HERE, 0, "link", 77, 88, w::FSTFLAGS_ATIM | w::FSTFLAGS_MTIM)).expect("set");
        assert_eq!(times(), (55, 44), "the link itself");
        assert_eq!(lstat("link").map(|stat| (stat.atime, stat.mtime)), Ok((77, 88)));
        call!(fd_filestat_set_times(fd, 0, 0, w::FSTFLAGS_MTIM_NOW)).expect("set");
        assert!(times().1 > 1_000_000_000_000_000_000 && times().0 == 55);
        let both = w::FSTFLAGS_MTIM | w::FSTFLAGS_MTIM_NOW;
        assert_eq!(call!(fd_filestat_set_times(fd, 0, 0, both)), Err(w::ERRNO_INVAL));
        assert_eq!(call!(fd_filestat_set_times(99, 0, 0, 0)), Err(w::ERRNO_BADF));
        assert_eq!(call!(path_filestat_set_times(HERE, 1, "nothing", 0, 0, w::FSTFLAGS_ATIM)), Err(w::ERRNO_NOENT));
    }

    fn filestat_agrees_with_stat() {
        make("file", b"abc");
        abi::hard_link(Dir::CWD, b"file", Dir::CWD, b"other").expect("link");
        let (ours, theirs) = (stat("file").expect("stat"), call!(path_filestat_get(HERE, 1, "file")).expect("filestat"));
        assert_eq!((theirs.ino, theirs.size, theirs.nlink), (ours.ino, 3, 2));
        assert_eq!(theirs.mtim, ours.mtime as u64);
        assert_eq!(theirs.filetype, w::FILETYPE_REGULAR_FILE);
        let open = call!(fd_filestat_get(file("file", o::RDONLY))).expect("filestat");
        assert_eq!((open.ino, open.size), (theirs.ino, 3));
        symlink("file", "link");
        assert_eq!(call!(path_filestat_get(HERE, 0, "link")).map(|stat| stat.filetype), Ok(w::FILETYPE_SYMBOLIC_LINK));
        assert_eq!(call!(path_filestat_get(HERE, 1, "nothing")).err(), Some(w::ERRNO_NOENT));
        assert_eq!(call!(fd_filestat_get(99)).err(), Some(w::ERRNO_BADF));
    }

    fn a_short_buffer_gets_the_start_of_a_link() {
        symlink("a longer target", "link");
        let mut buffer = [b'-'; 8];
        assert_eq!(call!(path_readlink(HERE, "link", buffer.as_mut_ptr(), 5)), Ok(5));
        assert_eq!(&buffer, b"a lon---");
    }

    fn a_link_can_be_followed_when_linking() {
        make("file", b"");
        symlink("file", "link");
        call!(path_link(HERE, 1, "link", HERE, "hard")).expect("link");
        assert_eq!(lstat("hard").map(|stat| stat.is_file()), Ok(true));
    }

    fn names_with_a_nul_are_no_names() {
        assert_eq!(call!(path_filestat_get(HERE, 1, "a\0b")).err(), Some(w::ERRNO_INVAL));
        assert_eq!(call!(path_create_directory(HERE, "a\0b")), Err(w::ERRNO_INVAL));
        assert_eq!(call!(path_symlink("a\0b", HERE, "link")), Err(w::ERRNO_INVAL));
    }

    fn there_are_no_sockets() {
        make("file", b"");
        let mut byte = 0u8;
        let part = [w::Iovec { buf: &mut byte, buf_len: 1 }];
        let out = [w::Ciovec { buf: &byte, buf_len: 1 }];
        for (fd, errno) in [(file("file", o::RDWR), w::ERRNO_NOTSUP), (99, w::ERRNO_BADF)] {
            assert_eq!(call!(sock_accept(fd, 0)).err(), Some(errno));
            assert_eq!(call!(sock_recv(fd, &part, 0)).err(), Some(errno));
            assert_eq!(call!(sock_send(fd, &out, 0)).err(), Some(errno));
            assert_eq!(call!(sock_shutdown(fd, w::SDFLAGS_RD)).err(), Some(errno));
        }
    }

    fn polling_nothing_is_an_error() {
        assert_eq!(poll(&[]).err(), Some(w::ERRNO_INVAL));
    }

    fn clocks_and_descriptors_are_waited_for_together() {
        let ends = pipe();
        let hour = 3_600_000_000_000;
        let wanted = [readable(ends.read as u32, 7), clock(hour, 0), clock(20_000_000, 0)];
        let events = poll(&wanted).expect("poll");
        assert_eq!(events.iter().map(|event| event.userdata).collect::<Vec<_>>(), [20_000_000], "the first clock alone");
        assert_eq!(events[0].type_, w::EVENTTYPE_CLOCK);
        let pid = child(|| {
            std::thread::sleep(Duration::from_millis(10));
            abi::write_all(ends.write, b"abc").expect("write");
        });
        let events = poll(&[clock(hour, 0), readable(ends.read as u32, 7)]).expect("poll");
        assert_eq!((events.len(), events[0].userdata, events[0].type_), (1, 7, w::EVENTTYPE_FD_READ));
        assert_eq!(events[0].fd_readwrite.nbytes, 3);
        succeeded(pid);
    }

    fn several_things_happen_at_once() {
        let (one, two) = (pipe(), pipe());
        abi::write_all(one.write, b"x").expect("write");
        close(two.write);
        let wanted = [readable(one.read as u32, 1), readable(two.read as u32, 2), writable(one.write as u32, 3), clock(0, 0)];
        let mut events = poll(&wanted).expect("poll");
        events.sort_by_key(|event| event.userdata);
        assert_eq!(events.iter().map(|event| event.userdata).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let hangup = |at: usize| events[at].fd_readwrite.flags & w::EVENTRWFLAGS_FD_READWRITE_HANGUP != 0;
        assert_eq!((hangup(1), hangup(2)), (false, true));
        assert!(events.iter().all(|event| event.error == w::ERRNO_SUCCESS));
    }

    fn a_time_of_day_can_be_waited_for() {
        let now = call!(clock_time_get(w::CLOCKID_MONOTONIC, 0)).expect("time");
        let at = now + 20_000_000;
        let events = poll(&[clock(at, w::SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME)]).expect("poll");
        assert_eq!(events.len(), 1);
        assert!(call!(clock_time_get(w::CLOCKID_MONOTONIC, 0)).expect("time") >= at);
        assert_eq!(poll(&[clock(now, w::SUBCLOCKFLAGS_SUBSCRIPTION_CLOCK_ABSTIME)]).map(|events| events.len()), Ok(1));
    }

    fn a_bad_descriptor_is_an_event() {
        let events = poll(&[readable(99, 5), clock(3_600_000_000_000, 0)]).expect("poll");
        assert_eq!((events.len(), events[0].userdata, events[0].error), (1, 5, w::ERRNO_BADF));
        let ends = pipe();
        let events = poll(&[readable(ends.write as u32, 6)]).expect("poll");
        assert_eq!(events[0].error, w::ERRNO_BADF, "not open for reading");
    }
}
