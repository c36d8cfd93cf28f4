//! What a cell tries that somebody has taken over: system calls, past every library.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;

/// A call with its arguments.
type Call = (&'static str, i64, [usize; 6]);

/// Tries everything; a line for each, with its name and the errno, or 0 if it was done.
pub fn all(held: &File, socket: i32) -> Vec<String> {
    let mut calls = paths();
    calls.extend(others(held, socket));
    calls.extend(itself(held, socket));
    calls.extend(system());
    calls
        .iter()
        .map(|(name, number, arguments)| format!("{name} {}", errno_of(*number, *arguments)))
        .collect()
}

fn errno_of(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> i32 {
    // SAFETY: whatever the call does, it is what this program is for: to be ended by it would show in the test.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(-1),
        _ => 0,
    }
}

fn call<const N: usize>(name: &'static str, number: i64, arguments: [usize; N]) -> Call {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    (name, number, all)
}

const HERE: usize = libc::AT_FDCWD as usize;

fn text(text: &'static std::ffi::CStr) -> usize {
    text.as_ptr() as usize
}

/// A place for what a call writes.
fn place() -> usize {
    Box::leak(Box::new([0_u8; 4096])).as_mut_ptr() as usize
}

/// Files, by their names.
fn paths() -> Vec<Call> {
    let passwd = text(c"/etc/passwd");
    let read = libc::O_RDONLY as usize;
    let how: &'static [u64; 3] = &[0; 3];
    vec![
        call("openat-passwd", libc::SYS_openat, [HERE, passwd, read]),
        call("openat-root", libc::SYS_openat, [HERE, text(c"/"), libc::O_PATH as usize]),
        call("openat-init-memory", libc::SYS_openat, [HERE, text(c"/proc/1/mem"), read]),
        call("openat-own-memory", libc::SYS_openat, [HERE, text(c"/proc/self/mem"), libc::O_RDWR as usize]),
        call("openat-supervisor", libc::SYS_openat, [HERE, text(c"/proc/self/../1/environ"), read]),
        call("openat2", libc::SYS_openat2, [HERE, passwd, how.as_ptr() as usize, 24]),
        call(
            "create",
            libc::SYS_openat,
            [HERE, text(c"/tmp/x"), (libc::O_CREAT | libc::O_WRONLY) as usize, 0o600],
        ),
        call("statx", libc::SYS_statx, [HERE, passwd, 0, 0xfff, place()]),
        call("newfstatat", libc::SYS_newfstatat, [HERE, passwd, place(), 0]),
        call("faccessat", libc::SYS_faccessat, [HERE, passwd, 0]),
        call("readlinkat", libc::SYS_readlinkat, [HERE, text(c"/proc/self/exe"), place(), 4096]),
        call("statfs", libc::SYS_statfs, [passwd, place()]),
        call("getcwd", libc::SYS_getcwd, [place(), 4096]),
        call("chdir", libc::SYS_chdir, [text(c"/")]),
        call("mkdirat", libc::SYS_mkdirat, [HERE, text(c"/tmp/cell-was-here"), 0o700]),
        call("unlinkat", libc::SYS_unlinkat, [HERE, text(c"/tmp/cell-was-here"), 0]),
        call("fchmodat", libc::SYS_fchmodat, [HERE, text(c"/tmp"), 0o777]),
        call("fchownat", libc::SYS_fchownat, [HERE, text(c"/tmp"), 1, 1, 0]),
        call("setxattr", libc::SYS_setxattr, [text(c"/tmp"), text(c"user.x"), place(), 1, 0]),
        call("name_to_handle_at", libc::SYS_name_to_handle_at, [HERE, passwd, place(), place(), 0]),
        call("open_by_handle_at", libc::SYS_open_by_handle_at, [HERE, place(), 0]),
        call("inotify_init1", libc::SYS_inotify_init1, [0]),
        call("fanotify_init", libc::SYS_fanotify_init, [0, 0]),
        call("mount", libc::SYS_mount, [text(c"none"), text(c"/tmp"), text(c"tmpfs"), 0, 0]),
        call("umount2", libc::SYS_umount2, [text(c"/proc"), 0]),
        call("pivot_root", libc::SYS_pivot_root, [text(c"/"), text(c"/")]),
        call("chroot", libc::SYS_chroot, [text(c"/tmp")]),
        call("fsopen", libc::SYS_fsopen, [text(c"proc"), 0]),
        call("open_tree", libc::SYS_open_tree, [HERE, text(c"/"), 1]),
        call("execve", libc::SYS_execve, [text(c"/bin/true"), 0, 0]),
    ]
}

/// Other processes, networks and whatever all of a user's processes share.
fn others(held: &File, socket: i32) -> Vec<Call> {
    let me = std::process::id() as usize;
    // SAFETY: returns a number.
    let supervisor = unsafe { libc::getppid() } as usize;
    let supervisor = if supervisor == usize::MAX { 1 } else { supervisor };
    let vector: &'static [usize; 2] = Box::leak(Box::new([place(), 8]));
    let vector = vector.as_ptr() as usize;
    let (socket, held) = (socket as usize, held.as_raw_fd() as usize);
    let unix = libc::AF_UNIX as usize;
    vec![
        call("fork", libc::SYS_clone, [libc::SIGCHLD as usize, 0]),
        call(
            "vfork",
            libc::SYS_clone,
            [(libc::CLONE_VFORK | libc::CLONE_VM | libc::SIGCHLD) as usize, place() + 2048],
        ),
        call("clone3", libc::SYS_clone3, [place(), 88]),
        call("clone-new-user", libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD) as usize, 0]),
        call("ptrace-attach", libc::SYS_ptrace, [libc::PTRACE_ATTACH as usize, supervisor, 0, 0]),
        call("ptrace-traceme", libc::SYS_ptrace, [libc::PTRACE_TRACEME as usize, 0, 0, 0]),
        call("kill-supervisor", libc::SYS_kill, [supervisor, libc::SIGURG as usize]),
        call("kill-all", libc::SYS_kill, [usize::MAX, 0]),
        call("kill-own-group", libc::SYS_kill, [0, 0]),
        call("tkill", libc::SYS_tkill, [supervisor, libc::SIGURG as usize]),
        call("tgkill-supervisor", libc::SYS_tgkill, [supervisor, supervisor, libc::SIGURG as usize]),
        call("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, [supervisor, libc::SIGURG as usize, place()]),
        call("pidfd_open", libc::SYS_pidfd_open, [supervisor, 0]),
        call("pidfd_getfd", libc::SYS_pidfd_getfd, [socket, 0, 0]),
        call("process_vm_readv", libc::SYS_process_vm_readv, [supervisor, vector, 1, vector, 1, 0]),
        call("process_vm_writev", libc::SYS_process_vm_writev, [me, vector, 1, vector, 1, 0]),
        call("process_madvise", libc::SYS_process_madvise, [socket, vector, 1, 0, 0]),
        call("kcmp", libc::SYS_kcmp, [me, supervisor, 0, 0, 0]),
        call("prlimit-supervisor", libc::SYS_prlimit64, [supervisor, 7, 0, place()]),
        call("setpriority", libc::SYS_setpriority, [0, 0, 0]),
        call("sched_setaffinity", libc::SYS_sched_setaffinity, [supervisor, 8, place()]),
        call("socket-inet", libc::SYS_socket, [libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0]),
        call("socket-unix", libc::SYS_socket, [unix, libc::SOCK_STREAM as usize, 0]),
        call("socket-netlink", libc::SYS_socket, [libc::AF_NETLINK as usize, libc::SOCK_RAW as usize, 0]),
        call("socketpair", libc::SYS_socketpair, [unix, libc::SOCK_STREAM as usize, 0, place()]),
        call("connect", libc::SYS_connect, [socket, place(), 16]),
        call("bind", libc::SYS_bind, [socket, place(), 16]),
        call("accept4", libc::SYS_accept4, [socket, 0, 0, 0]),
        call("sendmsg", libc::SYS_sendmsg, [socket, place(), 0]),
        call("recvmsg", libc::SYS_recvmsg, [socket, place(), libc::MSG_DONTWAIT as usize]),
        call("sendto", libc::SYS_sendto, [socket, place(), 0, 0, 0, 0]),
        call("setsockopt", libc::SYS_setsockopt, [socket, 1, 8, place(), 4]),
        call("fcntl-setown", libc::SYS_fcntl, [socket, libc::F_SETOWN as usize, supervisor]),
        call("shmget", libc::SYS_shmget, [0, 4096, 0o1600]),
        call("semget", libc::SYS_semget, [0, 1, 0o1600]),
        call("msgget", libc::SYS_msgget, [0, 0o1600]),
        call("mq_open", libc::SYS_mq_open, [text(c"x"), (libc::O_CREAT | libc::O_RDWR) as usize, 0o600, 0]),
        call("keyctl", libc::SYS_keyctl, [0, usize::MAX - 2, 1]),
        call("add_key", libc::SYS_add_key, [text(c"user"), text(c"x"), place(), 1, usize::MAX - 3]),
        call("request_key", libc::SYS_request_key, [text(c"user"), text(c"x"), 0, 0]),
        call("splice", libc::SYS_splice, [held, 0, socket, 0, 4096, 0]),
        call("sendfile", libc::SYS_sendfile, [socket, held, 0, 4096]),
    ]
}

/// Its own rights, and descriptors it has for something else.
fn itself(held: &File, socket: i32) -> Vec<Call> {
    let held = held.as_raw_fd() as usize;
    let all = (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) as usize;
    let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: creates a file without a name; its number is all there is of it.
    let program = unsafe { libc::memfd_create(c"program".as_ptr(), 0) } as usize;
    let header: &'static [u32; 2] = Box::leak(Box::new([0x2008_0522, 0]));
    let capabilities: &'static [u32; 6] = Box::leak(Box::new([u32::MAX; 6]));
    let (header, capabilities) = (header.as_ptr() as usize, capabilities.as_ptr() as usize);
    vec![
        call("execveat-memory", libc::SYS_execveat, [program, text(c""), 0, 0, libc::AT_EMPTY_PATH as usize]),
        call("write-to-program", libc::SYS_write, [held, place(), 1]),
        call("truncate-program", libc::SYS_ftruncate, [held, 0]),
        call("chmod-program", libc::SYS_fchmod, [held, 0o777]),
        call("chown-program", libc::SYS_fchown, [held, 1, 1]),
        call(
            "map-program-shared",
            libc::SYS_mmap,
            [0, 4096, (libc::PROT_READ | libc::PROT_WRITE) as usize, libc::MAP_SHARED as usize, held, 0],
        ),
        call("mmap-all", libc::SYS_mmap, [0, 4096, all, private, usize::MAX, 0]),
        call("mprotect-all", libc::SYS_mprotect, [place() / 4096 * 4096, 4096, all]),
        call("unshare", libc::SYS_unshare, [libc::CLONE_NEWUSER as usize]),
        call("setns", libc::SYS_setns, [socket as usize, 0]),
        call("setuid", libc::SYS_setuid, [0]),
        call("setgroups", libc::SYS_setgroups, [0, 0]),
        call("capset", libc::SYS_capset, [header, capabilities]),
        call("dumpable", libc::SYS_prctl, [libc::PR_SET_DUMPABLE as usize, 1]),
        call("ptracer", libc::SYS_prctl, [libc::PR_SET_PTRACER as usize, usize::MAX]),
        call("no-death-signal", libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, 0]),
        call("seccomp", libc::SYS_seccomp, [1, 0, place()]),
        call("setrlimit", libc::SYS_prlimit64, [0, libc::RLIMIT_NOFILE as usize, place(), 0]),
        call("setsid", libc::SYS_setsid, []),
        call("setpgid", libc::SYS_setpgid, [0, 0]),
        call("personality", libc::SYS_personality, [0]),
        call("dup", libc::SYS_dup, [socket as usize]),
        call("userfaultfd", libc::SYS_userfaultfd, [1]),
        call("timer_create", libc::SYS_timer_create, [0, 0, place()]),
    ]
}

/// The machine.
fn system() -> Vec<Call> {
    vec![
        call("bpf", libc::SYS_bpf, [0, place(), 64]),
        call("io_uring_setup", libc::SYS_io_uring_setup, [8, place()]),
        call("io_uring_enter", libc::SYS_io_uring_enter, [0, 0, 0, 0]),
        call("perf_event_open", libc::SYS_perf_event_open, [place(), 0, 0, usize::MAX, 0]),
        call("init_module", libc::SYS_init_module, [place(), 1, place()]),
        call("kexec_load", libc::SYS_kexec_load, [0, 0, 0, 0]),
        call("reboot", libc::SYS_reboot, [0, 0, 0, 0]),
        call("syslog", libc::SYS_syslog, [10, 0, 0]),
        call("acct", libc::SYS_acct, [0]),
        call("sethostname", libc::SYS_sethostname, [place(), 0]),
        call("settimeofday", libc::SYS_settimeofday, [place(), 0]),
        call("swapoff", libc::SYS_swapoff, [text(c"/nowhere")]),
        call("quotactl", libc::SYS_quotactl, [0, 0, 0, 0]),
        call("typing", libc::SYS_ioctl, [0, 0x5412, place()]),
        // The same call by its second number.
        #[cfg(target_arch = "x86_64")]
        call("open-x32", 0x4000_0000 + libc::SYS_openat, [HERE, text(c"/etc/passwd"), 0]),
        #[cfg(target_arch = "x86_64")]
        call("open", libc::SYS_open, [text(c"/etc/passwd"), 0]),
        #[cfg(target_arch = "x86_64")]
        call("fork-by-name", libc::SYS_fork, []),
        #[cfg(target_arch = "x86_64")]
        call("modify_ldt", libc::SYS_modify_ldt, [0, place(), 16]),
        #[cfg(target_arch = "x86_64")]
        call("iopl", libc::SYS_iopl, [3]),
    ]
}

/// Blocks every signal and uses its processor for good.
pub fn spin() -> ! {
    // SAFETY: a signal set is plain memory, which is filled in before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, ptr::null_mut());
    }
    loop {
        std::hint::spin_loop();
    }
}

/// Ends at once.
pub fn die() -> ! {
    std::process::abort()
}

/// Takes memory until there is none; says why it stopped, and how many mebibytes it got.
pub fn eat() -> String {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let mut got = 0;
    loop {
        // SAFETY: a new mapping that nothing else knows of, or an error.
        let at = unsafe { libc::mmap(ptr::null_mut(), 1 << 20, protection, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return format!("{} {got}", error.raw_os_error().unwrap_or(-1));
        }
        got += 1;
    }
}

/// Which descriptors are open, by kind.
pub fn descriptors() -> String {
    let mut found = Vec::new();
    for number in 0..4096 {
        // SAFETY: a status is plain memory; it is looked at only if the call has filled it in.
        let kind = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            if libc::syscall(libc::SYS_fstat, number, &mut status) != 0 {
                continue;
            }
            status.st_mode & libc::S_IFMT
        };
        found.push(match kind {
            libc::S_IFSOCK => "socket",
            libc::S_IFREG => "file",
            libc::S_IFDIR => "directory",
            libc::S_IFCHR => "device",
            libc::S_IFIFO => "pipe",
            _ => "other",
        });
    }
    found.join(" ")
}
