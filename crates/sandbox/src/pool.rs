//! Instances that are ready before they are asked for, and the bound on those kept afterwards.
//!
//! A sandbox at rest is data; an instance of its shell is only a cache that saves the next command the start. So many
//! are kept as the pool allows, those used last, and the rest is dropped. And where it was asked for, a few fresh ones
//! lie ready for new sandboxes.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::task::JoinError;
use wardian_kernel::{Machine, Session, Spares};
use wardian_vfs::Errno;

use crate::error::Error;
use crate::sandbox::Inner;
use crate::system::System;

/// How many instances a program keeps ready, for all its sandboxes together. An instance takes some 40 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Fresh ones for sandboxes to come. They are replaced as they are taken: worth it where sandboxes are made often and
    /// processors are to spare; none by default.
    pub min_size: usize,
    /// Shells in all, those of idle sandboxes included.
    pub max_size: usize,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions { min_size: 0, max_size: 64 }
    }
}

/// The instances of a program that nobody uses at the moment.
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
        if options.min_size > options.max_size {
            return Err(Error::Option(format!(
                "a pool of at least {} and at most {} shells",
                options.min_size, options.max_size
            )));
        }
        *self.options.lock() = options;
        self.spares.keep(options.min_size);
        Ok(())
    }

    /// A shell for a new sandbox.
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

    /// A sandbox's shell was used and is warm; the one that was used longest ago may have to cool.
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
