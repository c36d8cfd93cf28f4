//! What a program may try against its confinement. Each answers `ok`, or the errno it met.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::ptr;

pub fn attempt(what: &str, args: &[String]) -> String {
    match what {
        "files" => files(),
        "identity" => identity(),
        "descriptors" => descriptors(),
        "memory" => memory(&args[0]),
        "limits" => limits(),
        "fork" => forks(),
        _ => match calls(what, args) {
            Ok(()) => "ok".to_owned(),
            Err(error) => match error.raw_os_error() {
                Some(libc::EPERM) => "EPERM".to_owned(),
                Some(libc::EACCES) => "EACCES".to_owned(),
                Some(libc::ENOSYS) => "ENOSYS".to_owned(),
                Some(libc::EXDEV) => "EXDEV".to_owned(),
                other => format!("{other:?}"),
            },
        },
    }
}

fn check(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn calls(what: &str, args: &[String]) -> io::Result<()> {
    let path = args.first().map_or("", String::as_str);
    let c_path = std::ffi::CString::new(path)?;
    // SAFETY: each call gets valid pointers or none; what it would do to this process does not matter to it.
    unsafe {
        match what {
            "read" => fs::read(path).map(drop),
            "list" => fs::read_dir(path).map(drop),
            "write" => File::options().append(true).open(path)?.write_all(b"was here"),
            "create" => File::create(path).map(drop),
            "truncate" => check(libc::truncate(c_path.as_ptr(), 0).into()),
            "remove" => fs::remove_file(path),
            "rename" => fs::rename(path, &args[1]),
            "link" => fs::hard_link(path, &args[1]),
            "symlink" => symlink(path, &args[1]),
            "mode" => fs::set_permissions(path, fs::Permissions::from_mode(0o777)),
            "owner" => std::os::unix::fs::chown(path, Some(12), Some(12)),
            "times" => check(libc::utimes(c_path.as_ptr(), ptr::null()).into()),
            "mode-of-open" => File::open(path)?.set_permissions(fs::Permissions::from_mode(0o777)),
            "times-of-open" => File::open(path)?.set_modified(std::time::SystemTime::now()),
            "attribute" => {
                check(libc::setxattr(c_path.as_ptr(), c"user.x".as_ptr(), c"y".as_ptr().cast(), 1, 0).into())
            }
            "watch" => {
                check(libc::inotify_add_watch(libc::inotify_init(), c_path.as_ptr(), libc::IN_OPEN).into())
            }
            "device" => {
                check(libc::mknod(c_path.as_ptr(), libc::S_IFBLK | 0o666, libc::makedev(7, 0)).into())
            }
            "signal" => check(libc::kill(path.parse().expect("a process"), 0).into()),
            // What a process has of the machine, by its number; zero is the program itself.
            "limits-of" => {
                let limit = libc::rlimit { rlim_cur: 10, rlim_max: 10 };
                check(
                    libc::prlimit(
                        path.parse().expect("a process"),
                        libc::RLIMIT_NPROC,
                        &limit,
                        ptr::null_mut(),
                    )
                    .into(),
                )
            }
            "priority-of" => {
                check(libc::setpriority(libc::PRIO_PROCESS, path.parse().expect("a process"), 19).into())
            }
            "priority-of-user" => check(libc::setpriority(libc::PRIO_USER, 0, 19).into()),
            "disk-priority-of" => {
                let process: i32 = path.parse().expect("a process");
                check(libc::syscall(libc::SYS_ioprio_set, 1, process, 3 << 13))
            }
            "processors-of" => {
                let process = path.parse().expect("a process");
                let mut set = std::mem::zeroed();
                check(libc::sched_getaffinity(0, size_of_val(&set), &mut set).into())?;
                check(libc::sched_setaffinity(process, size_of_val(&set), &set).into())
            }
            "scheduler-of" => {
                let priority = libc::sched_param { sched_priority: 0 };
                let process = path.parse().expect("a process");
                check(libc::sched_setscheduler(process, libc::SCHED_IDLE, &priority).into())
            }
            "shared-memory" => check(libc::shmget(libc::IPC_PRIVATE, 4096, 0o600).into()),
            "semaphores" => check(libc::semget(libc::IPC_PRIVATE, 1, 0o600).into()),
            "messages" => check(libc::msgget(libc::IPC_PRIVATE, 0o600).into()),
            "queue" => check(libc::mq_open(c"/wardian".as_ptr(), libc::O_RDONLY).into()),
            "internet" => check(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0).into()),
            "internet6" => check(libc::socket(libc::AF_INET6, libc::SOCK_DGRAM, 0).into()),
            "unix" => check(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0).into()),
            "packet" => check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0).into()),
            "pair" => {
                let mut pair = [0; 2];
                check(libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, pair.as_mut_ptr()).into())
            }
            "ptrace" => check(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)),
            "mount" => {
                check(libc::mount(ptr::null(), c_path.as_ptr(), c"tmpfs".as_ptr(), 0, ptr::null()).into())
            }
            "unshare" => check(libc::unshare(libc::CLONE_NEWUSER).into()),
            "clone" => check(libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0)),
            "process" => match libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) {
                0 => libc::_exit(0),
                other => check(other),
            },
            "start" => std::process::Command::new("/bin/true").status().map(drop),
            "thread" => {
                std::thread::Builder::new().spawn(|| ())?.join().map_err(|_| io::Error::other("it died"))
            }
            "clone3" => check(libc::syscall(libc::SYS_clone3, 0, 0)),
            "uring" => {
                let mut parameters = [0u8; 120];
                check(libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()))
            }
            "bpf" => check(libc::syscall(libc::SYS_bpf, 0, 0, 0)),
            "chroot" => check(libc::chroot(c_path.as_ptr()).into()),
            "keyctl" => check(libc::syscall(libc::SYS_keyctl, 0, 0, 0)),
            "settime" => check(libc::syscall(libc::SYS_settimeofday, 0, 0)),
            "handle" => check(libc::syscall(libc::SYS_open_by_handle_at, -1, 0, 0)),
            // The second number of `socket` on x86-64.
            "x32" => {
                check(libc::syscall(0x4000_0000 | libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0))
            }
            "raise" => {
                let more = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
                check(libc::setrlimit(libc::RLIMIT_NOFILE, &more).into())
            }
            "grow" => {
                let mut file = File::create(path)?;
                let zeros = vec![0; 64 << 10];
                for _ in 0..64 {
                    file.write_all(&zeros)?;
                }
                Ok(())
            }
            _ => panic!("there is no attempt '{what}'"),
        }
    }
}

/// How many files can be open at once.
fn files() -> String {
    let mut open = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        open.push(file);
    }
    (open.len() + 3).to_string()
}

/// Whether its session and group are its own, and who it is.
fn identity() -> String {
    // SAFETY: these only ask.
    let (process, session, group, user, effective) =
        unsafe { (libc::getpid(), libc::getsid(0), libc::getpgrp(), libc::getuid(), libc::geteuid()) };
    let terminal = File::open("/dev/tty").is_ok();
    format!("{} {} {terminal} {user} {effective}", session == process, group == process)
}

fn descriptors() -> String {
    let mut open = Vec::new();
    for number in 0..1024 {
        // SAFETY: asks about a number.
        if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
            open.push(number.to_string());
        }
    }
    open.join(" ")
}

fn memory(bytes: &str) -> String {
    let bytes = bytes.parse().expect("a number");
    let mut room = Vec::<u8>::new();
    match room.try_reserve_exact(bytes) {
        Ok(()) => "ok".to_owned(),
        Err(_) => "ENOMEM".to_owned(),
    }
}

fn limits() -> String {
    let ask = |resource| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel fills in the structure.
        unsafe { libc::getrlimit(resource, &mut limit) };
        format!("{}/{}", limit.rlim_cur, limit.rlim_max)
    };
    [libc::RLIMIT_CORE, libc::RLIMIT_AS, libc::RLIMIT_NOFILE, libc::RLIMIT_FSIZE].map(ask).join(" ")
}

/// How many children there can be at once, up to a hundred.
fn forks() -> String {
    for count in 0..100 {
        // SAFETY: this program has one thread.
        match unsafe { libc::fork() } {
            0 => loop {
                std::thread::park();
            },
            -1 => return count.to_string(),
            _ => {}
        }
    }
    "100".to_owned()
}
