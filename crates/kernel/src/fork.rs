//! fork: a second process with a copy of the first.
//!
//! WebAssembly has no fork, but all of a guest's state is its linear memory and its stack pointer. The guest passes a
//! closure; the child is a fresh instance of the same module, given the parent's memory from the stack pointer up, in
//! which that closure is called. References it captured are valid there: they point to the same addresses.

use std::sync::Arc;

use wardian_vfs::{Errno, Result};

use crate::instance::{Ctx, Ending, Instance, Tenant};
use crate::machine::Machine;
use crate::memory::image::Inheritance;
use crate::proc::{Pid, Process, Seed, Status};
use crate::spawn;
use crate::task;

/// Starts a copy of the calling process, which runs `entry(data)`.
pub(crate) async fn fork(caller: &mut wasmtime::Caller<'_, Ctx>, entry: u32, data: u32) -> Result<Pid> {
    let ctx = caller.data();
    let (machine, parent) = (ctx.machine.clone(), ctx.process.clone());
    let (program, env) = (ctx.program.clone(), ctx.env.clone());
    let memory = ctx.memory.ok_or(Errno::ENOSYS)?;
    let signal_word = ctx.signal_word;
    let stack_pointer = ctx.stack_pointer.filter(|_| program.forks).ok_or(Errno::ENOSYS)?;
    let stack_pointer = stack_pointer.get(&mut *caller).i32().ok_or(Errno::ENOSYS)? as u32;

    let berth = machine.kernel().room().take(machine.gate().sandbox())?;
    let unborn = Unborn { child: Some(add_child(&machine, &parent)?), machine: &machine };
    let inheritance = Inheritance::of(caller, memory, stack_pointer).await;
    let built = async {
        let tenant = Tenant::new(&machine, unborn.child()?, &program, env);
        let mut instance = Instance::start(tenant, berth).await?;
        inheritance.give(memory.data(&*caller), &mut instance).await?;
        instance.store.data_mut().signal_word = signal_word;
        instance.count_pages()?;
        Ok(instance)
    };
    let instance = match built.await {
        Ok(instance) => instance,
        Err(Errno::ENOMEM) => {
            parent.run().refuse("memoryBytes");
            return Err(Errno::EAGAIN);
        }
        Err(errno) => return Err(errno),
    };
    let child = unborn.born()?;
    let pid = child.pid;
    let body = run_child(machine.clone(), child.clone(), instance, entry, data);
    task::launch(machine.kernel(), &child.task(), Box::pin(body));
    Ok(pid)
}

/// A child that does not run yet. If it cannot be created, or its parent is killed meanwhile, it never existed.
struct Unborn<'a> {
    machine: &'a Machine,
    child: Option<Arc<Process>>,
}

impl Unborn<'_> {
    fn child(&self) -> Result<&Arc<Process>> {
        self.child.as_ref().ok_or(Errno::EAGAIN)
    }

    fn born(mut self) -> Result<Arc<Process>> {
        self.child.take().ok_or(Errno::EAGAIN)
    }
}

impl Drop for Unborn<'_> {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        self.machine.end(&child, Status::Exited(127));
        let mut table = self.machine.table();
        if table.get(child.pid).is_some_and(|entry| Arc::ptr_eq(&entry.process, &child)) {
            table.remove(child.pid);
        }
    }
}

fn add_child(machine: &Machine, parent: &Process) -> Result<Arc<Process>> {
    let (fds, cwd) = (parent.fds.lock().clone(), parent.cwd.lock().clone());
    let seed = Seed::of_parent(parent, fds, cwd);
    let mut table = machine.table();
    let group = table.get(parent.pid).map(|entry| entry.group);
    table.add(parent.pid, group, seed)
}

async fn run_child(
    machine: Arc<Machine>,
    process: Arc<Process>,
    mut instance: Instance,
    entry: u32,
    data: u32,
) {
    let _guard = machine.end_with_body(&process);
    let called = instance.call::<(u32, u32), i32>("__wardian_fork_entry", (entry, data)).await;
    let status = match called {
        Ok(code) => Status::Exited(code as u8),
        Err(Ending::Status(status)) => status,
        Err(Ending::Exec(request)) => {
            let Some(berth) = instance.retire() else { return };
            return spawn::run_program(machine, process, *request, berth).await;
        }
    };
    // The parent is told first and goes on while this task tidies up.
    machine.end(&process, status);
    instance.retire();
}
