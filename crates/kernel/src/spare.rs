//! Instances made before they are asked for.
//!
//! Making an instance is mostly mapping its memory, and that is most of what a new sandbox's first command, a fork or
//! a spawn waits for. So of the programs that everyone runs a few fresh instances lie ready, and are replaced while
//! the process that took one is at work. A spare has run nothing and seen nothing: it belongs to nobody until it is
//! taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use wardian_vfs::{Caller, Errno, Quota, Tree};

use crate::cwd::Cwd;
use crate::instance::Instance;
use crate::kernel::Kernel;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::proc::Process;
use crate::program::Program;
use crate::session::add_process;

/// Fresh instances of some programs.
pub struct Spares {
    kernel: Kernel,
    shelves: Vec<Shelf>,
    /// How many of each program are to lie ready.
    wanted: AtomicUsize,
    filling: AtomicBool,
    nobody: OnceCell<Nobody>,
}

struct Shelf {
    program: Arc<Program>,
    ready: Mutex<Vec<Instance>>,
}

/// Whose instances are until somebody takes them.
struct Nobody {
    machine: Arc<Machine>,
    process: Arc<Process>,
}

impl Spares {
    /// Of these programs, which must be ones that ship with us; none are kept until [`Spares::keep`].
    pub fn new(kernel: &Kernel, programs: impl IntoIterator<Item = Arc<Program>>) -> Arc<Spares> {
        let shelves = programs.into_iter().map(|program| Shelf { program, ready: Mutex::default() });
        Arc::new(Spares {
            kernel: kernel.clone(),
            shelves: shelves.collect(),
            wanted: AtomicUsize::new(0),
            filling: AtomicBool::new(false),
            nobody: OnceCell::new(),
        })
    }

    /// Keeps so many of each ready from now on.
    pub fn keep(self: &Arc<Self>, wanted: usize) {
        self.wanted.store(wanted, Ordering::SeqCst);
        for shelf in &self.shelves {
            let surplus = {
                let mut ready = shelf.ready.lock();
                let kept = wanted.min(ready.len());
                ready.split_off(kept)
            };
            drop(surplus);
        }
        self.refill();
    }

    /// How many lie ready, of all programs together.
    pub fn ready(&self) -> usize {
        self.shelves.iter().map(|shelf| shelf.ready.lock().len()).sum()
    }

    /// One for `program`, if there is one.
    pub(crate) fn take(self: &Arc<Self>, program: &Arc<Program>) -> Option<Instance> {
        let shelf = self.shelves.iter().find(|shelf| Arc::ptr_eq(&shelf.program, program))?;
        let spare = shelf.ready.lock().pop();
        self.refill();
        spare
    }

    /// Replaces what is missing, in a task of its own.
    fn refill(self: &Arc<Self>) {
        if self.next_empty().is_some() && !self.filling.swap(true, Ordering::SeqCst) {
            let spares = self.clone();
            self.kernel.handle().spawn(async move { spares.fill().await });
        }
    }

    async fn fill(self: Arc<Self>) {
        while let Some(shelf) = self.next_empty() {
            match self.make(&shelf.program).await {
                Ok(spare) => shelf.ready.lock().push(spare),
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

    fn next_empty(&self) -> Option<&Shelf> {
        let wanted = self.wanted.load(Ordering::SeqCst);
        self.shelves.iter().find(|shelf| shelf.ready.lock().len() < wanted)
    }

    async fn make(&self, program: &Arc<Program>) -> Result<Instance, Errno> {
        let berth = self.kernel.inner().room().spare()?;
        let Nobody { machine, process } = self.nobody.get_or_try_init(|| self.nobody(program)).await?;
        Instance::new(machine, process, program, Arc::default(), berth).await
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
