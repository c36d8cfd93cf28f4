//! Instances that are ready before they are needed, and the limit on those kept afterwards.
//!
//! An idle sandbox is data; an instance of its shell is only a cache that saves the next command the start-up. The pool
//! keeps as many as it may, those used last, and drops the rest. If asked to, it also keeps a few fresh ones ready for
//! new sandboxes.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::task::JoinError;
use wardian_kernel::{Machine, Session, Spares};
use wardian_vfs::Errno;

use crate::error::Error;
use crate::sandbox::Inner;
use crate::system::System;

/// How many instances an engine keeps ready, for all its sandboxes together. An instance takes about 40 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Fresh instances for new sandboxes. They are replaced as they are taken, which is worth it if sandboxes are
    /// created often and processors are idle; none by default.
    pub min_size: usize,
    /// All shells, including those of idle sandboxes.
    pub max_size: usize,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions { min_size: 0, max_size: 64 }
    }
}

impl PoolOptions {
    /// Checks that it can be.
    pub fn check(&self) -> Result<(), Error> {
        if self.min_size <= self.max_size {
            return Ok(());
        }
        let (min, max) = (self.min_size, self.max_size);
        Err(Error::Option(format!("a pool of at least {min} and at most {max} shells")))
    }
}

/// The instances of a process that are not in use.
pub(crate) struct Pool {
    options: Mutex<PoolOptions>,
    spares: Arc<Spares>,
    /// Sandboxes whose shell was used, the latest at the back.
    warm: Mutex<VecDeque<Weak<Inner>>>,
}

impl Pool {
    pub(crate) fn new(spares: Arc<Spares>) -> Pool {
        let options = PoolOptions::default();
        spares.keep(options.min_size);
        Pool { options: Mutex::new(options), spares, warm: Mutex::default() }
    }

    /// The fresh ones.
    pub(crate) fn spares(&self) -> &Arc<Spares> {
        &self.spares
    }

    pub(crate) fn configure(&self, options: PoolOptions) -> Result<(), Error> {
        options.check()?;
        *self.options.lock() = options;
        self.spares.keep(options.min_size);
        Ok(())
    }

    /// Returns a shell for a new sandbox.
    pub(crate) async fn session(
        &self,
        system: &System,
        machine: &Arc<Machine>,
        env: Vec<Vec<u8>>,
        cwd: &[u8],
    ) -> Result<Result<Session, Errno>, JoinError> {
        if system.shell.is_known() {
            return Ok(Session::start(machine, &system.shell, env, cwd).await);
        }
        let (machine, shell, cwd) = (machine.clone(), system.shell.clone(), cwd.to_vec());
        // On the kernel's own runtime: the very first one starts the shell to see what it is like.
        let starting = async move { Session::start(&machine, &shell, env, &cwd).await };
        system.kernel.handle().spawn(starting).await
    }

    /// Notes that a sandbox's shell was used and is warm; the least recently used one may be dropped.
    pub(crate) fn note_warm(&self, sandbox: &Arc<Inner>) {
        let max = {
            let options = self.options.lock();
            options.max_size - options.min_size
        };
        let mut warm = self.warm.lock();
        let this = Arc::downgrade(sandbox);
        warm.retain(|other| other.strong_count() > 0 && !Weak::ptr_eq(other, &this));
        warm.push_back(this);
        let cooling: Vec<Weak<Inner>> =
            std::iter::from_fn(|| if warm.len() > max { warm.pop_front() } else { None }).collect();
        drop(warm);
        for inner in cooling.iter().filter_map(Weak::upgrade) {
            inner.cool();
        }
    }
}
