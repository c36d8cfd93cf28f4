//! System calls, restricted by seccomp.
//!
//! For a native program everything works except calls that tools do not need, which fail as forbidden. It is not an
//! allowlist: there are many tools, and an unknown call that breaks a build would be impossible to diagnose. The list
//! has what bypasses landlock and the limits. A sealed process is the opposite: it may only call [`COMPUTING`].

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

/// Other processes, other memory.
const TRACING: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];
/// Where files are, and ways to them that are not paths.
const MOUNTING: &[i64] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Landlock does not hold it, and it tells the names of files in any directory as they are used.
    libc::SYS_inotify_add_watch,
    SYS_OPEN_TREE_ATTR,
];
/// Memory and queues that all of a user's programs share, and that outlive their creator.
const SHARED: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// What share of the machine another process of the user gets, by its number in the first argument; zero is one's own.
const OTHERS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// The same, with the number in the second argument and its kind (process, group, user) in the first.
const OTHERS_OF_A_KIND: &[(i64, u64)] =
    &[(libc::SYS_setpriority, libc::PRIO_PROCESS as u64), (libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS)];
const IOPRIO_WHO_PROCESS: u64 = 1;
/// The machine itself.
const MACHINE: &[i64] = &[
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];
/// Namespaces, in which one is root again; and rings, whose entries seccomp does not see.
const AROUND: &[i64] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
];
/// `kexec_file_load`, by the number all younger architectures have for it: not every libc names it.
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[i64] = &[294];
/// Mode, owner, times and attributes of files by path, any path: landlock does not cover them.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];
/// The same for an open file, which landlock has already checked.
const ATTRIBUTES_OF_OPEN_FILES: &[i64] =
    &[libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_utimensat, libc::SYS_fsetxattr, libc::SYS_fremovexattr];
#[cfg(target_arch = "x86_64")]
const OLD_ATTRIBUTES: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_ATTRIBUTES: &[i64] = &[];
/// Numbers newer than the library that names them; the same on every architecture.
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_FILE_SETATTR: i64 = 469;

/// The flags of `clone` that request a new namespace: mount, cgroup, uts, ipc, user, pid, net.
pub(crate) const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Calls that only create processes. `clone` also creates threads, so its flags decide.
#[cfg(target_arch = "x86_64")]
const FORKING: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKING: &[i64] = &[];
/// Device ioctls that type into a terminal.
const TYPING: [u64; 2] = [0x5412 /* TIOCSTI */, 0x541C /* TIOCLINUX */];

/// What a process needs that reads and writes its open descriptors and computes in between. In addition, `mmap` and
/// `mprotect` unless the memory would be executable, and signals to itself.
const COMPUTING: &[i64] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_ftruncate,
    libc::SYS_fstat,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Restricts this thread to [`COMPUTING`]. Fails with an error without errno if there is no filter for this machine, or
/// no seccomp in its kernel.
pub(crate) fn only_compute() -> io::Result<()> {
    let filter = || {
        let mut allowed: Rules = COMPUTING.iter().map(|call| (*call, vec![])).collect();
        let executable = libc::PROT_EXEC as u64;
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            allowed.insert(call, any([argument(2, SeccompCmpOp::MaskedEq(executable), 0)].into_iter())?);
        }
        // A process that aborts sends itself the signal; told that it cannot, it would die of another.
        let itself = u64::from(std::process::id());
        allowed.insert(libc::SYS_tgkill, any([argument(0, SeccompCmpOp::Eq, itself)].into_iter())?);
        program(allowed, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
    };
    apply(&filter().map_err(|error: seccompiler::Error| io::Error::other(error))?)
}

/// What no program may call: applied to the worker itself, once, and so to everything it starts. The kernel compiles a
/// filter each time it is applied, which takes longer than all other confinement together.
pub(crate) fn forbid_for_all() -> io::Result<()> {
    let compiled = for_all().map_err(io::Error::other)?;
    compiled.iter().try_for_each(apply)
}

/// What differs between programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Granted {
    pub write: bool,
    pub attributes: bool,
    pub network: bool,
    pub children: bool,
}

/// A filter for each set of permissions seen so far.
#[derive(Default)]
pub(crate) struct Filters {
    compiled: BTreeMap<Granted, Option<BpfProgram>>,
}

impl Filters {
    pub fn prepare(&mut self, granted: Granted) {
        self.compiled.entry(granted).or_insert_with(|| for_one(granted).ok());
    }

    /// Blocks the listed calls in this process and its children. Fails with an error without errno if there is no filter
    /// for this machine, or no seccomp in its kernel.
    pub fn apply(&self, granted: Granted) -> io::Result<()> {
        let program = self.compiled.get(&granted).and_then(Option::as_ref);
        apply(program.ok_or_else(|| io::Error::other("no seccomp filter for this machine"))?)
    }
}

pub(crate) fn apply(program: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(program).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error)
            if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) =>
        {
            error
        }
        other => io::Error::other(other),
    })
}

pub(crate) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// One filter for what is forbidden (EPERM), one for what should appear not to exist (ENOSYS).
fn for_all() -> Result<[BpfProgram; 2], seccompiler::Error> {
    let lists = [TRACING, MOUNTING, SHARED, MACHINE, AROUND, OF_THIS_MACHINE].into_iter().flatten();
    let mut forbidden: Rules = lists.map(|call| (*call, vec![])).collect();
    for call in OTHERS {
        forbidden.insert(*call, any([argument(0, SeccompCmpOp::Ne, 0)].into_iter())?);
    }
    for (call, process) in OTHERS_OF_A_KIND {
        let not_itself = [argument(0, SeccompCmpOp::Ne, *process), argument(1, SeccompCmpOp::Ne, 0)];
        forbidden.insert(*call, any(not_itself.into_iter())?);
    }
    forbidden.insert(libc::SYS_ioctl, any(TYPING.iter().map(|code| argument(1, SeccompCmpOp::Eq, *code)))?);
    let asks = |bit: &i32| {
        let bit = *bit as u32 as u64;
        argument(0, SeccompCmpOp::MaskedEq(bit), bit)
    };
    forbidden.insert(libc::SYS_clone, any(NAMESPACES.iter().map(asks))?);
    // Its flags are in memory, where no filter looks; told that it is missing, libraries use `clone`.
    let missing = Rules::from([(libc::SYS_clone3, vec![])]);
    Ok([deny(forbidden, libc::EPERM)?, deny(missing, libc::ENOSYS)?])
}

fn for_one(granted: Granted) -> Result<BpfProgram, seccompiler::Error> {
    let mut forbidden = Rules::new();
    if !granted.attributes {
        forbidden.extend(ATTRIBUTES.iter().chain(OLD_ATTRIBUTES).map(|call| (*call, vec![])));
        // Without a path it is about an open file.
        let path = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        forbidden.insert(libc::SYS_utimensat, vec![SeccompRule::new(vec![path])?]);
    }
    if !granted.write {
        forbidden.extend(ATTRIBUTES_OF_OPEN_FILES.iter().map(|call| (*call, vec![])));
    }
    if !granted.children {
        forbidden.extend(FORKING.iter().map(|call| (*call, vec![])));
        // A thread is the program itself; everything else `clone` makes is another process.
        let thread = SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64);
        forbidden.insert(libc::SYS_clone, any([argument(0, thread, 0)].into_iter())?);
    }
    forbidden.insert(libc::SYS_socket, sockets(granted.network)?);
    forbidden.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![argument_is_not(0, libc::AF_UNIX)?])?]);
    deny(forbidden, libc::EPERM)
}

/// No sockets; or, with network access, only internet sockets, and those to the kernel to ask for addresses. Never to a
/// path: the machine's services listen there, which landlock does not cover before Linux 7.1.
fn sockets(network: bool) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    if !network {
        return Ok(vec![]);
    }
    let granted = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let conditions = granted.iter().map(|family| argument_is_not(0, *family)).collect::<Result<_, _>>()?;
    Ok(vec![SeccompRule::new(conditions)?])
}

pub(crate) fn argument(
    number: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(number, SeccompCmpArgLen::Dword, operator, value)?)
}

fn argument_is_not(number: u8, value: i32) -> Result<SeccompCondition, seccompiler::Error> {
    argument(number, SeccompCmpOp::Ne, value as u64)
}

pub(crate) fn any(
    conditions: impl Iterator<Item = Result<SeccompCondition, seccompiler::Error>>,
) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    conditions.map(|condition| Ok(SeccompRule::new(vec![condition?])?)).collect()
}

/// Returns a filter in which everything works except what the rules list.
pub(crate) fn deny(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::Error> {
    program(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32))
}

pub(crate) fn program(
    rules: Rules,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let machine = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, otherwise, listed, machine)?;
    let mut program = other_numbers();
    program.extend(BpfProgram::try_from(filter)?);
    Ok(program)
}

/// x86-64 has a second number (x32) for most calls, which a list of numbers would miss: none of those works.
fn other_numbers() -> BpfProgram {
    if !cfg!(target_arch = "x86_64") {
        return BpfProgram::new();
    }
    const X32: u32 = 0x4000_0000;
    let load_number = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let skip_unless_x32 = sock_filter { code: 0x35, jt: 0, jf: 1, k: X32 };
    let no_such_call =
        sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32 };
    vec![load_number, skip_unless_x32, no_such_call]
}
