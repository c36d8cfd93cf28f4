//! What a session's program is asked to do, through its exports.

use std::sync::Arc;

use wardian_vfs::Errno;

use crate::instance::{Ending, Instance, Tenant};
use crate::machine::Machine;
use crate::memory::image::Image;
use crate::proc::{Process, Status};
use crate::room::Berth;
use crate::spawn;

/// The export that runs a script whose options and traps do not outlive it.
pub(crate) const CONTAINED: &str = "wardian_run_contained";

/// How a program exits that could not even answer, where a limit was hit: as if it had been killed.
const OUT_OF_MEMORY: u8 = 137;

/// What a session's program can be asked to do.
pub(super) enum Job {
    Script {
        script: Vec<u8>,
        around: Option<(Vec<u8>, Vec<u8>)>,
        contained: bool,
    },
    /// A question, the most bytes that its answer may have, and whether there must be one.
    Ask {
        question: Vec<u8>,
        most: usize,
        must: bool,
    },
    GetEnv(Vec<u8>),
    /// Sets a variable and returns its new value.
    SetEnv {
        name: Vec<u8>,
        value: Vec<u8>,
    },
}

/// What a command's instance is.
pub(super) enum Source {
    /// The previous command's.
    Warm(Box<Instance>),
    /// One to be created from an image.
    Cold { tenant: Tenant, berth: Berth, image: Arc<Image> },
}

impl Source {
    pub(super) async fn instance(self) -> Result<Instance, Errno> {
        match self {
            Source::Warm(instance) => Ok(*instance),
            Source::Cold { tenant, berth, image } => image.start(tenant, berth, true).await,
        }
    }
}

/// How a job ended that was not killed.
pub(super) enum Ended {
    /// The program returned, and can run the next job.
    Returned { code: u8, answer: Option<Vec<u8>>, instance: Box<Instance>, image: Arc<Image> },
    /// It left by `exit`, `exec` or a trap: the command is over, and the session is as it was before it.
    Left(Status),
}

pub(super) async fn do_job(
    machine: &Arc<Machine>,
    process: &Arc<Process>,
    mut instance: Instance,
    job: Job,
    before: &Image,
) -> Ended {
    let done = match &job {
        Job::Script { script, around, contained } => {
            run_around(&mut instance, around.as_ref(), script, *contained).await.map(|code| (code, None))
        }
        Job::SetEnv { name, value } => set_env(&mut instance, name, value).await.map(|text| (0, text)),
        Job::GetEnv(name) => {
            answer(&mut instance, "wardian_getenv", name, usize::MAX).await.map(|text| (0, text))
        }
        Job::Ask { question, most, .. } => {
            answer(&mut instance, "wardian_ask", question, *most).await.map(|text| (0, text))
        }
    };
    if matches!(job, Job::Ask { must: true, .. }) && matches!(done, Ok((_, None))) {
        // It failed, most likely for want of memory. What it was before may have what it takes to make room.
        let code = if process.run().limit_hit().is_some() { OUT_OF_MEMORY } else { 1 };
        return Ended::Left(Status::Exited(code));
    }
    match done {
        Ok((code, answer)) => {
            let image = Arc::new(Image::capture(&mut instance, Some(before)).await);
            Ended::Returned { code, answer, instance: Box::new(instance), image }
        }
        Err(Ending::Status(status)) => Ended::Left(status),
        Err(Ending::Exec(request)) => match instance.retire() {
            Some(berth) => Ended::Left(spawn::run_to_end(machine, process, *request, berth).await.0),
            None => Ended::Left(Status::Signaled(crate::signal::SIGKILL)),
        },
    }
}

async fn run_script(instance: &mut Instance, script: &[u8]) -> Result<u8, Ending> {
    Ok(pass::<i32>(instance, "wardian_run", script).await? as u8)
}

async fn run_around(
    instance: &mut Instance,
    around: Option<&(Vec<u8>, Vec<u8>)>,
    script: &[u8],
    contained: bool,
) -> Result<u8, Ending> {
    // A program without this export is ended: what was to be contained is never run otherwise.
    let export = if contained { CONTAINED } else { "wardian_run" };
    let Some((before, after)) = around else {
        return Ok(pass::<i32>(instance, export, script).await? as u8);
    };
    match run_script(instance, before).await? {
        0 => {}
        // As if it had exited there: the session goes back to what it was.
        code => return Err(Ending::Status(Status::Exited(code))),
    }
    let code = pass::<i32>(instance, export, script).await? as u8;
    run_script(instance, after).await?;
    Ok(code)
}

async fn set_env(instance: &mut Instance, name: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Ending> {
    pass::<()>(instance, "wardian_setenv", &[name, b"=", value].concat()).await?;
    answer(instance, "wardian_getenv", name, usize::MAX).await
}

/// Returns the result of an export, at `pointer << 32 | length`; none for -1, a range outside the program's memory, or one
/// that is longer than `most`.
async fn answer(
    instance: &mut Instance,
    export: &str,
    question: &[u8],
    most: usize,
) -> Result<Option<Vec<u8>>, Ending> {
    let place: i64 = pass(instance, export, question).await?;
    let found = || {
        let place = u64::try_from(place).ok()?;
        let (ptr, len) = ((place >> 32) as usize, (place & 0xffff_ffff) as usize);
        let memory = instance.store.data().memory.filter(|_| len <= most)?;
        Some(memory.data(&instance.store).get(ptr..)?.get(..len)?.to_vec())
    };
    Ok(found())
}

/// Passes `argument` to the export and calls it.
async fn pass<R>(instance: &mut Instance, export: &str, argument: &[u8]) -> Result<R, Ending>
where
    R: wasmtime::WasmResults + Sync,
{
    let len = argument.len() as u32;
    let ptr = instance.call::<u32, u32>("wardian_alloc", len).await?;
    let memory = instance.store.data().memory;
    let place = memory
        .map(|memory| memory.data_mut(&mut instance.store))
        .and_then(|bytes| bytes.get_mut(ptr as usize..)?.get_mut(..argument.len()));
    let Some(place) = place else {
        return Err(Ending::Status(Status::Signaled(crate::signal::SIGSEGV)));
    };
    place.copy_from_slice(argument);
    instance.call::<(u32, u32), R>(export, (ptr, len)).await
}
