//! `/proc`: what the kernel knows, as files.
//!
//! The tree calls this with its lock held, so nothing here may wait for the tree: for this reason a process keeps the
//! name of its working directory.

use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::Instant;

use wardian_vfs::{Caller, Errno, FileKind, Place, Result, Tree, Virtual, VirtualStat};

use crate::fd::OpenFile;
use crate::machine::Machine;
use crate::net::REPORTS;
use crate::proc::{Entry, Life, Pid, Process, UID};

/// The files of one machine's `/proc`.
pub(crate) struct ProcFs {
    machine: Weak<Machine>,
    started: Instant,
}

/// The meaning of a path in `/proc`.
enum Node {
    Root,
    /// A file about the machine.
    About(&'static str),
    /// The directory of files about sockets, and one of them.
    Net,
    Sockets(&'static str),
    /// The link to the caller's own directory.
    Own,
    Process(Pid),
    /// A file about a process.
    OfProcess(Pid, &'static str),
    /// The link to the working directory.
    Cwd(Pid),
    /// The link to the program's file.
    Exe(Pid),
    Descriptors(Pid),
    Descriptor(Pid, u32),
}

const ABOUT: [&str; 7] = ["cpuinfo", "loadavg", "meminfo", "mounts", "stat", "uptime", "version"];
const OF_PROCESS: [&str; 4] = ["cmdline", "comm", "stat", "status"];

/// Returns the descriptor that a path below `/proc` stands for, for opening it.
pub(crate) fn descriptor_of(path: &[u8]) -> Option<(Pid, u32)> {
    match parse(path)? {
        Node::Descriptor(pid, fd) => Some((pid, fd)),
        _ => None,
    }
}

/// Returns whether the link at this place stands for a descriptor of a file that has no name any more. Only here is the
/// tree available to tell.
pub(crate) fn is_deleted(machine: &Machine, tree: &Tree, link: &Place) -> bool {
    let Some((pid, fd)) = link.mount_path().and_then(descriptor_of) else { return false };
    let process = machine.table().get(pid).map(|entry| entry.process.clone());
    let file = process.and_then(|process| process.fd(fd).ok()).and_then(|entry| entry.file.in_tree());
    match file.as_deref() {
        Some(OpenFile::Tree(file)) => {
            tree.stat_place(&Caller::USER, file.place()).is_ok_and(|stat| stat.nlink == 0)
        }
        _ => false,
    }
}

fn parse(path: &[u8]) -> Option<Node> {
    let path = std::str::from_utf8(path).ok()?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| n.to_string() == text);
    Some(match parts[..] {
        [] => Node::Root,
        ["self"] => Node::Own,
        ["net"] => Node::Net,
        ["net", name] => Node::Sockets(REPORTS.into_iter().find(|n| *n == name)?),
        [name] if ABOUT.contains(&name) => Node::About(ABOUT.into_iter().find(|n| *n == name)?),
        [pid] => Node::Process(number(pid)?),
        [pid, "cwd"] => Node::Cwd(number(pid)?),
        [pid, "exe"] => Node::Exe(number(pid)?),
        [pid, "fd"] => Node::Descriptors(number(pid)?),
        [pid, "fd", fd] => Node::Descriptor(number(pid)?, number(fd)?),
        [pid, name] => Node::OfProcess(number(pid)?, OF_PROCESS.into_iter().find(|n| *n == name)?),
        _ => return None,
    })
}

impl ProcFs {
    pub(crate) fn new(machine: Weak<Machine>) -> Arc<ProcFs> {
        Arc::new(ProcFs { machine, started: Instant::now() })
    }

    fn machine(&self) -> Result<Arc<Machine>> {
        self.machine.upgrade().ok_or(Errno::ENOENT)
    }

    fn process(&self, pid: Pid) -> Result<Arc<Process>> {
        self.machine()?.table().get(pid).map(|entry| entry.process.clone()).ok_or(Errno::ENOENT)
    }

    /// Returns the meaning of a path, if what it names exists.
    fn find(&self, path: &[u8]) -> Result<Node> {
        let node = parse(path).ok_or(Errno::ENOENT)?;
        match node {
            Node::Root | Node::About(_) | Node::Own | Node::Net | Node::Sockets(_) => {}
            Node::Process(pid)
            | Node::OfProcess(pid, _)
            | Node::Cwd(pid)
            | Node::Exe(pid)
            | Node::Descriptors(pid) => {
                self.process(pid)?;
            }
            Node::Descriptor(pid, fd) => {
                self.process(pid)?.fd(fd).map_err(|_| Errno::ENOENT)?;
            }
        }
        Ok(node)
    }

    fn about(&self, name: &str) -> Result<String> {
        let machine = self.machine()?;
        let uptime = self.started.elapsed().as_secs_f64();
        let limit = machine.limits().memory_bytes / 1024;
        let free = limit.saturating_sub(machine.meter().used() / 1024);
        let workers = machine.kernel().runtime().metrics().num_workers();
        Ok(match name {
            "uptime" => format!("{uptime:.2} {:.2}\n", 0.0),
            "meminfo" => format!(
                "MemTotal:       {limit:8} kB\nMemFree:        {free:8} kB\nMemAvailable:   {free:8} kB\n\
                 Buffers:               0 kB\nCached:                0 kB\nSwapTotal:             0 kB\n\
                 SwapFree:              0 kB\n"
            ),
            "mounts" => "wardian / wardian rw 0 0\nproc /proc proc rw 0 0\n".to_owned(),
            "cpuinfo" => (0..workers)
                .map(|n| format!("processor\t: {n}\nvendor_id\t: Wardian\nmodel name\t: WebAssembly\n\n"))
                .collect(),
            "version" => format!("Linux version 6.0.0-wardian (wardian) #{}\n", env!("CARGO_PKG_VERSION")),
            "loadavg" => load(&machine),
            "stat" => format!("cpu  0 0 0 0 0 0 0 0 0 0\nprocesses {}\n", machine.table().len()),
            _ => return Err(Errno::ENOENT),
        })
    }

    fn of_process(&self, pid: Pid, name: &str) -> Result<Vec<u8>> {
        let machine = self.machine()?;
        let table = machine.table();
        let entry = table.get(pid).ok_or(Errno::ENOENT)?;
        let argv = entry.process.argv.lock().clone();
        Ok(match name {
            "cmdline" if matches!(entry.life, Life::Zombie(_)) => Vec::new(),
            "cmdline" => argv.block().to_vec(),
            "comm" => [command(&entry.process).as_bytes(), b"\n"].concat(),
            "stat" => stat_line(pid, entry, self.started).into_bytes(),
            "status" => status_lines(pid, entry).into_bytes(),
            _ => return Err(Errno::ENOENT),
        })
    }
}

/// Nothing samples the load; what runs now is the honest answer.
fn load(machine: &Machine) -> String {
    let table = machine.table();
    let running = table.iter().filter(|(_, entry)| entry.life == Life::Running).count();
    let last = table.iter().map(|(pid, _)| *pid).max().unwrap_or(0);
    format!("{0:.2} {0:.2} {0:.2} {1}/{2} {last}\n", running as f64, running, table.len())
}

/// How many characters of a program's name are shown, as on Linux.
const COMMAND: usize = 15;

/// The program's name.
pub(crate) fn command(process: &Process) -> String {
    let argv = process.argv.lock().clone();
    let first = argv.first().unwrap_or_default();
    let name = first.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    // A character has four bytes at most, and the rest may be long.
    let name = &name[..name.len().min(4 * COMMAND)];
    String::from_utf8_lossy(name).chars().take(COMMAND).collect()
}

fn state_letter(life: Life) -> char {
    match life {
        Life::Running => 'R',
        Life::Stopped { .. } => 'T',
        Life::Zombie(_) => 'Z',
    }
}

/// A clock tick of `/proc`: a hundredth of a second.
const TICK_NANOS: u64 = 10_000_000;

fn stat_line(pid: Pid, entry: &Entry, boot: Instant) -> String {
    let process = &entry.process;
    let (name, state) = (command(process), state_letter(entry.life));
    let ticks = process.task().cpu_nanos() / TICK_NANOS;
    let started = process.started.saturating_duration_since(boot).as_millis() / 10;
    let memory = process.footprint.charged();
    let (parent, group) = (entry.parent, entry.group);
    format!(
        "{pid} ({name}) {state} {parent} {group} {group} 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} {memory} {}{}\n",
        memory / 4096,
        " 0".repeat(28)
    )
}

fn status_lines(pid: Pid, entry: &Entry) -> String {
    let process = &entry.process;
    let state = match entry.life {
        Life::Running => "R (running)",
        Life::Stopped { .. } => "T (stopped)",
        Life::Zombie(_) => "Z (zombie)",
    };
    let kib = process.footprint.charged() / 1024;
    let umask = process.umask.load(std::sync::atomic::Ordering::Relaxed);
    let uid = process.uid;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "Name:\t{}\nUmask:\t{umask:04o}\nState:\t{state}\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{}\n\
         Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\t{uid}\t{uid}\n\
         FDSize:\t{}\nVmSize:\t{kib:8} kB\nVmRSS:\t{kib:8} kB\nThreads:\t1\n",
        command(process),
        entry.parent,
        process.fds.lock().iter().count(),
    );
    text
}

fn link_text(file: &OpenFile) -> Vec<u8> {
    match file {
        OpenFile::Tree(file) => file.name().to_vec(),
        OpenFile::Input(..) | OpenFile::Output(..) => b"pipe:[0]".to_vec(),
        OpenFile::Reader(_) | OpenFile::Writer(_) | OpenFile::Both(..) => {
            let pipe = file.pipe();
            match pipe.and_then(|pipe| pipe.file()).map(|file| &**file) {
                Some(OpenFile::Tree(file)) => file.name().to_vec(),
                _ => format!("pipe:[{}]", pipe.map_or(0, |pipe| pipe.id())).into_bytes(),
            }
        }
        OpenFile::Terminal(..) => b"/dev/tty".to_vec(),
        OpenFile::Socket(socket) => format!("socket:[{}]", socket.socket().id()).into_bytes(),
    }
}

impl Virtual for ProcFs {
    fn list(&self, _who: &Caller, path: &[u8]) -> Result<Vec<(Vec<u8>, FileKind)>> {
        let named = |name: &str, kind| (name.as_bytes().to_vec(), kind);
        Ok(match self.find(path)? {
            Node::Root => {
                let machine = self.machine()?;
                let table = machine.table();
                let processes = table.iter().map(|(pid, _)| named(&pid.to_string(), FileKind::Dir));
                let files = ABOUT.into_iter().map(|name| named(name, FileKind::File));
                let others = [named("self", FileKind::Symlink), named("net", FileKind::Dir)];
                processes.chain(files).chain(others).collect()
            }
            Node::Net => REPORTS.into_iter().map(|name| named(name, FileKind::File)).collect(),
            Node::Process(_) => {
                let files = OF_PROCESS.into_iter().map(|name| named(name, FileKind::File));
                let links = ["cwd", "exe"].map(|name| named(name, FileKind::Symlink));
                files.chain(links).chain([named("fd", FileKind::Dir)]).collect()
            }
            Node::Descriptors(pid) => {
                let process = self.process(pid)?;
                let fds = process.fds.lock();
                fds.iter().map(|(fd, _)| named(&fd.to_string(), FileKind::Symlink)).collect()
            }
            _ => return Err(Errno::ENOTDIR),
        })
    }

    fn read(&self, _who: &Caller, path: &[u8]) -> Result<Vec<u8>> {
        match self.find(path)? {
            Node::About(name) => Ok(self.about(name)?.into_bytes()),
            Node::OfProcess(pid, name) => self.of_process(pid, name),
            Node::Sockets(name) => {
                let text = self.machine()?.network().report(name);
                text.map(String::into_bytes).ok_or(Errno::ENOENT)
            }
            Node::Root | Node::Net | Node::Process(_) | Node::Descriptors(_) => Err(Errno::EISDIR),
            _ => Err(Errno::EINVAL),
        }
    }

    fn read_link(&self, who: &Caller, path: &[u8]) -> Result<Vec<u8>> {
        match self.find(path)? {
            Node::Own if who.pid != 0 => Ok(who.pid.to_string().into_bytes()),
            Node::Own => Err(Errno::ENOENT),
            Node::Cwd(pid) => Ok(self.process(pid)?.cwd.lock().name().to_vec()),
            Node::Exe(pid) => Ok(self.process(pid)?.exe.lock().to_vec()),
            Node::Descriptor(pid, fd) => {
                let entry = self.process(pid)?.fd(fd).map_err(|_| Errno::ENOENT)?;
                Ok(link_text(&entry.file))
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn stat(&self, _who: &Caller, path: &[u8]) -> Result<VirtualStat> {
        let node = self.find(path)?;
        let (kind, mode, owner) = match node {
            Node::Root | Node::Net => (FileKind::Dir, 0o555, 0),
            Node::About(_) | Node::Sockets(_) => (FileKind::File, 0o444, 0),
            Node::Own => (FileKind::Symlink, 0o777, 0),
            Node::Process(_) => (FileKind::Dir, 0o555, UID),
            Node::Descriptors(_) => (FileKind::Dir, 0o500, UID),
            Node::OfProcess(..) => (FileKind::File, 0o444, UID),
            Node::Cwd(_) | Node::Exe(_) => (FileKind::Symlink, 0o777, UID),
            Node::Descriptor(..) => (FileKind::Symlink, 0o700, UID),
        };
        let magic = matches!(node, Node::Descriptor(..));
        Ok(VirtualStat { kind, mode, uid: owner, gid: owner, size: 0, ino: 0, magic })
    }
}
