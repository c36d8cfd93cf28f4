//! Descriptors on their way through a Unix socket.

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
    /// Gives them up. Behind a trait object, since an open file can be a socket that holds others.
    files: Option<Box<dyn FnOnce() -> Vec<Arc<OpenFile>> + Send + Sync>>,
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
            Ok(_) => {
                let files: Box<dyn FnOnce() -> Vec<Arc<OpenFile>> + Send + Sync> = Box::new(move || files);
                Ok(Rights { files: Some(files), count, traffic: traffic.clone() })
            }
            Err(_) => Err(Errno::ENOBUFS),
        }
    }

    /// Receives them.
    pub(crate) fn take(mut self) -> Vec<Arc<OpenFile>> {
        self.files.take().map(|files| files()).unwrap_or_default()
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        self.traffic.0.fetch_sub(self.count, Ordering::SeqCst);
    }
}
