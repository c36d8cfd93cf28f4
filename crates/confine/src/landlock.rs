//! File access, restricted by landlock to the jail and the system's programs and libraries.
//!
//! Landlock does not cover a file's mode, owner and times; where nothing may be written, `seccomp` does.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ::landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{Mode, OFlags, open};

use crate::program::Confinement;

/// Linux 6.2: the first version that also covers truncation, without which files elsewhere could be emptied.
const NEEDED: ABI = ABI::V3;
/// Used if the kernel has them: device ioctls (Linux 6.10), signals to other processes and abstract sockets (6.12),
/// sockets with a path (7.1).
const WANTED: ABI = ABI::V9;

/// Programs, libraries and their data.
const PROGRAMS: [&str; 9] =
    ["/usr", "/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin", "/nix/store", "/gnu/store"];
/// What programs look up about the system. Not all of /etc: it contains secrets.
const LOOKED_UP: [&str; 20] = [
    "/etc/alternatives",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/services",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/version",
];
/// What a program looks up about itself: opened in the child, they are the child's. Not all of them: others reveal what
/// is mounted where, and which connections the machine has.
const ITS_OWN: [&str; 11] = [
    "/proc/self/auxv",
    "/proc/self/cgroup",
    "/proc/self/cmdline",
    "/proc/self/comm",
    "/proc/self/environ",
    "/proc/self/fd",
    "/proc/self/limits",
    "/proc/self/maps",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
];
/// What a program with network access needs in addition.
const NETWORK: [&str; 7] = [
    "/etc/ca-certificates",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Files under these names may be replaced by others.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The rules common to all programs, half of the work. Created between jobs, and used for one: rules can be added, but
/// not removed.
pub(crate) struct Common {
    ruleset: RulesetCreated,
    made: Instant,
}

impl Common {
    /// Fails with an error without errno if the kernel has no landlock, or too old a version.
    pub fn new() -> io::Result<Common> {
        let read = AccessFs::from_read(WANTED);
        let looked_up = LOOKED_UP.iter().map(|path| (OsStr::new(path), read & !AccessFs::Execute));
        let programs = PROGRAMS.iter().map(|path| (OsStr::new(path), read));
        let devices = DEVICES.iter().map(|path| (OsStr::new(path), AccessFs::ReadFile | AccessFs::WriteFile));
        let ruleset = handled().map_err(io::Error::other)?;
        let ruleset = allow_each(ruleset, programs.chain(looked_up).chain(devices))?;
        Ok(Common { ruleset, made: Instant::now() })
    }

    pub fn is_fresh(&self) -> bool {
        self.made.elapsed() < GOOD_FOR
    }

    /// Restricts this process and its children to these files, `program` and those of `rules`.
    pub fn restrict(&self, program: &OsStr, rules: &Confinement<impl AsFd>) -> io::Result<()> {
        let ruleset = self.ruleset.try_clone()?;
        allow_own(ruleset, program, rules)?.restrict_self().map_err(failed)?;
        Ok(())
    }
}

/// Prevents this process from opening any file by path. Fails with an error without errno if the kernel has no landlock,
/// or too old a version.
pub(crate) fn reach_nothing() -> io::Result<()> {
    handled().map_err(io::Error::other)?.restrict_self().map_err(failed)?;
    Ok(())
}

/// The kernel has landlock, so this is not its absence.
fn failed(_: ::landlock::RulesetError) -> io::Error {
    io::Error::from_raw_os_error(libc::EPERM)
}

fn handled() -> Result<RulesetCreated, ::landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()
}

/// Adds what this program may access beyond what all may.
fn allow_own(
    ruleset: RulesetCreated,
    program: &OsStr,
    rules: &Confinement<impl AsFd>,
) -> io::Result<RulesetCreated> {
    let read = AccessFs::from_read(WANTED);
    let ruleset = allow(ruleset, rules.jail.as_fd().try_clone_to_owned()?, in_jail(rules.write))?;
    let network = if rules.network { &NETWORK[..] } else { &[] };
    let looked_up = ITS_OWN.iter().chain(network).map(|path| (OsStr::new(path), read & !AccessFs::Execute));
    let more = rules.readable.iter().map(|path| path.as_os_str()).chain([program]).map(|path| (path, read));
    let changed = rules.writable.iter().map(|path| (path.as_os_str(), in_jail(true)));
    allow_each(ruleset, looked_up.chain(more).chain(changed))
}

fn allow_each<'a>(
    mut ruleset: RulesetCreated,
    paths: impl Iterator<Item = (&'a OsStr, BitFlags<AccessFs>)>,
) -> io::Result<RulesetCreated> {
    for (path, access) in paths {
        // What is missing, or closed to this process, the program may not open either.
        if let Ok(found) = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            ruleset = allow(ruleset, found, access)?;
        }
    }
    Ok(ruleset)
}

/// Everything except device files, which would give access to what no path leads to.
fn in_jail(write: bool) -> BitFlags<AccessFs> {
    let read = AccessFs::from_read(WANTED);
    if !write {
        return read;
    }
    read | (AccessFs::from_write(WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev))
}

fn allow(
    ruleset: RulesetCreated,
    beneath: OwnedFd,
    access: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    ruleset.add_rule(PathBeneath::new(beneath, access)).map_err(failed)
}
