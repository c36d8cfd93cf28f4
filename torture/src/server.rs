//! The server under attack: a child process, and what Linux says about it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// How long it may take to start.
const START: Duration = Duration::from_secs(60);

/// A running `wardian serve`.
pub(crate) struct Server {
    child: Child,
    /// What it wrote of panics.
    panics: Arc<Mutex<Vec<String>>>,
    /// Where it listens for HTTP.
    http: SocketAddr,
    /// Holds the socket, the states and the store; gone with this value.
    directory: TempDir,
}

/// What the process holds at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// Memory of its own in KiB: private pages and memory files. Processes that compile are not in it: Linux holds each of
    /// them to its own limit.
    pub(crate) memory_kib: usize,
    /// All that is mapped, pages of files too.
    pub(crate) mapped_kib: usize,
    pub(crate) descriptors: usize,
    pub(crate) mappings: usize,
    pub(crate) threads: usize,
    pub(crate) children: usize,
}

impl Server {
    pub(crate) fn start(program: &Path) -> Result<Server> {
        let directory = tempfile::tempdir()?;
        let states = directory.path().join("states");
        fs::create_dir(&states)?;
        let mut child = Command::new(program)
            .args(["serve", "--http", "127.0.0.1:0", "--socket"])
            .arg(directory.path().join("socket"))
            .arg("--state-dir")
            .arg(states)
            .arg("--store")
            .arg(directory.path().join("store"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let panics = Arc::<Mutex<Vec<String>>>::default();
        let log = child.stderr.take().context("its log is a pipe")?;
        let http = read_log(log, panics.clone());
        let http = http.recv_timeout(START).context("the server does not listen");
        let server = Server { child, panics, http: http?, directory };
        server.wait_for_socket()?;
        Ok(server)
    }

    /// Where clients connect that speak HTTP.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where clients connect.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn wait_for_socket(&self) -> Result<()> {
        let patience = Instant::now() + START;
        while UnixStream::connect(self.socket()).is_err() {
            if Instant::now() > patience {
                bail!("the server does not listen");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it wrote of panics since this was last asked.
    pub(crate) fn panics(&self) -> Vec<String> {
        std::mem::take(&mut *self.panics.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as an administrator would; the error says how it ended if that was not with 0.
    pub(crate) fn stop(mut self) -> Result<()> {
        if !self.is_alive() {
            bail!("the server is gone: {:?}", self.child.wait()?);
        }
        Command::new("kill").arg(self.pid().to_string()).status()?;
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("the server ended with {status}"),
                None if Instant::now() > patience => bail!("the server does not end on SIGTERM"),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// Keeps what a log says of panics, and tells once where the server listens.
fn read_log(log: ChildStderr, panics: Arc<Mutex<Vec<String>>>) -> Receiver<SocketAddr> {
    let (listens, http) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(|line| line.ok()) {
            let place = line.strip_prefix("wardian: listening on http://");
            if let Some(place) = place.and_then(|place| place.parse().ok()) {
                let _ = listens.send(place);
            }
            if line.contains("panicked") {
                panics.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(line);
            }
        }
    });
    http
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process holds. `None` when it is gone.
pub(crate) fn standing(pid: u32) -> Option<Standing> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let children = children_of(pid);
    Some(Standing {
        memory_kib: private_kib(pid)? + memory_files_kib(&process),
        mapped_kib: field_kib(pid, "VmRSS:")?,
        descriptors: fs::read_dir(process.join("fd")).ok()?.count(),
        mappings: fs::read_to_string(process.join("maps")).ok()?.lines().count(),
        threads: fs::read_dir(process.join("task")).ok()?.count(),
        children: children.len(),
    })
}

/// Only the memory: cheap enough to look at many times a second.
pub(crate) fn memory_kib(pid: u32) -> Option<usize> {
    Some(private_kib(pid)? + memory_files_kib(&PathBuf::from(format!("/proc/{pid}"))))
}

/// The most memory of any kind that a process had mapped since [`forget_peak`], in KiB: Linux keeps it, so that nothing
/// is missed between two looks. Pages of programs and of memory files are in it, as often as they are mapped.
pub(crate) fn peak_kib(pid: u32) -> Option<usize> {
    field_kib(pid, "VmHWM:")
}

/// Lets the peak begin again at what the process has now.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("the server's peak of memory cannot be reset")
}

fn field_kib(pid: u32, name: &str) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = status.lines().find_map(|line| line.strip_prefix(name))?;
    field.trim().trim_end_matches(" kB").parse().ok()
}

/// Private pages: those of files (programs, artifacts) are shared and can be dropped at any time.
fn private_kib(pid: u32) -> Option<usize> {
    field_kib(pid, "RssAnon:")
}

/// What lies in memory files, whether it is mapped or not.
fn memory_files_kib(process: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return 0 };
    let is_memory_file =
        |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:"));
    let blocks = descriptors.flatten().map(|entry| entry.path()).filter(is_memory_file);
    blocks.filter_map(|path| fs::metadata(path).ok()).map(|file| file.blocks() as usize / 2).sum()
}

fn children_of(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}
