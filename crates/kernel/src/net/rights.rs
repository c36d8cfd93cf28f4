//! Descriptors on their way through a Unix socket.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wardian_vfs::{Errno, Result};

use crate::fd::OpenFile;

/// The most that one message may have, as on Linux.
pub(crate) const PER_MESSAGE: usize = 253;
/// The most that may be on their way in a sandbox. Sockets can be sent through each other, so this also bounds how deep they
/// are nested when all of them are closed at once.
const ON_THE_WAY: usize = 256;

/// Counts the descriptors on their way in a sandbox.
#[derive(Default)]
pub(crate) struct Traffic(AtomicUsize);

/// The descriptors of one message.
pub(crate) struct Rights {
    /// A `Vec<Arc<OpenFile>>`, whose type is hidden: a file can be a socket, so its type would contain itself, and compilers
    /// of programs that move a sandbox between threads would give up before they have found that it can be moved.
    files: Box<dyn Any + Send + Sync>,
    count: usize,
    traffic: Arc<Traffic>,
}

impl Rights {
    /// Sends these along. Returns ENOBUFS if too many are on their way.
    pub(crate) fn new(files: Vec<Arc<OpenFile>>, traffic: &Arc<Traffic>) -> Result<Rights> {
        let count = files.len();
        let counted = traffic.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |now| {
            now.checked_add(count).filter(|&sum| sum <= ON_THE_WAY)
        });
        match counted {
            Ok(_) => Ok(Rights { files: Box::new(files), count, traffic: traffic.clone() }),
            Err(_) => Err(Errno::ENOBUFS),
        }
    }

    /// Receives them.
    pub(crate) fn take(mut self) -> Vec<Arc<OpenFile>> {
        let files = std::mem::replace(&mut self.files, Box::new(()));
        files.downcast::<Vec<Arc<OpenFile>>>().map_or_else(|_| Vec::new(), |files| *files)
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.traffic.0.fetch_sub(self.count, Ordering::SeqCst);
    }
}
