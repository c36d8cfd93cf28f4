//! Start images: a program that takes long to initialise does it once, and every process of it starts from there.
//!
//! Such a program exports `wardian_prepare`, which is called once, in a machine of its own over the files that ship with
//! Wardian: no user's files, variables or limits can shape what others start from. The memory after it is the image. It is
//! kept in a file beside the compiled code and mapped copy-on-write, so that a start costs what it writes. Then
//! `wardian_start` runs the program with its own arguments, variables and descriptors; if these ask for another
//! initialisation, it returns, and the program is started with `_start` from nothing.

use std::sync::Arc;

use wardian_vfs::{Caller, Errno, Tree};

use crate::cwd::Cwd;
use crate::instance::{Ending, Instance, Tenant};
use crate::kernel::{Kernel, KernelInner};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::memory::image::Image;
use crate::memory::kept;
use crate::proc::{Process, Status};
use crate::program::Program;
use crate::room::Berth;
use crate::session::add_process;
use crate::signal::SIGKILL;
use crate::strings::Strings;

/// The files that images are made over.
pub(crate) struct Shipped {
    pub(crate) tree: Tree,
    /// Stands for all of them in the names of kept images.
    pub(crate) key: String,
}

/// What came of starting a process from an image.
pub(crate) enum Started {
    /// It ran, and ended like this.
    Ended(Ending, Option<Instance>),
    /// It must be started from nothing.
    Not(Berth),
}

/// Starts the program of a process from its image, if it has one.
pub(crate) async fn start(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    program: &Arc<Program>,
    env: &Strings,
    berth: Berth,
) -> Started {
    if !program.prepares {
        return Started::Not(berth);
    }
    let image = {
        // A command does not pay for what the machine prepares once.
        let _still = process.run().clock().hold();
        machine.kernel().start_image(program).await
    };
    let Some(image) = image else { return Started::Not(berth) };
    let tenant = Tenant::new(machine, process, program, env.clone());
    let killed = || Started::Ended(Ending::Status(Status::Signaled(SIGKILL)), None);
    let Ok(mut instance) = image.start(tenant, berth, false).await else {
        process.run().cut_short();
        return killed();
    };
    match instance.call::<(), ()>("wardian_start", ()).await {
        Ok(()) => instance.retire().map_or_else(killed, Started::Not),
        Err(ending) => Started::Ended(ending, Some(instance)),
    }
}

impl KernelInner {
    /// Returns what processes of a program start from, preparing it if nobody has. Nothing if that failed.
    pub(crate) async fn start_image(self: &Arc<Self>, program: &Arc<Program>) -> Option<Arc<Image>> {
        if let Some(image) = program.start.get() {
            return image.clone();
        }
        let (kernel, program) = (self.clone(), program.clone());
        // A task of its own: it continues if the process that asked is killed.
        let making =
            async move { program.start.get_or_init(|| find_or_make(&kernel, &program)).await.clone() };
        self.runtime().spawn(making).await.ok().flatten()
    }

    /// Does the same from a thread that may block, for later.
    pub(crate) fn prepare(self: &Arc<Self>, program: &Arc<Program>, progress: &dyn Fn(&str)) {
        if !program.prepares || program.start.initialized() {
            return;
        }
        let path =
            self.shipped().and_then(|shipped| self.artifacts().image_path(&program.hash, &shipped.key));
        if !path.is_some_and(|path| path.exists()) {
            progress(&format!("preparing the start of {}", program.name()));
        }
        let (done, wait) = std::sync::mpsc::channel();
        let (kernel, program) = (self.clone(), program.clone());
        self.runtime().spawn(async move {
            kernel.start_image(&program).await;
            let _ = done.send(());
        });
        let _ = wait.recv();
    }
}

async fn find_or_make(kernel: &Arc<KernelInner>, program: &Arc<Program>) -> Option<Arc<Image>> {
    let shipped = kernel.shipped()?;
    let path = kernel.artifacts().image_path(&program.hash, &shipped.key);
    if let Some(image) = path.as_deref().and_then(|path| kernel.artifacts().open_image(path)) {
        return Some(Arc::new(image));
    }
    let image = match make(kernel, shipped, program).await {
        Ok(image) => image,
        Err(errno) => {
            tracing::warn!(program = program.name(), %errno, "cannot prepare it: it will start slowly");
            return None;
        }
    };
    let Some(path) = path else { return Some(Arc::new(image)) };
    if let Err(error) = kept::write(&image, &path) {
        tracing::warn!(path = %path.display(), %error, "could not keep a start image");
        return Some(Arc::new(image));
    }
    // From the file: its pages are shared with other processes of the host.
    Some(Arc::new(kept::open(&path).unwrap_or(image)))
}

async fn make(kernel: &Arc<KernelInner>, shipped: &Shipped, program: &Arc<Program>) -> Result<Image, Errno> {
    let limits = Limits { memory_bytes: 1 << 30, ..Limits::default() };
    let machine = Machine::new(&Kernel::of(kernel), shipped.tree.clone(), limits);
    let cwd = {
        let mut tree = machine.tree().await;
        let root = tree.root();
        Cwd::enter(&machine, &mut tree, &Caller::USER, &root, b"/")?
    };
    let process = add_process(&machine, program, cwd)?;
    let berth = kernel.room().wait(machine.gate().sandbox()).await?;
    let tenant = Tenant::new(&machine, &process, program, Strings::default());
    let mut instance = Instance::new(tenant, berth).await?;
    let prepared = instance.call::<(), ()>("wardian_prepare", ()).await;
    let done = matches!(prepared, Ok(()) | Err(Ending::Status(Status::Exited(0))));
    instance.unwind_stack()?;
    let image = Image::capture(&mut instance, None).await.into_start();
    machine.end(&process, Status::Exited(0));
    machine.close();
    if done { Ok(image) } else { Err(Errno::ENOEXEC) }
}
