//! The processes there are, from `/proc`.

use super::names::Names;
use std::str::FromStr;

/// What `/proc/PID` tells of a process.
#[derive(Default)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// The terminal's device number; 0 for none.
    pub terminal: u64,
    pub foreground: i32,
    pub state: char,
    /// The program's name, at most 15 bytes.
    pub name: String,
    pub arguments: Vec<String>,
    pub uid: u32,
    pub gid: u32,
    /// Hundredths of a second.
    pub cpu: u64,
    /// After the system's start, in hundredths of a second.
    pub started: u64,
    pub priority: i64,
    pub nice: i64,
    pub threads: u64,
    /// Bytes.
    pub memory: u64,
    /// Bytes.
    pub resident: u64,
    pub flags: u64,
}

/// Clock ticks of `/proc` in a second.
pub const TICKS: u64 = 100;

/// All processes, by number.
pub fn all() -> Vec<Process> {
    let mut numbers: Vec<i32> = match std::fs::read_dir("/proc") {
        Ok(entries) => {
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
        }
        Err(_) => Vec::new(),
    };
    numbers.sort_unstable();
    // One that ended meanwhile is not there any more.
    numbers.into_iter().filter_map(read).collect()
}

pub fn read(pid: i32) -> Option<Process> {
    let stat = lossy(&format!("/proc/{pid}/stat"))?;
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat[end + 1..].split_whitespace().collect();
    let status = lossy(&format!("/proc/{pid}/status")).unwrap_or_default();
    let owner = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let arguments = lossy(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut arguments: Vec<String> = arguments.split('\0').map(str::to_owned).collect();
    arguments.pop();
    Some(Process {
        pid,
        state: fields.first()?.chars().next()?,
        name: stat[start + 1..end].to_owned(),
        arguments,
        parent: number(&fields, 1),
        group: number(&fields, 2),
        session: number(&fields, 3),
        terminal: number(&fields, 4),
        foreground: number(&fields, 5),
        flags: number(&fields, 6),
        cpu: number::<u64>(&fields, 11) + number::<u64>(&fields, 12),
        priority: number(&fields, 15),
        nice: number(&fields, 16),
        threads: number(&fields, 17),
        started: number(&fields, 19),
        memory: number(&fields, 20),
        resident: number::<u64>(&fields, 21) * 4096,
        uid: owner("Uid:").unwrap_or(0),
        gid: owner("Gid:").unwrap_or(0),
    })
}

fn number<T: FromStr + Default>(fields: &[&str], at: usize) -> T {
    fields.get(at).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn lossy(path: &str) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

impl Process {
    /// The command line; the name in brackets for one without.
    pub fn command_line(&self) -> String {
        match (self.arguments.is_empty(), self.state) {
            (_, 'Z') => format!("[{}] <defunct>", self.name),
            (true, _) => format!("[{}]", self.name),
            _ => self.arguments.join(" "),
        }
    }

    /// The terminal's name below `/dev`, or `?`.
    pub fn terminal_name(&self) -> String {
        let (major, minor) = super::size::device(self.terminal);
        match major {
            136..=143 => format!("pts/{}", minor + (major - 136) * 256),
            4 if minor < 64 => format!("tty{minor}"),
            _ => "?".to_owned(),
        }
    }

    pub fn user(&self, users: &Names) -> String {
        users.show(self.uid)
    }
}

/// Seconds since the system started.
pub fn uptime() -> f64 {
    let text = lossy("/proc/uptime").unwrap_or_default();
    text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0.0)
}

/// One number of `/proc/meminfo`, in KiB.
pub fn memory(key: &str) -> u64 {
    let text = lossy("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
