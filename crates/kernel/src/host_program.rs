//! Host programs: a host function instead of WebAssembly, behind a file like any other.
//!
//! ```text
//!  /usr/bin/weather ──spawn──► Process (pid, descriptors, signals) ──► HostProgram::run(call)
//!   a file whose version        waited for, killed and counted           a future of the host's,
//!   the machine knows           as any other                             cancelled with its process
//! ```

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::task::AbortHandle;
use wardian_vfs::{Errno, Result};

use crate::call::MAX_PATH;
use crate::fd::OpenFile;
use crate::io::write_file;
use crate::limits::Charge;
use crate::machine::Machine;
use crate::net::Flags;
use crate::proc::{Process, Status};
use crate::signal::{SIGABRT, SIGKILL};
use crate::spawn::{self, Group, Request};
use crate::strings::Strings;
use crate::wait;

/// The most that a host program reads at once.
const READ_AT_ONCE: usize = 64 * 1024;

/// The run of a host program; returns its exit code.
pub type HostRun = Pin<Box<dyn Future<Output = u8> + Send>>;

/// A host program.
pub trait HostProgram: Send + Sync {
    /// Runs it. The future is dropped when its process is killed or the command times out.
    fn run(&self, call: HostCall) -> HostRun;
}

/// One run of a host program: its parameters, and its three streams.
pub struct HostCall {
    /// Its arguments, starting with its name.
    pub argv: Vec<Vec<u8>>,
    /// Its environment, as `NAME=VALUE`.
    pub env: Vec<Vec<u8>>,
    /// Its working directory.
    pub cwd: Vec<u8>,
    /// The machine it runs in, for its files.
    pub machine: Arc<Machine>,
    /// Its process, for what it starts in the sandbox.
    pub process: HostProcess,
    /// Descriptor 0.
    pub stdin: HostInput,
    /// Descriptor 1.
    pub stdout: HostOutput,
    /// Descriptor 2.
    pub stderr: HostOutput,
}

/// The process of a host program.
#[derive(Clone)]
pub struct HostProcess {
    machine: Arc<Machine>,
    process: Arc<Process>,
}

impl std::fmt::Debug for HostProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostProcess").field("pid", &self.process.pid).finish_non_exhaustive()
    }
}

impl HostProcess {
    /// Returns whether its standard input is a terminal.
    pub fn has_terminal(&self) -> bool {
        self.process.fd(0).is_ok_and(|fd| matches!(&*fd.file, OpenFile::Terminal(..)))
    }

    /// Runs a program of the sandbox as its child, with the same descriptors, directory and terminal. Returns the exit
    /// code, as a shell reports it.
    pub async fn run(&self, path: &[u8], argv: &[Vec<u8>], env: &[Vec<u8>]) -> Result<u8> {
        let HostProcess { machine, process } = self;
        let (argv, env) = (Strings::given(argv)?, Strings::given(env)?);
        let request = spawn::find(machine, process, path.to_vec(), argv, env).await?;
        let child = spawn::spawn(machine, process, request, &[], None, Group::Parents)?;
        let ended = wait::wait(machine, process, child as i32, 0).await?;
        let (_, word) = ended.ok_or(Errno::ECHILD)?;
        Ok(if word & 0x7f == 0 { (word >> 8) as u8 } else { 128 + (word & 0x7f) as u8 })
    }
}

/// A descriptor of the program's process.
#[derive(Clone)]
struct Descriptor {
    machine: Arc<Machine>,
    process: Arc<Process>,
    number: u32,
}

/// Where a host program reads. What it reads to the end is charged to the sandbox until this is dropped.
pub struct HostInput(Descriptor, Charge);

impl std::fmt::Debug for HostInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostInput").field("descriptor", &self.0.number).finish_non_exhaustive()
    }
}

/// Where a host program writes. What it holds for that is charged to the sandbox until this is dropped.
pub struct HostOutput(Descriptor, Charge);

impl std::fmt::Debug for HostOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostOutput").field("descriptor", &self.0.number).finish_non_exhaustive()
    }
}

impl HostInput {
    /// Returns at most `max` bytes, and at most 64 KiB at once; none at the end.
    pub async fn read(&mut self, max: usize) -> Result<Vec<u8>> {
        let Descriptor { machine, process, number } = &self.0;
        let file = process.fd(*number)?.file;
        let mut data = vec![0; max.min(READ_AT_ONCE)];
        let count = match &*file {
            OpenFile::Tree(_) => {
                let reading = machine.on_file(&file, move |tree, handle| {
                    let count = tree.read(handle, &mut data)?;
                    data.truncate(count);
                    Ok(data)
                });
                return reading.await.inspect(|data| process.run().count_read(data.len()));
            }
            OpenFile::Reader(pipe) | OpenFile::Both(pipe, _) => pipe.read(&mut data).await?,
            OpenFile::Input(input, _) => input.read(&mut data).await?,
            OpenFile::Terminal(tty, ..) => tty.read(machine, process, &mut data).await?,
            OpenFile::Socket(socket) => {
                socket.socket().receive(process, &mut data, Flags::default()).await?.count
            }
            OpenFile::Writer(_) | OpenFile::Output(..) => return Err(Errno::EBADF),
        };
        process.run().count_read(count);
        data.truncate(count);
        Ok(data)
    }

    /// Reads everything. Returns EFBIG if that is more than `max` bytes, and ENOMEM if it exceeds the sandbox's memory
    /// limit.
    pub async fn read_to_end(&mut self, max: usize) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let more = self.read(READ_AT_ONCE).await?;
            if more.is_empty() {
                return Ok(all);
            }
            if all.len() + more.len() > max {
                return Err(Errno::EFBIG);
            }
            if all.capacity() - all.len() < more.len() {
                // Charged before it is there.
                let capacity = (all.len() + more.len()).max(all.capacity() * 2).min(max);
                self.0.charge(&mut self.1, capacity)?;
                all.reserve_exact(capacity - all.len());
            }
            all.extend(more);
        }
    }
}

impl Descriptor {
    /// Raises a charge to `bytes` in total. Returns ENOMEM past the sandbox's memory limit, and reports the limit.
    fn charge(&self, charge: &mut Charge, bytes: usize) -> Result<()> {
        if charge.grow_to(bytes) {
            return Ok(());
        }
        self.process.run().hit("memoryBytes");
        Err(Errno::ENOMEM)
    }
}

impl HostOutput {
    /// Returns another handle for the same descriptor, which holds nothing yet.
    pub fn another(&self) -> HostOutput {
        let HostOutput(descriptor, _) = self;
        HostOutput(descriptor.clone(), Charge::nothing(descriptor.machine.meter()))
    }

    /// Charges the sandbox for so many bytes that the program has in memory in order to write them: a reader may let it
    /// wait for as long as it likes. Returns ENOMEM if that exceeds the sandbox's memory limit.
    pub fn hold(&mut self, bytes: usize) -> Result<()> {
        self.0.charge(&mut self.1, bytes)
    }

    /// Writes all of it, waiting while the reader is slow. Returns EPIPE if no one reads any more.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<()> {
        let Descriptor { machine, process, number } = &self.0;
        let file = process.fd(*number)?.file;
        while !data.is_empty() {
            let written = write_file(machine, process, &file, data, None).await?;
            process.run().count_written(written);
            data = &data[written..];
        }
        Ok(())
    }
}

/// Runs the function in `process` to its end.
pub(crate) async fn run(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    program: &Arc<dyn HostProgram>,
    request: &Request,
) -> Status {
    let place = process.place();
    let cwd = machine.tree().await.path_within(&place, MAX_PATH as usize);
    let cwd = cwd.unwrap_or_else(|_| process.cwd.lock().name().to_vec());
    let argv = process.argv.lock().clone();
    let Ok(_charge) = machine.meter().hold_for(&process.run(), copied(&argv) + copied(&request.env)) else {
        process.run().cut_short();
        return Status::Signaled(SIGKILL);
    };
    let descriptor = |number| Descriptor { machine: machine.clone(), process: process.clone(), number };
    let nothing = || Charge::nothing(machine.meter());
    let call = HostCall {
        argv: argv.to_vecs(),
        env: request.env.to_vecs(),
        cwd,
        machine: machine.clone(),
        process: HostProcess { machine: machine.clone(), process: process.clone() },
        stdin: HostInput(descriptor(0), nothing()),
        stdout: HostOutput(descriptor(1), nothing()),
        stderr: HostOutput(descriptor(2), nothing()),
    };
    // A task of its own: a function that blocks or panics does not keep its process from being killed.
    let task = machine.kernel().runtime().spawn(program.run(call));
    let _cancelled_with_process = AbortOnDrop(task.abort_handle());
    match task.await {
        Ok(code) => Status::Exited(code),
        Err(_) => Status::Signaled(SIGABRT),
    }
}

/// What a list of strings costs as vectors, and once more as the host's own copy.
fn copied(strings: &Strings) -> usize {
    2 * (strings.block().len() + strings.len() * (size_of::<Vec<u8>>() + 32))
}

/// Runs a program that cannot be run: it says why and exits, like one whose interpreter refuses it on Linux.
pub(crate) async fn refuse(machine: &Arc<Machine>, process: &Arc<Process>, name: &[u8], why: &str) -> Status {
    let descriptor = Descriptor { machine: machine.clone(), process: process.clone(), number: 2 };
    let mut stderr = HostOutput(descriptor, Charge::nothing(machine.meter()));
    // Where nobody listens, the exit code is all there is.
    let _ = stderr.write_all(&[name, b": cannot run: ", why.as_bytes(), b"\n"].concat()).await;
    Status::Exited(126)
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
