//! Conflicts: what the host changed under an overlay.
//!
//! When a name of an overlay is first touched, what was below it is noted. Applying the overlay's changes is safe only
//! if that is still there.

use crate::diff::{Change, What};
use crate::host::HostDir;
use crate::mount::Source;
use crate::name::{join, split};
use crate::place::{Ino, MountId, MountSpot};
use crate::quota::spot_cost;
use crate::record::RecordError;
use crate::record_bytes::{Reader, Writer};
use crate::stat::{Stat, now};
use crate::{Caller, Errno, FileKind, Result, Tree};

/// What was below a name when it was first touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Below {
    /// `None` if there was nothing.
    found: Option<Seen>,
    /// When that was.
    at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    kind: FileKind,
    mode: u32,
    size: u64,
    mtime: i64,
    ino: u64,
}

impl Below {
    pub(crate) fn write(&self, out: &mut Writer) {
        out.fixed(self.at);
        match &self.found {
            None => out.number(0),
            Some(seen) => {
                out.number(1 + seen.kind.number());
                out.number(u64::from(seen.mode));
                out.number(seen.size);
                out.fixed(seen.mtime);
                out.number(seen.ino);
            }
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> std::result::Result<Below, RecordError> {
        let at = input.fixed()?;
        let found = match input.number()?.checked_sub(1) {
            None => None,
            Some(kind) => Some(Seen {
                kind: FileKind::of(kind).ok_or(RecordError::Damaged("a lower file of an unknown kind"))?,
                mode: input.small()?,
                size: input.number()?,
                mtime: input.fixed()?,
                ino: input.number()?,
            }),
        };
        Ok(Below { found, at })
    }
}

impl Seen {
    fn of(stat: &Stat) -> Seen {
        Seen { kind: stat.kind, mode: stat.mode, size: stat.size, mtime: stat.mtime, ino: stat.ino }
    }

    /// Returns whether it is still what it was. A directory is, whatever is added or removed in it.
    fn is_still(&self, stat: &Stat) -> bool {
        let now = Seen::of(stat);
        match (self.kind, now.kind) {
            (FileKind::Dir, FileKind::Dir) => self.mode == now.mode && self.ino == now.ino,
            _ => *self == now,
        }
    }
}

impl Tree {
    /// Notes what is below `name` of an overlay's directory, unless that was already noted.
    pub(crate) fn note_below(&mut self, dir: Ino, name: &[u8]) {
        let Ok(Some(lower)) = self.dir(dir).map(|dir| dir.lower.clone()) else { return };
        self.note_below_spot(&lower.child(name));
    }

    pub(crate) fn note_below_spot(&mut self, spot: &MountSpot) {
        if self.below.contains_key(spot) {
            return;
        }
        let found =
            self.host_of(spot).and_then(|host| host.stat(&spot.path)).ok().map(|stat| Seen::of(&stat));
        self.used.metadata += spot_cost(spot);
        self.below.insert(spot.clone(), Below { found, at: now() });
    }

    pub(crate) fn forget_below(&mut self, mount: MountId) {
        let (gone, kept) = self.below.iter().partition::<Vec<_>, _>(|(spot, _)| spot.mount == mount);
        self.used.metadata -= gone.iter().map(|(spot, _)| spot_cost(spot)).sum::<u64>();
        self.below = kept.into_iter().map(|(spot, below)| (spot.clone(), below.clone())).collect();
    }

    /// Returns the paths that both the overlay mounted at `path` and the host have changed since the sandbox first
    /// touched them: applying these changes would undo the host's.
    pub fn overlay_conflicts(&self, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        let top = self.lookup(&Caller::ROOT, &self.root(), path, true)?;
        let (mount, point) = self.mount_with_root(&top).ok_or(Errno::EINVAL)?;
        let Source::Overlay { dir: host, .. } = point.source else { return Err(Errno::EINVAL) };
        let changes = self.diff(path)?;
        let conflicting = changes.iter().filter(|change| self.is_conflict(mount, &host, change));
        let mut paths: Vec<Vec<u8>> = conflicting.map(|change| join(path, &change.path)).collect();
        paths.dedup();
        Ok(paths)
    }

    fn is_conflict(&self, mount: MountId, host: &HostDir, change: &Change) -> bool {
        let now = host.stat(&change.path).ok();
        let spot = |path: &[u8]| MountSpot { mount, path: path.into() };
        if let Some(below) = self.below.get(&spot(&change.path)) {
            return match (&below.found, &now) {
                (Some(seen), Some(now)) => !seen.is_still(now),
                (None, None) => false,
                _ => true,
            };
        }
        // Never touched itself: it came or went with a directory above it, and nothing may have changed since.
        let mut above = &change.path[..];
        while !above.is_empty() {
            above = split(above).0;
            if let Some(below) = self.below.get(&spot(above)) {
                return match (change.what, now) {
                    (What::Added { .. }, now) => now.is_some(),
                    (_, Some(now)) => now.ctime > below.at,
                    (_, None) => true,
                };
            }
        }
        true
    }
}
