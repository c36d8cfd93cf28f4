//! The system calls of a cell, each with its reason. A call that is not listed fails with EPERM.
//!
//! What matters is what is missing: nothing that opens a path or asks about one (`open`, `stat`, `readlink`), creates or
//! names a socket, sends or receives descriptors (`sendmsg`, `recvmsg`), starts or replaces a program, or takes the number
//! of another process.

use std::io;

use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use crate::seccomp::{NAMESPACES, Rules, any, apply, argument, deny, program};

/// Calls that may have any arguments.
const CALLS: &[(i64, &str)] = &[
    (libc::SYS_read, "the socket to the supervisor; wake-ups of the event loop"),
    (libc::SYS_write, "the socket to the supervisor; wake-ups of the event loop"),
    (libc::SYS_pread64, "templates of memories, the page map"),
    (libc::SYS_pwrite64, "filling a memory file before it is sealed"),
    (libc::SYS_lseek, "where one is in a file that was opened before"),
    (libc::SYS_fstat, "the size of what is to be mapped"),
    (libc::SYS_ftruncate, "the size of a memory file"),
    (libc::SYS_close, "memory files that nobody uses any more"),
    (libc::SYS_memfd_create, "templates of memories: mapped by many instances, copy-on-write"),
    (libc::SYS_munmap, "instances, stacks and memories come and go"),
    (libc::SYS_mremap, "the allocator"),
    (libc::SYS_madvise, "wiping instances, returning memory"),
    (libc::SYS_brk, "the allocator"),
    (libc::SYS_futex, "locks, sleeping threads"),
    (libc::SYS_set_robust_list, "every new thread"),
    (libc::SYS_rseq, "every new thread"),
    (libc::SYS_sched_yield, "spinning locks"),
    (libc::SYS_sched_getaffinity, "how many processors there are"),
    (libc::SYS_getrandom, "guests' random bytes, seeds of hash tables"),
    (libc::SYS_clock_gettime, "deadlines, guests' clocks, processor time of a guest"),
    (libc::SYS_clock_nanosleep, "the ticker"),
    (libc::SYS_getrusage, "page faults of a thread: what a guest wrote is counted when there were any"),
    (libc::SYS_getpid, "the signal of an abort"),
    (libc::SYS_gettid, "the signal of an abort"),
    (libc::SYS_rt_sigaction, "wasmtime's traps are signals; an abort resets its own"),
    (libc::SYS_rt_sigprocmask, "new threads, aborts"),
    (libc::SYS_rt_sigreturn, "after a trap"),
    (libc::SYS_sigaltstack, "every new thread: the stack that traps are handled on"),
    (libc::SYS_epoll_create1, "the event loop"),
    (libc::SYS_epoll_ctl, "the event loop"),
    (libc::SYS_epoll_pwait, "the event loop"),
    (libc::SYS_eventfd2, "wake-ups of the event loop"),
    (libc::SYS_restart_syscall, "the kernel's own, after SIGSTOP and SIGCONT"),
    (libc::SYS_exit, "threads end"),
    (libc::SYS_exit_group, "the cell ends"),
    // Told by the filter below that it does not exist.
    (libc::SYS_clone3, "so that the C library takes `clone`, whose flags a filter sees"),
];

/// The same, where the machine has a second call for it.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[(i64, &str)] = &[(libc::SYS_epoll_wait, "the event loop")];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[(i64, &str)] = &[(libc::SYS_membarrier, "new code becomes visible to all threads")];

/// Commands of `fcntl`: the event loop duplicates its descriptors, memory files are sealed.
const FCNTL: [i32; 7] = [
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
];
/// Commands of `ioctl`: which pages were written, by the page map that was opened before; and to have Linux note writes
/// to memory, by the descriptor that was.
const IOCTL: [u64; 2] = [0xc060_6610 /* PAGEMAP_SCAN */, 0xc020_aa00 /* UFFDIO_REGISTER */];

/// Restricts this thread, and those it starts, to the list. Fails with an error without errno if there is no filter for
/// this machine, or no seccomp in its kernel.
pub(crate) fn only_these() -> io::Result<()> {
    let missing = Rules::from([(libc::SYS_clone3, vec![])]);
    let missing = deny(missing, libc::ENOSYS).map_err(io::Error::other)?;
    let listed = listed()
        .and_then(|rules| program(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow))
        .map_err(io::Error::other)?;
    // In this order: the list does not have the call that sets a filter.
    apply(&missing)?;
    apply(&listed)
}

fn listed() -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = CALLS.iter().chain(OF_THIS_MACHINE).map(|(call, _)| (*call, vec![])).collect();
    // Memory is writable or executable, never both: compiled code is mapped and then made executable.
    let (write, execute) = (libc::PROT_WRITE as u64, libc::PROT_EXEC as u64);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let without = [write, execute].map(|bit| argument(2, SeccompCmpOp::MaskedEq(bit), 0));
        rules.insert(call, any(without.into_iter())?);
    }
    // Threads, and nothing else that `clone` makes.
    let thread = libc::CLONE_THREAD as u64;
    let checked = NAMESPACES.iter().fold(thread, |bits, namespace| bits | *namespace as u32 as u64);
    rules.insert(libc::SYS_clone, any([argument(0, SeccompCmpOp::MaskedEq(checked), thread)].into_iter())?);
    // A process that aborts sends itself the signal.
    let itself = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, any([argument(0, SeccompCmpOp::Eq, itself)].into_iter())?);
    // Names of threads, in debuggers.
    let name = argument(0, SeccompCmpOp::Eq, libc::PR_SET_NAME as u64);
    rules.insert(libc::SYS_prctl, any([name].into_iter())?);
    // Short slices for the threads that guests run on: the calling thread's own.
    for call in [libc::SYS_sched_getattr, libc::SYS_sched_setattr] {
        rules.insert(call, any([argument(0, SeccompCmpOp::Eq, 0)].into_iter())?);
    }
    // The size of stacks: one's own limits are read, not set.
    let own = argument(0, SeccompCmpOp::Eq, 0)?;
    let no_new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![own, no_new])?]);
    let commands = FCNTL.iter().map(|command| argument(1, SeccompCmpOp::Eq, *command as u64));
    rules.insert(libc::SYS_fcntl, any(commands)?);
    rules.insert(libc::SYS_ioctl, any(IOCTL.iter().map(|code| argument(1, SeccompCmpOp::Eq, *code)))?);
    Ok(rules)
}
