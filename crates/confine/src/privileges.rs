//! Privileges: none can be gained, and of root's only those over files are kept (landlock decides which files).

use std::fs;
use std::io;

/// `linux/capability.h`: owners, permissions and set-id bits of files.
const KEPT: [u32; 4] =
    [0 /* CHOWN */, 1 /* DAC_OVERRIDE */, 3 /* FOWNER */, 4 /* FSETID */];

/// The privileges of root that a confined program keeps: those over files, as bits of `CapEff`.
pub const KEPT_CAPABILITIES: u64 = 1 << KEPT[0] | 1 << KEPT[1] | 1 << KEPT[2] | 1 << KEPT[3];

/// The header and the two halves of `capset`, version 3.
#[repr(C)]
struct Header {
    version: u32,
    process: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;

/// The privileges of this process. What it may start programs with is reduced permanently.
pub(crate) struct Privileges {
    had: u64,
}

impl Privileges {
    pub fn limit() -> io::Result<Privileges> {
        let had = permitted()?;
        no_new_privileges()?;
        for capability in (0..64).filter(|capability| had != 0 && !KEPT.contains(capability)) {
            // SAFETY: takes a number; those the kernel does not have, and a set this process may not change, are errors. The
            // latter is no loss: `drop` takes away what could be used of it.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
        Ok(Privileges { had })
    }

    /// In the child: drops all privileges except those over files.
    pub fn drop(&self) -> io::Result<()> {
        if self.had == 0 { Ok(()) } else { keep(KEPT_CAPABILITIES & self.had) }
    }
}

/// Drops all privileges of this process except these of the lower half.
pub(crate) fn keep(kept: u64) -> io::Result<()> {
    let kept = kept as u32;
    let header = Header { version: VERSION_3, process: 0 };
    let halves = [Half { effective: kept, permitted: kept, inheritable: 0 }, Half::default()];
    // SAFETY: the structures are as version 3 of the call has them, and live until it returns.
    let done = unsafe { libc::syscall(libc::SYS_capset, &header, halves.as_ptr()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: sets a flag of this process.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn permitted() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:")).unwrap_or("0");
    u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)
}

/// Nobody but root can look into this process any more, by `/proc` or by `ptrace`, and it leaves no core file.
pub(crate) fn not_dumpable() -> io::Result<()> {
    // SAFETY: sets a flag of this process.
    let done = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
