//! The lock on a sandbox's files.
//!
//! A process that waits for it may be stopped or suspended meanwhile, so the lock is never handed to a waiter: it is
//! released, all waiters are woken, and the first of them that runs takes it. A fair lock given to a stopped process
//! would be held until that process continues, and no one else could access a file.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use wardian_vfs::Tree;

/// A tree that only one at a time may use.
#[derive(Clone)]
pub(crate) struct TreeLock {
    tree: Arc<Mutex<Tree>>,
    freed: Arc<Notify>,
}

/// The files of a sandbox, for as long as this is held.
pub struct TreeGuard {
    /// None only while it is being dropped.
    tree: Option<OwnedMutexGuard<Tree>>,
    freed: Arc<Notify>,
}

impl TreeLock {
    pub(crate) fn new(tree: Tree) -> TreeLock {
        TreeLock { tree: Arc::new(Mutex::new(tree)), freed: Arc::default() }
    }

    pub(crate) async fn lock(&self) -> TreeGuard {
        loop {
            if let Some(tree) = self.try_lock() {
                return tree;
            }
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // It may have been let go before anybody listened.
            freed.as_mut().enable();
            if let Some(tree) = self.try_lock() {
                return tree;
            }
            freed.await;
        }
    }

    pub(crate) fn try_lock(&self) -> Option<TreeGuard> {
        let tree = self.tree.clone().try_lock_owned().ok()?;
        Some(TreeGuard { tree: Some(tree), freed: self.freed.clone() })
    }
}

impl Deref for TreeGuard {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        self.tree.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for TreeGuard {
    fn deref_mut(&mut self) -> &mut Tree {
        self.tree.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for TreeGuard {
    fn drop(&mut self) {
        self.tree = None;
        self.freed.notify_waiters();
    }
}
