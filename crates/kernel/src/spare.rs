//! Instances created before they are needed.
//!
//! Creating an instance is mostly mapping its memory, and that is most of what a new sandbox's first command waits for.
//! So a few fresh instances of the shell are kept ready, and are replaced while the one that took the last is at work. A
//! spare has run nothing and seen nothing: it belongs to no one until it is taken. Forks do not take any: there are so
//! many of them that refilling would only compete with them for the process's memory map.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use wardian_vfs::{Caller, Errno, Quota, Tree};

use crate::cwd::Cwd;
use crate::instance::{Instance, Tenant};
use crate::kernel::Kernel;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::proc::Process;
use crate::program::Program;
use crate::session::add_process;
use crate::strings::Strings;

/// Fresh instances of a program.
pub struct Spares {
    kernel: Kernel,
    program: Arc<Program>,
    ready: Mutex<Vec<Instance>>,
    /// How many to keep ready.
    wanted: AtomicUsize,
    filling: AtomicBool,
    nobody: OnceCell<Nobody>,
}

/// The owner of instances until they are taken.
struct Nobody {
    machine: Arc<Machine>,
    process: Arc<Process>,
}

impl Spares {
    /// Creates spares of this program, which must ship with Wardian; none are kept until [`Spares::keep`].
    pub fn new(kernel: &Kernel, program: &Arc<Program>) -> Arc<Spares> {
        Arc::new(Spares {
            kernel: kernel.clone(),
            program: program.clone(),
            ready: Mutex::default(),
            wanted: AtomicUsize::new(0),
            filling: AtomicBool::new(false),
            nobody: OnceCell::new(),
        })
    }

    /// Keeps this many ready from now on.
    pub fn keep(self: &Arc<Self>, wanted: usize) {
        self.wanted.store(wanted, Ordering::SeqCst);
        let surplus = {
            let mut ready = self.ready.lock();
            let kept = wanted.min(ready.len());
            ready.split_off(kept)
        };
        drop(surplus);
        self.refill();
    }

    /// Returns how many are ready.
    pub fn ready(&self) -> usize {
        self.ready.lock().len()
    }

    /// Returns one for `program`, if there is one.
    pub(crate) fn take(self: &Arc<Self>, program: &Arc<Program>) -> Option<Instance> {
        if !Arc::ptr_eq(&self.program, program) {
            return None;
        }
        let spare = self.ready.lock().pop();
        self.refill();
        spare
    }

    /// Replaces what is missing, in a separate task.
    fn refill(self: &Arc<Self>) {
        if self.lacks() && !self.filling.swap(true, Ordering::SeqCst) {
            let spares = self.clone();
            self.kernel.handle().spawn(async move { spares.fill().await });
        }
    }

    async fn fill(self: Arc<Self>) {
        while self.lacks() {
            match self.make().await {
                Ok(spare) => self.ready.lock().push(spare),
                Err(_) => {
                    // Those who need room now come first. The next who takes a spare tries again.
                    self.filling.store(false, Ordering::SeqCst);
                    return;
                }
            }
            tokio::task::yield_now().await;
        }
        self.filling.store(false, Ordering::SeqCst);
        // One may have been taken while this still counted as filling.
        self.refill();
    }

    fn lacks(&self) -> bool {
        self.ready.lock().len() < self.wanted.load(Ordering::SeqCst)
    }

    async fn make(&self) -> Result<Instance, Errno> {
        let program = &self.program;
        let Nobody { machine, process } = self.nobody.get_or_try_init(|| self.nobody(program)).await?;
        let berth = self.kernel.inner().room().spare(machine.gate().sandbox())?;
        Instance::new(Tenant::new(machine, process, program, Strings::default()), berth).await
    }

    async fn nobody(&self, program: &Program) -> Result<Nobody, Errno> {
        let unlimited = Limits { memory_bytes: u64::MAX, ..Limits::default() };
        let machine = Machine::new(&self.kernel, Tree::new(Quota::NONE), unlimited);
        let mut tree = machine.tree().await;
        let root = tree.root();
        let cwd = Cwd::enter(&machine, &mut tree, &Caller::USER, &root, b"/")?;
        drop(tree);
        let process = add_process(&machine, program, cwd)?;
        Ok(Nobody { machine, process })
    }
}
