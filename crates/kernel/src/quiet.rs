//! Whether a machine can be put aside: what is saved of it is then all there is.

use wardian_vfs::{Caller, FileKind, Handle, Tree};

use crate::at_rest::{AtRest, Resting};
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
    /// removed, one of the host, which others may have replaced, or one that was computed when it was opened.
    pub fn is_movable(&self, tree: &Tree) -> bool {
        let found = |handle: &Handle, name: &[u8]| {
            let place = tree.lookup(&Caller::ROOT, &tree.root(), name, true);
            !handle.is_host() && handle.held_bytes() == 0 && place.is_ok_and(|place| place == handle.place())
        };
        let fds = self.fds.iter().all(|(_, fd)| match &fd.what {
            Resting::Stream(_) => true,
            Resting::Pipe { .. } | Resting::Socket(_) => false,
            Resting::File { handle, name, .. } => match handle.kind() {
                FileKind::File | FileKind::Dir => found(handle, name),
                // A device, by its name as well: it has no state.
                _ => tree.lookup(&Caller::ROOT, &tree.root(), name, true).is_ok(),
            },
        });
        fds && tree.path_of(&self.cwd.place()).is_ok()
    }
}
