//! Whether a machine can be put aside: what is saved of it is then all there is.

use wardian_vfs::{Caller, FileKind, Handle, Tree};

use crate::at_rest::{AtRest, Resting, open_directory, open_name};
use crate::machine::Machine;

impl Machine {
    /// Returns whether nothing lives in it but its resident programs: no process, not even one that has ended and whose
    /// parent has not asked for it, no socket, no lock, no alarm; and it is not suspended.
    pub fn is_quiet(&self) -> bool {
        let resident =
            self.table().iter().all(|(_, entry)| entry.process.resident && !entry.process.alarm.is_set());
        resident && !self.is_suspended() && !self.network().is_any() && !self.locks().is_any()
    }
}

impl AtRest {
    /// Returns whether everything it has open is found again by its name. A pipe or a socket is not, nor is a file that was
    /// removed, one of the host, which others may have replaced, or one that was computed when it was opened; nor one that
    /// its owner may not open any more.
    pub fn is_movable(&self, tree: &Tree) -> bool {
        let mut trial = tree.clone();
        let found = |handle: &Handle, name: &[u8]| {
            let place = tree.lookup(&Caller::ROOT, &tree.root(), name, true);
            handle.held_bytes() == 0 && place.is_ok_and(|place| place == handle.place())
        };
        let fds = self.fds.iter().all(|(_, fd)| match &fd.what {
            Resting::Stream(_) => true,
            Resting::Pipe { .. } | Resting::Socket(_) => false,
            Resting::File { handle, name, .. } => {
                // A device has no state, so any of its name is the same.
                let is_device = !matches!(handle.kind(), FileKind::File | FileKind::Dir);
                let is_same = !handle.is_host() && (is_device || found(handle, name));
                is_same && open_name(&mut trial, handle.flags(), name).is_ok()
            }
        });
        let cwd = tree.path_of(&self.cwd.place());
        fds && cwd.is_ok_and(|cwd| open_directory(&mut trial, &cwd).is_ok())
    }
}
